"""Waivers and known flakes, which are cases that may fail, and their application to the records of a run.

`Waivers.apply` and `Waivers.report` take the original records of cases and store nothing. They can therefore be called
at any time: during a run, and when a report is generated from the log.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path

from diopi_impl.base import Waiver, matches
from diopi_proto.interface import prototypes
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.execution.verdict import EXECUTED, Verdict
from diopi_test.results.causes.provisional import possible_causes
from diopi_test.results.causes.signature import ID_DIGITS
from diopi_test.results.pooling import CHECK as POOLED
from diopi_test.results.pooling import is_pooled
from diopi_test.results.records import CaseRecord, Improvement, WaiverReport, WaiverState, WaiverUse
from diopi_test.waivers.tables import TableError, TableKind, read_tables

BADNESS: Mapping[str, int] = {
    "passed": 0,
    "flaky": 1,
    "failed": 2,
    "crashed": 3,
    "timed_out": 3,
    "out_of_memory": 3,
}
"""The rank of a verdict; higher is worse.

A waiver covers its own verdict and the verdicts of lower rank, except `passed`. It does not cover other verdicts of the
same rank."""

WAIVABLE = tuple(verdict.value for verdict in Verdict if BADNESS.get(verdict, 0) >= BADNESS["failed"])
"""The verdicts that a waiver may name as the worst one that it allows."""

_CAUSE_ID = re.compile(f"[0-9a-f]{{{ID_DIGITS}}}")
"""The form of the ID of a cause. A waiver with such an ID covers only cases that fail for this cause."""

NAMED = 5
"""The maximum number of cases that the report lists for an improvement."""


@dataclass(frozen=True)
class Flake:
    """A pattern of cases that are known to be flaky.

    Attributes:
        pattern: a pattern of case IDs, as in a waiver.
        reason: why the cases are flaky, in words for a person.
        retries: how often a failed case is run again.
    """

    pattern: str
    reason: str
    retries: int = 2


@dataclass(frozen=True)
class WaiverRule:
    """A waiver with its source. A known flake is represented by a waiver of the verdict `flaky` with retries.

    Attributes:
        waiver: the waiver.
        source: the path of the waiver file, or the vendor that declares the waiver.
        retries: how often a failed case is run again; 0 unless the rule is a known flake.
    """

    waiver: Waiver
    source: str
    retries: int = 0


@dataclass(frozen=True)
class Waivers:
    """All waivers for the cases of a vendor. If several rules match a case, the first one that covers it applies.

    Attributes:
        entries: the rules, in the order in which they are tried.
        today: the current date; waivers with an earlier expiry date have no effect.
    """

    entries: tuple[WaiverRule, ...] = ()
    today: date = field(default_factory=date.today)

    @classmethod
    def read(cls, paths: Iterable[Path]) -> Waivers:
        """Return the waivers in TOML files; raise TableError if a file can't be used."""
        return cls(tuple(entry for path in paths for entry in _read(path)))

    @classmethod
    def from_vendor(cls, vendor: str, waivers: Sequence[Waiver]) -> Waivers:
        """Return the waivers that a vendor declares; raise TableError if one is invalid."""
        problems = [
            f"vendor {vendor}: waiver {number} ({waiver.pattern}): {problem}"
            for number, waiver in enumerate(waivers, 1)
            for problem in waiver_problems(waiver)
        ]
        if problems:
            raise TableError("\n".join(problems))
        return cls(tuple(WaiverRule(waiver, f"vendor {vendor}") for waiver in waivers))

    def __add__(self, additional: Waivers) -> Waivers:
        """Return these waivers followed by `additional`."""
        return replace(self, entries=self.entries + additional.entries)

    def apply(self, record: CaseRecord) -> CaseRecord:
        """Return the record of a case after the rules were applied.

        Args:
            record: The original record. If the case did not fail, the record is returned unchanged.

        Returns:
            The record with the verdict `waived` if a rule covers the failure. Otherwise, the message also says why the
            matching rules do not cover it.
        """
        if not BADNESS.get(record.verdict, 0):
            return record
        matching = [self.entries[number] for number in self._applying(record)]
        waiving = next((entry for entry in matching if self._waives(entry, record)), None)
        if waiving is None:
            notes = (self._explain_mismatch(entry, record) for entry in matching)
            return replace(record, message="; ".join(filter(None, (record.message, *notes))))
        message = f"{waiving.waiver.reason} ({_change(waiving.waiver, record.verdict)}: {record.message})"
        return replace(record, verdict=Verdict.waived, message=message, waived_verdict=record.verdict)

    def retries_for(self, case_id: str) -> int:
        """Return how often a failed case is retried because it is a known flake; 0 for other cases."""
        return next((n for number in self._matching(case_id) if (n := self.entries[number].retries)), 0)

    def for_cases(self, ids: Iterable[str]) -> Waivers:
        """Return only the rules whose pattern matches at least one of these cases."""
        numbers = {number for case_id in ids for number in self._matching(case_id)}
        return replace(self, entries=tuple(self.entries[number] for number in sorted(numbers)))

    def report(self, records: Sequence[CaseRecord]) -> WaiverReport | None:
        """Return the state of every rule after a run with these original records; None without rules."""
        if not self.entries:
            return None
        tallies = [_Tally() for _ in self.entries]
        for record in records:
            for number in self._matching(record.id):
                case = self.entries[number].waiver.case
                tallies[number].executed += record.verdict in EXECUTED and case in ("", record.id)
            applying = self._applying(record)
            waiving = next((number for number in applying if self._waives(self.entries[number], record)), None)
            for number in applying:
                tallies[number].add(record, number == waiving, waiving is None)
        functions = {record.function for record in records}
        uses = tuple(self._describe_use(*pair, functions) for pair in zip(self.entries, tallies, strict=True))
        improvements = (_improvements(*pair) for pair in zip(self.entries, tallies, strict=True))
        return WaiverReport(uses, tuple(improvement for group in improvements for improvement in group))

    def _matching(self, case_id: str) -> list[int]:
        """Return the indices in `entries` of the rules whose pattern matches a case, in order."""
        candidates = (*self._by_function.get(_function_of(case_id), ()), *self._by_function.get("", ()))
        return sorted(number for number in candidates if self.entries[number].waiver.matches(case_id))

    def _applying(self, record: CaseRecord) -> list[int]:
        """Return the indices of the rules that match a case by pattern and, if they name a cause, also by cause."""
        numbers = self._matching(record.id)
        if not any(self.entries[number].waiver.cause for number in numbers):
            return numbers
        causes = possible_causes(record) if BADNESS.get(record.verdict, 0) else frozenset()
        return [number for number in numbers if not (cause := self.entries[number].waiver.cause) or cause in causes]

    @cached_property
    def _by_function(self) -> Mapping[str, list[int]]:
        """Return the indices of the rules for one function, by function; the key "" has those for several functions."""
        numbers: dict[str, list[int]] = defaultdict(list)
        for number, entry in enumerate(self.entries):
            head, bracket, _ = entry.waiver.pattern.partition("[")
            numbers["" if not bracket or "*" in head or "?" in head else head].append(number)
        return numbers

    def _is_expired(self, waiver: Waiver) -> bool:
        """Return whether the last day on which the waiver applies has passed."""
        return waiver.expires is not None and waiver.expires < self.today

    def _waives(self, entry: WaiverRule, record: CaseRecord) -> bool:
        """Return whether a rule that matches the record allows its outcome and has not expired."""
        return _covers(entry.waiver, record) and not self._is_expired(entry.waiver)

    def _explain_mismatch(self, entry: WaiverRule, record: CaseRecord) -> str:
        """Return why a rule that matches a case does not waive it."""
        waiver = entry.waiver
        if _covers(waiver, record):
            return f"the waiver of this case expired on {waiver.expires} ({waiver.reason})"
        return f"the waiver of this case allows only {_allowance(waiver)} ({waiver.reason})"

    def _describe_use(self, entry: WaiverRule, tally: _Tally, functions: Iterable[str]) -> WaiverUse:
        """Return how a rule was used in a run: its state, and the numbers of cases that it matched and waived.

        Args:
            entry: The rule.
            tally: The outcomes of the cases that the rule matches.
            functions: The functions of the cases that the run contained.
        """
        matched = sum(tally.verdicts.values())
        is_tried = bool(entry.waiver.cause and tally.executed) or _concerns_pool_of(entry.waiver, functions)
        if not matched and is_tried:
            state = WaiverState.not_needed
        elif not matched:
            is_untried = entry.waiver.case or _concerns_only_untested(entry.waiver, functions)
            state = WaiverState.not_tried if is_untried else WaiverState.matched_nothing
        elif tally.waived:
            state = WaiverState.used
        elif not tally.left:
            is_tried = bool(tally.executed) or not entry.waiver.case
            state = WaiverState.not_needed if is_tried else WaiverState.not_tried
        else:
            state = WaiverState.expired if self._is_expired(entry.waiver) else WaiverState.exceeded
        return WaiverUse(
            waiver=entry.waiver,
            source=entry.source,
            retries=entry.retries,
            state=state,
            matched=matched,
            waived=tally.waived,
        )


