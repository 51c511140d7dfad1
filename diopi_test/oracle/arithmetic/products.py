"""Products of float32 numbers whose factors are rounded to a narrower format.

Each factor moves by half an ulp of the format, in a random direction, unless the format represents the factor. The sums
of the products are as accurate as in IEEE 754 arithmetic, whose errors the stored budgets cover.

In the last round, the factors do not move. Instead, each sum of products moves by the standard deviation of its error
under the moves of the factors. The budget of a sum is therefore at least K standard deviations. Hoeffding's inequality
holds for rounding errors that are independent and have the mean 0. They exceed the bound with a probability of at most
2 · exp(−K² / 2) = 2.5e-14 for K = 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from diopi_impl.numerics.declaration import Products
from diopi_test.oracle.arithmetic.array import Array, Operation, Rule
from diopi_test.oracle.arithmetic.signs import Parity, Signs
from lib_rt.formats import FloatArray, Format

FACTOR_FORMATS: Mapping[Products, Format] = {
    "tf32": Format(11, -126, 127),
    "hf32": Format(12, -126, 127),
    "bf16": Format(8, -126, 127),
}
"""The format to which each declared precision rounds factors.

- TF32 has 10 explicit bits of the significand (NVIDIA, "NVIDIA A100 Tensor Core GPU Architecture", 2020; PTX ISA,
  section "Alternate floating-point data formats").
- HF32 has 11 explicit bits (Huawei, CANN documentation of `torch_npu.npu.matmul.allow_hf32`).
- bfloat16 has 7 explicit bits.
"""

SPLIT_PRECISION = 16
"""The number of significant bits that two bfloat16 numbers represent of a float32 number.

