"""The device of JAX on which the current thread's calls compute, and which element types a device supports."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from diopi_impl.errors import UnsupportedDtypeError


@final
class _Placement(threading.local):
    """The device of a thread; None for the first device of the CPU, whose results may share memory with the host."""

    device: jax.Device | None = None


_placement = _Placement()
"""The device of the current thread."""


@contextmanager
def use_device(device: jax.Device) -> Iterator[None]:
    """Return a context manager in which the calls of this thread compute on a device."""
    previous, _placement.device = _placement.device, device
    try:
        yield
    finally:
        _placement.device = previous


def current_device() -> jax.Device | None:
    """Return the device of this thread's calls; None for the first device of the CPU."""
    return _placement.device


def check_dtypes(device: jax.Device, dtypes: Iterable[np.dtype[Any]]) -> None:
    """Raise UnsupportedDtypeError if there is an element type with which the device can't compute."""
    for dtype in dtypes:
        if refusal := _ask_device(device, dtype):
            raise UnsupportedDtypeError(f"{device}: {refusal}")


@cache
def _ask_device(device: jax.Device, dtype: np.dtype[Any]) -> str:
    """Return the device's reason to reject an element type; empty if the device accepts the type."""
    try:
        with jax.enable_x64(True), jax.default_device(device):
            jax.block_until_ready(jax.jit(lambda zero: jnp.concatenate([zero, zero]))(np.zeros(1, dtype)))
    except Exception as error:  # XLA, its plugins and JAX raise many types of exceptions
        return first_line(error)
    return ""


def first_line(error: Exception) -> str:
    """Return the first line of the text of an exception; XLA's texts contain whole programs."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
