"""Half-precision cases reject vendors that accumulate in half precision, and accept vendors that use float32."""

from __future__ import annotations

import numpy as np
import pytest
from half_sums import FAMILIES, MIN_SHARE, rejecting_cases
from sampling import sampled

from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import normal, special
from diopi_test.cases.half_sums import integer_multiples, largest_factor, reveal_half_sums

F16, BF16, F32 = Dtype.float16, Dtype.bfloat16, Dtype.float32


@pytest.mark.parametrize("name", [name for names in FAMILIES.values() for name in sampled(names, 1)])
def test_half_of_the_half_precision_cases_reject_half_precision_sums(name: str) -> None:
    rejects = rejecting_cases(f"diopi{name}")
    accepting = [label for label, is_rejecting in rejects.items() if not is_rejecting]
    assert rejects
    assert len(accepting) <= (1 - MIN_SHARE) * len(rejects), f"{name} accepts sums in half precision: {accepting}"


def product(dtype: Dtype, **changes: object) -> Case:
    """Return a case of a matrix product."""
    first, second = TensorSpec((3, 5), dtype), TensorSpec((5, 4), dtype)
    return Case(f"{dtype.name}-a", dtype, {"input": first, "mat2": second, **changes})


def reveal(case: Case, **options: object) -> Case:
    """Return the case with data that reveals accumulation in half precision."""
    (changed,) = reveal_half_sums([case], lambda _: 5, **options)  # type: ignore[arg-type] - options by name
    return changed


@pytest.mark.parametrize("dtype", [F16, BF16])
@pytest.mark.parametrize("terms", [1, 5, 1031, 70_000])
def test_sums_are_exact_in_float32_and_finite_in_half_precision(dtype: Dtype, terms: int) -> None:
    largest = largest_factor(terms, 2, dtype)
    assert 1 <= largest < 2 ** (11 if dtype is F16 else 8)
    assert terms * largest**2 < 2**24
    assert 8 * largest**2 / 3 * terms**0.5 < np.finfo(np.float16).max


def test_means_of_multiples_are_whole_numbers_of_the_type() -> None:
    domain = integer_multiples(7, BF16)
    assert domain is not None
    values = domain(np.random.default_rng(1), 7, BF16)
    assert values.mean() == round(values.mean()) <= 256
    assert values.sum() > 256
    assert integer_multiples(130, BF16) is None


def test_only_half_precision_cases_of_ordinary_numbers_change() -> None:
    assert reveal(product(F16)).exact
    for case in (
        product(F32),
        product(F16, input=TensorSpec((3, 5), F16, special)),
        product(F16, input=TensorSpec((3, 5), F16, normal(1e-6))),
        product(F16, alpha=1.7),
    ):
        assert reveal(case) is case


def test_addends_are_zero_because_a_vendor_may_round_the_product_first() -> None:
    case = reveal(product(F16, bias=TensorSpec((4,), F16), alpha=-2.0), addends=("bias",))
    values_by_name = {
        name: spec.domain(np.random.default_rng(0), 9, F16)
        for name, spec in case.arguments.items()
        if isinstance(spec, TensorSpec)
    }
    assert not values_by_name["bias"].any()
    assert values_by_name["input"].all()
