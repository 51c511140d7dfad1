"""The effects of declaring an arithmetic, measured with the vendors of `declared_vendors`.

A vendor declares the arithmetic of its device, such as products in TF32, so that its results are compared with budgets
(permitted errors) that fit this arithmetic. Each vendor runs the functions that its arithmetic affects (`is_affected`),
with and without the declaration. A mutant is a correct vendor with one defect. Mutants run with the budgets of IEEE 754
arithmetic and with those of the declaration. The difference shows which defects the wider budgets hide.
benchmarks/declared_numerics.py measures all vendors, a test a few.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from declared_vendors.emulation import EmulatedVendor

from diopi_impl import BaseVendor, Numerics
from diopi_impl.numerics import IEEE
from diopi_proto.interface import lookup, prototypes
from diopi_test.baseline.level import open_level
from diopi_test.baseline.location import package_folder
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import UNSUCCESSFUL, Outcome
from diopi_test.fingerprint.numerics import find_contradictions, measure_numerics
from diopi_test.oracle.arithmetic.declared_case import derive_declared_case
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation.matrix import generate_mutants, run_mutant
from diopi_test.quality.mutation.mutant import Mutant
from diopi_test.results.causes.diagnosis import diagnose
from diopi_test.results.causes.grouping import group_cases
from diopi_test.results.pooling import find_pooled_failures
from diopi_test.results.records import CaseRecord
from diopi_test.run.collection import Collected
from diopi_test.run.run_case import run_case
from diopi_test.waivers.rules import Waivers
from lib_rt import Device

MIN_KILLED = 0.95
"""Share of the mutants that the declared budgets must kill."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a measurement, as on the command line of benchmarks/declared_numerics.py.

    Attributes:
        functions: the functions that are measured; empty for those that the vendor's arithmetic affects.
        sample: how many of the affected functions are drawn; 0 for all.
        seed: the seed of the draw.
        level: the level of the cases.
        data: the folder of the baselines, in which the level is stored; None to compute the expected results.
        runs: whether the vendors run the cases.
        mutants: how many mutants that the cases kill are drawn for each function; 0 for none.
        kinds: the kinds of mutants that are drawn; empty for all.
    """

    functions: tuple[str, ...] = ()
    sample: int = 3
    seed: int = 0
    level: str = "full"
    data: Path | None = None
    runs: bool = True
    mutants: int = 0
    kinds: tuple[str, ...] = ()


@dataclass(kw_only=True)
class VendorEffects:
    """The effects of a vendor's declaration, a row of the table.

    Attributes:
        name: the name of the declaration.
        naming: the IDs of the diagnoses that name the arithmetic.
        functions: the functions that were measured.
        cases: the number of their cases.
        undeclared: the records of all cases and pools without the declaration.
        undeclared_fields: the fields that the fingerprint finds to be used but not declared.
        failures_if_declared: the IDs of the cases and pools that fail with the declaration.
        mutants: the number of mutants that the cases kill.
        survivors: the mutants that they do not kill with the budgets of the declaration.
        seconds: the duration of the measurement.
    """

    name: str
    naming: Set[str] = frozenset()
    functions: list[str] = field(default_factory=list)
    cases: int = 0
    undeclared: list[CaseRecord] = field(default_factory=list)
    undeclared_fields: list[str] = field(default_factory=list)
    failures_if_declared: list[str] = field(default_factory=list)
    mutants: int = 0
    survivors: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failures_if_undeclared(self) -> int:
        """Return the number of cases and pools that fail without the declaration."""
        return len(failed_records(self.undeclared))

    @property
    def diagnoses(self) -> dict[str, Set[str]]:
        """Return the IDs of the diagnoses by function, for the functions that fail without the declaration."""
        return find_diagnoses(self.undeclared)

    @property
    def unnamed(self) -> list[str]:
        """Return the functions that fail without the declaration and have no diagnosis that names the arithmetic."""
        return [function for function, diagnoses in self.diagnoses.items() if not diagnoses & self.naming]

    @property
    def killed_share(self) -> float:
        """Return the share of the mutants that are still killed."""
        return 1 - len(self.survivors) / self.mutants if self.mutants else 1.0

    @property
    def cells(self) -> list[str]:
        """Return the cells of the row in the table."""
        failing = len(self.diagnoses)
        killed = f"{self.mutants - len(self.survivors):,} of {self.mutants:,} ({100 * self.killed_share:.1f} %)"
        return [
            f"`{self.name}`",
            str(len(self.functions)),
            f"{self.cases:,}",
            f"{self.failures_if_undeclared:,}",
            f"{failing - len(self.unnamed)} of {failing}" if failing else "-",
            ", ".join(f"`{name}`" for name in self.undeclared_fields) or "-",
            f"{len(self.failures_if_declared):,}",
            killed if self.mutants else "-",
        ]


HEADINGS = (
    "arithmetic",
    "functions",
    "cases",
    "fail without the declaration",
    "failing functions whose diagnosis names the arithmetic",
    "fields that the fingerprint finds",
    "fail with the declaration",
    "mutants still killed",
)
"""The headings of the table's columns, in the order of `VendorEffects.cells`."""


