"""Cases of random draws: samples long enough for statistics, and short samples for layouts and certain results.

The baseline stores no expected results. Validators test whether the results have the distribution that the arguments
describe. Inputs have few distinct values, so that validators can test groups of equal values.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). Smoke cases belong to the shortest level of the
suite. Large cases belong to a level with the sizes of real models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf, nan
from typing import Any

import numpy as np

from diopi_proto.dtypes import floating, half, is_floating, real
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOverride
from diopi_test.cases.domains import Domain, choice
from diopi_test.cases.facts import CallsUndefinedInPyTorch, CaseFacts
from diopi_test.cases.layouts import Layout, contiguous, expanded, strided, strides, transposed
from diopi_test.cases.products import fixed_values
from diopi_test.cases.template import ByDtype, CaseTemplate, DtypeSelection, register, tensor
from lib_rt.dtypes import integer_range

Shape = tuple[int, ...]
"""The sizes of a tensor."""

Numbers = Mapping[str, Any]
"""The attributes of a distribution, by name."""

Seed = int | None
"""The seed of the generator that a call receives; None if the call receives no generator."""

Length = int | Callable[[Dtype], int]
"""A number of elements, or a function that returns it for an element type."""

TemplateFunction = Callable[..., CaseTemplate]
"""Returns a template for a label and, where needed, a shape, a layout and a seed."""

F16, BF16, F32, F64 = floating
"""Short names for the floating-point types."""

SEED = 20_240_229
"""The seed of the generator in most cases; any number would do."""

SEEDS: Mapping[str, Seed] = {"own-generator": None, "seed-0": 0, "largest-seed": 2**64 - 1}
"""Other seeds of generators, by label. The label "own-generator" means that the vendor uses its own generator."""

SAMPLE_SHAPE = (45, 80)
"""The shape of most samples.

Their number of elements is large enough to detect some defects. A mean that is wrong by a tenth of the standard
deviation is such a defect, and a range that is wrong by a hundredth.
"""

PLANE_SHAPE = (263, 257)
"""The shape of samples in large cases."""

LONG_SAMPLE_SHAPE = (1_310_723,)
"""The shape of the longest samples.

Nine calls have enough elements to detect a probability or standard deviation that is wrong by 0.5 %.
"""

RESULT_SHAPES: Mapping[str, tuple[Shape, Layout]] = {
    "scalar": ((), contiguous),
    "empty": ((0, 3), contiguous),
    "transposed": ((25, 16), transposed),
    "strided": ((3, 40, 4), strided),
    "rank5": ((2, 1, 3, 2, 2), contiguous),
}
"""Shapes and layouts of results, by label."""


def seeded_templates(template: TemplateFunction) -> Iterator[CaseTemplate]:
    """Return a template for each seed in `SEEDS`; `template` is called with a label and a seed."""
    return (template(label, seed=seed) for label, seed in SEEDS.items())


def sample_templates(template: TemplateFunction) -> Iterator[CaseTemplate]:
    """Yield the templates that every random function has, for element types, shapes, seeds and sizes.

    Args:
        template: Returns a template for a label, and optionally a shape, a layout, a seed and other fields.

    Yields:
        A smoke template in every element type, a template per entry of `RESULT_SHAPES` and of `SEEDS`, and two large
        templates.
    """
    yield template("sample", dtypes=DtypeSelection.all, smoke=True)
    yield from (template(label, *shape_and_layout) for label, shape_and_layout in RESULT_SHAPES.items())
    yield from seeded_templates(template)
    yield template("plane", PLANE_SHAPE, large=True)
    yield template("long", LONG_SAMPLE_SHAPE, large=True)


# Functions that fill a tensor


def fill_templates(numbers: Numbers) -> Iterator[CaseTemplate]:
    """Yield the templates of a function that fills a tensor.

    Args:
        numbers: The attributes of the distribution.

    Yields:
        The templates of `sample_templates`, and a large template in float16.
    """
    yield from sample_templates(partial(fill_template, numbers=numbers))
    yield fill_template("half", (70_001,), numbers=numbers, dtypes=(F16,), large=True)


def fill_template(
    label: str,
    shape: Shape = SAMPLE_SHAPE,
    layout: Layout = contiguous,
    *,
    numbers: Numbers,
    seed: Seed = SEED,
    **fields: Any,
) -> CaseTemplate:
    """Return a template of a call that fills a tensor of the type under test with random numbers.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the tensor.
        layout: The layout of the tensor.
        numbers: The attributes of the distribution.
        seed: The seed of the generator; None if the call receives no generator.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    result = ByDtype(lambda dtype: ResultOverride(dtype, layout, shape))
    results = dict.fromkeys(("out", "inout"), result)
    return CaseTemplate(label, arguments={**numbers, "generator": seed}, results=results, **fields)


