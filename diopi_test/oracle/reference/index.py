"""Functions that read, write or select elements by position, index or mask, and their gradients.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: PyTorch's functions of the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.reference import AnyOf, Exact, PartlySpecified, WithTerms, reference, strip_remarks
from diopi_test.oracle.reference.conversion import convert
from diopi_test.oracle.reference.products import multiply_in_any_order, sum_to_shape
from diopi_test.oracle.reference.sums import accumulation_terms, mean_repetition_at, norm_terms

Array = NDArray[Any]
Places = tuple[Any, ...]
"""An index of an array as NumPy accepts it: a tuple of index arrays, masks, slices and integers."""


def _index_along(dim: int, key: Any, ndim: int) -> Places:
    """Return an index with `key` at axis `dim` that selects all elements of the other axes."""
    places: list[Any] = [slice(None)] * ndim
    places[dim] = key
    return tuple(places)


def element_numbers(shape: tuple[int, ...], places: Places) -> Array:
    """Return the row-major numbers of the elements at `places` in an array of this shape; () counts as (1,)."""
    return np.arange(int(np.prod(shape))).reshape(shape or (1,))[places]


def _check_shape(name: str, array: Array, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless `array` has this shape; NumPy would broadcast it."""
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}")


def _add_at(base: Array, places: Places, values: Array) -> WithTerms | Exact:
    """Return `base` with `values` added at `places`, where several values may have the same place.

    The result is `Exact` if no element is a sum of several numbers; a 0 in `base` does not count as a number.
    """
    numbers = element_numbers(base.shape, places)
    values = np.broadcast_to(values, numbers.shape)  # NumPy's ufunc.at does not check the shape

    def add_terms(sums: Array, terms: Array) -> Array:
        """Return `sums` with the addends `terms` added in place at `places`."""
        np.add.at(np.atleast_1d(sums), places, terms)
        return sums

    total = add_terms(base.copy(), values)
    count = np.bincount(numbers.reshape(-1), minlength=base.size).reshape(base.shape)
    count = count + (base != 0)
    if count.size == 0 or count.max() < 2:
        return Exact(total)
    magnitudes, squares = (add_terms(np.array(np.abs(base) ** p, float), np.abs(values) ** float(p)) for p in (1, 2))
    return WithTerms(
        total, accumulation_terms(count, magnitudes, squares, total, mean_repetition_at(numbers, values, count))
    )


def _write_at(base: Array, places: Places, values: Any) -> Exact | AnyOf:
    """Return `base` with `values` at `places`; if several values have the same place, any of them may remain."""
    out = base.copy()
    np.atleast_1d(out)[places] = values
    numbers = element_numbers(base.shape, places)
    return AnyOf(out) if len(np.unique(numbers)) < numbers.size else Exact(out)


# By lists of index tensors and masks


def selection(indices: Sequence[Array | None]) -> Places:
    """Return the index for a list of index tensors and masks; an absent entry selects the whole axis."""
    return tuple(slice(None) if entry is None else entry for entry in indices)


@reference("diopiIndex")
def index(input, indices):
    """Return the elements of input that a list of index tensors and masks selects."""
    return np.asanyarray(input[selection(indices)])


@reference("diopiIndexBackward")
def index_backward(zeros_like_input, indices, grad_output):
    """Return zeros with grad_output added at the indexed elements."""
    return _add_at(zeros_like_input, selection(indices), grad_output)


@reference("diopiIndexPut")
def index_put(input, values, indices, accumulate):
    """Return input with `values` written to the indexed elements, or added to them if `accumulate`."""
    put = _add_at if accumulate else _write_at
    return put(input, selection(indices), values)


# Along one axis


@reference("diopiIndexSelect")
def index_select(input, dim, index):
    """Return the elements of input at positions `index` along axis `dim`."""
    length = np.atleast_1d(input).shape[dim]
    if ((index < 0) | (index >= length)).any():  # NumPy does not check indices of an empty array
        raise ValueError(f"index is {index.tolist()}, expected positions on an axis of length {length}")
    chosen = np.take(np.atleast_1d(input), np.atleast_1d(index), dim)
    return chosen if input.ndim else chosen.reshape(())


@reference("diopiIndexSelectBackward")
def index_select_backward(grad, input_sizes, dim, index):
    """Return zeros with `grad` added at positions `index` along axis `dim`."""
    if not input_sizes:
        return Exact(grad)
    places = _index_along(dim, np.atleast_1d(index), len(input_sizes))
    _check_shape("grad", grad, element_numbers(tuple(input_sizes), places).shape)
    return _add_at(np.zeros_like(grad, shape=input_sizes), places, grad)


@reference("diopiSelect")
def select(input, dim, index):
    """Return the slice of input at position `index` of axis `dim`, without this axis."""
    return np.asanyarray(input[_index_along(dim, index, input.ndim)])


@reference("diopiSelectBackward")
def select_backward(grad_output, input_sizes, dim, index):
    """Return zeros with grad_output in the selected slice."""
    return _embed_slice(grad_output, input_sizes, dim, index)


