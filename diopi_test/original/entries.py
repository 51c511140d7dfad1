"""Entries of a case configuration: functions, attributes and tensors, with one value per case.

The cases of an entry are numbered: case i has the i-th shape of each tensor and the i-th value of each attribute. The
cases are repeated for every element type; repetition j has the j-th type of each tensor's list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from diopi_proto.types import Dtype
from diopi_test.original.source import Generated, RawEntry, Skipped, problems_in


class EntryError(ValueError):
    """An entry or one of its cases can't be translated; the message contains the reason."""


@final
@dataclass(frozen=True, kw_only=True)
class TensorArguments:
    """An element of the list `args` of an entry: tensors that share their specification.

    Attributes:
        names: The names of the tensors.
        shapes: The shape in each case; None if there is no list.
        dtypes: The element type in each repetition of the cases; None if there is no list.
        strides: The strides in each case; None if there is no list.
        values: The elements in each case; None if there is no list.
        generated: The generator of the elements; None for the generator of the entry.
        requires_grad: Whether the gradient of the tensors is tested, too.
        counts: For an array of tensors of the same shape, the bounds of its length; the upper bound is exclusive. None
            if the entry states none.
    """

    names: tuple[str, ...]
    shapes: tuple[Any, ...] | None = None
    dtypes: tuple[Any, ...] | None = None
    strides: tuple[Any, ...] | None = None
    values: tuple[Any, ...] | None = None
    generated: Generated | None = None
    requires_grad: bool = False
    counts: tuple[int, int] | None = None


@final
@dataclass(frozen=True, kw_only=True)
class ConfigEntry:
    """A parsed entry of a case configuration.

    Attributes:
        name: The name of the entry.
        line: The line of the entry in the file.
        functions: The original names of the functions to call.
        parameters: The values of each attribute, one per case, by the attribute's original name.
        tensors: The tensor arguments.
        dtypes: The element types, one per repetition, of tensors that have no list of their own.
        generated: The generator of the elements of tensors that state none; None if the entry states none either.
        is_inplace: Whether the in-place form is called as well.
        skipped: The functions that are skipped for all cases.
        notes: A note for each key that is unknown and ignored.
        label: The part of the cases' labels that stands for the entry, if it differs from the escaped name because an
            earlier entry has the same name.
    """

    name: str
    line: int
    functions: tuple[str, ...]
    parameters: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    tensors: tuple[TensorArguments, ...] = ()
    dtypes: tuple[Any, ...] = ()
    generated: Generated | None = None
    is_inplace: bool = False
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    label: str = ""


_TOLERANCES = {"atol", "rtol", "atol_half", "rtol_half", "mismatch_ratio_threshold"}
"""The keys of an entry that state tolerances, which are not used."""

_ENTRY_KEYS = {"name", "interface", "dtype", "para", "tensor_para", "is_inplace"}
"""The keys of an entry that are read."""

_TENSOR_PARA_KEYS = {"gen_fn", "args"}
"""The keys of `tensor_para` that are read."""

_ARGUMENT_KEYS = {"ins", "shape", "dtype", "requires_grad", "stride", "value", "gen_fn", "gen_num_range"}
"""The keys of an element of `args` that are read."""

_IGNORED_KEYS = _TOLERANCES | {
    "dtype",
    "gen_policy",
    "no_contiguous",
    "no_output_ref",
    "requires_backward",
    "saved_args",
    "tag",
}
"""The keys that are ignored: tolerances and the inputs of gradients are derived, and every result has a reference."""


