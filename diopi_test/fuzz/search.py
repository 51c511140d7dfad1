"""A search for failing calls: Hypothesis generates and shrinks them, and the seed determines all of them.

The search visits the functions in rounds, so that each gets its share of the time. It reports each defect of a function
once: a call that fails in the same checks as an earlier finding is not a new one.
"""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import final
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, Verbosity, assume, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky, Unsatisfiable
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.strategies import DataObject

from diopi_test.baseline.shuffle import shuffle_by_seed
from diopi_test.cases.case import Case
from diopi_test.execution.verdict import UNSUCCESSFUL, Outcome, Verdict
from diopi_test.fuzz.calls import LONGEST, cases
from diopi_test.fuzz.findings import FuzzFinding
from diopi_test.fuzz.known import known
from diopi_test.fuzz.legal import IllegalError, compute_legal_case
from diopi_test.fuzz.smaller import smaller
from diopi_test.fuzz.statistics import Statistics
from diopi_test.fuzz.trial import Trials, collected
from diopi_test.oracle.records import BaselineCase
from diopi_test.waivers.rules import Waivers

EXAMPLES = 12
"""Sequences of calls that are drawn of a function in a round."""

SHRINKS = 250
"""Attempts to make a finding smaller: so many by Hypothesis, and as many by size and layout."""

REMEMBERED = 200
"""Calls of a process that may be to blame for a later one."""


class WrongError(Exception):
    """A sequence of calls failed."""


class EndError(BaseException):
    """The search of a function ends. Hypothesis would catch an Exception and continue."""


Signature = tuple[str, ...]


def signature(outcome: Outcome) -> Signature:
    """Return what two outcomes of the same defect have in common: the verdict and the failed checks.

    Args:
        outcome: the outcome of a call.

    Returns:
        The verdict and the names of the failed checks.
    """
    verdict = Verdict.failed if outcome.verdict is Verdict.flaky else outcome.verdict
    return verdict.value, *sorted(finding.check for finding in outcome.check_results if not finding.passed)


def drawing_by_the_seed_alone() -> AbstractContextManager[object]:
    """Return a context in which only the seed determines what Hypothesis generates.

    Hypothesis also uses numbers from the source of imported modules and has no setting to prevent this. The same seed
    would
    generate other calls in another process.

    Returns:
        The context.
    """
    return patch.object(HypothesisProvider, "_maybe_draw_constant", lambda *_, **__: None, create=True)


@final
@dataclass(kw_only=True)
class Search:
    """A search for failing calls of one vendor.

    Attributes:
        until: the time (`time.monotonic`) at which the search ends.
        report: called with each finding.
        check: called before each call; an exception ends the search.
        statistics: the statistics by function.
    """

    trials: Trials
    seed: int
    until: float
    report: Callable[[FuzzFinding], None]
    check: Callable[[], None] = lambda: None
    waivers: Waivers = field(default_factory=Waivers)
    statistics: dict[str, Statistics] = field(default_factory=lambda: defaultdict(Statistics))

    def run(self, functions: Sequence[str], rounds: int | None = None) -> None:
        """Search in these functions until the time is up, or for so many rounds; VendorError if the vendor dies."""
        absent: set[str] = set()
        found: dict[str, set[Signature]] = defaultdict(set)
        for number in islice(count(1), rounds):
            order = [name for name in shuffle_by_seed(functions, self.seed + number) if name not in absent]
            for function in order:
                if time.monotonic() >= self.until:
                    return
                hunt = Hunt(self, function, found[function])
                hunt.go(self._seed_of(function, number))
                if set(self.statistics[function].verdicts) == {Verdict.not_implemented}:
                    absent.add(function)
            if not order:
                return

    def _seed_of(self, function: str, number: int) -> int:
        digest = hashlib.sha256(f"{self.seed}\0{function}\0{number}".encode()).digest()
        return int.from_bytes(digest[:8], "little")


