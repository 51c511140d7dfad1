"""Which failures run again in a new process, and which outcome counts then."""

from __future__ import annotations

from pathlib import Path

from diopi_impl import Waiver
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import CheckResult, Outcome, Verdict
from diopi_test.run.collection import Collected
from diopi_test.run.failure_policy import FailurePolicy
from diopi_test.run.isolation.executor import ScheduledCase
from diopi_test.run.isolation.repetition import MAX_CONFIRMATIONS_IN_A_ROW, MAX_CONFIRMED, Repetition, Repetitions
from diopi_test.waivers.rules import WaiverRule, Waivers


def case(function: str, label: str, case_class: CaseClass = CaseClass.basic) -> Collected:
    """Return a collected float32 case."""
    return Collected(function=function, label=label, dtype="float32", case_class=case_class)


def error(message: str = "ErrorOccurred: no engine") -> Outcome:
    """Return the outcome of a call that returned an error."""
    return Outcome(verdict=Verdict.failed, message=message)


def check(name: str) -> Outcome:
    """Return the outcome of a case in which this check failed."""
    result = CheckResult(check=name, passed=False, message="out is wrong")
    return Outcome(verdict=Verdict.failed, message=f"{name}: out is wrong", check_results=(result,))


PASSED = Outcome(verdict=Verdict.passed)


class Runner:
    """Runs cases one after another in one process, and repetitions in new processes."""

    def __init__(self, policy: FailurePolicy | None = None) -> None:
        self.repetitions = Repetitions()
        self.repetitions.policy = policy or FailurePolicy()

    def confirms(self, failed: Collected, outcome: Outcome, repetition_outcome: Outcome | None = None) -> bool:
        """Return whether a case runs again, and end the repetition with the outcome `repetition_outcome`."""
        repetition = self.repetitions.review(failed, outcome, 0.1, "diopiAcos[a]", None)
        if repetition is None:
            return False
        self.repetitions.add(ScheduledCase(Path(), failed), repetition)
        started = self.repetitions.take()
        assert started is not None
        assert self.repetitions.review(failed, repetition_outcome or outcome, 0.1, "", started[1]) is None
        return True


def test_the_first_failure_of_a_cause_is_confirmed() -> None:
    runner = Runner()
    assert runner.confirms(case("diopiAbs", "a"), error())
    assert not runner.confirms(case("diopiCos", "a"), error()), "the functions can share the defect"
    assert runner.confirms(case("diopiCos", "b"), error("ErrorOccurred: another reason"))


def test_damage_and_wrong_numbers_are_confirmed_in_every_function() -> None:
    runner = Runner()
    crashed = Outcome(verdict=Verdict.crashed, message="the process was ended by SIGSEGV")
    for function in ("diopiAbs", "diopiCos"):
        assert runner.confirms(case(function, "a"), crashed)
        assert not runner.confirms(case(function, "b"), crashed)
        assert runner.confirms(case(function, "c"), check("written"))


def test_forms_of_a_function_share_a_confirmation() -> None:
    runner = Runner()
    assert runner.confirms(case("diopiAbs", "a"), check("written"))
    assert not runner.confirms(case("diopiAbsInp", "a"), check("written"))


def test_a_cause_is_confirmed_again_if_its_case_passes_on_its_own() -> None:
    runner = Runner()
    for label in "abc":
        assert runner.confirms(case("diopiAbs", label), error(), PASSED)
    assert runner.confirms(case("diopiAbs", "d"), error(), error("ErrorOccurred: another reason"))
    assert runner.confirms(case("diopiAbs", "e"), error())
    assert not runner.confirms(case("diopiAbs", "f"), error())


def test_a_failure_in_a_new_process_needs_no_confirmation() -> None:
    runner = Runner()
    assert runner.repetitions.review(case("diopiAbs", "a"), error(), 0.1, "", None) is None
    assert not runner.confirms(case("diopiAbs", "b"), error())


