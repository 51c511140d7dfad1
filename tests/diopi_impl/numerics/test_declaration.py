"""The declaration of a vendor's arithmetic: valid values, contradictions, the digest."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from scipy import special

from diopi_impl.numerics import ELEMENTARY_FUNCTIONS, IEEE, ErrorBound, Numerics, NumericsError
from diopi_impl.numerics.elementary import largest_result
from diopi_impl.numerics.validation import values_of


def test_every_field_cites_the_definition_of_its_values() -> None:
    assert [item.name for item in fields(Numerics) if not item.metadata.get("definition")] == []


def test_default_is_ieee() -> None:
    assert Numerics().digest == IEEE.digest
    assert IEEE.is_ieee
    assert IEEE.name == "ieee"


@pytest.mark.parametrize(
    ("values", "is_ieee"),
    [
        ({"subnormals": "keep"}, True),
        ({"sum_order": {"conv": "fixed"}}, True),
        ({"convolution_products": "ieee"}, True),
        ({"sources": ("a document",)}, True),
        ({"subnormals": "flush-inputs"}, False),
        ({"float32_products": "tf32"}, False),
        ({"convolution_products": "tf32"}, False),
        ({"elementary": {"exp": (ErrorBound(ulp=2),)}}, False),
        ({"float64": "absent"}, False),
    ],
)
def test_only_arithmetic_that_the_standard_permits_is_ieee(values: dict[str, Any], is_ieee: bool) -> None:
    assert Numerics(name="mine", **values).is_ieee == is_ieee


def test_digest_depends_only_on_the_arithmetic() -> None:
    bounds = (ErrorBound(absolute=1e-6, minimum=0.5, maximum=2), ErrorBound(ulp=3))
    first = Numerics(name="a", elementary={"log": bounds, "exp": bounds}, sources=("x",))
    second = Numerics(name="b", elementary={"exp": bounds[::-1], "log": bounds})
    assert first.digest == second.digest
    assert first != second
    assert first.digest != Numerics(name="a", elementary={"log": bounds}).digest
    assert hash(first) != hash(second)


def test_convolutions_have_the_products_of_matrix_products_unless_declared() -> None:
    shared, separate = Numerics(name="a", float32_products="tf32"), Numerics(name="b", convolution_products="tf32")
    assert (shared.products_of("conv"), shared.products_of("linalg")) == ("tf32", "tf32")
    assert (separate.products_of("conv"), separate.products_of("linalg")) == ("tf32", "ieee")


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ({"float32_products": "fp19"}, ["float32_products", "'tf32'", "'bf16x3'", "'fp19'"]),
        ({"float32_products": ["tf32"]}, ["float32_products", "['tf32']"]),
        ({"convolution_products": "none"}, ["convolution_products", "'hf32'", "'none'"]),
        ({"half_accumulation": "float16"}, ["half_accumulation", "'float32', 'half'", "'float16'"]),
        ({"convolutions": ()}, ["convolutions", "'direct'", "()"]),
        ({"convolutions": {"winograd"}}, ["convolutions", "'winograd-f4'", "['winograd']"]),
        ({"subnormals": "flush"}, ["subnormals", "'flush-results'", "'flush'"]),
        ({"signed_zeros": True}, ["signed_zeros", "'ignore'", "True"]),
        ({"sum_order": {"linalgs": "fixed"}}, ["sum_order", "'linalg'", "'linalgs'"]),
        ({"sum_order": {"linalg": "random"}}, ["sum_order.linalg", "'run-to-run'", "'random'"]),
        ({"sum_order": "run-to-run"}, ["sum_order", "'run-to-run'"]),
        ({"float64": "no"}, ["float64", "'emulated'", "'no'"]),
        ({"elementary": {"expf": (ErrorBound(ulp=2),)}}, ["elementary", "'exp'", "'expf'"]),
        ({"elementary": {"exp": ()}}, ["elementary.exp", "at least one", "()"]),
        ({"elementary": ["exp"]}, ["elementary", "['exp']"]),
        ({"name": " "}, ["name", "'tf32'", "' '"]),
        ({"sources": "a document"}, ["sources", "'a document'"]),
    ],
)
def test_invalid_value_is_one_message_with_field_value_and_allowed_values(
    values: dict[str, Any], parts: list[str]
) -> None:
    with pytest.raises(NumericsError) as caught:
        Numerics(**{"name": "mine", **values})
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.startswith(f"{parts[0]}: expected ")
    assert [part for part in parts if part not in message] == []


def test_all_invalid_fields_are_reported() -> None:
    with pytest.raises(NumericsError) as caught:
        Numerics(name="mine", float64="no", subnormals="no")  # what a file may contain
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == ["subnormals", "float64"]


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"name": "ieee", "float32_products": "tf32"}, "name and float32_products"),
        ({"name": "mine", "float64": "emulated", "subnormals": "keep"}, "float64 and subnormals"),
    ],
)
def test_contradicting_fields_are_rejected(values: dict[str, Any], names: str) -> None:
    with pytest.raises(NumericsError, match=f"^{names}: .*contradicts.*expected"):
        Numerics(**values)


def test_two_bounds_for_one_range_are_rejected() -> None:
    bounds = (ErrorBound(ulp=1, maximum=2), ErrorBound(ulp=2, maximum=2), ErrorBound(ulp=3))
    with pytest.raises(NumericsError, match=r"^elementary\.exp: two bounds contradict .* from -inf to 2: .*ulp=1"):
        Numerics(name="mine", elementary={"exp": bounds})


@pytest.mark.parametrize(
    "values",
    [{"relative": 0.11}, {"absolute": 0.2}, {"ulp": 2.0**20}, {"relative": 0.06, "absolute": 0.06}],
)
def test_bound_above_a_tenth_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(NumericsError, match=r"ulp, relative and absolute: .* expected at most 0\.1"):
        ErrorBound(**values)


@pytest.mark.parametrize(
    ("name", "bound", "found"),
    [
        ("exp", ErrorBound(absolute=0.05, minimum=-20, maximum=-10), "1.1e+03 times the largest result, 4.5e-05"),
        ("exp", ErrorBound(absolute=1e-6, minimum=-1000, maximum=-800), "inf times the largest result, 0"),
        ("sigmoid", ErrorBound(absolute=1e-6, maximum=-20), "times the largest result, 2.1e-09"),
        ("sin", ErrorBound(absolute=0.01, minimum=-0.05, maximum=0.05), "0.2 times the largest result, 0.05"),
        ("reciprocal", ErrorBound(ulp=1, absolute=0.01, minimum=20), "0.2 times the largest result, 0.05"),
        ("erfinv", ErrorBound(relative=0.05, absolute=1e-3, maximum=0.01, minimum=0), "0.16 times the largest"),
    ],
)
def test_absolute_bound_above_a_tenth_of_the_largest_result_is_refused(
    name: str, bound: ErrorBound, found: str
) -> None:
    with pytest.raises(NumericsError) as caught:
        Numerics(name="mine", elementary={name: (bound,)})
    (message,) = str(caught.value).splitlines()
    assert message.startswith(f"elementary.{name}: for arguments from {bound.minimum:g} to {bound.maximum:g}, the ")
    assert found in message
    assert message.endswith("expected at most 0.1: a result with a larger error is worth nothing")


@pytest.mark.parametrize(
    ("name", "minimum", "maximum", "expected"),
    [
        ("sin", -0.5, 0.25, math.sin(0.5)),
        ("sin", 1, 2, 1.0),
        ("sin", 100, math.inf, 1.0),
        ("sin", 3, 3.2, math.sin(3)),
        ("cos", 1.5, 1.6, math.cos(1.5)),
        ("tan", -2, -1.5, 1.0),
        ("tan", 3, 3.5, math.tan(3.5)),
        ("reciprocal", -50, 50, 1.0),
        ("reciprocal", -50, -10, 0.1),
        ("log", 0, 1, 1.0),
        ("log", 0.9, 1.05, -math.log(0.9)),
        ("acos", 0.9, 2, math.acos(0.9)),
        ("rsqrt", 100, 1000, 0.1),
        ("sqrt", -4, -1, 1.0),
        ("exp", -math.inf, -1, math.exp(-1)),
        ("exp", -math.inf, math.inf, 1.0),
        ("sigmoid", -1000, -1, 1 / (1 + math.e)),
        ("pow", 0, 1e-9, 1.0),
        ("divide", 1e9, math.inf, 1.0),
        ("atan2", 0, 1e-9, 1.0),
    ],
)
def test_largest_result_is_the_largest_magnitude_in_a_range(
    name: str, minimum: float, maximum: float, expected: float
) -> None:
    assert largest_result(name, minimum, maximum) == pytest.approx(expected)


@pytest.mark.parametrize("name", ELEMENTARY_FUNCTIONS)
def test_no_result_in_a_range_exceeds_the_largest_result(name: str) -> None:
    rng = np.random.default_rng(0)
    for minimum, maximum in np.sort(rng.uniform(-4, 4, (100, 2)), axis=1):
        for x in (result_of(name, value) for value in np.linspace(minimum, maximum, 101)):
            assert np.isnan(x) or min(abs(x), 1) <= largest_result(name, minimum, maximum) * (1 + 1e-12)


def result_of(name: str, x: float) -> float:
    """Return the result of an elementary function; those with two arguments get the argument twice."""
    functions: dict[str, Any] = {
        "erf": special.erf,
        "erfinv": special.erfinv,
        "rsqrt": lambda x: x**-0.5,
        "sigmoid": special.expit,
    }
    names = {"acos": "arccos", "asin": "arcsin", "atan": "arctan", "acosh": "arccosh", "asinh": "arcsinh"}
    names |= {"atanh": "arctanh", "atan2": "arctan2", "pow": "power"}
    with np.errstate(all="ignore"):
        x = np.float64(x)
        function = functions.get(name) or getattr(np, names.get(name, name))
        return float(function(x, x) if name in ("atan2", "divide", "pow") else function(x))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ulp": -1}, "ulp: expected a number of at least 0, found -1"),
        ({"relative": "2"}, "relative: expected a number of at least 0, found '2'"),
        ({"absolute": math.nan}, "absolute: expected a number of at least 0, found nan"),
        ({"ulp": True}, "ulp: expected a number of at least 0, found True"),
        ({"minimum": math.nan}, "minimum: expected a number, found nan"),
        ({"minimum": 2, "maximum": 1}, "minimum and maximum: expected a minimum below the maximum, found 2 and 1"),
    ],
)
def test_invalid_bound_is_rejected(values: dict[str, Any], message: str) -> None:
    with pytest.raises(NumericsError) as caught:
        ErrorBound(**values)
    assert str(caught.value) == message


def test_bounds_up_to_a_tenth_are_accepted_for_every_function() -> None:
    elementary = {name: (ErrorBound(relative=0.1),) for name in ELEMENTARY_FUNCTIONS}
    assert len(Numerics(name="mine", elementary=elementary).elementary) == len(ELEMENTARY_FUNCTIONS)


def test_values_of_lists_the_allowed_values() -> None:
    assert values_of(Numerics, "subnormals") == ["keep", "flush-results", "flush-inputs"]
    assert values_of(Numerics, "convolutions") == ["direct", "winograd-f2", "winograd-f4", "fft"]
    assert values_of(Numerics, "sum_order") == ["fixed", "run-to-run"]
