"""Call functions with tensors that PyTorch has conjugated or negated lazily.

PyTorch represents `x.conj()` by a bit of the tensor, and materializes the elements before it calls most operators.
Products are the exception: they receive the bit. Functions of the standard read and write only stored elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import torch

from diopi_torch.tensors import has_lazy_bits, materialize

_KEYS = ("Conjugate", "Negative")
"""The dispatch keys of the bits."""


def receives_lazy_bits(operator: torch._ops.OpOverload) -> bool:
    """Return whether PyTorch calls an operator with tensors that have such bits, instead of materializing them."""
    has, falls = (
        torch._C._dispatch_has_kernel_for_dispatch_key,
        torch._C._dispatch_kernel_for_dispatch_key_is_fallthrough,
    )
    return any(has(operator._name, key) and falls(operator._name, key) for key in _KEYS)


def call_materialized(
    operator: torch._ops.OpOverload,
    serve: Callable[[Sequence[Any], Mapping[str, Any]], Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Call an operator with materialized tensors in place of those that have such bits.

    Args:
        operator: the operator.
        serve: a function that runs the operator.
        args: its positional arguments.
        kwargs: its keyword arguments.

    Returns:
        The result of `serve`, with the tensors of the caller in place of materialized ones.
    """
    substitutes = _Substitutes()
    declared = operator._schema.arguments
    returned = serve(
        [substitutes.replace(argument, value) for argument, value in zip(declared, args, strict=False)],
        {a.name: substitutes.replace(a, kwargs[a.name]) for a in declared if a.name in kwargs},
    )
    substitutes.write_back()
    return substitutes.restore(returned)


@final
class _Substitutes:
    """Materialized tensors of a call, and the tensors that they replace."""

    def __init__(self) -> None:
        self._written: list[tuple[torch.Tensor, torch.Tensor]] = []

    def replace(self, argument: Any, value: Any) -> Any:
        """Return the value of an argument for the call."""
        if not has_lazy_bits(value):
            return value
        plain = materialize(value)
        if argument.alias_info is not None and argument.alias_info.is_write:
            self._written.append((value, plain))
        return plain

    def write_back(self) -> None:
        """Copy what the operator has written to the tensors of the caller."""
        for tensor, plain in self._written:
            tensor.resize_(plain.shape)
            tensor.copy_(plain)

    def restore(self, returned: Any) -> Any:
        """Return the result of the operator with the tensors of the caller."""
        if isinstance(returned, tuple):
            return tuple(map(self.restore, returned))
        return next((tensor for tensor, plain in self._written if plain is returned), returned)
