"""Grouping of failed cases into causes.

1. Every failed case has a main finding: the problem of the case that most likely leads to the defect.
2. Small tensors do not show in which way the elements are wrong. Findings with few elements take over the description
   of the findings of the same function with many elements.
3. Traits of the arguments, such as a NaN among the inputs, explain why some cases of a function fail and others do not.
4. The description of a finding and the trait form its signature. Findings with equal signatures have the same cause.
   The signature also names the function, unless several functions can share the defect.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

from diopi_test.cases.case import CaseClass
from diopi_test.execution.deviation import DeviationKind
from diopi_test.execution.verdict import PROCESS_LOST, UNSUCCESSFUL, Verdict
from diopi_test.results.causes.finding import Finding, find_main_finding
from diopi_test.results.causes.precision import PRECISION, find_narrow_type
from diopi_test.results.causes.signature import PLAIN_SYMPTOMS, Signature
from diopi_test.results.causes.traits import OF_RECORD, TRAITS, base_function, record_traits
from diopi_test.results.pooling import CHECK as POOLED
from diopi_test.results.records import CaseRecord

_OF_NUMBERS = frozenset({DeviationKind.wrong_value.value, DeviationKind.rounding.value})
"""The symptoms of wrong numbers. One defect can cause the first in some cases and the second in others."""

_SHARED_RELATIONS = frozenset(
    {"saturated", "bfloat16", "float16", "float32", "narrow", "through_float32", "through_float64", "in_32_bits"}
)
"""Relations that point to a defect which functions share, such as a kernel or a helper function."""

_SHARED_PATTERNS = frozenset({"tail", "blocks", "range"})
"""Patterns of wrong elements that point to a defect which functions share."""

_LOCAL_SYMPTOMS = frozenset(
    {"wrong_value", "rounding", "validity", "validity.unchanged", "validity.zeros", "timed_out", "draws", "unwritten"}
)
"""Symptoms that do not suffice to show that functions share a defect."""

_TRAIT_RANK = {trait: number for number, trait in enumerate(TRAITS)}
"""The position of each trait in the order from specific to general."""


@final
@dataclass(frozen=True, kw_only=True)
class CaseGroup:
    """The failed cases with equal signatures.

    Attributes:
        signature: what the cases have in common.
        findings: the main findings of the cases.
        passed: the number of passed cases of the functions that fail. Calls that must be rejected don't count, because
            they run no kernel.
        relations: the number of failed cases of these functions by relation (what the wrong elements are instead of the
            expected ones), including cases with other signatures.
        numeric_types: the element types of all cases of these functions that have wrong numbers or rounding errors,
            including cases with other signatures.
    """

    signature: Signature
    findings: Sequence[Finding]
    passed: int = 0
    relations: Mapping[str, int] = field(default_factory=dict)
    numeric_types: frozenset[str] = frozenset()


def group_cases(records: Sequence[CaseRecord]) -> list[CaseGroup]:
    """Group the failed cases of a run by their causes.

    Args:
        records: the records of all cases of the run, without waivers.

    Returns:
        The groups. Every failed case belongs to exactly one group.
    """
    failed, passed = _findings_and_passed(records)
    groups: dict[Signature, list[Finding]] = defaultdict(list)
    relations: dict[str, Counter[str]] = {}
    for function, findings in failed.items():
        merged = _merge_vague(_mark_narrow(findings, passed[function]))
        relations[function] = Counter(finding.relation for finding in merged)
        for signature, finding in _signatures(merged, passed[function]):
            groups[signature].append(finding)
    numeric_types = {
        function: {finding.record.dtype for finding in findings if is_numeric(finding)}
        for function, findings in failed.items()
    }
    return [
        CaseGroup(
            signature=signature,
            findings=findings,
            passed=sum(
                record.class_ is not CaseClass.negative for function in functions for record in passed[function]
            ),
            relations=Counter(relation for function in functions for relation in relations[function].elements()),
            numeric_types=frozenset().union(*(numeric_types[function] for function in functions)),
        )
        for signature, findings in groups.items()
        for functions in [{finding.record.function for finding in findings}]
    ]


def _findings_and_passed(
    records: Sequence[CaseRecord],
) -> tuple[Mapping[str, list[Finding]], Mapping[str, list[CaseRecord]]]:
    """Return the main findings of the failed cases and the records of the passed cases, by function."""
    failed: dict[str, list[Finding]] = defaultdict(list)
    passed: dict[str, list[CaseRecord]] = defaultdict(list)
    for record in records:
        if record.verdict in UNSUCCESSFUL:
            failed[record.function].append(find_main_finding(record))
        elif record.verdict is Verdict.passed:
            passed[record.function].append(record)
    return failed, passed


# Findings with few elements

_LATE = "written_late"
"""The symptom of results that are written after the work of the call in the stream.

