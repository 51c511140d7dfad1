"""Who makes large cases: the table of a family, or small cases of a function stretched to larger shapes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from diopi_proto.families import load_families
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.classes import classify_cases
from diopi_test.cases.large.nans import with_nans
from diopi_test.cases.layouts import Layout, contiguous, strides
from diopi_test.cases.model import Case, CaseClass, ResultOverride, TensorSpec, cases_for, registered_cases
from diopi_test.cases.template import TensorTemplate, leading_dtype

LARGE = "large"
"""The level's name."""

Shape = tuple[int, ...]

SMALL: dict[str, str] = {}
"""By function, why it has no large cases."""


def large_cases(prototype: Prototype) -> Sequence[Case]:
    """The large cases of a function, in order."""
    load_families("diopi_test.cases")
    load_families("diopi_test.cases.large")
    own = registered_cases(prototype, LARGE)
    return *own, *with_nans(prototype, own)


def reason_without_large(function: str) -> str:
    """Why a function has no large cases; empty if nobody says."""
    load_families("diopi_test.cases.large")
    return SMALL.get(function, "")


def exempt_from_large(reason: str, *names: str) -> None:
    """Say why these functions have no large cases."""
    SMALL.update(dict.fromkeys(names, reason))


# Functions of which a small case is made larger


@dataclass(frozen=True)
class PlacedShape:
    """A shape, and where a tensor of it lies."""

    shape: Shape
    layout: Layout


@dataclass(frozen=True)
class Growth:
    """A small case of a function, by its label less the element type, with other shapes and attributes.

    Attributes:
        small_label: The label of the small case, without the element type.
        label: The label of the large case, without the element type.
        arguments: New arguments by name. For a tensor: its shape, a `PlacedShape` or another tensor. For an array of
            tensors: a list of these. Otherwise: the attribute. A tensor that is not named gets the shape of a named
            tensor whose small shape was the same.
        results: By name, the shape of a result that the caller chooses, its layout, or None for an omitted result.
        dtype: The element type; the leading element type by default.
    """

    small_label: str
    label: str
    arguments: Mapping[str, Any]
    results: Mapping[str, Shape | Layout | None]
    dtype: Dtype | None = None

    def of(self, prototype: Prototype, own: Sequence[Case]) -> Case:
        """The case, made of one of the function's `own`; ValueError if there is none to make it of."""
        dtype = leading_dtype(prototype.dtypes) if self.dtype is None and prototype.dtypes else self.dtype
        label = "-".join(filter(None, (dtype.name if dtype is not None else "", self.small_label)))
        small = next((case for case in own if case.label == label), None)
        if small is None:
            raise ValueError(f"{prototype.name} has no case {label} that {self.label} could be made of")
        return replace(
            small,
            label=f"{small.dtype.name}-{self.label}",
            arguments=_grown_arguments(small.arguments, self.arguments),
            results={name: _grown_result(value, self.results.get(name, ...)) for name, value in small.results.items()},
            smoke=False,
            case_class=CaseClass.basic,
        )


def grow(
    small: str,
    label: str,
    dtype: Dtype | None = None,
    /,
    *,
    results: Any = None,  # a mapping as `Growth` has it; Any, as the type of what is unpacked beside it
    **arguments: Any,
) -> Growth:
    """A large case that is like a small one, see `Growth`."""
    return Growth(small, label, arguments, results or {}, dtype)


def register_grown(*names: str, cases: Sequence[Growth]) -> None:
    """Make these the large cases of these functions, and of their forms."""

    def make(prototype: Prototype) -> Iterator[Case]:
        own = registered_cases(prototype)
        return (growth.of(prototype, own) for growth in cases)

    cases_for(*names, level=LARGE)(make)


