"""Knowledge about the valid calls of a function: its prototype, and what all of its cases have in common.

No prototype states the relations between the sizes of a call (of a product, a convolution, a loss). But every case
satisfies them. If all axes of size 5 get size 9 in all tensors, the relations still hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from typing import Any, TypeVar, final

import numpy as np

from diopi_proto import facts
from diopi_proto import parameters as kinds
from diopi_proto.dtypes import category, leading_dtype
from diopi_proto.interface import lookup, prototypes
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, MemoryFormat
from diopi_test.cases.case import Case, CaseClass, ResultOf, TensorSpec
from diopi_test.cases.domains import Domain, integer_range
from diopi_test.cases.layouts import contiguous, expanded
from diopi_test.cases.selection import select_cases
from lib_rt.formats import format_of

T = TypeVar("T")

ANY_RANK = 4
"""A function whose cases have tensors of so many ranks takes tensors of any."""

SAMPLE = 256
"""The number of elements that are drawn from a domain to find its range."""


@cache
def known(function: str) -> Known:
    """Return the knowledge about the function with this name."""
    return Known(lookup(function))


@final
@dataclass(frozen=True, eq=False)
class Known:
    """The knowledge about the valid calls of a function."""

    prototype: Prototype

    @cached_property
    def cases(self) -> Sequence[Case]:
        """Its own cases, the simplest first, but for those that PyTorch leaves open."""
        legal = [case for case in select_cases(self.prototype.name, "full") if case.case_class.is_demanded]
        usual = leading_dtype(self.prototype.dtypes) if self.prototype.dtypes else None
        return sorted(legal, key=lambda case: (case.case_class != "basic", case.dtype is not usual, elements(case)))

    def of_category(self, dtype: Dtype) -> Sequence[Case]:
        """The cases of element types of the same kind: bool, integers, floating or complex numbers."""
        return [case for case in self.cases if category(case.dtype) == category(dtype)]

    @cached_property
    def fixed(self) -> frozenset[tuple[str, int]]:
        """The axes, by tensor and number from the last one, whose size is the same in all cases with another rest."""
        seen: dict[tuple[str, int], set[int]] = {}
        for case in self.cases:
            for name, spec in named_tensors(case):
                for axis in range(1, len(spec.shape) + 1):
                    seen.setdefault((name, -axis), set()).add(spec.shape[-axis])
        return frozenset(place for place, sizes in seen.items() if len(sizes - {0, 1}) == 1 and len(self.cases) > 3)

    @cached_property
    def linked(self) -> frozenset[str]:
        """The whole-number attributes that are sizes of the call's tensors in every case: they change with these."""
        free = [p for p in self.attributes if p.annotation in WHOLE and not p.fact(facts.NamesAxis)]
        return frozenset(p.name for p in free if self._is_linked(p.name))

    def _is_linked(self, name: str) -> bool:
        case_values = [
            (case, as_tuple(case.arguments[name])) for case in self.cases if case.arguments[name] is not None
        ]
        return len({value for _, value in case_values}) > 1 and all(
            set(v) <= sizes_of(case) | {1} for case, v in case_values
        )

    @cached_property
    def drawing(self) -> frozenset[str]:
        """The attributes that decide whether a call draws random numbers, and so which tensors a forward call saves."""
        needed = [p.fact(facts.NeededWhere) for p in self.prototype.arguments if p.annotation in kinds.GENERATORS]
        return frozenset(fact.argument for fact in needed if fact)

    @cached_property
    def attributes(self) -> Sequence[Parameter]:
        """The arguments that are not tensors."""
        passed = [p for p in self.prototype.arguments if not p.is_tensor and not p.is_tensor_array]
        return [p for p in passed if p.annotation not in (kinds.Pointer, kinds.Generator, kinds.Generators)]

    @cached_property
    def takes_any_rank(self) -> bool:
        """Whether tensors may have more axes."""
        return self.prototype.elementwise or len({rank(case) for case in self.cases}) >= ANY_RANK

    @cached_property
    def broadcast(self) -> frozenset[str]:
        """The tensors whose shapes differ from the first one's in some case: in element-wise functions, they repeat."""
        return frozenset(
            name
            for case in self.cases
            for name, spec in named_tensors(case)
            if spec.shape != next(shape for shape in map(_shape, case.arguments.values()) if shape is not None)
        )

    @cached_property
    def laid(self) -> frozenset[str]:
        """The tensors, arguments and results, that lie otherwise than row by row in some case."""
        not_contiguous = {
            name for case in self.cases for name, spec in named_tensors(case) if spec.layout is not contiguous
        }
        allocated = {
            n for case in self.cases for n, result in case.results.items() if result and result.layout != contiguous
        }
        return frozenset(not_contiguous | allocated)

    @cached_property
    def mixes_types(self) -> bool:
        """Whether the operands have several types in some case, and are promoted to a common type."""
        names = {p.name for p in self.prototype.operands}
        types = [{spec.dtype for name, spec in named_tensors(case) if name in names} for case in self.cases]
        return any(len(dtypes) > 1 for dtypes in types)

    @cached_property
    def may_be_expanded(self) -> frozenset[str]:
        """The tensors that are expanded views in some case."""
        return frozenset(n for case in self.cases for n, spec in named_tensors(case) if spec.layout is expanded)

    @cached_property
    def may_be_empty(self) -> bool:
        """Whether some case has tensors without elements."""
        return any(0 in sizes_of(case) for case in self.cases)

    @cached_property
    def forward(self) -> Prototype | None:
        """The function whose gradient this is."""
        return next((p for p in prototypes().values() if p.backward == self.prototype.name and p.form == "plain"), None)

    def is_determined_by_attributes(self, case: Case) -> bool:
        """Return whether a case has data computed for its attributes, or a result layout that they determine."""
        computed = [spec.compute for _, spec in named_tensors(case) if spec.compute is not None]
        allocated = [p.name for p in self.prototype.results if p.is_callee_allocated]
        results = [case.results.get(name) for name in allocated]
        lies = any(override is not None and override.layout is not contiguous for override in results)
        is_shaped = not self.takes_tensors and any(
            override is not None and override.shape for override in case.results.values()
        )
        return (
            lies
            or is_shaped
            or self.orders_memory
            or any(not isinstance(override, ResultOf) or override.extra_arguments for override in computed)
        )

    @cached_property
    def choices(self) -> frozenset[tuple[str, str, int]]:
        """The truth values, texts and other choices that cases make, with the kind of types they make them for."""
        return frozenset(
            (p.name, str(case.arguments[p.name]), category(case.dtype))
            for case in self.cases
            for p in self.attributes
            if is_choice(p)
        )

    @cached_property
    def orders_memory(self) -> bool:
        """Whether an attribute determines the layout of a result, which may depend on the layouts of inputs."""
        return any(p.annotation is MemoryFormat for p in self.attributes)

    @cached_property
    def takes_tensors(self) -> bool:
        """Whether some arguments are tensors."""
        return any(p.is_tensor or p.is_tensor_array for p in self.prototype.arguments)

    def range_of(self, name: str) -> tuple[float, float]:
        """Return the range of a floating-point or complex tensor in all cases except those with special values."""
        return _range_of(self, name)

    def is_usual(self, case: Case) -> bool:
        """Return whether the floating-point tensors of a call are in the range of the cases without special values."""
        specs = [(name, spec) for name, spec in named_tensors(case) if category(spec.dtype) >= 2 and not spec.compute]
        values = [(self.range_of(name), sampled(spec).real) for name, spec in specs]
        return all(((low <= samples) & (samples <= high)).all() for (low, high), samples in values)

    def is_fixed_for(self, name: str, case: Case) -> bool:
        """Return whether a number of a generated case is representable in the tested type or occurs in a case.

        Numbers below the normal numbers of the type don't count, because some vendors flush them. An integer with an
        integer
        tensor wraps around unless PyTorch rejects it (`unheld`). Any other number out of range needs a case with the
        same
        number and the same choices.

        Returns:
            Whether the case may have the number.
        """
        number, dtype = case.arguments[name], case.dtype
        if category(dtype) == 0 or not math.isfinite(number) or (category(dtype) == 1 and isinstance(number, int)):
            return True
        low, high = (
            integer_range(dtype) if category(dtype) == 1 else (-format_of(dtype).largest, format_of(dtype).largest)
        )
        vanishes = category(dtype) > 1 and 0 < abs(number) < format_of(dtype).tiny
        return (low <= number <= high and not vanishes) or any(
            all(known_case.arguments[attribute] == case.arguments[attribute] for attribute in (name, *self._choices))
            for known_case in self.cases
            if known_case.dtype is dtype
        )

    @cached_property
    def _choices(self) -> Sequence[str]:
        return [p.name for p in self.attributes if is_choice(p)]

    def values_of(self, name: str, dtype: Dtype) -> Sequence[Any]:
        """Return the values of an attribute in the cases of a kind of types; 1, 1.0 and True are three values."""
        candidates = (case.arguments[name] for case in self.of_category(dtype) or self.cases)
        return list({repr(value): value for value in candidates}.values())


