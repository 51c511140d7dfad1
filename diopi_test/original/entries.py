"""What an entry of a configuration says: functions, attributes and tensors, a value a case; or which are skipped.

The cases of an entry are numbered: case i has the i-th shape of each tensor and the i-th value of each attribute. They
are repeated for every element type; repetition j has the j-th type of each tensor's list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from diopi_proto.types import Dtype
from diopi_test.original.source import Generated, RawEntry, Skipped, problems_in


class EntryError(ValueError):
    """An entry, or a case of it, can't be translated; the message says why."""


@final
@dataclass(frozen=True)
class TensorArguments:
    """Tensors that are made alike, an entry of `args`; what is a sequence has an entry a case, or is None.

    `counts` are the bounds of the number of tensors in an array whose tensors have one shape, without the upper one.
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
@dataclass(frozen=True)
class Entry:
    """An entry of a configuration.

    Attributes:
        name, line: what it is called, and where it stands.
        functions: the names of what is called.
        parameters: the attributes, each with a value a case.
        tensors: the tensor arguments.
        dtypes: the element types of tensors that say none.
        generated: how the values of tensors are made that do not say it.
        is_inplace: whether the in-place form is called as well.
        skipped: those of the functions that are skipped altogether.
        notes: what the entry says that is not understood, and costs nothing.
        label: what the labels of its cases have, if that is not `name`, because an entry before has that.
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
_ENTRY_KEYS = {"name", "interface", "dtype", "para", "tensor_para", "is_inplace"}
_TENSOR_PARA_KEYS = {"gen_fn", "args"}
_ARGUMENT_KEYS = {"ins", "shape", "dtype", "requires_grad", "stride", "value", "gen_fn", "gen_num_range"}
"""The keys that mean something here, and those that say how exact results are in the original."""

_WITHOUT_MEANING = _TOLERANCES | {
    "dtype",
    "gen_policy",
    "no_contiguous",
    "no_output_ref",
    "requires_backward",
    "saved_args",
    "tag",
}
"""The keys without a meaning here. Tolerances, and what a gradient needs, are derived; every result has a reference."""


def read_entry(raw: RawEntry) -> Entry:
    """What a raw entry says; EntryError if that is not understood."""
    content, notes = _known(raw.content, _ENTRY_KEYS, "")
    para, more = _known(_dict(content.get("tensor_para") or {}, "tensor_para"), _TENSOR_PARA_KEYS, "tensor_para: ")
    notes += more
    arguments = []
    for one in _list_of_dicts(para.get("args") or [], "tensor_para: args"):
        argument, more = _known(one, _ARGUMENT_KEYS, "args: ")
        arguments.append(argument)
        notes += more
    if problems := problems_in([{**content, "tensor_para": None}, {**para, "args": None}, arguments]):
        raise EntryError("; ".join(f"line {one.line}: {one.why}" for one in problems[:3]))
    names = _list([given] if isinstance(given := content.get("name", ()), str) else given, "name")
    skipped = tuple(name for name in names if isinstance(name, Skipped))
    parameters = content.get("para") or {}
    if not isinstance(parameters, dict) or not all(isinstance(name, str) for name in parameters):
        raise EntryError(f"para: expected a dict of attributes, found {parameters!r}")
    return Entry(
        raw.name,
        raw.line,
        _texts([name.value if isinstance(name, Skipped) else name for name in names], "name"),
        {name: _list(values, f"para: {name}") for name, values in parameters.items()},
        tuple(_tensors(one) for one in arguments),
        _list(content.get("dtype") or (), "dtype"),
        generated_by(para.get("gen_fn")),
        content.get("is_inplace") in (True, [True], (True,)),
        skipped,
        tuple(dict.fromkeys(notes)),
    )


def _known(content: Mapping[Any, Any], known: set[str], where: str) -> tuple[dict[str, Any], list[str]]:
    """Return the part of a dictionary that has a meaning, and a note for each key whose meaning is not known."""
    unknown = [key for key in content if key not in known | _WITHOUT_MEANING]
    notes = [f"{where}{key!r} is not known, and not taken over" for key in unknown]
    return {key: value for key, value in content.items() if key in known}, notes


