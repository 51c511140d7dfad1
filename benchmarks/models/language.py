"""Language models of `transformers`: widths of the smallest published models, one or two layers, a small vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers
from network import Network, pretrained, tokens

VOCABULARY = 2003


def causal(model: str, config: str, optimizer: str = "sgd", **sizes: Any) -> Callable[[], Network]:
    """Return a function that builds a network that predicts the next token; the names are classes in `transformers`."""

    def build() -> Network:
        ids = tokens(VOCABULARY)
        configuration = getattr(transformers, config)(vocab_size=VOCABULARY, pad_token_id=0, **sizes)
        return pretrained(getattr(transformers, model), configuration, optimizer, input_ids=ids, labels=ids)

    return build


def masked(model: str, config: str, optimizer: str = "sgd", **sizes: Any) -> Callable[[], Network]:
    """Return a function that builds a network that predicts masked tokens, for sequences of which one is padded."""

    def build() -> Network:
        ids, seen = tokens(VOCABULARY), torch.ones(2, 32, dtype=torch.int64)
        seen[1, 20:] = 0
        configuration = getattr(transformers, config)(vocab_size=VOCABULARY, **sizes)
        return pretrained(
            getattr(transformers, model), configuration, optimizer, input_ids=ids, attention_mask=seen, labels=ids
        )

    return build


def lstm() -> Network:
    """Return a recurrent language model that runs cell by cell, as on a device without kernels for sequences."""
    from torch import Tensor, nn

    class Recurrent(nn.Module):
        def __init__(self, width: int = 650) -> None:
            super().__init__()
            self.embedding, self.cell, self.head = (
                nn.Embedding(VOCABULARY, width),
                nn.LSTMCell(width, width),
                nn.Linear(width, VOCABULARY),
            )

        def forward(self, ids: Tensor) -> Tensor:
            x, state, hidden = self.embedding(ids), None, []
            for position in range(ids.shape[1]):
                state = self.cell(x[:, position], state)
                hidden.append(state[0])
            return self.head(torch.stack(hidden, 1))

    module, ids = Recurrent(), tokens(VOCABULARY, 9, 4)
    return Network(module, lambda: nn.functional.cross_entropy(module(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()))


LLAMA_LIKE = {"hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9, "num_key_value_heads": 3}
"""The sizes of a published network with 135 million parameters."""

ONE_LAYER = {"num_hidden_layers": 1}

NETWORKS: Mapping[str, Callable[[], Network]] = {
    "albert": masked(
        "AlbertForMaskedLM",
        "AlbertConfig",
        hidden_size=768,
        intermediate_size=3072,
        num_attention_heads=12,
        **ONE_LAYER,
    ),
    "bart": causal(
        "BartForConditionalGeneration",
        "BartConfig",
        d_model=768,
        encoder_layers=1,
        decoder_layers=1,
        encoder_ffn_dim=3072,
        decoder_ffn_dim=3072,
        encoder_attention_heads=12,
        decoder_attention_heads=12,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
    ),
    "bert": masked("BertForMaskedLM", "BertConfig", "adamw", num_hidden_layers=2),
    "bloom": causal("BloomForCausalLM", "BloomConfig", hidden_size=1024, n_head=16, n_layer=1),
    "deberta": masked(
        "DebertaV2ForMaskedLM",
        "DebertaV2Config",
        hidden_size=768,
        intermediate_size=3072,
        num_attention_heads=12,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        **ONE_LAYER,
    ),
    "electra": masked("ElectraForMaskedLM", "ElectraConfig", **ONE_LAYER),
    "gemma": causal(
        "GemmaForCausalLM",
        "GemmaConfig",
        hidden_size=640,
        intermediate_size=2048,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=256,
        **ONE_LAYER,
    ),
    "gpt2": causal("GPT2LMHeadModel", "GPT2Config", "adamw", n_layer=1),
    "gpt_neox": causal(
        "GPTNeoXForCausalLM",
        "GPTNeoXConfig",
        hidden_size=768,
        intermediate_size=3072,
        num_attention_heads=12,
        **ONE_LAYER,
    ),
    "llama": causal("LlamaForCausalLM", "LlamaConfig", "adamw", **LLAMA_LIKE, **ONE_LAYER),
    "lstm": lstm,
    "mamba": causal("MambaForCausalLM", "MambaConfig", hidden_size=768, **ONE_LAYER),
    "mixtral": causal("MixtralForCausalLM", "MixtralConfig", num_local_experts=4, **LLAMA_LIKE, **ONE_LAYER),
    "opt": causal(
        "OPTForCausalLM",
        "OPTConfig",
        hidden_size=768,
        word_embed_proj_dim=768,
        ffn_dim=3072,
        num_attention_heads=12,
        **ONE_LAYER,
    ),
    "phi": causal(
        "PhiForCausalLM", "PhiConfig", hidden_size=1024, intermediate_size=4096, num_attention_heads=32, **ONE_LAYER
    ),
    "qwen2": causal(
        "Qwen2ForCausalLM",
        "Qwen2Config",
        hidden_size=896,
        intermediate_size=4864,
        num_attention_heads=14,
        num_key_value_heads=2,
        **ONE_LAYER,
    ),
    "roberta": masked("RobertaForMaskedLM", "RobertaConfig", **ONE_LAYER),
    "t5": causal("T5ForConditionalGeneration", "T5Config", d_model=512, num_layers=1, decoder_start_token_id=0),
}
