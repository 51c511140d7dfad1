"""The store returns what was written, and messages name any damage."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.baseline import store
from diopi_test.baseline.store import BaselineError, BaselineFile, Provenance
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected

PROVENANCE = Provenance("smoke", "key", {"numpy": "2"})


def compute_cases(function: str) -> list[BaselineCase]:
    """Compute all smoke cases of a function."""
    return [compute_baseline_case(lookup(function), case) for case in select_cases(function, "smoke")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a new baseline file of `diopiSin`."""
    path = store.baseline_file(tmp_path / "smoke", "diopiSin")
    store.write_baseline_file(path, "diopiSin", compute_cases("diopiSin"), PROVENANCE)
    return path


def assert_same_expected(actual: Expected, expected: Expected) -> None:
    """Assert that two expected results are equal, and their budgets up to rounding to float32."""
    assert (actual.dtype, actual.layout) == (expected.dtype, expected.layout)
    assert np.array_equal(actual.values.astype(expected.values.dtype), expected.values, equal_nan=True)
    units = [None if result.budget is None else result.budget.unit for result in (actual, expected)]
    for actual_part, expected_part, rtol in ((*units, 2.0**-23), (actual.flushed, expected.flushed, 0)):
        assert (actual_part is None) == (expected_part is None)
        assert actual_part is None or np.allclose(actual_part, expected_part, rtol, atol=0, equal_nan=True)


def test_cases_survive_the_store(path: Path) -> None:
    file = BaselineFile(path)
    written = compute_cases("diopiSin")
    assert file.function == "diopiSin"
    assert list(file.labels) == [case.label for case in written]
    for case, read in zip(written, file, strict=True):
        assert (read.id, read.dtype) == (case.id, case.dtype)
        original_values, expected_part = case.arguments["input"], read.arguments["input"]
        assert (original_values.dtype, original_values.layout) == (expected_part.dtype, expected_part.layout)
        assert original_values.values.tobytes() == expected_part.values.tobytes()
        assert original_values.values.dtype == expected_part.values.dtype
        actual, expected = case.expected["out"], read.expected["out"]
        assert isinstance(actual, Expected)
        assert isinstance(expected, Expected)
        assert_same_expected(actual, expected)


@pytest.mark.parametrize("level", ["smoke", "full"])
def test_which_cases_are_basic_survives(tmp_path: Path, level: str) -> None:
    cases = [compute_baseline_case(lookup("diopiSin"), case) for case in select_cases("diopiSin", level)]
    path = store.baseline_file(tmp_path, "diopiSin")
    store.write_baseline_file(path, "diopiSin", cases, Provenance(level, "key", {}))
    assert [case.smoke for case in BaselineFile(path)] == [case.smoke for case in cases]
    assert {case.smoke for case in cases} == {True, False}


def test_every_kind_of_argument_survives(tmp_path: Path) -> None:
    tensor = BaselineTensor(np.arange(6, dtype=np.int64).reshape(2, 3), Dtype.int64, "transposed")
    arguments = {
        "tensor": tensor,
        "tensors": [tensor, None],
        "none": None,
        "flag": True,
        "integer": 1,
        "number": 1.0,
        "infinite": float("inf"),
        "text": "floor",
        "sizes": (2, 3),
        "no_sizes": (),
    }
    case = BaselineCase(
        function="diopiAny", label="int64-all", dtype=Dtype.int64, arguments=arguments, expected={"out": None}
    )
    store.write_baseline_file(tmp_path / "diopiAny.h5", "diopiAny", [case], PROVENANCE)
    read = BaselineFile(tmp_path / "diopiAny.h5").case("int64-all").arguments
    for name in ("none", "flag", "integer", "number", "infinite", "text", "sizes", "no_sizes"):
        assert read[name] == arguments[name]
        assert type(read[name]) is type(arguments[name])
    assert np.array_equal(read["tensor"].values, tensor.values)
    assert np.array_equal(read["tensors"][0].values, tensor.values)
    assert read["tensors"][1] is None


def test_the_same_cases_give_the_same_bytes(tmp_path: Path, path: Path) -> None:
    second_path = tmp_path / "again.h5"
    store.write_baseline_file(second_path, "diopiSin", compute_cases("diopiSin"), PROVENANCE)
    assert second_path.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("length", [0, 100, 0.5, 0.99])
