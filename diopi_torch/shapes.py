"""What an operator returns: shapes, strides and element types, as PyTorch itself says for tensors without memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch

KEPT = 4096
"""Answers kept, so that a training loop asks once."""


class UnknownShapesError(Exception):
    """PyTorch can't tell what the operator returns without its data."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A tensor that an operator returns; strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype


Specs = Spec | None | list[Any] | tuple[Any, ...]
"""Of one tensor, of none, or of several, in the form in which they are returned."""

_kept: dict[Any, Specs] = {}


def specs_of(operator: torch._ops.OpOverload, named: Mapping[str, Any], outputs: Collection[str] = ()) -> Specs:
    """What an operator returns for these arguments, given by name: of tensors given for results, what they should be.

    Args:
        outputs: names of arguments that are tensors given for results.

    Raises what PyTorch raises for arguments that don't suit; UnknownShapesError if it can't tell.
    """
    key = (operator, *(value.dtype if name in outputs else _key(value) for name, value in named.items()))
    if key not in _kept:
        if len(_kept) >= KEPT:
            _kept.clear()
        metas = {name: _unsized(value) if name in outputs else _meta(value) for name, value in named.items()}
        try:
            _kept[key] = _as_on_the_cpu(operator, named, _spec(operator(**metas)))
        except NotImplementedError as error:
            raise UnknownShapesError(str(error)) from error
    return _kept[key]


def _as_on_the_cpu(operator: torch._ops.OpOverload, named: Mapping[str, Any], specs: Specs) -> Specs:
    """What the CPU returns where that is not what PyTorch says for tensors without memory.

    Batch normalisation saves statistics in the element type of its parameters, and nothing in evaluation.
    """
    if operator._schema.name != "aten::native_batch_norm" or not isinstance(specs, tuple):
        return specs
    parameters = (named[name] for name in ("weight", "bias", "running_mean", "running_var"))
    dtype = next((one.dtype for one in parameters if one is not None), specs[0].dtype)
    saved = [Spec(one.shape, one.strides, dtype) if named["training"] else Spec((0,), (1,), dtype) for one in specs[1:]]
    return (specs[0], *saved)


def _key(value: Any) -> Any:
    """What of an argument the shapes of results may depend on: 1, 1.0 and True are different."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.stride()
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    return type(value), None if isinstance(value, torch.Generator | torch.device) else value


def _meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, list | tuple):
        return [_meta(entry) for entry in value]
    if isinstance(value, torch.device):
        return torch.device("meta")
    return None if isinstance(value, torch.Generator) else value


def _unsized(value: torch.Tensor) -> torch.Tensor:
    """In the place of a tensor given for a result: what PyTorch resizes without a warning."""
    return torch.empty(0, dtype=value.dtype, device="meta")


def _spec(returned: Any) -> Specs:
    if isinstance(returned, torch.Tensor):
        return Spec(tuple(returned.shape), returned.stride(), returned.dtype)
    return type(returned)([_spec(entry) for entry in returned]) if isinstance(returned, list | tuple) else None
