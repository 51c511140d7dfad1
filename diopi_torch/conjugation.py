"""Call functions with tensors that PyTorch has conjugated or negated lazily.

PyTorch does not compute the elements of `x.conj()` at once: it sets a bit of the tensor, here called a lazy bit. Before
most operators, PyTorch computes the elements (it *materializes* the tensor). Some operators, such as matrix products,
receive the tensor with the bit instead. Functions of the standard know no such bits, so these tensors are materialized
first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import torch

from diopi_torch.tensors import has_lazy_bits, materialize

_KEYS = ("Conjugate", "Negative")
"""The names of the dispatch keys of the lazy bits."""


def receives_lazy_bits(operator: torch._ops.OpOverload) -> bool:
    """Return whether PyTorch passes tensors with lazy bits to an operator, instead of materializing them."""
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
    """Call an operator with materialized tensors instead of tensors with lazy bits.

    Args:
        operator: the operator.
        serve: a function that executes the operator with these arguments.
        args: the positional arguments.
        kwargs: the keyword arguments.

    Returns:
        The result of `serve`. If it contains a materialized tensor, the caller's tensor takes its place.
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
    """The materialized tensors of a call that the operator writes, each with the caller's tensor."""

    def __init__(self) -> None:
        self._written: list[tuple[torch.Tensor, torch.Tensor]] = []

    def replace(self, argument: Any, value: Any) -> Any:
        """Return an argument for the call: materialized if it has lazy bits, else unchanged."""
        if not has_lazy_bits(value):
            return value
        plain = materialize(value)
        if argument.alias_info is not None and argument.alias_info.is_write:
            self._written.append((value, plain))
        return plain

    def write_back(self) -> None:
        """Copy the written materialized tensors to the caller's tensors."""
        for tensor, plain in self._written:
            tensor.resize_(plain.shape)
            tensor.copy_(plain)

    def restore(self, returned: Any) -> Any:
        """Return the result of the operator with the caller's tensors instead of materialized ones."""
        if isinstance(returned, tuple):
            return tuple(map(self.restore, returned))
        return next((tensor for tensor, plain in self._written if plain is returned), returned)
