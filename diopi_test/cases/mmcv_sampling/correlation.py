"""Correlation of the neighbourhoods of two maps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.mmcv_sampling.values import F16, WHOLE, Pair, Shape4
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import zeros


@dataclass(frozen=True, kw_only=True)
class Correlated:
    """The sizes of a correlation; pairs are along H and along W."""

    shape: Shape4 = (2, 2, 4, 5)
    kernel: Pair = (1, 1)
    patch: Pair = (3, 3)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    dilation_patch: Pair = (1, 1)
    stride: Pair = (1, 1)

    @property
    def size(self) -> list[int]:
        """Return the sizes of the result along H and W."""
        axes = zip(self.shape[2:], self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return [(length + 2 * pad - far * (k - 1) - 1) // step + 1 for length, k, step, pad, far in axes]


def correlation_arguments(template: CaseTemplate[Correlated], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiCorrelationMmcv` and its gradient from the sizes of a template."""
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
        "grad_output": tensor(sizes.shape[0], *sizes.patch, *sizes.size, layout=template.layout),
        "input1": tensor(*sizes.shape, layout=template.layout),
        "input2": tensor(*sizes.shape, layout=template.layout),
        **{f"{name}{axis}": pair[k] for name, pair in pairs.items() for k, axis in enumerate("HW")},
    }


CORRELATED = CaseTemplate("plain", Correlated(), **SMOKE_IN_ALL_DTYPES)
CORRELATE = CORRELATED.replace(dtypes=DtypeSelection.leading, smoke=False)
"""The template in the leading element type only, without smoke cases."""

WHOLE_PAIRS = dict.fromkeys(("input1", "input2", "grad_output"), WHOLE)
"""Small integers, whose sums of products are exact."""

CORRELATIONS = (
    CORRELATED,
    CORRELATED.with_sizes(
        "all",
        shape=(2, 3, 9, 8),
        kernel=(2, 3),
        patch=(3, 5),
        padding=(2, 1),
        dilation=(3, 1),
        dilation_patch=(1, 2),
        stride=(2, 1),
    ).replace(smoke=False, layout=strided, result_layout=transposed),
    CORRELATED.with_sizes("exact", kernel=(2, 2), padding=(1, 1)).replace(domains=WHOLE_PAIRS, exact=True, smoke=False),
    CORRELATE.with_sizes("kernel", shape=(2, 2, 5, 6), kernel=(3, 2)),
    CORRELATE.with_sizes("kernel-the-other-way", shape=(2, 2, 5, 6), kernel=(2, 3)),
    CORRELATE.with_sizes("tall-patch", patch=(5, 1)),
    CORRELATE.with_sizes("wide-patch", patch=(1, 5)),
    CORRELATE.with_sizes("padded", padding=(2, 0)),
    CORRELATE.with_sizes("padded-the-other-way", padding=(0, 2)),
    CORRELATE.with_sizes("dilated", shape=(2, 2, 6, 7), kernel=(3, 2), dilation=(2, 3)),
    CORRELATE.with_sizes("dilated-the-other-way", shape=(2, 2, 6, 7), kernel=(2, 3), dilation=(3, 2)),
    CORRELATE.with_sizes("far-patch", shape=(2, 2, 6, 7), dilation_patch=(2, 3)),
    CORRELATE.with_sizes("far-patch-the-other-way", shape=(2, 2, 6, 7), dilation_patch=(3, 2)),
    CORRELATE.with_sizes("strided-result", shape=(2, 2, 7, 6), stride=(2, 3)),
    CORRELATE.with_sizes("strided-the-other-way", shape=(2, 2, 7, 6), stride=(3, 2)),
    CORRELATE.with_sizes("two-ways-to-a-size", shape=(2, 2, 7, 7), kernel=(3, 3), padding=(1, 1)),
    CORRELATE.with_sizes("dilated-to-a-size", shape=(2, 2, 7, 7), kernel=(3, 3), padding=(2, 2), dilation=(2, 2)),
    CORRELATE.with_sizes("dilated-kernel", shape=(2, 2, 8, 8), kernel=(3, 3), dilation=(2, 2)),
    CORRELATE.with_sizes("large-kernel", shape=(2, 2, 8, 8), kernel=(5, 5)),
    *(
        CORRELATE.with_sizes(f"kernel-{h}-{w}-by-twos", shape=(2, 2, 7, 7), kernel=(h, w), stride=(2, 2))
        for h, w in ((2, 2), (2, 3), (3, 2))
    ),
    *(
        CORRELATE.with_sizes(f"two-places-by-{h}-{w}", shape=(2, 2, 4, 4), stride=(h, w))
        for h, w in ((2, 2), (2, 3), (3, 2))
    ),
    CORRELATE.with_sizes("no-displacement", shape=(3, 3, 4, 3), patch=(1, 1)),
    CORRELATE.with_sizes("beyond-the-map", shape=(1, 2, 3, 2), patch=(7, 9)),
    CORRELATE.with_sizes("one-channel", shape=(3, 1, 4, 3)),
    CORRELATE.with_sizes("many-channels", shape=(1, 33, 3, 4)),
    CORRELATE.replace("channels-last", **same_layout(channels_last)),
    CORRELATE.replace("transposed", layout=transposed, result_layout=strided),
    CORRELATE.with_sizes("long", shape=(1, 8, 17, 19), patch=(5, 5), kernel=(3, 3), padding=(1, 1)),
    CORRELATE.with_sizes("long-sum", shape=(1, 130, 5, 6), kernel=(3, 3), padding=(1, 1)).replace(dtypes=half),
    CORRELATE.with_sizes("no-samples", shape=(0, 2, 4, 5)),
    CORRELATE.with_sizes("patch", shape=(1, 31, 53, 47), patch=(3, 5), dilation_patch=(2, 1)).replace(large=True),
    CORRELATE.with_sizes("half-kernel", shape=(2, 67, 23, 29), kernel=(3, 3), padding=(1, 1), stride=(2, 1)).replace(
        dtypes=F16, large=True
    ),
)

register("diopiCorrelationMmcv", "diopiCorrelationBackwardMmcv", templates=CORRELATIONS, derive=correlation_arguments)
