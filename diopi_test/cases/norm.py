"""Normalisation layers and vector norms, with their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, nan, prod
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import floating, half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, ResultOverride, TensorSpec, Values, cases_for
from diopi_test.cases.computed import result_of
from diopi_test.cases.products import given
from diopi_test.domains import Domain, away_from, between, choice, magnitudes, normal, special, whole
from diopi_test.layouts import Layout, channels_last, contiguous, expanded, strided, transposed

single, double = Dtype.float32, Dtype.float64

SHIFTED = normal(1, mean=0.75)
"""Off centre, so that the mean counts."""

FAR = normal(1, mean=100)
"""So far off centre that the variance is lost if it is computed as E[x²] − mean²."""

MANY = whole(1, 100)
"""Whole numbers whose sums float32 holds exactly and half precision does not."""

BEYOND_ITS_SQUARE = between(300, 3000)
"""Squares are too large for float16, deviations are not."""

EPS, MOMENTUM = 2.0**-6, 2.0**-3
"""Large enough to count in half precision, and numbers of every format."""


def _with_first(value: float) -> Domain:
    """`SHIFTED` values of which the first is replaced."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = SHIFTED(rng, count, dtype)
        values[0] = value
        return values

    return draw


def _rows(length: int, draw_row: Callable[[Generator, int], Any]) -> Domain:
    """Values in rows of `length` elements, each made from its number."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return np.asarray(np.concatenate([draw_row(rng, number) for number in range(count // length)]))

    return draw


def _two_values(length: int) -> Domain:
    """Rows of an even `length` whose elements have means 3, 5 and 2, and standard deviations 2, 4 and 1, in turn."""
    pairs = [5, 1], [9, 1], [3, 1]
    return _rows(length, lambda rng, number: rng.permutation(np.resize(pairs[number % 3], length)))


def _level(length: int) -> Domain:
    """Rows of equal elements."""
    return _rows(length, lambda rng, number: np.full(length, [2.0, -1.5, 0.25][number % 3]))


def _adding_up_to_64(rng: Generator, number: int) -> NDArray[Any]:
    """33 elements whose moduli add up to 64."""
    return np.asarray(rng.permutation([1.0, 1.0, *[2.0] * 31]) * rng.choice([-1.0, 1.0], 33))


def _nothing_in_half(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Zeros in the first half of the elements."""
    values = SHIFTED(rng, count, dtype)
    values[: count // 2] = 0
    return values


def _statistic(dtype: Dtype) -> Dtype:
    """The element type of statistics of tensors of `dtype`."""
    return single if dtype in half else dtype


@dataclass(frozen=True)
class Variant:
    """One call of a layer function, for each of several element types.

    Attributes:
        label: the part of the case's label after the element type.
        shape: of the input.
        domain, gradient, weights: where input, grad_output and weight are drawn from.
        layout, result: where all argument tensors, and the first result, lie.
        views: arguments that are expanded, as gradients of sums are.
        without: optional arguments and results that are NULL.
        parameters: element type of weight, bias and running statistics, by default the input's.
        arguments: arguments that differ from the usual ones.
        results: what the caller decides about results.
        dtypes, smoke, exact: as in `Case`, one case an element type.
    """

    label: str
    shape: tuple[int, ...]
    domain: Domain = SHIFTED
    gradient: Domain = SHIFTED
    weights: Domain = field(default_factory=normal)
    layout: Layout = contiguous
    result: Layout = contiguous
    views: Sequence[str] = ()
    without: Sequence[str] = ()
    parameters: Dtype | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, ResultOverride] = field(default_factory=dict)
    dtypes: Sequence[Dtype] = (single,)
    smoke: bool = False
    exact: bool = False

    def tensor(self, dtype: Dtype, shape: Sequence[int], domain: Domain) -> TensorSpec:
        """A tensor argument in the variant's layout."""
        return TensorSpec(tuple(shape), dtype, domain, self.layout)

    def computed(self, dtype: Dtype, shape: Sequence[int], compute: Callable[[Values], Any]) -> TensorSpec:
        """A tensor argument that follows from earlier ones."""
        own = tuple(shape)
        return TensorSpec(own, dtype, layout=self.layout, compute=lambda values: compute(values).reshape(own))

    def common(self, dtype: Dtype, parameter_shape: Sequence[int]) -> dict[str, Any]:
        """The arguments all layers have."""
        own = self.parameters or dtype
        return {
            "eps": self.arguments.get("eps", EPS),
            "grad_output": self.tensor(dtype, self.shape, self.gradient),
            "input": self.tensor(dtype, self.shape, self.domain),
            "weight": self.tensor(own, parameter_shape, self.weights),
            "bias": self.tensor(own, parameter_shape, self.weights),
        }


Template = Callable[[Variant, Dtype], Mapping[str, Any]]
"""The usual arguments of a variant in an element type; those a prototype lacks are left out."""


def layer_cases(prototype: Prototype, template: Template, variants: Iterable[Variant]) -> Iterator[Case]:
    """The cases of a layer function: every variant in each of its element types."""
    arguments = {p.name for p in prototype.arguments}
    results = [p.name for p in prototype.results]
    for variant in variants:
        absent = dict.fromkeys(variant.without)
        decided = {results[0]: ResultOverride(layout=variant.result), **variant.results, **absent}
        for dtype in variant.dtypes:
            given = {**template(variant, dtype), **variant.arguments, **absent}
            given |= {name: replace(given[name], layout=expanded) for name in variant.views if name in given}
            yield Case(
                f"{dtype.name}-{variant.label}",
                dtype,
                {name: value for name, value in given.items() if name in arguments},
                {name: value for name, value in decided.items() if name in results},
                smoke=variant.smoke,
                exact=variant.exact,
            )


def exact_variant(shape: tuple[int, ...], length: int, label: str = "exact") -> Variant:
    """Data that make statistics, over `length` neighbours each time, and sums exact in float32, sums not in half types.

    For functions that are given the statistics: a sound way of finding them, Welford's, rounds all the same.
    """
    domain = _two_values(length)
    return Variant(label, shape, domain, MANY, whole(1, 3), arguments={"eps": 0.0}, dtypes=floating, exact=True)


