"""Python source files as data: `ast` parses a file, and a few forms of expressions are evaluated, never executed."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter, Signature
from itertools import count
from pathlib import Path
from typing import Any, final

from diopi_proto.types import Dtype
from diopi_test.original.safe_calls import BINARY, CALLS, MAX_ENTRIES, NoDataError, compute_operation

MAX_BYTES = 16 * 2**20
"""The maximum size of a file in bytes."""

MAX_VALUES = 1_000_000
"""Maximum number of values in an entry, or in the value of a name; a list that is used twice counts twice."""

MAX_DEPTH = 50
"""Maximum number of lists and dictionaries around a value."""


SKIP = "Skip"
"""The name of the original suite's class that marks values to skip, whatever module a file imports it from."""


class SourceError(ValueError):
    """A file can't be read as Python source; the message contains the path and the reason."""


@final
@dataclass(frozen=True)
class NotRead:
    """A placeholder for an expression that can't be evaluated.

    Attributes:
        line: The line of the expression.
        reason: Why it can't be evaluated.
    """

    line: int
    reason: str


@final
@dataclass(frozen=True)
class Skipped:
    """A value `Skip(value)`: cases with this value are not run on a device.

    Attributes:
        line: The line of the expression.
        value: The value without `Skip`.
    """

    line: int
    value: Any


@final
@dataclass(frozen=True)
class Generated:
    """A generator `Genfunc.NAME` or `Genfunc.NAME(…)` of a tensor's values.

    Attributes:
        name: The name of the generator, without `Genfunc.`.
        parameters: The arguments by name; an argument by position has its number as the name, from "0".
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True, kw_only=True)
class RawEntry:
    """An entry of a configuration whose content is evaluated but not yet interpreted.

    Attributes:
        name: The name of the entry.
        line: The line of the entry in the file.
        content: The value of the entry, a dictionary; parts that can't be evaluated are `NotRead`.
        dictionary: The name of the dictionary that contains the entry.
    """

    name: str
    line: int
    content: Any
    dictionary: str = ""


@final
@dataclass(frozen=True)
class Source:
    """The contents of a file.

    Attributes:
        entries: The entries of its dictionaries.
        not_read: The statements that are not data.
    """

    entries: tuple[RawEntry, ...]
    not_read: tuple[NotRead, ...]


@final
@dataclass(frozen=True)
class _Alias:
    """A function of the file: another name of a known one, or a lambda that is read anew for each call.

    Attributes:
        function: The name of the known function, or the lambda.
        names: The names that the file had assigned before the lambda, without other lambdas, so that reading a call
            always terminates.
    """

    function: str | ast.Lambda
    names: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_lambda(self) -> bool:
        """Return whether this is a lambda of the file."""
        return isinstance(self.function, ast.Lambda)


def read_source(path: Path) -> Source:
    """Read a configuration file.

    An expression that can't be evaluated is replaced by a `NotRead`, so that it affects only its entry.

    Args:
        path: The file.

    Returns:
        The entries of the file.

    Raises:
        SourceError: The file can't be read, is too large, or is not Python source.
    """
    reader = _Reader({})
    entries: list[RawEntry] = []
    not_read: list[NotRead] = []
    for statement in _parse_file(path).body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ):
                if value is not None:
                    entries += reader.entries(value, name)
                    reader.assign(name, value)
            case ast.ImportFrom(names=imported):
                aliases = {alias.asname: _Alias(alias.name) for alias in imported if alias.asname}
                reader.names.update({name: alias for name, alias in aliases.items() if alias.function == SKIP})
            case ast.Import() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                not_read.append(NotRead(statement.lineno, f"a statement that is not data: {_abbreviate(statement)}"))
    return Source(tuple(entries), tuple(not_read))


def _parse_file(path: Path) -> ast.Module:
    """Return the syntax tree of a file; raise SourceError if it can't be read, is too large, or is not Python."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SourceError(f"{path}: it has more than {MAX_BYTES:,} bytes")
        return ast.parse(path.read_bytes())
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from error
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise SourceError(f"{path}: it is not Python source: {error}") from error


def escape(text: str) -> str:
    """Return a text with surrogates and control characters escaped, so that it can be printed and written to a file."""
    escaped = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    return escaped.encode("utf-8", "backslashreplace").decode()


def problems_in(value: Any) -> list[NotRead]:
    """Return the parts of a value that could not be read, in order."""
    match value:
        case NotRead():
            return [value]
        case dict():
            return [problem for entry in value.items() for part in entry for problem in problems_in(part)]
        case list() | tuple():
            return [problem for entry in value for problem in problems_in(entry)]
        case Skipped():
            return problems_in(value.value)
        case Generated():
            return problems_in(dict(value.parameters))
    return []


