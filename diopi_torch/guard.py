"""Errors in gradients: hooks that raise, on the thread on which PyTorch computes the gradients of a device.

When such a hook raises, PyTorch unwinds its stack with Python's error still pending, and asks the guard of the device
for its type meanwhile. Python makes a SystemError of a call that returns with an error pending, and the process would
end. So the guard takes the error away, and what began to compute the gradients raises it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import torch

_pending: list[BaseException] = []
_lock = threading.Lock()

_call = partial(int)
"""Any call that Python checks: of a function that it has specialised it might not."""


class DeviceGuard(torch._C._acc.DeviceGuard):
    """What PyTorch asks for the type of the device."""

    def type_(self) -> Any:
        """`PrivateUse1`. An error that is pending in this thread is kept for later."""
        try:
            _call()
        except SystemError as error:
            with _lock:
                _pending.append(error.__cause__ or error)
        return torch._C._autograd.DeviceType.PrivateUse1


def _raising(run_backward: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run_backward)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return run_backward(*args, **kwargs)
        except SystemError:
            with _lock:
                error = _pending.pop() if _pending else None
            if error is None:
                raise
            raise error from None

    return run


def install() -> None:
    """Have the error raised where gradients are asked for."""
    for module in (torch.autograd, torch.autograd.graph):
        module._engine_run_backward = _raising(module._engine_run_backward)  # type: ignore[attr-defined]  # no public name
