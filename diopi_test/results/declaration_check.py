"""The comparison of a declared arithmetic with measurements of the vendor, and its text in reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from diopi_proto.messages import pluralize

FINDING_TEXTS = {
    "undeclared": "used, but not declared",
    "unused": "declared, but not used",
    "unmeasured": "not measured",
}
"""The kinds of results of the comparison of a declaration with measurements, as texts by key."""


@final
@dataclass(frozen=True)
class Contradiction:
    """A contradiction between a declaration and what was measured.

    Attributes:
        field: the field of the declaration.
        is_undeclared: true if the vendor uses arithmetic that it does not declare; false if it declares arithmetic that
            it does not use.
        message: what was declared, and what was measured.
    """

    field: str
    is_undeclared: bool
    message: str

    @property
    def kind(self) -> str:
        """Return a key of `FINDING_TEXTS`."""
        return "undeclared" if self.is_undeclared else "unused"

    def __str__(self) -> str:
        return f"{FINDING_TEXTS[self.kind]}: {self.message}"


@final
@dataclass(frozen=True)
class UnmeasuredField:
    """A field of a declaration that could not be measured, and the reason."""

    field: str
    reason: str


@final
@dataclass(frozen=True, kw_only=True)
class DeclarationCheck:
    """The comparison of the declared arithmetic of a run with measurements of the vendor.

    Attributes:
        measured: the fields of the declaration that were measured.
        contradictions: where the declaration and the measurements contradict each other.
        unmeasured: the declared fields that could not be measured because the vendor lacks the functions, and the
            fields during whose measurement the vendor crashed or exceeded the time limit.
    """

    measured: Sequence[str]
    contradictions: Sequence[Contradiction]
    unmeasured: Sequence[UnmeasuredField]

    @property
    def title(self) -> str:
        """Return the result in a few words, such as "2 contradictions with measurements"."""
        if self.contradictions:
            return f"{pluralize(len(self.contradictions), 'contradiction')} with measurements"
        if not self.measured:
            return "could not be measured"
        suffix = f", {pluralize(len(self.unmeasured), 'field')} not measured" if self.unmeasured else ""
        return f"agrees with measurements{suffix}"

    @property
    def lines(self) -> Iterator[str]:
        """Yield a line for each contradiction, and for each field that could not be measured."""
        return (f"{FINDING_TEXTS[key]}: {text}" for key, text in self.findings)

    @property
    def findings(self) -> Iterator[tuple[str, str]]:
        """Yield a key of `FINDING_TEXTS` and a text for each contradiction and each field that was not measured."""
        yield from ((entry.kind, entry.message) for entry in self.contradictions)
        yield from (("unmeasured", f"{entry.field}: {entry.reason}") for entry in self.unmeasured)


def describe_check(check: DeclarationCheck | None, *, is_declared: bool) -> str:
    """Return the result of the comparison in a few words.

    Args:
        check: The comparison; None if the run did not make it.
        is_declared: Whether the declared arithmetic differs from IEEE 754.

    Returns:
        The text; empty if the declaration needs no comparison, because it is that of IEEE 754.
    """
    if check is not None:
        return check.title
    return "not compared with measurements" if is_declared else ""
