"""`Fault`: one way of going wrong, and `Answer`: the right results of a call, which a fault spoils."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_test.baseline import BaselineCase, Expected
from diopi_test.case import ResultOverride
from diopi_test.reference import bare, reference_of, wants_out
from lib_rt import Tensor
from lib_rt.dtypes import to_numpy

Array = NDArray[Any]
Results = dict[str, list[Array]]
"""Result arrays in their element types, by result name; one entry for a single tensor or number."""


@dataclass
class Answer:
    """A call that was answered right.

    Attributes:
        case: what was called with what.
        results: the right results; a fault changes them in place or puts others there.
    """

    case: BaselineCase
    results: Results

    @classmethod
    def right(cls, case: BaselineCase) -> Answer:
        """The answer the baseline expects."""
        return cls(case, {name: [_narrow(e) for e in _entries(value)] for name, value in case.expected.items()})

    @property
    def prototype(self) -> Prototype:
        """Of the function that was called."""
        return lookup(self.case.function)

    def arrays(self) -> Iterator[Array]:
        """All result arrays."""
        return (array for arrays in self.results.values() for array in arrays)

    def with_arguments(self, /, **changes: Any) -> Results | None:
        """The results for other arguments, by the reference; None if they have other shapes or are errors."""
        function = reference_of(self.case.function)
        if function is None:
            return None
        keywords = {"out": self._overrides()} if wants_out(function) else {}
        try:
            with np.errstate(all="ignore"):
                returned = function(**{**self.case.plain_arguments(), **changes}, **keywords)
            return self._as_results(returned)
        except Exception:  # arguments the standard has no answer to
            return None

    def _overrides(self) -> Any:
        overrides = [
            ResultOverride(entries[0].dtype, shape=entries[0].values.shape) if entries else None
            for entries in map(_entries, self.case.expected.values())
        ]
        return overrides[0] if len(overrides) == 1 else tuple(overrides)

    def _as_results(self, returned: Any) -> Results | None:
        values = (returned,) if len(self.case.expected) == 1 else tuple(returned)
        results: Results = {}
        for (name, expected), value in zip(self.case.expected.items(), values, strict=True):
            given = value if isinstance(value, list) else [value]
            wanted = _entries(expected)
            results[name] = [_converted(g, w) for g, w in zip(given, wanted, strict=True)] if wanted else []
            if any(g.shape != w.values.shape for g, w in zip(results[name], wanted, strict=True)):
                return None
        return results


@dataclass(frozen=True)
class Fault:
    """One way of going wrong.

    Attributes:
        name: for the kill matrix.
        spoil: changes an answer; False if this call can't show the fault.
        after: spoils the memory of the call's input and result tensors once the results are written; False likewise.
    """

    name: str
    spoil: Callable[[Answer], bool] = lambda answer: True
    after: Callable[[Sequence[Tensor], Sequence[Tensor]], bool] | None = None


def changed(before: Results, after: Results) -> bool:
    """Whether any bit of the results differs."""
    return any(
        one.tobytes() != other.tobytes()
        for name in before
        for one, other in zip(before[name], after[name], strict=True)
    )


def _entries(expected: Expected | list[Expected] | None) -> list[Expected]:
    if expected is None:
        return []
    return expected if isinstance(expected, list) else [expected]


def _narrow(expected: Expected) -> Array:
    with np.errstate(all="ignore"):
        return np.array(expected.values.astype(to_numpy(expected.dtype)))


def _converted(value: Any, expected: Expected) -> Array:
    with np.errstate(all="ignore"):
        return np.array(np.asarray(bare(value)).astype(to_numpy(expected.dtype)))