@reference("diopiSelectScatter")
def select_scatter(input, src, dim, index, *, out):
    """Return input with the slice at position `index` of axis `dim` replaced by `src`."""
    return _replace_slice(input, _index_along(dim, index, input.ndim), src, out)


@reference("diopiSlice")
def slice_(input, dim, start, end, step):
    """Return the elements start, start + step, … below `end` of axis `dim`."""
    return input[_index_along(dim, slice(start, end, step), input.ndim)]


@reference("diopiSliceBackward")
def slice_backward(grad_output, input_sizes, dim, start, end, step):
    """Return zeros with grad_output in the selected slice."""
    return _embed_slice(grad_output, input_sizes, dim, slice(start, end, step))


@reference("diopiSliceScatter")
def slice_scatter(input, src, dim, start, end, step, *, out):
    """Return input with the slice start:end:step of axis `dim` replaced by `src`."""
    return _replace_slice(input, _index_along(dim, slice(start, end, step), input.ndim), src, out)


def _embed_slice(grad_output: Array, input_sizes: tuple[int, ...], dim: int, key: int | slice) -> Array:
    """Return zeros with `grad_output` at `key` of axis `dim`."""
    out = np.zeros_like(grad_output, shape=input_sizes)
    out[_index_along(dim, key, out.ndim)] = grad_output
    return out


def _replace_slice(base: Array, places: Places, src: Array, out: ResultOverride) -> Any:
    """Return `base` with the slice at `places` replaced by `src`; raise ValueError if their shapes differ."""
    _check_shape("src", src, base[places].shape)
    return _replace_converted(base, places, src, out)


def _replace_converted(base: Array, places: Any, values: Array, out: ResultOverride) -> Any:
    """Return `base` with the elements at `places` replaced by `values`, converted to the result's element type.

    Elements that are floating-point numbers out of the range of an integer result are unspecified.
    """
    replacement = np.asanyarray(values) if out.dtype is None else convert(np.asanyarray(values), out.dtype)
    result = np.array(base, ndmin=1)
    result[places] = strip_remarks(replacement)
    if not isinstance(replacement, PartlySpecified):
        return result.reshape(base.shape)
    specified = np.ones(result.shape, bool)
    specified[places] = replacement.specified
    return PartlySpecified(result.reshape(base.shape), specified.reshape(base.shape))


@reference("diopiIndexFill")
def index_fill(input, dim, index, value, *, out):
    """Return input with the elements at positions `index` of axis `dim` replaced by `value`."""
    if index.ndim > 1:
        raise ValueError(f"index has shape {index.shape}, expected at most one axis")
    return _replace_converted(input, _index_along(dim, index, max(input.ndim, 1)), value, out)


# By masks


@reference("diopiMaskedFill")
def masked_fill(input, mask, value, *, out):
    """Return input with the elements where `mask` is true replaced by `value`."""
    base, selected = np.broadcast_arrays(input, mask)
    return _replace_converted(base, selected if selected.ndim else selected.reshape(1), value, out)


@reference("diopiMaskedScatter")
def masked_scatter(input, mask, source):
    """Return input with the elements where `mask` is true replaced by the first elements of `source`, in order."""
    out, selected = map(np.array, np.broadcast_arrays(input, mask))
    if source.size < selected.sum():
        raise ValueError(f"source has {source.size} elements for {selected.sum()} places")
    out[selected] = source.reshape(-1)[: selected.sum()]
    return out


@reference("diopiMaskedSelect")
def masked_select(input, mask):
    """Return the elements where `mask` is true, in row-major order."""
    elements, selected = np.broadcast_arrays(input, mask)
    return elements[selected]


@reference("diopiMaskedSelectBackward")
def masked_select_backward(grad_output, input, mask):
    """Return the gradient of input, summed over the axes along which input was broadcast."""
    spread = np.zeros(np.broadcast_shapes(input.shape, mask.shape))
    selected = np.broadcast_to(mask, spread.shape)
    if grad_output.size != selected.sum():  # NumPy would repeat a single element
        raise ValueError(f"grad_output has {grad_output.size} elements for {selected.sum()} selected elements")
    spread[selected] = grad_output
    total = sum_to_shape(spread, input.shape)
    n = spread.size / max(total.size, 1)
    if n == 1:  # nothing is added, so that zeros keep their sign
        return Exact(spread.reshape(input.shape))
    magnitudes, squares = (sum_to_shape(np.abs(spread) ** p, input.shape) for p in (1, 2))
    numbers = np.broadcast_to(np.arange(total.size).reshape(total.shape), spread.shape)
    repeated = mean_repetition_at(numbers, spread, np.full(total.shape, n))
    return WithTerms(total, accumulation_terms(n, magnitudes, squares, total, repeated))


@reference("diopiWhere")
def select_by_condition(condition, input, other):
    """Return input where `condition` is true, else other."""
    return np.where(condition, input, other)


# Element by element