Only cases that read a result twice show this symptom. In other cases, the same defect looks like unwritten elements.
"""

_OF_LATE_RESULTS = frozenset({"unchanged", "partly_unchanged"})
"""Relations of a tensor that is read before the call has updated it."""

INFORMATIVE_SIZE = 8
"""The least number of elements of a tensor whose relation and pattern of wrong elements are not due to chance."""

MIN_SHARE = 0.8
"""If at least this share of the findings of a function has the same symptom, all of them count as this symptom."""

MIN_SHARE_FLOATING = 1 / 3
"""If at least this share of the findings of a function has a floating-point type, only these findings decide."""


def _mark_narrow(findings: Sequence[Finding], passed: Sequence[CaseRecord]) -> Sequence[Finding]:
    """Return the findings of a function, with the relation `narrow` if it computes in a type narrower than the result.

    Args:
        findings: the findings of the failed cases of the function.
        passed: the records of its passed cases.

    Returns:
        The findings in the same order.
    """
    numeric = [finding for finding in findings if is_numeric(finding) and finding.record.dtype in PRECISION]
    correct_bits = [(finding.result_type or finding.record.dtype, finding.correct_bits) for finding in numeric]
    passed_types = [record.dtype for record in passed if record.class_ is not CaseClass.empty]
    if not find_narrow_type(correct_bits, passed_types):
        return findings
    return [
        replace(finding, relation="narrow")
        if is_numeric(finding) and finding.correct_bits is not None and not finding.relation
        else finding
        for finding in findings
    ]


def _merge_vague(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings of a function with the most frequent relation and pattern in all findings of wrong numbers.

    The relation and pattern are elected by the informative findings (see `_informative` and `_elect`), because small
    tensors do not show them. A function most likely has only one relation and one pattern. If a result of any case is
    written late, unwritten elements and tensors without their update in other cases count as written late, too.
    """
    numeric = [finding for finding in findings if is_numeric(finding)]
    voters = _informative(numeric)
    symptoms = Counter(finding.symptom for finding in voters)
    main = max(symptoms, key=lambda symptom: (symptoms[symptom], symptom), default="")
    is_single = symptoms[main] >= MIN_SHARE * len(voters)
    votes = {
        symptom: [f for f in voters if f.symptom == symptom or is_single]
        or [f for f in numeric if f.symptom == symptom]
        for symptom in dict.fromkeys(finding.symptom for finding in numeric)
    }
    elected = {symptom: (_elect(group, "relation"), _elect(group, "pattern")) for symptom, group in votes.items()}
    is_late = any(finding.symptom == _LATE for finding in findings)
    merged = []
    for finding in findings:
        if is_late and (finding.symptom == "unwritten" or finding.relation in _OF_LATE_RESULTS):
            merged.append(replace(finding, symptom=_LATE, relation="", pattern=""))
            continue
        if not is_numeric(finding):
            merged.append(finding)
            continue
        relation, pattern = elected[finding.symptom]
        symptom = main if is_single else finding.symptom
        merged.append(replace(finding, symptom=symptom, relation=relation, pattern=pattern))
    return merged


