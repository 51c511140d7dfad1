"""A function's call as the suite knows calls: a case of its arguments, and a record of what it left behind."""

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
from diopi_test.baseline.records import BaselineCase
from diopi_test.cases.model import Case, CaseClass, ResultOverride, TensorSpec
from diopi_test.execution.call_record import CallRecord, TensorRecord, ValueRecord
from diopi_torch.compare.contents import Content, layout_of
from diopi_torch.functions import Operand
from lib_rt import Generator


@final
@dataclass(frozen=True)
class RecordedCall:
    """A call of a function that is about to be made.

    Attributes:
        call: it.
        contents: its tensors as they are before it, by parameter, or `parameter.number` in an array.
    """

    call: FunctionCall
    contents: Mapping[str, Content]

    @classmethod
    def from_call(cls, call: FunctionCall) -> RecordedCall:
        """A call, with its tensors as they are now."""
        return cls(call, {name: Content.from_tensor(operand.tensor) for name, operand in _operands(call)})

    @property
    def prototype(self) -> Prototype:
        """Of the function."""
        return lookup(self.call.function)

    def case(self, label: str) -> Case:
        """The case of these arguments, whose label is the element type under test, a dash, and `label`."""
        arguments = {p.name: self._argument(p) for p in self.prototype.arguments}
        dtype = self._tested()
        results = {name: _override(value) for name, value in self.call.results.items()}
        return Case(f"{dtype.name}-{label}", dtype, arguments, results, case_class=CaseClass.basic)

    def _tested(self) -> Dtype:
        """The element type under test: of the first floating tensor, or of the first if there is none."""
        dtypes = [operand.dtype for _, operand in _operands(self.call)]
        inexact = (dtype for dtype in dtypes if is_floating(dtype) or is_complex(dtype))
        return next(inexact, next(iter(dtypes), Dtype.float32))

    def _argument(self, parameter: Parameter) -> Any:
        value = self.call.arguments[parameter.name]
        if isinstance(value, Operand):
            return self._spec(parameter.name)
        if isinstance(value, list):
            names = [f"{parameter.name}.{number}" for number in range(len(value))]
            return [None if item is None else self._spec(name) for name, item in zip(names, value, strict=True)]
        if isinstance(value, Generator):
            return value.seed
        if issubclass(parameter.annotation, Reduction | RoundMode):
            return parameter.annotation[value]
        return value

    def _spec(self, name: str) -> TensorSpec:
        """A tensor whose elements are not drawn, but those of the call."""
        data = self.contents[name].data
        return TensorSpec(data.spec.shape, data.dtype, layout=data.spec.layout, compute=lambda _: data.values)

    def left_behind(self, case: BaselineCase, results: Mapping[str, Any]) -> CallRecord:
        """What the call left behind, as soon as it is made.

        Args:
            case: what must come of it.
            made: the results that the vendor made.
        """
        tensors = [self._record(case, name, content) for name, content in self.contents.items()]
        values: list[ValueRecord] = []
        for name, value in results.items():
            expected = case.expected[name]
            if expected is None or isinstance(expected, list):
                continue
            if isinstance(value, torch.Tensor):
                after, role = Content.from_tensor(value), self.prototype.parameter(name).role
                shape, steps = tuple(value.shape), tuple(value.stride())
                tensors.append(TensorRecord(name, role, after.dtype, shape, steps, 0, None, after.stored, expected))
            else:
                values.append(ValueRecord(name, value, expected))
        return CallRecord(self.prototype, case, tensors, values, {}, [])

    def _record(self, case: BaselineCase, name: str, content: Content) -> TensorRecord:
        parameter, _, number = name.partition(".")
        expected, role = case.expected.get(parameter), self._role(name)
        result = expected[int(number)] if isinstance(expected, list) else expected
        written = [content for path, content in self.contents.items() if self._role(path) is not Role.input]
        return content.record(name, role, content.read_again(written if role is Role.input else ()), result)

    def _role(self, name: str) -> Role:
        return self.prototype.parameter(name.partition(".")[0]).role


def _operands(call: FunctionCall) -> list[tuple[str, Operand]]:
    """The tensors of a call, those for results behind the others, by name."""
    found: list[tuple[str, Operand]] = []
    for name, value in (*call.arguments.items(), *call.results.items()):
        entries = enumerate(value) if isinstance(value, list) else [(None, value)]
        found += [
            (name if number is None else f"{name}.{number}", operand)
            for number, operand in entries
            if isinstance(operand, Operand)
        ]
    return found


def _override(value: Any) -> ResultOverride | None:
    """What the caller decides about a result; the tensors of an array are as is usual."""
    if not isinstance(value, Operand):
        return ResultOverride() if isinstance(value, list) else None
    return ResultOverride(value.dtype, layout_of(value.shape, value.strides), value.shape)
