"""Compute the data of a case: the values of every argument.

A case only describes its tensors by shapes, domains and layouts (`TensorSpec`). A generator that depends only on the
names of the function, the case and the argument draws their values. To *materialize* arguments means to compute their
values. References compute in float64, complex128, int64 or bool, the *reference's arithmetic*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto import parameters as kinds
from diopi_proto.dtypes import is_complex
from diopi_proto.facts import HoldsTruth
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOf, TensorSpec, Values
from diopi_test.cases.domains import random_generator
from diopi_test.cases.layouts import Placement
from lib_rt.dtypes import to_numpy
from lib_rt.formats import is_inexact


@dataclass(frozen=True)
class TensorData:
    """The values of a tensor argument, rounded to its element type, and the spec that they follow."""

    values: NDArray[Any]
    spec: TensorSpec

    @property
    def dtype(self) -> Dtype:
        """Return the element type."""
        return self.spec.dtype

    @property
    def exact(self) -> NDArray[Any]:
        """Return the same values in the reference's arithmetic: float64, complex128, int64 or bool."""
        return widen(self.values, self.spec.dtype)


def widen(values: NDArray[Any], dtype: Dtype) -> NDArray[Any]:
    """Return `values` of a tensor of type `dtype` in the reference's arithmetic."""
    if is_complex(dtype):
        return values.astype(np.complex128)
    if is_inexact(dtype):
        return values.astype(np.float64)
    return values if values.dtype == bool else values.astype(np.int64)


def convert_array(values: NDArray[Any], dtype: Dtype) -> NDArray[Any]:
    """Return `values` after conversion to `dtype`; input and output are in the reference's arithmetic."""
    if dtype is Dtype.bool:
        return np.asarray(values != 0)
    with np.errstate(all="ignore"):
        return widen((values if is_complex(dtype) else values.real).astype(to_numpy(dtype)), dtype)


def convert(value: Any, dtype: Dtype) -> Any:
    """Return an array or a number after conversion to `dtype`, in the reference's arithmetic."""
    numbers = convert_array(np.asarray(value), dtype)
    return numbers if isinstance(value, np.ndarray) else numbers.item()


ReferenceCall = Callable[[ResultOf, Values], Any]
"""Returns the result that a `ResultOf` describes, for the values of the earlier arguments."""


def materialize(prototype: Prototype, case: Case, evaluate_reference: ReferenceCall) -> Mapping[str, Any]:
    """Compute the values of a case's arguments.

    Args:
        prototype: The prototype of the function.
        case: The case.
        evaluate_reference: Computes arguments that are results of other functions.

    Returns:
        Values by name, in the case's order: `TensorData`, a list of them, None, or an attribute.
    """
    values: dict[str, Any] = {}
    for name, argument in case.arguments.items():
        if isinstance(argument, list):
            values[name] = [
                _draw(prototype, case, f"{name}.{number}", entry, values, evaluate_reference)
                if entry is not None
                else None
                for number, entry in enumerate(argument)
            ]
        elif isinstance(argument, TensorSpec):
            values[name] = _draw(prototype, case, name, argument, values, evaluate_reference)
        else:
            values[name] = _attribute(prototype, name, argument)
    return values


def plain_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return materialized arguments as the reference takes them."""
    return {name: map_tensors(value, lambda tensor: tensor.exact) for name, value in values.items()}


def map_tensors(value: Any, change: Callable[[TensorData], Any]) -> Any:
    """Return one materialized argument with `change` applied to each of its tensors; attributes are unchanged."""
    if isinstance(value, list):
        return [map_tensors(entry, change) for entry in value]
    return change(value) if isinstance(value, TensorData) else value


def decode_masks(prototype: Prototype, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return materialized arguments with uint8 mask tensors converted to the bool tensors that they represent."""

    def truth(name: str, tensor: TensorData) -> TensorData:
        if not is_mask(prototype, name, tensor.spec.dtype):
            return tensor
        return TensorData(tensor.values != 0, replace(tensor.spec, dtype=Dtype.bool))

    return {name: map_tensors(value, partial(truth, name)) for name, value in values.items()}


def is_mask(prototype: Prototype, name: str, dtype: Dtype) -> bool:
    """Return whether the argument `name`, a tensor of type `dtype`, is a mask: it holds truth values as bytes."""
    return dtype is Dtype.uint8 and prototype.parameter(name).fact(HoldsTruth) is not None


def _draw(
    prototype: Prototype, case: Case, name: str, spec: TensorSpec, earlier: Values, evaluate_reference: ReferenceCall
) -> TensorData:
    """Return the values of a tensor; a real tensor takes the real parts of complex values.

    Args:
        prototype: The function.
        case: The case.
        name: The name of the tensor, which is a part of the key of its random numbers.
        spec: The specification of the tensor.
        earlier: The values of the arguments before this one, from which values may be computed.
        evaluate_reference: Returns a result of another function's reference (`ResultOf`).
    """
    if isinstance(spec.compute, ResultOf):
        raw = np.reshape(evaluate_reference(spec.compute, plain_values(earlier)), spec.shape)
    elif spec.compute is not None:
        raw = np.broadcast_to(np.asarray(spec.compute(plain_values(earlier))), spec.shape)
    else:
        count = int(np.prod(spec.shape))
        raw = spec.domain(random_generator(prototype.base, case.label, name), count, spec.dtype).reshape(spec.shape)
    if np.iscomplexobj(raw) and not is_complex(spec.dtype) and spec.dtype is not Dtype.bool:
        raw = raw.real
    if not (place := spec.layout(spec.shape)).is_non_overlapping(spec.shape):
        raw = _share_overlapping_elements(raw, place)
    with np.errstate(all="ignore"):
        return TensorData(raw.astype(to_numpy(spec.dtype)), spec)


def _share_overlapping_elements(raw: NDArray[Any], place: Placement) -> NDArray[Any]:
    """Return `raw` with equal values for elements that share memory: the value of the first of them."""
    offsets = np.zeros(raw.shape, np.int64)
    for axis, (length, step) in enumerate(zip(raw.shape, place.strides, strict=True)):
        offsets += (np.arange(length) * step).reshape([-1 if i == axis else 1 for i in range(raw.ndim)])
    _, first, inverse = np.unique(offsets.reshape(-1), return_index=True, return_inverse=True)
    return np.asarray(raw.reshape(-1)[first][inverse].reshape(raw.shape))


def _attribute(prototype: Prototype, name: str, value: Any) -> Any:
    """Return an attribute as the callee receives it: a float32 attribute is rounded, and a range becomes a tuple."""
    if not name.startswith("_") and issubclass(prototype.parameter(name).annotation, kinds.f32):
        return float(np.float32(value))
    return tuple(value) if isinstance(value, range) else value