EXPANDED = Variant("expanded", (3, 4, 5), views=["input", "grad_output", "grad_out"])


def long_variants(
    shape: tuple[int, ...], very_long: tuple[int, ...], mean: float = 8, parameters: Dtype | None = None
) -> Iterator[Variant]:
    """Many elements; in half precision off centre, so that sums kept in half precision go wrong."""
    yield Variant("long", shape, normal(1, mean), dtypes=half)
    yield Variant("long", shape, dtypes=(single, double))
    yield Variant("very-long", very_long, dtypes=(*half, single))
    yield Variant("large", shape, BEYOND_ITS_SQUARE, parameters=parameters, dtypes=(Dtype.float16,))


GRADIENTS = ("grad_input", "grad_weight", "grad_bias")


def gradient_variants(shape: tuple[int, ...], **arguments: Any) -> Iterator[Variant]:
    """Every gradient on its own, and that of the bias where there is no weight to tell its type."""
    for wanted in GRADIENTS:
        yield Variant(f"only-{wanted}", shape, without=[g for g in GRADIENTS if g != wanted], arguments=arguments)
    bias = {"grad_bias": ResultOverride(single)}
    yield Variant("bias-only", shape, without=["weight", "grad_weight"], results=bias, arguments=arguments)


NO_PARAMETERS: Mapping[str, None] = {"weight": None, "bias": None}
"""What statistics don't depend on."""

NO_AFFINE = ("weight", "bias", "grad_weight", "grad_bias")

# Batch norm

RUNNING = ("running_mean", "running_var")
SAVED = ("save_mean", "save_invstd")
EVALUATION = {"training": False}


def _batch_norm_arguments(variant: Variant, dtype: Dtype) -> Mapping[str, Any]:
    own, channels = variant.parameters or dtype, variant.shape[1:2]
    statistics = "diopiBatchNormStats"
    eps = variant.arguments.get("eps", EPS)
    return {
        "training": True,
        "momentum": MOMENTUM,
        **variant.common(dtype, channels),
        "running_mean": variant.tensor(own, channels, normal()),
        "running_var": variant.tensor(own, channels, between(0.5, 2)),
        "save_mean": variant.computed(_statistic(dtype), channels, result_of(statistics, "mean", eps=eps)),
        "save_invstd": variant.computed(_statistic(dtype), channels, result_of(statistics, "invstd", eps=eps)),
    }


BATCH_NORM = (
    Variant("training", (3, 5, 2, 3), dtypes=floating, smoke=True),
    Variant("evaluation", (4, 3, 5), arguments=EVALUATION, dtypes=floating, smoke=True),
    *long_variants((4, 3, 43), (2, 2, 517), parameters=single),
    EXPANDED,
    Variant("many-channels", (2, 67, 3)),
    Variant("mixed-training", (3, 4, 7), parameters=single, dtypes=half),
    Variant("mixed-evaluation", (3, 4, 7), parameters=single, arguments=EVALUATION, dtypes=half),
    Variant("rank2", (9, 6)),
    Variant("rank2-evaluation", (5, 6), arguments=EVALUATION),
    Variant("rank5", (2, 3, 2, 1, 3), dtypes=(single, Dtype.bfloat16)),
    Variant("channels-last", (2, 3, 4, 5), layout=channels_last, result=channels_last, dtypes=(single, Dtype.float16)),
    Variant("strided", (3, 4, 5), layout=strided, result=strided),
    Variant("transposed", (3, 4, 5), layout=transposed, result=transposed, arguments=EVALUATION),
    Variant("no-affine", (3, 4, 5), without=NO_AFFINE, dtypes=(single, Dtype.float16)),
    Variant("no-affine-evaluation", (3, 4, 5), without=NO_AFFINE, arguments=EVALUATION),
    Variant("eps", (3, 4, 5), arguments={"eps": 0.5}),
    Variant("eps-evaluation", (3, 4, 5), arguments={**EVALUATION, "eps": 1e-5}),
    Variant("nan", (3, 4, 5), _with_first(nan)),
    Variant("nan-evaluation", (3, 4, 5), _with_first(nan), arguments=EVALUATION),
    Variant("infinity-evaluation", (3, 4, 5), _with_first(-inf), arguments=EVALUATION),
    Variant("empty-evaluation", (0, 3, 2), arguments=EVALUATION),
)


NO_VARIANCE = {
    "equal-values": "where nothing varies, only eps counts, and 0 is scaled",
    "one-value|one-value-a-channel": "one value doesn't vary, and 0 is scaled; its unbiased variance is 0 / 0",
}


@cases_for("diopiBatchNorm", weak=NO_VARIANCE)
def batch_norm(prototype: Prototype) -> Iterator[Case]:
    own_variants = (
        Variant("far", (3, 4, 12), FAR),
        Variant("no-weight", (3, 4, 5), without=["weight"]),
        Variant("no-bias", (3, 4, 5), without=["bias"]),
        Variant("no-running", (3, 4, 5), without=RUNNING, dtypes=(single, Dtype.bfloat16)),
        Variant("momentum-0", (3, 4, 5), arguments={"momentum": 0.0}),
        Variant("momentum-1", (3, 4, 5), arguments={"momentum": 1.0}),
        Variant("momentum-third", (3, 4, 5), arguments={"momentum": 1 / 3}),
        Variant("equal-values", (4, 3, 2), _level(2)),
        Variant("one-value-a-channel", (1, 5)),
        Variant("unsaved-evaluation", (4, 3, 2), arguments=EVALUATION, without=SAVED),
        Variant("no-elements-saved-evaluation", (4, 3, 2), arguments=EVALUATION, results=_saved(shape=(0,))),
        Variant("float16-saved", (4, 3, 6), results=_saved(Dtype.float16), dtypes=(Dtype.float16,)),
        Variant("float-saved", (4, 3, 6), results=_saved(single), without=RUNNING, dtypes=(double,)),
    )
    yield from layer_cases(prototype, _batch_norm_arguments, (*BATCH_NORM, *own_variants))


