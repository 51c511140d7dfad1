"""`BaselineCase`: a case with its data, expected results and budgets; `make_baseline_case` computes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto import parameters as kinds
from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test import budget
from diopi_test.case import Case, ResultOverride
from diopi_test.data import TensorData, generator, is_mask, materialise, plain_values, widen, with_masks
from diopi_test.formats import is_inexact
from diopi_test.reference import Exact, Judged, PartlySpecified, Reference, WithTerms, bare, reference_of, wants_out
from lib_rt.dtypes import to_numpy


@dataclass(frozen=True)
class BaselineTensor:
    """A tensor argument as it is handed to a vendor: exact values in its element type, and its layout's name."""

    values: NDArray[Any]
    dtype: Dtype
    layout: str


@dataclass(frozen=True)
class Expected:
    """What a result must be.

    Attributes:
        values: the reference's result, wider than `dtype`; exact where `blur` is None.
        dtype, layout: of the result tensor.
        blur: budget of each element in units of its ulp, before K; None where the result must be exact.
        flushed: the reference's result if subnormal inputs are taken for zero, where that differs.
        specified: which elements the standard specifies; None where it is all of them.
        judged: whether `values` is one of several right results, so that its meaning decides and not equality.
    """

    values: NDArray[Any]
    dtype: Dtype
    layout: str = "contiguous"
    blur: NDArray[np.floating] | None = None
    flushed: NDArray[Any] | None = None
    specified: NDArray[np.bool_] | None = None
    judged: bool = False


def tensors_in(value: Any) -> list[BaselineTensor]:
    """The tensors in one argument of a case: none, one, or those of an array of tensors."""
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, BaselineTensor)]


def entries_of(expected: Expected | list[Expected] | None) -> list[Expected]:
    """The expected arrays of one result: none, one, or those of an array of tensors."""
    if expected is None:
        return []
    return expected if isinstance(expected, list) else [expected]


@dataclass(frozen=True)
class BaselineCase:
    """A complete case: `arguments` by name (BaselineTensor, list of them, None, attribute), `expected` by name.

    An entry of `expected` is None for a result tensor the caller leaves out, a list for an array of results. `smoke`
    tells the cases of the smoke level, which are called more than once.
    """

    function: str
    label: str
    dtype: Dtype
    arguments: Mapping[str, Any]
    expected: Mapping[str, Expected | list[Expected] | None]
    smoke: bool = False

    @property
    def id(self) -> str:
        """`function[label]`."""
        return f"{self.function}[{self.label}]"

    def plain_arguments(self) -> dict[str, Any]:
        """The arguments as the reference takes them."""
        return {name: self._plain(name, value) for name, value in self.arguments.items()}

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._plain(name, entry) for entry in value]
        if not isinstance(value, BaselineTensor):
            return value
        if is_mask(lookup(self.function), name, value.dtype):
            return value.values != 0
        return widen(value.values, value.dtype)


def make_baseline_case(prototype: Prototype, case: Case) -> BaselineCase:
    """Draw the data of `case`, compute the reference and derive every budget.

    Raises ValueError when the function has no reference or the reference returns something else than its results.
    """
    function = reference_of(prototype.name)
    if function is None:
        raise ValueError(f"{prototype.name} has no reference")
    values = {name: value for name, value in materialise(prototype, case).items()}
    passed = {name: value for name, value in values.items() if not name.startswith("_")}
    evaluation = Evaluation(prototype, function, case)
    return BaselineCase(
        prototype.name,
        case.label,
        case.dtype,
        {p.name: _stored(passed[p.name]) for p in prototype.arguments},
        evaluation.expected(with_masks(prototype, passed)),
        case.smoke,
    )


