"""Arrays that references create without an arithmetic, and that report operations on results assembled in them.

`np.zeros` creates such an array. After the assignment of a number that carries an arithmetic, its elements are results.
The array itself has no arithmetic, so that a quotient of it would not have the declared error of divisions.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from diopi_test.oracle.arithmetic.array import DeclaredArray, Operation

CREATORS = ("array", "asarray", "ascontiguousarray", "empty", "full", "ones", "zeros")
"""Functions of NumPy that return arrays without an arithmetic."""

Report = Callable[[str], None]
"""Receives the source line of an operation on a result whose arithmetic is lost."""


class AssembledArray(np.ndarray[Any, np.dtype[Any]]):
    """An array without an arithmetic.

    Attributes:
        has_results: whether elements are results of operations that carry an arithmetic.
        operations: the operations that are reported.
        report: receives the source lines of such operations.
    """

    has_results: bool = False
    operations: frozenset[Operation] = frozenset()
    report: Report = staticmethod(lambda line: None)

    def __array_finalize__(self, source: Any) -> None:
        for name in ("has_results", "operations", "report"):
            setattr(self, name, getattr(source, name, getattr(AssembledArray, name)))

    def __setitem__(self, index: Any, value: Any) -> None:
        """Assign elements."""
        super().__setitem__(index, value)
        if contains_results(value):
            self.mark()

    def mark(self) -> None:
        """Record that the array, and the arrays of which it is a view, contain results."""
        array: Any = self
        while isinstance(array, AssembledArray):
            array.has_results, array = True, array.base

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **keywords: Any) -> Any:
        """Compute a ufunc; report it if it deviates in an arithmetic that no operand carries."""
        plain = {name: without_record(value) for name, value in keywords.items()}
        result = getattr(ufunc, method)(*map(without_record, operands), **plain)
        targets = keywords.get("out") or ()
        for target in targets:
            if isinstance(target, AssembledArray) and contains_results(operands):
                target.mark()
        return targets[0] if targets else self._record((ufunc, method), operands, result)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        """Compute another function of NumPy, and report it likewise."""
        plain = {name: without_record(value) for name, value in keywords.items()}
        result = function(*map(without_record, arguments), **plain)
        return self._record((function, ""), (*arguments, *keywords.values()), result)

    def _record(self, operation: Operation, operands: Any, result: Any) -> Any:
        """Return the result of an operation, as a recording array if no operand carries an arithmetic."""
        if type(result) in (tuple, list):
            return type(result)(self._record(operation, operands, entry) for entry in result)
        if isinstance(result, DeclaredArray) or not isinstance(result, np.ndarray | np.floating):
            return result
        if contains_results(operands) and operation in self.operations:
            self.report(calling_line())
        recorded = np.asarray(result).view(AssembledArray)
        recorded.__array_finalize__(self)
        recorded.has_results = contains_results(operands)
        return recorded


def contains_results(value: Any) -> bool:
    """Return whether a value, or an entry of it, carries an arithmetic or has results of operations that do."""
    if isinstance(value, tuple | list):
        return any(map(contains_results, value))
    return isinstance(value, DeclaredArray) or (isinstance(value, AssembledArray) and value.has_results)


def without_record(value: Any) -> Any:
    """Return a value with plain arrays in place of recording arrays; arrays that carry an arithmetic are unchanged."""
    if type(value) in (tuple, list):
        return type(value)(map(without_record, value))
    return value.view(np.ndarray) if isinstance(value, AssembledArray) else value


def calling_line() -> str:
    """Return the innermost source line of a reference on the stack."""
    frames = (frame for frame in reversed(traceback.extract_stack()) if "oracle/reference" in frame.filename)
    frame = next(frames, None)
    return "" if frame is None else f"{Path(frame.filename).name}: {frame.line}"


def recording(creator: Callable[..., Any], operations: frozenset[Operation], report: Report) -> Callable[..., Any]:
    """Return a function of `CREATORS` that creates recording arrays."""

    def create(*arguments: Any, **keywords: Any) -> Any:
        array = creator(*map(without_record, arguments), **{k: without_record(v) for k, v in keywords.items()})
        if array.dtype.kind not in "fc":
            return array
        recorded = np.ndarray.view(array, AssembledArray)
        recorded.operations, recorded.report = operations, report
        recorded.has_results = contains_results(arguments)
        return recorded

    return create
