"""A mutant, the simulated call whose results it corrupts, and the effect of doing so."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_impl import Numerics
from diopi_proto.implementations import takes_out
from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Error
from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.records import BaselineCase, Expected, expected_arrays
from diopi_test.oracle.reference import Reference, find_reference, strip_remarks
from lib_rt import Tensor
from lib_rt.dtypes import from_numpy, to_numpy
from lib_rt.formats import is_inexact

Array = NDArray[Any]
Results = dict[str, list[Array]]
"""The result arrays in their element types, by result name; the list has one array for a single tensor or number."""


class Effect(Enum):
    """The effect of a mutant on a call."""

    not_applicable = "not_applicable"
    """The mutant does not apply to this call."""
    undefined = "undefined"
    """The standard defines no result for the mutated arguments."""
    equivalent = "equivalent"
    """The results are as correct as before."""
    changed = "changed"
    """A result is wrong."""


@final
@dataclass(kw_only=True)
class SimulatedCall:
    """A call with correct results, which a mutant corrupts.

    Attributes:
        case: the case that makes the call.
        results: the results by name. A mutant changes the arrays or replaces them. The vendor does not write results
            that are missing.
        layouts: the layouts of the results that the callee allocates, by name.
        earlier: the label of the case whose call cached the value that this call uses.
        error: the error code that the call returns; results are written only for `Success`.
        dtypes: the element types in which results are computed, by name, where they differ from the caller's.
        compute: computes the results from all arguments; by default the reference does.
        reference: replaces the function's own reference.
        prepare: changes the arguments of the reference, for example so that they carry an arithmetic.
    """

    case: BaselineCase
    results: Results
    layouts: dict[str, str] = field(default_factory=dict)
    earlier: str | None = None
    error: Error = Error.Success
    dtypes: Mapping[str, Dtype] = field(default_factory=dict)
    compute: Callable[[Mapping[str, Any]], Any] | None = None
    reference: Reference | None = None
    prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda arguments: arguments

    @classmethod
    def from_expected(cls, case: BaselineCase) -> SimulatedCall:
        """Return a call of the case with the results that the baseline expects."""
        entries = {name: expected_arrays(value) for name, value in case.expected.items()}
        allocated = [p.name for p in lookup(case.function).results if p.is_callee_allocated and entries[p.name]]
        results = {name: [_expected_array(entry) for entry in arrays] for name, arrays in entries.items()}
        return cls(case=case, results=results, layouts={name: entries[name][0].layout for name in allocated})

    @property
    def prototype(self) -> Prototype:
        """The prototype of the called function."""
        return lookup(self.case.function)

    def arrays(self) -> Iterator[Array]:
        """Return an iterator over all result arrays."""
        return (array for arrays in self.results.values() for array in arrays)

    def recompute(self, /, **changes: Any) -> Effect:
        """Replace the results with the results of changed arguments.

        If the shape of a result differs from the caller's tensor, the elements are repeated or truncated to fit.

        Args:
            **changes: the changed arguments by name.

        Returns:
            `undefined` if the reference raises an exception, because the standard defines no result for these
            arguments. The results then stay unchanged. Otherwise the effect that `replace_results` returns.
        """
        compute = self.compute or self.compute_reference
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # changed arguments and formulas may cause any warning
                results = self._convert_results(compute({**self.case.plain_arguments(), **changes}))
        except Exception:  # a reference may raise anything for arguments without a defined result
            return Effect.undefined
        return self.replace_results(results)

    def replace_results(self, results: Results) -> Effect:
        """Replace the results and return the effect.

        Args:
            results: the new results.

        Returns:
            `changed` if a shape or an element that the standard specifies changed, else `equivalent`.
        """
        is_changed = _shapes_by_name(self.results) != _shapes_by_name(results) or differ(
            self._specified_elements(self.results), self._specified_elements(results)
        )
        self.results = results
        return Effect.changed if is_changed else Effect.equivalent

    def _specified_elements(self, results: Results) -> Results:
        """Return the elements of the results that the standard specifies."""
        return {
            name: [
                array if expected.specified is None else array[expected.specified]
                for array, expected in zip(arrays, expected_arrays(self.case.expected[name]), strict=True)
            ]
            for name, arrays in results.items()
        }

    def compute_reference(self, arguments: Mapping[str, Any]) -> Any:
        """Return what the reference returns for these arguments, with the caller's shapes and types as its `out`."""
        function = self.reference or find_reference(self.case.function)
        assert function is not None, "a case has been made with it"
        return function(**self.prepare(arguments), **({"out": self._result_overrides()} if takes_out(function) else {}))

    def _result_overrides(self) -> Any:
        """Return the shapes and element types that the caller requests for the results."""
        overrides = [
            ResultOverride(self.dtypes.get(name, entries[0].dtype), shape=entries[0].values.shape) if entries else None
            for name, entries in ((name, expected_arrays(value)) for name, value in self.case.expected.items())
        ]
        return overrides[0] if len(overrides) == 1 else tuple(overrides)

    def _convert_results(self, returned: Any) -> Results:
        """Return the reference's results by name, converted to the expected element types."""
        values = (returned,) if len(self.case.expected) == 1 else tuple(returned)
        results: Results = {}
        for (name, expected), value in zip(self.case.expected.items(), values, strict=True):
            actual = value if isinstance(value, list) else [value]
            entries = expected_arrays(expected)
            is_allocated = name in self.layouts
            results[name] = (
                [_convert_result(a, e, is_allocated) for a, e in zip(actual, entries, strict=True)] if entries else []
            )
        return results