@cache
def _range_of(known: Known, name: str) -> tuple[float, float]:
    usual = [case for case in known.cases if case.case_class is not CaseClass.special]
    specs = [spec for case in usual for n, spec in named_tensors(case) if n == name and category(spec.dtype) >= 2]
    samples = [sampled(spec).real for spec in specs if spec.compute is None][:40]
    finite = [values[np.isfinite(values)] for values in samples]
    low = min((values.min() for values in finite if values.size), default=0.0)
    return float(low), float(max((values.max() for values in finite if values.size), default=0.0))


def sampled(spec: TensorSpec) -> Any:
    """Some values that a tensor's domain gives; none if it gives none to a tensor of this size."""
    return _sampled(spec.domain, spec.dtype, math.prod(spec.shape))


@cache
def _sampled(domain: Domain, dtype: Dtype, count: int) -> Any:
    rng = np.random.default_rng(0)
    try:
        return np.asarray(domain(rng, SAMPLE, dtype))
    except ValueError:  # a domain of tensors of one size
        try:
            return np.asarray(domain(rng, count, dtype)).ravel()
        except ValueError:  # of another one: the tensor has been resized
            return np.empty(0)


WHOLE = (kinds.i64, kinds.const_i64, kinds.i32, kinds.c_int, kinds.Size, kinds.const_Size)
"""The kinds of attributes that are whole numbers."""


