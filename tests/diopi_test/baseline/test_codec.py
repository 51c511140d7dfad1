"""Dataclasses are converted to JSON and back without loss, and messages name the values that do not fit."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from diopi_impl import ErrorBound, Numerics
from diopi_impl.numerics import shipped_names, shipped_numerics
from diopi_proto.types import Dtype
from diopi_test.baseline.codec import RecordError, from_json, to_json


@dataclass(frozen=True)
class Inner:
    """A record whose fields can be omitted."""

    dtype: Dtype
    ratio: float | None = field(default=None, metadata={"omit_default": True})
    note: str = field(default="", metadata={"omit_default": True})


@dataclass(frozen=True)
class Outer:
    """A record with a field of each type that the codec supports."""

    class_: str
    number: int | None
    inner: tuple[Inner, ...]
    by_name: Mapping[str, Inner]
    dtypes: Collection[Dtype] | None
    right_edge: bool
    place: int | None = None
    day: date | None = None
    file: Path = Path("here")


VALUE = Outer(
    "standard",
    None,
    (Inner(Dtype.float32), Inner(Dtype.int8, 0.5, "near"), Inner(Dtype.bool, math.inf)),
    {"one": Inner(Dtype.float64, -math.inf)},
    (Dtype.float16,),
    True,
    day=date(2027, 1, 31),
)

JSON = {
    "class": "standard",
    "number": None,
    "inner": [{"dtype": "float32"}, {"dtype": "int8", "ratio": 0.5, "note": "near"}, {"dtype": "bool", "ratio": "inf"}],
    "by_name": {"one": {"dtype": "float64", "ratio": "-inf"}},
    "dtypes": ["float16"],
    "right_edge": True,
    "place": None,
    "day": "2027-01-31",
    "file": "here",
}


def test_records_survive_a_round_trip() -> None:
    assert to_json(VALUE) == JSON
    assert from_json(Outer, json.loads(json.dumps(to_json(VALUE), allow_nan=False))) == VALUE


def test_a_toml_date_is_read() -> None:
    assert from_json(Outer, JSON | {"day": VALUE.day}) == VALUE


def test_an_integer_is_read_as_a_float() -> None:
    read = from_json(Inner, {"dtype": "float32", "ratio": 1})
    assert (read.ratio, type(read.ratio)) == (1.0, float)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"color": "red", "size": 1}, r"^Outer: unknown color, size$"),
        ({"number": "two"}, r"^Outer.number: expected int, found 'two'$"),
        ({"number": True}, r"^Outer.number: expected int, found True$"),
        ({"day": "soon"}, r"^Outer.day: expected a date such as 2027-01-31, found 'soon'$"),
        ({"day": 3}, r"^Outer.day: expected a date such as 2027-01-31, found 3$"),
        ({"file": 3}, r"^Outer.file: expected str, found 3$"),
        ({"right_edge": 1}, r"^Outer.right_edge: expected bool, found 1$"),
        ({"inner": {}}, r"^Outer.inner: expected list, found \{\}$"),
        ({"inner": [{"dtype": "float32", "ratio": "much"}]}, r"^Outer.inner\[0\].ratio: expected float, found 'much'$"),
        (
            {"inner": [{"dtype": "int8", "ratio": 10**400}]},
            r"^Outer.inner\[0\].ratio: expected float, found an integer",
        ),
        ({"inner": [{"dtype": ["int8"]}]}, r"^Outer.inner\[0\].dtype: expected one of .*, found \['int8'\]$"),
        ({"inner": [{"note": ""}]}, r"^Outer.inner\[0\]: missing dtype$"),
        ({"by_name": {"one": {"dtype": "float31"}}}, r"^Outer.by_name.one.dtype: expected one of .*, found 'float31'$"),
        ({"by_name": {"one": None}}, r"^Outer.by_name.one: expected dict, found None$"),
    ],
)
def test_a_mismatch_is_reported_with_its_location(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        from_json(Outer, JSON | change)


def test_missing_keys_are_named() -> None:
    with pytest.raises(RecordError, match=r"^Outer: missing class, place$"):
        from_json(Outer, {name: value for name, value in JSON.items() if name not in ("class", "place")})


def test_declared_numerics_survive_json() -> None:
    bounds = (ErrorBound(ulp=2, maximum=3), ErrorBound(relative=0.01, minimum=3))
    numerics = Numerics(name="mine", convolutions=frozenset({"fft", "direct"}), elementary={"exp": bounds})
    for declared in (numerics, *map(shipped_numerics, shipped_names())):
        assert from_json(Numerics, json.loads(json.dumps(to_json(declared)))) == declared
    assert to_json(numerics)["convolutions"] == ["direct", "fft"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("float64", "none", r"Numerics\.float64: expected one of 'ieee', 'absent', 'emulated', found 'none'"),
        ("convolutions", ["dirct"], r"Numerics\.convolutions\[0\]: expected one of 'direct', .*found 'dirct'"),
        ("subnormals", 1, r"Numerics\.subnormals: expected one of 'keep', .*found 1"),
        ("name", "", r"Numerics: name: expected a name"),
    ],
)
def test_invalid_numerics_are_rejected(key: str, value: object, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        from_json(Numerics, {**to_json(Numerics()), key: value})
