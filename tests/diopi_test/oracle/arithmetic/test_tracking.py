"""Test that references carry a declared arithmetic to their elementary functions, and have the same results."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from assembled_arrays import CREATORS, AssembledArray, recording
from sampling import sampled

from diopi_impl.numerics import ErrorBound
from diopi_proto.families import load_families
from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.arithmetic import array as arithmetic_arrays
from diopi_test.oracle.arithmetic.array import Arithmetic, DeclaredArray
from diopi_test.oracle.arithmetic.change import carry_arrays
from diopi_test.oracle.arithmetic.declared_case import describe_call
from diopi_test.oracle.arithmetic.elementary import BOUNDS, make_elementary_rules
from diopi_test.oracle.arithmetic.signs import Signs
from diopi_test.oracle.evaluation import Evaluation, draw_case_with_zeros
from diopi_test.oracle.records import BaselineCase
from diopi_test.oracle.reference import find_reference

REFERENCES = "diopi_test.oracle.reference"
CASES = 3
"""The number of cases per function."""

FAMILIES = sorted({prototype.family for name, prototype in prototypes().items() if find_reference(name)})

TERMS = (
    "return np.sqrt(np.square(element_terms * np.ones(losses.shape)).sum())",
    "return np.sqrt(np.tril(squares))",
    "return np.where(np.isfinite(alpha), np.abs(alpha), 0.0) * np.sqrt(steps / 36)",
    "scale_sum_terms(_add_windows(np.abs(rows), windows, length) / np.sqrt(counts))",
    "scale_sum_terms(np.sqrt(magnitudes**2 / n + partial_sums))",
    "moment_errors = np.sqrt(np.sum(np.square(instance_errors), (0, 1))).re",
    "of_finite = WithTerms(summed.value, summed.terms / np.sqrt(np.maximum(",
    "scale_sum_terms(sliding.add_windows(np.abs(windows)) / np.sqrt(count))",
    "norms = np.linalg.norm(a, axis=-2, keepdims=True) * np.sqrt((1 + 2 * r",
    "return WithTerms(gradient, accumulation_terms(counts, np.sqrt(counts *",
    "return np.sqrt(q_squares / DIRECTIONS), np.sqrt(r_squares / DIRECTIONS)",
    "np.maximum(1, repetition / HARMLESS_REPETITION) * (n + 1) * (squares /",
)
"""Lines of references that compute terms, which are no results, from plain numbers."""


def list_cases(family: str) -> Iterator[BaselineCase]:
    """Yield the first float32 cases of each function of a family."""
    for name, prototype in prototypes().items():
        if prototype.family == family and prototype.form == "plain" and find_reference(name):
            selected = (case for case in select_cases(name, "smoke") if case.dtype is Dtype.float32)
            computed = (draw_case_with_zeros(prototype, case) for case in islice(selected, CASES))
            yield from (case for case in computed if not case.draws)


OPERATIONS = frozenset({(ufunc, "__call__") for ufunc in (*BOUNDS, np.matmul)} | {(np.einsum, ""), (np.dot, "")})
"""Operations that a declared arithmetic changes, also if an operator such as `/`, `**` or `@` calls them."""


class ObservedModule:
    """A module of functions that reports calls of elementary functions on arrays without an arithmetic."""

    def __init__(self, module: ModuleType, report: Callable[[str], None]) -> None:
        self._module = module
        self._report = report

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._module, name)
        if not isinstance(function, np.ufunc) or function not in BOUNDS:
            return function

        def call(*operands: Any, **keywords: Any) -> Any:
            """Report the calling line if no operand carries an arithmetic, and call the function."""
            numbers = [x for x in operands if isinstance(x, np.ndarray | np.floating)]
            has_numbers = any(np.asarray(x).dtype.kind in "fc" and np.size(x) for x in numbers)
            if has_numbers and not any(isinstance(x, DeclaredArray) for x in operands):
                frame = traceback.extract_stack(limit=2)[0]
                self._report(f"{Path(frame.filename).name}: {frame.line}")
            return function(*operands, **keywords)

        vars(call).update({method: getattr(function, method) for method in ("reduce", "accumulate", "at", "outer")})
        return call


@pytest.mark.parametrize("family", sampled(FAMILIES, 4, slow=8))
def test_elementary_functions_get_arrays_that_carry_the_arithmetic(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = list(list_cases(family))
    load_families(REFERENCES)
    lines: set[str] = set()
    for name, module in list(sys.modules.items()):
        for attribute in ("np", "special"):
            if name.startswith(REFERENCES) and hasattr(module, attribute):
                monkeypatch.setattr(module, attribute, ObservedModule(getattr(module, attribute), lines.add))
    for case in cases:
        evaluate(case, carried=True)
    assert {line for line in lines if not any(terms in line for terms in TERMS)} == set()


class CreatingModule:
    """NumPy for references, with recording arrays in place of new arrays without an arithmetic."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._creators = {name: recording(getattr(np, name), OPERATIONS, report) for name in CREATORS}

    def __getattr__(self, name: str) -> Any:
        return self._creators.get(name) or getattr(np, name)


