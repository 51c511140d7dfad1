"""The formulas of the site: every function has one or a reason, and the reference computes what the formula says."""

import ast
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluate_formulas import NotApplicableError, evaluate_formula
from scripts import load_script

from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Reduction, RoundMode
from diopi_test.baseline.store import BaselineFile, baseline_file
from diopi_test.cases.case import CaseClass
from diopi_test.oracle.data import widen
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected

ROOT = Path(__file__).parents[2]
SMOKE = ROOT / "baseline_data" / "smoke"

SUFFICIENT_AGREEMENTS = 3
"""The number of cases in which a formula must agree with the reference; a function may have fewer."""

MAX_ELEMENTS = 20_000
"""The largest number of elements of the arguments of a case; formulas are evaluated slowly."""


formulas: Any = load_script(ROOT / "docs" / "hooks" / "formulas.py")


def test_every_function_has_a_formula_or_a_reason() -> None:
    plain = [p.name for p in prototypes().values() if p.base == p.name]
    with_formula, reasons_by_name = formulas.formula_texts(), formulas.reasons_without_formula()
    assert sorted([*with_formula, *reasons_by_name]) == sorted(plain)
    assert all(reason.endswith(".") for reason in reasons_by_name.values())


@pytest.mark.parametrize("name", prototypes())
def test_the_formula_is_well_formed_mathml(name: str) -> None:
    markup = formulas.describe_formula(lookup(name))
    if markup.startswith("<"):
        ElementTree.fromstring(markup.replace("&nbsp;", "\u00a0"))


def test_operands_that_bind_less_have_parentheses() -> None:
    (statement,) = formulas.parse_formula("out = (a + b) * c ** (d - e) - (f - g)")
    markup = re.sub(r"<[^>]*>", "", formulas.Formula(statement, set(), {}).line())
    assert markup == "out=(a+b)·cd−e−(f−g)"


@pytest.mark.parametrize("name", formulas.formula_texts())
def test_the_reference_computes_what_the_formula_says(name: str) -> None:
    statements = formulas.parse_formula(formulas.formula_texts()[name])
    agreeing, inapplicable = 0, set()
    for case in usual_cases(name):
        try:
            compare(statements, case)
        except NotApplicableError as error:
            inapplicable.add(str(error))
            continue
        agreeing += 1
        if agreeing == SUFFICIENT_AGREEMENTS:
            return
    assert agreeing, f"no case to which the formula applies: {sorted(inapplicable)}"


def usual_cases(name: str) -> Iterator[BaselineCase]:
    """Yield the stored cases of a function that are not too large, the basic ones first."""
    file = BaselineFile(baseline_file(SMOKE, name))
    for classes in ([CaseClass.basic], [CaseClass.types, CaseClass.optional, CaseClass.callers]):
        for label in file.labels:
            if file.case_class(label) in classes and elements_of(case := file.case(label)) <= MAX_ELEMENTS:
                yield case


def elements_of(case: BaselineCase) -> int:
    """Return the number of elements of all tensor arguments."""
    entries = (entry for value in case.arguments.values() for entry in (value if isinstance(value, list) else [value]))
    return sum(entry.values.size for entry in entries if isinstance(entry, BaselineTensor))


def compare(statements: Sequence[ast.stmt], case: BaselineCase) -> None:
    """Raise an AssertionError if a result of the formula differs from the reference."""
    prototype = lookup(case.function)
    arguments = {name: plain(value, prototype.parameter(name).annotation) for name, value in case.arguments.items()}
    expected = {name: first_array(value) for name, value in case.expected.items()}
    is_equation = any(isinstance(s, ast.Expr) and isinstance(s.value, ast.Compare) for s in statements)
    if is_equation and not all(value is None or is_regular(value) for value in expected.values()):
        raise NotApplicableError("a result that is not a number, or not specified, satisfies no equation")
    known = {name: None if value is None else value.values for name, value in expected.items()}
    values = evaluate_formula(statements, arguments, known)
    compared = values["equations"]
    for name in {formulas.assigned_name(s) for s in statements} & {n for n, value in expected.items() if value}:
        actual = values[name][0] if isinstance(values[name], list) else values[name]
        check_result(f"{case.function}[{case.label}], {name}", actual, expected[name])
        compared += 1
    assert compared, f"the formula of {case.function} computes no result"


def plain(value: Any, kind: type) -> Any:
    """Return an argument as formulas take it: arrays in the reference's arithmetic, numbers, and names of choices."""
    if isinstance(value, list):
        return [plain(entry, kind) for entry in value]
    if isinstance(value, BaselineTensor):
        return widen(value.values, value.dtype)
    return kind(value).name if kind in (Reduction, RoundMode) else value


def is_regular(expected: Expected) -> bool:
    """Return whether all elements of a result are specified and finite."""
    return (expected.specified is None or bool(expected.specified.all())) and bool(np.isfinite(expected.values).all())


def first_array(expected: Expected | list[Expected] | None) -> Expected | None:
    """Return an expected result; of an array of tensors the first one."""
    return (expected[0] if expected else None) if isinstance(expected, list) else expected


def check_result(name: str, actual: Any, expected: Expected) -> None:
    """Raise an AssertionError if a result differs in a specified element."""
    array, wanted = np.asarray(actual), expected.values
    if wanted.dtype.kind in "iu":
        array = np.trunc(array.astype(float))  # numbers lose their fraction in integer tensors
    array = array.reshape(wanted.shape) if array.size == wanted.size else np.broadcast_to(array, wanted.shape)
    specified = np.ones(wanted.shape, bool) if expected.specified is None else expected.specified
    np.testing.assert_allclose(array[specified], wanted[specified], rtol=1e-6, atol=1e-9, err_msg=name)
