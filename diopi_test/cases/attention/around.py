"""What a transformer layer puts around attention: rotary embedding, RMS norm, masked softmax."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf, nan, prod
from typing import Any

import numpy as np

from diopi_proto.dtypes import floating, half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.domains import between, choice, normal, special_but, whole
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.model import Case, CaseClass, ResultOf, ResultOverride, cases_for
from diopi_test.cases.template import BASIC, CaseTemplate, Types, expand, register, tensor, throughout
from diopi_test.cases.tensors import literal

Shape = tuple[int, ...]
F16, BF16, F32, F64 = floating
OPEN = {"case_class": CaseClass.open}

ANGLES = between(-1, 1)
"""Cosines and sines need not be those of an angle."""


# Rotary embedding


@dataclass(frozen=True)
class Turned:
    """Shapes of what is rotated, and of cosines and sines."""

    shape: Shape
    angles: Shape


def turned(label: str, shape: Shape, *angles: int, interleaved: bool = False, **about: Any) -> CaseTemplate:
    conj = about.pop("conj", False)
    return CaseTemplate(label, Turned(shape, angles), {"conj": conj, "interleaved": interleaved}, **about)


def of_turned(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    angles = tensor(*template.sizes.angles, domain=ANGLES, layout=template.layout)
    return {"x": tensor(*template.sizes.shape, layout=template.layout), "cos": angles, "sin": angles}


HEADS = (2, 5, 3, 8)

register(
    "diopiRotaryEmbedding",
    templates=(
        turned("", HEADS, 5, 1, 4, **BASIC),
        turned("conj", HEADS, 5, 1, 4, conj=True, dtypes=Types.every),
        turned("interleaved", HEADS, 5, 1, 4, interleaved=True, **OPEN, dtypes=Types.every),
        turned("interleaved-conj", HEADS, 5, 1, 4, interleaved=True, conj=True, **OPEN),
        turned("vector", (12,), 6),
        turned("pair", (7, 2), 7, 1),
        turned("matrix", (6, 10), 6, 5, dtypes=Types.every),
        turned("packed", (6, 3, 16), 6, 1, 8, dtypes=(F16, F32)),
        turned("row-of-angles", (4, 3, 6), 3),
        turned("angles-of-each", (2, 3, 4), 2, 3, 2),
        turned("rank5", (2, 2, 3, 1, 4), 3, 1, 2),
        turned("wide", (3, 1, 256), 3, 1, 128, dtypes=half),
        turned("transposed", HEADS, 5, 1, 4, **throughout(transposed)),
        turned("strided", HEADS, 5, 1, 4, **throughout(strided), dtypes=Types.every),
        turned("no-rows", (0, 3, 8), 1, 4),
        turned("special", (19, 6), 1, 3, domains={"x": special_but()}),
        turned("special-angles", (6, 38), 1, 19, domains={"cos": special_but()}),
        turned("exact", (3, 5, 8), 5, 4, domains=dict.fromkeys(("x", "cos", "sin"), whole(-8, 8)), exact=True),
        *(
            turned(f"angles-of-{wide.name}", HEADS, 5, 1, 4, dtypes=[dtype]).but(
                arguments={name: tensor(5, 1, 4, domain=ANGLES, dtype=wide) for name in ("cos", "sin")}
            )
            for dtype, wide in ((BF16, F32), (F16, F32), (F32, F16), (F64, F32))
        ),
    ),
    derive=of_turned,
)


@dataclass(frozen=True)
class Both:
    """Shapes of query and key."""

    query: Shape
    key: Shape


def both(label: str, query: Shape, key: Shape, dim: int, **about: Any) -> CaseTemplate:
    return CaseTemplate(label, Both(query, key), {"dim": dim}, **about)


def of_both(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes, dim = template.sizes, template.arguments["dim"]
    tokens = sizes.query[0] if len(sizes.query) == 2 else sizes.query[-3]
    angles = tensor(tokens, 1, dim, domain=ANGLES, layout=template.layout)
    query, key = (tensor(*shape, layout=template.layout) for shape in (sizes.query, sizes.key))
    return {"query": query, "key": key, "cos": angles, "sin": angles}


register(
    "diopiRotaryEmbeddingV2",
    templates=(
        both("", (5, 12), (5, 8), 4, **BASIC),
        both("heads", (5, 3, 8), (5, 2, 8), 8, dtypes=Types.every),
        both("batch", (2, 5, 3, 6), (2, 5, 1, 6), 6, dtypes=(F16, F32)),
        both("one-head", (7, 10), (7, 10), 10),
        both("pairs", (7, 6), (7, 4), 2),
        both("one-token", (1, 24), (1, 8), 8),
        both("head-size-128", (3, 256), (3, 128), 128, dtypes=half),
        both("head-size-80", (3, 160), (3, 80), 80),
        both("transposed", (5, 12), (5, 8), 4, layout=transposed),
        both("strided", (5, 3, 8), (5, 2, 8), 8, layout=strided, dtypes=Types.every),
        both("no-tokens", (0, 12), (0, 8), 4),
        both("special", (19, 12), (19, 4), 4, domains={"query": special_but(), "key": special_but()}),
        both("exact", (6, 8), (6, 16), 8, exact=True).but(
            domains=dict.fromkeys(("query", "key", "cos", "sin"), whole(-8, 8))
        ),
        *(both(f"{label}-of-heads-of-{d}", (4, 12), (4, 24), d) for label, d in (("four", 4), ("six", 6), ("all", 12))),
    ),
    derive=of_both,
)


# RMS norm


@dataclass(frozen=True)
class Normalised:
    """Shape of the input, how many of its last axes are normalised, and the type of weight and bias."""

    shape: Shape
    axes: int = 1
    parameters: Dtype | None = None


WITHOUT = {"bias": None, "grad_bias": None}
NO_WEIGHT = {**WITHOUT, "weight": None, "grad_weight": None}


def normed(label: str, shape: Shape, axes: int = 1, without: Mapping[str, None] | None = None, **about: Any) -> Any:
    given = {"eps": about.pop("eps", 1e-2)}
    left_out = without or {}
    sizes = Normalised(shape, axes, about.pop("parameters", None))
    names = {"bias", "weight"} & left_out.keys()
    results = {name: None for name in left_out if name.startswith("grad")}
    return CaseTemplate(label, sizes, {**given, **dict.fromkeys(names)}, results=results, **about)


def of_normed(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes, layout = template.sizes, template.layout
    begin = len(sizes.shape) - sizes.axes
    parameter = tensor(*sizes.shape[begin:], dtype=sizes.parameters, layout=layout)
    statistic = F32 if dtype in half else dtype
    saved = tensor(
        *sizes.shape[:begin],
        dtype=statistic,
        layout=layout,
        compute=ResultOf("diopiRMSNorm", "inv_rms", given={"weight": None, "bias": None}),
    )
    return {
        "grad_output": tensor(*sizes.shape, layout=layout),
        "input": tensor(*sizes.shape, layout=layout),
        "normalized_shape": sizes.shape[begin:],
        "weight": parameter,
        "bias": parameter,
        "eps": 1e-2,
        "inv_rms": saved,
    }


NORMS = (
    normed("", (3, 8), **BASIC),
    normed("no-bias", (3, 8), without=WITHOUT, dtypes=Types.every, smoke=True),
    normed("no-weight", (4, 6), without=NO_WEIGHT, dtypes=Types.every),
    normed("no-weight-one-axis", (3, 4, 5), without=NO_WEIGHT),
    normed("no-weight-two-axes", (3, 4, 5), 2, without=NO_WEIGHT),
    normed("batch", (2, 3, 12), dtypes=(F16, F32)),
    normed("two-axes", (3, 4, 5), 2, dtypes=Types.every),
    normed("all-axes", (4, 5), 2),
    normed("vector", (9,)),
    normed("long", (2, 1031), dtypes=floating),
    normed("many-rows", (517, 3)),
    normed("default-eps", (3, 8), eps=1e-6),
    normed("small", (4, 8), eps=1e-2, domains={"input": normal(1e-2)}),
    normed("float32-weight", (3, 8), parameters=F32, dtypes=half),
    normed("float32-weight-no-bias", (3, 8), without=WITHOUT, parameters=F32, dtypes=half),
    normed("transposed", (4, 6), **throughout(transposed)),
    normed("strided", (3, 2, 4), **throughout(strided), dtypes=Types.every),
    normed("no-rows", (0, 5)),
    normed("far-from-0", (3, 16), domains={"input": normal(1, 50)}),
)

CONSTANT = choice([2.0, -2.0])


ALONE = {
    "special": "what is not finite decides alone",
    "exact": "squares of equal numbers have one root",
}


def _norm_cases(name: str, *templates: CaseTemplate) -> None:
    @cases_for(name, weak=ALONE)
    def cases(prototype: Prototype) -> Iterator[Case]:
        """The first result alone has the template's layout."""
        others = {p.name: ResultOverride() for p in prototype.results[1:]}
        return expand(prototype, (t.but(results={**others, **t.results}) for t in (*NORMS, *templates)), of_normed)


