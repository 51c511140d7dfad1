"""Convert frozen dataclasses to JSON and back.

A dataclass becomes an object with one key per field: the field's name without a trailing underscore (`class_` becomes
`class`), or the text `key` in the field's metadata. A field whose metadata have a true `omit_default` is omitted if it
has the default value. Enumerations become the names of their members, and sets become sorted lists. Values that JSON
lacks become text: paths, dates (ISO 8601), infinities and NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import Field, fields, is_dataclass
from datetime import date
from enum import Enum
from functools import cache, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from diopi_impl.errors import VendorError

T = TypeVar("T")

SEQUENCE_TYPES = (tuple, Sequence, Collection)
"""The declared types of fields that are read from JSON lists; the value of such a field is always a tuple."""

NONFINITE_TEXTS = ("inf", "-inf", "nan")
"""The texts that stand for the floating-point values that JSON can't represent."""


class RecordError(ValueError):
    """The JSON does not match the dataclass; the message gives the location and the reason."""


def to_json(value: Any) -> Any:
    """Return a dataclass, or the value of a field, as JSON data.

    The data consists of dictionaries, lists, texts, numbers, Booleans and None.
    """
    match value:
        case Enum():
            return value.name
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case date():
            return value.isoformat()
        case Path():
            return str(value)
        case Mapping():
            return {name: to_json(entry) for name, entry in value.items()}
        case Set():
            return sorted(to_json(entry) for entry in value)
        case Collection():
            return [to_json(entry) for entry in value]
    values = ((field, getattr(value, field.name)) for field in fields(value))
    return {
        json_key(field): to_json(entry) for field, entry in values if is_key_required(field) or entry != field.default
    }


def from_json(kind: type[T], value: Any) -> T:
    """Return the dataclass `kind` read from JSON data; raise RecordError if the JSON does not match."""
    declared: Any = kind  # the type checker does not know that a type is hashable
    read: T = _reader(declared)(value, kind.__name__)
    return read


def json_key(field: Field[Any]) -> str:
    """Return the JSON key of a field: `key` in its metadata, or its name without a trailing underscore."""
    return str(field.metadata.get("key", field.name.removesuffix("_")))


def is_key_required(field: Field[Any]) -> bool:
    """Return whether the JSON always contains the key of a field."""
    return not field.metadata.get("omit_default", False)


@cache
def field_types(record: type) -> Mapping[str, Any]:
    """Return the declared types of the fields of a dataclass, by name."""
    return get_type_hints(record)


def optional_type(kind: Any) -> Any:
    """Return X for a type `X | None`, and None for any other type."""
    if get_origin(kind) not in (UnionType, Union):
        return None
    (inner,) = (member for member in get_args(kind) if member is not NoneType)
    return inner


def read_value(kind: Any, value: Any, location: str) -> Any:
    """Return a value of type `kind` read from JSON data.

    Args:
        kind: the type, which may be a union or a generic type.
        value: the JSON data.
        location: the beginning of error messages, which names the place of the value.

    Raises:
        RecordError: The JSON does not match the type.
    """
    return _reader(kind)(value, location)


Reader = Callable[[Any, str], Any]
"""A function that reads a value from JSON. Its second argument is the location of the value, for messages."""


@cache
def _reader(kind: Any) -> Reader:
    """Return the reader of values of type `kind`."""
    if inner := optional_type(kind):
        read_inner = _reader(inner)
        return lambda value, location: None if value is None else read_inner(value, location)
    if is_dataclass(kind):
        return _record_reader(kind)
    if get_origin(kind) is Literal:
        return partial(_read_choice, get_args(kind))
    if get_origin(kind) is Mapping:
        read_entry = _reader(get_args(kind)[1])
        return lambda value, location: {
            name: read_entry(entry, f"{location}.{name}") for name, entry in _check_type(dict, value, location).items()
        }
    if get_origin(kind) in (*SEQUENCE_TYPES, frozenset):
        read_item = _reader(get_args(kind)[0])
        build = frozenset if get_origin(kind) is frozenset else tuple
        return lambda value, location: build(
            [
                read_item(entry, f"{location}[{number}]")
                for number, entry in enumerate(_check_type(list, value, location))
            ]
        )
    if issubclass(kind, Enum):
        return _member_reader(kind)
    return _SCALAR_READERS.get(kind) or partial(_check_type, kind)


def _record_reader(kind: Any) -> Reader:
    """Return the reader of a dataclass."""
    kinds = field_types(kind)
    readers = {json_key(field): (field.name, _reader(kinds[field.name])) for field in fields(kind)}
    required = {json_key(field): None for field in fields(kind) if is_key_required(field)}

    def read(value: Any, location: str) -> Any:
        """Read the dataclass from a JSON object; raise RecordError for unknown and missing keys."""
        record = _check_type(dict, value, location)
        for problem, keys, reference_keys in (("unknown", record, readers), ("missing", required, record)):
            if not keys.keys() <= reference_keys.keys():
                raise RecordError(
                    f"{location}: {problem} {', '.join(key for key in keys if key not in reference_keys)}"
                )
        entries = {}
        for key, entry in record.items():
            name, read_entry = readers[key]
            entries[name] = read_entry(entry, f"{location}.{name}")
        try:
            return kind(**entries)
        except VendorError as error:
            raise RecordError(f"{location}: {error}") from error

    return read


def _member_reader(kind: type[Enum]) -> Reader:
    """Return the reader of an enumeration, which reads the name of a member."""
    members = kind.__members__

    def read(value: Any, location: str) -> Any:
        """Return the member with this name; raise RecordError if there is none."""
        is_name = isinstance(value, str)
        member = members[value] if is_name and value in members else kind._missing_(value) if is_name else None
        if member is None:
            raise RecordError(f"{location}: expected one of {', '.join(members)}, found {value!r}")
        return member

    return read


def _read_choice(choices: tuple[Any, ...], value: Any, location: str) -> Any:
    """Return the value; raise RecordError if it is not one of the choices of a literal type."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise RecordError(f"{location}: expected one of {', '.join(map(repr, choices))}, found {value!r}")
    return value


def _read_float(value: Any, location: str) -> float:
    """Return a number, which JSON has as a number or as the text of an infinity or NaN; raise RecordError otherwise."""
    try:
        number = float(value) if type(value) is int or (type(value) is str and value in NONFINITE_TEXTS) else value
    except OverflowError as error:
        raise RecordError(f"{location}: expected float, found an integer beyond its range") from error
    return _check_type(float, number, location)


def _check_type(kind: type[T], value: Any, location: str) -> T:
    """Return the value; raise RecordError if its type is not exactly `kind`."""
    if type(value) is not kind:
        raise RecordError(f"{location}: expected {kind.__name__}, found {value!r}")
    return value


def _read_date(value: Any, location: str) -> date:
    """Return a date from a TOML date or ISO 8601 text; raise RecordError for other values."""
    with suppress(TypeError, ValueError):
        return value if type(value) is date else date.fromisoformat(value)
    raise RecordError(f"{location}: expected a date such as 2027-01-31, found {value!r}")


def _read_path(value: Any, location: str) -> Path:
    """Return a path read from text; raise RecordError, whose message begins with `location`, for other JSON data."""
    return Path(_check_type(str, value, location))


_SCALAR_READERS: Mapping[Any, Reader] = {float: _read_float, date: _read_date, Path: _read_path}
"""The readers of scalar types for which JSON has no type of its own, or only one that also serves another type."""
