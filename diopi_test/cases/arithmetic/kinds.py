"""Cases whose number arguments have equal values, but different kinds: bool, int or float.

The kind of a number takes part in type promotion, so that the element types of the results differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from diopi_proto.dtypes import promoted
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import Domain, integer_values
from diopi_test.cases.facts import CaseFacts

UNUSED_SHAPE = (2, 11)
"""A shape that no other case has, so that the first call with it is one of these cases."""


def scalar_kinds(
    domain: Domain | None = None, neutral: int | None = None
) -> Callable[[Prototype, Sequence[Case]], Iterator[Case]]:
    """Return a function that yields pairs of cases, which differ only in the kind of the number arguments.

    One pair has the numbers as float and as int, with int32 tensors. The other pair has them as int and as bool, with
    bool tensors. The kind with the wider result comes first: if a vendor caches the result type of the first call and
    uses it for the second, the second call fails.

    Args:
        domain: The domain of the tensors in the pair with float and int; None for the domains of the function's own
            case.
        neutral: The number for the pair with int and bool, which leaves the other operand unchanged: 0 for sums, 1 for
            products. None for no such pair.

    Returns:
        The function, for `CaseFacts.further_cases`. It yields no cases for forms without number arguments, for in-place
        forms, and for functions whose result type does not follow from type promotion.
    """

    def make(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
        names = [parameter.name for parameter in prototype.numbers]
        if not names or prototype.is_inplace or prototype.result is not promoted:
            return
        if Dtype.float32 in prototype.dtypes:
            case = _first_integer_case(cases, Dtype.int32, names)
            yield from _cases_in_both_kinds(case, {name: case.arguments[name] for name in names}, (float, int), domain)
        if neutral is not None:
            case = _first_integer_case(cases, Dtype.bool, names)
            yield from _cases_in_both_kinds(case, dict.fromkeys(names, neutral), (int, bool))

    return make


def _cases_in_both_kinds(
    case: Case, numbers: Mapping[str, int], kinds: Sequence[type], domain: Domain | None = None
) -> Iterator[Case]:
    """Yield one copy of `case` per kind in `kinds`, with tensors of the shape `UNUSED_SHAPE`.

    Args:
        case: The case to copy.
        numbers: The number arguments by name, before the conversion to a kind.
        kinds: The Python types to which the numbers are converted.
        domain: The domain of the tensors; None for the domains of `case`.

    Yields:
        The cases.
    """
    tensors = {name: value for name, value in case.arguments.items() if isinstance(value, TensorSpec)}
    reshaped = {n: replace(spec, shape=UNUSED_SHAPE, domain=domain or spec.domain) for n, spec in tensors.items()}
    for kind in kinds:
        arguments = {**case.arguments, **reshaped, **{name: kind(number) for name, number in numbers.items()}}
        yield replace(case, label=f"{case.dtype.name}-number-as-{kind.__name__}", arguments=arguments, smoke=False)


def _first_integer_case(cases: Sequence[Case], dtype: Dtype, names: Sequence[str]) -> Case:
    """Return the first case whose tensors all have the type `dtype` and whose arguments `names` are of the kind int."""
    return next(case for case in cases if case.dtype is dtype and _is_integer_case(case, names))


def _is_integer_case(case: Case, names: Sequence[str]) -> bool:
    """Return whether all tensors have the case's element type and all arguments in `names` are of the kind int."""
    tensors = [value for value in case.arguments.values() if isinstance(value, TensorSpec)]
    results = [override for override in case.results.values() if override is not None]
    usual = all(tensor.dtype is case.dtype for tensor in tensors) and not any(override.dtype for override in results)
    return usual and all(type(case.arguments[name]) is int for name in names)


CaseFacts(further_cases=[scalar_kinds(integer_values(1, 100), neutral=0)]).declare("diopiAdd", "diopiBitwiseOr")
CaseFacts(further_cases=[scalar_kinds(integer_values(1, 100), neutral=1)]).declare("diopiMul", "diopiBitwiseAnd")
CaseFacts(further_cases=[scalar_kinds(integer_values(1, 100))]).declare(
    "diopiSub", "diopiRemainder", "diopiRemainderTensor"
)
CaseFacts(further_cases=[scalar_kinds()]).declare(
    "diopiPowTensor", "diopiPow", "diopiPowScalar", "diopiClamp", "diopiClampMin", "diopiClampMax"
)
