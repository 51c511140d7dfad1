"""`Case` describes one call of one function without its data; `TensorSpec` describes a tensor argument."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Number
from diopi_test.cases.domains import Domain, normal
from diopi_test.cases.layouts import Layout, contiguous
from lib_rt.dtypes import to_numpy

Values = Mapping[str, Any]
"""Argument values by name: an array in float64, complex128, int64 or bool for a tensor; a number, a string or None."""


class CaseClass(StrEnum):
    """What a case requires of a vendor beyond the function's first case. Reports count each class separately."""

    basic = "basic"
    """Nothing beyond the function's first case."""
    types = "types"
    """Other element types than the leading type, or several types."""
    layout = "layout"
    """Non-contiguous tensors."""
    special = "special"
    """NaN, infinities, subnormal numbers or negative zeros in the data."""
    empty = "empty"
    """Tensors without elements."""
    optional = "optional"
    """Omitted optional arguments or results."""
    callers = "callers"
    """Habits of callers: other element types, unused arguments, unusual values, and the ranks, NULLs
    and empty lists that the prototype's call forms describe.
    """
    aliased = "aliased"
    """One tensor passed for several parameters, or inputs whose storages overlap."""
    concurrent = "concurrent"
    """Calls in flight at the same time, without synchronization between them."""
    soak = "soak"
    """Many calls, one after another, whose results and memory are watched."""
    open = "open"
    """Calls that PyTorch rejects, or whose results PyTorch leaves open: only the standard defines their results."""
    negative = "negative"
    """Negative tests: invalid calls, which the vendor must reject without changing anything."""

    @classmethod
    def _missing_(cls, value: object) -> CaseClass | None:
        """Return the member that had the name `value` in older baselines, logs and reports; None for other values."""
        return cls.negative if value == cls.negative.former_name else None

    @property
    def former_name(self) -> str:
        """Return the name of the class in baselines, logs, reports and options of earlier versions."""
        return "refusal" if self is CaseClass.negative else self.value

    @property
    def is_demanded(self) -> bool:
        """Return whether a vendor must pass cases of this class; other classes count only with `--strict`."""
        return self not in (CaseClass.open, CaseClass.negative)


@dataclass(frozen=True)
class ResultOf:
    """A tensor argument that the reference computes with another function, from the arguments before it.

    For example, the argument `norm` of `diopiNormBackward` is the result of `diopiNorm`.

    Attributes:
        function, result: The names of the other function and of its result.
        argument_names: For parameters of the other function, the name of the case's argument if the names differ:
            `{"input": "self"}`.
        extra_arguments: Arguments of the other function that the case does not have.
        unspecified: The value of elements that the other function leaves open; None keeps the reference's values.
    """

    function: str
    result: str = "out"
    argument_names: Mapping[str, str] = field(default_factory=dict)
    _: KW_ONLY
    extra_arguments: Mapping[str, Any] = field(default_factory=dict)
    unspecified: float | None = 0.0


@dataclass(frozen=True)
class TensorSpec:
    """A tensor argument.

    Attributes:
        shape: The sizes.
        dtype: The element type.
        domain: The domain that values are drawn from if `compute` is None.
        layout: The positions of the elements in memory.
        compute: A function that returns the values of this tensor. It takes the values of the arguments that precede
            the tensor in the case. Or the result of another function (`ResultOf`). None to draw values from `domain`.
    """

    shape: tuple[int, ...]
    dtype: Dtype
    domain: Domain = field(default_factory=normal)
    _: KW_ONLY
    layout: Layout = contiguous
    compute: Callable[[Values], Any] | ResultOf | None = None

    @property
    def storage_bytes(self) -> int:
        """Return the size in bytes of the storage that contains the tensor, including gaps."""
        return self.layout(self.shape).storage_elements * to_numpy(self.dtype).itemsize

    @staticmethod
    def all_in(value: Any) -> Sequence[TensorSpec]:
        """Return the tensor specs in an argument: the argument itself, the specs in a list, or none for others."""
        if isinstance(value, TensorSpec):
            return [value]
        return [entry for entry in value if isinstance(entry, TensorSpec)] if isinstance(value, list) else []

    def has_layout(self, layout: Layout) -> bool:
        """Return whether the elements have the positions that `layout` gives them."""
        return self.layout(self.shape) == layout(self.shape)


