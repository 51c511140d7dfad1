"""Print operators when they are called. The environment variable DIPU_DUMP_OP_ARGS sets the level, 0 (nothing) to 3.

Level 1 prints the name of an operator and the function that implements it, or `CPU`. Level 2 adds the arguments and
level 3 their values. The variable is read from `os.environ` whenever an operator is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import torch

from diopi_proto.aten.mapping import FunctionCall
from diopi_torch.functions import PerformCall, watch_calls
from diopi_torch.parts import is_sparse, sparse_parts
from diopi_torch.settings import SettingError
from diopi_torch.tensors import is_on_device, read_to_host

VARIABLE = "DIPU_DUMP_OP_ARGS"
"""The environment variable with the level."""

LEVELS = ("0", "1", "2", "3")
"""The valid values of the variable."""

environment: Mapping[Any, Any] = cast(Any, os.environ)._data
"""The mapping behind `os.environ`, in which a look-up takes a twentieth of the time."""

KEY = cast(Any, os.environ).encodekey(VARIABLE)
"""The key of the variable in that mapping."""

CPU = "CPU"
"""The text that is printed in place of a function if an operator runs on the CPU."""


def call_and_dump(
    name: str, operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], do: Callable[[], Any]
) -> Any:
    """Run an operator, and print its name for each function of the vendor that it calls.

    The first function is printed with the arguments of the operator from before the call.

    Args:
        name: the name of the operator to print.
        operator: the operator.
        args: its positional arguments.
        kwargs: its keyword arguments.
        do: a function that runs the operator.

    Returns:
        The result of `do`.

    Raises SettingError if the variable has an invalid value.
    """
    if not (level := _dump_level()):
        return do()
    lines = list(_argument_lines(operator, args, kwargs, level))

    def watch(call: FunctionCall, perform: PerformCall) -> Mapping[str, Any]:
        """Print the operator before the function's call, with the arguments for the first function only."""
        _print_operator(name, call.function, lines)
        lines.clear()  # print the arguments only for the first function of the operator
        return perform()

    with watch_calls(watch):
        return do()


def dump_fallback(name: str, operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Print an operator that is about to run on the CPU; errors are those of `call_and_dump`."""
    if level := _dump_level():
        _print_operator(name, CPU, list(_argument_lines(operator, args, kwargs, level)))


def _print_operator(name: str, function: str, lines: Sequence[str]) -> None:
    """Print an operator, the function that implements it, and its arguments."""
    print("\n".join([f"{name}: {function}", *lines]), file=sys.stderr, flush=True)


def _dump_level() -> int:
    """Return the level in the environment variable; raise SettingError if it is not 0 to 3."""
    level = os.environ.get(VARIABLE, "0").strip() or "0"
    if level not in LEVELS:
        raise SettingError(f"{VARIABLE}: expected {', '.join(LEVELS)}, found {level!r}")
    return int(level)


def _argument_lines(
    operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], level: int
) -> Iterator[str]:
    """Yield the lines that describe the arguments of a call; nothing at level 1."""
    names = [argument.name for argument in operator._schema.arguments]
    if level >= 2:
        for name, value in {**dict(zip(names, args, strict=False)), **kwargs}.items():
            yield from _describe_argument(name, value, with_values=level >= 3)


def _describe_argument(name: str, value: Any, *, with_values: bool) -> Iterator[str]:
    """Yield the lines that describe an argument: its form, and the values of tensors if requested."""
    if isinstance(value, list | tuple) and any(isinstance(entry, torch.Tensor) for entry in value):
        for number, entry in enumerate(value):
            yield from _describe_argument(f"{name}.{number}", entry, with_values=with_values)
    elif isinstance(value, torch.Tensor) and is_sparse(value):
        yield f"  {name}: sizes {list(value.shape)}, layout {value.layout}"
        for part, tensor in sparse_parts(value).items():
            yield from _describe_argument(f"{name}.{part}", tensor, with_values=with_values)
    elif isinstance(value, torch.Tensor):
        yield f"  {name}: {format_tensor(value)}"
        if with_values:
            yield from (f"    {line}" for line in str(_cpu_values(value)).splitlines())
    else:
        yield f"  {name}: {value!r}"


def format_tensor(tensor: torch.Tensor) -> str:
    """Return a description of a tensor without its values."""
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


def _cpu_values(tensor: torch.Tensor) -> torch.Tensor:
    """Return a CPU tensor with the values of a tensor."""
    return read_to_host(tensor).detach() if is_on_device(tensor) else tensor.detach()
