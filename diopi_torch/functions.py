"""Calling functions of the standard with tensors of the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, final

import torch

from diopi_impl.base import Box
from diopi_proto import parameters as kinds
from diopi_proto.aten.mapping import FunctionCall
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_proto.types import Dtype, Error, Number, Reduction, RoundMode, Scalar
from diopi_torch.backend import Backend, backend
from diopi_torch.tensors import DTYPES, TORCH_DTYPES, is_dense, is_ours, new, upload
from lib_rt import Generator, Tensor

NOT_HERE = frozenset({Error.NoImplement, Error.ForceFallbackToCPU, Error.DtypeNotSupported, Error._5DNotSupported})
"""Codes with which a vendor says that it does not do what is asked, not that something is wrong with it."""


_OUTSIDE = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
"""How PyTorch behaves outside of operators, and so for a vendor that is written in it: with gradients, say."""


class NotServedError(Exception):
    """The vendor does not serve a call; the message says what it lacks. Nothing was written."""


@final
class Operand:
    """A tensor of a call as the standard sees it."""

    __slots__ = ("dtype", "shape", "strides", "tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.shape = tuple(tensor.shape)
        self.strides = tensor.stride()
        self.dtype = DTYPES.get(tensor.dtype, Dtype.unsupported)

    def opened(self, device: Backend) -> Tensor:
        """It in the context of the current stream: its memory itself."""
        storage = self.tensor.untyped_storage()
        offset = int(self.tensor.storage_offset()) if self.tensor.numel() else 0
        memory = storage.data_ptr(), storage.nbytes()
        return device.stream.tensor(*memory, self.shape, self.dtype, self.strides, offset)


def operand(tensor: torch.Tensor) -> Operand:
    """A tensor of a call. One of the CPU with a single number is copied to the device, as PyTorch does.

    RuntimeError for any other that is not on the device.
    """
    if is_ours(tensor):
        return Operand(tensor)
    if tensor.device.type == "cpu" and tensor.dim() == 0:
        return Operand(upload(tensor))
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but found one of shape {list(tensor.shape)} on {tensor.device}"
    )


@final
class DeviceMaker:
    """Makes what a mapping needs, on the device.

    Args:
        dtype: of the operator's first result, which numbers that become tensors take; None if it has none.
    """

    def __init__(self, dtype: torch.dtype | None) -> None:
        self._dtype = dtype

    def of_numbers(self, value: Number | list[int]) -> Operand:
        dtype = torch.int64 if isinstance(value, list) else self._dtype
        return Operand(upload(torch.tensor(value, dtype=dtype)))

    def number_in(self, tensor: Operand) -> Number | None:
        return None if tensor.shape or tensor.tensor.dtype.is_complex else tensor.tensor.item()

    def laid_out(self, tensor: Operand, shape: tuple[int, ...], strides: tuple[int, ...]) -> Operand:
        return Operand(tensor.tensor.as_strided(shape, strides))

    def of_type(self, tensor: Operand, dtype: Dtype) -> Operand:
        return Operand(new(tensor.shape, TORCH_DTYPES[dtype]))

    def generator(self, given: torch.Generator | None) -> Generator:
        """The device's, or one seeded with the next number that `given` draws."""
        if given is None:
            return backend().generator
        return Generator(backend().device, int(torch.randint(2**63 - 1, (), generator=given)))


def check_has(functions: Sequence[str]) -> None:
    """NotServedError unless the vendor has all of these functions."""
    vendor = backend().vendor
    for function in functions:
        if not vendor.has(function):
            raise NotServedError(f"{vendor.name} has no {function}")


Performed = Callable[[FunctionCall], Mapping[str, Any]]
"""Performs a call; the results that the vendor made, by name."""

Watch = Callable[[FunctionCall, Performed], Mapping[str, Any]]
"""Performs a call by what it is given for that, looking at what there is before and after it."""

_watches: dict[int, Watch] = {}
"""By the number of the thread whose calls are watched."""


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Have a watch perform the calls that this thread makes meanwhile; one that watches already is within it."""
    thread, before = get_ident(), _watches.get(get_ident())
    _watches[thread] = watch if before is None else lambda call, do: watch(call, lambda one: before(one, do))
    try:
        yield
    finally:
        if before is None:
            del _watches[thread]
        else:
            _watches[thread] = before


def perform(call: FunctionCall) -> Mapping[str, Any]:
    """Call a function on the current stream; the results that the vendor made, by name.

    Raises NotServedError if the vendor does not do it, RuntimeError with its explanation if the call fails.
    """
    watch = _watches.get(get_ident()) if _watches else None
    return _perform(call) if watch is None else watch(call, _perform)


def _perform(call: FunctionCall) -> Mapping[str, Any]:
    device = backend()
    vendor, prototype = device.vendor, lookup(call.function)
    try:
        values = [_value(device, p, call) for p in prototype.parameters[1:]]
        with torch._C._ForceDispatchKeyGuard(*_OUTSIDE):
            code = vendor.call(call.function, device.stream.context, *values)
        if code in NOT_HERE:
            raise NotServedError(f"{call.function} answered {code.name}: {vendor.last_error()}")
        if code is not Error.Success:
            raise RuntimeError(f"{vendor.name}: {call.function} answered {code.name}: {vendor.last_error()}")
        boxes = zip(prototype.parameters[1:], values, strict=True)
        return {p.name: _received(box.value) for p, box in boxes if isinstance(box, Box)}
    finally:
        if device.stream.context.required:
            device.stream.end_context()


def _value(device: Backend, parameter: Parameter, call: FunctionCall) -> Any:
    """What is passed for a parameter."""
    if parameter.role is Role.count:
        return _count(call)
    if issubclass(parameter.annotation, kinds.NewOut) or parameter.annotation in (kinds.OutBool, kinds.OutI64):
        return Box()
    value = call.results[parameter.name] if parameter.name in call.results else call.arguments.get(parameter.name)
    return _passed(device, parameter.annotation, value)


def _passed(device: Backend, kind: Any, value: Any) -> Any:
    """A value as a vendor takes it."""
    if isinstance(value, Operand):
        return value.opened(device)
    if isinstance(value, list):
        return [_passed(device, kind, entry) for entry in value]
    if value is None:
        return None
    if issubclass(kind, kinds.Scalar):
        return Scalar.of(value)
    if issubclass(kind, Reduction | RoundMode):
        return kind[value]
    return value


def _count(call: FunctionCall) -> int:
    return next(len(value) for value in (*call.arguments.values(), *call.results.values()) if isinstance(value, list))


def _received(value: Any) -> Any:
    """What the vendor made: a tensor in memory of the device's own, or a number."""
    if not isinstance(value, Tensor):
        return value
    received = new(value.shape, TORCH_DTYPES[value.dtype], value.strides)
    if not is_dense(received):
        raise NotServedError(f"a result of shape {value.shape} has strides {value.strides}, with gaps")
    nbytes = value.numel * value.element_size
    if nbytes:
        backend().stream.native.d2d(received.data_ptr(), value.data_ptr, nbytes)
    return received
