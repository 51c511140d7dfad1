"""Which operators of a framework each standard function ran, and whether a library or the framework served them.

Some vendors implement the standard functions with the operators of a framework such as PyTorch. A library can override
operators of the framework with its own kernels. If it does, a run records the operators; see the option
`--torch-setup`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from diopi_impl import OperatorUse
from diopi_proto.messages import pluralize
from diopi_test.results.records import Report

MAX_FUNCTIONS = 20
"""The maximum number of functions that the terminal lists."""

MAX_OPERATORS = 8
"""The maximum number of operators that a line names."""


@final
@dataclass(frozen=True, kw_only=True)
class FunctionOperators:
    """The operators that the calls of a function ran.

    Attributes:
        function: the standard function.
        by_library: the names of the operators for which a kernel of the library ran.
        by_framework: the names of the operators for which a kernel of the framework ran.
    """

    function: str
    by_library: tuple[str, ...]
    by_framework: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, str, str]:
        """Return the texts of a row: the function, the operators of the library and the operators of the framework."""
        return self.function, ", ".join(self.by_library), ", ".join(self.by_framework)


def list_operators(report: Report) -> Sequence[FunctionOperators]:
    """Return the operators of each function of a report; functions that the library served come first."""
    names: defaultdict[str, defaultdict[bool, set[str]]] = defaultdict(lambda: defaultdict(set))
    for use in _uses(report):
        names[use.function][bool(use.source)].add(use.operator)
    functions = (
        FunctionOperators(
            function=name, by_library=tuple(sorted(operators[True])), by_framework=tuple(sorted(operators[False]))
        )
        for name, operators in names.items()
    )
    return sorted(functions, key=lambda entry: (not entry.by_library, entry.function))


@final
@dataclass(frozen=True, kw_only=True)
class OverrideSummary:
    """How many overrides of a library were used.

    Attributes:
        overrides: the number of operators that the library overrides on the device.
        run: the number of these operators that ran in a call.
        unused: the names of the overridden operators that did not run.
        served: the number of functions for which an operator of the library ran.
        functions: the number of functions with recorded operators.
    """

    overrides: int
    run: int
    unused: tuple[str, ...]
    served: int
    functions: int


def summarize_overrides(report: Report) -> OverrideSummary | None:
    """Return how many overrides of a library were used; None if the run recorded no operators."""
    overrides = {override.operator for override in report.vendor.overrides}
    functions = list_operators(report)
    if not overrides and not functions:
        return None
    run = overrides & {use.operator for use in _uses(report) if use.source}
    return OverrideSummary(
        overrides=len(overrides),
        run=len(run),
        unused=tuple(sorted(overrides - run)),
        served=sum(bool(entry.by_library) for entry in functions),
        functions=len(functions),
    )


def describe_overrides(report: Report) -> Iterator[str]:
    """Yield sentences about the overrides of a library: how many of them were used, and which were not."""
    if (summary := summarize_overrides(report)) is None:
        return
    yield (
        f"the library overrides {pluralize(summary.overrides, 'operator')}, of which {summary.run} ran; "
        f"it served {summary.served} of {pluralize(summary.functions, 'function')}"
    )
    if unused := summary.unused:
        suffix = f" and {len(unused) - MAX_OPERATORS} more" if len(unused) > MAX_OPERATORS else ""
        yield f"overridden, but not run: {', '.join(unused[:MAX_OPERATORS])}{suffix}"


def show_operators(report: Report, console: Console) -> None:
    """Print which operators of the framework served the functions, if the run recorded them."""
    for line in describe_overrides(report):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    functions = list_operators(report)
    if not functions:
        return
    table = Table("function", "served by the library", "served by the framework", box=None)
    for entry in functions[:MAX_FUNCTIONS]:
        table.add_row(*map(escape, entry.cells))
    console.print(table)
    if len(functions) > MAX_FUNCTIONS:
        console.print(f"… and {len(functions) - MAX_FUNCTIONS} more functions; the report (--html) lists them all")


def _uses(report: Report) -> Iterable[OperatorUse]:
    """Return the uses of operators that all cases of a report recorded."""
    return (use for case in report.cases for use in case.operators)
