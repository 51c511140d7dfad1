"""Derived gradient functions: their tables fit the prototypes, and they follow the conventions of the standard."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.gradients import DERIVED, Derivation, derive_gradient
from diopi_proto.interface import lookup, prototypes


@pytest.mark.parametrize("name", DERIVED)
def test_derivation_has_an_input_per_result_and_names_arguments(name: str) -> None:
    derivation, prototype = DERIVED[name], lookup(name)
    (forward,) = (p for p in prototypes().values() if p.backward == name and p.form == "plain")
    arguments, forward_arguments = ({p.name for p in function.arguments} for function in (prototype, forward))
    assert len(derivation.inputs) == len(prototype.results)
    assert {derivation.gradient, *derivation.names.values(), *filter(None, [derivation.shape])} <= arguments
    assert {*derivation.inputs, *derivation.names, *derivation.constants} <= forward_arguments
    assert vendor.source_modules[name] == vendor.source_modules[forward.name]


def test_gradient_of_complex_input_is_not_conjugated() -> None:
    rng = np.random.default_rng(5)
    grad, x, y = (rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3)) for _ in range(3))
    derivation = Derivation(inputs=("input", "other"), gradient="grad_out")
    with jax.enable_x64(True):
        grad_x, grad_y = derive_gradient("diopiMatmulBackward", derivation, vendor)(grad, x, y)
    np.testing.assert_allclose(grad_x, grad @ y.conj().T)
    np.testing.assert_allclose(grad_y, x.conj().T @ grad)


@pytest.mark.parametrize("shape", [(2, 5), np.zeros((2, 5))], ids=["sizes", "array"])
def test_absent_input_of_a_linear_function_has_the_declared_shape(shape: object) -> None:
    gradient = derive_gradient("diopiSelectBackward", Derivation(shape="input_sizes"), vendor)
    result = np.asarray(gradient(np.float32([3, 4]), 1, -1, shape))
    assert result.tolist() == [[0, 0, 0, 0, 3], [0, 0, 0, 0, 4]]


def test_gradient_of_another_shape_than_the_result_is_rejected() -> None:
    with pytest.raises(ValueError, match="shape"):
        derive_gradient("diopiGeluBackward", DERIVED["diopiGeluBackward"], vendor)(
            np.ones((2, 3), np.float32), np.ones(3, np.float32), "none"
        )