def _saved(dtype: Dtype | None = None, shape: tuple[int, ...] | None = None) -> dict[str, ResultOverride]:
    """The decision about the saved statistics, whatever the layer calls them."""
    return dict.fromkeys((*SAVED, *RUNNING), ResultOverride(dtype, shape=shape))


@cases_for("diopiBatchNormBackward")
def batch_norm_backward(prototype: Prototype) -> Iterator[Case]:
    own_variants = (
        exact_variant((8, 3, 8), 8),
        Variant("no-running", (3, 4, 5), without=RUNNING),
        Variant("no-saved-evaluation", (3, 4, 5), without=SAVED, arguments=EVALUATION),
        *gradient_variants((3, 4, 5)),
        Variant("only-grad_input-evaluation", (3, 4, 5), without=GRADIENTS[1:], arguments=EVALUATION),
    )
    yield from layer_cases(prototype, _batch_norm_arguments, (*BATCH_NORM, *own_variants))


@cases_for("diopiBatchNormStats", weak=NO_VARIANCE)
def batch_norm_stats(prototype: Prototype) -> Iterator[Case]:
    training = [v for v in BATCH_NORM if "training" not in v.arguments and v.parameters is None and not v.without]
    own_variants = (
        Variant("far", (3, 4, 12), FAR),
        Variant("equal-values", (4, 3, 2), _level(2)),
        Variant("one-value-a-channel", (1, 5)),
    )
    yield from layer_cases(prototype, _batch_norm_arguments, (*training, *own_variants))


def _gather_arguments(variant: Variant, dtype: Dtype) -> Mapping[str, Any]:
    """The variant's shape is (workers, channels)."""
    own, channels = variant.parameters or dtype, variant.shape[1:]
    return {
        "eps": EPS,
        "momentum": MOMENTUM,
        "input": variant.tensor(dtype, (2, *channels, 3), normal()),
        "mean_all": variant.tensor(_statistic(dtype), variant.shape, variant.domain),
        "invstd_all": variant.tensor(_statistic(dtype), variant.shape, between(0.5, 2)),
        "running_mean": variant.tensor(own, channels, normal()),
        "running_var": variant.tensor(own, channels, between(0.5, 2)),
        "counts": variant.tensor(_statistic(dtype), variant.shape[:1], whole(2, 30)),
    }


@cases_for("diopiBatchNormGatherStatsWithCounts")
def batch_norm_gather_stats_with_counts(prototype: Prototype) -> Iterator[Case]:
    variants = (
        Variant("plain", (3, 5), dtypes=floating, smoke=True),
        Variant("one-worker", (1, 4)),
        Variant("many-workers", (17, 3), dtypes=floating),
        Variant("many-channels", (2, 67), between(1, 2)),
        Variant("float-running", (3, 4), parameters=single, dtypes=half),
        Variant("no-running", (3, 4), without=RUNNING, dtypes=(single, Dtype.float16)),
        Variant("strided", (4, 3), layout=strided, result=strided),
        Variant("transposed", (4, 3), layout=transposed),
        Variant("eps", (3, 4), arguments={"eps": 0.25}),
        Variant("small-eps", (3, 4), arguments={"eps": 1e-5}),
        Variant("momentum-0", (3, 4), arguments={"momentum": 0.0}),
        Variant("momentum-1", (3, 4), arguments={"momentum": 1.0}),
        Variant("momentum-third", (3, 4), arguments={"momentum": 1 / 3}),
        Variant("far-apart", (3, 4), normal(30), dtypes=(single, double)),
        Variant("nan", (3, 4), _with_first(nan)),
    )
    yield from layer_cases(prototype, _gather_arguments, variants)


def _synchronised_arguments(variant: Variant, dtype: Dtype) -> Mapping[str, Any]:
    """Statistics of all workers are not those of this worker's input."""
    channels, wide = variant.shape[1:2], _statistic(dtype)
    common = variant.common(dtype, channels)
    return {
        **common,
        "grad_out": common["grad_output"],
        "mean": variant.tensor(wide, channels, SHIFTED),
        "invstd": variant.tensor(wide, channels, between(0.5, 2)),
        "sum_dy": variant.tensor(wide, channels, normal(20)),
        "sum_dy_xmu": variant.tensor(wide, channels, normal(20)),
        "count": variant.tensor(Dtype.int32, (3,), whole(5, 20)),
        "input_g": True,
        "weight_g": True,
        "bias_g": True,
    }


SYNCHRONISED = (
    Variant("plain", (3, 5, 2, 3), dtypes=floating, smoke=True),
    *long_variants((4, 3, 43), (2, 2, 517)),
    EXPANDED,
    Variant("many-channels", (2, 67, 3)),
    Variant("mixed", (3, 4, 7), parameters=single, dtypes=half),
    Variant("rank2", (9, 6)),
    Variant("rank5", (2, 3, 2, 1, 3), dtypes=(single, Dtype.bfloat16)),
    Variant("channels-last", (2, 3, 4, 5), layout=channels_last, result=channels_last, dtypes=(single, Dtype.float16)),
    Variant("strided", (3, 4, 5), layout=strided, result=strided),
    Variant("transposed", (3, 4, 5), layout=transposed, result=transposed),
    Variant("no-weight", (3, 4, 5), without=["weight"], dtypes=(single, Dtype.float16)),
    Variant("nan", (3, 4, 5), _with_first(nan)),
    Variant("infinity", (3, 4, 5), _with_first(inf)),
    Variant("empty", (0, 3, 2)),
)


