"""Generation of baselines is deterministic, resumable and parallel."""

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from baselines import enter, make_level, map_in_this_process

from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_test.baseline import generate, manifest
from diopi_test.baseline.files import PART_SUFFIX
from diopi_test.baseline.level import open_level
from diopi_test.baseline.manifest import read_manifest
from diopi_test.baseline.parallel import process_map
from diopi_test.baseline.store import BaselineFile
from diopi_test.cases.case import Case
from diopi_test.cases.selection import select_cases
from diopi_test.execution.listing import list_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, expected_arrays

FUNCTIONS = ["diopiSin", "diopiSinInp", "diopiFloor"]


def ignore(function: str, cases: int) -> None:
    """Ignore the progress of the generation."""
    pass


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of each file of a folder by file name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_number_of_workers_does_not_change_the_files(tmp_path: Path) -> None:
    single, two = tmp_path / "one", tmp_path / "two"
    computed = generate.generate(FUNCTIONS, "smoke", single, map_in_this_process, ignore, list_cases)
    assert generate.generate(list(reversed(FUNCTIONS)), "smoke", two, process_map(2), ignore, list_cases) == computed
    assert contents(single) == contents(two)
    assert sorted(contents(single)) == sorted([*(f"{name}.h5" for name in FUNCTIONS), manifest.MANIFEST_NAME])


def test_the_order_does_not_change_the_files(tmp_path: Path) -> None:
    order: list[list[str]] = []
    for name, seed in (("plain", None), ("one", 1), ("other", 2)):
        order.append([])
        note = partial(lambda computed, function, cases: computed.append(function), order[-1])
        generate.generate(FUNCTIONS, "smoke", tmp_path / name, map_in_this_process, note, list_cases, seed)
    assert contents(tmp_path / "one") == contents(tmp_path / "other") == contents(tmp_path / "plain")
    assert any(order != order[0] for order in order)


def test_the_seed_determines_the_order_of_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []

    def note(prototype: Prototype, case: Case) -> BaselineCase:
        computed.append(case.label)
        return compute_baseline_case(prototype, case)

    monkeypatch.setattr(generate, "compute_baseline_case", note)
    generate.generate_function("diopiSin", "smoke", tmp_path, seed=7)
    labels = BaselineFile(tmp_path / "diopiSin.h5").labels
    assert sorted(computed) == sorted(labels)
    assert computed != labels


def test_an_error_names_the_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(prototype: Prototype, case: Case) -> BaselineCase:
        raise ValueError("nothing fits")

    monkeypatch.setattr(generate, "compute_baseline_case", fail)
    with pytest.raises(ValueError, match="nothing fits") as caught:
        generate.generate_function("diopiSin", "smoke", tmp_path)
    assert caught.value.__notes__[0].startswith("while computing diopiSin[")


def make(folder: Path, *functions: str) -> dict[str, int]:
    """Generate baseline files in this process; return the number of generated cases by function."""
    computed: dict[str, int] = {}
    generate.generate(functions, folder.name, folder, map_in_this_process, computed.__setitem__, list_cases)
    return computed


def test_finished_files_are_kept_and_leftovers_removed(tmp_path: Path) -> None:
    folder = make_level(tmp_path / "smoke", "diopiSin")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    at_work = folder / f".diopiSqrt.h5-{os.getpid()}{PART_SUFFIX}"
    for part in (f"diopiFloor.h5-{gone.pid}", "diopiFloor"):
        (folder / f".{part}{PART_SUFFIX}").write_bytes(b"half")
    at_work.write_bytes(b"half")
    written = (folder / "diopiSin.h5").stat().st_mtime_ns
    computed = make(folder, "diopiSin", "diopiFloor")
    assert computed["diopiSin"] == 0
    assert computed["diopiFloor"] > 0
    assert (folder / "diopiSin.h5").stat().st_mtime_ns == written
    assert sorted(contents(folder)) == sorted([at_work.name, "diopiFloor.h5", "diopiSin.h5", manifest.MANIFEST_NAME])


