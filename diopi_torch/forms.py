"""The form of a call: everything that decides which functions implement it.

The form consists of the element types, shapes and strides of tensors, and the values of other arguments. If the
operator writes tensors, the form also states which tensors share memory. Floating-point numbers in lists are excluded,
because optimizers change them in each step.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import torch

# Global names are found faster than attributes of modules; each call of an operator runs this code.
_LISTS = (list, tuple)
_Tensor = torch.Tensor


def describe_form(values: Iterable[Any], call_values: list[Any], of_list: bool = False) -> list[Hashable]:
    """Return the form of a call with these arguments, and collect the values that are not part of the form.

    The values 1, 1.0 and True differ, and so do 0.0 and -0.0. A tensor has several entries, because wrapping them in a
    tuple would take time in each call.

    Args:
        values: the arguments.
        call_values: a list to which the values that are not part of the form are appended: tensors, generators, and
            floating-point numbers in lists.
        of_list: whether `values` are the entries of a list.

    Returns:
        Hashable entries that are equal for calls of the same form.
    """
    forms: list[Hashable] = []
    for value in values:
        if isinstance(value, _Tensor):
            call_values.append(value)
            forms += value.dtype, value.shape, value.stride(), value.is_cpu
        elif of_list and isinstance(value, float):
            call_values.append(value)
            forms.append(float)
        else:
            forms.append(_non_tensor_form(value, call_values))
    return forms


def _non_tensor_form(value: Any, call_values: list[Any]) -> Hashable:
    """Return the form of a value that is not a tensor."""
    if isinstance(value, _LISTS):
        return type(value), *describe_form(value, call_values, of_list=True)
    if isinstance(value, torch.Generator):
        call_values.append(value)
        return torch.Generator
    return type(value), repr(value) if isinstance(value, float) else value


def find_shared_memory(values: Sequence[Any]) -> tuple[int, ...]:
    """Return, for each tensor, the position of the first tensor in the same memory; for others, their own position."""
    first: dict[int, int] = {}
    return tuple(
        [
            first.setdefault(value.untyped_storage().data_ptr(), number) if isinstance(value, torch.Tensor) else number
            for number, value in enumerate(values)
        ]
    )


def describe_sharing(values: Sequence[Any]) -> Hashable:
    """Return how tensors share memory, as a hashable value.

    The value is the result of `find_shared_memory`. If tensors share memory, the distance in bytes of each tensor from
    the first one in the same memory follows.
    """
    memory = find_shared_memory(values)
    if memory == tuple(range(len(memory))):
        return memory
    addresses = [value.data_ptr() if isinstance(value, torch.Tensor) else 0 for value in values]
    return memory, *(address - addresses[first] for address, first in zip(addresses, memory, strict=True))
