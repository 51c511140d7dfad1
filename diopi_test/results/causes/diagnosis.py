"""The catalog of known causes of failures: the conditions of each, the probable defect, and where to look for it.

The catalog is the file `diagnoses.toml`. `results/causes/report.py` looks up each group of failed cases: the first
diagnosis whose conditions hold for the group applies. The conditions refer to the signature of the group and to its
findings. The signature is what all cases of the group have in common. The findings are the main problems of the single
cases.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from statistics import median
from typing import Any, final

from diopi_test.baseline.codec import from_json
from diopi_test.results.causes.finding import Finding
from diopi_test.results.causes.grouping import INFORMATIVE_SIZE, CaseGroup
from diopi_test.results.causes.traits import (
    FLOATING_TYPE,
    FLOATING_TYPES,
    MAX_ROWS,
    base_function,
    family_of,
    is_pointwise,
    is_rounded,
)

MIN_SHARE = 0.8
"""The share of the cases of a group that must meet a condition about single cases: "most cases" in this module."""

NEAR = 1024
"""How many elements after the place of a defect can be correct by chance, before the first wrong element."""

_OPTIONAL: Mapping[str, Any] = {"omit_default": True}
"""Metadata of fields that the catalog may omit."""


@final
@dataclass(frozen=True, kw_only=True)
class Conditions:
    """The conditions of a diagnosis. A condition without alternatives always holds.

    Attributes:
        symptom, relation, pattern, state, trait: the alternatives for these fields of the signature. `none` stands for
            an empty field, and the trait `floating_type` for any floating-point type.
        not_trait: the traits that the signature must not have.
        case_trait: the alternatives for a trait that most cases have, whether or not it explains why they fail.
        dtype: the alternatives for the element type of most cases.
        not_dtype: element types. The condition fails if most cases have one of them.
        not_result_type: element types. The condition fails if the incorrect tensors of most cases have one of them.
        case_class: the alternatives for the class of most cases.
        family: the alternatives for the family of the function of most cases.
        is_rounded: whether the functions of most cases must round a result.
        is_pointwise: whether the functions of most cases must compute each element of their results from the elements
            at the same position.
        not_family: families. The condition fails if the function of most cases belongs to one of them.
        region: the alternatives for the condition of a region of inputs that most cases have.
        kinds: all of these kinds of wrong elements must occur in most cases.
        label: the alternatives for a part of the labels of most cases.
        not_label: parts of labels. The condition fails if the labels of most cases have one of them.
        text: the alternatives for a part of the detail of the signature, in lower case.
        message: the alternatives for a part of the messages of the failed checks of most cases.
        not_message: parts of these messages. The condition fails if most cases have one of them.
        function: the alternatives for a part of the name of the function of most cases, in lower case.
        min_cases, min_functions: the least number of failed cases, and of functions with failed cases. The forms of a
            function count as one function.
        min_share: the least number of failed cases relative to all cases of these functions that failed or passed.
        max_share: the greatest such share.
        min_relation_share: the least number of failed cases with this relation relative to all cases of these
            functions, including failed cases with other causes.
        not_other_relation: the relations that no failed case of these functions may have, including cases with other
            causes.
        is_relation_observed: whether most cases must have the relation themselves. Otherwise, cases with small tensors
            may have it only because other cases of the function do.
        min_size: the least number of elements of the largest incorrect tensor.
        min_wrong: the least number of wrong elements of the case with the most.
        min_wrong_share: the least share of wrong elements among all elements of the largest incorrect tensors of the
            cases.
        min_agreeing_bits: the least number of leading bits in which the worst element agrees with the expected one in
            most cases in which this number is known.
        min_correct_bits, max_correct_bits: the least and the greatest number of correct leading bits of most cases. An
            unknown number counts as 0.
        median_bits: the limits of the median number of correct leading bits of the cases of float32 and complex64. A
            few unusual cases hardly change the median, so that it separates formats that differ by a single bit.
        min_factor, max_factor: the least and the greatest factor of most cases with the relation `scaled`.
        max_smallest_size: the greatest number of elements of the largest tensor of the smallest call: large calls don't
            show whether the size matters. 0 stands for no limit.
        first_wrong: numbers of elements in row-major order. In most cases, the first wrong element has one of these
            numbers, or comes fewer
            than `NEAR` elements after it. If some cases have only row-major tensors, only these cases decide.
        first_wrong_row: indices of the first axis. In most of these cases, the first wrong element is at the start of
            one of these rows, or comes fewer than `NEAR` elements after it.
        first_wrong_input: numbers of elements in row-major order. In most of these cases, the first wrong element is
            the first one that depends on an element with one of these numbers. Every result element must be computed
            from a run of equally many elements of the largest tensor of the call.
        min_first_wrong: the least number of the first wrong element in most of these cases.
        is_at_limit: whether the first wrong element must be at a usual limit of elements or rows in most of these cases
            (True) or at most in some (False). None stands for no condition.
        is_limit_unique: whether the first wrong element of at least one of these cases must be at no other usual limit
            than those of 16 bits.
        are_nans_lost: whether at least half of the NaNs must be lost in most tensors with several wrong elements.
        period: the alternatives for the distance between the runs of wrong elements of most of these cases.
        max_wrong: the greatest number of wrong elements in the largest incorrect tensor of every case. 0 stands for no
            limit.
        is_last_tile: whether at least as many elements must precede the first wrong element as follow it in most of
            these cases: an incomplete tile has fewer elements than the complete tiles before it.
        is_nonzero: whether the worst element of most cases must be other than 0. A tensor of zeros is also as before if
            the call computes zeros, or adds them.
        is_zero: whether the worst element of most cases must be 0.
        is_whole: whether all elements of the largest incorrect tensors, including the correct ones, must be 0 in most
            cases (True) or at most in some (False). None stands for no condition.
        has_overflowed: whether the worst element must be the smallest integer of its type, where about the largest is
            expected, in most cases (True) or at most in some (False). None stands for no condition.
        is_saturated: whether the worst element must be the largest or smallest finite number of its type in most cases.
        is_masked: whether the worst element of most cases should be 0 although one of its inputs is infinite or NaN.
        numeric_dtype: the element types that cases of these functions with wrong numbers or rounding errors may have,
            including cases with other causes.
        types: all of these element types must occur among cases of these functions with wrong numbers or rounding
            errors, including cases with other causes.
        is_place_fixed: whether the worst element of tensors of equal shapes must have the same index in several cases.
        is_at_end: whether the worst element must be the last element of the largest incorrect tensor in every case
            in which this tensor has several elements.
        is_too_small: whether the worst element of most cases must have a smaller magnitude than the expected one.
    """

    symptom: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    relation: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    pattern: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    state: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    trait: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    not_trait: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    case_trait: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    dtype: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    not_dtype: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    not_result_type: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    case_class: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    family: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    not_family: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    is_rounded: bool = field(default=False, metadata=_OPTIONAL)
    is_pointwise: bool = field(default=False, metadata=_OPTIONAL)
    region: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    kinds: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    label: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    not_label: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    text: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    message: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    not_message: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    function: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    min_cases: int = field(default=1, metadata=_OPTIONAL)
    min_functions: int = field(default=1, metadata=_OPTIONAL)
    min_share: float = field(default=0.0, metadata=_OPTIONAL)
    max_share: float = field(default=1.0, metadata=_OPTIONAL)
    min_relation_share: float = field(default=0.0, metadata=_OPTIONAL)
    not_other_relation: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    is_relation_observed: bool = field(default=False, metadata=_OPTIONAL)
    min_size: int = field(default=0, metadata=_OPTIONAL)
    min_wrong: int = field(default=0, metadata=_OPTIONAL)
    min_wrong_share: float = field(default=0.0, metadata=_OPTIONAL)
    min_agreeing_bits: float = field(default=-math.inf, metadata=_OPTIONAL)
    min_correct_bits: float = field(default=-math.inf, metadata=_OPTIONAL)
    max_correct_bits: float = field(default=math.inf, metadata=_OPTIONAL)
    median_bits: Sequence[float] = field(default=(), metadata=_OPTIONAL)
    min_factor: float = field(default=-math.inf, metadata=_OPTIONAL)
    max_factor: float = field(default=math.inf, metadata=_OPTIONAL)
    max_smallest_size: int = field(default=0, metadata=_OPTIONAL)
    first_wrong: Sequence[int] = field(default=(), metadata=_OPTIONAL)
    first_wrong_row: Sequence[int] = field(default=(), metadata=_OPTIONAL)
    first_wrong_input: Sequence[int] = field(default=(), metadata=_OPTIONAL)
    min_first_wrong: int = field(default=0, metadata=_OPTIONAL)
    is_at_limit: bool | None = field(default=None, metadata=_OPTIONAL)
    is_limit_unique: bool = field(default=False, metadata=_OPTIONAL)
    are_nans_lost: bool = field(default=False, metadata=_OPTIONAL)
    period: Sequence[int] = field(default=(), metadata=_OPTIONAL)
    max_wrong: int = field(default=0, metadata=_OPTIONAL)
    is_last_tile: bool = field(default=False, metadata=_OPTIONAL)
    is_nonzero: bool = field(default=False, metadata=_OPTIONAL)
    is_zero: bool = field(default=False, metadata=_OPTIONAL)
    is_whole: bool | None = field(default=None, metadata=_OPTIONAL)
    has_overflowed: bool | None = field(default=None, metadata=_OPTIONAL)
    is_saturated: bool = field(default=False, metadata=_OPTIONAL)
    is_masked: bool = field(default=False, metadata=_OPTIONAL)
    numeric_dtype: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    types: Sequence[str] = field(default=(), metadata=_OPTIONAL)
    is_place_fixed: bool = field(default=False, metadata=_OPTIONAL)
    is_at_end: bool = field(default=False, metadata=_OPTIONAL)
    is_too_small: bool = field(default=False, metadata=_OPTIONAL)


@final
@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """A known cause of failures.

    Attributes:
        id: the name in the documentation.
        likely: the probable defect, as a phrase.
        look_at: where to look for the defect, as a sentence.
        explanation: why the defect has this signature, in some sentences.
        when: the alternatives for the conditions.
        mutants: the kinds of mutants that have this defect, each with the reason why the diagnosis describes it and
            leads to the right place. They measure how often the diagnosis is correct.
    """

    id: str
    likely: str
    look_at: str
    explanation: str
    when: Sequence[Conditions]
    mutants: Mapping[str, str] = field(default_factory=dict, metadata=_OPTIONAL)


@cache
def catalog() -> tuple[Diagnosis, ...]:
    """Return all diagnoses in the order in which they are tried."""
    content = tomllib.loads(files(__package__).joinpath("diagnoses.toml").read_text("utf-8"))
    return tuple(from_json(Diagnosis, entry) for entry in content["diagnosis"])


def diagnose(group: CaseGroup) -> Diagnosis | None:
    """Return the first diagnosis whose conditions hold for a group; None if there is none."""
    return next((entry for entry in catalog() if any(_holds(conditions, group) for conditions in entry.when)), None)


def _holds(conditions: Conditions, group: CaseGroup) -> bool:
    """Return whether all conditions hold for a group."""
    signature, findings = group.signature, group.findings
    of_signature = ("symptom", "relation", "pattern", "state", "trait")
    if not all(_is_among(getattr(signature, name), getattr(conditions, name)) for name in of_signature):
        return False
    if signature.trait in conditions.not_trait:
        return False
    if conditions.numeric_dtype and not group.numeric_types <= set(conditions.numeric_dtype):
        return False
    if not group.numeric_types >= set(conditions.types):
        return False
    if not (_are_enough(conditions, group) and _are_relations_expected(conditions, group)):
        return False
    if not (_are_errors_expected(conditions, findings) and _are_places_expected(conditions, findings)):
        return False
    if conditions.text and not any(part in signature.detail.lower() for part in conditions.text):
        return False
    families = [{family_of(finding.record.function)} for finding in findings]
    functions = [finding.record.function.lower() for finding in findings] if conditions.function else []
    pointwise = sum(is_pointwise(finding.record.function) for finding in findings)
    rounded = sum(is_rounded(finding.record.function) for finding in findings)
    return (
        _holds_for_most([{finding.record.dtype} for finding in findings], conditions.dtype)
        and not (conditions.not_dtype and _holds_for_most([{f.record.dtype} for f in findings], conditions.not_dtype))
        and not (
            conditions.not_result_type
            and _holds_for_most([{f.result_type} for f in findings], conditions.not_result_type)
        )
        and _holds_for_most([{finding.record.class_} for finding in findings], conditions.case_class)
        and _holds_for_most([finding.traits for finding in findings], conditions.case_trait)
        and _holds_for_most(families, conditions.family)
        and not (conditions.not_family and _holds_for_most(families, conditions.not_family))
        and not (conditions.is_rounded and rounded < MIN_SHARE * len(findings))
        and not (conditions.is_pointwise and pointwise < MIN_SHARE * len(findings))
        and _holds_for_most([_conditions(finding) for finding in findings], conditions.region)
        and _holds_for_most([_parts_of_label(finding, conditions.label) for finding in findings], conditions.label)
        and not (
            conditions.not_label
            and _holds_for_most(
                [_parts_of_label(finding, conditions.not_label) for finding in findings], conditions.not_label
            )
        )
        and all(_holds_for_most([_kinds(finding) for finding in findings], [kind]) for kind in conditions.kinds)
        and _holds_for_most(
            [_parts_of_messages(finding, conditions.message) for finding in findings], conditions.message
        )
        and not (
            conditions.not_message
            and _holds_for_most(
                [_parts_of_messages(f, conditions.not_message) for f in findings], conditions.not_message
            )
        )
        and _holds_for_most(
            [{part for part in conditions.function if part in name} for name in functions], conditions.function
        )
    )


def _are_enough(conditions: Conditions, group: CaseGroup) -> bool:
    """Return whether enough cases of enough functions fail, with large enough tensors."""
    findings, total = group.findings, len(group.findings) + group.passed
    wrong_elements = sum(finding.wrong_count for finding in findings)
    return (
        len(findings) >= conditions.min_cases
        and len({base_function(finding.record.function) for finding in findings}) >= conditions.min_functions
        and conditions.min_share * total <= len(findings) <= conditions.max_share * total
        and max(finding.size for finding in findings) >= conditions.min_size
        and max(finding.wrong_count for finding in findings) >= conditions.min_wrong
        and wrong_elements >= conditions.min_wrong_share * sum(finding.total for finding in findings)
        and (
            not conditions.max_smallest_size
            or min(finding.call_size for finding in findings) <= conditions.max_smallest_size
        )
    )


def _are_relations_expected(conditions: Conditions, group: CaseGroup) -> bool:
    """Return whether the relation is frequent enough in the functions' cases, and no other relation excludes it."""
    relation, findings = group.signature.relation, group.findings
    with_relation, failed = group.relations.get(relation, 0), sum(group.relations.values())
    observed = sum(finding.deviation is not None and finding.deviation.relation == relation for finding in findings)
    return (
        with_relation >= conditions.min_relation_share * (failed + group.passed)
        and not any(group.relations.get(name) for name in conditions.not_other_relation)
        and (not conditions.is_relation_observed or observed >= MIN_SHARE * len(findings))
    )


