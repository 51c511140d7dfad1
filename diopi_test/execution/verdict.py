"""The verdict of a case, and the check results that lead to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import final

from diopi_impl import OperatorUse
from diopi_proto.types import Dtype
from diopi_test.execution.difference import Difference
from diopi_test.execution.timing import Timing
from diopi_test.oracle.rms_limit import MIN_ELEMENTS, rms_limit


class Verdict(StrEnum):
    """The verdict of a case."""

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


PROCESS_LOST = frozenset({Verdict.crashed, Verdict.timed_out, Verdict.out_of_memory})
"""The verdicts of cases during which the worker process ended."""

UNSUCCESSFUL = PROCESS_LOST | {Verdict.failed, Verdict.flaky}
"""The verdicts that count against a vendor."""

EXECUTED = UNSUCCESSFUL | {Verdict.passed, Verdict.waived}
"""The verdicts of cases that were executed."""


OPTIONAL = {"omit_default": True}
"""Metadata of a field that a report omits if it has its default value."""


@final
@dataclass(frozen=True, kw_only=True)
class RoundingErrors:
    """The errors of the distinct elements of a result that may be rounded. Elements with equal values count once.

    Attributes:
        dtype: the element type of the result.
        elements: the number of distinct elements.
        rms: the root mean square of error / (s + ulp + eps·m).
    """

    dtype: Dtype
    elements: int
    rms: float

    @property
    def limit(self) -> float:
        """Return the largest accepted root mean square; infinity for too few elements."""
        return rms_limit(self.dtype, self.elements) if self.elements >= MIN_ELEMENTS else math.inf

    @property
    def excess(self) -> float:
        """Return the root mean square relative to its limit."""
        return self.rms / self.limit

    def describe_excess(self) -> str:
        """Return a text such as `root mean square 1.2 units, at most 1 is allowed`."""
        return f"root mean square {self.rms:.3g} units, at most {self.limit:.3g} is allowed"


@final
@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The result of a check.

    Attributes:
        check: the name of the check.
        passed: whether the check passed.
        message: what is wrong, or what else is worth reporting; may be empty.
        ratio: the largest error / budget, if the check measures it.
        rms: the root mean square of error / (s + ulp + eps·m), if the check measures it.
        errors: the errors of each result that may be rounded; the report pools them over the cases of a function.
        differences: where the first few incorrect tensors differ.
        problems: names of the kinds of problems, for programs to compare; only of checks that find several kinds of
            problems besides incorrect tensors.
    """

    check: str
    passed: bool
    message: str = field(default="", metadata=OPTIONAL)
    ratio: float | None = field(default=None, metadata=OPTIONAL)
    rms: float | None = field(default=None, metadata=OPTIONAL)
    errors: Sequence[RoundingErrors] = field(default=(), metadata=OPTIONAL)
    differences: Sequence[Difference] = field(default=(), metadata={**OPTIONAL, "key": "where"})
    problems: Sequence[str] = field(default=(), metadata=OPTIONAL)

    @property
    def excess(self) -> float:
        """Return the factor by which the limits of errors must grow for the check to pass; at most 1 if they suffice.

        Reports of older versions have no `errors`. The limit of the root mean square was 1 then.
        """
        means = [errors.excess for errors in self.errors] or [self.rms or 0.0]
        return max(self.ratio or 0.0, *means)


@final
@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The verdict of a case with its check results.

    Attributes:
        verdict: the verdict.
        message: the reason of the verdict in one line; empty if the case passed.
        check_results: the results of all checks that were made.
        timing: the duration of the call; None unless the case passed and durations are measured.
        error_code: the name of the error code that a valid call returned; empty if it returned none.
        preceding_case: of a flaky case, the ID of the case that ran before it in the process in which it failed.
        operators: operators of the vendor's framework that the case was the first to run.
    """

    verdict: Verdict
    message: str = ""
    check_results: Sequence[CheckResult] = ()
    timing: Timing | None = field(default=None, metadata=OPTIONAL)
    error_code: str = field(default="", metadata=OPTIONAL)
    preceding_case: str = field(default="", metadata=OPTIONAL)
    operators: Sequence[OperatorUse] = field(default=(), metadata=OPTIONAL)