The first number leaves a remainder of at most half an ulp of bfloat16. The second number represents the remainder with
8 significant bits and its own sign, so that at most 2⁻¹⁷ of the leading bit's value is lost: half an ulp of a format
with 17 significant bits.
"""

SPLIT = Format(SPLIT_PRECISION + 1, -126, 127)
"""The format of the sum of two bfloat16 numbers."""


def represents(products: Products, form: Format) -> bool:
    """Return whether factors of a declared precision have all significant bits of the format `form`."""
    if products == "ieee":
        return True
    declared = SPLIT if products == "bf16x3" else FACTOR_FORMATS[products]
    return declared.precision >= form.precision


def make_product_rules(products: Products, signs: Signs) -> dict[Operation, Rule]:
    """Return the rules of the operations that multiply matrices.

    Args:
        products: The declared precision of the factors.
        signs: The directions of the round.

    Returns:
        The rules; none for IEEE 754 products.
    """
    if products == "ieee":
        return {}
    if signs.moves_sums:
        rule = partial(_move_sums, products, signs)
    elif products == "bf16x3":
        rule = partial(_multiply_split, signs)
    else:
        rule = partial(_multiply_rounded, FACTOR_FORMATS[products], signs)
    return {(np.matmul, "__call__"): rule, (np.einsum, ""): rule, (np.dot, ""): rule}


def _multiply_rounded(
    form: Format, signs: Signs, function: Callable[..., Any], operands: list[Any], keywords: dict[str, Any]
) -> Any:
    """Return a product whose factors are moved by half an ulp of a format, unless the format represents them."""
    return function(*_map_factors(partial(_move_factor, form, signs), operands), **keywords)


def _multiply_split(signs: Signs, function: Callable[..., Any], operands: list[Any], keywords: dict[str, Any]) -> Any:
    """Return a product of factors that are split into two bfloat16 numbers, without the product of the second numbers.

    The dropped products have random signs, because an implementation may split the factors in another way (Henry et
    al., "Leveraging the bfloat16 artificial intelligence datatype for higher-precision computations", 2019).
    """
    product = function(*_map_factors(partial(_move_factor, SPLIT, signs), operands), **keywords)
    remainders = _map_factors(_find_remainder, operands)
    dropped = _map_factors(lambda factor, parity: signs.draw(factor.shape, parity) * factor, remainders)
    return product + function(*dropped, **keywords)


def _find_remainder(factor: Array, parity: Parity | None = None) -> Array:
    """Return the difference between a factor and the nearest bfloat16 number; the parity has no effect."""
    with np.errstate(all="ignore"):
        return factor - round_to(factor, FACTOR_FORMATS["bf16"])


def _move_sums(
    products: Products, signs: Signs, function: Callable[..., Any], operands: list[Any], keywords: dict[str, Any]
) -> Any:
    """Return sums of exact products, each moved up or down by the standard deviation of its error."""
    form = SPLIT if products == "bf16x3" else FACTOR_FORMATS[products]
    positions = [index for index, operand in enumerate(operands) if _is_factor(operand)]
    factors = [operands[index] for index in positions]

    def multiply(*changed: Array) -> Array:
        """Return the sums of products of other factors."""
        replaced = dict(zip(positions, changed, strict=True))
        return np.asarray(function(*(replaced.get(index, x) for index, x in enumerate(operands)), **keywords))

    errors = [_find_errors(factor, form) for factor in factors]
    dropped = list(map(_find_remainder, factors)) if products == "bf16x3" else []
    sums = multiply(*factors)
    with np.errstate(all="ignore"):
        deviations = derive_deviations(multiply, factors, errors, dropped)
    if sums.dtype.kind != "c":
        return sums + signs.draw(sums.shape) * deviations.real
    moved = sums.copy()
    moved.real += signs.draw(sums.shape) * deviations.real
    moved.imag += signs.draw(sums.shape) * deviations.imag
    return moved


def derive_deviations(
    multiply: Callable[..., Array], factors: Sequence[Array], errors: Sequence[Array], dropped: Sequence[Array] = ()
) -> Array:
    """Return the standard deviation of the errors of sums of products, if each factor has an error of random sign.

    The errors of different elements are independent. Products of two errors are neglected. Complex factors have
    independent errors of both parts. Then the variances of the two parts of a sum have this property: their sum follows
    from the sums re² + im² of each factor, and their difference from the differences re² − im².

    Args:
        multiply: Returns the sums of products of factors.
        factors: The factors.
        errors: The size of the error of each element of each factor; complex for complex factors.
        dropped: Further factors, whose products are added to the sums with random signs; empty if there are none.

    Returns:
        The standard deviation of each sum; 0 where it is not finite. If a factor is complex, the parts of the complex
        result are the deviations of the two parts.
    """

    def add_variances(square: Callable[[Array], Array]) -> Array:
        """Return the sum of the variances that the errors of each factor cause."""
        squares = [square(factor) for factor in factors]
        parts = [multiply(*squares[:index], square(error), *squares[index + 1 :]) for index, error in enumerate(errors)]
        return np.asarray(np.sum([*parts, multiply(*map(square, dropped))] if dropped else parts, 0))

    total = add_variances(lambda x: np.abs(x) ** 2)
    if all(factor.dtype.kind != "c" for factor in factors):
        return np.where(np.isfinite(total), np.sqrt(total), 0.0)
    difference = add_variances(lambda x: (x**2).real)
    real, imaginary = (np.sqrt(np.maximum(total + part, 0) / 2) for part in (difference, -difference))
    return np.where(np.isfinite(real + imaginary), real + 1j * imaginary, 0.0)


def _map_factors(change: Callable[[Array, Parity], Array], operands: list[Any]) -> list[Any]:
    """Return operands with each floating-point array replaced by `change(array, parity)`; parity is 0, 1, 0, …."""
    changed, count = [], 0
    for operand in operands:
        if _is_factor(operand):
            changed.append(change(operand, 1 if count % 2 else 0))
            count += 1
        else:
            changed.append(operand)
    return changed


def _is_factor(operand: Any) -> bool:
    """Return whether an operand is a floating-point or complex array."""
    return isinstance(operand, np.ndarray) and operand.dtype.kind in "fc"


def _find_errors(factor: Array, form: Format) -> Array:
    """Return the largest rounding error of each number in a format; for complex numbers, of both parts."""
    if factor.dtype.kind != "c":
        return largest_rounding_errors(factor, form)
    return largest_rounding_errors(factor.real, form) + 1j * largest_rounding_errors(factor.imag, form)


def _move_factor(form: Format, signs: Signs, factor: Array, parity: Parity) -> Array:
    """Return a factor, or both parts of a complex one, moved by half an ulp where the format does not represent it."""
    if factor.dtype.kind != "c":
        return move_unrepresentable(factor, form, signs.draw(factor.shape, parity))
    moved = np.empty_like(factor)
    moved.real = move_unrepresentable(factor.real, form, signs.draw(factor.shape, parity))
    moved.imag = move_unrepresentable(factor.imag, form, signs.draw(factor.shape, parity))
    return moved


def move_unrepresentable(numbers: Array, form: Format, directions: FloatArray) -> Array:
    """Return real numbers moved by half an ulp of a format, where the format does not represent them."""
    errors = largest_rounding_errors(numbers, form)
    return np.where(errors > 0, numbers + directions * errors, numbers)  # adding 0 would change −0


def largest_rounding_errors(numbers: Array, form: Format) -> FloatArray:
    """Return half an ulp of a format for each real number; 0 where the format represents the number or it is infinite.

    NaN has the error 0, too.
    """
    with np.errstate(all="ignore"):
        is_unrepresentable = np.isfinite(numbers) & (round_to(numbers, form) != numbers)
        return np.where(is_unrepresentable, spacing(numbers, form) / 2, 0.0)


def round_to(numbers: Array, form: Format) -> Array:
    """Return numbers rounded to the nearest numbers of a format without a largest number; complex numbers by parts."""
    if numbers.dtype.kind == "c":
        rounded = np.empty_like(numbers)
        rounded.real, rounded.imag = round_to(numbers.real, form), round_to(numbers.imag, form)
        return rounded
    with np.errstate(all="ignore"):
        step = spacing(numbers, form)
        return np.where(np.isfinite(numbers), np.rint(numbers / step) * step, numbers)


def spacing(numbers: Array, form: Format) -> FloatArray:
    """Return the distance between neighboring numbers of a format without a largest number."""
    exponent = np.frexp(np.maximum(np.abs(numbers), form.tiny))[1]  # frexp's exponent is one more than IEEE 754's
    return np.asarray(np.ldexp(1.0, exponent - form.precision))
