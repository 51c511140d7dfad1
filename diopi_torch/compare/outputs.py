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
    is_correct: bool
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

    def view_as(self, tensor: torch.Tensor) -> Expected | None:
        """The same of a tensor over that memory, whose axes may be in another order; None if it has other elements."""
        expected, form = self.expected, (tuple(tensor.shape), tensor.stride())
        if expected.dtype is not DTYPES[tensor.dtype]:
            return None
        if (expected.values.shape, self.strides) == form:
            return expected
        mine, theirs = _places(expected.values.shape, self.strides), _places(*form)
        if not np.array_equal(np.sort(mine), np.sort(theirs)):
            return None
        order = np.argsort(mine)[np.argsort(np.argsort(theirs))]

        def moved(array: NDArray[Any] | None) -> Any:
            if array is None:
                return None
            return np.broadcast_to(array, expected.values.shape).ravel()[order].reshape(form[0])

        return replace(
            expected,
            values=moved(expected.values),
            unit=moved(expected.unit),
            flushed=moved(expected.flushed),
            specified=moved(expected.specified),
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
    outputs = call.outputs(returned, call.named)
    yield from _outputs_of(call, outputs, known)
    written = [content for name, content in call.contents.items() if call.is_written(name)]
    for name, content in call.contents.items():
        if not call.is_written(name):
            yield _input(name, np.array_equal(content.stored, content.read_again(written)))


def _outputs_of(
    call: CpuCall, outputs: Mapping[str, torch.Tensor], known: Mapping[int, Known]
) -> Iterator[ComparedTensor]:
    try:
        wanted = call.here()
    except (RuntimeError, NotImplementedError) as error:
        reason = f"not compared: the CPU can't do it: {str(error).splitlines()[0]}"
        yield from (ComparedTensor(name, True, (f"{name}: {reason}",)) for name in outputs)
        return
    precise = _precise(call)
    for name, tensor in outputs.items():
        yield _output(
            name, tensor, wanted[name], None if call.draws else _Truth.for_result(tensor, name, precise, known)
        )


def _precise(call: CpuCall) -> PreciseCall | None:
    try:
        return None if call.draws else PreciseCall(call)
    except (RuntimeError, NotImplementedError):  # the operator is not for float64
        return None


def _input(name: str, untouched: bool) -> ComparedTensor:
    statement = "untouched" if untouched else "was written, though the operator's schema does not say so"
    return ComparedTensor(name, untouched, (f"{name}: {statement}",))


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
    def for_result(
        cls, tensor: torch.Tensor, name: str, precise: PreciseCall | None, known: Mapping[int, Known]
    ) -> _Truth:
        """Of an output: by the standard's budgets if it is a function's result, else by those of the operator."""
        dtype, found = DTYPES[tensor.dtype], known.get(tensor.data_ptr())
        expected = None if found is None else found.view_as(tensor)
        exact = precise.outputs.get(name) if precise else None
        if exact is None or exact.shape != tuple(tensor.shape):
            exact = None
        if not is_inexact(dtype):
            return cls(expected, exact, None)
        if expected is not None:
            return cls(expected, exact, expected.unit)
        return cls(None, exact, precise.unit(name, dtype) if precise and exact is not None else None)

    def exceeds_budget(self, actual: NDArray[Any], wanted: NDArray[Any], dtype: Dtype) -> NDArray[np.bool_]:
        """The elements farther than allowed from what the CPU gives in this element type, and from the exact number."""
        if self.expected is not None and self.expected.needs_validator:
            return np.zeros(actual.shape, bool)
        if is_inexact(dtype):
            unit = ulp(wanted, dtype) if self.unit is None else self.unit
            allowed = K * unit + format_of(dtype).tiny
            mask = _is_off(actual, wanted, allowed)
            if self.exact is not None:
                mask &= _is_off(actual, self.exact, allowed)
        else:
            mask = actual != wanted
        if self.expected is not None and self.expected.specified is not None:
            mask &= self.expected.specified
        return mask


def _is_off(actual: NDArray[Any], wanted: NDArray[Any], allowed: FloatArray) -> NDArray[np.bool_]:
    """Where two arrays differ by more than is allowed; NaN is equal to NaN."""
    with np.errstate(all="ignore"):
        same = (actual == wanted) | (np.isnan(actual) & np.isnan(wanted)) | (np.abs(actual - wanted) <= allowed)
    return np.logical_not(same)


def _output(name: str, tensor: torch.Tensor, wanted: NDArray[Any], truth: _Truth | None) -> ComparedTensor:
    """One output; of one that is drawn, the form alone is compared."""
    actual, dtype = array_of(tensor), DTYPES[tensor.dtype]
    if actual.shape != wanted.shape or actual.dtype != wanted.dtype:
        statement = f"{name}: {actual.dtype}{list(actual.shape)}, on the CPU {wanted.dtype}{list(wanted.shape)}"
        return ComparedTensor(name, False, (statement,))
    if truth is None:
        return ComparedTensor(name, True, (f"{name}: drawn at random, of the same form",))
    here, there = widen(actual, dtype), widen(wanted, dtype)
    mask = truth.exceeds_budget(here, there, dtype)
    if not mask.any():
        return ComparedTensor(name, True, (f"{name}: allclose",))
    return ComparedTensor(name, False, tuple(_describe_difference(name, tensor, here, there, mask)))


def _describe_difference(
    name: str, tensor: torch.Tensor, actual: NDArray[Any], wanted: NDArray[Any], mask: NDArray[np.bool_]
) -> Iterator[str]:
    """What is to be said of a tensor that is wrong."""
    with np.errstate(all="ignore"):
        apart = np.where(mask, np.abs(actual * 1.0 - wanted * 1.0), 0)
        distances = np.abs(actual * 1.0 - wanted * 1.0)
    place = np.unravel_index(int(np.argmax(np.where(np.isnan(apart), np.inf, apart))), actual.shape)
    index = tuple(map(int, place))
    yield (
        f"{name}: {int(mask.sum())} of {mask.size} elements differ, most at {index}: {actual[index]} and "
        f"{wanted[index]}, by {apart[index]:.6g}; mean absolute error {distances.mean():.6g}"
    )
    form = f"{DTYPES[tensor.dtype].name}{list(tensor.shape)} strides {list(tensor.stride())}"
    for side, array in (("device", actual), ("CPU", wanted)):
        first = ", ".join(f"{value:.6g}" if array.dtype.kind == "f" else str(value) for value in array.flat[:FIRST])
        yield f"  {side}: {form}: {first}{', …' if array.size > FIRST else ''}"
