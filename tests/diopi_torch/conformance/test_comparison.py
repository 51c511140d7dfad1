"""Samples agree if results, gradients and exceptions on the device are those of the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_impl.torch_cpu import vendor as torch_cpu  # noqa: E402  # behind the check for PyTorch
from diopi_torch.conformance.comparison import compare_with_cpu  # noqa: E402  # behind the check, too
from diopi_torch.conformance.samples import SampleCall, SampleGroup  # noqa: E402  # behind the check, too

GROUP = SampleGroup(database="op", entry="add", form="plain", dtype="float32")


@pytest.fixture(autouse=True)
def fast_device(activate_vendor: Callable[[Any], Any]) -> None:
    """Use a device whose vendor compiles nothing."""
    activate_vendor(torch_cpu)


def raise_error(error: Exception) -> Any:
    raise error


def compare(on_cpu: Callable[[], Any], on_device: Callable[[], Any], **fields: Any) -> str | None:
    """Compare a sample that does one thing on the CPU and another one on the device."""
    call = {"cpu": on_cpu, "diopi": on_device}
    return compare_with_cpu(GROUP, SampleCall(call=lambda device, seed: call[device](), **fields))


def test_equal_results_agree() -> None:
    assert compare(lambda: torch.ones(2), lambda: torch.ones(2, device="diopi") + 1e-6) == ""


@pytest.mark.parametrize("found", [torch.zeros(2), torch.ones(3), torch.ones(2, dtype=torch.float64), None])
def test_other_results_differ(found: Any) -> None:
    assert compare(lambda: torch.ones(2), lambda: found)


def test_a_result_as_accurate_as_the_cpus_agrees() -> None:
    exact = torch.ones(2, dtype=torch.float64)
    fields = {"exact_call": lambda device, seed: exact}
    assert compare(lambda: torch.full((2,), 1.01), lambda: torch.full((2,), 0.93), **fields) == ""
    assert compare(lambda: torch.full((2,), 1.01), lambda: torch.full((2,), 0.91), **fields)
    assert compare(lambda: torch.full((2,), 1.01), lambda: torch.tensor([1.01, torch.nan]), **fields)


def test_only_forms_of_random_results_are_compared() -> None:
    assert compare(lambda: torch.rand(2), lambda: torch.zeros(3)) == "shapes or element types differ from the CPU's"


def test_random_results_of_equal_forms_agree() -> None:
    sample = SampleCall(
        call=lambda device, seed: torch.full((2,), float(seed)) if device == "cpu" else torch.full((2,), 9.0)
    )
    assert compare_with_cpu(GROUP, sample) == ""


def test_an_invalid_sample_raises_the_error_of_the_cpu() -> None:
    def on_cpu() -> Any:
        return raise_error(IndexError("index 3 is out of range"))

    def fails(error: Exception) -> str | None:
        return compare(on_cpu, lambda: raise_error(error), error="out of range")

    assert fails(IndexError("out of range")) == ""
    assert fails(RuntimeError("out of range")) == (
        "raises RuntimeError: out of range; the CPU raises IndexError: index 3 is out of range"
    )
    assert fails(IndexError("no")) == "the message is IndexError: no; on the CPU IndexError: index 3 is out of range"
    assert compare(on_cpu, lambda: None, error="x") == (
        "returns a result; the CPU raises IndexError: index 3 is out of range"
    )


def test_a_valid_sample_that_the_device_rejects_differs() -> None:
    found = compare(lambda: torch.ones(2), lambda: raise_error(NotImplementedError("no function")))
    assert found == "raises NotImplementedError: no function"


def test_samples_that_the_cpu_does_not_run_as_described_are_skipped() -> None:
    assert compare(lambda: raise_error(RuntimeError("unsupported")), lambda: None) is None
    assert compare(lambda: torch.ones(2), lambda: None, error="out of range") is None
