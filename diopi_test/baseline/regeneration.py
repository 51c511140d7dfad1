"""Redraw inputs for levels that do not store them: with the generators, and with the reference if they are results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diopi_proto.interface import lookup
from diopi_test.baseline.compaction import argument_digest
from diopi_test.baseline.descriptions import described_cases, generation_command, is_described, resolve_shapes
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.evaluate import draw_arguments
from diopi_test.cases.model import Case
from diopi_test.cases.selection import LEVELS, select_cases


def regenerate_arguments(path: Path, function: str, level: str, label: str, sha256: str) -> dict[str, Any]:
    """The arguments of a case of the file at `path`.

    Raises BaselineError if there is no such case any more, or its inputs are not those of which `sha256` is the digest.
    """
    data = path.parent.parent
    cases = _cases(data, function, level)
    case = next((case for case in cases if case.label == label), None)
    remedy = f"make it again with diopi-test {generation_command(data, level)} --function {function}"
    if case is None:
        raise BaselineError(f"{path} has results of {function}[{label}], which there is not any more; {remedy}")
    arguments = draw_arguments(lookup(function), resolve_shapes(function, case))
    if (found := argument_digest(arguments)) != sha256:
        raise BaselineError(
            f"{path}: the inputs of {function}[{label}], drawn again, are not those its results were computed from: "
            f"their sha256 is {found}, expected {sha256}; {remedy}"
        )
    return arguments


def _cases(data: Path, function: str, level: str) -> Sequence[Case]:
    """Return the cases whose inputs are drawn: those that the folder `data` describes, else those of the level."""
    if is_described(data):
        return described_cases(data, function)
    return select_cases(function, level) if level in LEVELS else ()
