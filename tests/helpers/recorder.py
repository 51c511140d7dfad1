"""A vendor that has every function and notes what it was called with; what the callee makes, it makes."""

from __future__ import annotations

from typing import Any

from diopi_impl import Box, Vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto import parameters as kinds
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, Error
from lib_rt import Context


class Recorder(Vendor):
    """`calls` holds the name, the values and a description of the tensors of each call."""

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
                    box.value = made(context, parameter.annotation, number + i)
        return Error.Success


def made(context: Context, kind: Any, number: int) -> Any:
    """What the callee makes for the parameter with that number."""
    integer = -(2**50) - number
    numbers = {
        kinds.OutF64: number + 0.1,
        kinds.OutI64: integer,
        kinds.InOutSize: integer,
        kinds.OutBool: number % 2 == 1,
    }
    return numbers[kind] if kind in numbers else context.require_tensor((number + 1,), Dtype.float32)


vendor = Recorder()