def bound_attributes(low: Any, high: Any) -> Numbers:
    """Return the attributes of a uniform distribution from `low` (included) to `high` (excluded)."""
    return {"from_": low, "to": high}


def moment_attributes(mean: float, std: float) -> Numbers:
    """Return the attributes of a normal distribution.

    Args:
        mean: The mean.
        std: The standard deviation.

    Returns:
        The attributes by name.
    """
    return {"mean": mean, "std": std}


RANGE_TEMPLATES = (
    fill_template("one", numbers=bound_attributes(5, 6), dtypes=(F32, Dtype.uint8, Dtype.int64)),
    fill_template("negative", numbers=bound_attributes(-100, -93), dtypes=(F32, Dtype.int8, Dtype.int64, *half)),
    fill_template("around-0", numbers=bound_attributes(-1, 2), dtypes=(Dtype.int16, Dtype.int64, *half)),
    fill_template("wide", numbers=bound_attributes(-(2**40), 2**40), dtypes=(Dtype.int64, F64)),
    fill_template("to-the-end", numbers=bound_attributes(2**62, None), dtypes=(Dtype.int64,)),
    fill_template("from-the-start", numbers=bound_attributes(-(2**63), None), dtypes=(Dtype.int64,)),
    fill_template("from-below", numbers=bound_attributes(-128, None), dtypes=(Dtype.int8,)),
    fill_template("upper-half", numbers=bound_attributes(1024, None), dtypes=(F16,)),
    fill_template("all", numbers=bound_attributes(0, 256), dtypes=(Dtype.uint8, BF16)),
    fill_template("no-end", numbers=bound_attributes(0, None), dtypes=real),
)
"""Templates of random integers in particular ranges. The upper bound None stands for the end of the type's range."""

LOW_BOUND, HIGH_BOUND = (
    ByDtype(lambda dtype: 0 if dtype is Dtype.bool else 3),
    ByDtype(lambda dtype: 2 if dtype is Dtype.bool else 12),
)
"""Bounds of random integers: 3 (included) and 12 (excluded); for bool, 0 and 2."""

register("diopiRandomInp", templates=(*fill_templates(bound_attributes(LOW_BOUND, HIGH_BOUND)), *RANGE_TEMPLATES))

register(
    "diopiUniformInp",
    templates=(
        *fill_templates(bound_attributes(-3.0, 0.5)),
        fill_template("unit", numbers=bound_attributes(0.0, 1.0), dtypes=DtypeSelection.all),
        fill_template("binade", numbers=bound_attributes(1.0, 2.0), dtypes=DtypeSelection.all),
        fill_template("point", (4, 5), numbers=bound_attributes(0.75, 0.75), dtypes=DtypeSelection.all),
        fill_template("far", numbers=bound_attributes(1e6, 1e6 + 4)),
        fill_template("wide", numbers=bound_attributes(-1e300, 3e300), dtypes=(F64,)),
        fill_template("small", numbers=bound_attributes(0.0, 1e-30), dtypes=(F64,)),
        fill_template("up-to-0", numbers=bound_attributes(-3.0, 0.0)),
        fill_template("negative", numbers=bound_attributes(-4.5, -0.625)),
    ),
)

register(
    "diopiBernoulliScalar",
    templates=(
        *fill_templates({"p": 0.3}),
        *(
            fill_template(f"p-{p:g}", (40,), numbers={"p": p}, dtypes=(F32, F16, Dtype.int64, Dtype.bool))
            for p in (0.0, 1.0)
        ),
        fill_template("likely", numbers={"p": 0.85}, dtypes=(F32, BF16, Dtype.int8)),
    ),
)

