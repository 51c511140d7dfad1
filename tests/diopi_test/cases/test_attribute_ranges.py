"""Ranges of attributes: which values the cases of every function try, demanded by what its prototype says of it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf, prod
from typing import Any

import pytest

from diopi_proto import facts
from diopi_proto.interface import lookup, prototypes
from diopi_proto.parameters import Parameter, Size
from diopi_proto.prototype import Prototype
from diopi_test.cases.axes import rank_axis_pairs
from diopi_test.cases.model import Case, CaseClass, TensorSpec, tensor_specs
from diopi_test.cases.numbers import REJECTED_NUMBERS, accepts_any_number, number_demands
from diopi_test.cases.selection import select_cases

FUNCTIONS = [name for name, prototype in prototypes().items() if accepts_any_number(prototype)]


def having(*names: str) -> list[tuple[str, str]]:
    """Every function with a parameter of one of these names, and that name."""
    return [(f, p.name) for f in FUNCTIONS for p in lookup(f).arguments if p.name in names]


def values(function: str, name: str) -> list[Any]:
    """What an attribute is in the cases where it has an effect, lists as tuples."""
    prototype = lookup(function)
    given = (c.arguments for c in select_cases(function, "full") if prototype.has_effect(name, c.arguments))
    return [tuple(one[name]) if isinstance(one[name], Sequence) else one[name] for one in given]


# Axes


ALONG = [(f, p.name) for f in FUNCTIONS for p in lookup(f).arguments if p.fact(facts.NamesAxis)]

FROM_THE_SECOND = "the samples come first, and the axis is counted from the first one"
OTHER_AXES: Mapping[str, tuple[list[tuple[int, int]], str]] = {
    name: ([(rank, axis) for rank, axis in rank_axis_pairs((2, 3, 4)) if axis > 0], FROM_THE_SECOND)
    for name in ("diopiInstanceNorm", "diopiInstanceNormBackward")
}
"""By function, the axes that it has of the tensors of ranks 1 to 4, where these are not all; and why."""


def rank_of(case: Case) -> int:
    """The rank of the tensor whose axes a call names: of a gradient's, whose sizes it is given; of what is stacked."""
    sizes = case.arguments.get("input_sizes", case.arguments.get("sizes"))
    if sizes is not None:
        return len(sizes)
    own = case.arguments.get("self") or case.arguments.get("input")
    first = own or next(spec for n, v in case.arguments.items() if not n.startswith("_") for spec in tensor_specs(v))
    assert isinstance(first, TensorSpec)
    return len(first.shape)


@pytest.mark.parametrize(("function", "name"), ALONG)
def test_every_axis_of_every_rank_is_tried_from_either_end(function: str, name: str) -> None:
    more = 1 if function == "diopiStack" else 0
    given = [(rank_of(case) + more, case.arguments[name]) for case in select_cases(function, "full")]
    several = issubclass(lookup(function).parameter(name).annotation, Size)
    tried = {(rank, axis) for rank, axes in given if axes is not None for axis in (axes if several else [axes])}
    wanted, _ = OTHER_AXES.get(function, (rank_axis_pairs(), ""))
    assert not set(wanted) - tried


# Numbers


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_number_is_tried_in_every_region_and_scalar_of_every_kind(function: str) -> None:
    cases = select_cases(function, "full")
    assert not [one for one in number_demands(lookup(function)) if not one.is_met(cases)]


@pytest.mark.parametrize("exception", REJECTED_NUMBERS, ids=lambda one: f"{one.functions}-{'-'.join(one.names)}")
def test_every_exception_is_needed_and_has_a_reason(exception: Any) -> None:
    every = [one for function in FUNCTIONS for one in number_demands(lookup(function), ())]
    for name in exception.names:
        for what in exception.property:
            assert any(exception.includes(one) and one.name == name and one.property == what for one in every)
    assert exception.reason


ORDERS = (-0.5, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4, 6, inf)
"""Orders of norms as models and frameworks use them."""

OF_NORMS = [
    *((f, p.name) for f in FUNCTIONS for p in lookup(f).arguments if p.fact(facts.NormOrder)),
    *having("norm_type"),
    *((f, "p") for f in ("diopiNormBackward", "diopiNormalizeBackward", "diopiCdist", "diopiCdistBackward")),
]


@pytest.mark.parametrize(("function", "name"), OF_NORMS)
def test_norms_have_orders_from_below_0_to_6(function: str, name: str) -> None:
    distances = function.startswith("diopiCdist")  # they have no negative order
    assert {order for order in ORDERS if order > 0 or not distances} <= set(values(function, name))


@pytest.mark.parametrize(("function", "name"), having("momentum"))
def test_momenta_are_those_of_models(function: str, name: str) -> None:
    assert {0.1, 0.5} <= set(values(function, name))


# Windows


