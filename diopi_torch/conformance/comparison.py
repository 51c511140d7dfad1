"""Compare the outcome of a sample on the device with the outcome on the CPU.

The outcome of a call is its result, or the exception that it raises.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import torch

from diopi_torch.conformance.samples import DeviceCall, SampleCall, SampleGroup
from diopi_torch.conformance.trees import map_tensors, tensors_of
from diopi_torch.settings import NAME

TOLERANCES = {"bfloat16": 2e-2}
"""The relative and absolute tolerance of element types for which `TOLERANCE` is too small (2.6 eps of bfloat16)."""

TOLERANCE = 1e-4
"""The relative and absolute tolerance of all other element types."""

ACCURACY_FACTOR = 8
"""The factor for results outside of the tolerance.

Such a result agrees if its distance from the result in float64 is at most this factor times the CPU's distance.
"""

UNINITIALIZED = ("empty", "new_empty")
"""Beginnings of the names of operators that return uninitialized memory."""

MAX_TEXT = 300
"""Maximum number of characters of a difference."""


def compare_with_cpu(group: SampleGroup, sample: SampleCall) -> str | None:
    """Run a sample on the device and on the CPU, and compare the outcomes.

    Args:
        group: the group of the sample.
        sample: the sample.

    Returns:
        A description of the difference; empty if the outcomes agree; None if the sample can't be compared, because the
        CPU can't run a valid sample or does not reject an invalid one. Only shapes and element types are compared if
        the CPU's result depends on the seed, or if the operator returns uninitialized memory.
    """
    expected = _outcome(sample.call, "cpu")
    if isinstance(expected, Exception) != bool(sample.error):
        return None
    actual = _outcome(sample.call, NAME)
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        return _compare_errors(actual, expected, sample.error)[:MAX_TEXT]
    if group.entry.startswith(UNINITIALIZED) or _differences(_outcome(sample.call, "cpu", seed=1), expected, 0.0):
        return "" if _forms_of(actual) == _forms_of(expected) else "shapes or element types differ from the CPU's"
    differences = _differences(actual, expected, TOLERANCES.get(group.dtype, TOLERANCE))
    if differences and sample.exact_call is not None and _is_as_accurate(actual, expected, sample.exact_call):
        return ""
    return differences[:MAX_TEXT]


def _outcome(call: DeviceCall, device: str, seed: int = 0) -> Any:
    """Return the result of a call with its tensors on the CPU, or the exception that the call raises.

    Args:
        call: the call.
        device: the device on which it runs.
        seed: the seed of random numbers.
    """
    default = torch.get_default_dtype()
    try:
        with warnings.catch_warnings(action="ignore"):
            return map_tensors(lambda tensor: tensor.detach().cpu(), call(device, seed))
    except Exception as error:
        return error
    finally:
        torch.set_default_dtype(default)


def _compare_errors(actual: Any, expected: Any, pattern: str) -> str:
    """Return how two outcomes differ if at least one of them is an exception; empty if the exceptions agree.

    Args:
        actual: the outcome on the device.
        expected: the outcome on the CPU.
        pattern: a regular expression that the message of the device must match if that of the CPU does.
    """
    if not isinstance(actual, Exception):
        return f"returns a result; the CPU raises {_describe(expected)}"
    if not isinstance(expected, Exception):
        return f"raises {_describe(actual)}"
    if not (isinstance(actual, type(expected)) or isinstance(expected, type(actual))):
        return f"raises {_describe(actual)}; the CPU raises {_describe(expected)}"
    if re.search(pattern, str(expected)) and not re.search(pattern, str(actual)):
        return f"the message is {_describe(actual)}; on the CPU {_describe(expected)}"
    return ""


def _describe(error: Exception) -> str:
    """Return the type of an exception and the first line of its message."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:120]}"


def _forms_of(value: Any) -> list[Any]:
    """Return the shapes and element types of the tensors in a value."""
    return [(tensor.shape, tensor.dtype) for tensor in tensors_of(value)]


def _differences(actual: Any, expected: Any, tolerance: float) -> str:
    """Return how two results differ; empty if they are equal within the tolerance."""
    try:
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split())
    except Exception as error:  # values that PyTorch does not compare: the result of another type
        return f"the results cannot be compared: {_describe(error)}"
    return ""


def _is_as_accurate(actual: Any, expected: Any, exact_call: DeviceCall) -> bool:
    """Return whether each tensor on the device is about as close to the float64 result as the CPU's tensor.

    Args:
        actual: the result on the device.
        expected: the result on the CPU.
        exact_call: performs the call in double precision.
    """
    exact = _outcome(exact_call, "cpu")
    if isinstance(exact, Exception) or _forms_of(actual) != _forms_of(expected):
        return False
    triples = zip(*(list(tensors_of(value)) for value in (actual, expected, exact)), strict=False)
    return all(
        _distance(device_result, exact_result) <= ACCURACY_FACTOR * _distance(cpu_result, exact_result)
        for device_result, cpu_result, exact_result in triples
    )


def _distance(tensor: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the largest absolute difference between the elements of a tensor and the exact elements.

    Returns:
        The difference; 0 for tensors without elements. It is infinite if the shapes differ, if the tensor is not
        strided, or if an element is infinite or NaN and differs from the exact element.
    """
    if tensor.shape != exact.shape or tensor.layout is not torch.strided or not tensor.numel():
        return 0.0 if tensor.shape == exact.shape and not tensor.numel() else float("inf")
    kind = torch.complex128 if tensor.is_complex() else torch.float64
    wide_tensor, wide_exact = tensor.to(kind), exact.to(kind)
    is_equal = (wide_tensor == wide_exact) | (wide_tensor.isnan() & wide_exact.isnan())
    distances = torch.where(is_equal, 0.0, (wide_tensor - wide_exact).abs())
    return float(distances.nan_to_num(nan=float("inf")).max())
