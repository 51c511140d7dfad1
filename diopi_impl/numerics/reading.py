"""Declarations in TOML files: the files that ship, the files of users, and the files next to compiled libraries."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from diopi_impl.numerics.declaration import ErrorBound, Numerics
from diopi_impl.numerics.elementary import ELEMENTARY_FUNCTIONS
from diopi_impl.numerics.validation import NumericsError, describe_choice
from diopi_proto.messages import describe_unknown

SUFFIX = ".numerics.toml"
"""The suffix of the declaration next to a compiled library: `libdiopi_impl.numerics.toml` for `libdiopi_impl.so`."""

_DECLARATION_FOLDER = files("diopi_impl.numerics").joinpath("shipped")
"""The folder of the declarations that are part of this package."""


def find_numerics(name: str) -> Numerics:
    """Return a declaration.

    Args:
        name: the name of a declaration that ships, or the path of a TOML file, which ends with `.toml`.

    Returns:
        The declaration.

    Raises:
        NumericsError: if there is no such declaration, or if it is invalid.
    """
    if name.endswith(".toml"):
        return read_numerics(Path(name))
    if name not in shipped_names():
        unknown = describe_unknown(name, shipped_names(), "declarations")
        raise NumericsError(f"numerics {unknown} Pass one of these names, or the path of a .toml file.")
    return shipped_numerics(name)


def read_numerics(path: Path) -> Numerics:
    """Return the declaration in a TOML file; raise NumericsError if the file is invalid.

    Args:
        path: a file with the fields of `Numerics` as keys. `elementary` is a table with a table per function, or with
            an array of tables for a function with several ranges. The name of the file is the default of `name`.

    Returns:
        The declaration.

    Raises:
        NumericsError: if the file can't be read, or if its content is invalid. The message begins with the path.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise NumericsError(f"numerics {path}: {error}") from error
    numerics = _parse(text, str(path), default_name=path.name.partition(".")[0])
    check_name(numerics, f"numerics {path}")
    return numerics


def read_numerics_of_library(library: Path) -> Numerics | None:
    """Return the declaration next to a compiled library; None if there is no such file.

    Args:
        library: the path of the library.

    Raises:
        NumericsError: if the file is invalid.
    """
    path = library.with_suffix(SUFFIX)
    return read_numerics(path) if path.exists() else None


@cache
def shipped_names() -> tuple[str, ...]:
    """Return the names of the declarations that ship, `ieee` first."""
    names = sorted(
        entry.name.removesuffix(".toml") for entry in _DECLARATION_FOLDER.iterdir() if entry.name.endswith(".toml")
    )
    return tuple(sorted(names, key=lambda name: (name != "ieee", name)))


@cache
def shipped_numerics(name: str) -> Numerics:
    """Return a declaration that ships."""
    return _parse(_DECLARATION_FOLDER.joinpath(f"{name}.toml").read_text("utf-8"), f"{name}.toml", default_name=name)


def check_name(numerics: Numerics, place: str) -> None:
    """Raise NumericsError if a declaration has the name, but not the arithmetic, of a declaration that ships.

    Args:
        numerics: the declaration.
        place: what declares it; the beginning of the message.

    Raises:
        NumericsError: if the declaration has the name of another one.
    """
    if numerics.name in shipped_names() and numerics.digest != shipped_numerics(numerics.name).digest:
        raise NumericsError(
            f"{place}: name: {numerics.name!r} is the name of a declaration that ships with another arithmetic; "
            f"expected a name other than {', '.join(map(repr, shipped_names()))}"
        )


def _parse(text: str, place: str, default_name: str) -> Numerics:
    """Return the declaration in a TOML text; raise NumericsError with the place in each line."""
    try:
        content = {"name": default_name, **tomllib.loads(text)}
    except ValueError as error:
        raise NumericsError(f"numerics {place}: the file is not valid TOML: {error}") from error
    try:
        _check_keys(content, Numerics, "")
        if isinstance(elementary := content.get("elementary"), dict):
            content["elementary"] = {name: _read_bounds(name, tables) for name, tables in elementary.items()}
        return Numerics(**content)
    except NumericsError as error:
        lines = str(error).splitlines()
        raise NumericsError("\n".join(f"numerics {place}: {line}" for line in lines)) from error


def _read_bounds(name: str, tables: Any) -> tuple[ErrorBound, ...]:
    """Return the error bounds of a function from a table or an array of tables.

    Raises:
        NumericsError: No elementary function has this name, or a table is invalid.
    """
    place = f"elementary.{name}"
    if name not in ELEMENTARY_FUNCTIONS:
        raise NumericsError(describe_choice("elementary", ELEMENTARY_FUNCTIONS, name))
    rows: Sequence[Any] = tables if isinstance(tables, list) else [tables]
    return tuple(_read_bound(f"{place}[{number}]" if len(rows) > 1 else place, row) for number, row in enumerate(rows))


def _read_bound(place: str, table: Any) -> ErrorBound:
    """Return an error bound from a table; raise NumericsError with the place if the table is invalid."""
    if not isinstance(table, dict):
        raise NumericsError(f"{place}: expected a table such as {{ ulp = 2 }}, found {table!r}")
    _check_keys(table, ErrorBound, f"{place}.")
    try:
        return ErrorBound(**table)
    except NumericsError as error:
        raise NumericsError("\n".join(f"{place}.{line}" for line in str(error).splitlines())) from error


def _check_keys(table: Mapping[str, Any], record: type, prefix: str) -> None:
    """Check the keys of a table.

    Args:
        table: The table.
        record: The dataclass whose fields are the valid keys.
        prefix: The place of the table, which precedes a key in the message.

    Raises:
        NumericsError: The table has a key that is not a field of the dataclass.
    """
    known = [item.name for item in fields(record)]
    if unknown := [key for key in table if key not in known]:
        raise NumericsError(
            "\n".join(f"{prefix}{key}: field {describe_unknown(key, known, 'fields')}" for key in unknown)
        )
