"""The executor reports every case once, whatever its process does, and repeats cases that fail after others."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from baselines import make_level

from diopi_impl import VendorError, VendorNotFoundError, find_numerics
from diopi_test.baseline.level import open_level
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.run.collection import Collected, collect_level
from diopi_test.run.isolation.executor import Executor, ScheduledCase
from diopi_test.run.isolation.fork_server import ForkServer, ForkServerError
from diopi_test.run.limits import CaseOptions, Limits

STUB_VENDOR = "diopi_test.quality.stub_vendor:vendor"


@pytest.fixture(scope="module")
def scheduled_cases(tmp_path_factory: pytest.TempPathFactory) -> list[ScheduledCase]:
    """Return the cases of a small level."""
    level = open_level(make_level(tmp_path_factory.mktemp("baseline") / "smoke", "diopiSqrt", "diopiNeg"))
    return [
        ScheduledCase(level.path(item.function), item, level.sha256(item.function)) for item in collect_level(level)
    ]


class Verdicts(dict[str, Verdict]):
    """A receiver of reports that asserts that each case is reported once, and stores verdicts and messages by ID."""

    def __call__(self, case: Collected, outcome: Outcome, seconds: float) -> None:
        assert case.id not in self
        assert seconds >= 0
        self[case.id] = outcome.verdict
        self.messages = {**getattr(self, "messages", {}), case.id: outcome.message}


def batches(scheduled_cases: list[ScheduledCase], size: int) -> Iterator[list[ScheduledCase]]:
    """Yield batches of this size."""
    return (scheduled_cases[start : start + size] for start in range(0, len(scheduled_cases), size))


@pytest.mark.parametrize("workers", [1, 3])
def test_every_case_is_reported_once(scheduled_cases: list[ScheduledCase], workers: int) -> None:
    verdicts = Verdicts()
    with Executor(STUB_VENDOR, workers) as executor:
        description = executor.describe()
        executor.run(batches(scheduled_cases, 4), verdicts)
    assert (description.name, executor.notes) == ("stub", [])
    assert set(verdicts) == {item.case.id for item in scheduled_cases}
    assert set(verdicts.values()) == {Verdict.passed}


def test_cases_are_evaluated_for_the_arithmetic_of_the_vendor_or_of_the_options() -> None:
    options = CaseOptions(numerics=find_numerics("fast-math"))
    expected = {("declaring_stub:tf32", None): "tf32", (STUB_VENDOR, None): "ieee"}
    expected |= {("declaring_stub:tf32", options): "fast-math", (STUB_VENDOR, options): "fast-math"}
    for (vendor, case_options), name in expected.items():
        with Executor(vendor, 1, Limits(), case_options or CaseOptions()) as executor:
            assert executor.describe().numerics == find_numerics(name)


@pytest.mark.parametrize("size", [1, 5])
def test_a_crash_does_not_affect_other_cases(scheduled_cases: list[ScheduledCase], size: int) -> None:
    stored = [item for item in scheduled_cases if not item.case.base][:12]
    verdicts = Verdicts()
    with Executor("faulty:crashing", 2, Limits(lost=100)) as executor:
        executor.run(batches(stored, size), verdicts)
    assert set(verdicts) == {item.case.id for item in stored}
    assert set(verdicts.values()) == {Verdict.crashed}
    assert all("SIGABRT" in message for message in verdicts.messages.values())


def test_a_function_is_abandoned_after_too_many_crashes(scheduled_cases: list[ScheduledCase]) -> None:
    stored = [item for item in scheduled_cases if not item.case.base and item.case.function == "diopiSqrt"]
    verdicts = Verdicts()
    with Executor("faulty:crashing", 1, Limits(lost=2)) as executor:
        executor.run(batches(stored, 4), verdicts)
    lost = [name for name, verdict in verdicts.items() if verdict is Verdict.crashed]
    assert len(verdicts) == len(stored)
    assert len(lost) == 2
    assert {verdicts[name] for name in verdicts if name not in lost} == {Verdict.not_run}


def test_a_case_that_passes_on_its_own_is_flaky(scheduled_cases: list[ScheduledCase]) -> None:
    stored = [item for item in scheduled_cases if not item.case.base][:6]
    verdicts = Verdicts()
    with Executor("stateful_vendor:vendor", 1) as executor:
        executor.run(batches(stored, 6), verdicts)
    assert verdicts.pop(stored[0].case.id) is Verdict.passed
    assert set(verdicts.values()) == {Verdict.flaky}
    assert f"in a process in which {stored[0].case.id} had run before" in verdicts.messages[stored[1].case.id]


def test_a_hanging_case_dumps_its_stack_and_is_terminated(scheduled_cases: list[ScheduledCase]) -> None:
    verdicts = Verdicts()
    start = time.monotonic()
    with Executor("faulty:hanging", 1, Limits(timeout=1)) as executor:
        executor.run([[scheduled_cases[0]]], verdicts)
    assert verdicts == {scheduled_cases[0].case.id: Verdict.timed_out}
    assert "not done after 1 s" in verdicts.messages[scheduled_cases[0].case.id]
    assert "in sleep_ten_minutes" in verdicts.messages[scheduled_cases[0].case.id]
    assert time.monotonic() - start < 60


def test_a_missing_vendor_is_distinguished_from_one_that_does_not_start() -> None:
    with Executor("nobody", 1) as executor, pytest.raises(VendorNotFoundError, match="'nobody'"):
        executor.describe()
    with Executor("raises_when_imported:vendor", 1) as executor, pytest.raises(VendorError) as raised:
        executor.describe()
    assert not isinstance(raised.value, VendorNotFoundError)


def test_start_raises_when_the_fork_server_has_ended() -> None:
    fork_server = ForkServer()
    fork_server._process.kill()
    fork_server._process.wait()
    with pytest.raises(ForkServerError, match="ended"):
        fork_server.start(STUB_VENDOR, CaseOptions())
    fork_server.close()


def test_a_baseline_file_that_changed_during_the_run_is_rejected(
    scheduled_cases: list[ScheduledCase], tmp_path: Path
) -> None:
    copy = tmp_path / scheduled_cases[0].path.name
    copy.write_bytes(scheduled_cases[-1].path.read_bytes() + b"\0")
    verdicts = Verdicts()
    with Executor(STUB_VENDOR, 1) as executor:
        executor.run([[ScheduledCase(copy, scheduled_cases[0].case, scheduled_cases[0].sha256)]], verdicts)
    assert set(verdicts.values()) == {Verdict.failed}
    assert "BaselineError was raised" in verdicts.messages[scheduled_cases[0].case.id]
