"""Compute a case: draw its data, evaluate the reference, and derive the error budget of each element.

*Plain* arguments are arguments as references take them: NumPy arrays in float64, complex128, int64 or bool for tensors,
and Python values for attributes. A *slot* is one array among the reference's results; a result that is an array of
tensors has several slots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import is_complex
from diopi_proto.facts import ComparedForEquality
from diopi_proto.implementations import takes_out
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOf, ResultOverride, Values
from diopi_test.cases.domains import random_generator
from diopi_test.oracle import overflow
from diopi_test.oracle.amplification import measure_amplification
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.data import TensorData, convert, convert_array, decode_masks, materialize, plain_values
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected
from diopi_test.oracle.reference import (
    AnyOf,
    Exact,
    PartlySpecified,
    Reference,
    WithTerms,
    find_reference,
    strip_remarks,
)
from diopi_test.oracle.repetition import repeat_results, shorten
from diopi_test.oracle.subnormals import flush_subnormals, has_subnormals
from lib_rt.dtypes import to_numpy
from lib_rt.formats import is_inexact

ExpectedByName = dict[str, Expected | list[Expected] | None]
"""The expected results by parameter name: a list for an array of tensors, None for a result that the case omits."""


def compute_baseline_case(prototype: Prototype, case: Case) -> BaselineCase:
    """Draw the data of `case`, evaluate the reference and derive the error budget of each element.

    Args:
        prototype: The prototype of the function.
        case: The case.

    Returns:
        The case with data and expected results.

    Raises:
        ValueError: The function has no reference, the reference returns a wrong number of results, or declared terms do
            not broadcast to the result.
    """
    if case.period:
        period = _build_case(prototype, shorten(case), Evaluation.expected_results)
        return repeat_results(period, draw_arguments(prototype, case))
    return _build_case(prototype, case, Evaluation.expected_results)


def draw_case_with_zeros(prototype: Prototype, case: Case) -> BaselineCase:
    """Draw the data of `case`, with expected results of the right shape and type whose elements are 0.

    This is faster than `compute_baseline_case`, which evaluates the reference about ten times instead of once.

    Args:
        prototype: The prototype of the function.
        case: The case.

    Returns:
        The case with data and zeros as expected results.

    Raises:
        ValueError: The function has no reference, or the reference returns a wrong number of results.
    """
    return _build_case(prototype, case, Evaluation.zero_results)


def _build_case(
    prototype: Prototype, case: Case, expected: Callable[[Evaluation, Mapping[str, Any]], ExpectedByName]
) -> BaselineCase:
    """Draw the arguments of `case`, compute its expected results with `expected`, and return the baseline case.

    Args:
        prototype: The prototype of the function.
        case: The case.
        expected: Returns the expected results by name, for an evaluation and the materialized arguments.

    Returns:
        The case with data and expected results.

    Raises:
        ValueError: The function has no reference.
    """
    function = find_reference(prototype.name)
    if function is None:
        raise ValueError(f"{prototype.name} has no reference")
    passed = _passed_arguments(prototype, case)
    evaluation = Evaluation(prototype, function, case)
    return BaselineCase(
        function=prototype.name,
        label=case.label,
        dtype=case.dtype,
        arguments={p.name: _to_baseline(passed[p.name]) for p in prototype.arguments},
        expected=expected(evaluation, decode_masks(prototype, passed)),
        smoke=case.smoke,
        case_class=case.case_class,
    )


def draw_arguments(prototype: Prototype, case: Case) -> dict[str, Any]:
    """Return the arguments of `case` by name; they are bit for bit the arguments that `compute_baseline_case` draws."""
    passed = _passed_arguments(prototype, case)
    return {p.name: _to_baseline(passed[p.name]) for p in prototype.arguments}


def _passed_arguments(prototype: Prototype, case: Case) -> dict[str, Any]:
    """Return the materialized arguments that are passed to the function, in the case's order.

    A case may have further values, from which only the data of other arguments is computed.
    """
    values = materialize(prototype, case, compute_result)
    names = {parameter.name for parameter in prototype.arguments}
    return {name: value for name, value in values.items() if name in names}


def compute_result(source: ResultOf, values: Values) -> NDArray[Any]:
    """Return the result that `source` refers to, for the values of the case's preceding arguments.

    Args:
        source: The function, the result, and how the function gets its arguments.
        values: The plain values of the preceding arguments, by name.

    Returns:
        The result without remarks. Unspecified elements have the value `source.unspecified` unless it is None.

    Raises:
        ValueError: The function has no reference.
        KeyError: The case has no preceding argument that the function needs.
    """
    prototype, reference = lookup(source.function), find_reference(source.function)
    if reference is None:
        raise ValueError(f"{source.function} has no reference")
    arguments = {
        p.name: source.extra_arguments[p.name]
        if p.name in source.extra_arguments
        else values[source.argument_names.get(p.name, p.name)]
        for p in prototype.arguments
    }
    defaults = (ResultOverride(),) * len(prototype.results)
    keywords = {"out": defaults[0] if len(defaults) == 1 else defaults} if takes_out(reference) else {}
    with np.errstate(all="ignore"):
        returned = reference(**arguments, **keywords)
    result = _results_by_name(prototype, returned)[source.result]
    array = np.asarray(strip_remarks(result))
    if not isinstance(result, PartlySpecified) or source.unspecified is None:
        return array
    return np.where(result.specified, array, source.unspecified)


def _results_by_name(prototype: Prototype, returned: Any) -> dict[str, Any]:
    """Return the values that a reference returned, by name.

    If the result is an array of tensors that the callee allocates, the names are those of its entries.
    """
    if isinstance(returned, list) and isinstance(prototype.result, Mapping):
        return dict(zip(prototype.result, returned, strict=True))
    values = (returned,) if len(prototype.results) == 1 else returned
    return dict(zip((p.name for p in prototype.results), values, strict=True))


@final
@dataclass(frozen=True)
class Evaluation:
    """The computation of a case's expected results from its argument values.

    Attributes:
        prototype: the prototype of the function.
        function: the reference of the function.
        case: the case.
    """

    prototype: Prototype
    function: Reference
    case: Case

    def zero_results(self, values: Mapping[str, Any]) -> ExpectedByName:
        """Return results of zeros by name, with the shapes and element types of the reference's results.

        Args:
            values: The materialized arguments by name.
        """
        outputs = self._call_reference(plain_values(values))
        return _unflatten(
            outputs, [self._zero_result(slot, self._result_dtype(slot, values)) for slot in _result_arrays(outputs)]
        )

    def _zero_result(self, slot: _ResultArray, dtype: Dtype) -> Expected:
        """Return the expected value of a result array with all elements 0, in the layout that the case chooses."""
        override = self.case.results.get(slot.name) or ResultOverride()
        return Expected(
            values=np.zeros(slot.array.shape, to_numpy(dtype)), dtype=dtype, layout=override.layout.__name__
        )

    def expected_results(self, values: Mapping[str, Any]) -> ExpectedByName:
        """Return the expected results by name, with error budgets and masks of the specified elements.

        Args:
            values: The materialized arguments by name.

        Raises:
            ValueError: The reference returns a wrong number of results, or terms that do not broadcast to the result.
        """
        dtypes = [
            self._result_dtype(slot, values) for slot in _result_arrays(self._call_reference(plain_values(values)))
        ]
        values = self._convert_arguments(values, dtypes)
        outputs = self._call_reference(plain_values(values))
        slots = _result_arrays(outputs)
        arrays = [slot.array for slot in slots]
        amplified = measure_amplification(
            partial(self.moved_arrays, plain_values(values)),
            values,
            arrays,
            dtypes,
            self.case.dtype,
            self._perturbation_generator,
        )
        flushed = self._flushed_arrays(values) or [None for _ in slots]
        expected_arrays = [
            self._expected_array(slot, dtype, amplify, flushed_array)
            for slot, dtype, amplify, flushed_array in zip(slots, dtypes, amplified, flushed, strict=True)
        ]
        if form := overflow.select_range_format(values, dtypes):
            in_range = overflow.evaluate_in_range(self.arrays, plain_values(values), form)
            expected_arrays = [
                _exclude_lost_elements(expected, flushed_array)
                for expected, flushed_array in zip(expected_arrays, in_range, strict=True)
            ]
        return _unflatten(outputs, expected_arrays)

    def _convert_arguments(self, values: Mapping[str, Any], results: Sequence[Dtype]) -> dict[str, Any]:
        """Return the arguments after the type conversions that the standard requires before the computation."""
        if not results:
            return dict(values)
        tensors = {name: value.spec.dtype for name, value in values.items() if isinstance(value, TensorData)}
        names, dtype = self.prototype.find_conversions(tensors, values, results[0])
        return {**values, **{name: _convert_value(values[name], dtype) for name in names}}

    def _call_reference(self, plain: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return (name, result) for each result of the reference; the result is None if the case omits it.

        Raises:
            ValueError: The reference returned a wrong number of results.
        """
        results = self.prototype.results
        overrides = tuple(self._known_override(p) for p in results)
        keywords = {"out": overrides[0] if len(overrides) == 1 else overrides} if takes_out(self.function) else {}
        with np.errstate(all="ignore"):
            returned = self.function(**plain, **keywords)
        values = (returned,) if len(results) == 1 else tuple(returned)
        if len(values) != len(results):
            raise ValueError(
                f"the reference of {self.prototype.name} returned {len(values)} results, not {len(results)}"
            )
        return [
            (p.name, value if override else None) for p, override, value in zip(results, overrides, values, strict=True)
        ]

    def _known_override(self, result: Parameter) -> ResultOverride | None:
        """Return the caller's choices for a result, as the reference gets them; None if the case omits the result.

        If the case does not choose the element type of a tensor, the type that the standard infers is entered.
        """
        override = self.case.results.get(result.name, ResultOverride())
        is_absent = self.case.arguments.get(result.name, override) is None  # an in-place result that the case omits
        if override is None or override.dtype is not None or is_absent or not result.is_tensor:
            return override
        inferred = self.prototype.infer(result.name, self.case.arguments, default=self.case.dtype)
        return replace(override, dtype=inferred)

    def _perturbation_generator(self) -> Generator:
        """Return a new generator for the perturbations; it has the same seed at every call."""
        return random_generator(self.prototype.base, self.case.label, "perturbation")

    def arrays(self, plain: Mapping[str, Any]) -> list[NDArray[Any]]:
        """Return the reference's result arrays for plain argument values, without absent results."""
        return [slot.array for slot in _result_arrays(self._call_reference(plain))]

    def moved_arrays(self, plain: Mapping[str, Any], moved: Mapping[str, Any]) -> list[NDArray[Any]]:
        """Return the reference's result arrays for inputs that were moved by a rounding error.

        Arguments that the function only compares for equality keep their values: an element that moved would not be
        equal to any other element.

        Args:
            plain: the argument values by name.
            moved: the moved argument values by name.
        """
        compared = {p.name for p in self.prototype.arguments if p.fact(ComparedForEquality)}
        return self.arrays({name: plain[name] if name in compared else value for name, value in moved.items()})

    def terms(self, plain: Mapping[str, Any]) -> list[NDArray[Any]]:
        """Return the terms of each result array that `WithTerms.terms` declares, without `stored`.

        Each array of terms has the shape of its result; the terms are 0 where the reference declares none.
        """
        return self.arrays_and_terms(plain)[1]

    def arrays_and_terms(self, plain: Mapping[str, Any]) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """Return the reference's result arrays and the terms of each one, from one evaluation; see `terms`."""
        slots = _result_arrays(self._call_reference(plain))
        return [slot.array for slot in slots], [slot.terms for slot in slots]

    def _flushed_arrays(self, values: Mapping[str, Any]) -> Sequence[NDArray[Any] | None] | None:
        """Return the result arrays for inputs whose subnormal numbers are flushed; None if no input is subnormal."""
        number_dtype = Dtype.float64 if self.case.dtype in (Dtype.float64, Dtype.complex128) else Dtype.float32
        if not any(has_subnormals(value, number_dtype) for value in values.values()):
            return None
        return self.arrays({name: flush_subnormals(value, number_dtype) for name, value in values.items()})

    def _result_dtype(self, slot: _ResultArray, values: Mapping[str, Any]) -> Dtype:
        """Return the element type of a result tensor: the type the caller chooses, or the type the standard infers."""
        override = self.case.results.get(slot.name)
        if override and override.dtype is not None:
            return override.dtype
        inferred = self.prototype.infer(slot.name, values, slot.number, default=self.case.dtype)
        assert inferred is not None
        return inferred

    def _expected_array(
        self, slot: _ResultArray, dtype: Dtype, amplified: NDArray[np.float64], flushed: NDArray[Any] | None
    ) -> Expected:
        """Return the expected result of an array, with an error budget unless the result must be exact.

        Args:
            slot: The result array.
            dtype: The element type of the array.
            amplified: s for each element.
            flushed: The array for inputs whose subnormal numbers are flushed to zero; None if no input is subnormal.
        """
        override = self.case.results.get(slot.name) or ResultOverride()
        inexact, guarantee = is_inexact(dtype), self.prototype.guarantee_of(slot.name, slot.number)
        values = _as_stored_numbers(slot.array, dtype)
        flushed_values = None if flushed is None else _as_stored_numbers(flushed, dtype)
        rounded = inexact and not self.case.is_exact(slot.name) and slot.is_rounded(guarantee)
        return Expected(
            values=values,
            dtype=dtype,
            layout=override.layout.__name__,
            budget=slot.derive_budget(values, dtype, amplified) if rounded else None,
            flushed=None
            if flushed_values is None or np.array_equal(values, flushed_values, equal_nan=inexact)
            else flushed_values,
            specified=slot.specified,
            needs_validator=isinstance(slot.output, AnyOf),
        )


