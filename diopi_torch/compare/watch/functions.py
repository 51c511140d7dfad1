"""Find the functions of the standard that compute the same as a call of an ATen operator, and translate the call.

The table in `diopi_proto/aten/` states which functions serve which operators. An *operand* is a tensor that is passed
to a function.
"""

from __future__ import annotations

from typing import Any, final

import torch

from diopi_proto.aten.mapping import AtenOperator, FunctionCall, NotMappedError, function_calls
from diopi_proto.aten.table import Row, find_row
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, Number
from diopi_torch.compare.contents import map_tensors
from diopi_torch.compare.on_cpu import CpuCall
from diopi_torch.fallback import operator_name
from diopi_torch.functions import WatchedOperand
from diopi_torch.layout import layout_of
from diopi_torch.tensors import materialize


@final
class TranslatedCall:
    """The calls of functions that together compute the same as the call of an operator.

    Their tensors are copies in host memory. First they have the contents from before the operator ran, so that the
    calls can be recorded. Then `write_results` copies what the operator wrote.

    Args:
        call: the operator's call with the contents of its tensors from before it ran.
        returned: what the call returned; its tensors may be on any device.

    Attributes:
        copies: the copy of each tensor argument, by name.
        calls: the calls of functions.

    Raises:
        NotMappedError: no functions compute the same, or the results of an intermediate step are not known.
    """

    def __init__(self, call: CpuCall, returned: Any) -> None:
        self._call = call
        self.copies = {name: materialize(content.to_cpu()) for name, content in call.contents.items()}
        self._operands = {id(content.tensor): _to_operand(self.copies[name]) for name, content in call.contents.items()}
        row = find_row(operator_name(call.operator))
        if row is None or not row.calls_functions:
            raise NotMappedError(operator_name(call.operator))
        self.calls = self._translate(row, returned)

    def write_results(self) -> None:
        """Copy the current contents of the arguments that the operator may write to their copies.

        Raises:
            NotMappedError: the operator changed the shape of such an argument.
        """
        for name, copy in self.copies.items():
            if self._call.is_written(name):
                tensor = self._call.contents[name].tensor
                if tensor.shape != copy.shape:
                    raise NotMappedError(f"{operator_name(self._call.operator)} changed the shape of {name}")
                copy.copy_(tensor)

    def _translate(self, row: Row, returned: Any) -> list[FunctionCall]:
        """Return the calls of functions.

        An in-place operator is translated as a call of the plain function that writes to the same tensor, unless only
        the in-place operator is in the table.

        Args:
            row: the row of the table that states which functions serve the operator.
            returned: what the operator returned.

        Raises:
            NotMappedError: a function decides about the sizes of a result, or an intermediate tensor is not known.
        """
        operator = self._call.operator
        named = {name: map_tensors(self._operand, value, name) for name, value in self._call.named.items()}
        is_inplace_only = operator._schema.is_mutable and row.operator == operator_name(operator)
        outputs = [a.name for a in operator._schema.arguments if a.kwarg_only and a.alias_info is not None]
        if outputs:
            results: list[Any] = [named[name] for name in outputs]
        elif operator._schema.is_mutable:
            target = next(iter(named.values()))
            results = [None] if is_inplace_only and isinstance(target, list) else _as_list(target)
        else:
            results = _as_list(map_tensors(self._operand, returned, "result"))
        aten = AtenOperator(name=row.operator, arguments=named, inplace=is_inplace_only, factory=_OperandFactory())
        calls = function_calls(aten, row, results)
        for call in calls:
            if missing_results := {p.name for p in lookup(call.function).results} - {*call.results, *call.arguments}:
                raise NotMappedError(f"{call.function} decides about the sizes of {', '.join(sorted(missing_results))}")
        return calls

    def _operand(self, name: str, tensor: torch.Tensor) -> WatchedOperand:
        """Return the operand for a tensor: the copy of an argument, or a new copy of a returned tensor."""
        if id(tensor) not in self._operands:
            self._operands[id(tensor)] = _to_operand(materialize(tensor.detach().cpu()).clone())
        return self._operands[id(tensor)]


def _as_list(value: Any) -> list[Any]:
    """Return a list or tuple as a list, and any other value as a list with one element."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _to_operand(tensor: torch.Tensor) -> WatchedOperand:
    """Return a tensor in host memory as an argument of a function."""
    return WatchedOperand(tensor, layout_of(tuple(tensor.shape), tensor.stride(), tensor.dtype))


@final
class _OperandFactory:
    """Creates operands of functions that are not arguments of the operator; `AtenOperator.factory` requires it."""

    def tensor_from_numbers(self, value: Number | list[int]) -> WatchedOperand:
        """Return an operand in float32 for a floating-point number, in int64 for integers."""
        return _to_operand(torch.tensor(value, dtype=torch.float32 if isinstance(value, float) else torch.int64))

    def read_number(self, tensor: WatchedOperand) -> Number | None:
        """Return the value of an operand with one element; None if it has more or none."""
        number: Number | None = tensor.tensor.item() if tensor.tensor.numel() == 1 else None
        return number

    def restride(self, tensor: WatchedOperand, shape: tuple[int, ...], strides: tuple[int, ...]) -> WatchedOperand:
        """Return a view of the operand with another shape and other strides."""
        return _to_operand(tensor.tensor.as_strided(shape, strides))

    def empty_like(self, tensor: WatchedOperand, dtype: Dtype) -> WatchedOperand:
        """Raise NotMappedError: the values of an intermediate tensor between two functions are not known."""
        raise NotMappedError("several functions compute the result one after the other")

    def generator(self, argument: object) -> Any:
        """Raise NotMappedError: results that depend on random numbers can't be judged."""
        raise NotMappedError("the function draws random numbers")
