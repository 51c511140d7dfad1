"""Loss functions and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from diopi_proto.dtypes import floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Reduction
from diopi_test.case import Case, ResultOverride, TensorSpec, Values, cases_for
from diopi_test.cases import products
from diopi_test.domains import Domain, away_from, between, choice, magnitudes, normal, whole
from diopi_test.layouts import Layout, channels_last, contiguous, strided, transposed
from diopi_test.reference import bare
from diopi_test.reference.loss import ctc_loss

MEAN, SUM, NONE = Reduction.mean, Reduction.sum, Reduction.none
F16, BF16, F32, F64 = floating
LOGITS, PROBABLE, CERTAIN = normal(1.5), between(0, 1), choice([0.0, 1.0])
WEIGHTS = between(0.25, 3)


def _result_shape(reduction: Reduction, shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if reduction == NONE else ()


# Element by element


@dataclass(frozen=True)
class Pattern:
    """Reduction, shape and layouts of a case; `dtypes` are those it is made for."""

    label: str
    reduction: Reduction
    shape: tuple[int, ...]
    layout: Layout = contiguous
    result: Layout = contiguous
    smoke: bool = False
    dtypes: Sequence[Dtype] = (F32,)


PLAIN = (
    Pattern("none", NONE, (4, 5), smoke=True, dtypes=floating),
    Pattern("mean", MEAN, (3, 5), smoke=True, dtypes=floating),
    Pattern("sum", SUM, (3, 5)),
)
"""For every variant of a function."""

PATTERNS = (
    *PLAIN,
    Pattern("none-rank3-transposed", NONE, (3, 4, 5), transposed, transposed, dtypes=floating),
    Pattern("none-strided", NONE, (3, 2, 5), strided, strided),
    Pattern("none-to-transposed", NONE, (4, 5), contiguous, transposed),
    Pattern("none-scalar", NONE, (), dtypes=(F16, F32)),
    Pattern("none-empty", NONE, (0, 5)),
    Pattern("mean-rank3-transposed", MEAN, (3, 4, 5), transposed, transposed, dtypes=(BF16, F32)),
    Pattern("mean-scalar", MEAN, ()),
    Pattern("mean-empty", MEAN, (0, 5), dtypes=(F16, F32)),
    Pattern("mean-long", MEAN, (206, 5)),
    Pattern("sum-strided", SUM, (3, 2, 5), strided, strided, dtypes=floating),
    Pattern("sum-empty", SUM, (0, 5)),
    Pattern("sum-long", SUM, (206, 5)),
)

EXACT = (
    Pattern("mean", MEAN, (16, 128), dtypes=floating),
    Pattern("sum", SUM, (9, 115), dtypes=floating),
)
"""For element losses of about 48: their sum is beyond float16 where the mean is asked for, and beyond both half types'
precision; float32 holds it exactly."""

Arguments = Callable[[Dtype, tuple[int, ...]], Mapping[str, Any]]
"""From element type and shape of the input to all arguments but grad_output and reduction."""


def _element_cases(
    prototype: Prototype, arguments: Arguments, patterns: Sequence[Pattern] = PATTERNS, label: str = "", **about: Any
) -> Iterator[Case]:
    """Cases of a loss that works element by element, or of its gradient."""
    result = prototype.results[0].name
    for pattern in patterns:
        for dtype in pattern.dtypes:
            given = {
                name: _laid_out(value, pattern) if isinstance(value, TensorSpec) else value
                for name, value in arguments(dtype, pattern.shape).items()
            }
            if result == "grad_input":
                given["grad_output"] = TensorSpec(_result_shape(pattern.reduction, pattern.shape), dtype, normal())
            own_shape = pattern.reduction == NONE or result == "grad_input"
            yield Case(
                "-".join(filter(None, [dtype.name, label, pattern.label])),
                dtype,
                {**given, "reduction": pattern.reduction},
                {result: ResultOverride(layout=pattern.result if own_shape else contiguous)},
                smoke=pattern.smoke and not label,
                **about,
            )


def _exact_cases(prototype: Prototype, arguments: Arguments) -> Iterator[Case]:
    """Long sums of a loss; its gradient sums nothing."""
    if not prototype.name.endswith("Backward"):
        yield from _element_cases(prototype, arguments, EXACT, "exact", exact=True)


def _laid_out(spec: TensorSpec, pattern: Pattern) -> TensorSpec:
    if spec.shape != pattern.shape or spec.layout is not contiguous:
        return spec
    return TensorSpec(spec.shape, spec.dtype, spec.domain, pattern.layout, spec.compute)


def _only(*dtypes: Dtype) -> list[Pattern]:
    """The plain patterns for these element types."""
    return [Pattern(p.label, p.reduction, p.shape, dtypes=dtypes) for p in PLAIN]


@cases_for("diopiMSELoss", "diopiMSELossBackward")
def mse(prototype: Prototype) -> Iterator[Case]:
    def arguments(dtype: Dtype, shape: tuple[int, ...]) -> Mapping[str, Any]:
        return {"input": TensorSpec(shape, dtype, normal()), "target": TensorSpec(shape, dtype, normal(mean=0.5))}

    yield from _element_cases(prototype, arguments)

    def exact(dtype: Dtype, shape: tuple[int, ...]) -> Mapping[str, Any]:
        return {name: TensorSpec(shape, dtype, whole(-8, 8)) for name in ("input", "target")}

    yield from _exact_cases(prototype, exact)


@cases_for("diopiSmoothL1Loss", "diopiSmoothL1LossBackward")
def smooth_l1(prototype: Prototype) -> Iterator[Case]:
    def with_beta(beta: float, gap: Domain) -> Arguments:
        """The difference of input and target is `gap`, but for rounding."""

        def arguments(dtype: Dtype, shape: tuple[int, ...]) -> Mapping[str, Any]:
            return {
                "_gap": TensorSpec(shape, dtype, gap),
                "input": TensorSpec(shape, dtype, normal()),
                "target": TensorSpec(shape, dtype, compute=lambda values: values["input"] - values["_gap"]),
                "beta": beta,
            }

        return arguments

    yield from _element_cases(prototype, with_beta(1.0, away_from([0, -1, 1], normal(1.2))))
    narrow = away_from([0, -0.3, 0.3], normal(0.6))
    yield from _element_cases(prototype, with_beta(0.3, narrow), _only(F16, F32), "beta0.3")
    yield from _element_cases(prototype, with_beta(2.5, away_from([0], normal(2))), _only(F32, F64), "beta2.5")
    yield from _element_cases(prototype, with_beta(0.0, away_from([0], normal())), _only(BF16, F32), "beta0")
    yield from _ties(prototype)

    def exact(dtype: Dtype, shape: tuple[int, ...]) -> Mapping[str, Any]:
        return {**{name: TensorSpec(shape, dtype, whole(-60, 60)) for name in ("input", "target")}, "beta": 4.0}

    yield from _exact_cases(prototype, exact)


def _ties(prototype: Prototype) -> Iterator[Case]:
    """d = 0, and |d| = beta exactly."""
    for dtype in floating:
        for beta in (0.0, 0.5, 1.0):
            arguments = {
                "input": TensorSpec((4, 6), dtype, choice([1.0, 2.0, 2.5, 3.0])),
                "target": TensorSpec((4, 6), dtype, choice([1.0, 1.5, 2.0])),
                "reduction": NONE,
                "beta": beta,
            }
            if prototype.name.endswith("Backward"):
                arguments["grad_output"] = TensorSpec((4, 6), dtype, choice([1.0, 2.0, 3.0]))
            yield Case(f"{dtype.name}-ties-beta{beta:g}", dtype, arguments, smoke=dtype is F32, exact=True)


WEIGHT_SHAPES: Mapping[str, tuple[int, ...]] = {"weight-row": (5,), "weight-column": (-1, 1)}
"""Shapes of weights by label; −1 stands for the length of the input's axis."""