def test_a_truncated_file_is_named(path: Path, length: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(length * len(content)) if length < 1 else int(length)])
    with pytest.raises(BaselineError, match=str(path)):
        BaselineFile(path).verify()


def test_no_flipped_bit_goes_unnoticed_that_changes_a_case(path: Path) -> None:
    """For every 97th byte of the file: either the file is rejected, or none of its cases changes."""
    content = path.read_bytes()
    before = [case.arguments["input"].values.tobytes() for case in BaselineFile(path)]
    refused = 0
    for position in range(0, len(content), 97):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        try:
            file = BaselineFile(path)
            file.verify()
        except BaselineError as error:
            assert str(path) in str(error)
            refused += 1
        else:
            assert [case.arguments["input"].values.tobytes() for case in file] == before
    assert refused > len(content) // 97 // 2


def test_a_wrong_checksum_raises_an_error(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        data = file["index"][()]
        data[10] ^= 1
        file["index"][...] = data
    with pytest.raises(BaselineError, match="is damaged: sha256 of /index"):
        BaselineFile(path)


@pytest.mark.parametrize("attribute", ["format", "proto_version"])
def test_another_version_is_rejected(path: Path, attribute: str) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs[attribute] = 99999
    with pytest.raises(BaselineError, match=f"another version: {attribute} is 99999, expected .*gen-data"):
        BaselineFile(path)


def test_a_file_that_cannot_be_written_leaves_the_old_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(BaselineError, match="No space left"):
        store.write_baseline_file(path, "diopiSin", compute_cases("diopiSin"), PROVENANCE)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(("name", "part"), [("UNPACKED_LIMIT", "its /index"), ("LIMIT", "it")])
def test_a_file_too_large_to_read_is_not_written(
    path: Path, name: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()
    monkeypatch.setattr(store, name, 1000)
    with pytest.raises(BaselineError, match=rf"{part} .*\d+ bytes"):
        store.write_baseline_file(path, "diopiSin", compute_cases("diopiSin"), PROVENANCE)
    assert path.read_bytes() == before


def test_arrays_that_were_read_are_read_only(path: Path) -> None:
    expected = BaselineFile(path).case("float32-matrix").expected["out"]
    assert isinstance(expected, Expected)
    assert not expected.values.flags.writeable


def test_half_precision_expectations_keep_their_precision(path: Path) -> None:
    case = next(case for case in compute_cases("diopiSin") if case.label == "bfloat16-matrix")
    expected = case.expected["out"]
    read = BaselineFile(path).case("bfloat16-matrix").expected["out"]
    assert isinstance(expected, Expected)
    assert isinstance(read, Expected)
    assert read.values.dtype == np.float32
    assert np.abs(read.values - expected.values).max() <= 2.0**-25


@pytest.mark.parametrize(("dtype", "array_name"), [(Dtype.float32, "budget_ulps"), (Dtype.float64, "unit")])
def test_units_beside_zero_survive(tmp_path: Path, dtype: Dtype, array_name: str) -> None:
    """1e-10 is about 2^116 times the smallest float32 number, and over 2^1023 times the smallest float64 number."""
    actual = Expected(
        values=np.array([0.0, -0.0, 1.0, np.inf]), dtype=dtype, budget=Budget(np.array([1e-10, 1e-13, 1e-5, np.nan]))
    )
    path = tmp_path / "diopiAny.h5"
    store.write_baseline_file(
        path,
        "diopiAny",
        [BaselineCase(function="diopiAny", label="x", dtype=dtype, arguments={}, expected={"out": actual})],
        PROVENANCE,
    )
    with h5py.File(path) as file:
        index = bytes(file["index"][()]).decode()
    assert [name for name in ("budget_ulps", "unit") if f'"{name}"' in index] == [array_name]
    read = BaselineFile(path).case("x").expected["out"]
    assert isinstance(read, Expected)
    assert_same_expected(actual, read)


def test_files_of_the_previous_version_are_read(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs["format"] = store.FORMAT - 1
    assert [case.id for case in BaselineFile(path)] == [case.id for case in compute_cases("diopiSin")]