@cases_for("diopiBatchNormBackwardReduce")
def batch_norm_backward_reduce(prototype: Prototype) -> Iterator[Case]:
    sums, flags = ("sum_dy", "sum_dy_xmu"), ("input_g", "weight_g", "bias_g")
    own_variants = (
        *(_exact_reduction(dtypes, wide) for dtypes, wide in (((*half, single), single), ((double,), double))),
        *(Variant(f"only-{flag}", (3, 4, 5), arguments=dict.fromkeys(set(flags) - {flag}, False)) for flag in flags),
        *(Variant(f"no-{flag}", (3, 4, 5), arguments={flag: False}, dtypes=(single, Dtype.float16)) for flag in flags),
        *(Variant(f"without-{name}", (3, 4, 5), without=[name]) for name in (*sums, "grad_weight", "grad_bias")),
    )
    yield from layer_cases(prototype, _synchronised_arguments, (*SYNCHRONISED, *own_variants))


def _exact_reduction(dtypes: Sequence[Dtype], wide: Dtype) -> Variant:
    simple = {"mean": TensorSpec((3,), wide, choice([3.0, 2.0])), "invstd": TensorSpec((3,), wide, choice([0.5, 0.25]))}
    return Variant("exact", (8, 3, 8), _two_values(8), MANY, arguments=simple, dtypes=dtypes, exact=True)


@cases_for("diopiBatchNormBackwardElemt")
def batch_norm_backward_elemt(prototype: Prototype) -> Iterator[Case]:
    own_variants = (
        Variant("one-worker", (3, 4, 5), arguments={"count": TensorSpec((1,), Dtype.int32, whole(5, 20))}),
        Variant("strided-count", (3, 4, 5), arguments={"count": TensorSpec((4,), Dtype.int32, whole(1, 9), strided)}),
    )
    yield from layer_cases(prototype, _synchronised_arguments, (*SYNCHRONISED, *own_variants))


@cases_for("diopiBatchNormElemt")
def batch_norm_elemt(prototype: Prototype) -> Iterator[Case]:
    own_variants = (
        Variant("far", (3, 4, 12), FAR),
        Variant("no-bias", (3, 4, 5), without=["bias"]),
        Variant("no-affine", (3, 4, 5), without=["weight", "bias"]),
        Variant("large-eps", (3, 4, 5), arguments={"eps": 10.0}, dtypes=floating),
        Variant("nan-eps", (3, 4, 5), arguments={"eps": nan}),
    )
    yield from layer_cases(prototype, _synchronised_arguments, (*SYNCHRONISED, *own_variants))


# Layer norm


def _layer_norm_arguments(variant: Variant, dtype: Dtype) -> Mapping[str, Any]:
    begin = variant.arguments.get("begin_norm_axis", 1) % len(variant.shape)
    leading, normalised = variant.shape[:begin], variant.shape[begin:]
    fixed = {"eps": variant.arguments.get("eps", EPS), "begin_norm_axis": begin, **NO_PARAMETERS}
    saved = variant.results.get("save_mean", ResultOverride())
    own, kept = saved.dtype or _statistic(dtype), leading if saved.shape is None else saved.shape
    mean = variant.computed(own, kept, result_of("diopiLayerNormGB", "running_mean", **fixed))
    rstd = variant.computed(own, kept, result_of("diopiLayerNormGB", "running_var", **fixed))
    return {
        "normalized_shape": normalised,
        "begin_norm_axis": begin,
        **variant.common(dtype, normalised),
        "mean": mean,
        "rstd": rstd,
        "running_mean": mean,
        "running_std": rstd,
    }


def _from(axis: int) -> dict[str, int]:
    return {"begin_norm_axis": axis}


LAYER_NORM = (
    Variant("plain", (4, 3, 5), dtypes=floating, smoke=True),
    Variant("last-axis", (3, 4, 7), arguments=_from(-1), dtypes=floating),
    *long_variants((3, 331), (2, 1031)),
    EXPANDED,
    Variant("many-rows", (131, 3)),
    Variant("mixed", (3, 4, 7), parameters=single, arguments=_from(2), dtypes=half),
    Variant("all-axes", (4, 3, 2), arguments=_from(0), dtypes=(single, Dtype.bfloat16)),
    Variant("rank1", (9,), arguments=_from(0)),
    Variant("rank5", (2, 3, 2, 1, 4), arguments=_from(-3)),
    Variant("kept-axes", (4, 3, 5), results=_saved(shape=(4, 1, 1)), dtypes=(single, Dtype.float16)),
    Variant("kept-all-axes", (3, 5), arguments=_from(0), results=_saved(shape=(1, 1))),
    Variant("float16-saved", (4, 3, 5), results=_saved(Dtype.float16), dtypes=(Dtype.float16,)),
    Variant("bfloat16-saved", (4, 3, 5), results=_saved(Dtype.bfloat16), dtypes=(Dtype.bfloat16,)),
    Variant("strided", (3, 4, 5), layout=strided, result=strided),
    Variant("transposed", (3, 4, 5), layout=transposed, result=transposed, dtypes=(single, Dtype.float16)),
    Variant("channels-last", (2, 3, 4, 5), layout=channels_last, result=channels_last),
    Variant("no-affine", (3, 4, 5), without=NO_AFFINE, dtypes=(single, Dtype.float16)),
    Variant("eps", (3, 4, 5), arguments={"eps": 0.5}),
    Variant("small-eps", (3, 4, 5), arguments={"eps": 1e-5}),
    Variant("nan", (3, 4, 5), _with_first(nan)),
    Variant("empty", (0, 3, 5), dtypes=(single, Dtype.float16)),
)


@cases_for("diopiLayerNorm", "diopiLayerNormGB", weak={**NO_VARIANCE, "expanded": "all rows are one"})
def layer_norm(prototype: Prototype) -> Iterator[Case]:
    own_variants = (
        Variant("far", (5, 37), FAR),
        Variant("no-weight", (3, 4, 5), without=["weight"]),
        Variant("no-bias", (3, 4, 5), without=["bias"]),
        Variant("equal-values", (4, 6), _level(6)),
        Variant("one-value", (4, 1)),
    )
    yield from layer_cases(prototype, _layer_norm_arguments, (*LAYER_NORM, *own_variants))


