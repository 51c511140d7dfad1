"""Open calls: calls that the standard defines, but that PyTorch rejects or whose results PyTorch leaves open.

`GENERAL_OPEN_CALLS` applies to all functions. Other open calls are declared for single functions
(`diopi_test.cases.facts.CaseFacts.open_calls`).
"""

from __future__ import annotations

from diopi_proto.dtypes import COMPLEX, category, common_dtype, promote
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case
from diopi_test.cases.facts import CallsUndefinedInPyTorch, CaseFacts


def _exceeds_result_category(prototype: Prototype, case: Case) -> bool:
    """Return whether an in-place call overwrites a bool or integer tensor with a result of a higher category."""
    tensors, numbers = case.operands(prototype)
    if not prototype.is_inplace or not tensors or category(tensors[0].dtype) > 1:
        return False
    rule = prototype.rule_of(prototype.results[0].name)
    dtypes = [tensor.dtype for tensor in tensors]
    return category(rule([common_dtype(dtypes, numbers)])) > category(tensors[0].dtype)


def _is_promoted_by_zero_dim_tensor(prototype: Prototype, case: Case) -> bool:
    """Return whether the common element type differs from PyTorch's, where a tensor without axes counts as a number."""
    tensors, numbers = case.operands(prototype)
    ranked = [tensor.dtype for tensor in tensors if tensor.shape]
    zero_dim = [tensor.dtype for tensor in tensors if not tensor.shape]
    if not ranked or not zero_dim:
        return False
    in_pytorch = _promote_as_pytorch(promote(*ranked), promote(*zero_dim))
    return common_dtype([in_pytorch], numbers) is not common_dtype([*ranked, *zero_dim], numbers)


def _promote_as_pytorch(ranked: Dtype, zero_dim: Dtype) -> Dtype:
    """Return PyTorch's common type of tensors with axes and tensors without axes.

    Tensors without axes matter only if their category is higher. Source: PyTorch, "Type promotion documentation".

    Args:
        ranked: The common type of the tensors with axes.
        zero_dim: The common type of the tensors without axes.

    Returns:
        The common type.
    """
    if category(zero_dim) <= category(ranked) and category(ranked) > 0:
        return ranked
    if category(zero_dim) == 3 and category(ranked) == 2:
        return COMPLEX.get(ranked, Dtype.complex64)
    return promote(ranked, zero_dim)


def _has_type_pytorch_rejects(prototype: Prototype, case: Case) -> bool:
    """Return whether a tensor of the case has an element type that PyTorch rejects."""
    return bool(_rejected_types(prototype, case))


def _rejected_types(prototype: Prototype, case: Case) -> set[Dtype]:
    """Return the element types of the case that PyTorch rejects for the argument or result that has the type."""
    typed = [(name, spec.dtype) for name, spec in case.tensors]
    typed += [
        (name, result.dtype) for name, result in case.results.items() if result is not None and result.dtype is not None
    ]
    return {dtype for name, dtype in typed if prototype.is_beyond_pytorch(name, dtype)}


GENERAL_OPEN_CALLS = (
    CallsUndefinedInPyTorch(
        _has_type_pytorch_rejects, "PyTorch rejects an element type, see `Prototype.beyond_pytorch`"
    ),
    CallsUndefinedInPyTorch(
        _exceeds_result_category,
        "in place, PyTorch rejects a result of a higher category than the tensor's: an integer in a bool tensor",
    ),
    CallsUndefinedInPyTorch(
        _is_promoted_by_zero_dim_tensor,
        "in PyTorch, a tensor without axes takes part in the common type as a number does",
    ),
)
"""Open calls that a prototype determines, for all functions."""


def reason_open(prototype: Prototype, case: Case, *, int32_indices: bool = False) -> str:
    """Return why a call is open.

    Args:
        prototype: The prototype of the function.
        case: The call.
        int32_indices: Whether the run requests int32 indices. Then a call is not open because of an int32 argument.

    Returns:
        What PyTorch does with the call; empty if PyTorch defines it.
    """
    open_calls = (*CaseFacts.declared_for(prototype).open_calls, *GENERAL_OPEN_CALLS)
    reasons = (calls for calls in open_calls if calls.matches(prototype, case))
    if int32_indices and _rejected_types(prototype, case) == {Dtype.int32}:
        reasons = (calls for calls in reasons if calls.matches is not _has_type_pytorch_rejects)
    return next((calls.reason for calls in reasons), "")
