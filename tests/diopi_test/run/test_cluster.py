"""Runs and generated baselines on a local Dask cluster, one of whose workers is killed."""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from baselines import make_level
from click.testing import CliRunner
from clusters import LocalCluster, local_cluster, wait_until
from commands import run_here
from reports import read_report

pytest.importorskip("distributed", reason="pip install 'diopi[dask]'")

from diopi_impl import VendorError, VendorNotFoundError, Waiver
from diopi_test.baseline import cluster as baseline_cluster
from diopi_test.baseline.cluster import Cluster, ClusterError
from diopi_test.baseline.codec import from_json, to_json
from diopi_test.baseline.level import open_level
from diopi_test.baseline.manifest import read_manifest
from diopi_test.cli import main
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.run.cluster import ClusterExecutor, split_by_function
from diopi_test.run.cluster_worker import Batch
from diopi_test.run.collection import Collected, collect_level
from diopi_test.run.failure_policy import FailurePolicy
from diopi_test.run.isolation.executor import DEFAULT_CASE_OPTIONS, DEFAULT_LIMITS, ScheduledCase
from diopi_test.run.limits import Limits
from diopi_test.waivers.rules import WaiverRule, Waivers

STUB_VENDOR = "diopi_test.quality.stub_vendor:vendor"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a level of two functions."""
    folder = tmp_path_factory.mktemp("baseline")
    make_level(folder / "smoke", "diopiSqrt", "diopiNeg")
    return folder


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which the workers of the slow vendor create files named after their process numbers."""
    return tmp_path_factory.mktemp("marks")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, marks: Path) -> Iterator[LocalCluster]:
    """Start a cluster of two local workers."""
    with local_cluster(tmp_path_factory.mktemp("cluster"), 2, LEAVING_FOLDER=str(marks)) as local:
        yield local


def due_cases(data: Path, expression: str = "") -> list[ScheduledCase]:
    """Return the cases whose ID contains a text."""
    level = open_level(data / "smoke")
    return [
        ScheduledCase(level.path(case.function), case, level.sha256(case.function))
        for case in collect_level(level)
        if expression in case.id
    ]


def one_by_one(scheduled: list[ScheduledCase]) -> list[list[ScheduledCase]]:
    """Return batches of one case each."""
    return [[item] for item in scheduled]


