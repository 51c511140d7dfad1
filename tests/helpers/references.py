"""Call references in tests, and compute gradients by finite differences for comparison.

The reference of a function computes its expected results in float64. A result may carry remarks, such as an estimate of
its error or a mask of unspecified elements; `call_reference` returns only the numbers, `call_with_remarks` also the
remarks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from diopi_proto.implementations import takes_out
from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.reference import Remark, find_reference, strip_remarks

Array = np.ndarray[Any, Any]

STEP = 2.0**-17
"""The step of finite differences: near the cube root of eps, where a central difference is most accurate."""


def without_remarks(result: Any) -> Any:
    """Return a reference's result as arrays without remarks; the results of a list or tuple as a list."""
    if isinstance(result, (list, tuple)):
        return [without_remarks(entry) for entry in result]
    if isinstance(result, Remark):
        return without_remarks(strip_remarks(result))
    return None if result is None else np.asarray(result)


def call_reference(name: str, *arguments: Any, **keywords: Any) -> Any:
    """Call the reference of the function `name`, and return the results as arrays without remarks."""
    return without_remarks(call_with_remarks(name, *arguments, **keywords))


def call_with_remarks(name: str, *arguments: Any, **keywords: Any) -> Any:
    """Call the reference of the function `name`, and return the results with their remarks.

    Args:
        name: the function.
        arguments: the arguments of the reference, in order.
        keywords: further arguments by name; `out` describes the result tensors if the reference depends on them.

    Returns:
        What the reference returns.
    """
    function = find_reference(name)
    assert function is not None, f"{name} has no reference"
    if takes_out(function):
        keywords = {"out": ResultOverride()} | keywords
    with np.errstate(all="ignore"):
        return function(*arguments, **keywords)


def numerical_gradient(function: Callable[[Array], Array], x: Array, grad: Array | float = 1.0) -> Array:
    """Return the gradient of Re Σ conj(grad) · function(x) with respect to x by central differences.

    For complex x, it is the gradient by the real part plus i times the gradient by the imaginary part, as in PyTorch.
    """
    units = [1.0, 1.0j] if np.iscomplexobj(x) else [1.0]
    return np.sum([unit * _slopes_along(function, x, grad, unit) for unit in units], axis=0)


def _slopes_along(function: Callable[[Array], Array], x: Array, grad: Array | float, unit: complex) -> Array:
    """Return for each element of x the slope of Re Σ conj(grad) · function(x) if the element grows in direction `unit`.

    Args:
        function: the function.
        x: where the slopes are computed.
        grad: the factor of each result.
        unit: 1 for the real part of the elements, 1j for the imaginary part.

    Returns:
        The slopes, real numbers in the shape of `x`.
    """
    slopes = np.zeros(x.shape)
    for position in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[position] = STEP * unit
        change = function(x + step) - function(x - step)
        slopes[position] = np.sum(np.real(np.conj(grad) * change)) / (2 * STEP)
    return slopes
