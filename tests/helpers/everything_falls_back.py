"""A program that computes on the device while the environment forces all operators to the CPU.

The program prints the functions of the vendor that were called, and fails if a result differs from the CPU's.
"""

from __future__ import annotations

import copy
import warnings

import torch
from torch import nn
from torch_devices import AlteredVendor

import diopi_torch
from diopi_torch import backend


def train(device: str) -> list[torch.Tensor]:
    """Train a small network for three steps on a device; return the loss of each step and the final parameters."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 2))
    inputs, targets = torch.randn(16, 4).to(device), torch.randint(0, 2, (16,)).to(device)
    network = copy.deepcopy(network).to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    network.load_state_dict(copy.deepcopy(network.state_dict()))
    return [tensor.cpu() for tensor in [*losses, *network.state_dict().values()]]


def write_through_views(device: str) -> list[torch.Tensor]:
    """Write elements of tensors through views on a device; return the tensors."""
    matrix = torch.arange(12.0).to(device).reshape(3, 4)
    matrix[1, ::2] = 7
    matrix.T.select(0, 3).mul_(2)
    matrix.detach()[0].add_(torch.ones(4).to(device))
    indices, numbers = torch.tensor([0, 2]).to(device), torch.tensor([5.0]).to(device)
    vector = torch.zeros(3).to(device).index_put_((indices,), numbers)
    largest = torch.max(matrix, 1, out=(torch.empty(3).to(device), torch.empty(3, dtype=torch.int64).to(device)))
    conjugated = torch.complex(matrix, matrix)[:, :3] @ torch.ones(3, 2, dtype=torch.complex64).to(device).conj()
    values, inverse = torch.unique(matrix, return_inverse=True)
    return [tensor.cpu() for tensor in (matrix, vector, *largest, conjugated, values, inverse, matrix[:, 1:3].half())]


def main() -> None:
    """Compare both kinds of memory, which the host can address or not, with the CPU."""
    warnings.filterwarnings("ignore")
    expected = [*train("cpu"), *write_through_views("cpu")]
    called: set[str] = set()
    for host_addressable in (True, False):
        vendor = AlteredVendor(host_addressable=host_addressable)
        active = backend._backend = backend.Backend(vendor)
        for actual, expected_tensor in zip([*train("diopi"), *write_through_views("diopi")], expected, strict=True):
            torch.testing.assert_close(actual, expected_tensor, rtol=0, atol=0)
        called |= set(vendor.called)
        active.close()
    print(*sorted(called), len(diopi_torch.fallbacks()) > 20)


if __name__ == "__main__":
    main()
