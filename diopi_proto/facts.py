"""Facts about the values of a parameter that its C type does not express.

The kinds of parameters in `diopi_proto.parameters` carry facts. The suite derives from them which calls are errors and
how arguments are read.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Fact:
    """A property that a parameter has in every valid call."""

    SENTENCE: ClassVar[str] = ""
    """The property with the names of the fields in braces; empty if the summary of the class has no fields to name."""

    @property
    def sentence(self) -> str:
        """The property of one parameter as a sentence, with the values of the fields."""
        if not self.SENTENCE:
            return (inspect.getdoc(type(self)) or "").partition("\n\n")[0].replace("\n", " ")
        return self.SENTENCE.format(**{name: _format_value(value) for name, value in vars(self).items()})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the other parameters that the fact refers to."""
        return tuple(value for value in vars(self).values() if isinstance(value, str))


@dataclass(frozen=True)
class NamesAxis(Fact):
    """Each number is an axis of the call's tensors; −rank ≤ axis < rank, otherwise the call is an error."""


@dataclass(frozen=True)
class NamesIndex(Fact):
    """The number is a position along an axis; −size ≤ index < size, otherwise the call is an error."""


@dataclass(frozen=True)
class AtLeast(Fact):
    """No number is less than `least`, which is 0 or 1; a count with `least` 1 means that arrays are not empty."""

    SENTENCE = "No number is less than {least}."

    least: int


@dataclass(frozen=True)
class AtMostOne(Fact):
    """The number is at most 1."""


@dataclass(frozen=True)
class LessThanSize(Fact):
    """The number is less than the size of an axis of another argument.

    Attributes:
        tensor: the name of the other argument.
        axis: the index of the axis.
    """

    SENTENCE = "The number is less than the size of axis {axis} of `{tensor}`."

    tensor: str
    axis: int


@dataclass(frozen=True)
class WithinAxis(Fact):
    """The number is at most the size of the axis that an argument names; a 0-d tensor counts as an axis of size 1."""

    SENTENCE = "The number is at most the size of axis `{axis}` of `{tensor}`, which is 1 for a 0-d tensor."

    tensor: str
    axis: str


@dataclass(frozen=True)
class SizeOf(Fact):
    """The number is the size of an axis of another argument or result; otherwise the call is an error.

    Attributes:
        tensor: the name of the other argument or result.
        axis: the index of the axis.
    """

    SENTENCE = "The number is the size of axis {axis} of `{tensor}`."

    tensor: str
    axis: int


@dataclass(frozen=True)
class LengthsWithin(Fact):
    """Each element is a length from 0 to the size of an axis of another argument; otherwise the call is an error.

    Attributes:
        tensor: the name of the other argument.
        axis: the index of the axis.
    """

    SENTENCE = "Each element is a length from 0 to the size of axis {axis} of `{tensor}`."

    tensor: str
    axis: int


@dataclass(frozen=True)
class SequenceStarts(Fact):
    """The elements divide the rows of another argument into sequences: they rise from 0 to the number of rows.

    Attributes:
        tensor: the name of the other argument.
    """

    SENTENCE = "The elements rise from 0 to the size of axis 0 of `{tensor}`, whose rows they divide into sequences."

    tensor: str


@dataclass(frozen=True)
class OneOf(Fact):
    """The text or number is one of `choices`."""

    SENTENCE = "One of {choices}."

    choices: tuple[str, ...] | tuple[int, ...]


@dataclass(frozen=True)
class Stored(Fact):
    """The number is written into a tensor with the element type of the first tensor and must be representable in it."""


@dataclass(frozen=True)
class Converted(Fact):
    """The number is converted to the element type of the first tensor before anything is computed."""


@dataclass(frozen=True)
class Exponent(Fact):
    """The number is an exponent; it must not be negative if the base is an integer tensor."""


_KINDS_OF_NUMBERS = {
    "zero": "0",
    "negative": "negative numbers",
    "whole": "integers other than 0",
    "fraction": "numbers with a fraction",
    "bool": "numbers of type bool",
    "int": "numbers of integer type",
    "float": "numbers of floating-point type",
}
"""The kinds of excluded numbers in words."""

_CATEGORIES = ("type bool", "an integer type", "a floating-point type", "a complex type")
"""The categories of element types in words, by number (`diopi_proto.dtypes.category`)."""


