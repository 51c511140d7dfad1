"""Calling references in tests, and gradients by finite differences to hold theirs against."""

from collections.abc import Callable
from typing import Any

import numpy as np

from diopi_test.reference import Remark, bare, reference_of

Array = np.ndarray[Any, Any]

STEP = 2.0**-17  # near the cube root of eps, where a central difference is most accurate


def value(result: Any) -> Any:
    """A reference's result without what it says about it; lists and tuples of them likewise."""
    if isinstance(result, (list, tuple)):
        return [value(entry) for entry in result]
    if isinstance(result, Remark):
        return value(bare(result))
    return None if result is None else np.asarray(result)


def call(name: str, *arguments: Any, **keywords: Any) -> Any:
    """What the reference of `name` gives for these arguments."""
    function = reference_of(name)
    assert function is not None, f"{name} has no reference"
    with np.errstate(all="ignore"):
        return value(function(*arguments, **keywords))


def difference(function: Callable[[Array], Array], x: Array, grad: Array | float = 1.0) -> Array:
    """The gradient of Σ grad · function(x) by central differences, one element of x after the other."""
    gradient = np.zeros(x.shape)
    for position in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[position] = STEP
        gradient[position] = np.sum(grad * (function(x + step) - function(x - step))) / (2 * STEP)
    return gradient