@lru_cache(maxsize=3)  # level smoke, the measured level, and level full
def baseline_cases(function: str, level: str, data: Path | None) -> Sequence[BaselineCase]:
    """Return the cases of a function that all vendors must pass, without the huge ones.

    Args:
        function: the function.
        level: the level of the cases.
        data: the folder of baselines that has the level; None to compute the expected results.
    """
    if data is None:
        selected = (case for case in select_cases(function, level) if not case.is_huge)
        cases: Iterable[BaselineCase] = (compute_baseline_case(lookup(function), case) for case in selected)
    else:
        stored = open_level(data / level)
        cases = stored.open(function) if function in stored.functions else ()
    return [case for case in cases if case.case_class.is_demanded]


def changes_cases(numerics: Numerics, function: str) -> bool:
    """Return whether a declaration changes a budget or a check of a case of level smoke."""
    cases = baseline_cases(function, "smoke", package_folder())
    return any(derive_declared_case(case, numerics) is not case for case in cases)


def is_affected(vendor: EmulatedVendor, function: str) -> bool:
    """Return whether the arithmetic of a vendor affects a function, judged by the cases of level smoke.

    It affects a function if the declaration changes a budget or a check of a case. It also affects a function that
    calls an operator with another result than that of torch_cpu. For all other functions, the vendor is torch_cpu, and
    is compared with the budgets of IEEE 754 arithmetic. Level smoke has every function with all of its element types
    and special values.
    """
    if changes_cases(vendor.emulated, function):
        return True
    if not vendor.replaces(called_operators(function)):
        return False
    cases = baseline_cases(function, "smoke", package_folder())
    observed: list[bool] = []
    watched = copy(vendor)
    watched.observe = observed.append
    with watched.open_device() as device:
        return any(run_once(watched, device, case) and any(observed) for case in cases)


@cache
def called_operators(function: str) -> Set[str]:
    """Return the names of the ATen operators that torch_cpu calls in the cases of level smoke of a function."""
    names: set[str] = set()

    def record(func: Any, *operands: Any, **keywords: Any) -> Any:
        """Compute an operator and record its name."""
        names.add(func.overloadpacket.__name__)
        return func(*operands, **keywords)

    vendor = EmulatedVendor("recorder", IEEE, {"*": record})
    with vendor.open_device() as device:
        for case in baseline_cases(function, "smoke", package_folder()):
            run_once(vendor, device, case)
    return names


def run_once(vendor: BaseVendor, device: Device, case: BaselineCase) -> Outcome:
    """Return the outcome of a case with a single call, without the further calls of a case of level smoke."""
    return run_case(vendor, device, replace(case, smoke=False))


def record_outcomes(vendor: BaseVendor, cases: Iterable[BaselineCase]) -> list[CaseRecord]:
    """Run cases on a vendor and return their records and those of pooled errors, with the vendor's waivers."""
    waivers = Waivers.from_vendor(vendor.name, vendor.waivers)
    records = []
    with vendor.open_device() as device:
        for case in cases:
            listed = Collected(
                function=case.function, label=case.label, dtype=case.dtype.name, case_class=case.case_class
            )
            records.append(waivers.apply(listed.record(run_case(vendor, device, case), 0.0)))
    return [*records, *find_pooled_failures(records)]


def failed_records(records: Iterable[CaseRecord]) -> list[CaseRecord]:
    """Return the records of cases that failed."""
    return [record for record in records if record.verdict in UNSUCCESSFUL]


def find_diagnoses(records: Sequence[CaseRecord]) -> dict[str, Set[str]]:
    """Return the IDs of the diagnoses of a run by function, for the functions with failed cases."""
    diagnoses: dict[str, set[str]] = defaultdict(set)
    for group in group_cases(records):
        diagnosis = diagnose(group)
        for finding in group.findings:
            diagnoses[finding.record.function] |= {diagnosis.id} if diagnosis else set()
    return dict(diagnoses)


def find_undeclared_fields(vendor: BaseVendor) -> list[str]:
    """Return the fields of a declaration that the fingerprint of a vendor contradicts if it declares nothing."""
    contradictions = find_contradictions(measure_numerics(vendor), IEEE)
    return sorted({contradiction.field for contradiction in contradictions if contradiction.is_undeclared})


