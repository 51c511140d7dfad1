"""Cases made of calls of networks."""

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, Reduction
from diopi_test.baseline.evaluate import compute_baseline_case, draw_arguments
from diopi_test.cases import models
from diopi_test.cases.model import Case, TensorSpec
from diopi_test.cases.models import label_of, labels_of, model_cases, model_keys, models_of
from diopi_test.models.calls import TracedCall, TracedTensor
from diopi_test.models.files import model_names


def tensor(text: str) -> TracedTensor:
    return TracedTensor.parse(text, "here")


def made(
    function: str, arguments: Mapping[str, Any], results: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Case:
    """The case of one call."""
    call = TracedCall(function, arguments, results)
    monkeypatch.setattr(models, "_calls", lambda function, names: {label_of(call): call})
    (case,) = model_cases(lookup(function))
    return case


def test_a_case_has_the_shapes_types_and_strides_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    turned = tensor("float32[3,2] strides 1,3")
    case = made("diopiExp", {"input": turned}, {"out": turned}, monkeypatch)
    spec, result = case.arguments["input"], case.results["out"]
    assert result is not None
    assert (case.dtype, spec.shape, spec.dtype) == (Dtype.float32, (3, 2), Dtype.float32)
    assert [layout(spec.shape).strides for layout in (spec.layout, result.layout)] == [(1, 3), (1, 3)]
    assert result.shape == (3, 2)


def test_values_come_from_where_the_functions_own_cases_draw_them(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = tensor("float32[4000]")
    case = made("diopiSqrt", {"input": drawn}, {"out": drawn}, monkeypatch)
    assert draw_arguments(lookup("diopiSqrt"), case)["input"].values.min() >= 0


def test_places_lie_where_they_did(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"weight": tensor("float32[50,4]"), "indices": tensor("int64[2,90] in 3..47"), "padding_idx": -1}
    arguments |= {"scale_grad_byfreq": False, "sparse": False}
    case = made("diopiEmbedding", arguments, {"out": tensor("float32[2,90,4]")}, monkeypatch)
    indices = draw_arguments(lookup("diopiEmbedding"), case)["indices"].values
    assert (indices.min() >= 3, indices.max() <= 47, len(np.unique(indices)) > 20) == (True, True, True)


@pytest.mark.parametrize(
    ("values", "chosen"), [("float32[17,4]", {17}), ("float32[1,4]", range(3, 28)), ("float32[4]", range(3, 28))]
)
def test_a_mask_chooses_as_many_places_as_there_are_values(
    values: str, chosen: Container[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tensor("float32[6,5,4]")
    arguments = {"input": given, "values": tensor(values), "indices": [tensor("bool[6,5]")], "accumulate": True}
    case = made("diopiIndexPut", arguments, {"out": given}, monkeypatch)
    assert np.count_nonzero(draw_arguments(lookup("diopiIndexPut"), case)["indices"][0].values) in chosen


def test_targets_that_are_ignored_become_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"input": tensor("float32[8,5]"), "target": tensor("int64[8] in -100..4"), "weight": None}
    arguments |= {"reduction": "mean", "ignore_index": -100}
    case = made("diopiNLLLossV2", arguments, {"out": tensor("float32[]"), "totalWeight": None}, monkeypatch)
    assert case.arguments["reduction"] is Reduction.mean
    assert case.results["totalWeight"] is None
    assert draw_arguments(lookup("diopiNLLLossV2"), case)["target"].values.min() >= 0


def test_what_a_forward_function_saves_is_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tensor("float32[6,9]")
    arguments = {"grad_output": rows, "output": rows, "dim": 1}
    case = made("diopiSoftmaxBackward", arguments, {"grad_input": rows}, monkeypatch)
    output = draw_arguments(lookup("diopiSoftmaxBackward"), case)["output"].values
    np.testing.assert_allclose(output.sum(1), 1, rtol=1e-6)


def test_places_that_are_written_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"input": tensor("float32[9,4]"), "dim": 0, "src": tensor("float32[9,4]")}
    arguments |= {"index": tensor("int64[9,4] in 0..8"), "reduce": ""}
    case = made("diopiScatter", arguments, {"out": tensor("float32[9,4]")}, monkeypatch)
    index = draw_arguments(lookup("diopiScatter"), case)["index"].values
    assert (np.sort(index, 0) == np.arange(9)[:, None]).all()


def test_labels_tell_calls_apart() -> None:
    one, other = tensor("float32[2,3]"), tensor("float32[2,3] strides 1,2")
    labels = {label_of(TracedCall("diopiExp", {"input": given}, {"out": one})) for given in (one, other)}
    assert len(labels) == 2
    assert all(label.startswith("float32-2x3-") for label in labels)
    assert label_of(
        TracedCall("diopiArange", {"start": 0, "end": 3, "step": 1}, {"out": tensor("int64[3]")})
    ).startswith("int64-3-")


def test_equal_calls_of_several_networks_are_one_case() -> None:
    function = "diopiRelu"
    shared = {name: set(labels_of(name).get(function, ())) for name in model_names()}
    every = set().union(*shared.values())
    assert len(every) < sum(map(len, shared.values()))
    label = next(label for label in sorted(every) if sum(label in one for one in shared.values()) > 1)
    assert list(models_of(function, label)) == [name for name, labels in shared.items() if label in labels]
    assert len(model_keys(lookup(function))) == len(every)
    assert len(model_keys(lookup(function), ["vgg16"])) == len(shared["vgg16"])


def test_a_small_network_has_cases_that_can_be_made() -> None:
    for function in ("diopiEmbeddingBackward", "diopiThresholdBackward", "diopiSum"):
        prototype = lookup(function)
        case = min(model_cases(prototype, ["ncf"]), key=size)
        assert compute_baseline_case(prototype, case).expected


def size(case: Case) -> int:
    specs = (value for value in case.arguments.values() if isinstance(value, TensorSpec))
    return sum(int(np.prod(spec.shape)) for spec in specs)
