"""A large case with a few NaNs for every function that has small cases with NaNs, derived from its first large case.

A kernel that handles NaNs in a few elements may lose them in many, because it then uses vector instructions or a
library.
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
"""One element in this many is NaN, at least one, so that most rows have no NaN."""


def nan_cases(prototype: Prototype, large: Sequence[Case]) -> Iterator[Case]:
    """Yield a case with NaNs, derived from the first of the function's `large` cases that can have them."""
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
    """Return the arguments that contain NaN in a small case whose class is required."""
    names: set[str] = set()
    for case in registered_cases(prototype):
        if case.case_class.is_demanded and not reason_open(prototype, case):
            names.update(
                name
                for name, value in case.arguments.items()
                for spec in TensorSpec.all_in(value)
                if name not in names and _can_hold_nans(spec) and _has_nans(prototype, case, name, spec)
            )
    return frozenset(names)


def _can_hold_nans(spec: Any) -> bool:
    """Return whether an argument is a floating tensor with values from a domain."""
    return isinstance(spec, TensorSpec) and spec.compute is None and is_floating(spec.dtype)


def _has_nans(prototype: Prototype, case: Case, name: str, spec: TensorSpec) -> bool:
    """Return whether the case's values of an argument contain NaNs."""
    count = int(np.prod(spec.shape))
    return bool(np.isnan(spec.domain(random_generator(prototype.base, case.label, name), count, spec.dtype)).any())


def _insert_nans(value: Any, period: int) -> Any:
    """Return a tensor argument, or a list of them, with one NaN in `period` elements."""
    if isinstance(value, list):
        return [_insert_nans(entry, period) for entry in value]
    return replace(value, domain=partial(_draw_few_nans, value.domain, period)) if _can_hold_nans(value) else value


def _draw_few_nans(domain: Domain, period: int, rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw numbers from the domain and replace about one in `period` by NaN."""
    values = domain(rng, count, dtype).astype(np.float64)
    values[rng.integers(count, size=-(-count // period))] = np.nan
    return values
