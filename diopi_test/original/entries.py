"""What an entry of a configuration says: functions, attributes and tensors, a value a case; or which are skipped.

The cases of an entry are numbered: case i has the i-th shape of each tensor and the i-th value of each attribute. They
are repeated for every element type.
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
    """Tensors that are made alike, an entry of `args`; what is a sequence has an entry a case, or is None."""

    names: tuple[str, ...]
    shapes: tuple[Any, ...] | None = None
    dtypes: tuple[Any, ...] | None = None
    strides: tuple[Any, ...] | None = None
    values: tuple[Any, ...] | None = None
    generated: Generated | None = None
    requires_grad: bool = False


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


_ENTRY_KEYS = {"name", "interface", "atol", "rtol", "dtype", "para", "tensor_para", "saved_args", "is_inplace"}
"""Of these, `interface`, `atol`, `rtol` and `saved_args` say what is found or derived here."""

_TENSOR_PARA_KEYS = {"gen_fn", "gen_policy", "args"}
_ARGUMENT_KEYS = {"ins", "shape", "dtype", "requires_grad", "stride", "value", "gen_fn"}
POLICIES = (None, "default", "dtype")
"""How the cases of an entry are made of its lists, `gen_policy`: those of which the meaning is known."""


def read_entry(raw: RawEntry) -> Entry:
    """What a raw entry says; EntryError if that is not understood."""
    if problems := problems_in(raw.content):
        raise EntryError("; ".join(f"line {one.line}: {one.why}" for one in problems[:3]))
    content = raw.content
    _known_keys(content, _ENTRY_KEYS, "")
    para = content.get("tensor_para") or {}
    if not isinstance(para, dict):
        raise EntryError(f"tensor_para: expected a dict, found {para!r}")
    _known_keys(para, _TENSOR_PARA_KEYS, "tensor_para: ")
    if para.get("gen_policy") not in POLICIES:
        raise EntryError(f"tensor_para: gen_policy {para['gen_policy']!r} is not known")
    arguments = para.get("args") or []
    if not isinstance(arguments, list | tuple) or not all(isinstance(one, dict) for one in arguments):
        raise EntryError(f"tensor_para: args: expected a list of dicts, found {arguments!r}")
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
    )


def _tensors(content: Mapping[str, Any]) -> TensorArguments:
    _known_keys(content, _ARGUMENT_KEYS, "args: ")
    names = _texts(content.get("ins"), "args: ins")
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
    )


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


def _known_keys(content: Mapping[Any, Any], known: set[str], where: str) -> None:
    if unknown := [key for key in content if key not in known]:
        raise EntryError(f"{where}{unknown[0]!r} is not known; known are {', '.join(sorted(known))}")


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
    lengths |= {f"stride of {', '.join(t.names)}": len(t.strides) for t in entry.tensors if t.strides is not None}
    lengths |= {name: len(values) for name, values in entry.parameters.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{number} of {name}" for name, number in lengths.items())
        raise EntryError(f"its lists have different lengths: {told}")
    return next(iter(lengths.values()), 0)


def dtypes_by_tensor(entry: Entry) -> Sequence[Mapping[str, Dtype]]:
    """The element types of all tensors, by name, in each repetition of the entry's cases.

    Tensors with the same list have the same type; different lists are combined. Tensors without one are of float32.
    """
    lists = {
        name: tensors.dtypes or entry.dtypes or (Dtype.float32,) for tensors in entry.tensors for name in tensors.names
    }
    lists = lists or {"": entry.dtypes or (Dtype.float32,)}
    if wrong := [one for values in lists.values() for one in values if not isinstance(one, Dtype)]:
        raise EntryError(f"dtype: expected element types such as np.float32, found {wrong[0]!r}")
    rows: list[dict[tuple[Any, ...], Dtype]] = [{}]
    for values in dict.fromkeys(lists.values()):
        rows = [{**row, values: dtype} for row in rows for dtype in values]
    return [{name: row[values] for name, values in lists.items()} for row in rows]