def test_failures_that_do_not_count_are_not_confirmed() -> None:
    waivers = Waivers((WaiverRule(Waiver("diopiCos[*]", "known"), "waivers.toml"),))
    runner = Runner(FailurePolicy(waivers=waivers))
    negative = case("diopiAbs", "negative-a", CaseClass.negative)
    assert not runner.confirms(negative, error())
    assert not runner.confirms(case("diopiCos", "a"), error())
    assert runner.confirms(case("diopiAbs", "a"), error()), "what does not count confirms nothing"
    assert Runner(FailurePolicy(strict=True)).confirms(negative, error())


def test_a_function_with_ever_different_messages_has_few_confirmations() -> None:
    runner = Runner()
    messages = [f"ErrorOccurred: {'x' * length}" for length in range(1, 20)]
    confirmed = [runner.confirms(case("diopiAbs", message), error(message)) for message in messages]
    assert sum(confirmed) == MAX_CONFIRMED


def test_a_vendor_without_flaky_cases_is_trusted_after_many_confirmations() -> None:
    runner = Runner()
    names = [f"diopi{letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"]
    assert (
        sum(runner.confirms(case(name, "a"), check("written")) for name in names)
        == MAX_CONFIRMATIONS_IN_A_ROW
        < len(names)
    )
    runner = Runner()
    assert all(runner.confirms(case(name, "a"), check("written")) for name in names[: MAX_CONFIRMATIONS_IN_A_ROW - 1])
    assert runner.confirms(case("diopiAbs", "a"), check("written"), PASSED), "a flaky case"
    assert all(
        runner.confirms(case(name, "a"), check("written"))
        for name in names[MAX_CONFIRMATIONS_IN_A_ROW : 2 * MAX_CONFIRMATIONS_IN_A_ROW]
    )


def test_waiting_cases_of_a_confirmed_cause_do_not_run_again() -> None:
    repetitions = Repetitions()
    for label in "abc":
        item = case("diopiAbs", label)
        repetition = repetitions.review(item, error(), 0.1, "diopiAcos[a]", None)
        assert repetition is not None
        repetitions.add(ScheduledCase(Path(), item), repetition)
    started = repetitions.take()
    assert started is not None and started[0].case.label == "a"
    assert repetitions.take() is None, "the cause is being confirmed"
    assert list(repetitions.take_finished()) == []
    assert repetitions.review(started[0].case, error(), 0.1, "", started[1]) is None
    finished_cases = [
        (scheduled.case.label, repetition.before) for scheduled, repetition in repetitions.take_finished()
    ]
    assert finished_cases == [("b", error()), ("c", error())]


def test_a_case_that_could_not_be_started_is_taken_again() -> None:
    repetitions = Repetitions()
    item = case("diopiAbs", "a")
    repetition = repetitions.review(item, error(), 0.1, "diopiAcos[a]", None)
    assert repetition is not None
    repetitions.add(ScheduledCase(Path(), item), repetition)
    started = repetitions.take()
    assert started is not None
    repetitions.put_back(*started)
    assert repetitions.take() == started


def test_known_flakes_are_retried_even_if_they_do_not_count() -> None:
    waivers = Waivers((WaiverRule(Waiver("diopiAbs[*]", "known", verdict="flaky"), "waivers.toml", retries=2),))
    repetitions = Repetitions()
    repetitions.policy = FailurePolicy(waivers=waivers)
    item, repetition = case("diopiAbs", "a"), None
    for attempts in (1, 2):
        repetition = repetitions.review(item, error(), 0.1, "diopiAcos[a]" if attempts == 1 else "", repetition)
        assert repetition is not None and repetition.attempts == attempts
        repetitions.add(ScheduledCase(Path(), item), repetition)
        assert repetitions.take() == (ScheduledCase(Path(), item), repetition)
    assert repetitions.review(item, error(), 0.1, "", repetition) is None
    assert repetition is not None
    assert repetition.resolve(PASSED).verdict is Verdict.flaky


def test_the_second_outcome_counts() -> None:
    repetition = Repetition(before=error(), seconds=0.1, preceding="diopiAcos[a]")
    assert repetition.resolve(check("written")) == check("written")
    flaky = repetition.resolve(PASSED)
    assert (flaky.verdict, flaky.preceding_case) == (Verdict.flaky, "diopiAcos[a]")
