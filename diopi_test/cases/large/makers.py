"""Make large cases: from the table of a family, or by stretching small cases of a function to larger shapes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from diopi_proto.families import load_families
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.classes import classify_cases
from diopi_test.cases.large.nans import nan_cases
from diopi_test.cases.layouts import Layout, contiguous, strides
from diopi_test.cases.model import LARGE, Case, CaseClass, ResultOverride, TensorSpec, cases_for, registered_cases
from diopi_test.cases.template import TensorTemplate, leading_dtype

Shape = tuple[int, ...]

EXEMPT: dict[str, str] = {}
"""By function, the reason why it has no large cases."""


def large_cases(prototype: Prototype) -> Sequence[Case]:
    """Return the large cases of a function in order."""
    load_families("diopi_test.cases")
    load_families("diopi_test.cases.large")
    cases = registered_cases(prototype, LARGE)
    return *cases, *nan_cases(prototype, cases)


def reason_without_large(function: str) -> str:
    """Return why a function has no large cases; empty if no reason is registered."""
    load_families("diopi_test.cases.large")
    return EXEMPT.get(function, "")


def exempt_from_large(reason: str, *names: str) -> None:
    """Register the reason why these functions have no large cases."""
    EXEMPT.update(dict.fromkeys(names, reason))


# Growth: large cases that are listed in the table of a family


@dataclass(frozen=True)
class PlacedShape:
    """A shape and a layout for a tensor."""

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

    def apply(self, prototype: Prototype, cases: Sequence[Case]) -> Case:
        """Return the large case, derived from one of the function's small `cases`; raise ValueError if none fits."""
        dtype = leading_dtype(prototype.dtypes) if self.dtype is None and prototype.dtypes else self.dtype
        label = "-".join(filter(None, (dtype.name if dtype is not None else "", self.small_label)))
        small = next((case for case in cases if case.label == label), None)
        if small is None:
            raise ValueError(f"{prototype.name} has no case {label} to derive {self.label} from; name an existing case")
        return replace(
            small,
            label=f"{small.dtype.name}-{self.label}",
            arguments=_grow_arguments(small.arguments, self.arguments),
            results={name: _grow_result(value, self.results.get(name, ...)) for name, value in small.results.items()},
            smoke=False,
            case_class=CaseClass.basic,
        )


def grow(
    small: str,
    label: str,
    dtype: Dtype | None = None,
    /,
    *,
    results: Any = None,  # a mapping, see `Growth`; Any because callers also unpack other keyword arguments
    **arguments: Any,
) -> Growth:
    """Return the description of a large case that changes the shapes and attributes of a small case; see `Growth`."""
    return Growth(small, label, arguments, results or {}, dtype)


def register_grown(*names: str, cases: Sequence[Growth]) -> None:
    """Register these large cases for functions and the forms derived from them."""

    def make(prototype: Prototype) -> Iterator[Case]:
        small_cases = registered_cases(prototype)
        return (growth.apply(prototype, small_cases) for growth in cases)

    cases_for(*names, level=LARGE)(make)


