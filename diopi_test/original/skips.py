"""From the `Skip(…)` of a vendor's configuration to waivers for the cases that are meant."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

from diopi_proto.types import Dtype
from diopi_test.original.entries import Entry
from diopi_test.original.names import meanings
from diopi_test.original.source import Skipped
from diopi_test.original.translate import NotTranslated, Translated, label_of


@final
@dataclass(frozen=True)
class ImportedWaiver:
    """A waiver: for which cases, and where it comes from."""

    pattern: str
    reason: str

    @property
    def toml(self) -> str:
        """Its entry in a file of waivers."""
        return f"[[waiver]]\npattern = {json.dumps(self.pattern)}\nreason = {json.dumps(self.reason)}\n"


@final
@dataclass(frozen=True)
class _Skip:
    """One `Skip(…)`: of which list it is an entry (`of` names the tensor or attribute), and what it skips."""

    skipped: Skipped
    kind: str
    of: str

    def means(self, one: Translated) -> bool:
        """Whether a translated case has the value."""
        if self.kind == "name":
            return bool(one.origin.function == self.skipped.value)
        if self.kind == "dtype":
            own = [dtype for name, dtype in one.origin.dtypes.items() if not self.of or name == self.of]
            return self.skipped.value in own
        return self.of in one.origin.given and _same(one.origin.given[self.of], self.skipped.value)

    @property
    def shown(self) -> str:
        """The skip in words."""
        value = self.skipped.value
        of = f" of {self.of}" if self.of and self.kind in ("dtype", "shape") else ""
        shown = value.name if isinstance(value, Dtype) else repr(value)
        return f"Skip({shown}) for {self.kind}{of}"


def waivers(file: str, entry: Entry, translated: Sequence[Translated]) -> Iterator[ImportedWaiver | NotTranslated]:
    """The waivers for what an entry of a vendor's configuration skips, among the translated cases.

    What is skipped of an entry of which no case is translated is looked for among the project's own cases: an element
    type is part of their names, other values are not.
    """
    own = [one for one in translated if one.origin.entry == entry.name and _is_of(entry, one)]
    for skip in _skips(entry):
        reason = f"{file}, line {skip.skipped.line}: {skip.shown} in {entry.name}"
        patterns = _of_cases(skip, own) if own else _of_own(skip, entry)
        yield from (ImportedWaiver(pattern, reason) for pattern in patterns)
        if not patterns:
            why = f"no case of {entry.name} has it" if own else _why(entry)
            yield NotTranslated(skip.skipped.line, f"{entry.name}: {skip.shown}", why)


def _is_of(entry: Entry, one: Translated) -> bool:
    """Whether a case is of one of an entry's functions, if it names any."""
    return not entry.functions or one.origin.function in entry.functions


def _skips(entry: Entry) -> Iterator[_Skip]:
    yield from (_Skip(one, "name", "") for one in entry.skipped)
    listed: list[tuple[str, str, Sequence[Any]]] = [("dtype", "", entry.dtypes)]
    listed += [(name, name, values) for name, values in entry.parameters.items()]
    for tensors in entry.tensors:
        for name in tensors.names:
            listed += [("dtype", name, tensors.dtypes or ()), ("shape", name, tensors.shapes or ())]
    yield from (_Skip(one, kind, of) for kind, of, values in listed for one in values if isinstance(one, Skipped))


def _of_cases(skip: _Skip, own: Sequence[Translated]) -> list[str]:
    """Patterns for those of an entry's cases that a skip means: one for all of an element type, where it means all."""
    meant = [one for one in own if skip.means(one)]
    ids, groups = {one.case.id for one in meant}, defaultdict(list)
    for one in own:
        groups[f"{one.case.function}[{one.case.dtype.name}-{label_of(one.origin.entry)}-*]"].append(one.case.id)
    patterns = []
    for pattern, members in groups.items():
        wanted = [id for id in members if id in ids]
        patterns += [pattern] if len(wanted) == len(members) > 1 else wanted
    return patterns


def _of_own(skip: _Skip, entry: Entry) -> list[str]:
    """Patterns for the project's own cases of the entry's functions."""
    names = [skip.skipped.value] if skip.kind == "name" else entry.functions
    functions = dict.fromkeys(found[0].prototype.name for name in names if (found := meanings(name)))
    if skip.kind == "name":
        return [f"{function}[*]" for function in functions]
    value = skip.skipped.value
    return [f"{function}[{value.name}-*]" for function in functions] if isinstance(value, Dtype) else []


def _why(entry: Entry) -> str:
    if not entry.functions or not any(meanings(name) for name in entry.functions):
        return f"{', '.join(entry.functions) or 'it'} names no standard function"
    return f"no case of {entry.name} is translated: name the case configuration, too"


def _same(one: Any, other: Any) -> bool:
    """Whether two values of a configuration are one; lists and tuples are alike, True and 1 are not."""
    return repr(_plain(one)) == repr(_plain(other))


def _plain(value: Any) -> Any:
    return tuple(_plain(entry) for entry in value) if isinstance(value, list | tuple) else value
