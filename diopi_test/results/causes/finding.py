"""Select the main finding of a failed case: the problem that most likely leads to the defect.

The checks of a case can report several problems at once. A finding describes one of them by a symptom (what was
observed), a relation (what the wrong elements are instead of the expected ones) and a pattern (where the wrong elements
are). It also has a state (under which circumstances the call was made) and a detail (a text). `signature.py` lists
their values.
"""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from diopi_test.execution.call_sequence import QUEUED_CALL, RELAID_CALL, SECOND_CALL
from diopi_test.execution.deviation import Deviation, DeviationKind
from diopi_test.execution.difference import Difference, PatternKind
from diopi_test.execution.verdict import PROCESS_LOST, CheckResult, Verdict
from diopi_test.results.causes.former_logs import deviation_of
from diopi_test.results.causes.precision import LARGEST, count_correct_bits
from diopi_test.results.causes.signature import PLAIN_SYMPTOMS, SYMPTOMS, Signature
from diopi_test.results.causes.traits import largest_size, traits_of_case
from diopi_test.results.pooling import CHECK as POOLED
from diopi_test.results.records import CaseRecord
from diopi_test.results.stacks import describe_vendor_frame

_RANK = {symptom: number for number, symptom in enumerate(SYMPTOMS)}
"""The position of each symptom in the order from the most to the least telling one."""

_STATE_OF_CALL = {SECOND_CALL: "second call", QUEUED_CALL: "queued", RELAID_CALL: "relaid"}
"""The state, a key of `STATES`, by the kind of the call of a case."""

MAX_DETAIL = 120
"""The largest number of characters of a detail."""

MIN_PLACED = 3
"""The least number of elements of a tensor whose wrong elements have a pattern."""


@final
@dataclass(frozen=True, kw_only=True)
class Finding:
    """The main finding of a failed case.

    Attributes:
        record: the case.
        symptom, relation, pattern, state, detail: as in `Signature`.
        traits: the traits of the case.
        deviation: how the largest incorrect tensor differs; None if that is not known.
        result_type: the element type of the largest incorrect tensor; empty if it is not known.
        size: the number of elements of the largest incorrect tensor; 0 if that is not known.
        call_size: the number of elements of the largest tensor of the call; 0 if it is not known.
        correct_bits: the number of correct leading bits, for rounding errors; None if it is not known.
        total, wrong_count: the numbers of all and of wrong elements of the largest incorrect tensor; 0 if they are not
            known.
        agreeing_bits: the number of leading bits in which the worst element of the largest incorrect tensor agrees with
            the expected one; None if the expected one is 0, if one of them is infinite, NaN or not known, or if both
            are equal.
        is_zero: whether the worst element of this tensor is 0.
        has_overflowed: whether the worst element of this tensor is the smallest integer of its type although about the
            largest is expected.
        is_saturated: whether the worst element of this tensor is the largest or smallest finite number of its type.
        is_masked: whether the worst element of this tensor should be 0 although one of its several inputs is infinite
            or NaN, because another input masks it.
        first_wrong: the number of the first wrong element in row-major order if a pattern states it; else 0.
        row_lengths: the number of elements per index of each axis of the largest incorrect tensor; empty if that is not
            known.
        period: the distance between the runs of wrong elements if a pattern states it; else 0.
        lost_nans, expected_nans: the numbers of lost and of expected NaNs if a pattern states them; else 0.
        place: the shape of the largest incorrect tensor and the index of its worst element; None if they are not known.
        is_at_end: whether this element is the last one of the tensor.
        is_too_small: whether this element has a smaller magnitude than the expected one.
    """

    record: CaseRecord
    symptom: str
    relation: str = ""
    pattern: str = ""
    state: str = ""
    detail: str = ""
    traits: frozenset[str] = frozenset()
    deviation: Deviation | None = None
    result_type: str = ""
    size: int = 0
    call_size: int = 0
    correct_bits: float | None = None
    total: int = 0
    wrong_count: int = 0
    agreeing_bits: float | None = None
    is_zero: bool = False
    has_overflowed: bool = False
    is_saturated: bool = False
    is_masked: bool = False
    first_wrong: int = 0
    row_lengths: tuple[int, ...] = ()
    period: int = 0
    lost_nans: int = 0
    expected_nans: int = 0
    place: tuple[str, tuple[int, ...]] | None = None
    is_at_end: bool = False
    is_too_small: bool = False

    @property
    def signature(self) -> Signature:
        """Return the signature of the finding, without a trait and a scope, which depend on other cases."""
        return Signature(
            symptom=self.symptom,
            relation=self.relation,
            pattern=self.pattern,
            state=self.state,
            detail=self.detail,
        )


