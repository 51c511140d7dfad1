"""The functions and operators that an expression of a configuration may use, with limits for the size of the result."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

MAX_ENTRIES = 100_000
"""The maximum length of a list that an expression produces, because `[0] * 10**12` would exhaust the memory."""


class NoDataError(Exception):
    """An expression can't be evaluated; the message describes it."""


def _sequence(kind: type) -> Callable[..., Any]:
    """Return a safe version of the constructor `kind` (`list`, `tuple` …) that accepts at most one sequence."""

    def make(*arguments: Any) -> Any:
        if len(arguments) > 1 or not all(isinstance(argument, list | tuple | range | str) for argument in arguments):
            raise NoDataError(f"{kind.__name__}() of a value that is not a list")
        return kind(*arguments)

    return make


def _range(*bounds: Any) -> list[int]:
    """Return the list of a `range`; raise NoDataError if the bounds are not integers or the list would be too long."""
    if not all(type(bound) is int for bound in bounds) or not 1 <= len(bounds) <= 3:
        raise NoDataError("range() of values that are not integers")
    if len(numbers := range(*bounds)) > MAX_ENTRIES:
        raise NoDataError(f"more than {MAX_ENTRIES:,} numbers")
    return list(numbers)


def _float(text: Any) -> float:
    """Return a number or text converted as by `float()`; raise NoDataError for other values."""
    if not isinstance(text, str | int | float):
        raise NoDataError("float() of a value that is not a number")
    return float(text)


def _int(value: Any) -> int:
    """Return a number converted as by `int()`; raise NoDataError for other values."""
    if not isinstance(value, bool | int | float):
        raise NoDataError("int() of a value that is not a number")
    return int(value)


def _bool(value: Any = False) -> bool:
    """Return a constant or container converted as by `bool()`; raise NoDataError for other values."""
    if not isinstance(value, bool | int | float | str | list | tuple | dict | None):
        raise NoDataError("bool() of a value that is not a constant")
    return bool(value)


def _slice(*bounds: Any) -> slice:
    """Return a `slice` of one to three bounds; raise NoDataError if they are neither integers nor None."""
    if not 1 <= len(bounds) <= 3 or not all(bound is None or type(bound) is int for bound in bounds):
        raise NoDataError("slice() of values that are not integers")
    return slice(*bounds)


CALLS: Mapping[str, Callable[..., Any]] = {
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
"""The functions that an expression may call, in addition to Skip and Genfunc.NAME."""


BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
"""The operators that an expression may apply to two values, and the functions that compute them."""


def compute_operation(op: ast.operator, left_value: Any, right_value: Any) -> Any:
    """Return the result of an operation on numbers or lists; raise NoDataError for other operands and large results."""
    numbers = all(isinstance(operand, int | float) for operand in (left_value, right_value))
    lists = isinstance(op, ast.Add | ast.Mult) and all(
        isinstance(operand, list | tuple | int | str) for operand in (left_value, right_value)
    )
    if not numbers and not lists:
        raise NoDataError("arithmetic on values that are neither numbers nor lists")
    if numbers and isinstance(op, ast.Pow) and (abs(left_value) > MAX_ENTRIES or abs(right_value) > 64):
        raise NoDataError("a power that is too large")
    if isinstance(op, ast.Mult):
        length = max(
            (len(operand) for operand in (left_value, right_value) if not isinstance(operand, int | float)), default=0
        )
        count = max((operand for operand in (left_value, right_value) if isinstance(operand, int)), default=0)
        if length * count > MAX_ENTRIES:
            raise NoDataError(f"more than {MAX_ENTRIES:,} entries")
    return BINARY[type(op)](left_value, right_value)
