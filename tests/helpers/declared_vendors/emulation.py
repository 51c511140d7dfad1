"""The base of vendors with a known arithmetic: torch_cpu, some of whose ATen operators compute in another way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import lib_rt
from diopi_impl import BaseVendor, find_vendor
from diopi_impl.numerics import Numerics
from diopi_proto.types import Dtype, Error
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
        observe: Receives whether the result of a replacement differs from that of the operator, after each call of a
            replacement; None to compute no result twice.
    """

    def __init__(
        self,
        replacements: Replacements,
        decompositions: Mapping[str, Callable[..., Any]],
        observe: Callable[[bool], None] | None = None,
    ) -> None:
        super().__init__()
        self._replacements = replacements
        self._decompositions = decompositions
        self._observe = observe

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
            return self._compute(replacement, func, args, keywords)
        return args[0].copy_(self._compute(replacement, getattr(torch.ops.aten, functional), args, keywords))

    def _compute(self, replacement: Replacement, func: Any, args: Any, keywords: Mapping[str, Any]) -> Any:
        """Return the result of a replacement, and report whether it differs from that of the operator."""
        result = replacement(func, *args, **keywords)
        if self._observe is not None:
            pairs = zip(tree_leaves(result), tree_leaves(func(*args, **keywords)), strict=True)
            self._observe(not all(_are_equal(*pair) for pair in pairs))
        return result


def _are_equal(first: Any, second: Any) -> bool:
    """Return whether two results are equal; NaNs are equal to each other."""
    if not isinstance(first, Tensor):
        return bool(first == second)
    return first.shape == second.shape and torch.allclose(first, second, rtol=0, atol=0, equal_nan=True)


class EmulatedVendor(BaseVendor):
    """torch_cpu with another arithmetic.

    Attributes:
        emulated: the declaration that describes the arithmetic. The vendor does not declare it.
        observe: see `EmulationMode`.
        diagnoses: the IDs of the diagnoses that name the arithmetic.

    Args:
        name: the name of the vendor.
        emulated: the declaration that describes the arithmetic.
        replacements: the replacements of ATen operators.
        decompositions: see `EmulationMode`.
        unchanged: the element types of tensors with which a call is computed as by torch_cpu.
        diagnoses: the IDs of the diagnoses that name the arithmetic.
    """

    def __init__(
        self,
        name: str,
        emulated: Numerics,
        replacements: Replacements,
        decompositions: Mapping[str, Callable[..., Any]] | None = None,
        unchanged: Collection[Dtype] = (),
        diagnoses: Collection[str] = (),
    ) -> None:
        self._torch_cpu = find_vendor("torch_cpu")
        super().__init__(name, self._torch_cpu.version, waivers=self._torch_cpu.waivers)
        self.emulated = emulated
        self.observe: Callable[[bool], None] | None = None
        self._replacements = replacements
        self._decompositions = decompositions or {}
        self._unchanged = unchanged
        self.diagnoses = frozenset(diagnoses)

    @property
    def source_modules(self) -> Mapping[str, str]:
        """The modules of torch_cpu."""
        return self._torch_cpu.source_modules

    def replaces(self, operators: Iterable[str]) -> bool:
        """Return whether the vendor computes one of these ATen operators in another way, or decomposes it."""
        functional = {operator.removesuffix("_") for operator in operators}
        return bool({*self._replacements, *self._decompositions} & {*operators, *functional})

    def has(self, name: str) -> bool:
        """Return whether torch_cpu implements a function."""
        return self._torch_cpu.has(name)

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Return the error code of a function of torch_cpu, called with the replacements."""
        if any(isinstance(value, lib_rt.Tensor) and value.dtype in self._unchanged for value in arguments):
            with sdpa_kernel([SDPBackend.MATH]):
                return self._torch_cpu.call(name, context, *arguments)
        with sdpa_kernel([SDPBackend.MATH]), EmulationMode(self._replacements, self._decompositions, self.observe):
            return self._torch_cpu.call(name, context, *arguments)

    def last_error(self) -> str:
        """Return the message of the latest failed call."""
        return self._torch_cpu.last_error()

    def open_device(self) -> Device:
        """Return a device of torch_cpu."""
        return self._torch_cpu.open_device()
