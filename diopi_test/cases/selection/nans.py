"""A large case with a few NaNs for every function that has small cases with NaNs.

A kernel may handle NaNs correctly in small tensors, but lose them in large tensors, for which it uses vector
instructions or a library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import is_floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec, registered_cases
from diopi_test.cases.domains import Domain, random_generator
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.selection.open_calls import reason_open

_NAN_PERIOD = 20_011
"""The number of elements per NaN, so large that most rows have no NaN. Smaller tensors have one NaN."""


def nan_cases(prototype: Prototype, large: Sequence[Case]) -> Iterator[Case]:
    """Yield at most one case with NaNs: a copy of the first of the function's `large` cases that can have NaNs."""
    names = _arguments_with_nans(prototype)
    period = 2**62 if CaseFacts.declared_for(prototype).has_single_nan else _NAN_PERIOD
    for case in large:
        arguments = {
            name: _insert_nans(value, period) if name in names else value for name, value in case.arguments.items()
        }
        if arguments != case.arguments and not case.is_huge:
            yield replace(case, label=f"{case.dtype.name}-few-nans", arguments=arguments, exact=False)
            return


@cache
def _arguments_with_nans(prototype: Prototype) -> frozenset[str]:
    """Return the names of the arguments that contain NaN in a small case that a vendor must pass."""
    names: set[str] = set()
    for case in registered_cases(prototype):
        if case.case_class.is_demanded and not reason_open(prototype, case):
            names.update(
                name
                for name, spec in case.tensors
                if name not in names and _can_hold_nans(spec) and _has_nans(prototype, case, name, spec)
            )
    return frozenset(names)


def _can_hold_nans(spec: Any) -> bool:
    """Return whether an argument is a floating-point tensor whose values are drawn from a domain."""
    return isinstance(spec, TensorSpec) and spec.compute is None and is_floating(spec.dtype)


def _has_nans(prototype: Prototype, case: Case, name: str, spec: TensorSpec) -> bool:
    """Return whether the case's values of an argument contain NaNs."""
    count = int(np.prod(spec.shape))
    return bool(np.isnan(spec.domain(random_generator(prototype.base, case.label, name), count, spec.dtype)).any())


def _insert_nans(value: Any, period: int) -> Any:
    """Return an argument with about one NaN per `period` elements in each tensor that can contain NaNs."""
    if isinstance(value, list):
        return [_insert_nans(entry, period) for entry in value]
    return replace(value, domain=partial(_draw_few_nans, value.domain, period)) if _can_hold_nans(value) else value


def _draw_few_nans(domain: Domain, period: int, rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw numbers from the domain and replace about one in `period` by NaN."""
    values = domain(rng, count, dtype).astype(np.float64)
    values[rng.integers(count, size=-(-count // period))] = np.nan
    return values
