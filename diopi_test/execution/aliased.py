"""Cases of in-place use: a caller passes the tensor of an argument as a result, which overwrites it.

Nothing of these cases is stored: each is made of a stored case in which the argument and the result have one shape,
element type and layout, and its results must be that case's. `Prototype.aliases` says which results may be which
arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

from diopi_proto.prototype import Prototype
from diopi_test.cases.model import CaseClass
from diopi_test.execution.negative_cases import is_ordinary
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected

PREFIX = CaseClass.callers.value
"""What the labels of these cases begin with."""


def aliased_labels(prototype: Prototype, cases: Iterable[BaselineCase]) -> list[tuple[str, str]]:
    """Return the cases of in-place use of a function: label, and the label of the stored case each is made of.

    That is the first of `cases` it can be made of; element types, shapes and layouts decide, not values.
    """
    missing, found = dict(aliased_targets(prototype)), {}
    for case in cases if missing else ():
        for label, (result, argument) in list(missing.items()):
            if _can_be_one(prototype, case, result, argument) and _is_laid_out_alike(case, result, argument):
                found[label] = case.label
                del missing[label]
        if not missing:
            break
    return [(label, found[label]) for label in aliased_targets(prototype) if label in found]


def make_aliased_case(case: BaselineCase, label: str, prototype: Prototype) -> BaselineCase:
    """Return the case called `label` made of `case`, called once; KeyError if it can't be made of it."""
    result, argument = aliased_targets(prototype)[label]
    if not _can_be_one(prototype, case, result, argument):
        raise KeyError(f"{label} can't be made of {case.id}")
    return replace(case, label=label, smoke=False, case_class=CaseClass.callers, aliases={result: argument})


@cache
def aliased_targets(prototype: Prototype) -> Mapping[str, tuple[str, str]]:
    """Return, by label, every result with an argument that may be the same tensor."""
    return {
        f"{PREFIX}-{prototype.parameter(result).c_name}-is-{prototype.parameter(argument).c_name}": (result, argument)
        for result, arguments in prototype.aliases.items()
        for argument in arguments
    }


def _is_laid_out_alike(case: BaselineCase, result: str, argument: str) -> bool:
    """Return whether an argument's tensor has the layout that the case expects of the result."""
    tensor, expected = case.arguments[argument], case.expected[result]
    return isinstance(expected, Expected) and bool(tensor.layout == expected.layout)


def _can_be_one(prototype: Prototype, case: BaselineCase, result: str, argument: str) -> bool:
    """Return whether an argument and a result of the case can be the same tensor."""
    tensor, expected = case.arguments[argument], case.expected[result]
    if not isinstance(tensor, BaselineTensor) or not isinstance(expected, Expected) or not is_ordinary(prototype, case):
        return False
    return (tensor.dtype, tensor.values.shape) == (expected.dtype, expected.values.shape)
