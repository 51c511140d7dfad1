"""Functions that accumulate have cases without rounding, which detect a wrong index or an omitted term."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from sampling import OPERATORS, sampled

from diopi_proto.dtypes import is_floating
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import Expected
from diopi_test.quality.mutation.arguments import recompute_with
from diopi_test.quality.mutation.mutant import Effect, SimulatedCall
from diopi_test.quality.mutation.precision import accumulate_in

NEVER_EXACT = {
    "LogSoftmax": "a logarithm of the sum",
    "CTCLoss": "logarithms of sums of exponentials",
    "CrossEntropyLossBackward": "the terms of the sum are exponentials",
    "Std": "roots of quotients",
    "RMSNorm|(?:FusedAdd)?RootMeanSquareNorm": "inverse roots of means",
    "(?:(?:Customized)?FlashAttention|MultiHeadAttention)(?:VarLen)?Backward": "shares rebuilt from a logarithm",
    "Top[KP]Sampling": "running sums of shares of a softmax",
    "BatchNorm(?:Stats|GatherStatsWithCounts)?|GroupNorm|LayerNorm(?:GB)?|InstanceNorm": "running means and roots",
}
"""Functions whose sums are never exact, by a regular expression for their names, with the reason."""


def accumulates(function: str) -> bool:
    """Return whether a case has another result if each sum of the function is rounded to bfloat16 after each term."""
    corrupt = recompute_with(partial(accumulate_in, Dtype.bfloat16))
    cases = (case for case in select_cases(function, "full") if case.dtype is Dtype.float32 and not case.exact)
    return any(
        corrupt(SimulatedCall.from_expected(compute_baseline_case(lookup(function), case))) is Effect.changed
        for case in cases
    )


def is_never_exact(function: str) -> bool:
    """Return whether no data can make all intermediate values of a function exact."""
    return any(re.fullmatch(f"diopi(?:{pattern})(?:Backward)?(?:Inp)?", function) for pattern in NEVER_EXACT)


@pytest.mark.parametrize("function", sampled(OPERATORS, 6, slow=9))
def test_accumulating_functions_have_an_exact_case_per_floating_type(function: str) -> None:
    floating = {dtype for dtype in lookup(function).dtypes if is_floating(dtype)}
    exact = {case.dtype for case in select_cases(function, "full") if case.exact}
    if floating <= exact or not accumulates(function):
        return
    assert is_never_exact(function), f"no exact case of {sorted(dtype.name for dtype in floating - exact)}"


@pytest.mark.parametrize("function", ["diopiSum", "diopiMm", "diopiConvolution2d", "diopiScatter"])
def test_accumulation_is_detected_in_sums(function: str) -> None:
    assert accumulates(function)


@pytest.mark.parametrize("function", ["diopiSin", "diopiAdd", "diopiPermute"])
def test_accumulation_is_not_detected_in_elementwise_functions(function: str) -> None:
    assert not accumulates(function)


def test_only_functions_that_accumulate_are_excused() -> None:
    for pattern in NEVER_EXACT:
        names = [name for name in OPERATORS if re.fullmatch(f"diopi(?:{pattern})", name)]
        assert any(accumulates(name) for name in names), pattern


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_case_can_be_exact_in_only_some_results(dtype: str) -> None:
    (case,) = (case for case in select_cases("diopiFlashAttention", "full") if case.label == f"{dtype}-exact")
    stored = compute_baseline_case(lookup("diopiFlashAttention"), case)
    out, lse, v = stored.expected["attention_out"], stored.expected["softmax_lse"], stored.plain_arguments()["v"]
    assert isinstance(out, Expected)
    assert isinstance(lse, Expected)
    assert (case.is_exact("attention_out"), case.is_exact("softmax_lse")) == (True, False)
    assert (out.budget is None, lse.budget is None) == (True, False)
    for batch, query, head in np.ndindex(out.values.shape[:3]):
        halves = [v[batch, first::2, head].mean(0).tolist() for first in (0, 1)]
        assert out.values[batch, query, head].tolist() in halves
