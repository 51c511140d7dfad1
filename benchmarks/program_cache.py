"""Measure what the program cache of `jax_cpu` saves: the seconds of each training step of a small transformer.

pip install '.[torch]'
python benchmarks/program_cache.py                          # the default cache, which grows as needed
DIOPI_JAX_PROGRAMS=32 python benchmarks/program_cache.py    # a cache of at most 32 programs
"""

from __future__ import annotations

import time

import torch
from torch import nn

import diopi_torch

STEPS = 5
"""The number of training steps."""


def main() -> None:
    """Train the transformer and print the time and the loss of each step."""
    diopi_torch.use_vendor("jax_cpu")
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(50, 32), layer, nn.Flatten(), nn.Linear(32 * 16, 4)).to("diopi")
    tokens, classes = torch.randint(50, (8, 16)).to("diopi"), torch.randint(4, (8,)).to("diopi")
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    for step in range(STEPS):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens), classes)
        loss.backward()
        optimizer.step()
        value = loss.item()
        print(f"step {step + 1}: {time.perf_counter() - begin:8.3f} s, loss {value:.4f}", flush=True)


if __name__ == "__main__":
    main()
