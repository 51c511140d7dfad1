"""A vendor that implements every function, records the arguments of each call, and sets results of known values.

Tests of the C interface call all functions and compare the recorded arguments with those that they passed.
"""

from __future__ import annotations

from typing import Any

from diopi_impl import Box, Vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto import parameters as kinds
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, Error
from lib_rt import Context


class RecordingVendor(Vendor):
    """A vendor whose attribute `calls` has the name and the arguments of each call."""

    def __init__(self) -> None:
        super().__init__("recorder", "1.0", HostRuntime().functions(), host_addressable=True)
        self.calls: list[tuple[str, list[Any]]] = []

    def has(self, name: str) -> bool:
        return lookup(name).returns == "diopiError_t"

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        self.calls.append((name, list(arguments)))
        for number, (parameter, value) in enumerate(zip(lookup(name).parameters[1:], arguments, strict=True)):
            boxes = value if isinstance(value, list) else [value]
            for i, box in enumerate(boxes):
                if isinstance(box, Box):
                    box.value = result_value(context, parameter.annotation, number + i)
        return Error.Success


def result_value(context: Context, kind: Any, number: int) -> Any:
    """Return the result that the callee sets for a parameter: the value depends on the kind and the position."""
    integer = -(2**50) - number
    numbers = {
        kinds.OutF64: number + 0.1,
        kinds.OutI64: integer,
        kinds.InOutSize: integer,
        kinds.OutBool: number % 2 == 1,
    }
    return numbers[kind] if kind in numbers else context.require_tensor((number + 1,), Dtype.float32)


vendor = RecordingVendor()
