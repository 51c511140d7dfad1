"""Read the report of a run as a program does that relies on the schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

from diopi_test.baseline.codec import from_json, to_json
from diopi_test.results.records import Report
from diopi_test.results.schema import FILE

_VALIDATOR = jsonschema.Draft202012Validator(json.loads(FILE.read_text("utf-8")))
"""The committed schema of reports."""


def read_report(path: Path) -> dict[str, Any]:
    """Return the JSON of a report; assert that it fits the committed schema and survives reading and writing."""
    content: dict[str, Any] = json.loads(path.read_text("utf-8"), parse_constant=_refuse)
    _VALIDATOR.validate(content)
    assert to_json(from_json(Report, content)) == content
    return content


def _refuse(constant: str) -> None:
    """Raise ValueError for NaN and Infinity, which are not JSON."""
    raise ValueError(f"{constant} is no JSON")
