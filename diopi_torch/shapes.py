"""What an operator returns: shapes, strides and element types, as PyTorch itself says for tensors without memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch

from diopi_torch.functions import NotServedError, PlaceholderNumber, PlaceholderValue, Slot
from diopi_torch.layout import Layout, layout_of

Layouts = Layout | int | None | list[Any] | tuple[Any, ...]
"""Of one tensor, of none, or of several, in the form in which they are returned; numbers as they are."""


def layouts_of(operator: torch._ops.OpOverload, named: Mapping[str, Any], outputs: Collection[str] = ()) -> Layouts:
    """What an operator returns for these arguments, given by name: of tensors given for results, what they should be.

    Args:
        outputs: names of arguments that are tensors given for results.

    Raises what PyTorch raises for arguments that don't suit; NotServedError if it can't tell.
    """
    metas = {name: _unsized(value) if name in outputs else _meta(value) for name, value in named.items()}
    try:
        return _as_on_the_cpu(operator, named, _layouts(operator(**metas)))
    except NotImplementedError as error:
        raise NotServedError(str(error)) from error


def _as_on_the_cpu(operator: torch._ops.OpOverload, named: Mapping[str, Any], layouts: Layouts) -> Layouts:
    """What the CPU returns where that is not what PyTorch says for tensors without memory."""
    changed = _OTHERS_ON_THE_CPU.get(operator._schema.name)
    return changed(named, *layouts) if changed is not None and isinstance(layouts, tuple) else layouts


def _normalized(named: Mapping[str, Any], normalized: Layout, *saved: Layout) -> Layouts:
    """Batch normalisation saves statistics in the element type of its parameters, and nothing in evaluation."""
    parameters = (named[name] for name in ("weight", "bias", "running_mean", "running_var"))
    dtype = next(
        (parameter.layout.torch_dtype for parameter in parameters if parameter is not None), normalized.torch_dtype
    )
    nothing = (0,), (1,)
    saved_layouts = [
        layout_of(*((slot.shape, slot.strides) if named["training"] else nothing), dtype) for slot in saved
    ]
    return (normalized, *saved_layouts)


def _attended(named: Mapping[str, Any], *layouts: Any) -> Layouts:
    """Attention that draws nothing has no seed and no offset."""
    *results, _, _, mask = layouts
    return (*results, None, None, mask)


_OTHERS_ON_THE_CPU: Mapping[str, Callable[..., Layouts]] = {
    "aten::native_batch_norm": _normalized,
    "aten::_scaled_dot_product_fused_attention_overrideable": _attended,
}


def _meta(value: Any) -> Any:
    if isinstance(value, Slot):
        return torch.empty_strided(value.shape, value.strides, dtype=value.layout.torch_dtype, device="meta")
    if isinstance(value, list):
        return [_meta(entry) for entry in value]
    if isinstance(value, torch.device):
        return torch.device("meta")
    if isinstance(value, PlaceholderNumber):
        return float(value)
    return None if isinstance(value, PlaceholderValue) else value


def _unsized(value: Slot) -> torch.Tensor:
    """In the place of a tensor given for a result: what PyTorch resizes without a warning."""
    return torch.empty(0, dtype=value.layout.torch_dtype, device="meta")


def _layouts(returned: Any) -> Layouts:
    if isinstance(returned, torch.Tensor):
        return layout_of(tuple(returned.shape), returned.stride(), returned.dtype)
    return type(returned)([_layouts(entry) for entry in returned]) if isinstance(returned, list | tuple) else returned
