"""Domains sample only values that they are defined to contain, for every element type."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from diopi_proto.dtypes import all_dtypes, floating, is_complex, is_floating, real
from diopi_proto.types import Dtype
from diopi_test.cases import domains
from diopi_test.cases.domains import Domain
from lib_rt.dtypes import integer_range, to_numpy

COUNT = 200


def draw(domain: Domain, dtype: Dtype, count: int = COUNT) -> np.ndarray:
    """Draw values from a domain with a fixed seed."""
    return domain(np.random.default_rng(1), count, dtype)


def dtype_parameters(dtypes: Iterable[Dtype]) -> list[object]:
    """Return one test parameter per element type, with the name of the type as its ID."""
    return [pytest.param(dtype, id=dtype.name) for dtype in dtypes]


@pytest.mark.parametrize("dtype", dtype_parameters(all_dtypes))
@pytest.mark.parametrize(
    "domain",
    [
        domains.uniform(0, 5),
        domains.normal(),
        domains.log_uniform(-3, 3),
        domains.integer_values(-3, 3),
        domains.full_range,
    ],
)
def test_values_fit_their_type(domain: Domain, dtype: Dtype) -> None:
    values = draw(domain, dtype)
    assert values.shape == (COUNT,)
    assert np.iscomplexobj(values) == is_complex(dtype)
    if not is_floating(dtype) and not is_complex(dtype):
        assert np.array_equal(values.astype(to_numpy(dtype)).astype(np.int64), values)


@pytest.mark.parametrize("dtype", dtype_parameters(real))
def test_uniform_stays_within_bounds(dtype: Dtype) -> None:
    values = draw(domains.uniform(-2.5, 3), dtype)
    assert values.min() >= -2.5
    assert values.max() <= 3
    assert len(np.unique(values)) > (1 if dtype is Dtype.bool else 3)


def test_uniform_raises_if_the_type_has_no_value_in_range() -> None:
    with pytest.raises(ValueError, match="uint8"):
        draw(domains.uniform(-3, -1), Dtype.uint8)


@pytest.mark.parametrize("dtype", dtype_parameters([Dtype.int8, Dtype.int64, Dtype.uint8]))
def test_full_range_reaches_the_ends_of_the_type(dtype: Dtype) -> None:
    low, high = integer_range(dtype)
    values = draw(domains.full_range, dtype, 4000).astype(np.float64)
    assert values.min() < low + (high - low) / 50
    assert values.max() > high - (high - low) / 50


def test_non_integers_keep_away_from_integers() -> None:
    values = draw(domains.non_integers(-5, 5, margin=0.1), Dtype.float32)
    assert np.abs(values - np.round(values)).min() >= 0.1 - 1e-12


def test_avoid_points_keeps_the_margin() -> None:
    values = draw(domains.avoid_points([0.0, 1.0], domains.uniform(-2, 2), margin=0.05), Dtype.float32)
    assert np.abs(values).min() >= 0.05
    assert np.abs(values - 1).min() >= 0.05 - 1e-12


@pytest.mark.parametrize("dtype", dtype_parameters([*floating, Dtype.int8, Dtype.int32, Dtype.uint8]))
def test_distinct_values_differ_after_rounding(dtype: Dtype) -> None:
    values = draw(domains.distinct, dtype, 100)
    assert len(np.unique(values.astype(to_numpy(dtype)))) == 100


def test_alternating_rows_cycles_through_the_domains() -> None:
    rows = draw(domains.alternating_rows(4, domains.uniform(1, 2), domains.uniform(-2, -1)), Dtype.float32, 20).reshape(
        5, 4
    )
    assert (rows[::2] >= 1).all() and (rows[1::2] <= -1).all()
    assert len(np.unique(rows)) == rows.size


def test_choice_uses_every_value() -> None:
    assert set(draw(domains.choice([1.0, 2.0, 3.0]), Dtype.float32, 5)) == {1.0, 2.0, 3.0}


@pytest.mark.parametrize("dtype", dtype_parameters(floating))
def test_special_values_survive_rounding_to_their_type(dtype: Dtype) -> None:
    values = domains.special_values(dtype)
    assert np.array_equal(values.astype(to_numpy(dtype)).astype(np.float64), values, equal_nan=True)
    assert np.isnan(values).any()
    assert np.isinf(values).sum() == 2
    assert {True, False} == set(np.signbit(values[values == 0]))


def test_special_integers_are_the_ends_of_the_range() -> None:
    values = domains.special_values(Dtype.int64)
    assert values.dtype == np.int64
    assert (values.min(), values.max()) == (-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (domains.uniform, (0, 5)),
        (domains.normal, ()),
        (domains.log_uniform, (-3, 3)),
        (domains.integer_values, (-3, 3)),
        (domains.non_integers, (-3, 3)),
    ],
)
def test_domains_with_equal_arguments_are_one_object(make: Callable[..., Domain], arguments: tuple[float, ...]) -> None:
    """Caches are keyed by domain."""
    assert make(*arguments) is make(*arguments)


def test_domains_with_arguments_of_different_types_are_different() -> None:
    assert domains.uniform(0, 5) is not domains.uniform(0.0, 5.0)