_norm_cases(
    "diopiRMSNorm",
    normed("special", (19, 4), domains={"input": choice([inf, 1.0, nan, -inf, 0.0, -2.0, 3.0])}),
    normed("zeros", (3, 4), domains={"input": choice([0.0, 0.0, 1.0])}),
    normed("exact", (6, 16), eps=0.0, domains=dict.fromkeys(("weight", "bias"), whole(-8, 8)), exact=True).but(
        domains={"input": CONSTANT, "weight": whole(-8, 8), "bias": whole(-8, 8)}
    ),
)
_norm_cases(
    "diopiRMSNormBackward",
    normed("no-gradient-of-bias", (3, 8), without={"grad_bias": None}),
    normed("exact", (5, 16), dtypes=Types.every, exact=True).but(
        domains=dict.fromkeys(("grad_output", "input", "weight"), whole(-4, 4)),
        arguments={"inv_rms": tensor(5, domain=choice([0.5, 1.0, 2.0]), dtype=None)},
        dtypes=(F32, F64),
    ),
    normed("special", (12, 4), domains={"grad_output": choice([1.0, nan, 2.0, -3.0, 0.5, inf, 1.5])}),
)


# Scaled masked softmax


@dataclass(frozen=True)
class Masked:
    """Shape of the scores and of the mask, and the mask's type."""

    shape: Shape
    mask: Shape
    dtype: Dtype = Dtype.bool


