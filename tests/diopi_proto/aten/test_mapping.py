"""Calls of ATen operators are translated to functions, for tensors that are only descriptions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from diopi_proto.aten.mapping import AtenOperator, FunctionCall, NotMappedError, function_calls
from diopi_proto.aten.table import find_row
from diopi_proto.types import Dtype, Number


@dataclass(frozen=True)
class Tensor:
    """A tensor without elements, except for one number if it is known."""

    shape: tuple[int, ...]
    dtype: Dtype = Dtype.float32
    strides: tuple[int, ...] = ()
    number: Number | None = None


class TensorFactory:
    """A factory of tensors that are only descriptions."""

    def tensor_from_numbers(self, value: Number | list[int]) -> Tensor:
        return Tensor((len(value),), Dtype.int64) if isinstance(value, list) else Tensor((), number=value)

    def read_number(self, tensor: Tensor) -> Number | None:
        return tensor.number

    def restride(self, tensor: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
        return replace(tensor, shape=shape, strides=strides)

    def empty_like(self, tensor: Tensor, dtype: Dtype) -> Tensor:
        return replace(tensor, dtype=dtype)

    def generator(self, argument: Any) -> str:
        return f"generator of {argument}"


X, Y = Tensor((2, 3)), Tensor((2, 3))
N = Tensor((2, 3), Dtype.int64)
OUT = Tensor((2, 3), strides=(3, 1))


def calls(name: str, returned: list[Any], *, inplace: bool = False, **named: Any) -> list[FunctionCall]:
    """Return the calls of functions into which a PyTorch operator with these arguments is translated."""
    row = find_row(name)
    assert row is not None
    return function_calls(
        AtenOperator(name=name, arguments=named, inplace=inplace, factory=TensorFactory()), row, returned
    )


@pytest.mark.parametrize(
    ("name", "named", "function", "arguments"),
    [
        ("add.Tensor", {"self": X, "other": Y, "alpha": 2}, "diopiAdd", {"input": X, "other": Y, "alpha": 2}),
        ("add.Tensor", {"self": X, "other": 3, "alpha": 2}, "diopiAddScalar", {"input": X, "other": 3, "alpha": 2}),
        (
            "rsub.Scalar",
            {"self": X, "other": 3, "alpha": 1},
            "diopiSub",
            {"input": Tensor((), number=3), "other": X, "alpha": 1},
        ),
        (
            "div.Tensor_mode",
            {"self": X, "other": Y, "rounding_mode": "floor"},
            "diopiDiv",
            {"input": X, "other": Y, "rounding_mode": "floor"},
        ),
        (
            "div.Tensor",
            {"self": X, "other": Y},
            "diopiDiv",
            {"input": X, "other": Y, "rounding_mode": "none"},
        ),
        ("sum.dim_IntList", {"self": X, "dim": None, "keepdim": False}, "diopiSum", {"input": X, "dim": ()}),
        ("sum.dim_IntList", {"self": X, "dim": [1], "keepdim": False}, "diopiSum", {"input": X, "dim": (1,)}),
        (
            "mse_loss",
            {"self": X, "target": Y, "reduction": 1},
            "diopiMSELoss",
            {"input": X, "target": Y, "reduction": "mean"},
        ),
        (
            "randn",
            {"size": [2, 3], "generator": None},
            "diopiNormal",
            {"mean": 0, "std": 1, "generator": "generator of None"},
        ),
        ("fill_.Tensor", {"self": X, "value": Tensor((), number=7)}, "diopiFill", {"value": 7}),
    ],
)
def test_an_operator_is_mapped_to_a_function_call(
    name: str, named: dict[str, Any], function: str, arguments: dict[str, Any]
) -> None:
    (call,) = calls(name, [OUT], **named)
    assert (call.function, call.arguments) == (function, arguments)
    assert list(call.results.values()) == [OUT]


def test_an_in_place_call_has_no_separate_result() -> None:
    (call,) = calls("mul_.Tensor", [X], inplace=True, self=X, other=Y)
    assert call == FunctionCall("diopiMulInp", {"input": X, "other": Y}, {})


def test_an_in_place_operator_with_a_line_may_map_to_the_plain_function() -> None:
    (call,) = calls("lerp_.Scalar", [X], inplace=True, self=X, end=Y, weight=0.5)
    assert call == FunctionCall("diopiLerpScalar", {"input": X, "end": Y, "weight": 0.5}, {"out": X})


def test_results_are_assigned_by_position() -> None:
    losses, alpha = Tensor((2,)), Tensor((2, 4, 3))
    (call,) = calls(
        "_ctc_loss",
        [losses, alpha],
        log_probs=Tensor((4, 2, 5)),
        targets=Tensor((2, 1), Dtype.int64),
        input_lengths=[4, 4],
        target_lengths=[1, 1],
        blank=0,
        zero_infinity=False,
    )
    assert call.results == {"out": losses, "neg_log_likelihood": losses, "log_alpha": alpha}
    assert call.results["neg_log_likelihood"] is losses
    assert call.results["out"] is not losses, "a function may write its results in any order"
    assert call.arguments["input_lengths"] == Tensor((2,), Dtype.int64)


def test_an_empty_optional_result_is_omitted() -> None:
    x, w = Tensor((2, 3, 4, 4)), Tensor((5, 3, 1, 1))
    named = {"input": x, "weight": w, "grad_output": Tensor((2, 5, 4, 4)), "bias_sizes": [5]}
    lists = {"stride": [1, 1], "padding": (0, 0), "dilation": [1, 1], "output_padding": [0, 0]}
    more = {**lists, "groups": 1, "transposed": False}
    (call,) = calls("convolution_backward", [x, w, Tensor((0,))], **named, **more, output_mask=[True, True, False])
    assert call.function == "diopiConvolution2dBackward"
    assert (call.results["grad_bias"], call.arguments["bias_sizes"]) == (None, None)


def test_a_convolution_over_one_axis_becomes_one_over_two_axes() -> None:
    x, w, out = (
        Tensor((1, 2, 5), strides=(10, 5, 1)),
        Tensor((4, 2, 3), strides=(6, 3, 1)),
        Tensor((1, 4, 2), strides=(8, 2, 1)),
    )
    lists = {"stride": [2], "padding": [0], "dilation": [1], "output_padding": [0]}
    (call,) = calls("convolution", [out], input=x, weight=w, bias=None, transposed=True, groups=1, **lists)
    assert call.function == "diopiConvTranspose2d"
    assert (call.arguments["input"].shape, call.arguments["input"].strides) == ((1, 2, 1, 5), (10, 5, 5, 1))
    assert (call.results["out"].shape, call.arguments["stride"]) == ((1, 4, 1, 2), (1, 2))


def test_grid_sampling_is_mapped_only_in_modes_of_the_standard() -> None:
    named = {"input": Tensor((1, 2, 3, 3)), "grid": Tensor((1, 4, 4, 2)), "interpolation_mode": 0}
    (call,) = calls("grid_sampler_2d", [OUT], **named, padding_mode=0, align_corners=False)
    assert (call.function, call.arguments["mode"]) == ("diopiGridSample", "bilinear")
    for changed in ({"padding_mode": 1}, {"align_corners": True}, {"interpolation_mode": 2}):
        with pytest.raises(NotMappedError, match=r"grid_sampler_2d.*padding_mode"):
            calls("grid_sampler_2d", [OUT], **{**named, "padding_mode": 0, "align_corners": False, **changed})


@pytest.mark.parametrize(("scale", "mapped"), [(None, True), (2.0, True), (2.4, False)])
def test_only_scales_that_follow_from_the_sizes_are_mapped(scale: float | None, mapped: bool) -> None:
    named = {"output_size": [12, 12], "scales_h": scale, "scales_w": None}
    out, grad = Tensor((1, 2, 12, 12)), Tensor((1, 2, 12, 12))
    forward = {"self": Tensor((1, 2, 6, 5)), **named}
    backward = {"grad_output": grad, "input_size": [1, 2, 6, 5], **named}
    for name, arguments in (("upsample_nearest2d", forward), ("upsample_nearest2d_backward", backward)):
        if mapped:
            assert calls(name, [out], **arguments)
        else:
            with pytest.raises(NotMappedError, match=f"{name}.*2.4"):
                calls(name, [out], **arguments)


@pytest.mark.parametrize("name", ["avg_pool2d", "avg_pool3d"])
def test_a_window_argument_with_one_number_is_repeated_for_all_axes(name: str) -> None:
    rank = int(name[-2])
    image, window = Tensor((1, 2, *[9] * rank)), {"kernel_size": [3] * rank, "stride": [2], "padding": [1]}
    (call,) = calls(name, [OUT], self=image, **window, ceil_mode=False, count_include_pad=True, divisor_override=None)
    assert (call.arguments["stride"], call.arguments["padding"]) == ((2,) * rank, (1,) * rank)


def test_the_gradient_of_no_distances_is_not_mapped() -> None:
    grad, x1, x2 = Tensor((0, 3, 4)), Tensor((3, 5)), Tensor((0, 4, 5))
    with pytest.raises(NotMappedError, match="_cdist_backward"):
        calls("_cdist_backward", [x1], grad=grad, x1=x1, x2=x2, p=2.0, cdist=grad)


def test_results_of_unsupported_element_types_are_not_mapped() -> None:
    with pytest.raises(NotMappedError, match=r"fill_\.Scalar.*uint16"):
        calls("fill_.Scalar", [Tensor((2,), Dtype.uint16)], self=Tensor((2,), Dtype.uint16), value=1)


def test_an_operator_over_lists_becomes_one_call_per_entry() -> None:
    z = Tensor((3,))
    found = calls("_foreach_mul.ScalarList", [X, z], self=[X, z], scalars=[2.0, 3.0])
    assert [(c.function, c.arguments["input"], c.arguments["other"]) for c in found] == [
        ("diopiMulScalar", X, 2.0),
        ("diopiMulScalar", z, 3.0),
    ]
    written = calls("_foreach_add_.List", [None], inplace=True, self=[X, z], other=[Y, z], alpha=1)
    assert [c.function for c in written] == ["diopiAddInp", "diopiAddInp"]


def test_a_result_is_converted_if_the_function_returns_another_type() -> None:
    first, second = calls("div.Tensor_mode", [N], self=N, other=N, rounding_mode="floor")
    (result,) = first.results.values()
    assert (first.function, result.dtype) == ("diopiDiv", Dtype.float32)
    assert second == FunctionCall("diopiCastDtype", {"input": result}, {"out": N})


@pytest.mark.parametrize(
    ("name", "named", "message"),
    [
        ("exp", {"self": Tensor((2,), Dtype.unsupported)}, "exp does not support"),
        ("fill_.Tensor", {"self": X, "value": Tensor(())}, "fill_.Tensor does not support a tensor for value"),
        ("sum.dim_IntList", {"self": X, "dim": [0], "keepdim": False, "returned": []}, "requires out"),
    ],
)
def test_the_error_names_the_operator_and_what_is_not_supported(name: str, named: dict[str, Any], message: str) -> None:
    with pytest.raises(NotMappedError, match=message):
        calls(name, named.pop("returned", [OUT]), **named)


def test_a_form_that_the_standard_lacks_is_not_mapped() -> None:
    with pytest.raises(NotMappedError, match="gather_"):
        calls("gather_", [X], inplace=True, self=X, dim=0, index=N, sparse_grad=False)