@dataclass(frozen=True)
class ExcludesNumbers(Fact):
    """Valid calls have no number of certain kinds, because PyTorch rejects these numbers or they have no meaning.

    Attributes:
        kinds: the excluded regions ("zero", "negative", "whole" for a nonzero integer, "fraction") and kinds of scalars
            ("bool", "int", "float").
        reason: the reason.
        categories: the categories of element types for which they are excluded (`diopi_proto.dtypes.category`).
    """

    kinds: tuple[str, ...]
    reason: str
    categories: tuple[int, ...] = (0, 1, 2, 3)

    @property
    def sentence(self) -> str:
        """The excluded numbers, the element types for which they are excluded, and the reason."""
        numbers = " or ".join(_KINDS_OF_NUMBERS[kind] for kind in self.kinds)
        excluding = [name for number, name in enumerate(_CATEGORIES) if number in self.categories]
        remaining = [name for name in _CATEGORIES if name not in excluding]
        words = ("unless", remaining) if len(remaining) == 1 else ("if", excluding)
        types = f" {words[0]} the tensors have {' or '.join(words[1])}" if remaining else ""
        return f"Valid calls do not pass {numbers}{types}. Reason: {self.reason}."

    @property
    def names(self) -> tuple[str, ...]:
        """No names: the fact refers to no other parameter."""
        return ()


@dataclass(frozen=True)
class StepBetween(Fact):
    """The number is the step from `start` to `end`: it is not 0 and has the sign of `end - start`."""

    SENTENCE = "The number is the step from `{start}` to `{end}`: it is not 0 and has the sign of `{end}` − `{start}`."

    start: str
    end: str


@dataclass(frozen=True)
class Margins(Fact):
    """The numbers of elements to add before and after each axis, last axis first; the padding mode limits them.

    Attributes:
        tensor: the name of the argument that is padded.
        mode: the name of the argument with the padding mode.
    """

    tensor: str
    mode: str


@dataclass(frozen=True)
class NormOrder(Fact):
    """The order of a norm; a negative or infinite order of a norm over no elements is an error."""


@dataclass(frozen=True)
class HoldsTruth(Fact):
    """The elements are truth values; in uint8, any value except 0 is true."""


@dataclass(frozen=True)
class NeededWhere(Fact):
    """The argument may be NULL only if `argument`, a truth value or a number, is false or 0."""

    SENTENCE = "The argument may be NULL only if `{argument}` is false or 0."

    argument: str


@dataclass(frozen=True)
class CountsEntries(Fact):
    """The number of entries of an array that has no separate count parameter."""

    SENTENCE = "The number of entries of `{array}`."

    array: str


@dataclass(frozen=True)
class SizesFollow(Fact):
    """The sizes of a tensor are determined by the preceding tensors and attributes.

    Attributes:
        broadcast: whether an axis of size 1 is broadcast.
    """

    broadcast: bool = False


@dataclass(frozen=True)
class HasShape(Fact):
    """The shape of a tensor: each size is a number or a name that stands for the same size throughout the call.

    If an attribute has that name, its value must be the size. The attribute repeats the shape, so no result depends on
    it.
    """

    SENTENCE = "The shape is ({sizes}); a name stands for the same size throughout the call."

    sizes: tuple[int | str, ...]


@dataclass(frozen=True)
class HoldsZeros(Fact):
    """The caller fills the tensor with zeros, so adding to it and overwriting it are equivalent."""


@dataclass(frozen=True)
class ComparedForEquality(Fact):
    """The function only compares the elements with elements of other arguments for equality."""


@dataclass(frozen=True)
class OnHost(Fact):
    """The tensor is in host memory; the call has finished reading or writing it when it returns."""


@dataclass(frozen=True)
class ShapeChosen(Fact):
    """The caller chooses the shape of the result; the function takes its sizes from the result tensor."""


@dataclass(frozen=True)
class ShapeOf(Fact):
    """The result always has the shape of the argument `tensor`."""

    SENTENCE = "The result has the shape of `{tensor}`."

    tensor: str


@dataclass(frozen=True)
class MayAlias(Fact):
    """The result may share the tensor of `argument` if shape, element type and layout agree; it then overwrites it."""

    SENTENCE = "The result may be the tensor of `{argument}`, which it then overwrites."

    argument: str


@dataclass(frozen=True)
class AwayFromBoundary(Fact):
    """The caller does not pass values of `argument` here: they would lie on a boundary, where rounding decides."""

    SENTENCE = "Values of `{argument}` are not passed here: they would lie on a boundary, where rounding decides."

    argument: str


def _format_value(value: object) -> str:
    """Return the value of a field: the entries of a tuple with commas between them."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
