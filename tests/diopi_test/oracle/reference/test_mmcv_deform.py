"""The references of deformable functions agree with explicit sums, PyTorch's sampling and finite differences."""

from typing import Any

import numpy as np
import pytest
from bilinear import zero_padded
from references import call_reference, call_with_remarks, numerical_gradient
from sampling import sampled

torch = pytest.importorskip("torch")
conv2d = torch.nn.functional.conv2d
grid_sample = torch.nn.functional.grid_sample

Array = np.ndarray[Any, Any]

SIZES = {
    "plain": ((2, 2, 4, 5), 3, (2, 3), (1, 1), (1, 1), (1, 1), 1, 1),
    "all": ((2, 4, 6, 5), 4, (3, 2), (2, 1), (2, 1), (1, 2), 2, 2),
    "more-deformable-groups": ((1, 6, 4, 3), 2, (1, 2), (1, 2), (0, 1), (2, 1), 2, 3),
}
"""Image, output channels, kernel, stride, padding, dilation, groups, deformable groups."""


@pytest.fixture(params=SIZES)
def sizes(request: pytest.FixtureRequest) -> Any:
    """Return the sizes of each kind of convolution."""
    return SIZES[request.param]


def result_size(sizes: Any) -> list[int]:
    """Return the sizes of the result along the spatial axes."""
    (_, _, *lengths), _, kernel, stride, padding, dilation, _, _ = sizes
    axes = zip(lengths, kernel, stride, padding, dilation, strict=True)
    return [(n + 2 * pad - far * (k - 1) - 1) // step + 1 for n, k, step, pad, far in axes]


def tensors(sizes: Any) -> dict[str, Array]:
    """Return tensors whose offsets are not near integers, where the derivatives of samples jump."""
    rng = np.random.default_rng(3)
    shape, outputs, kernel, *_, groups, deform_groups = sizes
    taps, size = deform_groups * kernel[0] * kernel[1], result_size(sizes)
    offset = (shape[0], 2 * taps, *size)
    return {
        "input": rng.normal(size=shape),
        "weight": rng.normal(size=(outputs, shape[1] // groups, *kernel)),
        "offset": rng.integers(-2, 2, offset) + rng.uniform(0.1, 0.9, offset),
        "mask": rng.uniform(0.2, 1, (shape[0], taps, *size)),
        "bias": rng.normal(size=outputs),
        "grad": rng.normal(size=(shape[0], outputs, *size)),
    }


def pairs(sizes: Any) -> list[int]:
    """Return stride, padding and dilation as pairs of height and width."""
    return [number for pair in sizes[3:6] for number in pair]


def plain_attributes(sizes: Any) -> list[int]:
    """Return the attributes with widths first."""
    return [*(number for pair in sizes[2:6] for number in pair[::-1]), *sizes[6:], 64]


WORKSPACE = np.zeros(0)


def convolve(sizes: Any, operands: dict[str, Array]) -> Array:
    """Return the result of the deformable convolution's reference."""
    three = operands["input"], operands["weight"], operands["offset"]
    return np.asarray(call_reference("diopiDeformConvMmcv", WORKSPACE, WORKSPACE, *three, *plain_attributes(sizes)))


def modulate(sizes: Any, operands: dict[str, Array], with_bias: bool = True) -> Array:
    """Return the result of the modulated deformable convolution's reference."""
    five = (operands[name] for name in ("input", "weight", "bias", "offset", "mask"))
    attributes = *sizes[2], *pairs(sizes), *sizes[6:], with_bias
    return np.asarray(call_reference("diopiModulatedDeformConvMmcv", WORKSPACE, WORKSPACE, *five, *attributes))


def compute_element(sizes: Any, operands: dict[str, Array], position: tuple[int, ...]) -> float:
    """Compute one element of a modulated convolution without bias."""
    shape, outputs, kernel, stride, padding, dilation, groups, deform_groups = sizes
    (image, o, h, w), taps, total = position, kernel[0] * kernel[1], 0.0
    for c, i, j in np.ndindex(shape[1] // groups, *kernel):
        channel = o // (outputs // groups) * (shape[1] // groups) + c
        tap = channel // (shape[1] // deform_groups) * taps + i * kernel[1] + j
        y = h * stride[0] - padding[0] + i * dilation[0] + operands["offset"][image, 2 * tap, h, w]
        x = w * stride[1] - padding[1] + j * dilation[1] + operands["offset"][image, 2 * tap + 1, h, w]
        sample = zero_padded(operands["input"][image, channel], y, x)
        total += operands["weight"][o, c, i, j] * operands["mask"][image, tap, h, w] * sample
    return total


def test_convolution_equals_explicit_sums(sizes: Any) -> None:
    operands = tensors(sizes)
    out, unmasked = modulate(sizes, operands), {**operands, "mask": np.ones_like(operands["mask"])}
    np.testing.assert_allclose(modulate(sizes, unmasked, False), convolve(sizes, operands), atol=1e-12)
    for position in list(np.ndindex(out.shape))[::7]:
        assert out[position] == pytest.approx(
            operands["bias"][position[1]] + compute_element(sizes, operands, position)
        )


def test_deformable_convolution_without_offsets_is_a_convolution(sizes: Any) -> None:
    operands = tensors(sizes)
    operands["offset"] = np.zeros_like(operands["offset"])
    options = {"stride": sizes[3], "padding": sizes[4], "dilation": sizes[5], "groups": sizes[6]}
    expected = conv2d(torch.tensor(operands["input"]), torch.tensor(operands["weight"]), None, **options)
    np.testing.assert_allclose(convolve(sizes, operands), expected, atol=1e-12)


def test_offsets_for_a_result_of_another_size_are_rejected(sizes: Any) -> None:
    operands = tensors(sizes)
    operands["offset"] = operands["offset"][:, :, :-1]
    with pytest.raises(ValueError, match="offset"):
        convolve(sizes, operands)


def test_equal_integral_offsets_shift_the_image() -> None:
    """With the same integral offset everywhere, the result is the convolution of the shifted image."""
    sizes = SIZES["plain"]
    operands = tensors(sizes)
    operands["offset"] = np.zeros_like(operands["offset"])
    operands["offset"][:, 0::2], operands["offset"][:, 1::2] = 1, -2
    moved = {**operands, "offset": 0 * operands["offset"], "input": np.zeros_like(operands["input"])}
    moved["input"][:, :, :-1, 2:] = operands["input"][:, :, 1:, :-2]
    inside = np.s_[:, :, 1:-1, 1:-1]  # further out the moved image has lost what the shifted samples see
    np.testing.assert_allclose(convolve(sizes, operands)[inside][..., 1:], convolve(sizes, moved)[inside][..., 1:])


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(SIZES, 1))
def test_convolution_gradients_match_differences(name: str) -> None:
    sizes = SIZES[name]
    operands = tensors(sizes)

    def expected(name: str, function: Any) -> Array:
        return numerical_gradient(lambda x: function(sizes, {**operands, name: x}), operands[name], operands["grad"])

    zeros = {name: np.zeros_like(array) for name, array in operands.items()}
    order = ("input", "weight", "bias", "offset", "mask")
    inputs = (
        operands["input"],
        operands["weight"],
        operands["bias"],
        WORKSPACE,
        operands["offset"],
        operands["mask"],
        WORKSPACE,
        operands["grad"],
    )
    attributes = *sizes[2], *pairs(sizes), *sizes[6:], True
    back = call_reference(
        "diopiModulatedDeformConvBackwardMmcv", *(zeros[name] for name in order), *inputs, *attributes
    )
    for name, gradient in zip(order, back, strict=True):
        np.testing.assert_allclose(gradient, expected(name, modulate), atol=1e-8)
    to_input, to_offset = call_reference(
        "diopiDeformConvBackwardInputMmcv", zeros["input"], zeros["offset"], operands["input"], operands["offset"],
        operands["grad"], operands["weight"], WORKSPACE, *plain_attributes(sizes),
    )  # fmt: skip
    np.testing.assert_allclose(to_input, expected("input", convolve), atol=1e-8)
    np.testing.assert_allclose(to_offset, expected("offset", convolve), atol=1e-8)
    to_weight = call_reference(
        "diopiDeformConvBackwardParametersMmcv", operands["grad"], zeros["weight"],
        operands["input"], operands["offset"], WORKSPACE, WORKSPACE, *plain_attributes(sizes), 0.5,
    )  # fmt: skip
    np.testing.assert_allclose(to_weight, 0.5 * expected("weight", convolve), atol=1e-8)


def test_gradient_of_an_absent_bias_is_zero() -> None:
    sizes = SIZES["plain"]
    operands = tensors(sizes)
    order = ("input", "weight", "bias", "offset", "mask")
    inputs = (
        operands["input"],
        operands["weight"],
        None,
        WORKSPACE,
        operands["offset"],
        operands["mask"],
        WORKSPACE,
        operands["grad"],
    )
    zeros = (np.zeros_like(operands[name]) for name in order)
    attributes = *sizes[2], *pairs(sizes), *sizes[6:], False
    assert not call_reference("diopiModulatedDeformConvBackwardMmcv", *zeros, *inputs, *attributes)[2].any()


# Multi-scale deformable attention

LEVELS = np.array([[4, 5], [3, 2]])


def attention(seed: int = 0) -> dict[str, Array]:
    """Return random operands of multi-scale deformable attention."""
    rng = np.random.default_rng(seed)
    shape = (2, 3, 2, 2, 4)
    cells = rng.integers(-1, 5, (*shape, 2)) + rng.uniform(0.1, 0.9, (*shape, 2))
    return {
        "value": rng.normal(size=(2, 26, 2, 3)),
        "locations": (cells + 0.5) / LEVELS[:, np.newaxis, ::-1],
        "weights": rng.normal(size=shape),
        "grad": rng.normal(size=(2, 3, 6)),
    }


def attend(operands: dict[str, Array], starts: tuple[int, int] = (0, 20)) -> Array:
    """Return the result of the reference of multi-scale deformable attention."""
    arguments = operands["value"], LEVELS, np.array(starts), operands["locations"], operands["weights"], 64
    return np.asarray(call_reference("diopiMsDeformAttnMmcv", *arguments))


@pytest.mark.parametrize("starts", [(0, 20), (6, 0)])
def test_attention_is_weighted_grid_sampling(starts: tuple[int, int]) -> None:
    operands = attention()
    expected = np.zeros((2, 3, 2, 3))
    for head in range(2):
        for level, (h, w) in enumerate(LEVELS):
            maps = operands["value"][:, starts[level] : starts[level] + h * w, head].reshape(2, h, w, 3)
            grid = torch.tensor(2 * operands["locations"][:, :, head, level] - 1)
            sampled = grid_sample(torch.tensor(maps).permute(0, 3, 1, 2), grid, align_corners=False)
            weights = operands["weights"][:, :, head, level]
            expected[:, :, head] += np.einsum("bdqp,bqp->bqd", sampled.numpy(), weights)
    np.testing.assert_allclose(attend(operands, starts), expected.reshape(2, 3, 6), atol=1e-12)


def test_attention_gradients_match_differences() -> None:
    operands = attention(1)
    zeros = (np.zeros_like(operands[name]) for name in ("value", "locations", "weights"))
    arguments = (
        operands["value"],
        LEVELS,
        np.array([0, 20]),
        operands["locations"],
        operands["weights"],
        operands["grad"],
        64,
    )
    back = call_reference("diopiMsDeformAttnBackwardMmcv", *zeros, *arguments)
    for name, gradient in zip(("value", "locations", "weights"), back, strict=True):
        expected = numerical_gradient(
            lambda x, name=name: attend({**operands, name: x}), operands[name], operands["grad"]
        )
        np.testing.assert_allclose(gradient, expected, atol=1e-8)


def test_results_do_not_depend_on_other_queries() -> None:
    """A permutation of the queries permutes the results."""
    operands, order = attention(2), [2, 0, 1]
    permuted = {**operands, "locations": operands["locations"][:, order], "weights": operands["weights"][:, order]}
    np.testing.assert_allclose(attend(permuted), attend(operands)[:, order])


def test_a_slope_is_open_within_rounding_of_an_element() -> None:
    """In float32, 1 − 2e-9 is 1, and the slope before an element differs from the slope after it."""
    image, kernel, offset = np.arange(9.0).reshape(1, 1, 3, 3), np.ones((1, 1, 1, 1)), np.zeros((1, 2, 3, 3))
    offset[0, 0, 1, 1], offset[0, 1, 0, 2], offset[0, 0, 2, 2] = -2e-9, 3e-9, -0.25
    tensors_of_call = image, offset, image, offset, image, kernel, WORKSPACE
    _, to_offset = call_with_remarks(
        "diopiDeformConvBackwardInputMmcv", *tensors_of_call, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1
    )
    assert np.argwhere(~to_offset.specified).tolist() == [[0, 0, 1, 1], [0, 1, 0, 2]]
