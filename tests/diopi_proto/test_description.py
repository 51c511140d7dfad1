"""The description of a function follows from its prototype, for all functions of the standard."""

import ast

import pytest

from diopi_proto import facts
from diopi_proto.description import (
    aten_operators,
    describe_implementation,
    describe_parameters,
    describe_results,
    other_forms,
    python_name,
    python_signature,
)
from diopi_proto.facts import ExcludesNumbers
from diopi_proto.interface import lookup, prototypes


def test_signatures_are_valid_python_and_name_every_argument() -> None:
    for prototype in prototypes().values():
        (function,) = ast.parse(python_signature(prototype)).body
        assert isinstance(function, ast.FunctionDef)
        assert [argument.arg for argument in function.args.args] == [p.name for p in prototype.arguments]


def test_sentences_of_facts_name_their_fields() -> None:
    for prototype in prototypes().values():
        for described in describe_parameters(prototype):
            assert all(note.endswith(".") and "{" not in note for note in described.notes), (prototype.name, described)


def test_a_fact_without_fields_is_described_by_the_summary_of_its_class() -> None:
    assert facts.AtMostOne().sentence == "The number is at most 1."
    assert facts.SizeOf("key_cache", 2).sentence == "The number is the size of axis 2 of `key_cache`."
    assert facts.HasShape(("B", 3)).sentence.startswith("The shape is (B, 3);")


@pytest.mark.parametrize(
    ("fact", "sentence"),
    [
        (ExcludesNumbers(("zero", "negative"), "why"), "Valid calls do not pass 0 or negative numbers. Reason: why."),
        (
            ExcludesNumbers(("float",), "why", (0, 1)),
            "Valid calls do not pass numbers of floating-point type if the tensors have type bool or an integer type. "
            "Reason: why.",
        ),
        (
            ExcludesNumbers(("bool",), "why", (1, 2, 3)),
            "Valid calls do not pass numbers of type bool unless the tensors have type bool. Reason: why.",
        ),
    ],
)
def test_excluded_numbers_are_stated_with_the_element_types(fact: ExcludesNumbers, sentence: str) -> None:
    assert fact.sentence == sentence


def test_parameters_have_the_rule_of_a_result_and_the_types_of_an_input() -> None:
    described = {parameter.name: parameter for parameter in describe_parameters(lookup("diopiSum"))}
    assert described["out"].dtypes[0] == "The type of the first input, or int64 if that is an integer type or bool."
    assert described["out"].dtypes[1].startswith("The caller may choose any of float16,")
    assert described["input"].dtypes[:2] == ("float16", "bfloat16")
    assert (described["dim"].role, described["dim"].c_type, described["dim"].dtypes) == ("attribute", "diopiSize_t", ())


def test_an_array_from_the_callee_has_a_rule_per_entry() -> None:
    described = {p.name: p for p in describe_parameters(lookup("diopiDynamicPointToVoxelMmcv"))}
    rules = ("`reduced_feats`: The type of the first input.", "`out_coors`: Always int32.")
    assert described["outlist"].dtypes[:2] == rules


@pytest.mark.parametrize(
    ("function", "name"), [("diopiSum", "sum"), ("diopiLayerNorm", "layer_norm"), ("diopiIsNan", "is_nan")]
)
def test_names_in_python_have_underscores_between_words(function: str, name: str) -> None:
    assert python_name(function) == name


def test_what_an_implementation_receives_is_stated() -> None:
    cat = describe_implementation(lookup("diopiCat"))
    assert "It does not receive `num_inputs`, because the arrays have lengths." in cat
    assert "It receives `input` and `other` converted to their common type." in describe_implementation(
        lookup("diopiMul")
    )
    assert "It receives `input` converted to the element type of the result." in describe_implementation(
        lookup("diopiSum")
    )
    assert describe_implementation(lookup("diopiAdamW")) == [
        "It returns `param`, `exp_avg`, `exp_avg_sq` and `max_exp_avg_sq`."
    ]


def test_results_state_whether_equal_calls_return_equal_bits() -> None:
    assert "Equal calls return equal bits." in describe_results(lookup("diopiSum"))
    assert "may differ within the budget" in describe_results(lookup("diopiConvolution2dBackward"))[1]
    assert describe_results(lookup("diopiDropout")) == [
        "The results are samples of a distribution; statistical tests judge them."
    ]


def test_related_functions_are_named() -> None:
    assert other_forms(lookup("diopiMul")) == ["diopiMulInp", "diopiMulScalar", "diopiMulInpScalar"]
    assert "mul.Tensor" in aten_operators(lookup("diopiMulInp"))
