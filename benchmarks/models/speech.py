"""Networks that recognize, classify or separate speech and other sounds.

Each public function builds a `Network`: a module with random weights, and a function that returns its training loss.
"""

from __future__ import annotations

import torch
from network import Network, transformers_network
from torch import Tensor, nn


def wav2vec2() -> Network:
    """Return wav2vec 2.0, which aligns sound and text by the CTC loss (Baevski et al. 2020)."""
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    config = Wav2Vec2Config(num_hidden_layers=1, mask_time_prob=0.0, layerdrop=0.0, ctc_loss_reduction="mean")
    return transformers_network(
        Wav2Vec2ForCTC, config, input_values=torch.randn(1, 4000), labels=torch.randint(1, 31, (1, 4))
    )


def hubert() -> Network:
    """Return HuBERT, which classifies sounds (Hsu et al. 2021)."""
    from transformers import HubertConfig, HubertForSequenceClassification

    config = HubertConfig(
        num_hidden_layers=1, conv_pos_batch_norm=True, layerdrop=0.0, mask_time_prob=0.0, num_labels=35
    )
    return transformers_network(
        HubertForSequenceClassification, config, input_values=torch.randn(1, 4000), labels=torch.tensor([3])
    )


def whisper() -> Network:
    """Return Whisper, an encoder and a decoder that transcribe speech (Radford et al. 2023)."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    sizes = {
        "d_model": 384,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 6,
        "decoder_attention_heads": 6,
    }
    limits = {"encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536, "max_source_positions": 50, "vocab_size": 2003}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    config = WhisperConfig(**sizes, **limits, **special)
    spectrum, labels = torch.randn(2, 80, 100), torch.randint(2003, (2, 16))
    return transformers_network(WhisperForConditionalGeneration, config, input_features=spectrum, labels=labels)


def audio_transformer() -> Network:
    """Return a transformer that classifies spectrograms (Gong et al. 2021)."""
    from transformers import ASTConfig, ASTForAudioClassification

    config = ASTConfig(num_hidden_layers=1, max_length=128, num_labels=527)
    return transformers_network(
        ASTForAudioClassification, config, input_values=torch.randn(1, 128, 128), labels=torch.tensor([3])
    )


def deep_speech() -> Network:
    """Return convolutions over a spectrum, gated recurrent cells, and alignment to a text (Amodei et al. 2016)."""

    class DeepSpeech(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            first = (nn.Conv2d(1, 32, (41, 11), (2, 2), (20, 5), bias=False), nn.BatchNorm2d(32), nn.Hardtanh(0, 20))
            second = (nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5), bias=False), nn.BatchNorm2d(32), nn.Hardtanh(0, 20))
            self.convolutions = nn.Sequential(*first, *second)
            self.cell, self.head = nn.GRUCell(32 * 41, 800), nn.Linear(800, 29)

        def forward(self, spectrum: Tensor) -> Tensor:
            x = self.convolutions(spectrum).flatten(1, 2).permute(2, 0, 1)
            state, states = None, []
            for moment in x:
                state = self.cell(moment, state)
                states.append(state)
            return self.head(torch.stack(states)).log_softmax(-1)

    module, spectrum, text = DeepSpeech(), torch.randn(2, 1, 161, 48), torch.randint(1, 29, (2, 7))
    lengths = torch.tensor([24, 24]), torch.tensor([7, 5])
    return Network(module, lambda: nn.functional.ctc_loss(module(spectrum), text, *lengths))


def conv_tasnet() -> Network:
    """Return a network that separates speakers by dilated convolutions over time (Luo and Mesgarani 2019)."""

    class Block(nn.Module):
        def __init__(self, dilation: int) -> None:
            super().__init__()
            depthwise = nn.Conv1d(512, 512, 3, padding=dilation, dilation=dilation, groups=512)
            inner = (
                nn.Conv1d(128, 512, 1),
                nn.PReLU(),
                nn.GroupNorm(1, 512),
                depthwise,
                nn.PReLU(),
                nn.GroupNorm(1, 512),
            )
            self.layers = nn.Sequential(*inner, nn.Conv1d(512, 128, 1))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.layers(x)

    class Separator(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = (
                nn.Conv1d(1, 512, 16, 8, bias=False),
                nn.ConvTranspose1d(512, 1, 16, 8, bias=False),
            )
            blocks = (Block(1), Block(2), Block(4))
            self.masks = nn.Sequential(
                nn.GroupNorm(1, 512), nn.Conv1d(512, 128, 1), *blocks, nn.Conv1d(128, 1024, 1), nn.ReLU()
            )

        def forward(self, sound: Tensor) -> Tensor:
            x = self.encoder(sound).relu()
            masks = self.masks(x).unflatten(1, (2, 512))
            return self.decoder((masks * x.unsqueeze(1)).flatten(0, 1)).unflatten(0, (-1, 2))

    module, sound, speakers = Separator(), torch.randn(2, 1, 800), torch.randn(2, 2, 1, 800)
    return Network(module, lambda: (module(sound) - speakers).abs().mean(), "adam")


NETWORKS = {
    function.__name__: function for function in (audio_transformer, conv_tasnet, deep_speech, hubert, wav2vec2, whisper)
}
"""The functions that build the networks, by name."""
