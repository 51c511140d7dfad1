"""Mutants that only a soak test can kill: wrong in some of many calls, or leaking memory."""

import pytest

from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.execution import process_memory
from diopi_test.execution.soak import LABEL
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation import soak
from diopi_test.quality.mutation.mutant import Effect
from diopi_test.quality.mutation.soak import LEAKS, PERIODIC, SOAK_KINDS, run_soak_mutant


def smoke_cases(function: str) -> list[BaselineCase]:
    """Compute the first twelve smoke cases of a function."""
    return [compute_baseline_case(lookup(function), case) for case in select_cases(function, "smoke")][:12]


@pytest.mark.parametrize("function", ["diopiMul", "diopiNonzero", "diopiTopk"])
def test_every_nth_wrong_call_is_found(function: str) -> None:
    assert run_soak_mutant(PERIODIC, smoke_cases(function)) == ({Effect.changed: 1}, (LABEL, ("soak",)))


@pytest.mark.skipif(not process_memory.STATUS.exists(), reason="the system does not report the memory of a process")
@pytest.mark.parametrize("kind", LEAKS)
def test_leaks_outside_the_registered_allocator_are_found(kind: str) -> None:
    assert run_soak_mutant(kind, smoke_cases("diopiMul")[:3]) == ({Effect.changed: 1}, (LABEL, ("growth",)))


def test_a_vendor_without_a_defect_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "PERIOD", 10**6)
    assert run_soak_mutant(PERIODIC, smoke_cases("diopiMul")) == ({Effect.not_applicable: 1}, None)


def test_leaks_are_not_applicable_without_a_report_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "STATUS", process_memory.STATUS / "missing")
    assert [run_soak_mutant(kind, smoke_cases("diopiMul")) for kind in LEAKS] == [({}, None)] * len(LEAKS)


def test_random_functions_have_no_mutants_of_soak_tests() -> None:
    assert all(run_soak_mutant(kind, smoke_cases("diopiNormal")) == ({}, None) for kind in SOAK_KINDS)
