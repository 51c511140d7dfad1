"""Cases of the correlation of patches of two feature maps, and of its gradient.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

Smoke cases belong to the shortest level of the suite. The leading element type is float32, or the first type of a
function without float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.mmcv_sampling.values import F16, SMALL_INTEGERS, Pair, Shape4
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import zeros


@dataclass(frozen=True, kw_only=True)
class CorrelationSizes:
    """The sizes of a correlation. Pairs are along H and along W.

    Attributes:
        shape: The shape of both feature maps, (N, C, H, W).
        kernel: The sizes of the windows that are multiplied.
        patch: The numbers of displacements of the second map.
        padding: The number of cells added at either end of an axis.
        dilation: The distances between neighboring elements of a window.
        dilation_patch: The distances between neighboring displacements.
        stride: The distances between neighboring windows.
    """

    shape: Shape4 = (2, 2, 4, 5)
    kernel: Pair = (1, 1)
    patch: Pair = (3, 3)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    dilation_patch: Pair = (1, 1)
    stride: Pair = (1, 1)

    @property
    def result_size(self) -> list[int]:
        """Return the sizes of the result along H and W."""
        axes = zip(self.shape[2:], self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return [(length + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for length, k, stride, pad, dilation in axes]


def correlation_arguments(template: CaseTemplate[CorrelationSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiCorrelationMmcv` and its gradient for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to gradients.
        dtype: Not used; all tensors have the type under test.

    Returns:
        The arguments by name, for both functions.
    """
    sizes = template.sizes
    pairs = {
        "k": sizes.kernel,
        "patch": sizes.patch,
        "pad": sizes.padding,
        "dilation": sizes.dilation,
        "dilation_patch": sizes.dilation_patch,
        "d": sizes.stride,
    }
    return {
        "grad_input1": zeros(*sizes.shape, layout=template.result_layout),
        "grad_input2": zeros(*sizes.shape, layout=template.result_layout),
        "grad_output": tensor(sizes.shape[0], *sizes.patch, *sizes.result_size, layout=template.layout),
        "input1": tensor(*sizes.shape, layout=template.layout),
        "input2": tensor(*sizes.shape, layout=template.layout),
        **{f"{name}{axis}": pair[k] for name, pair in pairs.items() for k, axis in enumerate("HW")},
    }


