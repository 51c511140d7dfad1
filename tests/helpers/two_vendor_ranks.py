"""A program that checks the collectives of the PyTorch device over a vendor's library; two processes run it at once.

    DIOPI_TORCH_RUNTIME=reference python two_vendor_ranks.py RANK STORE

`tests/diopi_torch/test_vendor_collectives.py` starts it as rank 0 and as rank 1. Each process uses its own device of
the reference runtime. The trials are those of `two_ranks`, except `GLOO_TRIALS`, and those below.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
import torch.distributed as dist
import two_ranks
from torch import nn
from torch._C._distributed_c10d import _make_nccl_premul_sum
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import diopi_torch
from diopi_torch import device as devices
from diopi_torch import vendor_collectives
from diopi_torch.settings import BLOCKING_WAIT

GLOO_TRIALS = ("element_types", "receive_from_any_rank", "a_rank_that_dies")
"""The trials of `two_ranks` that check limits of gloo."""

FATAL_TRIAL = "the_end_of_a_rank"
"""The last trial, in which the second process ends itself."""


def the_vendor_is_used(rank: int) -> None:
    """Check that the tensors are on the device of the rank, and that the vendor has done the trials so far."""
    assert two_ranks.on_device(1.0).device.index == rank
    assert {owner.index for _, owner in vendor_collectives._groups} == {rank}
    assert not vendor_collectives.pending_vendor_works


def more_element_types(rank: int) -> None:
    """Check element types that gloo lacks, and what the vendor's collectives reject."""
    for dtype in (torch.int16, torch.bfloat16, torch.bool):
        x = two_ranks.on_device(rank, 1, dtype=dtype)
        dist.all_reduce(x, op=dist.ReduceOp.MAX)
        two_ranks.assert_equal(x, [1, 1])
    parts = [two_ranks.on_device(0j, dtype=torch.complex64) for _ in range(2)]
    dist.all_gather(parts, two_ranks.on_device(rank * 1j, dtype=torch.complex64))
    two_ranks.assert_equal(parts, [0j], [1j])
    x = two_ranks.on_device(1.0)
    two_ranks.assert_rejected("PREMUL_SUM", lambda: dist.all_reduce(x, op=_make_nccl_premul_sum(2.0)))
    two_ranks.assert_rejected("no recv_any_source", lambda: dist.recv(x))


def unequal_parts(rank: int) -> None:
    """Check an exchange of parts that differ in size."""
    received = torch.zeros(3, 2, device="diopi")
    sizes = [1, 2] if rank == 0 else [2, 1]
    sent = torch.arange(6.0).reshape(3, 2).to("diopi") + 10 * rank
    dist.all_to_all_single(received, sent, [1, 2] if rank == 0 else [2, 1], sizes)
    rows = [[0.0, 1.0], [10.0, 11.0], [12.0, 13.0]] if rank == 0 else [[2.0, 3.0], [4.0, 5.0], [14.0, 15.0]]
    two_ranks.assert_equal(received, rows)


def waits_on_the_host(rank: int) -> None:
    """Check that a work is complete after `wait` if the switch for blocking waits is on."""
    os.environ[BLOCKING_WAIT] = "1"
    x = torch.full((1000,), float(rank), device="diopi")
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    assert work.is_completed()
    del os.environ[BLOCKING_WAIT]
    assert x.sum().item() == 1000


def tensor_parallel_training(rank: int) -> None:
    """Check that a network whose layers are divided among the ranks has the results and gradients of the CPU."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))
    batch = torch.randn(3, 4)
    mesh = init_device_mesh("diopi", (2,))
    divided = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4)).to("diopi")
    divided.load_state_dict(network.state_dict())
    parallelize_module(divided, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    for model, inputs in ((network, batch), (divided, batch.to("diopi"))):
        model(inputs).square().mean().backward()
    torch.testing.assert_close(divided(batch.to("diopi")).cpu(), network(batch))
    for part, whole in zip(divided.parameters(), network.parameters(), strict=True):
        gradient: Any = part.grad
        torch.testing.assert_close(gradient.full_tensor().cpu(), whole.grad)


def the_end_of_a_rank(rank: int) -> None:
    """Check that the remaining rank receives an error after the second process has ended."""
    if rank == 1:
        os._exit(3)
    x = two_ranks.on_device(1.0)

    def reduce_until_the_end_is_known() -> None:
        """Start a collective that can't be completed, wait for its failure, and start another one."""
        for _ in range(2):
            dist.all_reduce(x)
            devices.synchronize()

    two_ranks.assert_rejected("dicl: ", reduce_until_the_end_is_known)


VENDOR_TRIALS = (
    the_vendor_is_used,
    more_element_types,
    unequal_parts,
    waits_on_the_host,
    tensor_parallel_training,
    the_end_of_a_rank,
)
"""The trials of this program, in the order in which they run."""


def main(rank: int, store: str) -> None:
    """Run all trials as this rank and print their results."""
    diopi_torch.use_vendor("torch_cpu")
    devices.set_device(rank)
    dist.init_process_group("dicl", init_method=f"file://{store}", rank=rank, world_size=2, timeout=two_ranks.TIMEOUT)
    for name in GLOO_TRIALS:
        del two_ranks.TRIALS[name]
    for trial in VENDOR_TRIALS:
        two_ranks.trial(trial)
    for name in two_ranks.TRIALS:
        two_ranks.report(name, rank)
    os._exit(0)  # the group can't be ended, as the second process has ended


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