@dataclass(kw_only=True)
class _Tally:
    """The outcomes of the cases that a rule matches.

    Attributes:
        executed: the number of executed cases that the pattern matches, whatever their cause is. If the rule names a
            case, only this case counts.
        verdicts: the number of cases that the rule matches by its pattern and its cause, by verdict.
        waived: the number of cases that this rule waives.
        left: the number of matched cases that failed and that no rule waives.
        better: the IDs of the cases that this rule waives, and of the matched cases that passed, by verdict.
    """

    executed: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    waived: int = 0
    left: int = 0
    better: dict[Verdict, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, record: CaseRecord, is_waived: bool, is_unwaived: bool) -> None:
        """Count a record that the rule matches.

        Args:
            record: The record.
            is_waived: Whether this rule waives the record.
            is_unwaived: Whether no rule waives it.
        """
        self.verdicts[record.verdict] += 1
        self.waived += is_waived
        self.left += bool(BADNESS.get(record.verdict, 0)) and is_unwaived
        if is_waived or record.verdict is Verdict.passed:
            self.better[record.verdict].append(record.id)


def waiver_problems(waiver: Waiver) -> Iterator[str]:
    """Yield a message for each invalid key of a waiver."""
    yield from _text_problems(waiver)
    if waiver.verdict is not None and waiver.verdict not in WAIVABLE:
        yield f"verdict: expected one of {', '.join(WAIVABLE)}, found {waiver.verdict!r}"
    if waiver.cause and not _CAUSE_ID.fullmatch(waiver.cause):
        yield f"cause: expected an ID of {ID_DIGITS} hexadecimal digits such as 'e92a6042', found {waiver.cause!r}"
    if waiver.case and not (waiver.cause and waiver.matches(waiver.case)):
        yield f"case: expected a case with the cause of the waiver that its pattern matches, found {waiver.case!r}"
    ratio = waiver.max_ratio
    if ratio is not None and not 1 < ratio < math.inf:
        yield f"max_ratio: expected a number above 1 (a case with a ratio up to 1 passes), found {ratio!r}"
    if ratio is not None and waiver.verdict is not None:
        yield f"verdict and max_ratio: expected only one of these keys, found {waiver.verdict!r} and {ratio!r}"


