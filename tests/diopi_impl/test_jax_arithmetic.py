"""Calls that the built-in vendor's binary functions reject."""

import jax.numpy as jnp
import pytest

from diopi_impl.jax_cpu import arithmetic
from diopi_proto.types import RoundMode

WHOLE, TRUE, COMPLEX = jnp.arange(3), jnp.array([True]), jnp.array([1j])


@pytest.mark.parametrize("function", [arithmetic.add, arithmetic.sub])
def test_integer_operands_reject_floating_alpha(function: object) -> None:
    assert callable(function)
    with pytest.raises(ValueError, match=r"alpha is 0\.5"):
        function(WHOLE, 2, 0.5)
    assert function(WHOLE, 2.0, 0.5).shape == WHOLE.shape


@pytest.mark.parametrize("operand", [TRUE, COMPLEX])
def test_rounded_division_rejects_bool_and_complex(operand: jnp.ndarray) -> None:
    with pytest.raises(ValueError, match="real numbers"):
        arithmetic.div(operand, operand, RoundMode.floor)


def test_div_rejects_unknown_rounding_mode() -> None:
    with pytest.raises(ValueError, match="rounding_mode is 3"):
        arithmetic.div(WHOLE, WHOLE, RoundMode.END)


def test_clamp_rejects_missing_bounds() -> None:
    with pytest.raises(ValueError, match="min"):
        arithmetic.clamp(WHOLE, None, None)
