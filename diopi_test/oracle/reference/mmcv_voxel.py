"""MMCV's sparse convolution and pooling over pairs of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.products import plus, with_terms

Array = NDArray[Any]


def _pairs(indice_pairs: Array, indice_num: Array, inverse: int = 0) -> Iterator[tuple[Array, Array]]:
    """Of each position of the kernel, the input and the output rows that it joins."""
    for (inputs, outputs), count in zip(indice_pairs, indice_num, strict=True):
        joined = inputs[:count], outputs[:count]
        yield joined[::-1] if inverse else joined


def _joined(indice_pairs: Array, indice_num: Array, rows: int, inverse: int, submanifold: int) -> list[Any]:
    """As `_pairs`; in a submanifold the position of the most pairs joins each row to itself."""
    pairs: list[Any] = list(_pairs(indice_pairs, indice_num, inverse))
    if submanifold:
        pairs[int(np.argmax(indice_num))] = np.arange(rows), np.arange(rows)
    return pairs


@reference("diopiIndiceConvMmcv")
def indice_conv(
    features: Array,
    filters: Array,
    indicePairs: Array,
    indiceNum: Array,
    numActOut: int,
    _inverse: int,
    _subM: int,
) -> WithTerms:
    pairs = _joined(indicePairs, indiceNum, len(features), _inverse, _subM)

    def convolved(rows: Array, weights: Array) -> Array:
        sums = np.zeros((numActOut, filters.shape[-1]))
        for matrix, (inputs, outputs) in zip(weights, pairs, strict=True):
            np.add.at(sums, outputs, rows[inputs] @ matrix)
        return sums

    return with_terms(convolved, features, filters.reshape(-1, *filters.shape[-2:]))


@reference("diopiFusedIndiceConvBatchnormMmcv")
def fused_indice_conv_batchnorm(
    features: Array,
    filters: Array,
    bias: Array,
    indicePairs: Array,
    indiceNum: Array,
    numActOut: int,
    _inverse: int,
    _subM: int,
) -> WithTerms:
    return plus(indice_conv(features, filters, indicePairs, indiceNum, numActOut, _inverse, _subM), bias)


@reference("diopiIndiceMaxpoolMmcv")
def indice_maxpool(features: Array, indicePairs: Array, indiceNum: Array, numAct: int) -> Array:
    largest = np.zeros((numAct, features.shape[1]))
    for inputs, outputs in _pairs(indicePairs, indiceNum):
        np.maximum.at(largest, outputs, features[inputs])
    return largest


@reference("diopiIndiceMaxpoolBackwardMmcv")
def indice_maxpool_backward(
    features: Array, outFeatures: Array, outGrad: Array, indicePairs: Array, indiceNum: Array
) -> WithTerms:
    def given_back(grad: Array, ones: Array) -> Array:
        sums = np.zeros(features.shape)
        for inputs, outputs in _pairs(indicePairs, indiceNum):
            np.add.at(sums, inputs, np.where(features[inputs] == outFeatures[outputs], grad[outputs] * ones, 0))
        return sums

    return with_terms(given_back, outGrad, np.ones(1))
