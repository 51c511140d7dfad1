"""Test the budgets of convolutions by Winograd's minimal filtering and by Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from diopi_impl import Numerics
from diopi_impl.numerics.declaration import Convolution
from diopi_proto.types import Dtype
from diopi_test.oracle.arithmetic.convolution import WINOGRAD, make_convolution_rules
from diopi_test.oracle.records import BaselineCase
from diopi_test.oracle.reference.conv import SlidingKernel
from lib_rt.formats import FORMATS
from tests.helpers.honest_products import cases_of, declare, find_failures, round_significand, to_tf32

Array = NDArray[Any]
SINGLE = FORMATS[Dtype.float32]


class NoSigns:
    """Directions of errors of size 0."""

    def draw(self, shape: tuple[int, ...], parity: int | None = None) -> Array:
        return np.zeros(shape)


def is_three_by_three(case: BaselineCase) -> bool:
    """Return whether a case is a 3 × 3 convolution with stride and dilation 1."""
    arguments = case.arguments
    steps = (*arguments["stride"], *arguments["dilation"])
    return arguments["weight"].values.shape[2:] == (3, 3) and set(steps) == {1}


def winograd_in_float32(
    name: Convolution, images: Array, kernels: Array, change: Callable[[Array], Array] = np.asarray
) -> Array:
    """Return the correlation of (n, j, h, w) with (c, j, 3, 3), every step of which is computed in float32.

    `change` rounds the factors of products: transformed tiles of the image, and transformed kernels.
    """
    transforms = WINOGRAD[name]
    bt, g, inverse = (m.astype(np.float32) for m in (transforms.image, transforms.kernel, transforms.result))
    m, (height, width) = transforms.tile, (images.shape[2] - 2, images.shape[3] - 2)
    rows, columns = -(-height // m), -(-width // m)
    padded = np.zeros((*images.shape[:2], rows * m + 2, columns * m + 2), np.float32)
    padded[..., : height + 2, : width + 2] = images
    weights = change(g @ kernels.astype(np.float32) @ g.T)
    out = np.zeros((len(images), len(kernels), rows * m, columns * m), np.float32)
    for i in range(rows):
        for j in range(columns):
            tile = change(bt @ padded[..., i * m : i * m + m + 2, j * m : j * m + m + 2] @ bt.T)
            sums = np.zeros((len(images), len(kernels), m + 2, m + 2), np.float32)
            for channel in range(images.shape[1]):
                sums += tile[:, np.newaxis, channel] * weights[np.newaxis, :, channel]
            out[..., i * m : i * m + m, j * m : j * m + m] = inverse @ sums @ inverse.T
    return out[..., :height, :width]


def fourier_in_float32(images: Array, kernels: Array, change: Callable[[Array], Array] = np.asarray) -> Array:
    """Return the correlation of (n, j, h, w) with (c, j, k, l) through Fourier transforms in float32.

    `change` rounds the factors of products: both spectra.
    """
    sizes = images.shape[2:]
    spectra = [change(np.fft.rfft2(numbers.astype(np.float32), sizes)) for numbers in (images, kernels)]
    assert spectra[0].dtype == np.complex64
    full = np.fft.irfft2(np.einsum("njhw,cjhw->nchw", spectra[0], spectra[1].conj()), sizes)
    return full[..., : sizes[0] - kernels.shape[2] + 1, : sizes[1] - kernels.shape[3] + 1]


def compute_forward(case: BaselineCase, correlate: Callable[[Array, Array], Array]) -> Array:
    """Return the result of diopiConvolution2d of a vendor that computes correlations with `correlate`."""
    values = case.plain_arguments()
    x, w, groups = values["input"], values["weight"], values["groups"]
    images = x if x.ndim == 4 else x[np.newaxis]
    padded = np.pad(images, [(0, 0), (0, 0), *((p, p) for p in values["padding"])])
    channels = padded.shape[1] // groups
    kernels = w.reshape(groups, -1, *w.shape[1:])
    with np.errstate(all="ignore"):
        parts = [correlate(padded[:, k * channels : (k + 1) * channels], kernels[k]) for k in range(groups)]
    out = np.concatenate(parts, 1)
    if values["bias"] is not None:
        out = out + values["bias"].reshape(-1, 1, 1).astype(np.float32)
    return out.astype(np.float32) if x.ndim == 4 else out[0].astype(np.float32)


@pytest.fixture(scope="module")
def cases() -> list[BaselineCase]:
    """Return the nonempty float32 cases of 3 × 3 convolutions."""
    found = [case for case in cases_of("diopiConvolution2d", "float32") if is_three_by_three(case)]
    return [case for case in found if case.arguments["input"].values.size]


@pytest.mark.parametrize("name", WINOGRAD)
def test_winograd_passes_if_it_is_declared(cases: list[BaselineCase], name: Convolution) -> None:
    declared = declare(cases, Numerics(name=name, convolutions=frozenset({"direct", name})))
    results = [compute_forward(case, lambda x, w: winograd_in_float32(name, x, w)) for case in cases]
    assert len(cases) >= 2
    assert [p for case, out in zip(declared, results, strict=True) for p in find_failures(case, [out])] == []


def test_winograd_of_larger_tiles_fails_if_smaller_tiles_are_declared(cases: list[BaselineCase]) -> None:
    declared = declare(cases, Numerics(name="f2", convolutions=frozenset({"winograd-f2"})))
    results = [compute_forward(case, lambda x, w: winograd_in_float32("winograd-f4", x, w)) for case in cases]
    assert [p for case, out in zip(declared, results, strict=True) for p in find_failures(case, [out])]


def test_a_wrong_kernel_element_fails_although_winograd_is_declared(cases: list[BaselineCase]) -> None:
    def correlate(x: Array, w: Array) -> Array:
        changed = w.copy()
        changed[..., 2, 2] = 0
        return winograd_in_float32("winograd-f4", x, changed)

    declared = declare(cases, Numerics(name="f4", convolutions=frozenset({"winograd-f4"})))
    assert all(find_failures(case, [compute_forward(case, correlate)]) for case in declared)


def test_fourier_transforms_pass_if_they_are_declared() -> None:
    cases = [case for case in cases_of("diopiConvolution2d", "float32") if case.arguments["input"].values.size]
    cases = [case for case in cases if {*case.arguments["stride"], *case.arguments["dilation"]} == {1}]
    declared = declare(cases, Numerics(name="fft", convolutions=frozenset({"fft"})))
    results = [compute_forward(case, fourier_in_float32) for case in cases]
    finite = [(case, out) for case, out in zip(declared, results, strict=True) if np.isfinite(out).all()]
    # small integers are exact in direct sums, and in Fourier transforms only after rounding
    judged = [(case, out) for case, out in finite if "exact" not in case.label]
    assert len(judged) > 5
    assert [problem for case, out in judged for problem in find_failures(case, [out])] == []


def correlate_by(name: Convolution, change: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    """Return the correlation by an algorithm that rounds the factors of its products with `change`."""
    if name == "fft":
        return lambda x, w: fourier_in_float32(x, w, change)
    return lambda x, w: winograd_in_float32(name, x, w, change)


def find_failures_of(cases: list[BaselineCase], numerics: Numerics, correlate: Callable[[Array, Array], Array]) -> int:
    """Return how many cases with finite results fail if they are computed with `correlate` and `numerics` is declared.

    Cases of small integers are omitted: direct sums of them are exact, but those of other algorithms are not.
    """
    results = [compute_forward(case, correlate) for case in cases]
    judged = [
        (case, out)
        for case, out in zip(declare(cases, numerics), results, strict=True)
        if np.isfinite(out).all() and "exact" not in case.label
    ]
    assert len(judged) >= 2
    return sum(bool(find_failures(case, [out])) for case, out in judged)


@pytest.mark.parametrize("name", ["winograd-f2", "winograd-f4", "fft"])
def test_products_of_transformed_numbers_may_have_the_declared_format(
    cases: list[BaselineCase], name: Convolution
) -> None:
    algorithm = Numerics(name="ieee-products", convolutions=frozenset({name}))
    in_tf32 = replace(algorithm, name="tf32-products", float32_products="tf32")
    assert find_failures_of(cases, in_tf32, correlate_by(name, to_tf32)) == 0
    assert find_failures_of(cases, algorithm, correlate_by(name, to_tf32)) > 0


@pytest.mark.parametrize("name", ["winograd-f2", "winograd-f4", "fft"])
def test_products_of_transformed_numbers_must_not_have_fewer_bits_than_declared(
    cases: list[BaselineCase], name: Convolution
) -> None:
    declared = Numerics(name="tf32-products", convolutions=frozenset({name}), float32_products="tf32")
    assert find_failures_of(cases, declared, correlate_by(name, partial(round_significand, bits=8))) > 0


@pytest.mark.parametrize("name", ["winograd-f2", "winograd-f4", "fft"])
@pytest.mark.parametrize(("groups", "shape"), [(1, (2, 4, 9, 11)), (2, (4, 8, 7))])
def test_algorithms_without_errors_equal_direct_sums(name: Convolution, groups: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=shape), rng.normal(size=(6, shape[-3] // groups, 3, 3))
    image, positions = shape[-2:], (shape[-2], shape[-1] + 2)
    sliding = SlidingKernel(
        image=image,
        kernel=(3, 3),
        positions=positions,
        stride=(1, 1),
        padding=(1, 2),
        dilation=(1, 1),
        groups=groups,
    )
    rules = make_convolution_rules(name, SINGLE, NoSigns(), {})
    y = sliding.result(x, w)
    assert np.allclose(rules[SlidingKernel.result, ""](sliding.result, [sliding, x, w], {}), y, rtol=0, atol=1e-12)
    moved = rules[SlidingKernel.image_of, ""](sliding.image_of, [sliding, y, w], {})
    assert np.allclose(moved, sliding.image_of(y, w), rtol=0, atol=1e-11)


def test_convolutions_with_strides_keep_their_budgets() -> None:
    cases = [case for case in cases_of("diopiConvolution2d", "float32") if not is_three_by_three(case)]
    declared = declare(cases, Numerics(name="f4", convolutions=frozenset({"winograd-f4"})))
    assert all(new is old for old, new in zip(cases, declared, strict=True))
