"""Test the validator of attention with dropout: a correct vendor passes, each kind of wrong dropout is rejected."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from diopi_impl import Vendor
from diopi_impl.functional import apply_directly
from diopi_impl.generators import pass_generator_state
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.run.run_case import run_case

Array = np.ndarray[Any, Any]
NAME = "diopiFlashAttention"


def shares(q: Array, k: Array, scale: float) -> tuple[Array, Array]:
    """Return the weights of sequences of one length, [batch, heads, queries, keys], and the logarithms of the sums."""
    scores = scale * np.einsum("bihd,bjhd->bhij", q.astype(np.float64), k)
    sums = np.exp(scores).sum(-1)
    return np.exp(scores) / sums[..., None], np.log(sums)


def coins(state: Array, shape: tuple[int, ...]) -> Array:
    """Return uniform random numbers that decide which weights are dropped."""
    return np.random.default_rng(list(map(int, state))).random(shape)


Drop = Callable[[Array, float, Array], Array]
"""A function of the weights, the probability and the generator's state that returns the remaining weights."""

DROPS: dict[str, tuple[Drop, bool]] = {
    "right": (lambda p, P, s: np.where(coins(s, p.shape) >= P, p / (1 - P), 0), True),
    "not scaled": (lambda p, P, s: np.where(coins(s, p.shape) >= P, p, 0), False),
    "too few fall": (lambda p, P, s: np.where(coins(s, p.shape) >= P / 2, p / (1 - P), 0), False),
    "nothing falls": (lambda p, P, s: p, False),
    "whole heads fall": (lambda p, P, s: np.where(coins(s, (*p.shape[:2], 1, 1)) >= P, p / (1 - P), 0), False),
    "the same every time": (lambda p, P, s: np.where(coins(0 * s, p.shape) >= P, p / (1 - P), 0), False),
    "the seed alone counts": (lambda p, P, s: np.where(coins(s[:1], p.shape) >= P, p / (1 - P), 0), False),
    "inaccurate": (lambda p, P, s: np.where(coins(s, p.shape) >= P, p / (1 - P) * (1 + 2.0**-12), 0), False),
    "normalized again": (
        lambda p, P, s: (
            (dropout_factor := np.where(coins(s, p.shape) >= P, p, 0)) / dropout_factor.sum(-1, keepdims=True)
        ),
        False,
    ),
}


@pytest.mark.parametrize("drop", DROPS)
def test_validator_rejects_each_wrong_dropout(drop: str) -> None:
    function, is_right = DROPS[drop]

    def attention(
        gen: Array,
        q: Array,
        k: Array,
        v: Array,
        alibi_slopes: None,
        p_dropout: float,
        softmax_scale: float,
        is_causal: bool,
        window_size_left: int,
        window_size_right: int,
    ) -> Any:
        p, lse = shares(q, k, softmax_scale)
        return np.einsum("bhij,bjhd->bihd", function(p, p_dropout, gen), v), lse

    vendor = Vendor("test", "1", HostRuntime().functions(), host_addressable=True)
    vendor.implements(NAME, adapt=pass_generator_state(apply_directly, "gen", "p_dropout"))(attention)
    (case,) = (case for case in select_cases(NAME, "full") if case.label == "float32-dropout")
    with vendor.open_device() as device:
        outcome = run_case(vendor, device, compute_baseline_case(lookup(NAME), case))
    assert (outcome.verdict is Verdict.passed) == is_right, outcome.message
    assert ("accurate attention weights / (1 − P), with relative errors up to" in outcome.message) == (
        drop == "inaccurate"
    )
