"""Cases derived from the calls of networks."""

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, Reduction
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.selection.traced import model_cases, model_keys
from diopi_test.oracle.evaluation import compute_baseline_case, draw_arguments
from diopi_test.traces.calls import TracedCall, TracedTensor
from diopi_test.traces.files import model_names, shipped_calls


def tensor(text: str) -> TracedTensor:
    """Return the tensor that a text of a trace describes."""
    return TracedTensor.parse(text, "here")


def case_of_call(
    function: str, arguments: Mapping[str, Any], results: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Case:
    """Return the case of one call."""
    call = TracedCall(function=function, arguments=arguments, results=results)
    monkeypatch.setattr("diopi_test.cases.selection.traced._calls", lambda function, names: {call.label: call})
    (case,) = model_cases(lookup(function))
    return case


def test_a_case_has_the_shapes_types_and_strides_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    transposed = tensor("float32[3,2] strides 1,3")
    case = case_of_call("diopiExp", {"input": transposed}, {"out": transposed}, monkeypatch)
    spec, result = case.arguments["input"], case.results["out"]
    assert result is not None
    assert (case.dtype, spec.shape, spec.dtype) == (Dtype.float32, (3, 2), Dtype.float32)
    assert [layout(spec.shape).strides for layout in (spec.layout, result.layout)] == [(1, 3), (1, 3)]
    assert result.shape == (3, 2)


def test_values_come_from_the_domains_of_the_functions_own_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    vector = tensor("float32[4000]")
    case = case_of_call("diopiSqrt", {"input": vector}, {"out": vector}, monkeypatch)
    assert draw_arguments(lookup("diopiSqrt"), case)["input"].values.min() >= 0


def test_indices_stay_in_the_range_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"weight": tensor("float32[50,4]"), "indices": tensor("int64[2,90] in 3..47"), "padding_idx": -1}
    arguments |= {"scale_grad_byfreq": False, "sparse": False}
    case = case_of_call("diopiEmbedding", arguments, {"out": tensor("float32[2,90,4]")}, monkeypatch)
    indices = draw_arguments(lookup("diopiEmbedding"), case)["indices"].values
    assert (indices.min() >= 3, indices.max() <= 47, len(np.unique(indices)) > 20) == (True, True, True)


@pytest.mark.parametrize(
    ("values", "expected_counts"),
    [("float32[17,4]", {17}), ("float32[1,4]", range(3, 28)), ("float32[4]", range(3, 28))],
)
def test_mask_selects_as_many_elements_as_there_are_values(
    values: str, expected_counts: Container[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tensor("float32[6,5,4]")
    arguments = {"input": target, "values": tensor(values), "indices": [tensor("bool[6,5]")], "accumulate": True}
    case = case_of_call("diopiIndexPut", arguments, {"out": target}, monkeypatch)
    assert np.count_nonzero(draw_arguments(lookup("diopiIndexPut"), case)["indices"][0].values) in expected_counts


def test_ignored_targets_become_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"input": tensor("float32[8,5]"), "target": tensor("int64[8] in -100..4"), "weight": None}
    arguments |= {"reduction": "mean", "ignore_index": -100}
    case = case_of_call("diopiNLLLossV2", arguments, {"out": tensor("float32[]"), "totalWeight": None}, monkeypatch)
    assert case.arguments["reduction"] is Reduction.mean
    assert case.results["totalWeight"] is None
    assert draw_arguments(lookup("diopiNLLLossV2"), case)["target"].values.min() >= 0


def test_saved_argument_is_the_forward_result(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tensor("float32[6,9]")
    arguments = {"grad_output": rows, "output": rows, "dim": 1}
    case = case_of_call("diopiSoftmaxBackward", arguments, {"grad_input": rows}, monkeypatch)
    output = draw_arguments(lookup("diopiSoftmaxBackward"), case)["output"].values
    np.testing.assert_allclose(output.sum(1), 1, rtol=1e-6)


def test_scatter_positions_are_distinct(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"input": tensor("float32[9,4]"), "dim": 0, "src": tensor("float32[9,4]")}
    arguments |= {"index": tensor("int64[9,4] in 0..8"), "reduce": ""}
    case = case_of_call("diopiScatter", arguments, {"out": tensor("float32[9,4]")}, monkeypatch)
    index = draw_arguments(lookup("diopiScatter"), case)["index"].values
    assert (np.sort(index, 0) == np.arange(9)[:, None]).all()


def test_labels_distinguish_calls() -> None:
    contiguous, transposed = tensor("float32[2,3]"), tensor("float32[2,3] strides 1,2")
    labels = {
        TracedCall(function="diopiExp", arguments={"input": tensor_spec}, results={"out": contiguous}).label
        for tensor_spec in (contiguous, transposed)
    }
    assert len(labels) == 2
    assert all(label.startswith("float32-2x3-") for label in labels)
    call = TracedCall(
        function="diopiArange", arguments={"start": 0, "end": 3, "step": 1}, results={"out": tensor("int64[3]")}
    )
    assert call.label.startswith("int64-3-")


def test_equal_calls_of_several_networks_are_one_case() -> None:
    function = "diopiRelu"
    shared = {name: set(shipped_calls(name).get(function, ())) for name in model_names()}
    all_labels = set().union(*shared.values())
    assert len(all_labels) < sum(map(len, shared.values()))
    assert len(model_keys(lookup(function))) == len(all_labels)
    assert len(model_keys(lookup(function), ["vgg16"])) == len(shared["vgg16"])


def test_baseline_cases_of_a_small_network_can_be_computed() -> None:
    for function in ("diopiEmbeddingBackward", "diopiThresholdBackward", "diopiSum"):
        prototype = lookup(function)
        case = min(model_cases(prototype, ["ncf"]), key=size)
        assert compute_baseline_case(prototype, case).expected


def size(case: Case) -> int:
    """Return the number of elements of all tensor arguments."""
    specs = (value for value in case.arguments.values() if isinstance(value, TensorSpec))
    return sum(int(np.prod(spec.shape)) for spec in specs)
