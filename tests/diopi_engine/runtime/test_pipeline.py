"""The pipeline of two engines has the same results in C and in Python."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from c_programs import SOURCES, build_program, environment

THRESHOLDS = ("1", "0.9", "0")
"""Thresholds at which no object is found, fewer objects than a batch has, and more."""

OBJECT = re.compile(r"picture (\d+): (\S+) (\S+) (\S+) (\S+), score (\S+), class (\d+)")


def test_the_c_program_computes_the_same_as_python(
    library: Path, locks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("pipeline", SOURCES / "pipeline.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "pipeline", module)
    spec.loader.exec_module(module)
    folder = tmp_path / "new" / "folder"
    module.main(folder)
    files = [folder / name for name in ("detector.engine", "classifier.engine", "pictures")]
    program = build_program("pipeline", library, tmp_path)
    done = subprocess.run([program, *files, *THRESHOLDS], env=environment(locks), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    cores, *lines = done.stdout.splitlines()
    assert cores == "cores in use: 1"
    group = [module.Engine.load(file) for file in files[:2]]
    numbers = []
    for threshold in THRESHOLDS:
        expected = module.detect_objects(group, module.pictures(), float(threshold))
        assert lines.pop(0) == f"objects in 6 pictures: {len(expected)}, batches of up to {module.MAX_BATCH}"
        numbers.append(len(expected))
        for line in expected:
            matched = OBJECT.fullmatch(lines.pop(0))
            assert matched is not None
            picture, *place, label = matched.groups()
            assert (int(picture), int(label)) == (line.picture, line.label)
            np.testing.assert_allclose([float(text) for text in place], [*line.box, line.score], atol=2e-6)
    assert not lines
    assert numbers[0] == 0 < numbers[1] <= module.MAX_BATCH < numbers[2]


@pytest.mark.slow
@pytest.mark.parametrize(("example", "program"), [("engine_c", "batches"), ("engine_nvdla", "walkthrough")])
def test_cmake_builds_the_examples_without_options(example: str, program: str, tmp_path: Path, locks: Path) -> None:
    if not all(map(shutil.which, ("cmake", "cc", "c++"))):
        pytest.skip("there is no CMake or no compiler here")
    settings = environment(locks)
    settings["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), settings["PATH"]])
    source = SOURCES.with_name(example)
    for command in (["cmake", "-S", source, "-B", tmp_path], ["cmake", "--build", tmp_path]):
        done = subprocess.run(command, env=settings, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / program).exists()