def find_main_finding(record: CaseRecord) -> Finding:
    """Return the main finding of a case that did not pass."""
    state = "after_other_cases" if record.verdict is Verdict.flaky else ""
    verdict = _first_verdict(record)
    if verdict in PROCESS_LOST:
        return _finding_without_tensor(record, verdict.value, state=state, detail=_crash_detail(record, verdict))
    failed = [check for check in record.checks if not check.passed]
    if not failed:
        symptom = "error" if record.error_code or _CODE.match(record.message) else "exception"
        return _finding_without_tensor(record, symptom, state=state, detail=_template(record, _first_message(record)))
    symptom, check = min(
        ((symptom, check) for check in failed for symptom in _symptoms(check)), key=lambda pair: _RANK[pair[0]]
    )
    return _finding_of_check(record, symptom, check, state)


def _finding_without_tensor(record: CaseRecord, symptom: str, *, state: str = "", detail: str = "") -> Finding:
    """Return a finding that does not concern the elements of a tensor; see `Finding` for the parameters."""
    return Finding(record=record, symptom=symptom, state=state, detail=detail, traits=traits_of_case(record, None))


def _finding_of_check(record: CaseRecord, symptom: str, check: CheckResult, state: str) -> Finding:
    """Return the finding of a failed check, which describes the largest incorrect tensor if there is one.

    Args:
        record: the record of the case.
        symptom: the symptom that the check found.
        check: the result of the check.
        state: the state; if empty, it follows from the call in which the check failed.

    Returns:
        The finding.
    """
    if not check.differences:
        detail = _template(record, check.message) if check.check in _CHECKS_WITH_DETAIL else ""
        return _finding_without_tensor(record, symptom, state=state, detail=detail)
    largest = _largest(check.differences)
    deviation = deviation_of(largest)
    lost_nans, expected_nans = _count_nans(largest)
    return Finding(
        record=record,
        symptom=symptom,
        relation=_relation(symptom, deviation),
        pattern="" if symptom in PLAIN_SYMPTOMS else _pattern(largest),
        state=state or (_STATE_OF_CALL.get(largest.call, "") if symptom not in _STATED_SYMPTOMS else ""),
        traits=traits_of_case(record, deviation),
        deviation=deviation,
        result_type=_element_type(largest),
        size=max(difference.total for difference in check.differences),
        call_size=largest_size(largest.arguments),
        total=largest.total,
        wrong_count=largest.wrong_count,
        agreeing_bits=_count_agreeing_bits(largest),
        is_zero=_parse_number(largest.actual) == 0,
        has_overflowed=_has_overflowed(largest),
        is_saturated=_is_saturated(largest),
        is_masked=_is_masked(largest),
        first_wrong=_number_in_patterns(largest, _FIRST),
        row_lengths=_row_lengths(largest),
        period=_number_in_patterns(largest, _PERIOD),
        lost_nans=lost_nans,
        expected_nans=expected_nans,
        place=_place(largest),
        is_at_end=_is_at_end(largest),
        is_too_small=_is_too_small(largest),
        correct_bits=count_correct_bits(largest, deviation) if symptom == DeviationKind.rounding else None,
    )