def _grow_arguments(small: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    shapes = {
        value.shape: new_value.shape
        for name, value in small.items()
        if isinstance(value, TensorSpec)
        and value.shape
        and isinstance(new_value := _grow_argument(value, changes.get(name)), TensorSpec)
    }
    return {
        name: _grow_argument(value, changes[name])
        if name in changes
        else _grow_argument(value, _shape_of(value, shapes))
        for name, value in small.items()
    }


def _shape_of(value: Any, shapes: Mapping[Shape, Shape]) -> Any:
    """Return the new shape of a tensor that is not named, or the unchanged attribute."""
    return shapes.get(value.shape, value.shape) if isinstance(value, TensorSpec) else value


def _grow_argument(small: Any, change: Any) -> Any:
    """Return the argument that replaces an argument of the small case."""
    if isinstance(small, list) and isinstance(change, list):
        return [_grow_argument(_item_or_last(small, number), entry) for number, entry in enumerate(change)]
    if not isinstance(small, TensorSpec):
        return change
    if isinstance(change, TensorTemplate):
        return change.resolve(small.dtype)
    if isinstance(change, PlacedShape):
        return replace(small, shape=change.shape, layout=change.layout)
    return replace(small, shape=change, layout=contiguous) if isinstance(change, tuple) else change


def _grow_result(small: ResultOverride | None, change: Any) -> ResultOverride | None:
    if small is None or change is None:
        return None
    if isinstance(change, tuple):
        return replace(small, shape=change, layout=contiguous)
    return replace(small, shape=None, layout=contiguous if change is ... else change)


# Stretching: large cases that are derived from the shapes of operands


@dataclass(frozen=True)
class Stretch:
    """Shapes and layouts for the operands of an element-wise function; the last shape and layout repeat.

    Attributes:
        label: The label of the large case.
        shapes: The shapes of the operands.
        layouts: The layouts of the operands.
        result_layout: The layout of the result.
        narrow: Whether the case has the function's narrow element type instead of the leading type.
    """

    label: str
    shapes: tuple[Shape, ...]
    layouts: tuple[Layout, ...] = (contiguous,)
    result_layout: Layout = contiguous
    narrow: bool = False

    def operand(self, number: int) -> tuple[Shape, Layout]:
        """Return the shape and layout of an operand."""
        return _item_or_last(self.shapes, number), _item_or_last(self.layouts, number)

    def fits(self, prototype: Prototype, count: int) -> bool:
        """Return whether `count` operands are valid: in-place results have the broadcast shape and share no memory."""
        shapes = [self.operand(number)[0] for number in range(count)]
        is_shared = 0 in getattr(self.layouts[0], "steps", ())
        return not prototype.is_inplace or (np.broadcast_shapes(*shapes) == shapes[0] and not is_shared)


FAR = strides(17_000_023, 30_011, 3_001, 503, 97, 13, 1)
"""Strides of an operand whose last elements lie beyond 2^24 elements, which float32 cannot count exactly."""

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
"""Rows so far apart that they span more than 2^31 bytes."""

HUGE = Stretch("huge", (HUGE_ROWS.shape,), (HUGE_ROWS.layout, contiguous))
WITH_HUGE = ("diopiAbs", "diopiGelu", "diopiAdd", "diopiMulInp", "diopiClampScalar")
"""The element-wise functions that have a huge case."""

STRETCHABLE_CLASSES = (CaseClass.basic, CaseClass.types, CaseClass.layout)
"""The classes of cases that can be stretched."""


def narrow_type(dtypes: Sequence[Dtype]) -> Dtype:
    """Return float16, or the function's last type if it does not accept float16."""
    return Dtype.float16 if Dtype.float16 in dtypes else dtypes[-1]


def register_stretched(*names: str, fixed_shapes: Collection[str] = ()) -> None:
    """Register enlarged small cases for functions and the forms derived from them; the domains stay the same.

    Args:
        names: The functions.
        fixed_shapes: Arguments that keep their shapes.
    """
    cases_for(*names, level=LARGE)(lambda prototype: _stretched_cases(prototype, fixed_shapes))


def _stretched_cases(prototype: Prototype, fixed_shapes: Collection[str]) -> Iterator[Case]:
    candidates = [case for case in classify_cases(prototype, registered_cases(prototype)) if _is_usual(prototype, case)]
    for dtype in dict.fromkeys((leading_dtype(prototype.dtypes), narrow_type(prototype.dtypes))):
        base = next((case for case in candidates if case.dtype is dtype), None)
        if base is None:
            continue
        in_order = (*(p.name for p in prototype.arguments), *base.arguments)  # tensors that are not passed come last
        names = [
            n for n in dict.fromkeys(in_order) if isinstance(base.arguments[n], TensorSpec) and n not in fixed_shapes
        ]
        is_single_shape = len(_passed_names(names)) == 1 or prototype.is_gradient
        usual = ONE_OPERAND if is_single_shape else SEVERAL_OPERANDS
        for stretch in (*usual, HUGE) if prototype.name in WITH_HUGE else usual:
            is_single_dtype = len({leading_dtype(prototype.dtypes), narrow_type(prototype.dtypes)}) == 1
            if (is_single_dtype or stretch.narrow == (dtype is not leading_dtype(prototype.dtypes))) and stretch.fits(
                prototype, len(_passed_names(names))
            ):
                yield _stretch(base, stretch, names)


def _passed_names(names: Iterable[str]) -> list[str]:
    return [name for name in names if not name.startswith("_")]


def _is_usual(prototype: Prototype, case: Case) -> bool:
    """Return whether a larger case can be derived from a case: ordinary values, and a result of the default type."""
    words = ("special", "ends", "again", "empty", "ordered", "with", "number-as")
    is_plain = not any(word in case.label for word in words) and not case.exact and not case.non_discriminating
    typed = any(result is not None and result.dtype is not None for result in case.results.values())
    tensors = [value for value in case.arguments.values() if isinstance(value, TensorSpec)]
    return case.case_class in STRETCHABLE_CLASSES and is_plain and not typed and bool(tensors)


def _stretch(case: Case, stretch: Stretch, names: Sequence[str]) -> Case:
    """Return the case with the operands of a stretch."""
    arguments = dict(case.arguments)
    for name in names:
        number = 0 if name.startswith("_") else _passed_names(names).index(name)
        shape, layout = stretch.operand(number)
        arguments[name] = replace(arguments[name], shape=shape, layout=layout)
    results = {
        name: result and replace(result, layout=stretch.result_layout, shape=None)
        for name, result in case.results.items()
    }
    label = f"{case.dtype.name}-{stretch.label}"
    basic = CaseClass.basic
    return replace(case, label=label, arguments=arguments, results=results, smoke=False, case_class=basic)


def _item_or_last(sequence: Sequence[Any], position: int) -> Any:
    return sequence[min(position, len(sequence) - 1)]
