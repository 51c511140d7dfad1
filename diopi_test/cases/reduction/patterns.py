"""Shared parts of the cases of reductions: patterns of axes, types of results, and `reduction_cases`.

A template describes cases that differ only in their element type (`diopi_test.cases.template`). A pattern is a template
with a shape and axes, but without a domain of the input; `with_domain` adds the domain.

A domain draws the values of a tensor (`diopi_test.cases.domains`). Smoke cases belong to the shortest level of the
suite. Large cases belong to a level with the sizes of real models.
"""

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
"""Short names for the floating-point types."""

INEXACT_DTYPES = (*floating, *complexes)
"""The element types whose sums are rounded."""

KEEPDIM_TEMPLATES = (
    Axes.template("kept", (4, 6), (0,), keepdim=True, all_dtypes=True, smoke=True),
    Axes.template("kept-middle", (3, 4, 5), (-2,), keepdim=True, layout=transposed, result_layout=strided),
)
"""Patterns that keep the reduced axes with size 1."""

ALL_AXES = (
    Axes.template("all", (3, 4, 5), (), layout=strided, all_dtypes=True),
    Axes.template("all-kept", (4, 6), (), keepdim=True, layout=transposed),
    Axes.template("all-of-scalar", (), ()),
)
"""Patterns that reduce all axes."""

SEVERAL_AXES = (
    Axes.template("two-axes", (2, 3, 4, 5), (3, 1)),
    Axes.template("first-and-last", (3, 4, 5), (-1, 0), keepdim=True),
    Axes.template("three-axes", (2, 5, 3, 4), (0, -1, 2), layout=transposed),
    Axes.template("every-axis", (3, 5), (1, 0)),
    Axes.template("outer-and-inner", (3, 4, 5), (0, 2)),
)
"""Patterns that reduce more than one axis."""

NO_ELEMENTS = (
    Axes.template("no-elements", (0, 3), (0,), all_dtypes=True),
    Axes.template("no-elements-kept", (2, 0, 3), (1,), keepdim=True),
    Axes.template("all-of-none", (0, 3), ()),
)
"""Patterns of tensors or slices without elements."""

ROWS = ONE_AXIS[0]
"""The first pattern of one axis: a matrix whose rows are reduced."""

LONG = Axes.template("long", (1031,), (0,))
"""A pattern of a vector so long that its sum shows in which precision a vendor accumulates."""

LONG_COLUMNS = Axes.template("long-columns", (517, 3), (0,))
"""A pattern of a matrix with long columns, which are reduced."""

LONG_ROWS = Axes.template("long-rows", (24, 130), (-1,))
"""A pattern of a matrix with long rows, which are reduced."""

COLUMNS = Axes.template("", (6, 19), (0,))
"""A pattern of a matrix of 6 rows and 19 columns, whose columns are reduced. The templates must add a label."""

COLUMNS_OF_16 = Axes.template("", (16, 5), (0,))
"""A pattern of a matrix of 16 rows and 5 columns, whose columns are reduced. The templates must add a label."""

ALL_ELEMENTS = ALL_AXES[0]
"""The first pattern of `ALL_AXES`: all elements of a tensor of the shape (3, 4, 5) are reduced."""

KEPT_COLUMNS = KEEPDIM_TEMPLATES[0]
"""The first pattern of `KEEPDIM_TEMPLATES`: the columns of a matrix are reduced, and the axis is kept."""

CHOSEN_TYPE_ROWS = Axes.template("", (11, 4), (1,))
"""A pattern of rows, for cases in which the caller chooses the element type of the result; without a label."""

MANY_PAIRS = Axes.template("many-pairs", (1031, 2), (1,))
"""A pattern of many rows of two elements, for which kernels compute several rows at once."""

ANY_AXES_TEMPLATES = (*ONE_AXIS, *KEEPDIM_TEMPLATES, *SEVERAL_AXES, *ALL_AXES, *NO_ELEMENTS, MANY_PAIRS)
"""Patterns for functions that reduce any number of axes."""

ONE_OR_ALL_AXES_TEMPLATES = (*ONE_AXIS, *KEEPDIM_TEMPLATES, *ALL_AXES, *NO_ELEMENTS)
"""Patterns for functions that reduce one axis or all axes."""

SIX_AXES = (7, 3, 11, 5, 13, 17)
"""The shape of a large tensor with six axes."""

FAR_ROWS = Axes.template("half-far-apart", (263, 4097), (1,), layout=strides(5003, 1), large=True)
"""A large pattern with gaps between the rows."""