def _weight(shape: tuple[int, ...], of: tuple[int, ...], dtype: Dtype, domain: Domain) -> TensorSpec:
    known = tuple(of[i - len(shape)] if length == -1 else length for i, length in enumerate(shape))
    return TensorSpec(known, dtype, domain)


@cases_for("diopiBCELoss", "diopiBCELossBackward")
def bce(prototype: Prototype) -> Iterator[Case]:
    def weighted(weight: tuple[int, ...] | None, layout: Layout = contiguous) -> Arguments:
        def arguments(dtype: Dtype, shape: tuple[int, ...]) -> Mapping[str, Any]:
            return {
                "input": TensorSpec(shape, dtype, between(0.05, 0.95)),
                "target": TensorSpec(shape, dtype, PROBABLE),
                "weight": None if weight is None else _weight(weight, shape, dtype, WEIGHTS),
            }

        return arguments

    yield from _element_cases(prototype, weighted(None))
    for label, shape in WEIGHT_SHAPES.items():
        yield from _element_cases(prototype, weighted(shape), _only(BF16, F32), label)
    yield from _element_cases(prototype, weighted((-1, -1)), _only(F16, F64), "weight-full")
    yield from _element_cases(prototype, weighted(()), _only(F32), "weight-scalar")
    yield from _bce_gradient_ends(prototype) if prototype.name.endswith("Backward") else _bce_ends(prototype)


