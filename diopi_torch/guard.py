"""Support for hooks that raise errors on the thread in which PyTorch computes the gradients of a device.

If a hook raises, PyTorch unwinds its stack with the Python error still pending and asks the guard of the device for its
type. Python raises SystemError if a call returns with a pending error, and the process would end. Therefore the guard
takes the pending error, and the function that started the computation of gradients raises it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import torch

from diopi_torch.backend import has_several_devices

_pending: list[BaseException] = []
"""Errors that were raised where PyTorch can't propagate them, and that are raised as soon as possible."""

_lock = threading.Lock()
"""Protects `_pending`."""

_call = partial(int)
"""A call that Python always checks for pending errors; it may skip the check for functions that it has specialized."""


class DeviceGuard(torch._C._acc.DeviceGuard):
    """The object from which PyTorch reads the type of the device."""

    def type_(self) -> Any:
        """Return `PrivateUse1`; if an error is pending in this thread, clear and store it."""
        try:
            _call()
        except SystemError as error:
            with _lock:
                _pending.append(error.__cause__ or error)
        return torch._C._autograd.DeviceType.PrivateUse1


def _raise_pending_errors(run_backward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper of `run_backward` that raises the error which the guard has stored."""

    @wraps(run_backward)
    def run(*args: Any, **kwargs: Any) -> Any:
        """Compute gradients; if Python raises SystemError, raise the stored error instead."""
        # PyTorch has one thread for gradients, that of device 0; with several devices, this thread computes them
        is_threaded = torch._C._is_multithreading_enabled() and not has_several_devices()
        try:
            with torch.autograd.set_multithreading_enabled(is_threaded):
                return run_backward(*args, **kwargs)
        except SystemError:
            with _lock:
                error = _pending.pop() if _pending else None
            if error is None:
                raise
            raise error from None

    return run


def install() -> None:
    """Let the functions that compute gradients raise stored errors."""
    for module in (torch.autograd, torch.autograd.graph):
        module._engine_run_backward = _raise_pending_errors(module._engine_run_backward)  # type: ignore[attr-defined]  # no public name