def is_alive(process: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Reports(list[tuple[str, Outcome]]):
    """A receiver of reports that lists the ID and the outcome of each reported case."""

    def __call__(self, case: Collected, outcome: Outcome, seconds: float) -> None:
        self.append((case.id, outcome))

    @property
    def verdicts(self) -> dict[str, Verdict]:
        assert max(Counter(case for case, _ in self).values()) == 1, "a case was reported twice"
        return {case: outcome.verdict for case, outcome in self}


# A cluster


def test_a_run_on_a_cluster_has_the_verdicts_of_a_single_machine(
    cluster: LocalCluster, data: Path, tmp_path: Path
) -> None:
    reports: list[dict[str, Any]] = []
    for name, options in (("here", ("-n", "1")), ("there", ("--dask", cluster.address))):
        file = tmp_path / f"{name}.json"
        log = tmp_path / f"{name}.log"
        words = ("run", "--data", data, "--vendor", "negative_test_vendors:crashing", "-k", "diopiSqrt[negative")
        done = run_here(*words, "--strict", "--json", file, "--log", log, *options)
        assert done.returncode == 1, done.stdout + done.stderr
        reports.append(read_report(file))
    here, there = (
        {
            case["id"]: (case["verdict"], case["message"].partition(";")[0]) for case in report["cases"]
        }  # less the output
        for report in reports
    )
    assert here == there
    assert {"passed", "crashed"} == {verdict for verdict, _ in there.values()}
    assert not reports[1]["summary"]["incomplete"]


@pytest.mark.slow
def test_a_run_on_a_cluster_measures_the_declared_arithmetic_as_a_single_machine_does(
    cluster: LocalCluster, data: Path, tmp_path: Path
) -> None:
    checks = []
    for name, options in (("here", ("-n", "1")), ("there", ("--dask", cluster.address))):
        file = tmp_path / f"{name}.json"
        words = ("run", "--data", data, "--vendor", "measured_vendors:exact", "--numerics", "tf32")
        done = run_here(*words, "--case", "diopiSqrt[float32-matrix]", "--json", file, *options)
        assert done.returncode == 0, done.stdout + done.stderr
        checks.append(read_report(file)["declaration_check"])
    here, there = checks
    assert here == there
    assert [entry["field"] for entry in here["contradictions"]] == ["float32_products"]


@pytest.mark.slow
def test_a_run_on_a_cluster_stops_after_identical_failures(cluster: LocalCluster, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    words = ("run", "--data", data, "--vendor", "faulty:failing", "--dask", cluster.address, "--json", file)
    done = run_here(*words, "--stop-after-identical", 3)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "3 calls in a row failed in the same way" in done.stdout
    report = read_report(file)
    assert report["summary"]["incomplete"] and report["summary"]["not_run"] > 0
    assert "not_run" in {case["verdict"] for case in report["cases"]}


@pytest.mark.slow
def test_workers_confirm_only_failures_that_count(cluster: LocalCluster, data: Path, tmp_path: Path) -> None:
    waivers = tmp_path / "waivers.toml"
    waivers.write_text('[[waiver]]\npattern = "diopiSqrt*"\nreason = "only one shape works"\n')
    words = ("run", "--data", data, "--vendor", "faulty:stubborn", "--dask", cluster.address, "-k", "diopiSqrt[float32")
    verdicts = []
    for name, options in (("counts", ()), ("waived", ("--waivers", waivers))):
        file = tmp_path / f"{name}.json"
        run_here(*words, "--json", file, *options)
        verdicts.append({case["verdict"] for case in read_report(file)["cases"]})
    counted, waived = verdicts
    assert "flaky" in counted, "a repetition in a new process passes"
    assert "waived" in waived and "flaky" not in waived, "the waivers reach the workers, which repeat nothing"


def test_functions_run_on_workers_and_their_exceptions_propagate(cluster: LocalCluster) -> None:
    with Cluster(cluster.address) as connected:
        assert sorted(connected.spread(len, ["a", "bb", "ccc"])) == [("a", 1), ("bb", 2), ("ccc", 3)]
        with pytest.raises(ValueError, match="invalid literal"):
            list(connected.spread(int, ["1", "x"]))


@pytest.mark.slow
def test_commands_spread_functions_over_workers(cluster: LocalCluster, tmp_path: Path) -> None:
    generated = run_here("gen-data", "--data", tmp_path, "--dask", cluster.address, "--function", "diopiFloor")
    assert generated.returncode == 0, generated.stdout + generated.stderr
    assert "1 function is up to date" in generated.stdout
    assert list(read_manifest(tmp_path / "smoke")[0].files) == ["diopiFloor"]
    matrix = tmp_path / "matrix.json"
    tested = run_here("mutation-test", "--dask", cluster.address, "--function", "diopiFloor", "--json", matrix)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert [record["function"] for record in json.loads(matrix.read_text())["functions"]] == ["diopiFloor"]


def test_a_function_is_abandoned_on_the_whole_cluster(cluster: LocalCluster, data: Path) -> None:
    reports, scheduled = Reports(), due_cases(data, "diopiSqrt")
    with ClusterExecutor(cluster.address, "faulty:crashing", Limits(lost=2)) as executor:
        assert executor.describe().name == "crashing"
        executor.run(one_by_one(scheduled), reports)
    assert set(reports.verdicts) == {item.case.id for item in scheduled}
    messages = [outcome.message for _, outcome in reports if outcome.verdict is Verdict.not_run]
    assert messages
    assert all("cases of diopiSqrt have crashed, hung or run out of memory" in message for message in messages)


def test_a_vendor_that_does_not_start_is_named_with_the_worker(cluster: LocalCluster, data: Path) -> None:
    message = r"on worker tcp://.*no.module can't be imported"
    with (
        ClusterExecutor(cluster.address, "no.module:vendor") as executor,
        pytest.raises(VendorNotFoundError, match=message),
    ):
        executor.describe()
    with ClusterExecutor(cluster.address, STUB_VENDOR) as executor:
        executor.run([], Reports())
        missing = ScheduledCase(data / "nowhere.h5", Collected(function="diopiSqrt", label="float32-matrix"), None)
        with pytest.raises(ClusterError, match=r"worker tcp://.*nowhere\.h5"):
            executor.run([[missing]], Reports())


def test_a_run_that_is_interrupted_ends_on_the_workers(cluster: LocalCluster, data: Path, marks: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), ClusterExecutor(cluster.address, "leaving:slowly") as executor:
        executor.describe()
        cases = due_cases(data)
        executor.run([cases[:1], cases[1:]], interrupt)
    wait_until(lambda: not any(is_alive(int(mark.name)) for mark in marks.iterdir()))


def test_a_killed_worker_loses_no_verdict(cluster: LocalCluster, data: Path, marks: Path) -> None:
    for mark in marks.iterdir():
        mark.unlink()
    scheduled, victim = due_cases(data, "[float")[:12], cluster.workers[0]

    class Killing(Reports):
        """A receiver that kills a worker after the first report, while all workers are busy."""

        def __call__(self, case: Collected, outcome: Outcome, seconds: float) -> None:
            super().__call__(case, outcome, seconds)
            if len(self) == 1:
                wait_until(lambda: len(list(marks.iterdir())) >= 2)
                os.kill(victim.pid, signal.SIGKILL)

    reports = Killing()
    with ClusterExecutor(cluster.address, "leaving:slowly") as executor:
        executor.describe()
        executor.run(one_by_one(scheduled), reports)
    assert victim.wait() == -signal.SIGKILL
    assert reports.verdicts == {item.case.id: Verdict.passed for item in scheduled}
    wait_until(lambda: not any(is_alive(int(mark.name)) for mark in marks.iterdir()))
    assert executor.notes == []


def test_the_error_of_a_cluster_without_devices_names_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed  # takes half a second

    threads: Any = {"processes": False, "n_workers": 1, "threads_per_worker": 1}
    with distributed.LocalCluster(host="127.0.0.1", protocol="tcp://", dashboard_address=":0", **threads) as local:
        address = local.scheduler_address
        with pytest.raises(ClusterError, match='--resources "device=1"'):
            Cluster(address).__enter__()
    monkeypatch.setattr(baseline_cluster, "CONNECT_TIMEOUT", 0.5)
    with pytest.raises(ClusterError, match=address):
        Cluster(address).__enter__()


# Without one


def test_batches_contain_one_function_unless_they_are_mixed() -> None:
    sqrt, other_sqrt, neg = (
        ScheduledCase(Path(), Collected(function=function, label=label))
        for function, label in (("Sqrt", "a"), ("Sqrt", "b"), ("Neg", "a"))
    )
    assert list(split_by_function([[sqrt, other_sqrt, neg]])) == [[sqrt, other_sqrt], [neg]]
    assert list(split_by_function([[sqrt, neg, other_sqrt]])) == [[sqrt, neg, other_sqrt]]


def test_a_case_that_kills_workers_is_found_by_running_single_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def calls(
        cluster: Cluster, work: object, next_item: Callable[[], str], killed: Callable[[str], None]
    ) -> Iterator[Any]:
        while text := next_item():
            tried.append(len(from_json(Batch, json.loads(text)).scheduled))
            killed(text)
        yield from ()

    monkeypatch.setattr(Cluster, "run_calls", calls)
    reports, executor = Reports(), ClusterExecutor("tcp://nowhere:1", STUB_VENDOR, Limits(lost=2))
    executor.run([[ScheduledCase(Path(), Collected(function="diopiSqrt", label=label)) for label in "abc"]], reports)
    assert tried == [3, 1, 1]
    crashed, not_run = Verdict.crashed, Verdict.not_run
    assert reports.verdicts == {"diopiSqrt[a]": crashed, "diopiSqrt[b]": crashed, "diopiSqrt[c]": not_run}
    with pytest.raises(VendorError, match="worker"):
        executor.describe()


def test_a_worker_of_another_version_is_rejected() -> None:
    here = baseline_cluster.required_versions()
    assert baseline_cluster.call_with_versions(here, len, "ab") == 2
    with pytest.raises(ClusterError, match=r"expected 0\.0"):
        baseline_cluster.call_with_versions({**here, "diopi": "0.0"}, len, "ab")


def test_the_error_without_dask_states_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diopi_test.cli.options.find_spec", lambda name: None)
    for command in ("run", "gen-data", "mutation-test"):
        done = CliRunner().invoke(main, [command, "--dask", "tcp://127.0.0.1:1"])
        assert done.exit_code == 2
        assert "pip install 'diopi[dask]'" in done.output


def test_a_batch_survives_a_round_trip_through_json() -> None:
    scheduled = ScheduledCase(
        Path("/x.h5"), Collected(function="diopiSqrt", label="float32-matrix", dtype="float32"), "0" * 64
    )
    batch = Batch(
        run="run",
        vendor="vendor",
        limits=DEFAULT_LIMITS,
        options=DEFAULT_CASE_OPTIONS,
        scheduled=(scheduled,),
        policy=FailurePolicy(waivers=Waivers((WaiverRule(Waiver("diopiSqrt[*]", "known"), "waivers.toml"),))),
    )
    assert from_json(Batch, json.loads(json.dumps(to_json(batch)))) == batch