def _bce_ends(prototype: Prototype) -> Iterator[Case]:
    """Probabilities 0 and 1, where the logarithms end at −100."""

    def arguments(dtype: Dtype, shape: tuple[int, ...]) -> Mapping[str, Any]:
        return {
            "input": TensorSpec(shape, dtype, choice([0.0, 1.0])),
            "target": TensorSpec(shape, dtype, choice([0.25, 0.5, 0.75])),
            "weight": TensorSpec(shape, dtype, choice([0.5, 1.0])),
        }

    patterns = [Pattern("none", NONE, (4, 6), dtypes=floating)]
    yield from _element_cases(prototype, arguments, patterns, "ends", exact=True)
    yield from _exact_cases(prototype, arguments)


def _bce_gradient_ends(prototype: Prototype) -> Iterator[Case]:
    """Probabilities so near 0 that the denominator is 1e−12; float16 has none."""

    def arguments(dtype: Dtype, shape: tuple[int, ...]) -> Mapping[str, Any]:
        return {
            "input": TensorSpec(shape, dtype, magnitudes(-70, -45, signed=False)),
            "target": TensorSpec(shape, dtype, PROBABLE),
            "weight": None,
        }

    yield from _element_cases(prototype, arguments, _only(BF16, F32, F64), "ends")


@cases_for("diopiBCEWithLogits", "diopiBCEWithLogitsBackward")
def bce_with_logits(prototype: Prototype) -> Iterator[Case]:
    def weighted(
        weight: tuple[int, ...] | None = None,
        pos_weight: tuple[int, ...] | None = None,
        pos_dtype: Dtype | None = None,
        logits: Domain = LOGITS,
        targets: Domain = PROBABLE,
        weights: Domain = WEIGHTS,
    ) -> Arguments:
        def arguments(dtype: Dtype, shape: tuple[int, ...]) -> Mapping[str, Any]:
            pos = whole(0, 4) if pos_dtype is Dtype.int64 else weights
            return {
                "input": TensorSpec(shape, dtype, logits),
                "target": TensorSpec(shape, dtype, targets),
                "weight": None if weight is None else _weight(weight, shape, dtype, weights),
                "pos_weight": None if pos_weight is None else _weight(pos_weight, shape, pos_dtype or dtype, pos),
            }

        return arguments

    yield from _element_cases(prototype, weighted())
    for label, shape in WEIGHT_SHAPES.items():
        yield from _element_cases(prototype, weighted(shape), _only(F16, F32), label)
        yield from _element_cases(prototype, weighted(None, shape), _only(BF16, F32), f"pos-{label}")
    yield from _element_cases(prototype, weighted((-1, -1), (5,)), _only(F16, F32, F64), "both-weights")
    yield from _element_cases(prototype, weighted(None, (5,), Dtype.int64), _only(F32), "pos-weight-int64")
    far = weighted((5,), (5,), logits=between(-30, 30), targets=CERTAIN)
    yield from _element_cases(prototype, far, _only(*floating), "far")
    # ln(1 + e⁻¹²⁸) is lost beside 128: a loss is 0 or the logit, times weights
    quarters, ends = choice([0.0, 0.25, 0.5, 0.75, 1.0]), choice([-128.0, 128.0])
    exact = weighted((-1, 1), (-1, -1), logits=ends, targets=quarters, weights=choice([0.25, 0.5, 1.0, 2.0]))
    yield from _exact_cases(prototype, exact)


