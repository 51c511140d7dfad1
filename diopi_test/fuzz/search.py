"""A search for failing calls: Hypothesis generates and shrinks them, and the seed determines all of them.

The search visits the functions in rounds, so that each gets its share of the time. It reports each defect of a function
once: a call that fails in the same checks as an earlier finding is not a new one.
"""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
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
from diopi_test.cases.case import Case, CaseClass
from diopi_test.execution.verdict import UNSUCCESSFUL, CheckResult, Outcome, Verdict
from diopi_test.fuzz.calls import MAX_CALLS, cases
from diopi_test.fuzz.changes.chances import SOMETIMES, VERY_RARELY
from diopi_test.fuzz.derived import aliased_calls, chains
from diopi_test.fuzz.findings import FuzzFinding
from diopi_test.fuzz.knowledge import count_elements, knowledge_of
from diopi_test.fuzz.legal import MAX_TOTAL_ELEMENTS, IllegalError, compute_legal_case
from diopi_test.fuzz.smaller import smaller_calls
from diopi_test.fuzz.statistics import SearchStatistics
from diopi_test.fuzz.trial import TrialRunner, to_collected
from diopi_test.oracle.records import BaselineCase, tensors_in
from diopi_test.results.records import CaseRecord
from diopi_test.run.collection import Collected
from diopi_test.waivers.rules import Waivers

EXAMPLES_PER_ROUND = 12
"""Number of call sequences that are drawn per function and round."""

MAX_SHRINKS = 250
"""Maximum number of attempts to shrink a finding, by Hypothesis and again by size and layout."""

MAX_HISTORY = 200
"""Maximum number of earlier calls of a process that are considered as the cause of a failure."""


KNOWN_PERIOD = 4
"""The search visits functions with known failures in one of this many rounds."""

REPETITIONS = 600
"""The number of times that a call is repeated, rarely, to find defects that only some calls have."""

MAX_REPEATED = 300
"""The maximum number of elements of the arguments of a call that is repeated many times."""


class SequenceFailedError(Exception):
    """A sequence of calls failed; Hypothesis receives this exception and shrinks the sequence."""


class EndSearchError(BaseException):
    """Ends the search of a function. Hypothesis would catch a subclass of Exception and continue."""


Signature = tuple[str, ...]
"""What outcomes of the same defect have in common, see `failure_signature`."""


def failure_signature(verdict: Verdict, checks: Iterable[CheckResult], case_class: CaseClass) -> Signature:
    """Return what two outcomes of the same defect have in common.

    Args:
        verdict: the verdict on a call.
        checks: the results of its checks.
        case_class: the class of the call; only `aliased` and `concurrent` count.

    Returns:
        The verdict, where `flaky` counts as `failed`; the class if it counts; and the names of the failed checks.
    """
    effective_verdict = Verdict.failed if verdict is Verdict.flaky else verdict
    derived = [case_class.value] if case_class in (CaseClass.aliased, CaseClass.concurrent) else []
    return effective_verdict.value, *derived, *sorted(result.check for result in checks if not result.passed)


def known_failures(records: Iterable[CaseRecord]) -> dict[str, set[Signature]]:
    """Return the signatures of the failed cases of an earlier run, by function."""
    signatures: dict[str, set[Signature]] = defaultdict(set)
    for record in records:
        if record.verdict in UNSUCCESSFUL:
            signatures[record.function].add(failure_signature(record.verdict, record.checks, record.class_))
    return signatures


def deterministic_hypothesis() -> AbstractContextManager[object]:
    """Return a context in which only the seed determines what Hypothesis generates.

    Hypothesis also uses numbers from the source of imported modules and has no setting to prevent this. The same seed
    would generate other calls in another process.

    Returns:
        The context.
    """
    return patch.object(HypothesisProvider, "_maybe_draw_constant", lambda *_, **__: None, create=True)


