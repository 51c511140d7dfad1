"""Looking on at operators as they are called: kernels in the place of others, until that is ended.

While nobody looks on, the kernels are the plain ones: it costs nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from diopi_torch.indices import with_indices_here
from diopi_torch.operators import Kernel, kernels
from diopi_torch.registration import KEY, forced_operators
from diopi_torch.settings import matching_operators


class Observer(Protocol):
    """Looks on at calls of operators that functions serve."""

    def observe(self, operator: torch._ops.OpOverload, named: Mapping[str, Any], serve: Callable[[], Any]) -> Any:
        """Have `serve` do what an operator does with these arguments, and return what it gives.

        Lets NotServedError through, with which the call goes to the CPU.
        """


@dataclass(frozen=True, eq=False)
class ObservedKernel(Kernel):
    """The kernel of an overload at whose calls somebody looks on, in the place of the plain one."""

    plain: Kernel
    observer: Observer

    def served(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        named = self.named(args, kwargs)
        return self.observer.observe(self.operator, named, lambda: self.plain.served(args, kwargs))


def observable(source: str, choice: str) -> frozenset[str]:
    """The operators in the table that a choice names, as `matching_operators` has it, less those forced to the CPU."""
    return matching_operators(source, choice, kernels().keys()) - forced_operators()


def observe(operators: frozenset[str], observer: Observer) -> Callable[[], None]:
    """Let an observer look on at the calls of these operators. Returns what ends that."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning only once for all operators", UserWarning)  # this is what is meant
        for name in sorted(operators):
            plain = kernels()[name]
            observed = ObservedKernel(plain.operator, plain.row, plain, observer)
            library.impl(name, with_indices_here(plain.operator, observed), KEY, allow_override=True)
    return library._destroy
