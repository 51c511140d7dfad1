"""`DeclaredArray`: an array with which a reference computes in the arithmetic that a vendor declares.

NumPy's dispatch protocols (NEP 13 for ufuncs, NEP 18 for other functions) call this class for each operation on such an
array. The class computes the operation by the rule of the arithmetic if there is one, and as NumPy does otherwise. The
result carries the arithmetic to the next operation, so references need not know about arithmetics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

Operation = tuple[Any, str]
"""A ufunc and the name of one of its methods, such as `(np.add, "reduce")`, or another function and ""."""

Rule = Callable[[Callable[..., Any], list[Any], dict[str, Any]], Any]
"""Computes an operation with the errors of the arithmetic, from its function, its operands and its keywords.

A rule returns NotImplemented if the operation does not deviate for these operands.
"""


@final
@dataclass
class Arithmetic:
    """An arithmetic in one round: the rules of the operations that deviate from float64.

    Attributes:
        rules: the rule of each operation that deviates.
        is_used: whether a rule has computed an operation since the arithmetic was created.
    """

    rules: Mapping[Operation, Rule]
    is_used: bool = field(default=False, init=False)

    def compute(self, operation: Operation, function: Callable[..., Any], operands: list[Any], keywords: Any) -> Any:
        """Return the result of `operation`, computed by its rule if there is one, else by `function`.

        Operands are plain arrays. The result is NotImplemented if the rule does not apply to them. If the operation has
        a rule, the keyword `out` is removed from `keywords`, and the result is written to that array.
        """
        rule = self.rules.get(operation)
        if rule is None:
            return function(*operands, **keywords)
        targets = keywords.pop("out", None)
        result = rule(function, operands, keywords)
        self.is_used |= result is not NotImplemented
        if targets is None:
            return result
        targets[0][...] = result
        return targets[0]


class DeclaredArray(np.ndarray[Any, np.dtype[Any]]):
    """An array whose operations follow an arithmetic."""

    arithmetic: Arithmetic = Arithmetic({})

    def __array_finalize__(self, source: Any) -> None:
        self.arithmetic = getattr(source, "arithmetic", DeclaredArray.arithmetic)

    def __getitem__(self, index: Any) -> Any:
        """Return the selected elements; a single floating-point number is an array without axes."""
        return self._carry(super().__getitem__(index))

    def __round__(self, digits: int = 0) -> Any:
        """Return the only element rounded to an integer, or to `digits` decimal places if `digits` is not 0."""
        return round(self.item(), digits) if digits else round(self.item())

    def __pow__(self, exponent: Any, modulo: None = None) -> Any:
        """Return powers; NumPy would compute the exponent 0.5 as a square root, which has another declared error."""
        is_root = isinstance(exponent, float) and exponent == 0.5
        return np.power(self, exponent) if is_root else super().__pow__(exponent)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **keywords: Any) -> Any:
        """Compute a ufunc, or one of its methods, on the plain arrays."""
        plain = {name: strip_arithmetic(value) for name, value in keywords.items()}
        function = getattr(ufunc, method)
        result = self.arithmetic.compute((ufunc, method), function, list(map(strip_arithmetic, operands)), plain)
        return self._carry(result)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        """Compute a function by its rule; functions without a rule consist of ufuncs, or only move numbers."""
        if (function, "") in self.arithmetic.rules:
            operands = [strip_arithmetic(argument) for argument in arguments]
            result = self.arithmetic.compute((function, ""), function, operands, dict(keywords))
            if result is not NotImplemented:
                return self._carry(result)
        return self._carry(super().__array_function__(function, types, arguments, keywords))

    def _carry(self, result: Any) -> Any:
        """Return a floating-point or complex result as a `DeclaredArray`, also inside a list or tuple."""
        if type(result) in (tuple, list):
            return type(result)(self._carry(entry) for entry in result)
        if isinstance(result, DeclaredArray) or not isinstance(result, np.ndarray | np.floating | np.complexfloating):
            return result
        array = np.asarray(result)
        return carry(array, self.arithmetic) if array.dtype.kind in "fc" else result


def carry(array: Array, arithmetic: Arithmetic) -> DeclaredArray:
    """Return a view of an array that carries an arithmetic."""
    view = array.view(DeclaredArray)
    view.arithmetic = arithmetic
    return view


def strip_arithmetic(value: Any) -> Any:
    """Return a value with plain arrays in place of arrays that carry an arithmetic, also inside a list or tuple."""
    if type(value) in (tuple, list):
        return type(value)(strip_arithmetic(entry) for entry in value)
    return value.view(np.ndarray) if isinstance(value, DeclaredArray) else value
