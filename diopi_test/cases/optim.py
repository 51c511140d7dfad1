"""Optimizer steps, a call being one update in place, and gradient clipping.

The numbers of most cases are such that every element type represents them, lest the budget allow for their rounding;
rates and eps are large, lest an update drown in the parameter's own rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_proto.dtypes import floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, TensorSpec, cases_for
from diopi_test.domains import Domain, away_from, between, choice, normal, whole
from diopi_test.layouts import Layout, contiguous, strided, transposed

F16, BF16, F32, F64 = floating

POSITIVE = between(0.05, 2)
ZERO = choice([0.0])
GRADIENT = away_from([0], normal())


@dataclass(frozen=True)
class Pattern:
    """Shape of the tensors of a step, layout of those that are updated, and of the gradient."""

    label: str
    shape: tuple[int, ...] = (4, 5)
    updated: Layout = contiguous
    grad: Layout = contiguous
    dtypes: Sequence[Dtype] = floating
    smoke: bool = False


MATRIX = Pattern("matrix", smoke=True)

PATTERNS = (
    MATRIX,
    Pattern("strided", (3, 2, 4), strided, strided),
    Pattern("transposed", (4, 6), transposed, transposed),
    Pattern("grad-transposed", (4, 6), contiguous, transposed, (F32,)),
    Pattern("scalar", (), dtypes=(F16, F32)),
    Pattern("empty", (0, 3), dtypes=(F32, BF16)),
    Pattern("long", (1031,), dtypes=(F32, BF16)),
)


@dataclass(frozen=True)
class Setting:
    """Numbers and states of a step; a state that is not in `states` is NULL."""

    label: str
    numbers: Mapping[str, Any]
    states: Mapping[str, Domain]
    dtypes: Sequence[Dtype] = (F32,)


def _step_cases(prototype: Prototype, settings: Sequence[Setting]) -> Iterator[Case]:
    """The first setting in all patterns, every other as a matrix."""
    for pattern in PATTERNS:
        for dtype in pattern.dtypes:
            yield _step(prototype, settings[0], dtype, pattern, pattern.smoke)
    for setting in settings[1:]:
        for dtype in setting.dtypes:
            smoke = dtype is F32 and "usual" not in setting.label
            yield _step(prototype, setting, dtype, MATRIX, smoke)


def _step(prototype: Prototype, setting: Setting, dtype: Dtype, pattern: Pattern, smoke: bool = False) -> Case:
    domains = {"param": normal(), "grad": GRADIENT, **setting.states}
    tensors = {
        p.name: TensorSpec(pattern.shape, dtype, domains[p.name], pattern.grad if p.name == "grad" else pattern.updated)
        if p.name in domains
        else None
        for p in prototype.arguments
        if p.is_tensor
    }
    return Case(f"{dtype.name}-{setting.label}-{pattern.label}", dtype, {**tensors, **setting.numbers}, smoke=smoke)


def _sgd(
    label: str,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    *,
    lr: float = 0.125,
    nesterov: bool = False,
    buf: bool = True,
    dtypes: Sequence[Dtype] = (F32,),
) -> Setting:
    numbers = {
        "lr": lr,
        "momentum": momentum,
        "dampening": dampening,
        "weight_decay": weight_decay,
        "nesterov": nesterov,
    }
    return Setting(label, numbers, {"buf": normal()} if buf else {}, dtypes)


@cases_for("diopiSgd")
def sgd(prototype: Prototype) -> Iterator[Case]:
    settings = [
        _sgd("all", 0.75, 0.25, 0.5, dtypes=floating),
        _sgd("plain", buf=False, dtypes=floating),
        _sgd("decay", weight_decay=0.5, buf=False),
        _sgd("idle-buffer", dampening=0.25, weight_decay=0.5, dtypes=(F16, F32)),
        _sgd("momentum", 0.75),
        _sgd("dampening", 0.75, 0.5),
        _sgd("nesterov", 0.75, nesterov=True, dtypes=(BF16, F32)),
        _sgd("nesterov-decay", 0.75, weight_decay=0.5, nesterov=True),
        _sgd("first", 0.75, 0.25, 0.5, buf=False, dtypes=(F16, F32)),
        _sgd("first-nesterov", 0.75, weight_decay=0.5, nesterov=True, buf=False),
        _sgd("usual", 0.9, 0.1, 1e-4, lr=0.01, dtypes=floating),
        _sgd("idle-nesterov", nesterov=True, buf=False),
    ]
    yield from _step_cases(prototype, settings)


def _adam(
    label: str,
    step: int = 3,
    weight_decay: float = 0.5,
    *,
    amsgrad: bool = False,
    largest: bool = False,
    moments: tuple[Domain, Domain] = (normal(), POSITIVE),
    lr: float = 0.125,
    betas: tuple[float, float] = (0.75, 0.875),
    eps: float = 0.25,
    dtypes: Sequence[Dtype] = (F32,),
) -> Setting:
    numbers = {
        "lr": lr,
        "beta1": betas[0],
        "beta2": betas[1],
        "eps": eps,
        "weight_decay": weight_decay,
        "step": step,
        "amsgrad": amsgrad,
    }
    states = {"exp_avg": moments[0], "exp_avg_sq": moments[1], **({"max_exp_avg_sq": POSITIVE} if largest else {})}
    return Setting(label, numbers, states, dtypes)


USUAL: Mapping[str, Any] = {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8}

ADAM = (
    _adam("amsgrad", amsgrad=True, largest=True, dtypes=floating),
    _adam("decay", dtypes=floating),
    _adam("plain", weight_decay=0.0, dtypes=floating),
    _adam("first", 1, moments=(ZERO, ZERO), dtypes=floating),
    _adam("first-amsgrad", 1, amsgrad=True, largest=True, moments=(ZERO, ZERO)),
    _adam("first-with-moments", 1, dtypes=(F16, F32)),
    _adam("second", 2),
    _adam("late", 1000, dtypes=(BF16, F32)),
    _adam("idle-largest", largest=True, dtypes=(F16, F32)),
    _adam("usual", 10, 0.01, **USUAL, dtypes=floating),
    _adam("usual-first", 1, 0.01, **USUAL, moments=(ZERO, ZERO), dtypes=(F32, F64)),
    _adam("usual-amsgrad", 7, 0.01, **USUAL, amsgrad=True, largest=True, dtypes=(BF16, F32)),
)


@cases_for("diopiAdam", "diopiAdamW")
def adam(prototype: Prototype) -> Iterator[Case]:
    yield from _step_cases(prototype, ADAM)


@cases_for("diopiAdadelta")
def adadelta(prototype: Prototype) -> Iterator[Case]:
    def setting(label: str, rho: float, eps: float, weight_decay: float, lr: float, *dtypes: Dtype) -> Setting:
        numbers = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}
        return Setting(label, numbers, {"square_avg": POSITIVE, "acc_delta": POSITIVE}, dtypes)

    settings = [
        setting("decay", 0.75, 0.25, 0.5, 0.125, *floating),
        setting("plain", 0.75, 0.25, 0.0, 0.5, *floating),
        setting("usual", 0.9, 1e-6, 0.01, 1.0, *floating),
        setting("slow", 0.96875, 0.0625, 0.25, 2.0, F32),
        setting("without-eps", 0.5, 0.0, 0.0, 1.0, F32, BF16),
    ]
    yield from _step_cases(prototype, settings)
    first = Setting("first", settings[0].numbers, {"square_avg": ZERO, "acc_delta": ZERO})
    for dtype in (F32, F64, BF16):
        yield _step(prototype, first, dtype, MATRIX)


@cases_for("diopiRmsprop")
def rmsprop(prototype: Prototype) -> Iterator[Case]:
    wide, narrow = between(1, 4), normal(0.25)

    def setting(
        label: str,
        *dtypes: Dtype,
        states: Mapping[str, Domain] | None = None,
        lr: float = 0.125,
        alpha: float = 0.75,
        eps: float = 0.25,
        weight_decay: float = 0.5,
        momentum: float = 0.0,
        centered: bool = False,
    ) -> Setting:
        numbers = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        return Setting(label, {**numbers, "centered": centered}, {"square_avg": wide, **(states or {})}, dtypes)

    mean, velocity = {"grad_avg": narrow}, {"momentum_buf": normal()}
    settings = [
        setting("all", *floating, states={**mean, **velocity}, momentum=0.5, centered=True),
        setting("plain", *floating, weight_decay=0.0),
        setting("decay", F16, F32),
        setting("momentum", *floating, states=velocity, momentum=0.5),
        setting("centered", *floating, states=mean, centered=True),
        setting("idle-mean", BF16, F32, states={**mean, **velocity}, momentum=0.5),
        setting("idle-momentum", F16, F32, states={**mean, **velocity}, centered=True),
        setting("idle-both", F32, states={**mean, **velocity}),
        setting("usual", *floating, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.01),
        setting("usual-momentum", F32, states=velocity, lr=0.01, alpha=0.99, eps=1e-8, momentum=0.9),
    ]
    yield from _step_cases(prototype, settings)
    first = Setting("first", settings[1].numbers, {"square_avg": ZERO})
    for dtype in (F32, BF16):
        yield _step(prototype, first, dtype, MATRIX)


@dataclass(frozen=True)
class Parameters:
    """A case of the fused step: shapes, steps and layouts, one a parameter."""

    label: str
    shapes: Sequence[tuple[int, ...]] = ((3, 4), (5,), ())
    steps: Sequence[int] = (3, 1, 40)
    amsgrad: bool = False
    maximize: bool = False
    largest: bool = False
    weight_decay: float = 0.5
    lr: float = 0.125
    betas: tuple[float, float] = (0.75, 0.875)
    eps: float = 0.25
    layout: Layout = contiguous
    step_dtype: Dtype = F32
    step_shape: tuple[int, ...] = ()
    dtypes: Sequence[Dtype] = (F32,)
    smoke: bool = False

    def case(self, dtype: Dtype) -> Case:
        """The case for an element type."""

        def tensors(domain: Domain) -> list[TensorSpec]:
            return [TensorSpec(shape, dtype, domain, self.layout) for shape in self.shapes]

        arguments = {
            "params": tensors(normal()),
            "grads": tensors(GRADIENT),
            "exp_avgs": tensors(normal()),
            "exp_avg_sqs": tensors(POSITIVE),
            "max_exp_avg_sqs": tensors(POSITIVE) if self.largest else None,
            "state_steps": [TensorSpec(self.step_shape, self.step_dtype, choice([step])) for step in self.steps],
            "lr": self.lr,
            "beta1": self.betas[0],
            "beta2": self.betas[1],
            "eps": self.eps,
            "weight_decay": self.weight_decay,
            "amsgrad": self.amsgrad,
            "maximize": self.maximize,
        }
        return Case(f"{dtype.name}-{self.label}", dtype, arguments, smoke=self.smoke)


FUSED = (
    Parameters("amsgrad", amsgrad=True, largest=True, dtypes=floating, smoke=True),
    Parameters("decay", dtypes=floating, smoke=True),
    Parameters("plain", weight_decay=0.0),
    Parameters("maximize", maximize=True, dtypes=(F16, F32)),
    Parameters("maximize-amsgrad", maximize=True, amsgrad=True, largest=True, dtypes=(BF16, F32)),
    Parameters("idle-largest", largest=True, dtypes=(F16, F32)),
    Parameters("int64-steps", step_dtype=Dtype.int64, step_shape=(1,), dtypes=(F32, BF16)),
    Parameters("one-element-steps", step_shape=(1,)),
    Parameters("transposed", ((3, 4), (2, 3, 2)), (2, 5), layout=transposed, dtypes=floating),
    Parameters("strided", ((3, 4), (5,)), (2, 5), True, largest=True, layout=strided, dtypes=(F32, F16)),
    Parameters("one", ((4, 5),), (7,), dtypes=floating),
    Parameters("with-empty", ((2, 3), (0, 3), (4,)), (1, 2, 3)),
    Parameters("many", ((3,),) * 9, range(1, 10), dtypes=(F32, BF16)),
    Parameters("very-many", ((2,),) * 75, range(1, 76), amsgrad=True, largest=True),
    Parameters("usual", lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, dtypes=floating),
    Parameters("long", ((1031,), (7,)), (2, 3), amsgrad=True, largest=True),
)


@cases_for("diopiFusedAdamW")
def fused_adamw(prototype: Prototype) -> Iterator[Case]:
    return (setting.case(dtype) for setting in FUSED for dtype in setting.dtypes)


@dataclass(frozen=True)
class Clip:
    """A case of gradient clipping; `others` are the element types of the gradients but the first."""

    label: str
    max_norm: float = 1.5
    norm_type: float = 2.0
    shapes: Sequence[tuple[int, ...]] = ((3, 4), (5,), ())
    domain: Domain = GRADIENT
    layout: Layout = contiguous
    strict: bool = False
    others: Dtype | None = None
    dtypes: Sequence[Dtype] = (F32,)
    smoke: bool = False
    exact: bool = False
    weak: str = ""

    def case(self, dtype: Dtype) -> Case:
        """The case for an element type."""
        kinds = [dtype, *[self.others or dtype] * (len(self.shapes) - 1)]
        arguments = {
            "grads": [
                TensorSpec(shape, kind, self.domain, self.layout)
                for shape, kind in zip(self.shapes, kinds, strict=False)
            ],
            "max_norm": self.max_norm,
            "norm_type": self.norm_type,
            "error_if_nonfinite": self.strict,
        }
        return Case(f"{dtype.name}-{self.label}", dtype, arguments, smoke=self.smoke, exact=self.exact, weak=self.weak)


def _some(value: float) -> Domain:
    """Normal numbers, one of them `value`."""

    def draw(rng: Any, count: int, dtype: Dtype) -> Any:
        values = rng.normal(0, 1, count)
        return np.where(np.arange(count) == count // 2, value, values)

    return draw


def _zero_vectors(length: int) -> Domain:
    """Zeros for tensors of `length` elements, 1 and −1 for all others."""

    def draw(rng: Any, count: int, dtype: Dtype) -> Any:
        return np.zeros(count) if count == length else rng.choice([-1.0, 1.0], count)

    return draw


NO_LENGTH = "gradients of length 0 stay so"

CLIPS = (
    Clip("two", dtypes=floating, smoke=True),
    Clip("two-strict", strict=True, dtypes=(F16, F32)),
    Clip("within", 100.0, dtypes=floating),
    Clip("one", norm_type=1.0, dtypes=floating),
    Clip("maximum", 0.5, float("inf"), dtypes=floating),
    Clip("three", norm_type=3.0, dtypes=(F32, F64)),
    Clip("half", norm_type=0.5, max_norm=20.0),
    Clip("minimum", 0.01, float("-inf"), ((3, 4), (5,))),
    Clip("count", 2.0, 0.0, ((3, 4), (5,), (2, 2), ()), dtypes=(F32, BF16)),
    Clip("count-of-some", 4.0, 0.0, ((3, 4), (5,), (2, 2)), _zero_vectors(5), dtypes=floating, exact=True),
    Clip("count-of-nothing", 0.5, 0.0, ((3, 4), (5,)), ZERO, exact=True, weak=NO_LENGTH),
    Clip("nothing", 1.0, 2.0, ((3, 4), (5,)), ZERO, exact=True, weak=NO_LENGTH),
    Clip("max-norm-0", 0.0, domain=between(0.5, 2), weak="nothing remains of gradients clipped to length 0"),
    Clip("no-gradients", shapes=(), dtypes=(F32,), exact=True),
    Clip("with-empty", 1.0, 2.0, ((2, 3), (0, 3), (4,))),
    Clip("single", 0.75, 2.0, ((4, 5),), dtypes=floating),
    Clip("exactly-within", 16.0, 1.0, ((2, 4), (3,)), choice([1.0, -1.0]), dtypes=floating, exact=True),
    Clip("transposed", 1.0, 2.0, ((3, 4), (2, 3, 2)), layout=transposed, dtypes=(F16, F32)),
    Clip("strided", 1.0, 2.0, ((3, 4), (5,)), layout=strided, dtypes=(BF16, F32)),
    Clip("mixed-half", shapes=((3, 3), (4, 4), ()), domain=choice([1.0, -1.0]), others=F16),  # single norms are exact
    Clip("mixed-wide", others=F64, dtypes=(F32,)),
    Clip("infinite", domain=_some(np.inf), dtypes=(F16, F32), shapes=((3, 4), (5,))),
    Clip("nan", domain=_some(np.nan), dtypes=(F32, BF16), shapes=((3, 4), (5,)), weak="a NaN spreads to all"),
    Clip("infinite-maximum", 1.0, float("inf"), ((3, 4), (5,)), _some(-np.inf)),
    Clip("long", 3.0, 2.0, ((1031,), (7,)), dtypes=(F32, BF16)),
    Clip("long-one", 6000.0, 1.0, ((1024,),), choice([3.0, -3.0]), dtypes=floating, exact=True),
    Clip("long-two", 6000.0, 2.0, ((1024,),), choice([3.0, -3.0]), dtypes=floating, exact=True),
    Clip("very-many", 1.0, 2.0, ((2,),) * 150, whole(-4, 4)),
    Clip("many", 1.0, 2.0, ((3,),) * 12, whole(-4, 4)),
)


@cases_for("diopiClipGradNorm")
def clip_grad_norm(prototype: Prototype) -> Iterator[Case]:
    return (setting.case(dtype) for setting in CLIPS for dtype in setting.dtypes)
