"""MMCV's functions for voxels: voxelization, reduction by voxel, sparse convolution and sparse pooling.

In sparse convolution and pooling, each row of a tensor has the channels of one voxel. For each position of the kernel,
`indicePairs` lists pairs of an input row and an output row. The implementations loop over the kernel positions.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from diopi_impl.functional import Adapted
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.jit import adapt_by_compiling
from diopi_impl.jax_cpu.sizes import check_shapes
from diopi_impl.specs import OutSpec
from diopi_proto.prototype import Prototype

# Voxels


def _cells(points: Array, voxel_size: Array, coors_range: Array, axes: int) -> Array:
    """Return the cell (z, y, x) of each point; (−1, −1, −1) outside the grid."""
    if axes != 3:
        raise ValueError(f"NDim is {axes}, expected 3")
    if points.shape[1] < 3:
        raise ValueError(f"points have shape {points.shape}, expected x, y and z in each row")
    low, high = coors_range[:3], coors_range[3:]
    cells = jnp.floor((points[:, :3] - low) / voxel_size)
    inside = ((cells >= 0) & (cells < jnp.round((high - low) / voxel_size))).all(1, keepdims=True)
    return jnp.where(inside, cells, -1).astype(jnp.int32)[:, ::-1]


def _starts_run(rows: Array) -> Array:
    """Return a mask of the rows that differ from the previous row, for sorted rows."""
    return jnp.ones(len(rows), bool).at[1:].set((rows[1:] != rows[:-1]).any(1))


@vendor.implements("diopiHardVoxelizeMmcv")
def hard_voxelize(voxels, coors, num_points_per_voxel, points, voxel_size, coors_range, max_points, max_voxels, NDim):
    """Return the points, the cell and the point count of each voxel, and the number of voxels, at most `max_voxels`.

    The implementation sorts the points by cell, so that the points of a voxel are neighbors.
    """
    cells, numbers = _cells(points, voxel_size, coors_range, NDim), jnp.arange(len(points))
    order = jnp.lexsort((*reversed(cells.T),))
    begins, inside = _starts_run(cells[order]), cells[order, 0] >= 0
    start = lax.cummax(jnp.where(begins, numbers, 0)) if len(points) else numbers
    is_first = jnp.zeros(len(points), bool).at[order].set(begins & inside)
    voxel, slot = (jnp.cumsum(is_first) - 1)[order[start]], numbers - start
    place = jnp.where(inside & (slot < max_points), voxel, max_voxels)
    return (
        jnp.zeros_like(voxels).at[place, slot].set(points[order], mode="drop"),
        jnp.zeros_like(coors).at[place].set(cells[order], mode="drop"),
        jnp.zeros_like(num_points_per_voxel).at[place].add(1, mode="drop"),
        jnp.minimum(is_first.sum(), max_voxels),
    )


@vendor.implements("diopiDynamicVoxelizeMmcv")
def dynamic_voxelize(points, voxel_size, coors_range, NDim):
    """Return the cell (z, y, x) of each point; (−1, −1, −1) outside the grid."""
    return _cells(points, voxel_size, coors_range, NDim)


# Reduction by voxel

SUM, MEAN, MAXIMUM = range(3)
"""The values of `reduce_type`."""


def _check_reduction(reduce_type: int) -> None:
    """Raise ValueError unless reduce_type is 0, 1 or 2."""
    if reduce_type not in (SUM, MEAN, MAXIMUM):
        raise ValueError(f"reduce_type is {reduce_type}, expected 0, 1 or 2")


def _drop_empty_rows(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
    """Adapt a reduction whose results have a row per point; the host removes the unused rows at the end.

    Args:
        prototype: the prototype of the reduction.
        function: the implementation.

    Returns:
        The adapted form.
    """
    adapted = adapt_by_compiling(prototype, function)

    def drop_empty(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        """Return the results without the unused rows."""
        ((reduced, rows, places, counts),) = adapted(arguments, out)
        row_count = np.count_nonzero(counts)
        return [[reduced[:row_count], rows[:row_count], places, counts[:row_count]]]

    return drop_empty


@vendor.implements("diopiDynamicPointToVoxelMmcv", adapt=_drop_empty_rows)
def dynamic_point_to_voxel(feats, coors, reduce_type):
    """Return the features and the cell of each voxel, the voxel of each point, and the point count of each voxel.

    The voxel of a point is an index of a row of the first two results; −1 for a point with a negative cell index.
    """
    _check_reduction(reduce_type)
    count, is_outside = len(feats), (coors < 0).any(1)
    order = jnp.lexsort((*reversed(coors.T), is_outside))
    rows = coors[order]
    row = jnp.where(is_outside[order], count, jnp.cumsum(_starts_run(rows)) - 1)
    places = jnp.zeros(count, row.dtype).at[order].set(row)
    counts = jnp.zeros(count, row.dtype).at[places].add(1, mode="drop")
    distinct = jnp.zeros_like(coors).at[row].set(rows, mode="drop")
    return [_reduce_by_voxel(feats, places, counts, reduce_type), distinct, jnp.where(is_outside, -1, places), counts]


def _reduce_by_voxel(feats: Array, places: Array, counts: Array, reduce_type: int) -> Array:
    """Return the sum, mean or maximum of the features per voxel; unused rows are unspecified."""
    if reduce_type == MAXIMUM:
        return jax.ops.segment_max(feats, places, len(feats))
    total = jax.ops.segment_sum(feats, places, len(feats))
    return total if reduce_type == SUM else total / jnp.maximum(counts, 1)[:, jnp.newaxis].astype(feats.dtype)


@vendor.implements("diopiDynamicPointToVoxelBackwardMmcv")
def dynamic_point_to_voxel_backward(grad_reduced_feats, feats, reduced_feats, coors_idx, reduce_count, reduce_type):
    """Return the gradient of the features. The gradient of a maximum goes to the first point that attains it."""
    _check_reduction(reduce_type)
    rows, count = len(grad_reduced_feats), len(feats)
    place = jnp.where(coors_idx < 0, rows, coors_idx)

    def take_per_point(values: Array) -> Array:
        """Return for each point the row of its voxel; zeros for points outside all voxels."""
        return values.at[place].get(mode="fill", fill_value=0)

    grad = take_per_point(grad_reduced_feats)
    if reduce_type == SUM:
        return grad
    if reduce_type == MEAN:
        return grad / jnp.maximum(take_per_point(reduce_count), 1)[:, jnp.newaxis].astype(grad.dtype)
    points = jnp.arange(count)[:, jnp.newaxis]
    attained = jnp.where(feats == take_per_point(reduced_feats), points, count)
    first = jax.ops.segment_min(attained, place, rows)
    return jnp.where(take_per_point(first) == points, grad, 0)


# Sparse convolution


def _check_pairs(indice_pairs: Array, indice_num: Array) -> None:
    """Raise ValueError unless the shapes are (K, 2, n) and (K,), for K kernel positions and n pairs."""
    if indice_pairs.ndim != 3 or indice_pairs.shape[1] != 2:
        raise ValueError(f"indicePairs has shape {indice_pairs.shape}, expected (K, 2, n)")
    check_shapes(indice_pairs.shape[:1], indiceNum=indice_num)


def _check_rows(**tensors: Array) -> None:
    """Raise ValueError unless the tensors have two axes."""
    for name, tensor in tensors.items():
        if tensor.ndim != 2:
            raise ValueError(f"{name} has shape {tensor.shape}, expected rows of channels")


def _check_count(**counts: int) -> None:
    """Raise ValueError if a number is negative."""
    for name, count in counts.items():
        if count < 0:
            raise ValueError(f"{name} is {count}, expected 0 or more")


def _mask_pairs(indice_pairs: Array, indice_num: Array, row_counts: tuple[int, int]) -> Array:
    """Return the pairs of rows, with unused pairs replaced by `row_counts`, which are indices after the last rows."""
    is_used = jnp.arange(indice_pairs.shape[2]) < indice_num[:, jnp.newaxis, jnp.newaxis]
    return jnp.where(is_used, indice_pairs, jnp.array(row_counts)[:, jnp.newaxis])


def _kernel_matrices(features: Array, filters: Array, indice_pairs: Array, indice_num: Array) -> Array:
    """Return the filters as matrices of shape (K, Ci, Co).

    Args:
        features: the input rows, with Ci channels.
        filters: the filters, with shape (kernel sizes …, Ci, Co).
        indice_pairs: the pairs of rows, with shape (K, 2, n).
        indice_num: the number of pairs for each of the K kernel positions.

    Returns:
        The matrices.

    Raises:
        ValueError: The shapes do not fit.
    """
    _check_pairs(indice_pairs, indice_num)
    _check_rows(features=features)
    if filters.ndim < 2:
        raise ValueError(f"filters have shape {filters.shape}, expected (kernel sizes …, Ci, Co)")
    ci, co = features.shape[1], filters.shape[-1]
    check_shapes((*filters.shape[:-2], ci, co), filters=filters)
    matrices = filters.reshape(-1, ci, co)
    if len(matrices) != len(indice_num):
        raise ValueError(
            f"filters have shape {filters.shape}, indiceNum {indice_num.shape}: expected one matrix per position"
        )
    return matrices


def _kernel_positions(
    indice_pairs: Array, indice_num: Array, row_counts: tuple[int, int], inverse: int, submanifold: int
) -> tuple[Array, Array, Array | int]:
    """Return the kernel positions for a loop.

    Args:
        indice_pairs: the pairs of rows.
        indice_num: the number of pairs for each kernel position.
        row_counts: the numbers of input rows and output rows.
        inverse: whether the convolution exchanges input and output rows.
        submanifold: whether input and output have the same rows.

    Returns:
        The indices of the positions, their pairs, and the index of the central position of a submanifold, else −1.
    """
    pairs = _mask_pairs(indice_pairs[:, ::-1] if inverse else indice_pairs, indice_num, row_counts)
    return jnp.arange(len(pairs)), pairs, jnp.argmax(indice_num) if submanifold else -1


@vendor.implements("diopiIndiceConvMmcv")
def indice_conv(features, filters, indicePairs, indiceNum, numActOut, _inverse, _subM):
    """Return the sparse convolution: each pair adds the product of input row and filter matrix to the output row."""
    _check_count(numActOut=numActOut)
    matrices = _kernel_matrices(features, filters, indicePairs, indiceNum)
    rows, co = len(features), filters.shape[-1]
    if _subM and numActOut != rows:
        raise ValueError(f"numActOut is {numActOut}, expected {rows}, the rows of a submanifold")
    if not features.size:
        return jnp.zeros((numActOut, co), features.dtype)
    numbers, pairs, center = _kernel_positions(indicePairs, indiceNum, (rows, numActOut), _inverse, _subM)

    def add(total: Array, step_inputs: tuple[Array, Array, Array]) -> tuple[Array, None]:
        """Add the products for a kernel position to the output rows."""
        number, (inputs, outputs), matrix = step_inputs
        products = features.at[inputs].get(mode="fill", fill_value=0) @ matrix
        return total.at[outputs].add(jnp.where(number == center, 0, products), mode="drop"), None

    initial = features @ matrices[center] if _subM else jnp.zeros((numActOut, co), features.dtype)
    return lax.scan(add, initial, (numbers, pairs, matrices))[0]


@vendor.implements("diopiIndiceConvBackwardMmcv")
def indice_conv_backward(features, filters, outGrad, indicePairs, indiceNum, _inverse, _subM):
    """Return the gradients of features and filters."""
    matrices = _kernel_matrices(features, filters, indicePairs, indiceNum)
    _check_rows(outGrad=outGrad)
    check_shapes((len(features) if _subM else len(outGrad), filters.shape[-1]), outGrad=outGrad)

    if not (features.size and outGrad.size):
        return [jnp.zeros_like(features), jnp.zeros_like(filters)]
    row_counts = len(features), len(outGrad)
    numbers, pairs, center = _kernel_positions(indicePairs, indiceNum, row_counts, _inverse, _subM)

    def add(total: Array, step_inputs: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        """Add the gradients for a kernel position to the input rows; return the gradient of its matrix."""
        number, (inputs, outputs), matrix = step_inputs
        grad = jnp.where(number == center, 0, outGrad.at[outputs].get(mode="fill", fill_value=0))
        inputs_features = features.at[inputs].get(mode="fill", fill_value=0)
        return total.at[inputs].add(grad @ matrix.T, mode="drop"), inputs_features.T @ grad

    initial = outGrad @ matrices[center].T if _subM else jnp.zeros_like(features)
    grad_features, grad_matrices = lax.scan(add, initial, (numbers, pairs, matrices))
    if _subM:
        grad_matrices = grad_matrices.at[center].add(features.T @ outGrad)
    return [grad_features, grad_matrices.reshape(filters.shape)]


@vendor.implements("diopiFusedIndiceConvBatchnormMmcv")
def fused_indice_conv_batchnorm(features, filters, bias, indicePairs, indiceNum, numActOut, _inverse, _subM):
    """Return the sparse convolution plus the bias."""
    check_shapes(filters.shape[-1:], bias=bias)
    return indice_conv(features, filters, indicePairs, indiceNum, numActOut, _inverse, _subM) + bias


@vendor.implements("diopiIndiceMaxpoolMmcv")
def indice_maxpool(features, indicePairs, indiceNum, numAct):
    """Return for each output row the maximum over the input rows that are paired with it, at least 0."""
    _check_pairs(indicePairs, indiceNum)
    _check_rows(features=features)
    _check_count(numAct=numAct)

    def update_maxima(total: Array, pairs: Array) -> tuple[Array, None]:
        """Update the maxima with the pairs of a kernel position."""
        inputs, outputs = pairs
        return total.at[outputs].max(features.at[inputs].get(mode="fill", fill_value=0), mode="drop"), None

    zeros = jnp.zeros((numAct, features.shape[1]), features.dtype)
    if not features.size:
        return zeros
    return lax.scan(update_maxima, zeros, _mask_pairs(indicePairs, indiceNum, (len(features), numAct)))[0]


@vendor.implements("diopiIndiceMaxpoolBackwardMmcv")
def indice_maxpool_backward(features, outFeatures, outGrad, indicePairs, indiceNum):
    """Return the gradient of the features: each input equal to an output row's maximum gets the gradient of the row."""
    _check_pairs(indicePairs, indiceNum)
    _check_rows(features=features, outFeatures=outFeatures)
    check_shapes((len(outFeatures), features.shape[1]), outFeatures=outFeatures, outGrad=outGrad)

    def add(total: Array, pairs: Array) -> tuple[Array, None]:
        """Add the gradients of the inputs that are equal to the maximum."""
        inputs, outputs = pairs
        values, largest, grad = (
            rows.at[indices].get(mode="fill", fill_value=0)
            for rows, indices in ((features, inputs), (outFeatures, outputs), (outGrad, outputs))
        )
        return total.at[inputs].add(jnp.where(values == largest, grad, 0), mode="drop"), None

    zeros = jnp.zeros(features.shape, features.dtype)
    if not (features.size and outFeatures.size):
        return zeros
    return lax.scan(add, zeros, _mask_pairs(indicePairs, indiceNum, (len(features), len(outFeatures))))[0]
