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
        yield Mutant(name=f"inputs rounded to {dtype.name}", corrupt=recompute_with(partial(_rounded, dtype)))
        yield Mutant(name=f"accumulated in {dtype.name}", corrupt=recompute_with(partial(accumulated_in, dtype)))
    yield Mutant(name="accumulated in half precision", corrupt=recompute_with(_accumulated_in_half))
    yield Mutant(
        name="inputs rounded to the narrowest of their types", corrupt=recompute_with(_rounded_to_the_narrowest)
    )


def _results(case: BaselineCase) -> list[Dtype]:
    """Return the floating-point types of a case's results."""
    return [
        entry.dtype for value in case.expected.values() for entry in expected_arrays(value) if is_inexact(entry.dtype)
    ]


def _rounded(dtype: Dtype, case: BaselineCase) -> Mapping[str, Any] | None:
    """Return all floating-point tensors rounded to `dtype`; None if no result is wider."""
    if not _is_wider(case, dtype):
        return None

    def rounded(array: Array) -> Array:
        with np.errstate(over="ignore"):
            return array.astype(narrow_type(dtype, array)).astype(array.dtype)

    return with_tensors(case, rounded)


def _rounded_to_the_narrowest(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return all floating-point tensors rounded to the narrowest of their types; None unless every result is wider."""
    dtypes = [tensor.dtype for value in case.arguments.values() for tensor in tensors_in(value)]
    narrowest = min(filter(is_floating, dtypes), key=lambda dtype: format_of(dtype).precision, default=None)
    if narrowest is None or not all(_precision(result) > _precision(narrowest) for result in _results(case)):
        return None
    return _rounded(narrowest, case)


def _precision(dtype: Dtype) -> int:
    return format_of(dtype).precision


def accumulated_in(dtype: Dtype, case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the arguments as arrays that accumulate sums in `dtype`; None if no result is wider.

    Args:
        dtype: the type of partial sums.
        case: the case.

    Returns:
        The arguments by name.
    """
    return with_tensors(case, partial(round_sums_to, dtype)) if _is_wider(case, dtype) else None


def _accumulated_in_half(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return arguments that accumulate sums of half-precision results in this type instead of float32."""
    half_dtype = next((dtype for dtype in _results(case) if dtype in half), None)
    return None if half_dtype is None else with_tensors(case, partial(round_long_sums_to, half_dtype))


def _is_wider(case: BaselineCase, dtype: Dtype) -> bool:
    return any(_precision(result) > _precision(dtype) for result in _results(case))


def with_tensors(case: BaselineCase, change: Callable[[Array], Array]) -> Mapping[str, Any] | None:
    """Return the arguments with every floating-point tensor changed; None if there is none.

    Args:
        case: The case.
        change: Returns a changed array.

    Returns:
        The arguments by name.
    """

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [changed(entry) for entry in value]
        return change(value) if isinstance(value, np.ndarray) and value.dtype.kind in "fc" else value

    arguments = case.plain_arguments()
    result = {name: changed(value) for name, value in arguments.items()}
    return result if any(result[name] is not arguments[name] for name in arguments) else None
