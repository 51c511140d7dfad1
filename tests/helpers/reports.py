"""Reading the report of a run as those do who rely on its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

from diopi_test.baseline.codec import from_json, to_json
from diopi_test.results.records import Report
from diopi_test.results.schema import FILE

_VALIDATOR = jsonschema.Draft202012Validator(json.loads(FILE.read_text("utf-8")))


def read_report(path: Path) -> dict[str, Any]:
    """The JSON in a file, which fits the committed schema, and is that of the report that is read from it."""
    content: dict[str, Any] = json.loads(path.read_text("utf-8"), parse_constant=_refuse)
    _VALIDATOR.validate(content)
    assert to_json(from_json(Report, content)) == content
    return content


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
