"""The references of convolutions: against sums written out, finite differences, and their adjoints."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from references import call, difference, raw

Array = np.ndarray[Any, Any]

SPATIAL = {
    "plain": ((4, 5), (2, 3), (1, 1), (0, 0), (1, 1)),
    "strided": ((6, 5), (2, 2), (3, 2), (0, 0), (1, 1)),
    "padded": ((3, 4), (2, 3), (1, 1), (1, 2), (1, 1)),
    "dilated": ((5, 6), (2, 3), (1, 1), (0, 0), (3, 2)),
    "all": ((6, 5), (3, 2), (2, 3), (2, 1), (1, 2)),
    "3d": ((3, 4, 3), (2, 1, 2), (1, 2, 1), (0, 1, 1), (2, 1, 1)),
}
"""Sizes of image and kernel, stride, padding, dilation."""


@pytest.fixture(params=SPATIAL)
def spatial(request: pytest.FixtureRequest) -> tuple[tuple[int, ...], ...]:
    return SPATIAL[request.param]


@pytest.fixture(params=[1, 2])
def groups(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def _draw(*shape: int) -> Array:
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape)


def _name(function: str, rank: int, backward: str = "") -> str:
    return f"diopi{function}{rank}d{backward}"


def _convolve_element(
    x: Array, w: Array, position: tuple[int, ...], groups: int, *attributes: tuple[int, ...]
) -> float:
    """One element of a convolution without bias, summed term by term."""
    (n, c, *o), (stride, padding, dilation) = position, attributes
    total = 0.0
    for j, *i in np.ndindex(*w.shape[1:]):
        place = [a * s + b * d - p for a, b, s, p, d in zip(o, i, stride, padding, dilation, strict=True)]
        if all(0 <= position < size for position, size in zip(place, x.shape[2:], strict=True)):
            channel = c // (len(w) // groups) * w.shape[1] + j
            total += w[(c, j, *i)] * x[(n, channel, *place)]
    return total


def test_convolution_matches_loops(spatial: tuple[tuple[int, ...], ...], groups: int) -> None:
    image, kernel, *attributes = spatial
    x, w, bias = _draw(2, 4, *image), _draw(6, 4 // groups, *kernel), _draw(6)
    out = call(_name("Convolution", len(image)), x, w, bias, *attributes, groups)
    for position in np.ndindex(*out.shape):
        assert out[position] == pytest.approx(
            bias[position[1]] + _convolve_element(x, w, position, groups, *attributes)
        )


def test_convolution_result_has_the_expected_size() -> None:
    out = call("diopiConvolution2d", _draw(1, 1, 7, 8), _draw(1, 1, 3, 2), None, (2, 3), (0, 1), (2, 1), 1)
    assert out.shape == (1, 1, 2, 3)


def test_convolution_gradients_match_differences(spatial: tuple[tuple[int, ...], ...], groups: int) -> None:
    image, kernel, *attributes = spatial
    name, options = _name("Convolution", len(image)), (*attributes, groups)
    x, w, bias = _draw(2, 2, *image), _draw(4, 2 // groups, *kernel), _draw(4)
    grad = _draw(*call(name, x, w, bias, *options).shape)
    grad_x, grad_w, grad_bias = call(f"{name}Backward", grad, x, w, (4,), *options)
    np.testing.assert_allclose(grad_x, difference(lambda x: call(name, x, w, bias, *options), x, grad), atol=1e-9)
    np.testing.assert_allclose(grad_w, difference(lambda w: call(name, x, w, bias, *options), w, grad), atol=1e-9)
    np.testing.assert_allclose(grad_bias, difference(lambda b: call(name, x, w, b, *options), bias, grad), atol=1e-9)


OUTPUT_PADDING = {
    "plain": (0, 0),
    "strided": (2, 1),
    "padded": (0, 0),
    "dilated": (2, 1),
    "all": (1, 2),
    "3d": (1, 1, 0),
}


@pytest.mark.parametrize("label", SPATIAL)
def test_transposed_convolution_is_the_adjoint(label: str, groups: int) -> None:
    """⟨conv x, y⟩ = ⟨x, transposed conv y⟩; positions that output padding adds to the convolution meet nothing."""
    positions, kernel, stride, padding, dilation = SPATIAL[label]
    y, w = _draw(2, 4, *positions), _draw(4, 3, *kernel)
    attributes = stride, padding, OUTPUT_PADDING[label], groups, dilation
    image = call(_name("ConvTranspose", len(positions)), y, w, None, *attributes)
    x = _draw(*image.shape)
    convolved = call(_name("Convolution", len(positions)), x, w, None, stride, padding, dilation, groups)
    met = convolved[(..., *(slice(count) for count in positions))]
    assert np.sum(met * y) == pytest.approx(np.sum(x * image))


@pytest.mark.parametrize("label", SPATIAL)
def test_transposed_convolution_gradients_match_differences(label: str, groups: int) -> None:
    positions, kernel, stride, padding, dilation = SPATIAL[label]
    more = OUTPUT_PADDING[label]
    name, options = _name("ConvTranspose", len(positions)), (stride, padding, more, groups, dilation)
    x, w, bias = _draw(2, 2, *positions), _draw(2, 2, *kernel), _draw(2 * groups)
    grad = _draw(*call(name, x, w, bias, *options).shape)
    gradients = call(f"{name}Backward", grad, x, w, bias.shape, stride, padding, dilation, more, groups)
    np.testing.assert_allclose(gradients[0], difference(lambda x: call(name, x, w, bias, *options), x, grad), atol=1e-9)
    np.testing.assert_allclose(gradients[1], difference(lambda w: call(name, x, w, bias, *options), w, grad), atol=1e-9)
    np.testing.assert_allclose(gradients[2], difference(lambda b: call(name, x, w, b, *options), bias, grad), atol=1e-9)


def test_convolution_without_bias_has_no_bias_gradient() -> None:
    attributes = (1, 1), (0, 0), (1, 1)
    gradients = call(
        "diopiConvolution2dBackward", _draw(1, 1, 2, 2), _draw(1, 1, 3, 3), _draw(1, 1, 2, 2), None, *attributes, 1
    )
    assert gradients[2] is None


def test_convolution_accepts_input_without_batch_axis() -> None:
    x, w, attributes = _draw(2, 4, 5), _draw(3, 2, 2, 2), ((1, 2), (1, 0), (1, 1), 1)
    out = call("diopiConvolution2d", x, w, None, *attributes)
    np.testing.assert_equal(out, call("diopiConvolution2d", x[np.newaxis], w, None, *attributes)[0])
    gradients = call("diopiConvolution2dBackward", out, x, w, (3,), *attributes)
    batched = call("diopiConvolution2dBackward", out[np.newaxis], x[np.newaxis], w, (3,), *attributes)
    np.testing.assert_allclose(gradients[0], batched[0][0])
    np.testing.assert_allclose(gradients[1], batched[1])
    np.testing.assert_allclose(gradients[2], batched[2])


PATCHES = [SPATIAL[label] for label in ("plain", "strided", "padded", "dilated", "all")]


@pytest.mark.parametrize(("image", "kernel", "stride", "padding", "dilation"), PATCHES)
def test_im2col_columns_are_patches(image: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> None:
    """A convolution is a matrix product with the columns; its own sum adds the patches up where they came from."""
    x, w = _draw(2, 3, *image), _draw(4, 3, *kernel)
    columns = call("diopiIm2Col", x, kernel, dilation, padding, stride)
    out = call("diopiConvolution2d", x, w, None, stride, padding, dilation, 1)
    np.testing.assert_allclose((w.reshape(4, -1) @ columns).reshape(out.shape), out)
    cotangent = _draw(*columns.shape)
    summed = call("diopiCol2Im", cotangent, image, kernel, dilation, padding, stride)
    assert summed.shape == x.shape
    assert np.sum(summed * x) == pytest.approx(np.sum(cotangent * columns))


def test_im2col_orders_columns_by_position() -> None:
    """Rows by channel, kernel row, kernel column; columns by row and column of the kernel's position."""
    image = np.arange(24.0).reshape(1, 2, 3, 4)
    columns = call("diopiIm2Col", image, (2, 3), (1, 1), (0, 0), (1, 1))
    for channel, i, j, row, column in product(range(2), range(2), range(3), range(2), range(2)):
        assert columns[0, (channel * 2 + i) * 3 + j, row * 2 + column] == image[0, channel, row + i, column + j]


def test_product_of_nan_and_padding_is_open() -> None:
    image, kernel, grad = np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3))
    grad[0, 0, 0, 1] = np.nan  # the row above the image has no part in it
    options = [1], (1, 1), (1, 1), (1, 1), 1
    of_kernel = raw("diopiConvolution2dBackward", grad, image, kernel, *options)[1]
    assert of_kernel.specified[0, 0].tolist() == [[False] * 3, [True] * 3, [True] * 3]
    assert np.isnan(of_kernel.value.value).all()
    kernel[0, 0, 0, 0] = np.nan
    forward = raw("diopiConvolution2d", image, kernel, np.ones(1), *options[1:])
    assert forward.specified[0, 0].tolist() == [[False] * 3, [False, True, True], [False, True, True]]
