"""PyTorch's samples of its operators in unusual forms: results and exceptions are those of the CPU.

The forms are lazily conjugated and negated, transposed, expanded and 0-d tensors, overlapping output arguments and
operands, and another default element type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from sampling import draw_sample

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from operator_forms import FORMS, all_operators, find_differences, full_name  # noqa: E402  # behind the check

from diopi_impl.torch_cpu import vendor as torch_cpu  # noqa: E402  # behind the check, too

SAMPLE_SIZE = 3
"""Number of operators that every run tries in each form."""

PARTS = 8
"""Number of tests into which all operators are divided."""

_ERROR_IN_PYTHON = "an error of this type in C++ is a ValueError if PyTorch calls the operator from Python code"

_COMPOSED = "PyTorch composes the operator for devices and checks less than on the CPU"

_OVERLAPPING = "the CPU updates running statistics whose elements overlap, the device rejects such a call"

_CONTIGUOUS = "the CPU requires contiguous memory, the device does not"

_EQUAL_ELEMENTS = "the order of equal elements is not specified"

_EQUAL_ROWS = "the rows are equal, so that most singular values are 0, whose singular vectors are not specified"

KNOWN_DIFFERENCES: Mapping[tuple[str, str], str] = {
    ("_native_batch_norm_legit", "zero_dimensional"): _ERROR_IN_PYTHON,
    ("addbmm", "in_place_on_repeated"): "the CPU resizes the tensor that the operator writes in place",
    ("addr", "in_place_on_repeated"): _COMPOSED,
    ("addr", "output_within_input"): _COMPOSED,
    ("native_batch_norm", "expanded"): _OVERLAPPING,
    ("native_group_norm", "expanded"): _CONTIGUOUS,
    ("native_group_norm", "transposed"): _CONTIGUOUS,
    ("native_batch_norm", "zero_dimensional"): _ERROR_IN_PYTHON,
    ("nn.functional.batch_norm", "expanded"): _OVERLAPPING,
}
"""Operators that differ from the CPU, with the form and the reason."""

UNSPECIFIED_RESULTS: Mapping[tuple[str, str], str] = {
    ("argsort", "expanded"): _EQUAL_ELEMENTS,
    ("pca_lowrank", "expanded"): _EQUAL_ROWS,
    ("sort", "expanded"): _EQUAL_ELEMENTS,
    ("svd_lowrank", "expanded"): _EQUAL_ROWS,
}
"""Operators whose results PyTorch leaves open, with the form and the reason.

Whether they differ from the CPU depends on the kernels that PyTorch chooses for the processor.
"""


@pytest.fixture(autouse=True)
def fast_device(activate_vendor: Callable[[Any], Any]) -> None:
    """Use a device whose vendor compiles nothing, because these tests are about the device and not about functions."""
    activate_vendor(torch_cpu)


def assert_agree(form: str, operators: Sequence[Any]) -> None:
    """Assert that operators agree with the CPU in this form, except where a difference is known or allowed."""
    differences = [
        difference
        for operator in operators
        if (full_name(operator), form) not in {**KNOWN_DIFFERENCES, **UNSPECIFIED_RESULTS}
        for difference in find_differences(form, operator)
    ]
    assert differences == []


@pytest.mark.parametrize("form", list(FORMS))
def test_a_sample_of_operators_agrees_with_the_cpu(form: str) -> None:
    assert_agree(form, draw_sample(all_operators(), SAMPLE_SIZE))


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("form", list(FORMS))
def test_all_operators_agree_with_the_cpu(form: str, part: int) -> None:
    assert_agree(form, all_operators()[part::PARTS])


@pytest.mark.exhaustive
def test_known_differences_exist() -> None:
    by_name = {full_name(operator): operator for operator in all_operators()}
    agreeing = [key for key in KNOWN_DIFFERENCES if not list(find_differences(key[1], by_name[key[0]]))]
    assert agreeing == []