def _are_errors_expected(conditions: Conditions, findings: Sequence[Finding]) -> bool:
    """Return whether the errors of most cases are as large as a diagnosis expects.

    Args:
        conditions: the conditions of the diagnosis.
        findings: the main finding of each case.
    """
    if conditions.median_bits and not _is_median_expected(conditions.median_bits, findings):
        return False
    accuracies = [finding.correct_bits or 0.0 for finding in findings]
    accurate = sum(conditions.min_correct_bits <= bits <= conditions.max_correct_bits for bits in accuracies)
    scaled = [finding.deviation for finding in findings if finding.deviation and finding.relation == "scaled"]
    factors = [deviation.value for deviation in scaled if deviation.value is not None]
    expected = sum(conditions.min_factor <= factor <= conditions.max_factor for factor in factors)
    agreeing = [finding.agreeing_bits for finding in findings if finding.agreeing_bits is not None]
    overflowed = sum(finding.has_overflowed for finding in findings) >= MIN_SHARE * len(findings)
    are_integers = sum(f.deviation is not None and f.deviation.is_whole for f in findings) >= MIN_SHARE * len(findings)
    close = sum(bits >= conditions.min_agreeing_bits for bits in agreeing)
    return (
        accurate >= MIN_SHARE * len(findings)
        and expected >= MIN_SHARE * len(factors)
        and close >= MIN_SHARE * len(agreeing)
        and conditions.has_overflowed in (None, overflowed)
        and conditions.is_whole in (None, are_integers)
        and (not conditions.is_zero or sum(f.is_zero for f in findings) >= MIN_SHARE * len(findings))
        and (not conditions.is_nonzero or sum(not f.is_zero for f in findings) >= MIN_SHARE * len(findings))
        and (not conditions.is_masked or sum(f.is_masked for f in findings) >= MIN_SHARE * len(findings))
        and (not conditions.is_too_small or sum(f.is_too_small for f in findings) >= MIN_SHARE * len(findings))
    )


