"""Mutation testing of the cases.

Each mutant is a correct vendor with one injected defect. The tests report which mutants each function's cases kill.
"""

from diopi_test.quality.mutation.matrix import MutationReport, MutationTestError, run_mutation_tests, suffices

__all__ = ["MutationReport", "MutationTestError", "run_mutation_tests", "suffices"]