register(
    "diopiNormal",
    "diopiNormalInp",
    templates=(
        *fill_templates(moment_attributes(-1.5, 2.5)),
        fill_template("standard", numbers=moment_attributes(0.0, 1.0), dtypes=DtypeSelection.all),
        fill_template("point", (4, 5), numbers=moment_attributes(-0.75, 0.0), dtypes=DtypeSelection.all),
        fill_template("narrow", numbers=moment_attributes(8.0, 0.125)),
        *(
            fill_template(f"mean-{mean}", (4, 5), numbers=moment_attributes(mean, 2.0), dtypes=(F32, F16))
            for mean in (inf, -inf, nan)
        ),
        fill_template("large", numbers=moment_attributes(1e200, 1e199), dtypes=(F64,)),
    ),
)


def permutation_template(
    label: str, length: Length = 1000, layout: Layout = contiguous, *, seed: Seed = SEED, **fields: Any
) -> CaseTemplate:
    """Return a template of `diopiRandperm`, a random permutation of the integers from 0.

    Args:
        label: The label of the cases without the element type.
        length: The length of the permutation, or a function that returns it for an element type.
        layout: The layout of the result.
        seed: The seed of the generator; None if the call receives no generator.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    count = length if callable(length) else lambda dtype: length
    result = ByDtype(lambda dtype: ResultOverride(dtype, layout, (count(dtype),)))
    arguments = {"n": ByDtype(count), "generator": seed}
    return CaseTemplate(label, arguments=arguments, results={"out": result}, **{"dtypes": (Dtype.int64,), **fields})


def _max_length(dtype: Dtype) -> int:
    """Return the number of consecutive integers from 0 that a permutation in this type can have, but at most 2049."""
    return min(257 if dtype is BF16 else 2049 if is_floating(dtype) else integer_range(dtype)[1] + 1, 2049)


register(
    "diopiRandperm",
    templates=(
        permutation_template("sample", _max_length, dtypes=DtypeSelection.all, smoke=True),
        permutation_template("few", 15, dtypes=DtypeSelection.all),
        *(permutation_template(f"n-{n}", n, dtypes=(Dtype.int64, F32)) for n in (0, 1, 2)),
        permutation_template("strided", 300, strided, dtypes=(Dtype.int64, F32)),
        permutation_template("long", 70_001),
        permutation_template("long", 131_101, large=True),
        permutation_template("int32", 70_001, dtypes=(Dtype.int32,), large=True),
        *seeded_templates(permutation_template),
    ),
)


# Functions whose distribution depends on the elements of a tensor

FAR_APART: tuple[Shape, Layout, Layout] = PLANE_SHAPE, strides(1031, 2), contiguous
"""The shape, the layout of the arguments and the layout of the result of large samples in half precision."""

PROBABILITIES = choice([0.0, 0.125, 0.25, 0.5, 0.75, 1.0])
"""The domain of probabilities of Bernoulli draws."""


def sample_template(
    label: str,
    shape: Shape = SAMPLE_SHAPE,
    *layouts: Layout,
    arguments: Mapping[str, Any],
    seed: Seed = SEED,
    **fields: Any,
) -> CaseTemplate:
    """Return a template of draws whose distribution depends on the elements of tensors.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the tensors.
        *layouts: No layout, or the layout of the tensors and optionally that of the result. By default, both are
            contiguous.
        arguments: The arguments by name. Domains become tensors of the shape `shape`.
        seed: The seed of the generator; None if the call receives no generator.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    argument_layout, *_, result_layout = layouts * 2 or (contiguous, contiguous)
    specs = {n: tensor(*shape, domain=v, layout=argument_layout) if callable(v) else v for n, v in arguments.items()}
    return CaseTemplate(label, arguments={**specs, "generator": seed}, result_layout=result_layout, **fields)


def _probability_domains(domain: Domain) -> Numbers:
    """Return the domain of probabilities as an argument.

    Args:
        domain: The domain.

    Returns:
        The domain under the parameter names of `diopiBernoulli` and `diopiBernoulliInp`.
    """
    return {"input": domain, "inout": domain}


bernoulli_template = partial(sample_template, arguments=_probability_domains(PROBABILITIES))
"""Return a template of draws of 0 and 1 with probabilities from `PROBABILITIES`."""

BERNOULLI = (
    *sample_templates(bernoulli_template),
    bernoulli_template("half-far-apart", *FAR_APART, dtypes=(F16,), large=True),
    sample_template("certain", (4, 5), arguments=_probability_domains(choice([0.0, 1.0])), dtypes=DtypeSelection.all),
)
"""The templates that `diopiBernoulli` and `diopiBernoulliInp` have."""

