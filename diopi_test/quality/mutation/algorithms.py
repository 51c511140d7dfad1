"""Mutants of convolutions that another algorithm computes, which a vendor may declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import fft

from diopi_impl import Numerics
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.oracle.arithmetic.array import Arithmetic
from diopi_test.oracle.arithmetic.change import carry_arrays
from diopi_test.oracle.arithmetic.convolution import convolve_directly, has_unit_steps, replace_convolutions
from diopi_test.oracle.records import BaselineCase, expected_arrays
from diopi_test.quality.mutation.arguments import recompute_with
from diopi_test.quality.mutation.mutant import Array, Mutant


def algorithm_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants that compute the convolutions of a function by another algorithm.

    Args:
        function: the name of the function.

    Yields:
        The mutants; none for functions of other families.
    """
    if lookup(function).family == "conv":
        yield Mutant(
            name="convolved by Fourier transforms",
            corrupt=recompute_with(_transform_images),
            is_permitted=_declares_fft,
        )


def _declares_fft(numerics: Numerics) -> bool:
    """Return whether an arithmetic permits convolutions by Fourier transforms."""
    return "fft" in numerics.convolutions


def _transform_images(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return arguments whose convolutions are computed by Fourier transforms in float32.

    Return None if a result is float64 or complex128.
    """
    results = [entry.dtype for value in case.expected.values() for entry in expected_arrays(value)]
    if any(dtype in (Dtype.float64, Dtype.complex128) for dtype in results):
        return None
    arithmetic = Arithmetic(replace_convolutions(_convolve, has_unit_steps))
    return {name: carry_arrays(value, arithmetic, "fc") for name, value in case.plain_arguments().items()}


def _convolve(images: Array, kernels: Array) -> Array:
    """Return the sum over j of the cross-correlations of `images[n, g, j]` with `kernels[g, c, j]`, for all n, g, c.

    The Fourier transforms are in float32. If a number is not finite, the images are convolved directly, because a
    transform would spread infinities and NaNs.

    Args:
        images: an array of shape (n, g, j, *sizes).
        kernels: an array of shape (g, c, j, *reaches), with the sizes of the kernel.

    Returns:
        An array of shape (n, g, c, *lengths), where each length is size − reach + 1.
    """
    if not (np.isfinite(images).all() and np.isfinite(kernels).all()):
        return convolve_directly(images, kernels)
    axes = tuple(range(3 - kernels.ndim, 0))
    sizes = images.shape[3 - kernels.ndim :]
    spectrum = np.einsum(
        "ngj...,gcj...->ngc...",
        fft.rfftn(images.astype(np.float32), sizes, axes),
        np.conj(fft.rfftn(kernels.astype(np.float32), sizes, axes)),
    )
    inside: tuple[Any, ...] = (
        ...,
        *(slice(size - reach + 1) for size, reach in zip(sizes, kernels.shape[3:], strict=True)),
    )
    return np.asarray(fft.irfftn(spectrum, sizes, axes)[inside], np.float64)
