"""Support for `torch.Generator(device="diopi")`.

PyTorch creates generators of a device in C++. A device without compiled code has none, so the class `torch.Generator`
is replaced here. A generator of the device is a CPU generator that names the device: an operator draws the seed for its
call from it (`diopi_torch/functions.py`).
"""

from __future__ import annotations

from typing import Any

import torch

from diopi_torch.settings import NAME

ORIGINAL = torch.Generator
"""PyTorch's class of generators, which this module replaces by a class that also knows the device."""


class DeviceGenerator(ORIGINAL):
    """A generator of the device; its state is that of a CPU generator."""

    @property
    def device(self) -> torch.device:  # type: ignore[override]  # PyTorch's attribute is read-only, too
        """The device for which the generator provides seeds."""
        return torch.device(NAME, 0)

    def clone_state(self) -> DeviceGenerator:
        """Return a new generator with the same state."""
        return _restore(self.get_state())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.get_state(),)


def _restore(state: torch.Tensor) -> DeviceGenerator:
    """Return a new generator of the device with this state."""
    generator = DeviceGenerator()
    generator.set_state(state)
    return generator


def _is_this_device(device: Any) -> bool:
    """Return whether a device, in any notation of PyTorch, is this device."""
    return torch.device(device).type == NAME


class GeneratorType(type(ORIGINAL)):  # type: ignore[misc]  # the class of PyTorch has a metaclass without a name
    """The type of the replaced class: creates generators of each device, and recognizes all of them as instances."""

    def __call__(cls, device: Any = "cpu") -> torch.Generator:
        """Return a new generator for a device."""
        return DeviceGenerator() if _is_this_device(device) else ORIGINAL(device)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, ORIGINAL)


class TorchGenerator(ORIGINAL, metaclass=GeneratorType):
    """`torch.Generator`, which also creates generators of the device."""


def install() -> None:
    """Replace `torch.Generator`."""
    torch.Generator = TorchGenerator  # type: ignore[misc]  # the replacement is intended