def _is_median_expected(limits: Sequence[float], findings: Sequence[Finding]) -> bool:
    """Return whether the median of the correct bits of the cases of float32 and complex64 lies between two limits."""
    bits = [f.correct_bits for f in findings if f.correct_bits is not None and f.record.dtype in _FLOAT32_TYPES]
    return bool(bits) and limits[0] <= median(bits) < limits[1]


_FLOAT32_TYPES = frozenset({"float32", "complex64"})
"""Element types whose products consist of float32 products."""


def _are_places_expected(conditions: Conditions, findings: Sequence[Finding]) -> bool:
    """Return whether the wrong elements of most cases are where a diagnosis expects them.

    Args:
        conditions: the conditions of the diagnosis.
        findings: the main finding of each case.
    """
    row_major = [finding for finding in findings if not _NOT_ROW_MAJOR & finding.traits] or findings
    required_count = MIN_SHARE * len(row_major)
    near_count = sum(_begins_near(finding.first_wrong, conditions.first_wrong) for finding in row_major)
    in_rows = sum(
        _begins_near(finding.first_wrong, [row * finding.row_lengths[0] for row in conditions.first_wrong_row])
        for finding in row_major
        if finding.row_lengths
    )
    from_limit = sum(_depends_on_limit(finding, conditions.first_wrong_input) for finding in row_major)
    late = sum(finding.first_wrong >= conditions.min_first_wrong for finding in row_major)
    at_limit = sum(bool(_usual_limits(finding)) for finding in row_major) >= required_count
    periodic = sum(finding.period in conditions.period for finding in row_major)
    saturated = sum(finding.is_saturated for finding in findings)
    in_last_tile = sum(2 * finding.first_wrong >= finding.total for finding in row_major if finding.first_wrong)
    return (
        (not conditions.first_wrong or near_count >= required_count)
        and (not conditions.first_wrong_row or in_rows >= required_count)
        and (not conditions.first_wrong_input or from_limit >= required_count)
        and late >= required_count
        and conditions.is_at_limit in (None, at_limit)
        and (
            not conditions.is_limit_unique or any(_usual_limits(finding) <= _LIMITS_OF_16_BITS for finding in row_major)
        )
        and (not conditions.period or periodic >= required_count)
        and (not conditions.max_wrong or all(0 < finding.wrong_count <= conditions.max_wrong for finding in findings))
        and (not conditions.is_last_tile or in_last_tile >= MIN_SHARE * sum(bool(f.first_wrong) for f in row_major))
        and (not conditions.is_saturated or saturated >= MIN_SHARE * len(findings))
        and (not conditions.are_nans_lost or _are_nans_lost(findings))
        and (not conditions.is_place_fixed or _is_place_fixed(findings))
        and (not conditions.is_at_end or all(finding.is_at_end for finding in findings if finding.total > 1))
    )


