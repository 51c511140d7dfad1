"""The prototypes agree with the stored description of the interface, golden/interface.jsonl."""

import json
from pathlib import Path

import pytest

from diopi_proto.interface import header_of, header_order, lookup, prototypes, runtime_prototypes
from diopi_proto.prototype import Prototype

GOLDEN = {
    fact["name"]: fact
    for fact in map(json.loads, (Path(__file__).parent / "golden" / "interface.jsonl").read_text().splitlines())
}


def all_prototypes() -> list[Prototype]:
    """Return the prototypes of the runtime and of all operators."""
    return [*runtime_prototypes().values(), *prototypes().values()]


def test_header_order_is_that_of_the_interface() -> None:
    assert [(header, name) for header, names in header_order().items() for name in names] == [
        (fact["header"], name) for name, fact in GOLDEN.items()
    ]


def signature(prototype: Prototype) -> tuple[str, list[tuple[str, str]]]:
    """Return the return type and the C types and names of the parameters."""
    return prototype.returns, [(p.c_type, p.c_name) for p in prototype.parameters]


def test_signatures_are_those_of_the_interface() -> None:
    facts = {name: (fact["returns"], [(p["type"], p["name"]) for p in fact["params"]]) for name, fact in GOLDEN.items()}
    assert {prototype.name: signature(prototype) for prototype in all_prototypes()} == facts


def test_hinted_dtypes_are_accepted() -> None:
    """The hints in the interface are the minimum, if they concern the main input of a plain function."""
    rejected = []
    for prototype in prototypes().values():
        if prototype.is_inplace:  # the hints repeat those of the plain form, whose result may be wider
            continue
        hints = {p["name"]: set(p["dtypes"]) for p in GOLDEN[prototype.name]["params"] if "dtypes" in p}
        for parameter in prototype.arguments:
            if parameter.is_tensor and parameter.c_name in hints:
                accepted = {dtype.name for dtype in prototype.dtypes_of(parameter.name)}
                rejected += [(prototype.name, parameter.name, name) for name in hints[parameter.c_name] - accepted]
    assert rejected == []


def test_relations_name_functions_of_the_same_family_and_header() -> None:
    for prototype in prototypes().values():
        related = [prototype.base, *([prototype.backward] if prototype.backward else [])]
        assert {lookup(name).family for name in related} == {prototype.family}, prototype.name
        assert header_of(prototype.name) == header_of(prototype.base)


def test_lookup_suggests_close_names() -> None:
    with pytest.raises(KeyError, match=r"'diopiSinn'.*'diopiSin'"):
        lookup("diopiSinn")
