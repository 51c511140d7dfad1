"""Python source files as data: the expressions of a fixed list of forms, read by `ast`; nothing is executed."""

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

MOST_BYTES = 16 * 2**20
"""Bytes of a file at most."""

MOST_ENTRIES = 100_000
"""Entries of a list, and digits of a number, that an expression may make: `[0] * 10**12` is no configuration."""

MAX_VALUES = 1_000_000
"""Maximum number of values in an entry, or in what a name stands for, where each use of a name counts."""

MAX_DEPTH = 50
"""Maximum number of lists and dictionaries around a value."""


SKIP = "Skip"
"""The name of the class that marks values to skip, whatever module it comes from."""


class SourceError(ValueError):
    """A file is no Python source that can be read; the message says which, and why."""


@final
@dataclass(frozen=True)
class NotRead:
    """Stands for an expression that is not of the forms that are read."""

    line: int
    why: str


@final
@dataclass(frozen=True)
class Skipped:
    """`Skip(value)`: cases with this value are not run on a device."""

    line: int
    value: Any


@final
@dataclass(frozen=True)
class Generated:
    """`Genfunc.NAME`, or `Genfunc.NAME(…)`: how the values of a tensor are made."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class RawEntry:
    """An entry of a configuration: its name, its line, its content, and the name of the dictionary that has it."""

    name: str
    line: int
    content: Any
    dictionary: str = ""


@final
@dataclass(frozen=True)
class Source:
    """What a file says: the entries of its dictionaries of dictionaries, and statements that are no data."""

    entries: tuple[RawEntry, ...]
    not_read: tuple[NotRead, ...]


@final
@dataclass(frozen=True)
class _Alias:
    """A function of the file: another name of a known one, or a lambda that is read anew for each call.

    Attributes:
        function: The name of the known function, or the lambda.
        names: The names that the file had assigned before the lambda. Other lambdas are not among them, so that reading
            a call always ends.
    """

    function: str | ast.Lambda
    names: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_lambda(self) -> bool:
        """Whether this is a lambda of the file."""
        return isinstance(self.function, ast.Lambda)


class _NoDataError(Exception):
    """An expression is none of those that are read; the message says what it is."""


def read_source(path: Path) -> Source:
    """What a configuration file says; SourceError if it is none.

    An expression that can't be read is a `NotRead` in its place, so that it costs no more than its entry.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SourceError(f"{path}: it has more than {MOST_BYTES:,} bytes")
        tree = ast.parse(path.read_bytes())
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from error
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise SourceError(f"{path}: it is not Python source: {error}") from error
    reader = _Reader({})
    entries: list[RawEntry] = []
    not_read: list[NotRead] = []
    for statement in tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ):
                if value is not None:
                    entries += reader.entries(value, name)
                    reader.assign(name, value)
            case ast.ImportFrom(names=imported):
                renamed = {one.asname: _Alias(one.name) for one in imported if one.asname}
                reader.names.update({name: alias for name, alias in renamed.items() if alias.function == SKIP})
            case ast.Import() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                not_read.append(NotRead(statement.lineno, f"a statement that is no data: {_shown(statement)}"))
    return Source(tuple(entries), tuple(not_read))


def printable(text: str) -> str:
    """Text that every file and terminal takes: a source may have strings with surrogates and control characters."""
    shown = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
    return shown.encode("utf-8", "backslashreplace").decode()


def problems_in(value: Any) -> list[NotRead]:
    """What could not be read of a value, in order."""
    match value:
        case NotRead():
            return [value]
        case dict():
            return [one for entry in value.items() for part in entry for one in problems_in(part)]
        case list() | tuple():
            return [one for entry in value for one in problems_in(entry)]
        case Skipped():
            return problems_in(value.value)
        case Generated():
            return problems_in(dict(value.parameters))
    return []


_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
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
"""Names with a dot that have a meaning."""


def _sequence(kind: type) -> Callable[..., Any]:
    def make(*given: Any) -> Any:
        if len(given) > 1 or not all(isinstance(one, list | tuple | range | str) for one in given):
            raise _NoDataError(f"{kind.__name__}() of what is no list")
        return kind(*given)

    return make


def _range(*bounds: Any) -> list[int]:
    if not all(type(one) is int for one in bounds) or not 1 <= len(bounds) <= 3:
        raise _NoDataError("range() of what are no whole numbers")
    if len(numbers := range(*bounds)) > MOST_ENTRIES:
        raise _NoDataError(f"more than {MOST_ENTRIES:,} numbers")
    return list(numbers)


