"""The cases of every function cover the ranges of its attributes, as its prototype describes them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf, prod
from typing import Any

import pytest
from sampling import sampled

from diopi_proto import facts
from diopi_proto.dtypes import category
from diopi_proto.interface import lookup, prototypes
from diopi_proto.parameters import Parameter, Size
from diopi_proto.prototype import Prototype
from diopi_test.cases.axes import untested_axes
from diopi_test.cases.case import Case, CaseClass, TensorSpec
from diopi_test.cases.selection import select_cases
from diopi_test.cases.selection.numbers import accepts_any_number, number_demands

FUNCTIONS = [name for name, prototype in prototypes().items() if accepts_any_number(prototype)]


def parameters_named(*names: str) -> list[tuple[str, str]]:
    """Return every function with a parameter of one of these names, and that name."""
    return [(f, p.name) for f in FUNCTIONS for p in lookup(f).arguments if p.name in names]


def effective_values(function: str, name: str) -> list[Any]:
    """Return the values of an attribute in the cases where it has an effect; lists as tuples."""
    prototype = lookup(function)
    calls = (c.arguments for c in select_cases(function, "full") if prototype.has_effect(name, c.arguments))
    return [tuple(call[name]) if isinstance(call[name], Sequence) else call[name] for call in calls]


# Axes


AXIS_PARAMETERS = [(f, p.name) for f in FUNCTIONS for p in lookup(f).arguments if p.fact(facts.NamesAxis)]

ALL_RANKS_AND_AXES = [(len(shape), axis) for _, shape, axis in untested_axes()]
FROM_THE_SECOND = "the samples come first, and the axis is counted from the first one"
OTHER_AXES: Mapping[str, tuple[list[tuple[int, int]], str]] = {
    name: ([(rank, axis) for rank, axis in ALL_RANKS_AND_AXES if rank > 1 and axis > 0], FROM_THE_SECOND)
    for name in ("diopiInstanceNorm", "diopiInstanceNormBackward")
}
"""By function, the axes of tensors of ranks 1 to 4 that it accepts if these are not all axes, and the reason."""


def rank_with_axes(case: Case) -> int:
    """Return the rank of the tensor whose axes a call names: the input, or the gradient with its declared sizes."""
    sizes = case.arguments.get("input_sizes", case.arguments.get("sizes"))
    if sizes is not None:
        return len(sizes)
    input_spec = case.arguments.get("self") or case.arguments.get("input")
    first = input_spec or next(
        spec for n, v in case.arguments.items() if not n.startswith("_") for spec in TensorSpec.all_in(v)
    )
    assert isinstance(first, TensorSpec)
    return len(first.shape)


@pytest.mark.parametrize(("function", "name"), sampled(AXIS_PARAMETERS, 12, slow=18))
def test_cases_use_every_axis_of_every_rank_from_either_end(function: str, name: str) -> None:
    more = 1 if function == "diopiStack" else 0
    calls = [(rank_with_axes(case) + more, case.arguments[name]) for case in select_cases(function, "full")]
    has_several_axes = issubclass(lookup(function).parameter(name).annotation, Size)
    tried = {
        (rank, axis) for rank, axes in calls if axes is not None for axis in (axes if has_several_axes else [axes])
    }
    wanted, _ = OTHER_AXES.get(function, (ALL_RANKS_AND_AXES, ""))
    assert not set(wanted) - tried


# Numbers


@pytest.mark.parametrize("function", sampled(FUNCTIONS, 12, slow=18))
def test_cases_use_numbers_of_every_region_and_scalars_of_every_kind(function: str) -> None:
    cases = select_cases(function, "full")
    assert not [demand for demand in number_demands(lookup(function)) if not demand.is_met(cases)]


EXCLUDING = [
    (fact, function, parameter.name)
    for function in FUNCTIONS
    for parameter in lookup(function).arguments
    for fact in parameter.facts
    if isinstance(fact, facts.ExcludesNumbers)
]


@pytest.mark.parametrize("fact", {fact: None for fact, _, _ in EXCLUDING}, ids=lambda fact: fact.reason)
def test_every_excluded_number_would_otherwise_be_tested(fact: facts.ExcludesNumbers) -> None:
    demands = [
        demand.property
        for excluding, function, name in EXCLUDING
        if excluding == fact
        for demand in number_demands(lookup(function), include_excluded=True)
        if demand.name == name and category(demand.dtypes[0]) in fact.categories
    ]
    assert set(fact.kinds) <= set(demands)
    assert fact.reason


ORDERS = (-0.5, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4, 6, inf)
"""Orders of norms that models and frameworks use."""

NORM_ORDERS = [
    *((f, p.name) for f in FUNCTIONS for p in lookup(f).arguments if p.fact(facts.NormOrder)),
    *parameters_named("norm_type"),
    *((f, "p") for f in ("diopiNormBackward", "diopiNormalizeBackward", "diopiCdist", "diopiCdistBackward")),
]
"""Functions and parameters with orders of norms."""


@pytest.mark.parametrize(("function", "name"), NORM_ORDERS)
def test_norms_have_orders_from_below_0_to_6(function: str, name: str) -> None:
    distances = function.startswith("diopiCdist")  # they have no negative order
    assert {order for order in ORDERS if order > 0 or not distances} <= set(effective_values(function, name))


@pytest.mark.parametrize(("function", "name"), parameters_named("momentum"))
def test_momenta_include_the_values_of_models(function: str, name: str) -> None:
    assert {0.1, 0.5} <= set(effective_values(function, name))


# Windows


GIVEN_INDICES = "diopiMaxPool[123]dBackward"
"""Gradients that receive the position of each maximum, so that windows have no effect."""

GIVEN_DILATED_INDICES = "diopi(Max)?Pool[123]dBackward"
"""Functions in `GIVEN_INDICES`, and gradients whose windows have no dilation without positions."""


def exclude(excluded: str, functions: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs whose function does not match the pattern."""
    return [(function, name) for function, name in functions if not re.fullmatch(excluded, function)]


