"""A program that checks the collective operations of the PyTorch device; it runs in two processes at once.

    python two_ranks.py RANK STORE

`tests/diopi_torch/test_collectives.py` starts one process as rank 0 and one as rank 1. STORE is a file through which
they find each other. Both processes run the same *trials*, which are functions that check one kind of operation. For
each trial, a process prints a line of JSON: the name of the trial, and the traceback of its failure or null.
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
"""The trials by name, in the order in which they run. A trial receives the rank of its process."""

TIMEOUT = timedelta(seconds=20)
"""How long an operation waits for the other rank."""

MAX_ERROR_FACTOR = 8
"""The largest accepted error of the device as a multiple of the error of the CPU in float32, as in `test_training`."""


def trial(function: Callable[[int], None]) -> Callable[[int], None]:
    """Return a function unchanged, after registering it as a trial; use as a decorator."""
    TRIALS[function.__name__] = function
    return function


def use_remote_memory() -> None:
    """Replace the device by a device whose memory the host can't address, as on an accelerator."""
    vendor = copy.copy(torch_cpu)
    vendor.open_device = lambda: Device(HostRuntime().functions(), host_addressable=False)  # type: ignore[method-assign]  # of this copy alone
    module._backend = module.Backend(vendor)


def on_device(*values: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a tensor on the device with these values along its first axis."""
    return torch.tensor(values, dtype=dtype).to("diopi")


def assert_equal(actual: Any, *expected: Any) -> None:
    """Assert that tensors are on the device and have the expected values.

    Args:
        actual: a tensor or a list of tensors.
        expected: the values of each tensor as nested lists.
    """
    actual = actual if isinstance(actual, list) else [actual]
    assert all(tensor.device.type == "diopi" for tensor in actual), actual
    assert [tensor.tolist() for tensor in actual] == list(expected), f"{actual}, expected {expected}"


@trial
def every_collective(rank: int) -> None:
    """Check each collective operation on lists of tensors."""
    r, new_parts = float(rank), lambda: [on_device(0.0), on_device(0.0)]
    x = on_device(r, 1.0)
    dist.all_reduce(x)
    assert_equal(x, [1.0, 2.0])
    x = on_device(r + 1).requires_grad_()
    dist.broadcast(x, 1)
    assert_equal(x, [2.0])
    x = x.detach()
    dist.reduce(x, 0)
    assert_equal([x][rank:], *[[4.0]][rank:])
    parts = new_parts()
    dist.all_gather(parts, on_device(r))
    assert_equal(parts, [0.0], [1.0])
    dist.gather(on_device(r + 5), parts if rank == 0 else None)
    assert_equal(parts, *([5.0], [6.0]) if rank == 0 else ([0.0], [1.0]))
    x = on_device(9.0)
    dist.scatter(x, [on_device(3.0), on_device(4.0)] if rank == 0 else None)
    assert_equal(x, [3.0 + rank])
    dist.reduce_scatter(x, [on_device(r), on_device(r + 10)])
    assert_equal(x, [1.0 + 20 * rank])
    dist.all_to_all(parts, [on_device(r), on_device(r + 10)])
    assert_equal(parts, [10.0 * rank], [10.0 * rank + 1])


@trial
def collectives_into_one_tensor(rank: int) -> None:
    """Check the collective operations whose result is a single tensor."""
    r = float(rank)
    whole, part = on_device(0.0, 0.0), on_device(0.0)
    dist.all_gather_into_tensor(whole, on_device(r))
    assert_equal(whole, [0.0, 1.0])
    dist.reduce_scatter_tensor(part, on_device(r, r + 3), op=dist.ReduceOp.AVG)
    assert_equal(part, [0.5 + 3 * rank])
    dist.all_to_all_single(whole, on_device(r, r + 10))
    assert_equal(whole, [10.0 * rank, 10.0 * rank + 1])
    grid = torch.zeros(2, 3, device="diopi")
    dist.all_reduce(grid.T.fill_(r + 1))
    assert_equal(grid, [[3.0] * 3] * 2)


@trial
def coalesced_collectives(rank: int) -> None:
    """Check collective operations that are submitted together."""
    gathered, parts = [on_device(0.0, 0.0), on_device(0.0, 0.0)], [on_device(float(rank)), on_device(1.0)]
    with dist._coalescing_manager() as manager:
        for part in parts:
            dist.all_reduce(part)
    manager.wait()
    assert_equal(parts, [1.0], [2.0])
    with dist._coalescing_manager():
        for whole, part in zip(gathered, parts, strict=True):
            dist.all_gather_into_tensor(whole, part + rank)
    assert_equal(gathered, [1.0, 2.0], [2.0, 3.0])
    with dist._coalescing_manager():
        for whole, part in zip(gathered, parts, strict=True):
            dist.reduce_scatter_tensor(part, whole)
    assert_equal(parts, [2.0 + 2 * rank], [4.0 + 2 * rank])


@trial
def send_and_receive(rank: int) -> None:
    """Check sending and receiving between the two ranks."""
    received, sent = on_device(0.0), on_device(float(rank))
    calls = [dist.P2POp(dist.irecv, received, 1 - rank), dist.P2POp(dist.isend, sent, 1 - rank)]
    for work in dist.batch_isend_irecv(calls):
        work.wait()
    assert_equal(received, [1.0 - rank])


@trial
def receive_from_any_rank(rank: int) -> None:
    """Check receiving from any rank."""
    received = on_device(0.0)
    if rank == 0:
        dist.send(on_device(7.0), 1)
    else:
        assert dist.recv(received) == 0
        assert_equal(received, [7.0])


@trial
def asynchronous_collectives(rank: int) -> None:
    """Check asynchronous operations whose results are read later."""
    tensors = [torch.full((1000,), float(rank + k), device="diopi") for k in range(5)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for k, work in enumerate(works):
        (result,) = work.get_future().wait()
        assert_equal([result, tensors[k]], *[[1.0 + 2 * k] * 1000] * 2)
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
        assert_equal(x, [1, 1])
    assert_rejected(
        "dicl: gloo has no allreduce of torch.int16", lambda: dist.all_reduce(on_device(1, dtype=torch.int16))
    )
    parts = [on_device(1j, dtype=torch.complex64)] * 2
    assert_rejected(
        "dicl: gloo has no gather of torch.complex64", lambda: dist.gather(parts[0], None if rank else parts)
    )


def assert_rejected(reason: str, call: Callable[[], Any]) -> None:
    """Assert that a call raises a RuntimeError whose message contains `reason`."""
    try:
        call()
    except RuntimeError as error:
        assert reason in str(error), error
    else:
        raise AssertionError(f"the call was accepted, expected: {reason}")


@trial
def objects_groups_and_the_cpu(rank: int) -> None:
    """Check that the backend also gathers Python objects, serves groups of ranks, and reduces tensors of the CPU."""
    group = dist.new_group([0, 1])
    received: list[Any] = [None, None]
    dist.all_gather_object(received, {"rank": rank}, group=group)
    assert received == [{"rank": 0}, {"rank": 1}]
    x = torch.tensor([rank + 1.0])
    dist.all_reduce(x, group=group)
    assert x.tolist() == [3.0]
    assert dist.get_backend() == "dicl"
    dist.barrier(group)


def make_network() -> nn.Module:
    """Return a small transformer with fixed weights."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Embedding(10, 8), layer, nn.Flatten(), nn.Linear(40, 4))


def make_batch(rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the training batch of a rank: 6 rows of 5 tokens, and the class of each row."""
    generator = torch.Generator().manual_seed(rank)
    return torch.randint(10, (6, 5), generator=generator), torch.randint(4, (6,), generator=generator)


def train(model: nn.Module, *batches: tuple[torch.Tensor, torch.Tensor]) -> list[torch.Tensor]:
    """Train a model for two steps on these batches, and return the mean loss over the batches before each step."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), 0.01, eps=1e-3), []
    for _ in range(2):
        optimizer.zero_grad()
        batch_losses = [nn.functional.cross_entropy(model(x), y) for x, y in batches]
        loss = torch.stack(batch_losses).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def assert_training_agrees(losses: list[torch.Tensor], parameters: dict[str, torch.Tensor]) -> None:
    """Assert that distributed training is about as accurate as training on the CPU, and ran without CPU fallbacks.

    Args:
        losses: the loss of each step on this rank; their means over both ranks are compared.
        parameters: the parameters after training.
    """
    exact, cpu = make_network().double(), make_network()
    expected = [*train(exact, make_batch(0), make_batch(1)), *exact.state_dict().values()]
    cpu_values = [*train(cpu, make_batch(0), make_batch(1)), *cpu.state_dict().values()]
    for loss in losses:
        dist.all_reduce(loss, op=dist.ReduceOp.AVG)
    for true, cpu_value, actual in zip(expected, cpu_values, [*losses, *parameters.values()], strict=True):
        ulp = torch.finfo(torch.float32).eps * true.abs().max()
        error = (actual.cpu().double() - true).abs().max()
        assert error <= MAX_ERROR_FACTOR * max((cpu_value - true).abs().max(), ulp), (error, true.shape)
    assert diopi_torch.fallbacks() == {}, diopi_torch.fallbacks()


@trial
def data_parallel_training(rank: int) -> None:
    """Check that data-parallel training agrees with training on one rank."""
    own_batch = tuple(tensor.to("diopi") for tensor in make_batch(rank))
    for view in (False, True):
        model = make_network().to("diopi")
        parallel = DistributedDataParallel(model, gradient_as_bucket_view=view, bucket_cap_mb=0.001)
        assert_training_agrees(train(parallel, own_batch), model.state_dict())


@trial
def synchronized_batch_normalization(rank: int) -> None:
    """Check that batches of different sizes on two ranks are normalized like one batch on the CPU."""
    torch.manual_seed(1)
    whole, gradient, rows = torch.randn(6, 3, 4, 5), torch.randn(6, 3, 4, 5), slice(2) if rank == 0 else slice(2, 6)
    layer = nn.BatchNorm2d(3)
    nn.init.normal_(layer.weight)
    synchronized = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(layer)).to("diopi")
    batch, part = whole.clone().requires_grad_(), whole[rows].to("diopi").requires_grad_()
    layer(batch).backward(gradient)
    synchronized(part).backward(gradient[rows].to("diopi"))
    weight_gradient = synchronized.weight.grad.clone()
    dist.all_reduce(weight_gradient)
    for actual, expected in (
        (part.grad, batch.grad[rows]),
        (weight_gradient, layer.weight.grad),
        (synchronized.running_mean, layer.running_mean),
        (synchronized.running_var, layer.running_var),
    ):
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-5, atol=1e-5)
    assert diopi_torch.fallbacks() == {}


