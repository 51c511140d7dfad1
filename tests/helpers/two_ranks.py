"""One of two processes that use the device together: `python two_ranks.py RANK STORE`.

It prints the result of each trial as a line of JSON: the name, and the traceback or null.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import diopi_torch
import diopi_torch.backend as module
from diopi_impl.host_runtime import HostRuntime
from diopi_impl.torch_cpu import vendor as torch_cpu
from diopi_torch import collectives
from lib_rt import Device

TRIALS: dict[str, Callable[[int], None]] = {}
TIMEOUT = timedelta(seconds=20)
FACTOR = 8
"""The largest accepted error of the device as a multiple of the error of the CPU in float32, as in `test_training`."""


def trial(function: Callable[[int], None]) -> Callable[[int], None]:
    """Register a trial, which receives the rank of its process."""
    TRIALS[function.__name__] = function
    return function


def use_remote_memory() -> None:
    """Replace the device by one whose memory the host can't address."""
    vendor = copy.copy(torch_cpu)
    vendor.open_device = lambda: Device(HostRuntime().functions(), host_addressable=False)  # type: ignore[method-assign]  # of this copy alone
    module._backend = module.Backend(vendor)


def on_device(*values: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a tensor on the device."""
    return torch.tensor(values, dtype=dtype).to("diopi")


def expect(found: Any, *wanted: Any) -> None:
    """Assert that a tensor, or each of several tensors, has these numbers and is on the device."""
    found = found if isinstance(found, list) else [found]
    assert all(tensor.device.type == "diopi" for tensor in found), found
    assert [tensor.tolist() for tensor in found] == list(wanted), f"{found}, expected {wanted}"


@trial
def every_collective(rank: int) -> None:
    """Check each collective operation on lists of tensors."""
    r, new_parts = float(rank), lambda: [on_device(0.0), on_device(0.0)]
    x = on_device(r, 1.0)
    dist.all_reduce(x)
    expect(x, [1.0, 2.0])
    x = on_device(r + 1).requires_grad_()
    dist.broadcast(x, 1)
    expect(x, [2.0])
    x = x.detach()
    dist.reduce(x, 0)
    expect([x][rank:], *[[4.0]][rank:])
    parts = new_parts()
    dist.all_gather(parts, on_device(r))
    expect(parts, [0.0], [1.0])
    dist.gather(on_device(r + 5), parts if rank == 0 else None)
    expect(parts, *([5.0], [6.0]) if rank == 0 else ([0.0], [1.0]))
    x = on_device(9.0)
    dist.scatter(x, [on_device(3.0), on_device(4.0)] if rank == 0 else None)
    expect(x, [3.0 + rank])
    dist.reduce_scatter(x, [on_device(r), on_device(r + 10)])
    expect(x, [1.0 + 20 * rank])
    dist.all_to_all(parts, [on_device(r), on_device(r + 10)])
    expect(parts, [10.0 * rank], [10.0 * rank + 1])


@trial
def collectives_into_one_tensor(rank: int) -> None:
    """Check the collective operations whose result is a single tensor."""
    r = float(rank)
    whole, part = on_device(0.0, 0.0), on_device(0.0)
    dist.all_gather_into_tensor(whole, on_device(r))
    expect(whole, [0.0, 1.0])
    dist.reduce_scatter_tensor(part, on_device(r, r + 3), op=dist.ReduceOp.AVG)
    expect(part, [0.5 + 3 * rank])
    dist.all_to_all_single(whole, on_device(r, r + 10))
    expect(whole, [10.0 * rank, 10.0 * rank + 1])
    grid = torch.zeros(2, 3, device="diopi")
    dist.all_reduce(grid.T.fill_(r + 1))
    expect(grid, [[3.0] * 3] * 2)


@trial
def coalesced_collectives(rank: int) -> None:
    """Check collective operations that are submitted together."""
    wholes, parts = [on_device(0.0, 0.0), on_device(0.0, 0.0)], [on_device(float(rank)), on_device(1.0)]
    with dist._coalescing_manager() as manager:
        for part in parts:
            dist.all_reduce(part)
    manager.wait()
    expect(parts, [1.0], [2.0])
    with dist._coalescing_manager():
        for whole, part in zip(wholes, parts, strict=True):
            dist.all_gather_into_tensor(whole, part + rank)
    expect(wholes, [1.0, 2.0], [2.0, 3.0])
    with dist._coalescing_manager():
        for whole, part in zip(wholes, parts, strict=True):
            dist.reduce_scatter_tensor(part, whole)
    expect(parts, [2.0 + 2 * rank], [4.0 + 2 * rank])


@trial
def from_one_to_another(rank: int) -> None:
    """Check sending and receiving between the two ranks."""
    received, sent = on_device(0.0), on_device(float(rank))
    calls = [dist.P2POp(dist.irecv, received, 1 - rank), dist.P2POp(dist.isend, sent, 1 - rank)]
    for work in dist.batch_isend_irecv(calls):
        work.wait()
    expect(received, [1.0 - rank])


@trial
def from_any(rank: int) -> None:
    """Check receiving from any rank."""
    received = on_device(0.0)
    if rank == 0:
        dist.send(on_device(7.0), 1)
    else:
        assert dist.recv(received) == 0
        expect(received, [7.0])


@trial
def without_waiting(rank: int) -> None:
    """Check asynchronous operations whose results are read later."""
    tensors = [torch.full((1000,), float(rank + k), device="diopi") for k in range(5)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for k, work in enumerate(works):
        (result,) = work.get_future().wait()
        expect([result, tensors[k]], *[[1.0 + 2 * k] * 1000] * 2)
        work.wait()
        assert work.is_completed()
    sums = [functional.all_reduce(on_device(float(rank)), "sum", dist.group.WORLD) for _ in range(3)]
    gc.collect()
    assert [float(total + 1) for total in sums] == [2.0] * 3
    assert not collectives._pending_works


@trial
def element_types(rank: int) -> None:
    """Check which element types the operations accept and reject."""
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool):
        x = on_device(rank, 1, dtype=dtype)
        dist.all_reduce(x, op=dist.ReduceOp.MAX)
        assert x.dtype is dtype
        expect(x, [1, 1])
    refused("dicl: gloo has no allreduce of torch.int16", lambda: dist.all_reduce(on_device(1, dtype=torch.int16)))
    parts = [on_device(1j, dtype=torch.complex64)] * 2
    refused("dicl: gloo has no gather of torch.complex64", lambda: dist.gather(parts[0], None if rank else parts))


def refused(reason: str, call: Callable[[], Any]) -> None:
    """Assert that a call raises a RuntimeError with this message."""
    try:
        call()
    except RuntimeError as error:
        assert reason in str(error), error
    else:
        raise AssertionError(f"nothing was refused, expected: {reason}")


@trial
def objects_groups_and_the_cpu(rank: int) -> None:
    """Check Python objects, groups of ranks and tensors of the CPU."""
    group = dist.new_group([0, 1])
    found: list[Any] = [None, None]
    dist.all_gather_object(found, {"rank": rank}, group=group)
    assert found == [{"rank": 0}, {"rank": 1}]
    x = torch.tensor([rank + 1.0])
    dist.all_reduce(x, group=group)
    assert x.tolist() == [3.0]
    assert dist.get_backend() == "dicl"
    dist.barrier(group)


def network() -> nn.Module:
    """Return a small transformer with fixed weights."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Embedding(10, 8), layer, nn.Flatten(), nn.Linear(40, 4))


def batch(rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tokens and classes of a rank."""
    numbers = torch.Generator().manual_seed(rank)
    return torch.randint(10, (6, 5), generator=numbers), torch.randint(4, (6,), generator=numbers)


def trained(model: nn.Module, *batches: tuple[torch.Tensor, torch.Tensor]) -> list[torch.Tensor]:
    """Make two training steps, and return for each step the mean loss over these batches."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), 0.01, eps=1e-3), []
    for _ in range(2):
        optimizer.zero_grad()
        batch_losses = [nn.functional.cross_entropy(model(x), y) for x, y in batches]
        loss = torch.stack(batch_losses).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def agrees(losses: list[torch.Tensor], parameters: dict[str, torch.Tensor]) -> None:
    """Assert that the mean losses of both processes and the parameters are about as accurate as those of the CPU."""
    exact, cpu = network().double(), network()
    wanted = [*trained(exact, batch(0), batch(1)), *exact.state_dict().values()]
    cpu_values = [*trained(cpu, batch(0), batch(1)), *cpu.state_dict().values()]
    for loss in losses:
        dist.all_reduce(loss, op=dist.ReduceOp.AVG)
    for true, near, found in zip(wanted, cpu_values, [*losses, *parameters.values()], strict=True):
        ulp = torch.finfo(torch.float32).eps * true.abs().max()
        error = (found.cpu().double() - true).abs().max()
        assert error <= FACTOR * max((near - true).abs().max(), ulp), (error, true.shape)
    assert diopi_torch.fallbacks() == {}, diopi_torch.fallbacks()


@trial
def data_in_parallel(rank: int) -> None:
    """Check that data-parallel training agrees with training on one rank."""
    own_batch = tuple(tensor.to("diopi") for tensor in batch(rank))
    for view in (False, True):
        model = network().to("diopi")
        parallel = DistributedDataParallel(model, gradient_as_bucket_view=view, bucket_cap_mb=0.001)
        agrees(trained(parallel, own_batch), model.state_dict())


@trial
def parameters_in_shards(rank: int) -> None:
    """Check that training with sharded parameters agrees with training on one rank."""
    own_batch = tuple(tensor.to("diopi") for tensor in batch(rank))
    model, mesh = network().to("diopi"), init_device_mesh("diopi", (2,))
    for layer in (model[0], model[1], model[3], model):
        fully_shard(layer, mesh=mesh)
    losses = trained(model, own_batch)
    agrees(losses, {name: shard.full_tensor() for name, shard in model.state_dict().items()})


@trial
def a_rank_that_dies(rank: int) -> None:
    """Check that the other rank reports an error if a rank dies."""
    if rank == 1:
        os._exit(3)
    work = dist.all_reduce(on_device(1.0), async_op=True)
    refused("a remote worker", work.wait)


ON_MEMORY_APART = (
    *("every_collective", "collectives_into_one_tensor", "coalesced_collectives", "from_one_to_another", "from_any"),
    *("without_waiting", "data_in_parallel", "parameters_in_shards"),
)


def main(rank: int, store: str) -> None:
    """Run all checks of this rank and print their results."""
    diopi_torch.use_vendor("torch_cpu")
    dist.init_process_group("dicl", init_method=f"file://{store}", rank=rank, world_size=2, timeout=TIMEOUT)
    last = "a_rank_that_dies"
    for name in [name for name in TRIALS if name != last]:
        report(name, rank)
    use_remote_memory()
    for name in ON_MEMORY_APART:
        report(name, rank, " apart")
    report(last, rank)
    os._exit(0)  # the group can't be ended, as the other process is gone


def report(name: str, rank: int, suffix: str = "") -> None:
    """Run a trial and print its result."""
    failure = None
    try:
        TRIALS[name](rank)
    except Exception:
        failure = traceback.format_exc()
    print(json.dumps({"trial": name + suffix, "wrong": failure}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
