"""Selections: the selected cases, their order and shards, and messages for empty selections."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from diopi_proto.interface import lookup
from diopi_test.baseline.shuffle import shuffle_by_seed
from diopi_test.cases.case import CaseClass
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.run.collection import Collected
from diopi_test.run.selection import FailedCases, Selection, SelectionError, Shard

FUNCTIONS = ("diopiAdd", "diopiAddInp", "diopiConvolution2d", "diopiSoftmax")
CASES = [
    Collected(function=RUNTIME, label="memory"),
    *(
        Collected(function=name, label=f"{dtype}-{i}", dtype=dtype)
        for name in FUNCTIONS
        for dtype in ("float16", "float32")
        for i in range(3)
    ),
    *(
        Collected(function=name, label="negative-out-null", dtype="", case_class=CaseClass.negative, base="float32-0")
        for name in FUNCTIONS
    ),
]


def select_cases(**fields: Any) -> list[Collected]:
    """Return the selected cases; assert that their functions are wanted."""
    selection = Selection(**fields)
    cases = selection.apply(CASES)
    assert all(selection.wants_function(case.function) for case in cases)
    return cases


def functions(cases: Sequence[Collected]) -> set[str]:
    """Return the functions of these cases."""
    return {case.function for case in cases}


def test_the_empty_selection_selects_everything_in_order() -> None:
    assert select_cases() == select_cases(expression=" ") == CASES


def test_functions_and_families_can_be_selected_or_excluded() -> None:
    assert functions(select_cases(functions=("diopiAdd",))) == {"diopiAdd"}
    assert functions(select_cases(functions=("diopiAdd", RUNTIME))) == {"diopiAdd", RUNTIME}
    assert functions(select_cases(functions=("no-diopiAdd", f"no-{RUNTIME}"))) == set(FUNCTIONS[1:])
    assert functions(select_cases(families=("conv", "activation"))) == {"diopiConvolution2d", "diopiSoftmax"}
    assert functions(select_cases(families=("no-arithmetic",))) == {"diopiConvolution2d", "diopiSoftmax", RUNTIME}
    assert functions(select_cases(families=("arithmetic",), functions=("no-diopiAdd",))) == {"diopiAddInp"}
    assert select_cases(families=("arithmetic",), functions=("diopiSoftmax",)) == []


def test_only_functions_that_may_have_selected_cases_are_loaded() -> None:
    selection = Selection(families=("conv",), expression="diopiConv or diopiAdd")
    assert [name for name in (RUNTIME, *FUNCTIONS) if selection.wants_function(name)] == ["diopiConvolution2d"]
    selection = Selection(cases=("diopiAdd[float32-1]", "runtime[memory]"))
    assert [name for name in (RUNTIME, *FUNCTIONS) if selection.wants_function(name)] == [RUNTIME, "diopiAdd"]


def test_excluding_an_element_type_retains_cases_without_one() -> None:
    assert {case.dtype for case in select_cases(dtypes=("float16",))} == {"float16"}
    assert {case.dtype for case in select_cases(dtypes=("no-float16",))} == {"float32", ""}
    assert select_cases(dtypes=("float16", "no-float16")) == []


def test_classes_can_be_selected_or_excluded() -> None:
    assert {case.label for case in select_cases(classes=("negative",))} == {"negative-out-null"}
    assert {case.case_class for case in select_cases(classes=("no-negative",))} == {CaseClass.basic}
    assert select_cases(classes=("empty", "open")) == []
    with pytest.raises(SelectionError, match=r"--class: 'negatives'.*'negative'"):
        Selection(classes=("negatives",))


def test_expressions_and_ids_select_cases() -> None:
    assert [case.id for case in select_cases(expression="diopiadd[ and 16-2")] == ["diopiAdd[float16-2]"]
    ids = ("diopiAdd[float16-2]", "runtime[memory]")
    assert {case.id for case in select_cases(cases=ids)} == set(ids)
    assert [case.id for case in select_cases(cases=ids, expression="runtime")] == ["runtime[memory]"]
    assert select_cases(cases=("diopiAdd[float16]",)) == [], "an id is no part of one"


def test_unknown_names_are_reported() -> None:
    failed = FailedCases(Path("r"), frozenset({"diopiAdd[gone]", "diopiAdd[float16-0]"}))
    assert Selection(failed=failed).absent(CASES) == ["diopiAdd[gone]"]
    assert Selection(cases=("diopiAdd[float16-9]",)).absent(CASES) == ["diopiAdd[float16-9]"]
    assert Selection().absent(CASES) == []


def test_a_seed_shuffles_and_samples() -> None:
    mixed = select_cases(seed=7)
    assert mixed == shuffle_by_seed(CASES, 7, lambda case: case.id) != CASES
    sampled = select_cases(seed=7, sample=1)
    assert functions(sampled) - {RUNTIME} in ({"diopiAdd", "diopiAddInp"}, {"diopiConvolution2d"}, {"diopiSoftmax"})
    assert sampled == [case for case in mixed if case.function in functions(sampled)], "in the same order"
    assert functions(select_cases(seed=7, sample=1, families=("conv",))) == {"diopiConvolution2d"}, "of what is left"


@pytest.mark.parametrize("fields", [{}, {"seed": 3}, {"seed": 3, "sample": 2}, {"dtypes": ("float16",)}])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
def test_shards_are_of_equal_size_and_disjoint(count: int, fields: dict[str, Any]) -> None:
    parts = [select_cases(shard=Shard(number, count), **fields) for number in range(1, count + 1)]
    assert [case for part in parts for case in part] == select_cases(**fields)
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_functions_are_distributed_to_shards_by_their_cases() -> None:
    sizes = dict(zip(FUNCTIONS, (60, 10, 20, 30), strict=True))
    parts = [Selection(shard=Shard(i, 2)).apply_to_functions(FUNCTIONS, sizes.__getitem__) for i in (1, 2)]
    assert parts == [["diopiAdd"], ["diopiAddInp", "diopiConvolution2d", "diopiSoftmax"]]
    parts = [Selection(shard=Shard(i, 9)).apply_to_functions(FUNCTIONS, sizes.__getitem__) for i in range(1, 10)]
    assert sorted(name for part in parts for name in part) == sorted(FUNCTIONS)


def test_functions_without_cases_are_not_selected() -> None:
    counted = []

    def size(name: str) -> int:
        counted.append(name)
        return int(name != "diopiAddInp")

    assert Selection(expression="add").apply_to_functions(FUNCTIONS, size) == ["diopiAdd"]
    assert counted == ["diopiAdd", "diopiAddInp"], "counting the cases of all functions takes long"
    with pytest.raises(SelectionError, match="'diopiAddInp' matches none of 4 functions"):
        Selection(functions=("diopiAddInp",)).apply_to_functions(FUNCTIONS, size)


def test_an_expression_selects_functions_by_name() -> None:
    assert Selection(expression="add and not inp").apply_to_functions(FUNCTIONS) == ["diopiAdd"]
    with pytest.raises(SelectionError, match=r"-k 'add and float32'.*'diopiAdd'"):
        Selection(expression="add and float32").apply_to_functions(FUNCTIONS)
    with pytest.raises(SelectionError, match="'diopiSoftmax'"):
        Selection(expression="softmx").apply_to_functions(FUNCTIONS)
    assert set(Selection(seed=1, sample=1, families=("conv",)).apply_to_functions(FUNCTIONS)) == {"diopiConvolution2d"}


def test_functions_can_be_selected_by_element_type() -> None:
    assert Selection(dtypes=("complex64",)).wants_prototype(lookup("diopiAdd"))
    assert not Selection(dtypes=("complex64",)).wants_prototype(lookup("diopiSoftmax"))
    assert not Selection(families=("conv",)).wants_prototype(lookup("diopiSoftmax"))
    assert Selection(dtypes=("no-float64",)).wants_prototype(lookup("diopiSoftmax"))


@pytest.mark.parametrize(
    ("fields", "option", "text"),
    [
        ({"functions": ("diopiSoftmx",)}, "--function", "Did you mean 'diopiSoftmax'"),
        ({"functions": ("no-softmax",)}, "--function", "Did you mean 'diopiSoftmax'"),
        ({"families": ("convs",)}, "--family", "Did you mean 'conv'"),
        ({"families": ("xyz",)}, "--family", "'xyz' is not one of 'activation', 'amp', "),
        ({"dtypes": ("float3",)}, "--dtype", "Did you mean 'float32'"),
        ({"cases": ("diopiSoftmx[float32]",)}, "--case", "Did you mean 'diopiSoftmax'"),
        ({"expression": "not ("}, "-k", "not ("),
        ({"sample": 3}, "--sample", "--shuffle"),
    ],
)
def test_an_invalid_selection_names_the_option_and_similar_names(
    fields: dict[str, Any], option: str, text: str
) -> None:
    with pytest.raises(SelectionError) as raised:
        Selection(**fields)
    assert str(raised.value).startswith(option) and text in str(raised.value)


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/2/3", "-1/2", "1/0", ""])
def test_an_invalid_shard_is_rejected(text: str) -> None:
    with pytest.raises(SelectionError, match="expected I/N"):
        Shard.parse(text)
    assert str(Shard.parse("2/8")) == "2/8"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"expression": "nothing"}, "no case matches -k 'nothing'"),
        ({"expression": "softmx or diopiConvlution2d"}, "Did you mean 'diopiSoftmax' or 'diopiConvolution2d'?"),
        ({"expression": "diopiAdd[float16-9]"}, "Did you mean 'diopiAdd[float16-2]' or 'diopiAdd[float16-1]'"),
        (
            {"cases": ("diopiAdd[float32-9]",)},
            "no case matches --case 'diopiAdd[float32-9]'. Did you mean 'diopiAdd[float32-2]'",
        ),
        ({"families": ("conv",), "dtypes": ("int8",)}, "no case matches --family 'conv' --dtype 'int8'"),
        ({}, "there are no cases"),
    ],
)
def test_an_empty_selection_suggests_similar_names(fields: dict[str, Any], message: str) -> None:
    selection = Selection(**fields)
    text = selection.explain_empty(FUNCTIONS, [case for case in CASES if selection.wants_function(case.function)])
    assert message in text
    assert ("near" in text) == ("near" in message)


def report(path: Path, **verdicts: str) -> Path:
    """Write a report with these verdicts by label, and return its path."""
    path.write_text(
        json.dumps({"cases": [{"id": f"diopiAdd[{label}]", "verdict": verdict} for label, verdict in verdicts.items()]})
    )
    return path


def test_a_report_without_failures_selects_no_case(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"cases": [{"id": "diopiAdd[float32-row]", "verdict": "passed"}]}))
    selection = Selection(failed=FailedCases.read(report))
    assert selection.explain_empty([], []).startswith("nothing is left to repeat: no case failed in ")


def test_failed_cases_are_read_from_a_report(tmp_path: Path) -> None:
    path = report(tmp_path / "r.json", a="passed", b="failed", c="crashed", d="not_run", e="waived", f="unsupported")
    failed = FailedCases.read(path)
    assert failed.ids == {"diopiAdd[b]", "diopiAdd[c]", "diopiAdd[d]"}
    selection = Selection(failed=failed, cases=("diopiAdd[b]", "diopiAdd[e]"))
    assert [selection.wants(Collected(function="diopiAdd", label=label)) for label in "bce"] == [True, False, False]
    assert not any(map(Selection(failed=FailedCases.read(report(path))).wants_function, FUNCTIONS)), "none failed"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cases": [1]}', '{"cases": [{"id": 1}]}', "\udcff"])
def test_a_file_that_is_not_a_report_is_rejected(text: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SelectionError, match=r"r\.json"):
        FailedCases.read(path)
    with pytest.raises(SelectionError, match="No such file"):
        FailedCases.read(tmp_path / "missing")