@cases_for("diopiSigmoidFocalLoss", "diopiSigmoidFocalLossBackward")
def sigmoid_focal(prototype: Prototype) -> Iterator[Case]:
    logits, labels = [p.name for p in prototype.arguments if p.is_tensor and p.name != "grad_output"]

    def focal(alpha: float, gamma: float, targets: Domain = CERTAIN, inputs: Domain = LOGITS) -> Arguments:
        def arguments(dtype: Dtype, shape: tuple[int, ...]) -> Mapping[str, Any]:
            return {
                logits: TensorSpec(shape, dtype, inputs),
                labels: TensorSpec(shape, dtype, targets),
                "alpha": alpha,
                "gamma": gamma,
            }

        return arguments

    yield from _element_cases(prototype, focal(0.25, 2.0))
    yield from _element_cases(prototype, focal(-1.0, 2.0), _only(F32, BF16), "no-alpha")
    yield from _element_cases(prototype, focal(0.0, 1.0), _only(F32), "alpha0")
    yield from _element_cases(prototype, focal(0.7, 0.0), _only(F32, F16), "gamma0")
    yield from _element_cases(prototype, focal(0.4, 1.3), _only(F32, F64), "gamma1.3")
    yield from _element_cases(prototype, focal(0.3, 3.0, PROBABLE), _only(F32), "soft-targets")
    yield from _element_cases(prototype, focal(0.6, 2.0, inputs=between(-20, 20)), _only(F32, BF16), "far")
    # where p is 0 or 1: a loss is 0 or the logit, times alpha
    yield from _exact_cases(prototype, focal(0.25, 2.0, inputs=choice([-160.0, 160.0])))


# Classes


@dataclass(frozen=True)
class Classes:
    """A case of a loss over classes.

    Attributes:
        shape: of the input; the classes are on axis 1, or 0 if that is the only one.
        targets: the domain of the classes, by default all of them; None for probabilities.
        weights: the domain of the weights.
        out: the layout of a result that is not reduced.
    """

    label: str
    shape: tuple[int, ...] = (6, 5)
    reduction: Reduction = MEAN
    weighted: bool = False
    ignore_index: int = -100
    smoothing: float = 0.0
    targets: Domain | str | None = "all"
    weights: Domain = WEIGHTS
    index: Dtype = Dtype.int64
    layout: Layout = contiguous
    out: Layout = contiguous
    dtypes: Sequence[Dtype] = (F32,)
    smoke: bool = False

    @property
    def count(self) -> int:
        """The number of classes."""
        return self.shape[min(1, len(self.shape) - 1)]

    @property
    def outer(self) -> tuple[int, ...]:
        """The input's shape less the class axis."""
        return self.shape[:1] * (len(self.shape) > 1) + self.shape[2:]

    def target(self, dtype: Dtype) -> dict[str, TensorSpec]:
        """The target; probabilities with the scores they are computed from."""
        layout = transposed if self.layout is transposed else contiguous
        if self.targets is None:
            axis = min(1, len(self.shape) - 1)
            return {
                "_scores": TensorSpec(self.shape, F32, normal()),
                "target": TensorSpec(
                    self.shape, dtype, layout=layout, compute=lambda values: special.softmax(values["_scores"], axis)
                ),
            }
        domain = whole(0, self.count - 1) if isinstance(self.targets, str) else self.targets
        return {"target": TensorSpec(self.outer, self.index, domain, layout)}

    def arguments(self, dtype: Dtype, logits: Domain) -> dict[str, Any]:
        """What all these losses take."""
        weight = TensorSpec((self.count,), dtype, self.weights) if self.weighted else None
        return {
            "input": TensorSpec(self.shape, dtype, logits, self.layout),
            **self.target(dtype),
            "weight": weight,
            "reduction": self.reduction,
            "ignore_index": self.ignore_index,
        }


NEGATIVE = choice([0, 1, -1, 2, 3, 4, 3, 4, -1, 0])
"""Classes among which −1 is to be ignored."""

