"""Keyword expressions select cases as pytest's -k does, and tell which functions they may match."""

from pathlib import Path

import pytest
from _pytest.mark import KeywordMatcher
from _pytest.mark.expression import Expression

from diopi_test.run.collection import collect_file, collect_runtime
from diopi_test.run.keywords import PREFIX, Keywords, SelectionError

ID = "diopiAddScalar[float32-2x3]"


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ("diopiAddScalar[float32-2x3]", True),
        ("diopiaddSCALAR", True),
        ("Scalar[float", True),
        ("diopiAdd[float32", False),
        ("diopiAdd and float32", True),
        ("diopiAdd and not float32", False),
        ("not (diopiMul or negative)", True),
        ("float16 or 2x3]", True),
        ("2x3] or float16", True),
        ("sub", False),
    ],
)
def test_a_word_matches_part_of_the_id_in_any_case(expression: str, matches: bool) -> None:
    assert Keywords(expression).match(ID) is matches


@pytest.mark.parametrize(
    "expression",
    [
        "diopiAdd",
        "diopiAdd[ and float32",
        "not inp",
        "diopiAdd[float32-2x3] or a.b",
        "MUL or (one and not x)",
        "",
        "True",
    ],
)
def test_expressions_select_the_same_as_in_pytest(expression: str) -> None:
    for name in ("diopiAdd[float32-2x3]", "diopiAddInp[float32-2x3]", "diopiMul[int8-a.b]", "runtime[one]"):
        assert Keywords(expression).match(name) == Expression.compile(expression).evaluate(KeywordMatcher({name}))


@pytest.mark.parametrize(
    ("expression", "message", "column"),
    [
        ("a and and b", "got and", 7),
        ("a and (b", "expected right parenthesis; got end of input", 9),
        ("a $ b", 'unexpected character "$"', 3),
        ("a(b=1)", "words take no parameters", 4),
        ("not not (", "got end of input", 10),
    ],
)
def test_a_syntax_error_is_marked_with_a_caret(expression: str, message: str, column: int) -> None:
    with pytest.raises(SelectionError) as raised:
        Keywords(expression)
    first, repeated, caret = str(raised.value).splitlines()
    assert first.startswith(f"-k {expression!r}: ") and message in first
    assert (repeated[4:], caret[4:]) == (expression, " " * (column - 1) + "^")


def test_a_line_break_does_not_move_the_caret() -> None:
    with pytest.raises(SelectionError) as raised:
        Keywords("a\nb")
    assert str(raised.value).splitlines()[1:] == ["    a b", "     ^"]


@pytest.mark.parametrize(
    ("expression", "functions"),
    [
        ("diopiAdd", {"diopiAdd", "diopiAddInp"}),
        ("diopiAdd[", {"diopiAdd"}),
        ("diopiAdd[float32-2x3]", {"diopiAdd"}),
        ("diopiMul and float32", {"diopiMul"}),
        ("not diopiMul", {"diopiAdd", "diopiAddInp"}),
        ("not float32", {"diopiAdd", "diopiAddInp", "diopiMul"}),
        ("float32 and not float32", set()),
        ("diopiadd and (negative or callers-)", {"diopiAdd", "diopiAddInp"}),
        ("Inp[int8", {"diopiAddInp"}),
        ("diopiSub or diopiDiv", set()),
    ],
)
def test_functions_without_a_matching_case_are_skipped(expression: str, functions: set[str]) -> None:
    keywords = Keywords(expression)
    assert {name for name in ("diopiAdd", "diopiAddInp", "diopiMul") if keywords.may_match(name)} == functions


def test_labels_do_not_match_function_names() -> None:
    """`may_match` relies on this property."""
    files = sorted((Path(__file__).parents[3] / "baseline_data" / "smoke").glob("*.h5"))
    cases = [*collect_runtime(), *(case for path in files for case in collect_file(path))]
    labels = [case.label.lower() for case in cases]
    assert labels
    assert not [label for label in labels if PREFIX in label or "[" in label]


def test_the_words_of_an_expression_are_listed() -> None:
    assert Keywords("(sin or cos) and not diopiSin[a-b]").words == ("sin", "cos", "diopiSin[a-b]")
