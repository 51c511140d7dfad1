"""Facts about functions, from which the suite derives further cases and open calls.

A case is one call of one function with test data. A call is open if only the standard defines its result, and not
PyTorch.

The module that contains the cases of a function also declares its facts:
`CaseFacts(open_calls=[...]).declare("diopiPad")`. Facts that the standard defines belong to the prototype instead
(`diopi_proto.facts`).
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
"""Yields further cases for the prototype of a function or form and the cases that its family declares."""


@dataclass(frozen=True)
class NumberChoice:
    """A number to test a parameter with, instead of the suite's default number for a region or kind.

    The suite tests a numeric parameter with a number of each region (such as negative numbers) and of each kind (such
    as bool). A function declares a `NumberChoice` if the default number is invalid for it, or tests nothing.

    Attributes:
        parameter: The name of the parameter.
        property: The region ("zero", "negative", "whole" or "fraction") or the kind ("bool", "int" or "float"), see
            `diopi_test.cases.selection.numbers`.
        number: The number.
        non_discriminating: The reason why a wrong implementation can pass the case with this number; empty if it
            cannot.
    """

    parameter: str
    property: str
    number: bool | float
    _: KW_ONLY
    non_discriminating: str = ""


@dataclass(frozen=True)
class CallsUndefinedInPyTorch:
    """Calls that the standard defines although PyTorch rejects them or leaves their results open.

    Attributes:
        matches: Returns whether a case of the function is one of these calls.
        reason: A description of what PyTorch does with these calls.
    """

    matches: Callable[[Prototype, Case], bool]
    reason: str


@dataclass(frozen=True, kw_only=True)
class CaseFacts:
    """Facts about a function and the forms derived from it.

    Attributes:
        further_cases: Functions that yield further cases, see `diopi_test.cases.selection.repeated`.
        attribute_changes: By the label of a case, sets of attributes, as values by parameter name. The suite repeats
            the case once with each set. Without these sets, some attributes would have one value in all cases.
        number_choices: Numbers to test instead of the defaults.
        open_calls: Calls that PyTorch does not define. Their cases have the class `open` and count only with
            `--strict`.
        saved: By argument of a gradient function, the result of another function that programs pass for this argument.
        scattered_tensor: The name of the tensor into which the function writes at the positions in the argument
            `index`. Cases must not contain a position twice, because the result would depend on the order of the
            writes. Empty for functions that do not scatter.
        huge_form: The form ("plain", "inplace", …) that has a case with a storage of more than 2^31 bytes; empty for
            none.
        finds_extremes: Whether the function computes maxima or minima internally, which its prototype does not show.
            The suite then adds cases with numbers near the lowest and the highest number of the type.
        has_single_nan: Whether derived cases contain at most one NaN per tensor, because it is open whether several
            NaNs are equal.
    """

    further_cases: Sequence[FurtherCases] = ()
    attribute_changes: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    number_choices: Sequence[NumberChoice] = ()
    open_calls: Sequence[CallsUndefinedInPyTorch] = ()
    saved: Mapping[str, ResultOf] = field(default_factory=dict)
    scattered_tensor: str = ""
    huge_form: str = ""
    finds_extremes: bool = False
    has_single_nan: bool = False

    def declare(self, *names: str) -> None:
        """Declare these facts for the functions `names`. Several declarations for one function are combined."""
        for name in names:
            _declared[name].append(self)

    @classmethod
    def declared_for(cls, prototype: Prototype) -> CaseFacts:
        """Return all facts about a function; a form has the facts of the function that it is derived from."""
        return _combine(prototype.base)


_declared: defaultdict[str, list[CaseFacts]] = defaultdict(list)
"""The declared facts, by function name."""


@cache
def _combine(name: str) -> CaseFacts:
    """Return all facts that are declared for the function `name`, as one object; it is empty if there are none.

    Lists and mappings are concatenated. Of strings, at most one declaration has a value that is not empty.
    """
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
        finds_extremes=any(facts.finds_extremes for facts in declared),
        has_single_nan=any(facts.has_single_nan for facts in declared),
    )