ALL_DTYPES = (
    Classes("none", reduction=NONE, dtypes=floating, smoke=True),
    Classes("mean-weight", weighted=True, dtypes=floating, smoke=True),
    Classes("mean-weight-ignore", (2, 4, 3, 2), weighted=True, ignore_index=2, dtypes=floating),
    Classes("none-weight-rank3-transposed", (6, 4, 5), NONE, True, layout=transposed, out=transposed, dtypes=floating),
)
"""Cases for every element type."""

CLASSES = (
    *ALL_DTYPES,
    Classes("sum", (7, 3), SUM),
    Classes("mean", (7, 3)),
    Classes("sum-weight-ignore", (7, 5), SUM, True, 0),
    Classes("none-ignore-negative", (10, 5), NONE, True, -1, targets=NEGATIVE, smoke=True),
    Classes("mean-ignore-negative", (10, 5), MEAN, True, -1, targets=NEGATIVE, smoke=True),
    Classes("mean-ignore-default", (10, 5), targets=choice([0, 1, 2, 3, 4, -100, -100])),
    Classes("mean-all-ignored", (4, 5), ignore_index=3, targets=choice([3])),
    Classes("sum-all-ignored", (4, 5), SUM, True, ignore_index=3, targets=choice([3])),
    Classes("mean-int32", (6, 5), MEAN, True, 2, index=Dtype.int32, smoke=True),
    Classes("none-int32-rank3", (3, 4, 2), NONE, index=Dtype.int32),
    Classes("none-vector", (5,), NONE, True),
    Classes("mean-vector", (5,), MEAN, True),
    Classes("mean-empty", (0, 4)),
    Classes("sum-empty", (0, 4), SUM),
    Classes("none-empty", (0, 4, 3), NONE),
    Classes("none-one-class", (4, 1), NONE),
    Classes("mean-channels-last", (2, 4, 3, 2), MEAN, True, layout=channels_last, out=channels_last),
    Classes("none-strided", (4, 5), NONE, True, layout=strided, out=strided),
    Classes("mean-rank5", (2, 3, 2, 1, 2), MEAN, True, 1),
    Classes("mean-long", (1030, 4), MEAN, True, 1, dtypes=(BF16, F32)),
    Classes("sum-long", (300, 4), SUM),
    Classes("none-many-classes", (3, 1031), NONE, True, dtypes=(F16, BF16, F32)),
    Classes("mean-square", (10, 10), MEAN, True, -1, targets=NEGATIVE),
)


EXACT_SUM = Classes("exact-sum", (1035, 3), SUM, ignore_index=1, dtypes=floating)
EXACT_MEAN = Classes(
    "exact-mean",
    (2048, 3),
    weighted=True,
    targets=choice([0, 1, 1, 2]),
    weights=products.given([5, 1, 1]),
    dtypes=floating,
)
"""The weights add up to 4096."""

SMOOTHED = (
    Classes("smooth-none", (4, 5), NONE, smoothing=0.3, dtypes=floating),
    Classes("smooth-mean-weight-ignore", (3, 5, 2), MEAN, True, 1, 0.2, dtypes=(BF16, F32), smoke=True),
    Classes("smooth-mean-ignore-negative", (10, 5), MEAN, False, -1, 0.25, NEGATIVE),
    Classes("smooth-none-weight-ignore", (10, 5), NONE, True, -1, 0.25, NEGATIVE),
    Classes("smooth-sum-weight", (4, 3, 3), SUM, True, smoothing=0.4),
    Classes("smooth-fully", (4, 5), MEAN, True, smoothing=1.0),
    Classes("smooth-vector", (5,), NONE, smoothing=0.1),
    Classes("smooth-all-ignored", (4, 5), MEAN, False, 3, 0.1, choice([3])),
)

PROBABILITIES = (
    Classes("probabilities-none", (4, 5), NONE, targets=None, dtypes=floating, smoke=True),
    Classes("probabilities-mean-weight", (2, 4, 3), MEAN, True, targets=None, dtypes=floating, smoke=True),
    Classes("probabilities-mean", (6, 3), MEAN, targets=None),
    Classes("probabilities-sum-weight-smooth", (3, 5, 2), SUM, True, smoothing=0.3, targets=None),
    Classes("probabilities-none-weight-smooth", (4, 5), NONE, True, smoothing=0.3, targets=None, dtypes=(F16, F32)),
    Classes(
        "probabilities-mean-smooth-transposed",
        (3, 4, 2),
        smoothing=0.2,
        targets=None,
        layout=transposed,
        out=transposed,
    ),
    Classes("probabilities-none-vector", (5,), NONE, True, smoothing=0.1, targets=None),
    Classes("probabilities-mean-empty", (0, 4), targets=None),
)