def _largest(differences: Sequence[Difference]) -> Difference:
    """Return the incorrect tensor with the most elements, which shows best how elements are wrong."""
    return max(differences, key=lambda difference: difference.total)


_STATED_SYMPTOMS = frozenset({"read_early", "layout", "repeat"})
"""Symptoms that imply the call in which they were observed."""

_CHECKS_WITH_DETAIL = frozenset({"validity", "layout", "repeat", "process_state"})
"""Checks whose message becomes the detail of a finding, because it says more than the name of the check."""


# Symptoms


def _symptoms(check: CheckResult) -> Sequence[str]:
    """Return the names of the symptoms that a failed check found."""
    if check.check == "written":
        return ("unwritten",)
    if check.check == "order":
        return check.problems or (("read_early",) if check.differences else ("order",))
    if check.check == POOLED:
        return (DeviationKind.rounding.value,)
    if check.check == "values":
        return (_main_kind(deviation_of(_largest(check.differences))) if check.differences else "form.shape",)
    named = [f"{check.check}.{problem}" for problem in check.problems]
    return [name for name in named if name in SYMPTOMS] or (check.check if check.check in SYMPTOMS else "form",)


def _main_kind(deviation: Deviation) -> str:
    """Return the kind that most wrong elements have; the first kind if several are equally frequent.

    There are two exceptions. Minor kinds don't count if other kinds occur, too. Wrong numbers are the main kind if they
    are a considerable part of the elements, because rounding errors or lost special values do not explain them.
    """
    kinds = {kind: number for kind, number in deviation.kinds.items() if kind not in _MINOR_KINDS} or deviation.kinds
    main = max(kinds, key=lambda kind: kinds[kind])
    number = kinds.get(DeviationKind.wrong_value.value, 0)
    has_wrong_values = main in _SPECIFIC_KINDS and number >= MIN_SHARE_OF_WRONG_VALUES * (number + kinds[main])
    return DeviationKind.wrong_value.value if has_wrong_values else main


_SPECIFIC_KINDS = frozenset(
    {DeviationKind.rounding.value, DeviationKind.lost_nan.value, DeviationKind.lost_infinity.value}
)
"""Kinds with specific reasons, which don't explain wrong numbers in the same tensor."""

_MINOR_KINDS = frozenset({DeviationKind.sign_of_zero.value, DeviationKind.flushed.value})
"""Kinds that are ignored if other kinds occur, too."""

MIN_SHARE_OF_WRONG_VALUES = 0.25
"""Wrong numbers are the main kind if they are at least this share of them and the elements of a specific kind."""


# Relations and patterns

_NO_RELATION = PLAIN_SYMPTOMS | {"unwritten"}
"""Symptoms whose elements have no values to compare."""


def _relation(symptom: str, deviation: Deviation) -> str:
    """Return the relation of the wrong elements to the expected ones; empty if it is not known or has no meaning.

    Args:
        symptom: the symptom of the finding.
        deviation: how the wrong elements deviate.
    """
    return "" if symptom in _NO_RELATION or deviation.relation is None else deviation.relation.value


def _pattern(difference: Difference) -> str:
    """Return where the wrong elements are; empty if they are everywhere or without order."""
    if difference.total < MIN_PLACED or difference.wrong_count == difference.total:
        return ""
    if difference.wrong_count == 1:
        return "single"
    kinds = {pattern.kind for pattern in difference.patterns}
    return next((kind.value for kind in _PLACES if kind in kinds), "")


_PLACES = (
    PatternKind.tail,
    PatternKind.end,
    PatternKind.slice,
    PatternKind.period,
    PatternKind.range,
    PatternKind.blocks,
)
"""The kinds of patterns that describe places; the first one that a tensor has counts."""


_FIRST = re.compile(r"(?:from number|elements, numbers) (\d+)")
"""Matches the number of the first wrong element in the text of a pattern."""

