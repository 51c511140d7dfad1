"""Knowledge about the valid calls of a function: its prototype, and the properties that all of its cases share.

No prototype states the relations between the sizes of a call (of a product, a convolution, a loss). But every case
satisfies them. If all axes of size 5 get size 9 in all tensors, the relations still hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from diopi_test.cases.domains import Domain
from diopi_test.cases.layouts import Layout, contiguous, expanded, strides
from diopi_test.cases.selection import select_cases
from lib_rt.dtypes import integer_range
from lib_rt.formats import format_of

T = TypeVar("T")

MIN_RANKS_FOR_ANY = 4
"""If the cases of a function have tensors of this many different ranks, the function accepts any rank."""

SAMPLE_SIZE = 256
"""The number of elements that are drawn from a domain to find its range."""


@cache
def knowledge_of(function: str) -> ValidCallKnowledge:
    """Return the knowledge about the valid calls of the function with this name."""
    return ValidCallKnowledge(lookup(function))


@final
@dataclass(frozen=True, eq=False)
class ValidCallKnowledge:
    """The knowledge about the valid calls of a function, derived from its prototype and its cases."""

    prototype: Prototype

    @cached_property
    def cases(self) -> Sequence[Case]:
        """The cases of the function, the simplest first, without cases whose results PyTorch leaves open.

        Tensors with fixed strides are row-major, because the strides would not fit the shapes that the search draws.
        """
        selected = select_cases(self.prototype.name, "full")
        legal = [_without_fixed_strides(case) for case in selected if case.case_class.is_demanded]
        usual = leading_dtype(self.prototype.dtypes) if self.prototype.dtypes else None
        return sorted(
            legal, key=lambda case: (case.case_class != "basic", case.dtype is not usual, count_elements(case))
        )

    def cases_of_category(self, dtype: Dtype) -> Sequence[Case]:
        """Return the cases whose element type is of the same category: bool, integer, floating-point or complex."""
        return [case for case in self.cases if category(case.dtype) == category(dtype)]

    @cached_property
    def fixed_axes(self) -> frozenset[tuple[str, int]]:
        """The axes with the same size in all cases, apart from 0 and 1, as tensor name and negative axis.

        Element-wise functions have none. Three or fewer cases don't show that an axis is fixed. If the function accepts
        any rank, neither do three or fewer shapes: few cases have as many axes as the tensor of the highest rank.
        """
        if self.prototype.elementwise:
            return frozenset()
        occurring: dict[tuple[str, int], set[tuple[int, ...]]] = {}
        for case in self.cases:
            for name, spec in case.tensors:
                for axis in range(-len(spec.shape), 0):
                    occurring.setdefault((name, axis), set()).add(spec.shape)
        return frozenset(
            (name, axis)
            for (name, axis), shapes in occurring.items()
            if len({shape[axis] for shape in shapes} - {0, 1}) == 1
            and (len(shapes) if self.accepts_any_rank else len(self.cases)) > 3
        )

    @cached_property
    def size_attributes(self) -> frozenset[str]:
        """The integer attributes that equal sizes of the call's tensors in every case, and must change with them."""
        free = [p for p in self.attributes if p.annotation in INTEGER_KINDS and not p.fact(facts.NamesAxis)]
        return frozenset(p.name for p in free if self._equals_sizes(p.name))

    def _equals_sizes(self, name: str) -> bool:
        """Return whether an attribute varies between cases and always consists of sizes of the case's tensors."""
        case_values = [
            (case, as_tuple(case.arguments[name])) for case in self.cases if case.arguments[name] is not None
        ]
        return len({value for _, value in case_values}) > 1 and all(
            set(v) <= all_sizes(case) | {1} for case, v in case_values
        )

    @cached_property
    def drawing_attributes(self) -> frozenset[str]:
        """The attributes that decide whether a call draws random numbers, and so which tensors a forward call saves."""
        conditions = [p.fact(facts.NeededWhere) for p in self.prototype.arguments if p.annotation in kinds.GENERATORS]
        return frozenset(fact.argument for fact in conditions if fact)

    @cached_property
    def attributes(self) -> Sequence[Parameter]:
        """The parameters of arguments other than tensors, pointers and generators."""
        passed = [p for p in self.prototype.arguments if not p.is_tensor and not p.is_tensor_array]
        return [p for p in passed if p.annotation not in (kinds.Pointer, kinds.Generator, kinds.Generators)]

    @cached_property
    def accepts_any_rank(self) -> bool:
        """Whether calls may have tensors with more axes than the tensors of the cases."""
        return self.prototype.elementwise or len({largest_rank(case) for case in self.cases}) >= MIN_RANKS_FOR_ANY

    @cached_property
    def broadcast_tensors(self) -> frozenset[str]:
        """The tensors whose shape differs from the first tensor's in some case, so that they are broadcast."""
        return frozenset(
            name
            for case in self.cases
            for name, spec in case.tensors
            if spec.shape != next(shape for shape in map(_first_shape, case.arguments.values()) if shape is not None)
        )

    @cached_property
    def strided_tensors(self) -> frozenset[str]:
        """The arguments and results that have a layout other than row-major in some case."""
        not_contiguous = {name for case in self.cases for name, spec in case.tensors if spec.layout is not contiguous}
        allocated = {
            n for case in self.cases for n, result in case.results.items() if result and result.layout != contiguous
        }
        return frozenset(not_contiguous | allocated)

    @cached_property
    def mixes_types(self) -> bool:
        """Whether the operands have different types in some case, and are promoted to a common type."""
        names = {p.name for p in self.prototype.operands}
        types = [{spec.dtype for name, spec in case.tensors if name in names} for case in self.cases]
        return any(len(dtypes) > 1 for dtypes in types)

    @cached_property
    def may_be_expanded(self) -> frozenset[str]:
        """The tensors that are expanded views in some case."""
        return frozenset(n for case in self.cases for n, spec in case.tensors if spec.layout is expanded)

    @cached_property
    def may_be_empty(self) -> bool:
        """Whether some case has tensors without elements."""
        return any(0 in all_sizes(case) for case in self.cases)

    @cached_property
    def forward_function(self) -> Prototype | None:
        """The prototype of the forward function if this function computes its gradient; else None."""
        return next((p for p in prototypes().values() if p.backward == self.prototype.name and p.form == "plain"), None)

    def is_determined_by_attributes(self, case: Case) -> bool:
        """Return whether a case has data or a result layout that depend on its attributes."""
        rules = [spec.compute for _, spec in case.tensors if spec.compute is not None]
        allocated = [p.name for p in self.prototype.results if p.is_callee_allocated]
        results = [case.results.get(name) for name in allocated]
        has_layout = any(override is not None and override.layout is not contiguous for override in results)
        is_shaped = not self.has_tensor_arguments and any(
            override is not None and override.shape for override in case.results.values()
        )
        return (
            has_layout
            or is_shaped
            or self.has_layout_attribute
            or any(not isinstance(rule, ResultOf) or rule.extra_arguments for rule in rules)
        )

    @cached_property
    def observed_choices(self) -> frozenset[tuple[str, str, int]]:
        """The choices (truth values, texts, enumerators) in the cases, as name, value and category of element types."""
        return frozenset(
            (p.name, str(case.arguments[p.name]), category(case.dtype))
            for case in self.cases
            for p in self.attributes
            if is_choice(p)
        )

    @cached_property
    def has_layout_attribute(self) -> bool:
        """Whether an attribute determines the layout of a result, which may depend on the layouts of inputs."""
        return any(p.annotation is MemoryFormat for p in self.attributes)

    @cached_property
    def has_tensor_arguments(self) -> bool:
        """Whether some arguments are tensors."""
        return any(p.is_tensor or p.is_tensor_array for p in self.prototype.arguments)

    def value_range(self, name: str) -> tuple[float, float]:
        """Return the smallest and the largest value of a floating-point or complex tensor.

        Cases with special values don't count. Only samples of the values are drawn, and only the real parts of complex
        numbers count. The range is (0, 0) if there is no value.
        """
        return _sampled_range(self, name)

    def is_in_usual_range(self, case: Case) -> bool:
        """Return whether all floating-point tensors of a case have values in the range of the regular cases."""
        specs = [(name, spec) for name, spec in case.tensors if category(spec.dtype) >= 2 and not spec.compute]
        values = [(self.value_range(name), sample_domain(spec).real) for name, spec in specs]
        return all(((low <= samples) & (samples <= high)).all() for (low, high), samples in values)

    def is_number_allowed(self, name: str, case: Case) -> bool:
        """Return whether a number of a generated case is representable in the tested type or occurs in a case.

        Numbers below the normal numbers of the type don't count, because some vendors flush them. An integer with an
        integer tensor wraps around unless PyTorch rejects it (`is_rejected`). Any other number out of range needs a
        case with the same number and the same choices.

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
            all(
                known_case.arguments[attribute] == case.arguments[attribute]
                for attribute in (name, *self._choice_names)
            )
            for known_case in self.cases
            if known_case.dtype is dtype
        )

    @cached_property
    def _choice_names(self) -> Sequence[str]:
        """The names of the attributes that are choices."""
        return [p.name for p in self.attributes if is_choice(p)]

    def observed_values(self, name: str, dtype: Dtype) -> Sequence[Any]:
        """Return the distinct values of an attribute in the cases of the category of `dtype`, or else in all cases.

        1, 1.0 and True are different values.
        """
        candidates = (case.arguments[name] for case in self.cases_of_category(dtype) or self.cases)
        return list({repr(value): value for value in candidates}.values())


@cache
def _sampled_range(knowledge: ValidCallKnowledge, name: str) -> tuple[float, float]:
    """Return the smallest and the largest finite value of a tensor in samples, as `value_range` describes."""
    usual = [case for case in knowledge.cases if case.case_class is not CaseClass.special]
    specs = [spec for case in usual for n, spec in case.tensors if n == name and category(spec.dtype) >= 2]
    samples = [sample_domain(spec).real for spec in specs if spec.compute is None][:40]
    finite = [values[np.isfinite(values)] for values in samples]
    low = min((values.min() for values in finite if values.size), default=0.0)
    return float(low), float(max((values.max() for values in finite if values.size), default=0.0))


def sample_domain(spec: TensorSpec) -> Any:
    """Return some values from the domain of a tensor; an empty array if the domain can't produce this size."""
    return _draw_sample(spec.domain, spec.dtype, math.prod(spec.shape))


