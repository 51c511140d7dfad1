"""Which kernels the device registers, and how switches change them."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_torch import registration  # noqa: E402  # behind the check for PyTorch
from diopi_torch.backend import backend  # noqa: E402  # behind the check, too
from diopi_torch.operators import overload  # noqa: E402  # behind the check, too
from diopi_torch.settings import (  # noqa: E402  # behind the check, too
    CPU_AFFINITY,
    FORCE_FALLBACK,
    KEEP_DEFAULT,
    SYNCHRONOUS,
)


@pytest.fixture(autouse=True)
def forget_settings() -> Iterator[None]:
    """Let the test read the environment, and forget what it has read."""
    caches = (registration.forced_operators, registration.default_operators)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize(
    ("expressions", "forced"),
    [
        ("mm", {"mm"}),
        ("add.out", {"add.out", "add.Tensor", "add_.Tensor"}),
        ("add.Tensor", {"add.Tensor"}),
        ("conv2d", {"conv2d"}),
    ],
)
def test_an_overload_with_outputs_forces_those_that_compute_the_same(
    monkeypatch: pytest.MonkeyPatch, expressions: str, forced: set[str]
) -> None:
    monkeypatch.setenv(FORCE_FALLBACK, expressions)
    assert registration.forced_operators() == forced


@pytest.mark.parametrize(
    ("expressions", "composed"), [("conv2d,mm", {"conv2d"}), ("conv.*", set()), ("batch_norm,reshape,relu_", set())]
)
def test_composed_operators_are_forced_by_whole_names(
    monkeypatch: pytest.MonkeyPatch, expressions: str, composed: set[str]
) -> None:
    monkeypatch.setenv(FORCE_FALLBACK, expressions)
    assert set(registration.forced_compositions()) == composed


def test_gradients_pass_through_a_composed_operator_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, vendor: AlteredVendor
) -> None:
    monkeypatch.setenv(FORCE_FALLBACK, "linear,dropout")
    kernels = registration.forced_compositions()
    inputs, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -1.0]])
    leaves = [tensor.to("diopi").requires_grad_() for tensor in (inputs, weight)]
    result = kernels["linear"](*leaves)
    result.sum().backward()
    assert (result.device.type, result.item()) == ("diopi", 1.0)
    assert torch.equal(leaves[0].grad.cpu(), weight) and torch.equal(leaves[1].grad.cpu(), inputs)
    assert kernels["dropout"](leaves[0], 0.5, False) is leaves[0]


def test_operators_lose_their_kernels_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEEP_DEFAULT, "mm, rsqrt.out")
    selected = registration.select_kernels([])
    assert {"mm", "rsqrt.out"}.isdisjoint(selected) and {"mm.out", "rsqrt"} < set(selected)


def test_operators_wait_for_the_device_on_request(
    monkeypatch: pytest.MonkeyPatch, activate_vendor: Callable[[Any], Any]
) -> None:
    activate_vendor(AlteredVendor())
    waits: list[str] = []
    monkeypatch.setattr(type(backend().stream), "synchronize", lambda stream: waits.append("stream"))
    kernel = overload("neg")
    result = registration.finish_kernel(kernel)(torch.tensor([2.0]))
    assert (result.tolist(), waits) == ([-2.0], [])
    monkeypatch.setenv(SYNCHRONOUS, "1")
    result = registration.finish_kernel(kernel)(torch.tensor([2.0]))
    assert (result.tolist(), waits) == ([-2.0], ["stream"])


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system can't restrict a process to CPUs")
@pytest.mark.parametrize(
    ("switch", "rank", "processes", "cpus"),
    [("1", 1, 3, [4, 5]), ("1", 0, 1, [1, 2, 4, 5, 6, 9, 10]), ("0", 1, 3, None), ("1", 5, 9, None)],
)
def test_processes_of_a_launcher_divide_the_cpus(
    monkeypatch: pytest.MonkeyPatch, switch: str, rank: int, processes: int, cpus: list[int] | None
) -> None:
    chosen: list[Any] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 2, 4, 5, 6, 9, 10})
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, choice: chosen.append(choice))
    for name, value in ((CPU_AFFINITY, switch), ("LOCAL_RANK", rank), ("LOCAL_WORLD_SIZE", processes)):
        monkeypatch.setenv(name, str(value))
    registration.set_cpu_affinity()
    assert chosen == ([] if cpus is None else [cpus])
