"""Random draws: what is certain about them. Of a random result only the shape is certain; its values here are zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.model import ResultOverride
from diopi_test.oracle.reference import AnyOf, PartlySpecified, reference

Array = NDArray[Any]
Shape = tuple[int, ...]


def _drawn(shape: Shape | None) -> AnyOf:
    """A result that is left to chance."""
    if shape is None:
        raise ValueError("the case must give the shape of a tensor that is only filled")
    return AnyOf(np.zeros(shape))


def _uncertain(shape: Shape | None, certain: bool, value: float) -> Any:
    """What is drawn, unless it is certain to be `value`."""
    return np.full(shape or (), value) if certain else _drawn(shape)


@reference("diopiDropout", "diopiDropoutInp")
def dropout(
    input: Array, p: float, train: bool, generator: int | None, *, out: tuple[ResultOverride, ResultOverride | None]
) -> tuple[Any, Any]:
    shape = out[1].shape if out[1] and out[1].shape is not None else input.shape
    if not train:
        return input, PartlySpecified(np.zeros(shape, bool), False)
    if p in (0, 1):
        return input * (1 - p), np.full(shape, p == 0)
    return _drawn(input.shape), _drawn(shape)


@reference("diopiRandomInp")
def random(from_: int, to: int | None, generator: int | None, *, out: ResultOverride) -> Any:
    return _uncertain(out.shape, to == from_ + 1, from_)


@reference("diopiUniformInp")
def uniform(from_: float, to: float, generator: int | None, *, out: ResultOverride) -> Any:
    return _uncertain(out.shape, to == from_, from_)


@reference("diopiBernoulli")
def bernoulli(input: Array, generator: int | None) -> Any:
    certain = np.isin(input, (0, 1)).all()
    return input if certain else _drawn(input.shape)


@reference("diopiBernoulliInp")
def bernoulli_inp(inout: Array, generator: int | None) -> Any:
    return bernoulli(inout, generator)


@reference("diopiBernoulliScalar")
def bernoulli_scalar(p: float, generator: int | None, *, out: ResultOverride) -> Any:
    return _uncertain(out.shape, p in (0, 1), p)


@reference("diopiNormal", "diopiNormalInp")
def normal(mean: float, std: float, generator: int | None, *, out: ResultOverride) -> Any:
    return _uncertain(out.shape, std == 0 or (np.isfinite(std) and not np.isfinite(mean)), mean)


@reference("diopiNormalTensorScalar", "diopiNormalScalarTensor", "diopiNormalTensor")
def normal_tensor(mean: Any, std: Any, generator: int | None) -> Any:
    certain = (std == 0) | (np.isfinite(std) & ~np.isfinite(mean))
    means = np.broadcast_arrays(mean, std)[0]
    return means if np.all(certain) else _drawn(means.shape)


@reference("diopiRandperm")
def randperm(n: int, generator: int | None) -> Any:
    return _drawn((n,)) if n > 1 else np.zeros(n, np.int64)


@reference("diopiMultinomial")
def multinomial(input: Array, num_samples: int, replacement: bool, generator: int | None) -> Any:
    if not (np.isfinite(input).all() and (input >= 0).all() and (input.sum(-1) > 0).all()):
        raise ValueError("the weights of a row are no distribution: one is negative or not finite, or all are 0")
    shape = (*input.shape[:-1], num_samples)
    certain = np.all((input > 0).sum(-1) == 1) and (replacement or num_samples == 1)
    return np.broadcast_to(np.argmax(input, -1, keepdims=True), shape) if certain else _drawn(shape)