def _float(text: Any) -> float:
    if not isinstance(text, str | int | float):
        raise _NoDataError("float() of what is no number")
    return float(text)


def _int(value: Any) -> int:
    if not isinstance(value, bool | int | float):
        raise _NoDataError("int() of what is no number")
    return int(value)


def _bool(value: Any = False) -> bool:
    if not isinstance(value, bool | int | float | str | list | tuple | dict | None):
        raise _NoDataError("bool() of what is no constant")
    return bool(value)


def _slice(*bounds: Any) -> slice:
    if not 1 <= len(bounds) <= 3 or not all(one is None or type(one) is int for one in bounds):
        raise _NoDataError("slice() of what are no whole numbers")
    return slice(*bounds)


_CALLS: Mapping[str, Callable[..., Any]] = {
    "dict": dict,
    "list": _sequence(list),
    "tuple": _sequence(tuple),
    "range": _range,
    "float": _float,
    "int": _int,
    "bool": _bool,
    "slice": _slice,
    **{f"{module}.{name}": _sequence(list) for module in ("np", "numpy") for name in ("array", "asarray")},
    **{f"{module}.float{width}": _float for module in ("np", "numpy") for width in (16, 32, 64)},
}
"""The functions that may be called, besides Skip and Genfunc.NAME."""