@cases_for(
    "diopiLayerNormBackward", "diopiLayerNormGBBackward", weak={"nan": "a sum over all rows has that of the NaN in it"}
)
def layer_norm_backward(prototype: Prototype) -> Iterator[Case]:
    own_variants = (
        exact_variant((64, 4), 4),
        exact_variant((2, 8, 8), 64, "exact-rows"),
        *gradient_variants((3, 4, 5)),
        Variant("no-bias", (3, 4, 5), without=["bias", "grad_bias"]),
    )
    yield from layer_cases(prototype, _layer_norm_arguments, (*LAYER_NORM, *own_variants))


# Group norm


def _group_norm_arguments(variant: Variant, dtype: Dtype) -> Mapping[str, Any]:
    groups = variant.arguments.get("num_groups", 2)
    fixed = {"eps": variant.arguments.get("eps", EPS), "num_groups": groups, **NO_PARAMETERS}
    own = variant.parameters or dtype
    kept = (variant.shape[0], groups)
    return {
        "num_groups": groups,
        **variant.common(dtype, variant.shape[1:2]),
        "mean": variant.computed(own, kept, result_of("diopiGroupNorm", "save_mean", **fixed)),
        "rstd": variant.computed(own, kept, result_of("diopiGroupNorm", "save_invstd", **fixed)),
    }


def _groups(number: int) -> dict[str, int]:
    return {"num_groups": number}


GROUP_NORM = (
    Variant("plain", (3, 6, 2, 3), arguments=_groups(3), dtypes=floating, smoke=True),
    *long_variants((2, 4, 83), (2, 4, 519), mean=2),
    EXPANDED,
    Variant("many-groups", (3, 70, 2), arguments=_groups(35)),
    Variant("mixed", (3, 4, 7), parameters=single, dtypes=half),
    Variant("one-group", (3, 4, 5), arguments=_groups(1), dtypes=(single, Dtype.bfloat16)),
    Variant("group-a-channel", (3, 4, 5), arguments=_groups(4)),
    Variant("rank2", (3, 12), arguments=_groups(3)),
    Variant("rank5", (2, 4, 2, 1, 3)),
    Variant("channels-last", (2, 6, 3, 5), layout=channels_last, result=channels_last, dtypes=(single, Dtype.float16)),
    Variant("strided", (3, 4, 5), layout=strided, result=strided),
    Variant("transposed", (3, 4, 5), layout=transposed, result=transposed),
    Variant("no-affine", (3, 4, 5), without=NO_AFFINE, dtypes=(single, Dtype.float16)),
    Variant("eps", (3, 4, 5), arguments={"eps": 0.5}),
    Variant("small-eps", (3, 4, 5), arguments={"eps": 1e-5}),
    Variant("nan", (3, 4, 5), _with_first(nan)),
    Variant("empty", (0, 4, 5)),
)


@cases_for("diopiGroupNorm", weak=NO_VARIANCE)
def group_norm(prototype: Prototype) -> Iterator[Case]:
    own_variants = (
        Variant("far", (2, 6, 13), FAR),
        Variant("no-weight", (3, 4, 5), without=["weight"]),
        Variant("no-bias", (3, 4, 5), without=["bias"]),
        Variant("equal-values", (4, 6, 2), _level(6)),
        Variant("float-saved", (3, 4, 5), results=_saved(single), dtypes=half),
    )
    yield from layer_cases(prototype, _group_norm_arguments, (*GROUP_NORM, *own_variants))


@cases_for("diopiGroupNormBackward")
def group_norm_backward(prototype: Prototype) -> Iterator[Case]:
    own_variants = (
        exact_variant((8, 4, 8), 16, "exact-channels"),
        exact_variant((2, 8, 16), 64, "exact-groups"),
        *gradient_variants((3, 4, 5)),
    )
    yield from layer_cases(prototype, _group_norm_arguments, (*GROUP_NORM, *own_variants))


# Instance norm


def _instance_norm_arguments(variant: Variant, dtype: Dtype) -> Mapping[str, Any]:
    axis = variant.arguments.get("axis", 2)
    common = variant.common(dtype, (prod(variant.shape[1:axis]),))
    return {"axis": axis, **common, "scale": common["weight"]}


def _axis(axis: int) -> dict[str, int]:
    return {"axis": axis}


NO_SCALE = ("scale", "bias", "grad_scale", "grad_bias")

INSTANCE_NORM = (
    Variant("plain", (3, 4, 3, 2), dtypes=floating, smoke=True),
    *long_variants((2, 3, 157), (1, 3, 1031)),
    EXPANDED,
    Variant("many-channels", (2, 67, 3)),
    Variant("mixed", (2, 4, 9), parameters=single, dtypes=half),
    Variant("first-axis", (3, 4, 5), arguments=_axis(1), dtypes=(single, Dtype.bfloat16)),
    Variant("third-axis", (2, 3, 4, 5), arguments=_axis(3), dtypes=(single, Dtype.float16)),
    Variant("rank2", (4, 7), arguments=_axis(1)),
    Variant("rank5", (2, 3, 2, 2, 3)),
    Variant("channels-last", (2, 3, 4, 5), layout=channels_last, result=channels_last, dtypes=(single, Dtype.float16)),
    Variant("strided", (3, 4, 5), layout=strided, result=strided),
    Variant("transposed", (3, 4, 5), layout=transposed, result=transposed),
    Variant("no-affine", (3, 4, 5), without=NO_SCALE, dtypes=(single, Dtype.float16)),
    Variant("eps", (3, 4, 5), arguments={"eps": 0.5}),
    Variant("small-eps", (3, 4, 5), arguments={"eps": 1e-5}),
    Variant("zero-eps", (3, 4, 5), arguments={"eps": 0.0}),
    Variant("negative-eps", (3, 4, 5), between(1, 9), arguments={"eps": -0.125}),
    Variant("nan", (3, 4, 5), _with_first(nan)),
    Variant("empty", (0, 4, 5)),
)


@cases_for("diopiInstanceNorm", weak=NO_VARIANCE)
def instance_norm(prototype: Prototype) -> Iterator[Case]:
    own_variants = (
        Variant("far", (3, 4, 31), FAR),
        Variant("no-scale", (3, 4, 5), without=["scale"]),
        Variant("no-bias", (3, 4, 5), without=["bias"]),
        Variant("equal-values", (2, 3, 6), _level(6)),
        Variant("too-negative-eps", (2, 3, 4), _two_values(4), arguments={"eps": -2.0}),
    )
    yield from layer_cases(prototype, _instance_norm_arguments, (*INSTANCE_NORM, *own_variants))


