"""The size sweep: cases with one long axis, derived from small cases."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from sampling import sampled

from diopi_proto.interface import lookup, prototypes
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.selection import select_cases
from diopi_test.cases.sweep import LONG_SIZE, MANY_SHAPE, MIN_ELEMENTS, PERIOD, sweeps
from diopi_test.oracle.evaluation import compute_baseline_case, draw_arguments
from diopi_test.quality.mutation.matrix import run_mutant
from diopi_test.quality.mutation.size import COLUMNS, MATRIX_ROWS, ROWS, size_mutants
from diopi_test.quality.size_sweep import PAGE, find_sweep, render_page
from diopi_test.run.collection import collect_drawn

LABEL = re.compile(r"-(long|many)-\w+-axis-\d$")


def sweep_of(function: str) -> list[Case]:
    """Return the size sweep cases of a function."""
    return [case for case in select_cases(function, "large") if LABEL.search(case.label)]


def shapes_of(case: Case) -> Sequence[tuple[int, ...]]:
    """Return the shapes of all tensor arguments."""
    return [spec.shape for value in case.arguments.values() for spec in TensorSpec.all_in(value)]


SWEPT_FUNCTIONS = sorted(function for function, sweep in sweeps().items() if not sweep.reason)


def test_every_function_has_cases_or_a_reason() -> None:
    assert set(sweeps()) == set(prototypes())
    assert all(bool(sweep.reason) != bool(sweep.sizes or sweep.elementwise) for sweep in sweeps().values())


@pytest.mark.parametrize("function", sampled(SWEPT_FUNCTIONS, 4, slow=6))
def test_every_case_has_a_long_axis_or_many_elements(function: str) -> None:
    entries, cases = sweeps()[function].sizes, sweep_of(function)
    assert len(cases) == len(entries) + sum(entry.large_size > 0 for entry in entries)
    for case in cases:
        assert case.large
        assert "-many-" in case.label or any(LONG_SIZE in shape for shape in shapes_of(case)), case.label


def test_cases_with_many_elements_repeat_their_values() -> None:
    (case,) = (case for case in sweep_of("diopiGelu") if "-many-" in case.label)
    values = draw_arguments(lookup("diopiGelu"), case)["input"].values.reshape(-1)
    assert values.size >= MIN_ELEMENTS
    assert (values[PERIOD:] == values[:-PERIOD]).all()
    assert len(set(values[:PERIOD].tolist())) > PERIOD // 2


def test_the_kinds_of_axes_of_matrix_products_are_covered() -> None:
    axes = {axis for size in sweeps()["diopiBmm"].sizes for axis in size.axes}
    assert axes == {"input axis 0", "input axis 1", "input axis 2", "mat2 axis 0", "mat2 axis 1", "mat2 axis 2"}
    assert all(sum(math.prod(shape) for shape in shapes_of(case)) < 2**22 for case in sweep_of("diopiBmm"))


@pytest.mark.parametrize("function", ["diopiSoftmax", "diopiBmm"])
def test_the_file_has_the_derivations_that_the_rule_finds(function: str) -> None:
    found = {size.axes[0]: size.size for size in find_sweep(function).sizes}
    assert {size.axes[0]: size.size for size in sweeps()[function].sizes} == found


def test_elementwise_functions_have_more_elements_than_float32_counts_in_two_types() -> None:
    cases = {case.label: case for case in select_cases("diopiAbs", "large")}
    for label in ("float32-16777219-elements", "int32-16777219-elements"):
        assert set(shapes_of(cases[label])) == {MANY_SHAPE}
        assert not cases[label].is_huge
    assert cases["float32-storage-huge"].is_huge


def test_cases_with_a_huge_storage_do_not_run_by_default() -> None:
    def labels(*, huge: bool) -> set[str]:
        """Return the labels of the size sweep cases."""
        cases = collect_drawn("large", lambda function: function == "diopiAbs", huge=huge)
        return {case.label for case in cases}

    assert "float32-storage-huge" in labels(huge=True) - labels(huge=False)


@pytest.mark.parametrize(
    ("function", "mutant"),
    sampled(
        [
            ("diopiAdd", "offsets of the result stored in 20 bits"),
            ("diopiLayerNorm", f"matrix rows from {MATRIX_ROWS} on zero"),
            ("diopiSoftmax", f"columns from {COLUMNS} on zero"),
            ("diopiBmm", f"rows from {ROWS} on zero"),
        ],
        1,
    ),
)
def test_the_size_sweep_kills_known_defects(function: str, mutant: str) -> None:
    prototype = lookup(function)
    cases = [compute_baseline_case(prototype, case) for case in sweep_of(function)]
    (found,) = (candidate for candidate in size_mutants(function) if candidate.name == mutant)
    assert run_mutant(found, cases).killed_by is not None


def test_the_page_lists_every_function() -> None:
    assert (Path(__file__).parents[3] / PAGE).read_text("utf-8") == render_page()
    assert "| `diopiSoftmax` | input axis 0; input axis 1 |" in render_page()
