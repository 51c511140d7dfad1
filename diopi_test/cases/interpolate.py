"""Resampling of regular grids: resizing, and sampling at given points, with gradients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, ResultOverride, TensorSpec, Values, cases_for
from diopi_test.cases.variants import Variant, variant_cases
from diopi_test.domains import Domain, anything, between, choice, half_nan, normal, special, whole
from diopi_test.layouts import Layout, channels_last, contiguous, expanded, strided, transposed


@dataclass(frozen=True)
class Resize:
    """One way of resizing: shape of the input, spatial sizes of the result, where they lie."""

    label: str
    shape: tuple[int, ...]
    size: tuple[int, ...]
    layout: Layout = contiguous
    result: Layout = contiguous
    everywhere: bool = False

    def forward(self, domain: Domain, **attributes: Any) -> Variant:
        """The call that resizes."""
        attributes = {"size": self.size, **attributes}
        return Variant(
            self.label, self.shape, attributes, self.layout, self.result, everywhere=self.everywhere, domain=domain
        )

    def backward(self, domain: Domain, **attributes: Any) -> Variant:
        """The call that gives the gradient; input and result exchange layouts."""
        attributes = {"out_size": self.size, "in_size": self.shape, **attributes}
        shape = (*self.shape[:2], *self.size)
        return Variant(
            self.label, shape, attributes, self.result, self.layout, everywhere=self.everywhere, domain=domain
        )


NEAREST = [
    Resize("up", (1, 2, 2, 3), (5, 4), everywhere=True),
    Resize("strided", (2, 1, 5), (3,), strided, strided, everywhere=True),
    Resize("down", (2, 2, 7, 5), (3, 2)),
    Resize("channels-last", (2, 3, 4, 3), (2, 8), channels_last, channels_last),
    Resize("up-and-down", (1, 2, 3, 8), (7, 3), transposed, transposed),
    Resize("line", (2, 3, 4), (11,)),
    Resize("volume", (1, 2, 2, 3, 4), (3, 2, 9)),
    Resize("volume-channels-last", (2, 2, 3, 2, 2), (2, 5, 4), channels_last, channels_last),
    Resize("doubled", (1, 1, 3, 4), (6, 8)),
    Resize("same", (2, 2, 3, 5), (3, 5)),
    Resize("to-one", (2, 5, 4, 5), (1, 1)),
    Resize("from-one", (1, 2, 1, 1), (3, 4)),
    Resize("no-samples", (0, 2, 3, 3), (2, 4)),
    Resize("long", (2, 32, 3, 4), (4, 3)),
    Resize("wide", (1, 2, 2, 131), (3, 200)),
]
"""Sizes for which i · d / size rounds to a whole number in float32 only where it is one, and there exactly."""


@cases_for("diopiUpsampleNearest")
def upsample_nearest(prototype: Prototype) -> Iterator[Case]:
    yield from variant_cases(prototype, [resize.forward(anything) for resize in NEAREST])
    yield replace(NEAREST[0], label="expanded", layout=expanded).forward(anything).case(prototype, Dtype.float32)
    for dtype in prototype.dtypes:
        yield replace(NEAREST[0], label="special", shape=(1, 1, 4, 5)).forward(special).case(prototype, dtype)


UNDEFINED = Resize("undefined", (1, 2, 2, 3), (5, 4))
"""With one channel all NaN, which is NaN in the result too whatever becomes of a weight of 0."""


@cases_for("diopiUpsampleNearestBackward")
def upsample_nearest_backward(prototype: Prototype) -> Iterator[Case]:
    yield from variant_cases(prototype, [resize.backward(normal()) for resize in NEAREST])
    yield UNDEFINED.backward(half_nan).case(prototype, Dtype.float32)
    yield (
        replace(NEAREST[0], label="expanded", result=expanded, everywhere=False)
        .backward(normal())
        .case(prototype, Dtype.float32)
    )
    for dtype in prototype.dtypes:
        exact = replace(NEAREST[0], label="exact", shape=(1, 3, 2, 3), size=(33, 20), everywhere=False).backward(
            whole(-4, 4)
        )
        yield replace(exact.case(prototype, dtype), exact=True)


MODES = {3: ["linear"], 4: ["bilinear", "bicubic"], 5: ["trilinear"]}
"""By rank of the input."""

LINEAR = [
    Resize("up", (1, 2, 2, 3), (5, 4), everywhere=True),
    Resize("line", (2, 1, 4), (7,), strided, strided, everywhere=True),
    Resize("volume", (1, 1, 2, 3, 2), (3, 2, 4), everywhere=True),
    Resize("down", (2, 2, 7, 5), (3, 2)),
    Resize("channels-last", (2, 3, 4, 3), (2, 7), channels_last, channels_last),
    Resize("up-and-down", (1, 2, 3, 9), (7, 4), transposed, transposed),
    Resize("line-down", (2, 3, 9), (4,)),
    Resize("volume-channels-last", (2, 2, 3, 2, 2), (2, 5, 4), channels_last, channels_last),
    Resize("same", (2, 2, 3, 5), (3, 5)),
    Resize("to-one", (2, 5, 4, 5), (1, 1)),
    Resize("from-one", (1, 2, 1, 1), (3, 4)),
    Resize("no-samples", (0, 2, 3, 3), (2, 4)),
    Resize("long", (2, 32, 3, 4), (4, 5)),
    Resize("wide", (1, 2, 2, 131), (3, 200)),
]

EXACT = [
    Resize("exact", (1, 3, 3, 5), (6, 10)),
    Resize("exact-line", (2, 3, 5), (10,)),
    Resize("exact-volume", (1, 2, 2, 3, 5), (4, 3, 10)),
]
"""Sizes that make every weight, and so with whole numbers every result, exact."""


def _attributes(resize: Resize) -> Iterator[dict[str, Any]]:
    """Every mode for the rank, each with both rules for the corners."""
    for mode in MODES[len(resize.shape)]:
        for align_corners in (False, True):
            yield {"mode": mode, "align_corners": align_corners}


def _typed(cases: Iterable[Case]) -> Iterator[Case]:
    """With the element type of the result said, from which follows how finely weights are rounded."""
    for case in cases:
        yield replace(case, results={name: replace(out, dtype=case.dtype) for name, out in case.results.items() if out})


def _linear(resize: Resize, backward: bool, domain: Domain) -> Iterator[Variant]:
    for attributes in _attributes(resize):
        corners = "-corners" if attributes["align_corners"] else ""
        variant = replace(resize, label=f"{resize.label}-{attributes['mode']}{corners}")
        yield variant.backward(domain, **attributes) if backward else variant.forward(domain, **attributes)


@cases_for("diopiUpsampleLinear", "diopiUpsampleLinearBackward")
def upsample_linear(prototype: Prototype) -> Iterator[Case]:
    backward = prototype.name.endswith("Backward")
    variants = [variant for resize in LINEAR for variant in _linear(resize, backward, normal())]
    variants += _linear(UNDEFINED, backward, half_nan)
    given, made = (contiguous, expanded) if backward else (expanded, contiguous)
    view = replace(LINEAR[0], label="expanded", layout=given, result=made, everywhere=False)
    variants += _linear(view, backward, normal())
    yield from _typed(variant_cases(prototype, variants))
    for dtype in prototype.dtypes:
        for resize in EXACT:
            attributes = {"mode": MODES[len(resize.shape)][0], "align_corners": False}
            make = resize.backward if backward else resize.forward
            yield replace(make(whole(-4, 4), **attributes).case(prototype, dtype), exact=True)


@dataclass(frozen=True)
class Sampling:
    """One way of sampling.

    Attributes:
        label: the part of the case's label after the element type.
        shape: of the input.
        points: shape of their grid, without its last axis.
        layouts: of input and grid.
        result: layout of the result.
        everywhere: whether all element types get it, in the smoke level too; else float32 alone does.
        domain, reach: in linear interpolation, of the input's elements and how far from 0 coordinates are.
    """

    label: str
    shape: tuple[int, ...]
    points: tuple[int, ...]
    layouts: tuple[Layout, Layout] = (contiguous, contiguous)
    result: Layout = contiguous
    everywhere: bool = False
    domain: Domain = field(default_factory=normal)
    reach: float = 1.4

    @property
    def grid(self) -> tuple[int, ...]:
        """Shape of the grid."""
        return (self.shape[0], *self.points, len(self.points))


SAMPLINGS = [
    Sampling("plane", (2, 2, 4, 3), (3, 2), everywhere=True),
    Sampling("volume", (1, 2, 2, 3, 4), (1, 2, 3), (strided, strided), strided, everywhere=True),
    Sampling("channels-last", (2, 3, 3, 5), (4, 2), (channels_last, transposed), channels_last),
    Sampling("transposed", (2, 3, 4, 5), (2, 6), (transposed, contiguous), transposed),
    Sampling("volume-channels-last", (2, 2, 3, 2, 4), (2, 3, 2), (channels_last, contiguous), channels_last),
    Sampling("one-element", (1, 2, 1, 1), (4, 3)),
    Sampling("row", (2, 1, 1, 7), (1, 9)),
    Sampling("expanded", (2, 2, 3, 4), (3, 3), (contiguous, expanded)),
    Sampling("no-samples", (0, 2, 3, 3), (2, 2)),
    Sampling("no-points", (2, 2, 3, 3), (0, 2)),
    Sampling("undefined", (2, 2, 3, 4), (3, 2), domain=half_nan, reach=0.9),
    Sampling("long", (2, 8, 5, 6), (7, 9)),
]


def _coordinates(indices: Any, sizes: tuple[int, ...]) -> Any:
    """Grid coordinates, last axis first, of points given by their index along each axis: (…, axes)."""
    return ((2 * indices + 1) / np.array(sizes) - 1)[..., ::-1]


def _near_elements(sampling: Sampling, dtype: Dtype, layout: Layout) -> dict[str, TensorSpec]:
    """Points at most 0.35 away from elements inside and one outside, so that rounding leaves no doubt."""
    sizes = sampling.shape[2:]

    def near(values: Values) -> Any:
        ends = values["_where"] * (np.array(sizes) + 1) - 1  # from −1 to d
        nearest = np.rint(ends)
        return _coordinates(nearest + np.clip(ends - nearest, -0.35, 0.35), sizes)

    where = TensorSpec(sampling.grid, Dtype.float64, between(0, 1))
    return {"_where": where, "grid": TensorSpec(sampling.grid, dtype, layout=layout, compute=near)}


def _sampling_case(prototype: Prototype, sampling: Sampling, dtype: Dtype, mode: str) -> Case:
    first, second = sampling.layouts
    if mode == "nearest":
        grid = _near_elements(sampling, dtype, second)
    else:
        grid = {"grid": TensorSpec(sampling.grid, dtype, between(-sampling.reach, sampling.reach), second)}
    domain = anything if mode == "nearest" else sampling.domain
    return Case(
        f"{dtype.name}-{sampling.label}-{mode}",
        dtype,
        {"input": TensorSpec(sampling.shape, dtype, domain, first), **grid, "mode": mode},
        {"out": ResultOverride(layout=sampling.result)},
        smoke=sampling.everywhere,
    )


def _given_points(prototype: Prototype, label: str, dtype: Dtype, points: list[float], mode: str) -> Case:
    """Sampling whole numbers at random pairs of these coordinates, so that every weight and result is exact."""
    arguments = {
        "input": TensorSpec((1, 2, 4, 2), dtype, whole(-4, 4)),
        "grid": TensorSpec((1, len(points), len(points), 2), dtype, choice(points)),
        "mode": mode,
    }
    return Case(f"{dtype.name}-{label}-{mode}", dtype, arguments, exact=True)


@cases_for("diopiGridSample")
def grid_sample(prototype: Prototype) -> Iterator[Case]:
    for mode in ("bilinear", "nearest"):
        for dtype in prototype.dtypes:
            for sampling in SAMPLINGS:
                if sampling.everywhere or dtype is Dtype.float32:
                    yield _sampling_case(prototype, sampling, dtype, mode)
            eighths = [number / 8 for number in range(-12, 13)]
            halves = [-1.25, -1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1, 1.25]  # indices halfway between elements
            yield _given_points(prototype, "exact", dtype, eighths if mode == "bilinear" else halves, mode)
        yield _given_points(prototype, "far-outside", Dtype.float32, [-100, -3, -0.5, 0.25, 0.75, 3, 1e12], mode)
