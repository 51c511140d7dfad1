"""Modules on the device: parameters that are shared stay so.

PyTorch moves a parameter to most devices in its place; to one that is `PrivateUse1` it makes a new parameter, one for
each place that has it. Two modules that shared one, as an embedding and the last layer of many language models do,
would be trained apart from then on, and nothing would say so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from torch import nn


def install() -> None:
    """Wrap what all of `to`, `cpu`, `double` and the like go through."""
    original = nn.Module._apply

    def _apply(self: nn.Module, fn: Callable[..., Any], recurse: bool = True) -> nn.Module:
        shared = _shared(self) if recurse else []
        returned = original(self, fn, recurse)
        for (module, name), *aliases in shared:
            for alias, alias_name in aliases:
                alias._parameters[alias_name] = module._parameters[name]
        return returned

    nn.Module._apply = _apply  # type: ignore[method-assign]  # as said above


def _shared(root: nn.Module) -> list[list[tuple[nn.Module, str]]]:
    """The places of each parameter that has several: modules and names there."""
    places = defaultdict(list)
    for module in root.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                places[parameter].append((module, name))
    return [found for found in places.values() if len(found) > 1]
