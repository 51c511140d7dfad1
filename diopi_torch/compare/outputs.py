"""What an operator gave on the device, compared with what it gives on the CPU, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.baseline.records import Expected
from diopi_test.cases.data import widen
from diopi_test.cases.formats import FloatArray, format_of, is_inexact, ulp
from diopi_test.oracle.budget import K
from diopi_torch.compare.contents import array_of
from diopi_torch.compare.on_cpu import CpuCall, PreciseCall
from diopi_torch.layout import DTYPES

FIRST = 4
"""Elements that are shown of a tensor."""


@final
@dataclass(frozen=True)
class ComparedTensor:
    """A tensor of a call, compared.

    Attributes:
        name: of the argument, or `result`, with `.number` where there are several.
        right: whether it is what it should be.
        lines: what is to be said of it.
    """

    name: str
    right: bool
    lines: tuple[str, ...]


@final
@dataclass(frozen=True)
class Known:
    """What the standard says of a function's result.

    Attributes:
        expected: it.
        strides: of the tensor, in elements.
    """

    expected: Expected
    strides: tuple[int, ...]

    def of(self, tensor: torch.Tensor) -> Expected | None:
        """The same of a tensor over that memory, whose axes may be in another order; None if it has other elements."""
        one, form = self.expected, (tuple(tensor.shape), tensor.stride())
        if one.dtype is not DTYPES[tensor.dtype]:
            return None
        if (one.values.shape, self.strides) == form:
            return one
        mine, its = _places(one.values.shape, self.strides), _places(*form)
        if not np.array_equal(np.sort(mine), np.sort(its)):
            return None
        order = np.argsort(mine)[np.argsort(np.argsort(its))]

        def moved(array: NDArray[Any] | None) -> Any:
            if array is None:
                return None
            return np.broadcast_to(array, one.values.shape).ravel()[order].reshape(form[0])

        return replace(
            one,
            values=moved(one.values),
            unit=moved(one.unit),
            flushed=moved(one.flushed),
            specified=moved(one.specified),
        )


def _places(shape: Sequence[int], strides: Sequence[int]) -> NDArray[np.intp]:
    """Where the elements of a tensor lie, in their order, counted in elements from the first."""
    places = np.zeros((), np.intp)
    for size, stride in zip(shape, strides, strict=True):
        places = places[..., None] + stride * np.arange(size)
    return places.ravel()


def compared(call: CpuCall, returned: Any, known: Mapping[int, Known]) -> Iterator[ComparedTensor]:
    """The outputs of a call that was made, and its inputs, which it must not have changed.

    Args:
        call: as it was before.
        returned: what it returned on the device.
        known: what the standard says of results, by the address of their memory.
    """
    given = call.outputs(returned, call.named)
    yield from _outputs_of(call, given, known)
    written = [content for name, content in call.contents.items() if call.is_written(name)]
    for name, content in call.contents.items():
        if not call.is_written(name):
            yield _input(name, np.array_equal(content.stored, content.read_again(written)))


def _outputs_of(
    call: CpuCall, given: Mapping[str, torch.Tensor], known: Mapping[int, Known]
) -> Iterator[ComparedTensor]:
    try:
        wanted = call.here()
    except (RuntimeError, NotImplementedError) as error:
        told = f"not compared: the CPU can't do it: {str(error).splitlines()[0]}"
        yield from (ComparedTensor(name, True, (f"{name}: {told}",)) for name in given)
        return
    precise = _precise(call)
    for name, tensor in given.items():
        yield _output(name, tensor, wanted[name], None if call.draws else _Truth.of(tensor, name, precise, known))


def _precise(call: CpuCall) -> PreciseCall | None:
    try:
        return None if call.draws else PreciseCall(call)
    except (RuntimeError, NotImplementedError):  # the operator is not for float64
        return None


def _input(name: str, untouched: bool) -> ComparedTensor:
    told = "untouched" if untouched else "was written, though the operator's schema does not say so"
    return ComparedTensor(name, untouched, (f"{name}: {told}",))


@final
@dataclass(frozen=True)
class _Truth:
    """How far an output may be from what the CPU gives.

    Attributes:
        expected: what the standard says of it, if it is a function's result.
        exact: what the operator gives in float64; None if nobody knows.
        unit: what errors are measured in: K of it are allowed.
    """

    expected: Expected | None
    exact: NDArray[Any] | None
    unit: FloatArray | None

    @classmethod
    def of(cls, tensor: torch.Tensor, name: str, precise: PreciseCall | None, known: Mapping[int, Known]) -> _Truth:
        """Of an output: by the standard's budgets if it is a function's result, else by those of the operator."""
        dtype, found = DTYPES[tensor.dtype], known.get(tensor.data_ptr())
        expected = None if found is None else found.of(tensor)
        exact = precise.outputs.get(name) if precise else None
        if exact is None or exact.shape != tuple(tensor.shape):
            exact = None
        if not is_inexact(dtype):
            return cls(expected, exact, None)
        if expected is not None:
            return cls(expected, exact, expected.unit)
        return cls(None, exact, precise.unit(name, dtype) if precise and exact is not None else None)

    def wrong(self, given: NDArray[Any], wanted: NDArray[Any], dtype: Dtype) -> NDArray[np.bool_]:
        """The elements farther than allowed from what the CPU gives in this element type, and from the exact number."""
        if self.expected is not None and self.expected.judged:
            return np.zeros(given.shape, bool)
        if is_inexact(dtype):
            unit = ulp(wanted, dtype) if self.unit is None else self.unit
            allowed = K * unit + format_of(dtype).tiny
            wrong = _is_off(given, wanted, allowed)
            if self.exact is not None:
                wrong &= _is_off(given, self.exact, allowed)
        else:
            wrong = given != wanted
        if self.expected is not None and self.expected.specified is not None:
            wrong &= self.expected.specified
        return wrong


def _is_off(given: NDArray[Any], wanted: NDArray[Any], allowed: FloatArray) -> NDArray[np.bool_]:
    """Where two arrays differ by more than is allowed; NaN is equal to NaN."""
    with np.errstate(all="ignore"):
        same = (given == wanted) | (np.isnan(given) & np.isnan(wanted)) | (np.abs(given - wanted) <= allowed)
    return np.logical_not(same)


def _output(name: str, tensor: torch.Tensor, wanted: NDArray[Any], truth: _Truth | None) -> ComparedTensor:
    """One output; of one that is drawn, the form alone is compared."""
    given, dtype = array_of(tensor), DTYPES[tensor.dtype]
    if given.shape != wanted.shape or given.dtype != wanted.dtype:
        told = f"{name}: {given.dtype}{list(given.shape)}, on the CPU {wanted.dtype}{list(wanted.shape)}"
        return ComparedTensor(name, False, (told,))
    if truth is None:
        return ComparedTensor(name, True, (f"{name}: drawn at random, of the same form",))
    here, there = widen(given, dtype), widen(wanted, dtype)
    wrong = truth.wrong(here, there, dtype)
    if not wrong.any():
        return ComparedTensor(name, True, (f"{name}: allclose",))
    return ComparedTensor(name, False, tuple(_told(name, tensor, here, there, wrong)))


def _told(
    name: str, tensor: torch.Tensor, given: NDArray[Any], wanted: NDArray[Any], wrong: NDArray[np.bool_]
) -> Iterator[str]:
    """What is to be said of a tensor that is wrong."""
    with np.errstate(all="ignore"):
        apart = np.where(wrong, np.abs(given * 1.0 - wanted * 1.0), 0)
        everywhere = np.abs(given * 1.0 - wanted * 1.0)
    place = np.unravel_index(int(np.argmax(np.where(np.isnan(apart), np.inf, apart))), given.shape)
    index = tuple(map(int, place))
    yield (
        f"{name}: {int(wrong.sum())} of {wrong.size} elements differ, most at {index}: {given[index]} and "
        f"{wanted[index]}, by {apart[index]:.6g}; mean absolute error {everywhere.mean():.6g}"
    )
    form = f"{DTYPES[tensor.dtype].name}{list(tensor.shape)} strides {list(tensor.stride())}"
    for where, array in (("device", given), ("CPU", wanted)):
        first = ", ".join(f"{value:.6g}" if array.dtype.kind == "f" else str(value) for value in array.flat[:FIRST])
        yield f"  {where}: {form}: {first}{', …' if array.size > FIRST else ''}"