def masked(
    label: str,
    shape: Shape,
    *mask: int,
    scale: float = 0.7,
    triangle: bool = False,
    of: Dtype = Dtype.bool,
    **about: Any,
) -> CaseTemplate:
    return CaseTemplate(label, Masked(shape, mask, of), {"scale": scale, "fixed_triu_mask": triangle}, **about)


def of_masked(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes, layout = template.sizes, template.layout
    scores = tensor(*sizes.shape, domain=normal(2), layout=layout)
    some = np.arange(prod(sizes.mask)).reshape(sizes.mask) % 3 == 1
    mask = literal(some if sizes.dtype is Dtype.bool else np.where(some, -0.5, 0), sizes.dtype, layout)
    given = {"scale": template.arguments["scale"], "fixed_triu_mask": template.arguments["fixed_triu_mask"]}
    forward = ResultOf("diopiScaledMaskedSoftmax", "output", given=given)
    return {
        "input": scores,
        "_input": scores,
        "grad_output": tensor(*sizes.shape, layout=layout),
        "mask": mask,
        "output": tensor(*sizes.shape, layout=layout, compute=replace(forward, renamed={"input": "_input"})),
    }


SCORES = (2, 3, 4, 5)

SOFTMAX = (
    masked("", SCORES, 2, 1, 4, 5, **BASIC),
    masked("triangle", (2, 5, 5), 2, 5, 5, triangle=True, **BASIC),
    masked("no-triangle", (2, 5, 5), 2, 5, 5),
    masked("whole-mask", SCORES, *SCORES, dtypes=Types.every),
    masked("row-mask", (3, 4, 7), 7),
    masked("rows-masked", (3, 5, 4), 3, 5, 1),
    masked("float-mask", (2, 4, 5), 2, 4, 5, of=F32),
    masked("half-mask", (2, 4, 5), 4, 5, of=F16, dtypes=(F16,)),
    masked("wide-triangle", (2, 3, 7), 3, 7, triangle=True),
    masked("tall-triangle", (2, 7, 3), 7, 3, triangle=True),
    masked("matrix", (6, 9), 6, 9, dtypes=Types.every),
    masked("negative-scale", (2, 4, 5), 2, 4, 5, scale=-1.3),
    masked("scale-1", (2, 4, 5), 2, 4, 5, scale=1.0),
    masked("steep", (3, 4, 9), 4, 9, scale=6.0, dtypes=Types.every),
    masked("long", (2, 2, 1031), 1, 1031, dtypes=Types.every),
    masked("transposed", (3, 4, 5), 3, 4, 5, **throughout(transposed)),
    masked("strided", (3, 4, 5), 3, 4, 5, **throughout(strided), dtypes=Types.every),
    masked("empty", (0, 4, 5), 1, 4, 5),
)

register(
    "diopiScaledMaskedSoftmax",
    templates=(
        *SOFTMAX,
        masked("special", (12, 7), 12, 7, domains={"input": choice([1.0, -inf, 0.5, nan, 2.0, *range(9)])}),
        masked("far", (3, 4, 9), 4, 9, domains={"input": choice([2000.0, -2000.0, 0.0, 1990.0, 5.0])}, scale=1.0),
        masked("unmasked", (3, 8), 3, 8).but(arguments={"mask": literal(np.zeros((3, 8)), Dtype.bool)}),
    ),
    derive=of_masked,
)

register(
    "diopiScaledMaskedSoftmaxBackward",
    templates=(
        *SOFTMAX,
        masked("special", (12, 7), 12, 7, domains={"grad_output": choice([1.0, 0.5, nan, 2.0, *range(9)])}),
        masked("exact", (6, 64), 6, 64, scale=0.5, dtypes=Types.every, exact=True).but(
            arguments={"output": tensor(6, 64, domain=choice([0.125, 0.25, 0.5]))},
            domains={"grad_output": whole(-4, 4)},
        ),
    ),
    derive=of_masked,
)