def strip_all(value: Any) -> Any:
    """Return a value with plain arrays in place of arrays that carry an arithmetic, and of recording arrays."""
    if type(value) in (tuple, list):
        return type(value)(map(strip_all, value))
    return value.view(np.ndarray) if isinstance(value, DeclaredArray | AssembledArray) else value


@pytest.mark.parametrize("family", sampled(FAMILIES, 4, slow=8))
def test_results_that_are_assembled_in_new_arrays_do_not_lose_the_arithmetic(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = list(list_cases(family))
    load_families(REFERENCES)
    lines: set[str] = set()
    monkeypatch.setattr(arithmetic_arrays, "strip_arithmetic", strip_all)
    for name, module in list(sys.modules.items()):
        if name.startswith(REFERENCES) and hasattr(module, "np"):
            monkeypatch.setattr(module, "np", CreatingModule(lines.add))
    for case in cases:
        evaluate(case, carried=True)
    assert {line for line in lines if not any(terms in line for terms in TERMS)} == set()


def test_a_quotient_of_results_assembled_in_a_new_array_is_reported() -> None:
    lines: list[str] = []
    total = recording(np.zeros, OPERATIONS, lines.append)(2)
    total[0] = 1.0
    np.testing.assert_array_equal(total / 2, [0.5, 0])
    assert not lines
    total[1] = carry_arrays(np.ones(1), Arithmetic({}), "f")[0]
    np.testing.assert_array_equal(total / 2 + total**0.5, [1.5, 1.5])
    assert len(lines) == 2


@pytest.mark.parametrize(("order", "name"), [(2, "sqrt"), (3, "pow")])
def test_a_norm_has_the_errors_of_its_root(order: int, name: str) -> None:
    bounds = {name: (ErrorBound(relative=1e-3),)}
    rules = make_elementary_rules(bounds, Signs(np.random.default_rng(0), 0))
    carried = carry_arrays(np.array([3.0, 4.0]), Arithmetic(rules), "f")
    exact = np.linalg.norm([3.0, 4.0], order)
    change = abs(float(np.linalg.norm(carried, order)) / exact - 1)
    assert 0.9e-3 < change < 1.5e-3
    assert float(np.linalg.norm(carried, 1)) == 7


@pytest.mark.parametrize("family", sampled(FAMILIES, 4, slow=8))
def test_arrays_that_carry_an_arithmetic_without_rules_have_the_same_results(family: str) -> None:
    for case in list_cases(family):
        for plain, carried in zip(evaluate(case, carried=False), evaluate(case, carried=True), strict=True):
            assert np.array_equal(plain, carried, equal_nan=plain.dtype.kind in "fc"), case.id


def evaluate(case: BaselineCase, *, carried: bool) -> list[Any]:
    """Return the results of a case's reference, for arguments that carry an arithmetic without rules or none."""
    function = find_reference(case.function)
    assert function is not None
    plain = case.plain_arguments()
    arithmetic = Arithmetic({})
    arguments = {name: carry_arrays(value, arithmetic, "fc") if carried else value for name, value in plain.items()}
    return Evaluation(lookup(case.function), function, describe_call(case)).arrays(arguments)