def _class_cases(
    prototype: Prototype, settings: Sequence[Classes], logits: Domain, more: Callable[[Classes, Dtype], Any]
) -> Iterator[Case]:
    """Cases of a loss over classes; `more` gives the arguments and results that not all of them have."""
    result = prototype.results[0].name
    for setting in settings:
        for dtype in setting.dtypes:
            arguments, results = more(setting, dtype)
            if result == "grad_input":
                shape = _result_shape(setting.reduction, setting.outer)
                arguments["grad_output"] = TensorSpec(shape, dtype, normal())
            own_shape = setting.reduction == NONE or result == "grad_input"
            override = ResultOverride(layout=setting.out if own_shape else contiguous)
            label = f"{dtype.name}-{setting.label}"
            given = {**setting.arguments(dtype, logits), **arguments}
            overrides = {result: override, **results}
            exact = setting in (EXACT_SUM, EXACT_MEAN)
            yield Case(label, dtype, given, overrides, smoke=setting.smoke, exact=exact)


NOTHING_LEFT = {"(mean|sum|smooth)-all-ignored": "nothing is left where every target is ignored"}
ONE_CLASS = {"none-one-class": "the softmax of one class is 1"}
ONE_TARGET = {"none-many-classes": "of all classes only the target has a gradient"}


@cases_for("diopiCrossEntropyLoss", "diopiCrossEntropyLossBackward", weak={**NOTHING_LEFT, **ONE_CLASS})
def cross_entropy(prototype: Prototype) -> Iterator[Case]:
    def smoothing(setting: Classes, dtype: Dtype) -> Any:
        return {"label_smoothing": setting.smoothing}, {}

    yield from _class_cases(prototype, (*CLASSES, *SMOOTHED, *PROBABILITIES), normal(2), smoothing)
    far = [Classes("far", (12, 6), NONE, dtypes=floating), Classes("far-smooth", (12, 6), MEAN, True, smoothing=0.1)]
    yield from _class_cases(prototype, far, between(-60, 60), smoothing)
    if prototype.name == "diopiCrossEntropyLoss":
        masked = [Classes("masked", (8, 6), NONE, dtypes=(F16, F32), targets=choice([0]))]
        yield from _class_cases(prototype, masked, _masked_beyond_first(6), smoothing)
        yield from _class_cases(prototype, [EXACT_SUM, EXACT_MEAN], _far_apart, smoothing)