register("diopiBernoulliInp", templates=BERNOULLI)
register(
    "diopiBernoulli",
    templates=(
        *BERNOULLI,
        bernoulli_template("expanded", SAMPLE_SHAPE, expanded, contiguous),
        bernoulli_template("to-transposed", SAMPLE_SHAPE, contiguous, transposed),
    ),
)

MEANS = choice([-4.0, 0.0, 8.0])
"""A domain of finite means."""

INFINITE_MEANS = choice([-4.0, inf, 8.0, -inf, 0.0, nan])
"""A domain of means. Some of them are infinite or NaN."""

DEVIATIONS = choice([0.0, 0.5, 2.0])
"""A domain of standard deviations. Some of them are 0."""

NONZERO_DEVIATIONS = choice([0.5, 2.0])
"""A domain of standard deviations that are not 0."""


def normal_templates(mean: Any, std: Any, point: Any) -> tuple[CaseTemplate, ...]:
    """Return the templates of normal distributions.

    Args:
        mean: The argument `mean`, a domain or a number.
        std: The argument `std`, the standard deviation, a domain or a number.
        point: The standard deviation 0 as a domain or a number, for the template in which every element equals its
            mean.

    Returns:
        The templates of `sample_templates`; then the large template in float16, the template with the standard
        deviation `point`, and a template with different layouts.
    """
    sampling_template = partial(sample_template, arguments={"mean": mean, "std": std})
    point_template = sample_template("point", (4, 5), arguments={"mean": mean, "std": point}, dtypes=DtypeSelection.all)
    large = sampling_template("half-far-apart", *FAR_APART, dtypes=(F16,), large=True)
    return (
        *sample_templates(sampling_template),
        large,
        point_template,
        sampling_template("mixed", SAMPLE_SHAPE, strided, transposed),
    )


register(
    "diopiNormalTensorScalar",
    templates=(
        *normal_templates(MEANS, 1.5, 0.0),
        sample_template("infinite-means", arguments={"mean": INFINITE_MEANS, "std": 1.5}, dtypes=(F32, F16)),
    ),
)

register("diopiNormalScalarTensor", templates=normal_templates(-2.5, DEVIATIONS, choice([0.0])))


def two_tensor_template(
    label: str, mean: Shape, std: Shape, *, std_dtype: Dtype | None = None, **fields: Any
) -> CaseTemplate:
    """Return a template of normal distributions with tensors of means and of standard deviations.

    Args:
        label: The label of the cases without the element type.
        mean: The shape of the means.
        std: The shape of the standard deviations. Both shapes are broadcast.
        std_dtype: The element type of the standard deviations; None for the type under test.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    domain = DEVIATIONS if std_dtype else NONZERO_DEVIATIONS
    tensors = {"mean": tensor(*mean, domain=MEANS), "std": tensor(*std, domain=domain, dtype=std_dtype)}
    return CaseTemplate(label, arguments={**tensors, "generator": SEED}, **fields)


*normal_samples, large_normal, point_normal, mixed_layout_normal = normal_templates(MEANS, DEVIATIONS, choice([0.0]))
"""The templates of normal distributions with tensors of means and of standard deviations.

`normal_templates` gives both tensors the same shape and layout. The following call replaces the standard deviations in
two of them.
"""

register(
    "diopiNormalTensor",
    templates=(
        *normal_samples,
        large_normal.replace(arguments={"std": tensor(*PLANE_SHAPE, domain=DEVIATIONS)}),
        point_normal,
        mixed_layout_normal.replace(arguments={"std": tensor(*SAMPLE_SHAPE, domain=DEVIATIONS, layout=transposed)}),
        sample_template("infinite-means", arguments={"mean": INFINITE_MEANS, "std": DEVIATIONS}),
        two_tensor_template("row", SAMPLE_SHAPE, SAMPLE_SHAPE[1:]),
        two_tensor_template("column", (SAMPLE_SHAPE[0], 1), SAMPLE_SHAPE),
        two_tensor_template("outer", (60, 1), (1, 70), dtypes=(F32, BF16)),
        two_tensor_template("by-scalar", SAMPLE_SHAPE, ()),
        two_tensor_template("rank-up", (40,), (3, 35, 40)),
        two_tensor_template("of-float32", SAMPLE_SHAPE, SAMPLE_SHAPE, std_dtype=F32, dtypes=(BF16,)),
        two_tensor_template("of-float16", SAMPLE_SHAPE, SAMPLE_SHAPE, std_dtype=F16, dtypes=(F64,)),
    ),
)

NONZERO = choice([-3.0, -1.25, -0.5, 0.75, 1.0, 2.5, 7.0])
"""A domain of inputs of dropout that are not 0, so that a 0 in the result is a dropped element."""

POSITIVE = choice([0.5, 2.0, 3.0])
"""A domain of positive inputs of dropout."""


def dropout_template(
    label: str, *shape_and_layouts: Any, domain: Domain = NONZERO, p: float = 0.3, train: bool = True, **fields: Any
) -> CaseTemplate:
    """Return a template of dropout.

    Args:
        label: The label of the cases without the element type.
        *shape_and_layouts: The shape of the input and the layouts, as in `sample_template`.
        domain: The domain of the input.
        p: The probability with which an element is dropped.
        train: Whether elements are dropped; otherwise the result equals the input.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    return sample_template(label, *shape_and_layouts, arguments={"input": domain, "p": p, "train": train}, **fields)


