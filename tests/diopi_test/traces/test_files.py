"""The shipped trace files are valid and small, and invalid files are rejected."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from diopi_proto.types import Dtype
from diopi_test.traces.calls import NetworkTrace, TracedCall, TracedTensor, TraceError
from diopi_test.traces.files import FORMAT, load_shipped_trace, model_names, read_trace, write_trace

SIZE = 4 << 20
"""The maximum total number of bytes of the files."""

CALL: dict[str, Any] = {
    "function": "diopiSum",
    "count": 3,
    "arguments": {"input": "float32[2,3]", "dim": [1]},
    "results": {"out": "float32[2]"},
}
FILE: dict[str, Any] = {"format": FORMAT, "model": "net", "calls": [CALL], "not_mapped": {"erfc": 1}}


def read(folder: Path, content: Any) -> NetworkTrace:
    """Write a trace and read it again."""
    path = folder / "net.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return read_trace(path)


@pytest.mark.parametrize("name", model_names())
def test_shipped_traces_are_sorted_and_survive_a_round_trip(name: str, tmp_path: Path) -> None:
    model = load_shipped_trace(name)
    assert model.name == name
    keys = [call.key for call in model.calls]
    assert keys == sorted(set(keys))
    write_trace(tmp_path / "again.json", model)
    assert read_trace(tmp_path / "again.json") == model


def test_shipped_traces_are_small_and_cover_many_families() -> None:
    folder = Path(__file__).parents[3] / "diopi_test" / "traces"
    assert len(model_names()) >= 40
    assert sum(path.stat().st_size for path in folder.glob("*.json")) < SIZE


def test_every_type_of_argument_survives_a_round_trip(tmp_path: Path) -> None:
    tensor = TracedTensor(shape=(2,), dtype=Dtype.int64, strides=(1,), bounds=(0, 5))
    calls = (
        TracedCall(function="diopiCat", arguments={"tensors": [tensor, tensor], "dim": 0}, results={"out": tensor}),
        TracedCall(function="diopiFill", arguments={"value": -math.inf}, results={"input": tensor}),
        TracedCall(function="diopiIndex", arguments={"input": tensor, "indices": [None, tensor]}),
        TracedCall(function="diopiNormal", arguments={"mean": 0, "std": 1.5, "generator": 1}, results={"out": tensor}),
    )
    model = NetworkTrace("net", calls, {"erfc": 2})
    write_trace(tmp_path / "net.json", model)
    assert read_trace(tmp_path / "net.json") == model


def test_an_unknown_model_is_rejected_with_the_known_names() -> None:
    with pytest.raises(TraceError, match="'nosuch'"):
        load_shipped_trace("nosuch")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("{", "can't be read as JSON"),
        ("[]", r"net.json: expected an object, found \[\]"),
        ({"format": 99}, "has format 99, expected 1: trace the model again"),
        ({"more": 1}, "unknown more"),
        ({"model": 1}, "model is 1, expected str"),
        ({"not_mapped": {"erfc": 0}}, "not_mapped, erfc: the number of calls is 0"),
        ({"calls": [{**CALL, "function": "diopiNoSuch"}]}, "call 1: 'diopiNoSuch' is not a function"),
        ({"calls": [{**CALL, "count": True}]}, "count is True, expected int"),
        ({"calls": [{**CALL, "arguments": {"input": "float32[2]"}}]}, r"diopiSum: arguments are \['input'\], expected"),
        ({"calls": [{**CALL, "arguments": {"input": 5, "dim": [1]}}]}, "diopiSum, input: expected a tensor"),
        ({"calls": [{**CALL, "arguments": {"input": ["float32[2]"], "dim": []}}]}, "input: expected a tensor"),
        ({"calls": [{**CALL, "arguments": {"input": None, "dim": []}}]}, "input: the argument is null"),
        ({"calls": [{**CALL, "arguments": {"input": "float32[2]", "dim": 1}}]}, "dim: expected a list of integers"),
        ({"calls": [{**CALL, "results": {"other": "float32[2]"}}]}, "other"),
    ],
)
def test_an_error_in_a_file_is_reported_with_its_location(tmp_path: Path, change: Any, reason: str) -> None:
    content = change if isinstance(change, str) else {**FILE, **change}
    assert read(tmp_path, FILE).not_mapped == {"erfc": 1}
    with pytest.raises(TraceError, match=reason):
        read(tmp_path, content)


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="missing not_mapped"):
        read(tmp_path, {name: value for name, value in FILE.items() if name != "not_mapped"})


def test_an_unsupported_type_of_argument_is_rejected(tmp_path: Path) -> None:
    call = {
        "function": "diopiContiguous",
        "count": 1,
        "arguments": {"input": "int8[2]", "memoryFormat": 1},
        "results": {},
    }
    with pytest.raises(TraceError, match="MemoryFormat"):
        read(tmp_path, {**FILE, "calls": [call]})