@dataclass(frozen=True)
class ResultOverride:
    """The properties of a result tensor that the caller allocates, where they differ from the default.

    Attributes:
        dtype: The element type; None for the type that the prototype derives from the arguments.
        layout: The positions of the elements in memory.
        shape: The sizes if the function leaves them to the caller; None for the shape of the reference's result.
    """

    dtype: Dtype | None = None
    layout: Layout = contiguous
    shape: tuple[int, ...] | None = None


_HUGE = 2**31
"""The size in bytes above which signed 32-bit offsets cannot address a whole storage."""


@dataclass(frozen=True)
class Case:
    """One call of one function.

    Attributes:
        label: Unique within the function; starts with the dtype under test. `function[label]` is the case ID.
        dtype: The element type under test.
        arguments: A value for every argument of the prototype: a `TensorSpec`, a list of them, None, or an attribute.
            For a bare address, a `TensorSpec` stands for the address of the tensor's memory. Names that start with `_`
            are tensors that are not passed; later arguments are computed from them.
        results: By result name, a `ResultOverride`, or None if the caller omits an optional result.
        smoke: Whether the case belongs to the smoke level. Smoke cases are called more than once.
        exact: Whether every intermediate value is exactly representable, so that no result has a rounding error; or the
            names of the results of which this is true.
        case_class: The class; `basic` if `diopi_test.cases.selection.classes` derives it.
        non_discriminating: The reason why the case must be as it is although a wrong result could pass it; empty
            for all other cases (`diopi_test.quality.non_discriminating`).
        large: Whether the case belongs to the level with the sizes of models instead of the full level.
        period: The number of elements after which all tensors repeat, arguments and results; 0 if they do not. The
            reference evaluates only one period.
    """

    label: str
    dtype: Dtype
    arguments: Mapping[str, Any]
    _: KW_ONLY
    results: Mapping[str, ResultOverride | None] = field(default_factory=dict)
    smoke: bool = False
    exact: bool | Collection[str] = False
    case_class: CaseClass = CaseClass.basic
    non_discriminating: str = ""
    large: bool = False
    period: int = 0

    @property
    def tensors(self) -> list[tuple[str, TensorSpec]]:
        """Return the tensors of the case with the names of their arguments, including tensors that are not passed."""
        return [(name, spec) for name, value in self.arguments.items() for spec in TensorSpec.all_in(value)]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of all tensors of the case."""
        return [spec.shape for _, spec in self.tensors]

    def map_tensors(self, change: Callable[[str, TensorSpec], TensorSpec]) -> dict[str, Any]:
        """Return the arguments with each tensor replaced by `change(name, tensor)`, also in lists."""

        def replace_tensors(name: str, value: Any) -> Any:
            """Return an argument with the tensors in it replaced."""
            if isinstance(value, list):
                return [replace_tensors(name, entry) for entry in value]
            return change(name, value) if isinstance(value, TensorSpec) else value

        return {name: replace_tensors(name, value) for name, value in self.arguments.items()}

    @property
    def is_huge(self) -> bool:
        """Return whether a tensor argument has a storage of more than 2^31 bytes."""
        return any(spec.storage_bytes > _HUGE for name, spec in self.tensors if not name.startswith("_"))

    @property
    def is_giant(self) -> bool:
        """Return whether the case is huge or has a period, and so has too many elements to run it with every mutant."""
        return self.is_huge or self.period > 0

    def operands(self, prototype: Prototype) -> tuple[list[TensorSpec], list[Number]]:
        """Return the tensors and the numbers that determine the common element type; omitted arguments are skipped."""
        values = [self.arguments[p.name] for p in prototype.operands if self.arguments[p.name] is not None]
        tensors = [value for value in values if isinstance(value, TensorSpec)]
        return tensors, [value for value in values if not isinstance(value, TensorSpec)]

    def is_exact(self, result: str) -> bool:
        """Return whether the result of this name has no rounding errors for the values of the case."""
        return self.exact if isinstance(self.exact, bool) else result in self.exact


CaseMaker = Callable[[Prototype], Iterable[Case]]
"""Yields the cases of a function, or of a form of it (such as the in-place form), for the prototype."""

_Reasons = Mapping[str, str]
"""Reasons why cases do not discriminate, by a regular expression.

