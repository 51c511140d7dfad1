"""`diopi-test doctor` finds what is missing and says what to do."""

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_test.cli import examination, main
from diopi_test.cli.examination import InstallationCheck, State, examine


def examine_vendors(*vendors: str) -> dict[str, InstallationCheck]:
    """Return the results of the checks by subject, for the named vendors only."""
    return {finding.subject: finding for finding in examine(vendors or ("none.such:vendor",))}


def test_doctor_exits_0_for_this_installation() -> None:
    done = CliRunner().invoke(main, ["doctor", "--vendor", "jax_cpu"])
    assert done.exit_code == 0, done.output
    assert not [line for line in done.output.splitlines() if line.startswith("missing")]
    for word in (
        "Python: 3.",
        "numpy",
        "libdiopirt.so",
        "vendor jax_cpu: jax_cpu",
        "of this version",
        "free",
        "available",
    ):
        assert word in done.output


def test_doctor_reports_a_missing_vendor() -> None:
    done = CliRunner().invoke(main, ["doctor", "--vendor", "none.such:vendor"])
    assert done.exit_code == 1
    assert "missing vendor none.such:vendor: " in done.output and "No module named 'none'" in done.output


def test_doctor_works_without_the_runtime_library() -> None:
    environment = {
        **os.environ,
        "DIOPIRT_LIBRARY": "/nonexistent",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    words = [sys.executable, "-m", "diopi_test", "doctor"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1, done.stderr
    assert (
        "missing runtime library: libdiopirt.so was not found" in done.stdout and "cmake --build build" in done.stdout
    )
    examined = [
        line.split()[1].rstrip(":") for line in done.stdout.splitlines() if line.startswith(("ok", "note", "missing"))
    ]
    assert "vendor" not in examined and "disk" in examined


@pytest.fixture
def no_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the doctor examine no vendors."""
    monkeypatch.setattr(examination, "_vendors", lambda named: ())


@pytest.mark.usefixtures("no_vendors")
def test_doctor_reports_missing_and_old_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name in ("hypothesis", "h5py"):
            raise PackageNotFoundError(name)
        return "0.1"

    monkeypatch.setattr(examination, "version", version)
    seen = examine_vendors()
    assert seen["h5py"].state is State.missing and seen["h5py"].details == "not installed, >=3.10 is needed"
    assert seen["numpy"].details == "0.1, >=2.0 is needed" and seen["numpy"].advice == "pip install 'numpy>=2.0'"
    assert seen["extra fuzz"].state is State.note and "pip install 'diopi[fuzz]'" in seen["extra fuzz"].advice


@pytest.mark.usefixtures("no_vendors")
def test_doctor_reports_an_incomplete_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(examination, "requires", requires)
    assert examine_vendors()["packages"].state is State.missing


@pytest.mark.usefixtures("no_vendors")
def test_doctor_notes_missing_compilers_and_cmake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination.shutil, "which", lambda name: None)
    monkeypatch.setenv("CC", "nobody -O3")
    seen = examine_vendors()
    advice = seen["C compiler"].advice
    assert seen["C compiler"] == InstallationCheck(
        state=State.note, subject="C compiler", details="none of nobody", advice=advice
    )
    assert seen["C++ compiler"].details == "none of c++, g++, clang++" and seen["CMake"].state is State.note


@pytest.mark.usefixtures("no_vendors")
def test_doctor_reports_a_missing_baseline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("diopi_test.baseline.location.package_folder", lambda: tmp_path)
    monkeypatch.setattr("diopi_test.baseline.location.cache_folder", lambda: tmp_path)
    baseline = examine_vendors()["baseline"]
    assert baseline.state is State.missing and "there is no baseline in" in baseline.details


@pytest.mark.usefixtures("no_vendors")
def test_doctor_notes_low_disk_space_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "DISK", 2**60)
    monkeypatch.setattr(examination, "MEMORY", 2**50)
    seen = examine_vendors()
    assert seen["disk"].state is seen["memory"].state is State.note
    assert seen["memory"].advice.endswith("diopi-test run -n 1")


def test_doctor_reports_when_no_vendor_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "entry_points", lambda group: ())
    monkeypatch.setattr(
        examination, "_baseline", lambda: InstallationCheck(state=State.ok, subject="baseline", details="")
    )
    assert {finding.subject: finding for finding in examine()}["vendors"].state is State.missing
