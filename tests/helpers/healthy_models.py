"""Five small models without faults, each of which trains for a step on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn


def _train(model: nn.Module, optimizer: torch.optim.Optimizer, compute_loss: Callable[[], Tensor]) -> None:
    """Train a model for a step, and run it once in evaluation mode."""
    optimizer.zero_grad()
    compute_loss().backward()  # type: ignore[no-untyped-call]  # PyTorch does not annotate it
    optimizer.step()
    model.eval()
    with torch.no_grad():
        compute_loss()


def train_convolutional_network() -> None:
    """Train a network with convolutions, batch normalization and pooling, by SGD with momentum."""
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3, stride=2),
        nn.GroupNorm(2, 8),
        nn.Hardswish(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )
    x, target = torch.randn(4, 3, 12, 12), torch.tensor([0, 1, 2, 3])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    _train(model, optimizer, lambda: nn.functional.cross_entropy(model(x), target, label_smoothing=0.1))


def train_transformer_encoder() -> None:
    """Train a network with fused attention and dropout in bfloat16, by Adam."""
    model = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, activation="gelu", batch_first=True, norm_first=True),
        2,
        enable_nested_tensor=False,
    )
    x = torch.randn(3, 7, 16)

    def compute_loss() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            encoded: Tensor = model(x)
        return nn.functional.mse_loss(encoded.float(), x)

    _train(model, torch.optim.Adam(model.parameters(), lr=1e-2, amsgrad=True), compute_loss)


def train_recurrent_network() -> None:
    """Train a network with an embedding, an LSTM and a GRU, by RMSprop."""
    embedding, first, second, head = nn.Embedding(11, 8), nn.LSTM(8, 8, 2), nn.GRU(8, 6), nn.Linear(6, 11)
    tokens = torch.arange(24).view(8, 3) % 11

    def compute_loss() -> Tensor:
        hidden = second(first(embedding(tokens))[0])[0]
        return nn.functional.cross_entropy(head(hidden)[:-1].flatten(0, 1), tokens[1:].flatten())

    model = nn.ModuleList([embedding, first, second, head])
    _train(model, torch.optim.RMSprop(model.parameters(), lr=1e-2), compute_loss)


def train_spectral_network() -> None:
    """Train a network with Fourier transforms, complex products and an elementwise loss, by Adagrad."""
    weight, bias = nn.Parameter(torch.randn(9, dtype=torch.complex64)), nn.Parameter(torch.zeros(16))
    x = torch.randn(5, 16)

    def compute_loss() -> Tensor:
        spectrum = torch.fft.rfft(x) * weight.conj()
        return nn.functional.smooth_l1_loss(torch.fft.irfft(spectrum, 16) + bias, x.sin())

    _train(nn.ParameterList([weight, bias]), torch.optim.Adagrad([bias], lr=1e-2), compute_loss)


def train_upsampling_network() -> None:
    """Train a network with transposed convolution, interpolation and instance normalization in float64, by AdamW.

    The optimizer uses operators on lists of tensors.
    """
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.InstanceNorm2d(4, affine=True),
        nn.SiLU(),
        nn.ConvTranspose2d(4, 4, 2, stride=2),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.Conv2d(4, 1, 1),
        nn.Sigmoid(),
    ).double()
    x, target = torch.randn(2, 2, 5, 5, dtype=torch.float64), torch.rand(2, 1, 20, 20, dtype=torch.float64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=True)
    _train(model, optimizer, lambda: nn.functional.binary_cross_entropy(model(x), target))


MODELS: Mapping[str, Callable[[], Any]] = {
    "convolutional network": train_convolutional_network,
    "transformer encoder": train_transformer_encoder,
    "recurrent network": train_recurrent_network,
    "spectral network": train_spectral_network,
    "upsampling network": train_upsampling_network,
}
"""The functions that train the models, by name."""
