"""A large case with a few NaNs, for every function that has small cases with some: made of its first large case.

What meets NaNs right in a few elements may lose them in many, where it computes by vectors, or leaves it to a library.
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
from diopi_test.cases.classes import classify_cases
from diopi_test.cases.data import random_generator
from diopi_test.cases.domains import Domain
from diopi_test.cases.model import Case, TensorSpec, is_huge, registered_cases, tensor_specs

APART = 20_011
"""One element in so many is NaN, and one at least, so that most rows have none."""

ALONE = ("diopiUnique",)
"""Functions of which several NaNs are left open: whether they are one."""


def with_nans(prototype: Prototype, large: Sequence[Case]) -> Iterator[Case]:
    """The case with NaNs made of the first of the function's `large` ones that has where they may be."""
    names, apart = _may_be_nan(prototype), 2**62 if prototype.name in ALONE else APART
    for case in large:
        arguments = {
            name: _given_nans(value, apart) if name in names else value for name, value in case.arguments.items()
        }
        if arguments != case.arguments and not is_huge(case):
            yield replace(case, label=f"{case.dtype.name}-few-nans", arguments=arguments, exact=False)
            return


@cache
def _may_be_nan(prototype: Prototype) -> frozenset[str]:
    """The arguments that are NaN somewhere in a small case whose results vendors are held to."""
    own = (case for case in classify_cases(prototype, registered_cases(prototype)) if case.case_class.is_demanded)
    return frozenset(
        name
        for case in own
        for name, value in case.arguments.items()
        for spec in tensor_specs(value)
        if _takes_nans(spec) and _has_nans(prototype, case, name, spec)
    )


def _takes_nans(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.compute is None and is_floating(spec.dtype)


def _has_nans(prototype: Prototype, case: Case, name: str, spec: TensorSpec) -> bool:
    count = int(np.prod(spec.shape))
    return bool(np.isnan(spec.domain(random_generator(prototype.base, case.label, name), count, spec.dtype)).any())


def _given_nans(value: Any, apart: int) -> Any:
    if isinstance(value, list):
        return [_given_nans(one, apart) for one in value]
    return replace(value, domain=partial(_few_nans, value.domain, apart)) if _takes_nans(value) else value


def _few_nans(domain: Domain, apart: int, rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    values = domain(rng, count, dtype).astype(np.float64)
    values[rng.integers(count, size=-(-count // apart))] = np.nan
    return values
