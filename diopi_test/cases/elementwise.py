"""What the cases of all element-wise functions share: shapes, layouts, special values.

A pattern names the shape and layout of each tensor argument; `elementwise_cases` crosses patterns with element types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diopi_proto.parameters import Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, ResultOverride, TensorSpec
from diopi_test.domains import Domain, special, special_values
from diopi_test.layouts import Layout, contiguous, expanded, strided, transposed


@dataclass(frozen=True)
class Pattern:
    """Shapes and layouts of the tensor arguments in order (the last ones repeat), and the layout of the result.

    Attributes:
        label: the part of the case's label after the element type.
        smoke: whether cases of this pattern belong to the smoke level.
    """

    label: str
    shapes: Sequence[tuple[int, ...]]
    layouts: Sequence[Layout] = (contiguous,)
    result: Layout = contiguous
    smoke: bool = False

    def shape(self, position: int) -> tuple[int, ...]:
        """Shape of the tensor argument at `position`."""
        return self.shapes[min(position, len(self.shapes) - 1)]

    def layout(self, position: int) -> Layout:
        """Layout of the tensor argument at `position`."""
        return self.layouts[min(position, len(self.layouts) - 1)]


UNIFORM = (
    Pattern("matrix", [(7, 5)], smoke=True),
    Pattern("scalar", [()]),
    Pattern("empty", [(0, 3)]),
    Pattern("long", [(1031,)]),
    Pattern("transposed", [(4, 6)], [transposed], transposed),
    Pattern("strided", [(3, 2, 4)], [strided], strided, smoke=True),
    Pattern("rank5", [(2, 1, 3, 2, 2)]),
    Pattern("to-transposed", [(5, 3)], [contiguous], transposed),
)
"""All tensors of one shape."""

BROADCAST = (
    Pattern("row", [(4, 5), (5,)], smoke=True),
    Pattern("column", [(4, 5), (4, 1)]),
    Pattern("outer", [(6, 1), (1, 7)]),
    Pattern("by-scalar", [(3, 4), ()]),
    Pattern("scalar-by", [(), (3, 4)]),
    Pattern("rank-up", [(3,), (2, 4, 3)]),
    Pattern("interleaved", [(2, 1, 3, 1, 2), (4, 1, 3, 1)]),
    Pattern("long-rows", [(3, 517), (3, 1)]),
    Pattern("empty-row", [(0, 3), (3,)]),
    Pattern("expanded", [(4, 3)], [contiguous, expanded]),
    Pattern("mixed-layouts", [(4, 3)], [transposed, strided], contiguous),
)
"""Tensors whose shapes or layouts differ."""

OUTER = Pattern("all-by-all", [(6, 19), (6, 1)], smoke=True)
"""All values of the first tensor, as many as floating types have special ones, with all of the second."""


def tensor_arguments(prototype: Prototype) -> list[str]:
    """The names of the prototype's tensor arguments, in order."""
    return [p.name for p in prototype.arguments if p.is_tensor]


def tensors(
    prototype: Prototype, dtype: Dtype, pattern: Pattern, domains: Mapping[str, Domain]
) -> dict[str, TensorSpec]:
    """A spec for every tensor argument, all of type `dtype`, with the shapes and layouts of `pattern`."""
    return {
        name: TensorSpec(pattern.shape(i), dtype, domains[name], pattern.layout(i))
        for i, name in enumerate(tensor_arguments(prototype))
    }


def results(prototype: Prototype, pattern: Pattern) -> dict[str, ResultOverride]:
    """The result layout of `pattern` for every result that is not updated in place."""
    return {p.name: ResultOverride(layout=pattern.result) for p in prototype.results if p.role is Role.output}


def fits(prototype: Prototype, pattern: Pattern) -> bool:
    """Whether the pattern suits the prototype: an in-place result must have the shape of the broadcast inputs."""
    if not prototype.is_inplace:
        return True
    shapes = [pattern.shape(i) for i in range(len(tensor_arguments(prototype)))]
    from numpy import broadcast_shapes

    return broadcast_shapes(*shapes) == shapes[0] and pattern.layout(0) is not expanded


def elementwise_cases(
    prototype: Prototype,
    domains: Mapping[str, Domain],
    attributes: Mapping[str, Any] | None = None,
    patterns: Sequence[Pattern] = UNIFORM,
    dtypes: Sequence[Dtype] | None = None,
    label: str = "",
) -> Iterator[Case]:
    """Cases of every element type and pattern.

    Args:
        prototype: the function or form.
        domains: where each tensor argument's values are drawn from.
        attributes: the other arguments.
        patterns: shapes and layouts; those that don't suit an in-place form are left out.
        dtypes: element types, by default all that the prototype accepts.
        label: added to every case's label, when a function has several sets of cases.
    """
    for dtype in dtypes or prototype.dtypes:
        for pattern in patterns:
            if fits(prototype, pattern):
                yield Case(
                    "-".join(filter(None, [dtype.name, label, pattern.label])),
                    dtype,
                    {**tensors(prototype, dtype, pattern, domains), **(attributes or {})},
                    results(prototype, pattern),
                    smoke=pattern.smoke,
                )


def special_cases(
    prototype: Prototype,
    attributes: Mapping[str, Any] | None = None,
    dtypes: Sequence[Dtype] | None = None,
    label: str = "",
) -> Iterator[Case]:
    """One case an element type that meets every special value of each tensor with every one of the others."""
    for dtype in dtypes or prototype.dtypes:
        count = len(special_values(dtype))
        names = tensor_arguments(prototype)
        shapes = [tuple(count if axis == i else 1 for axis in range(len(names))) for i in range(len(names))]
        if prototype.is_inplace:
            shapes[0] = (count,) * len(names)
        specs = {
            name: TensorSpec(shape, dtype, _along(i, len(names)))
            for i, (name, shape) in enumerate(zip(names, shapes, strict=True))
        }
        yield Case(
            "-".join(filter(None, [dtype.name, label, "special"])), dtype, {**specs, **(attributes or {})}, smoke=True
        )


def _along(axis: int, axes: int) -> Domain:
    """The special values along one axis of a cube, whatever lies along the others."""

    def draw(rng: Any, count: int, dtype: Dtype) -> Any:
        values = special_values(dtype)
        if count == len(values):
            return special(rng, count, dtype)
        return values.repeat(count // len(values))  # an in-place tensor spans the whole cube

    return draw
