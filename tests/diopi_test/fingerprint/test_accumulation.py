"""Order, width and rounding of sums and dot products are recognized in NumPy vendors with known arithmetic."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from sampling import sampled
from small_vendor import Array, small_vendor

from diopi_impl import Vendor
from diopi_proto.types import Dtype
from diopi_test.fingerprint.accumulation import DOT_PRODUCTS, SUMS
from diopi_test.fingerprint.probe import Probe

Add = Callable[[Array, Array], Array]


def measure(vendor: Vendor, probe: Probe, dtype: Dtype) -> Mapping[str, str]:
    """Return the observations of a probe on a vendor."""
    with vendor.open_device() as device:
        return probe.observations(vendor, device, [dtype])


def sequential(terms: Sequence[Array], add: Add = np.add) -> Array:
    """Add the terms in order."""
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


def pairwise(terms: Sequence[Array], add: Add = np.add) -> Array:
    """Add the sums of the two halves of the terms, recursively."""
    half = len(terms) // 2
    return add(pairwise(terms[:half], add), pairwise(terms[half:], add)) if half else terms[0]


def lanes(terms: Sequence[Array], add: Add = np.add) -> Array:
    """Add the terms in eight interleaved sums, as vector registers do."""
    return pairwise([sequential(terms[lane::8], add) for lane in range(8)], add)


def exactly(terms: Sequence[Array]) -> Array:
    """Return the correctly rounded sums of the columns."""
    import math

    return np.array([math.fsum(column) for column in np.stack(terms).astype(np.float64).reshape(len(terms), -1).T])


def add_with_compensation(terms: Sequence[Array]) -> Array:
    """Return Neumaier's sum: the errors of all additions are summed separately and added at the end."""
    total, lost = terms[0], np.zeros_like(terms[0])
    for term in terms[1:]:
        new = total + term
        lost = lost + np.where(np.abs(total) >= np.abs(term), (total - new) + term, (term - new) + total)
        total = new
    return total + lost


def make_summing_vendor(total: Callable[[Sequence[Array]], Array], accumulator: Any = None) -> Vendor:
    """Return a vendor whose sums are `total` of the terms, in the type `accumulator` or else their own type."""

    def sum_(input: Array, dim: tuple[int, ...]) -> Array:
        terms = np.moveaxis(input, dim[0], 0).astype(accumulator or input.dtype)
        return total(list(terms)).astype(input.dtype).reshape(np.delete(input.shape, dim[0]))

    return small_vendor(diopiSum=sum_)


ORDERS: dict[str, Callable[[Sequence[Array]], Array]] = {
    "sequential": sequential,
    "backwards": lambda terms: sequential(terms[::-1]),
    "pairwise": pairwise,
    "sequential in 8 interleaved sums, then pairwise": lanes,
    "pairwise in 8 blocks of 16, then sequential": lambda terms: sequential(
        [pairwise(terms[start : start + 16]) for start in range(0, 128, 16)]
    ),
}


@pytest.mark.parametrize(
    ("probe", "order"),
    sampled([*product(SUMS, ["sequential", "pairwise"]), *((SUMS[1], order) for order in ORDERS)], 2, slow=2),
    ids=lambda value: value.subject if isinstance(value, Probe) else value,
)
def test_the_order_of_sums_is_detected(probe: Probe, order: str) -> None:
    observations = measure(make_summing_vendor(ORDERS[order]), probe, Dtype.float32)
    assert observations == {"partial sums": "float32 (24 bits)", "rounded": "to nearest", "order": order}


@pytest.mark.parametrize(
    ("dtype", "accumulator", "width"),
    [
        (Dtype.float16, np.float16, "float16 (11 bits)"),
        (Dtype.float16, np.float32, "float32 (24 bits)"),
        (Dtype.bfloat16, ml_dtypes.bfloat16, "bfloat16 (8 bits)"),
        (Dtype.bfloat16, np.float32, "float32 (24 bits)"),
        (Dtype.bfloat16, np.float64, "float64 (53 bits)"),
        (Dtype.float32, np.float64, "float64 (53 bits)"),
        (Dtype.float64, np.float64, "float64 (53 bits)"),
        (Dtype.float64, np.float32, "float32 (24 bits)"),
        (Dtype.float32, np.float16, "float16 (11 bits)"),
    ],
    ids=lambda value: getattr(value, "name", None) or getattr(value, "__name__", None) or "",
)
def test_the_width_of_partial_sums_is_detected(dtype: Dtype, accumulator: Any, width: str) -> None:
    observations = measure(make_summing_vendor(pairwise, accumulator), SUMS[1], dtype)
    assert observations == {"partial sums": width, "rounded": "to nearest", "order": "pairwise"}


def test_exact_sums_are_detected() -> None:
    observations = measure(make_summing_vendor(sequential, np.float64), SUMS[1], Dtype.float16)
    assert observations["partial sums"] == "wider than can be seen"
    assert observations["order"] == "not seen: no partial sum is rounded"
    assert (
        measure(make_summing_vendor(exactly), SUMS[1], Dtype.float32)["order"] == "not seen: no partial sum is rounded"
    )


def test_a_compensated_sum_shows_no_order() -> None:
    observations = measure(make_summing_vendor(add_with_compensation), SUMS[1], Dtype.float32)
    assert observations["order"] == "not seen: no partial sum is rounded"


