"""MMCV's sparse convolution and pooling over pairs of rows, one position of the kernel after the other."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.sizes import check_shapes


def _check_pairs(indice_pairs: Array, indice_num: Array) -> None:
    """ValueError unless the tensors are [K, 2, n] and [K]."""
    if indice_pairs.ndim != 3 or indice_pairs.shape[1] != 2:
        raise ValueError(f"indicePairs has shape {indice_pairs.shape}, expected (K, 2, n)")
    check_shapes(indice_pairs.shape[:1], indiceNum=indice_num)


def _check_rows(**tensors: Array) -> None:
    for name, tensor in tensors.items():
        if tensor.ndim != 2:
            raise ValueError(f"{name} has shape {tensor.shape}, expected rows of channels")


def _check_count(**counts: int) -> None:
    for name, count in counts.items():
        if count < 0:
            raise ValueError(f"{name} is {count}, expected 0 or more")


def _valid(indice_pairs: Array, indice_num: Array, rows: tuple[int, int]) -> Array:
    """The pairs, those that don't count leading to the row after the last, on both sides."""
    counts = jnp.arange(indice_pairs.shape[2]) < indice_num[:, jnp.newaxis, jnp.newaxis]
    return jnp.where(counts, indice_pairs, jnp.array(rows)[:, jnp.newaxis])


@vendor.implements("diopiIndiceConvMmcv")
def indice_conv(
    features: Array,
    filters: Array,
    indicePairs: Array,
    indiceNum: Array,
    numActOut: int,
    _inverse: int,
    _subM: int,
) -> Array:
    _check_pairs(indicePairs, indiceNum)
    _check_rows(features=features)
    _check_count(numActOut=numActOut)
    if filters.ndim < 2:
        raise ValueError(f"filters have shape {filters.shape}, expected (kernel sizes …, Ci, Co)")
    (rows, ci), co = features.shape, filters.shape[-1]
    check_shapes((*filters.shape[:-2], ci, co), filters=filters)
    matrices = filters.reshape(-1, ci, co)
    if len(matrices) != len(indiceNum):
        raise ValueError(
            f"filters have shape {filters.shape}, indiceNum {indiceNum.shape}: expected one for each position"
        )
    if _subM and numActOut != rows:
        raise ValueError(f"numActOut is {numActOut}, expected {rows}, the rows of a submanifold")
    if not features.size:
        return jnp.zeros((numActOut, co), features.dtype)
    pairs = _valid(indicePairs[:, ::-1] if _inverse else indicePairs, indiceNum, (rows, numActOut))
    centre = jnp.argmax(indiceNum) if _subM else -1

    def add(total: Array, one: tuple[Array, Array, Array]) -> tuple[Array, None]:
        number, (inputs, outputs), matrix = one
        products = features.at[inputs].get(mode="fill", fill_value=0) @ matrix
        return total.at[outputs].add(jnp.where(number == centre, 0, products), mode="drop"), None

    own = features @ matrices[centre] if _subM else jnp.zeros((numActOut, co), features.dtype)
    return lax.scan(add, own, (jnp.arange(len(matrices)), pairs, matrices))[0]


@vendor.implements("diopiFusedIndiceConvBatchnormMmcv")
def fused_indice_conv_batchnorm(
    features: Array,
    filters: Array,
    bias: Array,
    indicePairs: Array,
    indiceNum: Array,
    numActOut: int,
    _inverse: int,
    _subM: int,
) -> Array:
    check_shapes(filters.shape[-1:], bias=bias)
    return indice_conv(features, filters, indicePairs, indiceNum, numActOut, _inverse, _subM) + bias


@vendor.implements("diopiIndiceMaxpoolMmcv")
def indice_maxpool(features: Array, indicePairs: Array, indiceNum: Array, numAct: int) -> Array:
    _check_pairs(indicePairs, indiceNum)
    _check_rows(features=features)
    _check_count(numAct=numAct)

    def largest(total: Array, pairs: Array) -> tuple[Array, None]:
        inputs, outputs = pairs
        return total.at[outputs].max(features.at[inputs].get(mode="fill", fill_value=0), mode="drop"), None

    zeros = jnp.zeros((numAct, features.shape[1]), features.dtype)
    if not features.size:
        return zeros
    return lax.scan(largest, zeros, _valid(indicePairs, indiceNum, (len(features), numAct)))[0]


@vendor.implements("diopiIndiceMaxpoolBackwardMmcv")
def indice_maxpool_backward(
    features: Array, outFeatures: Array, outGrad: Array, indicePairs: Array, indiceNum: Array
) -> Array:
    _check_pairs(indicePairs, indiceNum)
    _check_rows(features=features, outFeatures=outFeatures)
    check_shapes((len(outFeatures), features.shape[1]), outFeatures=outFeatures, outGrad=outGrad)

    def add(total: Array, pairs: Array) -> tuple[Array, None]:
        inputs, outputs = pairs
        mine, largest, given = (
            rows.at[where].get(mode="fill", fill_value=0)
            for rows, where in ((features, inputs), (outFeatures, outputs), (outGrad, outputs))
        )
        return total.at[inputs].add(jnp.where(mine == largest, given, 0), mode="drop"), None

    zeros = jnp.zeros(features.shape, features.dtype)
    if not (features.size and outFeatures.size):
        return zeros
    return lax.scan(add, zeros, _valid(indicePairs, indiceNum, (len(features), len(outFeatures))))[0]
