"""The digest of a declaration, and the declaration as a table of TOML."""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, Field, fields
from typing import Any

Declaration = Any
"""A `Numerics`, whose module imports this one."""

LABELS = frozenset({"name", "sources"})
"""The fields that do not concern the arithmetic."""


def to_table(numerics: Declaration) -> dict[str, Any]:
    """Return the declaration as a table of plain values, without fields that have their default value."""
    return _non_default_fields(numerics)


def compute_digest(numerics: Declaration) -> str:
    """Return the SHA-256 of the declared arithmetic, which does not depend on the name and the sources."""
    arithmetic = {key: value for key, value in to_table(numerics).items() if key not in LABELS}
    return hashlib.sha256(json.dumps(arithmetic, sort_keys=True).encode()).hexdigest()


def _non_default_fields(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults, as plain values."""
    values = {item.name: (item, getattr(record, item.name)) for item in fields(record)}
    return {name: _plain(value) for name, (item, value) in values.items() if value != _default(item)}


def _default(item: Field[Any]) -> Any:
    """Return the default value of a field."""
    return item.default if item.default_factory is MISSING else item.default_factory()


def _plain(value: Any) -> Any:
    """Return a value of a field as text, number, list or table."""
    if isinstance(value, (str, float)):
        return value
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    return _non_default_fields(value)
