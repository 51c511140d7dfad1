"""The table of operators agrees with the declarations of PyTorch and of the standard."""

from typing import Any

import pytest

from diopi_proto.aten.mapping import RULES
from diopi_proto.aten.table import DECOMPOSED, NO_CALL, ArgumentOf, Row, rows, sourced_arguments
from diopi_proto.interface import lookup, prototypes
from diopi_proto.parameters import Out, Outs

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

MAPPED = [row for row in rows().values() if row.function.startswith("diopi")]


def operator(row: Row) -> Any:
    """Return the PyTorch operator of a row of the table."""
    name, _, overload = row.operator.partition(".")
    return getattr(getattr(torch.ops.aten, name), overload or "default")


@pytest.mark.parametrize("row", rows().values(), ids=list(rows()))
def test_operator_and_function_of_each_row_exist(row: Row) -> None:
    found = operator(row)
    if row.function == DECOMPOSED:
        assert found in torch._decomp.decomposition_table
    else:
        assert row.function in prototypes() or row.function in RULES or row.function == NO_CALL


@pytest.mark.parametrize("row", MAPPED, ids=[row.operator for row in MAPPED])
def test_every_argument_of_a_function_has_a_source(row: Row) -> None:
    prototype, schema = lookup(row.function), operator(row)._schema
    names = {argument.name for argument in schema.arguments}
    needed = sourced_arguments(prototype)
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
