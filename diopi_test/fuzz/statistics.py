"""Statistics of a search: how many calls were generated, how many were legal, and how much the legal ones vary."""

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
class Statistics:
    """The statistics of a function.

    Attributes:
        legal: the number of valid calls, which the reference computes.
        discarded: the numbers of invalid calls, by reason.
        verdicts: the numbers of valid calls, by verdict.
        shapes, dtypes, layouts, attributes: the distinct values among the valid calls.
    """

    legal: int = 0
    discarded: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    shapes: set[object] = field(default_factory=set)
    dtypes: set[object] = field(default_factory=set)
    layouts: set[object] = field(default_factory=set)
    attributes: set[object] = field(default_factory=set)

    def count(self, call: BaselineCase) -> None:
        """Count a legal call."""
        tensors = [tensor for value in call.arguments.values() for tensor in tensors_in(value)]
        self.legal += 1
        self.shapes.add(tuple(tensor.values.shape for tensor in tensors))
        self.dtypes.add((call.dtype, *(tensor.dtype for tensor in tensors)))
        self.layouts.add(tuple(tensor.layout for tensor in tensors))
        plain = [p.name for p in lookup(call.function).arguments if not p.is_tensor and not p.is_tensor_array]
        self.attributes.add(tuple(repr(call.arguments[name]) for name in plain))

    @property
    def generated(self) -> int:
        """Return the number of all generated calls."""
        return self.legal + self.discarded.total()

    @property
    def legal_share(self) -> float:
        """Return the share of legal calls."""
        return self.legal / self.generated if self.generated else 0.0


def show(statistics: Mapping[str, Statistics], console: Console) -> None:
    """Print a line per function, and how many calls were discarded for each reason."""
    table = Table("function", "drawn", "legal", "shapes", "types", "layouts", "attributes", "verdicts", box=None)
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


def summary(statistics: Iterable[Statistics]) -> str:
    """Return a one-line summary of all functions."""
    found = list(statistics)
    generated, legal = sum(counts.generated for counts in found), sum(counts.legal for counts in found)
    return f"{generated} calls drawn for {len(found)} functions, {legal} of them legal"
