"""Which class a case is of, by what it is: the first of `PRECEDENCE` of which it demands something.

Only that counts which the function's first case does not demand as well: what moves data is tried on NaN from the
start, and an argument that most callers leave out is left out there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto import facts
from diopi_proto.parameters import Scalar
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain
from diopi_test.cases.formats import is_inexact, is_subnormal
from diopi_test.cases.layouts import contiguous
from diopi_test.cases.model import Case, CaseClass, TensorSpec, tensor_specs
from diopi_test.cases.open_calls import why_open
from diopi_test.cases.template import leading_dtype

PRECEDENCE = (CaseClass.special, CaseClass.empty, CaseClass.optional, CaseClass.layout, CaseClass.types)
"""Of a case that makes several demands, the one that counts comes first. What the author of a case says goes before."""

LEAST, MOST = 32, 1 << 16
"""How many elements are drawn to see whether special ones are among them; those of small tensors several times."""

FEW = 1 / 16
"""Part of the elements that may be subnormal or negative zeros by chance."""

Demands = Mapping[CaseClass, frozenset[str]]
"""By class, the parameters of which a case demands it."""


def classify_cases(prototype: Prototype, cases: Sequence[Case], *, int32_indices: bool = False) -> tuple[Case, ...]:
    """Return the cases of a function, all of them, each with its class.

    Args:
        int32_indices: whether the run asks for int32 indices: what is open only for these has a demanded class.
    """
    demands = [_demands(prototype, case) for case in cases]
    given = [_said(prototype, case, int32_indices) for case in cases]
    each = list(zip(cases, demands, given, strict=True))
    usual = _first(prototype, [(case, its) for case, its, said in each if said is None])
    return tuple(replace(case, case_class=said or _class(its, usual)) for case, its, said in each)


def _said(prototype: Prototype, case: Case, int32_indices: bool) -> CaseClass | None:
    """The class that is not derived: of what PyTorch does not serve, and of what its author says."""
    if why_open(prototype, case, int32_indices=int32_indices):
        return CaseClass.open
    return None if case.case_class is CaseClass.basic else case.case_class


def _class(demands: Demands, usual: Demands) -> CaseClass:
    return next((one for one in PRECEDENCE if demands[one] - usual[one]), CaseClass.basic)


def _first(prototype: Prototype, cases: Iterable[tuple[Case, Demands]]) -> Demands:
    """What the first of the cases demands, if there is one: of the leading element type, and of the smoke level."""

    def is_other(one: tuple[Case, Demands]) -> tuple[bool, bool]:
        case, _ = one
        return bool(prototype.dtypes) and case.dtype is not leading_dtype(prototype.dtypes), not case.smoke

    return next((demands for _, demands in sorted(cases, key=is_other)), dict.fromkeys(PRECEDENCE, frozenset()))


def _demands(prototype: Prototype, case: Case) -> Demands:
    """What a case demands, by itself."""
    tensors = [(name, spec) for name, value in case.arguments.items() for spec in tensor_specs(value)]
    passed = [(name, spec) for name, spec in tensors if not name.startswith("_")]
    results = [(name, result) for name, result in case.results.items() if result is not None]
    typed = [(name, spec.dtype) for name, spec in passed]
    typed += [(name, result.dtype) for name, result in results if result.dtype is not None]
    laid = [name for name, spec in passed if spec.layout(spec.shape) != contiguous(spec.shape)]
    return {
        CaseClass.special: frozenset(
            [name for name, spec in tensors if _has_values(spec, _gives_special)]
            + [f"{name}: -0" for name, spec in tensors if _has_values(spec, _gives_any_special)]
            + _special_numbers(prototype, case)
        ),
        CaseClass.empty: frozenset([name for name, spec in passed if 0 in spec.shape] + _empty_lists(prototype, case)),
        CaseClass.optional: frozenset(_left_out(prototype, case)),
        CaseClass.layout: frozenset(laid + [name for name, result in results if result.layout is not contiguous]),
        CaseClass.types: frozenset([case.dtype.name, *(f"{name}: {dtype.name}" for name, dtype in typed)]),
    }


def _has_values(spec: TensorSpec, gives: Callable[[Domain, int, Dtype], bool]) -> bool:
    """Return whether a domain gives certain values for a tensor; what is computed from earlier ones is as it is."""
    count = min(math.prod(spec.shape), MOST)
    return spec.compute is None and is_inexact(spec.dtype) and bool(count) and gives(spec.domain, count, spec.dtype)


def _empty_lists(prototype: Prototype, case: Case) -> list[str]:
    """Return the arrays of tensors that have no entry."""
    arrays = (p.name for p in prototype.arguments if p.is_tensor_array)
    return [name for name in arrays if isinstance(case.arguments[name], list) and not case.arguments[name]]


@cache
def _gives_special(domain: Domain, count: int, dtype: Dtype) -> bool:
    """Return whether a domain gives NaN, infinities, or subnormal numbers other than by chance, in so many elements."""
    parts = _drawn_parts(domain, count, dtype)
    subnormal = max(is_subnormal(part, dtype).mean() for part in parts)
    return subnormal > FEW or not all(np.isfinite(part).all() for part in parts)


@cache
def _gives_any_special(domain: Domain, count: int, dtype: Dtype) -> bool:
    """Return whether a domain gives such values, or negative zeros other than by chance, in so many elements."""
    parts = _drawn_parts(domain, count, dtype)
    zeros = max(((part == 0) & np.signbit(part)).mean() for part in parts)
    return zeros > FEW or _gives_special(domain, count, dtype)


def _drawn_parts(domain: Domain, count: int, dtype: Dtype) -> Sequence[NDArray[Any]]:
    """Return what a domain gives for so many elements, real and imaginary parts by themselves."""
    rng = np.random.default_rng(0)
    drawn = [np.asarray(domain(rng, count, dtype)).ravel() for _ in range(-(-LEAST // count))]
    values: NDArray[Any] = np.concatenate(drawn)
    return (values.real, values.imag) if np.iscomplexobj(values) else (values,)


def _special_numbers(prototype: Prototype, case: Case) -> list[str]:
    """Return the numbers among the operands that are not finite or a negative zero; an order of a norm is none."""
    operands = (p for p in prototype.arguments if issubclass(p.annotation, Scalar) and not p.fact(facts.NormOrder))
    given = ((p.name, case.arguments[p.name]) for p in operands)
    numbers = [(name, value) for name, value in given if isinstance(value, float)]
    return [name for name, value in numbers if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0)]


def _left_out(prototype: Prototype, case: Case) -> Iterator[str]:
    """The arguments and results that may be left out and are, but for those that the call has no use for."""
    missing = [p.name for p in prototype.arguments if p.optional and case.arguments[p.name] is None]
    yield from (name for name in missing if prototype.has_effect(name, case.arguments))
    yield from (name for name, result in case.results.items() if result is None)
