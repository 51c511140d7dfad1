"""Find the half-precision cases that reject a vendor which accumulates in half precision.

The emulated vendor is the reference, whose sums are rounded to the element type of the case after each term.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from diopi_proto.dtypes import half
from diopi_proto.interface import lookup
from diopi_test.cases.case import Case, CaseClass
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation.arguments import recompute_with
from diopi_test.quality.mutation.matrix import run_mutant
from diopi_test.quality.mutation.mutant import Mutant
from diopi_test.quality.mutation.precision import change_tensors
from diopi_test.quality.mutation.summation import round_sums_to

MIN_SHARE = 0.5
"""The share of the half-precision cases of a function that must reject accumulation in half precision."""

FAMILIES = {
    "products": (
        *("Mm", "Bmm", "Matmul", "MatmulBackward", "Addmm", "Baddbmm", "BaddbmmInp", "Linear", "LinearBackward"),
    ),
    "convolutions": tuple(
        f"{kind}{rank}d{form}"
        for kind in ("Convolution", "ConvTranspose")
        for rank in (2, 3)
        for form in ("", "Backward")
    ),
    "normalizations": (
        *("BatchNorm", "BatchNormBackward", "BatchNormStats", "BatchNormGatherStatsWithCounts"),
        *("BatchNormBackwardReduce", "LayerNorm", "LayerNormBackward", "LayerNormGB", "LayerNormGBBackward"),
        *("GroupNorm", "GroupNormBackward", "InstanceNorm", "InstanceNormBackward", "RMSNorm", "RMSNormBackward"),
        *("Normalize", "NormalizeBackward", "SyncBnMeanMmcv", "SyncBnVarMmcv"),
    ),
    "reductions": (*("Sum", "Mean", "Std", "Norm", "LinalgVecNorm", "ForeachnormScalar", "Cumsum", "CumsumBackward"),),
}
"""The functions that sum, by family, without the prefix `diopi`. A product of many factors is not a sum."""

WITHOUT_SUMS = (CaseClass.special, CaseClass.empty)
"""The classes of cases whose results are not sums of numbers."""


def _accumulate_in_half(case: BaselineCase) -> Mapping[str, Any] | None:
    """Return arguments whose sums are rounded to the element type of the case after each term."""
    return change_tensors(case, partial(round_sums_to, case.dtype))


HALF_SUMS = Mutant(name="every sum in half precision", corrupt=recompute_with(_accumulate_in_half))
"""The emulated vendor."""


def half_cases(function: str) -> Iterator[Case]:
    """Yield the half-precision cases of a function whose results are sums of numbers."""
    for case in select_cases(function, "full"):
        if case.dtype in half and case.case_class.is_demanded and case.case_class not in WITHOUT_SUMS:
            yield case


def rejecting_cases(function: str) -> dict[str, bool]:
    """Return whether each half-precision case of a function rejects accumulation in half precision, by label."""
    prototype = lookup(function)
    computed = (compute_baseline_case(prototype, case) for case in half_cases(function))
    return {case.label: run_mutant(HALF_SUMS, [case]).killed_by is not None for case in computed}
