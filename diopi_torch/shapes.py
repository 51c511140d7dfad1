"""Infer the shapes, strides and element types of an operator's results.

PyTorch computes them with meta tensors, which have no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch

from diopi_torch.functions import PlaceholderNumber, PlaceholderValue, TensorSlot, UnsupportedCallError
from diopi_torch.layout import TensorLayout, layout_of

Layouts = TensorLayout | int | None | list[Any] | tuple[Any, ...]
"""The layout of one tensor, None, or nested layouts in the form of the results; numbers are unchanged."""


def infer_layouts(operator: torch._ops.OpOverload, named: Mapping[str, Any], outputs: Collection[str] = ()) -> Layouts:
    """Return the layouts of the results of an operator.

    Args:
        operator: the operator.
        named: its arguments by name.
        outputs: the names of the output arguments. For these, the function returns the layouts that they should have.

    Returns:
        The layouts of the results.

    Raises:
        UnsupportedCallError: if PyTorch can't compute the layouts, or rejects the arguments. The fallback to the CPU
            then raises the error of the CPU, whose type may differ.
    """
    metas = {name: _empty_output(value) if name in outputs else _to_meta(value) for name, value in named.items()}
    try:
        return _adjust_to_cpu(operator, named, _layouts_of(operator(**metas)))
    except Exception as error:  # PyTorch computes some layouts in Python, which raises errors of any type
        raise UnsupportedCallError(str(error)) from error


def _adjust_to_cpu(operator: torch._ops.OpOverload, named: Mapping[str, Any], layouts: Layouts) -> Layouts:
    """Return the layouts of results, corrected for operators whose CPU results differ from those of meta tensors."""
    changed = _CPU_DIFFERENCES.get(operator._schema.name)
    return changed(named, *layouts) if changed is not None and isinstance(layouts, tuple) else layouts


def _adjust_normalization(named: Mapping[str, Any], normalized: TensorLayout, *saved: TensorLayout) -> Layouts:
    """Return the layouts with the parameters' type for saved statistics, and without elements in evaluation mode."""
    parameters = (named[name] for name in ("weight", "bias", "running_mean", "running_var"))
    dtype = next(
        (parameter.layout.torch_dtype for parameter in parameters if parameter is not None), normalized.torch_dtype
    )
    empty_form = (0,), (1,)
    saved_layouts = [
        layout_of(*((slot.shape, slot.strides) if named["training"] else empty_form), dtype) for slot in saved
    ]
    return (normalized, *saved_layouts)


def _adjust_attention(named: Mapping[str, Any], *layouts: Any) -> Layouts:
    """Replace the layouts of seed and offset by None, because attention on the CPU returns no random state."""
    *results, _, _, mask = layouts
    return (*results, None, None, mask)


_CPU_DIFFERENCES: Mapping[str, Callable[..., Layouts]] = {
    "aten::native_batch_norm": _adjust_normalization,
    "aten::_scaled_dot_product_fused_attention_overrideable": _adjust_attention,
}
"""Corrections of the layouts by operator; each receives the arguments by name and then the layouts."""


def _to_meta(value: Any) -> Any:
    """Return a value with its slots and tensors converted to meta tensors."""
    if isinstance(value, TensorSlot):
        return torch.empty_strided(value.shape, value.strides, dtype=value.layout.torch_dtype, device="meta")
    if isinstance(value, list):
        return [_to_meta(entry) for entry in value]
    if isinstance(value, torch.device):
        return torch.device("meta")
    if isinstance(value, PlaceholderNumber):
        return float(value)
    return None if isinstance(value, PlaceholderValue) else value


def _empty_output(value: TensorSlot) -> torch.Tensor:
    """Return an empty meta tensor in place of an output argument, which PyTorch resizes without a warning."""
    return torch.empty(0, dtype=value.layout.torch_dtype, device="meta")


def _layouts_of(returned: Any) -> Layouts:
    """Return the layouts of an operator's results, in the same nesting; other values than tensors are unchanged."""
    if isinstance(returned, torch.Tensor):
        return layout_of(tuple(returned.shape), returned.stride(), returned.dtype)
    return (
        type(returned)([_layouts_of(entry) for entry in returned]) if isinstance(returned, list | tuple) else returned
    )
