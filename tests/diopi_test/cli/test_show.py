"""`diopi-test show` shows a stored or derived case, found by its ID or a part of it, with its whole call."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from baselines import enter
from click.testing import CliRunner, Result
from trials import baseline_case

from diopi_test.baseline.store import Provenance, baseline_file, write_baseline_file
from diopi_test.cli import main

LABELS = {
    "diopiAdd": ("float32-row", "float32-long", "int64-row", "float16-special", "complex64-row"),
    "diopiSplitWithSizes": ("float32-rows",),
    "diopiSort": ("float32-rows",),
    "diopiDropout": ("float32-sample",),
    "diopiBatchNormBackward": ("float32-training",),
    "diopiSigmoid": ("float32-matrix",),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a folder with the cases of this test."""
    folder = tmp_path_factory.mktemp("data")
    for function, labels in LABELS.items():
        cases = [baseline_case(function, label) for label in labels]
        write_baseline_file(baseline_file(folder / "smoke", function), function, cases, Provenance("smoke", "key", {}))
    enter(folder / "smoke", *LABELS)
    return folder


def show(data: Path, *words: str) -> Result:
    """Run `diopi-test show` and return its result."""
    return CliRunner().invoke(main, ["show", *words, "--data", str(data)])


def test_show_prints_the_call_of_a_stored_case(data: Path) -> None:
    done = show(data, "diopiAdd[float32-row]")
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == "diopiAdd[float32-row]"
    assert lines[1] == "  class basic, called more than once, element type float32"
    assert lines[2].startswith("  diopiError_t diopiAdd(diopiContextHandle_t ctx, diopiTensorHandle_t out, ")
    assert "  other: float32 (5,), strides (1,), contiguous" in lines
    assert "  alpha: -0.75" in lines
    assert "ulps, K = 8 included" in done.output
    numbers = baseline_case("diopiAdd", "float32-row").arguments["other"].values
    assert np.array2string(numbers, max_line_width=100) in done.output
    assert "checked in 3 calls" in lines
    assert "  values: The check of the values" in done.output and "  layout: The check that the results" in done.output


@pytest.mark.parametrize(
    ("case", "texts"),
    [
        ("diopiAdd[int64-row]", ["    must be exact", "int64 (4, 5), strides (5, 1), contiguous"]),
        ("diopiAdd[float16-special]", [" NaN, ", " infinite", "the vendor may replace subnormal inputs by zero"]),
        ("diopiAdd[complex64-row]", ["j "]),
        ("diopiSplitWithSizes[float32-rows]", ["  outs.0: ", "  outs.1: "]),
        ("diopiSort[float32-rows]", ["checked in "]),
        ("diopiDropout[float32-sample]", ["  validity: ", "and further calls"]),
    ],
)
def test_show_prints_the_properties_of_a_case(data: Path, case: str, texts: list[str]) -> None:
    output = show(data, case).output
    assert [text for text in texts if text not in output] == []


def test_show_prints_whole_arrays_with_full(data: Path) -> None:
    summary, full = (show(data, "diopiAdd[float32-long]", *words).output for words in ((), ("--full",)))
    assert "..." in summary and "..." not in full
    assert len(full) > 5 * len(summary)


def test_show_explains_a_negative_test(data: Path) -> None:
    output = show(data, "diopiAdd[negative-other-shape]").output
    assert "  derived from diopiAdd[float32-row]\n" in output
    assert "  the vendor must reject the call and change nothing: other has shape (6,)" in output
    assert "  changed: other was float32 (5,), strides (1,), contiguous, now float32 (6,)" in output
    assert "checked in 1 call\n  refused: An error code was returned" in output


def test_show_explains_an_ignored_argument(data: Path) -> None:
    output = show(data, "diopiBatchNormBackward[callers-running_mean-null]").output
    assert "  must have the same results as that case: Where `training` is true" in output
    assert ", now NULL\n" in output


def test_show_accepts_a_unique_part_of_an_id(data: Path) -> None:
    assert show(data, "diopiAdd[INT64-r").output.startswith("diopiAdd[int64-row]\n")
    assert show(data, "Add[int64").output.startswith("diopiAdd[int64-row]\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "diopiAdd[float32",
            "matches 2 cases: diopiAdd[float32-row], diopiAdd[float32-long]",
        ),
        ("diopiAdd[float32-raw]", "no case matches 'diopiAdd[float32-raw]'. Did you mean 'diopiAdd[float32-row]'"),
        ("diopiAd[float32-row]", "no case matches 'diopiAd[float32-row]'. Did you mean 'diopiAdd"),
        ("rows", "'rows' matches "),
        ("zzz[", "no case matches 'zzz['.\n"),
    ],
)
def test_show_suggests_similar_ids(data: Path, words: str, message: str) -> None:
    done = show(data, words)
    assert done.exit_code == 2
    assert message in done.output


def test_show_exits_3_without_a_readable_baseline(data: Path, tmp_path: Path) -> None:
    assert show(tmp_path, "diopiAdd").exit_code == 3
    file = baseline_file(tmp_path / "smoke", "diopiAdd")
    file.parent.mkdir()
    file.write_bytes(b"nothing")
    done = show(tmp_path, "diopiAdd")
    assert done.exit_code == 3
    assert "it has no manifest.json" in done.output


def test_show_rejects_a_file_with_a_flipped_bit(data: Path, tmp_path: Path) -> None:
    damaged_folder = Path(shutil.copytree(data, tmp_path / "data"))
    path = baseline_file(damaged_folder / "smoke", "diopiAdd")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    done = show(damaged_folder, "diopiAdd[float32-row]")
    assert done.exit_code == 3
    assert "sha256" in done.output


def test_show_prints_the_budgets_of_declared_numerics(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    outputs = [show(data, "diopiSigmoid[float32-matrix]", *words).output for words in ([], ["--numerics", "fast-math"])]
    largest = [float(re.findall(r"([0-9.e+]+) \(largest\) ulps", output)[0]) for output in outputs]
    assert largest[0] < largest[1] < 100 * largest[0]
    assert "tf33" in show(data, "diopiSigmoid", "--numerics", "tf33").output
