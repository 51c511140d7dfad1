"""Store a call of an ATen operator in a file, from which it can be repeated.

The file is a NumPy archive (`.npz`) without pickled objects. The entry `call` contains the name of the operator and its
arguments in JSON. The entry `tensor0` contains the bytes of the first tensor, and so on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diopi_torch.compare.on_cpu import CpuCall
from diopi_torch.fallback import operator_name
from diopi_torch.operators import overload

_NAMED_VALUES = {"dtype": torch.dtype, "layout": torch.layout, "memory_format": torch.memory_format}
"""The types whose values are attributes of `torch`, by the keys that represent them in JSON."""


class NotStorableError(Exception):
    """An argument of a call can't be stored; the message names its type."""


def store_call(path: Path, call: CpuCall) -> None:
    """Write a call to a file.

    Args:
        path: the file, with the extension `.npz`; missing folders are created.
        call: the call with the contents of its tensors.

    Raises:
        NotStorableError: an argument has a type that can't be stored.
        OSError: the file can't be written.
    """
    positions = {id(content.tensor): number for number, content in enumerate(call.contents.values())}
    tensors = {f"tensor{number}": content.stored for number, content in enumerate(call.contents.values())}
    described = [
        {
            "dtype": str(content.tensor.dtype).removeprefix("torch."),
            "shape": content.shape,
            "strides": content.strides,
            "conjugated": content.is_conjugated,
            "negated": content.is_negated,
        }
        for content in call.contents.values()
    ]
    arguments = {name: _encode(value, positions) for name, value in call.named.items()}
    text = json.dumps({"operator": operator_name(call.operator), "arguments": arguments, "tensors": described})
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, allow_pickle=False, call=np.array(text), **tensors)


def _encode(value: Any, positions: Mapping[int, int]) -> Any:
    """Return an argument in a form that JSON can represent.

    Args:
        value: the argument.
        positions: the number of each tensor in the file, by `id(tensor)`.

    Raises:
        NotStorableError: the argument has a type that can't be stored.
    """
    if isinstance(value, torch.Tensor):
        return {"tensor": positions[id(value)]}
    if isinstance(value, list | tuple):
        return [_encode(entry, positions) for entry in value]
    if isinstance(value, torch.device):
        return {"device": value.type}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    for key, kind in _NAMED_VALUES.items():
        if isinstance(value, kind):
            return {key: str(value).removeprefix("torch.")}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise NotStorableError(type(value).__name__)


def load_call(path: Path, device: str) -> tuple[torch._ops.OpOverload, dict[str, Any]]:
    """Read a call from a file.

    Args:
        path: the file.
        device: the device on which the tensors are created. It replaces all devices in the stored arguments.

    Returns:
        The operator and its arguments by name.

    Raises:
        OSError: the file can't be read.
        ValueError: the file does not contain a call.
    """
    with np.load(path, allow_pickle=False) as archive:
        if "call" not in archive:
            raise ValueError(f"{path} does not contain a call of an operator")
        call = json.loads(str(archive["call"]))
        tensors = [
            _to_tensor(described, archive[f"tensor{number}"], device)
            for number, described in enumerate(call["tensors"])
        ]
    arguments = {name: _decode(value, tensors, device) for name, value in call["arguments"].items()}
    return overload(call["operator"]), arguments


def _to_tensor(described: Mapping[str, Any], stored: Any, device: str) -> torch.Tensor:
    """Return a tensor of a stored call.

    Args:
        described: its element type, shape and strides, and whether it is conjugated or negated, as JSON states them.
        stored: its bytes, from the first element to the last.
        device: the device on which it is created.
    """
    dtype = getattr(torch, described["dtype"])
    if not stored.size:
        return torch.empty(described["shape"], dtype=dtype, device=device)
    memory = torch.from_numpy(stored.copy()).view(dtype).to(device)
    tensor = memory.as_strided(described["shape"], described["strides"])
    tensor = torch._conj(tensor) if described["conjugated"] else tensor
    return torch._neg_view(tensor) if described["negated"] else tensor


def _decode(value: Any, tensors: list[torch.Tensor], device: str) -> Any:
    """Return the argument that `_encode` encoded as `value`; `tensors` are the tensors of the file in order."""
    if isinstance(value, list):
        return [_decode(entry, tensors, device) for entry in value]
    if not isinstance(value, dict):
        return value
    ((key, content),) = value.items()
    if key == "tensor":
        return tensors[content]
    if key == "device":
        return torch.device(device)
    return complex(*content) if key == "complex" else getattr(torch, content)
