"""The effects of declaring an arithmetic, measured with the vendors of `declared_vendors`.

A vendor declares the arithmetic of its device, such as products in TF32, so that its results are compared with budgets
(permitted errors) that fit this arithmetic. Each vendor runs the functions that its declaration affects, with and
without the declaration. Mutants, which are a correct vendor with one defect each, run with the budgets of IEEE 754
arithmetic and with those of the declaration, to see which defects the wider budgets hide.
benchmarks/declared_numerics.py measures all vendors, a test a few.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field

from declared_vendors.emulation import EmulatedVendor

from diopi_impl import BaseVendor, Numerics
from diopi_impl.numerics import IEEE
from diopi_proto.interface import lookup, prototypes
from diopi_test.cases.case import CaseClass
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import UNSUCCESSFUL
from diopi_test.fingerprint.numerics import find_contradictions, measure_numerics
from diopi_test.oracle.arithmetic.declared_case import derive_declared_case
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation.matrix import generate_mutants, run_mutant
from diopi_test.results.causes.diagnosis import diagnose
from diopi_test.results.causes.grouping import group_cases
from diopi_test.results.pooling import find_pooled_failures
from diopi_test.results.records import CaseRecord
from diopi_test.run.collection import Collected
from diopi_test.run.run_case import run_case
from diopi_test.waivers.rules import Waivers

MIN_KILLED = 0.95
"""Share of the mutants that the declared budgets must kill."""

PERMITTED = ("flush-results", "flush-inputs")
"""Arithmetic that the standard permits, so that vendors need not declare it."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a measurement, as on the command line of benchmarks/declared_numerics.py.

    Attributes:
        functions: the functions that are measured; empty for those that the declaration affects.
        sample: how many of the affected functions are drawn; 0 for all.
        seed: the seed of the draw.
        level: the level of the cases.
        mutants: whether mutants run too, which takes most of the time.
    """

    functions: Sequence[str] = ()
    sample: int = 3
    seed: int = 0
    level: str = "full"
    mutants: bool = True


@dataclass(kw_only=True)
class VendorEffects:
    """The effects of a vendor's declaration, a row of the table.

    Attributes:
        name: the name of the declaration.
        functions: the functions that the declaration affects, or that fail without it.
        cases: the number of their cases.
        failures_if_undeclared: the number of cases and pools that fail without the declaration.
        undeclared_fields: the fields that the fingerprint finds to be used but not declared.
        diagnoses: the number of failed cases by diagnosis.
        failures_if_declared: the IDs of the cases and pools that fail with the declaration.
        mutants: the number of mutants that the cases kill.
        survivors: the mutants that they do not kill with the budgets of the declaration.
        seconds: the duration of the measurement.
    """

    name: str
    functions: list[str] = field(default_factory=list)
    cases: int = 0
    failures_if_undeclared: int = 0
    undeclared_fields: list[str] = field(default_factory=list)
    diagnoses: Counter[str] = field(default_factory=Counter)
    failures_if_declared: list[str] = field(default_factory=list)
    mutants: int = 0
    survivors: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def killed_share(self) -> float:
        """Return the share of the mutants that are still killed."""
        return 1 - len(self.survivors) / self.mutants if self.mutants else 1.0

    @property
    def cells(self) -> list[str]:
        """Return the cells of the row in the table."""
        diagnoses = ", ".join(f"`{name}` {count:,}" for name, count in self.diagnoses.most_common(2)) or "-"
        killed = f"{self.mutants - len(self.survivors):,} of {self.mutants:,} ({100 * self.killed_share:.1f} %)"
        return [
            f"`{self.name}`",
            str(len(self.functions)),
            f"{self.cases:,}",
            f"{self.failures_if_undeclared:,}",
            diagnoses,
            ", ".join(f"`{name}`" for name in self.undeclared_fields) or "-",
            f"{len(self.failures_if_declared):,}",
            killed if self.mutants else "-",
        ]


HEADINGS = (
    "arithmetic",
    "functions",
    "cases",
    "fail without the declaration",
    "diagnosed as",
    "fields that the fingerprint finds",
    "fail with the declaration",
    "mutants still killed",
)
"""The headings of the table's columns, in the order of `VendorEffects.cells`."""


def baseline_cases(function: str, level: str) -> list[BaselineCase]:
    """Return the cases of a function that all vendors must pass, without the huge ones."""
    cases = [case for case in select_cases(function, level) if not case.is_huge]
    computed = (compute_baseline_case(lookup(function), case) for case in cases)
    return [case for case in computed if case.case_class.is_demanded]


