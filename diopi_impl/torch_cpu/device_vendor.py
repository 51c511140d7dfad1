"""PyTorch on a device as a vendor: `torch_cpu`, and `torch:DEVICE` for all other devices."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

import torch

from diopi_impl.base import OperatorOverride, OperatorUse, Waiver
from diopi_impl.host_runtime import HostRuntime
from diopi_impl.torch_cpu.access import TorchTensorAccess
from diopi_impl.torch_cpu.adapter import adapt_to_tensors
from diopi_impl.torch_cpu.device_runtime import TorchDevice, TorchRuntime
from diopi_impl.torch_cpu.overrides import OperatorObserver
from diopi_impl.vendor import Vendor
from diopi_proto.types import Error
from lib_rt import Context, Device

_CPU = torch.device("cpu")
"""The device of `torch_cpu`; as a context manager, PyTorch creates tensors on it."""


class TorchVendor(Vendor):
    """PyTorch with one thread per process, because the suite already runs one worker process per core.

    The vendor computes on the CPU, with the memory of the host.

    Args:
        name, version: the vendor's name and version, as reports show them.
        waivers: the known failures.
    """

    def __init__(self, name: str, version: str, *, waivers: Sequence[Waiver] = ()) -> None:
        super().__init__(
            name,
            version,
            HostRuntime().functions(),
            host_addressable=True,
            adapt=adapt_to_tensors,
            access=TorchTensorAccess(),
            waivers=waivers,
        )
        self._torch_runtime: TorchRuntime | None = None
        self._observer: OperatorObserver | None = None

    def on_device(self, name: str, device: torch.device) -> Self:
        """Return a vendor with the same implementations that computes on a device, in memory of this device.

        Args:
            name: the name of the vendor.
            device: the device; even the memory of the CPU is then not addressed by the host.

        Returns:
            The vendor. The waivers of this vendor do not apply to it.
        """
        vendor = copy.copy(self)
        vendor.name, vendor.waivers, vendor.host_addressable = name, (), False
        vendor._torch_runtime = TorchRuntime(device)
        vendor.runtime = vendor._torch_runtime.functions()
        return vendor

    def with_library(self, name: str, overrides: Sequence[OperatorOverride]) -> Self:
        """Return a vendor that computes with the operators of a library, which has been set up, and observes them.

        Args:
            name: the name of the vendor.
            overrides: the operators that the library overrides on the device.

        Returns:
            The vendor. The waivers of this vendor do not apply to it.
        """
        vendor = copy.copy(self)
        vendor.name, vendor.waivers, vendor._observer = name, (), OperatorObserver(overrides)
        return vendor

    @property
    def overrides(self) -> Sequence[OperatorOverride]:
        """The operators of PyTorch that a library overrides on the device."""
        return () if self._observer is None else self._observer.overrides

    def take_operator_uses(self) -> Sequence[OperatorUse]:
        """Return the operators of PyTorch that calls ran; see `BaseVendor.take_operator_uses`."""
        return () if self._observer is None else self._observer.take_uses()

    def open_device(self) -> Device:
        """Open and return a device, and limit PyTorch to one thread."""
        torch.set_num_threads(1)
        return super().open_device() if self._torch_runtime is None else TorchDevice(self._torch_runtime)

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Call the standard function `name` and return its error code; see `BaseVendor.call`."""
        if self._observer is not None:
            with self._observer.observe(name, arguments):
                return self._call_on_device(name, context, *arguments)
        return self._call_on_device(name, context, *arguments)

    def _call_on_device(self, name: str, context: Context, *arguments: Any) -> Error:
        """Call a function while PyTorch creates tensors on the device of the context."""
        if isinstance(context.device, TorchDevice):
            with context.device.runtime.use(context):
                return super().call(name, context, *arguments)
        if torch._C._len_torch_function_stack():  # the caller may have made another device the default
            with _CPU:
                return super().call(name, context, *arguments)
        return super().call(name, context, *arguments)