_PERIOD = re.compile(r"of every (\d+) elements")
"""Matches the distance between runs of wrong elements in the text of a pattern."""


def _number_in_patterns(difference: Difference, expression: re.Pattern[str]) -> int:
    """Return the largest number that a pattern of places states in its text; 0 if none states one.

    Args:
        difference: the difference, with the patterns of its wrong elements.
        expression: the regular expression of the text; its first group is the number.
    """
    matches = (expression.search(pattern.text) for pattern in difference.patterns if pattern.kind in _PLACES)
    return max((int(match[1]) for match in matches if match), default=0)


_NANS = re.compile(r"only where expected is NaN, (?P<lost>\d+) of (?P<expected>\d+) such")
"""Matches the text of the pattern of wrong elements that should be NaN."""


def _count_nans(difference: Difference) -> tuple[int, int]:
    """Return the numbers of lost and of expected NaNs if a pattern states them; else 0 and 0."""
    matches = (_NANS.search(pattern.text) for pattern in difference.patterns)
    match = next(filter(None, matches), None)
    return (int(match["lost"]), int(match["expected"])) if match else (0, 0)


def _element_type(difference: Difference) -> str:
    """Return the element type of an incorrect tensor; empty if it is not known."""
    return difference.arguments.get(difference.tensor, "").partition(" ")[0]


def _is_saturated(difference: Difference) -> bool:
    """Return whether the worst element is the largest or smallest finite number of its floating-point type."""
    dtype, parts = _element_type(difference), _parse_number(difference.actual)
    if dtype not in LARGEST or parts is None:
        return False
    return any(math.isclose(abs(part), LARGEST[dtype], rel_tol=_TEXT_PRECISION) for part in (parts.real, parts.imag))


def _is_too_small(difference: Difference) -> bool:
    """Return whether the worst element is a number of a smaller magnitude than the expected one."""
    actual, expected = _parse_number(difference.actual), _parse_number(difference.expected)
    return actual is not None and expected is not None and abs(actual) < abs(expected)


def _is_masked(difference: Difference) -> bool:
    """Return whether the worst element should be 0 although one of its several inputs is infinite or NaN."""
    inputs = [number for text in difference.inputs.values() if (number := _parse_number(text)) is not None]
    is_special = not all(map(cmath.isfinite, inputs))
    return len(inputs) > 1 and is_special and _parse_number(difference.expected) == 0


_TEXT_PRECISION = 1e-3
"""The relative precision of numbers in text: numbers of narrow types have few digits."""


def _parse_number(text: str) -> complex | None:
    """Return the number in the text of an element; None if the text is not a number."""
    try:
        return complex(text)
    except ValueError:
        return None


def _count_agreeing_bits(difference: Difference) -> float | None:
    """Return the number of leading bits in which the worst element agrees with the expected one; see `Finding`.

    Returns:
        The number of bits; None if a number is not finite, the expected number is 0, or both are equal.
    """
    actual, expected = _parse_number(difference.actual), _parse_number(difference.expected)
    if actual is None or not expected or not (cmath.isfinite(actual) and cmath.isfinite(expected)):
        return None
    error = abs(actual - expected)
    return math.log2(abs(expected)) - math.log2(error) if error else None


_SIGNED_TYPE = re.compile(r"int(?P<bits>\d+)")

_ALMOST_LARGEST = 0.99
"""The share of the largest integer that exceeds the type after rounding to a floating-point type."""


def _has_overflowed(difference: Difference) -> bool:
    """Return whether the worst element is the smallest integer of its type although about the largest is expected.

    The largest integers are rounded up in a narrower floating-point type. The conversion back then overflows.
    """
    match = _SIGNED_TYPE.fullmatch(_element_type(difference))
    actual, expected = _parse_number(difference.actual), _parse_number(difference.expected)
    if match is None or actual is None or expected is None:
        return False
    limit = 2.0 ** (int(match["bits"]) - 1)
    return actual.real == -limit and expected.real > _ALMOST_LARGEST * limit


