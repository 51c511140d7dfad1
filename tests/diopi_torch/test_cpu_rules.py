"""Rules of PyTorch's CPU that functions of the standard don't know: output arguments, default types, invalid values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from cpu_agreement import ascending, assert_agrees_with_cpu, outcome  # noqa: E402  # behind the check for PyTorch

functional = torch.nn.functional

SEQUENCES: list[Callable[..., Any]] = [
    lambda out: torch.arange(6, out=out),
    lambda out: torch.linspace(0, 5, 6, out=out),
    lambda out: torch.logspace(0, 1, 6, out=out),
    lambda out: torch.range(0, 5, out=out),
]

OUTPUTS: list[Callable[[str], Any]] = [
    lambda d: torch.zeros(6, device=d),
    lambda d: torch.zeros(4, device=d),
    lambda d: torch.zeros((), device=d),
    lambda d: torch.zeros(3, 2, device=d).T,
    lambda d: torch.zeros(12, device=d)[::2],
    lambda d: torch.zeros(4, 6, device=d)[::2, ::2],
    lambda d: torch.zeros(7, 2, device=d)[:3, 0],
]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("fill", SEQUENCES)
def test_sequences_are_written_where_the_cpu_writes_them(
    fill: Callable[..., Any], output: Callable[[str], Any], vendor: AlteredVendor
) -> None:
    def whole(device: str) -> Any:
        out = output(device)
        base = out if out._base is None else out._base
        assert fill(out) is out
        return torch.cat([base.flatten(), torch.tensor([*out.shape, *out.stride()], dtype=out.dtype, device=device)])

    assert_agrees_with_cpu(whole)


@pytest.fixture
def default_dtypes() -> Iterator[tuple[Any, ...]]:
    """Default element types to set; the original one is set again after the test."""
    yield torch.float32, torch.float64, torch.float32
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    "program",
    [
        lambda d: torch.arange(1, 4, device=d) / 2,
        lambda d: torch.arange(1, 4, device=d) + 1.5,
        lambda d: torch.arange(1, 4, device=d).sqrt(),
        lambda d: torch.arange(1, 4, device=d).lgamma(),
        lambda d: torch.full((2,), 0.1, device=d),
        lambda d: torch.arange(0, 1, 0.25, device=d),
        lambda d: torch.where(torch.tensor([True, False], device=d), 0.1, 0.2),
        lambda d: torch.randn(2, device=d).sum() * 0,
        lambda d: torch.tensor([1, 2], device=d).to(torch.complex64).abs() + torch.tensor([0.1], device=d),
    ],
)
def test_results_have_the_default_element_type(
    program: Callable[[str], Any], vendor: AlteredVendor, default_dtypes: tuple[Any, ...]
) -> None:
    for dtype in default_dtypes:
        torch.set_default_dtype(dtype)
        assert_agrees_with_cpu(program)


INVALID: list[Callable[[str], Any]] = [
    lambda d: functional.cross_entropy(ascending(3, 4, device=d), torch.tensor([0, 4, 1], device=d)),
    lambda d: functional.nll_loss(ascending(3, 4, device=d), torch.tensor([0, -1, 1], device=d)),
    lambda d: functional.nll_loss(ascending(1, 4, 2, 1, device=d), torch.tensor([[[0], [7]]], device=d)),
    lambda d: torch.multinomial(torch.tensor([1.0, -1, 2], device=d), 2),
    lambda d: torch.multinomial(torch.tensor([0.0, 0, 0], device=d), 2),
    lambda d: torch.multinomial(torch.tensor([0.0, torch.nan, 0], device=d), 2),
    lambda d: functional.binary_cross_entropy(torch.tensor([2.0], device=d), torch.tensor([0.0], device=d)),
    lambda d: torch.bernoulli(torch.tensor([2.0], device=d)),
    lambda d: torch.normal(torch.tensor([2.0], device=d), torch.tensor([-2.0], device=d)),
    lambda d: functional.embedding(torch.tensor([4], device=d), ascending(3, 2, device=d)),
    lambda d: ascending(3, device=d)[torch.tensor([4], device=d)],
    lambda d: ascending(3, device=d).gather(0, torch.tensor([4], device=d)),
    lambda d: ascending(3, device=d).scatter_(0, torch.tensor([4], device=d), 1.0),
    lambda d: ascending(3, device=d).index_select(0, torch.tensor([4], device=d)),
    lambda d: ascending(3, device=d).take(torch.tensor([4], device=d)),
    lambda d: ascending(3, device=d).index_add(0, torch.tensor([4], device=d), torch.ones(1, device=d)),
]


@pytest.mark.parametrize("program", INVALID)
def test_invalid_values_raise_the_errors_of_the_cpu(program: Callable[[str], Any], vendor: AlteredVendor) -> None:
    assert isinstance(outcome(program, "diopi"), Exception)
    assert_agrees_with_cpu(program)


def test_ignored_targets_may_be_outside_of_the_classes(vendor: AlteredVendor) -> None:
    assert_agrees_with_cpu(
        lambda d: functional.cross_entropy(ascending(3, 4, device=d), torch.tensor([0, -100, 1], device=d))
    )
