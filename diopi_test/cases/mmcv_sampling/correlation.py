"""Correlation of the neighbourhoods of two maps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.mmcv_sampling.values import WHOLE, Pair, Shape4
from diopi_test.cases.template import BASIC, CaseTemplate, Types, register, tensor, throughout
from diopi_test.cases.tensors import zeros


@dataclass(frozen=True)
class Correlated:
    """Sizes of a correlation; pairs are along H and along W."""

    shape: Shape4 = (2, 2, 4, 5)
    kernel: Pair = (1, 1)
    patch: Pair = (3, 3)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    dilation_patch: Pair = (1, 1)
    stride: Pair = (1, 1)

    @property
    def size(self) -> list[int]:
        """Of the result along H and W."""
        axes = zip(self.shape[2:], self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return [(length + 2 * pad - far * (k - 1) - 1) // step + 1 for length, k, step, pad, far in axes]


def correlated(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Correlated = template.sizes
    pairs = {
        "k": sizes.kernel,
        "patch": sizes.patch,
        "pad": sizes.padding,
        "dilation": sizes.dilation,
        "dilation_patch": sizes.dilation_patch,
        "d": sizes.stride,
    }
    return {
        "grad_input1": zeros(*sizes.shape, layout=template.result),
        "grad_input2": zeros(*sizes.shape, layout=template.result),
        "grad_output": tensor(sizes.shape[0], *sizes.patch, *sizes.size, layout=template.layout),
        "input1": tensor(*sizes.shape, layout=template.layout),
        "input2": tensor(*sizes.shape, layout=template.layout),
        **{f"{name}{axis}": pair[k] for name, pair in pairs.items() for k, axis in enumerate("HW")},
    }


CORRELATED = CaseTemplate("plain", Correlated(), **BASIC)
CORRELATE = CORRELATED.but(dtypes=Types.leading, smoke=False)
WHOLE_PAIRS = dict.fromkeys(("input1", "input2", "grad_output"), WHOLE)

CORRELATIONS = (
    CORRELATED,
    CORRELATED.but(
        "all",
        shape=(2, 3, 9, 8),
        kernel=(2, 3),
        patch=(3, 5),
        padding=(2, 1),
        dilation=(3, 1),
        dilation_patch=(1, 2),
        stride=(2, 1),
        smoke=False,
        layout=strided,
        result=transposed,
    ),
    CORRELATED.but("exact", kernel=(2, 2), padding=(1, 1), domains=WHOLE_PAIRS, exact=True, smoke=False),
    CORRELATE.but("kernel", shape=(2, 2, 5, 6), kernel=(3, 2)),
    CORRELATE.but("kernel-the-other-way", shape=(2, 2, 5, 6), kernel=(2, 3)),
    CORRELATE.but("tall-patch", patch=(5, 1)),
    CORRELATE.but("wide-patch", patch=(1, 5)),
    CORRELATE.but("padded", padding=(2, 0)),
    CORRELATE.but("padded-the-other-way", padding=(0, 2)),
    CORRELATE.but("dilated", shape=(2, 2, 6, 7), kernel=(3, 2), dilation=(2, 3)),
    CORRELATE.but("dilated-the-other-way", shape=(2, 2, 6, 7), kernel=(2, 3), dilation=(3, 2)),
    CORRELATE.but("far-patch", shape=(2, 2, 6, 7), dilation_patch=(2, 3)),
    CORRELATE.but("far-patch-the-other-way", shape=(2, 2, 6, 7), dilation_patch=(3, 2)),
    CORRELATE.but("strided-result", shape=(2, 2, 7, 6), stride=(2, 3)),
    CORRELATE.but("strided-the-other-way", shape=(2, 2, 7, 6), stride=(3, 2)),
    CORRELATE.but("two-ways-to-a-size", shape=(2, 2, 7, 7), kernel=(3, 3), padding=(1, 1)),
    CORRELATE.but("dilated-to-a-size", shape=(2, 2, 7, 7), kernel=(3, 3), padding=(2, 2), dilation=(2, 2)),
    CORRELATE.but("dilated-kernel", shape=(2, 2, 8, 8), kernel=(3, 3), dilation=(2, 2)),
    CORRELATE.but("large-kernel", shape=(2, 2, 8, 8), kernel=(5, 5)),
    *(
        CORRELATE.but(f"kernel-{h}-{w}-by-twos", shape=(2, 2, 7, 7), kernel=(h, w), stride=(2, 2))
        for h, w in ((2, 2), (2, 3), (3, 2))
    ),
    *(CORRELATE.but(f"two-places-by-{h}-{w}", shape=(2, 2, 4, 4), stride=(h, w)) for h, w in ((2, 2), (2, 3), (3, 2))),
    CORRELATE.but("no-displacement", shape=(3, 3, 4, 3), patch=(1, 1)),
    CORRELATE.but("beyond-the-map", shape=(1, 2, 3, 2), patch=(7, 9)),
    CORRELATE.but("one-channel", shape=(3, 1, 4, 3)),
    CORRELATE.but("many-channels", shape=(1, 33, 3, 4)),
    CORRELATE.but("channels-last", **throughout(channels_last)),
    CORRELATE.but("transposed", layout=transposed, result=strided),
    CORRELATE.but("long", shape=(1, 8, 17, 19), patch=(5, 5), kernel=(3, 3), padding=(1, 1)),
    CORRELATE.but("long-sum", shape=(1, 130, 5, 6), kernel=(3, 3), padding=(1, 1), dtypes=half),
    CORRELATE.but("no-samples", shape=(0, 2, 4, 5)),
)

register("diopiCorrelationMmcv", "diopiCorrelationBackwardMmcv", templates=CORRELATIONS, derive=correlated)
