"""The expected results of reductions over ranks, such as the sum of an all-reduce, and their error budgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.collectives import ELEMENT_TYPES, REQUIRED_OPERATIONS, ElementType
from diopi_proto.dtypes import COMPONENT
from diopi_proto.types import Dtype
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.reference.sums import sum_terms
from lib_rt.dtypes import to_numpy
from lib_rt.formats import FloatArray, format_of

Elements = NDArray[Any]
"""The elements of a buffer of one rank, in the element type of the call: a vector."""

TYPE_BY_DTYPE = {element_type.dtype: element_type for element_type in ELEMENT_TYPES}
"""The element types of the collectives by the element types of operators."""

INTEGER_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "SUM": np.add,
    "PRODUCT": np.multiply,
    "MIN": np.minimum,
    "MAX": np.maximum,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
}
"""The operations of integers and Booleans, by name.

In NumPy, sums and products of integers wrap around; the sum of Booleans is "or", and their product is "and".
"""

SEED = 20
"""The first part of the seed of all test data."""


def is_inexact(dtype: Dtype) -> bool:
    """Return whether an element type has floating-point numbers, real or complex."""
    return COMPONENT.get(dtype, dtype) in (Dtype.float16, Dtype.bfloat16, Dtype.float32, Dtype.float64)


def operations_of(dtype: Dtype) -> list[str]:
    """Return the names of the operations that the interface has for an element type, such as `SUM`."""
    if dtype in COMPONENT:
        return ["SUM", "AVG", "PRODUCT"]
    return list(REQUIRED_OPERATIONS) if is_inexact(dtype) else list(INTEGER_OPERATIONS)


def is_required(element_type: ElementType, operation: str) -> bool:
    """Return whether every vendor must implement the operation for the element type."""
    return element_type.reduces and operation in REQUIRED_OPERATIONS


def draw_elements(dtype: Dtype, size: int, rank: int, operation: str = "SUM") -> Elements:
    """Return the elements that a rank sends.

    Integers have uniformly distributed bits. Floating-point numbers are normally distributed. The factors of a product
    have magnitudes from 0.5 to 2 instead, so that products of several ranks neither overflow nor underflow; for a
    complex factor this holds for each component.

    Args:
        dtype: The element type.
        size: The number of elements.
        rank: The rank; each rank gets other elements.
        operation: The operation that combines the elements.

    Returns:
        A vector of shape `(size,)`, the same in each call.
    """
    generator = np.random.default_rng([SEED, size, rank, int(dtype)])
    if dtype is Dtype.bool:
        return generator.integers(0, 2, size).astype(bool)
    numpy_type = to_numpy(dtype)
    if not is_inexact(dtype):
        return np.frombuffer(generator.bytes(size * numpy_type.itemsize), numpy_type)
    parts = [_draw_reals(generator, size, operation) for _ in range(2 if dtype in COMPONENT else 1)]
    with np.errstate(all="ignore"):
        return np.asarray(parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]).astype(numpy_type)


def _draw_reals(generator: np.random.Generator, size: int, operation: str) -> FloatArray:
    """Return `size` random real numbers in float64, as `draw_elements` describes."""
    if operation == "PRODUCT":
        return generator.choice([-1.0, 1.0], size) * generator.uniform(0.5, 2, size)
    return generator.standard_normal(size)


def combine_integers(inputs: Sequence[Elements], operation: str) -> Elements:
    """Return the elements of all ranks, integers or Booleans, combined with an operation; the result is exact."""
    with np.errstate(all="ignore"):
        return np.asarray(reduce(INTEGER_OPERATIONS[operation], inputs))


def combine_reals(inputs: Sequence[Elements], operation: str, dtype: Dtype) -> tuple[FloatArray, FloatArray]:
    """Combine the floating-point elements of all ranks with an operation, and derive the budget of the result.

    A vendor may combine the ranks in any order and may round each partial result to the element type. For sums, the
    budget is the one that docs/budgets.md derives for sums with such partial results. A product of R factors has R - 1
    rounding errors of half an ulp; a complex product has twice as many. A minimum or maximum is exact.

    Args:
        inputs: For each rank, its vector of n elements.
        operation: The operation, such as `SUM`.
        dtype: The element type.

    Returns:
        The result in float64, and the largest permitted error of each of its numbers. Both have shape `(n,)`, or
        `(2 n,)` for complex elements: real part, imaginary part, real part and so on.
    """
    stacked = np.stack([elements.astype(np.complex128 if dtype in COMPONENT else np.float64) for elements in inputs])
    component = COMPONENT.get(dtype, dtype)
    if operation in ("MIN", "MAX"):
        chosen = stacked.min(0) if operation == "MIN" else stacked.max(0)
        return chosen, np.zeros(chosen.shape)
    if operation == "PRODUCT":
        product = stacked.prod(0)
        roundings = (len(inputs) - 1) * (2 if dtype in COMPONENT else 1)
        errors = np.abs(product) * format_of(component).epsilon / 2 * roundings
        budget = Budget.derive(_components(product), component, np.repeat(errors, _component_count(dtype)))
        return _components(product), budget.limit
    divisor = len(inputs) if operation == "AVG" else 1
    parts = np.stack([_components(elements) for elements in stacked])
    total = parts.sum(0) / divisor
    terms = sum_terms(parts, 0) / divisor
    return total, Budget.derive(total, component, np.zeros(total.shape), stored=terms, is_sum=True).limit


def _component_count(dtype: Dtype) -> int:
    """Return the number of real numbers in an element."""
    return 2 if dtype in COMPONENT else 1


def _components(elements: Elements) -> FloatArray:
    """Return float64 elements unchanged, and complex128 elements as real and imaginary parts in turn."""
    return np.ascontiguousarray(elements).view(np.float64)


def compare_reals(actual: Elements, expected: FloatArray, limits: FloatArray) -> str:
    """Compare the received elements with the expected numbers.

    Args:
        actual: The elements that a rank received, in their element type: n of them.
        expected: The expected numbers, as `combine_reals` returns them.
        limits: The largest permitted error of each number.

    Returns:
        A message about the first wrong number, with the count of wrong numbers; an empty text if all are right.
    """
    values = actual.astype(np.complex128 if np.iscomplexobj(actual) else np.float64)
    received = _components(values)
    with np.errstate(all="ignore"):
        is_wrong = ~((np.abs(received - expected) <= limits) | (received == expected))
    is_wrong &= ~(np.isnan(received) & np.isnan(expected))
    (places,) = np.nonzero(is_wrong)
    if not places.size:
        return ""
    first = int(places[0])
    return (
        f"{places.size:,} of {received.size:,} numbers are wrong; the first is number {first:,}: {received[first]!r}, "
        f"expected {expected[first]!r} with an error of at most {limits[first]:.3g}"
    )
