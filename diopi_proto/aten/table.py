"""The table `table.tsv`, which assigns a function to each operator of ATen, and its syntax.

A line contains an operator, its function and, if they differ, the sources of the function's arguments:

- `name=other`: the operator's argument `other`.
- `name=tensor(other)`: a tensor with the number or list of the operator's argument `other`.
- `name=1`, `name="none"` or `name=null`: a constant in JSON.
- `>name=1`: the function's result `name` is the operator's second result.

An argument without a source is the operator's argument of the same name; `input` is `self`. Results have the same order
by default. Derived forms have no lines: the in-place form is chosen if the operator writes its first argument, and the
scalar form if the operator has a number and the function takes a tensor.

The second column can also contain:

- `-`: the operator calls no function of a device; it only creates or inspects memory.
- `decomposed`: PyTorch decomposes the operator into others.
- the name of a rule in `diopi_proto.aten.mapping`.
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
"""The table of PyTorch's operators and the functions that they call, as tab-separated values."""

NO_CALL = "-"
"""The text in the column of the function if the operator calls no function."""

DECOMPOSED = "decomposed"
"""The text in the column of the function if PyTorch decomposes the operator into operators with functions."""


@dataclass(frozen=True)
class Constant:
    """The source of an argument that is the same in every call.

    Attributes:
        value: the value of the argument.
    """

    value: Any


@dataclass(frozen=True)
class ArgumentOf:
    """The source of an argument that is an argument of the operator.

    Attributes:
        name: the name of the operator's argument.
        as_tensor: whether a number is converted to a tensor.
    """

    name: str
    as_tensor: bool = False


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table.

    Attributes:
        operator: the name of the operator in ATen, with the overload unless the overload is `default`.
        function: the function that implements the operator, `NO_CALL`, `DECOMPOSED` or the name of a rule.
        sources: the sources that the line states, by the function's argument.
        results: the index of the operator's result, by the name of the function's result, for the results that the
            line states.
    """

    operator: str
    function: str
    sources: Mapping[str, Constant | ArgumentOf]
    results: Mapping[str, int]

    @property
    def calls_functions(self) -> bool:
        """Whether the operator calls functions of a vendor: the function of the row, or those that a rule selects."""
        return self.function not in (NO_CALL, DECOMPOSED)

    def source(self, parameter: str, names: Collection[str]) -> Constant | ArgumentOf:
        """Return the source of the function's argument `parameter`; `names` are the operator's arguments."""
        if source := self.sources.get(parameter):
            return source
        return ArgumentOf("self" if parameter == "input" and parameter not in names else parameter)


@cache
def rows() -> Mapping[str, Row]:
    """Return the lines of the table by operator."""
    lines = (line.split("\t") for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#"))
    return {line[0]: parse_row(*line) for line in lines}


def find_row(operator: str) -> Row | None:
    """Return the line for an operator, or for the operator whose in-place form it is; None if there is no line."""
    name, dot, overload = operator.partition(".")
    return rows().get(operator) or rows().get(name.removesuffix("_") + dot + overload)


def find_form(function: str, *, inplace: bool, scalar: bool) -> Prototype | None:
    """Return the prototype of a form of the plain function `function`; None if the standard does not have it.

    Args:
        function: the plain function, such as `diopiAdd`.
        inplace: whether the form writes its result to its first argument.
        scalar: whether the second operand of the form is a number.
    """
    return _forms().get((function, inplace, scalar))


def sourced_arguments(prototype: Prototype) -> list[str]:
    """Return the arguments of a function that come from the operator's arguments: all except counts and generators."""
    return [p.name for p in prototype.arguments if not issubclass(p.annotation, Count | Generator)]


@cache
def _forms() -> Mapping[tuple[str, bool, bool], Prototype]:
    """Return the prototypes by base function, by whether they work in place, and by whether they take a scalar."""
    return {(p.base, p.is_inplace, p.form.endswith("scalar")): p for p in prototypes().values()}


def parse_row(operator: str, function: str, named: str = "") -> Row:
    """Return the row that the columns of a line describe; `named` is the third column."""
    pairs = [entry.split("=", 1) for entry in named.split()]
    sources = {name: _source(text) for name, text in pairs if not name.startswith(">")}
    return Row(
        operator=operator,
        function=function,
        sources=sources,
        results={name[1:]: int(text) for name, text in pairs if name.startswith(">")},
    )


def _source(text: str) -> Constant | ArgumentOf:
    """Return the source that `text` states: a constant in JSON, an argument of the operator, or `tensor(argument)`."""
    if text.startswith("tensor("):
        return ArgumentOf(text.removeprefix("tensor(").removesuffix(")"), as_tensor=True)
    try:
        return Constant(json.loads(text))
    except ValueError:
        return ArgumentOf(text)
