"""The expected results of a fuzzed call: those of the reference, or on either side of a jump."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOverride, TensorSpec
from diopi_test.cases.domains import Domain, choice, normal
from diopi_test.cases.products import fixed_values
from diopi_test.fuzz.knowledge import knowledge_of
from diopi_test.fuzz.legal import IllegalError, compute_legal_case, with_forward_shapes
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, Expected


def call(function: str, domains: Mapping[str, Domain], shape: tuple[int, ...] = (40,), **attributes: Any) -> Case:
    """Return a case with tensors from these domains."""
    tensors = {name: TensorSpec(shape, Dtype.float32, domain) for name, domain in domains.items()}
    return Case("float32-drawn#1", Dtype.float32, {**tensors, **attributes})


CROSSED = call(
    "diopiBoxIouQuadriMmcv",
    dict.fromkeys(("bboxes1", "bboxes2"), fixed_values([0, 0, 1, 1, 1, 0, 0, 1])),
    (1, 8),
    mode=0,
    aligned=False,
)
"""A quadrilateral whose sides cross."""


BROADCAST = call(
    "diopiRotaryEmbedding",
    dict.fromkeys(("x", "cos", "sin"), normal()),
    (1, 1),
    conj=False,
    interleaved=False,
)
"""Arguments that become invalid if x is longer, because each cosine is for two elements."""
BROADCAST = replace(BROADCAST, arguments={**BROADCAST.arguments, "x": TensorSpec((1, 4), Dtype.float32)})

POINTS = {"pooled_features": (1, 1, 1, 1), "xyz": (1, 20, 3), "boxes3d": (1, 1, 7), "pts_feature": (1, 20, 1)}
LARGE_PRODUCT = Case(
    "float32-drawn#1",
    Dtype.float32,
    {"input": TensorSpec((600, 1), Dtype.float32), "other": TensorSpec((1, 600), Dtype.float32)},
)
"""Small arguments with a large result."""

TOO_FEW_FEATURES = Case(
    "float32-drawn#1",
    Dtype.float32,
    {
        **{name: TensorSpec(shape, Dtype.float32) for name, shape in POINTS.items()},
        "pooled_empty_flag": TensorSpec((1, 1), Dtype.int32, choice([0])),
    },
)
"""A point with only four numbers."""


def expected(case: BaselineCase, name: str = "out") -> Expected:
    """Return an expected result of a case that has exactly one valid result."""
    result = case.expected[name]
    assert isinstance(result, Expected)
    return result


def test_at_a_jump_the_results_of_both_sides_are_accepted() -> None:
    third = float(np.float32(1) / np.float32(3))
    case = call("diopiDiv", {"input": choice([1.0]), "other": choice([third])}, rounding_mode=2)
    result = expected(compute_legal_case(knowledge_of("diopiDiv"), case))
    assert (result.budget.unit >= 1).all()  # the quotient is 2 or 3


def test_away_from_jumps_the_budget_equals_that_of_a_stored_case() -> None:
    case = call("diopiSin", {"input": normal()})
    fuzzed, stored = (
        compute_legal_case(knowledge_of("diopiSin"), case),
        compute_baseline_case(knowledge_of("diopiSin").prototype, case),
    )
    assert np.median(expected(fuzzed).budget.unit / expected(stored).budget.unit) <= 1.01
    assert (expected(fuzzed).values == expected(stored).values).all()


def test_a_sum_of_many_elements_is_smooth() -> None:
    case = replace(call("diopiSum", {"input": normal()}, (10_000,), dim=(0,)), results={"out": ResultOverride()})
    fuzzed, stored = (
        compute_legal_case(knowledge_of("diopiSum"), case),
        compute_baseline_case(knowledge_of("diopiSum").prototype, case),
    )
    assert expected(fuzzed).budget.unit / expected(stored).budget.unit <= 1.01


def test_exact_results_have_no_budget() -> None:
    fuzzed = compute_legal_case(knowledge_of("diopiFloor"), call("diopiFloor", {"input": choice([1.0, 0.999])}))
    assert expected(fuzzed).budget is None
    assert expected(fuzzed).specified is None


@pytest.mark.parametrize(
    ("function", "case", "reason"),
    [
        ("diopiAdd", call("diopiAdd", {"input": normal(), "other": normal()}, alpha=1e300), "out of the range"),
        ("diopiAdd", call("diopiAdd", {"input": normal(), "other": normal()}, alpha=1e-300), "out of the range"),
        ("diopiTopk", call("diopiTopk", {"input": normal()}, k=41, dim=0, largest=True, sorted=True), "relation"),
        ("diopiSoftmax", call("diopiSoftmax", {"input": normal()}, dim=4), "rejects"),
        ("diopiAmax", call("diopiAmax", {"self": normal()}, (), dim=(1,), keepdim=False), "a fact"),
        ("diopiBoxIouQuadriMmcv", CROSSED, "rejects"),
        ("diopiMul", LARGE_PRODUCT, "too many elements"),
        ("diopiAbs", call("diopiAbs", {"input": choice([1e300])}), "out of the range"),
        (
            "diopiPad",
            call("diopiPad", {"input": normal()}, (1, 1), pad=(-2, -3), mode="constant", value=1.5),
            "rejects",
        ),
        ("diopiRotaryEmbedding", BROADCAST, "rejects"),
        ("diopiRoipointPool3dMmcv", TOO_FEW_FEATURES, "rejects"),
    ],
)
def test_an_illegal_call_raises_an_error_with_the_reason(function: str, case: Case, reason: str) -> None:
    with pytest.raises(IllegalError, match=reason):
        compute_legal_case(knowledge_of(function), case)


def test_arguments_that_a_fact_requires_must_be_present() -> None:
    knowledge = knowledge_of("diopiMultiHeadAttention")
    case = next(case for case in knowledge.cases if case.arguments["gen"] is None)
    with pytest.raises(IllegalError, match=r"a fact|rejects"):
        compute_legal_case(knowledge, replace(case, arguments={**case.arguments, "dropout_p": 0.5}))


def test_gradients_without_a_norm_are_rejected_on_request() -> None:
    knowledge = knowledge_of("diopiClipGradNorm")
    case = next(case for case in knowledge.cases if case.arguments["error_if_nonfinite"])
    endless = [replace(spec, domain=choice([np.inf])) for spec in case.arguments["grads"]]
    with pytest.raises(IllegalError, match="rejects"):
        compute_legal_case(knowledge, replace(case, arguments={**case.arguments, "grads": endless}))


def test_calls_that_pytorch_leaves_unspecified_are_not_tried() -> None:
    case = call("diopiSub", {"input": normal(), "other": normal()}, alpha=1)
    of_bool = {
        name: replace(spec, dtype=Dtype.bool) if name != "alpha" else spec for name, spec in case.arguments.items()
    }
    with pytest.raises(IllegalError, match="open"):
        compute_legal_case(knowledge_of("diopiSub"), replace(case, dtype=Dtype.bool, arguments=of_bool))


def test_a_gradient_has_the_shape_of_the_forward_result() -> None:
    knowledge = knowledge_of("diopiConvolution2dBackward")
    case = knowledge.cases[0]
    tensors = {name: case.arguments[name] for name in ("input", "weight")}
    shapes = {"input": (2, 2, 11, 11), "weight": (3, 2, 3, 3)}
    changed = {name: replace(tensor, shape=shapes[name]) for name, tensor in tensors.items()}
    attributes = {"stride": (2, 2), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    shaped = with_forward_shapes(knowledge, replace(case, arguments={**case.arguments, **changed, **attributes}))
    assert shaped.arguments["grad_output"].shape == (2, 3, 6, 6)
