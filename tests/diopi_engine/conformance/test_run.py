"""Every case gets a verdict, even if the library crashes or hangs the process."""

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_engine.cli import main
from diopi_engine.proto import headers
from diopi_engine.proto.hgrt import FUNCTIONS


@pytest.fixture(scope="module")
def broken_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a library that aborts in hgDeviceRetain, hangs in hgDeviceSetCurrent, and fails in all other functions."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")
    bodies = {"hgDeviceRetain": "abort();", "hgDeviceSetCurrent": "for (;;) pause();"}
    text = "#include <hgrt.h>\n#include <stdlib.h>\n#include <unistd.h>\n" + "".join(
        f"hgResult {func.name}({func.declared}) {{ {bodies.get(func.name, 'return HG_ERROR_INTERNAL;')} }}\n"
        for func in FUNCTIONS
    ).replace("hgGetLastErrorString(const char** text) {", 'hgGetLastErrorString(const char** text) { *text = "";')
    folder = tmp_path_factory.mktemp("broken")
    (folder / "hgrt.c").write_text(text)
    target = folder / "libhgrt.so"
    command = ["cc", "-w", "-shared", "-fPIC", f"-I{headers.INCLUDE_DIR}", str(folder / "hgrt.c"), "-o", str(target)]
    subprocess.run(command, check=True)
    return target


@pytest.mark.slow
def test_failures_and_crashes_have_verdicts(broken_library: Path) -> None:
    done = CliRunner().invoke(main, ["check", str(broken_library), "-k", "retain"])
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        "failed    retained_cores_can_be_released: a call that is legal fails: ERROR_INTERNAL: ",
        "crashed   retaining_zero_cores_is_rejected: the process ended with signal 6",
        "0 passed, 0 not_run, 1 failed, 1 crashed",
    ]


def test_timeouts_have_verdicts(broken_library: Path) -> None:
    done = CliRunner().invoke(main, ["check", str(broken_library), "-k", "unknown_devices", "--timeout", "0.01"])
    assert done.exit_code == 1
    assert "timed_out unknown_devices_are_rejected: it took more than 0.01 s" in done.output


def test_the_reference_passes_in_a_separate_process(library: Path, locks: Path) -> None:
    done = CliRunner().invoke(main, ["check", str(library), "-k", "version"])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == "2 passed, 0 not_run"


def test_check_exits_3_if_no_case_was_run(broken_library: Path) -> None:
    assert CliRunner().invoke(main, ["check", str(broken_library), "-k", "no such case"]).exit_code == 3


def test_the_interface_is_detected_from_the_library(nvdla_library: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["check", str(nvdla_library), "-k", "devices_are_counted"])
    assert done.output.splitlines() == ["passed    nvdla.devices_are_counted", "1 passed, 0 not_run"]
    (tmp_path / "empty.c").touch()
    subprocess.run(["cc", "-shared", str(tmp_path / "empty.c"), "-o", str(tmp_path / "libempty.so")], check=True)
    done = CliRunner().invoke(main, ["check", str(tmp_path / "libempty.so")])
    assert done.exit_code == 1
    assert "libempty.so has no known interface: it exports none of hgEngineCreate, _ZN5nvdla" in done.output
    done = CliRunner().invoke(main, ["check", str(tmp_path / "empty.c")])
    assert done.exit_code == 1
    assert "empty.c can't be loaded: " in done.output


def test_an_unknown_vendor_is_a_usage_error(broken_library: Path) -> None:
    done = CliRunner().invoke(main, ["check", str(broken_library), "--vendor", "nobody"])
    assert done.exit_code == 2
    assert "Invalid value for --vendor" in done.output
    assert "nobody" in done.output
