"""Results of described cases, computed when a run needs them and kept until their descriptions change."""

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
from diopi_test.baseline.described import described_cases, file_of_descriptions, with_shapes
from diopi_test.baseline.evaluate import Evaluation, make_baseline_case
from diopi_test.baseline.files import read_regular, remove_leftovers, write_whole
from diopi_test.baseline.generate import versions
from diopi_test.baseline.manifest_writer import Lister, ManifestWriter
from diopi_test.baseline.parallel import Spread
from diopi_test.baseline.records import BaselineCase, entries_of
from diopi_test.baseline.stable import restrict_to_stable
from diopi_test.cases.model import Case, CaseClass
from diopi_test.cases.open_calls import why_open
from diopi_test.oracle.reference import find_reference

REFUSED = "refused"
"""The folder that lists, by function, the described cases that the reference refuses."""

INTERNAL = ": internal error: "
"""What tells an error of the project's from a refusal in the lists of cases without results."""

REJECTIONS = (ValueError, IndexError, OverflowError, MemoryError)
"""What a reference raises where the arguments do not fit; anything else is an error of the project's."""

MOST_BYTES = 640 * 2**20
"""Bytes of the results of one function at most: a file has no room for more."""


@final
@dataclass
class Made:
    """The outcome of computing the results of one function's cases.

    Attributes:
        cases: How many have results.
        refused: A line for each case that the reference refuses, and why.
        errors: A line for each case that ended in an error of the project's.
    """

    cases: int = 0
    refused: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def make_described(
    data: Path,
    level: str,
    functions: Sequence[str],
    spread: Spread,
    list_cases: Lister,
    progress: Callable[[str, Made], None],
) -> None:
    """Compute the missing results of described cases and enter them in the manifest of the level.

    Args:
        data: The folder that describes the cases.
        level: The level that the files say they are of.
        functions: The functions whose results are needed.
        spread: Runs the work in several processes.
        list_cases: Lists the cases of a file.
        progress: Is called with each function whose results were computed, and the outcome.
    """
    folder = data / level
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    manifest = ManifestWriter(folder, level, list_cases)
    described = {function: _key(data, function) for function in functions}
    due = [function for function, key in described.items() if not manifest.is_kept(function, key)]
    for function, made in spread(partial(_make, data=data, level=level), due) if due else ():
        manifest.enter(function)
        manifest.save()
        progress(function, made)
    manifest.save()


def refused_file(data: Path, function: str) -> Path:
    """Return the path of the file that lists the cases of a function that have no results."""
    return data / REFUSED / f"{function}.txt"


def without_results(data: Path, function: str) -> tuple[list[str], list[str]]:
    """Return the lines of the cases that the reference refuses, and those of the internal errors."""
    path = refused_file(data, function)
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    return [line for line in lines if INTERNAL not in line], [line for line in lines if INTERNAL in line]


def _key(data: Path, function: str) -> str:
    """Return a digest of everything that the results depend on."""
    family = lookup(function).family
    sources = source_digest(
        ("diopi_test.baseline.on_demand", f"diopi_proto.functions.{family}", f"diopi_test.oracle.reference.{family}")
    )
    content = read_regular(file_of_descriptions(data, function), store.LIMIT)
    parts = [sources, hashlib.sha256(content).hexdigest(), *versions().values()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _make(function: str, data: Path, level: str) -> Made:
    """Write the file of one function, and the list of its refused cases."""
    made = Made()
    provenance = store.Provenance(level, _key(data, function), versions())
    cases = _computed(lookup(function), described_cases(data, function), made)
    store.write(store.file_of(data / level, function), function, cases, provenance, is_drawn=True)
    path = refused_file(data, function)
    if lines := [*made.refused, *made.errors]:
        write_whole(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))
    else:
        path.unlink(missing_ok=True)
    return made


def _computed(prototype: Prototype, cases: Sequence[Case], made: Made) -> Iterator[BaselineCase]:
    """Yield the cases with their results; enter the others in `made`."""
    size = 0
    for case in cases:
        what = f"{prototype.name}[{case.label}]"
        try:
            computed = _with_results(prototype, with_shapes(prototype.name, case))
        except REJECTIONS as error:
            made.refused.append(f"{what}: {str(error) or type(error).__name__}")
            continue
        except Exception as error:  # the others go on; the run reports it
            made.errors.append(f"{what}{INTERNAL}{type(error).__name__}: {error}")
            continue
        size += sum(10 * one.values.size for value in computed.expected.values() for one in entries_of(value))
        if size > MOST_BYTES:
            made.refused.append(f"{what}: the results of the cases before fill the file of the function")
            continue
        made.cases += 1
        yield computed


def _with_results(prototype: Prototype, case: Case) -> BaselineCase:
    """Return the case with its data and results."""
    function = find_reference(prototype.name)
    if function is None:
        raise ValueError("the function has no reference")
    if why_open(prototype, case):
        case = replace(case, case_class=CaseClass.open)
    computed = make_baseline_case(prototype, case)
    return restrict_to_stable(computed, Evaluation(prototype, function, case), computed)