def _begins_near(first_wrong: int, limits: Sequence[int]) -> bool:
    """Return whether the first wrong element is one of the elements with these numbers, or soon follows one of them."""
    return any(0 <= first_wrong - limit < NEAR for limit in limits)


def _usual_limits(finding: Finding) -> set[int]:
    """Return the usual limits at which the first wrong element can be.

    A limit is a number of elements, or of rows along any axis. If several limits fit, the place does not tell which of
    them a kernel has: element 32,768 of a tensor with four columns is also the first one of row 8,192.
    """
    limits = (_usual_limit(finding.first_wrong, length) for length in {1, *finding.row_lengths} if length)
    return {limit for limit in limits if limit}


def _usual_limit(number: int, length: int) -> int:
    """Return the usual limit of rows of this length that the element with this number reaches; 0 if there is none.

    Usual limits are powers of two, and the 65,535 blocks of a grid. Some elements after a limit can be correct by
    chance.
    """
    row = number // length
    limit = MAX_ROWS if row == MAX_ROWS else 1 << row.bit_length() >> 1
    return limit if limit >= MIN_LIMIT and number - limit * length < min(NEAR, limit * length // 16) else 0


MIN_LIMIT = 1024
"""The least usual limit: the number of threads of a block."""

_LIMITS_OF_16_BITS = frozenset({32_768, MAX_ROWS, 65_536})
"""Limits of grids and of signed and unsigned indices of 16 bits."""


def _depends_on_limit(finding: Finding, limits: Sequence[int]) -> bool:
    """Return whether the first wrong element is the first one that depends on an input element with these numbers.

    The elements before it must show that the results of smaller numbers are correct. Every result element must be
    computed from a run of equally many elements of the largest tensor of the call.
    """
    run, remainder = divmod(finding.call_size, finding.total) if finding.total else (0, 0)
    return run > 1 and not remainder and 0 < finding.first_wrong in {limit // run for limit in limits}


_NOT_ROW_MAJOR = frozenset({"not_row_major", "result_not_row_major", "layout"})
"""Traits of cases in which the number of an element is not its place in memory."""


def _are_nans_lost(findings: Sequence[Finding]) -> bool:
    """Return whether most tensors with several wrong elements lost at least half of their NaNs.

    Such a tensor states the number of its NaNs if all of them are lost. A small tensor with a single wrong element may
    not state the number, so it does not decide.
    """
    informative = [f for f in findings if f.wrong_count > 1 and f.total >= INFORMATIVE_SIZE]
    return sum(2 * f.lost_nans >= f.expected_nans > 0 for f in informative) >= MIN_SHARE * len(informative)


def _is_place_fixed(findings: Sequence[Finding]) -> bool:
    """Return whether the worst element of most tensors of equal shapes has the same index.

    At least two tensors must have the same shape. The data of cases differ, so that a defect that depends on values has
    no fixed place.
    """
    indices: dict[str, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for shape, index in (finding.place for finding in findings if finding.place):
        indices[shape][index] += 1
    repeated = [counts for counts in indices.values() if counts.total() > 1]
    usual = sum(max(counts.values()) for counts in repeated)
    return bool(repeated) and usual >= MIN_SHARE * sum(counts.total() for counts in repeated)


def _is_among(name: str, alternatives: Sequence[str]) -> bool:
    """Return whether a field of the signature has one of the alternatives, or there are no alternatives."""
    is_floating_type = FLOATING_TYPE in alternatives and name in FLOATING_TYPES
    return not alternatives or is_floating_type or (name or "none") in alternatives


def _holds_for_most(values: Sequence[Collection[str]], alternatives: Sequence[str]) -> bool:
    """Return whether most cases have one of the alternatives among their values, or there are no alternatives.

    Args:
        values: the values of each case.
        alternatives: the alternatives of the condition.

    Returns:
        Whether the condition holds.
    """
    if not alternatives:
        return True
    counts = Counter(bool(set(alternatives).intersection(entry)) for entry in values)
    return counts[True] >= MIN_SHARE * len(values)


def _kinds(finding: Finding) -> Collection[str]:
    """Return the kinds of wrong elements of the largest incorrect tensor of a case."""
    return finding.deviation.kinds if finding.deviation else ()


def _parts_of_messages(finding: Finding, parts: Sequence[str]) -> set[str]:
    """Return the texts of `parts` that occur in a message of a failed check of a case."""
    messages = [check.message for check in finding.record.checks if not check.passed]
    return {part for part in parts if any(part in message for message in messages)}


def _parts_of_label(finding: Finding, parts: Sequence[str]) -> set[str]:
    """Return the texts of `parts` that occur in the label of a case."""
    return {part for part in parts if part in finding.record.label}


def _conditions(finding: Finding) -> set[str]:
    """Return the conditions of the regions of inputs that contain the wrong elements of a case."""
    return {region.condition for region in finding.deviation.regions} if finding.deviation else set()
