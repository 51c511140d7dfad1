"""Regenerate the inputs of levels that do not store them.

Inputs are drawn by random generators again. Inputs that are results of a forward function are computed by its
reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diopi_proto.interface import lookup
from diopi_test.baseline.compaction import argument_digest
from diopi_test.baseline.descriptions import described_cases, generation_command, is_described, resolve_shapes
from diopi_test.baseline.errors import BaselineError
from diopi_test.cases.case import Case
from diopi_test.cases.selection import LEVELS, select_cases
from diopi_test.oracle.evaluation import draw_arguments


def regenerate_arguments(path: Path, function: str, level: str, label: str, sha256: str) -> dict[str, Any]:
    """Regenerate the arguments of a case of the baseline file at `path`.

    Args:
        path: The baseline file.
        function: The name of the function.
        level: The name of the level.
        label: The label of the case.
        sha256: The digest of the inputs from which the stored results were computed.

    Returns:
        The arguments by name.

    Raises:
        BaselineError: The case no longer exists, or its regenerated inputs have another digest.
    """
    data = path.parent.parent
    cases = _regenerated_cases(data, function, level)
    case = next((case for case in cases if case.label == label), None)
    remedy = f"regenerate the file with diopi-test {generation_command(data, level)} --function {function}"
    if case is None:
        raise BaselineError(f"{path} has results of {function}[{label}], a case that no longer exists; {remedy}")
    arguments = draw_arguments(lookup(function), resolve_shapes(function, case))
    if (digest := argument_digest(arguments)) != sha256:
        raise BaselineError(
            f"{path}: the regenerated inputs of {function}[{label}] differ from those of its stored results: "
            f"their sha256 is {digest}, expected {sha256}; {remedy}"
        )
    return arguments


def _regenerated_cases(data: Path, function: str, level: str) -> Sequence[Case]:
    """Return the cases whose inputs are regenerated: the cases that `data` describes, else the cases of the level."""
    if is_described(data):
        return described_cases(data, function)
    return select_cases(function, level) if level in LEVELS else ()