def reduction_cases(
    prototype: Prototype,
    templates: Iterable[CaseTemplate[Axes]],
    shape: Callable[[Axes], tuple[int, ...]] = lambda sizes: sizes.reduced_shape,
) -> Iterator[Case]:
    """Return the cases of a reduction of one tensor.

    Args:
        prototype: The prototype of the function.
        templates: The templates. The first tensor argument, whatever its name is, has the domain of "input".
        shape: Returns the shape of the result for the shape, axes and `keepdim` of a template.

    Returns:
        The cases of the templates. If there is a template with the label of `ROWS`, cases along all axes that no
        template uses follow. They have the domains and arguments of this template.
    """
    input_name, names = prototype.arguments[0].name, {p.name: p.annotation for p in prototype.arguments}
    listed_templates = list(templates)
    rows = next((template for template in listed_templates if template.label == ROWS.label), None)
    untested_templates = [
        template.replace(arguments=rows.arguments, domains=rows.domains)
        for template in Axes.untested_templates(listed_templates)
        if rows
    ]

    def arguments(template: CaseTemplate[Axes], dtype: Dtype) -> Mapping[str, Any]:
        """Return the input, the axes as an integer or a list, and `keepdim`."""
        sizes = template.sizes
        return {
            input_name: tensor(*sizes.shape, domain=template.domains["input"], layout=template.layout),
            "dim": sizes.axes if names.get("dim") is Size else sizes.axis,
            "keepdim": sizes.keepdim,
        }

    def with_result_overrides(template: CaseTemplate[Axes]) -> CaseTemplate[Axes]:
        """Return the template with overrides of all results; the reference determines the shape of large results."""
        result_shape = shape(template.sizes) if not template.large else None
        override = ResultOverride(layout=template.result_layout, shape=result_shape)
        return template.replace(results={**{p.name: override for p in prototype.results}, **template.results})

    return expand(prototype, map(with_result_overrides, [*listed_templates, *untested_templates]), arguments)


def with_domain(
    pattern: CaseTemplate[Axes],
    domain: Domain,
    dtypes: DtypeSelection | Sequence[Dtype] = (F32,),
    label: str = "",
    **fields: Any,
) -> CaseTemplate[Axes]:
    """Return a template with the axes of a pattern.

    Args:
        pattern: The pattern.
        domain: The domain of the input.
        dtypes: The element types.
        label: The label; empty to keep the label of the pattern. With a new label, there are no smoke cases.
        **fields: Other fields of the template.

    Returns:
        The template.
    """
    smoke = pattern.smoke and not label
    return pattern.replace(label or pattern.label, domains={"input": domain}, dtypes=dtypes, smoke=smoke, **fields)


def patterns_from_domain(
    patterns: Iterable[CaseTemplate[Axes]], domain: Domain, dtypes: Sequence[Dtype], **fields: Any
) -> Iterator[CaseTemplate[Axes]]:
    """Return templates with the axes of patterns and a domain.

    Args:
        patterns: The patterns.
        domain: The domain of the input.
        dtypes: The element types. Patterns that do not select all element types have only float32 cases, if float32 is
            one of these types.
        **fields: Other fields of the templates.

    Returns:
        The templates.
    """
    return (restrict_dtypes(pattern, dtypes).replace(domains={"input": domain}, **fields) for pattern in patterns)


def domain_by_type(domain_of: Callable[[Dtype], Domain]) -> Domain:
    """Return a domain that draws from another domain for each element type.

    Args:
        domain_of: Returns the domain for an element type.

    Returns:
        The domain.
    """
    return lambda rng, count, dtype: domain_of(dtype)(rng, count, dtype)


def result_type(dtype: Dtype, shape: tuple[int, ...]) -> dict[str, ResultOverride]:
    """Return overrides of the type and shape of the results `out`, `min_indices` and `max_indices`.

    Args:
        dtype: The element type of the results.
        shape: The shape of the results.

    Returns:
        The overrides by result name; functions ignore names of results that they do not have.
    """
    return dict.fromkeys(("out", "min_indices", "max_indices"), ResultOverride(dtype, shape=shape))


def restrict_dtypes(template: CaseTemplate[Axes], dtypes: Sequence[Dtype]) -> CaseTemplate[Axes]:
    """Return the template with other element types.

    Args:
        template: The template.
        dtypes: The element types that the template may have.

    Returns:
        A template for all these types if `template` selects all element types. Otherwise a template for float32, or for
        no type if float32 is not among them.
    """
    return template.replace(
        dtypes=dtypes if template.dtypes is DtypeSelection.all else [d for d in dtypes if d is Dtype.float32]
    )
