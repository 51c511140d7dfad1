"""`BaselineCase`: a case with its data, expected results and budgets; `make_baseline_case` computes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test import budget
from diopi_test.case import Case, ResultOverride
from diopi_test.data import TensorData, generator, materialise, plain_values
from diopi_test.formats import is_inexact
from diopi_test.reference import Reference, WithTerms, reference_of
from lib_rt.dtypes import numpy_dtype


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
    """

    values: NDArray[Any]
    dtype: Dtype
    layout: str = "contiguous"
    blur: NDArray[np.float32] | None = None
    flushed: NDArray[Any] | None = None


@dataclass(frozen=True)
class BaselineCase:
    """A complete case: `arguments` by name (BaselineTensor, list of them, None, attribute), `expected` by name.

    An entry of `expected` is None for a result tensor the caller leaves out, a list for an array of results.
    """

    function: str
    label: str
    dtype: Dtype
    arguments: Mapping[str, Any]
    expected: Mapping[str, Expected | list[Expected] | None]

    @property
    def id(self) -> str:
        """`function[label]`."""
        return f"{self.function}[{self.label}]"


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
        evaluation.expected(passed),
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
        arrays, terms, slots = _flatten(outputs)
        rng = generator(self.prototype.base, self.case.label, "perturbation")
        amplified = budget.amplification(self._arrays, values, arrays, self.case.dtype, rng)
        flushed = self._flushed(values)
        dtypes = self._result_dtypes(values)
        flat = [
            self._one(dtypes[name], override, array, amplify, term, flush)
            for (name, override), array, amplify, term, flush in zip(
                ((name, self.case.results.get(name, ResultOverride())) for name in slots),
                arrays,
                amplified,
                terms,
                flushed or [None] * len(arrays),
                strict=True,
            )
        ]
        return _unflatten(self.prototype.results, outputs, flat)

    def _run(self, plain: Mapping[str, Any]) -> list[tuple[str, Any]]:
        with np.errstate(all="ignore"):
            returned = self.function(**plain)
        results = self.prototype.results
        values = (returned,) if len(results) == 1 else tuple(returned)
        if len(values) != len(results):
            raise ValueError(f"the reference of {self.prototype.name} returned {len(values)} results, not {len(results)}")
        return [(p.name, value) for p, value in zip(results, values, strict=True)]

    def _arrays(self, plain: Mapping[str, Any]) -> list[NDArray[Any]]:
        return _flatten(self._run(plain))[0]

    def _flushed(self, values: Mapping[str, Any]) -> list[NDArray[Any]] | None:
        if not any(budget.has_subnormals(value) for value in values.values()):
            return None
        return self._arrays({name: budget.flushed(value) for name, value in values.items()})

    def _result_dtypes(self, values: Mapping[str, Any]) -> dict[str, Dtype]:
        tensors = [values[p.name] for p in self.prototype.arguments if isinstance(values[p.name], TensorData)]
        if not tensors:
            tensors = [entry for value in values.values() if isinstance(value, list) for entry in value if entry is not None]
        inputs = [tensor.spec.dtype for tensor in tensors]
        return {p.name: self._result_dtype(p, inputs, values) for p in self.prototype.results}

    def _result_dtype(self, result: Parameter, inputs: Sequence[Dtype], values: Mapping[str, Any]) -> Dtype:
        override = self.case.results.get(result.name)
        if override and override.dtype is not None:
            return override.dtype
        held = values.get(result.name)
        if isinstance(held, TensorData):  # a tensor updated in place keeps its type
            return held.spec.dtype
        return self.prototype.result_dtype(result.name, inputs or [self.case.dtype])

    def _one(
        self,
        dtype: Dtype,
        override: ResultOverride,
        array: NDArray[Any],
        amplified: NDArray[np.float64],
        terms: Any,
        flushed: NDArray[Any] | None,
    ) -> Expected:
        layout = override.layout.__name__
        if not is_inexact(dtype):
            return Expected(_wrapped(array, dtype), dtype, layout)
        rounded = self.prototype.promise == "rounded"
        return Expected(
            array if np.iscomplexobj(array) else array.astype(np.float64),
            dtype,
            layout,
            budget.blur(array, amplified, terms, dtype).astype(np.float32) if rounded else None,
            flushed if flushed is not None and not np.array_equal(array, flushed, equal_nan=True) else None,
        )


def _wrapped(array: NDArray[Any], dtype: Dtype) -> NDArray[Any]:
    """An exact result in its own integer type; integers wrap around, anything nonzero is true."""
    with np.errstate(all="ignore"):
        return array.astype(numpy_dtype(dtype))


def _flatten(outputs: Sequence[tuple[str, Any]]) -> tuple[list[NDArray[Any]], list[Any], list[str]]:
    """The arrays, declared terms and result names of reference outputs, arrays of tensors spread out."""
    arrays, terms, names = [], [], []
    for name, value in outputs:
        for entry in value if isinstance(value, list) else [value]:
            if entry is None:
                continue
            arrays.append(np.asarray(entry.value if isinstance(entry, WithTerms) else entry))
            terms.append(entry.terms if isinstance(entry, WithTerms) else 0.0)
            names.append(name)
    return arrays, terms, names


def _unflatten(
    results: Sequence[Parameter], outputs: Sequence[tuple[str, Any]], flat: Sequence[Expected]
) -> dict[str, Expected | list[Expected] | None]:
    remaining = iter(flat)
    expected: dict[str, Expected | list[Expected] | None] = {}
    for name, value in outputs:
        if isinstance(value, list):
            expected[name] = [next(remaining) for _ in value]
        else:
            expected[name] = None if value is None else next(remaining)
    return expected


def _stored(value: Any) -> Any:
    if isinstance(value, list):
        return [_stored(entry) for entry in value]
    if isinstance(value, TensorData):
        return BaselineTensor(value.values, value.spec.dtype, value.spec.layout.__name__)
    return value


