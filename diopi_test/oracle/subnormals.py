"""Find subnormal numbers in the inputs of a case, and flush them to zero, as an implementation is allowed to do."""

from __future__ import annotations

from typing import Any

import numpy as np

from diopi_proto.dtypes import COMPONENT
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.oracle.data import TensorData
from diopi_test.oracle.perturbation import exact_value
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from lib_rt.formats import flush_to_zero, is_inexact, is_subnormal


def flush_subnormals(value: Any, number_dtype: Dtype = Dtype.float32) -> Any:
    """Return an argument as references take it, with subnormal numbers of its element type flushed to zero.

    Args:
        value: The materialized argument: a tensor, a list of arguments, or an attribute.
        number_dtype: The element type that decides which float attributes are subnormal.

    Returns:
        An array for a tensor, a list for a list, and a number for a float attribute. Other values are unchanged.
    """
    if isinstance(value, list):
        return [flush_subnormals(entry, number_dtype) for entry in value]
    exact = exact_value(value)
    if isinstance(exact, float):
        return float(flush_to_zero(exact, number_dtype))
    if not isinstance(value, TensorData) or not is_inexact(value.spec.dtype):
        return exact
    return flush_to_zero(exact, value.spec.dtype)


def must_keep_subnormals(case: BaselineCase) -> bool:
    """Return whether a vendor must not flush subnormal results: the function moves numbers without converting them.

    The prototype must declare that the function moves numbers (`moves_numbers`). All floating-point and complex
    arguments and results must have the same element type; the parts of complex numbers count as their type.
    """
    if not lookup(case.function).moves_numbers:
        return False
    arguments = [tensor.dtype for value in case.arguments.values() for tensor in tensors_in(value)]
    results = [entry.dtype for value in case.expected.values() for entry in expected_arrays(value)]
    return len({COMPONENT.get(dtype, dtype) for dtype in (*arguments, *results) if is_inexact(dtype)}) == 1


def has_subnormals(value: Any, number_dtype: Dtype = Dtype.float32) -> bool:
    """Return whether an argument contains subnormal numbers of its element type, or complex numbers with such parts.

    Args:
        value: The materialized argument: a tensor, a list of arguments, or an attribute.
        number_dtype: The element type that decides which float attributes are subnormal.
    """
    if isinstance(value, list):
        return any(has_subnormals(entry, number_dtype) for entry in value)
    if isinstance(value, float):
        return bool(is_subnormal(np.asarray(value), number_dtype))
    if not isinstance(value, TensorData) or not is_inexact(value.spec.dtype):
        return False
    return any(bool(is_subnormal(part, value.spec.dtype).any()) for part in (value.exact.real, value.exact.imag))
