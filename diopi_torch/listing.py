"""Which operators of ATen a vendor serves, which run on the CPU, and which on neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from diopi_impl.base import BaseVendor
from diopi_proto.aten.mapping import RULE_FUNCTIONS
from diopi_proto.interface import prototypes
from diopi_torch import sparse
from diopi_torch.kernels import KERNELS
from diopi_torch.operators import LEFT_OUT, decompositions, has_kernel, is_composed, kernels, overload
from diopi_torch.registration import operator_names

SERVED, FALLBACK, UNSUPPORTED = "served", "fallback", "unsupported"

_COMPOSED = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
"""Kernels that are made of other operators, below autograd."""


@dataclass(frozen=True)
class Entry:
    """An operator of which the device sees calls.

    Attributes:
        operator: its name.
        function: of the standard that serves it, several with commas between them; "-" if it needs none, since it makes
            memory or looks at it, and empty if none serves it.
        status: `SERVED` by the vendor, a `FALLBACK` to the CPU, or `UNSUPPORTED` by either.
    """

    operator: str
    function: str
    status: str


def entries(vendor: BaseVendor) -> Iterator[Entry]:
    """Every operator that PyTorch does not compose of others, in alphabetical order."""
    served = _functions()
    for name in sorted(operator_names()):
        if name in KERNELS and name not in LEFT_OUT:
            yield Entry(name, "-", SERVED)
        elif name in served:
            functions = served[name]
            has = any(vendor.has(form) for function in functions for form in _forms(function))
            yield Entry(name, ",".join(functions), SERVED if has else _otherwise(overload(name)))
        elif name not in decompositions() and not _is_made_of_others(overload(name)):
            looks = any(name in names for names in sparse.LOOKS.values())
            yield Entry(name, "-", SERVED) if looks else Entry(name, "", _otherwise(overload(name)))


def _functions() -> Mapping[str, tuple[str, ...]]:
    """The functions that serve each operator."""
    return {name: RULE_FUNCTIONS.get(kernel.row.function, (kernel.row.function,)) for name, kernel in kernels().items()}


def _forms(function: str) -> list[str]:
    return [prototype.name for prototype in prototypes().values() if prototype.base == prototypes()[function].base]


def _is_made_of_others(operator: torch._ops.OpOverload) -> bool:
    return is_composed(operator) or any(has_kernel(operator, key) for key in _COMPOSED)


def _otherwise(operator: torch._ops.OpOverload) -> str:
    """What becomes of an operator that no function serves."""
    on_cpu = any(has_kernel(operator, key) for key in ("CPU", *sparse.ON_CPU.values()))
    return FALLBACK if on_cpu or _is_made_of_others(operator) else UNSUPPORTED