def least_ratio(record: CaseRecord) -> float | None:
    """Return the factor by which the limits of the errors would have to grow for a case to pass.

    These are the limits of single errors and of the root mean square of the errors.

    Args:
        record: The record of the case.

    Returns:
        The factor; None if the case passed, or failed for another reason as well.
    """
    failed = [finding for finding in record.checks if not finding.passed]
    if [finding.check for finding in failed] not in (["values"], [POOLED]):
        return None
    ratio = failed[0].excess
    return ratio if ratio > 1 else None


def _text_problems(entry: Waiver | Flake) -> Iterator[str]:
    """Yield the problems of the pattern and the reason of a waiver or a known flake."""
    if not entry.pattern:
        yield "pattern: expected a pattern of case IDs such as 'diopiAdd[*float16*]', found ''"
    if "[[]" in entry.pattern or "[]]" in entry.pattern:
        plain = entry.pattern.replace("[[]", "[").replace("[]]", "]")
        yield f"pattern: brackets need no escape; expected {plain!r}, found {entry.pattern!r}"
    if not entry.reason.strip():
        yield f"reason: expected a description of the defect, found {entry.reason!r}"


def _flake_problems(flake: Flake) -> Iterator[str]:
    """Yield the problems of a known flake."""
    yield from _text_problems(flake)
    if flake.retries < 1:
        yield f"retries: expected at least 1, found {flake.retries}"


