"""Records of failed cases whose first result differs in a known way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from case_records import case_record

from diopi_test.execution.deviation import Deviation, Region, ValueRelation
from diopi_test.execution.difference import Difference, Pattern, PatternKind
from diopi_test.execution.verdict import CheckResult
from diopi_test.results.records import CaseRecord


def wrong_values(
    case_id: str,
    kinds: Mapping[str, int],
    *,
    relation: ValueRelation | None = None,
    regions: Sequence[Region] = (),
    patterns: Sequence[Pattern] = (),
    arguments: Mapping[str, str] | None = None,
    total: int = 100,
    index: tuple[int, ...] = (0,),
    check: str = "values",
    actual: str = "",
    expected: str = "2.0",
    **fields: Any,
) -> CaseRecord:
    """Return the record of a case that fails a check of values because of elements of these kinds.

    Args:
        case_id: the ID of the case.
        kinds: the number of wrong elements of each kind of deviation, such as `rounding` or `lost_nan`.
        relation: the relation of the wrong elements to the expected ones.
        regions: the regions of inputs to which the wrong elements are limited.
        patterns: the patterns of their positions; by default, that all expected NaNs are lost if a NaN is lost.
        arguments: descriptions of the arguments of the call.
        total: the number of elements.
        index: the index of the worst element.
        check: the name of the check that fails.
        actual, expected: the worst element; by default, a rounding error if all wrong elements have this kind.
        fields: other fields of the deviation.

    Returns:
        The record, whose only difference is in the tensor `out`.
    """
    count = sum(kinds.values())
    if "lost_nan" in kinds and not patterns:
        lost = kinds["lost_nan"]
        patterns = [Pattern(PatternKind.values, f"only where expected is NaN, {lost} of {lost} such")]
    deviation = Deviation(kinds=kinds, relation=relation, regions=regions, **fields)
    difference = Difference(
        tensor="out",
        problem="are wrong",
        wrong_count=count,
        total=total,
        index=index,
        actual=actual or ("1.9" if set(kinds) == {"rounding"} else "1.0"),
        expected=expected,
        patterns=patterns,
        arguments=arguments or {},
        deviation=deviation,
    )
    message = f"out: {count} of {total} elements are wrong"
    result = CheckResult(check=check, passed=False, message=message, ratio=12.0, differences=(difference,))
    return case_record(case_id, "failed", f"{check}: {message}", result)