Corruption = Callable[[SimulatedCall], Effect]
"""Changes the results of a call and returns the effect."""


@final
@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A defect that the vendor under mutation testing has.

    Attributes:
        name: the name, unique within a function.
        corrupt: changes the results of a call.
        corrupt_memory: changes the memory of the call's input and result tensors after the results are written.
        kind: the kind, which the mutants with the same defect in different parameters share. If empty, `name` is the
            kind.
        parameter: the parameter that the mutant concerns, if any.
        generator_key: returns the key of the random numbers from the generator's seed, its offset and the number of
            calls.
        advance: by how much a draw advances the generator's offset.
        corrupt_repetition: changes the results of every call of a case but the first.
        writes_late: whether the vendor writes results only after the caller has synchronized the stream.
        make_caching: makes a function that replaces `corrupt` for a sequence of calls and caches their values.
        make_stride_caching: makes a function that caches strides; it also gets the tensors, by parameter name.
        is_permitted: returns whether a declared arithmetic permits the results of the mutant.
    """

    name: str
    corrupt: Corruption = lambda call: Effect.not_applicable
    corrupt_memory: Callable[[Sequence[Tensor], Sequence[Tensor]], Effect] | None = None
    kind: str = ""
    parameter: str | None = None
    generator_key: Callable[[int, int, int], tuple[int, ...]] | None = None
    advance: int = 1
    corrupt_repetition: Callable[[SimulatedCall], Effect] | None = None
    writes_late: bool = False
    make_caching: Callable[[], Corruption] | None = None
    make_stride_caching: Callable[[], Callable[[SimulatedCall, Mapping[str, Any]], Effect]] | None = None
    is_permitted: Callable[[Numerics], bool] = lambda numerics: False

    @property
    def needs_real_call(self) -> bool:
        """Whether only a call of the vendor can reveal the mutant, and not a comparison of results."""
        makers = self.corrupt_memory, self.corrupt_repetition, self.make_stride_caching
        return self.writes_late or any(maker is not None for maker in makers)

    @property
    def needs_earlier_call(self) -> bool:
        """Whether the mutant needs an earlier call, so that the order of calls matters."""
        return self.make_caching is not None or self.make_stride_caching is not None


def changed_if(is_changed: bool) -> Effect:
    """Return the effect `changed` if a result changed, else `not_applicable`."""
    return Effect.changed if is_changed else Effect.not_applicable


def _shapes_by_name(results: Results) -> Mapping[str, list[tuple[int, ...]]]:
    """Return the shapes of all result arrays by name."""
    return {name: [array.shape for array in arrays] for name, arrays in results.items()}


def differ(expected: Results, actual: Results) -> bool:
    """Return whether results differ in more than the payloads of NaNs and the rounding of the reference.

    The sign of a zero counts as a difference.

    Args:
        expected: the expected results.
        actual: the results to compare, with the same names and numbers of arrays.

    Returns:
        True if an array has another shape, or an element that differs.
    """
    return any(
        first.shape != second.shape or not _agree(first, second)
        for name in expected
        for first, second in zip(expected[name], actual[name], strict=True)
    )


def _agree(expected: Array, actual: Array) -> bool:
    """Return whether two arrays agree in all bits, or up to NaN payloads and the rounding of the reference."""
    if expected.tobytes() == actual.tobytes():
        return True
    if not is_float(expected):
        return False
    wide_dtype = np.complex128 if expected.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        first, second = expected.astype(wide_dtype), actual.astype(wide_dtype)
        largest = np.abs(first[np.isfinite(first)]).max(initial=0)
        is_near = np.isclose(first, second, rtol=0, atol=_REFERENCE_ROUNDING * largest, equal_nan=True)
    has_sign = np.isnan(first) | (np.signbit(first.real) == np.signbit(second.real))
    return bool((is_near & has_sign).all())


_REFERENCE_ROUNDING = 2.0**-50
"""The difference that counts as the reference's rounding in float64, relative to the largest expected element."""


def read_transposed(array: Array) -> Array:
    """Return the elements in the order of the array with its last two axes swapped, in the original shape."""
    return np.ascontiguousarray(np.swapaxes(array, -1, -2)).reshape(array.shape) if array.ndim >= 2 else array


def is_float(array: Array) -> bool:
    """Return whether an array's elements are floating-point or complex numbers."""
    return is_inexact(from_numpy(array.dtype))


def _expected_array(expected: Expected) -> Array:
    """Return the expected values in the element type of the result."""
    with np.errstate(all="ignore"):
        return np.array(expected.values.astype(to_numpy(expected.dtype)))


def _convert_result(value: Any, expected: Expected, is_allocated: bool) -> Array:
    """Return a reference's result with the expected element type, and with the expected shape.

    A result that the callee allocates keeps its shape.
    """
    with np.errstate(all="ignore"):
        array = np.array(np.asarray(strip_remarks(value)).astype(to_numpy(expected.dtype)))
    return array if is_allocated or array.shape == expected.values.shape else np.resize(array, expected.values.shape)