@trial
def sharded_training(rank: int) -> None:
    """Check that training with sharded parameters agrees with training on one rank."""
    own_batch = tuple(tensor.to("diopi") for tensor in make_batch(rank))
    model, mesh = make_network().to("diopi"), init_device_mesh("diopi", (2,))
    for layer in (model[0], model[1], model[3], model):
        fully_shard(layer, mesh=mesh)
    losses = train(model, own_batch)
    assert_training_agrees(losses, {name: shard.full_tensor() for name, shard in model.state_dict().items()})


@trial
def a_rank_that_dies(rank: int) -> None:
    """End rank 1 and check that rank 0 reports an error instead of waiting."""
    if rank == 1:
        os._exit(3)
    work = dist.all_reduce(on_device(1.0), async_op=True)
    assert_rejected("a remote worker", work.wait)


# Trials that run again on a device whose memory the host can't address
TRIALS_WITH_REMOTE_MEMORY = (
    *(
        "every_collective",
        "collectives_into_one_tensor",
        "coalesced_collectives",
        "send_and_receive",
        "receive_from_any_rank",
    ),
    *("asynchronous_collectives", "data_parallel_training", "sharded_training"),
)


def main(rank: int, store: str) -> None:
    """Run all trials as this rank and print their results."""
    diopi_torch.use_vendor("torch_cpu")
    dist.init_process_group("dicl", init_method=f"file://{store}", rank=rank, world_size=2, timeout=TIMEOUT)
    last = "a_rank_that_dies"
    for name in [name for name in TRIALS if name != last]:
        report(name, rank)
    use_remote_memory()
    for name in TRIALS_WITH_REMOTE_MEMORY:
        report(name, rank, " with remote memory")
    report(last, rank)
    os._exit(0)  # the group can't be ended, as the other process is gone


def report(name: str, rank: int, suffix: str = "") -> None:
    """Run a trial and print its result as a line of JSON, under its name with the suffix."""
    failure = None
    try:
        TRIALS[name](rank)
    except Exception:
        failure = traceback.format_exc()
    print(json.dumps({"trial": name + suffix, "wrong": failure}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