def dilation_stride_pairs(function: str) -> Iterator[tuple[int, int]]:
    """Yield dilation and stride of the calls that have equal values on every axis."""
    prototype = lookup(function)
    for case in select_cases(function, "full"):
        dilation, stride = case.arguments["dilation"], case.arguments["stride"]
        if prototype.has_effect("dilation", case.arguments) and len({*dilation}) == len({*stride}) == 1:
            yield dilation[0], stride[0]


@pytest.mark.parametrize(
    "function", [function for function, _ in exclude(GIVEN_DILATED_INDICES, parameters_named("dilation"))]
)
def test_dilations_2_and_4_occur_with_equal_strides(function: str) -> None:
    assert {(2, 2), (4, 4)} <= set(dilation_stride_pairs(function))


@pytest.mark.parametrize(("function", "name"), exclude(GIVEN_INDICES, parameters_named("kernel_size", "ksize")))
def test_windows_have_seven_elements_along_every_axis(function: str, name: str) -> None:
    assert any({*kernel} == {7} for kernel in effective_values(function, name))


@pytest.mark.parametrize("function", [function for function, _ in parameters_named("groups")])
def test_convolutions_have_kernels_of_seven_and_many_groups(function: str) -> None:
    cases = select_cases(function, "full")
    assert any({*case.arguments["weight"].shape[2:]} == {7} for case in cases)
    assert {4, 5, 8} <= {case.arguments["groups"] for case in cases}


# Others


def resize_ratios(case: Case) -> Iterator[float]:
    """Yield the ratio of new and old size for each axis."""
    source, new_sizes = case.arguments.get("input"), case.arguments.get("size", case.arguments.get("out_size"))
    sizes = source.shape if source is not None else case.arguments["in_size"]
    return (new / old for old, new in zip(sizes[2:], new_sizes, strict=True))


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f.startswith("diopiUpsample")])
def test_resizing_uses_large_and_fractional_ratios(function: str) -> None:
    tried = [
        ratio for case in select_cases(function, "full") if prod(resized_shape(case)) for ratio in resize_ratios(case)
    ]
    assert max(tried) >= 16
    assert min(tried) <= 1 / 31
    assert any(ratio % 1 and ratio > 8 for ratio in tried)
    assert any((1 / ratio) % 1 and ratio < 1 / 8 for ratio in tried)
    assert any(0.99 < ratio < 1 for ratio in tried)
    assert any(1 < ratio < 1.01 for ratio in tried)


def resized_shape(case: Case) -> Sequence[int]:
    """Return the shape of the tensor that is resized, or of its gradient."""
    resized = case.arguments.get("input", case.arguments.get("grad_output"))
    assert isinstance(resized, TensorSpec)
    return resized.shape


@pytest.mark.parametrize("function", ["diopiCTCLoss", "diopiCTCLossBackward"])
def test_ctc_blank_is_first_last_and_between_in_large_alphabets(function: str) -> None:
    calls = [(c.arguments["log_probs"].shape[2], c.arguments["blank"]) for c in select_cases(function, "full")]
    large = [(classes, blank) for classes, blank in calls if classes > 40]
    assert any(blank == 0 for _, blank in large)
    assert any(blank == classes - 1 for classes, blank in large)
    assert any(0 < blank < classes - 1 for classes, blank in large)


def test_roll_shifts_exceed_twice_the_length_in_both_directions() -> None:
    calls = [(case.arguments["input"].shape, case.arguments) for case in select_cases("diopiRoll", "full")]
    far = [
        shift / (shape[axis] or 1)
        for shape, call in calls
        if shape
        for shift, axis in zip(call["shifts"], call["dims"], strict=False)
    ]
    assert max(far) > 2
    assert min(far) < -2


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding_crops_with_and_without_growing_another_side(mode: str) -> None:
    pads = [c.arguments["pad"] for c in select_cases("diopiPad", "full") if c.arguments["mode"] == mode]
    assert any(min(pad) < 0 < max(pad) for pad in pads if pad)
    assert any(max(pad) < 0 for pad in pads if pad)
    assert any(min(pad[::2]) < 0 for pad in pads if pad)
    assert any(min(pad[1::2]) < 0 for pad in pads if pad)


def test_axis_exceptions_name_functions_with_axes_and_reasons() -> None:
    assert all(
        function in {name for name, _ in AXIS_PARAMETERS} and reason for function, (_, reason) in OTHER_AXES.items()
    )


def test_axes_create_no_number_demands() -> None:
    softmax: Prototype = lookup("diopiSoftmax")
    dim: Parameter = softmax.parameter("dim")
    assert dim.fact(facts.NamesAxis)
    assert not list(number_demands(softmax))


def test_number_case_changes_only_the_number_and_bool_has_class_callers() -> None:
    cases = {case.label: case for case in select_cases("diopiMulScalar", "full")}
    usual, tried = cases["float32-matrix"], cases["float32-bool-other"]
    assert tried.arguments == {**usual.arguments, "other": True}
    assert tried.case_class is CaseClass.callers
    assert not tried.smoke
