"""The prototypes agree with the facts of the interface, kept in golden/interface.jsonl."""

import json
from pathlib import Path

import pytest

from diopi_proto.interface import header_of, header_order, lookup, prototypes, runtime_prototypes
from diopi_proto.prototype import Prototype

GOLDEN = {
    fact["name"]: fact
    for fact in map(json.loads, (Path(__file__).parent / "golden" / "interface.jsonl").read_text().splitlines())
}


def everything() -> list[Prototype]:
    return [*runtime_prototypes().values(), *prototypes().values()]


def test_header_order_is_that_of_the_interface() -> None:
    assert [(header, name) for header, names in header_order().items() for name in names] == [
        (fact["header"], name) for name, fact in GOLDEN.items()
    ]


@pytest.mark.parametrize("prototype", everything(), ids=lambda prototype: prototype.name)
def test_signature(prototype: Prototype) -> None:
    fact = GOLDEN[prototype.name]
    assert prototype.returns == fact["returns"]
    assert [(p.c_type, p.c_name) for p in prototype.parameters] == [(p["type"], p["name"]) for p in fact["params"]]


@pytest.mark.parametrize("prototype", prototypes().values(), ids=lambda prototype: prototype.name)
def test_hinted_dtypes_are_accepted(prototype: Prototype) -> None:
    """The interface's hints are a minimum, wherever they limit the main input of a plain function."""
    hints = {p["name"]: p["dtypes"] for p in GOLDEN[prototype.name]["params"] if "dtypes" in p}
    arguments = [p for p in prototype.arguments if p.is_tensor and p.c_name in hints]
    if prototype.is_inplace:  # the hints repeat those of the plain form, whose result may be wider
        return
    for parameter in arguments:
        accepted = {dtype.name for dtype in prototype.dtypes_of(parameter.name)}
        assert set(hints[parameter.c_name]) <= accepted, parameter.name


@pytest.mark.parametrize("prototype", prototypes().values(), ids=lambda prototype: prototype.name)
def test_relations_name_standard_functions(prototype: Prototype) -> None:
    related = [prototype.base, *([prototype.backward] if prototype.backward else [])]
    assert [name for name in related if lookup(name).family != prototype.family] == []
    assert header_of(prototype.name) == header_of(prototype.base)


def test_lookup_suggests_close_names() -> None:
    with pytest.raises(KeyError, match=r"'diopiSinn' is not one of .*\. Did you mean .*'diopiSin'"):
        lookup("diopiSinn")
