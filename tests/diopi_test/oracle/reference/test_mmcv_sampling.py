"""The references of resampling agree with PyTorch's unfolding and convolutions, plain loops and finite differences."""

from typing import Any

import numpy as np
import pytest
from references import call_reference, numerical_gradient
from sampling import sampled

torch = pytest.importorskip("torch")
conv2d = torch.nn.functional.conv2d
fold = torch.nn.functional.fold
interpolate = torch.nn.functional.interpolate
unfold = torch.nn.functional.unfold

Array = np.ndarray[Any, Any]

RNG = np.random.default_rng(13)


def upsample(features: Array, masks: Array, k: int, g: int, s: int) -> Array:
    """Return the result of the reference of `diopiCarafeNaiveMmcv`."""
    return np.asarray(call_reference("diopiCarafeNaiveMmcv", features, masks, k, g, s))


@pytest.mark.parametrize(
    ("shape", "k", "g", "s"), [((2, 6, 3, 4), 3, 2, 2), ((1, 3, 4, 2), 5, 3, 1), ((2, 2, 2, 3), 1, 1, 3)]
)
def test_carafe_is_a_weighted_sum_of_unfolded_windows(shape: tuple[int, ...], k: int, g: int, s: int) -> None:
    n, c, h, w = shape
    features, masks = RNG.normal(size=shape), RNG.normal(size=(n, g * k * k, s * h, s * w))
    windows = unfold(torch.tensor(features), k, padding=k // 2).reshape(n, c * k * k, h, w)
    near = interpolate(windows, scale_factor=s, mode="nearest").reshape(n, g, c // g, k * k, s * h, s * w)
    expected = torch.einsum("ngcayx,ngayx->ngcyx", near, torch.tensor(masks).reshape(n, g, k * k, s * h, s * w))
    np.testing.assert_allclose(upsample(features, masks, k, g, s), expected.reshape(n, c, s * h, s * w), atol=1e-12)


def test_carafe_gives_rows_with_channels_last_as_well() -> None:
    features, masks = RNG.normal(size=(2, 4, 3, 2)), RNG.normal(size=(2, 18, 6, 4))
    room = np.zeros(0)
    rows, output = call_reference("diopiCarafeMmcv", room, room, features, masks, 3, 2, 2)
    np.testing.assert_array_equal(rows, features.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(output, upsample(features, masks, 3, 2, 2))


@pytest.mark.parametrize("rows_shape", [(1, 2, 3, 4), (24,)])
def test_carafe_gradients_match_differences(rows_shape: tuple[int, ...]) -> None:
    features, masks = RNG.normal(size=(1, 4, 2, 3)), RNG.normal(size=(1, 18, 4, 6))
    grad, zeros = RNG.normal(size=(1, 4, 4, 6)), (np.zeros(features.shape), np.zeros(masks.shape))
    by_features = numerical_gradient(lambda x: upsample(x, masks, 3, 2, 2), features, grad)
    by_masks = numerical_gradient(lambda x: upsample(features, x, 3, 2, 2), masks, grad)
    room, rows = [np.zeros(0)] * 4, features.transpose(0, 2, 3, 1).reshape(rows_shape)
    for actual in (
        call_reference("diopiCarafeNaiveBackwardMmcv", *zeros, grad, features, masks, 3, 2, 2),
        call_reference("diopiCarafeBackwardMmcv", *room, *zeros, grad, rows, masks, 3, 2, 2),
    ):
        np.testing.assert_allclose(actual[0], by_features, atol=1e-8)
        np.testing.assert_allclose(actual[1], by_masks, atol=1e-8)


CORRELATIONS = {
    "plain": ((2, 3, 4, 5), (1, 1), (3, 3), (0, 0), (1, 1), (1, 1), (1, 1)),
    "all": ((1, 2, 7, 6), (2, 3), (3, 5), (2, 1), (3, 1), (1, 2), (2, 1)),
    "far": ((1, 2, 5, 4), (1, 2), (5, 1), (1, 0), (1, 2), (3, 2), (1, 2)),
}
"""Maps, kernel, patch, padding, dilation, dilation of the patch, stride."""


def attributes(sizes: Any) -> list[int]:
    """Return the attributes of a call in the order of the parameters."""
    return [number for pair in sizes[1:] for number in pair]


@pytest.mark.parametrize("sizes", CORRELATIONS.values(), ids=CORRELATIONS)
def test_correlation_equals_explicit_sums(sizes: Any) -> None:
    shape, kernel, patch, padding, dilation, dilation_patch, stride = sizes
    image1, image2 = RNG.normal(size=(2, *shape))
    actual = call_reference("diopiCorrelationMmcv", image1, image2, *attributes(sizes))
    expected = np.zeros(actual.shape)
    for n, p, q, h, w in np.ndindex(*actual.shape):
        for i, j in np.ndindex(*kernel):
            y = h * stride[0] - padding[0] + i * dilation[0]
            x = w * stride[1] - padding[1] + j * dilation[1]
            further = y + p * dilation_patch[0] - dilation_patch[0] * (patch[0] - 1) // 2
            shifted_x = x + q * dilation_patch[1] - dilation_patch[1] * (patch[1] - 1) // 2
            if 0 <= y < shape[2] and 0 <= x < shape[3] and 0 <= further < shape[2] and 0 <= shifted_x < shape[3]:
                expected[n, p, q, h, w] += image1[n, :, y, x] @ image2[n, :, further, shifted_x]
    np.testing.assert_allclose(actual, expected, atol=1e-12)


def test_correlation_of_a_map_with_one_of_ones_sums_windows() -> None:
    image = RNG.normal(size=(1, 2, 6, 7))
    actual = call_reference("diopiCorrelationMmcv", image, np.ones_like(image), 2, 3, 1, 1, 0, 0, 1, 2, 1, 1, 2, 1)
    sums = conv2d(torch.tensor(image), torch.ones(1, 2, 2, 3, dtype=torch.float64), stride=(2, 1), dilation=(1, 2))
    np.testing.assert_allclose(actual[:, 0], sums, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(CORRELATIONS, 1))
def test_correlation_gradients_match_differences(name: str) -> None:
    sizes = CORRELATIONS[name]
    image1, image2 = RNG.normal(size=(2, *sizes[0]))
    arguments = attributes(sizes)
    grad = RNG.normal(size=call_reference("diopiCorrelationMmcv", image1, image2, *arguments).shape)
    zeros = np.zeros_like(image1), np.zeros_like(image2)
    first, second = call_reference("diopiCorrelationBackwardMmcv", *zeros, grad, image1, image2, *arguments)
    expected = numerical_gradient(lambda x: call_reference("diopiCorrelationMmcv", x, image2, *arguments), image1, grad)
    np.testing.assert_allclose(first, expected, atol=1e-8)
    expected = numerical_gradient(lambda x: call_reference("diopiCorrelationMmcv", image1, x, *arguments), image2, grad)
    np.testing.assert_allclose(second, expected, atol=1e-8)


@pytest.mark.parametrize(
    ("up", "down", "rows", "columns"),
    [((1, 1), (1, 1), (0, 0), (0, 0)), ((2, 3), (3, 2), (2, 1), (1, 3)), ((2, 1), (1, 2), (-3, 2), (2, -1))],
)
def test_fir_equals_explicit_sums(up: Any, down: Any, rows: Any, columns: Any) -> None:
    """Each result is a sum over the samples under its weights, from the last weight at the first sample."""
    planes, kernel = RNG.normal(size=(2, 5, 6, 2)), RNG.normal(size=(3, 2))
    actual = call_reference("diopiUpfirdn2dOpMmcv", planes, kernel, up[1], up[0], down[1], down[0], *columns, *rows)
    lengths = [(planes.shape[1 + k] * up[k] + sum((rows, columns)[k]) - kernel.shape[k]) // down[k] + 1 for k in (0, 1)]
    expected = np.zeros((2, *lengths, 2))
    for y, x, i, j in np.ndindex(*lengths, *kernel.shape):
        row = y * down[0] + kernel.shape[0] - 1 - i - rows[0]
        column = x * down[1] + kernel.shape[1] - 1 - j - columns[0]
        if 0 <= row < 5 * up[0] and 0 <= column < 6 * up[1] and row % up[0] == column % up[1] == 0:
            expected[:, y, x] += kernel[i, j] * planes[:, row // up[0], column // up[1]]
    np.testing.assert_allclose(actual, expected, atol=1e-12)


def test_fir_of_an_impulse_is_the_kernel() -> None:
    """The function is a convolution and not a correlation: the impulse response is the kernel."""
    planes, kernel = np.zeros((1, 5, 5, 1)), RNG.normal(size=(3, 3))
    planes[0, 2, 2, 0] = 1
    actual = call_reference("diopiUpfirdn2dOpMmcv", planes, kernel, 1, 1, 1, 1, 0, 0, 0, 0)
    np.testing.assert_array_equal(actual[0, :, :, 0], kernel)


def test_fir_of_planes_as_mmcv_passes_them() -> None:
    """MMCV merges batch and channels into the first axis and adds a last axis of size 1. No plane is lost."""
    planes, kernel = RNG.normal(size=(6, 4, 5, 1)), RNG.normal(size=(2, 3))
    actual = call_reference("diopiUpfirdn2dOpMmcv", planes, kernel, 1, 1, 1, 1, 0, 0, 0, 0)
    assert actual.shape == (6, 3, 3, 1)


@pytest.mark.parametrize(("mask", "half"), [((3, 5), (1, 2)), ((2, 3), (0, 2)), ((7, 9), (3, 4))])
def test_attention_masks_match_unfolding(mask: tuple[int, int], half: tuple[int, int]) -> None:
    """Distribution is folding: a mask covers the map around its position, and collection is its transpose."""
    h, w = 4, 5
    masks = RNG.normal(size=(2, mask[0] * mask[1], h, w))
    actual = [
        call_reference("diopiPsamaskMmcv", np.zeros((2, h * w, h, w)), masks, kind, 2, h, w, *mask, *half)
        for kind in (0, 1)
    ]
    room = max(mask)  # of margin, so that every mask lies inside
    unfolded = np.zeros((2, h * w, mask[0] * mask[1], h * w))
    for cell in range(h * w):
        unfolded[:, cell, :, cell] = masks.reshape(2, -1, h * w)[:, :, cell]
    size = h + mask[0] - 1, w + mask[1] - 1
    laid = fold(torch.tensor(unfolded.reshape(2 * h * w, -1, h * w)), size, mask).numpy().reshape(2, h * w, *size)
    padded = np.pad(laid, ((0, 0), (0, 0), (room, room), (room, room)))
    distributed = padded[:, :, room + half[0] : room + half[0] + h, room + half[1] : room + half[1] + w]
    np.testing.assert_array_equal(actual[1], distributed)
    flat = (2, h * w, h * w)
    np.testing.assert_array_equal(actual[0].reshape(flat), distributed.reshape(flat).transpose(0, 2, 1))


@pytest.mark.parametrize("kind", [0, 1])
def test_gradient_of_attention_masks_matches_finite_differences(kind: int) -> None:
    sizes = kind, 1, 2, 3, 3, 4, 1, 2
    masks, zeros = RNG.normal(size=(1, 12, 2, 3)), np.zeros((1, 6, 2, 3))
    grad = RNG.normal(size=zeros.shape)
    actual = call_reference("diopiPsamaskBackwardMmcv", np.zeros_like(masks), grad, *sizes)
    expected = numerical_gradient(lambda x: call_reference("diopiPsamaskMmcv", zeros, x, *sizes), masks, grad)
    np.testing.assert_allclose(actual, expected, atol=1e-9)


@pytest.mark.parametrize(("kernel", "padding"), [((3, 2), (1, 1)), ((1, 1), (0, 0)), ((5, 3), (2, 0))])
def test_masked_columns_are_columns_of_unfolding(kernel: tuple[int, int], padding: tuple[int, int]) -> None:
    image, rows, columns = RNG.normal(size=(1, 3, 6, 7)), np.array([0, 1, 0, 1]), np.array([3, 0, 0, 2])
    positions = unfold(torch.tensor(image), kernel, padding=padding)
    width = 7 + 2 * padding[1] - kernel[1] + 1
    actual = call_reference("diopiMaskedIm2colMmcv", image, rows, columns, *kernel, *padding)
    np.testing.assert_array_equal(actual, positions[0][:, rows * width + columns])


def test_masked_columns_are_written_back_to_their_positions() -> None:
    image, rows, columns = RNG.normal(size=(1, 3, 4, 5)), np.array([0, 3, 1]), np.array([4, 0, 2])
    col = call_reference("diopiMaskedIm2colMmcv", image, rows, columns, 1, 1, 0, 0)
    back = call_reference("diopiMaskedCol2imMmcv", np.zeros_like(image), col, rows, columns, 4, 5, 3)
    mask = np.zeros((4, 5))
    mask[rows, columns] = 1
    np.testing.assert_array_equal(back, image * mask)


def shift_by_rolling(frames: Array, shift: Array, sign: int) -> Array:
    """Shift by rolling, and clear the elements that come from the other end."""
    result, channels = np.zeros_like(frames), frames.shape[2] // shift.shape[1]
    for n, group in np.ndindex(*shift.shape):
        group_slice, distance = np.s_[n, :, group * channels : (group + 1) * channels], sign * int(shift[n, group])
        moved = np.roll(frames[group_slice], distance, 0)
        moved[: max(distance, 0)] = 0
        moved[len(moved) + min(distance, 0) :] = 0
        result[group_slice] = moved
    return result


def test_frames_are_rolled_and_cleared() -> None:
    frames, shift = RNG.normal(size=(2, 5, 6, 2)), np.array([[0, -2, 1], [3, -1, 7]])
    zeros = np.zeros_like(frames)
    np.testing.assert_array_equal(
        call_reference("diopiTinShiftMmcv", zeros, frames, shift), shift_by_rolling(frames, shift, 1)
    )
    np.testing.assert_array_equal(
        call_reference("diopiTinShiftBackwardMmcv", zeros, frames, shift), shift_by_rolling(frames, shift, 1)
    )


def test_shifting_back_is_the_gradient() -> None:
    """The validator accepts the gradient besides MMCV's result, which shifts in the forward direction."""
    frames, shift = RNG.normal(size=(1, 4, 4, 2)), np.array([[1, -2]])
    zeros, grad = np.zeros_like(frames), RNG.normal(size=frames.shape)
    expected = numerical_gradient(lambda x: call_reference("diopiTinShiftMmcv", zeros, x, shift), frames, grad)
    np.testing.assert_allclose(shift_by_rolling(grad, shift, -1), expected, atol=1e-9)