def _mask_override(dtype: Dtype | None = None, shape: Shape | None = None) -> dict[str, ResultOverride]:
    """Return the override of the result `mask`.

    Args:
        dtype: The element type of the mask; None for the default.
        shape: The shape of the mask, which is broadcast to the input; None for the shape of the input.

    Returns:
        The override, by result name.
    """
    return {"mask": ResultOverride(dtype, shape=shape)}


NO_MASK, BYTE_MASK, CHANNEL_MASK_SHAPE = {"mask": None}, _mask_override(Dtype.uint8), (40, 30, 1, 1)
"""The overrides of an omitted mask and of a mask in uint8, and the shape of a mask with one element per channel."""

SPECIAL_INPUTS = choice([-0.0, 1.5, -2.0, np.inf, np.nan])
"""A domain of values that dropout must leave unchanged during inference, with NaN and infinity."""

DROPOUT = (
    *sample_templates(dropout_template),
    dropout_template("half-far-apart", *FAR_APART, dtypes=(F16,), large=True),
    dropout_template("byte-mask", p=0.8, results=BYTE_MASK, dtypes=DtypeSelection.all),
    dropout_template("no-mask", p=0.6, results=NO_MASK, dtypes=DtypeSelection.all),
    dropout_template("inference", (5, 7), train=False, domain=SPECIAL_INPUTS, dtypes=DtypeSelection.all),
    dropout_template(
        "infinite", domain=choice([*[1.5, -2.0, 0.5] * 9, np.inf, -np.inf, np.nan]), dtypes=DtypeSelection.all
    ),
    dropout_template("channels", (40, 30, 3, 2), results=_mask_override(shape=CHANNEL_MASK_SHAPE)),
    dropout_template(
        "channels-byte", (40, 30, 3, 2), results=_mask_override(Dtype.uint8, CHANNEL_MASK_SHAPE), dtypes=(F16,)
    ),
    dropout_template("rows", (300, 5), results=_mask_override(shape=(300, 1))),
    dropout_template("one-for-all", (6, 5), results=_mask_override(shape=(1, 1))),
    dropout_template("inference-no-mask", (5, 7), train=False, results=NO_MASK),
    dropout_template("inference-own-generator", (5, 7), train=False, seed=None),
    dropout_template("inference-p-1", (5, 7), p=1.0, train=False),
    dropout_template("p-0", (5, 7), p=0.0),
    dropout_template("p-1", (5, 7), p=1.0, domain=POSITIVE),
    dropout_template("p-1-byte", (5, 7), p=1.0, domain=POSITIVE, results=BYTE_MASK),
    dropout_template("mask-transposed", results={"mask": ResultOverride(layout=transposed)}),
)
"""The templates that `diopiDropout` and `diopiDropoutInp` have."""

register("diopiDropoutInp", templates=DROPOUT)
register(
    "diopiDropout",
    templates=(
        *DROPOUT,
        dropout_template("mixed", SAMPLE_SHAPE, transposed, strided, results=_mask_override()),
        dropout_template("expanded", SAMPLE_SHAPE, expanded, contiguous),
    ),
)


# Draws of positions with given weights

