"""The references of convolutions: absent arguments and open results.

`diopi-test run --vendor torch_cpu` compares their values and gradients with PyTorch.
"""

from typing import Any

import numpy as np
from references import call_reference, call_with_remarks

Array = np.ndarray[Any, Any]


def _draw(*shape: int) -> Array:
    """Return normally distributed numbers that depend only on the shape."""
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape)


def test_convolution_without_bias_has_no_bias_gradient() -> None:
    attributes = (1, 1), (0, 0), (1, 1)
    gradients = call_reference(
        "diopiConvolution2dBackward", _draw(1, 1, 2, 2), _draw(1, 1, 3, 3), _draw(1, 1, 2, 2), None, *attributes, 1
    )
    assert gradients[2] is None


def test_convolution_accepts_input_without_batch_axis() -> None:
    x, w, attributes = _draw(2, 4, 5), _draw(3, 2, 2, 2), ((1, 2), (1, 0), (1, 1), 1)
    out = call_reference("diopiConvolution2d", x, w, None, *attributes)
    np.testing.assert_equal(out, call_reference("diopiConvolution2d", x[np.newaxis], w, None, *attributes)[0])
    gradients = call_reference("diopiConvolution2dBackward", out, x, w, (3,), *attributes)
    batched = call_reference("diopiConvolution2dBackward", out[np.newaxis], x[np.newaxis], w, (3,), *attributes)
    np.testing.assert_allclose(gradients[0], batched[0][0])
    np.testing.assert_allclose(gradients[1], batched[1])
    np.testing.assert_allclose(gradients[2], batched[2])


def test_product_of_nan_and_padding_is_open() -> None:
    image, kernel, grad = np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3))
    grad[0, 0, 0, 1] = np.nan  # the row above the image has no part in it
    options = [1], (1, 1), (1, 1), (1, 1), 1
    of_kernel = call_with_remarks("diopiConvolution2dBackward", grad, image, kernel, *options)[1]
    assert of_kernel.specified[0, 0].tolist() == [[False] * 3, [True] * 3, [True] * 3]
    assert np.isnan(of_kernel.value.value).all()
    kernel[0, 0, 0, 0] = np.nan
    forward = call_with_remarks("diopiConvolution2d", image, kernel, np.ones(1), *options[1:])
    assert forward.specified[0, 0].tolist() == [[False] * 3, [False, True, True], [False, True, True]]