def _exclude_lost_elements(expected: Expected, in_range: NDArray[Any]) -> Expected:
    """Return the expected result with the elements marked as unspecified that an intermediate overflow may destroy.

    A result about which a validator decides is returned unchanged.

    Args:
        expected: the expected result.
        in_range: the result of the reference when it computes within a range (`overflow.evaluate_in_range`).

    Returns:
        The expected result; the same object if no element is lost.
    """
    if expected.needs_validator:
        return expected
    lost = overflow.is_lost_to_overflow(
        expected.values, _as_stored_numbers(in_range, expected.dtype), expected.budget, expected.dtype
    )
    if not lost.any():
        return expected
    return replace(expected, specified=~lost if expected.specified is None else expected.specified & ~lost)


def _convert_value(value: Any, dtype: Dtype) -> Any:
    """Return a tensor or a number, converted to an element type.

    A tensor whose values all survive the conversion is returned unchanged, with its own element type.
    """
    if not isinstance(value, TensorData):
        return convert(value, dtype)
    numbers = convert_array(value.exact, dtype)
    with np.errstate(all="ignore"):
        back = (numbers if np.iscomplexobj(value.exact) else numbers.real).astype(value.exact.dtype)
    if np.array_equal(back, value.exact, equal_nan=is_inexact(value.spec.dtype)):
        return value
    return TensorData(numbers.astype(to_numpy(dtype)), replace(value.spec, dtype=dtype))


