"""Range checks of numbers: JAX wraps integers around where PyTorch reports an error."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray


def check_in_range(name: str, value: Any, array: NDArray[Any]) -> None:
    """Raise ValueError unless `value`, a number or an array of one, can be converted to the type of `array`.

    Floating types accept infinities and NaN, bool accepts everything, and unsigned types wrap negative integers around.

    Args:
        name: the name of the argument, for the message.
        value: a number or an array of one element.
        array: an array of the target type.

    Raises:
        ValueError: if the number is out of range.
    """
    number = np.asarray(value).item() if np.size(value) == 1 else 0
    if array.dtype == bool or isinstance(number, complex) or not _out_of_range(number, array.dtype):
        return
    raise ValueError(f"{name} is {number}, which is out of the range of {array.dtype.name}")


def _out_of_range(number: float, dtype: np.dtype[Any]) -> bool:
    """Return whether a real number is outside the range of an element type."""
    if not jnp.issubdtype(dtype, jnp.integer):
        return math.isfinite(number) and abs(number) > float(jnp.finfo(dtype).max)
    limits = jnp.iinfo(dtype)
    wraps = limits.min == 0 and not isinstance(number, float)
    return not (-limits.max if wraps else limits.min) <= number <= limits.max
