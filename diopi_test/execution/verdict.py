"""The verdict of a case, and the check results that lead to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import final

from diopi_test.execution.difference import Difference
from diopi_test.execution.timing import Timing


class Verdict(StrEnum):
    """How a case ended."""

    passed = "passed"
    failed = "failed"
    not_implemented = "not_implemented"
    unsupported = "unsupported"
    waived = "waived"
    crashed = "crashed"
    timed_out = "timed_out"
    out_of_memory = "out_of_memory"
    flaky = "flaky"
    not_run = "not_run"


LOST = frozenset({Verdict.crashed, Verdict.timed_out, Verdict.out_of_memory})
"""The verdicts of cases that took their process with them."""

UNSUCCESSFUL = LOST | {Verdict.failed, Verdict.flaky}
"""The verdicts that count against a vendor."""

EXECUTED = UNSUCCESSFUL | {Verdict.passed, Verdict.waived}
"""The verdicts of cases that were really run."""


OPTIONAL = {"omit_default": True}
"""Metadata of a field that a report has only where it says something."""


@final
@dataclass(frozen=True)
class CheckResult:
    """The result of one check.

    Attributes:
        check: its name.
        passed: whether the check passed.
        message: what is wrong, or worth noting; empty if nothing.
        ratio: largest error / budget where the check measures one.
        rms: root mean square of error / (s + ulp + eps·m) where the check measures one.
        differences: where the first few incorrect tensors differ.
    """

    check: str
    passed: bool
    message: str = field(default="", metadata=OPTIONAL)
    ratio: float | None = field(default=None, metadata=OPTIONAL)
    rms: float | None = field(default=None, metadata=OPTIONAL)
    differences: Sequence[Difference] = field(default=(), metadata={**OPTIONAL, "key": "where"})


@final
@dataclass(frozen=True)
class Outcome:
    """The verdict of one case with its check results; `message` gives the reason in one line unless it passed.

    Attributes:
        timing: how long the call takes; None unless it passed and was to be timed.
    """

    verdict: Verdict
    message: str = ""
    check_results: Sequence[CheckResult] = ()
    timing: Timing | None = field(default=None, metadata=OPTIONAL)