def _grown_arguments(small: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    shapes = {
        value.shape: grown.shape
        for name, value in small.items()
        if isinstance(value, TensorSpec)
        and value.shape
        and isinstance(grown := _grown(value, given.get(name)), TensorSpec)
    }
    return {
        name: _grown(value, given[name]) if name in given else _grown(value, _shape_of(value, shapes))
        for name, value in small.items()
    }


def _shape_of(value: Any, shapes: Mapping[Shape, Shape]) -> Any:
    """The new shape of a tensor that is not named; an attribute stays."""
    return shapes.get(value.shape, value.shape) if isinstance(value, TensorSpec) else value


def _grown(small: Any, given: Any) -> Any:
    """What stands in the place of an argument of the small case."""
    if isinstance(small, list) and isinstance(given, list):
        return [_grown(_at(small, number), one) for number, one in enumerate(given)]
    if not isinstance(small, TensorSpec):
        return given
    if isinstance(given, TensorTemplate):
        return given.of(small.dtype)
    if isinstance(given, PlacedShape):
        return replace(small, shape=given.shape, layout=given.layout)
    return replace(small, shape=given, layout=contiguous) if isinstance(given, tuple) else given


def _grown_result(small: ResultOverride | None, given: Any) -> ResultOverride | None:
    if small is None or given is None:
        return None
    if isinstance(given, tuple):
        return replace(small, shape=given, layout=contiguous)
    return replace(small, shape=None, layout=contiguous if given is ... else given)


# Element-wise functions


@dataclass(frozen=True)
class Stretch:
    """Shapes and layouts for the operands of an element-wise function; the last ones repeat.

    Attributes:
        narrow: whether the element type is the narrow one of the function instead of the leading one.
        result_layout: The layout of the result.
    """

    label: str
    shapes: tuple[Shape, ...]
    layouts: tuple[Layout, ...] = (contiguous,)
    result_layout: Layout = contiguous
    narrow: bool = False

    def operand(self, number: int) -> tuple[Shape, Layout]:
        """Shape and layout of one operand."""
        return _at(self.shapes, number), _at(self.layouts, number)

    def fits(self, prototype: Prototype, count: int) -> bool:
        """Whether so many operands suit the prototype: an in-place result has the shape of all and shares no memory."""
        shapes = [self.operand(number)[0] for number in range(count)]
        is_shared = 0 in getattr(self.layouts[0], "steps", ())
        return not prototype.is_inplace or (np.broadcast_shapes(*shapes) == shapes[0] and not is_shared)


FAR = strides(17_000_023, 30_011, 3_001, 503, 97, 13, 1)
"""Of an operand whose last elements are further on than float32 counts: at 2^24 elements and more."""

ONE_OPERAND = (
    Stretch("vector", ((70_001,),)),
    Stretch("expanded-rows", ((311, 227),), (strides(0, 1),)),
    Stretch("rank7-far-apart", ((2, 5, 7, 3, 5, 7, 11),), (FAR,), narrow=True),
)
SEVERAL_OPERANDS = (
    Stretch("vector", ((70_001,),)),
    Stretch("expanded-columns", ((263, 257),), (contiguous, strides(1, 0))),
    Stretch("rank7-far-apart", ((2, 5, 7, 3, 5, 7, 11), (7, 3, 1, 7, 1)), (FAR, contiguous), narrow=True),
)

HUGE_ROWS = PlacedShape((70_001, 3), strides(7_703, 1))
"""Rows so far apart that they lie in more than 2^31 bytes."""

HUGE = Stretch("huge", (HUGE_ROWS.shape,), (HUGE_ROWS.layout, contiguous))
WITH_HUGE = ("diopiAbs", "diopiGelu", "diopiAdd", "diopiMulInp", "diopiClampScalar")
"""The element-wise functions that have a huge case."""

USUAL = (CaseClass.basic, CaseClass.types, CaseClass.layout)
"""The classes of cases that are stretched."""


def narrow_type(dtypes: Sequence[Dtype]) -> Dtype:
    """float16, or the function's last type if it does not take that."""
    return Dtype.float16 if Dtype.float16 in dtypes else dtypes[-1]


def register_stretched(*names: str, fixed_shapes: Collection[str] = ()) -> None:
    """Make the small cases of these functions, and of their forms, larger: their values stay those of the small ones.

    `fixed_shapes` names arguments that keep their shapes.
    """
    cases_for(*names, level=LARGE)(lambda prototype: _stretched(prototype, fixed_shapes))


def _stretched(prototype: Prototype, fixed_shapes: Collection[str]) -> Iterator[Case]:
    own = [case for case in classify_cases(prototype, registered_cases(prototype)) if _is_usual(prototype, case)]
    for dtype in dict.fromkeys((leading_dtype(prototype.dtypes), narrow_type(prototype.dtypes))):
        base = next((case for case in own if case.dtype is dtype), None)
        if base is None:
            continue
        in_order = (*(p.name for p in prototype.arguments), *base.arguments)  # those only computed from come last
        names = [
            n for n in dict.fromkeys(in_order) if isinstance(base.arguments[n], TensorSpec) and n not in fixed_shapes
        ]
        of_one_shape = len(_passed(names)) == 1 or prototype.is_gradient
        usual = ONE_OPERAND if of_one_shape else SEVERAL_OPERANDS
        for stretch in (*usual, HUGE) if prototype.name in WITH_HUGE else usual:
            of_both = len({leading_dtype(prototype.dtypes), narrow_type(prototype.dtypes)}) == 1
            if (of_both or stretch.narrow == (dtype is not leading_dtype(prototype.dtypes))) and stretch.fits(
                prototype, len(_passed(names))
            ):
                yield _stretch(base, stretch, names)


def _passed(names: Iterable[str]) -> list[str]:
    return [name for name in names if not name.startswith("_")]


def _is_usual(prototype: Prototype, case: Case) -> bool:
    """Whether a case is one that a larger one can be made of: nothing special, and a result of the usual type."""
    words = ("special", "ends", "again", "empty", "ordered", "with", "number-as")
    is_plain = not any(word in case.label for word in words) and not case.exact and not case.non_discriminating
    typed = any(result is not None and result.dtype is not None for result in case.results.values())
    tensors = [value for value in case.arguments.values() if isinstance(value, TensorSpec)]
    return case.case_class in USUAL and is_plain and not typed and bool(tensors)


def _stretch(case: Case, stretch: Stretch, names: Sequence[str]) -> Case:
    """The case with the operands of a stretch."""
    arguments = dict(case.arguments)
    for name in names:
        number = 0 if name.startswith("_") else _passed(names).index(name)
        shape, layout = stretch.operand(number)
        arguments[name] = replace(arguments[name], shape=shape, layout=layout)
    results = {
        name: result and replace(result, layout=stretch.result_layout, shape=None)
        for name, result in case.results.items()
    }
    label = f"{case.dtype.name}-{stretch.label}"
    basic = CaseClass.basic
    return replace(case, label=label, arguments=arguments, results=results, smoke=False, case_class=basic)


def _at(sequence: Sequence[Any], position: int) -> Any:
    return sequence[min(position, len(sequence) - 1)]
