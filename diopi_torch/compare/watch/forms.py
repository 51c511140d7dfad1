"""The form of a call, and the reasons why calls can't be judged.

Calls have the same form if they differ only in the values of their tensors. A watch need not judge every call of a
form. The constants `VIEW` to `OTHER_DEVICE` are the reasons, by which the report counts the calls that were not judged.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import torch

from diopi_proto.aten.table import NO_CALL, find_row
from diopi_torch.fallback import operator_name
from diopi_torch.layout import DTYPES

# The reasons why calls are not judged, as the report of a watch lists them
VIEW = "views, which compute nothing"
MEMORY = "operators that only allocate or inspect memory"
RANDOM = "operators that draw random numbers, which have no single right result"
FOREIGN = "operators that do not belong to ATen"
SUBCLASS = "calls with subclasses of tensors"
OTHER_DEVICE = "calls without a tensor on the watched device"

_ALLOCATING = ("aten::empty", "aten::new_empty", "aten::resize", "aten::set_", "aten::_resize")
"""Prefixes of the names of operators that allocate memory without defining its contents."""


@cache
def reason_not_judged(operator: Any) -> str | None:
    """Return why no call of this operator can be judged; None if calls can be judged.

    Args:
        operator: the operator, as `__torch_dispatch__` receives it.
    """
    if not isinstance(operator, torch._ops.OpOverload) or operator.namespace != "aten":
        return FOREIGN
    if operator.is_view or operator._schema.name in ("aten::detach", "aten::alias", "aten::lift_fresh"):
        return VIEW
    row = find_row(operator_name(operator))
    if (row is not None and row.function == NO_CALL) or operator._schema.name.startswith(_ALLOCATING):
        return MEMORY
    if torch.Tag.nondeterministic_seeded in operator.tags and not _may_skip_dropout(operator):
        return RANDOM
    return None


@cache
def _may_skip_dropout(operator: torch._ops.OpOverload) -> bool:
    """Return whether an operator draws random numbers only for dropout, so that calls without dropout can be judged."""
    return any(argument.name == "dropout_p" for argument in operator._schema.arguments)


def call_form(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Hashable:
    """Return the form of a call: a key that is equal for calls of an operator that differ only in values.

    The form contains element types, shapes, strides, devices and integers. For a floating-point argument, it contains
    only the sign, because optimizers change such arguments in each step. The numbers 0, 1, -1, infinities and NaN are
    special cases in many operators; they belong to the form themselves.

    Args:
        operator: the operator.
        args: the positional arguments.
        kwargs: the keyword arguments.

    Returns:
        The key.
    """
    form: list[Any] = [operator]
    _append_forms(args, form)
    if kwargs:
        form.extend(kwargs)
        _append_forms(kwargs.values(), form)
    return tuple(form)


def _append_forms(values: Iterable[Any], form: list[Any]) -> None:
    """Append the forms of arguments to the list `form`.

    One flat list is faster than nested tuples. Speed matters, because this function runs in each call of the program.
    """
    for value in values:
        if isinstance(value, torch.Tensor):
            form += value.dtype, value.shape, value.stride(), value.is_conj(), value.device
        elif isinstance(value, float):
            form.append(_kind_of_number(value))
        elif isinstance(value, list | tuple):
            form.append(len(value))
            _append_forms(value, form)
        else:
            form.append(type(value))
            form.append(None if isinstance(value, torch.Generator) else value)


def _kind_of_number(value: float) -> Hashable:
    """Return the number itself if it is 0, 1, -1 or not finite; otherwise whether it is positive."""
    return value if value in (0.0, 1.0, -1.0) or not math.isfinite(value) else value > 0


def reason_tensors_not_judged(tensors: Iterable[torch.Tensor]) -> str | None:
    """Return why a call with these tensors can't be judged; None if it can."""
    for tensor in tensors:
        if tensor.layout is not torch.strided or tensor.is_quantized:
            return f"tensors with the layout {str(tensor.layout).removeprefix('torch.')}"
        if tensor.dtype not in DTYPES:
            return f"element type {str(tensor.dtype).removeprefix('torch.')}"
        if tensor.device.type == "meta":
            return "tensors without data"
    return None
