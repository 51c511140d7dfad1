"""Helpers of the definitions in `operators.py`.

A helper that adds nodes has the graph as its first parameter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from diopi_impl.specs import ResultSpec
from diopi_proto.types import Reduction
from lib_rt.dtypes import to_numpy
from onnxruntime_vendor.graph import BOOL, Graph, Value, onnx_type

ALL_BOXES = 2**31 - 1
"""A limit for the number of selected boxes that no call reaches."""


def is_floating(value: Value) -> bool:
    """Return whether the elements are floating-point numbers; NumPy has no kind for those of `bfloat16`."""
    return value.dtype.kind not in "iub"


def is_bool(value: Value) -> bool:
    """Return whether the elements are truth values."""
    return value.dtype == BOOL


def cast(graph: Graph, value: Value, target: Value | ResultSpec | type) -> Value:
    """Return the tensor in the element type of another tensor or result, or in a type of NumPy."""
    if isinstance(target, ResultSpec):
        dtype: np.dtype[Any] = np.dtype(to_numpy(target.dtype))
    else:
        dtype = target.dtype if isinstance(target, Value) else np.dtype(target)
    return value if value.dtype == dtype else graph.operator("Cast")(value, to=onnx_type(dtype))


def floating(graph: Graph, value: Value) -> Value:
    """Return the tensor with integers and truth values converted to float32, as the standard requires."""
    return value if is_floating(value) else cast(graph, value, np.float32)


def truth(graph: Graph, value: Value) -> Value:
    """Return whether each element is not 0."""
    return cast(graph, value, np.bool_)


def like(graph: Graph, number: Any, target: Value | ResultSpec) -> Value:
    """Return a number as a constant of the element type of a tensor or result; a tensor remains as it is.

    Raises:
        ValueError: The number is outside the range of the type.
    """
    if isinstance(number, Value):
        return number
    dtype = np.dtype(to_numpy(target.dtype) if isinstance(target, ResultSpec) else target.dtype)
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
        raise ValueError(f"{number} is outside the range of {dtype}")
    return graph.add_constant(np.asarray(number).astype(dtype))


def scaled(graph: Graph, value: Value, factor: Any) -> Value:
    """Return the tensor times a number, which is converted to the type of the tensor; a factor of 1 adds no node."""
    if factor == 1:
        return value
    return graph.operator("Mul")(value, graph.add_constant(np.asarray(factor).astype(value.dtype)))


def whole(graph: Graph, value: Value, operator: str) -> Value:
    """Return the result of an operator that rounds; integers are unchanged."""
    return graph.operator(operator)(value) if is_floating(value) else value


def remainder(graph: Graph, value: Value, divisor: Value) -> Value:
    """Return the remainder with the sign of the divisor. ONNX has this remainder only for integers."""
    op = graph.operator
    if not is_floating(value):
        return op("Mod")(value, divisor)
    remaining = op("Mod")(value, divisor, fmod=1)
    has_other_sign = op("Xor")(op("Less")(remaining, 0), op("Less")(divisor, 0))
    is_changed = op("And")(op("Not")(op("Equal")(remaining, 0)), has_other_sign)
    return op("Where")(is_changed, op("Add")(remaining, divisor), remaining)


def divided(graph: Graph, value: Value, divisor: Any, rounding: str) -> Value:
    """Return the quotient, exact ("none") or rounded ("trunc" or "floor").

    ONNX can only round quotients of integers towards zero and quotients of floating numbers down; others are rejected.
    """
    op = graph.operator
    if rounding == "none":
        dividend = floating(graph, value)
        return op("Div")(dividend, cast(graph, like(graph, divisor, dividend), dividend))
    if rounding == "trunc" and not is_floating(value):
        return op("Div")(value, divisor)
    if rounding == "floor" and is_floating(value):
        return op("Floor")(op("Div")(value, divisor))
    reject(f"ONNX has no division of this type that rounds: {rounding}")


def pads(padding: Sequence[int]) -> tuple[int, ...]:
    """Return the same padding at the beginning and the end of every axis."""
    return (*padding, *padding)


def pads_of(rank: int, pad: Sequence[int]) -> tuple[int, ...]:
    """Return paddings in ONNX's order: first the beginnings of all axes, then their ends."""
    pairs = [(0, 0)] * (rank - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    return (*(before for before, _ in pairs), *(after for _, after in pairs))


def axes(value: Value, dim: int | Sequence[int] | None) -> tuple[int, ...] | None:
    """Return the axes over which a tensor is reduced; None stands for all axes.

    A tensor without axes has the axes 0 and −1 in the standard, and none in ONNX.
    """
    if dim is None or value.rank == 0:
        return None
    return (dim,) if isinstance(dim, int) else tuple(dim)


def keeps(value: Value, spec: ResultSpec) -> bool:
    """Return whether the caller's result keeps the axes over which a tensor is reduced."""
    return value.rank == spec.ndim > 0


def permutation(rank: int, first: int, second: int) -> list[int]:
    """Return the permutation of `rank` axes that exchanges the axes `first` and `second`."""
    order = list(range(rank))
    if rank:
        order[first], order[second] = order[second], order[first]
    return order


def size_along(graph: Graph, value: Value, dim: int) -> Value:
    """Return the size of an axis as a tensor with one element."""
    start = dim % value.rank
    return graph.operator("Shape")(value, start=start, end=start + 1)


def cast_all(graph: Graph, values: Sequence[Value], target: ResultSpec) -> list[Value]:
    """Return the tensors in the element type of the result."""
    return [cast(graph, value, target) for value in values]


def unsqueezed(graph: Graph, values: Sequence[Value], dim: int) -> list[Value]:
    """Return the tensors with a new axis."""
    return [graph.operator("Unsqueeze")(value, (dim,)) for value in values]


def in_planes(graph: Graph, pooled: Value, source: Value) -> tuple[Value, Value]:
    """Return maxima, and their flat positions in the spatial axes; ONNX returns positions in the whole tensor."""
    maxima, positions = pooled.results(2)
    size = graph.operator("ReduceProd")(graph.operator("Shape")(source, start=2), keepdims=0)
    return maxima, graph.operator("Mod")(Value(positions.name, size.dtype), size)


def adaptive(graph: Graph, value: Value, shape: Sequence[int], sizes: Sequence[int], operator: str) -> Value:
    """Return adaptive pooling; reject sizes for which the windows differ in size, which ONNX does not support."""
    if any(not result_size or size % result_size for size, result_size in zip(shape[2:], sizes, strict=True)):
        reject("ONNX has no pooling with windows of several sizes")
    kernel = [size // result_size for size, result_size in zip(shape[2:], sizes, strict=True)]
    return graph.operator(operator)(value, kernel_shape=kernel, strides=kernel)


def norm(graph: Graph, value: Value, order: float, dim: tuple[int, ...] | None, keepdims: bool) -> Value:
    """Return the norms along the axes; reject orders that ONNX does not support."""
    if order in (1, 2):
        return graph.operator(f"ReduceL{int(order)}")(value, dim, keepdims=keepdims)
    if order in (math.inf, -math.inf):
        operator = "ReduceMax" if order > 0 else "ReduceMin"
        return graph.operator(operator)(graph.operator("Abs")(value), dim, keepdims=keepdims)
    reject(f"ONNX has no norm of order {order}")


def reduced(graph: Graph, losses: Value, reduction: str) -> Value:
    """Return the losses, their sum or their mean."""
    return losses if reduction == "none" else graph.operator(f"Reduce{reduction.title()}")(losses, keepdims=0)


def from_start(axes: Sequence[int], rank: int) -> list[int]:
    """Return axes counted from the first; `perm` takes no others."""
    return [axis % rank for axis in axes]


def leading(graph: Graph, value: Value, count: int) -> Value:
    """Return the tensor with new axes of size 1 in front."""
    return graph.operator("Unsqueeze")(value, tuple(range(count))) if count else value


def filled(graph: Graph, value: Value | None, number: float, shape: Sequence[int], target: Value) -> Value:
    """Return a tensor, or if the caller omitted it, a constant that holds a number everywhere."""
    return graph.add_constant(np.full(shape, number, target.dtype)) if value is None else value


def with_shapes(graph: Graph, values: Sequence[Value], specs: Sequence[ResultSpec]) -> list[Value]:
    """Return results in the shapes of the caller's tensors, which may lack axes of size 1 that ONNX has."""
    reshape = graph.operator("Reshape")
    pairs = zip(values, specs, strict=True)
    return [reshape(value, graph.add_constant(np.asarray(spec.shape, np.int64))) for value, spec in pairs]


def masked_select(graph: Graph, value: Value, mask: Value) -> Value:
    """Return the elements where the mask is true; both are broadcast together."""
    op = graph.operator
    shape = op("Shape")(op("Where")(mask, value, value))
    positions = op("Transpose")(op("NonZero")(op("Expand")(mask, shape)))
    return op("GatherND")(op("Expand")(value, shape), positions)


def nms(graph: Graph, boxes: Value, scores: Value, threshold: float) -> Value:
    """Return the positions of the boxes that non-maximum suppression selects."""
    op = graph.operator
    limit, threshold_value = graph.add_constant(np.asarray([ALL_BOXES])), like(graph, np.float32(threshold), boxes)
    batch = op("Unsqueeze")(boxes, (0,)), op("Unsqueeze")(scores, (0, 1))
    selected = op("NonMaxSuppression")(*batch, limit, threshold_value)
    return op("Gather")(selected, 2, axis=1)


def unique(graph: Graph, value: Value, dim: int | None, return_counts: bool) -> tuple[Value, Value, Value | None]:
    """Return the distinct values, the position of each element among them, and the counts if they are wanted."""
    values, _, positions, counts = graph.operator("Unique")(value, axis=dim, sorted=1).results(4)
    if dim is None:
        positions = graph.operator("Reshape")(positions, graph.operator("Shape")(value))
    return values, positions, counts if return_counts else None


def invalid(reason: str) -> NoReturn:
    """Raise ValueError: the call is invalid, and ONNX Runtime would not notice."""
    raise ValueError(reason)


def reject(reason: str) -> NoReturn:
    """Raise NotImplementedError: neither ONNX nor this vendor has what the call needs."""
    raise NotImplementedError(reason)


def name_of(reduction: Reduction) -> str:
    """Return the name of a reduction or rounding, as ONNX spells it."""
    return reduction.name
