"""Functions that draw random numbers.

The references return zeros of the correct shape as `AnyOf`, because a validator checks random results. If the arguments
permit only one result, the references return this result.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, PartlySpecified, reference

Array = NDArray[Any]
Shape = tuple[int, ...]
"""The sizes of a tensor."""


def _random_result(shape: Shape | None) -> AnyOf:
    """Return zeros of this shape as one of many valid random results."""
    if shape is None:
        raise ValueError("the case must specify the shape of a tensor that the function only fills")
    return AnyOf(np.zeros(shape))


def _random_unless_certain(shape: Shape | None, is_certain: bool, value: float) -> Any:
    """Return a random result, or `value` if the result is certain."""
    return np.full(shape or (), value) if is_certain else _random_result(shape)


@reference("diopiDropout", "diopiDropoutInp")
def dropout(input, p, train, *, out):
    """Return the input and the mask: unchanged without training, certain for p = 0 or 1, else random."""
    shape = out[1].shape if out[1] and out[1].shape is not None else input.shape
    if not train:
        return input, PartlySpecified(np.zeros(shape, bool), False)
    if p == 0:  # implementations divide by 1 - p, so that a declared error of divisions changes the result
        return input / (1 - p), np.ones(shape, bool)
    if p == 1:
        return input * 0, np.zeros(shape, bool)
    return _random_result(input.shape), _random_result(shape)


@reference("diopiRandomInp")
def random(from_, to, *, out):
    """Return random integers in [from_, to), or the only possible integer."""
    return _random_unless_certain(out.shape, to == from_ + 1, from_)


@reference("diopiUniformInp")
def uniform(from_, to, *, out):
    """Return random numbers in [from_, to), or the only possible number."""
    return _random_unless_certain(out.shape, to == from_, from_)


@reference("diopiBernoulli")
def bernoulli(input):
    """Return random zeros and ones, which are 1 with probabilities `input`; the input if these are all 0 or 1."""
    is_certain = np.isin(input, (0, 1)).all()
    return input if is_certain else _random_result(input.shape)


@reference("diopiBernoulliInp")
def bernoulli_inp(inout):
    """Return random zeros and ones, which are 1 with probabilities `inout`."""
    return bernoulli(inout)


@reference("diopiBernoulliScalar")
def bernoulli_scalar(p, *, out):
    """Return random zeros and ones, which are 1 with probability p; p itself if it is 0 or 1."""
    return _random_unless_certain(out.shape, p in (0, 1), p)


@reference("diopiNormal", "diopiNormalInp")
def normal(mean, std, *, out):
    """Return random normal numbers, or the mean if std is 0 or the mean is not finite."""
    return _random_unless_certain(out.shape, std == 0 or (np.isfinite(std) and not np.isfinite(mean)), mean)


@reference("diopiNormalTensorScalar", "diopiNormalScalarTensor", "diopiNormalTensor")
def normal_tensor(mean, std):
    """Return random normal numbers with a mean and a standard deviation per element."""
    is_certain = (std == 0) | (np.isfinite(std) & ~np.isfinite(mean))
    means = np.broadcast_arrays(mean, std)[0]
    return means if np.all(is_certain) else _random_result(means.shape)


@reference("diopiRandperm")
def randperm(n):
    """Return a random permutation of 0 … n − 1."""
    return _random_result((n,)) if n > 1 else np.zeros(n, np.int64)


@reference("diopiMultinomial")
def multinomial(input, num_samples, replacement):
    """Return random categories of each row of weights, or the only possible category."""
    if not (np.isfinite(input).all() and (input >= 0).all() and (input.sum(-1) > 0).all()):
        raise ValueError(
            "the weights of a row are not a distribution: a weight is negative or not finite, or all weights are 0"
        )
    shape = (*input.shape[:-1], num_samples)
    is_certain = np.all((input > 0).sum(-1) == 1) and (replacement or num_samples == 1)
    return np.broadcast_to(np.argmax(input, -1, keepdims=True), shape) if is_certain else _random_result(shape)