@cases_for("diopiInstanceNormBackward")
def instance_norm_backward(prototype: Prototype) -> Iterator[Case]:
    gradients = ("grad_input", "grad_scale", "grad_bias")
    own_variants = (
        *(Variant(f"only-{name}", (3, 4, 5), without=[g for g in gradients if g != name]) for name in gradients),
        Variant("no-bias", (3, 4, 5), without=["bias", "grad_bias"]),
    )
    yield from layer_cases(prototype, _instance_norm_arguments, (*INSTANCE_NORM, *own_variants))


# Vector norms

ORDERS: Mapping[str, float] = {
    "0": 0,
    "1": 1,
    "2.0": 2.0,
    "3": 3,
    "0.5": 0.5,
    "1.5": 1.5,
    "-1": -1,
    "-2.0": -2.0,
}
"""Orders but for ±∞, as integers and as floating numbers; order 2 is the usual one."""

FROM_ONE = away_from([0.0], normal(2), 1.0)
"""Moduli of 1 and more, so that all elements count in a norm of negative order."""

LARGE = magnitudes(8, 10)
"""Squares are too large for float16, norms are not."""

SMALL = magnitudes(-13, -10)
"""Squares are too small for float16, norms are not."""

SOME_ZEROS = choice([0.0, 0.0, 1.5, -2.0, 0.25])
FEW_ZEROS = choice([0.0, 1.5, -2.0, 0.25, 3.0])
ZERO_OR_POSITIVE = choice([0.0, 1.5, 2.0, 0.25, 3.0])
ONE_NAN = choice([nan, *range(1, 12)])
"""Where a whole vector's gradient is 0, its sign is that of the element."""


@dataclass(frozen=True)
class Reduced:
    """One vector norm over the axes `dim`, which stay in the result if `kept`, for each of several element types."""

    label: str
    shape: tuple[int, ...]
    dim: tuple[int, ...] = ()
    kept: bool = False
    order: float = 2
    domain: Domain = field(default_factory=normal)
    layout: Layout = contiguous
    result: Layout = contiguous
    dtypes: Sequence[Dtype] = (single,)
    smoke: bool = False
    exact: bool = False

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The sizes of the norm."""
        ndim = len(self.shape)
        axes = {d % ndim for d in self.dim} or set(range(ndim))
        kept = [1 if axis in axes else length for axis, length in enumerate(self.shape)]
        return tuple(length for axis, length in enumerate(kept) if self.kept or axis not in axes)

    def case(
        self, dtype: Dtype, arguments: Mapping[str, Any], result: str, shape: Any = None, wide: Dtype | None = None
    ) -> Case:
        """The case in an element type; `shape` and `wide` are what the caller decides about the result."""
        results = {result: ResultOverride(wide, self.result, shape)}
        return Case(f"{dtype.name}-{self.label}", dtype, arguments, results, smoke=self.smoke, exact=self.exact)

    def tensor(self, dtype: Dtype) -> TensorSpec:
        """The input."""
        return TensorSpec(self.shape, dtype, self.domain, self.layout)


REDUCED = (
    Reduced("rows", (4, 5), (1,), dtypes=floating, smoke=True),
    Reduced("all", (3, 4), dtypes=floating),
    Reduced("long", (1031,), dtypes=floating),
    Reduced("columns", (4, 3), (0,)),
    Reduced("kept", (3, 4, 2), (1,), kept=True, dtypes=(single, Dtype.bfloat16)),
    Reduced("kept-all", (3, 4), kept=True),
    Reduced("two-axes", (3, 4, 2), (0, 2)),
    Reduced("negative-axes", (3, 4, 2), (-1, -3), kept=True),
    Reduced("every-axis", (2, 3), (1, 0)),
    Reduced("scalar", ()),
    Reduced("strided", (3, 4, 2), (1,), layout=strided, result=strided),
    Reduced("transposed", (3, 4, 2), (2,), layout=transposed, result=transposed, dtypes=(single, Dtype.float16)),
    Reduced("channels-last", (2, 3, 4, 2), (1,), layout=channels_last),
)


@cases_for("diopiNorm", "diopiLinalgVecNorm")
def norm(prototype: Prototype) -> Iterator[Case]:
    own = (
        Reduced("empty", (0, 3)),
        Reduced("empty-rows", (3, 0), (1,), kept=True),
        Reduced("zeros", (4, 4), (1,), domain=_nothing_in_half),
        *(
            Reduced(f"order-{o}", (4, 6), (1,), False, p, FROM_ONE if p else SOME_ZEROS, dtypes=floating)
            for o, p in ORDERS.items()
        ),
        Reduced("count", (5, 6), (1,), order=0.0, domain=choice([0.0, -0.0, 1.5, nan, inf])),
        Reduced("zero-in-order--1", (7, 3), (1,), order=-1, domain=FEW_ZEROS),
        Reduced("zero-in-order-0.5", (3, 5), (1,), order=0.5, domain=SOME_ZEROS),
        Reduced("infinity", (5, 6), (1,), order=inf, dtypes=floating, smoke=True),
        Reduced("minus-infinity", (5, 6), (0,), order=-inf, dtypes=floating),
        Reduced("largest-special", (20, 1), (1,), order=inf, domain=special),
        Reduced("smallest-special", (20, 1), (1,), order=-inf, domain=special),
        Reduced("largest-nan", (3, 4), (1,), order=inf, domain=_with_first(nan)),
        Reduced("smallest-nan", (3, 4), (1,), order=-inf, domain=_with_first(nan)),
        Reduced("nan", (3, 4), (1,), domain=_with_first(nan)),
        Reduced("one-infinite", (3, 4), (1,), order=3, domain=_with_first(-inf)),
        Reduced("large", (4, 8), (1,), domain=LARGE, dtypes=half),
        Reduced("small", (4, 8), (1,), domain=SMALL, dtypes=half),
        Reduced("large-cubes", (4, 8), (1,), order=3, domain=LARGE, dtypes=half),
        Reduced("exact-sum", (2, 517), (1,), order=1, domain=MANY, dtypes=floating, exact=True),
        Reduced("exact-length", (5, 1), (1,), domain=whole(-9, 9), dtypes=floating, exact=True),
    )
    explicit = prototype.name == "diopiLinalgVecNorm"
    for reduced in (*REDUCED, *own):
        for dtype in reduced.dtypes:
            order = {"ord": reduced.order, "keepdim": reduced.kept} if explicit else {"p": reduced.order}
            arguments = {"input": reduced.tensor(dtype), "dim": reduced.dim, **order}
            yield reduced.case(dtype, arguments, "out", shape=reduced.result_shape)
    if explicit:
        yield from _widened_norms()


def _widened_norms() -> Iterator[Case]:
    """Norms in a wider type than the input's; the last is exact in float64 only."""
    for dtype, wide in ((Dtype.float16, single), (Dtype.bfloat16, single), (single, double)):
        wider = Reduced(f"in-{wide.name}", (4, 7), (1,))
        arguments = {"input": wider.tensor(dtype), "ord": 2, "dim": (1,), "keepdim": False}
        yield wider.case(dtype, arguments, "out", wide=wide)
    mixed = Reduced("sum-in-float64", (4, 7), (1,), domain=choice([2.0**25, 1.0, 3.0]), exact=True)
    arguments = {"input": mixed.tensor(single), "ord": 1, "dim": (1,), "keepdim": False}
    yield mixed.case(single, arguments, "out", wide=double)


