"""Compare the results of PyTorch programs on the device `diopi` with those on the CPU.

A program is a function that receives the name of a device and returns a tensor or another value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch


def outcome(program: Callable[[str], Any], device: str) -> Any:
    """Run a program on a device with a fixed seed, and return its result or the exception that it raises.

    A result that is a tensor is copied to the CPU.
    """
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings(action="ignore"):
            returned = program(device)
    except Exception as error:
        return error
    return returned.detach().cpu() if isinstance(returned, torch.Tensor) else returned


def assert_agrees_with_cpu(program: Callable[[str], Any]) -> None:
    """Assert that a program returns the same on the device as on the CPU, or raises an exception of the same type."""
    expected, actual = outcome(program, "cpu"), outcome(program, "diopi")
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        assert type(actual) is type(expected), f"the device: {actual!r}; the CPU: {expected!r}"
    else:
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4, equal_nan=True)


def ascending(*shape: int, device: str) -> Any:
    """Return a float32 tensor of this shape on a device, with the numbers 1, 2, 3 and so on."""
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).view(shape).to(device)
