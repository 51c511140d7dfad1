"""Measurement of the diagnoses: run mutants, whose defects are known, and compare diagnosis and kind of mutant.

`python -m diopi_test.quality.diagnoses --functions 30 --mutants 6 --seed 31337 2718` prints how many diagnoses are
correct, wrong and missing, and the numbers of mutants by kind and diagnosis. With `--level large`, the mutants are
those that depend on the size, and the cases are those of level large. `--records FOLDER` stores the records of the
cases. After a change of the catalog or of the grouping, the same sample can then be diagnosed again in seconds.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import final

from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_test.baseline.codec import from_json, to_json
from diopi_test.baseline.files import write_atomically
from diopi_test.baseline.generate import functions_with_cases
from diopi_test.cases.selection import LEVELS, select_cases
from diopi_test.execution.verdict import UNSUCCESSFUL, Outcome, Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation.matrix import generate_mutants
from diopi_test.quality.mutation.mutant import Mutant
from diopi_test.quality.mutation.size import size_mutants
from diopi_test.quality.mutation.vendor import MutantVendor
from diopi_test.results.causes.cause import Cause
from diopi_test.results.causes.diagnosis import catalog
from diopi_test.results.causes.report import assign_causes, list_causes
from diopi_test.results.records import CaseRecord
from diopi_test.run.collection import Collected
from diopi_test.run.run_case import run_case

GENERAL = ("another-computation", "only-zeros")
"""The diagnoses that name several defects which leave the same traces."""

UNDIAGNOSED = "none"
"""The name of the column for mutants without a diagnosis."""


@final
@dataclass(frozen=True, kw_only=True)
class MutantRun:
    """The cases of a function, run on one of its mutants.

    Attributes:
        function, mutant, kind: the mutated function, the name of the mutant and its kind.
        records: the records of all cases, at least one of which failed.
    """

    function: str
    mutant: str
    kind: str
    records: tuple[CaseRecord, ...]


@final
@dataclass(frozen=True, kw_only=True)
class DiagnosedMutant:
    """A mutant with the diagnosis of its failures.

    Attributes:
        function, mutant, kind: the mutated function, the name of the mutant and its kind.
        diagnosis: the ID of the diagnosis of the first cause; `none` if it has none.
        is_correct: whether the diagnosis names the kind of the mutant; None without a diagnosis.
        causes: the causes of the failures.
    """

    function: str
    mutant: str
    kind: str
    diagnosis: str
    is_correct: bool | None
    causes: Sequence[Cause]


def diagnose_mutants(
    function: str, limit: int, seed: int, level: str = "smoke", folder: Path | None = None
) -> list[DiagnosedMutant]:
    """Run a sample of a function's mutants against its cases of a level and diagnose the failures.

    Args:
        function: the name of the function.
        limit: the maximum number of mutants in the sample.
        seed: the seed of the sample.
        level: the name of the level. A level with generated inputs has only the mutants that depend on the size.
        folder: where the records of the cases are stored. If it has the records of this sample, no mutant runs.

    Returns:
        The mutants of the sample. Each fails at least one case.
    """
    if folder is None:
        return [_diagnose(run) for run in run_mutants(function, limit, seed, level)]
    file = folder / f"{level}-{seed}-{limit}-{function}.json"
    if not file.exists():
        runs = [to_json(run) for run in run_mutants(function, limit, seed, level)]
        write_atomically(file, json.dumps(runs).encode())
    return [_diagnose(from_json(MutantRun, run)) for run in json.loads(file.read_text("utf-8"))]


def run_mutants(function: str, limit: int, seed: int, level: str) -> list[MutantRun]:
    """Run a function's mutants in random order against its cases of a level, until enough of them failed a case.

    Args:
        function: the name of the function.
        limit: the maximum number of mutants to return.
        seed: determines the random order.
        level: the name of the level.

    Returns:
        The mutants that failed at least one case, with the records of all cases.
    """
    prototype = lookup(function)
    cases = [compute_baseline_case(prototype, case) for case in select_cases(function, level) if not case.is_giant]
    mutants = list(size_mutants(function) if LEVELS[level].is_drawn else generate_mutants(function, cases))
    random.Random(f"{seed} {function}").shuffle(mutants)
    runs = (
        MutantRun(
            function=function,
            mutant=mutant.name,
            kind=mutant.kind or mutant.name,
            records=tuple(run_cases_on_mutant(mutant, cases)),
        )
        for mutant in mutants
    )
    failed = (run for run in runs if any(record.verdict in UNSUCCESSFUL for record in run.records))
    return list(islice(failed, limit))


def _diagnose(run: MutantRun) -> DiagnosedMutant:
    """Return the diagnosis of the first cause of a mutant's failures."""
    _, causes = assign_groups(run.records)
    main = causes[0]
    kinds = {entry.id: entry.mutants for entry in catalog()}
    return DiagnosedMutant(
        function=run.function,
        mutant=run.mutant,
        kind=run.kind,
        diagnosis=main.diagnosis or UNDIAGNOSED,
        is_correct=run.kind in kinds[main.diagnosis] if main.diagnosis else None,
        causes=causes,
    )


