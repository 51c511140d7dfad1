"""Results by family: a line as soon as the last case of a family has ended."""

from diopi_test.execution.verdict import Verdict
from diopi_test.run.family_results import FamilyResults


def test_line_comes_with_the_last_case_of_a_family() -> None:
    results = FamilyResults(["diopiSin", "diopiSum", "diopiSin", "diopiCos", "runtime"])
    assert results.add("diopiSin", Verdict.passed) is None
    assert results.add("diopiCos", Verdict.not_implemented) is None
    assert results.add("diopiSum", Verdict.failed) == "reduction: 1 failed"
    assert results.add("diopiSin", Verdict.passed) == "pointwise: 2 passed, 1 not implemented"
    assert results.add("runtime", Verdict.passed) == "runtime: 1 passed"


def test_run_with_one_family_has_no_lines() -> None:
    assert FamilyResults(["diopiSin"]).add("diopiSin", Verdict.passed) is None
