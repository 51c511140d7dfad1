"""A declaration as the text of a TOML file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from diopi_impl.numerics.declaration import Numerics
from diopi_impl.numerics.digest import to_table


def to_toml(numerics: Numerics) -> str:
    """Return the text of a TOML file that declares the arithmetic; `read_numerics` reads it.

    Args:
        numerics: the declaration. Fields with their default value are omitted, apart from the name.
    """
    return "".join(f"{line}\n" for line in _lines(numerics))


def _lines(numerics: Numerics) -> Iterator[str]:
    """Yield the lines of the file: first the plain fields, then the tables."""
    content = {"name": numerics.name, **to_table(numerics)}
    yield from (f"{key} = {_value(value)}" for key, value in content.items() if not isinstance(value, Mapping))
    for key, table in content.items():
        if isinstance(table, Mapping):
            yield ""
            yield f"[{key}]"
            yield from (f"{name} = {_value(value)}" for name, value in table.items())


def _value(value: Any) -> str:
    """Return a value in TOML. A list of tables with one entry is written as a table."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return repr(value) if not value.is_integer() or math.isinf(value) or abs(value) >= 1e15 else str(int(value))
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_value(entry)}' for key, entry in value.items())} }}"
    if len(value) == 1 and isinstance(value[0], Mapping):
        return _value(value[0])
    if value and isinstance(value[0], Mapping):
        return "[" + "".join(f"\n    {_value(entry)}," for entry in value) + "\n]"
    return f"[{', '.join(map(_value, value))}]"
