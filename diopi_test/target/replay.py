"""A vendor that replays calls: each call has the recorded effects of the same call on a target."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, final

import numpy as np

from diopi_impl import IEEE, BaseVendor, VendorError, VendorNotFoundError
from diopi_impl.claims import read_claims
from diopi_impl.host_runtime import HostRuntime
from diopi_impl.numerics import read_numerics_of_library
from diopi_proto import types
from diopi_proto.types import Dtype, Error
from diopi_test.execution.call_groups import TargetOutcomeError
from diopi_test.target.encoding import ArgumentKind, EncodedCall, encode_call
from diopi_test.target.recording import name_of_call
from diopi_test.target.records import TargetFileError, WordReader
from diopi_test.target.results import TargetCallResult, TargetResults
from lib_rt import Context, Device, Tensor
from lib_rt.library import ffi, pointer

MADE_ON_TARGETS = ("call", "chain")
"""The first words of the kinds of groups of calls that a runner makes."""


def open_results(path: Path) -> ReplayVendor:
    """Return the vendor of a file with results.

    Args:
        path: The file that `diopi-runner` wrote.

    Returns:
        The vendor.

    Raises:
        VendorNotFoundError: There is no such file.
        VendorError: The file can't be used.
    """
    if not path.exists():
        raise VendorNotFoundError(f"vendor {path}: there is no such file")
    try:
        return ReplayVendor(path, TargetResults(path))
    except TargetFileError as error:
        raise VendorError(f"vendor {path} can't be loaded: {error}") from error


@final
class ReplayVendor(BaseVendor):
    """A vendor that repeats the effects of calls on a target. It finds the effects of a call by the call's arguments.

    Files next to the results can contain the vendor's claims and the declaration of its arithmetic, as for a library.

    Args:
        path: The path of the results.
        results: The results.
    """

    def __init__(self, path: Path, results: TargetResults) -> None:
        claims = read_claims(path.with_suffix(".claims.toml"))
        numerics = read_numerics_of_library(path) or IEEE
        super().__init__(results.name, results.version, claims=claims, numerics=numerics)
        self._results = results
        self._kind, self._number = "", 0
        self._repeated: Counter[bytes] = Counter()
        self._last_error = ""

    def begin_calls(self, kind: str) -> None:
        """Begin a group of calls; raise TargetOutcomeError if runners do not make such calls."""
        if not kind.startswith(MADE_ON_TARGETS):
            raise TargetOutcomeError.not_run(f"the runner does not make {kind}")
        self._kind, self._number = kind, 0

    def has(self, name: str) -> bool:
        """Return whether the library on the target has the standard function `name`."""
        return name in self._results.functions

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Repeat the effects of a call and return its error code; raise TargetOutcomeError if it did not return."""
        encoded = encode_call(name, context, arguments)
        recorded = self._find(encoded)
        self._number += 1
        if recorded.loss is not None:
            raise TargetOutcomeError(recorded.loss)
        if recorded.result is None:
            raise TargetOutcomeError.not_run(f"the runner ended before {name} returned")
        code, self._last_error = _apply_result(encoded, context, recorded, WordReader(recorded.result))
        return code

    def _find(self, encoded: EncodedCall) -> TargetCallResult:
        """Return the effects of a call, those of equal calls in turn; raise TargetOutcomeError if there are none."""
        key = encoded.key(name_of_call(self._kind, self._number))
        call_result = self._results.calls.get(key)
        if not (call_result and call_result[-1].is_settled) and self._results.read_further():
            call_result = self._results.calls.get(key)
        if not call_result:
            end = "" if self._results.is_complete else ", because the runner did not reach the end of the cases"
            raise TargetOutcomeError.not_run(f"the results lack this call of {encoded.function} ({self._kind}){end}")
        self._repeated[key] += 1
        return call_result[(self._repeated[key] - 1) % len(call_result)]

    def last_error(self) -> str:
        """Return the last error of the vendor on the target."""
        return self._last_error

    def open_device(self) -> Device:
        """Open and return the built-in device."""
        return Device(HostRuntime().functions(), host_addressable=True)


def _apply_result(
    encoded: EncodedCall, context: Context, recorded: TargetCallResult, reader: WordReader
) -> tuple[Error, str]:
    """Change tensors, generators and boxes as the call on the target did.

    Args:
        encoded: the call, with its tensors and generators.
        context: the context, which owns new tensors.
        recorded: the results of the call on the target.
        reader: reads the effects of the call.

    Returns:
        The error code, and the text of the last error.
    """
    code, last_error = reader.number(), reader.text()
    states = [(reader.unsigned(), reader.unsigned()) for _ in range(reader.number())]
    for generator, (seed, offset) in zip(encoded.generators, states, strict=True):
        generator.seed, generator.offset = seed, offset
    tensors = [entry.tensor for entry in encoded.tensors]
    for number in range(reader.number()):
        start, length = reader.numbers(2)
        if length:
            storage = tensors[number].storage_view()
            storage[start : start + length] = np.frombuffer(reader.data(length), np.uint8)
    if code == Error.Success:
        for kind, box in encoded.boxes:
            box.value = _read_box(kind, context, reader)
            tensors += [box.value] if kind is ArgumentKind.new_tensors else []
    for number, offset in recorded.damage:
        _damage_guard(tensors[number], offset)
    return Error(code), last_error


def _read_box(kind: ArgumentKind, context: Context, reader: WordReader) -> Any:
    """Return a number that the call returned by pointer, or a tensor that the callee allocated; None if it did not."""
    if kind is ArgumentKind.number_result:
        return reader.double()
    if kind is not ArgumentKind.new_tensors:
        value = reader.number()
        return bool(value) if kind is ArgumentKind.boolean_result else value
    if not reader.number():
        return None
    dtype, memory_kind, rank, _, nbytes = reader.numbers(5)
    shape, strides = reader.numbers(rank), reader.numbers(rank)
    tensor = context.require_tensor(shape, Dtype(dtype), strides, types.Device(memory_kind))
    context.stream.synchronize()  # the poison of a new tensor is still being copied
    tensor.storage_view()[:] = np.frombuffer(reader.data(nbytes), np.uint8)
    return tensor


def _damage_guard(tensor: Tensor, offset: int) -> None:
    """Change a byte of a guard zone of a tensor, at an offset from the beginning of the storage."""
    byte = ffi.buffer(pointer(tensor.storage_ptr + offset), 1)
    byte[0] = bytes([byte[0][0] ^ 0xFF])
