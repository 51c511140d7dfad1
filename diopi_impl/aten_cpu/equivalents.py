"""The ATen operators that are equivalent to standard functions.

Most equivalents come from `diopi_proto.aten.table`, which assigns functions to operators. That table has only the
operators that PyTorch calls on a device. `equivalents.tsv` adds operators that PyTorch decomposes into others. It has
the same columns and two additions: `<name=1` is a constant argument of the operator, and `gradient:name` is the
gradient of an operator, computed by autograd.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from diopi_proto.aten.mapping import RULES
from diopi_proto.aten.table import DECOMPOSED, NO_CALL, Row, parse_row, rows

FILE = Path(__file__).parent / "equivalents.tsv"
"""The table of the equivalent calls."""

GRADIENT = "gradient:"
"""The prefix of an operator that stands for its gradient."""


@dataclass(frozen=True)
class Equivalent:
    """An operator that computes what a function computes.

    Attributes:
        row: the operator, and the sources of its arguments.
        constants: arguments of the operator that are the same in every call, by name.
        is_gradient: whether the equivalent is the gradient of the operator.
    """

    row: Row
    constants: Mapping[str, Any] = field(default_factory=dict)
    is_gradient: bool = False

    def operator(self, *, inplace: bool) -> Any:
        """Return the operator, or its in-place variant; None if there is no in-place variant."""
        name, _, overload = self.row.operator.partition(".")
        if inplace and not name.endswith("_"):
            name += "_"
        return getattr(getattr(torch.ops.aten, name, None), overload or "default", None)

    def out_variant(self, operator: Any) -> Any:
        """Return the variant of an operator that writes into the caller's tensors; None if there is none."""
        declared = [(argument.name, str(argument.type)) for argument in operator._schema.arguments]
        packet = operator.overloadpacket
        for overload in packet.overloads():
            variant = getattr(packet, overload)
            written = [a for a in variant._schema.arguments if a.kwarg_only and a.alias_info is not None]
            if written and [(a.name, str(a.type)) for a in variant._schema.arguments[: -len(written)]] == declared:
                return variant
        return None


@cache
def equivalents() -> Mapping[str, Sequence[Equivalent]]:
    """Return the equivalent operators by function; derived forms have the equivalents of their base."""
    by_function: dict[str, list[Equivalent]] = {}
    for equivalent in (*_read_composed_operators(), *map(Equivalent, rows().values())):
        if equivalent.row.function not in (DECOMPOSED, NO_CALL, *RULES):
            by_function.setdefault(equivalent.row.function, []).append(equivalent)
    return by_function


def _read_composed_operators() -> list[Equivalent]:
    """Return the equivalents in the file `equivalents.tsv`."""
    lines = [line.split("\t") for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    return [_parse_equivalent(*line) for line in lines]


def _parse_equivalent(operator: str, function: str, named: str = "") -> Equivalent:
    """Return the equivalent for the columns of a line: operator, function, and names of arguments or constants."""
    words = named.split()
    constants = dict(word[1:].split("=", 1) for word in words if word.startswith("<"))
    sources = " ".join(word for word in words if not word.startswith("<"))
    return Equivalent(
        parse_row(operator.removeprefix(GRADIENT), function, sources),
        {name: json.loads(text) for name, text in constants.items()},
        operator.startswith(GRADIENT),
    )
