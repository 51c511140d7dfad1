"""Functions that read, write or select elements by position, index or mask, and their gradients.

Positions are checked on the host first (`diopi_impl.jax_cpu.positions`).

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. With `apply_directly`, the arrays are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from diopi_impl.functional import Adapter, apply_directly
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.jit import adapt_by_compiling
from diopi_impl.jax_cpu.large_results import table_rows
from diopi_impl.jax_cpu.norm.vector import vector_norm
from diopi_impl.jax_cpu.positions import HostArray, axis_length, check_positions, prepare_on_host
from diopi_impl.jax_cpu.ranges import check_in_range


def _check_axis_positions(shape: Sequence[int], arguments: dict[str, Any]) -> None:
    """Check that the elements of `index` are positions along axis `dim` of an array of this shape."""
    check_positions("index", arguments["index"], 0, axis_length(shape, arguments["dim"]))


def _at_least_1d(array: Array) -> Array:
    """Return a 0-d array as a vector of one element."""
    return jnp.atleast_1d(array)


def _axis_index(dim: int, key: Any, ndim: int) -> tuple[Any, ...]:
    """Return the index of an array with `ndim` axes that applies `key` to axis `dim` and selects all other axes."""
    leading_axes = dim % max(ndim, 1)
    return (slice(None),) * leading_axes + (key,)


def _scalar_like(value: Any, array: Array) -> Array:
    """Return a number or 0-d array in the type of `array`; raise ValueError if it has axes."""
    number = jnp.asarray(value)
    if number.ndim:
        raise ValueError(f"value has shape {number.shape}, expected one element without axes")
    return number.astype(array.dtype)


# Lists of index tensors and masks


def _expand_indices(shape: Sequence[int], indices: Sequence[HostArray | None]) -> list[HostArray | None]:
    """Return indices without masks and negative positions, for an array of this shape.

    Args:
        shape: the shape of the indexed array.
        indices: positions along an axis, masks (bool or uint8) over one or more axes, or None for a whole axis.

    Returns:
        The positions or None for each indexed axis. A mask becomes the positions of its true elements, an array per
        axis.

    Raises:
        IndexError: if a position is out of range, a mask has another shape, or there are more indices than axes.
    """
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


def _as_index(places: Sequence[Any]) -> tuple[Any, ...]:
    """Return the index for a list of positions; None selects the whole axis."""
    return tuple(slice(None) if entry is None else entry for entry in places)


@vendor.implements("diopiIndex", adapt=apply_directly)
def index(input, indices):
    """Return the elements of input that a list of index tensors and masks selects."""
    return np.array(input[_as_index(_expand_indices(input.shape, indices))], order="C")


def _expand_masks(tensor: str) -> Adapter:
    """Return an adapter that replaces the masks in `indices`, which index the argument `tensor`."""

    def expand_masks(arguments: dict[str, Any]) -> None:
        """Replace the masks in `indices` by positions."""
        arguments["indices"] = _expand_indices(arguments[tensor].shape, arguments["indices"])

    return prepare_on_host(expand_masks)


def _add_at(base: Array, places: tuple[Any, ...], values: Array) -> Array:
    """Return `base` with `values` added at the indexed places; for Booleans, the logical or."""
    target = base.at[places]
    return target.max(values) if base.dtype == bool else target.add(values)


@vendor.implements("diopiIndexBackward", adapt=_expand_masks("zeros_like_input"))
def index_backward(zeros_like_input, indices, grad_output):
    """Return `zeros_like_input` with grad_output added to the indexed elements."""
    return _add_at(zeros_like_input, _as_index(indices), grad_output)


@vendor.implements("diopiIndexPut", adapt=_expand_masks("input"))
def index_put(input, values, indices, accumulate):
    """Return input with `values` written to the indexed elements, or added to them if `accumulate`."""
    places = _as_index(indices)
    return _add_at(input, places, values) if accumulate else input.at[places].set(values)


# Positions along one axis


def _flatten_index(arguments: dict[str, Any]) -> None:
    """Reshape a 0-d `index` to a vector; raise ValueError if it has more than one axis."""
    if arguments["index"].ndim > 1:
        raise ValueError(f"index has shape {arguments['index'].shape}, expected at most one axis")
    arguments["index"] = arguments["index"].reshape(-1)


def _check_slices(arguments: dict[str, Any]) -> None:
    """Check the positions in `index` along `dim` of input, and reshape `index` to a vector."""
    _check_axis_positions(arguments["input"].shape, arguments)
    _flatten_index(arguments)
    if not arguments["input"].ndim and arguments["index"].size != 1:
        raise ValueError(f"index has {arguments['index'].size} elements, expected 1 for a 0-d input")


def _check_slices_of_sizes(arguments: dict[str, Any]) -> None:
    """Check the positions in `index` along `dim` of input_sizes, and reshape `index` to a vector."""
    _check_axis_positions(arguments["input_sizes"], arguments)
    _flatten_index(arguments)


@vendor.implements("diopiIndexSelect", adapt=prepare_on_host(_check_slices))
def index_select(input, dim, index):
    """Return the elements of input at positions `index` along axis `dim`."""
    return jnp.take(_at_least_1d(input), index, dim)


@vendor.implements("diopiIndexSelectBackward", adapt=prepare_on_host(_check_slices_of_sizes))
def index_select_backward(grad, input_sizes, dim, index):
    """Return zeros with `grad` added at positions `index` along axis `dim`."""
    zeros = jnp.zeros(input_sizes or (1,), grad.dtype)
    return zeros.at[_axis_index(dim, index, zeros.ndim)].add(_at_least_1d(grad))


def _slice_index(shape: Sequence[int], dim: int, index: int) -> tuple[Any, ...]:
    """Return the index of a single slice; raise IndexError if it is out of range."""
    if not shape:
        raise IndexError("input has no axes, expected at least one")
    n = axis_length(shape, dim)
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of range for axis {dim} of shape {tuple(shape)}")
    return _axis_index(dim, index % n, len(shape))


def _range_index(shape: Sequence[int], dim: int, start: int, end: int, step: int) -> tuple[Any, ...]:
    """Return the index of a range of slices; raise ValueError for an invalid step."""
    if not shape or step < 1:
        raise ValueError(f"shape {tuple(shape)} can't be sliced with step {step}")
    axis_length(shape, dim)
    return _axis_index(dim, slice(start, end, step), len(shape))


def _set_elements(base: Array, places: tuple[Any, ...], src: Array) -> Array:
    """Return `base` with the elements at `places` replaced by `src`; raise ValueError if the shape differs."""
    target = base[places].shape
    if src.shape != target:
        raise ValueError(f"src has shape {src.shape}, expected {target}")
    return base.at[places].set(src.astype(base.dtype))


@vendor.implements("diopiSelect")
def select(input, dim, index):
    """Return the slice of input at position `index` of axis `dim`, without this axis."""
    return input[_slice_index(input.shape, dim, index)]


@vendor.implements("diopiSelectBackward")
def select_backward(grad_output, input_sizes, dim, index):
    """Return zeros of shape `input_sizes` with grad_output in the slice at position `index` of axis `dim`."""
    return select_scatter(jnp.zeros(input_sizes, grad_output.dtype), grad_output, dim, index)


@vendor.implements("diopiSelectScatter")
def select_scatter(input, src, dim, index):
    """Return input with the slice at position `index` of axis `dim` replaced by `src`."""
    return _set_elements(input, _slice_index(input.shape, dim, index), src)


@vendor.implements("diopiSlice")
def slice_(input, dim, start, end, step):
    """Return the elements start, start + step, … below `end` of axis `dim`."""
    return input[_range_index(input.shape, dim, start, end, step)]


@vendor.implements("diopiSliceBackward")
def slice_backward(grad_output, input_sizes, dim, start, end, step):
    """Return zeros of shape `input_sizes` with grad_output at the elements start, start + step, … of axis `dim`."""
    return slice_scatter(jnp.zeros(input_sizes, grad_output.dtype), grad_output, dim, start, end, step)


@vendor.implements("diopiSliceScatter")
def slice_scatter(input, src, dim, start, end, step):
    """Return input with the slice start:end:step of axis `dim` replaced by `src`."""
    return _set_elements(input, _range_index(input.shape, dim, start, end, step), src)


def _check_value(arguments: dict[str, Any]) -> None:
    """Raise ValueError if `value` is out of the range of the type of input."""
    check_in_range("value", arguments["value"], arguments["input"])


def _normalize_negative_index(arguments: dict[str, Any]) -> None:
    """Check `value` and `index`, and replace negative positions by positions from 0 on."""
    _check_value(arguments)
    length = axis_length(arguments["input"].shape, arguments["dim"])
    check_positions("index", arguments["index"], -length, length)
    _flatten_index(arguments)
    arguments["index"] = arguments["index"] % max(length, 1)


@vendor.implements("diopiIndexFill", adapt=prepare_on_host(_normalize_negative_index))
def index_fill(input, dim, index, value):
    """Return input with the elements at positions `index` of axis `dim` replaced by `value`."""
    rows = _at_least_1d(input)
    return rows.at[_axis_index(dim, index, rows.ndim)].set(_scalar_like(value, rows)).reshape(input.shape)


# Masks


@vendor.implements("diopiMaskedFill", adapt=prepare_on_host(_check_value))
def masked_fill(input, mask, value):
    """Return input with the elements where `mask` is true replaced by `value`."""
    return jnp.where(mask, _scalar_like(value, input), input)


def _check_source_size(arguments: dict[str, Any]) -> None:
    """Raise ValueError if source has fewer elements than the mask has true elements."""
    shape = np.broadcast_shapes(arguments["input"].shape, arguments["mask"].shape)
    count = int(np.broadcast_to(arguments["mask"], shape).sum())
    if arguments["source"].size < count:
        raise ValueError(
            f"source has {arguments['source'].size} elements, expected {count}, the number of true elements of mask"
        )


def _scatter_to_mask(mask: Array, elements: Array) -> Array:
    """Return an array in the shape of the mask with elements[i] at the i-th true element of the mask.

    The values at false elements are unspecified.
    """
    number = jnp.cumsum(mask.reshape(-1)) - 1
    return elements[jnp.clip(number, 0, elements.size - 1)].reshape(mask.shape)


@vendor.implements("diopiMaskedScatter", adapt=prepare_on_host(_check_source_size))
def masked_scatter(input, mask, source):
    """Return input with the elements where `mask` is true replaced, in row-major order, by the elements of `source`."""
    elements, full_mask = jnp.broadcast_arrays(input, mask)
    return jnp.where(full_mask, _scatter_to_mask(full_mask, source.reshape(-1)), elements) if source.size else elements


@vendor.implements("diopiMaskedSelect", adapt=apply_directly)
def masked_select(input, mask):
    """Return the elements where `mask` is true, in row-major order."""
    elements, full_mask = np.broadcast_arrays(input, mask)
    selected: HostArray = elements[full_mask]
    return selected


@vendor.implements("diopiMaskedSelectBackward")
def masked_select_backward(grad_output, input, mask):
    """Return the gradient of input: grad_output at the selected elements, summed where input was broadcast."""
    shape = jnp.broadcast_shapes(input.shape, mask.shape)
    if not grad_output.size:
        return jnp.zeros_like(input)
    full_mask = jnp.broadcast_to(mask, shape)
    _, pull_back = jax.vjp(lambda x: jnp.broadcast_to(x, shape), jnp.zeros_like(input))
    gradient: Array = pull_back(jnp.where(full_mask, _scatter_to_mask(full_mask, grad_output), 0))[0]
    return gradient


@vendor.implements("diopiWhere")
def elementwise_where(condition, input, other):
    """Return input where `condition` is true, else other."""
    return jnp.where(condition != 0, input, other)


# Element-wise positions


def _check_element_index(arguments: dict[str, Any]) -> None:
    """Check the positions in `index` along `dim` of input, and the shape of `index`.

    Raises:
        IndexError: if a position is out of range.
        ValueError: if `index` is larger than input along another axis than `dim`, or larger than src along any axis.
    """
    if not arguments["index"].size:
        return
    shape, index = list(arguments["input"].shape or (1,)), arguments["index"].shape or (1,)
    _check_axis_positions(shape, arguments)
    if len(index) == len(shape):
        shape[arguments["dim"]] = index[arguments["dim"]]
    for limits in (shape, arguments["src"].shape or (1,) if "src" in arguments else shape):
        if len(limits) != len(index) or any(length > limit for length, limit in zip(index, limits, strict=True)):
            raise ValueError(f"index has shape {index}, expected one within {tuple(limits)}")


def _check_value_and_index(arguments: dict[str, Any]) -> None:
    """Check `value` and the positions in `index`."""
    _check_value(arguments)
    _check_element_index(arguments)


def _element_index(index: Array, dim: int) -> tuple[Array, ...]:
    """Return the index of an array: `index` along `dim`, and the coordinates of its elements along the other axes."""
    places = list(jnp.indices(index.shape, sparse=True))
    places[dim] = index
    return tuple(places)


@vendor.implements("diopiGather", adapt=prepare_on_host(_check_element_index))
def gather(input, dim, index):
    """Return the elements of input whose position along `dim` is in `index`."""
    if not index.size:
        return jnp.zeros(index.shape, input.dtype)
    return _at_least_1d(input)[_element_index(_at_least_1d(index), dim)].reshape(index.shape)


@vendor.implements("diopiGatherBackward", adapt=prepare_on_host(_check_element_index))
def gather_backward(grad_output, input, dim, index):
    """Return zeros with grad_output added at the gathered elements."""
    return _scatter("add", jnp.zeros(input.shape, grad_output.dtype), dim, grad_output, index)


def _scatter(reduce: str | None, input: Array, dim: int, src: Array, index: Array) -> Array:
    """Return input with `src` written to, added to or multiplied with the elements at positions `index` along `dim`."""
    if reduce not in (None, "", "add", "multiply"):
        raise ValueError(f"reduce is {reduce!r}, expected '', 'add' or 'multiply'")
    if not index.size:
        return input
    rows, index = _at_least_1d(input), _at_least_1d(index)
    values = _at_least_1d(src)[tuple(slice(length) for length in index.shape)]
    places = _element_index(index, dim)
    if reduce == "multiply":
        return rows.at[places].mul(values) if rows.dtype != bool else rows.at[places].min(values)
    return _add_at(rows, places, values) if reduce else rows.at[places].set(values)


@vendor.implements("diopiScatter", adapt=prepare_on_host(_check_element_index))
def scatter(input, dim, src, index, reduce):
    """Return input with `src` written to, added to or multiplied with the elements at positions `index` along `dim`."""
    return _scatter(reduce, input, dim, src, index)


@vendor.implements("diopiScatterScalar", adapt=prepare_on_host(_check_value_and_index))
def scatter_scalar(input, dim, value, index, reduce):
    """Return input with `value` written to, added to or multiplied with the elements at `index` along `dim`."""
    return _scatter(reduce, input, dim, jnp.broadcast_to(_scalar_like(value, input), index.shape), index)


# Embedding tables


def _check_table_rows(rows: Callable[[dict[str, Any]], int], adapter: Adapter = adapt_by_compiling) -> Adapter:
    """Return an adapter that checks that `indices` are row numbers of a table with `rows(arguments)` rows."""
    return prepare_on_host(
        lambda arguments: check_positions("indices", arguments["indices"], 0, rows(arguments)), adapter
    )


def _check_table(table: Array) -> None:
    """Raise ValueError unless the table has two axes."""
    if table.ndim != 2:
        raise ValueError(f"the table has shape {table.shape}, expected two axes")


@vendor.implements("diopiEmbedding", adapt=_check_table_rows(lambda arguments: len(arguments["weight"]), table_rows))
def embedding(weight, indices):
    """Return the rows of `weight` at `indices`."""
    _check_table(weight)
    return jnp.take(weight, indices, 0, mode="clip")


@vendor.implements("diopiEmbeddingBackward", adapt=_check_table_rows(lambda arguments: arguments["num_weights"]))
def embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_byfreq):
    """Return the gradient of the table: sums of the rows of grad with the same index, 0 for padding_idx.

    With scale_grad_byfreq, the sums are divided by the number of rows.
    """
    rows, numbers = grad.reshape(indices.size, grad.shape[-1]), indices.reshape(-1)
    table = jnp.zeros((num_weights, grad.shape[-1]), grad.dtype).at[numbers].add(rows)
    if scale_grad_byfreq:
        counts = jnp.zeros(num_weights, grad.dtype).at[numbers].add(1)
        table /= jnp.maximum(counts, 1)[:, None]
    return jnp.where((jnp.arange(num_weights) == padding_idx)[:, None], 0, table)


@vendor.implements("diopiEmbeddingRenorm_", adapt=_check_table_rows(lambda arguments: len(arguments["inout"])))
def embedding_renorm(inout, indices, max_norm, norm_type):
    """Return the table in which the rows at `indices` are scaled to the norm max_norm if their norm is larger."""
    _check_table(inout)
    norms = vector_norm(inout, norm_type, (1,))[:, 0]
    named = jnp.zeros(len(inout), bool).at[indices].set(True)
    factors = jnp.where(named & (norms > max_norm), max_norm / (norms + 1e-7), 1)
    return inout * factors[:, None]


def _infer_class_count(arguments: dict[str, Any]) -> None:
    """Replace num_classes −1 by the largest class + 1, and check that all classes are in range."""
    if arguments["num_classes"] == -1:
        arguments["num_classes"] = int(arguments["input"].max()) + 1
    check_positions("input", arguments["input"], 0, arguments["num_classes"])


@vendor.implements("diopiOneHot", adapt=prepare_on_host(_infer_class_count))
def one_hot(input, num_classes):
    """Return a tensor with a new last axis: 1 at the position of each class, else 0."""
    return input[..., None] == jnp.arange(num_classes)


@vendor.implements("diopiNonzero", adapt=apply_directly)
def nonzero(input):
    """Return the positions of the elements that are not 0: (elements, axes)."""
    return np.argwhere(input != 0)
