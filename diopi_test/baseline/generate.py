"""Making the baseline: the cases of every function computed and stored, in parallel and resumable.

A file is believed if the manifest has its digest, and kept if it has the right key as well. The manifest is written
after each file, so what is made again after an interruption is no more than the file it lacks.
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
from diopi_test.baseline.evaluate import compute_baseline_case
from diopi_test.baseline.files import remove_leftovers
from diopi_test.baseline.manifest_writer import CaseLister, ManifestWriter
from diopi_test.baseline.parallel import ParallelMap
from diopi_test.baseline.records import BaselineCase
from diopi_test.baseline.shuffle import shuffle_by_seed
from diopi_test.cases.model import Case
from diopi_test.cases.selection import LEVELS, select_cases


def functions_with_cases(level: str) -> list[str]:
    """The names of all functions that have cases at `level`, in header order."""
    return [name for name in prototypes() if select_cases(name, level)]


def software_versions() -> dict[str, str]:
    """The software the contents depend on."""
    return {
        "diopi_proto": str(VERSION_NUMBER),
        **{name: importlib.metadata.version(name) for name in ("numpy", "scipy")},
    }


def baseline_key(function: str, level: str) -> str:
    """Digest of everything the baseline file of `function` depends on: sources, level, versions, what cases say."""
    prototype, kind = lookup(function), LEVELS[level]
    family = prototype.family
    sources = source_digest(
        (
            "diopi_test.baseline.evaluate",
            "diopi_test.baseline.store",
            "diopi_test.cases.selection",
            f"diopi_proto.functions.{family}",
            *(f"{package}.{family}" for package in kind.sources),
            f"diopi_test.oracle.reference.{family}",
        )
    )
    parts = [level, sources, *software_versions().values(), *kind.depends_on(prototype)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def generate_function(function: str, level: str, folder: Path, seed: int | None = None) -> int:
    """Make the baseline file of one function; the number of cases made.

    `seed` draws the order in which the cases are made, which makes no difference: in the file they have their own.
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
    """A case with its results; what it raises says which case it was."""
    try:
        return compute_baseline_case(prototype, case)
    except Exception as error:
        error.add_note(f"while making {prototype.name}[{case.label}]")
        raise


Progress = Callable[[str, int], None]


def generate(
    functions: Sequence[str],
    level: str,
    folder: Path,
    spread: ParallelMap,
    progress: Progress,
    list_cases: CaseLister,
    seed: int | None = None,
) -> int:
    """Make the baseline files of `functions` in `folder`, spread over processes, and enter them in its manifest.

    Calls `progress(function, cases made)` after each. Returns the number of cases made. Files that are there with
    the right key are kept, so a run that was killed goes on where it stopped; entries of other functions are kept
    too, unless they have no cases any more. `seed` draws the order in which functions, and the cases of each, are
    made, which makes no difference.

    Raises what the first failing function raised; files already written stay.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    manifest = ManifestWriter(folder, level, list_cases)
    up_to_date = {function for function in functions if manifest.is_up_to_date(function, baseline_key(function, level))}
    for function in up_to_date:
        manifest.enter(function)  # again: which cases it gives depends on sources that its key leaves out
        progress(function, 0)
    manifest.remove_unless(lambda function: function in prototypes() and bool(select_cases(function, level)))
    manifest.save()
    total, pending = 0, [function for function in functions if function not in up_to_date]
    work = partial(generate_function, level=level, folder=folder, seed=seed)
    for function, count in spread(work, shuffle_by_seed(pending, seed)) if pending else ():
        manifest.enter(function)
        manifest.save()
        total += count
        progress(function, count)
    return total
