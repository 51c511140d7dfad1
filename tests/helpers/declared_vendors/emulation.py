"""The base of vendors with a known arithmetic: torch_cpu, some of whose ATen operators compute in another way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from diopi_impl import BaseVendor, find_vendor
from diopi_impl.numerics import Numerics
from diopi_proto.types import Error
from lib_rt import Context, Device

Replacement = Callable[..., Any]
"""Computes an ATen operator in another way; receives the operator and then its arguments."""

Replacements = Mapping[str, Replacement]
"""Replacements by the name of the ATen operator without its overload. `*` stands for all operators without an entry."""


class EmulationMode(TorchDispatchMode):
    """Computes ATen operators with replacements, below autograd: gradients are computed with them as well.

    Args:
        replacements: the replacements.
        decompositions: operators that are first decomposed into operators that have replacements, by name.
    """

    def __init__(self, replacements: Replacements, decompositions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__()
        self._replacements = replacements
        self._decompositions = decompositions

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        name = func.overloadpacket.__name__
        if name in self._decompositions:
            with self:
                return self._decompositions[name](*args, **keywords)
        functional = name.removesuffix("_")
        replacement = self._replacements.get(functional, self._replacements.get("*"))
        if replacement is None:
            return func(*args, **keywords)
        if functional == name or functional not in self._replacements:
            return replacement(func, *args, **keywords)
        target, *operands = args
        return target.copy_(replacement(getattr(torch.ops.aten, functional), target, *operands, **keywords))


class EmulatedVendor(BaseVendor):
    """torch_cpu with another arithmetic.

    Attributes:
        emulated: the declaration that describes the arithmetic. The vendor does not declare it.

    Args:
        name: the name of the vendor.
        emulated: the declaration that describes the arithmetic.
        replacements: the replacements of ATen operators.
        decompositions: see `EmulationMode`.
    """

    def __init__(
        self,
        name: str,
        emulated: Numerics,
        replacements: Replacements,
        decompositions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self._torch_cpu = find_vendor("torch_cpu")
        super().__init__(name, self._torch_cpu.version, waivers=self._torch_cpu.waivers)
        self.emulated = emulated
        self._replacements = replacements
        self._decompositions = decompositions or {}

    @property
    def source_modules(self) -> Mapping[str, str]:
        """The modules of torch_cpu."""
        return self._torch_cpu.source_modules

    def has(self, name: str) -> bool:
        """Return whether torch_cpu implements a function."""
        return self._torch_cpu.has(name)

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Call a function of torch_cpu with the replacements."""
        with sdpa_kernel([SDPBackend.MATH]), EmulationMode(self._replacements, self._decompositions):
            return self._torch_cpu.call(name, context, *arguments)

    def last_error(self) -> str:
        """Return the message of the latest failed call."""
        return self._torch_cpu.last_error()

    def open_device(self) -> Device:
        """Open a device of torch_cpu."""
        return self._torch_cpu.open_device()
