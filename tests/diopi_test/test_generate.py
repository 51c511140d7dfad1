"""Generation: deterministic, resumable, parallel."""

from pathlib import Path

import pytest

from diopi_test import generate, store
from diopi_test.store import BaselineFile

FUNCTIONS = ["diopiSin", "diopiSinInp", "diopiFloor"]


def ignore(function: str, cases: int) -> None:
    pass


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_any_number_of_workers_makes_the_same_bytes(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert generate.generate(FUNCTIONS, "smoke", one, 1, ignore) == generate.generate(
        list(reversed(FUNCTIONS)), "smoke", two, 2, ignore
    )
    assert contents(one) == contents(two)
    assert sorted(contents(one)) == sorted(f"{name}.h5" for name in FUNCTIONS)


def test_finished_files_are_kept_and_leftovers_removed(tmp_path: Path) -> None:
    generate.generate_function("diopiSin", "smoke", tmp_path)
    (tmp_path / f".diopiFloor-1{store.PART_SUFFIX}").write_bytes(b"half")
    written = (tmp_path / "diopiSin.h5").stat().st_mtime_ns
    made: dict[str, int] = {}
    generate.generate(["diopiSin", "diopiFloor"], "smoke", tmp_path, 1, made.__setitem__)
    assert made["diopiSin"] == 0
    assert made["diopiFloor"] > 0
    assert (tmp_path / "diopiSin.h5").stat().st_mtime_ns == written
    assert sorted(contents(tmp_path)) == ["diopiFloor.h5", "diopiSin.h5"]


def test_a_stale_or_damaged_file_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = generate.generate_function("diopiSin", "smoke", tmp_path)
    path = tmp_path / "diopiSin.h5"
    path.write_bytes(path.read_bytes()[:500])
    assert generate.generate_function("diopiSin", "smoke", tmp_path) == cases
    monkeypatch.setattr(generate, "key", lambda function, level: "another key")
    assert generate.generate_function("diopiSin", "smoke", tmp_path) == cases


def test_the_key_depends_on_the_family_and_level() -> None:
    assert generate.key("diopiSin", "smoke") == generate.key("diopiCos", "smoke")
    assert generate.key("diopiSin", "smoke") != generate.key("diopiSin", "full")
    assert generate.key("diopiSin", "smoke") != generate.key("diopiAdd", "smoke")


def test_smoke_is_part_of_full(tmp_path: Path) -> None:
    for level in ("smoke", "full"):
        generate.generate_function("diopiFloor", level, tmp_path / level)
    smoke, full = (BaselineFile(tmp_path / level / "diopiFloor.h5") for level in ("smoke", "full"))
    assert set(smoke.labels) < set(full.labels)
    for label in smoke.labels:
        one, other = smoke.case(label).arguments["input"], full.case(label).arguments["input"]
        assert one.values.tobytes() == other.values.tobytes()
