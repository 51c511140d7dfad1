"""Printing operators as they are called: DIPU_DUMP_OP_ARGS, from 0, which is nothing, to 3.

1 prints the name of an operator and the function that serves it, or `CPU`; 2 its arguments, too; 3 their values, too.
The variable counts as `os.environ` has it when an operator is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import torch

from diopi_proto.aten.mapping import FunctionCall
from diopi_torch.functions import Performed, watched
from diopi_torch.parts import is_sparse, parts
from diopi_torch.settings import SettingError
from diopi_torch.tensors import is_ours, on_host

VARIABLE = "DIPU_DUMP_OP_ARGS"

LEVELS = ("0", "1", "2", "3")

environment: Mapping[Any, Any] = cast(Any, os.environ)._data
"""What `os.environ` is a view of: a key is looked up there in a twentieth of the time."""

KEY = cast(Any, os.environ).encodekey(VARIABLE)
"""The variable as that names it."""

CPU = "CPU"
"""Stands for a function where an operator runs on the CPU."""


def dumped(
    name: str, operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], do: Callable[[], Any]
) -> Any:
    """Do what an operator does, and print it when a function is called for it, its arguments as they were before.

    SettingError if the variable has a value that means nothing.
    """
    if not (level := _level()):
        return do()
    lines = list(_lines(operator, args, kwargs, level))

    def watch(call: FunctionCall, perform: Performed) -> Mapping[str, Any]:
        _say(name, call.function, lines)
        lines.clear()  # the arguments once, however many functions do it
        return perform()

    with watched(watch):
        return do()


def dump_fallback(name: str, operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Print an operator that is about to run on the CPU; SettingError as above."""
    if level := _level():
        _say(name, CPU, list(_lines(operator, args, kwargs, level)))


def _say(name: str, function: str, lines: Sequence[str]) -> None:
    """Print an operator, what serves it, and its arguments."""
    print("\n".join([f"{name}: {function}", *lines]), file=sys.stderr, flush=True)


def _level() -> int:
    level = os.environ.get(VARIABLE, "0").strip() or "0"
    if level not in LEVELS:
        raise SettingError(f"{VARIABLE}: expected {', '.join(LEVELS)}, found {level!r}")
    return int(level)


def _lines(
    operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], level: int
) -> Iterator[str]:
    """The arguments of a call as text."""
    names = [argument.name for argument in operator._schema.arguments]
    if level >= 2:
        for name, value in {**dict(zip(names, args, strict=False)), **kwargs}.items():
            yield from _argument(name, value, with_values=level >= 3)


def _argument(name: str, value: Any, *, with_values: bool) -> Iterator[str]:
    if isinstance(value, list | tuple) and any(isinstance(entry, torch.Tensor) for entry in value):
        for number, entry in enumerate(value):
            yield from _argument(f"{name}.{number}", entry, with_values=with_values)
    elif isinstance(value, torch.Tensor) and is_sparse(value):
        yield f"  {name}: sizes {list(value.shape)}, layout {value.layout}"
        for part, tensor in parts(value).items():
            yield from _argument(f"{name}.{part}", tensor, with_values=with_values)
    elif isinstance(value, torch.Tensor):
        yield f"  {name}: {described(value)}"
        if with_values:
            yield from (f"    {line}" for line in str(_values(value)).splitlines())
    else:
        yield f"  {name}: {value!r}"


def described(tensor: torch.Tensor) -> str:
    """A tensor with everything but its values."""
    facts = {
        "numel": tensor.numel(),
        "sizes": list(tensor.shape),
        "strides": list(tensor.stride()),
        "view": tensor._is_view(),
        "dtype": tensor.dtype,
        "device": tensor.device,
        "layout": tensor.layout,
        "requires_grad": tensor.requires_grad,
        "data_ptr": hex(tensor.data_ptr()),
    }
    return ", ".join(f"{fact} {value}" for fact, value in facts.items())


def _values(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the CPU with the same values."""
    return on_host(tensor).detach() if is_ours(tensor) else tensor.detach()
