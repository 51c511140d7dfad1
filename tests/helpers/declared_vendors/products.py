"""Products of matrices and convolutions: their factors, sums and algorithms as accelerators compute them.

The functions `multiply_…` and `accumulate_in_half` are the ways to compute a product. `product_replacements` applies
one of them to all of ATen's operators that sum products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import torch
from torch import Tensor

SINGLE = (torch.float32, torch.complex64)
"""The element types with parts in float32."""

HALF = (torch.float16, torch.bfloat16)
"""The element types of half precision."""

HALF_STEPS = 32
"""The largest number of partial sums that are rounded to half precision one after the other."""


@final
@dataclass(frozen=True)
class Product:
    """A bilinear operator with its factors.

    Attributes:
        apply: the operator.
        first: the first factor.
        second: the second factor.
        summed: the axes of the second factor over which the operator sums.
    """

    apply: Callable[[Tensor, Tensor], Tensor]
    first: Tensor
    second: Tensor
    summed: Sequence[int]

    def in_parts(self, part_of_term: Tensor, parts: int) -> list[Tensor]:
        """Return the sums over each part of the terms.

        Args:
            part_of_term: the number of the part to which the term at each summed position belongs.
            parts: the number of parts.

        Returns:
            The sums, which add up to the product.
        """
        shape = [size if axis in self.summed else 1 for axis, size in enumerate(self.second.shape)]
        numbers = part_of_term.reshape(shape)
        return [
            self.apply(self.first, torch.where(numbers == part, self.second, torch.zeros_like(self.second)))
            for part in range(parts)
        ]

    @property
    def terms(self) -> int:
        """The number of positions over which the operator sums."""
        count = 1
        for axis in self.summed:
            count *= self.second.shape[axis]
        return count


Multiply = Callable[[Product], Tensor]
"""Computes a product in another way than PyTorch."""


def product_replacements(multiply: Multiply, dtypes: Sequence[torch.dtype]) -> dict[str, Callable[..., Any]]:
    """Return the replacements of all operators that sum products.

    Args:
        multiply: how products are computed.
        dtypes: the element types of the factors to which it applies.
    """

    def applies(*factors: Tensor) -> bool:
        return any(factor.dtype in dtypes for factor in factors) and all(factor.numel() for factor in factors)

    def compute(apply: Callable[[Tensor, Tensor], Tensor], first: Tensor, second: Tensor, summed: Sequence[int]) -> Any:
        exact = apply(first, second)
        # below autograd, arithmetic on a lazily conjugated tensor would ignore the conjugation
        factors = first.resolve_conj(), second.resolve_conj()
        result = multiply(Product(apply, *factors, summed)).to(exact.dtype)
        return torch.where(torch.isfinite(result), result, exact)

    def binary(func: Any, first: Tensor, second: Tensor) -> Any:
        """Replace mm, bmm, mv, dot."""
        if not applies(first, second):
            return func(first, second)
        return compute(func, first, second, [max(second.ndim - 2, 0)])

    def with_addend(
        multiply_name: str, func: Any, addend: Tensor, first: Tensor, second: Tensor, *, beta: Any = 1, alpha: Any = 1
    ) -> Any:
        """Replace addmm, baddbmm, addmv."""
        if not applies(first, second):
            return func(addend, first, second, beta=beta, alpha=alpha)
        product = alpha * binary(getattr(torch.ops.aten, multiply_name), first, second)
        return product.contiguous() if beta == 0 else beta * addend + product

    def convolution(func: Any, x: Tensor, w: Tensor, bias: Tensor | None, *attributes: Any) -> Any:
        exact = func(x, w, bias, *attributes)  # rejects invalid arguments, an invalid bias among them
        if not applies(x, w):
            return exact
        is_transposed = attributes[3]
        summed = [0, *range(2, w.ndim)] if is_transposed else range(1, w.ndim)
        result = compute(lambda first, second: func(first, second, None, *attributes), x, w, summed)
        return result if bias is None else result + bias.view(-1, *[1] * (w.ndim - 2))

    def convolution_backward(
        func: Any, grad: Tensor, x: Tensor, w: Tensor, bias_sizes: Any, *attributes: Any
    ) -> tuple[Any, Any, Any]:
        *geometry, mask = attributes

        def gradient(number: int, g: Tensor, image: Tensor, kernel: Tensor) -> Any:
            output_mask = [number == index for index in range(3)]
            return func(g, image, kernel, bias_sizes, *geometry, output_mask)[number]

        if not applies(grad, x, w):
            return func(grad, x, w, bias_sizes, *attributes)
        is_transposed = geometry[3]
        of_kernel = range(1, w.ndim) if is_transposed else [0, *range(2, w.ndim)]
        of_grad = [0, *range(2, grad.ndim)]
        return (
            compute(lambda g, kernel: gradient(0, g, x, kernel), grad, w, of_kernel) if mask[0] else None,
            compute(lambda image, g: gradient(1, g, image, w), x, grad, of_grad) if mask[1] else None,
            gradient(2, grad, x, w) if mask[2] else None,
        )

    return {
        **dict.fromkeys(("mm", "bmm", "mv", "dot"), binary),
        "addmm": partial(with_addend, "mm"),
        "baddbmm": partial(with_addend, "bmm"),
        "addmv": partial(with_addend, "mv"),
        "convolution": convolution,
        "convolution_backward": convolution_backward,
    }


def round_significand(x: Tensor, bits: int) -> Tensor:
    """Return float32 or complex64 numbers rounded to a number of significant bits; other types are unchanged.

    Finite numbers that would round to infinity are truncated.
    """
    if x.dtype is torch.complex64:
        return torch.view_as_complex(round_significand(torch.view_as_real(x.resolve_conj()), bits))
    if x.dtype is not torch.float32:
        return x
    dropped = 24 - bits
    pattern = x.resolve_neg().view(torch.int32)
    leading_bits = ~((1 << dropped) - 1)
    nearest = ((pattern + ((1 << dropped - 1) - 1) + (pattern >> dropped & 1)) & leading_bits).view(torch.float32)
    truncated = (pattern & leading_bits).view(torch.float32)
    rounded = torch.where(torch.isfinite(nearest), nearest, truncated)
    return torch.where(torch.isfinite(x), rounded, x)


def truncate_significand(x: Tensor, bits: int) -> Tensor:
    """Return float32 or complex64 numbers truncated to a number of significant bits."""
    if x.dtype is torch.complex64:
        return torch.view_as_complex(truncate_significand(torch.view_as_real(x.resolve_conj()), bits))
    if x.dtype is not torch.float32:
        return x
    truncated = (x.resolve_neg().contiguous().view(torch.int32) & -(1 << 24 - bits)).view(torch.float32)
    return torch.where(torch.isfinite(x), truncated, x)


def multiply_truncated(bits: int, product: Product) -> Tensor:
    """Return a product whose factors are truncated to a number of significant bits."""
    return product.apply(truncate_significand(product.first, bits), truncate_significand(product.second, bits))


def multiply_rounded(bits: int, product: Product) -> Tensor:
    """Return a product whose factors are rounded to a number of significant bits."""
    return product.apply(round_significand(product.first, bits), round_significand(product.second, bits))


def multiply_in_three_parts(product: Product) -> Tensor:
    """Return a product whose factors are each split into two bfloat16 numbers, as the sum of three products."""
    (first, first_rest), (second, second_rest) = map(_split, (product.first, product.second))
    small_products = product.apply(first, second_rest) + product.apply(first_rest, second)
    return small_products + product.apply(first, second)


def _split(factor: Tensor) -> tuple[Tensor, Tensor]:
    """Return a factor as two numbers of eight significant bits each."""
    leading = round_significand(factor, 8)
    return leading, round_significand(factor - leading, 8)


def accumulate_in_half(product: Product) -> Tensor:
    """Return a product whose partial sums are each rounded to the half-precision type of the factors."""
    block = -(-product.terms // HALF_STEPS)
    numbers = torch.arange(product.terms) // block
    return add_in_order(product.in_parts(numbers, -(-product.terms // block)))


def add_in_order(parts: Sequence[Tensor]) -> Tensor:
    """Return the sum of tensors, added one after the other; each sum is rounded to their element type."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


SPLITS = 4
"""The number of parts into which a product with a changing order is split."""


def multiply_in_changing_order(product: Product) -> Tensor:
    """Return a product whose sum is split at random positions and added in a random order; equal calls differ."""
    generator = torch.Generator()
    generator.seed()
    return add_in_order(product.in_parts(torch.randint(SPLITS, (product.terms,), generator=generator), SPLITS))
