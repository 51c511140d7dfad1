"""A run on a target has the verdicts of a run on this machine, whatever happens to the connection and the runner."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hostile import BASELINE
from reports import read_report
from sampling import SEED, sampled
from ssh_server import start_ssh_server
from target_commands import Bundles, diopi_test, run_here, select

from diopi_test.target import remote_run
from diopi_test.target.bundle import BundleHeader
from diopi_test.target.connection import TargetConnection, TargetError
from diopi_test.target.remote_run import StreamedResults, TargetFiles
from diopi_test.target.remote_run import run_on_target as run_on_target_of
from diopi_test.target.results import TargetResults

SELECTION = select(("diopiAbs", "diopiAdd", "diopiEqual"))

DOCKER_TARGETS = ["{command} exec -i box sh -c", "{command} exec -i box sh -c '{{}} '"]
"""Targets in a container, with and without the place of the command."""

CUTTING_SHELL = """
import pathlib, random, subprocess, sys
counter, script = pathlib.Path(sys.argv[1]), sys.argv[2]
number = int(counter.read_text()) if counter.exists() else 0
if "--timeout" not in script or number >= {count}:
    sys.exit(subprocess.call(["sh", "-c", script]))
counter.write_text(str(number + 1))
process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
content, size = b"", random.Random(f"{seed} {{number}}").randrange(1, {size} + 1)
while len(content) < size and (byte := process.stdout.read(1)):
    content += byte
    if {in_call} and content.endswith(b"CALL"):
        content += process.stdout.read(44)
        break
sys.stdout.buffer.write(content)
sys.stdout.flush()
if {kill}:
    subprocess.call("kill -9 $(cat " + script.split()[1] + "/pid)", shell=True)
sys.exit(255)
"""
"""A connection that is lost after some bytes, or when the first call has begun. It can also kill the runner."""


def run_on_target(
    folder: Path, target: str, runner: Path, vendor: Path, *words: object, status: int | None = None
) -> tuple[str, Mapping[str, Mapping[str, Any]]]:
    """Run cases on a target; return the output and the cases of the report by ID. The target keeps no file."""
    report, there = folder / "remote.json", folder / "there"
    there.mkdir(exist_ok=True)
    options = ("--target", target, "--runner", runner, "--target-folder", there, "--data", BASELINE, "-n", 1)
    output = diopi_test(*("run", "--vendor", vendor, "--json", report, *options, *words), folder=folder, status=status)
    assert list(there.iterdir()) == []
    return " ".join(output.split()), {
        case["id"]: case for case in read_report(report)["cases"]
    } if report.exists() else {}


def cutting_target(folder: Path, count: int, *, size: int = 10**9, in_call: bool = False, kill: bool = False) -> str:
    """Return the command of a target whose connection is lost `count` times, each time after at most `size` bytes."""
    script = folder / "connection.py"
    seed = os.environ[SEED]
    script.write_text(CUTTING_SHELL.format(count=count, size=size, in_call=in_call, kill=kill, seed=seed), "utf-8")
    return shlex.join([sys.executable, str(script), str(folder / "counter")])


def verdicts_of(cases: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the verdict and the message of each case."""
    return {name: (case["verdict"], case["message"]) for name, case in cases.items()}


