"""Observe calls of operators: replace their kernels until the observation ends.

Without an observer, the plain kernels are installed, so there is no overhead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from diopi_torch.indices import accept_cpu_indices
from diopi_torch.operators import Kernel, kernels
from diopi_torch.registration import KEY, forced_operators
from diopi_torch.settings import matching_operators


class Observer(Protocol):
    """An observer of calls of operators that functions implement."""

    def observe(self, operator: torch._ops.OpOverload, named: Mapping[str, Any], serve: Callable[[], Any]) -> Any:
        """Run an operator with these arguments by calling `serve`, and return its result.

        NotServedError must propagate, because it makes the call fall back to the CPU.
        """


@dataclass(frozen=True, eq=False)
class ObservedKernel(Kernel):
    """The kernel of an overload whose calls are observed."""

    plain: Kernel
    observer: Observer

    def serve(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator through the observer."""
        named = self.named(args, kwargs)
        return self.observer.observe(self.operator, named, lambda: self.plain.serve(args, kwargs))


def find_observable_operators(source: str, choice: str) -> frozenset[str]:
    """Return the operators with functions that match `choice`, except those that are forced to the CPU."""
    return matching_operators(source, choice, kernels().keys()) - forced_operators()


def observe(operators: frozenset[str], observer: Observer) -> Callable[[], None]:
    """Let an observer observe the calls of these operators, and return a function that ends the observation."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning only once for all operators", UserWarning)  # this is what is meant
        for name in sorted(operators):
            plain = kernels()[name]
            observed = ObservedKernel(plain.operator, plain.row, plain, observer)
            library.impl(name, accept_cpu_indices(plain.operator, observed), KEY, allow_override=True)
    return library._destroy
