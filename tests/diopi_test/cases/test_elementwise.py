"""Templates of element-wise functions: operands and numbers of each form, combinations of patterns and types."""

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import normal, special_values
from diopi_test.cases.elementwise import BROADCAST, ROW, UNIFORM, Elementwise, pattern_template, vary_argument
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.template import CaseTemplate, tensor

NORMAL_INPUTS = {"input": normal(), "other": normal()}
HALVES = ROW.variants(NORMAL_INPUTS, vary_argument("by", "other", (0.5, 2.5)))


def cases(function: str, *templates: CaseTemplate) -> list[Case]:
    """Return the small cases of a function that these templates produce."""
    return list(Elementwise(lookup(function)).cases(templates, large=False))


def test_the_last_operand_repeats() -> None:
    shapes = pattern_template("three", (4, 3), (3,), layouts=[transposed, strided])
    (case,) = cases(
        "diopiAddcmul", shapes.with_domains(dict.fromkeys(("input", "tensor1", "tensor2"), normal()), "", {"value": 1})
    )
    specs = [case.arguments[name] for name in ("input", "tensor1", "tensor2")]
    assert [(spec.shape, spec.layout) for spec in specs] == [((4, 3), transposed), ((3,), strided), ((3,), strided)]


def test_scalar_form_has_a_case_for_every_number() -> None:
    labels = {case.label: case.arguments["other"] for case in cases("diopiMulScalar", *HALVES)}
    assert labels == {"float32-by-0.5-row": 0.5, "float32-by-2.5-row": 2.5}


def test_tensor_form_has_one_case_for_all_numbers() -> None:
    (case,) = cases("diopiMul", *HALVES)
    assert case.label == "float32-by-0.5-row"
    assert isinstance(case.arguments["other"], TensorSpec)


def test_equal_numbers_of_different_kinds_are_different() -> None:
    kinds = [
        ROW.with_domains(NORMAL_INPUTS, label, {"other": number})
        for label, number in {"int": 1, "float": 1.0, "bool": True}.items()
    ]
    assert len(cases("diopiMulScalar", *kinds)) == 3


@pytest.mark.parametrize(("function", "count"), [("diopiMul", 2), ("diopiMulInp", 1)])
def test_an_in_place_form_keeps_its_shape(function: str, count: int) -> None:
    templates = [
        pattern_template(label, *shapes).with_domains(NORMAL_INPUTS)
        for label, shapes in (("down", [(3, 4), (4,)]), ("up", [(4,), (3, 4)]))
    ]
    assert len(cases(function, *templates)) == count


def test_every_type_has_the_basic_pattern_and_another() -> None:
    prototype = lookup("diopiMul")
    expanded_cases = cases("diopiMul", *Elementwise(prototype).distribute(NORMAL_INPUTS))
    counts = {dtype: sum(case.dtype is dtype for case in expanded_cases) for dtype in prototype.dtypes}
    assert counts.pop(Dtype.float32) == len(UNIFORM) + len(BROADCAST)
    assert set(counts.values()) == {2}
    assert all(any(case.smoke for case in expanded_cases if case.dtype is dtype) for dtype in prototype.dtypes)


@pytest.mark.parametrize("function", ["diopiMul", "diopiMulInp"])
def test_special_values_are_combined_in_pairs(function: str) -> None:
    (case,) = cases(function, *Elementwise(lookup(function)).special_value_pairs(dtypes=[Dtype.int8]))
    first, second = (
        spec.domain(np.random.default_rng(0), int(np.prod(spec.shape)), Dtype.int8).reshape(spec.shape)
        for spec in case.arguments.values()
    )
    pairs = {(int(a), int(b)) for a, b in zip(*map(np.ravel, np.broadcast_arrays(first, second)), strict=True)}
    assert len(pairs) == len(special_values(Dtype.int8)) ** 2


def test_mixed_types_assigns_one_type_per_tensor() -> None:
    pairs = [(Dtype.uint8, Dtype.int8), (Dtype.bool, Dtype.int32)]
    expanded_cases = cases(
        "diopiMul", *Elementwise(lookup("diopiMul")).mixed_types(NORMAL_INPUTS, pairs=pairs, include_bool=False)
    )
    assert [[spec.dtype for spec in case.arguments.values()] for case in expanded_cases] == [[Dtype.uint8, Dtype.int8]]
    assert expanded_cases[0].exact


def test_in_place_forms_have_no_result_of_another_type() -> None:
    template = ROW.with_domains(NORMAL_INPUTS).to_dtype(Dtype.float64)
    (case,) = cases("diopiMul", template)
    assert case.label == "float32-row-into-float64"
    assert case.results["out"] and case.results["out"].dtype is Dtype.float64
    assert not cases("diopiMulInp", template)


def test_tensor_template_keeps_its_explicit_dtype() -> None:
    assert tensor(3, dtype=Dtype.int8).resolve(Dtype.float32).dtype is Dtype.int8  # whose number is 0