@cases_for("diopiForeachnormScalar")
def foreachnorm_scalar(prototype: Prototype) -> Iterator[Case]:
    def case(label: str, dtype: Dtype, shapes: Sequence[tuple[int, ...]], order: float, **options: Any) -> Case:
        place, domain = options.pop("layout", contiguous), options.pop("domain", normal())
        domains = [options.pop("first", domain), *[domain] * (len(shapes) - 1)]
        inputs = [TensorSpec(shape, dtype, own, place) for shape, own in zip(shapes, domains, strict=True)]
        return Case(f"{dtype.name}-{label}", dtype, {"inputs": inputs, "ord": order}, **options)

    several = [(3, 4), (5,), (2, 1, 3)]
    for dtype in floating:
        yield case("several", dtype, several, 2, smoke=True)
        yield case("long", dtype, [(517,), (31, 17)], 2.0)
        yield case("exact-sum", dtype, [(517,), (9,)], 1, domain=MANY, exact=True)
        yield case("infinity", dtype, several, inf)
        yield case("minus-infinity", dtype, several, -inf)
    for dtype in half:
        yield case("large", dtype, several, 2, domain=LARGE)
        yield case("small", dtype, several, 2, domain=SMALL)
    yield case("one", single, [(4, 3)], 2)
    yield case("many", single, [(n,) for n in range(1, 18)], 2)
    yield case("scalars", single, [(), (1,), ()], 2)
    yield case("empty", single, [(3,), (0, 2)], 2)
    yield case("strided", single, several, 2, layout=strided)
    yield case("transposed", single, several, 2, layout=transposed)
    yield case("nan", single, several, inf, first=_with_first(nan))
    for label, order in ORDERS.items():
        yield case(f"order-{label}", single, several, order, domain=FROM_ONE if order else SOME_ZEROS)


@cases_for("diopiNormBackward", weak={"zero-in-order-0": "a count has no slope"})
def norm_backward(prototype: Prototype) -> Iterator[Case]:
    positive = between(0.5, 2)
    plain = (
        *REDUCED,
        *(Reduced(f"order-{o}", (4, 6), (1,), False, p, FROM_ONE, dtypes=floating) for o, p in ORDERS.items() if p),
        Reduced("large", (4, 8), (1,), domain=LARGE, dtypes=half),
        Reduced("empty", (0, 3), (1,)),
        Reduced("exact", (5, 1), (1,), domain=choice([1.0, -1.0, 2.0, -3.0, 4.0]), dtypes=floating, exact=True),
    )
    for reduced in plain:
        for dtype in reduced.dtypes:
            yield _norm_backward(reduced, dtype, normal())
    special_ones = (
        *(
            Reduced(f"zero-in-order-{o}", (7, 3), (1,), True, p, FEW_ZEROS if p > 0 else ZERO_OR_POSITIVE)
            for o, p in ORDERS.items()
        ),
        *(Reduced(f"nan-in-order-{p}", (3, 4), (1,), order=p, domain=ONE_NAN) for p in (2, inf, -inf)),
        *(Reduced(f"zeros-in-order-{p}", (4, 4), (1,), order=p, domain=_nothing_in_half) for p in (1, 2, 3, 1.5, inf)),
    )
    for reduced in special_ones:
        yield _norm_backward(reduced, single, positive)
    for dtype in floating:
        yield _tied_maxima(dtype, "infinity", inf, LARGEST_TIED)
        yield _tied_maxima(dtype, "minus-infinity", -inf, SMALLEST_TIED)


Rows = Sequence[Sequence[float]]

LARGEST_TIED: Rows = [[1, 7, 2, 0.5, 3, 4], [6, 1, -6, 3, 2, 1], [-5, 3, 5, 5, -5, 2], [-9, 1, 1, 1, 1, 8]]
SMALLEST_TIED: Rows = [[6, 7, 2, 0.5, 3, 4], [6, 1, -1, 3, 2, 5], [-2, 3, 2, 2, -2, 7], [-1, 3, 3, 3, 3, 8]]
"""One, two and four elements share the gradient; all others are positive, so that their zeros are."""


def _tied_maxima(dtype: Dtype, label: str, order: float, rows: Rows) -> Case:
    tied = Reduced(label, (4, 6), (1,), order=order, exact=True, smoke=True)
    return _norm_backward(tied, dtype, whole(1, 9), compute=lambda values: np.array(rows))