CORRELATION_SMOKE = CaseTemplate("plain", CorrelationSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes: smoke cases in every element type."""

CORRELATION_LEADING = CORRELATION_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template with the default sizes, in the leading element type and without smoke cases."""

SMALL_INTEGER_MAPS = dict.fromkeys(("input1", "input2", "grad_output"), SMALL_INTEGERS)
"""Domains by argument name: small integers, whose sums of products are exact."""

CORRELATION_TEMPLATES = (
    CORRELATION_SMOKE,
    CORRELATION_SMOKE.with_sizes(
        "all",
        shape=(2, 3, 9, 8),
        kernel=(2, 3),
        patch=(3, 5),
        padding=(2, 1),
        dilation=(3, 1),
        dilation_patch=(1, 2),
        stride=(2, 1),
    ).replace(smoke=False, layout=strided, result_layout=transposed),
    CORRELATION_SMOKE.with_sizes("exact", kernel=(2, 2), padding=(1, 1)).replace(
        domains=SMALL_INTEGER_MAPS, exact=True, smoke=False
    ),
    CORRELATION_LEADING.with_sizes("kernel", shape=(2, 2, 5, 6), kernel=(3, 2)),
    CORRELATION_LEADING.with_sizes("kernel-the-other-way", shape=(2, 2, 5, 6), kernel=(2, 3)),
    CORRELATION_LEADING.with_sizes("tall-patch", patch=(5, 1)),
    CORRELATION_LEADING.with_sizes("wide-patch", patch=(1, 5)),
    CORRELATION_LEADING.with_sizes("padded", padding=(2, 0)),
    CORRELATION_LEADING.with_sizes("padded-the-other-way", padding=(0, 2)),
    CORRELATION_LEADING.with_sizes("dilated", shape=(2, 2, 6, 7), kernel=(3, 2), dilation=(2, 3)),
    CORRELATION_LEADING.with_sizes("dilated-the-other-way", shape=(2, 2, 6, 7), kernel=(2, 3), dilation=(3, 2)),
    CORRELATION_LEADING.with_sizes("far-patch", shape=(2, 2, 6, 7), dilation_patch=(2, 3)),
    CORRELATION_LEADING.with_sizes("far-patch-the-other-way", shape=(2, 2, 6, 7), dilation_patch=(3, 2)),
    CORRELATION_LEADING.with_sizes("strided-result", shape=(2, 2, 7, 6), stride=(2, 3)),
    CORRELATION_LEADING.with_sizes("strided-the-other-way", shape=(2, 2, 7, 6), stride=(3, 2)),
    CORRELATION_LEADING.with_sizes("two-ways-to-a-size", shape=(2, 2, 7, 7), kernel=(3, 3), padding=(1, 1)),
    CORRELATION_LEADING.with_sizes(
        "dilated-to-a-size", shape=(2, 2, 7, 7), kernel=(3, 3), padding=(2, 2), dilation=(2, 2)
    ),
    CORRELATION_LEADING.with_sizes("dilated-kernel", shape=(2, 2, 8, 8), kernel=(3, 3), dilation=(2, 2)),
    CORRELATION_LEADING.with_sizes("large-kernel", shape=(2, 2, 8, 8), kernel=(5, 5)),
    *(
        CORRELATION_LEADING.with_sizes(f"kernel-{h}-{w}-by-twos", shape=(2, 2, 7, 7), kernel=(h, w), stride=(2, 2))
        for h, w in ((2, 2), (2, 3), (3, 2))
    ),
    *(
        CORRELATION_LEADING.with_sizes(f"two-places-by-{h}-{w}", shape=(2, 2, 4, 4), stride=(h, w))
        for h, w in ((2, 2), (2, 3), (3, 2))
    ),
    CORRELATION_LEADING.with_sizes("no-displacement", shape=(3, 3, 4, 3), patch=(1, 1)),
    CORRELATION_LEADING.with_sizes("beyond-the-map", shape=(1, 2, 3, 2), patch=(7, 9)),
    CORRELATION_LEADING.with_sizes("one-channel", shape=(3, 1, 4, 3)),
    CORRELATION_LEADING.with_sizes("many-channels", shape=(1, 33, 3, 4)),
    CORRELATION_LEADING.replace("channels-last", **same_layout(channels_last)),
    CORRELATION_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    CORRELATION_LEADING.with_sizes("long", shape=(1, 8, 17, 19), patch=(5, 5), kernel=(3, 3), padding=(1, 1)),
    CORRELATION_LEADING.with_sizes("long-sum", shape=(1, 130, 5, 6), kernel=(3, 3), padding=(1, 1)).replace(
        dtypes=half
    ),
    CORRELATION_LEADING.with_sizes("no-samples", shape=(0, 2, 4, 5)),
    CORRELATION_LEADING.with_sizes("patch", shape=(1, 31, 53, 47), patch=(3, 5), dilation_patch=(2, 1)).replace(
        large=True
    ),
    CORRELATION_LEADING.with_sizes(
        "half-kernel", shape=(2, 67, 23, 29), kernel=(3, 3), padding=(1, 1), stride=(2, 1)
    ).replace(dtypes=F16, large=True),
)
"""The templates of correlation and of its gradient.

Unequal sizes along H and W reveal a vendor that exchanges the axes.
"""

register(
    "diopiCorrelationMmcv",
    "diopiCorrelationBackwardMmcv",
    templates=CORRELATION_TEMPLATES,
    derive=correlation_arguments,
)
