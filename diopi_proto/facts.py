"""Facts of a parameter beyond its C type, which kinds of parameter carry (`diopi_proto.parameters`).

From them follow the calls that are errors (`diopi_test.execution.refusals`), and how arguments are read.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """What holds of a parameter in every valid call."""

    @property
    def names(self) -> tuple[str, ...]:
        """The other parameters it speaks of."""
        return tuple(value for value in vars(self).values() if isinstance(value, str))


@dataclass(frozen=True)
class NamesAxis(Fact):
    """Each number is an axis of the call's tensors: −rank ≤ axis < rank, or it is an error."""


@dataclass(frozen=True)
class NamesIndex(Fact):
    """The number is a position along an axis: −size ≤ index < size, or it is an error."""


@dataclass(frozen=True)
class AtLeast(Fact):
    """No number is less than `least`, which is 0 or 1; of a count, that there is one entry or more."""

    least: int


@dataclass(frozen=True)
class AtMostOne(Fact):
    """The number is not above 1."""


@dataclass(frozen=True)
class Below(Fact):
    """The number is less than the size of an axis of another argument."""

    tensor: str
    axis: int


@dataclass(frozen=True)
class WithinAxis(Fact):
    """The number is at most the size of the axis that an argument names; a tensor without axes counts as one of 1."""

    tensor: str
    axis: str


@dataclass(frozen=True)
class SizeOf(Fact):
    """The number is the size of an axis of another argument or result, or it is an error."""

    tensor: str
    axis: int


@dataclass(frozen=True)
class LengthsWithin(Fact):
    """The elements are lengths from 0 to the size of an axis of another argument, or it is an error."""

    tensor: str
    axis: int


@dataclass(frozen=True)
class OneOf(Fact):
    """The text, or the number, is one of these."""

    choices: tuple[str, ...] | tuple[int, ...]


@dataclass(frozen=True)
class Stored(Fact):
    """The number is written into a tensor of the first one's element type, which must be able to hold it."""


@dataclass(frozen=True)
class Converted(Fact):
    """The number is converted to the element type of the first tensor before anything is computed."""


@dataclass(frozen=True)
class Exponent(Fact):
    """Given as a number, an integer tensor is raised to it: then it is not negative."""


@dataclass(frozen=True)
class StepBetween(Fact):
    """The number leads from one argument to another: it is not 0, nor of the wrong sign."""

    start: str
    end: str


@dataclass(frozen=True)
class Margins(Fact):
    """Margins before and after each axis, from the last one, within what the mode of the padding allows."""

    tensor: str
    mode: str


@dataclass(frozen=True)
class NormOrder(Fact):
    """The order of a norm: for a negative one and ∞, no elements have none."""


@dataclass(frozen=True)
class HoldsTruth(Fact):
    """Truth values: of uint8, anything but 0 is true."""


@dataclass(frozen=True)
class NeededWhere(Fact):
    """May be NULL only where another argument, a truth value or a number, is false or 0."""

    argument: str


@dataclass(frozen=True)
class CountsEntries(Fact):
    """The number of entries of an array that has no count of its own."""

    array: str


@dataclass(frozen=True)
class SizesFollow(Fact):
    """The sizes of a tensor follow from those of the tensors and attributes before it.

    Attributes:
        broadcast: whether an axis of size 1 repeats.
    """

    broadcast: bool = False


@dataclass(frozen=True)
class HasShape(Fact):
    """The sizes of a tensor, axis by axis: a number, or a name that stands for the same size throughout the call.

    Where an attribute has the name it is that size: it repeats what the shape says, and no result depends on it.
    """

    sizes: tuple[int | str, ...]


@dataclass(frozen=True)
class HoldsZeros(Fact):
    """The caller fills with zeros what is updated in place: adding to it and overwriting it are one."""


@dataclass(frozen=True)
class OnHost(Fact):
    """The tensor lies in host memory: when the call returns it has been read, or written, whatever its stream does."""


@dataclass(frozen=True)
class ShapeChosen(Fact):
    """The caller chooses the shape of the result: it is what the function is told."""


@dataclass(frozen=True)
class ShapeOf(Fact):
    """The result has the shape of an argument, whatever the attributes are."""

    tensor: str


@dataclass(frozen=True)
class MayBe(Fact):
    """The result may be the very tensor of an argument of its shape, element type and layout, which it overwrites."""

    argument: str