def read_entry(raw: RawEntry) -> ConfigEntry:
    """Parse an entry.

    Args:
        raw: The entry as the source file has it.

    Returns:
        The parsed entry.

    Raises:
        EntryError: A key has a value of an unexpected form, or an expression could not be read.
    """
    content, para, arguments, notes = _read_parts(raw)
    names = _check_list([name_value] if isinstance(name_value := content.get("name", ()), str) else name_value, "name")
    skipped = tuple(name for name in names if isinstance(name, Skipped))
    parameters = content.get("para") or {}
    if not isinstance(parameters, dict) or not all(isinstance(name, str) for name in parameters):
        raise EntryError(f"para: expected a dict of attributes, found {parameters!r}")
    return ConfigEntry(
        name=raw.name,
        line=raw.line,
        functions=_check_names([name.value if isinstance(name, Skipped) else name for name in names], "name"),
        parameters={name: _check_list(values, f"para: {name}") for name, values in parameters.items()},
        tensors=tuple(_parse_tensors(tensor_content) for tensor_content in arguments),
        dtypes=_check_list(content.get("dtype") or (), "dtype"),
        generated=parse_generator(para.get("gen_fn")),
        is_inplace=content.get("is_inplace") in (True, [True], (True,)),
        skipped=skipped,
        notes=tuple(dict.fromkeys(notes)),
    )


def _read_parts(raw: RawEntry) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]], list[str]]:
    """Return the known keys of an entry, of its `tensor_para`, and of each element of `args`, and notes about others.

    Raises:
        EntryError: A part is not a dictionary or list, or contains an expression that could not be evaluated.
    """
    content, notes = _split_keys(raw.content, _ENTRY_KEYS, "")
    para, more = _split_keys(
        _check_dict(content.get("tensor_para") or {}, "tensor_para"), _TENSOR_PARA_KEYS, "tensor_para: "
    )
    notes += more
    arguments = []
    for tensor_content in _check_dicts(para.get("args") or [], "tensor_para: args"):
        argument, more = _split_keys(tensor_content, _ARGUMENT_KEYS, "args: ")
        arguments.append(argument)
        notes += more
    if problems := problems_in([{**content, "tensor_para": None}, {**para, "args": None}, arguments]):
        raise EntryError("; ".join(f"line {problem.line}: {problem.reason}" for problem in problems[:3]))
    return content, para, arguments, notes


def _split_keys(content: Mapping[Any, Any], known_keys: set[str], context: str) -> tuple[dict[str, Any], list[str]]:
    """Return the known keys of a dictionary with their values, and a note with the prefix `context` per unknown key."""
    unknown = [key for key in content if key not in known_keys | _IGNORED_KEYS]
    notes = [f"{context}the key {key!r} is unknown and ignored" for key in unknown]
    return {key: value for key, value in content.items() if key in known_keys}, notes


def _check_dict(value: Any, context: str) -> Mapping[Any, Any]:
    """Return the value; raise EntryError unless it is a dictionary."""
    if problems := problems_in(value if not isinstance(value, dict) else None):
        raise EntryError(f"line {problems[0].line}: {problems[0].reason}")
    if not isinstance(value, dict):
        raise EntryError(f"{context}: expected a dict, found {value!r}")
    return value


def _check_dicts(value: Any, context: str) -> Sequence[Mapping[Any, Any]]:
    """Return the values; raise EntryError unless they are a list of dictionaries."""
    if not isinstance(value, list | tuple):
        raise EntryError(f"{context}: expected a list of dicts, found {value!r}")
    return [_check_dict(element, f"{context}: expected a list of dicts") for element in value]


def _parse_tensors(content: Mapping[str, Any]) -> TensorArguments:
    """Return the tensors that an element of `args` describes; raise EntryError if a key has an unexpected value."""
    names = _check_names(content.get("ins", ("input",)), "args: ins")
    optional = {key: content.get(key) for key in ("shape", "dtype", "stride", "value")}
    lists = {key: None if values is None else _check_list(values, f"args: {key}") for key, values in optional.items()}
    return TensorArguments(
        names=names,
        shapes=lists["shape"],
        dtypes=lists["dtype"],
        strides=lists["stride"],
        values=lists["value"],
        generated=parse_generator(content.get("gen_fn")),
        requires_grad=content.get("requires_grad") in (True, [True], (True,)),
        counts=_parse_counts(content.get("gen_num_range")),
    )


