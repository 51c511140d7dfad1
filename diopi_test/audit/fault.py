"""`Fault`: one way of going wrong; `Answer`: the right results of a call, which it spoils; `Effect`: what that did."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto import parameters as kinds
from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_test.baseline import BaselineCase, Expected, entries_of
from diopi_test.case import ResultOverride
from diopi_test.formats import is_inexact
from diopi_test.reference import Reference, bare, reference_of, wants_out
from lib_rt import Tensor
from lib_rt.dtypes import from_numpy, to_numpy

Array = NDArray[Any]
Results = dict[str, list[Array]]
"""Result arrays in their element types, by result name; one entry for a single tensor or number."""


class Effect(Enum):
    """What a fault does to a call."""

    absent = "absent"
    """There is nothing in this call that could go wrong so."""
    refused = "refused"
    """The standard has no answer to the arguments that were taken for those given."""
    same = "same"
    """The results are as right as before."""
    shown = "shown"
    """Something is wrong."""


@dataclass
class Answer:
    """A call that was answered right.

    Attributes:
        case: what was called with what.
        results: the right results; a fault changes them in place, or puts others there. One left out isn't written.
        layouts: of the results the callee makes, by name.
        compute: what makes the results from all arguments; by default the reference.
        reference: what stands for the function's own reference.
    """

    case: BaselineCase
    results: Results
    layouts: dict[str, str] = field(default_factory=dict)
    compute: Callable[[Mapping[str, Any]], Any] | None = None
    reference: Reference | None = None

    @classmethod
    def right(cls, case: BaselineCase) -> Answer:
        """The answer the baseline expects."""
        entries = {name: entries_of(value) for name, value in case.expected.items()}
        made = [p.name for p in lookup(case.function).results if p.annotation is kinds.NewOut and entries[p.name]]
        results = {name: [_narrow(entry) for entry in its] for name, its in entries.items()}
        return cls(case, results, {name: entries[name][0].layout for name in made})

    @property
    def prototype(self) -> Prototype:
        """Of the function that was called."""
        return lookup(self.case.function)

    def arrays(self) -> Iterator[Array]:
        """All result arrays."""
        return (array for arrays in self.results.values() for array in arrays)

    def answer_to(self, /, **changes: Any) -> Effect:
        """Become the answer to other arguments than were given.

        What has another size than the caller's tensor is written as far as it fits, over and over.
        """
        compute = self.compute or self._by_reference
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
                wrong = self._as_results(compute({**self.case.plain_arguments(), **changes}))
        except Exception:  # whatever a reference makes of arguments that have no answer
            return Effect.refused
        shown = differ(self._specified(self.results), self._specified(wrong))
        self.results = wrong
        return Effect.shown if shown else Effect.same

    def _specified(self, results: Results) -> Results:
        """The elements of results that the standard determines."""
        return {
            name: [
                array if one.specified is None else array[one.specified]
                for array, one in zip(arrays, entries_of(self.case.expected[name]), strict=True)
            ]
            for name, arrays in results.items()
        }

    def _by_reference(self, arguments: Mapping[str, Any]) -> Any:
        function = self.reference or reference_of(self.case.function)
        assert function is not None, "a case has been made with it"
        return function(**arguments, **({"out": self._overrides()} if wants_out(function) else {}))

    def _overrides(self) -> Any:
        overrides = [
            ResultOverride(entries[0].dtype, shape=entries[0].values.shape) if entries else None
            for entries in map(entries_of, self.case.expected.values())
        ]
        return overrides[0] if len(overrides) == 1 else tuple(overrides)

    def _as_results(self, returned: Any) -> Results:
        values = (returned,) if len(self.case.expected) == 1 else tuple(returned)
        results: Results = {}
        for (name, expected), value in zip(self.case.expected.items(), values, strict=True):
            given = value if isinstance(value, list) else [value]
            wanted = entries_of(expected)
            results[name] = (
                [_formed(g, w, name in self.layouts) for g, w in zip(given, wanted, strict=True)] if wanted else []
            )
        return results


@dataclass(frozen=True)
class Fault:
    """One way of going wrong.

    Attributes:
        name: unique within a function.
        spoil: changes an answer.
        after: spoils the memory of the call's input and result tensors once the results are written.
        kind: what faults of several parameters have in common; the name itself where there is but one.
        parameter: the parameter that is mistaken, if it is one.
        key: from the generator's seed and offset, and the number of calls, to what random numbers follow from.
        advance: by how much the generator's offset advances when numbers are drawn.
        again: changes the answers to the further calls of a case, the first of which is right.
        late: whether the caller's tensors are written once the stream has been waited for.
    """

    name: str
    spoil: Callable[[Answer], Effect] = lambda answer: Effect.absent
    after: Callable[[Sequence[Tensor], Sequence[Tensor]], Effect] | None = None
    kind: str = ""
    parameter: str | None = None
    key: Callable[[int, int, int], tuple[int, ...]] | None = None
    advance: int = 1
    again: Callable[[Answer], Effect] | None = None
    late: bool = False

    @property
    def is_of_calls(self) -> bool:
        """Whether only a call can show it, not an answer."""
        return self.after is not None or self.again is not None or self.late


def shown(is_shown: bool) -> Effect:
    """`shown` or `absent`."""
    return Effect.shown if is_shown else Effect.absent


def differ(right: Results, wrong: Results) -> bool:
    """Whether results differ in more than the payload of a NaN and the rounding of the reference."""
    return any(
        one.shape != other.shape or not _is_same(one, other)
        for name in right
        for one, other in zip(right[name], wrong[name], strict=True)
    )


def _is_same(right: Array, wrong: Array) -> bool:
    if right.tobytes() == wrong.tobytes():
        return True
    if not is_float(right):
        return False
    wide = np.complex128 if right.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        one, other = right.astype(wide), wrong.astype(wide)
        largest = np.abs(one[np.isfinite(one)]).max(initial=0)
        near = np.isclose(one, other, rtol=0, atol=_REFERENCE_ROUNDING * largest, equal_nan=True)
    signs = np.isnan(one) | (np.signbit(one.real) == np.signbit(other.real))
    return bool((near & signs).all())


_REFERENCE_ROUNDING = 2.0**-50
"""Of the largest element: what float64 loses when a product is computed in another order."""


def transposed(array: Array) -> Array:
    """The elements of the last two axes in the order of the transposed array, if there are two."""
    return np.ascontiguousarray(np.swapaxes(array, -1, -2)).reshape(array.shape) if array.ndim >= 2 else array


def is_float(array: Array) -> bool:
    """Whether an array's elements are floating or complex numbers."""
    return is_inexact(from_numpy(array.dtype))


def _narrow(expected: Expected) -> Array:
    with np.errstate(all="ignore"):
        return np.array(expected.values.astype(to_numpy(expected.dtype)))


def _formed(value: Any, expected: Expected, made: bool) -> Array:
    """A reference's result in the form of the caller's tensor; in its own if the callee makes the tensor."""
    with np.errstate(all="ignore"):
        array = np.array(np.asarray(bare(value)).astype(to_numpy(expected.dtype)))
    return array if made or array.shape == expected.values.shape else np.resize(array, expected.values.shape)