def declare(cases: Sequence[BaselineCase], numerics: Numerics) -> list[BaselineCase]:
    """Return the cases with the budgets of a declaration."""
    return [derive_declared_case(case, numerics) for case in cases]


def is_affected(numerics: Numerics, cases: Sequence[BaselineCase], declared: Sequence[BaselineCase]) -> bool:
    """Return whether a declaration affects a function: its budgets, the order of its sums, or its subnormal numbers."""
    function = cases[0].function
    if numerics.sum_order:
        return lookup(function).family in numerics.sum_order
    if numerics.name in PERMITTED:
        return any(case.case_class is CaseClass.special for case in cases)
    return any(case is not wider for case, wider in zip(cases, declared, strict=True))


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


def diagnose_all(records: Sequence[CaseRecord]) -> Counter[str]:
    """Return the number of failed cases by the ID of their diagnosis."""
    counts: Counter[str] = Counter()
    for group in group_cases(records):
        diagnosis = diagnose(group)
        counts[diagnosis.id if diagnosis else "none"] += len(group.findings)
    return counts


def find_undeclared_fields(vendor: BaseVendor) -> list[str]:
    """Return the fields of a declaration that the fingerprint of a vendor contradicts if it declares nothing."""
    found = find_contradictions(measure_numerics(vendor), IEEE)
    return sorted({contradiction.field for contradiction in found if contradiction.is_undeclared})


def run_mutants(
    function: str, cases: Sequence[BaselineCase], declared: Sequence[BaselineCase], numerics: Numerics
) -> tuple[int, list[str]]:
    """Return how many mutants the cases kill, and those that survive if the vendor has and declares an arithmetic.

    Mutants whose results the arithmetic permits do not count.
    """
    killed, survived = 0, []
    for mutant in generate_mutants(function, cases):
        if not mutant.is_permitted(numerics) and run_mutant(mutant, cases).killed_by is not None:
            killed += 1
            if run_mutant(mutant, declared, numerics).killed_by is None:
                survived.append(f"{function}: {mutant.name}")
    return killed, survived


def measure(vendor: EmulatedVendor, functions: Iterable[str], options: Options) -> VendorEffects:
    """Return the results of a vendor for functions that its declaration affects or that fail without it.

    Args:
        vendor: the vendor.
        functions: the functions that are tried, in order.
        options: the first `options.sample` of such functions are measured, or all of them if `options.sample` is 0 or
            `options.functions` lists functions.

    Returns:
        The row of the table, without the fields that the fingerprint finds.
    """
    numerics, row, start = vendor.emulated, VendorEffects(name=vendor.emulated.name), time.monotonic()
    declaring = copy(vendor)
    declaring.numerics = numerics
    undeclared: list[CaseRecord] = []
    for function in functions:
        cases = baseline_cases(function, options.level)
        declared = declare(cases, numerics)
        outcomes = record_outcomes(vendor, cases)
        if not failed_records(outcomes) and not (cases and is_affected(numerics, cases, declared)):
            continue
        row.functions.append(function)
        row.cases += len(cases)
        undeclared += outcomes
        row.failures_if_declared += [record.id for record in failed_records(record_outcomes(declaring, declared))]
        if options.mutants:
            killed, survived = run_mutants(function, cases, declared, numerics)
            row.mutants += killed
            row.survivors += survived
        if not options.functions and len(row.functions) == options.sample:
            break
    row.failures_if_undeclared, row.diagnoses = len(failed_records(undeclared)), diagnose_all(undeclared)
    row.seconds = time.monotonic() - start
    return row


def candidate_functions(vendor: EmulatedVendor, options: Options) -> list[str]:
    """Return the functions of a vendor that a declaration may affect, in random order if only a sample is taken."""
    if options.functions:
        return list(options.functions)
    numerics = vendor.emulated
    has_only_products = not numerics.elementary and numerics.name not in PERMITTED and not numerics.sum_order
    names = [
        name
        for name, prototype in prototypes().items()
        if vendor.has(name) and (prototype.multiplies_matrices or not has_only_products)
    ]
    if options.sample:
        random.Random(f"{options.seed} {numerics.name}").shuffle(names)
    return names


def format_table(rows: Sequence[VendorEffects]) -> str:
    """Return the results as a Markdown table."""
    lines = [HEADINGS, ("---", *["---:"] * 3, "---", "---", *["---:"] * 2), *(row.cells for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
