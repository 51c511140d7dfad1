"""Result sizes of convolutions and pooling, compared with windows that are counted one by one."""

from typing import Any

import pytest

from diopi_test.cases.conv import (
    OUTPUT_PADDING_TEMPLATES,
    PATCHES,
    TEMPLATES_IN_ALL_DTYPES,
    TEMPLATES_IN_SOME_DTYPES,
    Convolution,
)
from diopi_test.cases.pool import MAXIMUM_TEMPLATES, SLIDING_TEMPLATES, PoolingSizes
from diopi_test.cases.template import CaseTemplate


def starts(size: int, kernel: int, stride: int, padding: int, dilation: int, beyond: int = 0) -> list[int]:
    """Return the positions of the windows that end at most `beyond` elements after the second margin."""
    last = size + padding - dilation * (kernel - 1) - 1
    return [start for start in range(-padding, size, stride) if start <= last + beyond]


@pytest.mark.parametrize(
    "template",
    [*TEMPLATES_IN_ALL_DTYPES, *TEMPLATES_IN_SOME_DTYPES, *PATCHES],
    ids=lambda template: str(template.label),
)
def test_convolution_has_one_result_per_window(template: CaseTemplate[Any]) -> None:
    sizes: Convolution = template.sizes
    axes = zip(sizes.input, sizes.kernel, sizes.stride, sizes.padding, sizes.dilation, strict=True)
    assert sizes.result_sizes() == tuple(len(starts(*axis)) for axis in axes)


@pytest.mark.parametrize("template", OUTPUT_PADDING_TEMPLATES, ids=lambda template: str(template.label))
def test_convolution_inverts_the_sizes_of_its_transpose(template: CaseTemplate[Any]) -> None:
    sizes: Convolution = template.sizes
    fitting = zip(sizes.transposed_result_sizes(), sizes.output_padding, strict=True)
    whole = template.with_sizes(input=tuple(size - more for size, more in fitting)).sizes
    assert whole.result_sizes() == sizes.input


@pytest.mark.parametrize("template", [*SLIDING_TEMPLATES, *MAXIMUM_TEMPLATES], ids=lambda template: str(template.label))
def test_pooling_has_a_result_for_every_window(template: CaseTemplate[Any]) -> None:
    windows: PoolingSizes = template.sizes
    strides = windows.stride or windows.kernel
    axes = zip(windows.input_sizes, windows.kernel, strides, windows.padding, windows.dilation, strict=True)
    counted = [len(starts(*axis, axis[2] - 1 if windows.ceil_mode else 0)) for axis in axes]
    assert windows.result_sizes(3, "MaxPool") == tuple(counted)
    assert windows.result_sizes(1, "MaxPool") == tuple(counted[-1:])
