"""Derive which networks a vendor can train from the outcomes of their calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rich.console import Console

from diopi_test.cases.selection import LEVELS
from diopi_test.execution.verdict import UNSUCCESSFUL, Verdict
from diopi_test.results.records import CaseRecord, ModelReport
from diopi_test.traces.files import load_shipped_trace, shipped_calls

SUCCESSFUL = (Verdict.passed, Verdict.waived)
"""The verdicts of calls that do not prevent training."""

WORST = (
    *(Verdict.crashed, Verdict.timed_out, Verdict.out_of_memory, Verdict.failed, Verdict.flaky),
    *(Verdict.not_implemented, Verdict.unsupported),
)
"""The verdicts of calls that did not pass, the worst first."""


def model_reports(
    level: str, cases: Iterable[CaseRecord], counts: Callable[[CaseRecord], bool] = lambda case: True
) -> tuple[ModelReport, ...]:
    """Return a report for each network of the level with a case that was run; empty for levels without networks.

    Args:
        level: The level of the run.
        cases: The records of its cases.
        counts: Returns whether a failed case prevents the training of a network; every failed case by default.

    Returns:
        The reports.
    """

    def verdict_of(case: CaseRecord) -> Verdict:
        """Return the verdict of a case; `passed` for a failure that does not count."""
        return Verdict.passed if case.verdict in UNSUCCESSFUL and not counts(case) else case.verdict

    names = LEVELS[level].models if level in LEVELS else ()
    ended = {(case.function, case.label): verdict_of(case) for case in cases} if names else {}
    reports = (_report(name, ended) for name in names)
    return tuple(report for report in reports if report.not_run < report.calls)


def _report(name: str, ended: Mapping[tuple[str, str], Verdict]) -> ModelReport:
    """Return the report of a network.

    Args:
        name: the name of the network.
        ended: the verdicts of the cases of the run, by function and label.

    Returns:
        The report.
    """
    verdicts = {
        function: [ended.get((function, label), Verdict.not_run) for label in labels]
        for function, labels in shipped_calls(name).items()
    }
    all_verdicts = [verdict for verdicts_of_function in verdicts.values() for verdict in verdicts_of_function]
    passed, not_run = sum(verdict in SUCCESSFUL for verdict in all_verdicts), all_verdicts.count(Verdict.not_run)
    worst = {
        function: next((v for v in WORST if v in verdicts_of_function), None)
        for function, verdicts_of_function in sorted(verdicts.items())
    }
    failures = {function: verdict for function, verdict in worst.items() if verdict is not None}
    not_mapped = tuple(sorted(load_shipped_trace(name).not_mapped))
    return ModelReport(
        name=name, calls=len(all_verdicts), passed=passed, not_run=not_run, failures=failures, not_mapped=not_mapped
    )


def show_models(models: Sequence[ModelReport], console: Console) -> None:
    """Print why the vendor can't train a network, one line per such network, and how many networks it can train."""
    for model in models:
        reasons = [f"{function} {verdict.replace('_', ' ')}" for function, verdict in model.failures.items()]
        reasons += [f"{operator} not mapped" for operator in model.not_mapped]
        reasons += [f"{model.not_run} of {model.calls} calls not run"] if model.not_run else []
        if reasons:
            console.print(f"  {model.name}: {', '.join(reasons)}", highlight=False, markup=False, soft_wrap=True)
    if models:
        console.print(
            f"models: {sum(model.trains for model in models)} of {len(models)} can be trained", highlight=False
        )
