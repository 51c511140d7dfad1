"""Python files are read as data and never executed: which expressions are evaluated, and which are not."""

from math import inf, pi
from pathlib import Path
from typing import Any

import pytest

from diopi_proto.types import Dtype
from diopi_test.original.source import Generated, NotRead, Skipped, Source, SourceError, problems_in, read_source


def read(folder: Path, text: str) -> Source:
    """Read a configuration with this text."""
    path = folder / "configs.py"
    path.write_text(text, "utf-8")
    return read_source(path)


def value(folder: Path, expression: str) -> Any:
    """Return the value as which an expression of a configuration is read."""
    (entry,) = read(folder, f"known = [1, 2]\nconfigs = {{'a': dict(x={expression})}}").entries
    return entry.content["x"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[1, -2.5, 'a', None, True]", [1, -2.5, "a", None, True]),
        ("((), (3,), (2, 3))", ((), (3,), (2, 3))),
        ("{'a': 1, 2: [3]}", {"a": 1, 2: [3]}),
        ("dict(a=1)", {"a": 1}),
        ("tuple([1, 2])", (1, 2)),
        ("list(range(3))", [0, 1, 2]),
        ("list(range(1, 7, 3))", [1, 4]),
        ("np.array([[1, 2]])", [[1, 2]]),
        ("2 ** 10 - 3 * 4 // 5", 1022),
        ("[0, 1] * 2 + known", [0, 1, 0, 1, 1, 2]),
        ("[np.float16, np.int64, np.bool_]", [Dtype.float16, Dtype.int64, Dtype.bool]),
        ("[float('inf'), -np.inf, math.pi]", [inf, -inf, pi]),
        ("Skip(np.float16)", Skipped(2, Dtype.float16)),
        ("[Skip(i) for i in range(2)]", [Skipped(2, 0), Skipped(2, 1)]),
        ("[Genfunc.rand, Genfunc.randint(0, high=3)]", [Generated("rand"), Generated("randint", {"0": 0, "high": 3})]),
    ],
)
def test_expressions_are_evaluated(tmp_path: Path, expression: str, expected: Any) -> None:
    assert value(tmp_path, expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "[i for i in 3]",
        "[i for i in range(3) if i]",
        "[[[0 for i in range(1000)] for i in range(1000)] for i in range(1000)]",
        "lambda x: x",
        "(lambda x: x)(1)",
        "open('touched', 'w')",
        "__import__('os').getcwd()",
        "unknown",
        "os.sep",
        "known.__class__",
        "known[0]",
        "dict(*known)",
        "dict(**known)",
        "list(1)",
        "range('a')",
        "float([])",
        "float('x')",
        "1 / 0",
        "'a' - 1",
        "10 ** 10 ** 10",
        "[0] * 10 ** 9",
        "10 ** 9 * [0]",
        "'a' * 10 ** 9",
        "range(10 ** 9)",
        "{**known}",
        "f'{known}'",
        "{[1]: 2}",
    ],
)
def test_other_expressions_are_reported_and_not_executed(tmp_path: Path, monkeypatch: Any, expression: str) -> None:
    monkeypatch.chdir(tmp_path)
    (problem,) = problems_in(value(tmp_path, expression))
    assert isinstance(problem, NotRead) and problem.line == 2 and problem.reason
    assert not (tmp_path / "touched").exists()


ALIASES = """
from skip import Skip as Omit
Without = Skip
half = [np.float16]
each = lambda *values: [Without(value) for value in values]
rows = lambda size, width=2: Omit((size, width))
looped = lambda: looped()
twice = lambda value: [rows(value), rows(value)]
"""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("Omit(1)", Skipped(10, 1)),
        ("Without(half)", Skipped(10, [Dtype.float16])),
        ("each(1, 2)", [Skipped(10, 1), Skipped(10, 2)]),
        ("rows(3)", Skipped(10, (3, 2))),
        ("rows(width=3, size=4)", Skipped(10, (4, 3))),
    ],
)
def test_aliases_and_lambdas_are_evaluated(tmp_path: Path, expression: str, expected: Any) -> None:
    (entry,) = read(tmp_path, f"{ALIASES}\nconfigs = {{'a': dict(x={expression})}}").entries
    assert entry.content["x"] == expected


@pytest.mark.parametrize("expression", ["rows()", "rows(1, 2, 3)", "looped()", "twice(1)", "rows", "unknown(1)"])
def test_a_call_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, expression: str) -> None:
    (entry,) = read(tmp_path, f"{ALIASES}\nconfigs = {{'a': dict(x={expression})}}").entries
    assert {problem.line for problem in problems_in(entry.content)} == {10}


@pytest.mark.parametrize("element", ["{0}, {0}", "Skip({0}), {0}", "{0}, {{'x': {0}}}"])
def test_values_that_double_with_each_name_are_not_read(tmp_path: Path, element: str) -> None:
    lines = [f"a{number + 1} = [{element.format(f'a{number}')}]" for number in range(40)]
    text = "\n".join(["a0 = [1]", *lines, "configs = {'small': dict(x=a3), 'large': dict(x=[a15] * 900)}"])
    small, large = read(tmp_path, text).entries
    assert problems_in(small.content) == []
    assert [(problem.line, problem.reason.partition(",")[0]) for problem in problems_in(large.content)] == [
        (42, "more than 1")
    ]


def test_deep_values_are_not_read(tmp_path: Path) -> None:
    lines = [f"a{number + 1} = [a{number}]" for number in range(5000)]
    (entry,) = read(tmp_path, "\n".join(["a0 = [1]", *lines, "configs = {'a': dict(x=a5000)}"])).entries
    (problem,) = problems_in(entry.content)
    assert "50 levels" in problem.reason


def test_an_unreadable_expression_affects_only_its_entry(tmp_path: Path) -> None:
    source = read(tmp_path, "import x\n'''text'''\nconfigs = {'a': {'x': f()}, 'b': dict(x=1)}\ndef f():\n    pass\n")
    assert [(entry.name, entry.line, bool(problems_in(entry.content))) for entry in source.entries] == [
        ("a", 3, True),
        ("b", 3, False),
    ]
    assert source.not_read == (NotRead(4, "a statement that is not data: def f():"),)


def test_an_entry_that_is_not_read_is_kept_among_entries(tmp_path: Path) -> None:
    text = "configs = {'a': make(1), 'b': dict(x=1)}\nothers = {'level': logging.INFO, 'count': 1}\n"
    found, read_well = read(tmp_path, text).entries
    assert (found.name, read_well.name) == ("a", "b")
    assert [problem.line for problem in problems_in(found.content)] == [1]


def test_a_dictionary_may_be_called(tmp_path: Path) -> None:
    source = read(tmp_path, "configs = dict(\n  a=dict(x=1),\n)\nnumber: int = 3\nother = {1: 2}\n")
    assert [(entry.name, entry.line, entry.content) for entry in source.entries] == [("a", 2, {"x": 1})]


@pytest.mark.parametrize("text", ["configs = {", "\0", "(" * 10_000, "x = " + "-" * 100_000 + "1"])
def test_a_file_that_is_not_python_is_rejected(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError, match=r"configs\.py"):
        read(tmp_path, text)


def test_a_missing_or_too_large_file_is_rejected(tmp_path: Path, monkeypatch: Any) -> None:
    with pytest.raises(SourceError, match="No such file"):
        read_source(tmp_path / "none.py")
    monkeypatch.setattr("diopi_test.original.source.MAX_BYTES", 3)
    with pytest.raises(SourceError, match="3 bytes"):
        read(tmp_path, "x = 1")