def assign_groups(records: Sequence[CaseRecord]) -> tuple[Sequence[CaseRecord], Sequence[Cause]]:
    """Group the failures of records by cause; return the records with their causes, and the causes."""
    assigned, groups = assign_causes(records)
    return assigned, list_causes(assigned, groups, lambda record: True)


def run_cases_on_mutant(mutant: Mutant, cases: Sequence[BaselineCase]) -> Iterator[CaseRecord]:
    """Yield the records of all cases on a mutant.

    If the mutant depends on earlier calls, a case that fails after another case is repeated with a new vendor. This
    simulates the repetition in a new process in a run.
    """
    vendor = MutantVendor(mutant, HostRuntime().functions())
    preceding = ""
    with vendor.open_device() as device:
        for case in cases:
            collected = Collected(
                function=case.function,
                label=case.label,
                dtype=case.dtype.name if case.dtype else "",
                case_class=case.case_class,
            )
            outcome = Outcome(verdict=Verdict.passed)
            if vendor.prepare(case):
                outcome = run_case(vendor, device, case)
            if outcome.verdict in UNSUCCESSFUL and mutant.needs_earlier_call and preceding:
                outcome = _confirm(mutant, case, outcome, preceding)
            preceding = collected.id
            yield collected.record(outcome, 0.0)


def _confirm(mutant: Mutant, case: BaselineCase, outcome: Outcome, preceding: str) -> Outcome:
    """Repeat a failed case with a new vendor.

    Args:
        mutant: the mutant.
        case: the failed case.
        outcome: the outcome of the failure.
        preceding: the ID of the case that ran before the failed case.

    Returns:
        The outcome of the repetition. If the repetition passes, the outcome is `flaky`, with the failed checks of
        `outcome`.
    """
    vendor = MutantVendor(mutant, HostRuntime().functions())
    with vendor.open_device() as device:
        repetition = run_case(vendor, device, case) if vendor.prepare(case) else Outcome(verdict=Verdict.passed)
    if repetition.verdict in UNSUCCESSFUL:
        return repetition
    message = f"{outcome.verdict} in a process in which {preceding} had run before ({outcome.message}), passed alone"
    return Outcome(
        verdict=Verdict.flaky, message=message, check_results=outcome.check_results, preceding_case=preceding
    )


def render_matrix(diagnosed: Sequence[DiagnosedMutant]) -> str:
    """Return the shares of correct, wrong and missing diagnoses, and the number of mutants by kind and diagnosis."""
    counts = Counter(mutant.is_correct for mutant in diagnosed)
    names: Mapping[bool | None, str] = {True: "correct", False: "wrong", None: "missing"}
    shares = [f"{counts[key] / max(len(diagnosed), 1):.1%} {name}" for key, name in names.items()]
    general = sum(mutant.diagnosis in GENERAL and bool(mutant.is_correct) for mutant in diagnosed)
    shares[0] += f" ({general / max(len(diagnosed), 1):.1%} general)"
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in diagnosed:
        by_kind[mutant.kind][mutant.diagnosis] += 1
    rows = (f"{kind}: {_describe_counts(by_kind[kind])}" for kind in sorted(by_kind))
    return "\n".join([f"{len(diagnosed)} mutants: {', '.join(shares)}", *rows])


def _describe_counts(counts: Counter[str]) -> str:
    """Return counts as text, the largest first, such as "drift 3, overflow 1"."""
    return ", ".join(f"{diagnosis} {number}" for diagnosis, number in counts.most_common())


def main() -> None:
    """Measure the diagnoses on a random sample of functions and mutants, and print the result."""
    parser = argparse.ArgumentParser(description="Measure the diagnoses on a random sample of mutants.")
    parser.add_argument("--functions", type=int, default=45, help="number of functions to draw")
    parser.add_argument("--mutants", type=int, default=8, help="number of mutants to draw per function")
    parser.add_argument(
        "--seed", type=int, nargs="+", default=[random.randrange(10**6)], help="seeds of the samples, one sample each"
    )
    parser.add_argument("--level", choices=["smoke", "full", "large"], default="smoke", help="level of the cases")
    parser.add_argument(
        "--records",
        type=Path,
        metavar="FOLDER",
        help="store the records of the cases in this folder; read them if it has them, which is fast",
    )
    options = parser.parse_args()
    names = sorted(functions_with_cases("large" if options.level == "large" else "full"))
    diagnosed = [
        mutant
        for seed in options.seed
        for name in random.Random(seed).sample(names, options.functions)
        for mutant in diagnose_mutants(name, options.mutants, seed, options.level, options.records)
    ]
    print(f"seeds {', '.join(map(str, options.seed))}")
    print(render_matrix(diagnosed))


if __name__ == "__main__":
    main()
