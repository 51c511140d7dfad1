"""Only cases with certain ranks, addresses and sizes kill the mutants of geometry."""

from __future__ import annotations

import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import normal
from diopi_test.cases.layouts import Layout, contiguous, strides
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.quality.mutation.call_paths import PATHS, call_paths
from diopi_test.quality.mutation.geometry import SPECIAL_PATH, geometry_mutants, special_paths
from diopi_test.quality.mutation.matrix import MutantResult, run_mutant
from diopi_test.quality.mutation.mutant import Mutant

AXES, ALIGNMENT, *SIZES = geometry_mutants("diopiRelu")


def run_on_relu(mutant: Mutant, shape: tuple[int, ...], layout: Layout = contiguous) -> MutantResult:
    """Run a case of `diopiRelu` with an input of this shape and layout against one of the mutants."""
    case = Case("float32-made-up", Dtype.float32, {"input": TensorSpec(shape, Dtype.float32, normal(), layout=layout)})
    return run_mutant(mutant, [compute_baseline_case(lookup("diopiRelu"), case)])


@pytest.mark.parametrize(("shape", "is_killed"), [((2, 1, 2, 1, 3), False), ((2, 1, 2, 1, 1, 3), True)])
def test_only_more_than_five_axes_kill_the_mutant_of_axes(shape: tuple[int, ...], is_killed: bool) -> None:
    assert (run_on_relu(AXES, shape).killed_by is not None) == is_killed


@pytest.mark.parametrize(
    ("layout", "is_killed"),
    [
        (contiguous, False),
        (strides(3, 1, offset=1), True),
        (strides(3, 1, offset=4), False),  # 16 bytes
        (strides(4, 1, offset=1), False),  # not contiguous
    ],
)
def test_only_contiguous_tensors_at_odd_addresses_kill_the_mutant_of_alignment(layout: Layout, is_killed: bool) -> None:
    assert (run_on_relu(ALIGNMENT, (2, 3), layout).killed_by is not None) == is_killed


@pytest.mark.parametrize("function", ["diopiAdd", "diopiRelu", "diopiSum", "diopiCumsum", "diopiSoftmax", "diopiIsNan"])
def test_cases_of_level_full_kill_the_mutants_of_geometry(function: str) -> None:
    selected = [case for case in select_cases(function, "full") if "misaligned" in case.label or "8" in case.label]
    cases = [compute_baseline_case(lookup(function), case) for case in selected]
    assert [mutant.name for mutant in (AXES, ALIGNMENT) if run_mutant(mutant, cases).killed_by is None] == []


ROWS, CHANNELS, SHORT_ROWS = (mutant for mutant in SIZES if mutant.name.endswith("in input"))


@pytest.mark.parametrize(
    ("shape", "layout", "is_killed"),
    [
        ((2, 16), contiguous, True),
        ((2, 17), contiguous, False),
        ((16, 2), contiguous, False),
        ((2, 16), strides(16, 1, offset=1), False),
        ((0, 16), contiguous, False),
    ],
)
def test_only_full_vectors_at_aligned_addresses_kill_the_mutant_of_rows(
    shape: tuple[int, ...], layout: Layout, is_killed: bool
) -> None:
    assert (run_on_relu(ROWS, shape, layout).killed_by is not None) == is_killed


@pytest.mark.parametrize(("shape", "is_killed"), [((2, 16, 3), True), ((2, 3, 16), False), ((3, 16), False)])
def test_only_a_multiple_of_16_channels_kills_the_mutant_of_channels(shape: tuple[int, ...], is_killed: bool) -> None:
    assert (run_on_relu(CHANNELS, shape).killed_by is not None) == is_killed


@pytest.mark.parametrize(("shape", "is_killed"), [((3, 1), True), ((1, 3), False), ((1, 1), False), ((1,), False)])
def test_only_several_rows_of_one_element_kill_the_mutant_of_short_rows(
    shape: tuple[int, ...], is_killed: bool
) -> None:
    assert (run_on_relu(SHORT_ROWS, shape).killed_by is not None) == is_killed


def test_random_functions_have_no_mutants_of_sizes() -> None:
    assert len(list(geometry_mutants("diopiNormal"))) == len([AXES, ALIGNMENT])


