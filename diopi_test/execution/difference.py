"""`Difference`: where one tensor of a call is not as expected, in the form of the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import final

from diopi_test.execution.deviation import Deviation

OPTIONAL = {"omit_default": True}
"""Metadata of fields that JSON omits if they have their default."""


class PatternKind(StrEnum):
    """The kind of a pattern of wrong elements; `Pattern` describes each kind."""

    everything = "everything"
    slice = "slice"
    period = "period"
    range = "range"
    tail = "tail"
    end = "end"
    blocks = "blocks"
    values = "values"
    constant = "constant"


@final
@dataclass(frozen=True)
class Pattern:
    """A property that the incorrect elements of a tensor have in common.

    Attributes:
        kind: which elements are wrong: all of them (`everything`), a slice along some axes (`slice`), every k-th
            (`period`), a contiguous range (`range`), the elements after the last whole tile (`tail`), all from an
            element on (`end`), whole blocks (`blocks`), or those where an input or the expected result has special
            values (`values`). If the wrong elements all have the same value, the kind is `constant`.
        text: the property in words.
    """

    kind: PatternKind
    text: str


@final
@dataclass(frozen=True)
class ErrorMap:
    """A picture of the errors in one slice of a tensor, with a digit per cell, created by `checks.error_map`.

    The slice contains the worst element. It extends along the last two axes with more than one element, or along one
    such axis if there is only one.

    Attributes:
        axes: the axes of the tensor along which the slice extends. The last one extends within a row of the picture; if
            there are two, the first one extends over the rows.
        sizes: the number of elements along each of these axes.
        rows: one digit per cell, for the worst element of the cell. A cell has as many elements as needed for at most
            32 cells along an axis. 0 means no error, 4 an error up to the budget, and 9 an error above 1024 budgets, or
            a wrong element without a budget; see `checks.error_map.BOUNDS`.
    """

    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    rows: tuple[str, ...]


@final
@dataclass(frozen=True, kw_only=True)
class Difference:
    """A tensor that differs from its expected value, with its worst element.

    Elements are text, because JSON can't represent all of them.

    Attributes:
        tensor: the parameter, with `.number` for an entry of an array of tensors.
        problem: what is wrong with these elements, as in "3 of 15 elements are wrong".
        wrong_count, total: the numbers of incorrect elements and of all elements.
        index: the index of the worst element, or of the first one if no element is worse than another.
        actual, expected: the actual and the expected value of this element.
        error: the distance between these values; None if it is not meaningful.
        budget: the largest accepted distance; None if the element must be exact.
        patterns: what the wrong elements have in common.
        inputs: the values of the inputs at the same index, by name, if each result element is computed from these.
        arguments: how all arguments were passed, by name: attributes; element types, shapes and strides of tensors.
        call: the name of the call; empty for the first one.
        map: a picture of the errors in the slice with the worst element; None for a single element.
        deviation: how the wrong elements differ, for programs to compare; None in logs of older versions.
    """

    tensor: str
    problem: str
    wrong_count: int = field(metadata={"key": "wrong"})
    total: int
    index: tuple[int, ...]
    actual: str = field(metadata={"key": "given"})
    expected: str
    error: float | None = field(default=None, metadata=OPTIONAL)
    budget: float | None = field(default=None, metadata=OPTIONAL)
    patterns: Sequence[Pattern] = field(default=(), metadata=OPTIONAL)
    inputs: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    call: str = field(default="", metadata=OPTIONAL)
    map: ErrorMap | None = field(default=None, metadata=OPTIONAL)
    deviation: Deviation | None = field(default=None, metadata=OPTIONAL)

    @property
    def ratio(self) -> float | None:
        """The ratio error / budget; None if either is missing."""
        return self.error / self.budget if self.error is not None and self.budget else None

    @property
    def pattern_suffix(self) -> str:
        """The patterns for the end of a message: empty, or in parentheses after a space."""
        return f" ({'; '.join(pattern.text for pattern in self.patterns)})" if self.patterns else ""

    @property
    def worst_element(self) -> str:
        """The worst element as text: `out[0, 2] in a second call: 1.25, expected 1.5 ± 1e-07, error 0.25`."""
        in_call_text = f" in {self.call}" if self.call else ""
        place = f"{self.tensor}[{', '.join(map(str, self.index))}]{in_call_text}"
        return f"{place}: {self.actual}, expected {self.expected}{self._describe_error}"

    @property
    def _describe_error(self) -> str:
        """The budget, the error and their ratio as text; empty if all are missing."""
        margin = f" ± {self.budget:.2g}" if self.budget is not None else ""
        if self.error is None or not math.isfinite(self.error):
            return margin
        ratio = f", {self.ratio:.3g} times the budget" if self.ratio is not None else ""
        return f"{margin}, error {self.error:.3g}{ratio}"


def assign_call(differences: Iterable[Difference], call: str) -> tuple[Difference, ...]:
    """Return the differences with the name of the further call in which they were found."""
    return tuple(replace(difference, call=call) for difference in differences)
