"""The files of a level must match its manifest, and messages name each difference."""

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from baselines import create_huge_file, make_level

from diopi_proto.types import VERSION_NUMBER
from diopi_test.baseline import manifest
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.index_view import IndexView
from diopi_test.baseline.level import open_level, open_level_of_file
from diopi_test.baseline.store import FORMAT, BaselineFile
from diopi_test.cases.case import CaseClass
from diopi_test.execution.listing import list_cases
from diopi_test.run.collection import collect_file, collect_level

FUNCTIONS = ("diopiExp", "diopiSoftmax", "diopiSqrt")
FLIPS = 200


@pytest.fixture(scope="module")
def level_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small level."""
    return make_level(tmp_path_factory.mktemp("baseline") / "smoke", *FUNCTIONS)


@pytest.fixture
def folder(level_folder: Path, tmp_path: Path) -> Path:
    """Return a copy of a level that a test may damage."""
    return Path(shutil.copytree(level_folder, tmp_path / "smoke"))


def seal_manifest(text: str) -> bytes:
    """Return the text of a manifest with its correct digest."""
    return f'{text}"sha256": "{hashlib.sha256(text.encode()).hexdigest()}"\n}}\n'.encode()


def forge_manifest(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest and give it the correct digest."""
    path = folder / manifest.MANIFEST_NAME
    content = json.loads(path.read_text("utf-8"))
    del content["sha256"]
    change(content)
    path.write_bytes(seal_manifest(json.dumps(content)[:-1] + ", "))


def forge_file(folder: Path, make: Callable[[Any], object], function: str = "diopiSqrt") -> None:
    """Change the file of a function and its entry in the manifest."""
    content = BytesIO((folder / f"{function}.h5").read_bytes())
    with h5py.File(content, "r+") as file:
        make(file)
    (folder / f"{function}.h5").write_bytes(content.getvalue())
    digest = hashlib.sha256(content.getvalue()).hexdigest()
    entry = {"sha256": digest, "size": len(content.getvalue())}
    forge_manifest(folder, lambda content: content["files"][function].update(entry))


def forge_index(folder: Path, index: str) -> None:
    """Replace the index of a function's file, and its entry in the manifest."""

    def change(file: Any) -> None:
        del file["index"]
        file["index"] = np.frombuffer(index.encode(), np.uint8)
        file.attrs["index_sha256"] = hashlib.sha256(index.encode()).hexdigest()

    forge_file(folder, change)


def use(folder: Path) -> None:
    """Use a level's files in all ways in which a run uses them."""
    level = open_level(folder)
    level.verify(level.functions)
    for function in level.functions:
        assert list(level.open(function))


def test_open_level_returns_the_generated_cases(folder: Path) -> None:
    use(folder)
    level = open_level(folder)
    assert list(level.functions) == list(FUNCTIONS)
    for function in FUNCTIONS:
        file = BaselineFile(level.path(function))
        assert (level.sha256(function), file.level) == (file.digest, "smoke")
        assert [case.label for case in level.cases(function) if not case.base] == list(file.labels)


def test_the_digest_changes_with_the_key_of_a_file(folder: Path) -> None:
    before = open_level(folder).digest
    assert open_level(folder).digest == before
    forge_manifest(folder, lambda content: content["files"]["diopiExp"].update(key="another"))
    assert open_level(folder).digest != before


def test_a_file_belongs_to_the_level_of_its_folder(folder: Path) -> None:
    path = folder / "diopiSqrt.h5"
    before = open_level_of_file(path)
    assert (before.folder, open_level_of_file(path)) == (folder, before)
    forge_manifest(folder, lambda content: content["files"]["diopiExp"].update(key="another"))
    assert open_level_of_file(path).digest != before.digest
    with pytest.raises(BaselineError, match=r"diopiNeg\.h5.*manifest\.json"):
        open_level_of_file(folder / "diopiNeg.h5")
    (folder / manifest.MANIFEST_NAME).unlink()
    with pytest.raises(BaselineError, match="baseline"):
        open_level_of_file(path)


def test_cases_are_collected_without_opening_a_file(folder: Path) -> None:
    level = open_level(folder)
    for function in FUNCTIONS:
        assert level.cases(function) == list_cases(IndexView(folder / f"{function}.h5"))
    labels = [case for function in FUNCTIONS for case in collect_file(folder / f"{function}.h5")]
    for function in FUNCTIONS:
        (folder / f"{function}.h5").unlink()
    assert collect_level(level) == labels
    assert {case.case_class for case in labels} >= {CaseClass.basic, CaseClass.negative}
    assert collect_level(level, lambda name: "Softmax" in name) == [c for c in labels if c.function == "diopiSoftmax"]


