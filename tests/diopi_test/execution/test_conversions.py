"""Conversions at run time: which tensors they change, that expected results stay, and which defects they detect."""

from collections import Counter
from pathlib import Path
from typing import Any

import faulty
import numpy as np
import pytest
from sampling import draw_sample
from trials import baseline_case, failed_checks

from diopi_impl import BaseVendor, find_vendor
from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype
from diopi_test.baseline.index_view import IndexView
from diopi_test.execution.conversions import CONVERSIONS, channels_last, convert, int32_indices, is_converted
from diopi_test.execution.ignored import ignored_labels, make_ignored_case
from diopi_test.execution.negative_cases import make_negative_case, negative_labels
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected, expected_arrays
from diopi_test.run.run_case import run_case

SMOKE = Path(__file__).parents[3] / "baseline_data" / "smoke"


def make_case(function: str, arguments: dict[str, Any], **expected: Expected) -> BaselineCase:
    """Return a float32 case of a function with these arguments and expected results."""
    return BaselineCase(
        function=function, label="float32-made", dtype=Dtype.float32, arguments=arguments, expected=expected
    )


def tensor(*shape: int, dtype: Dtype = Dtype.float32, layout: str = "contiguous") -> BaselineTensor:
    """Return a tensor of zeros."""
    values = np.zeros(shape, np.int64 if dtype is Dtype.int64 else np.float32)
    return BaselineTensor(values, dtype, layout)


def layouts(case: BaselineCase) -> dict[str, str]:
    """Return the layouts of all tensors of a case by parameter."""
    tensors = (*case.arguments.items(), *case.expected.items())
    return {name: item.layout for name, item in tensors if isinstance(item, BaselineTensor | Expected)}


def test_images_and_volumes_are_converted_to_channels_last() -> None:
    image, weight = tensor(2, 3, 4, 5), tensor(6, 3, 1, 1)
    out = Expected(values=np.zeros((2, 6, 4, 5)), dtype=Dtype.float32)
    case = make_case("diopiConvolution2d", {"input": image, "weight": weight, "bias": tensor(6)}, out=out)
    converted = channels_last(case)
    assert layouts(converted) == {
        **{"input": "channels_last", "weight": "channels_last", "bias": "contiguous"},
        "out": "channels_last",
    }
    assert converted.arguments["input"].values is image.values
    assert converted.label == case.label
    assert channels_last(converted) is converted


@pytest.mark.parametrize(
    ("function", "shape", "layout"),
    [
        ("diopiMaxPool3d", (2, 3, 4, 5), "contiguous"),  # a volume without a batch axis
        ("diopiMaxPool2d", (3, 4, 5), "contiguous"),
        ("diopiMaxPool2d", (2, 3, 4, 5), "strided"),
        ("diopiSoftmax", (2, 3, 4, 5), "contiguous"),
        ("diopiLayerNorm", (2, 3, 4, 5), "contiguous"),
        ("diopiNormalize", (2, 3, 4, 5), "contiguous"),
        ("diopiForeachnormScalar", (2, 3, 4, 5), "contiguous"),
    ],
)
def test_tensors_without_channels_or_with_another_layout_are_not_converted(
    function: str, shape: tuple[int, ...], layout: str
) -> None:
    case = make_case(function, {"input": tensor(*shape, layout=layout)})
    assert channels_last(case) is case
    assert not is_converted(case, CONVERSIONS)


def test_points_have_no_channels() -> None:
    case = make_case("diopiGridSample", {"input": tensor(2, 3, 4, 5), "grid": tensor(2, 4, 4, 2)})
    assert layouts(channels_last(case)) == {"input": "channels_last", "grid": "contiguous"}


def test_indices_are_converted_to_int32() -> None:
    index = BaselineTensor(np.array([2, -(2**31)]), Dtype.int64, "strided")
    case = make_case("diopiIndex", {"input": tensor(3, 3), "indices": [None, index, tensor(2)]})
    converted = int32_indices(case)
    assert [None if item is None else item.dtype.name for item in converted.arguments["indices"]] == [
        None,
        "int32",
        "float32",
    ]
    narrow = converted.arguments["indices"][1]
    assert (narrow.values.dtype, narrow.values.tolist(), narrow.layout) == (np.int32, [2, -(2**31)], "strided")
    assert converted.arguments["input"] is case.arguments["input"]
    assert int32_indices(converted) is converted
    assert case.arguments["indices"][1] is index


def test_positions_are_expected_in_int32_with_the_same_values() -> None:
    expected = Expected(values=np.array([1, 2]), dtype=Dtype.int64, needs_validator=True)
    converted = int32_indices(make_case("diopiSort", {"input": tensor(2, dtype=Dtype.int64)}, indices=expected))
    narrow = converted.expected["indices"]
    assert isinstance(narrow, Expected)
    assert (narrow.dtype, narrow.needs_validator) == (Dtype.int32, True)
    assert narrow.values is expected.values
    assert converted.arguments["input"].dtype is Dtype.int64, "numbers are no indices"


