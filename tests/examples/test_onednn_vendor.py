"""The example vendor of oneDNN: the suite finds known bugs of oneDNN, and the diagnoses name their reasons.

The tests need oneDNN with its headers. DIOPI_ONEDNN is a folder with `include` and `lib`, such as a virtual environment
in which the package onednn-devel or onednn-devel-cpu-gomp is installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sampling import SEED

from diopi_proto.headers import INCLUDE_DIR

FOLDER = Path(__file__).parents[2] / "examples" / "vendors" / "onednn"

WAIVERS = FOLDER / "waivers.toml"

VERSIONS = ("3.2.0", "3.13.2")
"""The versions to which the waivers apply."""

FUNCTIONS = (
    *("HardswishBackward", "LeakyReluBackward", "LogSoftmax", "Log", "MaxAll", "MaxPool2d", "MinAll", "Mul", "Softmax"),
    *("Sqrt", "ThresholdBackward"),
)
"""The tested functions: some with known bugs, and one without."""

CPU_INFO = Path("/proc/cpuinfo")

WITH_AVX512 = pytest.mark.skipif(
    not (CPU_INFO.exists() and "avx512f" in CPU_INFO.read_text("utf-8")),
    reason="oneDNN has other kernels, with other defects, on a processor without AVX-512",
)
"""Marks tests of defects and waivers that belong to the kernels for AVX-512."""


@pytest.fixture(scope="module")
def onednn() -> Path:
    """Return the folder of oneDNN; skip the test if it is not installed."""
    folder = Path(os.environ.get("DIOPI_ONEDNN", sys.prefix))
    if not (folder / "include" / "oneapi" / "dnnl" / "dnnl.hpp").exists():
        pytest.skip(f"there is no oneDNN in {folder}; install onednn-devel and set DIOPI_ONEDNN to its folder")
    if shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("there is no CMake or no C++ compiler here")
    return folder


@pytest.fixture(scope="module")
def library(onednn: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the example vendor and return the path of its library."""
    build = tmp_path_factory.mktemp("onednn")
    settings = (f"-Ddiopi_DIR={INCLUDE_DIR.parent / 'cmake'}", f"-Ddnnl_ROOT={onednn}")
    for command in (["cmake", "-S", str(FOLDER), "-B", str(build), *settings], ["cmake", "--build", str(build)]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return build / "libdiopi_impl.so"


@pytest.fixture(scope="module")
def version(onednn: Path) -> str:
    """Return the version of oneDNN, as its header states it."""
    header = (onednn / "include" / "oneapi" / "dnnl" / "dnnl_version.h").read_text("utf-8")
    return ".".join(re.findall(r"^#define DNNL_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)$", header, re.MULTILINE))


@pytest.fixture(scope="module")
def environment(onednn: Path) -> Mapping[str, str]:
    """Return the environment variables for versions that run on SYCL; other versions ignore them."""
    return {**os.environ, "OCL_ICD_FILENAMES": str(onednn / "lib" / "libintelocl.so")}


@pytest.fixture(scope="module")
def causes(environment: Mapping[str, str], library: Path) -> list[Mapping[str, Any]]:
    """Run the suite on the example vendor and return the causes of its failures."""
    return run(library, environment, status=1)


def run(library: Path, environment: Mapping[str, str], status: int) -> list[Mapping[str, Any]]:
    """Return the causes of a run of the tested functions."""
    report = library.parent / "report.json"
    names = [word for name in FUNCTIONS for word in ("--function", f"diopi{name}")]
    command = [sys.executable, "-m", "diopi_test", "run", "--vendor", str(library), "-n", "1", "--json", str(report)]
    done = subprocess.run([*command, *names], env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    found: list[Mapping[str, Any]] = json.loads(report.read_text("utf-8"))["causes"]
    return found


@pytest.mark.parametrize(
    ("function", "diagnosis"),
    [
        ("diopiMinAll", "accumulator-starts-at-lowest"),
        ("diopiMaxPool2d", "accumulator-starts-at-lowest"),
        ("diopiSoftmax", "nan-dropped"),
        ("diopiMaxPool2d", "nan-dropped"),
        ("diopiLog", "inaccurate-approximation"),
        ("diopiLogSoftmax", "nan-dropped"),
        ("diopiThresholdBackward", "masked-by-multiplication"),
        pytest.param("diopiHardswishBackward", "masked-by-multiplication", marks=WITH_AVX512),
        pytest.param("diopiLeakyReluBackward", "nan-compared", marks=WITH_AVX512),
        ("diopiMul", "integers-saturate"),
    ],
)
def test_a_known_bug_has_its_diagnosis(causes: list[Mapping[str, Any]], function: str, diagnosis: str) -> None:
    found = [cause.get("diagnosis") for cause in causes if function in cause["functions"]]
    assert diagnosis in found


def test_the_logarithm_makes_log_softmax_inaccurate(causes: list[Mapping[str, Any]], version: str) -> None:
    if version == "3.2.0":
        pytest.skip("log-softmax of this version does not use the inaccurate logarithm")
    found = [cause.get("diagnosis") for cause in causes if "diopiLogSoftmax" in cause["functions"]]
    assert "inaccurate-approximation" in found


@WITH_AVX512
def test_a_random_sample_passes_with_the_waivers(environment: Mapping[str, str], library: Path, version: str) -> None:
    if version not in VERSIONS:
        pytest.skip(f"the waivers are those of {' and '.join(VERSIONS)}")
    sample = ["--shuffle", os.environ[SEED], "--sample", "150", "-n", "1"]
    command = [sys.executable, "-m", "diopi_test", "run", "--strict", "--vendor", str(library), *sample]
    done = subprocess.run(
        [*command, "--waivers", str(WAIVERS)], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_correct_function_has_no_cause(causes: list[Mapping[str, Any]]) -> None:
    assert not [cause for cause in causes if "diopiSqrt" in cause["functions"]]


def test_an_engine_that_cannot_be_created_has_its_diagnosis(onednn: Path, library: Path) -> None:
    if not (onednn / "lib" / "libintelocl.so").exists():
        pytest.skip("this oneDNN does not run on SYCL, so that its engine needs no device")
    environment = {name: value for name, value in os.environ.items() if name != "OCL_ICD_FILENAMES"}
    assert [cause.get("diagnosis") for cause in run(library, environment, status=3)] == ["engine-cannot-start"]
