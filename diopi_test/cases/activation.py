"""Activation functions and their gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import category, floating, half, is_complex, is_floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, ResultOverride, TensorSpec, Values, cases_for
from diopi_test.cases.axes import ONE_AXIS, ROWS, Along, patterns_of
from diopi_test.cases.elementwise import UNIFORM, Pattern, elementwise_cases
from diopi_test.domains import (
    Domain,
    away_from,
    between,
    choice,
    normal,
    off_whole,
    special,
    special_but,
    whole,
    whole_range,
)

SPECIAL = Pattern("special", [(19,)], smoke=True)
ONE = [Pattern("matrix", [(7, 5)])]
ENDS = [Pattern("ends", [(6, 19)], smoke=True)]
"""Every special value of grad_output with several values of the other tensor."""

nan, inf = float("nan"), float("inf")

MODERATE = choice([1.5, -0.75, 3.0, nan, -0.3])
"""For gradients that may be computed as a sum, whose parts must not overflow or vanish where the whole does not."""


def _patterns(dtype: Dtype) -> list[Pattern]:
    return [pattern for pattern in UNIFORM if pattern.smoke or dtype is Dtype.float32]


def _everywhere(
    prototype: Prototype, domains: Mapping[str, Domain], attributes: Mapping[str, Any] | None = None, label: str = ""
) -> Iterator[Case]:
    """All patterns in float32, few in the other element types."""
    for dtype in prototype.dtypes:
        patterns = _patterns(dtype)
        yield from elementwise_cases(prototype, domains, attributes, patterns, [dtype], label)


def _once(
    prototype: Prototype,
    domains: Mapping[str, Domain],
    attributes: Mapping[str, Any] | None = None,
    label: str = "",
    patterns: Sequence[Pattern] = ONE,
    dtypes: Sequence[Dtype] = (Dtype.float32,),
) -> Iterator[Case]:
    """One pattern, in float32 if nothing else is said."""
    yield from elementwise_cases(prototype, domains, attributes, patterns, dtypes, label)


def _floating(prototype: Prototype) -> list[Dtype]:
    return [dtype for dtype in prototype.dtypes if is_floating(dtype)]


def _integers(prototype: Prototype) -> list[Dtype]:
    return [dtype for dtype in prototype.dtypes if category(dtype) < 2]


@cases_for("diopiRelu")
def relu(prototype: Prototype) -> Iterator[Case]:
    yield from _everywhere(prototype, {"input": whole_range})
    yield from _once(prototype, {"input": special_but(-0.0)}, patterns=[SPECIAL], dtypes=prototype.dtypes)


BOUNDS: dict[str, tuple[float, float]] = {
    "unit": (-1.0, 1.0),
    "fractions": (-0.3, 1.7),
    "integers": (-1, 2),
    "positive": (0.5, 1.5),
    "point": (0.75, 0.75),
}


@cases_for("diopiHardtanh", weak={"point": "both bounds are one number"})
def hardtanh(prototype: Prototype) -> Iterator[Case]:
    for dtype in prototype.dtypes:
        low, high = (2.0, 5.0) if dtype is Dtype.uint8 else (-2.0, 3.0)
        patterns = _patterns(dtype)
        inputs = {"input": between(0, 9) if dtype is Dtype.uint8 else normal(3)}
        yield from elementwise_cases(prototype, inputs, {"min_val": low, "max_val": high}, patterns, [dtype])
        yield from _once(
            prototype, inputs, {"min_val": low * 1.3, "max_val": high * 1.3}, "truncated-bounds", dtypes=[dtype]
        )
        yield from _once(
            prototype, {"input": special}, {"min_val": low, "max_val": high}, patterns=[SPECIAL], dtypes=[dtype]
        )
    for label, (low, high) in BOUNDS.items():
        yield from _once(prototype, {"input": normal(2)}, {"min_val": low, "max_val": high}, label)
    # numbers of int64 that are equal as float64
    neighbours, limits = choice([2**62 + i for i in range(12)]), {"min_val": 2**62 + 3, "max_val": 2**62 + 8}
    yield from _once(prototype, {"input": neighbours}, limits, "neighbours", dtypes=[Dtype.int64])


@cases_for("diopiHardtanhBackward", weak={"point": "nothing lies between bounds that are one number"})
def hardtanh_backward(prototype: Prototype) -> Iterator[Case]:
    def domains(low: float, high: float) -> dict[str, Domain]:
        return {"grad_output": normal(), "input": away_from([low, high], normal(2))}

    yield from _everywhere(prototype, domains(-1.25, 0.75), {"min_val": -1.25, "max_val": 0.75})
    for label, (low, high) in BOUNDS.items():
        yield from _once(prototype, domains(low, high), {"min_val": low, "max_val": high}, label)
    ends = {"grad_output": special, "input": choice([-1.0, 1.0, 0.0, -0.0, 0.5, -1.5, 1.5, inf, -inf])}
    yield from _once(prototype, ends, {"min_val": -1, "max_val": 1.0}, patterns=ENDS, dtypes=prototype.dtypes)


@cases_for("diopiHardswish")
def hardswish(prototype: Prototype) -> Iterator[Case]:
    yield from _everywhere(prototype, {"input": between(-5, 5)})
    yield from _once(prototype, {"input": between(-1, 1)}, label="middle")
    yield from _once(prototype, {"input": choice([-3, 3, 3.5, -3.5, 100])}, label="ends", dtypes=prototype.dtypes)
    yield from _once(prototype, {"input": special_but(-inf)}, patterns=[SPECIAL], dtypes=prototype.dtypes)


@cases_for("diopiHardswishBackward")
def hardswish_backward(prototype: Prototype) -> Iterator[Case]:
    yield from _everywhere(prototype, {"grad_output": normal(), "input": away_from([-3, 3], between(-5, 5))})
    ends = {"grad_output": special, "input": choice([-3.0, 3.0, -4.0, 4.0, inf, -inf])}
    yield from _once(prototype, ends, patterns=ENDS, dtypes=prototype.dtypes)
    # rounding does not move what lies where the slope jumps
    jumps = {"grad_output": choice([1.5, -0.75, 3.0]), "input": choice([-3.0, 3.0, -4.0, 4.0])}
    for case in _once(prototype, jumps, label="jumps", dtypes=prototype.dtypes):
        yield replace(case, exact=True)


@cases_for("diopiThreshold")
def threshold(prototype: Prototype) -> Iterator[Case]:
    yield from _everywhere(prototype, {"input": off_whole(-9, 9)}, {"threshold": 1.0, "value": 20.0})
    for dtype in prototype.dtypes:
        sets: dict[str, tuple[float, float]] = {"integers": (1, 9), "fractions": (1.7, 9.6)}
        if dtype is not Dtype.uint8:
            sets |= {"negative": (-1.7, -8.6), "zeros": (0, 0.0)}
        for label, (limit, value) in sets.items():
            attributes = {"threshold": limit, "value": value}
            yield from _once(prototype, {"input": whole(-3, 3)}, attributes, label, dtypes=[dtype])
    neighbours, numbers = choice([2**62 + i for i in range(12)]), {"threshold": 2**62 + 5, "value": 2**62 + 9}
    yield from _once(prototype, {"input": neighbours}, numbers, "neighbours", dtypes=[Dtype.int64])
    yield from _once(
        prototype, {"input": special}, {"threshold": 0.75, "value": 1.5}, patterns=[SPECIAL], dtypes=prototype.dtypes
    )


@cases_for("diopiThresholdBackward")
def threshold_backward(prototype: Prototype) -> Iterator[Case]:
    domains = {"grad_output": whole_range, "input": away_from([0.6], normal())}
    yield from _everywhere(prototype, domains, {"threshold": 0.6})
    exact = {"grad_output": whole_range, "input": whole(-2, 2)}
    for label, limit in {"zero": 0, "integer": 1, "fraction": 1.7}.items():
        yield from _once(prototype, exact, {"threshold": limit}, label, dtypes=prototype.dtypes)
    signed = [dtype for dtype in prototype.dtypes if dtype is not Dtype.uint8]
    yield from _once(prototype, exact, {"threshold": -1.7}, "negative", dtypes=signed)
    ends = {"grad_output": special, "input": choice([0.0, -0.0, 1.0, -1.0, inf, -inf, nan])}
    yield from _once(prototype, ends, {"threshold": 0.0}, patterns=ENDS, dtypes=_floating(prototype))


@cases_for("diopiGelu")
def gelu(prototype: Prototype) -> Iterator[Case]:
    for approximate in ("none", "tanh"):
        attributes = {"approximate": approximate}
        yield from _everywhere(prototype, {"input": between(-4, 4)}, attributes, approximate)
        yield from _once(prototype, {"input": between(-6, -2)}, attributes, f"{approximate}-tail")
        yield from _once(prototype, {"input": between(-0.01, 0.01)}, attributes, f"{approximate}-near-zero")
        yield from _once(prototype, {"input": special_but(-inf)}, attributes, approximate, [SPECIAL], prototype.dtypes)


@cases_for("diopiGeluBackward")
def gelu_backward(prototype: Prototype) -> Iterator[Case]:
    for approximate in ("none", "tanh"):
        attributes = {"approximate": approximate}
        yield from _everywhere(prototype, {"grad_output": normal(), "input": between(-4, 4)}, attributes, approximate)
        tail = {"grad_output": normal(), "input": between(-12, -4)}
        yield from _once(prototype, tail, attributes, f"{approximate}-tail")
        ends = {"grad_output": MODERATE, "input": choice([0.0, -0.0, 0.5, -0.5, 2.0, nan])}
        yield from _once(prototype, ends, attributes, approximate, ENDS, prototype.dtypes)


SLOPES: dict[str, float] = {"default": 0.01, "integer": 2, "zero": 0, "negative": -0.5}


@cases_for("diopiLeakyRelu")
def leaky_relu(prototype: Prototype) -> Iterator[Case]:
    yield from _everywhere(prototype, {"input": normal()}, {"negative_slope": 0.3})
    for label, slope in SLOPES.items():
        yield from _once(prototype, {"input": normal()}, {"negative_slope": slope}, label)
    yield from _once(
        prototype, {"input": special}, {"negative_slope": 0.25}, patterns=[SPECIAL], dtypes=prototype.dtypes
    )


@cases_for("diopiLeakyReluBackward", weak={"of-result|ends": "with a positive slope, input and result have one sign"})
def leaky_relu_backward(prototype: Prototype) -> Iterator[Case]:
    domains = {"grad_output": normal(), "input": normal()}
    yield from _everywhere(prototype, domains, {"negative_slope": 0.3, "input_is_result": False})
    of_result = {"negative_slope": 0.3, "input_is_result": True}
    yield from _once(prototype, domains, of_result, "of-result", dtypes=prototype.dtypes)
    for label, slope in SLOPES.items():
        yield from _once(prototype, domains, {"negative_slope": slope, "input_is_result": False}, label)
    ends = {"grad_output": special, "input": choice([0.0, -0.0, 1.0, -1.0, inf, -inf, nan])}
    attributes = {"negative_slope": 0.25, "input_is_result": True}
    yield from _once(prototype, ends, attributes, patterns=ENDS, dtypes=prototype.dtypes)


@cases_for("diopiSigmoid")
def sigmoid(prototype: Prototype) -> Iterator[Case]:
    yield from _everywhere(prototype, {"input": between(-9, 9)})
    yield from _once(prototype, {"input": between(-80, 80)}, label="wide", dtypes=_floating(prototype))
    reals = [dtype for dtype in prototype.dtypes if not is_complex(dtype)]
    yield from _once(prototype, {"input": special}, patterns=[SPECIAL], dtypes=reals)


@cases_for("diopiSigmoidBackward")
def sigmoid_backward(prototype: Prototype) -> Iterator[Case]:
    yield from _everywhere(prototype, {"grad_output": normal(), "output": between(0, 1)})
    ends = {"grad_output": special, "output": choice([0.0, 1.0, 0.5, nan])}
    yield from _once(prototype, ends, patterns=ENDS, dtypes=_floating(prototype))


@cases_for("diopiSilu")
def silu(prototype: Prototype) -> Iterator[Case]:
    yield from _everywhere(prototype, {"input": between(-9, 9)})
    yield from _once(prototype, {"input": between(-80, 80)}, label="wide", dtypes=prototype.dtypes)
    yield from _once(prototype, {"input": special_but(-inf)}, patterns=[SPECIAL], dtypes=prototype.dtypes)


@cases_for("diopiSiluBackward")
def silu_backward(prototype: Prototype) -> Iterator[Case]:
    yield from _everywhere(prototype, {"grad_output": normal(), "input": between(-9, 9)})
    tails = {"grad_output": normal(), "input": between(-60, 60)}
    yield from _once(prototype, tails, label="tails", dtypes=prototype.dtypes)
    ends = {"grad_output": MODERATE, "input": choice([0.0, -0.0, 1.0, -1.0, 20.0, nan])}
    yield from _once(prototype, ends, patterns=ENDS, dtypes=prototype.dtypes)


LONG_ROWS = Along("many-rows", (24, 150), (1,), common=True)
AXES = (*ONE_AXIS, LONG_ROWS, Along("empty-slices", (3, 0), (1,)))
TRIVIAL = {
    "length-one": "the share of one element is 1 whatever it is",
    "all-masked": "where every element is -inf there are no shares",
}
"""Why cases are weak."""

MASKED = choice([-inf, 0.0, 1.5, -2.0, -inf, 3.25, -inf])
WIDER = {Dtype.float16: Dtype.float32, Dtype.bfloat16: Dtype.float32, Dtype.float32: Dtype.float64}


@cases_for("diopiSoftmax", "diopiLogSoftmax", weak=TRIVIAL)
def softmax(prototype: Prototype) -> Iterator[Case]:
    for dtype in floating:
        for along in patterns_of(dtype, AXES):
            yield _softmax_case(dtype, along, normal(2), along.label)
        for label, domain in {
            "offset": normal(1, 100),
            "steep": normal(30),
            "masked": MASKED,
            "far-apart": choice([900.0, -900.0, 0.0, 3.0, 450.0]),
            "special": special,
        }.items():
            yield _softmax_case(dtype, ROWS, domain, label)
        yield _softmax_case(dtype, Along("", (6, 3), (0,)), choice([-inf]), "all-masked")
    for dtype in half:  # a sum of so many shows the width of the accumulator
        yield _softmax_case(dtype, Along("", (2, 2000), (1,)), normal(0.5), "accumulated")
    if prototype.base == "diopiSoftmax":
        for dtype in floating:
            yield replace(_softmax_case(dtype, Along("", (6, 600), (1,)), _powers_of_two, "exact"), exact=True)
    for narrow, wide in WIDER.items():
        yield Case(
            f"{wide.name}-of-{narrow.name}",
            wide,
            {"input": TensorSpec((5, 7), narrow, normal(2)), "dim": 1},
            {"out": ResultOverride(dtype=wide)},
        )


def _powers_of_two(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Rows of 600 that are masked but for 16, 32, 64, … equal numbers."""
    rows = np.arange(count // 600)[:, None]
    equal = rng.permuted(np.arange(600) < 16 << rows, axis=1)
    return np.where(equal, 3.0 * rows, -inf)


def _softmax_case(dtype: Dtype, along: Along, domain: Domain, label: str) -> Case:
    return Case(
        f"{dtype.name}-{label}",
        dtype,
        {"input": TensorSpec(along.shape, dtype, domain, along.layout), "dim": along.axis},
        {"out": ResultOverride(layout=along.result)},
        smoke=along.smoke and label in (along.label, "special"),
    )


NORMAL = normal()


@cases_for("diopiSoftmaxBackward", "diopiLogSoftmaxBackward", weak=TRIVIAL)
def softmax_backward(prototype: Prototype) -> Iterator[Case]:
    is_log = prototype.base == "diopiLogSoftmaxBackward"
    for dtype in floating:
        for along in patterns_of(dtype, AXES):
            yield _softmax_gradient_case(dtype, along, normal(2), along.label, is_log)
        yield _softmax_gradient_case(dtype, ROWS, normal(30), "steep", is_log)
        yield _softmax_gradient_case(dtype, ROWS, MASKED, "masked", is_log)
        yield _softmax_gradient_case(dtype, ROWS, choice([1.0, 2.0, nan, *range(9)]), "nan", is_log)
    for dtype in floating:
        yield _exact_gradient(dtype, is_log)
    for dtype in half:  # a sum of so many shows the width of the accumulator
        yield _softmax_gradient_case(dtype, Along("", (2, 2000), (1,)), normal(), "positive", is_log, between(0.5, 1))


def _exact_gradient(dtype: Dtype, is_log: bool) -> Case:
    """Results of softmax that are powers of two, or logarithms of 1 and 0, so that sums and products are exact."""
    results = choice([0.0, -inf] if is_log else [0.125, 0.25, 0.5])
    tensors = {"grad_output": whole(-9, 8), "output": results}
    arguments = {name: TensorSpec((3, 1031), dtype, domain) for name, domain in tensors.items()}
    return Case(f"{dtype.name}-exact", dtype, {**arguments, "dim": -1}, exact=True)


def _softmax_gradient_case(
    dtype: Dtype, along: Along, domain: Domain, label: str, is_log: bool, gradients: Domain = NORMAL
) -> Case:
    def result(values: Values) -> Any:
        shape, dim = values["_input"].shape, along.axis
        x = np.atleast_1d(values["_input"])
        with np.errstate(invalid="ignore", divide="ignore"):
            e = np.exp(x - np.max(x, dim, keepdims=True, initial=-inf))
            y = e / np.sum(e, dim, keepdims=True)
            return (np.log(y) if is_log else y).reshape(shape)

    return Case(
        f"{dtype.name}-{label}",
        dtype,
        {
            "_input": TensorSpec(along.shape, dtype, domain),
            "grad_output": TensorSpec(along.shape, dtype, gradients, along.layout),
            "output": TensorSpec(along.shape, dtype, layout=along.layout, compute=result),
            "dim": along.axis,
        },
        {"grad_input": ResultOverride(layout=along.result)},
        smoke=along.smoke and label == along.label,
    )
