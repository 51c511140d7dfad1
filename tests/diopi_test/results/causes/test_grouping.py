"""Failed cases are grouped by what they have in common, across functions, element types and forms."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from case_records import case_record, report_of
from failed_cases import wrong_values
from rich.console import Console
from shown_reports import CRASH

from diopi_proto.interface import prototypes
from diopi_test.cases.case import CaseClass
from diopi_test.execution.deviation import Region, ValueRelation
from diopi_test.execution.difference import Pattern, PatternKind
from diopi_test.execution.verdict import CheckResult, Verdict
from diopi_test.results.causes.cause import Cause
from diopi_test.results.causes.severity import Severity
from diopi_test.results.causes.text import show_causes
from diopi_test.results.causes.traits import is_pointwise, is_rounded
from diopi_test.results.records import CaseRecord
from diopi_test.run.options import RunOptions


def causes_of(*records: CaseRecord) -> tuple[Cause, ...]:
    """Return the causes of a report with these cases."""
    return report_of(records).causes


def passed_cases(*ids: str) -> list[CaseRecord]:
    """Return passed cases with these IDs."""
    return [case_record(case_id, "passed") for case_id in ids]


def test_every_failed_case_has_one_cause() -> None:
    records = [
        wrong_values("diopiAdd[float32-a]", {"wrong_value": 9}),
        wrong_values("diopiExp[float16-a]", {"lost_nan": 1}),
        case_record("diopiSub[float32-a]", "crashed", "the vendor was ended by SIGSEGV (segmentation fault)"),
        case_record("diopiMul[float32-a]", "not_implemented"),
        *passed_cases("diopiMul[float32-b]"),
    ]
    report = report_of(records)
    assert {case.id for case in report.cases if case.cause} == {record.id for record in records[:3]}
    assert sum(cause.cases for cause in report.causes) == 3
    assert {case.cause for case in report.cases if case.cause} == {cause.id for cause in report.causes}


def test_lost_nans_of_several_functions_have_one_cause() -> None:
    functions = ("diopiMax", "diopiMin", "diopiRelu")
    (cause,) = causes_of(*(wrong_values(f"{name}[float32-special]", {"lost_nan": 2}) for name in functions))
    assert cause.functions == dict.fromkeys(functions, 1)
    assert cause.severity is Severity.major
    assert cause.diagnosis == "nan-dropped"


def test_wrong_numbers_without_a_relation_are_causes_of_their_functions() -> None:
    found = causes_of(*(wrong_values(f"{name}[float32-a]", {"wrong_value": 50}) for name in ("diopiAdd", "diopiExp")))
    assert sorted(name for cause in found for name in cause.functions) == ["diopiAdd", "diopiExp"]
    assert len(found) == 2
    assert {cause.diagnosis for cause in found} == {"another-computation"}


def test_the_forms_of_a_function_share_a_cause() -> None:
    names = ("diopiAdd", "diopiAddInp", "diopiAddScalar")
    (cause,) = causes_of(*(wrong_values(f"{name}[float32-a]", {"wrong_value": 50}) for name in names))
    assert len(cause.functions) == 3


BOOL = {"out": "float32 (4,), strides (1,)", "input": "float32 (4,), strides (1,)", "other": "True", "alpha": "1"}


def test_a_bool_scalar_explains_failures_of_several_functions() -> None:
    failed = [
        wrong_values(f"{name}[float32-bool-scalar]", {"wrong_value": 50}, arguments=BOOL)
        for name in ("diopiAddScalar", "diopiSubScalar", "diopiMulScalar")
    ]
    (cause,) = causes_of(*failed, *(replace(passed_cases(f"{record.function}[float32-a]")[0]) for record in failed))
    assert cause.sentence == "wrong numbers if a scalar is bool"
    assert cause.diagnosis == "bool-scalar-misread"


def test_a_single_function_is_no_evidence_of_misread_bool_scalars() -> None:
    failed = wrong_values("diopiAddScalar[float32-bool-scalar]", {"wrong_value": 50}, arguments=BOOL)
    (cause,) = causes_of(failed, *passed_cases("diopiAddScalar[float32-a]"))
    assert (cause.sentence, cause.diagnosis) == ("wrong numbers if a scalar is bool", "")


def test_a_trait_explains_nothing_if_every_case_fails() -> None:
    (cause,) = causes_of(
        wrong_values("diopiAddScalar[float32-bool-scalar]", {"wrong_value": 50}, arguments=BOOL),
        wrong_values("diopiAddScalar[float32-a]", {"wrong_value": 50}, arguments={**BOOL, "other": "2"}),
    )
    assert cause.sentence == "wrong numbers in diopiAdd"


def test_a_region_of_inputs_explains_failures_of_several_functions() -> None:
    region = Region(parameter="input", condition="below", inside=-8.1, outside=-7.9)
    (cause,) = causes_of(
        *(
            wrong_values(f"{name}[float32-wide]", {"wrong_value": 20}, regions=[region])
            for name in ("diopiSigmoid", "diopiSilu")
        )
    )
    assert cause.diagnosis == "intrinsic-outside-its-range"
    assert "below a bound" in cause.sentence


def test_equal_messages_of_errors_have_one_cause() -> None:
    records = [
        case_record(f"{name}[float32-a]", "failed", f"ErrorOccurred: {name}: could not create engine {number}")
        for number, name in enumerate(("diopiAdd", "diopiExp", "diopiConvolution2d"))
    ]
    (cause,) = causes_of(*records)
    assert cause.sentence == "the call returns an error: ErrorOccurred: … : could not create engine …"
    assert (cause.severity, cause.diagnosis) == (Severity.major, "engine-cannot-start")


def test_small_tensors_join_the_relation_that_large_ones_show() -> None:
    narrow = wrong_values("diopiSum[float64-large]", {"rounding": 90}, relation=ValueRelation.float32)
    small = wrong_values("diopiSum[float64-one]", {"rounding": 1}, total=1)
    (cause,) = causes_of(narrow, small)
    assert cause.diagnosis == "result-in-narrower-type"


OUT = {"float64": {"out": "float64 (100,), strides (1,)"}, "float32": {"out": "float32 (100,), strides (1,)"}}


def test_only_consistent_errors_are_errors_of_narrower_arithmetic() -> None:
    wide = [wrong_values(f"diopiExp[{name}-a]", {"rounding": 90}, units=2.0**13, arguments=OUT[name]) for name in OUT]
    assert {cause.diagnosis for cause in causes_of(*wide, *passed_cases("diopiExp[float16-a]"))} == {""}
    double = wrong_values("diopiExp[float64-a]", {"rounding": 90}, units=2.0**42, arguments=OUT["float64"])
    found = causes_of(double, wide[1], *passed_cases("diopiExp[float16-a]"))
    assert [cause.diagnosis for cause in found] == ["arithmetic-in-narrower-type"]


def test_wrong_numbers_in_special_data_have_no_diagnosis() -> None:
    failed = replace(wrong_values("diopiExp[float32-special]", {"wrong_value": 1}), class_=CaseClass.special)
    (cause,) = causes_of(failed, *passed_cases("diopiExp[float32-a]"))
    assert cause.sentence == "wrong numbers in one element in diopiExp if the data have special values"
    assert cause.diagnosis == ""


@pytest.mark.parametrize(
    ("dtype", "failures", "negative", "zeros", "diagnosis"),
    [
        ("float32", 6, 0, 100, "only-zeros"),
        ("float32", 5, 0, 100, ""),
        ("float32", 6, 9, 100, "only-zeros"),
        ("float32", 6, 0, 50, ""),
        ("bool", 6, 0, 100, ""),
    ],
)
def test_zeros_are_a_result_that_is_not_computed_if_most_cases_and_elements_are_zero(
    dtype: str, failures: int, negative: int, zeros: int, diagnosis: str
) -> None:
    """Passed negative tests do not count, because they run no kernel; a wrong truth value is often 0 by chance."""
    arguments = {"out": f"{dtype} (100,), strides (1,)"}
    failed = [
        wrong_values(
            f"diopiEq[float32-{n}]",
            {"wrong_value": zeros},
            relation=ValueRelation.zero,
            arguments=arguments,
            is_whole=zeros == 100,
        )
        for n in range(failures)
    ]
    correct = passed_cases(*(f"diopiEq[float32-passed-{n}]" for n in range(10 - failures)))
    rejected = [
        replace(record, class_=CaseClass.negative)
        for record in passed_cases(*(f"diopiEq[bad-{n}]" for n in range(negative)))
    ]
    (cause,) = causes_of(*failed, *correct, *rejected)
    assert cause.diagnosis.replace("another-computation", "") == diagnosis


def test_unwritten_tails_have_one_cause() -> None:
    tail = Pattern(PatternKind.tail, "the last 4 of 100")
    (cause,) = causes_of(
        *(wrong_values(f"{name}[float32-a]", {"wrong_value": 4}, patterns=[tail]) for name in ("diopiAdd", "diopiExp"))
    )
    assert cause.diagnosis == "tail-of-a-tile"


@pytest.mark.parametrize(("first", "diagnosis"), [(64, "tail-of-a-tile"), (16, "")])
def test_zeros_at_the_end_are_a_tail_if_more_elements_come_before(first: int, diagnosis: str) -> None:
    """An incomplete tile has fewer elements than the complete tiles before it."""
    end = Pattern(PatternKind.end, f"all from number {first} on")
    record = wrong_values(
        "diopiAdd[float32-a]", {"wrong_value": 30}, patterns=[end], relation=ValueRelation.zero, actual="0.0"
    )
    (cause,) = causes_of(record)
    assert cause.diagnosis == diagnosis


def test_everything_from_a_power_of_two_on_is_a_limit_of_16_bits() -> None:
    end = Pattern(PatternKind.end, "the last 34464 of 100000, all from number 65536 on, a multiple of 65536")
    record = wrong_values("diopiAdd[float32-a]", {"wrong_value": 34464}, total=100_000, patterns=[end])
    (cause,) = causes_of(record, *passed_cases("diopiAdd[float32-b]"))
    assert cause.sentence == "wrong numbers after the first elements in diopiAdd"
    assert cause.diagnosis == "grid-of-16-bits"


@pytest.mark.parametrize(
    ("shape", "first", "diagnosis"),
    [
        ((20_000, 5), 32_768, "grid-of-16-bits"),  # not at the start of a row
        ((20_000, 4), 32_768, "part-after-a-limit"),  # also the start of row 8,192
        ((70_000, 16), 65_536 * 16, "part-after-a-limit"),  # also element 2^20
        ((70_000, 5), 65_535 * 5, "grid-of-16-bits"),
    ],
)
def test_a_place_at_two_usual_limits_does_not_tell_which_limit_a_kernel_has(
    shape: tuple[int, int], first: int, diagnosis: str
) -> None:
    total = shape[0] * shape[1]
    end = Pattern(PatternKind.end, f"the last {total - first} of {total}, all from number {first} on")
    arguments = {name: f"float32 {shape}, strides ({shape[1]}, 1)" for name in ("out", "input")}
    record = wrong_values(
        "diopiExp[float32-rows]", {"wrong_value": total - first}, total=total, patterns=[end], arguments=arguments
    )
    (cause,) = causes_of(record, *passed_cases("diopiExp[float32-a]"))
    assert cause.diagnosis == diagnosis


@pytest.mark.parametrize(
    ("total", "first", "diagnosis"),
    [(70_001, 69_632, "tail-of-a-tile"), (66_000, 65_536, ""), (2**20 + 9, 2**20, ""), (1000, 992, "tail-of-a-tile")],
)
def test_a_tile_that_ends_at_a_usual_limit_has_no_diagnosis(total: int, first: int, diagnosis: str) -> None:
    """What remains after complete tiles can also be what comes after a limit."""
    tail = Pattern(PatternKind.tail, f"the last {total - first} of {total}, all from number {first} on")
    arguments = {name: f"float32 ({total},), strides (1,)" for name in ("out", "input")}
    record = wrong_values(
        "diopiExp[float32-vector]",
        {"wrong_value": total - first},
        total=total,
        patterns=[tail],
        arguments=arguments,
        relation=ValueRelation.zero,
        actual="0.0",
    )
    (cause,) = causes_of(record, *passed_cases("diopiExp[float32-a]"))
    assert cause.diagnosis == diagnosis


@pytest.mark.parametrize(("row", "diagnosis"), [(65_535, "grid-of-16-bits"), (8192, "part-after-a-limit"), (100, "")])
def test_the_first_missing_row_tells_which_limit_a_kernel_has(row: int, diagnosis: str) -> None:
    total, first = 70_001 * 5, row * 5
    end = Pattern(PatternKind.end, f"the last {total - first} of {total}, all from number {first} on")
    arguments = {name: "float32 (70001, 5), strides (5, 1)" for name in ("out", "input")}
    record = wrong_values(
        "diopiExp[float32-rows]", {"invented_nan": total - first}, total=total, patterns=[end], arguments=arguments
    )
    (cause,) = causes_of(record, *passed_cases("diopiExp[float32-a]"))
    assert cause.diagnosis == diagnosis


def test_columns_after_a_power_of_two_are_a_limit_of_16_bits() -> None:
    patterns = [
        Pattern(PatternKind.slice, "exactly [:, 65536:]"),
        Pattern(PatternKind.period, "4465 of every 70001 elements, numbers 65536 to 70000, 135537 to 140001, …"),
    ]
    record = wrong_values("diopiExp[float32-a]", {"wrong_value": 31_255}, total=490_007, patterns=patterns)
    (cause,) = causes_of(record, *passed_cases("diopiExp[float32-b]"))
    assert cause.diagnosis == "grid-of-16-bits"


@pytest.mark.parametrize(("first", "diagnosis"), [(65, "grid-of-16-bits"), (32, "grid-of-16-bits"), (64, ""), (1, "")])
def test_the_first_wrong_sum_tells_that_an_index_of_its_terms_has_16_bits(first: int, diagnosis: str) -> None:
    """Each of the 100 sums has 1,000 terms, so that sum 65 is the first one with terms after number 65,535."""
    end = Pattern(PatternKind.end, f"the last {100 - first} of 100, all from number {first} on")
    arguments = {"out": "float32 (100,), strides (1,)", "input": "float32 (100, 1000), strides (1000, 1)"}
    record = wrong_values("diopiSum[float32-a]", {"wrong_value": 100 - first}, patterns=[end], arguments=arguments)
    (cause,) = causes_of(record, *passed_cases("diopiSum[float32-b]"))
    assert cause.diagnosis == diagnosis


@pytest.mark.parametrize(
    ("shape", "indices", "diagnosis"),
    [
        ((4, 5), [(3, 4)], "one-element"),
        ((4, 5), [(3, 3)], ""),
        ((2, 3), [(1, 2)], ""),
        ((2, 3), [(1, 2), (1, 2)], "one-element"),
        ((2, 3), [(1, 2), (0, 0)], ""),
    ],
)
def test_a_wrong_last_element_is_an_error_at_an_edge(
    shape: tuple[int, int], indices: list[tuple[int, int]], diagnosis: str
) -> None:
    """A single wrong element at the end of a small tensor may be chance, unless it happens in several cases."""
    total = shape[0] * shape[1]
    arguments = {"out": f"bool {shape}, strides ({shape[1]}, 1)"}
    failed = [
        wrong_values(
            f"diopiEq[float32-{number}]", {"wrong_value": 1}, total=total, index=index, arguments=arguments, actual="0"
        )
        for number, index in enumerate(indices)
    ]
    (cause,) = causes_of(*failed, *passed_cases(*(f"diopiEq[float32-passed-{number}]" for number in range(20))))
    assert cause.diagnosis == diagnosis


def test_sums_in_half_precision_that_stop_growing_are_too_small() -> None:
    arguments = {"out": "float16 (), strides ()"}
    failed = {
        actual: wrong_values("diopiMean[float16-a]", {"wrong_value": 1}, total=1, arguments=arguments, actual=actual)
        for actual in ("1.5", "3.5")
    }
    found = {actual: causes_of(record, *passed_cases("diopiMean[float32-b]")) for actual, record in failed.items()}
    assert [cause.diagnosis for cause in found["1.5"]] == ["half-accumulated-in-half"]
    assert [cause.diagnosis for cause in found["3.5"]] == [""]


@pytest.mark.parametrize(("count", "diagnosis"), [(80, "elements-at-other-places"), (20, "")])
def test_few_cases_with_misplaced_elements_are_evidence_if_many_elements_are_misplaced(
    count: int, diagnosis: str
) -> None:
    failed = [
        wrong_values(
            f"diopiRoll[float32-{number}]",
            {"wrong_value": count},
            relation=ValueRelation.misplaced,
            arguments=OUT["float32"],
        )
        for number in range(2)
    ]
    (cause,) = causes_of(*failed, *passed_cases(*(f"diopiRoll[float32-passed-{number}]" for number in range(30))))
    assert cause.diagnosis == diagnosis


def test_an_update_that_is_written_late_in_a_case_is_written_late_in_all_cases() -> None:
    late = wrong_values("diopiAddInp[float32-a]", {"wrong_value": 9}, check="order")
    late = replace(late, checks=tuple(replace(check, problems=("written_late",)) for check in late.checks))
    unchanged = wrong_values("diopiAddInp[float32-b]", {"wrong_value": 100}, relation=ValueRelation.unchanged)
    (cause,) = causes_of(late, unchanged)
    assert (cause.cases, cause.diagnosis) == (2, "missing-stream-dependency")


def test_one_case_of_another_class_is_no_evidence_of_ignored_strides() -> None:
    arguments = {"out": "float32 (9, 9), strides (9, 1)", "input": "float32 (9, 9), strides (1, 9)"}
    failed = wrong_values(
        "diopiExp[float32-columns]", {"wrong_value": 50}, relation=ValueRelation.misplaced, arguments=arguments
    )
    simple = passed_cases("diopiExp[float32-a]")
    (cause,) = causes_of(replace(failed, class_=CaseClass.layout), *simple)
    (ambiguous,) = causes_of(failed, *simple)
    assert (cause.diagnosis, ambiguous.diagnosis) == ("strides-cached-or-ignored", "")


@pytest.mark.parametrize(("count", "diagnosis"), [(20, ""), (50, "strides-cached-or-ignored")])
def test_one_layout_case_is_evidence_of_ignored_strides_only_if_many_elements_are_wrong(
    count: int, diagnosis: str
) -> None:
    """Misread elements are nearly always wrong, but the call of a layout case can be special in other ways."""
    arguments = {"out": "float32 (10, 10), strides (10, 1)", "input": "float32 (10, 10), strides (1, 10)"}
    failed = [
        replace(
            wrong_values(f"diopiExp[float32-{name}]", {"wrong_value": count}, arguments=arguments),
            class_=CaseClass.layout,
        )
        for name in ("columns", "transposed")
    ]
    simple = passed_cases("diopiExp[float32-a]")
    assert [cause.diagnosis for cause in causes_of(failed[0], *simple)] == [diagnosis]
    assert [cause.diagnosis for cause in causes_of(*failed, *simple)] == ["strides-cached-or-ignored"]


def test_wrong_numbers_of_wider_types_refute_sums_in_half_precision() -> None:
    arguments = {"out": "float16 (100,), strides (1,)"}
    half = wrong_values("diopiMean[float16-a]", {"wrong_value": 90}, arguments=arguments)
    wide = wrong_values("diopiMean[float32-b]", {"rounding": 50}, arguments=OUT["float32"])
    narrow = causes_of(half, *passed_cases("diopiMean[float32-b]"))
    assert [cause.diagnosis for cause in narrow] == ["half-accumulated-in-half"]
    found = causes_of(half, wide, *passed_cases("diopiMean[float32-a]"))
    assert "half-accumulated-in-half" not in {cause.diagnosis for cause in found}


def test_approximations_outside_their_range_have_some_correct_bits() -> None:
    region = Region(parameter="input", condition="below", inside=-8.1, outside=-7.9)
    fields = {"regions": [region], "arguments": OUT["float32"]}
    names = ("diopiSigmoid[float32-a]", "diopiSigmoid[float32-b]")
    precise = causes_of(*(wrong_values(name, {"rounding": 20}, units=2.0**9, **fields) for name in names))
    coarse = causes_of(*(wrong_values(name, {"rounding": 20}, units=2.0**22, **fields) for name in names))
    assert [cause.diagnosis for cause in (*precise, *coarse)] == ["intrinsic-outside-its-range", ""]


@pytest.mark.parametrize(
    ("function", "bits", "diagnosis"),
    [
        ("diopiBaddbmmInp", [10.6, 11.2, 12.4], "products-of-bfloat16-factors"),
        ("diopiBaddbmmInp", [12.6, 12.9, 14.6], "products-of-tf32-factors"),
        ("diopiBaddbmmInp", [13.8, 14.2, 15.4], "products-of-tf32-factors"),
        ("diopiBaddbmmInp", [14.7, 15.1, 16.3], "products-of-hf32-factors"),
        ("diopiTokenAttentionInference", [14.6, 14.9, 15.6], "products-of-hf32-factors"),
        ("diopiTokenSoftmaxReduceVInference", [14.6, 15.2, 20.9], "products-of-tf32-factors"),
        ("diopiTokenSoftmaxReduceVInference", [15.7, 16.1, 19.6], "products-of-hf32-factors"),
        ("diopiContextAttentionInference", [19.8, 20.2, 20.7], "products-of-split-factors"),
    ],
)
def test_the_median_of_the_correct_bits_names_the_format_of_factors(
    function: str, bits: list[float], diagnosis: str
) -> None:
    """The numbers are the smallest, the median and the largest of the vendors in `declared_vendors` at level full."""
    failed = [
        wrong_values(
            f"{function}[float32-{number}]", {"rounding": 20}, units=2.0 ** (24 - count), arguments=OUT["float32"]
        )
        for number, count in enumerate(bits)
    ]
    (cause,) = causes_of(*failed, *passed_cases(f"{function}[float32-a]"))
    assert cause.diagnosis == diagnosis


@pytest.mark.parametrize(
    ("function", "bits", "diagnosis"),
    [
        ("diopiPowTensor", [16.1, 16.4, 16.9], "inaccurate-approximation"),
        ("diopiNormBackward", [15.7, 16.8, 23.3], "inaccurate-approximation"),
        ("diopiGelu", [13.1, 13.6, 14.0], "inaccurate-approximation"),
        ("diopiGelu", [3.1, 3.6, 4.0], "another-computation"),
    ],
)
def test_accurate_powers_norms_and_gelu_with_rounding_errors_use_approximations(
    function: str, bits: list[float], diagnosis: str
) -> None:
    """The numbers are those of the vendor `fast_math` in `declared_vendors`, except for the last GELU."""
    failed = [
        wrong_values(
            f"{function}[float32-{number}]", {"rounding": 20}, units=2.0 ** (24 - count), arguments=OUT["float32"]
        )
        for number, count in enumerate(bits)
    ]
    (cause,) = causes_of(*failed, *passed_cases(f"{function}[float32-a]"))
    assert cause.diagnosis == diagnosis


@pytest.mark.parametrize(
    ("actual", "diagnosis"), [("2.0000002", "sums-in-changing-order"), ("3.0", "accumulated-into-result")]
)
def test_sums_change_their_order_if_the_second_result_nearly_agrees(actual: str, diagnosis: str) -> None:
    """Numbers that change in the last place can also be correct results of other elements."""
    record = wrong_values(
        "diopiMm[float32-a]", {"rounding": 5}, relation=ValueRelation.misplaced, check="repeat", actual=actual
    )
    (cause,) = causes_of(record)
    assert cause.diagnosis == diagnosis


def test_nan_of_calls_without_elements_is_a_separate_cause() -> None:
    empty = replace(wrong_values("diopiMean[float32-no-elements]", {"lost_nan": 3}), class_=CaseClass.empty)
    found = causes_of(empty, wrong_values("diopiMax[float32-nan]", {"lost_nan": 2}))
    assert {cause.diagnosis for cause in found} == {"reduction-of-nothing", "nan-dropped"}


def test_state_of_earlier_calls_is_a_cause() -> None:
    message = "failed in a process in which diopiAdd[int32-a] had run before (values: out is wrong), passed alone"
    failed = wrong_values("diopiAdd[float32-a]", {"wrong_value": 9})
    (cause,) = causes_of(replace(failed, verdict=Verdict.flaky, message=message))
    assert cause.diagnosis == "plan-cached-under-incomplete-key"


def test_ids_do_not_depend_on_other_cases() -> None:
    lost = wrong_values("diopiMax[float32-special]", {"lost_nan": 2})
    (only,) = causes_of(lost)
    found = causes_of(lost, wrong_values("diopiExp[float32-a]", {"wrong_value": 50}))
    assert only.id in {cause.id for cause in found}


def test_the_smallest_case_represents_the_cause() -> None:
    (cause,) = causes_of(
        wrong_values("diopiMax[float32-large]", {"lost_nan": 2}, total=1000),
        wrong_values("diopiMax[float32-small]", {"lost_nan": 2}, total=4),
    )
    assert cause.smallest_case == "diopiMax[float32-small]"


def test_the_worst_cause_comes_first() -> None:
    found = causes_of(
        wrong_values("diopiMax[float32-special]", {"lost_nan": 2}),
        wrong_values("diopiExp[float32-a]", {"wrong_value": 50}),
        wrong_values("diopiRelu[float32-a]", {"sign_of_zero": 1}),
    )
    assert [cause.severity for cause in found] == [Severity.critical, Severity.major, Severity.minor]
    assert [cause.counts for cause in found] == [True, True, False]


def test_the_terminal_lists_causes_and_a_line_for_minor_ones() -> None:
    text = StringIO()
    report = report_of(
        [
            wrong_values("diopiExp[float32-a]", {"wrong_value": 50}),
            wrong_values("diopiRelu[float32-a]", {"sign_of_zero": 1}),
        ]
    )
    show_causes(report, Console(file=text, width=160))
    lines = text.getvalue().splitlines()
    assert lines[0] == "1 cause for 1 failed case"
    assert lines[1].startswith("  1  critical  wrong numbers in diopiExp: 1 case of diopiExp")
    assert lines[-1].startswith("minor: 1 case of 1 function failed without affecting the exit status")


def test_the_terminal_shows_the_vendors_frame_of_a_crash_first() -> None:
    text = StringIO()
    show_causes(report_of([case_record("diopiExp[float32-a]", "crashed", CRASH)]), Console(file=text, width=160))
    lines = text.getvalue().splitlines()
    first = next(number for number, line in enumerate(lines) if line.endswith("(segmentation fault)"))
    assert lines[first + 1] == '    File "/home/me/chip/pooling.py", line 11 in launch_kernel'
    assert "Extension modules" not in text.getvalue()


def test_twenty_causes_are_listed() -> None:
    names = map(str, range(30))
    records = [
        case_record(f"diopiAdd[float32-{name}]", "crashed", f"the vendor was ended by signal {name}") for name in names
    ]
    text = StringIO()
    show_causes(report_of(records), Console(file=text, width=160))
    assert "… and 10 more causes; --json FILE lists them all" in text.getvalue()


def test_a_missing_reason_is_its_own_cause() -> None:
    result = CheckResult(check="refused", passed=False, message="the last error is empty", problems=("no_reason",))
    (cause,) = causes_of(case_record("diopiAdd[negative-a]", "failed", "", result))
    assert cause.sentence == "an invalid call is rejected without a reason"


def test_ids_do_not_depend_on_the_order_of_cases_and_on_numbers_in_messages() -> None:
    records = [
        case_record("diopiAdd[float32-a]", "failed", "ErrorOccurred: no engine at 0x7f12 for 3 tensors"),
        case_record("diopiSub[float32-a]", "crashed", "the vendor was ended by SIGSEGV (segmentation fault)"),
        wrong_values("diopiSin[float16-a]", {"rounding": 40}),
        *passed_cases("diopiSin[float32-a]", "diopiAdd[float32-b]"),
    ]
    reordered_causes = [
        replace(records[0], message="ErrorOccurred: no engine at 0x55aa for 12 tensors", seconds=9.0),
        *records[1:],
        *passed_cases("diopiCos[float32-a]"),
    ]
    ids = {cause.id for cause in causes_of(*records)}
    assert len(ids) == 3
    assert {cause.id for cause in causes_of(*reordered_causes[::-1])} == ids


def test_a_crash_names_the_frame_of_the_vendor_and_not_of_the_standard_library() -> None:
    (cause,) = causes_of(case_record("diopiAdd[float32-a]", "crashed", CRASH))
    assert cause.sentence == "the process ends: SIGSEGV in launch_kernel of pooling.py"


@pytest.mark.parametrize(("lost", "diagnosis"), [(96, "nan-dropped"), (48, "nan-dropped"), (40, "")])
def test_a_maximum_that_drops_nan_loses_most_of_them(lost: int, diagnosis: str) -> None:
    """If most NaNs are as expected, an index that selects a neighbor is as likely as a comparison."""
    pattern = Pattern(PatternKind.values, f"only where expected is NaN, {lost} of 96 such")
    record = wrong_values("diopiMaxPool2d[float32-a]", {"lost_nan": lost}, total=192, patterns=[pattern])
    (cause,) = causes_of(record, *passed_cases("diopiMaxPool2d[float32-b]"))
    assert cause.diagnosis == diagnosis


def test_a_single_lost_nan_has_no_diagnosis() -> None:
    """Any wrong index can lose one NaN; a maximum that drops NaN loses all of them."""
    for lost, diagnosis in ((1, ""), (2, "nan-dropped")):
        (cause,) = causes_of(wrong_values("diopiMax[float32-nan]", {"lost_nan": lost}))
        assert cause.diagnosis == diagnosis


@pytest.mark.parametrize(
    ("actual", "expected", "diagnosis"),
    [
        ("2147483647", "-5", "integers-saturate"),
        ("-2147483648", "7", "integers-saturate"),
        ("-2147483648", "2147483647", "integers-through-floating-point"),
    ],
)
def test_the_smallest_integer_instead_of_the_largest_has_overflowed(actual: str, expected: str, diagnosis: str) -> None:
    """2147483647 is 2147483648 in float32, and the conversion back gives the smallest integer on many processors."""
    arguments = {"out": "int32 (100,), strides (1,)"}
    record = wrong_values(
        "diopiAdd[int32-a]",
        {"wrong_value": 90},
        relation=ValueRelation.saturated,
        arguments=arguments,
        actual=actual,
        expected=expected,
    )
    (cause,) = causes_of(record)
    assert cause.diagnosis == diagnosis


def test_the_largest_number_instead_of_a_larger_one_is_a_clamped_infinity() -> None:
    arguments = {"out": "float32 (100,), strides (1,)"}
    record = wrong_values(
        "diopiSinh[uint8-special]",
        {"wrong_value": 4},
        relation=ValueRelation.saturated,
        arguments=arguments,
        actual="3.4028235e+38",
        expected="2.78e+110",
    )
    (cause,) = causes_of(record)
    assert cause.diagnosis == "accumulator-starts-at-lowest"


def test_results_without_a_correct_digit_are_not_computed_in_a_narrower_type() -> None:
    """Exchanged operands can be numbers of a narrower type, but rounding keeps the leading bits."""
    for actual, diagnosis in (("1.99", "result-in-narrower-type"), ("-0.5", "")):
        record = wrong_values(
            "diopiAvgPool2d[float32-a]", {"wrong_value": 90}, relation=ValueRelation.bfloat16, actual=actual
        )
        (cause,) = causes_of(record)
        assert cause.diagnosis == diagnosis


def test_a_tensor_of_zeros_that_stays_unchanged_has_no_diagnosis() -> None:
    """A call that adds zeros to zeros runs, and leaves the same traces as a kernel that is not launched."""
    for actual, diagnosis in (("1.0", "updated-tensor-unchanged"), ("0.0", "")):
        record = wrong_values(
            "diopiAddInp[float32-a]", {"wrong_value": 100}, relation=ValueRelation.unchanged, actual=actual
        )
        (cause,) = causes_of(record)
        assert cause.diagnosis == diagnosis


def test_results_that_a_second_call_scales_are_no_sums_in_changing_order() -> None:
    for relation, diagnosis in ((None, "sums-in-changing-order"), (ValueRelation.scaled, "accumulated-into-result")):
        record = wrong_values("diopiSum[float32-a]", {"rounding": 90}, relation=relation, check="repeat")
        (cause,) = causes_of(record)
        assert cause.diagnosis == diagnosis


def test_one_case_with_results_of_other_elements_has_no_diagnosis() -> None:
    cases = [
        wrong_values(f"diopiSort[float32-{name}]", {"wrong_value": 90}, relation=ValueRelation.misplaced)
        for name in ("a", "b")
    ]
    assert [cause.diagnosis for cause in causes_of(cases[0], *passed_cases("diopiSort[float32-c]"))] == [""]
    assert [cause.diagnosis for cause in causes_of(*cases, *passed_cases("diopiSort[float32-c]"))] == [
        "elements-at-other-places"
    ]


def whole_tensors(relation: ValueRelation, size: int = 100, number: int = 4, **fields: Any) -> list[CaseRecord]:
    """Return failed cases of a function whose results are wrong in all elements, which have a relation."""
    arguments = {"out": f"float32 ({size},), strides (1,)"}
    return [
        wrong_values(
            f"diopiSort[float32-{n}]",
            {"wrong_value": size},
            relation=relation,
            arguments=arguments,
            total=size,
            **fields,
        )
        for n in range(number)
    ]


def test_a_common_order_is_elected_together_with_other_misplaced_elements() -> None:
    reversed_order, misplaced = (
        whole_tensors(ValueRelation.rearranged),
        whole_tensors(ValueRelation.misplaced, number=6),
    )
    (cause,) = causes_of(*reversed_order)
    assert cause.diagnosis == "results-in-another-order"
    (cause,) = causes_of(*reversed_order[:2], *misplaced[2:])
    assert (cause.cases, cause.diagnosis) == (6, "elements-at-other-places")


def test_zeros_in_a_tensor_that_is_unchanged_do_not_tell_whether_the_kernel_ran() -> None:
    (zeros,) = causes_of(*whole_tensors(ValueRelation.unchanged, actual="0.0"))
    (numbers,) = causes_of(*whole_tensors(ValueRelation.unchanged, actual="3.0"))
    assert (zeros.diagnosis, numbers.diagnosis) == ("zeros-unchanged", "updated-tensor-unchanged")


@pytest.mark.parametrize(
    ("dtype", "number", "diagnosis"),
    [("int64", "4611686018427387905", "large-integers"), ("int64", "7", ""), ("float32", "7", "nan-dropped")],
)
def test_integers_beyond_32_bits_explain_wrong_results(dtype: str, number: str, diagnosis: str) -> None:
    """NaN can be the result of integers, for example of asin(2), so that no comparison drops it."""
    failed = wrong_values(f"diopiAsin[{dtype}-a]", {"lost_nan": 3})
    check = replace(
        failed.checks[-1], differences=(replace(failed.checks[-1].differences[0], inputs={"input": number}),)
    )
    (cause,) = causes_of(replace(failed, checks=(*failed.checks[:-1], check)), *passed_cases("diopiAsin[float32-b]"))
    assert cause.diagnosis == diagnosis


def test_the_type_of_the_wrong_tensor_shows_which_arithmetic_is_too_narrow() -> None:
    """A case of bfloat16 can have statistics of float32."""
    failed = [
        wrong_values(f"diopiLayerNorm[{name}-a]", {"rounding": 90}, units=units, arguments={"out": f"{kind} (100,), "})
        for name, kind, units in (
            ("bfloat16", "float32", 2.0**14),
            ("float32", "float32", 2.0**14),
            ("float64", "float64", 2.0**43),
        )
    ]
    (cause,) = causes_of(*failed)
    assert cause.diagnosis == "arithmetic-in-narrower-type"


def failed_validity(case_id: str, message: str, *problems: str) -> CaseRecord:
    """Return the record of a case whose random numbers are not valid."""
    result = CheckResult(check="validity", passed=False, message=message, problems=problems)
    return case_record(case_id, "failed", f"validity: {message}", result)


def test_numbers_that_depend_on_numbers_of_the_same_call_are_repeated() -> None:
    message = "the result: elements depend on elements of the same call, which happens with probability 1e-9"
    repeated = failed_validity("diopiNormal[float32-a]", message)
    moments = failed_validity("diopiNormal[float32-a]", f"the result: is off its mean by 0.3; {message}")
    assert [cause.diagnosis for cause in causes_of(repeated)] == ["random-numbers-repeated"]
    assert [cause.diagnosis for cause in causes_of(moments)] == [""]


@pytest.mark.parametrize(
    ("problem", "diagnosis"), [("unchanged", "updated-tensor-unchanged"), ("zeros", "only-zeros"), ("", "")]
)
def test_random_numbers_that_are_not_drawn_have_a_diagnosis(problem: str, diagnosis: str) -> None:
    problems = (problem,) if problem else ()
    cases = [failed_validity(f"diopiNormalInp[float32-{n}]", "wrong", *problems) for n in range(3)]
    (cause,) = causes_of(*cases)
    assert cause.diagnosis == diagnosis


@pytest.mark.parametrize(
    ("verdict", "selection"), [("failed", "--case 'diopiAdd[float32-a]'"), ("flaky", "--function diopiAdd -n 1")]
)
def test_a_case_that_passes_on_its_own_is_repeated_with_all_cases_of_its_function(verdict: str, selection: str) -> None:
    command = RunOptions(vendor="v").command_of("diopiAdd[float32-a]")
    record = replace(case_record("diopiAdd[float32-a]", verdict, "a message"), command=command)
    (cause,) = causes_of(record)
    assert cause.command == f"diopi-test run --vendor v --level smoke {selection}"


@pytest.mark.parametrize(
    ("function", "diagnosis"), [("diopiSigmoid", "intrinsic-outside-its-range"), ("diopiLogSoftmaxBackward", "")]
)
def test_a_bound_of_an_input_is_evidence_only_if_a_result_depends_on_one_element(function: str, diagnosis: str) -> None:
    evidence: dict[str, Any] = {
        "regions": [Region(parameter="input", condition="above", inside=3.0, outside=2.9)],
        "arguments": {"out": "float32 (100,), strides (1,)"},
        "units": 30.0,
    }
    rounding = [wrong_values(f"{function}[float32-{name}]", {"rounding": 9}, **evidence) for name in "ab"]
    (cause,) = causes_of(*rounding, *passed_cases(f"{function}[float32-c]"))
    assert cause.diagnosis == diagnosis


@pytest.mark.parametrize(
    ("dtype", "relation", "diagnosis"),
    [("float32", None, "one-element"), ("bool", None, ""), ("float32", ValueRelation.zero, "")],
)
def test_a_single_truth_value_or_zero_is_no_evidence_of_one_wrong_element(
    dtype: str, relation: ValueRelation | None, diagnosis: str
) -> None:
    arguments = {"out": f"{dtype} (2000,), strides (1,)"}
    failed = wrong_values("diopiGt[float32-a]", {"wrong_value": 1}, relation=relation, total=2000, arguments=arguments)
    (cause,) = causes_of(failed, *passed_cases("diopiGt[float32-b]"))
    assert cause.diagnosis == diagnosis


@pytest.mark.parametrize(
    ("function", "diagnosis"), [("diopiSum", "half-accumulated-in-half"), ("diopiLtInp", "another-computation")]
)
def test_truth_values_in_half_precision_are_not_accumulated(function: str, diagnosis: str) -> None:
    arguments = {"out": "float16 (100,), strides (1,)"}
    failed = wrong_values(f"{function}[float16-a]", {"wrong_value": 9}, arguments=arguments)
    (cause,) = causes_of(failed, *passed_cases(f"{function}[float32-a]"))
    assert cause.diagnosis == diagnosis


def test_wrong_blocks_in_all_cases_are_another_computation() -> None:
    blocks = Pattern(kind=PatternKind.blocks, text="in whole blocks of 8 elements")
    failed = [wrong_values(f"diopiMm[float32-{name}]", {"wrong_value": 40}, patterns=[blocks]) for name in "abc"]
    assert [cause.diagnosis for cause in causes_of(*failed)] == ["another-computation"]
    assert causes_of(*failed, *passed_cases("diopiMm[float32-d]"))[0].diagnosis == ""


def test_every_function_has_properties_that_diagnoses_read() -> None:
    rounded = {name for name in prototypes() if is_rounded(name)}
    pointwise = {name for name in prototypes() if is_pointwise(name)}
    assert {"diopiSum", "diopiIndiceConvBackwardMmcv"} <= rounded - pointwise
    assert "diopiSigmoid" in rounded & pointwise and "diopiGtInpScalar" in pointwise - rounded