PATHS_BY_LABEL = {
    "three-by-three-of-16": "a 3 × 3 kernel and a multiple of 16 channels",
    "by-channel-dilated": "a dilated 3 × 3 kernel per channel",
    "grouped-points": "a 1 × 1 kernel in groups of an even number of channels",
    "long-strides": "different strides above 2",
    "long-row": "one row and more than 1,024 terms",
    "long-column": "one column and more than 1,024 terms",
    "long-masked": "−∞ in rows of more than 64 elements",
    "many-samples": "more than 32 samples",
    "from-one-channel": "one channel of the input or the result and more than 64 of the other",
    "dilated-row": "a dilated kernel of one row",
    "very-long": "more than 4,096 terms",
    "many-columns": "more than 512 columns",
    "many-rows": "more than 128 rows",
    "width-of-models": "rows of 512 · n + 256 elements",
}
"""The special path that a case takes, by the beginning of its label."""


@pytest.mark.parametrize(
    "function",
    [
        *("diopiConvolution2d", "diopiConvolution3dBackward", "diopiConvTranspose2d", "diopiConvTranspose3dBackward"),
        *("diopiMm", "diopiBmm", "diopiMatmul", "diopiAddmm", "diopiBaddbmmInp", "diopiLinear"),
        *("diopiSoftmax", "diopiLogSoftmax", "diopiScaledMaskedSoftmax"),
    ],
)
def test_a_case_on_each_special_path_kills_the_mutant_of_the_path(function: str) -> None:
    selected = [case for case in select_cases(function, "full") if case.dtype is Dtype.float32]
    mutants = {mutant.name: mutant for mutant in geometry_mutants(function) if mutant.kind == SPECIAL_PATH}
    assert len(mutants) == len(special_paths(lookup(function))) > 0
    for path in call_paths(lookup(function)):  # the next test contains cases on these paths
        del mutants[f"last element wrong with {path}"]
    for label, path in PATHS_BY_LABEL.items():
        if mutant := mutants.pop(f"last element wrong with {path}", None):
            case = next(case for case in selected if case.label.removeprefix("float32-") in (label, f"{label}-scaled"))
            assert run_mutant(mutant, [compute_baseline_case(lookup(function), case)]).killed_by, path
    assert not mutants


CALLS = [
    ("diopiSum", "float32-outer-and-inner", "dim that names the first and the last of more axes"),
    ("diopiSum", "float32-many-pairs", "more than 1,024 pairs along dim"),
    ("diopiSort", "float32-many-pairs", "more than 1,024 pairs along dim"),
    ("diopiTranspose", "float32-tiles", "incomplete tiles of 32 × 32"),
    ("diopiPermute", "float32-tiles", "incomplete tiles of 32 × 32"),
    ("diopiRoll", "float32-both-on-one-axis", "several shifts of one axis"),
    ("diopiGroupNorm", "float32-wide-groups", "groups of more than 16 channels"),
    ("diopiEmbeddingBackward", "float32-often-scaled", "an index that occurs more than 255 times"),
    ("diopiUpsampleLinear", "float16-half-line-linear", "half precision and coordinates above 256"),
    ("diopiAdaptiveAvgPool2d", "float32-whole-plane", "more than 1,024 elements of the input per result"),
    ("diopiTopk", "float32-many-rows-with-nan", "NaN in more than 512 rows"),
    ("diopiCrossEntropyLossBackward", "float32-long-masked", "−∞ in rows of more than 64 elements"),
]
"""Functions, the label of a case on a special path, and the path."""


def test_every_path_of_calls_has_a_case() -> None:
    assert {path for paths in PATHS.values() for path in paths} <= {path for _, _, path in CALLS}


@pytest.mark.parametrize(("function", "label", "path"), CALLS)
def test_a_case_on_a_path_of_calls_kills_the_mutant_of_the_path(function: str, label: str, path: str) -> None:
    (case,) = [case for case in select_cases(function, "full") if case.label == label]
    (mutant,) = [m for m in geometry_mutants(function) if m.name == f"last element wrong with {path}"]
    assert run_mutant(mutant, [compute_baseline_case(lookup(function), case)]).killed_by
