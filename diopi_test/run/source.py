"""`CaseSource`: the level that provides the cases of a run, and the selection from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from rich.console import Console

from diopi_proto.interface import prototypes
from diopi_proto.messages import pluralize
from diopi_test.baseline.descriptions import is_described
from diopi_test.baseline.level import StoredLevel, open_level
from diopi_test.baseline.location import folder_to_read
from diopi_test.baseline.parallel import process_map
from diopi_test.cases.case import CaseClass
from diopi_test.cases.selection import LEVELS
from diopi_test.execution.listing import list_cases
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.run.collection import (
    Collected,
    collect_described,
    collect_drawn,
    collect_level,
    collect_runtime,
    demand_int32_indices,
)
from diopi_test.run.described import compute_results, with_results
from diopi_test.run.keywords import SelectionError
from diopi_test.run.limits import DEFAULT_CHAIN_LENGTH, DEFAULT_SOAK_CALLS
from diopi_test.run.selection import Selection


@final
@dataclass(frozen=True, kw_only=True)
class CaseSource:
    """The level of a baseline and the cases that are selected from it.

    Attributes:
        level: the name of the level.
        data: the folder of the baselines; None for the baseline in the package or in the user's cache.
        selection: the selected cases and their order.
        huge: whether to include cases with tensors in a storage of more than 2^31 bytes.
        int32_indices: whether the vendor must support int32 indices, see `demand_int32_indices`.
        in_flight: the maximum number of calls of a chain, whose calls are in flight at the same time; 0 omits all
            chains.
        soak: the number of calls of a soak test; 0 omits all soak tests.
    """

    level: str
    data: Path | None
    selection: Selection
    huge: bool
    int32_indices: bool
    in_flight: int = DEFAULT_CHAIN_LENGTH
    soak: int = DEFAULT_SOAK_CALLS

    @property
    def folder(self) -> Path:
        """Return the folder of the level."""
        return self.data / self.level if self.data else folder_to_read(self.level)

    @property
    def _described_folder(self) -> Path | None:
        """Return `data` if this folder describes cases without inputs and results; None if it contains levels."""
        return self.data if self.data is not None and is_described(self.data) else None

    @property
    def is_drawn(self) -> bool:
        """Return whether the inputs are not stored, but generated again: at some levels, and for described cases."""
        return LEVELS[self.level].is_drawn or self._described_folder is not None

    def prepare(self, console: Console, workers: int) -> list[str]:
        """Compute missing or outdated results of the selected functions, if the inputs are generated.

        Args:
            console: The console for progress.
            workers: The number of processes.

        Returns:
            A line for each internal error; the run continues without these results.
        """
        if not self.is_drawn:
            return []
        from diopi_test.baseline.generate import generate  # imports the references, which other levels do not need

        def report(function: str, count: int) -> None:
            if count:
                console.print(f"computed the results of {pluralize(count, 'case')} of {function}", highlight=False)

        functions = sorted({case.function for case in self._list_drawn()} - {RUNTIME})
        if data := self._described_folder:
            return compute_results(data, self.level, functions, console, workers=workers)
        if functions:
            generate(functions, self.level, self.folder, process_map(workers), report, list_cases)
        return []

    def collect(self) -> tuple[StoredLevel, list[Collected]]:
        """Return the level and its selected cases in order.

        Raises:
            BaselineError: The level is unusable.
            SelectionError: The selection names a case that does not exist.
        """
        level = open_level(self.folder)
        if self._described_folder:
            return level, with_results(level, self._list_drawn())
        if self.is_drawn:
            return level, self._list_drawn()
        return level, self._select(level.functions, collect_level(level, self.selection.wants_function))

    def list_cases(self) -> list[Collected]:
        """Return the selected cases in the order of `collect`, including described cases whose results are missing."""
        return self._list_drawn() if self.is_drawn else self.collect()[1]

    def _list_drawn(self) -> list[Collected]:
        """Return the selected cases of a level with generated inputs, whether their results exist or not."""
        wants_function, data = self.selection.wants_function, self._described_folder
        collected = (
            collect_described(data, wants_function)
            if data
            else collect_drawn(self.level, wants_function, huge=self.huge)
        )
        return self._select(list(prototypes()), collected)

    def _select(self, functions: Sequence[str], cases: Sequence[Collected]) -> list[Collected]:
        """Return the selected cases of the level and of the runtime; raise SelectionError if a named one is missing."""
        if self.int32_indices:
            cases = demand_int32_indices(cases, self.level)
        counts = {CaseClass.concurrent: self.in_flight, CaseClass.soak: self.soak}
        cases = [case for case in cases if counts.get(case.case_class, 1)]
        all_cases = [*(collect_runtime() if self.selection.wants_function(RUNTIME) else ()), *cases]
        if absent := self.selection.absent(all_cases):
            similar = self.selection.suggest_similar(functions, all_cases)
            raise SelectionError(f"there is no case {', '.join(absent)} in {self.folder}.{similar}")
        return self.selection.apply(all_cases)
