"""The check detects vendors that leave memory allocated."""

from typing import Any

import pytest
from faulty import FaultyVendor
from trials import failed_checks, outcome_of

from diopi_proto.types import Device as Place
from diopi_proto.types import Dtype
from diopi_test.execution.verdict import Verdict
from lib_rt import Context, Tensor


def run_corrupted(corrupt: Any) -> Any:
    """Run a case of `diopiSqrt` on a vendor that also calls a function in each call."""
    return outcome_of(FaultyVendor("leaky", corrupt), "diopiSqrt", "float32-matrix")


def test_tensors_of_the_context_of_the_call_are_no_leak() -> None:
    outcome = run_corrupted(lambda arguments: arguments["out"].context.require_tensor((3,), Dtype.float32) and None)
    assert outcome.verdict is Verdict.passed
    assert "leaks" in [finding.check for finding in outcome.check_results]


def test_device_memory_that_each_call_allocates_is_a_leak() -> None:
    retained = []

    def allocate(arguments: dict[str, Any]) -> None:
        device = arguments["out"].context.device
        retained.append((device, device.malloc(64)))

    outcome = run_corrupted(allocate)
    assert failed_checks(outcome) == ["leaks"]
    assert "a second call left 0 tensors and 1 piece of device memory allocated" in outcome.message


@pytest.mark.parametrize("place", list(Place))
def test_tensors_of_another_context_are_a_leak(place: Place) -> None:
    retained: list[Context] = []

    def make_tensor(arguments: dict[str, Any]) -> None:
        context = Context(arguments["out"].context.device)
        context.require_tensor((3,), Dtype.float32, memory_kind=place)
        retained.append(context)

    outcome = run_corrupted(make_tensor)
    assert failed_checks(outcome) == ["leaks"]
    assert "a second call left 1 tensor" in outcome.message


def test_memory_that_only_the_first_call_allocates_is_no_leak() -> None:
    tables: dict[Any, Tensor] = {}

    def look_up(arguments: dict[str, Any]) -> None:
        device = arguments["out"].context.device
        if device not in tables:
            tables[device] = Tensor.empty(Context(device), (256,), Dtype.float32)

    assert run_corrupted(look_up).verdict is Verdict.passed
    assert len(tables) == 1
