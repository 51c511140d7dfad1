"""Functions that read, write or select elements by position, index or mask, and their gradients.

JAX clamps positions out of range, or drops what is written there. Positions are therefore checked on the host first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from diopi_impl.functional import Adapted, Adapter, apply_directly
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.filled import rows_of_table
from diopi_impl.jax_cpu.jit import compiled
from diopi_impl.jax_cpu.norm.vector import vector_norm
from diopi_impl.jax_cpu.ranges import check_in_range
from diopi_proto.prototype import Prototype

HostArray = NDArray[Any]
Prepare = Callable[[dict[str, Any]], None]
"""Checks the arguments by name, on the host, and may put others in their places."""


def after(prepare: Prepare, adapter: Adapter = compiled) -> Adapter:
    """`adapter` behind something that is done on the host with the arguments."""

    def adapt(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
        run = adapter(prototype, function)

        def adapted(arguments: Sequence[Any], out: Sequence[Any]) -> Sequence[Any]:
            given = dict(zip((p.name for p in prototype.arguments), arguments, strict=True))
            prepare(given)
            return run(list(given.values()), out)

        return adapted

    return adapt


def check_positions(name: str, positions: HostArray, low: int, high: int) -> None:
    """IndexError unless all positions are in [low, high)."""
    wrong = positions[(positions < low) | (positions >= high)]
    if wrong.size:
        raise IndexError(f"{name} holds {wrong[0]}, expected positions from {low} to {high - 1}")


def length_of(shape: Sequence[int], dim: int) -> int:
    """Length of axis `dim`; a number has one axis, of length 1."""
    sizes = tuple(shape) or (1,)
    if not -len(sizes) <= dim < len(sizes):
        raise IndexError(f"dim {dim} is out of range for shape {tuple(shape)}")
    return sizes[dim]


def _in_axis(shape: Sequence[int], given: dict[str, Any]) -> None:
    """`index` holds positions along axis `dim` of something of this shape."""
    check_positions("index", given["index"], 0, length_of(shape, given["dim"]))


def _one_axis(array: Array) -> Array:
    """A number as a vector of one element."""
    return jnp.atleast_1d(array)


def _key(dim: int, key: Any, ndim: int) -> tuple[Any, ...]:
    """`key` at axis `dim`, all other axes whole."""
    before = dim % max(ndim, 1)
    return (slice(None),) * before + (key,)


def _converted(value: Any, array: Array) -> Array:
    """A number or 0-d array in the type of `array`."""
    number = jnp.asarray(value)
    if number.ndim:
        raise ValueError(f"value has shape {number.shape}, expected one element without axes")
    return number.astype(array.dtype)


# By lists of index tensors and masks


def _places(shape: Sequence[int], indices: Sequence[HostArray | None]) -> list[HostArray | None]:
    """`indices` with every mask replaced by the positions of its true elements, and all positions from 0 on."""
    places: list[HostArray | None] = []
    for entry in indices:
        axis = len(places)
        if entry is None:
            places.append(None)
        elif entry.dtype in (bool, np.uint8):
            if entry.shape != tuple(shape[axis : axis + entry.ndim]):
                raise IndexError(f"a mask of shape {entry.shape} does not fit axis {axis} of shape {tuple(shape)}")
            places.extend(np.nonzero(entry))
        elif axis >= len(shape):
            raise IndexError(f"more indices than axes of shape {tuple(shape)}")
        else:
            check_positions(f"index tensor {axis}", entry, -shape[axis], shape[axis])
            places.append(np.where(entry < 0, entry + shape[axis], entry))
    return places


def _between_brackets(places: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(slice(None) if entry is None else entry for entry in places)


@vendor.implements("diopiIndex", adapt=apply_directly)
def index(input: HostArray, indices: list[HostArray | None]) -> HostArray:
    return np.array(input[_between_brackets(_places(input.shape, indices))], order="C")


def _by_places(tensor: str) -> Adapter:
    def expand_masks(given: dict[str, Any]) -> None:
        given["indices"] = _places(given[tensor].shape, given["indices"])

    return after(expand_masks)


def _add(base: Array, places: tuple[Any, ...], values: Array) -> Array:
    at = base.at[places]
    return at.max(values) if base.dtype == bool else at.add(values)


@vendor.implements("diopiIndexBackward", adapt=_by_places("zeros_like_input"))
def index_backward(zeros_like_input: Array, indices: list[Array | None], grad_output: Array) -> Array:
    return _add(zeros_like_input, _between_brackets(indices), grad_output)


@vendor.implements("diopiIndexPut", adapt=_by_places("input"))
def index_put(input: Array, values: Array, indices: list[Array | None], accumulate: bool) -> Array:
    places = _between_brackets(indices)
    return _add(input, places, values) if accumulate else input.at[places].set(values)


# Along one axis


def _make_vector(given: dict[str, Any]) -> None:
    """`index` may be one number."""
    if given["index"].ndim > 1:
        raise ValueError(f"index has shape {given['index'].shape}, expected at most one axis")
    given["index"] = given["index"].reshape(-1)


def _slices_of(given: dict[str, Any]) -> None:
    _in_axis(given["input"].shape, given)
    _make_vector(given)
    if not given["input"].ndim and given["index"].size != 1:
        raise ValueError(f"index has {given['index'].size} elements, of a number there is one slice")


def _slices_of_sizes(given: dict[str, Any]) -> None:
    _in_axis(given["input_sizes"], given)
    _make_vector(given)


@vendor.implements("diopiIndexSelect", adapt=after(_slices_of))
def index_select(input: Array, dim: int, index: Array) -> Array:
    return jnp.take(_one_axis(input), index, dim)


@vendor.implements("diopiIndexSelectBackward", adapt=after(_slices_of_sizes))
def index_select_backward(grad: Array, input_sizes: tuple[int, ...], dim: int, index: Array) -> Array:
    zeros = jnp.zeros(input_sizes or (1,), grad.dtype)
    return zeros.at[_key(dim, index, zeros.ndim)].add(_one_axis(grad))


def _single(shape: Sequence[int], dim: int, index: int) -> tuple[Any, ...]:
    """The place of the slice `index`; IndexError if there is none."""
    if not shape:
        raise IndexError("a number has no slices")
    n = length_of(shape, dim)
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of range for axis {dim} of shape {tuple(shape)}")
    return _key(dim, index % n, len(shape))


def _range(shape: Sequence[int], dim: int, start: int, end: int, step: int) -> tuple[Any, ...]:
    if not shape or step < 1:
        raise ValueError(f"shape {tuple(shape)} can't be sliced with step {step}")
    length_of(shape, dim)
    return _key(dim, slice(start, end, step), len(shape))


def _put(base: Array, places: tuple[Any, ...], src: Array) -> Array:
    target = base[places].shape
    if src.shape != target:
        raise ValueError(f"shape {src.shape} was given, expected {target}")
    return base.at[places].set(src.astype(base.dtype))


@vendor.implements("diopiSelect")
def select(input: Array, dim: int, index: int) -> Array:
    return input[_single(input.shape, dim, index)]


@vendor.implements("diopiSelectBackward")
def select_backward(grad_output: Array, input_sizes: tuple[int, ...], dim: int, index: int) -> Array:
    return select_scatter(jnp.zeros(input_sizes, grad_output.dtype), grad_output, dim, index)


@vendor.implements("diopiSelectScatter")
def select_scatter(input: Array, src: Array, dim: int, index: int) -> Array:
    return _put(input, _single(input.shape, dim, index), src)


@vendor.implements("diopiSlice")
def slice_(input: Array, dim: int, start: int, end: int, step: int) -> Array:
    return input[_range(input.shape, dim, start, end, step)]


@vendor.implements("diopiSliceBackward")
def slice_backward(
    grad_output: Array, input_sizes: tuple[int, ...], dim: int, start: int, end: int, step: int
) -> Array:
    return slice_scatter(jnp.zeros(input_sizes, grad_output.dtype), grad_output, dim, start, end, step)


@vendor.implements("diopiSliceScatter")
def slice_scatter(input: Array, src: Array, dim: int, start: int, end: int, step: int) -> Array:
    return _put(input, _range(input.shape, dim, start, end, step), src)


def _value_in_range(given: dict[str, Any]) -> None:
    check_in_range("value", given["value"], given["input"])


def _from_either_end(given: dict[str, Any]) -> None:
    _value_in_range(given)
    length = length_of(given["input"].shape, given["dim"])
    check_positions("index", given["index"], -length, length)
    _make_vector(given)
    given["index"] = given["index"] % max(length, 1)


@vendor.implements("diopiIndexFill", adapt=after(_from_either_end))
def index_fill(input: Array, dim: int, index: Array, value: Any) -> Array:
    rows = _one_axis(input)
    return rows.at[_key(dim, index, rows.ndim)].set(_converted(value, rows)).reshape(input.shape)


# By masks


@vendor.implements("diopiMaskedFill", adapt=after(_value_in_range))
def masked_fill(input: Array, mask: Array, value: Any) -> Array:
    return jnp.where(mask, _converted(value, input), input)


def _enough(given: dict[str, Any]) -> None:
    shape = np.broadcast_shapes(given["input"].shape, given["mask"].shape)
    wanted = int(np.broadcast_to(given["mask"], shape).sum())
    if given["source"].size < wanted:
        raise ValueError(f"source has {given['source'].size} elements, the mask {wanted} true ones")


def _spread(mask: Array, elements: Array) -> Array:
    """The i-th of `elements` at the i-th true element of `mask`; anything at the others."""
    number = jnp.cumsum(mask.reshape(-1)) - 1
    return elements[jnp.clip(number, 0, elements.size - 1)].reshape(mask.shape)


@vendor.implements("diopiMaskedScatter", adapt=after(_enough))
def masked_scatter(input: Array, mask: Array, source: Array) -> Array:
    elements, where_ = jnp.broadcast_arrays(input, mask)
    return jnp.where(where_, _spread(where_, source.reshape(-1)), elements) if source.size else elements


@vendor.implements("diopiMaskedSelect", adapt=apply_directly)
def masked_select(input: HostArray, mask: HostArray) -> HostArray:
    elements, where_ = np.broadcast_arrays(input, mask)
    selected: HostArray = elements[where_]
    return selected


@vendor.implements("diopiMaskedSelectBackward")
def masked_select_backward(grad_output: Array, input: Array, mask: Array) -> Array:
    shape = jnp.broadcast_shapes(input.shape, mask.shape)
    if not grad_output.size:
        return jnp.zeros_like(input)
    where_ = jnp.broadcast_to(mask, shape)
    _, pull_back = jax.vjp(lambda x: jnp.broadcast_to(x, shape), jnp.zeros_like(input))
    gradient: Array = pull_back(jnp.where(where_, _spread(where_, grad_output), 0))[0]
    return gradient


@vendor.implements("diopiWhere")
def where(condition: Array, input: Array, other: Array) -> Array:
    return jnp.where(condition != 0, input, other)


# Element by element


def _elements_of(given: dict[str, Any]) -> None:
    """`index` says which elements of input, of which src has one for every position."""
    if not given["index"].size:
        return
    shape, index = list(given["input"].shape or (1,)), given["index"].shape or (1,)
    _in_axis(shape, given)
    if len(index) == len(shape):
        shape[given["dim"]] = index[given["dim"]]
    for limits in (shape, given["src"].shape or (1,) if "src" in given else shape):
        if len(limits) != len(index) or any(length > limit for length, limit in zip(index, limits, strict=True)):
            raise ValueError(f"index has shape {index}, expected one within {tuple(limits)}")


def _number_for_elements_of(given: dict[str, Any]) -> None:
    _value_in_range(given)
    _elements_of(given)


def _grid(index: Array, dim: int) -> tuple[Array, ...]:
    """The places whose position along `dim` is what `index` says, and along the other axes that in `index` itself."""
    places = list(jnp.indices(index.shape, sparse=True))
    places[dim] = index
    return tuple(places)


@vendor.implements("diopiGather", adapt=after(_elements_of))
def gather(input: Array, dim: int, index: Array) -> Array:
    if not index.size:
        return jnp.zeros(index.shape, input.dtype)
    return _one_axis(input)[_grid(_one_axis(index), dim)].reshape(index.shape)


@vendor.implements("diopiGatherBackward", adapt=after(_elements_of))
def gather_backward(grad_output: Array, input: Array, dim: int, index: Array) -> Array:
    return _scattered("add", jnp.zeros(input.shape, grad_output.dtype), dim, grad_output, index)


def _scattered(reduce: str | None, input: Array, dim: int, src: Array, index: Array) -> Array:
    if reduce not in (None, "", "add", "multiply"):
        raise ValueError(f"reduce is {reduce!r}, expected '', 'add' or 'multiply'")
    if not index.size:
        return input
    rows, index = _one_axis(input), _one_axis(index)
    values = _one_axis(src)[tuple(slice(length) for length in index.shape)]
    places = _grid(index, dim)
    if reduce == "multiply":
        return rows.at[places].mul(values) if rows.dtype != bool else rows.at[places].min(values)
    return _add(rows, places, values) if reduce else rows.at[places].set(values)


@vendor.implements("diopiScatter", adapt=after(_elements_of))
def scatter(input: Array, dim: int, src: Array, index: Array, reduce: str | None) -> Array:
    return _scattered(reduce, input, dim, src, index)


@vendor.implements("diopiScatterScalar", adapt=after(_number_for_elements_of))
def scatter_scalar(input: Array, dim: int, value: float, index: Array, reduce: str | None) -> Array:
    return _scattered(reduce, input, dim, jnp.broadcast_to(_converted(value, input), index.shape), index)


# Tables


def _in_table(rows: Callable[[dict[str, Any]], int], adapter: Adapter = compiled) -> Adapter:
    """`indices` holds numbers of the rows of a table, which has as many as `rows` says."""
    return after(lambda given: check_positions("indices", given["indices"], 0, rows(given)), adapter)


def _check_table(table: Array) -> None:
    if table.ndim != 2:
        raise ValueError(f"a table of shape {table.shape} was given, expected two axes")


@vendor.implements("diopiEmbedding", adapt=_in_table(lambda given: len(given["weight"]), rows_of_table))
def embedding(weight: Array, indices: Array, padding_idx: int, scale_grad_byfreq: bool, sparse: bool) -> Array:
    _check_table(weight)
    return jnp.take(weight, indices, 0, mode="clip")


@vendor.implements("diopiEmbeddingBackward", adapt=_in_table(lambda given: given["num_weights"]))
def embedding_backward(
    grad: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_byfreq: bool, sparse: bool
) -> Array:
    rows, numbers = grad.reshape(indices.size, grad.shape[-1]), indices.reshape(-1)
    table = jnp.zeros((num_weights, grad.shape[-1]), grad.dtype).at[numbers].add(rows)
    if scale_grad_byfreq:
        counts = jnp.zeros(num_weights, grad.dtype).at[numbers].add(1)
        table /= jnp.maximum(counts, 1)[:, None]
    return jnp.where((jnp.arange(num_weights) == padding_idx)[:, None], 0, table)


@vendor.implements("diopiEmbeddingRenorm_", adapt=_in_table(lambda given: len(given["inout"])))
def embedding_renorm(inout: Array, indices: Array, max_norm: float, norm_type: float) -> Array:
    _check_table(inout)
    norms = vector_norm(inout, norm_type, (1,))[:, 0]
    named = jnp.zeros(len(inout), bool).at[indices].set(True)
    factors = jnp.where(named & (norms > max_norm), max_norm / (norms + 1e-7), 1)
    return inout * factors[:, None]


def _classes(given: dict[str, Any]) -> None:
    if given["num_classes"] == -1:
        given["num_classes"] = int(given["input"].max()) + 1
    check_positions("input", given["input"], 0, given["num_classes"])


@vendor.implements("diopiOneHot", adapt=after(_classes))
def one_hot(input: Array, num_classes: int) -> Array:
    return input[..., None] == jnp.arange(num_classes)


@vendor.implements("diopiNonzero", adapt=apply_directly)
def nonzero(input: HostArray) -> HostArray:
    return np.argwhere(input != 0)