_TABLES = {
    "waiver": TableKind(Waiver, "pattern", waiver_problems),
    "flaky": TableKind(Flake, "pattern", _flake_problems),
}
"""The kinds of tables of a waiver file: their class, the field that identifies an entry, and the check of an entry."""


def _read(path: Path) -> Iterator[WaiverRule]:
    """Yield the rules of a waiver file, first waivers, then known flakes; raise TableError if the file is invalid."""
    tables = read_tables(path, _TABLES)
    yield from (WaiverRule(waiver, str(path)) for waiver in tables["waiver"])
    for flake in tables["flaky"]:
        yield WaiverRule(Waiver(flake.pattern, flake.reason, verdict="flaky"), str(path), flake.retries)


def _allowed(waiver: Waiver) -> str:
    """Return the worst verdict that a waiver allows."""
    return waiver.verdict or Verdict.failed.value


def _allowance(waiver: Waiver) -> str:
    """Return a text for the outcomes that a waiver allows."""
    return _allowed(waiver) if waiver.max_ratio is None else f"error / budget up to {waiver.max_ratio:g}"


def _covers(waiver: Waiver, record: CaseRecord) -> bool:
    """Return whether a waiver allows the outcome of a failed case, whatever its pattern, cause and expiry are."""
    if waiver.max_ratio is not None:
        ratio = least_ratio(record)
        return record.verdict is Verdict.failed and ratio is not None and ratio <= waiver.max_ratio
    return record.verdict == _allowed(waiver) or 0 < BADNESS.get(record.verdict, 0) < BADNESS[_allowed(waiver)]


def remove_waiver(record: CaseRecord) -> CaseRecord:
    """Return the record of a case as it was before a waiver was applied; the record itself if it is not waived.

    Args:
        record: the record of a case in a report.
    """
    verdict = record.waived_verdict
    if verdict is None:
        return record
    match = re.search(rf"\((?:\w+ → )?{verdict}: (?P<message>.*)\)\Z", record.message, re.S)
    message = match["message"] if match else record.message
    return replace(record, verdict=verdict, message=message, waived_verdict=None)


def _change(waiver: Waiver, verdict: Verdict) -> str:
    """Return a text with the allowed and the actual verdict, such as `crashed → failed`, or one word if they agree."""
    allowed = _allowed(waiver)
    return allowed if verdict == allowed else f"{allowed} → {verdict}"


def _function_of(case_id: str) -> str:
    """Return the function of a case, which its ID names before the bracket."""
    return case_id.partition("[")[0]


def _concerns_pool_of(waiver: Waiver, functions: Iterable[str]) -> bool:
    """Return whether a waiver matches records of pooled errors of one of these functions.

    Such a record exists only if the pooled errors of the function are too large.
    """
    return is_pooled(waiver.pattern) and any(matches(waiver.pattern.partition("[")[0], name) for name in functions)


def _concerns_only_untested(waiver: Waiver, functions: Iterable[str]) -> bool:
    """Return whether the pattern of a waiver matches standard functions, but none of `functions`, which were run."""
    function_pattern = waiver.pattern.partition("[")[0]
    return not any(matches(function_pattern, name) for name in functions) and any(
        matches(function_pattern, name) for name in (*prototypes(), RUNTIME)
    )


def _improvements(entry: WaiverRule, tally: _Tally) -> Iterator[Improvement]:
    """Yield the verdicts of cases that ended better than a rule allows.

    Passed cases are an improvement only if no matched case failed, because the rule is needed otherwise.
    """
    was = _allowed(entry.waiver)
    is_needed = any(BADNESS.get(verdict, 0) for verdict in tally.verdicts)
    for now, cases in tally.better.items():
        if now != was and not (now is Verdict.passed and is_needed):
            yield Improvement(
                pattern=entry.waiver.pattern, was=was, now=now, number=len(cases), first=tuple(cases[:NAMED])
            )
