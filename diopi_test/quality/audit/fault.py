"""`Fault`: one kind of defect; `Answer`: the right results of a call, which it corrupts; `Effect`: of doing so."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Error
from diopi_test.baseline.records import BaselineCase, Expected, expected_arrays
from diopi_test.cases.formats import is_inexact
from diopi_test.cases.model import ResultOverride
from diopi_test.oracle.reference import Reference, find_reference, strip_remarks, takes_out
from lib_rt import Tensor
from lib_rt.dtypes import from_numpy, to_numpy

Array = NDArray[Any]
Results = dict[str, list[Array]]
"""Result arrays in their element types, by result name; one entry for a single tensor or number."""


class Effect(Enum):
    """What a fault does to a call."""

    absent = "absent"
    """The fault does not apply to this call."""
    refused = "refused"
    """The standard defines no result for the mistaken arguments."""
    same = "same"
    """The results are as right as before."""
    shown = "shown"
    """Something is wrong."""


@final
@dataclass
class Answer:
    """A call that was answered right.

    Attributes:
        case: what was called with what.
        results: the right results; a fault changes them in place, or puts others there. One left out isn't written.
        layouts: of the results the callee makes, by name.
        earlier: the label of the case whose call left something behind that is used for this one.
        error: what the call answers instead of results.
        dtypes: element types that results are mistaken for, by name, where they differ from the caller's.
        compute: computes the results from all arguments; by default the reference.
        reference: used in place of the function's own reference.
    """

    case: BaselineCase
    results: Results
    layouts: dict[str, str] = field(default_factory=dict)
    earlier: str | None = None
    error: Error = Error.Success
    dtypes: Mapping[str, Dtype] = field(default_factory=dict)
    compute: Callable[[Mapping[str, Any]], Any] | None = None
    reference: Reference | None = None

    @classmethod
    def right(cls, case: BaselineCase) -> Answer:
        """The answer the baseline expects."""
        entries = {name: expected_arrays(value) for name, value in case.expected.items()}
        made = [p.name for p in lookup(case.function).results if p.is_callee_allocated and entries[p.name]]
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
        """Replace the results by those for other arguments than were given.

        What has another size than the caller's tensor is written as far as it fits, over and over.
        """
        compute = self.compute or self.by_reference
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
                wrong = self._as_results(compute({**self.case.plain_arguments(), **changes}))
        except Exception:  # a reference may raise anything for arguments without a defined result
            return Effect.refused
        return self.become(wrong)

    def become(self, wrong: Results) -> Effect:
        """Have other results of the same forms."""
        is_shown = _shapes(self.results) != _shapes(wrong) or differ(
            self._specified(self.results), self._specified(wrong)
        )
        self.results = wrong
        return Effect.shown if is_shown else Effect.same

    def _specified(self, results: Results) -> Results:
        """The elements of results that the standard determines."""
        return {
            name: [
                array if one.specified is None else array[one.specified]
                for array, one in zip(arrays, expected_arrays(self.case.expected[name]), strict=True)
            ]
            for name, arrays in results.items()
        }

    def by_reference(self, arguments: Mapping[str, Any]) -> Any:
        """What the reference gives for these arguments, in the forms of the caller's tensors."""
        function = self.reference or find_reference(self.case.function)
        assert function is not None, "a case has been made with it"
        return function(**arguments, **({"out": self._overrides()} if takes_out(function) else {}))

    def _overrides(self) -> Any:
        overrides = [
            ResultOverride(self.dtypes.get(name, entries[0].dtype), shape=entries[0].values.shape) if entries else None
            for name, entries in ((name, expected_arrays(value)) for name, value in self.case.expected.items())
        ]
        return overrides[0] if len(overrides) == 1 else tuple(overrides)

    def _as_results(self, returned: Any) -> Results:
        values = (returned,) if len(self.case.expected) == 1 else tuple(returned)
        results: Results = {}
        for (name, expected), value in zip(self.case.expected.items(), values, strict=True):
            given = value if isinstance(value, list) else [value]
            wanted = expected_arrays(expected)
            results[name] = (
                [_formed(g, w, name in self.layouts) for g, w in zip(given, wanted, strict=True)] if wanted else []
            )
        return results


Corruption = Callable[[Answer], Effect]
"""Changes an answer, and says what that did."""


@final
@dataclass(frozen=True)
class Fault:
    """One kind of defect.

    Attributes:
        name: unique within a function.
        corrupt: changes an answer.
        after: corrupts the memory of the call's input and result tensors once the results are written.
        kind: shared by the same fault of several parameters; the name itself where there is only one.
        parameter: the parameter that is mistaken, if it is one.
        key: from the generator's seed and offset and the number of calls to what random numbers are drawn with.
        advance: by how much the generator's offset advances when numbers are drawn.
        again: changes the answers to the further calls of a case, the first of which is right.
        late: whether the caller's tensors are written once the stream has been waited for.
        keep: makes a function used in place of `corrupt` for one sequence of calls, which remembers them.
        read: makes the same of calls whose tensors are looked at, by the names of their parameters.
    """

    name: str
    corrupt: Corruption = lambda answer: Effect.absent
    after: Callable[[Sequence[Tensor], Sequence[Tensor]], Effect] | None = None
    kind: str = ""
    parameter: str | None = None
    key: Callable[[int, int, int], tuple[int, ...]] | None = None
    advance: int = 1
    again: Callable[[Answer], Effect] | None = None
    late: bool = False
    keep: Callable[[], Corruption] | None = None
    read: Callable[[], Callable[[Answer, Mapping[str, Any]], Effect]] | None = None

    @property
    def is_of_calls(self) -> bool:
        """Whether only a real call can show it, not a corrupted answer."""
        return self.after is not None or self.again is not None or self.late or self.read is not None

    @property
    def is_of_sequences(self) -> bool:
        """Whether an earlier call is needed to show it, so that the order of calls matters."""
        return self.keep is not None or self.read is not None


def shown(is_shown: bool) -> Effect:
    """`shown` or `absent`."""
    return Effect.shown if is_shown else Effect.absent


def _shapes(results: Results) -> Mapping[str, list[tuple[int, ...]]]:
    return {name: [array.shape for array in arrays] for name, arrays in results.items()}


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
"""Relative to the largest element: the rounding of float64 when a product is computed in another order."""


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
        array = np.array(np.asarray(strip_remarks(value)).astype(to_numpy(expected.dtype)))
    return array if made or array.shape == expected.values.shape else np.resize(array, expected.values.shape)