def positions_along_axis(index: Array, dim: int) -> Places:
    """Return the index of `gather` and `scatter`, which selects one element of an array for each element of `index`.

    The position of the element is the value of `index` along axis `dim`, and the position in `index` along other axes.
    """
    cells = np.atleast_1d(index)
    places: list[Any] = list(np.indices(cells.shape, sparse=True))
    places[dim] = cells
    return tuple(places)


@reference("diopiGather")
def gather(input, dim, index):
    """Return the elements of input whose position along `dim` is in `index`, in the shape of `index`."""
    if index.size == 0:
        return np.empty(index.shape, input.dtype)
    picked = np.atleast_1d(input)[positions_along_axis(index, dim)]
    return picked.reshape(index.shape)


@reference("diopiGatherBackward")
def gather_backward(grad_output, input, dim, index):
    """Return zeros with grad_output added at the gathered elements."""
    return _scatter_values(_add_at, np.zeros_like(grad_output, shape=input.shape), dim, grad_output, index)


@reference("diopiScatter")
def scatter(input, dim, src, index, reduce, *, out):
    """Return input with `src` written to, added to or multiplied with the elements at positions `index` along `dim`."""
    return _scatter_values(_scatter_operations(out)[reduce or ""], input, dim, crop_to_index(src, index), index)


def crop_to_index(src: Array, index: Array) -> Array:
    """Return the part of src that has the shape of `index`, with scalars as vectors; src itself for an empty index."""
    return np.atleast_1d(src)[tuple(slice(length) for length in np.atleast_1d(index).shape)] if index.size else src


@reference("diopiScatterScalar")
def scatter_scalar(input, dim, value, index, reduce, *, out):
    """Return input with `value` written to, added to or multiplied with the elements at `index` along `dim`."""
    src = np.full(index.shape, np.asanyarray(value).astype(input.dtype))
    result = _scatter_values(_scatter_operations(out)[reduce or ""], input, dim, src, index)
    return Exact(result.value) if isinstance(result, AnyOf) else result  # all values are equal


def _multiply_at(base: Array, places: Places, values: Array, dtype: Dtype | None) -> Any:
    """Return `base` times `values` at `places`; unspecified where a product may leave the range of `dtype`."""

    def multiply_transformed(transform: Callable[[Array], Array]) -> Array:
        """Return the transformed `base` multiplied by the transformed `values` at the indexed places."""
        product = np.array(transform(base))
        np.multiply.at(np.atleast_1d(product), places, transform(values))
        return product

    return multiply_in_any_order(multiply_transformed, dtype)


def _scatter_operations(out: ResultOverride) -> Mapping[str, Any]:
    """Return the function that combines values with the base, by the name of the reduction."""
    return {"": _write_at, "add": _add_at, "multiply": partial(_multiply_at, dtype=out.dtype)}


def _scatter_values(put: Any, base: Array, dim: int, values: Array, index: Array) -> Any:
    """Return `base` combined with `values` by the function `put`, at positions `index` along `dim`."""
    if not index.size:
        return Exact(base)
    _check_shape("src", np.atleast_1d(values), np.atleast_1d(index).shape)
    return put(base, positions_along_axis(index, dim), np.atleast_1d(values))


# Tables


@reference("diopiEmbedding")
def embedding(weight, indices):
    """Return the rows of `weight` at `indices`."""
    return weight[indices]


@reference("diopiEmbeddingBackward")
def embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_byfreq):
    """Return the gradient of the table: for each index, the sum of the rows of grad with this index; 0 for padding_idx.

    With scale_grad_byfreq, each sum is divided by the number of its rows.
    """
    width = grad.shape[-1]
    rows, places = grad.reshape(indices.size, width), indices.reshape(-1)
    if scale_grad_byfreq:
        rows = rows / np.bincount(places, minlength=num_weights)[places, np.newaxis]
    counted = places != padding_idx
    return _add_at(np.zeros_like(rows, shape=(num_weights, width)), (places[counted],), rows[counted])


@reference("diopiEmbeddingRenorm_")
def embedding_renorm(inout, indices, max_norm, norm_type):
    """Return the table with rows in `indices` scaled down to max_norm if their norm is larger."""
    norms = np.linalg.norm(inout, norm_type, axis=1, keepdims=True)
    too_long = np.isin(np.arange(len(inout)), indices)[:, np.newaxis] & (norms > max_norm)
    renormed = np.where(too_long, inout * max_norm / (norms + 1e-7), inout)
    terms = np.where(too_long, np.abs(renormed) * norm_terms(np.abs(inout), norm_type, 1), 0)
    return WithTerms(renormed, terms, signed=True)


@reference("diopiOneHot")
def one_hot(input, num_classes):
    """Return a tensor with a new last axis: 1 at the class of each element, else 0."""
    classes = num_classes if num_classes != -1 else input.max() + 1
    return (input[..., np.newaxis] == np.arange(classes)).astype(np.int64)


@reference("diopiNonzero")
def nonzero(input):
    """Return the position of each element that is not 0, one per row."""
    return np.argwhere(input != 0)
