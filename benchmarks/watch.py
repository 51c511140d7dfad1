"""Measure how much longer a training step takes while a watch judges its calls.

    pip install '.[torch]' && OMP_NUM_THREADS=1 python benchmarks/watch.py

The model resembles Llama: four layers of width 256 with RMS normalization, rotary embedding, attention, a gated inner
layer, and AdamW, on the CPU in float32, with batches of 8 times 256 tokens. The script prints the time of a step
relative to the same step without a watch:

- while the watch judges forms of calls for the first time, with the default share of time (`--overhead 100%`);
- afterwards, when all forms have been judged.

All times are processor times, which other processes affect less. Steps without a watch are measured before and
afterwards.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

import diopi_torch
from diopi_torch.compare.watch.session import NO_TIME

VOCABULARY, WIDTH, INNER, HEADS, LAYERS = 1000, 256, 704, 8, 4


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Return queries or keys after the rotary embedding, with the cosines and the sines of their angles."""
    first, second = x.chunk(2, -1)
    return x * cosines + torch.cat([-second, first], -1) * sines


class Layer(nn.Module):
    """A layer of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.first_norm, self.second_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(WIDTH, INNER, bias=False), nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        """Return the hidden states after the layer; `cosines` and `sines` are those of the rotary embedding."""
        batch, length, _ = x.shape
        normed = self.first_norm(x)
        query, key, value = (
            part(normed).view(batch, length, HEADS, -1).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        query, key = rotate(query, cosines, sines), rotate(key, cosines, sines)
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        normed = self.second_norm(x)
        result: Tensor = x + self.down(nn.functional.silu(self.gate(normed)) * self.up(normed))
        return result


class Model(nn.Module):
    """The layers between an embedding and a linear head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the next token at each position."""
        size = WIDTH // HEADS
        angles = torch.arange(tokens.shape[1])[:, None] * 10000.0 ** (-torch.arange(0, size, 2) / size)
        angles = torch.cat([angles, angles], -1)
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin())
        logits: Tensor = self.head(self.norm(x))
        return logits


def make_step(batch: int, length: int) -> Callable[[], None]:
    """Return a function that trains a new model for one step on `batch` sequences of `length` tokens."""
    torch.manual_seed(0)
    model, tokens = Model(), torch.randint(VOCABULARY, (batch, length + 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # PyTorch does not annotate it
        optimizer.step()

    return step


def measure(step: Callable[[], None]) -> float:
    """Return the processor time of a step in seconds."""
    began = time.process_time()
    step()
    return time.process_time() - began


def main() -> None:
    """Measure and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()
    step = make_step(options.batch, options.length)
    step()
    plain = [measure(step) for _ in range(options.steps)]
    first: list[float] = []
    with diopi_torch.watch(quiet=True) as watch:
        pending = -1
        while pending:
            not_judged_before = watch.counts.not_judged[NO_TIME]
            first.append(measure(step))
            pending = watch.counts.not_judged[NO_TIME] - not_judged_before
        later = [measure(step) for _ in range(options.steps)]
    plain_again = [measure(step) for _ in range(options.steps)]
    unit = statistics.median(plain + plain_again)
    print(
        f"a step without a watch: {unit * 1e3:.0f} ms (before {statistics.median(plain) * 1e3:.0f} ms, after "
        f"{statistics.median(plain_again) * 1e3:.0f} ms)"
    )
    print(f"while forms are judged for the first time: {statistics.mean(first) / unit:.2f} ({len(first)} steps)")
    print(f"afterwards: {statistics.mean(later) / unit:.2f}")
    print(
        f"judged {watch.counts.judged.total()} calls, {watch.counts.sampled} on a sample; wrong: "
        f"{[entry.operator for entry in watch.wrong_operators]}"
    )


if __name__ == "__main__":
    main()
