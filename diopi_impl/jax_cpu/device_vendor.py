"""The vendors that compute with JAX: `jax_cpu`, and `jax:PLATFORM` for other platforms than the CPU."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self, TypeVar

import jax

from diopi_impl.functional import Adapter, apply_directly
from diopi_impl.host_runtime import HostRuntime
from diopi_impl.jax_cpu.jit import adapt_by_compiling, store_programs
from diopi_impl.jax_cpu.placement import use_device
from diopi_impl.jax_cpu.positions import PreparedOnHost
from diopi_impl.jax_cpu.whole_programs import compile_program, find_compiled
from diopi_impl.program import FunctionProgram, RunProgram
from diopi_impl.vendor import Vendor
from diopi_proto.interface import lookup
from diopi_proto.types import Error
from lib_rt import Context

F = TypeVar("F", bound=Callable[..., Any])
"""The registered implementation."""


class JaxVendor(Vendor):
    """A vendor that computes with JAX, on JAX's first CPU device.

    `on_device` returns a vendor for another device. All tensors of the caller are in host memory, because programs
    can't change JAX's arrays on a device. The vendor copies arguments to the device, and results back to the caller's
    tensors.

    Args:
        name: the vendor's name, as reports show it.
        version: the vendor's version, as reports show it.
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

        def remember_and_register(function: F) -> F:
            """Register the function, and remember it if the host computes it with NumPy."""
            if adapt is apply_directly:
                self._host_implementations.add(function)
            return register(function)

        return remember_and_register

    def implements_raw(self, name: str) -> Callable[[F], F]:
        """Register a raw implementation, which works on the host; see `Vendor.implements_raw`."""
        register = super().implements_raw(name)

        def remember_and_register(function: F) -> F:
            """Register the function, and remember that the host computes it."""
            self._host_implementations.add(function)
            return register(function)

        return remember_and_register

    def on_device(self, name: str, device: jax.Device) -> Self:
        """Return a vendor with the same implementations that computes on a device.

        The returned vendor lacks the functions that this vendor computes on the host.

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

    def can_compile(self, name: str) -> bool:
        """Return whether programs may call a function; see `BaseVendor.can_compile`."""
        adapted = self._adapted.get(name)
        if self._device is not None or find_compiled(adapted) is None:
            return False
        has_arrays = any(parameter.is_tensor_array for parameter in lookup(name).arguments)
        return not (isinstance(adapted, PreparedOnHost) and has_arrays)  # masks become positions on the host

    def reads_arguments(self, name: str) -> bool:
        """Return whether a function's arguments are checked before the call; see `BaseVendor.reads_arguments`."""
        return isinstance(self._adapted.get(name), PreparedOnHost)

    def compile_program(self, program: FunctionProgram) -> RunProgram:
        """Compile a sequence of calls as one program of XLA; see `BaseVendor.compile_program`."""
        return compile_program(program, self._adapted)

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Call the standard function `name` and return its error code; see `BaseVendor.call`."""
        if self._device is None:
            return super().call(name, context, *arguments)
        with use_device(self._device):
            return super().call(name, context, *arguments)
