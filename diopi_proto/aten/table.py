"""Which function serves which operator of ATen: the table `table.tsv`, and what its lines mean.

A line names an operator, the function that serves it and, where they differ, the sources of the function's arguments:
`name=other` for another argument of the operator, `name=tensor(other)` for a number or list of it that becomes a
tensor, `name=1`, `name="none"` or `name=null` for a constant in JSON; `>name=1` for a result that is the operator's
second. An argument without a source is the operator's of the same name, `input` its `self`; results follow one another.
The derived forms need no lines: that an operator writes its first argument, or has a number where the function takes a
tensor, says which form it is.

Instead of a function there may be `-` where an operator is no call of a device's function (it looks at memory or makes
some), `decomposed` where PyTorch itself knows how to make it of others, or the name of a rule in
`diopi_proto.aten.mapping`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from diopi_proto.interface import prototypes
from diopi_proto.parameters import Count, Generator
from diopi_proto.prototype import Prototype

FILE = Path(__file__).parent / "table.tsv"

NO_CALL = "-"
"""Stands for a function where an operator is no call of one."""

DECOMPOSED = "decomposed"
"""Stands for a function where none serves an operator, but those that PyTorch's own decomposition calls."""


@dataclass(frozen=True)
class Constant:
    """An argument that is the same in every call."""

    value: Any


@dataclass(frozen=True)
class ArgumentOf:
    """An argument that is one of the operator's, by its name; perhaps as a tensor made of its numbers."""

    name: str
    as_tensor: bool = False


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes:
        operator: its name in ATen, with the overload if it has a name other than `default`.
        function: that serves it; or `NO_CALL`, or the name of a rule.
        sources: of the function's arguments, those that the line names.
        results: for results that the line names, which of the operator's it is.
    """

    operator: str
    function: str
    sources: Mapping[str, Constant | ArgumentOf]
    results: Mapping[str, int]

    def source(self, parameter: str, names: Collection[str]) -> Constant | ArgumentOf:
        """Where an argument comes from, of an operator whose arguments have these names."""
        if found := self.sources.get(parameter):
            return found
        return ArgumentOf("self" if parameter == "input" and parameter not in names else parameter)


@cache
def rows() -> Mapping[str, Row]:
    """The table, by operator."""
    lines = (line.split("\t") for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#"))
    return {line[0]: parse_row(*line) for line in lines}


def row_of(operator: str) -> Row | None:
    """The line for an operator; that of the one it is the in-place form of where it has none of its own."""
    name, dot, overload = operator.partition(".")
    return rows().get(operator) or rows().get(name.removesuffix("_") + dot + overload)


def form_of(function: str, *, inplace: bool, scalar: bool) -> Prototype | None:
    """The form of a function, which is named by the plain one; None if the standard does not have it."""
    return _forms().get((function, inplace, scalar))


def needs_source(prototype: Prototype) -> list[str]:
    """The arguments of a function that an operator's give: all but counts and generators."""
    return [p.name for p in prototype.arguments if not issubclass(p.annotation, Count | Generator)]


@cache
def _forms() -> Mapping[tuple[str, bool, bool], Prototype]:
    return {(p.base, p.is_inplace, p.form.endswith("scalar")): p for p in prototypes().values()}


def parse_row(operator: str, function: str, named: str = "") -> Row:
    """Return the row that the columns of a line describe."""
    pairs = [entry.split("=", 1) for entry in named.split()]
    sources = {name: _source(text) for name, text in pairs if not name.startswith(">")}
    return Row(operator, function, sources, {name[1:]: int(text) for name, text in pairs if name.startswith(">")})


def _source(text: str) -> Constant | ArgumentOf:
    if text.startswith("tensor("):
        return ArgumentOf(text.removeprefix("tensor(").removesuffix(")"), as_tensor=True)
    try:
        return Constant(json.loads(text))
    except ValueError:
        return ArgumentOf(text)
