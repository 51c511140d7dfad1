"""Derive the class of each case from what the case requires of a vendor.

A case with NaN in its data requires the class `special`, for example. The derived class is the first class of
`PRECEDENCE` that the case requires, apart from requirements that the function's first case also has. For example, the
first case of a function that moves data already contains NaN, and omits arguments that most callers omit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto import facts
from diopi_proto.dtypes import leading_dtype
from diopi_proto.parameters import Scalar
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass, TensorSpec
from diopi_test.cases.domains import Domain
from diopi_test.cases.layouts import contiguous
from diopi_test.cases.selection.open_calls import reason_open
from lib_rt.formats import is_inexact, is_subnormal

PRECEDENCE = (CaseClass.special, CaseClass.empty, CaseClass.optional, CaseClass.layout, CaseClass.types)
"""The classes that are derived, in order of precedence. A class that a case states (`Case.case_class`) comes first."""

SAMPLE_MINIMUM, SAMPLE_LIMIT = 32, 1 << 16
"""The minimum and maximum number of elements sampled to look for special values; small tensors are drawn repeatedly."""

CHANCE_SHARE = 1 / 16
"""The largest share of subnormal numbers, or of negative zeros, that counts as chance instead of as a requirement."""

Demands = Mapping[CaseClass, frozenset[str]]
"""By class, the requirements of a case, as texts: mostly names of parameters, such as "weight" for `layout`."""


def classify_cases(prototype: Prototype, cases: Sequence[Case], *, int32_indices: bool = False) -> tuple[Case, ...]:
    """Return all cases of a function, each with its class.

    Args:
        prototype: The prototype of the function.
        cases: All cases of the function.
        int32_indices: Whether the run requests int32 indices. Cases that would have the class `open` only because of
            int32 indices then have another class.

    Returns:
        The cases in the same order.
    """
    demands = [_demands(prototype, case) for case in cases]
    declared = [_declared_class(prototype, case, int32_indices) for case in cases]
    annotated = list(zip(cases, demands, declared, strict=True))
    usual = _demands_of_first(
        prototype, [(case, case_demands) for case, case_demands, declared_class in annotated if declared_class is None]
    )
    return tuple(
        _with_class(case, declared_class or _derive_class(case_demands, usual))
        for case, case_demands, declared_class in annotated
    )


def _with_class(case: Case, case_class: CaseClass) -> Case:
    """Return the case with this class."""
    return case if case.case_class is case_class else replace(case, case_class=case_class)


def _declared_class(prototype: Prototype, case: Case, int32_indices: bool) -> CaseClass | None:
    """Return `open` for an open call, or the class that the case states; None if the class must be derived."""
    if reason_open(prototype, case, int32_indices=int32_indices):
        return CaseClass.open
    return None if case.case_class is CaseClass.basic else case.case_class


def _derive_class(demands: Demands, usual: Demands) -> CaseClass:
    """Return the first class of `PRECEDENCE` with a requirement that is not in `usual`; `basic` if there is none."""
    return next((case_class for case_class in PRECEDENCE if demands[case_class] - usual[case_class]), CaseClass.basic)


def _demands_of_first(prototype: Prototype, cases: Iterable[tuple[Case, Demands]]) -> Demands:
    """Return the requirements of the function's first case; empty sets if there are no cases.

    Cases in the leading element type come first, and among these the smoke cases.
    """

    def sort_key(entry: tuple[Case, Demands]) -> tuple[bool, bool]:
        case, _ = entry
        return bool(prototype.dtypes) and case.dtype is not leading_dtype(prototype.dtypes), not case.smoke

    return next((demands for _, demands in sorted(cases, key=sort_key)), dict.fromkeys(PRECEDENCE, frozenset()))


def _demands(prototype: Prototype, case: Case) -> Demands:
    """Return all requirements of a case, including those that the function's first case also has."""
    passed = [(name, spec) for name, spec in case.tensors if not name.startswith("_")]
    results = [(name, result) for name, result in case.results.items() if result is not None]
    typed = [(name, spec.dtype) for name, spec in passed]
    typed += [(name, result.dtype) for name, result in results if result.dtype is not None]
    kinds = [(name, *_special_kinds_of(spec)) for name, spec in case.tensors]
    non_contiguous = [name for name, spec in passed if spec.layout(spec.shape) != contiguous(spec.shape)]
    return {
        CaseClass.special: frozenset(
            [name for name, is_special, _ in kinds if is_special]
            + [f"{name}: -0" for name, _, is_any_special in kinds if is_any_special]
            + _special_numbers(prototype, case)
        ),
        CaseClass.empty: frozenset([name for name, spec in passed if 0 in spec.shape] + _empty_lists(prototype, case)),
        CaseClass.optional: frozenset(_omitted(prototype, case)),
        CaseClass.layout: frozenset(
            non_contiguous + [name for name, result in results if result.layout is not contiguous]
        ),
        CaseClass.types: frozenset([case.dtype.name, *(f"{name}: {dtype.name}" for name, dtype in typed)]),
    }