def is_choice(parameter: Parameter) -> bool:
    """Return whether an attribute is a truth value, a text, or an enumeration."""
    kind = parameter.annotation
    return issubclass(kind, kinds.boolean | kinds.Text | Enum)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """A list of numbers, or a number, as a tuple."""
    return tuple(value) if isinstance(value, tuple | list | range) else (value,)


def named_tensors(case: Case) -> Iterator[tuple[str, TensorSpec]]:
    """The tensors of a case, those among them that others are computed from, with their arguments' names."""
    return ((name, spec) for name, value in case.arguments.items() for spec in TensorSpec.all_in(value))


def sizes_of(case: Case) -> frozenset[int]:
    """The sizes of all axes of a case's tensors."""
    return frozenset(size for _, spec in named_tensors(case) for size in spec.shape)


def elements(case: Case) -> int:
    """The number of elements of all tensors of a case."""
    return sum(math.prod(spec.shape) for _, spec in named_tensors(case))


def rank(case: Case) -> int:
    """The largest rank of a case's tensors."""
    return max((len(spec.shape) for _, spec in named_tensors(case)), default=0)


def with_tensors(case: Case, change: Callable[[str, TensorSpec], TensorSpec]) -> Mapping[str, Any]:
    """The arguments of a case with its tensors changed."""

    def changed(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [changed(name, entry) for entry in value]
        return change(name, value) if isinstance(value, TensorSpec) else value

    return {name: changed(name, value) for name, value in case.arguments.items()}


def _shape(value: Any) -> tuple[int, ...] | None:
    return next((spec.shape for spec in TensorSpec.all_in(value)), None)