_SHAPE = re.compile(r"^\w+ (\([\d, ]*\))")
"""Matches the element type and the shape at the beginning of the text of a tensor argument."""


def _place(difference: Difference) -> tuple[str, tuple[int, ...]] | None:
    """Return the shape of an incorrect tensor as text, and the index of its worst element; None if they are unknown."""
    match = _SHAPE.match(difference.arguments.get(difference.tensor, ""))
    return (match[1], difference.index) if match else None


def _lengths(difference: Difference) -> Sequence[int]:
    """Return the lengths of the axes of an incorrect tensor; empty if they are not known."""
    match = _SHAPE.match(difference.arguments.get(difference.tensor, ""))
    return [int(number) for number in re.findall(r"\d+", match[1])] if match else []


def _row_lengths(difference: Difference) -> tuple[int, ...]:
    """Return the number of elements per index of each axis of an incorrect tensor; empty if they are not known."""
    lengths = _lengths(difference)
    return tuple(math.prod(lengths[axis + 1 :]) for axis in range(len(lengths)))


def _is_at_end(difference: Difference) -> bool:
    """Return whether the worst element is the last one of a tensor with axes."""
    lengths = _lengths(difference)
    return bool(lengths) and difference.index == tuple(length - 1 for length in lengths)


# Details

_CODE = re.compile(r"[A-Z]\w+: ")
"""The error code at the beginning of the message of a call that failed."""

_SIGNAL = re.compile(r"was ended by (?P<signal>SIG\w+|signal \d+)|exit code (?P<code>-?\d+)")
"""How the process ended, in the message of a case that crashed."""

_FLAKY = re.compile(r"^\w+ (?:in a process in which .*? had run before|at first) \((?P<message>.*)\), \w+ alone", re.S)
"""The message of a flaky case, which failed in one process and passed alone in another."""


def _first_verdict(record: CaseRecord) -> Verdict:
    """Return the verdict of a case; for a flaky case, the verdict of the attempt that failed."""
    name = record.message.partition(" ")[0]
    return Verdict(name) if record.verdict is Verdict.flaky and name in set(Verdict) else record.verdict


def _first_message(record: CaseRecord) -> str:
    """Return the message of a case; for a flaky case, the message of the attempt that failed."""
    match = _FLAKY.match(record.message)
    return match["message"] if record.verdict is Verdict.flaky and match else record.message


def _crash_detail(record: CaseRecord, verdict: Verdict) -> str:
    """Return the detail of a lost process: the signal or exit code, and the innermost stack frame of the vendor."""
    message = _first_message(record)
    ending = _SIGNAL.search(message) if verdict is Verdict.crashed else None
    ending_text = "" if ending is None else ending["signal"] or f"exit code {ending['code']}"
    return " ".join(part for part in (ending_text, describe_vendor_frame(message)) if part)


_REPLACEMENTS: Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = (
    (re.compile(r"\bdiopi[A-Z]\w*"), "…"),
    (re.compile(r"0x[0-9a-fA-F]+"), "…"),
    (re.compile(r"[(\[][-\d., ]*[)\]]"), "…"),
    (re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?"), "…"),
    (re.compile(r"\b(bfloat16|float|half|double|bool|u?int|complex)…?\b"), "…"),
    (re.compile(r"(…[\s,]*)+"), "… "),
)
"""Parts of messages that differ between failures of one cause, with their replacements, applied in order."""


def _template(record: CaseRecord, message: str) -> str:
    """Return the first problem in a message without names of functions, numbers and element types."""
    text = message.strip().partition("\n")[0].partition("; ")[0].replace(record.function, "…")
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    text = " ".join(text.split())
    return text if len(text) <= MAX_DETAIL else f"{text[: MAX_DETAIL - 1]}…"
