"""`Run`: what one call left behind, as the checks see it. Nothing here needs the device any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.parameters import Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.baseline import BaselineCase, Expected
from lib_rt.dtypes import to_numpy
from lib_rt.errors import GuardError

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class TensorRecord:
    """A tensor of the call, before and after it.

    Attributes:
        name: the parameter, with `.number` for an entry of an array of tensors.
        role: input, output or inout.
        dtype, shape, strides, offset: how the elements lie in the storage, in elements.
        before, after: the whole storage; `before` is None for a tensor the callee made.
        expected: what a result must be.
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

    @cached_property
    def gaps(self) -> NDArray[np.bool_]:
        """Which bytes of the storage belong to no element."""
        gaps = np.ones(len(self.after), bool)
        self._elements(gaps, np.dtype((np.void, to_numpy(self.dtype).itemsize)))[...] = bytes(self._item_size)
        return gaps

    @property
    def _item_size(self) -> int:
        return to_numpy(self.dtype).itemsize

    def _elements(self, storage: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        if 0 in self.shape:
            return np.empty(self.shape, dtype)
        steps = tuple(stride * dtype.itemsize for stride in self.strides)
        return np.ndarray(self.shape, dtype, storage.data, self.offset * dtype.itemsize, steps)


@dataclass(frozen=True)
class ValueRecord:
    """A number the call wrote before it returned."""

    name: str
    given: Any
    expected: Expected


@dataclass(frozen=True)
class GeneratorRecord:
    """Seed and offset of a generator of the call, before and after it."""

    name: str
    before: tuple[int, int]
    after: tuple[int, int]


@dataclass(frozen=True)
class Run:
    """Everything there is to judge about one successful call.

    Attributes:
        prototype, case: what was called with what.
        tensors: inputs and results.
        values: numbers handed back by pointer.
        missing: results the callee should have made and did not.
        damage: guard zones that were written to, known once the tensors are released.
        generators: what was drawn from.
        again: the same call from the same generator state, None where nothing can be drawn or no generator is given.
        others: calls that must draw other numbers, by what they are.
        late: results whose memory went on changing after it had been read, where that was looked for.
    """

    prototype: Prototype
    case: BaselineCase
    tensors: Sequence[TensorRecord]
    values: Sequence[ValueRecord]
    missing: Sequence[str]
    damage: Sequence[GuardError]
    generators: Sequence[GeneratorRecord] = ()
    again: Run | None = None
    others: Mapping[str, Run] = field(default_factory=dict)
    late: Sequence[str] = ()

    def results(self) -> Iterator[tuple[TensorRecord, Expected]]:
        """The result tensors with what they must be."""
        return ((record, record.expected) for record in self.tensors if record.expected is not None)
