"""Modules on the device: parameters that modules share remain shared.

PyTorch moves parameters to most devices in place. For a device of type `PrivateUse1` it creates a new parameter for
each module that has it. Modules that share a parameter, such as the embedding and the last layer of many language
models, would then be trained separately without any message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from torch import nn


def install() -> None:
    """Wrap `torch.nn.Module._apply`, which implements `to`, `cpu`, `double` and similar methods."""
    original = nn.Module._apply

    def _apply(self: nn.Module, fn: Callable[..., Any], recurse: bool = True) -> nn.Module:
        """Apply a function to all parameters and let the modules share the new parameters as before."""
        shared = _find_shared_parameters(self) if recurse else []
        returned = original(self, fn, recurse)
        for (module, name), *aliases in shared:
            for alias, alias_name in aliases:
                alias._parameters[alias_name] = module._parameters[name]
        return returned

    nn.Module._apply = _apply  # type: ignore[method-assign]  # as said above


def _find_shared_parameters(root: nn.Module) -> list[list[tuple[nn.Module, str]]]:
    """Return the modules and attribute names of each parameter that occurs several times."""
    places = defaultdict(list)
    for module in root.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                places[parameter].append((module, name))
    return [found for found in places.values() if len(found) > 1]
