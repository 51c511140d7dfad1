"""Calls and records keep their contents between processes, without the expected results."""

import json

import numpy as np
import pytest

from diopi_test.baseline.level import open_level
from diopi_test.baseline.location import folder_to_read
from diopi_test.execution.call import Call
from diopi_test.execution.call_format import CallDecoder, CallEncoder, CallFormatError
from diopi_test.execution.call_record import CallRecord
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.quality.stub_vendor import vendor

CASES = (
    ("diopiSin", "float16-strided"),
    ("diopiSin", "bfloat16-matrix"),
    ("diopiCat", "float32-rows"),
    ("diopiNonzero", "float32-matrix"),
    ("diopiDropout", "float32-sample"),
)


def find_case(function: str, label: str) -> BaselineCase:
    """Return a stored smoke case."""
    return open_level(folder_to_read("smoke")).open(function).case(label)


def make_record(case: BaselineCase) -> CallRecord:
    """Return the call record of a case on the stub vendor."""
    vendor.take_case(case)
    with vendor.open_device() as device, Call(vendor, device, case) as call:
        return call.run()


@pytest.mark.parametrize(("function", "label"), CASES)
def test_a_decoded_call_has_the_arguments_but_no_expected_values(function: str, label: str) -> None:
    case = find_case(function, label)
    encoder = CallEncoder()
    document = json.loads(json.dumps(encoder.call(case)))
    decoded = CallDecoder(encoder.blocks).call(document)
    for name, value in case.arguments.items():
        pairs = list(zip(tensors_in(value), tensors_in(decoded.arguments[name]), strict=True))
        assert pairs or decoded.arguments[name] == value
        for before, after in pairs:
            assert (before.dtype, before.layout, before.values.shape) == (after.dtype, after.layout, after.values.shape)
            assert before.values.tobytes() == after.values.tobytes()
    for name, result in case.expected.items():
        for expected, form in zip(expected_arrays(result), expected_arrays(decoded.expected[name]), strict=True):
            assert (form.values.shape, form.dtype, form.layout) == (
                expected.values.shape,
                expected.dtype,
                expected.layout,
            )
            assert not np.any(form.values)
            assert form.budget is None


@pytest.mark.parametrize(("function", "label"), CASES)
def test_a_decoded_record_equals_the_record(function: str, label: str) -> None:
    case = find_case(function, label)
    run, encoder = make_record(case), CallEncoder()
    document = json.loads(json.dumps(encoder.record(run)))
    decoded = CallDecoder(encoder.blocks).record(document, case)
    assert [record.name for record, _ in decoded.results()] == [record.name for record, _ in run.results()]
    for before, after in zip(run.tensors, decoded.tensors, strict=True):
        assert before.values.tobytes() == after.values.tobytes()
        assert (before.shape, before.strides, before.role) == (after.shape, after.strides, after.role)
        assert before.expected is after.expected
    assert decoded.generators == run.generators
    assert set(decoded.other_draws) == set(run.other_draws)


def test_an_unchanged_input_has_one_block() -> None:
    encoder = CallEncoder()
    tensors = encoder.record(make_record(find_case("diopiSin", "float32-matrix")))["tensors"]
    shared = {tensor["name"]: tensor["before"] == tensor["after"] for tensor in tensors}
    assert shared == {"input": True, "out": False}
    assert len(encoder.blocks) == 3


def test_a_record_without_a_result_is_rejected() -> None:
    case = find_case("diopiSin", "float32-matrix")
    encoder = CallEncoder()
    document = encoder.record(make_record(case))
    document["tensors"] = [tensor for tensor in document["tensors"] if not tensor["is_result"]]
    with pytest.raises(CallFormatError, match=r"diopiSin\[float32-matrix\] lacks the result out"):
        CallDecoder(encoder.blocks).record(document, case)


def test_a_damaged_record_is_rejected() -> None:
    case = find_case("diopiSin", "float32-matrix")
    with pytest.raises(CallFormatError, match="damaged"):
        CallDecoder([]).record({"tensors": None}, case)


def test_a_result_outside_its_storage_is_an_error() -> None:
    case = find_case("diopiSin", "float32-matrix")
    encoder = CallEncoder()
    document = encoder.record(make_record(case))
    result = next(tensor for tensor in document["tensors"] if tensor["is_result"])
    result["offset"] = 2**20
    decoded = CallDecoder(encoder.blocks).record(document, case)
    with pytest.raises((ValueError, TypeError)):
        _ = [record.values for record, _ in decoded.results()]
