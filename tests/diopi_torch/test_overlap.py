"""Writes to overlapping memory: the device rejects the writes that the CPU rejects, and computes the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from cpu_agreement import ascending, assert_agrees_with_cpu, outcome  # noqa: E402  # behind the check for PyTorch

import diopi_torch  # noqa: E402  # behind the check, too
from diopi_torch.fallback import check_on_cpu  # noqa: E402  # behind the check, too

functional = torch.nn.functional


def repeat_element(*shape: int, device: str) -> Any:
    """Return a tensor whose elements are all at one address."""
    return torch.zeros((1,) * len(shape), device=device).expand(shape)


def ones(*shape: int, device: str) -> Any:
    """Return a tensor of ones on a device."""
    return torch.ones(shape, device=device)


def indices(*numbers: int, device: str) -> Any:
    """Return a vector of these integers on a device."""
    return torch.tensor(numbers, device=device)


REPEATED: list[Callable[[str], Any]] = [
    lambda d: repeat_element(3, device=d).copy_(ones(3, device=d)),
    lambda d: repeat_element(3, device=d).copy_(ones(3, device="cpu")),
    lambda d: repeat_element(3, device=d).add_(1),
    lambda d: torch.add(ones(3, device=d), 1, out=repeat_element(3, device=d)),
    lambda d: repeat_element(3, 3, device=d).cumsum_(0),
    lambda d: torch.mm(ones(3, 3, device=d), ones(3, 3, device=d), out=repeat_element(3, 3, device=d)),
    lambda d: torch.max(ones(3, 3, device=d), 0, out=(repeat_element(3, device=d), indices(0, 0, 0, device=d))),
    lambda d: repeat_element(3, device=d).scatter_(0, indices(1, device=d), 1.0),
    lambda d: repeat_element(3, device=d).index_add_(0, indices(1, device=d), ones(1, device=d)),
    lambda d: torch._foreach_add_([repeat_element(3, device=d)], [ones(3, device=d)]),
    lambda d: functional.hardsigmoid(repeat_element(3, device=d), inplace=True),
    lambda d: repeat_element(3, device=d).normal_(),
    lambda d: torch.linspace(0, 1, 3, out=repeat_element(3, device=d)),
    lambda d: torch.lgamma(ones(3, device=d), out=repeat_element(3, device=d)),
]
"""Programs that write a tensor whose elements are all at one address."""

SHARING: list[Callable[[Any], Any]] = [
    lambda x: x[1:].copy_(x[:-1]),
    lambda x: x.copy_(x.T),
    lambda x: x[1:].add_(x[:-1]),
    lambda x: torch.add(x[:-1], 1, out=x[1:]),
    lambda x: torch.cat([x[:2], x[1:3]], out=x),
    lambda x: torch.gather(x, 0, torch.zeros_like(x, dtype=torch.int64), out=x),
    lambda x: torch.index_select(x, 0, indices(0, 1, 2, 3, device=x.device), out=x),
    lambda x: torch.ops.aten.softplus.out(x[:-1], out=x[1:]),
    lambda x: torch.lgamma(x[:-1], out=x[1:]),
]
"""Functions that write some elements of a square matrix that they also read as other elements."""

ALLOWED: list[Callable[[str], Any]] = [
    lambda d: repeat_element(3, device=d).fill_(2),
    lambda d: repeat_element(3, device=d).zero_(),
    lambda d: torch.sum(ones(3, 3, device=d), 0, out=repeat_element(3, device=d)),
    lambda d: repeat_element(3, device=d).masked_fill_(ones(3, device=d) > 0, 1),
    lambda d: repeat_element(3, device=d).index_put_((indices(1, device=d),), torch.tensor(1.0, device=d)),
]
"""Programs that write a tensor whose elements are all at one address, which PyTorch allows."""


def apply(write: Callable[[Any], Any], device: str) -> Any:
    """Return a matrix of which a function has written some elements."""
    matrix = ascending(4, 4, device=device)
    write(matrix)
    return matrix


@pytest.mark.parametrize("program", REPEATED)
def test_writes_to_repeated_elements_are_refused(program: Callable[[str], Any], vendor: AlteredVendor) -> None:
    assert "refers to a single memory location" in str(outcome(program, "diopi"))
    assert_agrees_with_cpu(program)


@pytest.mark.parametrize("write", SHARING)
def test_writes_to_elements_that_are_read_elsewhere_are_refused(
    write: Callable[[Any], Any], vendor: AlteredVendor
) -> None:
    assert "refer to a single memory location" in str(outcome(lambda device: apply(write, device), "diopi"))
    assert_agrees_with_cpu(lambda device: apply(write, device))


@pytest.mark.parametrize("program", ALLOWED)
def test_allowed_writes_to_repeated_elements_run_on_the_cpu(
    program: Callable[[str], Any], vendor: AlteredVendor
) -> None:
    assert_agrees_with_cpu(program)
    assert sum(diopi_torch.fallbacks().values()) == 1


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.copy_(x),
        lambda x: x.add_(x),
        lambda x: torch.add(x, 1, out=x),
        lambda x: x[:2].add_(x[2:]),
        lambda x: x[:, :2].mul_(x[:, 2:]),
        lambda x: x[::2].copy_(x[1::2]),
    ],
)
def test_separate_and_equal_elements_are_written_by_functions(
    write: Callable[[Any], Any], vendor: AlteredVendor
) -> None:
    assert_agrees_with_cpu(lambda device: apply(write, device))
    assert diopi_torch.fallbacks() == {}


def test_plans_distinguish_the_distance_of_tensors_in_one_memory(vendor: AlteredVendor) -> None:
    x = ascending(4, 4, device="diopi")
    x[:2].add_(x[2:])
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[:2].add_(x[1:3])


def test_the_check_neither_writes_nor_draws(vendor: AlteredVendor) -> None:
    x, state = ascending(3, device="diopi"), torch.diopi.get_rng_state()
    check_on_cpu(torch.ops.aten.uniform_.default, (x,), {})
    assert x.tolist() == [1, 2, 3]
    assert torch.equal(torch.diopi.get_rng_state(), state)