def _informative(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings of floating-point types, or all findings if these are few.

    Integer results are less informative, because different defects often give equal integers.
    """
    floating = [finding for finding in findings if finding.record.dtype in PRECISION]
    return floating if len(floating) >= MIN_SHARE_FLOATING * len(findings) else findings


def is_numeric(finding: Finding) -> bool:
    """Return whether the symptom of a finding is wrong numbers or too large errors, in the first call of a case."""
    return finding.symptom in _OF_NUMBERS and not finding.state


def _elect(findings: Sequence[Finding], name: str) -> str:
    """Return the most frequent value of the field `name`, `relation` or `pattern`, in findings with enough elements.

    If no finding has enough elements, all findings count.
    """
    large = [finding for finding in findings if finding.size >= INFORMATIVE_SIZE] or findings
    counts: Counter[str] = Counter(getattr(finding, name) for finding in large)
    rearranged = counts.pop(_REARRANGED, 0)
    counts[_MISPLACED] += rearranged
    elected = max(counts, key=lambda value: (counts[value], value))
    return _REARRANGED if elected == _MISPLACED and 2 * rearranged > counts[_MISPLACED] else elected


_MISPLACED, _REARRANGED = "misplaced", "rearranged"
"""A relation and a special case of it, which are elected together."""


# Signatures


def _signatures(findings: Sequence[Finding], passed: Sequence[CaseRecord]) -> Iterator[tuple[Signature, Finding]]:
    """Yield each finding of a function with its complete signature, including the trait and the scope.

    Args:
        findings: the findings of the function.
        passed: the records of its passed cases.

    Yields:
        Pairs of a signature and a finding.
    """
    cores: dict[Signature, list[Finding]] = defaultdict(list)
    for finding in findings:
        cores[finding.signature].append(finding)
    for core, members in cores.items():
        for trait, explained in _explain(members, passed):
            signature = replace(core, trait=trait)
            scope = "" if is_shared(signature) else base_function(members[0].record.function)
            yield from ((replace(signature, scope=scope), finding) for finding in explained)


def is_shared(signature: Signature) -> bool:
    """Return whether functions can share the defect of a signature."""
    return bool(
        signature.symptom not in _LOCAL_SYMPTOMS
        or signature.relation in _SHARED_RELATIONS
        or signature.pattern in _SHARED_PATTERNS
        or signature.detail
        or signature.trait in _SHARED_TRAITS
    )


_SHARED_TRAITS = frozenset(TRAITS) - OF_RECORD - {"zero", "negative", "broadcast"}
"""Traits of arguments that point to a defect which functions share."""


def _explain(findings: Sequence[Finding], passed: Sequence[CaseRecord]) -> Iterator[tuple[str, list[Finding]]]:
    """Divide findings among the traits that explain why these cases fail while others pass.

    Args:
        findings: findings of a function with equal signatures.
        passed: the records of the passed cases of the function.

    Yields:
        Each trait with the findings that it explains. If traits do not explain all findings, the only pair is an empty
        trait with all findings.
    """
    if findings[0].symptom in PLAIN_SYMPTOMS:
        yield from _split_empty(findings)
        return
    contrast = _Contrast(passed)
    parts: list[tuple[str, list[Finding]]] = []
    left = list(findings)
    while left:
        counts = Counter(
            trait for finding in left for trait in finding.traits if _is_relevant(trait, finding, contrast)
        )
        if not counts:
            yield "", list(findings)
            return
        trait = max(counts, key=lambda candidate: (counts[candidate], -_TRAIT_RANK[candidate]))
        parts.append((trait, [finding for finding in left if trait in finding.traits]))
        left = [finding for finding in left if trait not in finding.traits]
    yield from parts


def _split_empty(findings: Sequence[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    """Yield the findings of tensors with elements under an empty trait, and findings of empty tensors under `empty`.

    The two are kept apart because calls with empty tensors often run no kernel.
    """
    for trait in ("", "empty"):
        if part := [finding for finding in findings if ("empty" in finding.traits) == bool(trait)]:
            yield trait, part


def _is_relevant(trait: str, finding: Finding, contrast: _Contrast) -> bool:
    """Return whether a trait can explain a failure, compared with the passed cases of the function (`contrast`).

    The class and the element type explain a failure if a case of another class or type passed. The data explain it if
    only elements in a region are wrong. Other arguments explain it if a case of the same type passed, and no case with
    the same arguments in another type.
    """
    if trait in OF_RECORD:
        return any(trait not in traits for traits in contrast.traits)
    if trait in _TRAITS_OF_REGIONS:
        return True
    return finding.record.dtype in contrast.dtypes and _label_without_dtype(finding.record) not in contrast.labels


class _Contrast:
    """What the passed cases of a function have, to compare failed cases with.

    Attributes:
        traits: the sets of traits that follow from the class and the element type of a case.
        dtypes: the names of the element types.
        labels: the labels without the element type, which stand for the other arguments.
    """

    def __init__(self, passed: Sequence[CaseRecord]) -> None:
        self.traits = {frozenset(record_traits(record)) for record in passed}
        self.dtypes = {record.dtype for record in passed}
        self.labels = {_label_without_dtype(record) for record in passed}


def _label_without_dtype(record: CaseRecord) -> str:
    """Return the part of a label that cases with the same arguments in other element types have in common."""
    return record.label.removeprefix(f"{record.dtype}-")


_TRAITS_OF_REGIONS = frozenset(
    {
        "nan",
        "infinite",
        "negative_zero",
        "subnormal",
        "extreme_integer",
        "wide_integer",
        "far_from_zero",
        "near_zero",
        "below",
        "above",
    }
)
"""Traits about the inputs to which the wrong elements of a tensor, or the worst of them, are limited."""


# Representatives


def smallest(findings: Iterable[Finding]) -> CaseRecord:
    """Return the case that is the easiest to look at: not flaky, no process lost, few elements, float32, a short ID."""

    def effort(finding: Finding) -> tuple[bool, bool, int, bool, int, str]:
        """Return a sort key that is smaller for cases that are easier to look at."""
        record = finding.record
        is_flaky, is_lost = record.verdict is Verdict.flaky, record.verdict in PROCESS_LOST
        return is_flaky, is_lost, finding.size, record.dtype != "float32", len(record.id), record.id

    return min(findings, key=effort).record


def largest_factor(findings: Iterable[Finding]) -> float | None:
    """Return the largest error / budget, or root mean square / limit, of rounding errors; None if there are none."""
    factors = [
        check.excess
        for finding in findings
        if finding.symptom == DeviationKind.rounding
        for check in finding.record.checks
        if not check.passed and check.check in ("values", POOLED)
    ]
    return max(factors, default=None)


def count_functions(findings: Iterable[Finding]) -> Mapping[str, int]:
    """Return the number of cases by function, in alphabetical order."""
    counts = Counter(finding.record.function for finding in findings)
    return {function: counts[function] for function in sorted(counts)}
