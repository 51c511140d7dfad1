"""A vendor that is right but for one fault."""

from __future__ import annotations

from typing import Any

import numpy as np

from diopi_impl import BaseVendor, Box
from diopi_proto.interface import lookup
from diopi_proto.parameters import OUT_VALUES, Parameter, Role
from diopi_proto.types import Error
from diopi_test.audit.fault import Answer, Fault, Results
from diopi_test.execution import current_case
from lib_rt import Context, Device, RuntimeFunctions, Tensor
from lib_rt.dtypes import from_numpy


class SpoiltVendor(BaseVendor):
    """Answers every call as the baseline expects, spoilt by `fault`.

    Attributes:
        shown: whether the fault made a difference in the latest call.
    """

    def __init__(self, fault: Fault, runtime: RuntimeFunctions) -> None:
        super().__init__(f"faulty: {fault.name}", "1")
        self._fault = fault
        self._runtime = runtime
        self.shown = False

    def has(self, name: str) -> bool:
        return True

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        context.stream.synchronize()
        answer = Answer.right(current_case.get())
        shown = self._fault.spoil(answer)
        parameters = lookup(name).parameters[1:]
        for parameter, value in zip(parameters, arguments, strict=True):
            if parameter.is_result:
                _hand_back(context, parameter, value, answer.results)
        if self._fault.after is not None:
            given = list(zip(parameters, arguments, strict=True))
            inputs = [t for p, value in given if p.role is Role.input for t in _tensors(value)]
            results = [t for p, value in given if p.is_result for t in _tensors(value)]
            shown = self._fault.after(inputs, results)
        self.shown = shown
        return Error.Success

    def last_error(self) -> str:
        return ""

    def open_device(self) -> Device:
        return Device(self._runtime, host_addressable=True)


def _hand_back(context: Context, parameter: Parameter, target: Any, results: Results) -> None:
    arrays = results.get(parameter.name, [])
    if isinstance(target, Box):
        if parameter.annotation in OUT_VALUES:
            target.value = arrays[0].item()
        elif arrays:
            target.value = context.require_tensor(arrays[0].shape, from_numpy(arrays[0].dtype))
            target.value.write(arrays[0])
        return
    for tensor, array in zip(_tensors(target), arrays, strict=False):
        np.copyto(tensor.view(), array.reshape(tensor.shape))


def _tensors(value: Any) -> list[Tensor]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, Tensor)]
