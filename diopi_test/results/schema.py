"""The JSON Schemas of the reports of a run and of a plan, derived from their dataclasses."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from diopi_test.baseline.codec import (
    NONFINITE_TEXTS,
    SEQUENCE_TYPES,
    field_types,
    is_key_required,
    json_key,
    optional_type,
)
from diopi_test.results.records import SCHEMA_VERSION, PlanReport, Report

FILE = Path(__file__).with_name("report.schema.json")
"""The committed schema of the report of a run."""

PLAN_FILE = Path(__file__).with_name("plan_report.schema.json")
"""The committed schema of the report of a plan."""

PLAIN = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    date: {"type": "string", "format": "date"},
}
"""The schemas of simple types. The schema of float is in `_schema_of`."""

Schema = dict[str, Any]


def render_schemas() -> dict[str, str]:
    """Return the texts of both schema files, by file name."""
    schemas = {FILE: report_schema(), PLAN_FILE: plan_schema()}
    return {file.name: json.dumps(schema, indent=1) + "\n" for file, schema in schemas.items()}


def report_schema() -> Schema:
    """Return the schema of the output of `diopi-test run --json`."""
    return _schema(Report, "Report of diopi-test run")


def plan_schema() -> Schema:
    """Return the schema of the output of `diopi-test run --plan FILE --json`."""
    return _schema(PlanReport, "Report of diopi-test run --plan")


def _schema(kind: Any, title: str) -> Schema:
    """Return the JSON Schema of a dataclass, with the definitions of all dataclasses that it contains."""
    definitions: dict[str, Schema] = {}
    reference = _schema_of(kind, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{title}, version {SCHEMA_VERSION}",
        **reference,
        "$defs": dict(sorted(definitions.items())),
    }


def _schema_of(kind: Any, definitions: dict[str, Schema]) -> Schema:
    """Return the schema of a type, and add the schemas of the dataclasses that it contains to `definitions`."""
    if inner := optional_type(kind):
        return {"anyOf": [_schema_of(inner, definitions), {"type": "null"}]}
    if is_dataclass(kind):
        return _reference_to(kind, definitions)
    if get_origin(kind) is Mapping:
        return {"type": "object", "additionalProperties": _schema_of(get_args(kind)[1], definitions)}
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if get_origin(kind) in (*SEQUENCE_TYPES, frozenset):
        return {"type": "array", "items": _schema_of(get_args(kind)[0], definitions)}
    if issubclass(kind, Enum):
        return {"enum": list(kind.__members__)}
    return {"anyOf": [{"type": "number"}, {"enum": list(NONFINITE_TEXTS)}]} if kind is float else PLAIN[kind]


def _reference_to(record: Any, definitions: dict[str, Schema]) -> Schema:
    """Add the schema of a dataclass to the definitions and return a reference to it."""
    if record.__name__ not in definitions:
        kinds = field_types(record)
        definitions[record.__name__] = {
            "description": (inspect.getdoc(record) or "").split("\n\n")[0],
            "type": "object",
            "properties": {json_key(field): _schema_of(kinds[field.name], definitions) for field in fields(record)},
            "required": [json_key(field) for field in fields(record) if is_key_required(field)],
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{record.__name__}"}
