"""Facts about functions that only their family knows: the suite derives further cases and open calls from them.

A family declares the facts next to its templates: `CaseFacts(open_calls=[...]).declare("diopiPad")`. Facts that follow
from the standard belong to the prototype instead (`diopi_proto.facts`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from typing import Any

from diopi_proto.families import load_families
from diopi_proto.prototype import Prototype
from diopi_test.cases.case import Case, ResultOf

FurtherCases = Callable[[Prototype, Sequence[Case]], Iterable[Case]]
"""Yields cases that are derived from a function's own cases."""


@dataclass(frozen=True)
class NumberChoice:
    """A number that a function is tested with instead of the default of a region or kind.

    Attributes:
        parameter: The parameter.
        property: The region or kind (`diopi_test.cases.selection.numbers`).
        number: The number.
        non_discriminating: The reason if no wrong result can fail the case.
    """

    parameter: str
    property: str
    number: bool | float
    _: KW_ONLY
    non_discriminating: str = ""


@dataclass(frozen=True)
class OpenCalls:
    """Calls that the standard defines although PyTorch rejects them or leaves their results open.

    Attributes:
        matches: Returns whether a call of the function is one of these calls.
        reason: The behavior of PyTorch.
    """

    matches: Callable[[Prototype, Case], bool]
    reason: str


@dataclass(frozen=True, kw_only=True)
class CaseFacts:
    """Facts about a function and the forms derived from it.

    Attributes:
        further_cases: Makers of cases that follow the function's own cases, see `diopi_test.cases.selection.repeated`.
        attribute_changes: By the label of a case, attributes with which it is repeated, and which no other case has.
        number_choices: Numbers to test instead of the defaults.
        open_calls: Calls that a vendor need not support.
        saved: By argument of a gradient function, the result of the forward function that programs pass for it.
        scattered_tensor: The tensor that the function writes to positions along an axis; the positions must differ.
        huge_form: The form ("plain", "inplace", …) that has a case with a storage of more than 2^31 bytes.
        has_single_nan: Whether cases may contain only one NaN, because it is open whether several NaNs are equal.
    """

    further_cases: Sequence[FurtherCases] = ()
    attribute_changes: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    number_choices: Sequence[NumberChoice] = ()
    open_calls: Sequence[OpenCalls] = ()
    saved: Mapping[str, ResultOf] = field(default_factory=dict)
    scattered_tensor: str = ""
    huge_form: str = ""
    has_single_nan: bool = False

    def declare(self, *names: str) -> None:
        """Declare these facts for functions; several declarations for a function are combined."""
        for name in names:
            _declared[name].append(self)

    @classmethod
    def declared_for(cls, prototype: Prototype) -> CaseFacts:
        """Return all facts about a function; a form has the facts of the function that it is derived from."""
        return _combine(prototype.base)


_declared: defaultdict[str, list[CaseFacts]] = defaultdict(list)


@cache
def _combine(name: str) -> CaseFacts:
    """Return the facts that all families declare about a function, as one."""
    load_families("diopi_test.cases")
    declared = _declared[name]
    return CaseFacts(
        further_cases=[maker for facts in declared for maker in facts.further_cases],
        attribute_changes={label: changes for facts in declared for label, changes in facts.attribute_changes.items()},
        number_choices=[choice for facts in declared for choice in facts.number_choices],
        open_calls=[calls for facts in declared for calls in facts.open_calls],
        saved={argument: result for facts in declared for argument, result in facts.saved.items()},
        scattered_tensor="".join(facts.scattered_tensor for facts in declared),
        huge_form="".join(facts.huge_form for facts in declared),
        has_single_nan=any(facts.has_single_nan for facts in declared),
    )