The expression matches labels without the element type, up to a dash or the end.
"""

_makers: dict[str, tuple[CaseMaker, _Reasons]] = {}
"""The registered case maker and its reasons, by function name."""


def cases_for(*names: str, non_discriminating: _Reasons | None = None) -> Callable[[CaseMaker], CaseMaker]:
    """Register the decorated function as the maker of the cases of these functions and of their forms.

    Args:
        names: The names of the functions.
        non_discriminating: By a regular expression for labels without the element type, the reason of cases that do not
            state one themselves (`Case.non_discriminating`).

    Returns:
        A decorator for a function that takes the prototype of a function or form and yields its cases.

    Raises:
        ValueError: The decorator was applied, and a function already has a maker.
    """

    def register(maker: CaseMaker) -> CaseMaker:
        for name in names:
            if name in _makers:
                raise ValueError(f"{name} has two case makers, expected one")
            _makers[name] = maker, non_discriminating or {}
        return maker

    return register


def _no_cases(prototype: Prototype) -> Iterable[Case]:
    """Return no cases; the default of functions without a case maker."""
    return ()


def registered_cases(prototype: Prototype, *, large: bool = False) -> tuple[Case, ...]:
    """Return the cases that the maker of a function yields.

    Args:
        prototype: The prototype of the function or form.
        large: Whether to return the large cases instead of all other cases.

    Returns:
        The cases; none if the function has no maker.
    """
    maker, _ = _makers.get(prototype.name) or _makers.get(prototype.base) or (_no_cases, {})
    return _cases_of(maker, prototype)[large]


@cache
def _cases_of(maker: CaseMaker, prototype: Prototype) -> tuple[tuple[Case, ...], tuple[Case, ...]]:
    """Return the cases that a function's maker yields, as two tuples: those that are not large, and the large ones."""
    _, reasons = _makers.get(prototype.name) or _makers.get(prototype.base) or (_no_cases, {})
    cases = [_with_reason(case, reasons) for case in maker(prototype)]
    return tuple(case for case in cases if not case.large), tuple(case for case in cases if case.large)


def check_cases(prototype: Prototype, cases: Sequence[Case]) -> None:
    """Check that labels are unique and that arguments match the prototype.

    Raises:
        ValueError: Several cases have one label, or the names of a case's arguments are not the prototype's.
    """
    labels = [case.label for case in cases]
    if repeated := sorted({label for label in labels if labels.count(label) > 1}):
        raise ValueError(
            f"{prototype.name} has several cases with the labels {', '.join(repeated)}, expected unique labels"
        )
    for case in cases:
        _check_arguments(prototype, case)


def _with_reason(case: Case, reasons: _Reasons) -> Case:
    """Return the case with the first reason whose expression matches its label, unless it already has a reason."""
    label = case.label.partition("-")[2]
    matching_reasons = (reason for begin, reason in reasons.items() if re.match(f"(?:{begin})(?:-|$)", label))
    reason = case.non_discriminating or next(matching_reasons, "")
    return replace(case, non_discriminating=reason) if reason != case.non_discriminating else case


def _check_arguments(prototype: Prototype, case: Case) -> None:
    """Raise ValueError if the case's arguments are not the function's, apart from names that start with `_`."""
    expected = [parameter.name for parameter in prototype.arguments]
    actual = [name for name in case.arguments if name in expected or not name.startswith("_")]
    if sorted(actual) != sorted(expected):
        raise ValueError(f"{prototype.name}[{case.label}] has the arguments {actual}, expected {expected}")
