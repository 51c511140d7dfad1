"""Compute the results of described cases when a run needs them; reuse them until the descriptions change."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import final

from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_test.baseline import store
from diopi_test.baseline.dependencies import source_digest
from diopi_test.baseline.descriptions import described_cases, description_file, resolve_shapes
from diopi_test.baseline.files import read_regular_file, remove_leftovers, write_atomically
from diopi_test.baseline.generate import software_versions
from diopi_test.baseline.manifest_writer import CaseLister, ManifestWriter
from diopi_test.baseline.parallel import ParallelMap
from diopi_test.baseline.stability import restrict_to_stable
from diopi_test.cases.case import Case, CaseClass
from diopi_test.cases.selection.open_calls import reason_open
from diopi_test.oracle.evaluation import Evaluation, compute_baseline_case
from diopi_test.oracle.records import BaselineCase, expected_arrays
from diopi_test.oracle.reference import find_reference

REJECTED_FOLDER = "refused"
"""The folder that lists the described cases that the reference rejects, by function."""

INTERNAL_ERROR_MARK = ": internal error: "
"""The text that marks internal errors, as opposed to rejections, in the lists of cases without results."""

REJECTION_ERRORS = (ValueError, IndexError, OverflowError, MemoryError)
"""The exceptions with which a reference rejects invalid arguments; any other exception is an internal error."""

MAX_RESULT_BYTES = 640 * 2**20
"""The maximum number of bytes of a function's results, which must fit in its file."""


@final
@dataclass
class ComputationOutcome:
    """The outcome of computing the results of one function's cases.

    Attributes:
        cases: The number of cases with results.
        rejected: A line for each case that the reference rejects, or that does not fit in the file, with the reason.
        errors: A line for each case that ended with an internal error.
    """

    cases: int = 0
    rejected: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def compute_described(
    data: Path,
    level: str,
    functions: Sequence[str],
    parallel_map: ParallelMap,
    list_cases: CaseLister,
    progress: Callable[[str, ComputationOutcome], None],
) -> None:
    """Compute the missing results of described cases and enter them in the manifest of the level.

    Args:
        data: The folder that describes the cases.
        level: The name of the level, which the files contain.
        functions: The functions whose results are needed.
        parallel_map: Distributes the functions over processes.
        list_cases: Lists the cases of a file.
        progress: Receives each function whose results were computed, and the outcome.
    """
    folder = data / level
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    manifest = ManifestWriter(folder, level, list_cases)
    keys = {function: _dependency_digest(data, function) for function in functions}
    pending = [function for function, key in keys.items() if not manifest.is_up_to_date(function, key)]
    for function, outcome in parallel_map(partial(_compute_file, data=data, level=level), pending) if pending else ():
        manifest.add_file(function)
        manifest.save()
        progress(function, outcome)
    manifest.save()


def rejected_cases_file(data: Path, function: str) -> Path:
    """Return the path of the file that lists the cases of a function that have no results."""
    return data / REJECTED_FOLDER / f"{function}.txt"


def cases_without_results(data: Path, function: str) -> tuple[list[str], list[str]]:
    """Return the lines of the cases that the reference rejects, and the lines of internal errors."""
    path = rejected_cases_file(data, function)
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    return [line for line in lines if INTERNAL_ERROR_MARK not in line], [
        line for line in lines if INTERNAL_ERROR_MARK in line
    ]


def _dependency_digest(data: Path, function: str) -> str:
    """Return a digest of everything that the results of a function's described cases depend on."""
    family = lookup(function).family
    sources = source_digest(
        ("diopi_test.baseline.on_demand", f"diopi_proto.functions.{family}", f"diopi_test.oracle.reference.{family}")
    )
    content = read_regular_file(description_file(data, function), store.LIMIT)
    parts = [sources, hashlib.sha256(content).hexdigest(), *software_versions().values()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _compute_file(function: str, data: Path, level: str) -> ComputationOutcome:
    """Compute the results of a function's described cases.

    Write the baseline file of the function, and the list of cases without results if there are any.

    Returns:
        The outcome.
    """
    outcome = ComputationOutcome()
    provenance = store.Provenance(level, _dependency_digest(data, function), software_versions())
    cases = _compute_cases(lookup(function), described_cases(data, function), outcome)
    store.write_baseline_file(
        store.baseline_file(data / level, function), function, cases, provenance, omit_inputs=True
    )
    path = rejected_cases_file(data, function)
    if lines := [*outcome.rejected, *outcome.errors]:
        write_atomically(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))
    else:
        path.unlink(missing_ok=True)
    return outcome


def _compute_cases(prototype: Prototype, cases: Sequence[Case], outcome: ComputationOutcome) -> Iterator[BaselineCase]:
    """Yield the cases that have results, and count them in `outcome`; add a line to it for each other case."""
    size = 0
    for case in cases:
        case_name = f"{prototype.name}[{case.label}]"
        try:
            computed = _compute_case(prototype, resolve_shapes(prototype.name, case))
        except REJECTION_ERRORS as error:
            outcome.rejected.append(f"{case_name}: {str(error) or type(error).__name__}")
            continue
        except Exception as error:  # the run reports the error and continues with the other cases
            outcome.errors.append(f"{case_name}{INTERNAL_ERROR_MARK}{type(error).__name__}: {error}")
            continue
        size += sum(10 * array.values.size for value in computed.expected.values() for array in expected_arrays(value))
        if size > MAX_RESULT_BYTES:
            outcome.rejected.append(f"{case_name}: the file of the function has no room for further results")
            continue
        outcome.cases += 1
        yield computed


def _compute_case(prototype: Prototype, case: Case) -> BaselineCase:
    """Return the case with its data and its results, which accept both sides of discontinuities near the data.

    Args:
        prototype: The prototype of the function.
        case: The case, without pending tensors.

    Raises:
        ValueError: The function has no reference, or the reference rejects the arguments.
    """
    function = find_reference(prototype.name)
    if function is None:
        raise ValueError("the function has no reference")
    if reason_open(prototype, case):
        case = replace(case, case_class=CaseClass.open)
    computed = compute_baseline_case(prototype, case)
    return restrict_to_stable(computed, Evaluation(prototype, function, case))
