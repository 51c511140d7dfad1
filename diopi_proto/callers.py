"""`CallForm`: ranks, NULLs and empty lists that a known program passes and that differ from the usual call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

NO_BREAK = "\u00a0"
"""A non-breaking space: lines are not wrapped at it."""


@dataclass(frozen=True, kw_only=True)
class CallForm:
    """How one program passes some arguments of a function.

    Cases (`diopi_test.cases.selection.callers`) and a sentence of the docstring are derived from it.

    Attributes:
        name: name of the form, unique within the function; the labels of the derived cases contain it.
        caller: the program.
        condition: when the program does so, as the beginning of a sentence; empty if it always does.
        shapes: sizes of tensors by argument, axis by axis. A size is a number, a name, or several names joined by `·`,
            which stand for the product. The name of an attribute is the attribute's value; any other name is one size
            throughout the call.
        missing: arguments that the program leaves out: NULL for a tensor, an empty list for a list of integers.
    """

    name: str
    caller: str
    condition: str = ""
    shapes: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments that the form describes."""
        return (*self.shapes, *self.missing)

    def sentence(self, tensors: Sequence[str]) -> str:
        """Return the form as a sentence; `tensors` names the arguments of the function that are tensors."""
        names: dict[str, list[str]] = {}
        for name, sizes in self.shapes.items():
            names.setdefault(f"[{f',{NO_BREAK}'.join(map(str, sizes))}]", []).append(f"`{name}`")
        passed = [f"{' and '.join(same_shape)} as {shape}" for shape, same_shape in names.items()]
        passed += [f"{'NULL' if name in tensors else 'an empty list'} for `{name}`" for name in self.missing]
        subject = f"{self.condition}, {self.caller}" if self.condition else self.caller
        return f"{subject} passes {', '.join(passed)}."
