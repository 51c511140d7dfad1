"""The cases of the setup of sampling contain every combination of k and p that the calls treat differently."""

from __future__ import annotations

import pytest

from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import draw_arguments

COMBINATIONS = {(k, p) for k in ("0", "valid", "too large") for p in ("negative", "0", "valid", "too large")}


def classify_k(k: int) -> str:
    """Return how the calls treat k: 0 is replaced if p is 0 too, and numbers above 1024 are reduced to 1024."""
    return "0" if k == 0 else "valid" if k <= 1024 else "too large"


def classify_p(p: float) -> str:
    """Return how the calls treat p: 0 is replaced, and numbers outside [0, 1] are clipped."""
    return "negative" if p < 0 else "0" if p == 0 else "valid" if p <= 1 else "too large"


@pytest.mark.parametrize("function", ["diopiSetupTopkRuntimeArgsInp", "diopiSetupToppRuntimeArgsInp"])
def test_cases_of_each_dtype_contain_all_combinations_of_k_and_p(function: str) -> None:
    prototype, combinations = lookup(function), {}
    for case in select_cases(function, "full"):
        if min(case.arguments["top_ks_size"], case.arguments["top_ps_size"]) > 1:
            arguments = draw_arguments(prototype, case)
            pairs = zip(arguments["top_ks"].values.flat, arguments["top_ps"].values.flat, strict=True)
            combinations.setdefault(case.dtype, set()).update((classify_k(k), classify_p(p)) for k, p in pairs)
    assert combinations == dict.fromkeys(prototype.dtypes, COMBINATIONS)
