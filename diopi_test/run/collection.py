"""Lists of cases, collected from manifests and descriptions without reading the data of the cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from diopi_proto.interface import prototypes
from diopi_test.baseline.descriptions import described_cases, described_functions
from diopi_test.baseline.level import StoredLevel, open_level_of_file
from diopi_test.baseline.manifest import ListedCase
from diopi_test.cases.case import CaseClass
from diopi_test.cases.selection import LEVELS, select_cases
from diopi_test.execution.runtime_cases import RUNTIME, RUNTIME_CASES
from diopi_test.execution.verdict import Outcome
from diopi_test.results.records import CaseRecord


@dataclass(frozen=True, kw_only=True)
class Collected:
    """A case that is selected to run.

    Attributes:
        function: the standard function that the case calls, or `RUNTIME`.
        label: the name of the case among the cases of the function.
        dtype: the name of the element type under test; empty if there is none.
        case_class: the class of the case.
        base: the label of the stored case from which the case is derived; empty if the case itself is stored.
    """

    function: str
    label: str
    dtype: str = ""
    case_class: CaseClass = CaseClass.basic
    base: str = ""

    @property
    def id(self) -> str:
        """Return the ID of the case: `function[label]`."""
        return f"{self.function}[{self.label}]"

    def record(self, outcome: Outcome, seconds: float) -> CaseRecord:
        """Return the record of the case for the log: the case, its outcome, and its duration in seconds."""
        return CaseRecord(
            id=self.id,
            function=self.function,
            label=self.label,
            base=self.base,
            dtype=self.dtype,
            class_=self.case_class,
            verdict=outcome.verdict,
            checks=tuple(outcome.check_results),
            message=outcome.message,
            seconds=round(seconds, 6),
            command="",
            timing=outcome.timing,
            error_code=outcome.error_code,
            preceding_case=outcome.preceding_case,
            operators=tuple(outcome.operators),
        )


def collect_level(level: StoredLevel, is_selected: Callable[[str], bool] | None = None) -> list[Collected]:
    """Return the cases of a level from its manifest, in order, without opening a baseline file.

    Args:
        level: The level.
        is_selected: Returns whether to collect the cases of a function; None for all functions.
    """
    functions = [function for function in level.functions if is_selected is None or is_selected(function)]
    return [_collected(function, case) for function in functions for case in level.cases(function)]


def demand_int32_indices(cases: Sequence[Collected], level: str) -> list[Collected]:
    """Return the cases of a level as a run demands them if the vendor must support int32 indices.

    PyTorch requires int64 indices, so a case with int32 indices normally has the class `open`. Here it gets the class
    that the same case with int64 indices has, or `callers` if it is derived from a stored case.

    Args:
        cases: The cases.
        level: The name of the level.
    """

    def demand(case: Collected) -> Collected:
        if case.case_class is not CaseClass.open:
            return case
        classes = _classes_with_int32_indices(case.function, level)
        demanded = classes.get(case.base or case.label)
        if demanded is None:
            return case
        return replace(case, case_class=CaseClass.callers if case.base else demanded)

    return [demand(case) for case in cases]


@cache
def _classes_with_int32_indices(function: str, level: str) -> Mapping[str, CaseClass]:
    """Return the cases of a function that are open only because of int32 indices: by label, the class that they get.

    The result is empty for levels that consist of calls of networks, and for levels that are not built in.
    """
    if level not in LEVELS or LEVELS[level].models:
        return {}
    complete = "full" if level == "smoke" else level
    requested = select_cases(function, complete, int32_indices=True)
    return {
        new.label: new.case_class
        for old, new in zip(select_cases(function, complete), requested, strict=True)
        if old.case_class is CaseClass.open and new.case_class.is_demanded
    }


def collect_drawn(level: str, is_selected: Callable[[str], bool], *, huge: bool) -> list[Collected]:
    """Return the cases of a level whose inputs are generated, whether their results exist or not.

    Args:
        level: The name of the level.
        is_selected: Returns whether to collect the cases of a function.
        huge: Whether to include cases with huge storages.

    Returns:
        The cases, sorted by function.
    """
    return [
        Collected(function=function, label=case.label, dtype=case.dtype.name, case_class=case.case_class)
        for function in sorted(prototypes())
        if is_selected(function)
        for case in select_cases(function, level)
        if huge or not case.is_huge
    ]


def collect_described(data: Path, is_selected: Callable[[str], bool]) -> list[Collected]:
    """Return the cases that the folder `data` describes, whether their results exist or not.

    Args:
        data: The folder.
        is_selected: Returns whether to collect the cases of a function.

    Returns:
        The cases, by function.
    """
    return [
        Collected(function=function, label=case.label, dtype=case.dtype.name, case_class=case.case_class)
        for function in described_functions(data)
        if is_selected(function)
        for case in described_cases(data, function)
    ]


def collect_file(path: Path) -> Iterator[Collected]:
    """Return the cases of a baseline file from the manifest; raise BaselineError if the manifest is unusable."""
    return (_collected(path.stem, case) for case in open_level_of_file(path).cases(path.stem))


def _collected(function: str, case: ListedCase) -> Collected:
    """Return a case of a manifest as a collected case."""
    return Collected(
        function=function,
        label=case.label,
        dtype="" if case.dtype is None else case.dtype.name,
        case_class=case.class_,
        base=case.base,
    )


def collect_runtime() -> Iterator[Collected]:
    """Return the cases of the nine functions of the runtime, which are not stored in a baseline."""
    return (Collected(function=RUNTIME, label=case.name) for case in RUNTIME_CASES)