@final
class Hunt:
    """One round for a function: run sequences of calls until one fails, then search for smaller ones that fail."""

    def __init__(self, search: Search, function: str, found: set[Signature]) -> None:
        self._search = search
        self._known = known(function)
        self._statistics = search.statistics[function]
        self._found = found
        self._history: list[BaselineCase] = []
        self._smallest: FuzzFinding | None = None
        self._smallest_case: Case
        self._signature: Signature = ()
        self._anew = False
        self._attempts = 0

    def go(self, number: int) -> None:
        """Search with the seed `number`, and report the finding."""
        try:
            with drawing_by_the_seed_alone():
                self._search_from(number)
            self._shrink_further()
        finally:
            if self._smallest is not None:  # when it is interrupted, too
                self._found.add(self._signature)
                self._search.report(replace(self._smallest, attempts=self._attempts))

    def _search_from(self, number: int) -> None:
        """Have Hypothesis draw calls, and smaller ones of those that go wrong."""

        @seed(number)
        @settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            print_blob=False,
            verbosity=Verbosity.quiet,
        )
        @given(st.data())
        def attempt(data: DataObject) -> None:
            self._attempt(data)

        try:
            attempt()
        except (WrongError, Flaky, Unsatisfiable):
            pass
        except EndError as end:
            if end.__cause__ is not None:
                raise end.__cause__ from None

    def _shrink_further(self) -> None:
        """Shrink a failing call for as long as one of the `smaller` calls fails as well."""
        while self._smallest is not None and not self._anew:
            if not any(self._goes_wrong_too(case) for case in smaller(self._known, self._smallest_case)):
                return

    def _goes_wrong_too(self, case: Case) -> bool:
        """Return whether a smaller call fails in the same way as the finding, and make it the smallest one."""
        self._search.check()
        if time.monotonic() >= self._search.until or self._attempts >= 2 * SHRINKS:
            return False
        try:
            call = compute_legal_case(self._known, case)
        except IllegalError:
            return False
        self._attempts += 1
        outcome = self._search.trials.run([call])[0]
        if not self._is_new(call, outcome):
            return False
        self._smallest, self._smallest_case = FuzzFinding([call], outcome), case
        return True

    def _attempt(self, data: DataObject) -> None:
        self._search.check()
        if time.monotonic() >= self._search.until or self._attempts >= SHRINKS:
            raise EndError
        pairs = list(self._draw_calls(data))
        assume(pairs)
        calls = [call for _, call in pairs]
        outcomes = self._run(calls, anew=self._anew)
        failed = next((i for i, outcome in enumerate(outcomes) if self._is_new(calls[i], outcome)), None)
        if not self._signature:
            self._statistics.verdicts.update(outcome.verdict for outcome in outcomes)
            self._history += calls
        else:
            self._attempts += 1
        if {outcome.verdict for outcome in outcomes} == {Verdict.not_implemented}:
            raise EndError
        if failed is not None:
            self._smallest_case = pairs[failed][0]
            self._take(calls[: failed + 1], outcomes[failed])

    def _draw_calls(self, data: DataObject) -> Iterator[tuple[Case, BaselineCase]]:
        """Yield the legal calls of a generated sequence: each is a new call, or the previous one with some changes."""
        earlier: Case | None = None
        for place in range(data.draw(st.integers(1, LONGEST))):
            try:
                again = earlier if earlier is not None and data.draw(st.booleans()) else None
                earlier = data.draw(cases(self._known, again))
                call = compute_legal_case(self._known, replace(earlier, label=f"{earlier.label}.{place}"))
            except IllegalError as error:
                if self._smallest is None:
                    self._statistics.discarded[str(error)] += 1
                continue
            if self._smallest is None:
                self._statistics.count(call)
            yield earlier, call

    def _is_new(self, call: BaselineCase, outcome: Outcome) -> bool:
        """Return whether a call fails in a new way; while shrinking, in the same way as the finding."""
        if outcome.verdict not in UNSUCCESSFUL:
            return False
        if self._search.waivers.apply(collected(call).record(outcome, 0.0)).verdict is Verdict.waived:
            return False
        new_signature = signature(outcome)
        return new_signature == self._signature if self._signature else new_signature not in self._found

    def _take(self, calls: Sequence[BaselineCase], outcome: Outcome) -> None:
        """Record calls of which the last failed; raise WrongError so that Hypothesis searches for smaller ones."""
        if not self._signature:
            self._signature = signature(outcome)
            self._look_for_cause(calls, outcome)
        self._smallest = FuzzFinding(calls if self._anew else calls[-1:], outcome)
        raise WrongError

    def _look_for_cause(self, calls: Sequence[BaselineCase], outcome: Outcome) -> None:
        """Find out in new processes which calls the last call needs to fail.

        The last call may fail on its own, after the calls of its sequence, or after earlier calls.

        Raises:
            EndError: if the last call fails only after earlier calls.
        """
        self._smallest = FuzzFinding(calls[-1:], outcome)
        if self._goes_wrong(calls[-1:]):
            return
        self._anew = True
        if not self._goes_wrong(calls):
            self._smallest = FuzzFinding(self._needed(calls[-1]), outcome)
            raise EndError

    def _needed(self, last: BaselineCase) -> list[BaselineCase]:
        """Return the last call and those earlier calls of this process without which it would pass."""
        before = [call for call in self._history if call is not last][-REMEMBERED:]
        size = max(len(before) // 2, 1)
        while before and size:
            for start in range(0, len(before), size):
                remaining = before[:start] + before[start + size :]
                if self._goes_wrong([*remaining, last]):
                    before = remaining
                    break
            else:
                size //= 2
        return [*before, last]

    def _goes_wrong(self, calls: Sequence[BaselineCase]) -> bool:
        self._attempts += 1
        if self._attempts > SHRINKS or time.monotonic() >= self._search.until:
            return False
        unique = [replace(call, label=f"{call.label}.{place}") for place, call in enumerate(calls)]
        return self._run(unique, anew=True)[-1].verdict in UNSUCCESSFUL

    def _run(self, calls: Sequence[BaselineCase], *, anew: bool) -> list[Outcome]:
        """Return the outcomes of the calls; raise EndError if they can't run, which is not a failure of the vendor."""
        try:
            return self._search.trials.run(calls, anew=anew)
        except Exception as error:
            raise EndError from error
