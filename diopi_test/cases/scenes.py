"""What the cases of functions with unlike arguments share: a scene is all their arguments, for any element type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import position
from diopi_proto.parameters import Out
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, ResultOverride, TensorSpec
from diopi_test.domains import Domain, anything, whole
from diopi_test.layouts import Layout, contiguous


@dataclass(frozen=True)
class ByDtype:
    """An argument that depends on the element type under test."""

    of: Callable[[Dtype], Any]


def data(*shape: int, domain: Domain = anything, layout: Layout = contiguous) -> ByDtype:
    """A tensor of the element type under test."""
    return ByDtype(lambda dtype: TensorSpec(shape, dtype, domain, layout))


def literal(values: Any, dtype: Dtype = Dtype.int64, layout: Layout = contiguous) -> TensorSpec:
    """A tensor of these very values."""
    array = np.array(values)
    return TensorSpec(array.shape, dtype, layout=layout, compute=lambda _: array)


def positions(
    *shape: int, below: int, low: int = 0, dtype: Dtype = Dtype.int64, layout: Layout = contiguous
) -> TensorSpec:
    """A tensor of random positions in [low, below), the same one several times."""
    return TensorSpec(shape, dtype, whole(low, below - 1), layout)


def no_position_twice(
    *shape: int, below: int, axis: int = 0, dtype: Dtype = Dtype.int64, layout: Layout = contiguous
) -> TensorSpec:
    """A tensor of random positions in [0, below), different ones along `axis`."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        slices = count // max(shape[axis], 1)
        rows = rng.permuted(np.tile(np.arange(below), (slices, 1)), axis=1)[:, : shape[axis]]
        others = [length for i, length in enumerate(shape) if i != axis % len(shape)]
        return np.moveaxis(rows.reshape(*others, shape[axis]), -1, axis).reshape(-1)

    return TensorSpec(shape, dtype, draw, layout)


@dataclass(frozen=True)
class Scene:
    """All arguments of a call.

    Attributes:
        label: the part of the case's label after the element type.
        arguments: by name, `ByDtype` where they depend on the element type; those a form hasn't got are left out.
        dtypes: the element types it is played in; by default float32, or the first of a function without that.
        common: whether it is played in every element type.
        result: layout of the results.
        index: element type of the results that are positions, where it is not int64.
        absent: names of the optional results the caller leaves out.
        smoke, exact: as in `Case`.
        inplace: whether it suits in-place forms, where the result has the shape of the first input.
    """

    label: str
    arguments: Mapping[str, Any]
    dtypes: Sequence[Dtype] = (Dtype.float32,)
    common: bool = False
    result: Layout = contiguous
    index: Dtype | None = None
    absent: Sequence[str] = ()
    smoke: bool = False
    exact: bool = False
    inplace: bool = True


def play(prototype: Prototype, scenes: Iterable[Scene]) -> Iterator[Case]:
    """The cases of all scenes."""
    for scene in scenes:
        if prototype.is_inplace and not scene.inplace:
            continue
        for dtype in prototype.dtypes if scene.common else _chosen(prototype, scene):
            yield _case(prototype, scene, dtype)


def _chosen(prototype: Prototype, scene: Scene) -> Sequence[Dtype]:
    """The scene's element types among those of the form; an in-place form may have fewer."""
    return [dtype for dtype in scene.dtypes if dtype in prototype.dtypes] or prototype.dtypes[:1]


def _case(prototype: Prototype, scene: Scene, dtype: Dtype) -> Case:
    def resolved(value: Any) -> Any:
        if isinstance(value, list):
            return [resolved(entry) for entry in value]
        return value.of(dtype) if isinstance(value, ByDtype) else value

    names = {p.name for p in prototype.arguments}
    return Case(
        f"{dtype.name}-{scene.label}",
        dtype,
        {name: resolved(value) for name, value in scene.arguments.items() if name in names},
        {p.name: _override(prototype, scene, p.name) for p in prototype.results if p.annotation is Out},
        smoke=scene.smoke,
        exact=scene.exact,
    )


def _override(prototype: Prototype, scene: Scene, result: str) -> ResultOverride | None:
    if result in scene.absent:
        return None
    rule = prototype.result.get(result) if isinstance(prototype.result, Mapping) else prototype.result
    return ResultOverride(scene.index if rule is position else None, scene.result)