def truncate_sum(first: Array, second: Array) -> Array:
    """Return the float32 sum, truncated."""
    exact = first.astype(np.float64) + second.astype(np.float64)
    rounded = exact.astype(np.float32)
    return np.where(np.abs(rounded) > np.abs(exact), np.nextafter(rounded, np.float32(0)), rounded)


def test_truncated_sums_are_detected() -> None:
    observations = measure(make_summing_vendor(lambda terms: sequential(terms, truncate_sum)), SUMS[1], Dtype.float32)
    assert observations["partial sums"] == "float32 (24 bits)"
    assert observations["rounded"] == "towards zero"


def test_sums_with_varying_order_are_detected() -> None:
    generator = np.random.default_rng(0)
    vendor = make_summing_vendor(lambda terms: sequential([terms[n] for n in generator.permutation(len(terms))]))
    assert measure(vendor, SUMS[1], Dtype.float32)["order"] == "varies from call to call"


def test_wrong_sums_have_no_order() -> None:
    short = measure(make_summing_vendor(lambda terms: sequential(terms[1:-1])), SUMS[0], Dtype.float32)
    assert short == {"partial sums": "not seen: sums of three terms are wrong"}
    gap = measure(make_summing_vendor(lambda terms: sequential([*terms[:40], *terms[41:]])), SUMS[0], Dtype.float32)
    assert gap["order"] == "not seen: the sum of 128 times 1 is wrong"


def make_multiplying_vendor(dot: Callable[[Array, Array], Array]) -> Vendor:
    """Return a vendor whose matrix products are `dot` of (k, m, 1) and (k, 1, n) factors."""

    def mm(input: Array, mat2: Array) -> Array:
        return dot(input.T[:, :, None], mat2[:, None, :]).astype(input.dtype)

    return small_vendor(diopiMm=mm)


def add_rounded_products(a: Array, b: Array) -> Array:
    """Return a dot product with rounded products, added in order."""
    return sequential(list(a * b))


def add_exact_products(a: Array, b: Array) -> Array:
    """Return sums of exact products; products of float32 are exact in float64."""
    total = np.zeros(1, np.float32)
    for first, second in zip(a, b, strict=True):
        total = (total.astype(np.float64) + first.astype(np.float64) * second.astype(np.float64)).astype(np.float32)
    return total


def dot_in_float32(a: Array, b: Array) -> Array:
    """Return a dot product that is computed in float32, added pairwise."""
    return pairwise(list(a.astype(np.float32) * b.astype(np.float32)))


def tensor_float(a: Array, b: Array) -> Array:
    """Return factors with 11 significant bits."""
    cut = [(np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (a, b)]
    return dot_in_float32(*cut)


def in_steps_of_16(a: Array, b: Array) -> Array:
    """Add the previous sum and 16 products at once, each truncated to 25 bits below the largest, like tensor cores."""
    products = a.astype(np.float64) * b.astype(np.float64)
    total = np.zeros(products.shape[1:], np.float32)
    for start in range(0, len(products), 16):
        terms = np.stack([total.astype(np.float64), *products[start : start + 16]])
        place = np.ldexp(1.0, np.frexp(np.abs(terms).max(0))[1] - 26)
        total = (np.trunc(terms / place).sum(0) * place).astype(np.float32)
    return total


DOT_PRODUCT_ORDERS = [
    (add_rounded_products, Dtype.float32, ("kept", "rounded before they are added", "float32 (24 bits)", "sequential")),
    (add_exact_products, Dtype.float32, ("kept", "exact until they are added", "float32 (24 bits)", "sequential")),
    (add_rounded_products, Dtype.float16, ("kept", "rounded before they are added", "float16 (11 bits)", "sequential")),
    (dot_in_float32, Dtype.float16, ("kept", "exact until they are added", "float32 (24 bits)", "pairwise")),
    (tensor_float, Dtype.float32, ("rounded to 11 bits", None, "float32 (24 bits)", "pairwise")),
]
"""A dot product, the element type, and what the probes observe of factors, products, partial sums and order."""


@pytest.mark.parametrize(
    ("dot", "dtype", "expected", "probe"),
    sampled([(*observed, probe) for observed in DOT_PRODUCT_ORDERS for probe in DOT_PRODUCTS], 1, slow=2),
    ids=lambda value: value.subject if isinstance(value, Probe) else getattr(value, "__name__", None),
)
def test_the_order_of_dot_products_is_detected(
    probe: Probe, dot: Callable[[Array, Array], Array], dtype: Dtype, expected: tuple[Any]
) -> None:
    observations = measure(make_multiplying_vendor(dot), probe, dtype)
    found = tuple(observations[aspect] for aspect in ("factors", "products", "partial sums", "order"))
    assert [
        observed for observed, wanted in zip(found, expected, strict=True) if wanted is not None and observed != wanted
    ] == []
    assert observations["rounded"] == "to nearest"


def test_products_that_are_added_in_groups_are_detected() -> None:
    observations = measure(make_multiplying_vendor(in_steps_of_16), DOT_PRODUCTS[0], Dtype.float32)
    assert observations["order"] == "sequential, 16 at once"
