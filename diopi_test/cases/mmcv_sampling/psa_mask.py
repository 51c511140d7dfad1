"""Cases of `diopiPsamaskMmcv`, the masks of point-wise spatial attention (PSA), and of its gradient.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

Smoke cases belong to the shortest level of the suite. The leading element type is float32, or the first type of a
function without float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.domains import any_value
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.mmcv_sampling.values import F16, Pair
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import zeros


@dataclass(frozen=True, kw_only=True)
class PsaSizes:
    """The sizes of masks. Pairs are along the height and the width.

    Attributes:
        samples: The number of samples.
        feature: The size of the feature map.
        mask: The size of the mask of each element of the map.
        center: The position of an element in its own mask, the arguments half_h_mask and half_w_mask.
        psa_type: 0 to collect, 1 to distribute.
    """

    samples: int = 2
    feature: Pair = (2, 3)
    mask: Pair = (3, 5)
    center: Pair = (1, 2)
    psa_type: int = 0


def psa_mask_arguments(template: CaseTemplate[PsaSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiPsamaskMmcv` and its gradient for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to results.
        dtype: Not used; all tensors have the type under test.

    Returns:
        The arguments by name, for both functions.
    """
    sizes = template.sizes
    masks = (sizes.samples, sizes.mask[0] * sizes.mask[1], *sizes.feature)
    maps = (sizes.samples, sizes.feature[0] * sizes.feature[1], *sizes.feature)
    return {
        "output": zeros(*maps, layout=template.result_layout),
        "grad_input": zeros(*masks, layout=template.result_layout),
        "input": tensor(*masks, domain=any_value, layout=template.layout),
        "grad_output": tensor(*maps, domain=any_value, layout=template.layout),
        "psa_type": sizes.psa_type,
        "num_": sizes.samples,
        **{f"{axis}_feature": sizes.feature[k] for k, axis in enumerate("hw")},
        **{f"{axis}_mask": sizes.mask[k] for k, axis in enumerate("hw")},
        **{f"half_{axis}_mask": sizes.center[k] for k, axis in enumerate("hw")},
    }


COLLECT_SMOKE = CaseTemplate("collected", PsaSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template of masks of the type "collect": smoke cases in every element type."""

COLLECT_LEADING = COLLECT_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template of masks of the type "collect", in the leading element type and without smoke cases."""

PSA_TEMPLATES = (
    COLLECT_SMOKE,
    COLLECT_SMOKE.with_sizes("distributed", psa_type=1).replace(smoke=False),
    COLLECT_LEADING.with_sizes("collected-whole", feature=(3, 4), mask=(5, 7), center=(2, 3)),
    COLLECT_LEADING.with_sizes("distributed-whole", feature=(3, 4), mask=(5, 7), center=(2, 3), psa_type=1),
    COLLECT_LEADING.with_sizes("small-masks", feature=(4, 5), mask=(3, 3), center=(1, 1)),
    COLLECT_LEADING.with_sizes("small-masks-distributed", feature=(4, 5), mask=(3, 3), center=(1, 1), psa_type=1),
    COLLECT_LEADING.with_sizes("to-the-right", feature=(4, 5), mask=(3, 3), center=(0, 0)),
    COLLECT_LEADING.with_sizes("to-the-left", feature=(4, 5), mask=(3, 3), center=(2, 2)),
    COLLECT_LEADING.with_sizes("up-and-right", feature=(4, 5), mask=(3, 3), center=(2, 0), psa_type=1),
    COLLECT_LEADING.with_sizes("tall-masks", feature=(4, 5), mask=(7, 1), center=(3, 0)),
    COLLECT_LEADING.with_sizes("wide-masks", feature=(4, 5), mask=(1, 7), center=(0, 3), psa_type=1),
    COLLECT_LEADING.with_sizes("even-masks", feature=(4, 3), mask=(4, 2), center=(2, 1)),
    COLLECT_LEADING.with_sizes("large-masks", feature=(2, 2), mask=(7, 9), center=(3, 4), samples=1),
    COLLECT_LEADING.with_sizes("one-row", feature=(1, 6), mask=(1, 5), center=(0, 2), samples=3),
    COLLECT_LEADING.with_sizes("one-column", feature=(6, 1), mask=(5, 1), center=(2, 0), psa_type=1, samples=1),
    COLLECT_LEADING.replace("strided", layout=strided, result_layout=transposed),
    COLLECT_LEADING.with_sizes("transposed", psa_type=1).replace(layout=transposed, result_layout=strided),
    COLLECT_LEADING.replace("channels-last", **same_layout(channels_last)),
    COLLECT_LEADING.with_sizes("long", feature=(9, 7), mask=(17, 13), center=(8, 6), samples=1),
    COLLECT_LEADING.with_sizes("no-samples", samples=0),
    COLLECT_LEADING.with_sizes("collected", samples=1, feature=(13, 11), mask=(25, 21), center=(12, 10)).replace(
        large=True
    ),
    COLLECT_LEADING.with_sizes(
        "half-distributed", samples=3, feature=(17, 19), mask=(15, 17), center=(7, 8), psa_type=1
    ).replace(dtypes=F16, large=True),
)
"""The templates of `diopiPsamaskMmcv` and of its gradient."""

register("diopiPsamaskMmcv", "diopiPsamaskBackwardMmcv", templates=PSA_TEMPLATES, derive=psa_mask_arguments)
