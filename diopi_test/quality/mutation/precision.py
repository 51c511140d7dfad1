"""Faults of precision: inputs rounded to a narrower type, sums accumulated in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from diopi_proto.dtypes import half, is_floating
from diopi_proto.types import Dtype
from diopi_test.baseline.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.cases.formats import format_of, is_inexact
from diopi_test.quality.mutation.arguments import recompute_with
from diopi_test.quality.mutation.mutant import Array, Mutant
from diopi_test.quality.mutation.summation import NARROW, narrow_type, summing_in, summing_long_ones_in


def precision_mutants() -> Iterator[Mutant]:
    """The faults of functions that compute with numbers."""
    for dtype in NARROW:
        yield Mutant(f"inputs rounded to {dtype.name}", recompute_with(partial(_rounded, dtype)))
        yield Mutant(f"accumulated in {dtype.name}", recompute_with(partial(accumulated_in, dtype)))
    yield Mutant("accumulated in half precision", recompute_with(_accumulated_in_half))
    yield Mutant("inputs rounded to the narrowest of their types", recompute_with(_rounded_to_the_narrowest))


def _results(case: BaselineCase) -> list[Dtype]:
    """The floating types of a case's results."""
    return [one.dtype for value in case.expected.values() for one in expected_arrays(value) if is_inexact(one.dtype)]


def _rounded(dtype: Dtype, case: BaselineCase) -> Mapping[str, Any] | None:
    """All floating tensors as they are in `dtype`, where a result is wider."""
    if not _is_wider(case, dtype):
        return None

    def rounded(array: Array) -> Array:
        with np.errstate(over="ignore"):
            return array.astype(narrow_type(dtype, array)).astype(array.dtype)

    return _with_tensors(case, rounded)


def _rounded_to_the_narrowest(case: BaselineCase) -> Mapping[str, Any] | None:
    """All floating tensors as they are in the narrowest of their types, where every result is wider."""
    given = [tensor.dtype for value in case.arguments.values() for tensor in tensors_in(value)]
    narrowest = min(filter(is_floating, given), key=lambda dtype: format_of(dtype).precision, default=None)
    if narrowest is None or not all(_precision(result) > _precision(narrowest) for result in _results(case)):
        return None
    return _rounded(narrowest, case)


def _precision(dtype: Dtype) -> int:
    return format_of(dtype).precision


def accumulated_in(dtype: Dtype, case: BaselineCase) -> Mapping[str, Any] | None:
    """Sums are accumulated in `dtype`, where a result is wider."""
    return _with_tensors(case, partial(summing_in, dtype)) if _is_wider(case, dtype) else None


def _accumulated_in_half(case: BaselineCase) -> Mapping[str, Any] | None:
    """Sums of half-precision results are accumulated in their own type, and not in float32."""
    own = next((dtype for dtype in _results(case) if dtype in half), None)
    return None if own is None else _with_tensors(case, partial(summing_long_ones_in, own))


def _is_wider(case: BaselineCase, dtype: Dtype) -> bool:
    return any(_precision(result) > _precision(dtype) for result in _results(case))


def _with_tensors(case: BaselineCase, change: Callable[[Array], Array]) -> Mapping[str, Any] | None:
    """The arguments with every floating tensor changed; None if there is none."""

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [changed(entry) for entry in value]
        return change(value) if isinstance(value, np.ndarray) and value.dtype.kind in "fc" else value

    arguments = case.plain_arguments()
    result = {name: changed(value) for name, value in arguments.items()}
    return result if any(result[name] is not arguments[name] for name in arguments) else None