@dataclass(frozen=True)
class _Reader:
    """Reads expressions.

    Attributes:
        names: The names that the file has assigned so far, and the arguments of the lambda that is being read.
        called_at: The line of the call of that lambda; None outside of lambdas.
        steps: Counts the elements of comprehensions, in the whole file.
    """

    names: dict[str, Any]
    called_at: int | None = None
    steps: Iterator[int] = field(default_factory=count)

    def assign(self, name: str, node: ast.expr) -> None:
        """Give a name to the value of an expression, or to a function."""
        match node:
            case ast.Lambda():
                known = {
                    key: one for key, one in self.names.items() if not isinstance(one, _Alias) or not one.is_lambda
                }
                self.names[name] = _Alias(node, known)
            case ast.Name(id=function) if function == SKIP or isinstance(self.names.get(function), _Alias):
                self.names[name] = self.names.get(function, _Alias(SKIP))
            case _:
                self.names[name] = self._limited(node)

    def entries(self, node: ast.expr, dictionary: str) -> list[RawEntry]:
        """Return the entries of a dictionary whose values are dictionaries; none of any other expression."""
        match node:
            case ast.Dict(keys=keys, values=values):
                pairs = [(self.read(key) if key else None, value) for key, value in zip(keys, values, strict=True)]
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                pairs = [(keyword.arg, keyword.value) for keyword in keywords]
            case _:
                return []
        read = [(key, value.lineno, self._limited(value)) for key, value in pairs if isinstance(key, str)]
        if all(isinstance(value, dict | NotRead) for _, _, value in read):  # nothing but entries
            read = [(key, line, {"": value} if isinstance(value, NotRead) else value) for key, line, value in read]
        return [
            RawEntry(printable(key), line, value, dictionary) for key, line, value in read if isinstance(value, dict)
        ]

    def _limited(self, node: ast.expr) -> Any:
        """Return the value of an expression, or a `NotRead` if it has too many values: names can double at each use."""
        value = self.read(node)
        count, depth = _extent(value, {})
        if count > MAX_VALUES or depth > MAX_DEPTH:
            why = f"more than {MAX_VALUES:,} values, or {MAX_DEPTH} levels"
            return NotRead(self._line_of(node), f"{why}: {_shown(node)}")
        return value

    def read(self, node: ast.expr) -> Any:
        """What an expression is; a `NotRead` if it is not of the forms that are read."""
        try:
            return self._read(node)
        except _NoDataError as error:
            return NotRead(self._line_of(node), f"{error}: {_shown(node)}")
        except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
            return NotRead(self._line_of(node), f"{type(error).__name__}: {_shown(node)}")

    def _line_of(self, node: ast.expr) -> int:
        return node.lineno if self.called_at is None else self.called_at

    def _read(self, node: ast.expr) -> Any:
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
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _BINARY:
                return _computed(op, self._read(left), self._read(right))
            case ast.Name(id=name) if name in self.names and not isinstance(self.names[name], _Alias):
                return self.names[name]
            case ast.Attribute():
                return self._constant(_dotted(node))
            case ast.Call(func=function, args=arguments, keywords=keywords):
                return self._called(self._line_of(node), _dotted(function), arguments, keywords)
            case ast.ListComp(elt=element, generators=[ast.comprehension(target=ast.Name(id=name), ifs=[]) as loop]):
                return [replace(self, names={**self.names, name: one}).read(element) for one in self._listed(loop.iter)]
        raise _NoDataError("an expression that is not read")

    def _listed(self, node: ast.expr) -> Iterator[Any]:
        """Yield what a comprehension runs over; _NoDataError if that is no list, or the file has too many elements."""
        listed = self._read(node)
        if not isinstance(listed, list | tuple):
            raise _NoDataError("a comprehension over what is no list")
        for one in listed:
            if next(self.steps) >= MOST_ENTRIES:
                raise _NoDataError(f"comprehensions with more than {MOST_ENTRIES:,} elements")
            yield one

    @staticmethod
    def _constant(name: str) -> Any:
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name.startswith("Genfunc."):
            return Generated(name.removeprefix("Genfunc."))
        raise _NoDataError("a name that is not known")

    def _called(self, line: int, name: str, given: list[ast.expr], keywords: list[ast.keyword]) -> Any:
        arguments = [self.read(one) for one in given]
        named = {one.arg: self.read(one.value) for one in keywords if one.arg is not None}
        if len(named) < len(keywords) or any(isinstance(one, ast.Starred) for one in given):
            raise _NoDataError("a call with arguments that are unpacked")
        match self.names.get(name):
            case _Alias(function=ast.Lambda() as function, names=known):
                values = self._bound(function.args, arguments, named)
                return replace(self, names={**known, **values}, called_at=line).read(function.body)
            case _Alias(function=str(function)):
                name = function
        if name.rpartition(".")[2] == SKIP and len(arguments) == 1 and not named:
            return Skipped(line, arguments[0])
        if name.startswith("Genfunc."):
            numbered = {str(number): one for number, one in enumerate(arguments)}
            return Generated(name.removeprefix("Genfunc."), {**numbered, **named})
        if name not in _CALLS or (named and name != "dict"):
            raise _NoDataError("a call that is not read")
        return _CALLS[name](*arguments, **named)

    def _bound(self, declared: ast.arguments, given: list[Any], named: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a lambda by name; TypeError if it does not take what is given."""
        if declared.kwonlyargs or declared.kwarg:
            raise _NoDataError("a lambda with keyword-only arguments")
        plain = [*declared.posonlyargs, *declared.args]
        defaults = [Parameter.empty] * (len(plain) - len(declared.defaults)) + [*map(self.read, declared.defaults)]
        parameters = [
            Parameter(one.arg, Parameter.POSITIONAL_OR_KEYWORD, default=value)
            for one, value in zip(plain, defaults, strict=True)
        ]
        if declared.vararg:
            parameters.append(Parameter(declared.vararg.arg, Parameter.VAR_POSITIONAL))
        bound = Signature(parameters).bind(*given, **named)
        bound.apply_defaults()
        return dict(bound.arguments)


def _extent(value: Any, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return the number of values and of levels; `known` has those of lists and dictionaries, which may be shared."""
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
        extents = [_extent(one, known) for one in parts]
        known[id(value)] = 1 + sum(count for count, _ in extents), 1 + max((depth for _, depth in extents), default=0)
    return known[id(value)]


def _computed(op: ast.operator, left: Any, right: Any) -> Any:
    """The result of an operation on numbers, or lists; _NoDataError if it would be too large."""
    numbers = all(isinstance(one, int | float) for one in (left, right))
    lists = isinstance(op, ast.Add | ast.Mult) and all(
        isinstance(one, list | tuple | int | str) for one in (left, right)
    )
    if not numbers and not lists:
        raise _NoDataError("arithmetic on what are no numbers or lists")
    if numbers and isinstance(op, ast.Pow) and (abs(left) > MOST_ENTRIES or abs(right) > 64):
        raise _NoDataError("a power that is too large")
    if isinstance(op, ast.Mult):
        length = max((len(one) for one in (left, right) if not isinstance(one, int | float)), default=0)
        count = max((one for one in (left, right) if isinstance(one, int)), default=0)
        if length * count > MOST_ENTRIES:
            raise _NoDataError(f"more than {MOST_ENTRIES:,} entries")
    return _BINARY[type(op)](left, right)


def _dotted(node: ast.expr) -> str:
    """`a.b.c` of a chain of names; _NoDataError of anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{_dotted(value)}.{name}"
    raise _NoDataError("a call of what is no name")


def _shown(node: ast.AST) -> str:
    """The beginning of a piece of source."""
    text = ast.unparse(node).partition("\n")[0]
    return text if len(text) <= 60 else f"{text[:59]}…"
