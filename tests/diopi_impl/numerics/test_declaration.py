"""The declaration of a vendor's arithmetic: valid values, contradictions, the digest."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest

from diopi_impl.numerics import ELEMENTARY_FUNCTIONS, IEEE, ErrorBound, Numerics, NumericsError
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
