"""Operators on lazily conjugated or negated tensors use the conjugated or negated values, not the stored ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import pytest
from sampling import sampled
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # imported after importorskip
from diopi_impl.torch_cpu import vendor as torch_cpu  # noqa: E402  # imported after importorskip
from diopi_torch import operators  # noqa: E402  # imported after importorskip
from diopi_torch.conjugation import receives_lazy_bits  # noqa: E402  # imported after importorskip
from diopi_torch.operators import kernels  # noqa: E402  # imported after importorskip

PRODUCT_SHAPES: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "mm": ((3, 4), (4, 5)),
    "bmm": ((2, 3, 4), (2, 4, 5)),
    "addmm": ((3, 5), (3, 4), (4, 5)),
    "baddbmm": ((2, 3, 5), (2, 3, 4), (2, 4, 5)),
}
"""Argument shapes of the matrix products that handle lazy tensors themselves."""

COMPOSED_OR_FALLBACK: Mapping[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "mv": (torch.mv, ((3, 4), (4,))),
    "dot": (torch.dot, ((4,), (4,))),
    "vdot": (torch.vdot, ((4,), (4,))),
    "linear": (torch.nn.functional.linear, ((3, 4), (5, 4), (5,))),
    "einsum": (lambda a, b: torch.einsum("ij,jk->ik", a, b), ((3, 4), (4, 5))),
    "matmul": (torch.matmul, ((2, 3, 4), (4, 5))),
    "svdvals": (torch.linalg.svdvals, ((3, 4),)),
    "solve_triangular": (lambda a, b: torch.linalg.solve_triangular(a, b, upper=False), ((3, 3), (3, 5))),
    "conj_physical": (torch.conj_physical, ((3, 4),)),
    "add": (torch.add, ((3, 4), (3, 4))),
}
"""Operators that PyTorch composes or that fall back to the CPU, with the shapes of their arguments."""

CALLS = {name: (getattr(torch, name), shapes) for name, shapes in PRODUCT_SHAPES.items()} | COMPOSED_OR_FALLBACK

FORMS: Mapping[str, Callable[[Any], Any]] = {
    "plain": lambda x: x,
    "conjugated": lambda x: x.conj_physical().conj(),
    "negated": lambda x: torch._neg_view(-x),
    "both": lambda x: torch._neg_view(-x.conj_physical().conj()),
}
"""Functions that return a tensor with the same elements, stored in the named form."""


@pytest.fixture
def fast_device(activate_vendor: Callable[[Any], Any]) -> None:
    """Use `torch_cpu` as the vendor of the device: unlike `jax_cpu` it compiles nothing, so that the tests are fast."""
    activate_vendor(torch_cpu)


def complex_numbers(*shape: int) -> Any:
    """Return normally distributed complex numbers. The seed is the number of axes."""
    return torch.randn(shape, dtype=torch.complex64, generator=torch.Generator().manual_seed(len(shape)))


def result_and_gradients(function: Callable[..., Any], inputs: list[Any], forms: tuple[str, ...], device: str) -> Any:
    """Return the result for inputs in these forms, and the gradients of the sum of its squared magnitudes."""
    leaves = [x.to(device).requires_grad_() for x in inputs]
    result = function(*[FORMS[form](leaf) for form, leaf in zip(forms, leaves, strict=True)])
    result.abs().square().sum().backward()
    return [tensor.cpu() for tensor in (result.detach(), *(leaf.grad for leaf in leaves))]


def combinations() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each function with each combination of lazy forms of its inputs."""
    for name, (_, shapes) in CALLS.items():
        for forms in product(FORMS, repeat=len(shapes)):
            yield name, forms


@pytest.mark.usefixtures("fast_device")
@pytest.mark.parametrize(("name", "forms"), sampled(combinations(), 15, slow=25))
def test_results_and_gradients_are_those_of_the_cpu(name: str, forms: tuple[str, ...]) -> None:
    function, shapes = CALLS[name]
    inputs = [complex_numbers(*shape) for shape in shapes]
    found = result_and_gradients(function, inputs, forms, "diopi")
    torch.testing.assert_close(found, result_and_gradients(function, inputs, forms, "cpu"), rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("fast_device")
@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("name", list(PRODUCT_SHAPES))
def test_output_arguments_and_tensors_updated_in_place_may_be_lazy(name: str, form: str) -> None:
    function, shapes = CALLS[name]
    inputs = [complex_numbers(*shape) for shape in shapes]
    expected = function(*inputs)
    out = FORMS[form](torch.zeros_like(expected).to("diopi"))
    assert function(*[x.to("diopi") for x in inputs], out=out) is out
    torch.testing.assert_close(out.cpu(), expected, rtol=1e-4, atol=1e-4)
    if hasattr(torch.Tensor, f"{name}_"):
        written = FORMS[form](inputs[0].to("diopi"))
        assert getattr(written, f"{name}_")(*[x.to("diopi") for x in inputs[1:]]) is written
        torch.testing.assert_close(written.cpu(), expected, rtol=1e-4, atol=1e-4)


def test_every_operator_that_handles_lazy_tensors_has_shapes_here() -> None:
    receiving = {kernel.row.operator for kernel in kernels().values() if receives_lazy_bits(kernel.operator)}
    exempt = {"full_like", "neg"}  # the first one uses only the shape, the second one is linear
    assert receiving - exempt == set(PRODUCT_SHAPES)


def test_a_product_with_a_lazy_conjugate_needs_no_fallback(vendor: AlteredVendor) -> None:
    z = complex_numbers(3, 3)
    x = z.to("diopi")
    torch.testing.assert_close((x @ x.mH).cpu(), z @ z.mH)
    assert diopi_torch.fallbacks() == {}


def test_autocompare_detects_a_dropped_conjugation(vendor: AlteredVendor, monkeypatch: pytest.MonkeyPatch) -> None:
    x = complex_numbers(3, 3).to("diopi")
    with diopi_torch.autocompare("mm", quiet=True) as comparison:
        x @ x.mH
        assert comparison.counts["mm"] == {"compared": 1, "wrong": 0}
        monkeypatch.setattr(operators, "has_lazy_bits", lambda value: False)  # drops the conjugation
        x @ x.mH
    assert comparison.counts["mm"] == {"compared": 2, "wrong": 1}