def _special_kinds_of(spec: TensorSpec) -> tuple[bool, bool]:
    """Return the result of `_special_kinds` for the domain of a tensor; (False, False) if its values are computed."""
    count = min(math.prod(spec.shape), SAMPLE_LIMIT)
    if spec.compute is not None or not is_inexact(spec.dtype) or not count:
        return False, False
    return _special_kinds(spec.domain, count, spec.dtype)


def _empty_lists(prototype: Prototype, case: Case) -> list[str]:
    """Return the names of the arguments that are empty lists of tensors."""
    arrays = (p.name for p in prototype.arguments if p.is_tensor_array)
    return [name for name in arrays if isinstance(case.arguments[name], list) and not case.arguments[name]]


@cache
def _special_kinds(domain: Domain, count: int, dtype: Dtype) -> tuple[bool, bool]:
    """Sample `count` elements of a domain and look for special values.

    Subnormal numbers and negative zeros count only if their share exceeds `CHANCE_SHARE`.

    Returns:
        Whether the sample contains NaN, infinities or subnormal numbers, and whether it contains these or negative
        zeros.
    """
    parts = _sample_parts(domain, count, dtype)
    subnormal = max(is_subnormal(part, dtype).mean() for part in parts)
    zeros = max(((part == 0) & np.signbit(part)).mean() for part in parts)
    is_special = bool(subnormal > CHANCE_SHARE or not all(np.isfinite(part).all() for part in parts))
    return is_special, is_special or bool(zeros > CHANCE_SHARE)


def _sample_parts(domain: Domain, count: int, dtype: Dtype) -> Sequence[NDArray[Any]]:
    """Return samples of a domain for `count` elements, real and imaginary parts separately."""
    rng = np.random.default_rng(0)
    samples = [np.asarray(domain(rng, count, dtype)).ravel() for _ in range(-(-SAMPLE_MINIMUM // count))]
    values: NDArray[Any] = np.concatenate(samples)
    return (values.real, values.imag) if np.iscomplexobj(values) else (values,)


def _special_numbers(prototype: Prototype, case: Case) -> list[str]:
    """Return the names of scalar operands that are NaN, infinite or −0.0, except orders of norms."""
    operands = (p for p in prototype.arguments if issubclass(p.annotation, Scalar) and not p.fact(facts.NormOrder))
    values = ((p.name, case.arguments[p.name]) for p in operands)
    numbers = [(name, value) for name, value in values if isinstance(value, float)]
    return [name for name, value in numbers if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0)]


def _omitted(prototype: Prototype, case: Case) -> Iterator[str]:
    """Yield the names of omitted optional arguments and results, except arguments without effect in this call."""
    missing = [p.name for p in prototype.arguments if p.optional and case.arguments[p.name] is None]
    yield from (name for name in missing if prototype.has_effect(name, case.arguments))
    yield from (name for name, result in case.results.items() if result is None)
