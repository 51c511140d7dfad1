"""Worker processes run groups of samples; a sample that ends its process or hangs is a difference."""

from __future__ import annotations

import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_torch.conformance import pool  # noqa: E402  # behind the check for PyTorch
from diopi_torch.conformance.samples import SampleGroup  # noqa: E402  # behind the check, too

ENDING_WORKER = """
import json, os, sys, time
def report(*entries):
    print(json.dumps(entries), flush=True)
report("ready")
for line in sys.stdin:
    task = json.loads(line)
    report("samples", 4)
    for position in range(task["first"], 4):
        report("start", position)
        if position == 1:
            print("a reason", file=sys.stderr, flush=True)
            os.abort()
        if position == 2:
            time.sleep(60)
        report("end", position, None if position == 3 else "")
    report("done")
"""
"""A worker that aborts in the second sample of a group, hangs in the third, and skips the fourth."""


def use_worker(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(pool, "WORKER", (sys.executable, "-c", program))


def run(processes: int, groups: int) -> list[Any]:
    """Return the outcomes of some groups."""
    named = [SampleGroup(database="op", entry=str(n), form="plain", dtype="int64") for n in range(groups)]
    return list(pool.WorkerPool(named, limit=0, seed=0, variables={}).run(processes))


def test_a_sample_that_ends_or_hangs_the_process_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    use_worker(monkeypatch, ENDING_WORKER)
    monkeypatch.setattr(pool, "TIMEOUT", 5.0)
    outcomes = run(processes=2, groups=2)
    assert {outcome.group.entry for outcome in outcomes} == {"0", "1"}
    for outcome in outcomes:
        assert (outcome.samples, outcome.skipped) == (3, 1)
        assert outcome.differences[1].startswith("ends the process (SIGABRT)")
        assert outcome.differences[2] == "takes longer than 5 seconds"


def test_a_worker_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    use_worker(monkeypatch, "raise SystemExit(3)")
    with pytest.raises(RuntimeError, match="status 3"):
        run(processes=1, groups=1)
