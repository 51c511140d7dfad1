"""jax_cpu rejects calls that the standard forbids but JAX would accept, for example sizes that JAX broadcasts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from diopi_impl import Box
from diopi_impl.jax_cpu import vendor
from diopi_proto.types import Error, Reduction
from lib_rt import Context, Tensor

NONE, MEAN = Reduction.none, Reduction.mean


def ones(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    """Return an array of ones."""
    return np.ones(shape, dtype)


def ints(*values: Any) -> np.ndarray[Any, Any]:
    """Return an int64 vector of these numbers."""
    return np.array(values, np.int64)


IMAGE, ROWS, MATRIX = ones(2, 4, 5, 5), ones(6, 5), ones(2, 5)
KERNEL = ones(3, 4, 3, 3)
WINDOW: list[Any] = [(1, 1), (0, 0), (1, 1), 1]
LABELS = ints(0, 1, 2, 3, 4, 0)
STEPS = [ones(5, 2, 4), ints([1, 2], [3, 1])]


def ctc(input_lengths: Any, target_lengths: Any, blank: int = 0) -> tuple[str, list[Any], list[Any]]:
    """Return the function, results and arguments of a CTC loss with these lengths."""
    arguments = [*STEPS, np.array(input_lengths), np.array(target_lengths), blank, NONE, False]
    return "diopiCTCLoss", [ones(2), ones(2), ones(2, 5, 5)], arguments


CALLS: dict[str, tuple[str, list[Any], list[Any]]] = {
    "bias of a convolution": ("diopiConvolution2d", [ones(2, 3, 3, 3)], [IMAGE, KERNEL, ones(1), *WINDOW]),
    "its sizes": (
        "diopiConvolution2dBackward",
        [IMAGE, KERNEL, ones(3)],
        [ones(2, 3, 3, 3), IMAGE, KERNEL, (1,), *WINDOW],
    ),
    "weight of layer norm, flat": (
        "diopiLayerNorm",
        [IMAGE, ones(2, 4), ones(2, 4)],
        [IMAGE, ones(25), None, (5, 5), 1e-5],
    ),
    "weight of group norm": (
        "diopiGroupNorm",
        [IMAGE, ones(2, 1), ones(2, 1)],
        [IMAGE, ones(1), None, 1, 1e-5],
    ),
    "groups": ("diopiGroupNorm", [IMAGE, ones(2, 3), ones(2, 3)], [IMAGE, None, None, 3, 1e-5]),
    "running statistics of one channel": (
        "diopiBatchNormGatherStatsWithCounts",
        [ones(1), ones(1)],
        [ones(2, 1, 3), ones(2, 1), ones(2, 1), ones(3), ones(3), 0.1, 1e-5, ones(2)],
    ),
    "norm of nothing": ("diopiNorm", [ones(3)], [ones(3, 0), -1, (1,)]),
    "largest of nothing": ("diopiNorm", [ones()], [ones(0, 3), np.inf, ()]),
    "scaling nothing": ("diopiNormalize", [ones(3, 0)], [ones(3, 0), -2.0, 1, 1e-5]),
    "axis of a number": ("diopiNorm", [ones()], [ones(), 2, (1,)]),
    "axis of a number twice": ("diopiFlip", [ones()], [ones(), (0, -1)]),
    "rolling a number along an axis": ("diopiRoll", [ones()], [ones(), (1,), (0,)]),
    "weight of classes": ("diopiNLLLoss", [ones()], [ROWS, LABELS, ones(1), MEAN, -100]),
    "targets of one sample": ("diopiCrossEntropyLoss", [ones()], [ROWS, LABELS[:1], None, MEAN, -100, 0.0]),
    "probabilities of one class": ("diopiCrossEntropyLoss", [ones()], [ROWS, ones(6, 1), None, MEAN, -100, 0.0]),
    "smoothing": ("diopiCrossEntropyLoss", [ones()], [ROWS, LABELS, None, MEAN, -100, 1.5]),
    "targets of BCE": ("diopiBCELoss", [ones()], [MATRIX, ones(5), None, MEAN]),
    "weight of more axes": ("diopiBCEWithLogits", [ones()], [MATRIX, MATRIX, ones(3, 2, 5), None, MEAN]),
    "class of the blank": ctc([5, 4], [2, 1], 4),
    "negative blank": ctc([5, 4], [2, 1], -1),
    "too many steps": ctc([6, 4], [2, 1]),
    "negative steps": ctc([-1, 4], [2, 1]),
    "too many labels": ctc([5, 4], [3, 1]),
    "lengths of one sample": ctc([5], [2, 1]),
    "labels left over": (
        "diopiCTCLoss",
        [ones(2), ones(2), ones(2, 5, 5)],
        [STEPS[0], ints(1, 2, 3, 1), ints(5, 4), ints(2, 1), 0, NONE, False],
    ),
    "narrow paths": (
        "diopiCTCLoss",
        [ones(2), ones(2), ones(2, 5, 3)],
        [*STEPS, ints(5, 4), ints(2, 1), 0, NONE, False],
    ),
    "bias that grows the result": ("diopiLinear", [ones(3, 4)], [ones(3, 5), ones(4, 5), ones(2, 3, 4)]),
    "bias of another size": ("diopiLinear", [ones(3, 4)], [ones(3, 5), ones(4, 5), ones(3)]),
    "rows of other lengths": ("diopiCdist", [ones(2, 3)], [ones(2, 1), ones(3, 4), 2.0, None]),
    "grid of one sample": ("diopiGridSample", [ones(2, 4, 2, 2)], [IMAGE, ones(1, 2, 2, 2), "nearest"]),
    "reflected margin": ("diopiPad", [ones(2, 10)], [MATRIX, (5, 0), "reflect", None]),
    "reflected margin at the end": ("diopiPad", [ones(2, 7)], [MATRIX, (-3, 5), "reflect", None]),
    "circular margin": ("diopiPad", [ones(2, 11)], [MATRIX, (0, 6), "circular", None]),
    "circular margin of nothing": ("diopiPad", [ones(2, 5)], [MATRIX, (-5, 5), "circular", None]),
    "replicated nothing": ("diopiPad", [ones(2, 2)], [ones(2, 0), (1, 1), "replicate", None]),
    "rank of a mode": ("diopiPad", [ones(7)], [ones(5), (1, 1), "replicate", None]),
    "cut beyond the end": ("diopiPad", [ones(2, 0)], [MATRIX, (-3, -3), "constant", None]),
    "too many margins": ("diopiPad", [ones(4, 7)], [MATRIX, (1, 1, 1, 1, 0, 0), "constant", None]),
    "half a margin": ("diopiPad", [ones(2, 6)], [MATRIX, (1,), "constant", None]),
    "value of a margin": ("diopiPad", [ones(7, dtype="int8")], [ones(5, dtype="int8"), (1, 1), "constant", 300.0]),
    "value of a mask": (
        "diopiMaskedFillScalar",
        [ones(2, dtype="uint8")],
        [ones(2, dtype="uint8"), ones(2, dtype="bool"), 256],
    ),
    "large value of a mask": (
        "diopiMaskedFillScalar",
        [ones(2, dtype="float16")],
        [ones(2, dtype="float16"), ones(2, dtype="bool"), 1e6],
    ),
    "value that is no number": (
        "diopiIndexFillScalar",
        [ones(2, dtype="int32")],
        [ones(2, dtype="int32"), 0, ints(0), np.nan],
    ),
    "value in a tensor": (
        "diopiIndexFill",
        [ones(2, dtype="int8")],
        [ones(2, dtype="int8"), 0, ints(0), np.array(-129)],
    ),
    "slices of a number": ("diopiIndexSelect", [ones(2)], [ones(), 0, ints(0, 0)]),
    "table without rows": ("diopiEmbedding", [ones(1)], [ones(3), ints(0), -1, False, False]),
    "grid of matrices": ("diopiMeshGrid", [[ones(10, 5), ones(10, 5)]], [[MATRIX, ones(5)], 2]),
    "grid of two types": (
        "diopiMeshGrid",
        [[ones(5, 2), ones(5, 2)]],
        [[ones(5), ones(2, dtype="float64")], 2],
    ),
    "windows of too many elements": ("diopiUnfold", [ones(2, 0, 6)], [MATRIX, 1, 6, 1]),
    "triangle of a vector": ("diopiTril", [ones(5)], [ones(5), 0]),
    "an axis twice": ("diopiPermute", [MATRIX], [MATRIX, (0, 0)]),
    "other sizes beside": ("diopiCat", [ones(5, 5)], [[MATRIX, ones(3, 4)], 2, 0]),
    "joined numbers": ("diopiCat", [ones(2)], [[ones(), ones()], 2, 0]),
    "fewer copies than axes": ("diopiRepeat", [MATRIX], [MATRIX, (1,)]),
    "sizes that do not add up": ("diopiSplitWithSizes", [[ones(2, 2), ones(2, 2)], 2], [MATRIX, (2, 2), 1]),
    "batches that differ": ("diopiBmm", [ones(2, 3, 3)], [ones(2, 3, 4), ones(1, 4, 3)]),
    "numbers as matrices": ("diopiMatmul", [ones()], [ones(), ones()]),
    "negative distance": ("diopiCdist", [ones(2, 3)], [ones(2, 4), ones(3, 4), -1.0, None]),
    "no kernel position": ("diopiIm2Col", [ones(2, 36, 0)], [IMAGE, (3, 3), (1, 1), (0, 0), (0, 1)]),
    "positions that differ": (
        "diopiCol2Im",
        [ones(2, 1, 5, 5)],
        [ones(2, 9, 8), (5, 5), (3, 3), (1, 1), (0, 0), (1, 1)],
    ),
    "divisor": ("diopiAvgPool2d", [ones(2, 4, 2, 2)], [IMAGE, (2, 2), (2, 2), (0, 0), False, True, 0]),
    "padding beyond half": ("diopiMaxPool2d", [ones(2, 4, 4, 4)], [IMAGE, (2, 2), (2, 2), (2, 2), (1, 1), False]),
    "more than there are": ("diopiTopk", [ones(2, 6), ints([0] * 6, [0] * 6)], [MATRIX, 6, 1, True, True]),
    "selection of a number": ("diopiSelect", [ones()], [ones(), 0, 0]),
    "source of another shape": ("diopiSelectScatter", [MATRIX], [MATRIX, ones(1), 0, 1]),
    "boxes of five numbers": ("diopiNms", [Box()], [ones(3, 5), ones(3), 0.5]),
    "regions of four numbers": ("diopiRoiAlign", [ones(3, 4, 2, 2)], [IMAGE, ones(3, 4), 1.0, 2, 2, 1, False]),
}  # fmt: skip


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    """Yield a context on the device of `jax_cpu`."""
    with vendor.open_device() as device, Context(device) as context:
        yield context


def _to_tensors(context: Context, value: Any) -> Any:
    """Return arrays, and lists of arrays, as tensors; return attributes unchanged."""
    if isinstance(value, list):
        return [_to_tensors(context, entry) for entry in value]
    return Tensor.from_numpy(context, np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


@pytest.mark.parametrize("name", list(CALLS))
def test_invalid_calls_are_rejected(name: str, context: Context) -> None:
    function, results, arguments = CALLS[name]
    assert vendor.call(function, context, *_to_tensors(context, [*results, *arguments])) is Error.ErrorOccurred
    assert vendor.last_error().startswith(f"{function}: ")


def test_the_message_about_resizing_without_spatial_axes_names_the_size_and_the_shape(context: Context) -> None:
    arguments = _to_tensors(context, [MATRIX, MATRIX, ()])
    assert vendor.call("diopiUpsampleNearest", context, *arguments) is Error.ErrorOccurred
    assert vendor.last_error() == "diopiUpsampleNearest: size () does not fit an input of shape (2, 5)"