@final
@dataclass(kw_only=True)
class Search:
    """A search for failing calls of one vendor.

    Attributes:
        trials: runs the calls on the vendor.
        seed: determines all generated calls.
        deadline: the time (`time.monotonic`) at which the search ends.
        report: called with each finding.
        check: called before each attempt; an exception ends the search.
        waivers: the waivers. Failures that they waive are not findings.
        statistics: the statistics by function.
        known: the signatures of known failures, by function. They are not findings, and the search visits their
            functions in one of `KNOWN_PERIOD` rounds.
    """

    trials: TrialRunner
    seed: int
    deadline: float
    report: Callable[[FuzzFinding], None]
    check: Callable[[], None] = lambda: None
    waivers: Waivers = field(default_factory=Waivers)
    statistics: dict[str, SearchStatistics] = field(default_factory=lambda: defaultdict(SearchStatistics))
    known: Mapping[str, Set[Signature]] = field(default_factory=dict)

    def run(self, functions: Sequence[str], rounds: int | None = None) -> None:
        """Search in functions until the time is up or for `rounds` rounds; raise VendorError if the vendor fails."""
        absent: set[str] = set()
        found_signatures: dict[str, set[Signature]] = defaultdict(
            set, {name: set(known) for name, known in self.known.items()}
        )
        for number in islice(count(1), rounds):
            order = [name for name in shuffle_by_seed(functions, self.seed + number) if name not in absent]
            for function in order:
                if number % KNOWN_PERIOD and function in self.known:
                    continue
                if time.monotonic() >= self.deadline:
                    return
                search = FunctionSearch(self, function, found_signatures[function])
                search.run(self._derive_seed(function, number))
                if set(self.statistics[function].verdicts) == {Verdict.not_implemented}:
                    absent.add(function)
            if not order:
                return

    def _derive_seed(self, function: str, number: int) -> int:
        """Return the seed for a round of a function, derived from the seed of the search."""
        digest = hashlib.sha256(f"{self.seed}\0{function}\0{number}".encode()).digest()
        return int.from_bytes(digest[:8], "little")


