"""Ignored arguments: the reference agrees with every fact, and unusual values are passed for ignored arguments."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import negative_test_vendors
import numpy as np
import pytest
from derivation import derived_labels, find_base, smoke_cases
from sampling import sampled

from diopi_impl import BaseVendor
from diopi_proto.ignored import Ignored, Read
from diopi_proto.interface import lookup, prototypes
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import CaseClass, TensorSpec
from diopi_test.cases.selection import select_cases
from diopi_test.execution.ignored import ignored_labels, make_ignored_case
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.reference import find_reference
from diopi_test.quality.non_discriminating import ExaminedCase
from diopi_test.run.run_case import run_case

TRIED = 3
"""The number of cases per function with which a fact is tested, and of other values of an attribute."""

FACTS = [
    (name, number, argument)
    for name, prototype in prototypes().items()
    if find_reference(name) is not None and prototype.guarantee != "random"  # what is drawn differs in any case
    for number, fact in enumerate(prototype.ignored)
    for argument in fact.arguments
    if not prototype.parameter(argument).is_result or fact.read is not Read.nothing  # else it stays as it is
]


def _may_be_anything(prototype: Prototype) -> bool:
    """Return whether the function ignores an argument under some condition and has a reference."""
    return find_reference(prototype.name) is not None and any(fact.read is Read.nothing for fact in prototype.ignored)


# The facts.


def _covered_cases(prototype: Prototype, fact: Ignored, argument: str) -> Iterator[ExaminedCase]:
    """Return the cases of a function to which a fact applies, and in which the argument can be changed."""
    for case in select_cases(prototype.name, "full"):
        if fact.covers(case.arguments):
            examined = ExaminedCase(case, compute_baseline_case(prototype, case))
            assert not prototype.has_effect(argument, examined.baseline_case.arguments)
            if examined.is_examined and _other_values(examined, argument):
                yield examined


def _other_values(examined: ExaminedCase, argument: str) -> list[Any]:
    """Return other values for an argument: a reversed tensor, or the values of an attribute in other cases."""
    value = examined.plain_arguments[argument]
    if isinstance(value, np.ndarray):
        return [np.flip(value), np.zeros_like(value), np.ones_like(value)]
    used = [case.arguments[argument] for case in select_cases(examined.baseline_case.function, "full")]
    candidates = {repr(candidate): candidate for candidate in used if not isinstance(candidate, TensorSpec)}
    return [candidate for text, candidate in candidates.items() if text != repr(value)][:TRIED]


@pytest.mark.parametrize(("function", "fact", "argument"), sampled(FACTS, 20))
def test_no_result_depends_on_ignored_arguments(function: str, fact: int, argument: str) -> None:
    prototype, undetected_count = lookup(function), 0
    for examined in islice(_covered_cases(prototype, prototype.ignored[fact], argument), TRIED):
        distinguished = [
            examined.distinguishes(**{argument: candidate}) for candidate in _other_values(examined, argument)
        ]
        assert not any(distinguished), f"{examined.baseline_case.id} depends on {argument}"
        undetected_count += distinguished.count(False)
    assert undetected_count, f"no case confirms that {argument} is ignored"


# The cases made of them.

FUNCTIONS = sorted({name for name, prototype in prototypes().items() if _may_be_anything(prototype)})
"""All functions with an argument that some calls ignore."""


labels, base_of = partial(derived_labels, ignored_labels), partial(find_base, ignored_labels)


@pytest.mark.parametrize("function", sampled(FUNCTIONS, 6))
def test_every_ignored_argument_has_a_case(function: str) -> None:
    facts = [fact for fact in lookup(function).ignored if fact.read is Read.nothing]
    tried = {label.removeprefix("callers-").rpartition("-")[0] for label in labels(function)}
    assert tried == {argument for fact in facts for argument in fact.arguments}


def test_the_gradient_of_batch_norm_has_the_expected_cases() -> None:
    tensors = ("running_mean", "running_var", "save_mean", "save_invstd")
    expected = [f"callers-{name}-{change}" for name in tensors for change in ("null", "dtype", "shape")]
    assert list(labels("diopiBatchNormBackward")) == [*expected, "callers-eps-value"]
    for label in labels("diopiBatchNormBackward"):
        of_training = not label.startswith("callers-save")
        assert base_of("diopiBatchNormBackward", label).arguments["training"] is of_training


def test_functions_that_read_all_arguments_have_no_cases_of_ignored_ones() -> None:
    assert not labels("diopiSqrt")
    assert not labels("diopiMaxPool2dBackward"), "vendors may look at the windows"


@pytest.mark.parametrize("function", sampled(FUNCTIONS, 15))
def test_a_case_changes_one_argument(function: str) -> None:
    for label in labels(function):
        base = base_of(function, label)
        case = make_ignored_case(base, label)
        (name,) = [n for n, value in case.arguments.items() if value is not base.arguments[n]]
        assert label.startswith(f"callers-{name}-")
        if lookup(function).parameter(name).is_result:  # it stays as it is
            assert {n: e for n, e in case.expected.items() if n != name}.items() <= base.expected.items()
        else:
            assert case.expected is base.expected
        assert (case.id, case.dtype, case.case_class, case.smoke) == (
            f"{function}[{label}]",
            base.dtype,
            CaseClass.callers,
            False,
        )


def changed_values(function: str, label: str) -> tuple[Any, Any]:
    """Return the values of the stored case and of the derived case for the changed argument."""
    base, name = base_of(function, label), label.removeprefix("callers-").rpartition("-")[0]
    return base.arguments[name], make_ignored_case(base, label).arguments[name]


def test_the_ignored_argument_has_the_expected_value() -> None:
    assert changed_values("diopiLayerNormBackward", "callers-bias-null")[1] is None
    before, candidate = changed_values("diopiLayerNormBackward", "callers-bias-dtype")
    assert (candidate.dtype, candidate.values.shape) == (Dtype.int64, before.values.shape)
    before, candidate = changed_values("diopiLayerNormBackward", "callers-bias-shape")
    assert (candidate.dtype, candidate.values.shape) == (before.dtype, (*before.values.shape, 3))
    assert np.isnan(candidate.values).all()
    assert changed_values("diopiPool2dBackward", "callers-indices-dtype")[1].dtype is Dtype.float64
    before, candidate = changed_values("diopiPool2dBackward", "callers-indices-shape")
    assert (before, candidate.dtype, candidate.values.shape) == (None, Dtype.int64, (2, 3))
    assert changed_values("diopiPool2d", "callers-ksize-null")[1] is None
    before, candidate = changed_values("diopiPool2d", "callers-ksize-value")
    assert candidate == (*before, -7)
    before, candidate = changed_values("diopiPool2d", "callers-exclusive-value")
    assert candidate is not before
    assert changed_values("diopiEmbedding", "callers-padding_idx-value")[1] == -7
    assert math.isnan(changed_values("diopiBatchNormElemt", "callers-eps-value")[1])


def test_a_case_that_can_not_be_derived_is_rejected() -> None:
    case = next(case for case in smoke_cases("diopiBatchNormBackward") if not case.arguments["training"])
    with pytest.raises(KeyError, match="callers-running_mean-null"):
        make_ignored_case(case, "callers-running_mean-null")


# How vendors take them.


@pytest.fixture
def run_vendor_case() -> Iterator[Callable[..., Outcome]]:
    """Run one case on a vendor; assert that nothing stays allocated on its device."""
    devices = []

    def run(vendor: BaseVendor, function: str, label: str) -> Outcome:
        device = vendor.open_device()
        devices.append(device)
        outcome = run_case(vendor, device, make_ignored_case(base_of(function, label), label))
        assert device.live_blocks == 0
        return outcome

    yield run
    for device in devices:
        device.close()


def test_rejecting_an_ignored_argument_fails(run_vendor_case: Callable[..., Outcome]) -> None:
    vendor = negative_test_vendors.RejectingVendor("rejecting", negative_test_vendors.refuses)
    outcome = run_vendor_case(vendor, "diopiLayerNormBackward", "callers-bias-null")
    assert (outcome.verdict, outcome.message) == (Verdict.failed, "ErrorOccurred: no")


def test_reading_an_ignored_argument_fails(run_vendor_case: Callable[..., Outcome]) -> None:
    def adds_the_bias(arguments: Sequence[Any], results: list[Any]) -> negative_test_vendors.ErrorCodeAndText:
        results[0].write(np.zeros(results[0].shape, np.float32) + arguments[6].numpy().sum())
        return negative_test_vendors.trusts(arguments, results)

    outcome = run_vendor_case(
        negative_test_vendors.RejectingVendor("greedy", adds_the_bias), "diopiLayerNormBackward", "callers-bias-shape"
    )
    assert outcome.verdict is Verdict.failed
    assert "values: " in outcome.message