GIVEN_INDICES = "diopiMaxPool[123]dBackward"
"""Gradients that are told where each maximum is, whatever the windows are."""

GIVEN_DILATED_INDICES = "diopi(Max)?Pool[123]dBackward"
"""The same of those that mean windows without dilation otherwise."""


def but(told: str, functions: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(function, name) for function, name in functions if not re.fullmatch(told, function)]


def pairs(function: str) -> Iterator[tuple[int, int]]:
    """Dilation and stride of the calls that have the same ones on every axis."""
    prototype = lookup(function)
    for case in select_cases(function, "full"):
        dilation, stride = case.arguments["dilation"], case.arguments["stride"]
        if prototype.has_effect("dilation", case.arguments) and len({*dilation}) == len({*stride}) == 1:
            yield dilation[0], stride[0]


@pytest.mark.parametrize("function", [function for function, _ in but(GIVEN_DILATED_INDICES, having("dilation"))])
def test_dilation_comes_with_an_equal_stride(function: str) -> None:
    assert {(2, 2), (4, 4)} <= set(pairs(function))


@pytest.mark.parametrize(("function", "name"), but(GIVEN_INDICES, having("kernel_size", "ksize")))
def test_windows_have_seven_elements_along_every_axis(function: str, name: str) -> None:
    assert any({*kernel} == {7} for kernel in values(function, name))


@pytest.mark.parametrize("function", [function for function, _ in having("groups")])
def test_convolutions_have_kernels_of_seven_and_many_groups(function: str) -> None:
    cases = select_cases(function, "full")
    assert any({*case.arguments["weight"].shape[2:]} == {7} for case in cases)
    assert {4, 5, 8} <= {case.arguments["groups"] for case in cases}


# Others


def ratios(case: Case) -> Iterator[float]:
    """By how much each axis grows."""
    given, made = case.arguments.get("input"), case.arguments.get("size", case.arguments.get("out_size"))
    sizes = given.shape if given is not None else case.arguments["in_size"]
    return (new / old for old, new in zip(sizes[2:], made, strict=True))


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f.startswith("diopiUpsample")])
def test_resizing_is_by_large_and_odd_ratios(function: str) -> None:
    tried = [ratio for case in select_cases(function, "full") if prod(sizes_of(case)) for ratio in ratios(case)]
    assert max(tried) >= 16
    assert min(tried) <= 1 / 31
    assert any(ratio % 1 and ratio > 8 for ratio in tried)
    assert any((1 / ratio) % 1 and ratio < 1 / 8 for ratio in tried)
    assert any(0.99 < ratio < 1 for ratio in tried)
    assert any(1 < ratio < 1.01 for ratio in tried)


def sizes_of(case: Case) -> Sequence[int]:
    """Of the tensor that is resized, or of its gradient."""
    given = case.arguments.get("input", case.arguments.get("grad_output"))
    assert isinstance(given, TensorSpec)
    return given.shape


@pytest.mark.parametrize("function", ["diopiCTCLoss", "diopiCTCLossBackward"])
def test_alphabets_are_large_and_the_blank_is_anywhere(function: str) -> None:
    calls = [(c.arguments["log_probs"].shape[2], c.arguments["blank"]) for c in select_cases(function, "full")]
    large = [(classes, blank) for classes, blank in calls if classes > 40]
    assert any(blank == 0 for _, blank in large)
    assert any(blank == classes - 1 for classes, blank in large)
    assert any(0 < blank < classes - 1 for classes, blank in large)


def test_rolls_go_far_beyond_the_length_forth_and_back() -> None:
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
def test_padding_cuts_where_it_adds_elsewhere_and_cuts_alone(mode: str) -> None:
    pads = [c.arguments["pad"] for c in select_cases("diopiPad", "full") if c.arguments["mode"] == mode]
    assert any(min(pad) < 0 < max(pad) for pad in pads if pad)
    assert any(max(pad) < 0 for pad in pads if pad)
    assert any(min(pad[::2]) < 0 for pad in pads if pad)
    assert any(min(pad[1::2]) < 0 for pad in pads if pad)


def test_the_table_of_axes_knows_its_functions() -> None:
    assert all(function in {name for name, _ in ALONG} and reason for function, (_, reason) in OTHER_AXES.items())


def test_parameters_that_are_no_numbers_demand_nothing() -> None:
    softmax: Prototype = lookup("diopiSoftmax")
    dim: Parameter = softmax.parameter("dim")
    assert dim.fact(facts.NamesAxis)
    assert not list(number_demands(softmax))


def test_a_number_tried_is_all_that_differs_and_a_truth_value_a_habit_of_callers() -> None:
    cases = {case.label: case for case in select_cases("diopiMulScalar", "full")}
    usual, tried = cases["float32-matrix"], cases["float32-bool-other"]
    assert tried.arguments == {**usual.arguments, "other": True}
    assert tried.case_class is CaseClass.callers
    assert not tried.smoke
