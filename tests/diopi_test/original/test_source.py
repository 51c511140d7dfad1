"""Python files as data: what is read, what is not, and that nothing runs."""

from math import inf, pi
from pathlib import Path
from typing import Any

import pytest

from diopi_proto.types import Dtype
from diopi_test.original.source import Generated, NotRead, Skipped, Source, SourceError, problems_in, read_source


def read(folder: Path, text: str) -> Source:
    path = folder / "configs.py"
    path.write_text(text, "utf-8")
    return read_source(path)


def value(folder: Path, expression: str) -> Any:
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
        ("[Genfunc.rand, Genfunc.randint(0, high=3)]", [Generated("rand"), Generated("randint", {"0": 0, "high": 3})]),
    ],
)
def test_what_is_read(tmp_path: Path, expression: str, expected: Any) -> None:
    assert value(tmp_path, expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "[i for i in range(3)]",
        "lambda x: x",
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
def test_what_is_not_read_says_so_and_does_nothing(tmp_path: Path, monkeypatch: Any, expression: str) -> None:
    monkeypatch.chdir(tmp_path)
    (problem,) = problems_in(value(tmp_path, expression))
    assert isinstance(problem, NotRead) and problem.line == 2 and problem.why
    assert not (tmp_path / "touched").exists()


def test_only_what_cannot_be_read_is_lost(tmp_path: Path) -> None:
    source = read(tmp_path, "import x\n'''text'''\nconfigs = {'a': {'x': f()}, 'b': dict(x=1)}\ndef f():\n    pass\n")
    assert [(entry.name, entry.line, bool(problems_in(entry.content))) for entry in source.entries] == [
        ("a", 3, True),
        ("b", 3, False),
    ]
    assert source.not_read == (NotRead(4, "a statement that is no data: def f():"),)


def test_a_dictionary_may_be_called(tmp_path: Path) -> None:
    source = read(tmp_path, "configs = dict(\n  a=dict(x=1),\n)\nnumber: int = 3\nother = {1: 2}\n")
    assert [(entry.name, entry.line, entry.content) for entry in source.entries] == [("a", 2, {"x": 1})]


@pytest.mark.parametrize("text", ["configs = {", "\0", "(" * 10_000, "x = " + "-" * 100_000 + "1"])
def test_a_file_that_is_no_source_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError, match=r"configs\.py: it is not Python source"):
        read(tmp_path, text)


def test_a_file_that_is_not_there_or_too_large_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    with pytest.raises(SourceError, match="No such file"):
        read_source(tmp_path / "none.py")
    monkeypatch.setattr("diopi_test.original.source.MOST_BYTES", 3)
    with pytest.raises(SourceError, match="more than 3 bytes"):
        read(tmp_path, "x = 1")
