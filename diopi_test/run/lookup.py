"""Lookup of a case by its ID or a unique part of it, and loading it, as stored or derived from a stored case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import final

from diopi_proto.interface import lookup
from diopi_proto.messages import suggest
from diopi_test.baseline.store import BaselineFile
from diopi_test.cases.case import CaseClass
from diopi_test.execution.aliased import aliased_targets, make_aliased_case
from diopi_test.execution.conversions import convert
from diopi_test.execution.flaw import Flaw
from diopi_test.execution.ignored import make_ignored_case
from diopi_test.execution.negative_cases import make_negative_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.collection import Collected, collect_file

NEAR = 10
"""The maximum number of similar IDs in a message."""


class CaseLookupError(ValueError):
    """No case or several cases match; the message names similar ones."""


@final
@dataclass(frozen=True)
class LoadedCase:
    """A case with its data.

    Attributes:
        case: the case.
        base: the stored case from which it is derived; None if the case itself is stored.
        flaw: the flaw of a negative test, else None.
    """

    case: BaselineCase
    base: BaselineCase | None = None
    flaw: Flaw | None = None


def load_case(file: BaselineFile, collected: Collected, conversions: Sequence[str] = ()) -> LoadedCase:
    """Load a case from a baseline file and apply the conversions; raise BaselineError if the file is damaged."""
    stored = convert(file.case(collected.base or collected.label), conversions)
    if not collected.base:
        return LoadedCase(stored)
    if collected.case_class is CaseClass.negative:
        negative = make_negative_case(stored, collected.label)
        return LoadedCase(negative.case, stored, negative.flaw)
    prototype = lookup(stored.function)
    if collected.label in aliased_targets(prototype):
        return LoadedCase(make_aliased_case(stored, collected.label, prototype), stored)
    return LoadedCase(make_ignored_case(stored, collected.label), stored)


def find_case(paths: Sequence[Path], words: str) -> tuple[Path, Collected]:
    """Return the case whose ID is `words`, or the only case whose ID contains it, with its file.

    Args:
        paths: The baseline files; only files whose function may match are opened.
        words: `function[label]` or a part of it. Case is ignored in a part.

    Returns:
        The baseline file and the case.

    Raises:
        CaseLookupError: No case or several cases match; the message names similar ones.
    """
    cases = [(path, case) for path in _files(paths, words) for case in collect_file(path)]
    exact = [found for found in cases if found[1].id == words]
    matching = exact or [found for found in cases if words.casefold() in found[1].id.casefold()]
    if len(matching) == 1:
        return matching[0]
    ids = [case.id for _, case in matching or cases]
    if matching:
        raise CaseLookupError(f"{words!r} matches {len(ids)} cases: {_listed(ids)}")
    near = get_close_matches(words, ids, NEAR, cutoff=0) if ids else _near_functions(paths, words)
    raise CaseLookupError(f"no case matches {words!r}.{suggest(near)}")


def _files(paths: Sequence[Path], words: str) -> Iterator[Path]:
    """Return the files that may contain a case with `words` in its ID."""
    function, bracket, _ = words.partition("[")
    if bracket:
        exact = [path for path in paths if path.stem == function]
        return iter(exact or [path for path in paths if path.stem.casefold().endswith(function.casefold())])
    named = [path for path in paths if function.casefold() in path.stem.casefold()]
    return iter(named or paths)


def _near_functions(paths: Sequence[Path], words: str) -> list[str]:
    """Return functions with a name similar to the one that was not found."""
    function = words.partition("[")[0]
    return get_close_matches(function, [path.stem for path in paths], NEAR, cutoff=0.4)


def _listed(names: Sequence[str]) -> str:
    """Join the first names, and state how many more there are."""
    more = f", … ({len(names) - NEAR} more)" if len(names) > NEAR else ""
    return ", ".join(names[:NEAR]) + more