@dataclass(frozen=True)
class Evaluation:
    """One case's way from argument values to expected results."""

    prototype: Prototype
    function: Reference
    case: Case

    def expected(self, values: Mapping[str, Any]) -> dict[str, Expected | list[Expected] | None]:
        """The expected results by name."""
        outputs = self._run(plain_values(values))
        slots = _slots(outputs)
        arrays = [slot.array for slot in slots]
        dtypes = [self._dtype(slot, values) for slot in slots]
        amplified = budget.amplification(self.arrays, values, arrays, dtypes, self.case.dtype, self._seed)
        flushed = self._flushed(values) or [None for _ in slots]
        flat = [
            self._one(slot, dtype, amplify, other)
            for slot, dtype, amplify, other in zip(slots, dtypes, amplified, flushed, strict=True)
        ]
        return _unflatten(outputs, flat)

    def _run(self, plain: Mapping[str, Any]) -> list[tuple[str, Any]]:
        results = self.prototype.results
        overrides = tuple(self.case.results.get(p.name, ResultOverride()) for p in results)
        keywords = {"out": overrides[0] if len(overrides) == 1 else overrides} if wants_out(self.function) else {}
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

    def _seed(self) -> Generator:
        return generator(self.prototype.base, self.case.label, "perturbation")

    def arrays(self, plain: Mapping[str, Any]) -> list[NDArray[Any]]:
        """The reference's results for argument values as it takes them, those the caller leaves out not among them."""
        return [slot.array for slot in _slots(self._run(plain))]

    def _flushed(self, values: Mapping[str, Any]) -> Sequence[NDArray[Any] | None] | None:
        if not any(budget.has_subnormals(value) for value in values.values()):
            return None
        return self.arrays({name: budget.flushed(value) for name, value in values.items()})

    def _dtype(self, slot: _Slot, values: Mapping[str, Any]) -> Dtype:
        """The element type of one result tensor; one updated in place keeps its own."""
        override = self.case.results.get(slot.name)
        if override and override.dtype is not None:
            return override.dtype
        held = values.get(slot.name)
        held = held[slot.number] if isinstance(held, list) and slot.number is not None else held
        if isinstance(held, TensorData):
            return held.spec.dtype
        scalars = [values[p.name] for p in self.prototype.arguments if issubclass(p.annotation, kinds.Scalar)]
        return self.prototype.result_dtype(slot.name, self._input_dtypes(slot, values), scalars)

    def _input_dtypes(self, slot: _Slot, values: Mapping[str, Any]) -> list[Dtype]:
        """What the result's type follows from: the entry of its own number, for an array of results."""
        arguments = [values[p.name] for p in self.prototype.arguments]
        lists = [value for value in arguments if isinstance(value, list)]
        if slot.number is not None and lists and len(lists[0]) > slot.number:
            tensors = [lists[0][slot.number]]
        else:
            tensors = [value for value in arguments if isinstance(value, TensorData)] or [
                e for v in lists for e in v if e
            ]
        return [tensor.spec.dtype for tensor in tensors] or [self.case.dtype]

    def _one(self, slot: _Slot, dtype: Dtype, amplified: NDArray[np.float64], flushed: NDArray[Any] | None) -> Expected:
        override = self.case.results.get(slot.name) or ResultOverride()
        inexact = is_inexact(dtype)
        values = _float(slot.array) if inexact else _wrapped(slot.array, dtype)
        other = None if flushed is None else _float(flushed) if inexact else _wrapped(flushed, dtype)
        rounded = inexact and not self.case.exact and slot.is_rounded(self.prototype.promise)
        if rounded and slot.is_sum:
            amplified = budget.with_unsigned_zeros(values, amplified, dtype)
        return Expected(
            values,
            dtype,
            override.layout.__name__,
            budget.blur(values, amplified, slot.terms, slot.stored, dtype) if rounded else None,
            None if other is None or np.array_equal(values, other, equal_nan=inexact) else other,
            slot.specified,
            isinstance(slot.output, Judged),
        )


def _float(array: NDArray[Any]) -> NDArray[Any]:
    return array if np.iscomplexobj(array) else array.astype(np.float64)


def _wrapped(array: NDArray[Any], dtype: Dtype) -> NDArray[Any]:
    """An exact result in its own integer type; integers wrap around, anything nonzero is true."""
    with np.errstate(all="ignore"):
        return array.astype(to_numpy(dtype))


@dataclass(frozen=True)
class _Slot:
    """One result array: the result it belongs to, and its number if that is an array of tensors."""

    name: str
    number: int | None
    output: Any

    @property
    def array(self) -> NDArray[Any]:
        """The reference's values."""
        return np.asarray(bare(self.output))

    @property
    def terms(self) -> Any:
        """The declared intermediate terms; ValueError if they do not broadcast to the result."""
        return np.broadcast_to(self._declared.terms, self.array.shape)

    @property
    def stored(self) -> Any:
        """Those that are stored in the result's type; ValueError if they do not broadcast to the result."""
        return np.broadcast_to(self._declared.stored, self.array.shape)

    @property
    def is_sum(self) -> bool:
        """Whether terms are declared that the result is a sum of, so that its zeros have no sign."""
        return np.ndim(self._declared.terms) > 0 and not self._declared.signed

    @property
    def specified(self) -> NDArray[np.bool_] | None:
        """Where the standard specifies the result, if not everywhere."""
        if not isinstance(self.output, PartlySpecified):
            return None
        return np.broadcast_to(np.asarray(self.output.specified, bool), self.array.shape)

    @property
    def _result(self) -> Any:
        return self.output.value if isinstance(self.output, PartlySpecified) else self.output

    @property
    def _declared(self) -> WithTerms:
        """The result with the terms that are declared; without any where none are."""
        return self._result if isinstance(self._result, WithTerms) else WithTerms(self._result, 0.0)

    def is_rounded(self, promise: str) -> bool:
        """Whether the result may differ from the reference by its budget."""
        exact = isinstance(self._result, Exact | Judged)
        return isinstance(self._result, WithTerms) or (promise == "rounded" and not exact)


def _slots(outputs: Sequence[tuple[str, Any]]) -> list[_Slot]:
    """The arrays among reference outputs, arrays of tensors spread out, absent results left out."""
    return [
        _Slot(name, number, entry)
        for name, value in outputs
        for number, entry in (enumerate(value) if isinstance(value, list) else [(None, value)])
        if entry is not None
    ]


def _unflatten(
    outputs: Sequence[tuple[str, Any]], flat: Sequence[Expected]
) -> dict[str, Expected | list[Expected] | None]:
    """The expectations by result name, shaped as the outputs were."""
    remaining = iter(flat)
    return {
        name: [next(remaining) for _ in value]
        if isinstance(value, list)
        else None
        if value is None
        else next(remaining)
        for name, value in outputs
    }


def _stored(value: Any) -> Any:
    if isinstance(value, list):
        return [_stored(entry) for entry in value]
    if isinstance(value, TensorData):
        return BaselineTensor(value.values, value.spec.dtype, value.spec.layout.__name__)
    return value
