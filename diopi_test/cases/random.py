"""Cases of random draws: samples long enough for statistics, and small ones for layouts, ends and what is certain.

What goes in is drawn from few values, of which groups are judged; results take no room in a baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from diopi_proto.dtypes import half, is_floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, ResultOverride, TensorSpec, cases_for
from diopi_test.domains import Domain, choice, integer_range
from diopi_test.layouts import Layout, contiguous, expanded, strided, transposed

Shape = tuple[int, ...]

SEED = 20_240_229
LARGEST_SEED = 2**64 - 1

SAMPLE = (45, 80)
"""Enough elements to find a mean off by a tenth of its deviation, a range by a hundredth."""

FORMS: Sequence[tuple[str, Shape, Layout]] = (
    ("scalar", (), contiguous),
    ("empty", (0, 3), contiguous),
    ("transposed", (25, 16), transposed),
    ("strided", (3, 40, 4), strided),
    ("rank5", (2, 1, 3, 2, 2), contiguous),
)
"""Shapes and layouts of results."""

float32 = Dtype.float32
DOUBLE = (Dtype.float64,)


def _filled(
    prototype: Prototype,
    label: str,
    dtype: Dtype,
    attributes: Mapping[str, Any],
    shape: Shape = SAMPLE,
    layout: Layout = contiguous,
    smoke: bool = False,
    seed: int | None = SEED,
) -> Case:
    """A call that fills a tensor of this type, shape and layout."""
    results = {prototype.results[0].name: ResultOverride(dtype, layout, shape)}
    return Case(f"{dtype.name}-{label}", dtype, {**attributes, "generator": seed}, results, smoke)


def _fills(prototype: Prototype, attributes: Mapping[str, Any]) -> Iterator[Case]:
    """A sample of every element type, a small one of every form, and all that a generator can be."""
    for dtype in prototype.dtypes:
        yield _filled(prototype, "sample", dtype, attributes, smoke=True)
    for label, shape, layout in FORMS:
        yield _filled(prototype, label, float32, attributes, shape, layout)
    yield _filled(prototype, "own-generator", float32, attributes, seed=None)
    yield _filled(prototype, "seed-0", float32, attributes, seed=0)
    yield _filled(prototype, "largest-seed", float32, attributes, seed=LARGEST_SEED)


RANGES: Sequence[tuple[str, int, int | None, Sequence[Dtype]]] = (
    ("one", 5, 6, (float32, Dtype.uint8, Dtype.int64)),
    ("negative", -100, -93, (float32, Dtype.int8, Dtype.int64, *half)),
    ("around-0", -1, 2, (Dtype.int16, Dtype.int64, *half)),
    ("wide", -(2**40), 2**40, (Dtype.int64, Dtype.float64)),
    ("to-the-end", 2**62, None, (Dtype.int64,)),
    ("from-the-start", -(2**63), None, (Dtype.int64,)),
    ("from-below", -128, None, (Dtype.int8,)),
    ("upper-half", 1024, None, (Dtype.float16,)),
    ("all", 0, 256, (Dtype.uint8, Dtype.bfloat16)),
    ("no-end", 0, None, (Dtype.float16, Dtype.bfloat16, float32, Dtype.float64)),
    ("no-end", 0, None, (Dtype.bool, Dtype.uint8, Dtype.int8, Dtype.int16, Dtype.int32, Dtype.int64)),
)
"""Labels, from, to, element types."""


@cases_for("diopiRandomInp")
def random(prototype: Prototype) -> Iterator[Case]:
    few = {"from_": 3, "to": 12}
    for case in _fills(prototype, few):
        yield (
            case
            if case.dtype is not Dtype.bool
            else _filled(prototype, "sample", case.dtype, {"from_": 0, "to": 2}, smoke=True)
        )
    for label, low, high, dtypes in RANGES:
        for dtype in dtypes:
            yield _filled(prototype, label, dtype, {"from_": low, "to": high})


@cases_for("diopiUniformInp")
def uniform(prototype: Prototype) -> Iterator[Case]:
    yield from _fills(prototype, {"from_": -3.0, "to": 0.5})
    for dtype in prototype.dtypes:
        yield _filled(prototype, "unit", dtype, {"from_": 0.0, "to": 1.0})
        yield _filled(prototype, "binade", dtype, {"from_": 1.0, "to": 2.0})
        yield _filled(prototype, "point", dtype, {"from_": 0.75, "to": 0.75}, (4, 5))
    yield _filled(prototype, "far", float32, {"from_": 1e6, "to": 1e6 + 4})
    yield _filled(prototype, "wide", Dtype.float64, {"from_": -1e300, "to": 3e300})
    yield _filled(prototype, "small", Dtype.float64, {"from_": 0.0, "to": 1e-30})


@cases_for("diopiBernoulliScalar")
def bernoulli_scalar(prototype: Prototype) -> Iterator[Case]:
    yield from _fills(prototype, {"p": 0.3})
    for p in (0.0, 1.0):
        for dtype in (float32, Dtype.float16, Dtype.int64, Dtype.bool):
            yield _filled(prototype, f"p-{p:g}", dtype, {"p": p}, (40,))
    for dtype in (float32, Dtype.bfloat16, Dtype.int8):
        yield _filled(prototype, "likely", dtype, {"p": 0.85})


@cases_for("diopiNormal", "diopiNormalInp")
def normal(prototype: Prototype) -> Iterator[Case]:
    yield from _fills(prototype, {"mean": -1.5, "std": 2.5})
    for dtype in prototype.dtypes:
        yield _filled(prototype, "standard", dtype, {"mean": 0.0, "std": 1.0})
        yield _filled(prototype, "point", dtype, {"mean": -0.75, "std": 0.0}, (4, 5))
    yield _filled(prototype, "narrow", float32, {"mean": 8.0, "std": 0.125})
    yield _filled(prototype, "large", Dtype.float64, {"mean": 1e200, "std": 1e199})


PROBABILITIES = choice([0.0, 0.125, 0.25, 0.5, 0.75, 1.0])


def _drawn(
    prototype: Prototype,
    label: str,
    dtype: Dtype,
    tensors: Mapping[str, tuple[Shape, Domain]],
    attributes: Mapping[str, Any] | None = None,
    layouts: Sequence[Layout] = (contiguous,),
    smoke: bool = False,
    seed: int | None = SEED,
    results: Mapping[str, ResultOverride | None] | None = None,
) -> Case:
    """A call that draws for every element of its tensors; the last of `layouts` is that of the result."""
    specs = {
        name: TensorSpec(shape, dtype, domain, layouts[min(number, len(layouts) - 1)])
        for number, (name, (shape, domain)) in enumerate(tensors.items())
    }
    out = prototype.results[0]
    mine = {} if out.name in specs else {out.name: ResultOverride(layout=layouts[-1])}
    arguments = {p.name: {**specs, **(attributes or {}), "generator": seed}[p.name] for p in prototype.arguments}
    return Case(f"{dtype.name}-{label}", dtype, arguments, {**mine, **(results or {})}, smoke)


@cases_for("diopiBernoulli", "diopiBernoulliInp")
def bernoulli(prototype: Prototype) -> Iterator[Case]:
    (name,) = (p.name for p in prototype.arguments if p.is_tensor)
    for dtype in prototype.dtypes:
        yield _drawn(prototype, "sample", dtype, {name: (SAMPLE, PROBABILITIES)}, smoke=True)
        yield _drawn(prototype, "certain", dtype, {name: ((4, 5), choice([0.0, 1.0]))})
    for label, shape, layout in FORMS:
        yield _drawn(prototype, label, float32, {name: (shape, PROBABILITIES)}, layouts=[layout])
    for label, seed in (("own-generator", None), ("seed-0", 0), ("largest-seed", LARGEST_SEED)):
        yield _drawn(prototype, label, float32, {name: (SAMPLE, PROBABILITIES)}, seed=seed)
    if not prototype.is_inplace and name == "input":
        tensors = {name: (SAMPLE, PROBABILITIES)}
        yield _drawn(prototype, "expanded", float32, tensors, layouts=[expanded, contiguous])
        yield _drawn(prototype, "to-transposed", float32, tensors, layouts=[contiguous, transposed])


MEANS = choice([-4.0, 0.0, 8.0])
DEVIATIONS = choice([0.0, 0.5, 2.0])


@cases_for("diopiNormalTensorScalar")
def normal_tensor_scalar(prototype: Prototype) -> Iterator[Case]:
    yield from _normals(prototype, {"mean": MEANS}, {"std": 1.5})
    for dtype in prototype.dtypes:
        yield _drawn(prototype, "point", dtype, {"mean": ((4, 5), MEANS)}, {"std": 0.0})


@cases_for("diopiNormalScalarTensor")
def normal_scalar_tensor(prototype: Prototype) -> Iterator[Case]:
    yield from _normals(prototype, {"std": DEVIATIONS}, {"mean": -2.5})
    for dtype in prototype.dtypes:
        yield _drawn(prototype, "point", dtype, {"std": ((4, 5), choice([0.0]))}, {"mean": -2.5})


@cases_for("diopiNormalTensor")
def normal_tensor(prototype: Prototype) -> Iterator[Case]:
    yield from _normals(prototype, {"mean": MEANS, "std": DEVIATIONS}, {})
    shapes: list[tuple[str, Shape, Shape]] = [
        ("row", SAMPLE, SAMPLE[1:]),
        ("column", (SAMPLE[0], 1), SAMPLE),
        ("outer", (60, 1), (1, 70)),
        ("by-scalar", SAMPLE, ()),
        ("rank-up", (40,), (3, 35, 40)),
    ]
    for label, mean, std in shapes:
        tensors = {"mean": (mean, MEANS), "std": (std, choice([0.5, 2.0]))}
        for dtype in (float32, Dtype.bfloat16) if label == "outer" else (float32,):
            yield _drawn(prototype, label, dtype, tensors)
    for dtype in prototype.dtypes:
        point = {"mean": ((4, 5), MEANS), "std": ((4, 5), choice([0.0]))}
        yield _drawn(prototype, "point", dtype, point)
    for one, other in ((Dtype.bfloat16, float32), (Dtype.float64, Dtype.float16)):
        arguments = {"mean": TensorSpec(SAMPLE, one, MEANS), "std": TensorSpec(SAMPLE, other, DEVIATIONS)}
        yield Case(f"{one.name}-of-{other.name}", one, {**arguments, "generator": SEED})


def _normals(prototype: Prototype, domains: Mapping[str, Domain], attributes: Mapping[str, Any]) -> Iterator[Case]:
    def tensors(shape: Shape) -> dict[str, tuple[Shape, Domain]]:
        return {name: (shape, domain) for name, domain in domains.items()}

    for dtype in prototype.dtypes:
        yield _drawn(prototype, "sample", dtype, tensors(SAMPLE), attributes, smoke=True)
    for label, shape, layout in FORMS:
        yield _drawn(prototype, label, float32, tensors(shape), attributes, [layout])
    yield _drawn(prototype, "mixed", float32, tensors(SAMPLE), attributes, [strided, transposed])
    for label, seed in (("own-generator", None), ("seed-0", 0), ("largest-seed", LARGEST_SEED)):
        yield _drawn(prototype, label, float32, tensors(SAMPLE), attributes, seed=seed)


USUAL = ResultOverride()
NONZERO = choice([-3.0, -1.25, -0.5, 0.75, 1.0, 2.5, 7.0])


@cases_for("diopiDropout", "diopiDropoutInp")
def dropout(prototype: Prototype) -> Iterator[Case]:
    def case(
        label: str,
        dtype: Dtype = float32,
        shape: Shape = SAMPLE,
        p: float = 0.3,
        train: bool = True,
        domain: Domain = NONZERO,
        mask: ResultOverride | None = USUAL,
        **options: Any,
    ) -> Case:
        attributes = {"p": p, "train": train}
        return _drawn(
            prototype, label, dtype, {"input": (shape, domain)}, attributes, results={"mask": mask}, **options
        )

    for dtype in prototype.dtypes:
        yield case("sample", dtype, smoke=True)
        yield case("byte-mask", dtype, p=0.8, mask=ResultOverride(Dtype.uint8))
        yield case("no-mask", dtype, p=0.6, mask=None)
        yield case("inference", dtype, (5, 7), train=False, domain=choice([-0.0, 1.5, -2.0, np.inf, np.nan]))
    for label, shape, layout in FORMS:
        yield case(label, shape=shape, layouts=[layout], mask=ResultOverride(layout=layout))
    channels = (40, 30, 1, 1)
    yield case("channels", shape=(40, 30, 3, 2), mask=ResultOverride(shape=channels))
    yield case("channels-byte", Dtype.float16, (40, 30, 3, 2), mask=ResultOverride(Dtype.uint8, shape=channels))
    yield case("rows", shape=(300, 5), mask=ResultOverride(shape=(300, 1)))
    yield case("one-for-all", shape=(6, 5), mask=ResultOverride(shape=(1, 1)))
    yield case("inference-no-mask", shape=(5, 7), train=False, mask=None)
    yield case("inference-own-generator", shape=(5, 7), train=False, seed=None)
    yield case("inference-p-1", shape=(5, 7), p=1.0, train=False)
    yield case("p-0", shape=(5, 7), p=0.0)
    yield case("p-1", shape=(5, 7), p=1.0, domain=choice([0.5, 2.0, 3.0]))
    yield case("p-1-byte", shape=(5, 7), p=1.0, domain=choice([0.5, 2.0, 3.0]), mask=ResultOverride(Dtype.uint8))
    yield case("own-generator", seed=None)
    yield case("seed-0", seed=0)
    yield case("largest-seed", seed=LARGEST_SEED)
    yield case("mask-transposed", mask=ResultOverride(layout=transposed))
    if prototype.results[0].name == "out":
        yield case("mixed", layouts=[transposed, strided])
        yield case("expanded", layouts=[expanded, contiguous])


@cases_for("diopiRandperm")
def randperm(prototype: Prototype) -> Iterator[Case]:
    def case(label: str, dtype: Dtype, n: int, layout: Layout = contiguous, **options: Any) -> Case:
        return _filled(prototype, label, dtype, {"n": n}, (n,), layout, **options)

    for dtype in prototype.dtypes:
        longest = 257 if dtype is Dtype.bfloat16 else 2049 if is_floating(dtype) else integer_range(dtype)[1] + 1
        yield case("sample", dtype, min(longest, 2049), smoke=True)
        yield case("few", dtype, 15)
    for n in (0, 1, 2):
        yield case(f"n-{n}", Dtype.int64, n)
        yield case(f"n-{n}", float32, n)
    yield case("strided", Dtype.int64, 300, strided)
    yield case("strided", float32, 300, strided)
    yield case("long", Dtype.int64, 70_001)
    for label, seed in (("own-generator", None), ("seed-0", 0), ("largest-seed", LARGEST_SEED)):
        yield case(label, Dtype.int64, 1000, seed=seed)


@cases_for("diopiMultinomial")
def multinomial(prototype: Prototype) -> Iterator[Case]:
    def case(
        label: str,
        dtype: Dtype,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool,
        rows: Shape = (),
        layouts: Sequence[Layout] = (contiguous,),
        **options: Any,
    ) -> Case:
        """Every row a permutation of the weights that is turned by its number, modulo three."""
        turned = np.array([np.roll(weights, row % 3) for row in range(*rows or (1,))])
        tensors = {"input": ((*rows, len(weights)), _constant(turned))}
        attributes = {"num_samples": num_samples, "replacement": replacement}
        return _drawn(prototype, label, dtype, tensors, attributes, layouts, **options)

    some, zeros = [1.0, 2.5, 0.5, 4.0, 2.0], [0.0, 3.0, 1.0, 0.0, 2.0, 0.0]
    for dtype in prototype.dtypes:
        yield case("sample", dtype, some, 4000, True, smoke=True)
        yield case("put-aside", dtype, some, 2, False, (6000,), smoke=True)
        yield case("zeros", dtype, zeros, 4000, True)
        yield case("rows", dtype, some, 700, True, (6,))
    for label, layouts in (("transposed", [transposed]), ("strided", [strided]), ("mixed", [strided, transposed])):
        yield case(label, float32, some, 400, True, (5,), layouts)
        yield case(f"{label}-put-aside", float32, some, 3, False, (300,), layouts)
    yield case("expanded", float32, some, 400, True, (4,), [expanded, contiguous])
    yield case("one", float32, some, 1, False, (1500,))
    yield case("one-replaced", float32, some, 1, True, (1500,))
    yield case("three", Dtype.float64, some, 3, False, (1500,))
    yield case("all", float32, some, 5, False, (200,))
    yield case("zeros-put-aside", float32, zeros, 2, False, (600,))
    yield case("all-but-zeros", float32, zeros, 3, False, (300,))
    yield case("zeros-too", Dtype.float64, zeros, 5, False, (300,))
    yield case("many", float32, list(np.tile(some, 200)), 700, False)
    yield case("small-weights", float32, list(np.array(some) * 1e-3), 4000, True)
    yield case("large-weights", Dtype.float64, list(np.array(some) * 1e200), 4000, True)
    yield case("certain", float32, [0.0, 0.0, 2.0], 7, True, (4,))
    yield case("single", float32, [0.25], 3, True)
    yield case("no-rows", float32, some, 2, False, (0,))
    for label, seed in (("own-generator", None), ("seed-0", 0), ("largest-seed", LARGEST_SEED)):
        yield case(label, float32, some, 4000, True, seed=seed)


def _constant(values: Any) -> Domain:
    """These values, in their order."""
    return lambda rng, count, dtype: np.resize(values, count) if count else np.zeros(0)