_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
"""The operators that an expression may apply to a value, and the functions that compute them."""

_CONSTANTS: Mapping[str, Any] = {
    **{
        f"{module}.{name}": getattr(math, name)
        for module in ("np", "numpy", "math")
        for name in ("inf", "nan", "pi", "e")
    },
    **{f"{module}.newaxis": None for module in ("np", "numpy")},
    **{f"{module}.{dtype.name}": dtype for module in ("np", "numpy", "torch", "Dtype") for dtype in Dtype},
    **{f"{module}.{name}": Dtype.bool for module in ("np", "numpy") for name in ("bool_", "bool")},
}
"""The dotted names that are known, and their values."""


@dataclass(frozen=True)
class _Reader:
    """An evaluator of expressions.

    Attributes:
        names: The names that the file has assigned so far, and the arguments of the lambda that is being read.
        called_at: The line of the call of that lambda; None outside of lambdas.
        steps: A counter of the elements of comprehensions in the whole file, which are limited.
    """

    names: dict[str, Any]
    called_at: int | None = None
    steps: Iterator[int] = field(default_factory=count)

    def assign(self, name: str, node: ast.expr) -> None:
        """Assign a name to the value of an expression, or to a function."""
        match node:
            case ast.Lambda():
                known = {
                    key: value
                    for key, value in self.names.items()
                    if not isinstance(value, _Alias) or not value.is_lambda
                }
                self.names[name] = _Alias(node, known)
            case ast.Name(id=function) if function == SKIP or isinstance(self.names.get(function), _Alias):
                self.names[name] = self.names.get(function, _Alias(SKIP))
            case _:
                self.names[name] = self._read_limited(node)

    def entries(self, node: ast.expr, dictionary: str) -> list[RawEntry]:
        """Return the entries of a dictionary of dictionaries; an empty list for any other expression."""
        match node:
            case ast.Dict(keys=keys, values=values):
                pairs = [(self.read(key) if key else None, value) for key, value in zip(keys, values, strict=True)]
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                pairs = [(keyword.arg, keyword.value) for keyword in keywords]
            case _:
                return []
        read = [(key, value.lineno, self._read_limited(value)) for key, value in pairs if isinstance(key, str)]
        if all(isinstance(value, dict | NotRead) for _, _, value in read):  # a dictionary of entries only
            read = [(key, line, {"": value} if isinstance(value, NotRead) else value) for key, line, value in read]
        return [
            RawEntry(name=escape(key), line=line, content=value, dictionary=dictionary)
            for key, line, value in read
            if isinstance(value, dict)
        ]

    def _read_limited(self, node: ast.expr) -> Any:
        """Return the value of an expression, or a `NotRead` if it has too many values: names can double at each use."""
        value = self.read(node)
        count, depth = _measure(value, {})
        if count > MAX_VALUES or depth > MAX_DEPTH:
            reason = f"more than {MAX_VALUES:,} values, or {MAX_DEPTH} levels"
            return NotRead(self._line_of(node), f"{reason}: {_abbreviate(node)}")
        return value

    def read(self, node: ast.expr) -> Any:
        """Return the value of an expression, or a `NotRead` if the expression can't be evaluated."""
        try:
            return self._read(node)
        except NoDataError as error:
            return NotRead(self._line_of(node), f"{error}: {_abbreviate(node)}")
        except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
            return NotRead(self._line_of(node), f"{type(error).__name__}: {_abbreviate(node)}")

    def _line_of(self, node: ast.expr) -> int:
        """Return the line of an expression; within a called function, the line of the call."""
        return node.lineno if self.called_at is None else self.called_at

    def _read(self, node: ast.expr) -> Any:
        """Return the value of an expression of one of the supported forms; raise NoDataError for any other."""
        match node:
            case ast.Constant(value=value) if value is None or isinstance(value, bool | int | float | complex | str):
                return value
            case ast.List(elts=entries):
                return [self.read(entry) for entry in entries]
            case ast.Tuple(elts=entries):
                return tuple(self.read(entry) for entry in entries)
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {self._read(k): self.read(v) for k, v in zip(keys, values, strict=True) if k is not None}
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                return _UNARY[type(op)](self._read(operand))
            case ast.BinOp(op=op, left=left, right=right) if type(op) in BINARY:
                return compute_operation(op, self._read(left), self._read(right))
            case ast.Name(id=name) if name in self.names and not isinstance(self.names[name], _Alias):
                return self.names[name]
            case ast.Attribute():
                return self._constant(_dotted_name(node))
            case ast.Call(func=function, args=arguments, keywords=keywords):
                return self._read_call(self._line_of(node), _dotted_name(function), arguments, keywords)
            case ast.ListComp(elt=element, generators=[ast.comprehension(target=ast.Name(id=name), ifs=[]) as loop]):
                return [
                    replace(self, names={**self.names, name: element_value}).read(element)
                    for element_value in self._elements(loop.iter)
                ]
        raise NoDataError("an expression that is not read")

    def _elements(self, node: ast.expr) -> Iterator[Any]:
        """Yield the elements of a comprehension's iterable; raise NoDataError if it is not a list or too long."""
        listed = self._read(node)
        if not isinstance(listed, list | tuple):
            raise NoDataError("a comprehension over a value that is not a list")
        for element in listed:
            if next(self.steps) >= MAX_ENTRIES:
                raise NoDataError(f"comprehensions with more than {MAX_ENTRIES:,} elements")
            yield element

    @staticmethod
    def _constant(name: str) -> Any:
        """Return the value of a known dotted name, such as `np.float32` or a generator; else raise NoDataError."""
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name.startswith("Genfunc."):
            return Generated(name.removeprefix("Genfunc."))
        raise NoDataError("an unknown name")

    def _read_call(self, line: int, name: str, positional: list[ast.expr], keywords: list[ast.keyword]) -> Any:
        """Return the value of a call of a supported function or of a lambda of the file.

        Args:
            line: the line of the call.
            name: the name of the called function.
            positional: the positional arguments.
            keywords: the keyword arguments.

        Returns:
            The value.

        Raises:
            NoDataError: The function is not supported, or arguments are unpacked.
        """
        arguments = [self.read(argument) for argument in positional]
        named = {argument.arg: self.read(argument.value) for argument in keywords if argument.arg is not None}
        if len(named) < len(keywords) or any(isinstance(argument, ast.Starred) for argument in positional):
            raise NoDataError("a call with arguments that are unpacked")
        match self.names.get(name):
            case _Alias(function=ast.Lambda() as function, names=known):
                values = self._bind(function.args, arguments, named)
                return replace(self, names={**known, **values}, called_at=line).read(function.body)
            case _Alias(function=str(function)):
                name = function
        if name.rpartition(".")[2] == SKIP and len(arguments) == 1 and not named:
            return Skipped(line, arguments[0])
        if name.startswith("Genfunc."):
            numbered = {str(number): argument for number, argument in enumerate(arguments)}
            return Generated(name.removeprefix("Genfunc."), {**numbered, **named})
        if name not in CALLS or (named and name != "dict"):
            raise NoDataError("a call that is not read")
        return CALLS[name](*arguments, **named)

    def _bind(self, declared: ast.arguments, positional: list[Any], named: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a lambda by name.

        Args:
            declared: The parameters of the lambda.
            positional: The arguments by position.
            named: The arguments by name.

        Returns:
            The arguments, including default values.

        Raises:
            NoDataError: The lambda has keyword-only parameters or `**` parameters.
            TypeError: The arguments do not match the parameters.
        """
        if declared.kwonlyargs or declared.kwarg:
            raise NoDataError("a lambda with keyword-only arguments")
        plain = [*declared.posonlyargs, *declared.args]
        defaults = [Parameter.empty] * (len(plain) - len(declared.defaults)) + [*map(self.read, declared.defaults)]
        parameters = [
            Parameter(argument.arg, Parameter.POSITIONAL_OR_KEYWORD, default=value)
            for argument, value in zip(plain, defaults, strict=True)
        ]
        if declared.vararg:
            parameters.append(Parameter(declared.vararg.arg, Parameter.VAR_POSITIONAL))
        bound = Signature(parameters).bind(*positional, **named)
        bound.apply_defaults()
        return dict(bound.arguments)


def _measure(value: Any, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return the number of values and of nesting levels; `known` caches them for lists and dictionaries."""
    match value:
        case list() | tuple():
            parts = list(value)
        case dict():
            parts = [*value.keys(), *value.values()]
        case Skipped():
            parts = [value.value]
        case Generated():
            parts = list(value.parameters.values())
        case _:
            return 1, 0
    if id(value) not in known:
        extents = [_measure(part, known) for part in parts]
        known[id(value)] = 1 + sum(count for count, _ in extents), 1 + max((depth for _, depth in extents), default=0)
    return known[id(value)]


def _dotted_name(node: ast.expr) -> str:
    """Return `a.b.c` for a chain of names; raise NoDataError for any other expression."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{_dotted_name(value)}.{name}"
    raise NoDataError("a call of an expression that is not a name")


def _abbreviate(node: ast.AST) -> str:
    """Return the beginning of a piece of source code, at most 60 characters."""
    text = ast.unparse(node).partition("\n")[0]
    return text if len(text) <= 60 else f"{text[:59]}…"
