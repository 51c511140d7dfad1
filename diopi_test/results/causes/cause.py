"""`Cause`: a group of failed cases that most likely have the same defect, as the report of a run contains it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from diopi_test.results.causes.severity import Severity

_OPTIONAL = {"omit_default": True}
"""Metadata of fields that JSON omits if they have their default."""


@final
@dataclass(frozen=True, kw_only=True)
class Cause:
    """Failed cases that most likely have one defect in common.

    Attributes:
        id: the ID, which depends only on what the cases have in common.
        severity: the worst severity of the cases.
        sentence: what the cases have in common.
        counts: whether the cause affects the exit status of the run.
        cases: the number of cases.
        functions: the number of failed cases by function.
        smallest_case: the ID of the smallest case.
        command: a command line that repeats the smallest case.
        factor: the largest error as a multiple of what is accepted, for results with rounding errors: an element's
            error relative to its error budget, or the root mean square of the errors relative to its limit. None if no
            result has such errors.
        diagnosis: the ID of the diagnosis that explains the cause; empty if there is none.
        likely: the probable defect; empty without a diagnosis.
        look_at: where to look for the defect; empty without a diagnosis.
    """

    id: str
    severity: Severity
    sentence: str
    counts: bool
    cases: int
    functions: Mapping[str, int]
    smallest_case: str
    command: str
    factor: float | None = field(default=None, metadata=_OPTIONAL)
    diagnosis: str = field(default="", metadata=_OPTIONAL)
    likely: str = field(default="", metadata=_OPTIONAL)
    look_at: str = field(default="", metadata=_OPTIONAL)