def _far_apart(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Three logits, e⁻³⁸ beside 1 or less: their log-softmax is what lacks to the largest."""
    near = 40.0 * rng.permuted(np.resize([-1, 0, 1], (count // 3, 3)), axis=1).reshape(-1)
    return near + rng.integers(0, 2, count, endpoint=True)


def _masked_beyond_first(classes: int) -> Domain:
    """Logits of which some are −∞, but never the first of a row."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        masked = (rng.random(count) < 0.4) & (np.arange(count) % classes > 0)
        return np.where(masked, -np.inf, rng.normal(0, 2, count))

    return draw


LOG_PROBABILITIES = between(-6, -0.05)

IMPOSSIBLE_CLASSES = Classes("impossible-classes", (8, 6), NONE, dtypes=(F16, F32), targets=choice([0]))


def _nll_cases(prototype: Prototype, more: Callable[[Classes, Dtype], Any]) -> Iterator[Case]:
    yield from _class_cases(prototype, CLASSES, LOG_PROBABILITIES, more)
    if not prototype.name.endswith("Backward"):
        yield from _class_cases(prototype, [IMPOSSIBLE_CLASSES], _masked_beyond_first(6), more)
    if prototype.name != "diopiNLLLossV2Backward":  # whose total weight is given
        yield from _class_cases(prototype, [EXACT_SUM, EXACT_MEAN], whole(-80, 0), more)


@cases_for("diopiNLLLoss", weak=NOTHING_LEFT)
@cases_for("diopiNLLLossBackward", weak={**NOTHING_LEFT, **ONE_TARGET})
def nll(prototype: Prototype) -> Iterator[Case]:
    yield from _nll_cases(prototype, lambda setting, dtype: ({}, {}))


@cases_for("diopiNLLLossV2", weak=NOTHING_LEFT)
def nll_v2(prototype: Prototype) -> Iterator[Case]:
    shapes: dict[str, ResultOverride | None] = {
        "mean-weight": ResultOverride(shape=(1,)),
        "sum": ResultOverride(shape=(1,)),
        "mean": None,
        "none-weight-rank3-transposed": None,
    }

    def total(setting: Classes, dtype: Dtype) -> Any:
        return {}, {"totalWeight": shapes.get(setting.label, ResultOverride())}

    yield from _nll_cases(prototype, total)


@cases_for("diopiNLLLossV2Backward", weak={**NOTHING_LEFT, **ONE_TARGET})
def nll_v2_backward(prototype: Prototype) -> Iterator[Case]:
    def total(setting: Classes, dtype: Dtype) -> Any:
        """A total weight that differs from what the targets add up to shows whether it is used."""
        shape = (1,) if "weight" in setting.label else ()
        return {"totalWeight": TensorSpec(shape, dtype, between(3, 9))}, {}

    yield from _nll_cases(prototype, total)


# Connectionist temporal classification


@dataclass(frozen=True)
class Samples:
    """T, C, the labels of each sample, none of them the blank, and how many steps each has."""

    steps: int
    classes: int
    targets: Sequence[Sequence[int]]
    input_lengths: Sequence[int]

    @property
    def count(self) -> int:
        """N."""
        return len(self.targets)

    @property
    def longest(self) -> int:
        """The length of the longest target."""
        return max(len(target) for target in self.targets)


@dataclass(frozen=True)
class Alignment:
    """A case of CTC.

    Attributes:
        spare: how much wider than the longest target `targets` is; None has the targets one after the other.
        out: shape of a reduced result.
    """

    label: str
    samples: Samples
    reduction: Reduction = MEAN
    zero_infinity: bool = False
    blank: int = 0
    spare: int | None = 0
    index: Dtype = Dtype.int64
    layout: Layout = contiguous
    out: tuple[int, ...] = ()
    smoke: bool = False

    def arguments(self, dtype: Dtype) -> dict[str, Any]:
        """What the loss and its gradient take."""
        shape = (self.samples.steps, self.samples.count, self.samples.classes)
        return {
            "_logits": TensorSpec(shape, F64, normal(1.5)),
            "log_probs": TensorSpec(
                shape, dtype, layout=self.layout, compute=lambda values: special.log_softmax(values["_logits"], -1)
            ),
            "targets": _given(self._table(), self.index),
            "input_lengths": _given(self.samples.input_lengths, self.index),
            "target_lengths": _given([len(target) for target in self.samples.targets], self.index),
            "blank": self.blank,
            "reduction": self.reduction,
            "zero_infinity": self.zero_infinity,
        }

    def _table(self) -> Any:
        """(N, S), each target followed by labels that belong to none, or (S) without them."""
        targets = self.samples.targets
        if self.spare is None:
            return np.concatenate([np.array(target, np.int64) for target in targets])
        width = self.samples.longest + self.spare
        other = (self.blank + 1) % self.samples.classes
        return np.array([[*target, *[other] * (width - len(target))] for target in targets]).reshape(-1, width)


def _given(values: Any, dtype: Dtype) -> TensorSpec:
    """A tensor of these values."""
    array = np.asarray(values)
    return TensorSpec(array.shape, dtype, compute=lambda _: array)


RAGGED = Samples(7, 5, [(1, 1, 2), (3, 4), (), (2,)], [7, 4, 5, 6])
IMPOSSIBLE = Samples(5, 4, [(1, 1, 1), (2, 3), (), (2,), (3, 1)], [4, 5, 0, 0, 2])
"""Samples 0 and 3 fit no alignment; sample 2 needs none."""


def _labels(count: int) -> list[int]:
    """Labels 1 to 4, some the same as the one before."""
    return [1 + number * number // 3 % 4 for number in range(count)]


ALIGNMENTS = (
    Alignment("ragged-none", RAGGED, NONE, smoke=True),
    Alignment("ragged-mean", RAGGED, smoke=True),
    Alignment("ragged-sum", RAGGED, SUM, out=(1,)),
    Alignment("joined-mean", RAGGED, spare=None, out=(1,)),
    Alignment("joined-none-int32", RAGGED, NONE, spare=None, index=Dtype.int32),
    Alignment("spare-sum-int32", RAGGED, SUM, spare=3, index=Dtype.int32),
    Alignment("transposed-mean", RAGGED, layout=transposed),
    Alignment("strided-none", RAGGED, NONE, layout=strided),
    Alignment("impossible-none", IMPOSSIBLE, NONE),
    Alignment("impossible-mean", IMPOSSIBLE),
    Alignment("impossible-none-zero", IMPOSSIBLE, NONE, zero_infinity=True),
    Alignment("impossible-mean-zero", IMPOSSIBLE, zero_infinity=True, smoke=True),
    Alignment("impossible-sum-zero", IMPOSSIBLE, SUM, zero_infinity=True),
    Alignment("possible-mean-zero", RAGGED, zero_infinity=True),
    Alignment("blank-last", Samples(6, 4, [(0, 1, 1), (2, 0)], [6, 5]), NONE, blank=3),
    Alignment("blank-middle", Samples(6, 4, [(0, 1, 1), (3, 0)], [6, 5]), blank=2, spare=None),
    Alignment("one-sample", Samples(5, 3, [(1, 2)], [5])),
    Alignment("tight", Samples(5, 3, [(1, 2, 2, 1), (1, 2, 1, 2)], [5, 4]), NONE),
    Alignment("one-step", Samples(3, 4, [(1,), (), (3,), (1, 2)], [1, 1, 2, 1]), NONE),
    Alignment("many-labels", Samples(60, 5, [_labels(35), _labels(26)], [60, 41]), NONE),
    Alignment("no-labels", Samples(4, 3, [(), ()], [4, 2]), spare=1),
    Alignment("long", Samples(24, 6, [(1, 2, 3, 3, 4, 5, 1, 1), (5, 4, 3, 2)], [24, 17]), SUM),
)


def _ctc_results(alignment: Alignment) -> dict[str, ResultOverride]:
    return {} if alignment.reduction == NONE else {"out": ResultOverride(shape=alignment.out)}


NO_LABELS = {"no-labels": "all targets are empty"}


@cases_for("diopiCTCLoss", weak=NO_LABELS)
def ctc(prototype: Prototype) -> Iterator[Case]:
    for dtype in prototype.dtypes:
        for setting in ALIGNMENTS:
            label = f"{dtype.name}-{setting.label}"
            yield Case(label, dtype, setting.arguments(dtype), _ctc_results(setting), smoke=setting.smoke)


def _forward(values: Values) -> tuple[Any, Any]:
    """neg_log_likelihood and log_alpha of a case; 7 stands where nothing is specified, lest anyone reads it."""
    names = [p for p in values if not p.startswith("_") and p not in ("grad_output", "neg_log_likelihood")]
    _, losses, alpha = ctc_loss(**{name: values[name] for name in names}, out=(ResultOverride(),))
    return bare(losses), np.where(alpha.specified, bare(alpha), 7.0)


@cases_for("diopiCTCLossBackward", weak=NO_LABELS)
def ctc_backward(prototype: Prototype) -> Iterator[Case]:
    for dtype in prototype.dtypes:
        for setting in ALIGNMENTS:
            samples = setting.samples.count
            alpha = (samples, setting.samples.steps, 2 * setting.samples.longest + 1)
            arguments = {
                **setting.arguments(dtype),
                "grad_output": TensorSpec((samples,) if setting.reduction == NONE else setting.out, dtype, normal()),
                "neg_log_likelihood": TensorSpec((samples,), dtype, compute=lambda values: _forward(values)[0]),
                "log_alpha": TensorSpec(alpha, dtype, compute=lambda values: _forward(values)[1]),
            }
            results = {"grad_input": ResultOverride(layout=setting.layout)}
            yield Case(f"{dtype.name}-{setting.label}", dtype, arguments, results, smoke=setting.smoke)
