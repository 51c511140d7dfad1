"""Tensors and calls are written as text and parsed again."""

import pytest

from diopi_proto.types import Dtype
from diopi_test.traces.calls import NetworkTrace, TracedCall, TracedTensor, TraceError

MATRIX = TracedTensor(shape=(2, 3), dtype=Dtype.float32, strides=(3, 1))


@pytest.mark.parametrize(
    "text",
    ["float32[]", "bfloat16[0,3]", "int64[8,2] strides 1,8 in 0..511", "bool[2,3] strides 0,1", "int8[4] in -128..127"],
)
def test_a_tensor_survives_a_round_trip(text: str) -> None:
    assert str(TracedTensor.parse(text, "here")) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("float31[2]", "expected a tensor such as"),
        ("float32", "expected a tensor such as"),
        ("float32[2] strides 1,2", "has 2 strides, expected 1"),
        ("int64[2] in 5..4", "bounds 5..4"),
    ],
)
def test_malformed_tensors_are_rejected(text: str, reason: str) -> None:
    with pytest.raises(TraceError, match=f"here: .*{reason}"):
        TracedTensor.parse(text, "here")


def test_the_stride_of_an_axis_of_size_1_is_ignored() -> None:
    assert TracedTensor(shape=(2, 1), dtype=Dtype.int8, strides=(1, 77)) == TracedTensor(
        shape=(2, 1), dtype=Dtype.int8, strides=(1, 1)
    )
    assert TracedTensor(shape=(0, 5), dtype=Dtype.int8, strides=(77, 3)).is_dense
    assert not TracedTensor(shape=(2, 3), dtype=Dtype.int8, strides=(1, 2)).is_dense


def test_the_key_of_a_call_contains_everything_but_the_count() -> None:
    call = TracedCall(function="diopiRelu", arguments={"input": MATRIX}, results={"out": MATRIX})
    assert call.key == "diopiRelu input=float32[2,3] >out=float32[2,3]"
    assert (
        call.key == TracedCall(function="diopiRelu", arguments={"input": MATRIX}, results={"out": MATRIX}, count=7).key
    )
    variants = (
        TracedCall(function="diopiRelu", arguments={"input": MATRIX}, results={"out": None}),
        TracedCall(function="diopiCat", arguments={"tensors": [MATRIX, None], "dim": 0}),
    )
    assert [variant.key for variant in variants] == [
        "diopiRelu input=float32[2,3] >out=null",
        "diopiCat tensors=(float32[2,3],null) dim=0",
    ]


def test_a_model_counts_calls_by_function() -> None:
    calls = (
        TracedCall(function="diopiRelu", arguments={"input": MATRIX}, count=2),
        TracedCall(function="diopiRelu", arguments={"input": MATRIX}, results={"out": None}, count=3),
    )
    assert NetworkTrace("net", calls).functions == {"diopiRelu": 5}