WEIGHTS = (1.0, 2.5, 0.5, 4.0, 2.0)
"""The weights of five positions, all positive. The draws have probabilities in proportion to the weights."""

WEIGHTS_WITH_ZEROS = (0.0, 3.0, 1.0, 0.0, 2.0, 0.0)
"""The weights of six positions. Three weights are 0, and these positions must never be drawn."""


def weighted_template(
    label: str,
    weights: Sequence[float] = WEIGHTS,
    num_samples: int = 4000,
    rows: Shape = (),
    *layouts: Layout,
    replacement: bool = False,
    **fields: Any,
) -> CaseTemplate:
    """Return a template of `diopiMultinomial`, which draws positions with given weights.

    Args:
        label: The label of the cases without the element type.
        weights: The weights of the positions in the first row. Each following row is rotated by one more position, up
            to two.
        num_samples: The number of draws per row.
        rows: The number of rows as a tuple, or an empty tuple for a vector of weights.
        *layouts: The layouts, as in `sample_template`.
        replacement: Whether a position can be drawn several times.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    rotated = np.array([np.roll(weights, row) for row in range(min(*rows, 3) if rows else 1)])
    domain = fixed_values(rotated if rotated.size else [0.0])
    arguments = {"input": domain, "num_samples": num_samples, "replacement": replacement}
    return sample_template(label, (*rows, len(weights)), *layouts, arguments=arguments, **fields)


replacement_template = partial(weighted_template, replacement=True)
"""Return a template of `diopiMultinomial` in which a position can be drawn several times."""

MULTINOMIAL = (
    replacement_template("sample", dtypes=DtypeSelection.all, smoke=True),
    weighted_template("put-aside", WEIGHTS, 2, (6000,), dtypes=DtypeSelection.all, smoke=True),
    replacement_template("zeros", WEIGHTS_WITH_ZEROS, dtypes=DtypeSelection.all),
    replacement_template("rows", WEIGHTS, 700, (6,), dtypes=DtypeSelection.all),
    *(
        template
        for label, layouts in {"transposed": [transposed], "strided": [strided], "mixed": [strided, transposed]}.items()
        for template in (
            replacement_template(label, WEIGHTS, 400, (5,), *layouts),
            weighted_template(f"{label}-put-aside", WEIGHTS, 3, (300,), *layouts),
        )
    ),
    replacement_template("expanded", WEIGHTS, 400, (4,), expanded, contiguous),
    weighted_template("one", WEIGHTS, 1, (1500,)),
    replacement_template("one-replaced", WEIGHTS, 1, (1500,)),
    weighted_template("three", WEIGHTS, 3, (1500,), dtypes=(F64,)),
    weighted_template("all", WEIGHTS, 5, (200,)),
    weighted_template("zeros-put-aside", WEIGHTS_WITH_ZEROS, 2, (600,)),
    weighted_template("all-but-zeros", WEIGHTS_WITH_ZEROS, 3, (300,)),
    weighted_template("zeros-too", WEIGHTS_WITH_ZEROS, 5, (300,), dtypes=(F64,)),
    weighted_template("many", WEIGHTS * 200, 700),
    replacement_template("small-weights", [weight * 1e-3 for weight in WEIGHTS]),
    replacement_template("large-weights", [weight * 1e200 for weight in WEIGHTS], dtypes=(F64,)),
    replacement_template("certain", [0.0, 0.0, 2.0], 7, (4,)),
    replacement_template("single", [0.25], 3),
    weighted_template("no-rows", WEIGHTS, 2, (0,)),
    *seeded_templates(replacement_template),
    weighted_template("rows", num_samples=2, rows=(70_001,), large=True),
    replacement_template("draws", num_samples=70_001, large=True),
)
"""The templates of `diopiMultinomial`. "put-aside" in a label means that no position is drawn several times."""

register("diopiMultinomial", templates=MULTINOMIAL)


def _has_empty_mask(prototype: Prototype, case: Case) -> bool:
    """Return whether the input has no elements and the caller requests the mask."""
    return 0 in case.arguments["input"].shape and case.results["mask"] is not None


CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _has_empty_mask,
            "torch.native_dropout gives a mask of no elements the element type of the input",
        )
    ]
).declare("diopiDropout", "diopiDropoutInp")
CaseFacts(attribute_changes={"float32-put-aside": [{"replacement": True}, {"num_samples": 3}]}).declare(
    "diopiMultinomial"
)