def _dict(given: Any, where: str) -> Mapping[Any, Any]:
    if problems := problems_in(given if not isinstance(given, dict) else None):
        raise EntryError(f"line {problems[0].line}: {problems[0].why}")
    if not isinstance(given, dict):
        raise EntryError(f"{where}: expected a dict, found {given!r}")
    return given


def _list_of_dicts(given: Any, where: str) -> Sequence[Mapping[Any, Any]]:
    if not isinstance(given, list | tuple):
        raise EntryError(f"{where}: expected a list of dicts, found {given!r}")
    return [_dict(one, f"{where}: expected a list of dicts") for one in given]


def _tensors(content: Mapping[str, Any]) -> TensorArguments:
    names = _texts(content.get("ins", ("input",)), "args: ins")
    optional = {key: content.get(key) for key in ("shape", "dtype", "stride", "value")}
    lists = {key: None if given is None else _list(given, f"args: {key}") for key, given in optional.items()}
    return TensorArguments(
        names,
        lists["shape"],
        lists["dtype"],
        lists["stride"],
        lists["value"],
        generated_by(content.get("gen_fn")),
        content.get("requires_grad") in (True, [True], (True,)),
        _counts(content.get("gen_num_range")),
    )


def _counts(given: Any) -> tuple[int, int] | None:
    match given:
        case None | [] | ():
            return None
        case [int(low), int(high)] if 0 <= low < high:
            return low, high
    raise EntryError(f"args: gen_num_range: expected two whole numbers, the smaller one first, found {given!r}")


def generated_by(given: Any) -> Generated | None:
    """What `gen_fn` says: a name, `Genfunc.NAME`, or a dict with `fn` and its parameters; None if nothing."""
    match given:
        case None | Generated():
            return given
        case str():
            return Generated(given.removeprefix("Genfunc."))
        case {"fn": str() | Generated() as function, **parameters}:
            made = generated_by(function)
            assert made is not None
            return Generated(made.name, {**made.parameters, **{str(name): value for name, value in parameters.items()}})
    raise EntryError(f"gen_fn: expected 'Genfunc.NAME' or a dict with fn, found {given!r}")


def _texts(given: Any, where: str) -> tuple[str, ...]:
    texts = tuple(given) if isinstance(given, list | tuple) else () if given is None else (given,)
    if not all(isinstance(text, str) for text in texts):
        raise EntryError(f"{where}: expected names, found {given!r}")
    return texts


def _list(given: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(given, list | tuple):
        raise EntryError(f"{where}: expected a list, found {given!r}")
    return tuple(given)


def number_of_cases(entry: Entry) -> int:
    """How many cases an entry has for an element type; EntryError if its lists have different lengths."""
    lengths = {f"shape of {', '.join(t.names)}": len(t.shapes) for t in entry.tensors if t.shapes is not None}
    lengths |= {f"value of {', '.join(t.names)}": len(t.values) for t in entry.tensors if t.values is not None}
    lengths |= {name: len(values) for name, values in entry.parameters.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{number} of {name}" for name, number in lengths.items())
        raise EntryError(f"its lists have different lengths: {told}")
    return next(iter(lengths.values()), 0)


def dtypes_by_tensor(entry: Entry) -> Sequence[Mapping[str, Dtype]]:
    """Return the element types of all tensors, by name, in each repetition of the entry's cases.

    The lists of types are read side by side, as the original does: repetition j has the j-th type of each list. A list
    of one type serves all repetitions, and the shortest of the others says how many there are. Tensors without a list
    have the entry's; without that, they are of float32.

    Raises:
        EntryError: A list has something else than element types.
    """
    usual = entry.dtypes or (Dtype.float32,)
    lists = {name: tensors.dtypes or usual for tensors in entry.tensors for name in tensors.names} or {"": usual}
    if wrong := [one for values in lists.values() for one in values if not isinstance(one, Dtype)]:
        raise EntryError(f"dtype: expected element types such as np.float32, found {wrong[0]!r}")
    count = min((len(values) for values in lists.values() if len(values) > 1), default=1)
    rows = [{name: values[j % len(values)] for name, values in lists.items()} for j in range(count)]
    return [row for number, row in enumerate(rows) if row not in rows[:number]]
