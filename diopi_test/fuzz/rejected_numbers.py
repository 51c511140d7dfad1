"""Numbers that PyTorch rejects: outside the range of an integer tensor's type, or truth values as factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diopi_proto.dtypes import category, common_dtype
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case
from lib_rt.dtypes import integer_range

OVERFLOW_CHECKED: Mapping[str, Sequence[str]] = {
    "diopiAdd": ["alpha"],
    "diopiSub": ["alpha"],
    "diopiAddcmul": ["value"],
    "diopiPowTensor": ["exponent"],
    "diopiClamp": ["min", "max"],
    "diopiClampMin": ["min"],
    "diopiClampMax": ["max"],
    "diopiThreshold": ["threshold", "value"],
    "diopiThresholdBackward": ["threshold"],
    "diopiHardtanh": ["min_val", "max_val"],
    "diopiAddmm": ["beta", "alpha"],
    "diopiBaddbmm": ["beta", "alpha"],
    "diopiPad": ["value"],
    "diopiFill": ["value"],
    "diopiMaskedFill": ["value"],
    "diopiIndexFill": ["value"],
    "diopiScatterScalar": ["value"],
}
"""The numbers that PyTorch rejects if they overflow, by function. All other integers wrap around beside integer
tensors."""

NEVER_NEGATIVE = ("diopiHardtanh", "diopiPad")
"""Functions for which PyTorch rejects negative numbers beside uint8; in other functions, −1 becomes 255."""


BOOL_FACTORS = ("diopiAdd", "diopiSub")
"""Functions for which PyTorch rejects a truth value as `alpha` unless the results are truth values."""


def is_rejected(prototype: Prototype, case: Case) -> bool:
    """Return whether PyTorch rejects the call because of a number.

    A number "cannot be converted to type … without overflow", or a "Boolean alpha [is] only supported for Boolean
    results".
    """
    return _overflows(prototype, case) or _has_bool_factor(prototype, case)


def _has_bool_factor(prototype: Prototype, case: Case) -> bool:
    """Return whether `alpha` is a truth value though the results are numbers."""
    is_bool = isinstance(case.arguments.get("alpha"), bool) and prototype.base in BOOL_FACTORS
    return is_bool and _conversion_target(prototype, case) is not Dtype.bool


def _overflows(prototype: Prototype, case: Case) -> bool:
    """Return whether an integer result type cannot represent one of the numbers that PyTorch checks."""
    arguments = [case.arguments.get(name) for name in OVERFLOW_CHECKED.get(prototype.base, ())]
    numbers = [number for number in arguments if isinstance(number, float | int)]
    dtype = _conversion_target(prototype, case)
    if category(dtype) != category(Dtype.int64):
        return False
    low, high = integer_range(dtype)
    lowest = low if prototype.base in NEVER_NEGATIVE else min(low, -high)
    return not all((lowest if isinstance(number, int) else low) <= number <= high for number in numbers)


def _conversion_target(prototype: Prototype, case: Case) -> Dtype:
    """Return the element type to which the numbers of a call are converted."""
    tensors = [spec.dtype for _, spec in case.tensors]
    if not prototype.common_type:
        return next(iter(tensors), case.dtype)
    operands = [case.arguments[p.name] for p in prototype.operands]
    return common_dtype(tensors, [operand for operand in operands if isinstance(operand, float | int)])
