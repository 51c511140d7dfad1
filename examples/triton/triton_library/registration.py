"""Replace operators of PyTorch on a device by functions that launch kernels, through PyTorch's dispatcher."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch
import triton.language as tl

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Whether Triton's interpreter runs the kernels, on the CPU."""

DEVICE_TYPE = "cpu" if INTERPRETED else "cuda"
"""The type of the device whose operators are replaced. Adapt it to your device."""

COMPUTE_TYPES = {torch.float16: tl.float32, torch.float32: tl.float32, torch.float64: tl.float64}
"""The type in which kernels compute, by the element type of the tensors. Kernels do not support other element types."""

if not INTERPRETED:  # the interpreter truncates numbers to bfloat16 instead of rounding them
    COMPUTE_TYPES[torch.bfloat16] = tl.float32

library = torch.library.Library("aten", "IMPL")
"""The registrations of this library; PyTorch uses its own kernels again when this object is deleted."""


def register(operators: Mapping[str, Callable[..., Any]]) -> None:
    """Replace operators of PyTorch on the device.

    Args:
        operators: The functions that launch kernels, by the name of the ATen operator. If a function returns
            NotImplemented, PyTorch's own kernel computes the result.
    """
    key = torch._C._dispatch_key_for_device(DEVICE_TYPE)
    for name, launch in operators.items():
        original = torch.library.get_kernel(f"aten::{name}", key)
        library.impl(name, _with_fallback(launch, original), key, with_keyset=True, allow_override=True)


def _with_fallback(launch: Callable[..., Any], original: Any) -> Callable[..., Any]:
    """Return a function that calls `launch`, and PyTorch's own kernel `original` if `launch` returns NotImplemented."""

    def call(keys: Any, *arguments: Any, **keywords: Any) -> Any:
        result = launch(*arguments, **keywords)
        return original.call_boxed(keys, *arguments, **keywords) if result is NotImplemented else result

    return call
