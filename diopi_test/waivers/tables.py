"""Read arrays of tables from TOML files as dataclasses, and report all problems of a file at once."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any

from diopi_proto.messages import describe_unknown
from diopi_test.baseline.codec import RecordError, field_types, json_key, read_value


class TableError(ValueError):
    """A TOML file has problems. The message has one line per problem, with file, table and key."""


@dataclass(frozen=True)
class TableKind:
    """A kind of table, and how to read and check it.

    Attributes:
        record: the dataclass as which a table is read. Its fields are the keys; those without a default are required.
        named_by: the key whose value identifies a table in messages, in addition to its number.
        problems: returns the problems of a record whose keys have the right types. Each message begins with the key.
    """

    record: type
    named_by: str
    problems: Callable[[Any], Iterable[str]]


def read_tables(path: Path, kinds: Mapping[str, TableKind]) -> dict[str, tuple[Any, ...]]:
    """Read the tables of a TOML file.

    Args:
        path: The file.
        kinds: The kinds of tables, by the name of the table.

    Returns:
        The records of the tables, by the name of the table.

    Raises:
        TableError: The file can't be read or has problems; the message lists all of them.
    """
    content = _parse(path)
    table_names = ", ".join(f"[[{name}]]" for name in kinds)
    problems = [f"{path}: {key!r} is not a known table, expected {table_names}" for key in content if key not in kinds]
    records: dict[str, tuple[Any, ...]] = {}
    for name, kind in kinds.items():
        tables = content.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            problems.append(f"{path}: {name} is {tables!r}, expected tables that begin with [[{name}]]")
            continue
        read = [
            _read_table(kind, table, _describe_place(path, name, kind, i, table)) for i, table in enumerate(tables, 1)
        ]
        problems += [problem for _, problems_of_table in read for problem in problems_of_table]
        records[name] = tuple(record for record, _ in read)
    if problems:
        raise TableError("\n".join(problems))
    return records


def _parse(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; raise `TableError` if it can't be read."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"the file is not valid TOML: {error}"
        raise TableError(f"{path}: {reason}") from error


def _describe_place(path: Path, name: str, kind: TableKind, number: int, table: Mapping[str, Any]) -> str:
    """Return the file, kind and number of a table, and its name if it has one, for messages."""
    title = table.get(kind.named_by)
    return f"{path}: [[{name}]] {number}" + (f" ({title})" if isinstance(title, str) and title else "")


def _read_table(kind: TableKind, table: Mapping[str, Any], place: str) -> tuple[Any, Sequence[str]]:
    """Return the record of a table and its problems; the record is None if the table is malformed.

    Args:
        kind: The kind of table.
        table: The content of the table.
        place: The position of the table in its file, with which the text of each problem begins.
    """
    by_key = {json_key(field): field for field in fields(kind.record)}
    problems = [f"{place}: key {describe_unknown(key, by_key, 'keys')}" for key in table if key not in by_key]
    problems += [
        f"{place}: {key} is missing" for key, field in by_key.items() if _is_required(field) and key not in table
    ]
    values: dict[str, Any] = {}
    for key, field in by_key.items():
        if key in table:
            try:
                values[field.name] = read_value(field_types(kind.record)[field.name], table[key], f"{place}: {key}")
            except RecordError as error:
                problems.append(str(error))
    if problems:
        return None, problems
    record = kind.record(**values)
    return record, [f"{place}: {problem}" for problem in kind.problems(record)]


def _is_required(field: Field[Any]) -> bool:
    """Return whether a dataclass field has no default."""
    return field.default is MISSING and field.default_factory is MISSING
