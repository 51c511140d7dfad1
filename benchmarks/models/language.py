"""Language models, most of them from `transformers`.

Each has the widths of its smallest published model, one or two layers, and a small vocabulary.

Each public function builds a `Network`: a module with random weights, and a function that returns its training loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers
from network import Network, tokens, transformers_network

VOCABULARY = 2003
"""The number of distinct tokens."""


def autoregressive_model(model: str, config: str, optimizer: str = "sgd", **sizes: Any) -> Callable[[], Network]:
    """Return a function that builds an autoregressive language model: a decoder, or an encoder and a decoder.

    Args:
        model: the class of the network in `transformers`.
        config: the class of its configuration in `transformers`.
        optimizer: the name of the optimizer.
        **sizes: the arguments of the configuration.

    Returns:
        The function.
    """

    def build() -> Network:
        ids = tokens(VOCABULARY)
        configuration = getattr(transformers, config)(vocab_size=VOCABULARY, pad_token_id=0, **sizes)
        return transformers_network(getattr(transformers, model), configuration, optimizer, input_ids=ids, labels=ids)

    return build


def masked_language_model(model: str, config: str, optimizer: str = "sgd", **sizes: Any) -> Callable[[], Network]:
    """Return a function that builds a masked language model; the arguments are those of `autoregressive_model`.

    The batch has two sequences. The attention mask excludes the last 12 tokens of the second sequence. No token is
    replaced by the mask token, and the loss covers all tokens.
    """

    def build() -> Network:
        ids, attention_mask = tokens(VOCABULARY), torch.ones(2, 32, dtype=torch.int64)
        attention_mask[1, 20:] = 0
        configuration = getattr(transformers, config)(vocab_size=VOCABULARY, **sizes)
        return transformers_network(
            getattr(transformers, model),
            configuration,
            optimizer,
            input_ids=ids,
            attention_mask=attention_mask,
            labels=ids,
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
"""Arguments of configurations of encoders with a single layer."""

NETWORKS: Mapping[str, Callable[[], Network]] = {
    "albert": masked_language_model(
        "AlbertForMaskedLM",
        "AlbertConfig",
        hidden_size=768,
        intermediate_size=3072,
        num_attention_heads=12,
        **ONE_LAYER,
    ),
    "bart": autoregressive_model(
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
    "bert": masked_language_model("BertForMaskedLM", "BertConfig", "adamw", num_hidden_layers=2),
    "bloom": autoregressive_model("BloomForCausalLM", "BloomConfig", hidden_size=1024, n_head=16, n_layer=1),
    "deberta": masked_language_model(
        "DebertaV2ForMaskedLM",
        "DebertaV2Config",
        hidden_size=768,
        intermediate_size=3072,
        num_attention_heads=12,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        **ONE_LAYER,
    ),
    "electra": masked_language_model("ElectraForMaskedLM", "ElectraConfig", **ONE_LAYER),
    "gemma": autoregressive_model(
        "GemmaForCausalLM",
        "GemmaConfig",
        hidden_size=640,
        intermediate_size=2048,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=256,
        **ONE_LAYER,
    ),
    "gpt2": autoregressive_model("GPT2LMHeadModel", "GPT2Config", "adamw", n_layer=1),
    "gpt_neox": autoregressive_model(
        "GPTNeoXForCausalLM",
        "GPTNeoXConfig",
        hidden_size=768,
        intermediate_size=3072,
        num_attention_heads=12,
        **ONE_LAYER,
    ),
    "llama": autoregressive_model("LlamaForCausalLM", "LlamaConfig", "adamw", **LLAMA_LIKE, **ONE_LAYER),
    "lstm": lstm,
    "mamba": autoregressive_model("MambaForCausalLM", "MambaConfig", hidden_size=768, **ONE_LAYER),
    "mixtral": autoregressive_model(
        "MixtralForCausalLM", "MixtralConfig", num_local_experts=4, **LLAMA_LIKE, **ONE_LAYER
    ),
    "opt": autoregressive_model(
        "OPTForCausalLM",
        "OPTConfig",
        hidden_size=768,
        word_embed_proj_dim=768,
        ffn_dim=3072,
        num_attention_heads=12,
        **ONE_LAYER,
    ),
    "phi": autoregressive_model(
        "PhiForCausalLM", "PhiConfig", hidden_size=1024, intermediate_size=4096, num_attention_heads=32, **ONE_LAYER
    ),
    "qwen2": autoregressive_model(
        "Qwen2ForCausalLM",
        "Qwen2Config",
        hidden_size=896,
        intermediate_size=4864,
        num_attention_heads=14,
        num_key_value_heads=2,
        **ONE_LAYER,
    ),
    "roberta": masked_language_model("RobertaForMaskedLM", "RobertaConfig", **ONE_LAYER),
    "t5": autoregressive_model(
        "T5ForConditionalGeneration", "T5Config", d_model=512, num_layers=1, decoder_start_token_id=0
    ),
}
"""The functions that build the networks, by name."""
