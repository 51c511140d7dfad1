"""The facts of a prototype determine its negative cases, ignored arguments and masks, without any other list."""

import math
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from diopi_proto import facts, parameters
from diopi_proto.declaration import elementwise, prototype
from diopi_proto.dtypes import boolean, floating, index, integer, real
from diopi_proto.facts import Fact
from diopi_proto.ignored import Ignored
from diopi_proto.interface import prototypes
from diopi_proto.parameters import (
    Axes,
    Axis,
    Broadcast,
    ChosenOut,
    Context,
    Extents,
    In,
    Index,
    Ins,
    Mask,
    NonNegative,
    Out,
    PositiveCount,
    PositiveExtent,
    Scalar,
    Size,
    Sized,
    StoredScalar,
    i64,
)
from diopi_proto.prototype import Prototype, registered_prototypes
from diopi_proto.types import Dtype
from diopi_test.execution.ignored import ignored_labels
from diopi_test.execution.negative_cases import MUTATIONS, negative_labels
from diopi_test.oracle.data import is_mask
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected
from lib_rt.dtypes import to_numpy

STANDARD = prototypes()


@pytest.fixture(autouse=True)
def _separate_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an empty registry of prototypes."""
    monkeypatch.setattr("diopi_proto.prototype._registry", {})


def tensor(*shape: int, dtype: Dtype = Dtype.float32) -> BaselineTensor:
    """Return a tensor of zeros."""
    return BaselineTensor(np.zeros(shape, to_numpy(dtype)), dtype, "contiguous")


def result(*shape: int, dtype: Dtype = Dtype.float32) -> Expected:
    """Return an expected result of zeros."""
    return Expected(values=np.zeros(shape), dtype=dtype)


def case_of(declared: Prototype, out: Any, **arguments: Any) -> BaselineCase:
    """Return a case of a prototype with these arguments and this result."""
    return BaselineCase(
        function=declared.name, label="float32-toy", dtype=Dtype.float32, arguments=arguments, expected={"out": out}
    )


def errors(declared: Prototype, out: Any, **arguments: Any) -> set[str]:
    """Return the negative cases of a function, without those for NULL and invalid element types."""
    labels = [label for label, _ in negative_labels(declared, [case_of(declared, out, **arguments)])]
    assert len(labels) == len(set(labels))
    found = {label.removeprefix("negative-") for label in labels}
    return {label for label in found if not label.endswith(("-null", "-dtype")) and label != "out-shape"}


def test_a_new_operator_gets_negative_cases_from_its_facts() -> None:
    @prototype(
        dtypes=floating,
        argument_dtypes={"mask": (*boolean, Dtype.uint8)},
        ignored=[Ignored(("groups",), "sums have none", {"mode": "sum"})],
        backward="diopiGatherWindowsBackward",
    )
    def diopiGatherWindows(
        ctx: Context,
        out: Out,
        input: In,
        weight: Sized | None,
        mask: Mask,
        dim: Axis,
        window: Extents,
        groups: PositiveExtent,
        mode: Literal["sum", "mean"],
    ) -> None:
        """Gathers windows of input along `dim`."""

    arguments: dict[str, Any] = {
        "input": tensor(2, 3),
        "weight": tensor(3),
        "mask": tensor(3, dtype=Dtype.bool),
        "dim": 1,
        "window": (2, 2),
        "groups": 1,
        "mode": "mean",
    }
    case = case_of(diopiGatherWindows, result(2, 3), **arguments)
    assert {label.removeprefix("negative-") for label, _ in negative_labels(diopiGatherWindows, [case])} == {
        *("out-null", "input-null", "mask-null", "out-dtype", "input-dtype", "weight-dtype", "mask-dtype", "out-shape"),
        *("weight-one-element", "weight-longer", "dim-after-the-last", "dim-before-the-first", "window-negative"),
        *("groups-negative", "groups-zero", "mode-unknown"),
    }
    summed = case_of(diopiGatherWindows, result(2, 3), **{**arguments, "mode": "sum"})
    assert not [label for label, _ in negative_labels(diopiGatherWindows, [summed]) if "groups" in label]
    assert ignored_labels(diopiGatherWindows, [case, summed]) == [("callers-groups-value", "float32-toy")]
    assert is_mask(diopiGatherWindows, "mask", Dtype.uint8)
    assert not is_mask(diopiGatherWindows, "mask", Dtype.bool)
    assert diopiGatherWindows.infer("out", arguments) is Dtype.float32


Blank = Annotated[i64, facts.LessThanSize("input", 1)]
Lengths = Annotated[In, facts.LengthsWithin("input", 0)]
AxisOfThatSize = Annotated[i64, facts.WithinAxis("input", "x")]
Smoothing = Annotated[parameters.f64, facts.AtMostOne()]


@pytest.mark.parametrize(
    ("kind", "value", "labels"),
    [
        (Axis, 1, {"x-after-the-last", "x-before-the-first"}),
        (Axis | None, None, {"x-after-the-last", "x-before-the-first"}),
        (Axes, (0, 1), {"x-after-the-last", "x-before-the-first"}),
        (Index, 1, {"x-after-the-last", "x-before-the-first"}),
        (Size, (1, 1), set()),
        (Extents, (1, 1), {"x-negative"}),
        (Extents, (), set()),
        (PositiveExtent, 1, {"x-negative", "x-zero"}),
        (NonNegative, 0.5, {"x-negative"}),
        (Smoothing, 0.5, {"x-above-one"}),
        (Blank, 1, {"x-no-class"}),
        (AxisOfThatSize, 1, {"x-beyond-the-axis"}),
        (Lengths, tensor(2, dtype=Dtype.int64), {"x-beyond", "x-below-zero"}),
        (Sized, tensor(3), {"x-one-element", "x-longer"}),
        (Sized | None, None, set()),
        (Broadcast, tensor(3), {"x-longer"}),
        (Literal["fast", "slow"], "fast", {"x-unknown"}),
        (StoredScalar, 1.0, set()),
    ],
)
def test_mutations_follow_from_the_kind_of_a_parameter(kind: Any, value: Any, labels: set[str]) -> None:
    def diopiToy(ctx: Context, out: Out, input: In, x: Any) -> None:
        """Toy."""

    diopiToy.__annotations__["x"] = kind
    toy = prototype(dtypes=(*floating, *index))(diopiToy)
    assert errors(toy, result(2, 3), input=tensor(2, 3), x=value) == labels


def test_a_number_must_fit_the_type_in_which_it_is_stored() -> None:
    @prototype(dtypes=real)
    def diopiToy(ctx: Context, out: Out, input: In, x: StoredScalar) -> None:
        """Toy."""

    arguments = {"input": tensor(2, dtype=Dtype.int8), "x": 1}
    assert errors(diopiToy, result(2, dtype=Dtype.int8), **arguments) == {"x-too-large"}


def test_a_number_may_be_a_tensor_in_another_form() -> None:
    Exponent = Annotated[In, facts.Exponent()]

    @prototype(dtypes=integer, scalar="diopiToyScalar")
    def diopiToy(ctx: Context, out: Out, input: In, x: Exponent) -> None:
        """Toy."""

    small, out = tensor(2, dtype=Dtype.int8), result(2, dtype=Dtype.int8)
    assert errors(diopiToy, out, input=small, x=small) == set()
    assert errors(registered_prototypes()["diopiToyScalar"], out, input=small, x=2) == {"x-negative"}


def test_shapes_that_do_not_broadcast_are_negative_cases() -> None:
    @elementwise(dtypes=floating)
    def diopiToy(ctx: Context, out: Out, input: In, x: In) -> None:
        """Toy."""

    assert errors(diopiToy, result(2, 3), input=tensor(2, 3), x=tensor(3)) == {"x-shape"}


def test_empty_arrays_are_negative_cases_if_entries_are_required() -> None:
    @prototype(dtypes=floating)
    def diopiToy(ctx: Context, out: Out, x: Ins, count: PositiveCount) -> None:
        """Toy."""

    assert errors(diopiToy, result(2), x=[tensor(2)]) == {"x-none", "count-negative"}


def test_a_shape_that_the_caller_chooses_has_no_negative_case() -> None:
    @prototype(dtypes=floating)
    def diopiToy(ctx: Context, out: ChosenOut, input: In) -> None:
        """Toy."""

    labels = {label for label, _ in negative_labels(diopiToy, [case_of(diopiToy, result(2), input=tensor(2))])}
    assert "negative-out-dtype" in labels
    assert "negative-out-shape" not in labels


def test_contradictory_shapes_and_size_attributes_are_negative_cases() -> None:
    @prototype(dtypes=floating)
    def diopiToy(
        ctx: Context,
        out: Out,
        input: Annotated[In, facts.HasShape(("n", "channels", 3))],
        x: Annotated[In, facts.HasShape(("channels", "own"))] | None,
        weight: Annotated[In, facts.HasShape(("alone",))],
        sums: Annotated[parameters.InOut, facts.HoldsZeros(), facts.HasShape(("n",))],
        n: i64,
    ) -> None:
        """Toy."""

    arguments = {"input": tensor(2, 4, 3), "x": tensor(4, 5), "weight": tensor(7), "sums": tensor(2), "n": 2}
    always = {"input-other-shape", "input-flattened", "sums-other-shape", "n-other-size"}
    assert errors(diopiToy, result(2, 3), **arguments) == always | {"x-other-shape", "x-flattened"}
    assert errors(diopiToy, result(2, 3), **{**arguments, "x": None}) == always
    assert not diopiToy.has_effect("n", arguments)
    assert not diopiToy.has_effect("sums", arguments)
    assert diopiToy.has_effect("x", arguments)


def test_steps_margins_and_norms_have_negative_cases() -> None:
    @prototype(dtypes=floating)
    def diopiToy(
        ctx: Context,
        out: Out,
        input: In,
        begin: Scalar,
        stop: Scalar,
        step: Annotated[Scalar, facts.StepBetween("begin", "stop")],
        pad: Annotated[Size, facts.Margins("input", "mode")],
        mode: Literal["reflect", "circular"],
        order: Annotated[Scalar, facts.NormOrder()],
    ) -> None:
        """Toy."""

    arguments = {"input": tensor(2, 3), "begin": 0, "stop": 4, "step": 2, "pad": (1, 1), "mode": "reflect"}
    always = {"step-zero", "step-away", "mode-unknown"}
    assert errors(diopiToy, result(2, 3), **arguments, order=2.0) == always | {"pad-reflects-too-far"}
    arguments["mode"] = "circular"
    assert errors(diopiToy, result(2, 3), **arguments, order=math.inf) == always | {
        "pad-circles-too-far",
        "input-without-elements",
    }


def test_every_fact_has_a_mutation() -> None:
    """Each fact occurs in the standard, and either a mutation applies to it or it describes how to read the value."""
    tested_elsewhere = {
        facts.HoldsTruth,
        facts.CountsEntries,
        facts.ShapeOf,
        facts.ShapeChosen,
        facts.NormOrder,
        facts.HoldsZeros,
        facts.Converted,
        facts.MayAlias,
        facts.AwayFromBoundary,
        facts.OnHost,
        facts.ComparedForEquality,
    }
    found: dict[type[Fact], bool] = {}
    for declared in STANDARD.values():
        for parameter in declared.parameters:
            has_mutation = any(mutation.concerns(declared, parameter) for mutation in MUTATIONS)
            for fact in parameter.facts:
                found[type(fact)] = found.get(type(fact), False) or has_mutation
    assert found.keys() == set(Fact.__subclasses__())
    assert all(has_mutation or fact in tested_elsewhere for fact, has_mutation in found.items())
