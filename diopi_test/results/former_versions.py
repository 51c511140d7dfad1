"""Conversion of logs and reports of older schema versions to the current version.

Versions 1 and 2 had no declared arithmetic (`numerics`): their runs were evaluated for IEEE 754 arithmetic. Version 1
had other names: `refusal` for the class `negative`, `surroundings` for the check `process_state`, and `meaning` for the
check `validity`.
"""

from __future__ import annotations

from typing import Any

from diopi_test.baseline.codec import to_json
from diopi_test.cases.case import CaseClass
from diopi_test.results.numerics import IEEE_INFO

VERSION_WITH_NUMERICS = 3
"""The first schema version whose reports contain the declared numerics."""

RENAMED_CHECKS = {"meaning": "validity", "surroundings": "process_state"}
"""Current names of checks, by the names under which older versions report them."""


def current_check_name(name: str) -> str:
    """Return the current name of a check; `name` may be its name in an older version."""
    return RENAMED_CHECKS.get(name, name)


def upgrade_case(content: Any) -> Any:
    """Return a case record from a log or report, as parsed JSON, with the current names of its checks.

    Args:
        content: The parsed JSON of a `CaseRecord` of any version. Malformed content is returned unchanged.
    """
    if not isinstance(content, dict) or not isinstance(content.get("checks"), list):
        return content
    return {**content, "checks": [_upgrade_check(check) for check in content["checks"]]}


def upgrade_report(content: dict[str, Any]) -> dict[str, Any]:
    """Return a report, as parsed JSON, with the current names of classes and checks, and with a declared arithmetic.

    Args:
        content: The parsed JSON of a `Report` of any version. Malformed parts are returned unchanged.
    """
    upgraded = {"numerics": to_json(IEEE_INFO), **content} if _is_old(content) else dict(content)
    if isinstance(cases := content.get("cases"), list):
        upgraded["cases"] = [upgrade_case(case) for case in cases]
    summary = content.get("summary")
    if isinstance(summary, dict) and isinstance(classes := summary.get("classes"), dict):
        renamed = {CaseClass.negative.former_name: CaseClass.negative.name}
        current = {renamed.get(name, name): counts for name, counts in classes.items()}
        upgraded["summary"] = {**summary, "classes": current}
    return upgraded


def _is_old(content: dict[str, Any]) -> bool:
    """Return whether a report has a version without declared numerics."""
    version = content.get("schema_version")
    return isinstance(version, int) and version < VERSION_WITH_NUMERICS


def _upgrade_check(check: Any) -> Any:
    """Return a check record with the current name of its check in place of a former name."""
    if not isinstance(check, dict):
        return check
    name = check.get("check")
    return {**check, "check": current_check_name(name)} if isinstance(name, str) else check