def test_no_flipped_bit_is_accepted(folder: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    draw = random.Random(seed)
    for _ in range(FLIPS):
        path = draw.choice(sorted(folder.iterdir()))
        content = path.read_bytes()
        damaged = bytearray(content)
        damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(BaselineError, match=f"^{path} "):
            use(folder)
        path.write_bytes(content)
    use(folder)


def rename(folder: Path) -> None:
    """Store the file of one function under the name of another function."""
    os.replace(folder / "diopiExp.h5", folder / "diopiSqrt.h5")


def swap(folder: Path) -> None:
    """Exchange the files of two functions."""
    os.replace(folder / "diopiExp.h5", folder / "kept")
    os.replace(folder / "diopiSqrt.h5", folder / "diopiExp.h5")
    os.replace(folder / "kept", folder / "diopiSqrt.h5")


def replace_file(make: Callable[[Path], object], name: str = "diopiSqrt.h5") -> Callable[[Path], object]:
    """Return a function that replaces a file of a folder by what `make` creates at its path."""

    def replace(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return replace


def forged(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    """Return a function that changes the manifest of a folder and gives it the correct digest."""
    return lambda folder: forge_manifest(folder, change)


def of_kind(make: Callable[[Any], object]) -> Callable[[Path], object]:
    """Return a function that replaces /data in a file by what `make` writes, and adapts the manifest."""

    def change(file: Any) -> None:
        del file["data"]
        make(file)

    return lambda folder: forge_file(folder, change)


def truncate_manifest(length: int) -> Callable[[Path], object]:
    """Return a change that truncates the manifest to this length."""
    return lambda folder: os.truncate(folder / manifest.MANIFEST_NAME, length)


def entry(**changed: object) -> Callable[[Path], object]:
    """Return a change of the manifest's entry of `diopiSqrt`, with a correct digest."""
    return forged(lambda content: content["files"]["diopiSqrt"].update(changed))


FILE, MANIFEST = r"{folder}/diopiSqrt\.h5 ", r"{folder}/manifest\.json "
DAMAGED = MANIFEST + "is damaged, truncated or edited"

DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    # files
    "renamed": (rename, r"{folder} lacks files that are in its manifest: diopiExp\.h5; .*gen-data --level smoke"),
    "missing": (lambda folder: (folder / "diopiSqrt.h5").unlink(), r"{folder} lacks .*: diopiSqrt\.h5;"),
    "foreign": (
        lambda f: shutil.copy(f / "diopiSqrt.h5", f / "diopiCos.h5"),
        r"{folder} has .* not in .*: diopiCos\.h5;",
    ),
    "swapped": (
        swap,
        r"{folder}/diopiExp\.h5 differs from the manifest of its level: its sha256 is \w+, expected \w+",
    ),
    "empty": (replace_file(Path.touch), FILE + "differs from the manifest of its level"),
    "folder": (replace_file(Path.mkdir), FILE + "is a folder, expected a regular file"),
    "FIFO": (replace_file(os.mkfifo), FILE + "is a FIFO, expected a regular file"),
    "device": (replace_file(lambda path: path.symlink_to("/dev/zero")), FILE + "is a character device"),
    "sparse": (replace_file(create_huge_file), FILE + r"is too large: it has \d+ bytes or more, expected at most \d+"),
    # files that match the manifest
    "huge dataset": (
        of_kind(lambda file: file.create_dataset("data", (2**50,), "u1", chunks=(2**20,))),
        FILE + f"is not a readable baseline file: /data has {2**50} bytes",
    ),
    "group": (of_kind(lambda file: file.create_group("data")), FILE + ".*/data is a group, expected a dataset"),
    "floats": (of_kind(lambda file: file.create_dataset("data", data=[1.0])), FILE + ".*/data has .* of float64"),
    "no data": (of_kind(lambda file: None), FILE + ".*/data is not there"),
    "another function": (
        lambda folder: forge_file(folder, lambda file: file.attrs.__setitem__("function", "diopiExp")),
        FILE + "has the cases of diopiExp, expected those of diopiSqrt",
    ),
    "another level": (
        lambda folder: forge_file(folder, lambda file: file.attrs.__setitem__("level", "full")),
        FILE + "is of level full, expected smoke",
    ),
    "another format": (
        lambda folder: forge_file(folder, lambda file: file.attrs.__setitem__("format", FORMAT + 1)),
        FILE + f"is of another version: format is {FORMAT + 1}, expected {FORMAT}",
    ),
    # the manifest
    "no manifest": (
        lambda f: (f / manifest.MANIFEST_NAME).unlink(),
        r"there is no baseline in {folder}: .*gen-data --level smoke",
    ),
    "manifest is a FIFO": (replace_file(os.mkfifo, manifest.MANIFEST_NAME), MANIFEST + "is a FIFO"),
    "manifest is empty": (truncate_manifest(0), DAMAGED),
    "manifest has its beginning": (truncate_manifest(100), DAMAGED),
    "manifest lacks its end": (
        lambda f: os.truncate(f / manifest.MANIFEST_NAME, (f / manifest.MANIFEST_NAME).stat().st_size - 1),
        DAMAGED,
    ),
    "manifest is no JSON": (lambda f: (f / manifest.MANIFEST_NAME).write_text("no"), DAMAGED),
    "sealed, but no JSON": (
        lambda f: (f / manifest.MANIFEST_NAME).write_bytes(seal_manifest("no")),
        MANIFEST + "is not a valid manifest: Expecting",
    ),
    "sealed, but deep": (
        lambda f: (f / manifest.MANIFEST_NAME).write_bytes(seal_manifest("[" * 10**6)),
        MANIFEST + "is not a valid manifest",
    ),
    "list": (
        entry(cases={}),
        MANIFEST + r"is not a valid manifest: LevelManifest\.files\.diopiSqrt\.cases: expected list, found \{{\}}",
    ),
    "digest": (
        entry(sha256=1),
        MANIFEST + r"is not a valid manifest: LevelManifest\.files\.diopiSqrt\.sha256: expected str, found 1",
    ),
    "size": (
        entry(size="1"),
        MANIFEST + r"is not a valid manifest: LevelManifest\.files\.diopiSqrt\.size: expected int, found '1'",
    ),
    "case": (entry(cases=["x"]), MANIFEST + r"is not a valid manifest: .*cases\[0\]: expected dict, found 'x'"),
    "dtype": (
        entry(cases=[{"label": "x", "dtype": "f8"}]),
        MANIFEST + r"is not a valid manifest: .*dtype: expected one of .*'f8'",
    ),
    "more": (
        forged(lambda content: content.update(color=1)),
        MANIFEST + "is not a valid manifest: LevelManifest: unknown color",
    ),
    "less": (
        forged(lambda content: content.pop("files")),
        MANIFEST + "is not a valid manifest: LevelManifest: missing files",
    ),
    "version": (
        forged(lambda content: content.update(format=0)),
        MANIFEST + f"is of another version: format is 0, expected {manifest.FORMAT}",
    ),
    "standard": (
        forged(lambda content: content.update(proto_version=None)),
        MANIFEST + f"is of another version: proto_version is None, expected {VERSION_NUMBER}",
    ),
    "level": (forged(lambda content: content.update(level="full")), MANIFEST + "is of level full, expected smoke"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_changed_file_or_manifest_is_named(folder: Path, name: str) -> None:
    damage, message = DAMAGE[name]
    damage(folder)
    with pytest.raises(BaselineError, match=f"^{message.format(folder=folder)}"):
        use(folder)


def test_a_function_that_the_standard_does_not_have_is_named(folder: Path) -> None:
    os.replace(folder / "diopiExp.h5", folder / "diopiNothing.h5")
    forge_manifest(folder, lambda content: content["files"].update(diopiNothing=content["files"].pop("diopiExp")))
    with pytest.raises(BaselineError, match=r"diopiNothing\.h5"):
        open_level(folder)


def test_an_error_names_at_most_five_files(folder: Path) -> None:
    for number in range(9):
        (folder / f"diopiOther{number}.h5").touch()
    with pytest.raises(BaselineError, match=r"diopiOther4\.h5 and 4 more;"):
        open_level(folder)


TENSOR = '{"tensor": {"offset": 0, "type": "float32", "shape": [2]}, "dtype": "float32", "layout": "contiguous"}'
RECORD = f'[{{"label": "a", "dtype": "float32", "arguments": {{"input": {TENSOR}}}, "expected": {{}}}}]'

INDEXES = {
    "no JSON": "[",
    "deep": "[" * 10**5,
    "an object": '{"label": "a"}',
    "numbers": "[1, 2]",
    "no arguments": '[{"label": "a", "dtype": "float32"}]',
    "another type": RECORD.replace('"dtype": "float32", "arg', '"dtype": "f4", "arg'),
    "far away": RECORD.replace('"offset": 0', '"offset": 1000000000'),
    "before": RECORD.replace('"offset": 0', '"offset": -8'),
    "a create_huge_file": RECORD.replace("[2]", "[1125899906842624]"),
    "negative": RECORD.replace("[2]", "[-1]"),
    "sizes that do not fit": RECORD.replace("[2]", f"[0, {10**30}]"),
    "no sizes": RECORD.replace("[2]", "2"),
    "fractions": RECORD.replace("[2]", "[1.5]"),
    "no such type": RECORD.replace('"type": "float32"', '"type": "float31"'),
    "objects": RECORD.replace('"type": "float32"', '"type": "object"'),
    "a class": RECORD.replace('"label"', '"class": "best", "label"'),
}


@pytest.mark.parametrize("name", INDEXES)
def test_a_malformed_index_is_reported(folder: Path, name: str) -> None:
    forge_index(folder, RECORD)
    level = open_level(folder)
    assert [case.arguments["input"].values.shape for case in level.open("diopiSqrt")] == [(2,)]
    forge_index(folder, INDEXES[name])
    with pytest.raises(BaselineError, match=f"^{folder}/diopiSqrt.h5 .*decoded"):
        list(open_level(folder).open("diopiSqrt"))


def test_a_case_that_a_file_does_not_have_is_named(folder: Path) -> None:
    with pytest.raises(BaselineError, match=r"diopiSqrt\.h5 .*float31-none"):
        open_level(folder).open("diopiSqrt").case("float31-none")
