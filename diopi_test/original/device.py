"""Entries of a vendor's `device_configs.py`: which cases of an entry are skipped, and the tolerances it sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, final

from diopi_proto.types import Dtype
from diopi_test.original.source import NotRead, RawEntry, Skipped, Source, problems_in

DICTIONARY = "device_configs"
"""The name of the dictionary in a vendor's file."""

TOLERANCES = ("atol", "rtol", "atol_half", "rtol_half", "mismatch_ratio_threshold")
"""Keys that change how results are compared in the original suite."""

SKIP_ALL = "skip_all"
"""The key of an entry that is skipped altogether: True, or a list of function names."""


class SkipKind(Enum):
    """What the value of a skip is compared with.

    The value of each member except `entry` is the key under which an entry of the file holds such skips.
    """

    entry = "the entry"
    function = "name"
    attribute = "para"
    dtype = "dtype"
    shape = "shape"
    stride = "stride"
    value = "value"


TENSOR_KEYS = (SkipKind.dtype, SkipKind.shape, SkipKind.stride, SkipKind.value)
"""The properties of a single tensor that a vendor's file can skip."""


@final
@dataclass(frozen=True, kw_only=True)
class SkipRule:
    """One skip of an entry: it concerns the cases in which the property `kind` has the value `value`.

    Attributes:
        line: The line of the skip in the file.
        kind: What the value is compared with.
        argument: The name of the tensor or attribute; "" for any tensor.
        value: The value that is skipped; None if the whole entry is skipped.
    """

    line: int
    kind: SkipKind
    argument: str = ""
    value: Any = None

    def __str__(self) -> str:
        """Describe the skip: `Skip(float16) for dtype of input`."""
        if self.kind is SkipKind.entry:
            return SKIP_ALL
        value = self.value.name if isinstance(self.value, Dtype) else repr(self.value)
        if self.kind is SkipKind.attribute:
            return f"Skip({value}) for {self.argument}"
        return f"Skip({value}) for {self.kind.value}" + (f" of {self.argument}" if self.argument else "")


@final
@dataclass(frozen=True, kw_only=True)
class DeviceEntry:
    """An entry of a vendor's `device_configs.py`.

    Attributes:
        name: The name, which is also that of the entry of the case configuration whose cases are meant.
        line: The line of the entry in the file.
        functions: The original names of the functions whose cases are meant; empty for all functions of the entry.
        skips: The skips, each of which concerns some of these cases.
        tolerances: The tolerances that the entry sets, by key of `TOLERANCES`.
        not_read: The expressions that could not be evaluated; the rest of the entry still applies.
    """

    name: str
    line: int
    functions: tuple[str, ...]
    skips: tuple[SkipRule, ...]
    tolerances: Mapping[str, Any]
    not_read: tuple[NotRead, ...]


def is_device_configuration(source: Source) -> bool:
    """Return whether a source is a vendor's `device_configs.py`, which skips cases, and not a case configuration."""
    return any(entry.dictionary == DICTIONARY or _has_skip(entry.content) for entry in source.entries)


def read_device_entry(raw: RawEntry) -> DeviceEntry:
    """Return the parsed entry of a vendor's `device_configs.py`; values of an unexpected form are ignored."""
    content: Mapping[Any, Any] = raw.content
    return DeviceEntry(
        name=raw.name,
        line=raw.line,
        functions=tuple(_unwrap(name) for name in _as_list(content.get("name")) if isinstance(_unwrap(name), str)),
        skips=tuple(_rules(raw.line, content)),
        tolerances={key: content[key] for key in TOLERANCES if key in content},
        not_read=tuple(problems_in(content)),
    )


def _rules(line: int, content: Mapping[Any, Any]) -> Iterator[SkipRule]:
    """Yield the skips of an entry: of all its cases, of functions, element types, attributes, and tensors."""
    skip_all = content.get(SKIP_ALL)
    if isinstance(skip_all, list | tuple | str):
        yield from (SkipRule(line=line, kind=SkipKind.function, value=_unwrap(name)) for name in _as_list(skip_all))
    elif skip_all is True:
        yield SkipRule(line=line, kind=SkipKind.entry)
    yield from _rules_of_list(SkipKind.function, "", content.get("name"))
    yield from _rules_of_list(SkipKind.dtype, "", content.get("dtype"))
    for name, values in _as_dict(content.get("para")).items():
        yield from _rules_of_list(SkipKind.attribute, str(name), values)
    for tensors in map(_as_dict, _as_list(_as_dict(content.get("tensor_para")).get("args"))):
        for name in _as_list(tensors.get("ins", "input")):
            for kind in TENSOR_KEYS:
                yield from _rules_of_list(kind, str(name), tensors.get(kind.value))


def _rules_of_list(kind: SkipKind, argument: str, values: Any) -> Iterator[SkipRule]:
    """Yield a skip for each `Skip(…)` of a list, or for a single one; like the original suite, ignore other values.

    Args:
        kind: What the skips refer to, such as the values or the element types of an argument.
        argument: The name of the argument.
        values: The list or the single value.
    """
    for value in _as_list(values):
        if isinstance(value, Skipped) and not problems_in(value):
            yield SkipRule(line=value.line, kind=kind, argument=argument, value=value.value)


def _has_skip(value: object) -> bool:
    """Return whether the content of an entry skips anything."""
    if isinstance(value, dict):
        return SKIP_ALL in value or any(map(_has_skip, value.values()))
    return isinstance(value, Skipped) or (isinstance(value, list | tuple) and any(map(_has_skip, value)))


def _unwrap(value: Any) -> Any:
    """Return the value in a `Skip(value)`, and any other value unchanged."""
    return value.value if isinstance(value, Skipped) else value


def _as_dict(value: Any) -> Mapping[Any, Any]:
    """Return a dictionary unchanged, and an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any] | tuple[Any, ...]:
    """Return a list or tuple unchanged, nothing for None, and any other value as the only element."""
    if isinstance(value, list | tuple):
        return value
    return () if value is None else (value,)
