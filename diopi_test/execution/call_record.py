"""`CallRecord`: the observable effects of one call, which the checks examine without the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.parameters import Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.oracle.records import BaselineCase, Expected
from lib_rt.dtypes import to_numpy
from lib_rt.errors import GuardError

Bytes = NDArray[np.uint8]
"""The bytes of a tensor's storage, as an array of one axis."""


def are_bits_equal(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Return whether two arrays have equal bits, without finding out where they differ."""
    return first.tobytes() == second.tobytes()


@final
@dataclass(frozen=True, kw_only=True)
class TensorRecord:
    """A tensor of the call, before and after it.

    Attributes:
        name: the parameter, with `.number` for an entry of an array of tensors.
        role: input, output, inout or workspace.
        dtype, shape, strides, offset: the positions of the elements in the storage; strides and offset count elements.
        before, after: the bytes of the whole storage; `before` is None for a tensor that the callee allocated.
        expected: the expected result; None for an input.
    """

    name: str
    role: Role
    dtype: Dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    before: Bytes | None
    after: Bytes
    expected: Expected | None = None

    @cached_property
    def values(self) -> NDArray[Any]:
        """The elements after the call."""
        return self._elements(self.after, to_numpy(self.dtype))

    @property
    def earlier(self) -> NDArray[Any] | None:
        """The elements before the call; None for a tensor that the callee allocated."""
        return None if self.before is None else self._elements(self.before, to_numpy(self.dtype))

    @cached_property
    def has_gaps(self) -> bool:
        """Whether the storage has bytes that belong to no element."""
        elements = prod(self.shape) * self._item_size
        if elements < len(self.after):
            return True
        return not self._is_row_major and bool(self.gaps.any())  # elements may share memory

    def with_values_of(self, storage: Bytes) -> Bytes:
        """Return the storage after the call, with the elements replaced by those of `storage`."""
        mixed, dtype = self.after.copy(), np.dtype((np.void, self._item_size))
        self._elements(mixed, dtype)[...] = self._elements(storage, dtype)
        return mixed

    @cached_property
    def gaps(self) -> NDArray[np.bool_]:
        """A mask of the bytes of the storage that belong to no element."""
        gaps = np.ones(len(self.after), bool)
        self._elements(gaps, np.dtype((np.void, self._item_size)))[...] = bytes(self._item_size)
        return gaps

    @property
    def _is_row_major(self) -> bool:
        """Whether the elements are contiguous in row-major order; axes of length 1 don't matter."""
        step = 1
        for length, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if length != 1 and stride != step:
                return False
            step *= length
        return True

    @property
    def _item_size(self) -> int:
        """The size of an element in bytes."""
        return to_numpy(self.dtype).itemsize

    def _elements(self, storage: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a view of the elements in a storage with this element type."""
        if 0 in self.shape:
            return np.empty(self.shape, dtype)
        steps = tuple(stride * dtype.itemsize for stride in self.strides)
        return np.ndarray(self.shape, dtype, storage.data, self.offset * dtype.itemsize, steps)


@final
@dataclass(frozen=True, kw_only=True)
class ValueRecord:
    """A number that the call returned by pointer.

    Attributes:
        name: the name of the result.
        actual: the number.
        expected: the expected result.
        before: the number in this place before the call if the function reads it; otherwise None.
    """

    name: str
    actual: Any
    expected: Expected
    before: int | None = None


@final
@dataclass(frozen=True)
class GeneratorRecord:
    """The seed and offset of a generator before and after the call.

    Attributes:
        name: the name of the parameter.
        before: seed and offset before the call.
        after: seed and offset after the call.
    """

    name: str
    before: tuple[int, int]
    after: tuple[int, int]


@final
@dataclass(frozen=True, kw_only=True)
class CallRecord:
    """The observable effects of one call, for the checks.

    Attributes:
        prototype, case: the function and the case.
        tensors: the tensors that were passed, and the tensors that the callee allocated.
        values: numbers that the call returned through pointers.
        missing: by name, the expected results that the callee should have allocated and did not.
        damage: guard zones that were written to; empty until the tensors are released.
        generators: the generators that the call used.
        again: the same call from the same generator state; None if the call uses no generator.
        other_draws: calls that must draw other numbers, by a description of the difference.
        late: results whose memory still changed after it had been read, if that was checked.
    """

    prototype: Prototype
    case: BaselineCase
    tensors: Sequence[TensorRecord]
    values: Sequence[ValueRecord]
    missing: Mapping[str, Expected]
    damage: Sequence[GuardError]
    generators: Sequence[GeneratorRecord] = ()
    again: CallRecord | None = None
    other_draws: Mapping[str, CallRecord] = field(default_factory=dict)
    late: Sequence[str] = ()

    def results(self) -> Iterator[tuple[TensorRecord, Expected]]:
        """Yield the result tensors with their expected results."""
        return ((record, record.expected) for record in self.tensors if record.expected is not None)
