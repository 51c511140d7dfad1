"""Compare training steps of small Llama-like models on the device, compiled and not, with steps on PyTorch's CPU.

    pip install '.[torch]' && python benchmarks/torch_compile.py [--layers 2 --width 64] [--batch 2 --length 32]

The models have RMS normalization, rotary embedding, attention, a gated inner layer and AdamW. All programs run in one
process, in turns, so that other processes affect them alike. The script prints, for each program, the median time of a
step, the ratio to PyTorch's eager mode on the CPU, the duration of the first step, and the loss after all steps.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

import diopi_torch  # noqa: F401 - the import registers the device

VOCABULARY, HEADS = 1000, 4


class Layer(nn.Module):
    """A layer of the model.

    Args:
        width: the number of features.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        inner = width * 11 // 4
        self.first_norm, self.second_norm = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        """Return the hidden states after the layer; `cosines` and `sines` are those of the rotary embedding."""
        normed = self.first_norm(x)
        query, key, value = (
            part(normed).unflatten(2, (HEADS, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        query, key = rotate(query, cosines, sines), rotate(key, cosines, sines)
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).flatten(2))
        normed = self.second_norm(x)
        result: Tensor = x + self.down(nn.functional.silu(self.gate(normed)) * self.up(normed))
        return result


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Return queries or keys after the rotary embedding, with the cosines and the sines of their angles."""
    first, second = x.chunk(2, -1)
    return x * cosines + torch.cat([-second, first], -1) * sines


class Model(nn.Module):
    """The layers between an embedding and a linear head, with the loss.

    Args:
        layers: the number of layers.
        width: the number of features.
        length: the number of tokens of a sequence.
    """

    cosines: Tensor
    sines: Tensor

    def __init__(self, layers: int, width: int, length: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, VOCABULARY, bias=False)
        size = width // HEADS
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, size, 2) / size)
        angles = torch.cat([angles, angles], -1)
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the loss of predicting each token from those before it."""
        x = self.embedding(tokens[:, :-1])
        for layer in self.layers:
            x = layer(x, self.cosines, self.sines)
        loss: Tensor = nn.functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), tokens[:, 1:].flatten())
        return loss


def make_step(options: argparse.Namespace, device: str, compiled: Sequence[str]) -> Callable[[], float]:
    """Return a function that trains a new model for one step and returns the loss.

    Args:
        options: the sizes of the model and the batch.
        device: the device.
        compiled: the parts to compile: "model" and "optimizer".
    """
    torch.manual_seed(0)
    model = Model(options.layers, options.width, options.length).to(device)
    tokens = torch.randint(VOCABULARY, (options.batch, options.length + 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    update = optimizer.step
    if "model" in compiled:
        model.compile(backend="diopi")
    if "optimizer" in compiled:
        update = torch.compile(update, backend="diopi")

    def step() -> float:
        loss = model(tokens)
        optimizer.zero_grad()
        loss.backward()
        update()
        return float(loss)

    return step


PROGRAMS: Mapping[str, tuple[str, Sequence[str]]] = {
    "PyTorch on the CPU": ("cpu", ()),
    "diopi, eager": ("diopi", ()),
    "diopi, compiled model": ("diopi", ("model",)),
    "diopi, compiled model and optimizer": ("diopi", ("model", "optimizer")),
}
"""The programs to compare: the device and the parts to compile."""


def main() -> None:
    """Measure and print a line per program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"layers": 2, "width": 64, "batch": 2, "length": 32, "steps": 30}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    steps: dict[str, Callable[[], float]] = {}
    first: dict[str, float] = {}
    losses: dict[str, float] = {}
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for name, (device, compiled) in PROGRAMS.items():
        steps[name] = make_step(options, device, compiled)
        began = time.perf_counter()
        steps[name]()
        first[name] = time.perf_counter() - began
        steps[name]()
    for _ in range(options.steps):
        for name, step in steps.items():
            began = time.perf_counter()
            losses[name] = step()
            times[name].append(time.perf_counter() - began)
    unit = statistics.median(times["PyTorch on the CPU"])
    for name in PROGRAMS:
        median = statistics.median(times[name])
        print(
            f"{name:36} {median * 1e3:8.1f} ms  {median / unit:5.2f} times the CPU  "
            f"first step {first[name]:5.1f} s  loss {losses[name]:.5f}"
        )


if __name__ == "__main__":
    main()
