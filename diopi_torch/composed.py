"""Kernels of operators that the device composes of other operators: they raise the errors of the CPU.

PyTorch's decompositions raise other errors than the CPU. If a decomposition fails, or if the operator writes tensors
that overlap, the CPU runs the operator with copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from diopi_torch.fallback import check_on_cpu, named_arguments, run_on_cpu
from diopi_torch.overlap import find_overlap


class ComposedKernel:
    """The kernel of a composed operator.

    Args:
        operator: the operator.
        composition: a function that calls other operators.
    """

    def __init__(self, operator: torch._ops.OpOverload, composition: Callable[..., Any]) -> None:
        self._operator = operator
        self._composition = composition
        self._writes = operator._schema.is_mutable

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator; raise the errors of PyTorch's CPU for invalid arguments."""
        if self._writes and (overlap := find_overlap(self._operator, named_arguments(self._operator, args, kwargs))):
            check_on_cpu(self._operator, args, kwargs)
            if overlap.within_tensor:
                return run_on_cpu(
                    "several elements of a written tensor are at one address", self._operator, args, kwargs
                )
        try:
            return self._composition(*args, **kwargs)
        except Exception:
            check_on_cpu(self._operator, args, kwargs)
            raise
