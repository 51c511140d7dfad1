"""The table of operators, against what PyTorch and the standard declare."""

from typing import Any

import pytest

from diopi_proto.interface import lookup, prototypes
from diopi_proto.parameters import Out, Outs
from diopi_test.models.table import FILE, NO_CALL, ArgumentOf, Constant, Row, form_of, needs_source, row_of, rows

torch = pytest.importorskip("torch")
trace = pytest.importorskip("diopi_test.models.trace")

MAPPED = [row for row in rows().values() if row.function.startswith("diopi")]


def operator(row: Row) -> Any:
    name, _, overload = row.operator.partition(".")
    return getattr(getattr(torch.ops.aten, name), overload or "default")


def test_the_table_is_sorted_and_names_each_operator_once() -> None:
    lines = [line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert lines == sorted(lines)
    assert len(lines) == len(rows())


@pytest.mark.parametrize("row", rows().values(), ids=list(rows()))
def test_an_operator_and_what_serves_it_exist(row: Row) -> None:
    found = operator(row)
    if row.function == "decomposed":
        assert found in trace.decomposition_table
    else:
        assert row.function in prototypes() or row.function in trace.RULES or row.function == NO_CALL


@pytest.mark.parametrize("row", MAPPED, ids=[row.operator for row in MAPPED])
def test_every_argument_of_a_function_has_a_source(row: Row) -> None:
    prototype, schema = lookup(row.function), operator(row)._schema
    names = {argument.name for argument in schema.arguments}
    needed = needs_source(prototype)
    sources = [row.source(name, names) for name in needed]
    assert [source for source in sources if isinstance(source, ArgumentOf) and source.name not in names] == []
    assert set(row.sources) <= set(needed) | {p.name for p in prototype.results}


@pytest.mark.parametrize("row", MAPPED, ids=[row.operator for row in MAPPED])
def test_every_result_of_a_function_has_a_source(row: Row) -> None:
    prototype, schema = lookup(row.function), operator(row)._schema
    needed = [p for p in prototype.results if issubclass(p.annotation, Out | Outs)]
    assert set(row.results) <= {p.name for p in needed}
    for number, parameter in enumerate(needed):
        returns = row.results.get(parameter.name, number) < len(schema.returns)
        assert returns or parameter.optional or schema.is_mutable, parameter.name


def test_sources_are_arguments_and_constants() -> None:
    row = rows()["rsub.Scalar"]
    names = ("self", "other", "alpha")
    assert row.source("input", names) == ArgumentOf("other", as_tensor=True)
    assert row.source("alpha", names) == ArgumentOf("alpha")
    assert rows()["div.Tensor"].source("rounding_mode", names) == Constant("none")
    assert rows()["mm"].source("input", names) == ArgumentOf("self")
    assert rows()["convolution"].source("input", ("input",)) == ArgumentOf("input")


def test_an_in_place_operator_has_the_line_of_the_other() -> None:
    assert row_of("mul_.Tensor") is rows()["mul.Tensor"]
    assert row_of("copy_") is rows()["copy_"]
    assert row_of("no_such_") is None


def test_forms_are_found_by_what_they_are() -> None:
    forms = [form_of("diopiAdd", inplace=i, scalar=s) for i in (False, True) for s in (False, True)]
    assert [form and form.name for form in forms] == ["diopiAdd", "diopiAddScalar", "diopiAddInp", "diopiAddInpScalar"]
    assert form_of("diopiMm", inplace=True, scalar=False) is None