@lru_cache(maxsize=1)  # all vendors run the mutants of a function before those of the next function
def draw_killed_mutants(function: str, options: Options) -> Sequence[tuple[Mutant, str]]:
    """Return drawn mutants that cases with the budgets of IEEE 754 kill, each with the label of the case that does."""
    cases = baseline_cases(function, options.level, options.data)
    mutants = [m for m in generate_mutants(function, cases) if not options.kinds or (m.kind or m.name) in options.kinds]
    random.Random(f"{options.seed} {function}").shuffle(mutants)
    results = ((mutant, run_mutant(mutant, cases).killed_by) for mutant in mutants)
    return list(islice(((mutant, killed_by[0]) for mutant, killed_by in results if killed_by), options.mutants))


def run_mutants(function: str, options: Options, numerics: Numerics) -> tuple[int, list[str]]:
    """Return how many drawn mutants IEEE 754 budgets kill, and the mutants that survive with a declared arithmetic.

    The mutants also compute in the declared arithmetic. The case that kills a mutant with the budgets of IEEE 754 runs
    first, because it usually kills the mutant again. A mutant that survives the measured level also runs with the cases
    of level full. Mutants whose results the arithmetic permits do not count.
    """
    derived: dict[tuple[str, str], BaselineCase] = {}

    def declare_lazily(level: str, data: Path | None, first: str = "") -> Iterator[BaselineCase]:
        """Yield the cases of a level with the budgets of the declaration, beginning with the case `first`."""
        for case in sorted(baseline_cases(function, level, data), key=lambda case: case.label != first):
            key = level, case.label
            if key not in derived:
                derived[key] = derive_declared_case(case, numerics)
            yield derived[key]

    killed, survived = 0, []
    for mutant, label in draw_killed_mutants(function, options):
        if mutant.is_permitted(numerics):
            continue
        killed += 1
        measured = declare_lazily(options.level, options.data, "" if mutant.needs_earlier_call else label)
        selections = measured, declare_lazily("full", None)
        if all(run_mutant(mutant, cases, numerics).killed_by is None for cases in selections):
            survived.append(f"{function}: {mutant.name}")
    return killed, survived


def measure_function(vendor: EmulatedVendor, function: str, options: Options, row: VendorEffects) -> None:
    """Add the results of a vendor for a function to its row of the table."""
    numerics, start = vendor.emulated, time.monotonic()
    declaring = copy(vendor)
    declaring.numerics = numerics
    row.functions.append(function)
    if options.runs:
        cases = baseline_cases(function, options.level, options.data)
        row.cases += len(cases)
        row.undeclared += record_outcomes(vendor, cases)
        declared = [derive_declared_case(case, numerics) for case in cases]
        row.failures_if_declared += [record.id for record in failed_records(record_outcomes(declaring, declared))]
    if options.mutants:
        killed, survived = run_mutants(function, options, numerics)
        row.mutants += killed
        row.survivors += survived
    row.seconds += time.monotonic() - start


def measure(
    vendors: Iterable[EmulatedVendor], options: Options, report: Callable[[VendorEffects], None] = lambda _: None
) -> list[VendorEffects]:
    """Return the results of vendors for the functions that their arithmetic affects.

    Args:
        vendors: the vendors.
        options: the functions. If it lists any, all vendors run them, whether or not their arithmetic affects them.
        report: receives the row of a vendor after each of its functions.

    Returns:
        The rows of the table, without the fields that the fingerprint finds.
    """
    rows = [(vendor, VendorEffects(name=vendor.emulated.name, naming=vendor.diagnoses)) for vendor in vendors]
    for function in options.functions or order_functions(options):
        for vendor, row in rows:
            is_complete = 0 < options.sample <= len(row.functions) and not options.functions
            if is_complete or not vendor.has(function):
                continue
            if options.functions or _is_measured(vendor, function, options):
                measure_function(vendor, function, options, row)
                report(row)
    return [row for _, row in rows]


def _is_measured(vendor: EmulatedVendor, function: str, options: Options) -> bool:
    """Return whether a function may be drawn for a vendor: mutants depend only on the budgets and checks of cases."""
    return is_affected(vendor, function) if options.runs else changes_cases(vendor.emulated, function)


def order_functions(options: Options) -> list[str]:
    """Return all functions, in random order if only a sample is taken."""
    names = list(prototypes())
    if options.sample:
        random.Random(options.seed).shuffle(names)
    return names


def format_table(rows: Sequence[VendorEffects]) -> str:
    """Return the results as a Markdown table."""
    lines = [HEADINGS, ("---", *["---:"] * 4, "---", *["---:"] * 2), *(row.cells for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