def _parse_counts(value: Any) -> tuple[int, int] | None:
    """Return the bounds of an array's length from `gen_num_range`: at least the first number, less than the second.

    Returns:
        The two numbers; None if the entry has no bounds.

    Raises:
        EntryError: The value is not two integers in increasing order.
    """
    match value:
        case None | [] | ():
            return None
        case [int(low), int(high)] if 0 <= low < high:
            return low, high
    raise EntryError(f"args: gen_num_range: expected two integers in increasing order, found {value!r}")


def parse_generator(value: Any) -> Generated | None:
    """Parse the value of `gen_fn`.

    Args:
        value: A name, `Genfunc.NAME`, a dict with `fn` and its parameters, or None.

    Returns:
        The generator; None if there is none.

    Raises:
        EntryError: The value has another form.
    """
    match value:
        case None | Generated():
            return value
        case str():
            return Generated(value.removeprefix("Genfunc."))
        case {"fn": str() | Generated() as function, **parameters}:
            generated = parse_generator(function)
            assert generated is not None
            return Generated(
                generated.name, {**generated.parameters, **{str(name): value for name, value in parameters.items()}}
            )
    raise EntryError(f"gen_fn: expected 'Genfunc.NAME' or a dict with fn, found {value!r}")


def _check_names(value: Any, context: str) -> tuple[str, ...]:
    """Return a name or a list of names as a tuple; raise EntryError for other values."""
    texts = tuple(value) if isinstance(value, list | tuple) else () if value is None else (value,)
    if not all(isinstance(text, str) for text in texts):
        raise EntryError(f"{context}: expected names, found {value!r}")
    return texts


def _check_list(value: Any, context: str) -> tuple[Any, ...]:
    """Return a list as a tuple; raise EntryError for other values."""
    if not isinstance(value, list | tuple):
        raise EntryError(f"{context}: expected a list, found {value!r}")
    return tuple(value)


def count_cases(entry: ConfigEntry) -> int:
    """Return the number of cases of an entry per element type; raise EntryError if its lists differ in length."""
    lengths = {f"shape of {', '.join(t.names)}": len(t.shapes) for t in entry.tensors if t.shapes is not None}
    lengths |= {f"value of {', '.join(t.names)}": len(t.values) for t in entry.tensors if t.values is not None}
    lengths |= {name: len(values) for name, values in entry.parameters.items()}
    if len(set(lengths.values())) > 1:
        listing = ", ".join(f"{number} of {name}" for name, number in lengths.items())
        raise EntryError(f"the lists of the entry have different lengths: {listing}")
    return next(iter(lengths.values()), 0)


def dtypes_by_tensor(entry: ConfigEntry) -> Sequence[Mapping[str, Dtype]]:
    """Return the element types of all tensors, by name, in each repetition of the entry's cases.

    Like the original suite, repetition j takes the j-th type of each list. A list with a single type serves all
    repetitions, and the shortest of the other lists determines their number. Tensors without a list use the list of the
    entry; if the entry has none, they are float32. Repetitions with the same types as an earlier one are left out.

    Args:
        entry: The entry.

    Returns:
        A mapping per repetition, from the names of tensors to element types.

    Raises:
        EntryError: A list contains a value that is not an element type.
    """
    defaults = entry.dtypes or (Dtype.float32,)
    lists = {name: tensors.dtypes or defaults for tensors in entry.tensors for name in tensors.names} or {"": defaults}
    if invalid := [value for values in lists.values() for value in values if not isinstance(value, Dtype)]:
        raise EntryError(f"dtype: expected element types such as np.float32, found {invalid[0]!r}")
    count = min((len(values) for values in lists.values() if len(values) > 1), default=1)
    rows = [{name: values[j % len(values)] for name, values in lists.items()} for j in range(count)]
    return [row for number, row in enumerate(rows) if row not in rows[:number]]
