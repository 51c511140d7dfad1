"""MMCV's sparse convolution and pooling over pairs of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import half_nan, whole
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.model import ResultOf
from diopi_test.cases.template import BASIC, CaseTemplate, Types, register, tensor
from diopi_test.cases.tensors import literal

I32 = Dtype.int32


@dataclass(frozen=True)
class Sparse:
    """Sizes of a sparse convolution, or of a pooling.

    Attributes:
        rows, outputs: of the features, and of the result.
        ci, co: channels.
        kernel: its sizes.
        pairs: how many there is room for at a position; at most so many count.
        inverse, submanifold: as the function has them.
    """

    rows: int = 7
    outputs: int = 5
    ci: int = 3
    co: int = 2
    kernel: tuple[int, ...] = (3, 2)
    pairs: int = 6
    inverse: int = 0
    submanifold: int = 0

    def indices(self) -> tuple[Any, Any]:
        """Pairs and their numbers: at one position every row and result once at most; −1 where none counts."""
        positions = int(np.prod(self.kernel))
        rng = np.random.default_rng(positions + self.rows + self.outputs)
        ends = (self.outputs, self.rows) if self.inverse else (self.rows, self.outputs)
        room = min(self.pairs, *ends)
        counts = rng.integers(0, room + 1, positions)
        if positions:
            counts[positions // 2] = room
        indices = np.full((positions, 2, self.pairs), -1)
        for position, count in enumerate(counts):
            for side, end in enumerate(ends):
                indices[position, side, :count] = rng.permutation(end)[:count]
        return indices, counts


def convolved(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Sparse = template.sizes
    (pairs, counts), layout = sizes.indices(), template.layout
    return {
        "features": tensor(sizes.rows, sizes.ci, layout=layout),
        "filters": tensor(*sizes.kernel, sizes.ci, sizes.co, layout=layout),
        "bias": tensor(sizes.co, layout=layout),
        "indicePairs": literal(pairs, I32, layout),
        "indiceNum": literal(counts, I32, layout),
        "numActOut": sizes.outputs,
        "_inverse": sizes.inverse,
        "_subM": sizes.submanifold,
    }


CONVOLVED = CaseTemplate("plain", Sparse(), **BASIC)
CONVOLVE = CONVOLVED.but(dtypes=Types.leading, smoke=False)
WHOLE = dict.fromkeys(("features", "filters", "bias", "outGrad"), whole(-3, 3))

CONVOLUTIONS = (
    CONVOLVED,
    CONVOLVED.but("exact", rows=6, outputs=7, domains=WHOLE, exact=True, smoke=False),
    CONVOLVED.but("submanifold", outputs=7, submanifold=1, layout=strided, smoke=False),
    CONVOLVE.but("inverse", inverse=1),
    CONVOLVE.but("square", outputs=7, pairs=7),
    CONVOLVE.but("square-inverse", outputs=7, pairs=7, inverse=1),
    CONVOLVE.but("square-submanifold", outputs=7, pairs=7, submanifold=1),
    CONVOLVE.but("square-submanifold-inverse", outputs=7, pairs=7, submanifold=1, inverse=1),
    CONVOLVE.but("cube", kernel=(3, 3, 3), rows=20, outputs=17, pairs=11),
    CONVOLVE.but("cube-submanifold", kernel=(3, 3, 3), rows=20, outputs=20, pairs=11, submanifold=1),
    CONVOLVE.but("line", kernel=(5,)),
    CONVOLVE.but("one-position", kernel=(1, 1)),
    CONVOLVE.but("one-channel", ci=1, co=1),
    CONVOLVE.but("many-channels", ci=33, co=17),
    CONVOLVE.but("more-results", outputs=23),
    CONVOLVE.but("one-row", rows=1, outputs=4, pairs=2),
    CONVOLVE.but("one-result", rows=9, outputs=1, pairs=2, kernel=(3, 3)),
    CONVOLVE.but("undefined", rows=12, outputs=15, pairs=5, kernel=(1, 2), domains={"features": half_nan}),
    CONVOLVE.but("transposed", layout=transposed),
    CONVOLVE.but("long", rows=300, outputs=250, pairs=200, ci=8, co=5),
    CONVOLVE.but(
        "long-sum", rows=9, outputs=3, pairs=3, ci=130, kernel=(5, 5), domains={"bias": whole(-900, 900)}, dtypes=half
    ),
    CONVOLVE.but("no-pairs", pairs=0),
    CONVOLVE.but("no-rows", rows=0),
    CONVOLVE.but("no-results", outputs=0),
)

register("diopiIndiceConvMmcv", "diopiFusedIndiceConvBatchnormMmcv", templates=CONVOLUTIONS, derive=convolved)

# Pooling


def pooled(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Sparse = template.sizes
    (pairs, counts), layout = sizes.indices(), template.layout
    return {
        "features": tensor(sizes.rows, sizes.ci, layout=layout),
        "indicePairs": literal(pairs, I32, layout),
        "indiceNum": literal(counts, I32, layout),
        "numAct": sizes.outputs,
    }


def pooled_backward(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Sparse = template.sizes
    rows, layout = (sizes.outputs, sizes.ci), template.layout
    forward = ResultOf("diopiIndiceMaxpoolMmcv", given={"numAct": sizes.outputs})
    given = pooled(template, dtype)
    return {
        **given,
        "outFeatures": tensor(*rows, layout=layout, compute=forward),
        "outGrad": tensor(*rows, layout=layout),
    }


def exactly(template: CaseTemplate) -> CaseTemplate:
    """With whole numbers: a feature has the gradient or not, by whether it is the maximum to the last bit."""
    return template.but(domains={"features": whole(-9, 25), "outGrad": whole(-9, 9), **template.domains}, exact=True)


POOLED = CONVOLVED.but("plain", kernel=(3, 3))
POOL = POOLED.but(dtypes=Types.leading, smoke=False)

POOLS = (
    POOLED,
    POOLED.but("exact", rows=6, outputs=7, domains=WHOLE, exact=True, smoke=False, layout=strided),
    POOL.but("cube", kernel=(2, 2, 2), rows=20, outputs=9, pairs=9),
    POOL.but("cube-transposed", kernel=(2, 2, 2), rows=20, outputs=9, pairs=9, layout=transposed),
    POOL.but("line", kernel=(5,)),
    POOL.but("one-position", kernel=(1,), pairs=5),
    POOL.but("one-channel", ci=1, rows=15, outputs=9, pairs=9),
    POOL.but("many-channels", ci=33),
    POOL.but("more-results", outputs=13, pairs=7),
    POOL.but("one-row", rows=1, outputs=4, pairs=2, ci=9),
    POOL.but("one-result", rows=3, outputs=1, pairs=2, ci=9),
    POOL.but("many-equal", rows=9, domains={"features": whole(-1, 1)}),
    POOL.but("long", rows=300, outputs=250, pairs=200, ci=8),
    POOL.but("no-pairs", pairs=0),
    POOL.but("no-rows", rows=0),
    POOL.but("no-results", outputs=0),
)

register("diopiIndiceMaxpoolMmcv", templates=POOLS, derive=pooled)
register("diopiIndiceMaxpoolBackwardMmcv", templates=[exactly(pool) for pool in POOLS], derive=pooled_backward)
