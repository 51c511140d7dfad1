"""The test of the rounding errors of a function, pooled over all its cases in a run.

A case with few elements shows little about the precision of a kernel, but all cases of a function together do. The test
takes the passed cases of a run. It compares the root mean square of all their errors with the limit for the total
number of elements. If it exceeds the limit, the report contains an additional failed record for the function. There is
no case with the ID of this record; on the command line, the ID selects all cases of the function.
"""

from __future__ import annotations

import math
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from diopi_proto.messages import pluralize
from diopi_proto.types import Dtype
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import CheckResult, RoundingErrors, Verdict
from diopi_test.results.records import CaseRecord

CHECK = "pooled_values"
"""The name of the check, and the beginning of the label of its records."""


def find_pooled_failures(cases: Iterable[CaseRecord]) -> Iterator[CaseRecord]:
    """Yield a failed record for each function and element type whose pooled errors are above their limit.

    Args:
        cases: The records of all cases of a run. Only demanded cases that passed count.

    Yields:
        The records, by function and element type.
    """
    pools: dict[tuple[str, Dtype], list[RoundingErrors]] = defaultdict(list)
    commands: dict[str, str] = {}
    for case in cases:
        if case.verdict is not Verdict.passed or not case.class_.is_demanded:
            continue
        for errors in (errors for check in case.checks for errors in check.errors):
            pools[case.function, errors.dtype].append(errors)
            commands.setdefault(case.function, case.command)
    for (function, _), parts in sorted(pools.items()):
        if (pooled := pool(parts)).excess > 1:
            yield _record(function, pooled, len(parts), commands[function])


def is_pooled(case_id: str) -> bool:
    """Return whether a record with this ID states that the pooled errors of a function are too large.

    A pattern of a waiver is also accepted.
    """
    return f"[{CHECK}-" in case_id


def pool(parts: Sequence[RoundingErrors]) -> RoundingErrors:
    """Return the combined errors of several results of one element type: all elements, and the mean of their squares.

    Args:
        parts: The errors of the results; at least one with elements.
    """
    elements = sum(part.elements for part in parts)
    squares = math.fsum(part.elements * part.rms**2 for part in parts)
    return RoundingErrors(dtype=parts[0].dtype, elements=elements, rms=math.sqrt(squares / elements))


def _record(function: str, pooled: RoundingErrors, results: int, command_of_case: str) -> CaseRecord:
    """Return the failed record of a function whose pooled errors are too large.

    Args:
        function: the function.
        pooled: the pooled errors of all results of the function that have one element type.
        results: the number of these results.
        command_of_case: the command line that repeats any case of the function; its last word is the ID of the case.

    Returns:
        The record; its command line repeats all cases of the function.
    """
    dtype = pooled.dtype.name
    words = shlex.split(command_of_case)
    command = shlex.join([*words[:-1], f"{function}[{CHECK}-{dtype}]"]) if words else ""
    subject = f"{pluralize(pooled.elements, 'element')} in {pluralize(results, 'result')} of type {dtype}"
    message = f"the errors of {subject} have {pooled.describe_excess()}"
    result = CheckResult(check=CHECK, passed=False, message=message, rms=pooled.rms, errors=(pooled,))
    return CaseRecord(
        id=f"{function}[{CHECK}-{dtype}]",
        function=function,
        label=f"{CHECK}-{dtype}",
        base="",
        dtype=dtype,
        class_=CaseClass.basic,
        verdict=Verdict.failed,
        checks=(result,),
        message=f"{CHECK}: {message}",
        seconds=0.0,
        command=command,
    )
