"""A dump contains every array of a case, in a file that NumPy reads without pickle, with a portable name."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import faulty
import numpy as np
import pytest
from trials import baseline_case

from diopi_test.execution.call import Call
from diopi_test.execution.call_arguments import CallMode
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.call_sequence import CallAttempt, CallSequence
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.dump import DumpError, dump, file_name

Arrays = dict[str, np.ndarray[Any, Any]]


def calls(case: BaselineCase, corrupt: Any = lambda arguments: None) -> Mapping[str, CallRecord]:
    """Return the records of a call of the case, and of a call with its inputs in another layout."""
    vendor = faulty.FaultyVendor("faulty", corrupt)
    vendor.take_case(case)
    records = []
    with vendor.open_device() as device:
        for mode in (CallMode(), CallMode(shifted=True, relaid=True)):
            with Call(vendor, device, case, mode) as call:
                records.append(call.run())
    first, relaid = (CallAttempt(code=faulty.Error.Success, run=run) for run in records)
    return CallSequence(first=first, relaid=relaid).records


def load(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the information of a dumped case."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return arrays, json.loads(str(arrays.pop("info")), parse_constant=pytest.fail)


def test_a_dump_contains_all_arrays_and_attributes(tmp_path: Path) -> None:
    case = baseline_case("diopiAdd", "float32-row")
    path = dump(case, calls(case), tmp_path / "new")
    assert path == tmp_path / "new" / "diopiAdd.float32-row.npz"
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    arrays, info = load(path)
    results = {"result.first.out", "result.relaid.out"}
    assert set(arrays) == {"input.input", "input.other", "expected.out", "budget.out", *results}
    assert (arrays["input.other"] == case.arguments["other"].values).all()
    assert (arrays["expected.out"] == case.expected["out"].values).all()
    assert (np.abs(arrays["result.first.out"] - arrays["expected.out"]) <= arrays["budget.out"]).all()
    assert info["case"] == "diopiAdd[float32-row]"
    assert info["attributes"] == {"alpha": -0.75}
    assert info["calls"]["relaid"]["input"] == "float32 (4, 5), strides (1, 4), offset 64"
    assert info["bfloat16"] == []


def test_bfloat16_is_dumped_as_exact_float32(tmp_path: Path) -> None:
    case = baseline_case("diopiAdd", "bfloat16-special")
    arrays, info = load(dump(case, calls(case), tmp_path))
    assert info["bfloat16"] == ["input.input", "input.other", "result.first.out", "result.relaid.out"]
    values = case.arguments["input"].values
    assert (arrays["input.input"].view(np.uint32) >> 16 == values.view(np.uint16)).all()


@pytest.mark.parametrize(
    ("function", "label", "name"),
    [
        ("diopiSplitWithSizes", "float32-rows", "result.first.outs.1"),
        ("diopiSplitWithSizes", "complex64-rows", "expected.outs.0"),
        ("diopiSqrtInp", "float64-matrix", "input.input"),
        ("diopiMaxAll", "float32-matrix", "result.first.max"),
    ],
)
def test_results_of_every_kind_are_dumped(tmp_path: Path, function: str, label: str, name: str) -> None:
    case = baseline_case(function, label)
    arrays, _ = load(dump(case, calls(case), tmp_path))
    assert name in arrays


def test_a_changed_input_is_dumped(tmp_path: Path) -> None:
    case = baseline_case("diopiSqrt", "float32-matrix")
    arrays, _ = load(dump(case, calls(case, faulty.flip_bit_of_input), tmp_path))
    assert (arrays["changed.first.input"] != arrays["input.input"]).sum() == 1


def test_the_dump_of_a_crashed_case_contains_its_inputs(tmp_path: Path) -> None:
    arrays, info = load(dump(baseline_case("diopiSin", "float16-special"), {}, tmp_path))
    assert set(arrays) == {"input.input", "expected.out", "budget.out"}
    assert info["calls"] == {}


def test_attributes_that_json_lacks_are_dumped_as_text(tmp_path: Path) -> None:
    case = baseline_case("diopiAdd", "float32-row")
    odd = {"alpha": float("inf"), "beta": 1j, "dims": (0, -1), "gamma": None}
    _, info = load(dump(replace(case, arguments=odd), {}, tmp_path))
    assert info["attributes"] == {"alpha": "inf", "beta": "1j", "dims": [0, -1], "gamma": None}


def test_a_dump_replaces_an_earlier_one(tmp_path: Path) -> None:
    case = baseline_case("diopiAdd", "float32-row")
    first, second = dump(case, {}, tmp_path), dump(case, calls(case), tmp_path)
    assert first == second
    assert len(load(second)[0]) == 6


@pytest.mark.parametrize(
    "case", ["diopiAdd[a/b]", "diopiAdd[..]", "diopiAdd[ü\0\n]", "diopiAdd[\udc80]", f"diopiAdd[{'long-' * 100}]"]
)
def test_file_names_are_valid_on_every_file_system(case: str, tmp_path: Path) -> None:
    name = file_name(case)
    assert not set(name) & set('[]/\\\0\n:*?"<>|') and name.isascii() and 0 < len(name) < 200
    (tmp_path / name).touch()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_different_labels_have_different_files() -> None:
    labels = ["a b", "a_b", "a/b", "a[b", "long-" * 100, "long-" * 101]
    assert len({file_name(f"diopiAdd[{label}]") for label in labels}) == len(labels)


def test_the_error_names_a_dump_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DumpError, match=r"diopiAdd\.float32-row\.npz"):
        dump(baseline_case("diopiAdd", "float32-row"), {}, tmp_path / "file")
