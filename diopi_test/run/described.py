"""Run the cases that a folder describes. Missing results are computed before the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from diopi_proto.messages import pluralize
from diopi_test.baseline.level import StoredLevel
from diopi_test.baseline.parallel import process_map
from diopi_test.execution.listing import list_stored_cases
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.run.collection import Collected, collect_level

if TYPE_CHECKING:
    from diopi_test.baseline.on_demand import ComputationOutcome


def compute_results(
    data: Path, level: str, functions: Sequence[str], console: Console, *, workers: int = 1
) -> list[str]:
    """Compute the missing results of cases that a folder describes, and print how many cases the reference rejects.

    Args:
        data: The folder with the descriptions.
        level: The name of the level to which the results are written.
        functions: The functions whose results are computed.
        console: The console for progress.
        workers: The number of processes.

    Returns:
        A line for each internal error.

    Raises:
        BaselineError: The results cannot be written.
    """
    from diopi_test.baseline.on_demand import (  # imports the references
        cases_without_results,
        compute_described,
        rejected_cases_file,
    )

    def report(function: str, results: ComputationOutcome) -> None:
        console.print(f"computed the results of {pluralize(results.cases, 'case')} of {function}", highlight=False)

    compute_described(data, level, functions, process_map(workers), list_stored_cases, report)
    errors = []
    for function in functions:
        rejected, failed = cases_without_results(data, function)
        errors += failed
        if rejected:
            file = rejected_cases_file(data, function)
            number = pluralize(len(rejected), "case")
            line = f"the reference rejects {number} of {function}; the run skips them, see {file}"
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    return errors


def with_results(level: StoredLevel, cases: Sequence[Collected]) -> list[Collected]:
    """Return, in order, the cases that have results at a level, and the cases of the runtime, which need no results."""
    stored = {case.id: case for case in collect_level(level)}
    return [stored.get(case.id, case) for case in cases if case.function == RUNTIME or case.id in stored]
