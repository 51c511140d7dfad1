"""List the ATen operators that a vendor supports, that run on the CPU, and that do not run at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from diopi_impl.base import BaseVendor
from diopi_proto.aten.mapping import RULE_FUNCTIONS
from diopi_proto.interface import prototypes
from diopi_torch import sparse
from diopi_torch.kernels import KERNELS
from diopi_torch.operators import EXCLUDED_OPERATORS, decompositions, has_kernel, is_composed, kernels, overload
from diopi_torch.registration import operator_names

SERVED, FALLBACK, UNSUPPORTED = "served", "fallback", "unsupported"
"""The values of `OperatorSupport.status`."""

_COMPOSED = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
"""Dispatch keys of kernels that call other operators below autograd."""


@dataclass(frozen=True)
class OperatorSupport:
    """The kind of support for an operator whose calls reach the device.

    Attributes:
        operator: the name of the operator.
        function: the functions of the standard that implement it, separated by commas; "-" if the operator only creates
            or inspects memory, and empty if no function implements it.
        status: `SERVED` by the vendor, `FALLBACK` to the CPU, or `UNSUPPORTED`.
    """

    operator: str
    function: str
    status: str


def list_operators(vendor: BaseVendor) -> Iterator[OperatorSupport]:
    """Yield the support for every operator that PyTorch does not compose of others, in alphabetical order."""
    implementations = _implementing_functions()
    for name in sorted(operator_names()):
        if name in KERNELS and name not in EXCLUDED_OPERATORS:
            yield OperatorSupport(name, "-", SERVED)
        elif name in implementations:
            functions = implementations[name]
            is_served = any(vendor.has(form) for function in functions for form in _related_forms(function))
            yield OperatorSupport(
                name, ",".join(functions), SERVED if is_served else _status_without_function(overload(name))
            )
        elif name not in decompositions() and not _is_composite(overload(name)):
            only_inspects = any(name in names for names in sparse.STRUCTURE_OPERATORS.values())
            status = SERVED if only_inspects else _status_without_function(overload(name))
            yield OperatorSupport(name, "-" if only_inspects else "", status)


def _implementing_functions() -> Mapping[str, tuple[str, ...]]:
    """Return the functions that implement each operator."""
    return {name: RULE_FUNCTIONS.get(kernel.row.function, (kernel.row.function,)) for name, kernel in kernels().items()}


def _related_forms(function: str) -> list[str]:
    """Return the names of all forms of a function, such as the in-place form and the form with a scalar."""
    return [prototype.name for prototype in prototypes().values() if prototype.base == prototypes()[function].base]


def _is_composite(operator: torch._ops.OpOverload) -> bool:
    """Return whether PyTorch composes an operator of others, above or below autograd."""
    return is_composed(operator) or any(has_kernel(operator, key) for key in _COMPOSED)


def _status_without_function(operator: torch._ops.OpOverload) -> str:
    """Return the status of an operator that no function implements."""
    on_cpu = any(has_kernel(operator, key) for key in ("CPU", *sparse.CPU_DISPATCH_KEYS.values()))
    return FALLBACK if on_cpu or _is_composite(operator) else UNSUPPORTED
