"""Products of float32 numbers whose factors are rounded to a narrower format.

Each factor moves by half an ulp of the format, in a random direction, unless the format represents the factor. The sums
of the products are as accurate as in IEEE 754 arithmetic, whose errors the stored budgets cover.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    multiply = _multiply_split if products == "bf16x3" else partial(_multiply_rounded, FACTOR_FORMATS[products])
    rule = partial(multiply, signs)
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
    remainders = _map_factors(lambda factor, _: factor - round_to(factor, FACTOR_FORMATS["bf16"]), operands)
    dropped = _map_factors(lambda factor, parity: signs.draw(factor.shape, parity) * factor, remainders)
    return product + function(*dropped, **keywords)


def _map_factors(change: Callable[[Array, Parity], Array], operands: list[Any]) -> list[Any]:
    """Return operands with each floating-point array replaced by `change(array, parity)`; parity is 0, 1, 0, …."""
    changed, count = [], 0
    for operand in operands:
        if isinstance(operand, np.ndarray) and operand.dtype.kind in "fc":
            changed.append(change(operand, 1 if count % 2 else 0))
            count += 1
        else:
            changed.append(operand)
    return changed


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
    with np.errstate(all="ignore"):
        is_unrepresentable = np.isfinite(numbers) & (round_to(numbers, form) != numbers)
        return np.where(is_unrepresentable, numbers + directions * spacing(numbers, form) / 2, numbers)


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
