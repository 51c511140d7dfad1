"""Mutants that only derived cases can kill: shared memory, calls in flight, and long series of calls."""

import pytest
from sampling import sampled

from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation.aliasing import (
    EARLY,
    OFFSET,
    SHORTCUT,
    TRANSPOSITION,
    aliasing_mutants,
    derive_aliased_cases,
)
from diopi_test.quality.mutation.in_flight import PLAN, SCRATCH, STAGING
from diopi_test.quality.mutation.matrix import MutationReport, run_derived_mutants, run_mutant
from diopi_test.quality.mutation.soak import SOAK_KINDS


def stored_cases(function: str) -> list[BaselineCase]:
    """Return the computed smoke cases of a function."""
    return [compute_baseline_case(lookup(function), case) for case in select_cases(function, "smoke")]


KINDS = [
    ("diopiMul", {SHORTCUT, EARLY, OFFSET, SCRATCH, STAGING, PLAN}),
    ("diopiMulInp", {SHORTCUT, EARLY, SCRATCH, STAGING, PLAN}),
    ("diopiMm", {OFFSET, TRANSPOSITION, SCRATCH, STAGING, PLAN}),
    ("diopiSoftmax", {SCRATCH, STAGING, PLAN}),
]
"""Functions, with the kinds of mutants of each."""


@pytest.mark.parametrize(("function", "kinds"), sampled(KINDS, 1, slow=3))
def test_derived_cases_kill_every_mutant(function: str, kinds: set[str]) -> None:
    report = MutationReport(function, list(run_derived_mutants(function, stored_cases(function))))
    assert {result.kind for result in report.applicable} == {*kinds, *SOAK_KINDS}
    assert not report.survivors


@pytest.mark.usefixtures("without_soak_tests")
def test_scratch_memory_is_shared_only_by_different_streams() -> None:
    results = {result.kind: result for result in run_derived_mutants("diopiMul", stored_cases("diopiMul"))}
    labels = {kind: killed_by[0] for kind, result in results.items() if (killed_by := result.killed_by)}
    assert labels[SCRATCH] == "in-flight-two-streams"
    assert labels[STAGING] == labels[PLAN] == "in-flight-one-stream"


@pytest.mark.usefixtures("without_soak_tests")
def test_derived_cases_are_not_selected_for_level_smoke() -> None:
    report = MutationReport("diopiMul", list(run_derived_mutants("diopiMul", stored_cases("diopiMul"))))
    assert report.smoke_selection == []


def test_inputs_that_are_compared_for_equality_have_no_rounding_errors() -> None:
    """The budget of a shared gradient is small, although a moved feature would not equal the maximum."""
    function = "diopiIndiceMaxpoolBackwardMmcv"
    derived = derive_aliased_cases(function, stored_cases(function))
    results = [run_mutant(mutant, derived) for mutant in aliasing_mutants(function)]
    killed = {result.kind for result in results if result.killed_by}
    assert killed == {result.kind for result in results if result.change_count} == {SHORTCUT, OFFSET}
