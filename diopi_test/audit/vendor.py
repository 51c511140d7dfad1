"""A vendor that is right but for one fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from diopi_impl import BaseVendor, Box
from diopi_proto.interface import lookup
from diopi_proto.parameters import OUT_VALUES, Parameter, Role
from diopi_proto.types import Error
from diopi_test.audit.chance import draw_with, is_random
from diopi_test.audit.fault import Answer, Array, Effect, Fault, shown
from diopi_test.baseline import BaselineCase
from diopi_test.execution import current_case
from diopi_test.layouts import LAYOUTS, Layout
from lib_rt import Context, Device, Generator, RuntimeFunctions, Tensor
from lib_rt.dtypes import from_numpy


class SpoiltVendor(BaseVendor):
    """Answers every call as the baseline expects, spoilt by `fault`.

    Attributes:
        effect: of the fault on the calls since the latest case was prepared: whether it showed in one.
    """

    def __init__(self, fault: Fault, runtime: RuntimeFunctions) -> None:
        super().__init__(f"faulty: {fault.name}", "1")
        self._fault = fault
        self._runtime = runtime
        self._answer: Answer | None = None
        self._calls = 0
        self._is_further = False
        self._late: list[Callable[[], None]] = []
        self.effect = Effect.absent

    def prepare(self, case: BaselineCase) -> bool:
        """Prepare the answer to a call, unless it depends on the call; whether the call may show the fault."""
        self._answer, self._is_further, self.effect = None, False, Effect.absent
        if is_random(case.function) or self._fault.is_of_calls:
            return True
        self._answer = Answer.right(case)
        self.effect = self._fault.spoil(self._answer)
        return self.effect is Effect.shown

    def has(self, name: str) -> bool:
        return name == current_case.get().function  # not the form it is compared with, which would be spoilt as well

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        context.stream.synchronize()
        answer = self._answer or self._answer_to(current_case.get(), arguments)
        self._is_further = True
        given = list(zip(lookup(name).parameters[1:], arguments, strict=True))
        for parameter, value in given:
            if parameter.is_result and parameter.name in answer.results:
                self._hand_back(context, parameter, value, answer)
        if self._fault.after is not None:
            inputs = [t for p, value in given if p.role is Role.input for t in _tensors(value)]
            results = [t for p, value in given if p.is_result for t in _tensors(value)]
            self._had(self._fault.after(inputs, results))
        return Error.Success

    def _had(self, effect: Effect) -> None:
        """A call had this effect."""
        self.effect = self.effect if self.effect is Effect.shown else effect

    def _hand_back(self, context: Context, parameter: Parameter, target: Any, answer: Answer) -> None:
        arrays = answer.results[parameter.name]
        if isinstance(target, Box):
            _fill(context, parameter, target, arrays, answer)
            return
        for tensor, array in zip(_tensors(target), arrays, strict=True):
            values, view = array.reshape(tensor.shape), tensor.view()
            if self._fault.late:
                self._had(shown(view.tobytes() != values.tobytes()))
                self._late.append(partial(np.copyto, view, values))
            else:
                np.copyto(view, values)

    def _synchronize(self, stream: int) -> int | None:
        """What the runtime does, and afterwards what was not left to the stream."""
        assert self._runtime.stream_sync is not None
        code = self._runtime.stream_sync(stream)
        while self._late:
            self._late.pop()()
        return code

    def _answer_to(self, case: BaselineCase, arguments: Sequence[Any]) -> Answer:
        """The expected results, or random ones that are drawn, and spoilt, as the fault has it."""
        if not is_random(case.function):
            answer = Answer.right(case)
            if self._fault.again is not None and self._is_further:
                self._had(self._fault.again(answer))
            return answer
        self._calls += 1
        generator = next((argument for argument in arguments if isinstance(argument, Generator)), None)
        answer, drawn_wrong = draw_with(self._fault, case, generator, self._calls)
        spoilt = self._fault.spoil(answer)
        self._had(spoilt if drawn_wrong is Effect.absent else drawn_wrong)
        return answer

    def last_error(self) -> str:
        return ""

    def open_device(self) -> Device:
        return Device(replace(self._runtime, stream_sync=self._synchronize), host_addressable=True)


def _fill(context: Context, parameter: Parameter, box: Box, arrays: Sequence[Array], answer: Answer) -> None:
    """Number or tensor, as the result is handed back by pointer."""
    if parameter.annotation in OUT_VALUES:
        box.value = arrays[0].item()
    elif arrays:
        box.value = _made(context, arrays[0], LAYOUTS[answer.layouts[parameter.name]])


def _made(context: Context, array: Array, layout: Layout) -> Tensor:
    tensor = context.require_tensor(array.shape, from_numpy(array.dtype), layout(array.shape).strides)
    tensor.write(array)
    return tensor


def _tensors(value: Any) -> list[Tensor]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, Tensor)]
