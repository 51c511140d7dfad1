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
from diopi_torch.operators import OperatorKernel, kernels
from diopi_torch.registration import KEY, default_operators, finish_kernel, forced_operators
from diopi_torch.settings import matching_operators

_active: set[int] = set()
"""The numbers of the observations that have not ended."""


def is_observing() -> bool:
    """Return whether calls of any operator are observed."""
    return bool(_active)


class Observer(Protocol):
    """The interface of objects that observe calls of operators which functions of the vendor implement."""

    def observe(self, operator: torch._ops.OpOverload, named: Mapping[str, Any], serve: Callable[[], Any]) -> Any:
        """Run an operator with these arguments by calling `serve`, and return the result of `serve`.

        UnsupportedCallError must propagate, because it makes the call fall back to the CPU.
        """


@dataclass(frozen=True, eq=False)
class ObservedKernel(OperatorKernel):
    """The kernel of an overload whose calls are observed.

    Attributes:
        plain: the kernel that runs the operator.
        observer: receives each call before it runs.
    """

    plain: OperatorKernel
    observer: Observer

    def run_with_functions(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator through the observer, and return its results."""
        named = self.arguments_by_name(args, kwargs)
        return self.observer.observe(self.operator, named, lambda: self.plain.run_with_functions(args, kwargs))


def find_observable_operators(source: str, choice: str) -> frozenset[str]:
    """Return the operators that the expressions in `choice` match and that functions implement.

    Operators that the user forces to the CPU, or that lose their kernels at the user's request, are not among them.

    Args:
        source: Name of the setting that has the expressions, for error messages.
        choice: Regular expressions separated by commas.

    Returns:
        The names of the operators.

    Raises:
        SettingError: A text is not a regular expression, or does not match an operator with a function.
    """
    return matching_operators(source, choice, kernels().keys()) - forced_operators() - default_operators()


def observe(operators: frozenset[str], observer: Observer) -> Callable[[], None]:
    """Let an observer observe the calls of these operators, and return a function that ends the observation."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Warning only once for all operators", UserWarning
        )  # the replacement is intended
        for name in sorted(operators):
            plain = kernels()[name]
            observed = ObservedKernel(plain.operator, plain.row, plain, observer)
            kernel = finish_kernel(accept_cpu_indices(plain.operator, observed))
            library.impl(name, kernel, KEY, allow_override=True)
    number = id(library)
    _active.add(number)

    def end() -> None:
        """Install the plain kernels again."""
        library._destroy()
        _active.discard(number)

    return end
