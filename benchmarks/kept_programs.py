"""What the programs that `jax_cpu` keeps are worth to a training step: seconds of each step of a small transformer.

pip install '.[torch]'
python benchmarks/kept_programs.py                          # room for what is asked for again
DIOPI_JAX_PROGRAMS=32 python benchmarks/kept_programs.py    # for 32 programs, whatever is asked for
"""

from __future__ import annotations

import time

import torch
from torch import nn

import diopi_torch

STEPS = 5


def main() -> None:
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