@pytest.mark.parametrize("damage", ["stale", "truncated", "missing", "of another function", "not in the manifest"])
def test_outdated_or_damaged_files_are_regenerated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    folder = make_level(tmp_path / "smoke", "diopiSin", "diopiSinInp")
    path, before = folder / "diopiSin.h5", contents(folder)
    match damage:
        case "stale":
            monkeypatch.setattr(generate, "baseline_key", lambda function, level: f"another key of {function}")
        case "truncated":
            path.write_bytes(path.read_bytes()[:500])
        case "missing":
            path.unlink()
        case "of another function":
            os.replace(folder / "diopiSinInp.h5", path)
        case "not in the manifest":
            enter(make_level(tmp_path / "other" / "smoke", "diopiSinInp"))
            shutil.copy(tmp_path / "other" / "smoke" / manifest.MANIFEST_NAME, folder)
    assert make(folder, "diopiSin", "diopiSinInp")["diopiSin"] > 0
    assert damage == "stale" or contents(folder) == before


def test_an_interrupted_run_keeps_finished_files(tmp_path: Path) -> None:
    folder = tmp_path / "smoke"

    def interrupt(function: str, computed: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate.generate(FUNCTIONS, "smoke", folder, map_in_this_process, interrupt, list_cases)
    found, _ = read_manifest(folder)
    assert len(found.files) == 1
    computed = make(folder, *FUNCTIONS)
    assert {function for function, number in computed.items() if not number} == set(found.files)
    level = open_level(folder)
    level.verify(level.functions)
    assert list(level.functions) == sorted(FUNCTIONS)


def test_entries_of_functions_without_cases_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_level(tmp_path / "smoke", "diopiSin", "diopiCos")
    make(folder, "diopiSin")
    assert list(open_level(folder).functions) == ["diopiCos", "diopiSin"]
    real = generate.select_cases
    monkeypatch.setattr(generate, "select_cases", lambda name, level: () if name == "diopiCos" else real(name, level))
    make(folder, "diopiSin")
    assert list(open_level(folder).functions) == ["diopiSin"]


def test_the_cases_of_an_unchanged_file_are_listed_again(tmp_path: Path) -> None:
    folder = make_level(tmp_path / "smoke", "diopiSin")
    before = open_level(folder).cases("diopiSin")
    generate.generate(["diopiSin"], "smoke", folder, map_in_this_process, ignore, lambda file: list_cases(file)[:2])
    assert open_level(folder).cases("diopiSin") == before[:2]


def test_a_manifest_of_another_level_is_replaced(tmp_path: Path) -> None:
    make_level(tmp_path / "smoke", "diopiSin")
    folder = tmp_path / "full"
    shutil.copytree(tmp_path / "smoke", folder)
    assert make(folder, "diopiSin")["diopiSin"] > 0
    assert open_level(folder).open("diopiSin").level == "full"


def test_the_key_depends_on_the_family_and_level() -> None:
    assert generate.baseline_key("diopiSin", "full") == generate.baseline_key("diopiCos", "full")
    assert generate.baseline_key("diopiSin", "smoke") != generate.baseline_key("diopiSin", "full")
    assert generate.baseline_key("diopiSin", "smoke") != generate.baseline_key("diopiAdd", "smoke")


def test_smoke_is_part_of_full(tmp_path: Path) -> None:
    for level in ("smoke", "full"):
        generate.generate_function("diopiFloor", level, tmp_path / level)
    smoke, full = (BaselineFile(tmp_path / level / "diopiFloor.h5") for level in ("smoke", "full"))
    assert set(smoke.labels) < set(full.labels)
    for label in smoke.labels:
        single, full_case = smoke.case(label).arguments["input"], full.case(label).arguments["input"]
        assert single.values.tobytes() == full_case.values.tobytes()


def test_an_empty_unspecified_result_stays_unspecified() -> None:
    prototype = lookup("diopiCustomizedFlashAttention")
    case = next(case for case in select_cases(prototype.name, "smoke") if case.label == "float32")
    (mask,) = expected_arrays(compute_baseline_case(prototype, case).expected["dropout_mask"])
    assert (mask.values.size, mask.specified is None) == (0, False), "nothing is dropped: whether it is made is open"