@pytest.mark.parametrize("position", [2**31, -(2**31) - 1])
def test_values_that_do_not_fit_are_not_converted(position: int) -> None:
    huge = BaselineTensor(np.array([0, position]), Dtype.int64, "contiguous")
    case = make_case("diopiGather", {"input": tensor(3), "index": huge})
    assert int32_indices(case) is case
    expected = Expected(values=np.array([position]), dtype=Dtype.int64)
    case = make_case("diopiArgmax", {"input": tensor(3)}, out=expected)
    assert int32_indices(case) is case
    empty = BaselineTensor(np.zeros(0, np.int64), Dtype.int64, "contiguous")
    assert is_converted(make_case("diopiGather", {"input": tensor(3), "index": empty}), ["int32_indices"])


@pytest.mark.parametrize("function", ["diopiAdd", "diopiMSELoss", "diopiNonzero", "diopiCumsum"])
def test_numbers_and_allocated_results_are_not_converted(function: str) -> None:
    arguments = {parameter.name: tensor(3, dtype=Dtype.int64) for parameter in lookup(function).arguments}
    results = {
        result.name: Expected(values=np.zeros(3, np.int64), dtype=Dtype.int64) for result in lookup(function).results
    }
    case = make_case(function, arguments, **results)
    assert int32_indices(case) is case


def test_a_case_without_tensors_is_not_converted() -> None:
    for function in prototypes():
        case = make_case(function, {})
        assert convert(case, CONVERSIONS) is case


def test_converted_cases_are_standard_and_have_derived_cases() -> None:
    """For a sample of the functions, results have their usual types or types that are allowed."""
    converted: Counter[str] = Counter()
    for path in draw_sample(sorted(SMOKE.glob("*.h5")), 120):
        view, prototype = IndexView(path), lookup(path.stem)
        cases = {case.label: case for case in view.cases(first=Dtype.float32)}
        for case in cases.values():
            changed = int32_indices(case)
            converted.update(name for name in CONVERSIONS if is_converted(case, [name]))
            for name, value in changed.expected.items() if changed is not case else ():
                assert all(
                    prototype.can_hold(name, item.dtype, changed.arguments) for item in expected_arrays(value)
                ), case.id
                if not isinstance(value, list):
                    is_in_place = name in changed.arguments  # such a result has the type of its argument
                    expected_dtype = value.dtype if is_in_place else prototype.infer(name, case.arguments)
                    assert prototype.infer(name, changed.arguments) is expected_dtype, case.id
        for label, base in negative_labels(prototype, cases.values()):
            assert make_negative_case(convert(cases[base], CONVERSIONS), label)
        for label, base in ignored_labels(prototype, cases.values()):
            assert make_ignored_case(convert(cases[base], CONVERSIONS), label)
    assert converted["nhwc"] and converted["int32_indices"]


def outcome_of(vendor: BaseVendor, case: BaselineCase) -> Outcome:
    """Return the outcome of a case on a new device of a vendor."""
    with vendor.open_device() as device:
        return run_case(vendor, device, case)


IMAGES = [
    ("diopiConvolution2d", "float32"),
    ("diopiMaxPool2dWithIndices", "float32"),
    ("diopiBatchNorm", "float32"),
    ("diopiUpsampleNearest", "float32"),
]
INDICES = [
    ("diopiMaxPool2dBackward", "float32"),
    ("diopiGather", "float32"),
    ("diopiCrossEntropyLoss", "float32"),
    ("diopiTopk", "float32"),
    ("diopiIndexPut", "float32"),
]


def first_converted(function: str, dtype: str, name: str) -> BaselineCase:
    """Return the first basic case of a function that a conversion changes, converted."""
    view = IndexView(SMOKE / f"{function}.h5")
    label = next(case.label for case in view if case.dtype.name == dtype and case.smoke and is_converted(case, [name]))
    return convert(baseline_case(function, label), [name])


@pytest.mark.parametrize(
    ("function", "dtype", "name"),
    [*((*case, "nhwc") for case in IMAGES), *((*case, "int32_indices") for case in INDICES)],
)
def test_a_correct_vendor_passes_converted_cases(function: str, dtype: str, name: str) -> None:
    outcome = outcome_of(find_vendor("jax_cpu"), first_converted(function, dtype, name))
    assert outcome.verdict is Verdict.passed, outcome.message


def test_a_vendor_that_ignores_layouts_fails() -> None:
    case, vendor = (
        first_converted("diopiConvolution2d", "float32", "nhwc"),
        faulty.FaultyVendor("blind", faulty.write_in_row_major_order),
    )
    assert outcome_of(vendor, baseline_case(case.function, case.label)).verdict is Verdict.passed
    assert failed_checks(outcome_of(vendor, case)) == ["values"]


def test_a_vendor_that_supports_only_int64_indices_fails() -> None:
    case = first_converted("diopiArgmax", "float32", "int32_indices")
    vendor = faulty.FaultyVendor("eight bytes", faulty.write_as_int64)
    assert outcome_of(vendor, baseline_case(case.function, case.label)).verdict is Verdict.passed
    assert failed_checks(outcome_of(vendor, case))
