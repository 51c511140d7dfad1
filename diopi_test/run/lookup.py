"""Find a case by its ID or by a unique part of its ID; load a stored case, or derive a case from a stored case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import final

from diopi_proto.interface import lookup
from diopi_proto.messages import suggest
from diopi_test.baseline.level import open_level_of_file
from diopi_test.baseline.store import BaselineFile
from diopi_test.cases.case import CaseClass
from diopi_test.execution.aliased import aliased_targets, make_aliased_case
from diopi_test.execution.conversions import convert
from diopi_test.execution.flaw import Flaw
from diopi_test.execution.ignored import make_ignored_case
from diopi_test.execution.in_flight import KINDS, Chain, OpenFile, choose_members
from diopi_test.execution.negative_cases import make_negative_case
from diopi_test.execution.soak import SoakTest, choose_soak_cases
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.collection import Collected, collect_file
from diopi_test.run.limits import CaseOptions

DEFAULT_OPTIONS = CaseOptions()
"""The options under which a case is loaded unless the caller passes others."""

MAX_SIMILAR_IDS = 10
"""The maximum number of similar IDs in a message."""


class CaseLookupError(ValueError):
    """No case or several cases match; the message names similar ones."""


@final
@dataclass(frozen=True, kw_only=True)
class LoadedCase:
    """A case with its data.

    Attributes:
        case: the case.
        base: the stored case from which it is derived; None if the case itself is stored.
        flaw: the reason why the call of a negative test is invalid; None for other cases.
        chain: the calls of a case of class `concurrent`, of which `case` is the first; None for other cases.
        soak: the calls of a case of class `soak`, of which `case` is the first; None for other cases.
    """

    case: BaselineCase
    base: BaselineCase | None = None
    flaw: Flaw | None = None
    chain: Chain | None = None
    soak: SoakTest | None = None

    @property
    def calls(self) -> Sequence[BaselineCase]:
        """Return the cases whose calls a chain or a soak test consists of; for other cases, only the case itself."""
        if self.soak is not None:
            return self.soak.cases
        return [self.case] if self.chain is None else self.chain.cases


def load_case(
    file: BaselineFile,
    collected: Collected,
    options: CaseOptions = DEFAULT_OPTIONS,
    *,
    open_file: OpenFile | None = None,
) -> LoadedCase:
    """Load a case from a baseline file: apply the conversions to the stored case, and derive the case if necessary.

    Args:
        file: The baseline file.
        collected: The case.
        options: The conversions to apply, and the number of calls of chains and soak tests.
        open_file: Opens the files of other functions, for chains of several functions; by default they are next to
            `file`.

    Returns:
        The case.

    Raises:
        BaselineError: The file is damaged.
        KeyError: The case can't be derived from its stored case.
    """
    convert_case = partial(convert, names=options.conversions)
    if collected.case_class is CaseClass.concurrent:
        members = choose_members(
            collected.label, file, open_file or partial(_open_next_to, file), options.in_flight, convert_case
        )
        chain = Chain(KINDS[collected.label], members)
        return LoadedCase(case=_first_of(members, collected), base=members[0], chain=chain)
    if collected.case_class is CaseClass.soak:
        members = list(map(convert_case, choose_soak_cases(file)))
        test = SoakTest(cases=members, count=options.soak_calls, seconds=options.soak_seconds)
        return LoadedCase(case=_first_of(members, collected), base=members[0], soak=test)
    stored = convert_case(file.case(collected.base or collected.label))
    return _derive_case(stored, collected) if collected.base else LoadedCase(case=stored)


def _derive_case(stored: BaselineCase, collected: Collected) -> LoadedCase:
    """Return a negative test, or a case with aliased or ignored arguments, that is derived from a stored case."""
    if collected.case_class is CaseClass.negative:
        negative = make_negative_case(stored, collected.label)
        return LoadedCase(case=negative.case, base=stored, flaw=negative.flaw)
    prototype = lookup(stored.function)
    if collected.label in aliased_targets(prototype):
        return LoadedCase(case=make_aliased_case(stored, collected.label, prototype), base=stored)
    return LoadedCase(case=make_ignored_case(stored, collected.label), base=stored)


def _first_of(members: Sequence[BaselineCase], collected: Collected) -> BaselineCase:
    """Return a chain or a soak test as a case: its first call, with the label and the class of the derived case."""
    return replace(members[0], label=collected.label, case_class=collected.case_class, smoke=False)


def _open_next_to(file: BaselineFile, function: str) -> BaselineFile | None:
    """Open the baseline file of a function at the level of `file`; return None if the level has none."""
    level = open_level_of_file(file.path)
    return level.open(function) if function in level.functions else None


def find_case(paths: Sequence[Path], words: str) -> tuple[Path, Collected]:
    """Return the case whose ID is `words`, or the only case whose ID contains it, with its file.

    Args:
        paths: The baseline files of the functions to search.
        words: `function[label]` or a part of it. Case is ignored in a part.

    Returns:
        The baseline file and the case.

    Raises:
        CaseLookupError: No case or several cases match; the message names similar ones.
    """
    cases = [(path, case) for path in _files(paths, words) for case in collect_file(path)]
    exact = [stored for stored in cases if stored[1].id == words]
    matching = exact or [stored for stored in cases if words.casefold() in stored[1].id.casefold()]
    if len(matching) == 1:
        return matching[0]
    ids = [case.id for _, case in matching or cases]
    if matching:
        raise CaseLookupError(f"{words!r} matches {len(ids)} cases: {_join_names(ids)}")
    similar = get_close_matches(words, ids, MAX_SIMILAR_IDS, cutoff=0) if ids else _similar_functions(paths, words)
    raise CaseLookupError(f"no case matches {words!r}.{suggest(similar)}")


def _files(paths: Sequence[Path], words: str) -> Iterator[Path]:
    """Yield the files of the functions that `words` names, or all files if it names no function."""
    function, bracket, _ = words.partition("[")
    if bracket:
        exact = [path for path in paths if path.stem == function]
        return iter(exact or [path for path in paths if path.stem.casefold().endswith(function.casefold())])
    named = [path for path in paths if function.casefold() in path.stem.casefold()]
    return iter(named or paths)


def _similar_functions(paths: Sequence[Path], words: str) -> list[str]:
    """Return functions with names similar to the function in `words`; `paths` are the files of all functions."""
    function = words.partition("[")[0]
    return get_close_matches(function, [path.stem for path in paths], MAX_SIMILAR_IDS, cutoff=0.4)


def _join_names(names: Sequence[str]) -> str:
    """Return the first names as text, with the number of all others."""
    suffix = f", … ({len(names) - MAX_SIMILAR_IDS} more)" if len(names) > MAX_SIMILAR_IDS else ""
    return ", ".join(names[:MAX_SIMILAR_IDS]) + suffix
