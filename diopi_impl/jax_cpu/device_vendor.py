"""JAX on a device as a vendor: `jax_cpu`, and `jax:PLATFORM` for all other platforms."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self, TypeVar

import jax

from diopi_impl.functional import Adapter, apply_directly
from diopi_impl.host_runtime import HostRuntime
from diopi_impl.jax_cpu.jit import adapt_by_compiling, store_programs
from diopi_impl.jax_cpu.placement import use_device
from diopi_impl.vendor import Vendor
from diopi_proto.types import Error
from lib_rt import Context

F = TypeVar("F", bound=Callable[..., Any])


class JaxVendor(Vendor):
    """JAX on the first device of the CPU. `on_device` returns the vendor of another device.

    The memory is always that of the host, because JAX's arrays on a device can't be changed. Arguments are copied to
    the device, and results from the device to the caller's tensors.

    Args:
        name, version: the vendor's name and version, as reports show them.
    """

    def __init__(self, name: str, version: str) -> None:
        super().__init__(
            name,
            version,
            HostRuntime().functions(),
            host_addressable=True,
            adapt=adapt_by_compiling,
            calls_torch=False,
            store_programs=store_programs,
        )
        self._device: jax.Device | None = None
        self._host_implementations: set[Callable[..., Any]] = set()

    def implements(self, *names: str, adapt: Adapter | None = None) -> Callable[[F], F]:
        """Register a functional implementation; see `Vendor.implements`."""
        register = super().implements(*names, adapt=adapt)

        def note_and_register(function: F) -> F:
            """Note whether NumPy computes the function, and register it."""
            if adapt is apply_directly:
                self._host_implementations.add(function)
            return register(function)

        return note_and_register

    def implements_raw(self, name: str) -> Callable[[F], F]:
        """Register a raw implementation, which works on the host; see `Vendor.implements_raw`."""
        register = super().implements_raw(name)

        def note_and_register(function: F) -> F:
            """Note that the host computes the function, and register it."""
            self._host_implementations.add(function)
            return register(function)

        return note_and_register

    def on_device(self, name: str, device: jax.Device) -> Self:
        """Return a vendor with the same implementations that computes on a device.

        The vendor does not implement the functions that NumPy computes on the host.

        Args:
            name: the name of the vendor.
            device: the device.

        Returns:
            The vendor.
        """
        vendor = copy.copy(self)
        vendor.name, vendor._device, vendor._store_programs = name, device, None
        compiled = [n for n, function in self._functions.items() if function not in self._host_implementations]
        vendor._implementations = {n: self._implementations[n] for n in compiled}
        vendor._functions = {n: self._functions[n] for n in compiled}
        return vendor

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Call the standard function `name` and return its error code; see `BaseVendor.call`."""
        if self._device is None:
            return super().call(name, context, *arguments)
        with use_device(self._device):
            return super().call(name, context, *arguments)
