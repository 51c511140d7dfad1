"""Calls at the sizes of models, which `model_sizes.py` measures.

A call consists of a function, a text that distinguishes its sizes, and the arguments in the order of the prototype.
Arrays are described here, and generated when the call is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_proto.types import Dtype, Reduction, Scalar

Sizes = tuple[int, ...]
"""The shape of a tensor, or one number per spatial axis."""


@dataclass(frozen=True)
class Result:
    """A tensor that the call fills.

    Attributes:
        shape: the shape.
        dtype: the element type.
    """

    shape: Sizes
    dtype: Dtype = Dtype.float32


@dataclass(frozen=True)
class RandomTensor:
    """A tensor that `draw` generates from random numbers."""

    draw: Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class ModelCall:
    """A call of one function at one size.

    Attributes:
        function: the name of the function without "diopi".
        size: the size, as the table shows it.
        arguments: the arguments in the order of the prototype.
    """

    function: str
    size: str
    arguments: Sequence[Any]

    @property
    def label(self) -> str:
        """Return the function and the size."""
        return f"{self.function}[{self.size}]"


def out(*shape: int) -> Result:
    """Return a float32 result."""
    return Result(shape)


def out_at(*shape: int) -> Result:
    """Return an int64 result."""
    return Result(shape, Dtype.int64)


# The names of the following functions are short because the tables below use them in nearly every argument.


def f(*shape: int) -> RandomTensor:
    """Return a float32 tensor of normally distributed numbers."""
    return RandomTensor(lambda rng: rng.standard_normal(shape, np.float32))


def u(*shape: int, low: float = 0, high: float = 1) -> RandomTensor:
    """Return a float32 tensor of numbers that are uniformly distributed from `low` to `high`."""
    return RandomTensor(lambda rng: rng.uniform(low, high, shape).astype(np.float32))


def integers(high: int, *shape: int, low: int = 0) -> RandomTensor:
    """Return a tensor of integers between `low` and `high`."""
    return RandomTensor(lambda rng: rng.integers(low, high, shape))


def mask(*shape: int) -> RandomTensor:
    """Return a Boolean tensor with about as many True as False elements."""
    return RandomTensor(lambda rng: rng.random(shape) < 0.5)


def _definite(rng: np.random.Generator) -> Any:
    """Return a symmetric positive definite matrix."""
    root = rng.standard_normal((512, 512), np.float32)
    return root @ root.T + 512 * np.eye(512, dtype=np.float32)


def _boxes(rng: np.random.Generator) -> Any:
    """Return regions of interest: the index of the picture and two corners."""
    corner = rng.uniform(0, 400, (128, 2))
    numbers = [rng.integers(0, 2, (128, 1)), corner, corner + rng.uniform(20, 400, (128, 2))]
    return np.concatenate(numbers, 1).astype(np.float32)


def _log_probs(rng: np.random.Generator) -> Any:
    """Return log-probabilities."""
    return np.log(rng.dirichlet(np.ones(47), (400, 16))).astype(np.float32)


CONVOLUTIONS: dict[str, tuple[Sizes, Sizes, Sizes, Sizes, Sizes, int]] = {
    # shape of the input, shape of the weight, stride, padding, dilation, groups
    "resnet-stem": ((4, 3, 224, 224), (64, 3, 7, 7), (2, 2), (3, 3), (1, 1), 1),
    "resnet-3x3": ((4, 64, 56, 56), (64, 64, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "resnet-1x1": ((4, 256, 56, 56), (64, 256, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "resnet-deep": ((4, 512, 7, 7), (512, 512, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "resnext-groups-32": ((4, 128, 56, 56), (128, 4, 3, 3), (1, 1), (1, 1), (1, 1), 32),
    "depthwise": ((4, 192, 56, 56), (192, 1, 7, 7), (1, 1), (3, 3), (1, 1), 192),
    "atrous": ((2, 256, 28, 28), (256, 256, 3, 3), (1, 1), (4, 4), (4, 4), 1),
    "dilated-and-strided": ((2, 37, 57, 57), (41, 37, 3, 3), (2, 2), (2, 2), (2, 2), 1),
    "speech-1d": ((4, 512, 1, 1500), (512, 512, 1, 3), (1, 2), (0, 1), (1, 1), 1),
    "speech-depthwise-1d": ((4, 256, 1, 1500), (256, 1, 1, 31), (1, 1), (0, 15), (1, 1), 256),
    "video-3d": ((1, 64, 8, 56, 56), (64, 64, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    "video-stem-3d": ((1, 3, 8, 112, 112), (64, 3, 3, 7, 7), (1, 2, 2), (1, 3, 3), (1, 1, 1), 1),
    "groups-3d": ((1, 64, 8, 28, 28), (64, 8, 3, 3, 3), (1, 2, 2), (1, 1, 1), (1, 1, 1), 8),
}
"""The sizes of convolutions by name."""

TRANSPOSED: dict[str, tuple[Sizes, Sizes, Sizes, Sizes, Sizes, int]] = {
    "gan": ((4, 256, 16, 16), (256, 128, 4, 4), (2, 2), (1, 1), (1, 1), 1),
    "segmentation": ((2, 21, 32, 32), (21, 1, 16, 16), (8, 8), (4, 4), (1, 1), 21),
    "dilated-groups": ((2, 64, 28, 28), (64, 32, 3, 3), (2, 2), (2, 2), (2, 2), 8),
    "volume-3d": ((1, 64, 8, 16, 16), (64, 32, 2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1), 1),
    "dilated-groups-3d": ((2, 128, 32, 32, 4), (128, 128, 4, 4, 4), (2, 2, 2), (0, 0, 0), (2, 2, 2), 8),
}
"""The sizes of transposed convolutions by name, in the same order as those of `CONVOLUTIONS`."""


def convolutions() -> Iterator[ModelCall]:
    """Yield convolutions and their gradients."""
    for name, (x, w, stride, padding, dilation, groups) in CONVOLUTIONS.items():
        axes = zip(x[2:], w[2:], stride, padding, dilation, strict=True)
        sizes = ((size + 2 * pad - spacing * (k - 1) - 1) // step + 1 for size, k, step, pad, spacing in axes)
        order = (stride, padding, dilation, groups)
        yield from _with_gradient(f"Convolution{len(stride)}d", name, x, w, (x[0], w[0], *sizes), order, order)


def transposed_convolutions() -> Iterator[ModelCall]:
    """Yield transposed convolutions and their gradients."""
    for name, (x, w, stride, padding, dilation, groups) in TRANSPOSED.items():
        axes = zip(x[2:], w[2:], stride, padding, dilation, strict=True)
        sizes = ((size - 1) * step - 2 * pad + spacing * (k - 1) + 1 for size, k, step, pad, spacing in axes)
        y, output_padding = (x[0], w[1] * groups, *sizes), (0,) * len(stride)
        forward, backward = (
            (stride, padding, output_padding, groups, dilation),
            (stride, padding, dilation, output_padding, groups),
        )
        yield from _with_gradient(f"ConvTranspose{len(stride)}d", name, x, w, y, forward, backward)


def _with_gradient(
    function: str, name: str, x: Sizes, w: Sizes, y: Sizes, forward: Sequence[Any], backward: Sequence[Any]
) -> Iterator[ModelCall]:
    """Yield the call of a convolution and the call of its gradient.

    Args:
        function: the name of the convolution without "diopi".
        name: the name of the sizes.
        x: the shape of the input.
        w: the shape of the weight.
        y: the shape of the result.
        forward: the attributes of the convolution.
        backward: the attributes of the gradient.

    Yields:
        Both calls.
    """
    yield ModelCall(function, name, [out(*y), f(*x), f(*w), None, *forward])
    yield ModelCall(f"{function}Backward", name, [out(*x), out(*w), out(y[1]), f(*y), f(*x), f(*w), (y[1],), *backward])


# Sizes of models
N = 1_000_003
TEN_N = 10_000_019
SCORES = (8, 16, 1024, 1024)
HIDDEN = (8, 512, 1024)
ROW = (8, 512, 1)
IMAGE = (8, 256, 56, 56)
HEADS = (96, 512, 64)
KEYS = (96, 64, 512)
PAIRS = (96, 512, 512)
LOGITS = (1024, 32003)
MATRIX = (1024, 4097)
TABLE = (32003, 768)
ROWS = (4096, 768)
STEM = (8, 64, 112, 112)
POOLED = (8, 64, 56, 56)
FEATURES = (2, 256, 50, 68)
REGIONS = (128, 256, 7, 7)
COLUMNS = (8, 64 * 9, 56 * 56)
FRAMES = (8, 1248, 400)
ALPHA = (16, 400, 121)

# Arguments that several calls share: of pooling (kernel, stride, padding), of unfolding (kernel, dilation, padding,
# stride), of AdamW, of the CTC loss, and of the cross-entropy loss
WINDOW = ((3, 3), (2, 2), (1, 1))
UNROLLED = ((3, 3), (1, 1), (1, 1), (1, 1))
ADAM = (None, 1e-3, 0.9, 0.999, 1e-8, 0.01, 7, False)
ALIGNED_ARGUMENTS = (
    RandomTensor(_log_probs),
    integers(47, 16, 60, low=1),
    integers(401, 16, low=400),
    integers(61, 16, low=60),
)
LOSS = (f(*LOGITS), integers(32003, 1024), None, Reduction.mean, -100)
LOSS_GRADIENT = u(low=1)

# Function, size and arguments of the calls of other functions
FURTHER_CALLS: list[tuple[str, str, Sequence[Any]]] = [
    ("Mm", "odd", [out(1031, 509), f(1031, 2053), f(2053, 509)]),
    ("Bmm", "scores", [out(*PAIRS), f(*HEADS), f(*KEYS)]),
    ("Baddbmm", "scores", [out(*PAIRS), f(*PAIRS), f(*HEADS), f(*KEYS), 1.0, 0.125]),
    ("MatmulBackward", "scores", [out(*HEADS), out(*KEYS), f(*PAIRS), f(*HEADS), f(*KEYS)]),
    ("Linear", "ffn", [out(4, 512, 3072), f(4, 512, 768), f(3072, 768), f(3072)]),
    (
        "LinearBackward",
        "ffn",
        [out(4, 512, 768), out(3072, 768), out(3072), f(4, 512, 3072), f(4, 512, 768), f(3072, 768)],
    ),
    ("Cdist", "euclidean", [out(1031, 509), f(1031, 128), f(509, 128), 2.0, None]),
    ("CdistBackward", "euclidean", [out(1031, 128), f(1031, 509), f(1031, 128), f(509, 128), 2.0, u(1031, 509, low=1)]),
    ("Cholesky", "512", [out(512, 512), Result((), Dtype.int32), RandomTensor(_definite), False, True]),
    ("LinalgQR", "512", [f(512, 512), "reduced", out(512, 512), out(512, 512)]),
    ("Softmax", "attention", [out(*SCORES), f(*SCORES), -1]),
    ("SoftmaxBackward", "attention", [out(*SCORES), f(*SCORES), f(*SCORES), -1]),
    ("LogSoftmax", "vocabulary", [out(*LOGITS), f(*LOGITS), -1]),
    ("LayerNorm", "rows", [out(*HIDDEN), out(*ROW), out(*ROW), f(*HIDDEN), f(1024), f(1024), (1024,), 1e-5]),
    (
        "LayerNormBackward",
        "rows",
        [
            *(out(*HIDDEN), out(1024), out(1024), f(*HIDDEN), f(*HIDDEN), f(1024), f(1024), f(*ROW), f(*ROW)),
            (1024,),
        ],
    ),
    (
        "BatchNorm",
        "training",
        [out(*IMAGE), out(256), out(256), f(*IMAGE), f(256), f(256), f(256), u(256, low=1), True, 0.1, 1e-5],
    ),
    (
        "BatchNormBackward",
        "training",
        [out(*IMAGE), out(256), out(256), f(*IMAGE), f(*IMAGE), *[f(256) for _ in range(5)], True, 1e-5],
    ),
    ("GroupNorm", "32", [out(*IMAGE), out(8, 32), out(8, 32), f(*IMAGE), f(256), f(256), 32, 1e-5]),
    (
        "GroupNormBackward",
        "32",
        [out(*IMAGE), out(256), out(256), f(*IMAGE), f(*IMAGE), f(256), f(8, 32), f(8, 32), 32],
    ),
    ("MaxPool2d", "stem", [out(*POOLED), f(*STEM), *WINDOW, (1, 1), False]),
    ("MaxPool2dWithIndices", "stem", [out(*POOLED), out_at(*POOLED), f(*STEM), *WINDOW, (1, 1), False]),
    (
        "MaxPool2dBackward",
        "stem",
        [out(*STEM), f(*POOLED), f(*STEM), *WINDOW, (1, 1), False, integers(112**2, *POOLED)],
    ),
    ("AvgPool2d", "stem", [out(*POOLED), f(*STEM), *WINDOW, False, True, None]),
    ("AvgPool2dBackward", "stem", [out(*STEM), f(*POOLED), f(*STEM), *WINDOW, False, True, None]),
    (
        "MaxPool3d",
        "video",
        [out(2, 64, 8, 28, 28), f(2, 64, 16, 56, 56), (3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), False],
    ),
    ("AdaptiveAvgPool2d", "31-to-7", [out(8, 512, 7, 7), f(8, 512, 31, 31), (7, 7)]),
    ("AdaptiveAvgPool2d", "31-to-1", [out(8, 512, 1, 1), f(8, 512, 31, 31), (1, 1)]),
    ("AdaptiveAvgPool2dBackward", "31-to-7", [out(8, 512, 31, 31), f(8, 512, 7, 7), f(8, 512, 31, 31)]),
    ("AdaptiveAvgPool2dBackward", "31-to-1", [out(8, 512, 31, 31), f(8, 512, 1, 1), f(8, 512, 31, 31)]),
    ("AdaptiveMaxPool2d", "31-to-7", [out(8, 512, 7, 7), f(8, 512, 31, 31), (7, 7)]),
    ("UpsampleNearest", "2x", [out(*STEM), f(*POOLED), (112, 112)]),
    ("UpsampleNearestBackward", "2x", [out(*POOLED), f(*STEM), (112, 112), POOLED]),
    ("UpsampleLinear", "bilinear", [out(*STEM), f(*POOLED), (112, 112), False, "bilinear"]),
    ("UpsampleLinear", "bicubic", [out(*STEM), f(*POOLED), (112, 112), False, "bicubic"]),
    ("UpsampleLinearBackward", "bilinear", [out(*POOLED), f(*STEM), (112, 112), POOLED, False, "bilinear"]),
    ("UpsampleLinearBackward", "bicubic", [out(*POOLED), f(*STEM), (112, 112), POOLED, False, "bicubic"]),
    ("GridSample", "warp", [out(*POOLED), f(*POOLED), u(8, 56, 56, 2, low=-1), "bilinear"]),
    ("RoiAlign", "detector", [out(*REGIONS), f(*FEATURES), RandomTensor(_boxes), 0.0625, 7, 7, 2, True]),
    (
        "RoiAlignBackward",
        "detector",
        [out(*FEATURES), f(*REGIONS), RandomTensor(_boxes), 0.0625, 7, 7, *FEATURES, 2, True],
    ),
    ("Im2Col", "3x3", [out(*COLUMNS), f(*POOLED), *UNROLLED]),
    ("Col2Im", "3x3", [out(*POOLED), f(*COLUMNS), (56, 56), *UNROLLED]),
    ("Unfold", "frames", [out(*FRAMES), f(8, 200_000), 1, 400, 160]),
    ("UnfoldBackward", "frames", [out(8, 200_000), f(*FRAMES), (8, 200_000), 1, 400, 160]),
    ("Embedding", "vocabulary", [out(*ROWS), f(*TABLE), integers(32003, 4096), -1, False, False]),
    (
        "EmbeddingBackward",
        "vocabulary",
        [out(*TABLE), f(*ROWS), integers(32003, 4096), 32003, -1, False, False],
    ),
    ("IndexSelect", "rows", [out(*ROWS), f(*TABLE), 0, integers(32003, 4096)]),
    ("IndexSelectBackward", "rows", [out(*TABLE), f(*ROWS), TABLE, 0, integers(32003, 4096)]),
    ("Gather", "rows", [out(*ROWS), f(*TABLE), 0, integers(32003, *ROWS)]),
    ("GatherBackward", "rows", [out(*TABLE), f(*ROWS), f(*TABLE), 0, integers(32003, *ROWS)]),
    ("Scatter", "assign", [out(*TABLE), f(*TABLE), 0, f(*ROWS), integers(32003, *ROWS), ""]),
    ("Scatter", "add", [out(*TABLE), f(*TABLE), 0, f(*ROWS), integers(32003, *ROWS), "add"]),
    ("IndexPut", "assign", [out(*TABLE), f(*TABLE), f(*ROWS), [integers(32003, 4096)], 1, False]),
    ("IndexPut", "accumulate", [out(*TABLE), f(*TABLE), f(*ROWS), [integers(32003, 4096)], 1, True]),
    ("IndexBackward", "rows", [out(*TABLE), u(*TABLE, high=0), [integers(32003, 4096)], 1, f(*ROWS)]),
    ("MaskedFill", "table", [out(*TABLE), f(*TABLE), mask(*TABLE), f()]),
    ("MaskedScatter", "table", [out(*TABLE), f(*TABLE), mask(*TABLE), f(*TABLE)]),
    ("Sort", "million", [out(N), out_at(N), f(N), 0, False, True]),
    ("Sort", "rows", [out(1000, 1000), out_at(1000, 1000), f(1000, 1000), 1, True, True]),
    ("Topk", "million", [out(100), out_at(100), f(N), 100, 0, True, True]),
    ("Topk", "vocabulary", [out(64, 50), out_at(64, 50), f(64, 32003), 50, 1, True, True]),
    ("Cumsum", "million", [out(N), f(N), 0]),
    ("Cumsum", "rows", [out(*MATRIX), f(*MATRIX), 1]),
    ("CumsumBackward", "million", [out(N), f(N), 0]),
    ("Sum", "rows", [out(1024), f(*MATRIX), (1,)]),
    ("Sum", "columns", [out(4097), f(*MATRIX), (0,)]),
    ("Mean", "rows", [out(1024), f(*MATRIX), (1,)]),
    ("Std", "rows", [out(1024), f(*MATRIX), (1,), Scalar.from_number(1)]),
    ("Std", "columns", [out(4097), f(*MATRIX), (0,), Scalar.from_number(1)]),
    ("Argmax", "rows", [out_at(1024), f(*MATRIX), 1, False]),
    ("Max", "columns", [out(4097), out_at(4097), f(*MATRIX), 0]),
    ("Norm", "matrix", [out(1), f(*MATRIX), Scalar.from_number(2.0), (0, 1)]),
    ("Cat", "channels", [out(8, 768, 56, 56), [f(*IMAGE), f(*IMAGE), f(*IMAGE)], 3, 1]),
    ("Permute", "heads", [out(8, 16, 1024, 64), f(8, 1024, 16, 64), (0, 2, 1, 3)]),
    ("Roll", "windows", [out(8, 56, 56, 128), f(8, 56, 56, 128), (-3, -3), (1, 2)]),
    ("Add", "broadcast", [out(*HIDDEN), f(*HIDDEN), f(1024), Scalar.from_number(1)]),
    ("Gelu", "ffn", [out(*HIDDEN), f(*HIDDEN), "none"]),
    ("GeluBackward", "ffn", [out(*HIDDEN), f(*HIDDEN), f(*HIDDEN), "none"]),
    ("Pad", "reflect", [out(8, 64, 118, 118), f(*STEM), (3, 3, 3, 3), "reflect", None]),
    ("CrossEntropyLoss", "vocabulary", [out(), *LOSS, 0.0]),
    ("CrossEntropyLoss", "smoothed", [out(), *LOSS, 0.1]),
    ("CrossEntropyLossBackward", "vocabulary", [out(*LOGITS), LOSS_GRADIENT, *LOSS, 0.0]),
    ("CrossEntropyLossBackward", "smoothed", [out(*LOGITS), LOSS_GRADIENT, *LOSS, 0.1]),
    ("NLLLossBackward", "vocabulary", [out(*LOGITS), LOSS_GRADIENT, *LOSS]),
    ("CTCLoss", "speech", [out(), out(16), out(*ALPHA), *ALIGNED_ARGUMENTS, 0, Reduction.mean, False]),
    (
        "CTCLossBackward",
        "speech",
        [
            *(
                out(400, 16, 47),
                LOSS_GRADIENT,
                *ALIGNED_ARGUMENTS,
                u(16, low=500, high=501),
                u(*ALPHA, low=-500, high=-499),
            ),
            *(0, Reduction.mean, False),
        ],
    ),
    ("AdamW", "ten-million", [u(TEN_N), u(TEN_N), u(TEN_N), u(TEN_N), *ADAM]),
]

CALLS = [*convolutions(), *transposed_convolutions(), *(ModelCall(*entry) for entry in FURTHER_CALLS)]
"""All calls."""
