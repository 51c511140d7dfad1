"""Modules on the device: parameters that modules share remain shared, and parameters of lazy modules remain lazy.

PyTorch moves parameters to most devices in place. For a device of type `PrivateUse1` it creates a new parameter for
each module that has it. Modules that share a parameter, such as the embedding and the last layer of many language
models, would then be trained separately without any message. Parameters whose shape is not yet known cannot be copied
at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

Lazy = UninitializedParameter | UninitializedBuffer
"""A parameter or buffer whose shape is not yet known."""


def install() -> None:
    """Wrap `torch.nn.Module._apply`, which implements `to`, `cpu`, `double` and similar methods."""
    original = nn.Module._apply

    def _apply(self: nn.Module, fn: Callable[..., Any], recurse: bool = True) -> nn.Module:
        """Apply a function to all parameters and let the modules share the new parameters as before."""
        shared = _find_shared_parameters(self) if recurse else []
        lazy = _remove_lazy_entries(self)
        returned = original(self, fn, recurse)
        for entries, name, entry in lazy:
            entries[name] = _apply_to_lazy(fn, entry)
        for (module, name), *aliases in shared:
            for alias, alias_name in aliases:
                alias._parameters[alias_name] = module._parameters[name]
        return returned

    nn.Module._apply = _apply  # type: ignore[method-assign]  # as said above


def _remove_lazy_entries(module: nn.Module) -> list[tuple[dict[str, Any], str, Lazy]]:
    """Replace the parameters and buffers without a shape by None; return them with their dictionaries and names."""
    lazy_entries = [
        (entries, name, entry)
        for entries in (module._parameters, module._buffers)
        for name, entry in entries.items()
        if entry is not None and is_lazy(entry)
    ]
    for entries, name, _ in lazy_entries:
        entries[name] = None
    return lazy_entries


def _apply_to_lazy(fn: Callable[..., Any], entry: Lazy) -> Lazy:
    """Return a parameter or buffer without a shape, with the device and element type that a function returns."""
    applied = fn(torch.empty(0, dtype=entry.dtype, device=entry.device))
    kind: Any = type(entry)  # PyTorch's types do not declare the arguments
    created: Lazy = kind(requires_grad=entry.requires_grad, device=applied.device, dtype=applied.dtype)
    return created


def _find_shared_parameters(root: nn.Module) -> list[list[tuple[nn.Module, str]]]:
    """Return the modules and attribute names of each parameter that occurs several times."""
    places = defaultdict(list)
    for module in root.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                places[parameter].append((module, name))
    return [names for names in places.values() if len(names) > 1]
