"""Generate the baseline: compute and store the cases of all functions, in several processes.

A file is valid if the manifest contains its digest. It is up to date if its key, a digest of everything that the file
depends on, is the current one. The manifest is written after each file. Therefore, generation continues after an
interruption, and repeats only the files that were not finished.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from diopi_proto.interface import lookup, prototypes
from diopi_proto.prototype import Prototype
from diopi_proto.types import VERSION_NUMBER
from diopi_test.baseline import store
from diopi_test.baseline.dependencies import source_digest
from diopi_test.baseline.files import remove_leftovers
from diopi_test.baseline.manifest_writer import CaseLister, ManifestWriter
from diopi_test.baseline.parallel import ParallelMap
from diopi_test.baseline.shuffle import shuffle_by_seed
from diopi_test.cases.case import Case
from diopi_test.cases.selection import LEVELS, select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase


def functions_with_cases(level: str) -> list[str]:
    """Return the names of all functions that have cases at `level`, in the order of the C headers."""
    return [name for name in prototypes() if select_cases(name, level)]


def software_versions() -> dict[str, str]:
    """Return the versions of the software that the contents depend on."""
    return {
        "diopi_proto": str(VERSION_NUMBER),
        **{name: importlib.metadata.version(name) for name in ("numpy", "scipy")},
    }


def baseline_key(function: str, level: str) -> str:
    """Return a digest of everything that a baseline file depends on: sources, level, versions, cases."""
    prototype, kind = lookup(function), LEVELS[level]
    family = prototype.family
    sources = source_digest(
        (
            "diopi_test.oracle.evaluation",
            "diopi_test.baseline.store",
            "diopi_test.cases.selection",
            f"diopi_proto.functions.{family}",
            f"diopi_test.cases.{family}",
            f"diopi_test.oracle.reference.{family}",
        )
    )
    parts = [level, sources, *software_versions().values(), *kind.depends_on(prototype)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def generate_function(function: str, level: str, folder: Path, seed: int | None = None) -> int:
    """Generate the baseline file of one function.

    Args:
        function: The name of the function.
        level: The name of the level.
        folder: The folder of the level.
        seed: Determines the order in which the cases are computed; the order in the file does not depend on it.

    Returns:
        The number of cases.
    """
    prototype, cases = lookup(function), select_cases(function, level)
    computed = {
        case.label: _compute_case(prototype, case) for case in shuffle_by_seed(cases, seed, lambda case: case.label)
    }
    provenance = store.Provenance(level, baseline_key(function, level), software_versions())
    in_order = [computed[case.label] for case in cases]
    store.write_baseline_file(
        store.baseline_file(folder, function), function, in_order, provenance, omit_inputs=LEVELS[level].is_drawn
    )
    return len(cases)


def _compute_case(prototype: Prototype, case: Case) -> BaselineCase:
    """Return a case with its results; add a note that names the case to any exception."""
    try:
        return compute_baseline_case(prototype, case)
    except Exception as error:
        error.add_note(f"while computing {prototype.name}[{case.label}]")
        raise


FileCallback = Callable[[str, int], None]
"""A function that receives the name of a finished function, and the number of its cases that were computed."""


def generate(
    functions: Sequence[str],
    level: str,
    folder: Path,
    parallel_map: ParallelMap,
    progress: FileCallback,
    list_cases: CaseLister,
    seed: int | None = None,
) -> int:
    """Generate the baseline files of `functions` and enter them in the manifest of the folder.

    Files with the right key are kept, so a run that was killed continues where it stopped. Entries of other functions
    are kept unless these functions no longer have cases. If a function fails, its exception is raised, and the files
    that are already written stay.

    Args:
        functions: The names of the functions.
        level: The name of the level.
        folder: The folder of the level.
        parallel_map: Distributes the functions over processes.
        progress: Receives each function and the number of its cases that were computed; 0 if its file is up to date.
        list_cases: Lists the cases of a file.
        seed: Determines the order of functions and of their cases; the files do not depend on it.

    Returns:
        The number of cases that were computed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    manifest = ManifestWriter(folder, level, list_cases)
    total, pending = 0, _keep_current_files(functions, level, manifest, progress)
    work = partial(generate_function, level=level, folder=folder, seed=seed)
    for function, count in parallel_map(work, shuffle_by_seed(pending, seed)) if pending else ():
        manifest.add_file(function)
        manifest.save()
        total += count
        progress(function, count)
    return total


def _keep_current_files(
    functions: Sequence[str], level: str, manifest: ManifestWriter, progress: FileCallback
) -> Sequence[str]:
    """Update the manifest: enter the files that are up to date, and remove functions that no longer have cases.

    Args:
        functions: the functions whose files are requested.
        level: the level of the folder.
        manifest: the manifest, which is saved.
        progress: is called with each function whose file is up to date, and 0 as the number of computed cases.

    Returns:
        The functions whose files are not up to date.
    """
    up_to_date = {function for function in functions if manifest.is_up_to_date(function, baseline_key(function, level))}
    for function in up_to_date:
        manifest.add_file(function)  # the list of its cases depends on sources that its key does not cover
        progress(function, 0)
    manifest.remove_functions_unless(lambda function: function in prototypes() and bool(select_cases(function, level)))
    manifest.save()
    return [function for function in functions if function not in up_to_date]
