"""Find places in references where the simulated arithmetic of a vendor would be lost.

To derive budgets for a declared arithmetic, the suite evaluates a reference with arrays of the type `DeclaredArray`.
Such an array *carries an arithmetic*: operations on it have the errors that the vendor declares. If a reference stores
results in an array that `np.zeros` or another creator returned, later operations on that array are exact, which is a
defect of the reference. `tests/diopi_test/oracle/arithmetic/test_tracking.py` therefore replaces the creators by
functions that return an `AssembledArray`, which reports such operations.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from diopi_test.oracle.arithmetic.array import DeclaredArray, Operation

CREATORS = ("array", "asarray", "ascontiguousarray", "empty", "full", "ones", "zeros")
"""The creators: functions of NumPy that return arrays without an arithmetic, even from arrays that carry one."""

Report = Callable[[str], None]
"""Receives the source line of an operation whose operand should carry an arithmetic but does not."""


class AssembledArray(np.ndarray[Any, np.dtype[Any]]):
    """An array without an arithmetic, which records whether results of declared arithmetic were stored in it.

    Attributes:
        has_results: whether elements were computed by operations on arrays that carry an arithmetic.
        operations: the operations that are reported if an operand has such elements.
        report: receives the source line of each such operation.
    """

    has_results: bool = False
    operations: frozenset[Operation] = frozenset()
    report: Report = staticmethod(lambda line: None)

    def __array_finalize__(self, source: Any) -> None:
        for name in ("has_results", "operations", "report"):
            setattr(self, name, getattr(source, name, getattr(AssembledArray, name)))

    def __setitem__(self, index: Any, value: Any) -> None:
        """Assign elements and record whether they are results of declared arithmetic."""
        super().__setitem__(index, value)
        if contains_results(value):
            self.mark()

    def mark(self) -> None:
        """Set `has_results` for this array and for the arrays of which it is a view."""
        array: Any = self
        while isinstance(array, AssembledArray):
            array.has_results, array = True, array.base

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **keywords: Any) -> Any:
        """Compute a ufunc; report it if an operand has results of declared arithmetic but carries no arithmetic."""
        plain = {name: without_record(value) for name, value in keywords.items()}
        result = getattr(ufunc, method)(*map(without_record, operands), **plain)
        targets = keywords.get("out") or ()
        for target in targets:
            if isinstance(target, AssembledArray) and contains_results(operands):
                target.mark()
        return targets[0] if targets else self._record((ufunc, method), operands, result)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        """Compute a function of NumPy that is not a ufunc; report it under the same condition as a ufunc."""
        plain = {name: without_record(value) for name, value in keywords.items()}
        result = function(*map(without_record, arguments), **plain)
        return self._record((function, ""), (*arguments, *keywords.values()), result)

    def _record(self, operation: Operation, operands: Any, result: Any) -> Any:
        """Report an operation if needed; return its result as an `AssembledArray` unless it carries an arithmetic."""
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
    """Return whether a value or one of its entries carries an arithmetic or has results of declared arithmetic."""
    if isinstance(value, tuple | list):
        return any(map(contains_results, value))
    return isinstance(value, DeclaredArray) or (isinstance(value, AssembledArray) and value.has_results)


def without_record(value: Any) -> Any:
    """Return a value with plain arrays in place of `AssembledArray`; arrays that carry an arithmetic are unchanged."""
    if type(value) in (tuple, list):
        return type(value)(map(without_record, value))
    return value.view(np.ndarray) if isinstance(value, AssembledArray) else value


def calling_line() -> str:
    """Return the file name and text of the innermost line on the stack that belongs to a reference; empty for none."""
    frames = (frame for frame in reversed(traceback.extract_stack()) if "oracle/reference" in frame.filename)
    frame = next(frames, None)
    return "" if frame is None else f"{Path(frame.filename).name}: {frame.line}"


def recording(creator: Callable[..., Any], operations: frozenset[Operation], report: Report) -> Callable[..., Any]:
    """Return a function that creates the same arrays as a creator, but as `AssembledArray` if they are floating-point.

    Args:
        creator: the function of NumPy.
        operations: the operations that the arrays report.
        report: receives the source lines.
    """

    def create(*arguments: Any, **keywords: Any) -> Any:
        array = creator(*map(without_record, arguments), **{k: without_record(v) for k, v in keywords.items()})
        if array.dtype.kind not in "fc":
            return array
        recorded = np.ndarray.view(array, AssembledArray)
        recorded.operations, recorded.report = operations, report
        recorded.has_results = contains_results(arguments)
        return recorded

    return create
