"""The report and the exit status do not depend on the terminal, the disk or the reader of the report."""

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hostile import command, environment, left_processes
from reports import read_report
from sampling import sampled

FAULTS = "diopiTan=surrogates,diopiSin=long,diopiCos=controls,diopiCosh=bytes,diopiExp=error"
FUNCTIONS = [entry.partition("=")[0] for entry in FAULTS.split(",")]
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


CLOSES = "import os, sys; [os.close(int(one)) for one in sys.argv.pop(1).split()]; os.execv(sys.argv[1], sys.argv[1:])"
"""A program that runs another program with some file descriptors closed."""

LIMITS = (
    "import os, resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
    "[os.environ.pop(name) for name in list(os.environ) if name.startswith('COVERAGE')];"
    "os.environ['PYTHONDONTWRITEBYTECODE'] = '1';"  # Python would store truncated modules
    "resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)); os.execv(sys.argv[1], sys.argv[1:])"
)
"""A program that runs another program with a limit on the size of files, which behaves like a full disk.

The measurement of coverage could not write its data either, and would print an error.
"""


def run(
    folder: Path,
    *options: object,
    variables: dict[str, str] | None = None,
    prefix: Sequence[str] = (),
    **popen_options: Any,
) -> subprocess.Popen[bytes]:
    """Run a vendor with four failed cases, whose messages are hard to print, `prefix` another program."""
    words = [*prefix, *command("unruly:vendor", FUNCTIONS, "-n", 2, *options)]
    popen_options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen_options}
    return subprocess.Popen(words, env=environment(FAULTS, folder, **(variables or {})), **popen_options)


def finish(process: subprocess.Popen[bytes], folder: Path) -> tuple[int, bytes]:
    """Return the status and the whole output."""
    output = process.communicate(timeout=120)
    assert left_processes(folder) == []
    return process.returncode, b"".join(part or b"" for part in output)


def check(report: Path) -> None:
    """Assert that the report is complete and the same as with any other output."""
    summary = read_report(report)["summary"]
    assert (summary["failed"], summary["incomplete"]) == (4, False)
    assert summary["passed"] == summary["total"] - 4 == summary["collected"] - 4
    assert report.stat().st_size < 1_000_000


@pytest.mark.parametrize("variables", sampled([{}, ASCII, {**ASCII, "PYTHONIOENCODING": "ascii:strict"}], 1))
def test_unprintable_texts_are_escaped(variables: dict[str, str], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    status, output = finish(run(tmp_path, "--json", report, variables=variables), tmp_path)
    assert status == 1, output
    assert b"4 failed" in output
    assert b"Traceback" not in output
    assert len(output) < 100_000
    assert not variables or output.isascii()
    check(report)


@pytest.mark.parametrize("descriptors", sampled([((1,),), ((2,),), ((0, 1, 2),)], 1))
def test_closed_standard_streams_do_not_stop_the_run(descriptors: tuple[int, ...], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    process = run(tmp_path, "--json", report, prefix=[sys.executable, "-c", CLOSES, " ".join(map(str, descriptors))])
    assert finish(process, tmp_path)[0] == 1
    check(report)


@pytest.mark.slow
def test_a_closed_pipe_does_not_lose_the_report(tmp_path: Path) -> None:
    report, (reading, writing) = tmp_path / "report.json", os.pipe()
    os.close(reading)
    process = run(tmp_path, "--json", report, stdout=writing, stderr=writing)
    os.close(writing)
    assert finish(process, tmp_path)[0] == 1
    check(report)


@pytest.mark.slow
def test_output_to_a_full_disk_is_an_error(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    with open("/dev/full", "wb") as full:
        process = run(tmp_path, "--json", report, stdout=full, stderr=full)
    assert finish(process, tmp_path)[0] == 1
    check(report)


def test_a_full_disk_is_reported_and_the_report_is_printed(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    log = tmp_path / "run.log"
    status, output = finish(
        run(tmp_path, "--json", report, "--log", log, prefix=[sys.executable, "-c", LIMITS]), tmp_path
    )
    assert status == 3
    assert b"5 failed" in output  # one vendor prints more than the limit, and so fails itself
    assert b"report.json can't be written" in b" ".join(output.split())
    assert b"Traceback" not in output
    assert not report.exists()
    assert not [path for path in tmp_path.iterdir() if "report.json" in path.name]


def device(path: Path, like: str) -> Path:
    """Create a device for this test only; with root's permissions, the test could delete the system's devices."""
    if os.geteuid() != 0:
        return Path(like)
    os.mknod(path, stat.S_IFCHR | 0o666, os.stat(like).st_rdev)
    return path


def test_a_log_on_a_full_disk_does_not_prevent_the_report(tmp_path: Path) -> None:
    report, full = tmp_path / "report.json", device(tmp_path / "full", "/dev/full")
    status, output = finish(run(tmp_path, "--json", report, "--log", full), tmp_path)
    assert status in (1, 2, 3)
    assert full.is_char_device()
    assert b"full" in output
    assert b"Traceback" not in output
    if status != 2:  # a log that can't be begun may be refused at once
        assert b"4 failed" in output
        check(report)


@pytest.mark.slow
@pytest.mark.parametrize("option", sampled(["--json", "--log"], 1))
def test_a_device_is_not_replaced_by_a_file(option: str, tmp_path: Path) -> None:
    null = device(tmp_path / "null", "/dev/null")
    status, output = finish(run(tmp_path, option, null), tmp_path)
    assert status in ((1,) if option == "--json" else (1, 2, 3))  # a log that can not be read is refused
    assert null.is_char_device()
    assert b"Traceback" not in output


@pytest.mark.slow
def test_a_report_can_be_read_from_a_fifo(tmp_path: Path) -> None:
    fifo, contents = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: contents.append(fifo.read_bytes()), daemon=True)
    reader.start()
    assert finish(run(tmp_path, "--json", fifo), tmp_path)[0] == 1
    reader.join(10)
    assert json.loads(contents[0])["summary"]["failed"] == 4
    assert fifo.is_fifo()


@pytest.mark.slow
def test_a_report_is_written_through_a_link(tmp_path: Path) -> None:
    link, target = tmp_path / "latest.json", tmp_path / "report.json"
    link.symlink_to(target)
    assert finish(run(tmp_path, "--json", link), tmp_path)[0] == 1
    assert link.is_symlink()
    check(target)