def _norm_backward(reduced: Reduced, dtype: Dtype, gradient: Domain, compute: Any = None) -> Case:
    shape, place = reduced.result_shape, reduced.layout

    def saved(values: Values) -> Any:
        found = result_of("diopiNorm", renamed={"input": "self"})(values)
        return found.reshape(shape)

    arguments = {
        "self": TensorSpec(reduced.shape, dtype, reduced.domain, place, compute),
        "dim": reduced.dim,
        "p": reduced.order,
        "norm": TensorSpec(shape, dtype, layout=place, compute=saved),
        "grad_output": TensorSpec(shape, dtype, gradient, place),
    }
    return reduced.case(dtype, arguments, "grad_input")


# Normalisation to length one


@dataclass(frozen=True)
class Scaled:
    """Vectors along `axis` brought to length one in the norm of order `order`, for each of several element types."""

    label: str
    shape: tuple[int, ...]
    axis: int
    order: float = 2
    eps: float = 1e-12
    domain: Domain = field(default_factory=normal)
    factors: Sequence[float] = (1,)
    layout: Layout = contiguous
    dtypes: Sequence[Dtype] = (single,)
    smoke: bool = False
    exact: bool = False

    def case(self, dtype: Dtype, result: str, with_gradient: bool) -> Case:
        """The case in an element type; along axis 0 the input is multiplied by `factors` in turn."""
        factors = np.resize(self.factors, self.shape[0]).reshape(-1, *[1] * (len(self.shape) - 1))
        arguments = {
            "_drawn": TensorSpec(self.shape, double, self.domain),
            "input": TensorSpec(self.shape, dtype, layout=self.layout, compute=lambda v: v["_drawn"] * factors),
            "p": self.order,
            "axis": self.axis,
            "eps": self.eps,
        }
        if with_gradient:
            gradient = whole(-9, 9) if self.exact else normal()
            arguments["grad_output"] = TensorSpec(self.shape, dtype, gradient, layout=self.layout)
        results = {result: ResultOverride(layout=self.layout)}
        return Case(f"{dtype.name}-{self.label}", dtype, arguments, results, smoke=self.smoke, exact=self.exact)


def _distinct_moduli(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    return np.asarray(rng.permutation(np.arange(1, count + 1)) / 4 * rng.choice([-1.0, 1.0], count))


SHORT_AND_LONG = (4, 0.125)
"""Factors that put every norm clearly above or below 1."""

SCALED = (
    Scaled("rows", (4, 5), 1, dtypes=floating, smoke=True),
    Scaled("columns", (4, 5), 0, dtypes=floating),
    Scaled("last-axis", (2, 3, 4), -1),
    Scaled("middle-axis", (2, 5, 3), 1, dtypes=(single, Dtype.float16)),
    Scaled("rank1", (9,), -1),
    Scaled("long", (2, 517), 1, dtypes=floating),
    Scaled("strided", (3, 4, 2), 1, layout=strided),
    Scaled("transposed", (3, 4, 2), 2, layout=transposed),
    Scaled("channels-last", (2, 3, 4, 2), 1, layout=channels_last),
    Scaled("empty", (0, 3), 1),
    Scaled("length-one-axis", (5, 1), 1, domain=FROM_ONE, order=3),
    Scaled("eps", (6, 5), 1, eps=1.0, factors=SHORT_AND_LONG, dtypes=floating),
    Scaled("eps-order-1", (6, 5), 1, order=1, eps=1.0, factors=(4, 0.0625)),
    Scaled("negative-eps", (4, 5), 1, eps=-3.0, factors=SHORT_AND_LONG),
    Scaled("exact", (5, 33), 1, order=1, domain=_rows(33, _adding_up_to_64), dtypes=floating, exact=True),
    Scaled("exact-unit", (5, 33), 1, order=1, domain=_rows(33, _adding_up_to_64), factors=(2.0**-6,), exact=True),
    Scaled("exact-eps", (5, 33), 1, order=1, eps=64.0, domain=_rows(33, _adding_up_to_64), exact=True),
    *(Scaled(f"zero-in-order-{p}", (7, 3), 1, p, domain=FEW_ZEROS) for p in (0.5, 1)),
    Scaled("large", (4, 8), 1, domain=LARGE, dtypes=half),
    Scaled("infinity", (4, 5), 1, order=inf, domain=_distinct_moduli, dtypes=floating),
    Scaled("minus-infinity", (4, 5), 1, order=-inf, domain=_distinct_moduli),
    *(Scaled(f"order-{o}", (4, 6), 1, p, domain=FROM_ONE, dtypes=(single, Dtype.bfloat16)) for o, p in ORDERS.items()),
    Scaled("nan", (3, 4), 1, domain=_with_first(nan)),
)


NOT_BELOW_EPS = {"exact-eps": "the norm just reaches eps"}


@cases_for("diopiNormalize", weak=NOT_BELOW_EPS)
def normalize(prototype: Prototype) -> Iterator[Case]:
    own = (
        Scaled("zeros", (3, 4), 1, factors=(1, 0)),
        Scaled("zeros-zero-eps", (3, 4), 1, eps=0.0, factors=(1, 0)),
        Scaled("zeros-negative-eps", (3, 4), 1, eps=-1.0, factors=(1, 0)),
    )
    for scaled in (*SCALED, *own):
        for dtype in scaled.dtypes:
            yield scaled.case(dtype, "output", with_gradient=False)


@cases_for(
    "diopiNormalizeBackward",
    weak={**NOT_BELOW_EPS, "length-one-axis": "one element is scaled to 1 or -1, whatever it is"},
)
def normalize_backward(prototype: Prototype) -> Iterator[Case]:
    own = (
        Scaled("zeros", (3, 4), 1, eps=0.25, factors=(4, 0)),
        Scaled("tied", (4, 6), 1, order=inf, domain=given(LARGEST_TIED)),
    )
    for scaled in (*SCALED, *own):
        for dtype in scaled.dtypes:
            yield scaled.case(dtype, "grad_input", with_gradient=True)
