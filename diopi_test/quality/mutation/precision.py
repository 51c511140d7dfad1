"""Precision mutants: inputs rounded to a narrower type, sums accumulated in a narrower type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from diopi_proto.dtypes import half, is_floating
from diopi_proto.types import Dtype
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.quality.mutation.arguments import recompute_with
from diopi_test.quality.mutation.mutant import Array, Mutant
from diopi_test.quality.mutation.summation import NARROW, narrow_type, round_long_sums_to, round_sums_to
from lib_rt.formats import format_of, is_inexact


def precision_mutants() -> Iterator[Mutant]:
    """Yield the precision mutants, which apply to every function that computes with numbers.

    Yields:
        The mutants.
    """
    for dtype in NARROW:
        yield Mutant(name=f"inputs rounded to {dtype.name}", corrupt=recompute_with(partial(_round_inputs, dtype)))
        yield Mutant(name=f"accumulated in {dtype.name}", corrupt=recompute_with(partial(accumulate_in, dtype)))
    yield Mutant(
        name="accumulated in half precision",
        corrupt=recompute_with(_accumulate_in_half),
        is_permitted=lambda numerics: numerics.half_accumulation == "half",
    )
    yield Mutant(
        name="inputs rounded to the narrowest of their types", corrupt=recompute_with(_round_to_narrowest_input)
    )


def _floating_result_types(case: BaselineCase) -> list[Dtype]:
    """Return the floating-point and complex types of a case's results, one per tensor."""
    return [
        entry.dtype for value in case.expected.values() for entry in expected_arrays(value) if is_inexact(entry.dtype)
    ]


def _round_inputs(dtype: Dtype, case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the arguments with all floating-point tensors rounded to `dtype`.

    Return None if no floating-point result of the case is wider than `dtype`.
    """
    if not _has_wider_result(case, dtype):
        return None

    def round_array(array: Array) -> Array:
        """Round an array to the narrower type and convert it back."""
        with np.errstate(over="ignore"):
            return array.astype(narrow_type(dtype, array)).astype(array.dtype)

    return change_tensors(case, round_array)


def _round_to_narrowest_input(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the arguments with all floating-point tensors rounded to the narrowest of their types.

    Return None if some floating-point result is not wider than that type, or if no tensor is floating-point.
    """
    dtypes = [tensor.dtype for value in case.arguments.values() for tensor in tensors_in(value)]
    narrowest = min(filter(is_floating, dtypes), key=lambda dtype: format_of(dtype).precision, default=None)
    if narrowest is None or not all(
        _precision_of(result) > _precision_of(narrowest) for result in _floating_result_types(case)
    ):
        return None
    return _round_inputs(narrowest, case)


def _precision_of(dtype: Dtype) -> int:
    """Return the number of significant bits of a floating-point type."""
    return format_of(dtype).precision


def accumulate_in(dtype: Dtype, case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the arguments as arrays that accumulate sums in `dtype`; None if no result is wider.

    Args:
        dtype: the type of partial sums.
        case: the case.

    Returns:
        The arguments by name.
    """
    return change_tensors(case, partial(round_sums_to, dtype)) if _has_wider_result(case, dtype) else None


def _accumulate_in_half(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return arguments whose long sums are rounded to the half-precision type of the results after each term.

    Sums of more than `diopi_test.oracle.budget.K` terms are long. Return None if no result has such a type.
    """
    half_dtype = next((dtype for dtype in _floating_result_types(case) if dtype in half), None)
    return None if half_dtype is None else change_tensors(case, partial(round_long_sums_to, half_dtype))


def _has_wider_result(case: BaselineCase, dtype: Dtype) -> bool:
    """Return whether a floating-point result of the case has a higher precision than `dtype`."""
    return any(_precision_of(result) > _precision_of(dtype) for result in _floating_result_types(case))


def change_tensors(case: BaselineCase, change: Callable[[Array], Array]) -> Mapping[str, Any] | None:
    """Return the arguments with every floating-point or complex tensor changed, also in lists; None if there is none.

    Args:
        case: The case.
        change: Returns a changed array.

    Returns:
        The arguments by name.
    """

    def apply_change(value: Any) -> Any:
        """Apply the change to the floating-point and complex tensors in an argument."""
        if isinstance(value, list):
            return [apply_change(entry) for entry in value]
        return change(value) if isinstance(value, np.ndarray) and value.dtype.kind in "fc" else value

    arguments = case.plain_arguments()
    result = {name: apply_change(value) for name, value in arguments.items()}
    return result if any(result[name] is not arguments[name] for name in arguments) else None
