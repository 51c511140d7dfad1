"""Convert the call of a function that a program makes to the data structures of the suite.

A `Case` describes the arguments of the call. A `CallRecord` contains the tensors before and after the call. The suite's
checks compare the record with the expected results.

A name identifies a tensor of a call: the name of the parameter, or `parameter.number` for an element of an array of
tensors, such as `tensors.0`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import torch

from diopi_proto.aten.mapping import FunctionCall
from diopi_proto.dtypes import is_complex, is_floating
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Reduction, RoundMode
from diopi_test.cases.case import Case, CaseClass, ResultOverride, TensorSpec
from diopi_test.execution.call_record import CallRecord, TensorRecord, ValueRecord
from diopi_test.oracle.records import BaselineCase
from diopi_torch.compare.contents import TensorContent, infer_layout
from diopi_torch.functions import WatchedOperand
from lib_rt import Generator


@final
@dataclass(frozen=True)
class RecordedCall:
    """A call of a function, with copies of the contents of its tensors from before the call.

    Attributes:
        call: the function, its arguments, and the tensors that the caller passes for its results.
        contents: the contents of these tensors before the call, by name. Input tensors come first.
    """

    call: FunctionCall
    contents: Mapping[str, TensorContent]

    @classmethod
    def from_call(cls, call: FunctionCall) -> RecordedCall:
        """Return a call with copies of the current contents of its tensors; must be called before the function runs."""
        return cls(call, {name: TensorContent.from_tensor(operand.tensor) for name, operand in _named_operands(call)})

    @property
    def prototype(self) -> Prototype:
        """The prototype of the function."""
        return lookup(self.call.function)

    def case(self, label: str) -> Case:
        """Return a case with the arguments of this call, including the recorded elements of its tensors.

        Args:
            label: the end of the label of the case, which the element type under test and a hyphen precede.

        Returns:
            The case, with the class `basic`.
        """
        arguments = {p.name: self._case_argument(p) for p in self.prototype.arguments}
        dtype = self._tested_dtype()
        results = {name: _result_override(value) for name, value in self.call.results.items()}
        return Case(f"{dtype.name}-{label}", dtype, arguments, results=results, case_class=CaseClass.basic)

    def _tested_dtype(self) -> Dtype:
        """Return the element type under test: that of the first floating-point or complex tensor of the call.

        If there is none, return the element type of the first tensor. Without tensors, return float32.
        """
        dtypes = [operand.dtype for _, operand in _named_operands(self.call)]
        inexact = (dtype for dtype in dtypes if is_floating(dtype) or is_complex(dtype))
        return next(inexact, next(iter(dtypes), Dtype.float32))

    def _case_argument(self, parameter: Parameter) -> Any:
        """Return an argument of the call in the form that a case has.

        A tensor becomes a `TensorSpec`, a list of tensors becomes a list of specifications, a generator becomes its
        seed, and the name of an enumerator becomes the enumerator. Other values stay unchanged.
        """
        value = self.call.arguments[parameter.name]
        if isinstance(value, WatchedOperand):
            return self._tensor_spec(parameter.name)
        if isinstance(value, list):
            names = [f"{parameter.name}.{number}" for number in range(len(value))]
            return [None if item is None else self._tensor_spec(name) for name, item in zip(names, value, strict=True)]
        if isinstance(value, Generator):
            return value.seed
        if issubclass(parameter.annotation, Reduction | RoundMode):
            return parameter.annotation[value]
        return value

    def _tensor_spec(self, name: str) -> TensorSpec:
        """Return the specification of the tensor called `name`; its elements are the recorded ones, not generated."""
        data = self.contents[name].data
        return TensorSpec(data.spec.shape, data.dtype, layout=data.spec.layout, compute=lambda _: data.values)

    def make_record(self, case: BaselineCase, results: Mapping[str, Any]) -> CallRecord:
        """Return the record of the effects of the call; must be called directly after the function ran.

        Args:
            case: the case of this call with its data and expected results.
            results: the tensors and numbers that the vendor allocated or returned as results, by parameter.

        Returns:
            A record with all tensors of the call before and after it, the returned numbers, and the expected results.
        """
        tensors = [self._record_tensor(case, name, content) for name, content in self.contents.items()]
        values: list[ValueRecord] = []
        for name, value in results.items():
            expected = case.expected[name]
            if expected is None or isinstance(expected, list):
                continue
            if isinstance(value, torch.Tensor):
                after, role = TensorContent.from_tensor(value), self.prototype.parameter(name).role
                shape, steps = tuple(value.shape), tuple(value.stride())
                tensors.append(
                    TensorRecord(
                        name=name,
                        role=role,
                        dtype=after.dtype,
                        shape=shape,
                        strides=steps,
                        offset=0,
                        before=None,
                        after=after.stored,
                        expected=expected,
                    )
                )
            else:
                values.append(ValueRecord(name=name, actual=value, expected=expected))
        return CallRecord(prototype=self.prototype, case=case, tensors=tensors, values=values, missing={}, damage=[])

    def _record_tensor(self, case: BaselineCase, name: str, content: TensorContent) -> TensorRecord:
        """Return the record of the tensor called `name` before and after the call, with its expected result.

        If an input shares memory with a result, the shared elements are recorded with their values from before the
        call. The vendor may write these elements, and the check of unchanged inputs must not report them.

        Args:
            case: the case of this call with its expected results.
            name: the name of the tensor.
            content: the content of the tensor before the call.
        """
        parameter, _, number = name.partition(".")
        expected, role = case.expected.get(parameter), self._role_of(name)
        result = expected[int(number)] if isinstance(expected, list) else expected
        written = [content for path, content in self.contents.items() if self._role_of(path) is not Role.input]
        return content.make_record(name, role, content.read_again(written if role is Role.input else ()), result)

    def _role_of(self, name: str) -> Role:
        """Return the role of the parameter to which a tensor belongs."""
        return self.prototype.parameter(name.partition(".")[0]).role


def _named_operands(call: FunctionCall) -> list[tuple[str, WatchedOperand]]:
    """Return the name and the operand of each tensor of a call; tensors for results come last."""
    operands: list[tuple[str, WatchedOperand]] = []
    for name, value in (*call.arguments.items(), *call.results.items()):
        entries = enumerate(value) if isinstance(value, list) else [(None, value)]
        operands += [
            (name if number is None else f"{name}.{number}", operand)
            for number, operand in entries
            if isinstance(operand, WatchedOperand)
        ]
    return operands


def _result_override(value: Any) -> ResultOverride | None:
    """Return the properties of a result's tensor that the caller of the function chose.

    Args:
        value: what the caller passes for the result: a tensor, a list of tensors, or None to omit the result.

    Returns:
        The element type, layout and shape of a tensor; the default properties for a list of tensors; None for None.
    """
    if not isinstance(value, WatchedOperand):
        return ResultOverride() if isinstance(value, list) else None
    return ResultOverride(value.dtype, infer_layout(value.shape, value.strides), value.shape)