def _as_stored_numbers(array: NDArray[Any], dtype: Dtype) -> NDArray[Any]:
    """Convert a result to its stored form: integers and bool in type `dtype`, others in float64 or complex128.

    Integers wrap around, nonzero numbers become true, and a real tensor keeps only the real parts of complex numbers.

    Args:
        array: The result of the reference.
        dtype: The element type of the result.

    Returns:
        The numbers to store.
    """
    if np.iscomplexobj(array) and not is_complex(dtype) and dtype is not Dtype.bool:
        array = array.real
    if is_inexact(dtype):
        return array if np.iscomplexobj(array) else array.astype(np.float64)
    with np.errstate(all="ignore"):
        return array.astype(to_numpy(dtype))


@final
@dataclass(frozen=True)
class _ResultArray:
    """A result array of a reference.

    Attributes:
        name: the name of the result.
        number: the index of the array if the result is an array of tensors; else None.
        output: the array that the reference returned, possibly with remarks (`Remark`).
    """

    name: str
    number: int | None
    output: Any

    @property
    def array(self) -> NDArray[Any]:
        """Return the reference's values without remarks."""
        return np.asarray(strip_remarks(self.output))

    @property
    def terms(self) -> NDArray[Any]:
        """Return `WithTerms.terms` in the shape of the result; 0 if the reference declares no terms."""
        return np.broadcast_to(np.asarray(self._declared.terms, np.float64), self.array.shape)

    def derive_budget(self, values: NDArray[Any], dtype: Dtype, amplified: NDArray[np.float64]) -> Budget:
        """Return the budget of the result; raise ValueError if declared terms do not broadcast to the result.

        Args:
            values: The reference's values as they are stored.
            dtype: The element type of the result.
            amplified: s for each element.
        """
        declared, shape = self._declared, self.array.shape
        return Budget.derive(
            values,
            dtype,
            amplified,
            terms=np.broadcast_to(declared.terms, shape),
            stored=np.broadcast_to(declared.stored, shape),
            exact=np.broadcast_to(declared.exact, shape),
            is_sum=np.ndim(declared.terms) > 0 and not declared.signed,
        )

    @property
    def specified(self) -> NDArray[np.bool_] | None:
        """Return a mask of the elements that the standard specifies; None if it specifies all of them."""
        if not isinstance(self.output, PartlySpecified):
            return None
        specified = np.broadcast_to(np.asarray(self.output.specified, bool), self.array.shape)
        return None if specified.size and specified.all() else specified

    @property
    def _result(self) -> Any:
        """Return the output of the reference without the remark that some elements are unspecified."""
        return self.output.value if isinstance(self.output, PartlySpecified) else self.output

    @property
    def _declared(self) -> WithTerms:
        """Return the result with its declared terms, or with terms of 0."""
        return self._result if isinstance(self._result, WithTerms) else WithTerms(self._result, 0.0)

    def is_rounded(self, guarantee: str) -> bool:
        """Return whether the result may differ from the reference by its error budget.

        Args:
            guarantee: What the prototype guarantees about the result: `exact`, `rounded`, `any_of` or `random`.
        """
        exact = isinstance(self._result, Exact | AnyOf)
        return isinstance(self._result, WithTerms) or (guarantee == "rounded" and not exact)


def _result_arrays(outputs: Sequence[tuple[str, Any]]) -> list[_ResultArray]:
    """Return the slots of (name, result) pairs: flatten arrays of tensors, and skip results that are None."""
    return [
        _ResultArray(name, number, entry)
        for name, value in outputs
        for number, entry in (enumerate(value) if isinstance(value, list) else [(None, value)])
        if entry is not None
    ]


def _unflatten(outputs: Sequence[tuple[str, Any]], flat: Sequence[Expected]) -> ExpectedByName:
    """Return expected results by name, nested as in `outputs`.

    Args:
        outputs: (name, result) for each result of the reference.
        flat: The expected results of the slots of `outputs`, in order.
    """
    remaining = iter(flat)
    return {
        name: [next(remaining) for _ in value]
        if isinstance(value, list)
        else None
        if value is None
        else next(remaining)
        for name, value in outputs
    }


def _to_baseline(value: Any) -> Any:
    """Return an argument in its stored form: tensors become `BaselineTensor`, other values are unchanged."""
    if isinstance(value, list):
        return [_to_baseline(entry) for entry in value]
    if isinstance(value, TensorData):
        return BaselineTensor(value.values, value.spec.dtype, value.spec.layout.__name__)
    return value
