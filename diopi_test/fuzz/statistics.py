"""Statistics of a search: the numbers of generated and of legal calls, and how much the legal calls vary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import final

from rich.console import Console
from rich.table import Table

from diopi_proto.interface import lookup
from diopi_proto.messages import pluralize
from diopi_test.execution.verdict import Verdict
from diopi_test.oracle.records import BaselineCase, tensors_in


@final
@dataclass(kw_only=True)
class SearchStatistics:
    """The statistics of the calls that were generated for a function.

    Attributes:
        legal: the number of legal calls, for which the reference computes the results.
        discarded: the numbers of calls that are not legal, by the reason.
        verdicts: the numbers of legal calls, by the verdict of the vendor's results.
        shapes: the distinct tuples of the shapes of all input tensors. Each legal call adds one tuple.
        dtypes: the distinct tuples of the call's element type and the types of all input tensors, one per legal call.
        layouts: the distinct tuples of the layouts of all input tensors, one per legal call.
        attributes: the distinct tuples of the values of all arguments that are not tensors, one per legal call.
    """

    legal: int = 0
    discarded: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    shapes: set[object] = field(default_factory=set)
    dtypes: set[object] = field(default_factory=set)
    layouts: set[object] = field(default_factory=set)
    attributes: set[object] = field(default_factory=set)

    def count_legal(self, call: BaselineCase) -> None:
        """Count a legal call and record its shapes, types, layouts and attributes."""
        tensors = [tensor for value in call.arguments.values() for tensor in tensors_in(value)]
        self.legal += 1
        self.shapes.add(tuple(tensor.values.shape for tensor in tensors))
        self.dtypes.add((call.dtype, *(tensor.dtype for tensor in tensors)))
        self.layouts.add(tuple(tensor.layout for tensor in tensors))
        plain = [p.name for p in lookup(call.function).arguments if not p.is_tensor and not p.is_tensor_array]
        self.attributes.add(tuple(repr(call.arguments[name]) for name in plain))

    @property
    def generated(self) -> int:
        """Return the number of generated calls, legal or discarded."""
        return self.legal + self.discarded.total()

    @property
    def legal_share(self) -> float:
        """Return the fraction of the generated calls that are legal; 0 if there are no calls."""
        return self.legal / self.generated if self.generated else 0.0


def print_statistics(statistics: Mapping[str, SearchStatistics], console: Console) -> None:
    """Print a table and the reasons of discarded calls.

    The table has a row per function: the number of generated calls, the share of legal calls, the number of calls with
    each verdict, and how many distinct shapes, types, layouts and attributes occurred. A line for each reason states
    how many calls of all functions were discarded.

    Args:
        statistics: the statistics of each function, by name.
        console: where to print.
    """
    table = Table("function", "calls", "legal", "shapes", "types", "layouts", "attributes", "verdicts", box=None)
    for function, counts in statistics.items():
        variety = (counts.shapes, counts.dtypes, counts.layouts, counts.attributes)
        verdicts = ", ".join(f"{number} {verdict}" for verdict, number in counts.verdicts.most_common())
        table.add_row(
            function,
            str(counts.generated),
            f"{counts.legal_share:.0%}",
            *(str(len(values)) for values in variety),
            verdicts,
        )
    console.print(table)
    reasons: Counter[str] = sum((counts.discarded for counts in statistics.values()), Counter())
    for reason, number in reasons.most_common():
        console.print(f"{pluralize(number, 'call')} discarded: {reason}", highlight=False)


def summarize(statistics: Iterable[SearchStatistics]) -> str:
    """Return one line with the numbers of generated and of legal calls of all functions."""
    counted = list(statistics)
    generated, legal = sum(counts.generated for counts in counted), sum(counts.legal for counts in counted)
    return (
        f"{pluralize(generated, 'call')} generated for {pluralize(len(counted), 'function')}, {legal:,} of them legal"
    )