@pytest.fixture(scope="module")
def direct_verdicts(c_vendor: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Return the verdict and the message of each case in a run on this machine."""
    return verdicts_of(run_here(tmp_path_factory.mktemp("direct"), c_vendor, *SELECTION))


def of_function(verdicts: Mapping[str, Any], function: str) -> Mapping[str, Any]:
    """Return the verdicts of the cases of a function."""
    return {name: verdict for name, verdict in verdicts.items() if name.startswith(f"{function}[")}


def test_a_run_on_a_target_has_the_verdicts_of_a_run_here(
    runner: Path, c_vendor: Path, tmp_path: Path, direct_verdicts: Mapping[str, Any]
) -> None:
    _, cases = run_on_target(tmp_path, "sh -c", runner, c_vendor, *SELECTION)
    assert cases
    assert verdicts_of(cases) == direct_verdicts


@pytest.mark.slow
def test_a_target_without_files_and_libraries_has_the_verdicts_of_a_run_here(
    bare_runner: Path, static_vendor: Path, tmp_path: Path, direct_verdicts: Mapping[str, Any]
) -> None:
    target = cutting_target(tmp_path, 3, size=9000)
    _, cases = run_on_target(tmp_path, target, bare_runner, static_vendor, *SELECTION)
    assert verdicts_of(cases) == direct_verdicts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "size", "kill"),
    [(10, 9000, False), (5, 9000, True), pytest.param(50, 4000, True, marks=pytest.mark.exhaustive)],
    ids=["cut", "killed", "killed-often"],
)
def test_verdicts_do_not_depend_on_lost_connections(
    count: int, size: int, kill: bool, runner: Path, c_vendor: Path, tmp_path: Path, direct_verdicts: Mapping[str, Any]
) -> None:
    target = cutting_target(tmp_path, count, size=size, kill=kill)
    _, cases = run_on_target(tmp_path, target, runner, c_vendor, *SELECTION)
    assert (tmp_path / "counter").read_text("utf-8") == str(count)
    assert verdicts_of(cases) == direct_verdicts


@pytest.mark.parametrize("with_fork", sampled([True, False], 1, slow=1, ids=("fork", "no-fork")))
def test_a_connection_that_is_lost_repeatedly_in_one_call_does_not_blame_the_vendor(
    with_fork: bool,
    runner: Path,
    runner_without_fork: Path,
    c_vendor: Path,
    tmp_path: Path,
    direct_verdicts: Mapping[str, Any],
) -> None:
    target = cutting_target(tmp_path, 5, in_call=True, kill=True)
    chosen = runner if with_fork else runner_without_fork
    _, cases = run_on_target(tmp_path, target, chosen, c_vendor, *SELECTION)
    assert (tmp_path / "counter").read_text("utf-8") == "5"
    assert verdicts_of(cases) == direct_verdicts


def test_a_run_ends_with_an_error_after_many_losses_in_the_same_call(
    runner: Path, c_vendor: Path, tmp_path: Path, bundles: Bundles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_run, "FIRST_PAUSE", 0)
    cases, results = bundles(*select(("diopiAbs",))), tmp_path / "results.diopi"
    connection = TargetConnection(cutting_target(tmp_path, 100, in_call=True), str(tmp_path))
    files = TargetFiles(runner=runner, cases=cases, library=c_vendor)
    with results.open("wb") as file:
        streamed = StreamedResults(file, BundleHeader(cases).identity)
        with (
            pytest.raises(TargetError, match=r"lost 10 times in a row, during diopiAbs\["),
            run_on_target_of(connection, files, streamed, 60) as run,
        ):
            run.wait_for_end()
    assert not TargetResults(results).calls


@pytest.mark.parametrize("kind", sampled(["runner_without_fork", "runner_without_files"], 1, slow=1))
@pytest.mark.parametrize("fault", sampled(["segfault", "exit7", "exit0"], 1, slow=2))
def test_a_crash_of_a_runner_without_fork_has_the_verdict_of_a_run_here(
    fault: str,
    kind: str,
    request: pytest.FixtureRequest,
    faulty_vendor: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner: Path = request.getfixturevalue(kind)
    selection = [*select(("diopiSin", "diopiCos")), "-k", "float32 and not float16 and not negative"]
    variables = {"DIOPI_TEST_FAULT": f"diopiSin={fault}", "DIOPI_TEST_FOLDER": str(tmp_path)}
    direct = run_here(tmp_path, faulty_vendor, *selection, **variables)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    _, cases = run_on_target(tmp_path, "sh -c", runner, faulty_vendor, *selection)
    assert {
        name: (case["verdict"], case["message"].partition("; its output: ")[0]) for name, case in direct.items()
    } == {name: (case["verdict"], case["message"]) for name, case in cases.items()}
    assert {case["verdict"] for case in cases.values()} == {"passed", "crashed"}


def test_time_scale_multiplies_the_time_limit(runner: Path, c_vendor: Path, tmp_path: Path) -> None:
    log = tmp_path / "commands"
    target = f'sh -c \'echo "$0" >> {log}; eval "$0"\''
    words = (*select(("diopiAbs",)), "--timeout", 7, "--time-scale", 3)
    _, cases = run_on_target(tmp_path, target, runner, c_vendor, *words)
    assert "passed" in {case["verdict"] for case in cases.values()}
    assert "--timeout 21 " in log.read_text("utf-8")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no-such-command", "the command no-such-command can't be started"),
        ("false", "does not reach the target"),
        ('sh -c \'ulimit -f 200; trap "" XFSZ; eval "$0"\'', "diopi-runner can't be copied to the target"),
    ],
    ids=["missing-command", "unreachable", "full-disk"],
)
def test_a_target_that_can_not_be_used_is_reported(
    target: str, message: str, runner: Path, c_vendor: Path, tmp_path: Path
) -> None:
    output, _ = run_on_target(tmp_path, target, runner, c_vendor, *SELECTION, status=3)
    assert message in output


@pytest.mark.slow
def test_a_runner_of_another_architecture_is_reported(c_vendor: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign-runner"
    foreign.write_bytes(b"\x7fELF" + bytes(60))
    output, _ = run_on_target(tmp_path, "sh -c", foreign, c_vendor, *SELECTION, status=3)
    assert "can't be executed on the target" in output
    assert "build the runner for the processor" in output


@pytest.mark.slow
def test_a_library_that_does_not_load_is_reported(runner: Path, tmp_path: Path) -> None:
    library = tmp_path / "broken.so"
    library.write_bytes(b"no library")
    output, _ = run_on_target(tmp_path, "sh -c", runner, library, *SELECTION, status=3)
    assert "libdiopi_impl.so can't be loaded" in output


def test_target_requires_a_runner(c_vendor: Path, tmp_path: Path) -> None:
    output = diopi_test("run", "--vendor", c_vendor, "--target", "sh -c", *SELECTION, folder=tmp_path, status=2)
    assert "--target requires --runner" in " ".join(output.split())


def test_full_results_do_not_blame_the_vendor(runner: Path, c_vendor: Path, tmp_path: Path) -> None:
    cases = tmp_path / "cases.diopi"
    diopi_test("bundle", "--data", BASELINE, "--output", cases, *SELECTION, folder=tmp_path, status=0)
    limited = f"ulimit -f 40; trap '' XFSZ; {runner} {cases} {c_vendor} -o {tmp_path}/results.diopi"
    done = subprocess.run(["sh", "-c", limited], capture_output=True, text=True, timeout=60)
    assert (done.returncode, "File too large" in done.stderr) == (3, True), done
    subprocess.run([runner, cases, c_vendor, "-o", tmp_path / "results.diopi", "--resume"], check=True, timeout=60)
    results = TargetResults(tmp_path / "results.diopi")
    assert results.is_complete
    assert all(call.loss is None for calls in results.calls.values() for call in calls)


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[str]:
    """Return a command that executes a command line through a server of ssh."""
    folder = tmp_path / "ssh"
    folder.mkdir()
    with start_ssh_server(folder) as command:
        yield command


def test_a_target_is_reached_through_ssh(
    ssh: str, runner: Path, c_vendor: Path, tmp_path: Path, direct_verdicts: Mapping[str, Any]
) -> None:
    _, cases = run_on_target(tmp_path, ssh, runner, c_vendor, *select(("diopiAbs",)))
    assert cases
    assert verdicts_of(cases) == of_function(direct_verdicts, "diopiAbs")


@pytest.mark.parametrize("target", sampled(DOCKER_TARGETS, 1, slow=1))
def test_a_target_is_reached_through_a_command_like_docker_exec(
    target: str, runner: Path, c_vendor: Path, tmp_path: Path, direct_verdicts: Mapping[str, Any]
) -> None:
    command = tmp_path / "docker"
    command.write_text('#!/bin/sh\n[ "$1 $2 $3" = "exec -i box" ] || exit 125\nshift 3\nexec env -i "$@"\n', "utf-8")
    command.chmod(0o755)
    _, cases = run_on_target(tmp_path, target.format(command=command), runner, c_vendor, *select(("diopiAbs",)))
    assert cases
    assert verdicts_of(cases) == of_function(direct_verdicts, "diopiAbs")


PATIENT_SHELL = """
import pathlib, subprocess, sys, time
log, script = pathlib.Path(sys.argv[1]), sys.argv[2]
if "--timeout" not in script:
    sys.exit(subprocess.call(["sh", "-c", script]))
process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE)
content = process.stdout.read()
sys.stdout.buffer.write(content[: len(content) // 2])
sys.stdout.flush()
deadline = time.monotonic() + 60
while '"verdict"' not in log.read_text() and time.monotonic() < deadline:
    time.sleep(0.05)
log.with_name("late").write_text(str(time.monotonic() >= deadline))
sys.stdout.buffer.write(content[len(content) // 2 :])
sys.exit(process.wait())
"""
"""A connection that passes half of the results, and the others after the log has a verdict."""


def test_results_are_evaluated_as_they_arrive(
    runner: Path, c_vendor: Path, tmp_path: Path, direct_verdicts: Mapping[str, Any]
) -> None:
    script, log = tmp_path / "connection.py", tmp_path / "run.jsonl"
    script.write_text(PATIENT_SHELL, "utf-8")
    target = shlex.join([sys.executable, str(script), str(log)])
    _, cases = run_on_target(tmp_path, target, runner, c_vendor, *SELECTION, "--log", log)
    assert (tmp_path / "late").read_text("utf-8") == "False"
    assert verdicts_of(cases) == direct_verdicts


@pytest.mark.slow
@pytest.mark.parametrize("through_ssh", [False, True], ids=["shell", "ssh"])
def test_an_interrupted_run_leaves_nothing_on_the_target(
    through_ssh: bool, request: pytest.FixtureRequest, runner: Path, faulty_vendor: Path, tmp_path: Path
) -> None:
    target = "sh -c"
    if through_ssh:
        target = f"{request.getfixturevalue('ssh')} 'export DIOPI_TEST_FAULT=diopiSin=hang; {{}}'"
    there = tmp_path / "there"
    there.mkdir()
    words = ["--vendor", faulty_vendor, "--function", "diopiSin", "--data", BASELINE, "--target", target]
    process = subprocess.Popen(
        [sys.executable, "-m", "diopi_test", "run", *map(str, words), "--runner", runner, "--target-folder", there],
        env={**os.environ, "DIOPI_TEST_FAULT": "diopiSin=hang", "XDG_STATE_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(there.glob("*/pid")) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 3, output
    assert "interrupted by SIGINT" in output
    assert list(there.iterdir()) == []
