"""Make large cases: from the table of a family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from diopi_proto.families import load_families
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.large.nans import nan_cases
from diopi_test.cases.layouts import Layout, contiguous, strides
from diopi_test.cases.model import LARGE, Case, CaseClass, ResultOverride, TensorSpec, cases_for, registered_cases
from diopi_test.cases.template import TensorTemplate, leading_dtype

Shape = tuple[int, ...]


def large_cases(prototype: Prototype) -> Sequence[Case]:
    """Return the large cases of a function in order."""
    load_families("diopi_test.cases")
    load_families("diopi_test.cases.large")
    cases = registered_cases(prototype, LARGE)
    return *cases, *nan_cases(prototype, cases)


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


HUGE_ROWS = PlacedShape((70_001, 3), strides(7_703, 1))
"""Rows so far apart that they span more than 2^31 bytes."""


def _item_or_last(sequence: Sequence[Any], position: int) -> Any:
    return sequence[min(position, len(sequence) - 1)]
