"""Cases of in-place use: a caller passes the tensor of an argument as a result, so that the call overwrites it.

These cases are not stored. Each is derived from a stored case in which the argument and the result have the same shape,
element type and layout. Its results must be those of the stored case. `Prototype.aliases` lists which results may
overwrite which arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

from diopi_proto.prototype import Prototype
from diopi_test.cases.case import CaseClass
from diopi_test.execution.bases import find_bases
from diopi_test.execution.negative_cases import has_nonempty_inputs
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected

PREFIX = CaseClass.callers.value
"""The prefix of the labels of these cases."""


def aliased_labels(prototype: Prototype, cases: Iterable[BaselineCase]) -> list[tuple[str, str]]:
    """Return the cases of in-place use of a function, as pairs of the label and the label of the stored case.

    The stored case is the first one in `cases` from which the case can be derived. This depends on element types,
    shapes and layouts, not on values.
    """

    def applies(case: BaselineCase, target: tuple[str, str]) -> bool:
        """Return whether the argument and the result of a stored case can be the same tensor."""
        return _can_share_tensor(prototype, case, *target) and _has_equal_layout(case, *target)

    return find_bases(aliased_targets(prototype), cases, applies)


def make_aliased_case(case: BaselineCase, label: str, prototype: Prototype) -> BaselineCase:
    """Derive the case called `label` from `case`, with a single call; raise KeyError if that is not possible."""
    result, argument = aliased_targets(prototype)[label]
    if not _can_share_tensor(prototype, case, result, argument):
        raise KeyError(f"{label} can't be derived from {case.id}")
    return replace(case, label=label, smoke=False, case_class=CaseClass.callers, aliases={result: argument})


@cache
def aliased_targets(prototype: Prototype) -> Mapping[str, tuple[str, str]]:
    """Return, by label, every result with an argument that may be the same tensor."""
    return {
        f"{PREFIX}-{prototype.parameter(result).c_name}-is-{prototype.parameter(argument).c_name}": (result, argument)
        for result, arguments in prototype.aliases.items()
        for argument in arguments
    }


def _has_equal_layout(case: BaselineCase, result: str, argument: str) -> bool:
    """Return whether an argument's tensor has the layout that the case expects of the result."""
    tensor, expected = case.arguments[argument], case.expected[result]
    return isinstance(expected, Expected) and bool(tensor.layout == expected.layout)


def _can_share_tensor(prototype: Prototype, case: BaselineCase, result: str, argument: str) -> bool:
    """Return whether an argument and a result of the case can be the same tensor."""
    tensor, expected = case.arguments[argument], case.expected[result]
    if (
        not isinstance(tensor, BaselineTensor)
        or not isinstance(expected, Expected)
        or not has_nonempty_inputs(prototype, case)
    ):
        return False
    return (tensor.dtype, tensor.values.shape) == (expected.dtype, expected.values.shape)
