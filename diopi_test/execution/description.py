"""Text for the arguments of a call: attributes, and the layouts of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.execution.call_record import CallRecord

MAX_CHARACTERS = 200
"""Maximum number of characters in the description of an attribute."""

MAX_TENSORS = 8
"""Maximum number of tensors of an array that are described."""


def describe_tensor(dtype: Dtype, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> str:
    """Return the description of a tensor, as in `float32 (3, 4), strides (1, 3), offset 5`; without an offset of 0."""
    shifted = f", offset {offset}" if offset else ""
    return f"{dtype.name} {tuple(shape)}, strides {tuple(strides)}{shifted}"


def describe_attribute(value: Any) -> str:
    """Return an attribute as text; return NULL if the argument is omitted."""
    if value is None:
        return "NULL"
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"


def describe_arguments(run: CallRecord) -> dict[str, str]:
    """Return a text for each argument of a call and each result, by name, in the prototype's order."""
    return {
        name: text
        for parameter in run.prototype.parameters[1:]
        for name, text in _describe_argument(run, parameter.name)
    }


def _describe_argument(run: CallRecord, name: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the description of an argument, or of each tensor of an array."""
    records = [record for record in run.tensors if record.name == name or record.name.startswith(f"{name}.")]
    for record in records[:MAX_TENSORS]:
        yield record.name, describe_tensor(record.dtype, record.shape, record.strides, record.offset)
    if len(records) > MAX_TENSORS:
        yield f"{name}.…", f"{len(records)} tensors in all"
    if not records and (recorded := _find_recorded_name(run, name)):
        yield name, f"the tensor of {recorded}"
        return
    if not records and name in run.case.arguments:
        yield name, describe_attribute(run.case.arguments[name])


def _find_recorded_name(run: CallRecord, name: str) -> str | None:
    """Return the name under which a tensor is recorded that is passed for `name` as well; None if there is none."""
    aliases = run.case.aliases
    source = aliases.get(name, name)
    names = (source, *(alias for alias, argument in aliases.items() if argument == source))
    return next((record.name for record in run.tensors if record.name in names and record.name != name), None)