@cache
def _draw_sample(domain: Domain, dtype: Dtype, count: int) -> Any:
    """Return values that a domain draws: SAMPLE_SIZE values if possible, otherwise `count` values or none."""
    rng = np.random.default_rng(0)
    try:
        return np.asarray(domain(rng, SAMPLE_SIZE, dtype))
    except ValueError:  # a domain of tensors of one size
        try:
            return np.asarray(domain(rng, count, dtype)).ravel()
        except ValueError:  # the domain needs another size, because the tensor was resized
            return np.empty(0)


INTEGER_KINDS = (kinds.i64, kinds.const_i64, kinds.i32, kinds.c_int, kinds.Size, kinds.const_Size)
"""The kinds of parameters that are integers or lists of integers."""


def is_choice(parameter: Parameter) -> bool:
    """Return whether an attribute is a truth value, a text, or an enumeration."""
    kind = parameter.annotation
    return issubclass(kind, kinds.boolean | kinds.Text | Enum)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a number or a list of numbers as a tuple."""
    return tuple(value) if isinstance(value, tuple | list | range) else (value,)


def all_sizes(case: Case) -> frozenset[int]:
    """Return the sizes of all axes of a case's tensors."""
    return frozenset(size for shape in case.shapes for size in shape)


def count_elements(case: Case) -> int:
    """Return the number of elements of all tensors of a case."""
    return sum(map(math.prod, case.shapes))


def largest_rank(case: Case) -> int:
    """Return the largest rank of a case's tensors."""
    return max(map(len, case.shapes), default=0)


def _without_fixed_strides(case: Case) -> Case:
    """Return a case whose arguments and results are row-major in place of fixed strides."""
    arguments = case.map_tensors(lambda _, spec: replace(spec, layout=_general_layout(spec.layout)))
    results = {
        name: replace(override, layout=_general_layout(override.layout)) if override else override
        for name, override in case.results.items()
    }
    return replace(case, arguments=arguments, results=results)


def _general_layout(layout: Layout) -> Layout:
    """Return a layout that fits every shape: row-major in place of fixed strides."""
    return contiguous if isinstance(layout, type(strides())) else layout


def _first_shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of the first tensor in an argument; None if the argument has no tensor."""
    return next((spec.shape for spec in TensorSpec.all_in(value)), None)
