"""Templates expand to cases."""

from __future__ import annotations

import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.axes import Axes
from diopi_test.cases.case import ResultOverride
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, ByDtype, CaseTemplate, expand, tensor


def test_tensor_template_resolves_to_its_own_dtype():
    assert tensor(2, dtype=Dtype.int8).resolve(Dtype.uint8).dtype is Dtype.int8  # int8 is 0
    assert tensor(2).resolve(Dtype.uint8).dtype is Dtype.uint8


def test_smoke_templates_make_a_smoke_case_per_element_type():
    prototype = lookup("diopiTril")
    cases = list(
        expand(
            prototype, [CaseTemplate("square", arguments={"input": tensor(2, 2), "diagonal": 0}, **SMOKE_IN_ALL_DTYPES)]
        )
    )
    assert [case.dtype for case in cases] == list(prototype.dtypes) and all(case.smoke for case in cases)


def test_cycle_layouts_assigns_pairs_in_rotation():
    templates = [CaseTemplate(label) for label in "abc"]
    cycled = CaseTemplate.cycle_layouts(templates, (contiguous, transposed), (strided, contiguous))
    assert [(template.label, template.layout, template.result_layout) for template in cycled] == [
        ("a", contiguous, transposed),
        ("b", strided, contiguous),
        ("c", contiguous, transposed),
    ]


def test_results_may_depend_on_the_element_type():
    result = ByDtype(lambda dtype: ResultOverride(dtype, strided, (3,)))
    template = CaseTemplate("made", arguments={"size": (3,)}, results={"out": result}, dtypes=(Dtype.int8,))
    (case,) = expand(lookup("diopiOnes"), [template])
    assert case.results == {"out": ResultOverride(Dtype.int8, strided, (3,))}


def test_template_with_an_argument_that_no_function_of_the_family_has_is_rejected():
    template = CaseTemplate("typo", arguments={"input": tensor(2, 2), "diagnal": 0})
    with pytest.raises(ValueError, match="'typo' of diopiTril names diagnal"):
        list(expand(lookup("diopiTril"), [template]))


def test_replace_and_with_sizes_reject_unknown_names():
    template = CaseTemplate("rows", Axes((7, 5), (1,)))
    assert template.with_sizes("columns", axes=(0,)).replace(smoke=True) == CaseTemplate(
        "columns", Axes((7, 5), (0,)), smoke=True
    )
    with pytest.raises(TypeError, match="axes"):
        template.replace(axes=(0,))
    with pytest.raises(TypeError, match="smoke"):
        template.with_sizes(smoke=True)
    with pytest.raises(TypeError, match="with_sizes"):
        template.replace(sizes=Axes((7, 5), (0,)))
