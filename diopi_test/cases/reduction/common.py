"""Shared parts of the cases of reductions: axes, types of results, and how templates become cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from diopi_proto.dtypes import complexes, floating
from diopi_proto.parameters import Size
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.axes import ONE_AXIS, Axes
from diopi_test.cases.case import Case, ResultOverride
from diopi_test.cases.domains import (
    Domain,
)
from diopi_test.cases.layouts import strided, strides, transposed
from diopi_test.cases.template import CaseTemplate, DtypeSelection, expand, tensor

F16, BF16, F32, F64 = floating
INEXACT = (*floating, *complexes)

KEEPDIM = (
    Axes.template("kept", (4, 6), (0,), keepdim=True, all_dtypes=True, smoke=True),
    Axes.template("kept-middle", (3, 4, 5), (-2,), keepdim=True, layout=transposed, result_layout=strided),
)
"""Templates that keep the reduced axes with size 1."""

ALL_AXES = (
    Axes.template("all", (3, 4, 5), (), layout=strided, all_dtypes=True),
    Axes.template("all-kept", (4, 6), (), keepdim=True, layout=transposed),
    Axes.template("all-of-scalar", (), ()),
)
"""Templates that reduce all axes."""

SEVERAL_AXES = (
    Axes.template("two-axes", (2, 3, 4, 5), (3, 1)),
    Axes.template("first-and-last", (3, 4, 5), (-1, 0), keepdim=True),
    Axes.template("three-axes", (2, 5, 3, 4), (0, -1, 2), layout=transposed),
    Axes.template("every-axis", (3, 5), (1, 0)),
)
"""Templates that reduce more than one axis."""

NO_ELEMENTS = (
    Axes.template("no-elements", (0, 3), (0,), all_dtypes=True),
    Axes.template("no-elements-kept", (2, 0, 3), (1,), keepdim=True),
    Axes.template("all-of-none", (0, 3), ()),
)
"""Templates of tensors or slices without elements."""

ROWS = ONE_AXIS[0]
"""The first template of one axis: a matrix whose rows are reduced."""

LONG = Axes.template("long", (1031,), (0,))
"""A vector so long that sums show the width of the accumulator."""

LONG_COLUMNS = Axes.template("long-columns", (517, 3), (0,))
LONG_ROWS = Axes.template("long-rows", (24, 130), (-1,))
COLUMNS = Axes.template("", (6, 19), (0,))
COLUMNS_OF_16 = Axes.template("", (16, 5), (0,))
ALL = ALL_AXES[0]
"""The first template of all axes."""

KEPT_COLUMNS = KEEPDIM[0]
"""The first template whose result keeps the reduced axis."""

ORDERED = Axes.template("", (11, 4), (1,))
"""The axes of cases in which the caller requests the element type of the result."""

SUMMABLE = (*ONE_AXIS, *KEEPDIM, *SEVERAL_AXES, *ALL_AXES, *NO_ELEMENTS)
"""Templates for functions that reduce several axes."""

ONE_OR_ALL = (*ONE_AXIS, *KEEPDIM, *ALL_AXES, *NO_ELEMENTS)
"""Templates for functions that reduce one axis or all."""

SIX_AXES = (7, 3, 11, 5, 13, 17)
"""Sizes for large tensors with many axes."""

FAR_ROWS = Axes.template("half-far-apart", (263, 4097), (1,), layout=strides(5003, 1), large=True)
"""A large template with gaps between the rows."""


def reduction_cases(
    prototype: Prototype,
    templates: Iterable[CaseTemplate[Axes]],
    shape: Callable[[Axes], tuple[int, ...]] = lambda sizes: sizes.reduced_shape,
) -> Iterator[Case]:
    """Return the cases of a function of one tensor, drawn from the templates' domains of "input".

    Cases along the axes that no template covers follow; their data are drawn like those of the template of rows.

    Args:
        prototype: the function.
        templates: the templates of its cases.
        shape: returns the shape of the result.

    Returns:
        The cases.
    """
    first, names = prototype.arguments[0].name, {p.name: p.annotation for p in prototype.arguments}
    listed = list(templates)
    rows = next((template for template in listed if template.label == ROWS.label), None)
    untried = [
        template.replace(arguments=rows.arguments, domains=rows.domains)
        for template in Axes.untested_templates(listed)
        if rows
    ]

    def arguments(template: CaseTemplate[Axes], dtype: Dtype) -> Mapping[str, Any]:
        sizes = template.sizes
        return {
            first: tensor(*sizes.shape, domain=template.domains["input"], layout=template.layout),
            "dim": sizes.axes if names.get("dim") is Size else sizes.axis,
            "keepdim": sizes.keepdim,
        }

    def decided(template: CaseTemplate[Axes]) -> CaseTemplate[Axes]:
        result_shape = shape(template.sizes) if not template.large else None
        usual = ResultOverride(layout=template.result_layout, shape=result_shape)
        return template.replace(results={**{p.name: usual for p in prototype.results}, **template.results})

    return expand(prototype, map(decided, [*listed, *untried]), arguments)


def with_domain(
    pattern: CaseTemplate[Axes],
    domain: Domain,
    dtypes: DtypeSelection | Sequence[Dtype] = (F32,),
    label: str = "",
    **fields: Any,
) -> CaseTemplate[Axes]:
    """Return the pattern with numbers of `domain`; if the label changes, it is not a smoke case."""
    smoke = pattern.smoke and not label
    return pattern.replace(label or pattern.label, domains={"input": domain}, dtypes=dtypes, smoke=smoke, **fields)


def patterns_from_domain(
    patterns: Iterable[CaseTemplate[Axes]], domain: Domain, dtypes: Sequence[Dtype], **fields: Any
) -> Iterator[CaseTemplate[Axes]]:
    """Yield all patterns in float32 and the common ones in the other element types."""
    return (restrict_dtypes(pattern, dtypes).replace(domains={"input": domain}, **fields) for pattern in patterns)


def domain_by_type(domain_of: Callable[[Dtype], Domain]) -> Domain:
    """Return a domain that depends on the element type."""
    return lambda rng, count, dtype: domain_of(dtype)(rng, count, dtype)


def result_type(dtype: Dtype, shape: tuple[int, ...]) -> dict[str, ResultOverride]:
    """Return overrides for a result, or for the position of an extremum, in an element type that the caller chooses."""
    return dict.fromkeys(("out", "min_indices", "max_indices"), ResultOverride(dtype, shape=shape))


def restrict_dtypes(template: CaseTemplate[Axes], dtypes: Sequence[Dtype]) -> CaseTemplate[Axes]:
    """Return the template restricted to the element types in `dtypes`."""
    return template.replace(
        dtypes=dtypes if template.dtypes is DtypeSelection.all else [d for d in dtypes if d is Dtype.float32]
    )
