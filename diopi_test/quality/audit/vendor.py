"""A vendor that is correct except for one fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from diopi_impl import BaseVendor, Box
from diopi_proto.interface import lookup
from diopi_proto.parameters import OUT_VALUES, Parameter, Role, Workspace
from diopi_proto.types import Error
from diopi_test.baseline.records import BaselineCase
from diopi_test.cases.layouts import Layout, layout_named
from diopi_test.quality.audit.chance import draw_with
from diopi_test.quality.audit.fault import Answer, Array, Effect, Fault, shown
from lib_rt import Context, Device, Generator, RuntimeFunctions, Tensor
from lib_rt.dtypes import from_numpy


class VendorWithFault(BaseVendor):
    """Answers every call as the baseline expects, corrupted by `fault`.

    Attributes:
        effect: of the fault on the calls since the latest case was prepared.
        earlier: the label of the case whose call left behind what was used in the latest one.
    """

    def __init__(self, fault: Fault, runtime: RuntimeFunctions) -> None:
        super().__init__(f"faulty: {fault.name}", "1")
        self._fault = fault
        self._runtime = runtime
        self._case: BaselineCase | None = None
        self._answer: Answer | None = None
        self._calls = 0
        self._is_further = False
        self._late: list[Callable[[], None]] = []
        self._corrupt = fault.keep() if fault.keep else fault.corrupt
        self._read = fault.read() if fault.read else None
        self.effect = Effect.absent
        self.earlier: str | None = None

    def prepare(self, case: BaselineCase) -> bool:
        """Prepare the answer to calls of a case, unless it depends on the call; whether a call may show the fault."""
        self._case = case
        self._answer, self._is_further, self.effect, self.earlier = None, False, Effect.absent, None
        if case.draws or self._fault.is_of_calls:
            return True
        self._answer = Answer.right(case)
        self._had(self._corrupt(self._answer), self._answer)
        return self.effect is Effect.shown

    def has(self, name: str) -> bool:
        # not the form it is compared with, which would be corrupted as well
        return self._case is not None and name == self._case.function

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        context.stream.synchronize()
        assert self._case is not None, "the case has been prepared"
        answer = self._answer or self._answer_to(self._case, arguments)
        self._is_further = True
        if answer.error is not Error.Success:
            return answer.error
        given = list(zip(lookup(name).parameters[1:], arguments, strict=True))
        for parameter, value in given:
            if parameter.is_result and parameter.name in answer.results:
                self._hand_back(context, parameter, value, answer)
        if self._fault.after is not None:
            read = [value for p, value in given if p.role is Role.input and p.annotation is not Workspace]
            inputs = [tensor for value in read for tensor in _tensors(value)]
            results = [t for p, value in given if p.is_result for t in _tensors(value)]
            self._had(self._fault.after(inputs, results))
        return Error.Success

    def _had(self, effect: Effect, answer: Answer | None = None) -> None:
        """Record the effect of a call."""
        if self.effect is not Effect.shown:
            self.effect, self.earlier = effect, answer.earlier if answer else None

    def _hand_back(self, context: Context, parameter: Parameter, target: Any, answer: Answer) -> None:
        arrays = answer.results[parameter.name]
        boxes = [one for one in (target if isinstance(target, list) else [target]) if isinstance(one, Box)]
        if boxes:
            for box, array in zip(boxes, arrays, strict=bool(arrays)):
                _fill(context, parameter, box, array, answer)
            return
        for tensor, array in zip(_tensors(target), arrays, strict=True):
            values, view = array.reshape(tensor.shape), tensor.view()
            if self._fault.late:
                self._had(shown(view.tobytes() != values.tobytes()))
                self._late.append(partial(np.copyto, view, values))
            else:
                np.copyto(view, values)

    def _synchronize(self, stream: int) -> int | None:
        """Synchronise the stream, then do what was postponed."""
        assert self._runtime.stream_sync is not None
        code = self._runtime.stream_sync(stream)
        while self._late:
            self._late.pop()()
        return code

    def _answer_to(self, case: BaselineCase, arguments: Sequence[Any]) -> Answer:
        """The expected results, or drawn ones for random functions, corrupted by the fault."""
        if not case.draws:
            answer = Answer.right(case)
            if self._fault.again is not None and self._is_further:
                self._had(self._fault.again(answer))
            if self._read is not None:
                names = [parameter.name for parameter in lookup(case.function).parameters[1:]]
                self._had(self._read(answer, dict(zip(names, arguments, strict=True))), answer)
            return answer
        self._calls += 1
        given = [one for value in arguments for one in (value if isinstance(value, list) else [value])]
        generators = [one for one in given if isinstance(one, Generator)]
        answer, drawn_wrong = draw_with(self._fault, case, generators, self._calls)
        corrupted = self._corrupt(answer)
        self._had(corrupted if drawn_wrong is Effect.absent else drawn_wrong, answer)
        return answer

    def last_error(self) -> str:
        return ""

    def open_device(self) -> Device:
        return Device(replace(self._runtime, stream_sync=self._synchronize), host_addressable=True)


def _fill(context: Context, parameter: Parameter, box: Box, array: Array, answer: Answer) -> None:
    """Number or tensor, as the result is handed back by pointer."""
    if parameter.annotation in OUT_VALUES:
        box.value = array.item()
    else:
        box.value = _made(context, array, layout_named(answer.layouts[parameter.name]))


def _made(context: Context, array: Array, layout: Layout) -> Tensor:
    tensor = context.require_tensor(array.shape, from_numpy(array.dtype), layout(array.shape).strides)
    tensor.write(array)
    return tensor


def _tensors(value: Any) -> list[Tensor]:
    """The dense tensors that a value is, or consists of."""
    given = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, Tensor)]
    return [part for one in given for part in (one.parts if one.is_sparse else [one])]
