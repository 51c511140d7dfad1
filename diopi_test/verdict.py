"""What a case can end in, and the findings of the checks that lead there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """How a case ended."""

    passed = "passed"
    failed = "failed"
    not_implemented = "not_implemented"
    unsupported = "unsupported"
    waived = "waived"
    crashed = "crashed"
    timed_out = "timed_out"


EXECUTED = frozenset({Verdict.passed, Verdict.failed, Verdict.waived, Verdict.crashed, Verdict.timed_out})
"""The verdicts of cases that were really run."""

UNSUCCESSFUL = frozenset({Verdict.failed, Verdict.crashed, Verdict.timed_out})


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        check: its name.
        passed: whether it is content.
        message: what is wrong, or worth noting; empty if nothing.
        ratio: largest error / budget where the check measures one.
        rms: root mean square of error / (s + ulp + eps·m) where the check measures one.
    """

    check: str
    passed: bool
    message: str = ""
    ratio: float | None = None
    rms: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The finding as the report shows it."""
        record: dict[str, Any] = {"check": self.check, "passed": self.passed}
        for name in ("message", "ratio", "rms"):
            if (value := getattr(self, name)) not in (None, ""):
                record[name] = value
        return record


@dataclass(frozen=True)
class Outcome:
    """The verdict of one case with its findings; `message` says in a line why it isn't passed."""

    verdict: Verdict
    message: str = ""
    findings: Sequence[Finding] = ()