@final
class FunctionSearch:
    """One round of the search in a function: run call sequences until one fails, then shrink the failure."""

    def __init__(self, search: Search, function: str, found_signatures: set[Signature]) -> None:
        self._search = search
        self._known = knowledge_of(function)
        self._statistics = search.statistics[function]
        self._found_signatures = found_signatures
        self._history: list[BaselineCase] = []
        self._smallest: FuzzFinding | None = None
        self._smallest_case: Case
        self._signature: Signature = ()
        self._uses_new_worker = False
        self._attempts = 0

    def run(self, number: int) -> None:
        """Search with the seed `number`, and report the finding, if there is one."""
        try:
            with deterministic_hypothesis():
                self._run_hypothesis(number)
            self._shrink_further()
        finally:
            if self._smallest is not None:  # when it is interrupted, too
                self._found_signatures.add(self._signature)
                self._search.report(replace(self._smallest, attempts=self._attempts))

    def _run_hypothesis(self, number: int) -> None:
        """Let Hypothesis draw call sequences with this seed, and shrink a sequence that fails."""

        @seed(number)
        @settings(
            max_examples=EXAMPLES_PER_ROUND,
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
            """Run one call sequence that Hypothesis draws."""
            self._attempt(data)

        try:
            attempt()
        except (SequenceFailedError, Flaky, Unsatisfiable):
            pass
        except EndSearchError as end:
            if end.__cause__ is not None:
                raise end.__cause__ from None

    def _shrink_further(self) -> None:
        """Shrink a failing call for as long as one of the `smaller` calls fails as well."""
        while self._smallest is not None and not self._uses_new_worker and len(self._smallest.calls) == 1:
            if not any(self._fails_alike(case) for case in smaller_calls(self._known, self._smallest_case)):
                return

    def _fails_alike(self, case: Case) -> bool:
        """Return whether a smaller call fails in the same way as the finding, and make it the smallest one."""
        self._search.check()
        if time.monotonic() >= self._search.deadline or self._attempts >= 2 * MAX_SHRINKS:
            return False
        try:
            call = compute_legal_case(self._known, case)
        except IllegalError:
            return False
        self._attempts += 1
        assert self._smallest is not None
        derived = self._smallest.derived and replace(self._smallest.derived, base=call.label)
        try:
            outcome = self._search.trials.run([call], [derived] if derived else [])[-1]
        except KeyError:  # the smaller call can't share memory in this way
            return False
        if not self._is_new(derived or to_collected(call), outcome):
            return False
        self._smallest, self._smallest_case = FuzzFinding(calls=[call], outcome=outcome, derived=derived), case
        return True

    def _attempt(self, data: DataObject) -> None:
        """Draw and run a call sequence; record a new failure, which raises SequenceFailedError."""
        self._search.check()
        if time.monotonic() >= self._search.deadline or self._attempts >= MAX_SHRINKS:
            raise EndSearchError
        pairs = list(self._draw_calls(data))
        assume(pairs)
        calls = [call for _, call in pairs]
        derived = self._draw_derived(data, calls)
        is_repeated = not self._signature and data.draw(VERY_RARELY)
        outcomes = self._run(calls, derived, new_worker=self._uses_new_worker)
        collected = [*map(to_collected, calls), *derived]
        if any(outcome.verdict in UNSUCCESSFUL for outcome in outcomes[: len(calls)]):
            collected = collected[: len(calls)]  # a derived call fails for the reason of its stored call
            outcomes = outcomes[: len(calls)]
        failed = next((i for i, outcome in enumerate(outcomes) if self._is_new(collected[i], outcome)), None)
        if not self._signature:
            self._statistics.verdicts.update(outcome.verdict for outcome in outcomes)
            self._history += calls
        else:
            self._attempts += 1
        if {outcome.verdict for outcome in outcomes} == {Verdict.not_implemented}:
            raise EndSearchError
        if failed is not None:
            self._smallest_case = pairs[min(failed, len(pairs) - 1)][0]
            if failed < len(calls):
                self._record_failure(calls[: failed + 1], outcomes[failed])
            self._record_derived_failure(calls, collected[failed], outcomes[failed])
        if is_repeated:
            self._repeat_call(calls[0])

    def _draw_derived(self, data: DataObject, calls: Sequence[BaselineCase]) -> list[Collected]:
        """Return derived calls: sometimes a call with shared memory, and sometimes a chain of calls in flight.

        Args:
            data: draws from strategies of Hypothesis.
            calls: the calls of a sequence, from which the calls are derived.

        Returns:
            The derived calls, at most one of each kind.
        """
        chosen: list[Collected] = []
        for candidates in (aliased_calls(calls[-1]), chains(calls)):
            is_wanted: bool = data.draw(SOMETIMES)
            if candidates and is_wanted:
                chosen.append(data.draw(st.sampled_from(candidates)))
        return chosen

    def _record_derived_failure(self, calls: Sequence[BaselineCase], derived: Collected, outcome: Outcome) -> None:
        """Record a derived call that failed, and raise SequenceFailedError so that Hypothesis shrinks its calls."""
        self._signature = self._signature or _signature_of(derived, outcome)
        recorded_calls = calls if derived.case_class is CaseClass.concurrent else calls[-1:]
        self._smallest = FuzzFinding(calls=recorded_calls, outcome=outcome, derived=derived)
        raise SequenceFailedError

    def _repeat_call(self, call: BaselineCase) -> None:
        """Repeat a small call many times in one worker; record the first call that fails, and end the search.

        Raises:
            EndSearchError: if a call fails. Hypothesis could not shrink the number of calls.
        """
        if sum(tensor.values.size for value in call.arguments.values() for tensor in tensors_in(value)) > MAX_REPEATED:
            return
        copies = [replace(call, label=f"{call.label}.{number}", smoke=False) for number in range(REPETITIONS)]
        outcomes = self._run(copies, new_worker=False)
        for number, outcome in enumerate(outcomes):
            if self._is_new(to_collected(call), outcome):
                self._signature = _signature_of(to_collected(call), outcome)
                self._uses_new_worker = True
                self._smallest = FuzzFinding(calls=copies[: number + 1], outcome=outcome)
                raise EndSearchError

    def _draw_calls(self, data: DataObject) -> Iterator[tuple[Case, BaselineCase]]:
        """Yield the legal calls of a generated sequence, each as the drawn case and the case with its expected results.

        Each call is a new one, or the previous call of the sequence with one change.
        """
        earlier: Case | None = None
        for place in range(data.draw(st.integers(1, MAX_CALLS))):
            try:
                base_case = earlier if earlier is not None and data.draw(st.booleans()) else None
                earlier = data.draw(cases(self._known, base_case))
                call = compute_legal_case(self._known, replace(earlier, label=f"{earlier.label}.{place}"))
            except IllegalError as error:
                if self._smallest is None:
                    self._statistics.discarded[str(error)] += 1
                continue
            if self._smallest is None:
                self._statistics.count_legal(call)
            yield earlier, call

    def _is_new(self, call: Collected, outcome: Outcome) -> bool:
        """Return whether a call fails in a new way; while shrinking, in the same way as the finding."""
        if outcome.verdict not in UNSUCCESSFUL:
            return False
        if self._search.waivers.apply(call.record(outcome, 0.0)).verdict is Verdict.waived:
            return False
        new_signature = _signature_of(call, outcome)
        return new_signature == self._signature if self._signature else new_signature not in self._found_signatures

    def _record_failure(self, calls: Sequence[BaselineCase], outcome: Outcome) -> None:
        """Record calls whose last call failed, and raise SequenceFailedError so that Hypothesis shrinks them.

        Raises:
            EndSearchError: if the last call is large, because Hypothesis would try hundreds of large calls.
            SequenceFailedError: otherwise.
        """
        if not self._signature:
            self._signature = _signature_of(to_collected(calls[-1]), outcome)
            self._find_cause(calls, outcome)
        self._smallest = FuzzFinding(calls=calls if self._uses_new_worker else calls[-1:], outcome=outcome)
        if count_elements(self._smallest_case) > MAX_TOTAL_ELEMENTS:
            raise EndSearchError  # Hypothesis would try hundreds of large calls; `_shrink_further` halves the sizes
        raise SequenceFailedError

    def _find_cause(self, calls: Sequence[BaselineCase], outcome: Outcome) -> None:
        """Find out in new processes which calls the last call needs to fail.

        The last call may fail on its own, after the calls of its sequence, or after earlier calls.

        Raises:
            EndSearchError: if the last call fails only after earlier calls.
        """
        self._smallest = FuzzFinding(calls=calls[-1:], outcome=outcome)
        if self._fails_in_new_worker(calls[-1:]):
            return
        self._uses_new_worker = True
        if not self._fails_in_new_worker(calls):
            self._smallest = FuzzFinding(calls=self._minimize_history(calls[-1]), outcome=outcome)
            raise EndSearchError

    def _minimize_history(self, last: BaselineCase) -> list[BaselineCase]:
        """Return the last call, after the fewest earlier calls found with which it still fails.

        The earlier calls come from the history of this round, at most `MAX_HISTORY` of them. They are removed in blocks
        of decreasing size.
        """
        before = [call for call in self._history if call is not last][-MAX_HISTORY:]
        size = max(len(before) // 2, 1)
        while before and size:
            for start in range(0, len(before), size):
                remaining = before[:start] + before[start + size :]
                if self._fails_in_new_worker([*remaining, last]):
                    before = remaining
                    break
            else:
                size //= 2
        return [*before, last]

    def _fails_in_new_worker(self, calls: Sequence[BaselineCase]) -> bool:
        """Return whether the last of these calls fails in a new worker; return False after too many attempts."""
        self._attempts += 1
        if self._attempts > MAX_SHRINKS or time.monotonic() >= self._search.deadline:
            return False
        unique = [replace(call, label=f"{call.label}.{place}") for place, call in enumerate(calls)]
        return self._run(unique, new_worker=True)[-1].verdict in UNSUCCESSFUL

    def _run(
        self, calls: Sequence[BaselineCase], derived: Sequence[Collected] = (), *, new_worker: bool
    ) -> list[Outcome]:
        """Return the outcomes of calls.

        Args:
            calls: The calls.
            derived: Further calls to run, which are derived from these calls.
            new_worker: Whether the calls run in a new worker.

        Raises:
            EndSearchError: The calls can't run for a reason that is no failure of the vendor.
        """
        try:
            return self._search.trials.run(calls, derived, new_worker=new_worker)
        except Exception as error:
            raise EndSearchError from error


def _signature_of(call: Collected, outcome: Outcome) -> Signature:
    """Return the signature of the failure of a generated call."""
    return failure_signature(outcome.verdict, outcome.check_results, call.case_class)
