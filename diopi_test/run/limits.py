"""How workers run single cases: the resources that a case may use, and the options of its execution."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from diopi_impl import Numerics

DEFAULT_TIMEOUT = 120.0
"""The default number of seconds after which a case counts as hanging."""

DEFAULT_MAX_LOST = 5
"""The default number of cases of a function that may crash, hang or run out of memory before it is abandoned."""

DEFAULT_CHAIN_LENGTH = 4
"""The default maximum number of calls of a chain, whose calls are in flight at the same time."""

DEFAULT_SOAK_CALLS = 200
"""The default number of calls of the soak test of a function."""

SOAK_LEVEL_CALLS = 2000
"""The number of calls of the soak test of a function with `--level soak`."""

SOAK_SHARE = 0.5
"""A soak test makes no further calls after this share of the time limit of a case."""


@dataclass(frozen=True)
class Limits:
    """The resources that the cases of a run may use.

    Attributes:
        timeout: seconds a case may take.
        memory: bytes of memory that a worker may use; None for any number.
        lost: the number of cases of a function that may crash, hang or run out of memory. After that, the remaining
            cases of the function are not run.
    """

    timeout: float = DEFAULT_TIMEOUT
    memory: int | None = None
    lost: int = DEFAULT_MAX_LOST


@dataclass(frozen=True, kw_only=True)
class CaseOptions:
    """Options that concern the execution of single cases.

    Attributes:
        enabled_checks: the names of the checks that decide the verdict; None for all.
        conversions: the names of conversions that are applied to each case, see `diopi_test.execution.conversions`.
        dump: the folder to which failed cases are written; None to write none.
        in_flight: the maximum number of calls of a chain, whose calls are in flight at the same time.
        soak_calls: the number of calls of a soak test.
        soak_seconds: the seconds after which a soak test makes no further calls.
        perf: whether to time the calls of cases that pass.
        draws_inputs: whether workers generate inputs again because they are not stored. The fork server then imports
            the references.
        numerics: the arithmetic for which cases are evaluated; None for the arithmetic that the vendor declares.
    """

    enabled_checks: tuple[str, ...] | None = None
    conversions: tuple[str, ...] = ()
    dump: Path | None = None
    in_flight: int = DEFAULT_CHAIN_LENGTH
    soak_calls: int = DEFAULT_SOAK_CALLS
    soak_seconds: float = DEFAULT_TIMEOUT * SOAK_SHARE
    perf: bool = False
    draws_inputs: bool = False
    numerics: Numerics | None = None
