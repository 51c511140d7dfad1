"""Translate operators that PyTorch implements by views, copies or allocation to the steps of a program.

A program computes with arrays that never share memory, so a view is a copy of the viewed elements. Each translation
appends steps to a builder and returns the slots of the results.

A translation receives the builder, the arguments of the operator by name, and the example result, a tensor without
elements that has the shape and element type of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from diopi_proto.aten.mapping import NotMappedError
from diopi_torch.compiling.builder import ArraySlot, ProgramBuilder, dtype_of

Arguments = Mapping[str, Any]
"""The arguments of an operator by name, with slots in place of tensors."""

Structural = Callable[[ProgramBuilder, Arguments, Any], Any]
"""A function that appends the steps of an operator.

It receives the builder, the arguments of the operator, and example results, whose shapes and element types the results
have. It returns the slots of the results.
"""


def _reshape(builder: ProgramBuilder, arguments: Arguments, example: torch.Tensor) -> ArraySlot:
    """Append a reshape of the first argument to the shape of the result, and return its slot."""
    return builder.reshape(next(iter(arguments.values())), example.shape)


def _cast(builder: ProgramBuilder, arguments: Arguments, example: torch.Tensor) -> ArraySlot:
    """Append a conversion of the first argument to the result's type; raise NotMappedError for a copy to the CPU."""
    source = next(iter(arguments.values()))
    if example.device.type == "cpu":
        raise NotMappedError("a copy to the CPU")
    if dtype_of(example) is source.dtype:
        return builder.reshape(source, example.shape)
    return _call(builder, "diopiCastDtype", example, input=source)


def _transpose(builder: ProgramBuilder, arguments: Arguments, example: torch.Tensor) -> ArraySlot:
    """Append the swap of two axes; `aten.t` swaps the only two."""
    source = arguments["self"]
    if len(source.shape) < 2:
        return builder.reshape(source, example.shape)
    dims = {"dim0": arguments.get("dim0", 0), "dim1": arguments.get("dim1", 1)}
    return _call(builder, "diopiTranspose", example, input=source, **dims)


def _permute(builder: ProgramBuilder, arguments: Arguments, example: torch.Tensor) -> ArraySlot:
    """Append a permutation of the axes."""
    return _call(builder, "diopiPermute", example, input=arguments["self"], dims=tuple(arguments["dims"]))


def _expand(builder: ProgramBuilder, arguments: Arguments, example: torch.Tensor) -> ArraySlot:
    """Append a broadcast to the shape of the result."""
    return _call(builder, "diopiExpand", example, input=arguments["self"])


def _slice(builder: ProgramBuilder, arguments: Arguments, example: torch.Tensor) -> ArraySlot:
    """Append the selection of every `step`-th entry of a range along an axis."""
    source, dim, step = arguments["self"], arguments["dim"], arguments["step"]
    size = source.shape[dim]
    start, end, _ = slice(arguments["start"], arguments["end"]).indices(size)
    bounds = {"dim": dim, "start": start, "end": max(start, end), "step": step}
    return _call(builder, "diopiSlice", example, input=source, **bounds)


def _select(builder: ProgramBuilder, arguments: Arguments, example: torch.Tensor) -> ArraySlot:
    """Append the selection of the entry at an index of an axis, without the axis."""
    picked = {"dim": arguments["dim"], "index": arguments["index"]}
    return _call(builder, "diopiSelect", example, input=arguments["self"], **picked)


def _split(builder: ProgramBuilder, arguments: Arguments, examples: list[torch.Tensor]) -> list[ArraySlot]:
    """Append the division of an array into parts along an axis; the example results have the sizes of the parts."""
    source, dim, parts, start = arguments["self"], arguments["dim"], [], 0
    for example in examples:
        bounds = {"dim": dim, "start": start, "end": start + example.shape[dim], "step": 1}
        parts.append(_call(builder, "diopiSlice", example, input=source, **bounds))
        start += example.shape[dim]
    return parts


def _unbind(builder: ProgramBuilder, arguments: Arguments, examples: list[torch.Tensor]) -> list[ArraySlot]:
    """Append the selection of each entry along an axis, without the axis."""
    source, dim = arguments["self"], arguments["dim"]
    return [
        _call(builder, "diopiSelect", example, input=source, dim=dim, index=index)
        for index, example in enumerate(examples)
    ]


def _fill(value: Any) -> Structural:
    """Return the translation of an operator that allocates an array of one number.

    Args:
        value: the number, or the name of the argument with the number.

    Returns:
        The translation.
    """

    def fill(builder: ProgramBuilder, arguments: Arguments, example: torch.Tensor) -> ArraySlot:
        """Append the allocation of an array that has the form of the example and is filled with a number.

        Returns:
            The slot of the array.

        Raises:
            NotMappedError: The array is on the CPU, or the value is not a number.
        """
        if example.device.type == "cpu":
            raise NotMappedError("a tensor of the CPU")
        number = arguments[value] if isinstance(value, str) else value
        if not isinstance(number, bool | int | float):
            raise NotMappedError(f"the number {number!r}")
        return _call(builder, "diopiFill", example, value=number)

    return fill


def _call(builder: ProgramBuilder, function: str, example: torch.Tensor, **arguments: Any) -> ArraySlot:
    """Append a call of a function with one result, which has the shape and element type of an example."""
    return builder.call(function, arguments, builder.new_slot(example.shape, dtype_of(example)))


STRUCTURAL: Mapping[str, Structural] = {
    **dict.fromkeys(
        (
            *("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "squeeze.dim", "squeeze.dims", "alias"),
            *("detach", "clone", "contiguous", "lift_fresh_copy", "lift_fresh", "_reshape_copy", "view_copy"),
        ),
        _reshape,
    ),
    "_to_copy": _cast,
    "t": _transpose,
    "transpose.int": _transpose,
    "permute": _permute,
    "expand": _expand,
    "slice.Tensor": _slice,
    "select.int": _select,
    "split.Tensor": _split,
    "split_with_sizes": _split,
    "unbind.int": _unbind,
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros"), _fill(0)),
    **dict.fromkeys(("empty.memory_format", "empty_like", "new_empty", "empty_strided"), _fill(0)),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), _fill(1)),
    **dict.fromkeys(("full", "full_like", "new_full"), _fill("fill_value")),
    "scalar_tensor": _fill("s"),
}
"""The translations by name of the operator. The elements of `empty` tensors are undefined; here they are 0."""
