"""Cases of resizing lines, images and volumes, of its gradients, and of sampling at the points of a grid.

A template describes cases that differ only in their element type. A domain is a distribution or a set of values, from
which the elements of a tensor are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any, Unpack

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOverride, TensorSpec, Values, cases_for
from diopi_test.cases.domains import Domain, any_value, choice, half_nan, integer_values, normal, special, uniform
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import Layout, channels_last, contiguous, expanded, strided, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    Arguments,
    ByDtype,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    expand,
    register,
    same_layout,
    tensor,
)

Shape = tuple[int, ...]
"""The sizes of a tensor."""

FLOAT16_ONLY = (Dtype.float16,)
"""The element types of templates in float16 only."""

# Resizing


@dataclass(frozen=True)
class Resizing:
    """The sizes of a template that resizes an input.

    Attributes:
        shape: The shape of the input: samples, channels, and one to three spatial sizes.
        size: The spatial sizes of the result.
    """

    shape: Shape
    size: Shape


def resize_template(
    label: str, shape: Shape, size: Shape, *, domain: Domain | None = None, **fields: Unpack[TemplateFields]
) -> CaseTemplate[Resizing]:
    """Return a template of a function that resizes an input, or of its gradient.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the input: samples, channels, and one to three spatial sizes.
        size: The spatial sizes of the result.
        domain: The domain of the input, or of the gradient of the result; None for the default of `resize_cases`.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    domains = {} if domain is None else {"input": domain, "grad_output": domain}
    return CaseTemplate(label, Resizing(shape, size), domains=domains).replace(**fields)


def resize_cases(
    prototype: Prototype, templates: Iterable[CaseTemplate[Resizing]], domain: Domain, sets_result_dtype: bool = False
) -> Iterator[Case]:
    """Return the cases of a function that resizes an input, or of its gradient.

    For the gradient, a template's `layout` applies to the result, and its `result_layout` to `grad_output`.

    Args:
        prototype: The prototype of the function.
        templates: The templates of its cases.
        domain: The domain of the elements for templates that have none.
        sets_result_dtype: Whether cases, except exact ones, state explicitly that the result has the type under test.

    Returns:
        The cases.
    """
    is_backward = prototype.name.endswith("Backward")

    def arguments(template: CaseTemplate[Resizing], dtype: Dtype) -> Mapping[str, Any]:
        shape, size = template.sizes.shape, template.sizes.size
        return {
            "input": tensor(*shape, domain=domain, layout=template.layout),
            "grad_output": tensor(*shape[:2], *size, domain=domain, layout=template.layout),
            "size": size,
            "out_size": size,
            "in_size": shape,
        }

    def with_layouts(template: CaseTemplate[Resizing]) -> CaseTemplate[Resizing]:
        """Return the template with its layouts assigned to the input and to the results."""
        input_layout, output_layout = (template.layout, template.result_layout)[:: -1 if is_backward else 1]
        has_dtype = sets_result_dtype and not template.exact
        result = ByDtype(lambda dtype: ResultOverride(dtype if has_dtype else None, output_layout))
        return template.replace(layout=input_layout, results={"out": result, "grad_input": result})

    return expand(prototype, [with_layouts(template) for template in templates], arguments)


NEAREST_TEMPLATES = (
    resize_template("up", (1, 2, 2, 3), (5, 4), **SMOKE_IN_ALL_DTYPES),
    resize_template("strided", (2, 1, 5), (3,), **same_layout(strided), **SMOKE_IN_ALL_DTYPES),
    resize_template("down", (2, 2, 7, 5), (3, 2)),
    resize_template("channels-last", (2, 3, 4, 3), (2, 8), **same_layout(channels_last)),
    resize_template("up-and-down", (1, 2, 3, 8), (7, 3), **same_layout(transposed)),
    resize_template("line", (2, 3, 4), (11,)),
    resize_template("volume", (1, 2, 2, 3, 4), (3, 2, 9)),
    resize_template("volume-channels-last", (2, 2, 3, 2, 2), (2, 5, 4), **same_layout(channels_last)),
    resize_template("doubled", (1, 1, 3, 4), (6, 8)),
    resize_template("same", (2, 2, 3, 5), (3, 5)),
    resize_template("to-one", (2, 5, 4, 5), (1, 1)),
    resize_template("from-one", (1, 2, 1, 1), (3, 4)),
    resize_template("no-samples", (0, 2, 3, 3), (2, 4)),
    resize_template("long", (2, 32, 3, 4), (4, 3)),
    resize_template("wide", (1, 2, 2, 131), (3, 200)),
    resize_template("doubled", (2, 37, 29, 31), (58, 62), large=True),
    resize_template("many-images", (263, 257, 3, 2), (3, 1), large=True),
    resize_template("line", (3, 37, 1031), (4_124,), large=True),
    resize_template("half-volume", (2, 7, 5, 13, 17), (15, 26, 17), dtypes=FLOAT16_ONLY, large=True),
)
"""Templates of nearest-neighbor resizing, with sizes for which rounding never changes the nearest element.

The element nearest to position i of the result is ⌊i · (input size / result size)⌋. This product, computed in float32,
is an integer only if the exact product is the same integer.
"""

RATIO_TEMPLATES = (
    resize_template("line-up-16", (1, 2, 7), (112,)),
    resize_template("line-up-odd", (1, 2, 9), (119,)),
    resize_template("line-down-odd", (1, 2, 119), (9,)),
    resize_template("line-down-31", (1, 2, 217), (7,)),
    resize_template("line-by-less-than-1", (1, 1, 257), (256,)),
    resize_template("line-by-more-than-1", (1, 1, 256), (257,)),
    resize_template("up-7-and-5", (1, 1, 3, 5), (21, 25)),
    resize_template("down-13-and-11", (1, 1, 39, 33), (3, 3)),
    resize_template("up-odd-down-odd", (1, 2, 5, 37), (47, 3)),
    resize_template("doubled-less-1", (1, 1, 13, 17), (25, 33)),
    resize_template("volume-odd", (1, 1, 3, 11, 2), (13, 4, 7)),
    resize_template("volume-up-9", (1, 1, 1, 2, 3), (9, 18, 5)),
)
"""Templates with unusual ratios of the sizes of input and result: odd factors, fractions, or close to 1."""

NAN_CHANNEL = resize_template("undefined", (1, 2, 2, 3), (5, 4), domain=half_nan)
"""A template in which one of the two channels contains only NaN.

The same channel of the result must contain only NaN, although some elements of the input have the weight 0.
"""


@cases_for("diopiUpsampleNearest")
def upsample_nearest_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of nearest-neighbor resizing."""
    view = resize_template("expanded", (1, 2, 2, 3), (5, 4), layout=expanded, smoke=True)
    extremes = resize_template("special", (1, 1, 4, 5), (5, 4), domain=special, **SMOKE_IN_ALL_DTYPES)
    return resize_cases(prototype, [*NEAREST_TEMPLATES, view, extremes, *RATIO_TEMPLATES], any_value)


@cases_for("diopiUpsampleNearestBackward")
def upsample_nearest_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the gradient of nearest-neighbor resizing.

    It adds up the gradients of all elements of the result that are copies of one element of the input.
    """
    view = resize_template("expanded", (1, 2, 2, 3), (5, 4), result_layout=expanded)
    exact = resize_template(
        "exact", (1, 3, 2, 3), (33, 20), domain=integer_values(-4, 4), dtypes=DtypeSelection.all, exact=True
    )
    return resize_cases(prototype, [*NEAREST_TEMPLATES, NAN_CHANNEL, view, exact, *RATIO_TEMPLATES], normal())


MODES = {3: ["linear"], 4: ["bilinear", "bicubic"], 5: ["trilinear"]}
"""The modes of interpolation that the functions accept, by the rank of the input."""

LINEAR_TEMPLATES = (
    resize_template("up", (1, 2, 2, 3), (5, 4), **SMOKE_IN_ALL_DTYPES),
    resize_template("line", (2, 1, 4), (7,), **same_layout(strided), **SMOKE_IN_ALL_DTYPES),
    resize_template("volume", (1, 1, 2, 3, 2), (3, 2, 4), **SMOKE_IN_ALL_DTYPES),
    resize_template("down", (2, 2, 7, 5), (3, 2)),
    resize_template("channels-last", (2, 3, 4, 3), (2, 7), **same_layout(channels_last)),
    resize_template("up-and-down", (1, 2, 3, 9), (7, 4), **same_layout(transposed)),
    resize_template("line-down", (2, 3, 9), (4,)),
    resize_template("volume-channels-last", (2, 2, 3, 2, 2), (2, 5, 4), **same_layout(channels_last)),
    resize_template("same", (2, 2, 3, 5), (3, 5)),
    resize_template("to-one", (2, 5, 4, 5), (1, 1)),
    resize_template("from-one", (1, 2, 1, 1), (3, 4)),
    resize_template("no-samples", (0, 2, 3, 3), (2, 4)),
    resize_template("long", (2, 32, 3, 4), (4, 5)),
    resize_template("wide", (1, 2, 2, 131), (3, 200)),
    # Bfloat16 does not represent all integers above 256, nor coordinates between them.
    resize_template("half-line", (1, 2, 67), (311,), dtypes=half),
    resize_template(
        "few-infinite", (1, 2, 6, 7), (11, 10), domain=choice([nan, inf, -inf, *[0.75, -1.5, 2.25, 3.0] * 9])
    ),
    NAN_CHANNEL,
    resize_template("up", (2, 13, 29, 31), (67, 59), large=True),
    resize_template("down", (3, 37, 67, 61), (31, 23), **same_layout(channels_last), large=True),
    resize_template("line", (3, 5, 4097), (5_003,), large=True),
    resize_template("half-volume", (2, 3, 7, 13, 17), (11, 31, 37), dtypes=FLOAT16_ONLY, large=True),
)
"""Templates of linear and cubic interpolation, to which `templates_in_every_mode` adds the mode."""

EXACT_SIZES: Mapping[str, tuple[Shape, Shape]] = {
    "exact": ((1, 3, 3, 5), (6, 10)),
    "exact-line": ((2, 3, 5), (10,)),
    "exact-volume": ((1, 2, 2, 3, 5), (4, 3, 10)),
}
"""By label, the shape of an input and the spatial sizes of a result for which every interpolation weight is exact.

With small integers as input, every result is exact as well.
"""


def templates_in_every_mode(template: CaseTemplate[Resizing]) -> Iterator[CaseTemplate[Resizing]]:
    """Yield copies of a template: one per mode that its rank allows (`MODES`) and per value of `align_corners`."""
    for mode in MODES[len(template.sizes.shape)]:
        for suffix, align_corners in (("", False), ("-corners", True)):
            yield template.replace(f"{template.label}-{mode}{suffix}", {"mode": mode, "align_corners": align_corners})


def exact_linear_templates() -> Iterator[CaseTemplate[Resizing]]:
    """Yield templates of linear interpolation whose weights and sums have no rounding errors (`EXACT_SIZES`)."""
    for label, (shape, size) in EXACT_SIZES.items():
        template = resize_template(
            label, shape, size, domain=integer_values(-4, 4), dtypes=DtypeSelection.all, exact=True
        )
        yield template.replace(arguments={"mode": MODES[len(shape)][0], "align_corners": False})


@cases_for("diopiUpsampleLinear", "diopiUpsampleLinearBackward")
def upsample_linear_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of linear, bilinear, trilinear and bicubic resizing, or of its gradient."""
    input_layout, output_layout = (
        (contiguous, expanded) if prototype.name.endswith("Backward") else (expanded, contiguous)
    )
    view = resize_template("expanded", (1, 2, 2, 3), (5, 4), layout=input_layout, result_layout=output_layout)
    mode_templates = [
        template_in_mode
        for template in (*LINEAR_TEMPLATES, view)
        for template_in_mode in templates_in_every_mode(template)
    ]
    ratio_templates = [
        template_in_mode for template in RATIO_TEMPLATES for template_in_mode in templates_in_every_mode(template)
    ]
    return resize_cases(
        prototype, [*mode_templates, *exact_linear_templates(), *ratio_templates], normal(), sets_result_dtype=True
    )


# Sampling at points


def sampling_templates(
    label: str,
    shape: Shape,
    grid_sizes: Shape,
    layouts: tuple[Layout, Layout] = (contiguous, contiguous),
    *,
    domain: Domain | None = None,
    max_coordinate: float = 1.4,
    **fields: Unpack[TemplateFields],
) -> Iterator[CaseTemplate]:
    """Yield templates that sample an input at the points of a grid, in both modes.

    Coordinates of the grid are relative: −1 and 1 are the ends of an axis of the input.

    Args:
        label: The start of the label; a dash and the mode follow.
        shape: The shape of the input: samples, channels, and two or three spatial sizes.
        grid_sizes: The spatial sizes of the grid and of the result.
        layouts: The layout of the input and the layout of the grid.
        domain: The domain of the input in bilinear mode; None for the standard normal distribution.
        max_coordinate: The largest absolute coordinate in bilinear mode.
        **fields: Further fields of the templates.

    Yields:
        A template for bilinear sampling, and one for the nearest element.
    """
    grid_shape = (shape[0], *grid_sizes, len(grid_sizes))
    bilinear_input = tensor(*shape, domain=domain or normal(), layout=layouts[0])
    bilinear_grid = tensor(*grid_shape, domain=uniform(-max_coordinate, max_coordinate), layout=layouts[1])
    linear: Arguments = {"input": bilinear_input, "grid": bilinear_grid, "mode": "bilinear"}
    yield CaseTemplate(f"{label}-bilinear", arguments=linear, **fields)
    nearest_input = tensor(*shape, domain=any_value, layout=layouts[0])
    nearest_grid = grid_near_elements(grid_shape, shape[2:], layouts[1])
    nearest: Arguments = {"input": nearest_input, **nearest_grid, "mode": "nearest"}
    yield CaseTemplate(f"{label}-nearest", arguments=nearest, **fields)


FRACTIONS = "_where"
"""The name of the argument with the random fractions from which a grid is computed.

Do not rename it: the name is part of the seed of the fractions.
"""


def grid_near_elements(grid_shape: Shape, sizes: Shape, layout: Layout) -> dict[str, Any]:
    """Return the argument `grid` and the random fractions from which it is computed.

    Each point of the grid is at most 0.35 index steps from an integer index along each axis. Rounding therefore does
    not change which element is nearest.

    Args:
        grid_shape: The shape of the grid, whose last axis contains the coordinates of a point.
        sizes: The spatial sizes of the input.
        layout: The layout of the grid.

    Returns:
        The two arguments by name.
    """

    def coordinates_near_elements(values: Values) -> Any:
        """Return the coordinates of the points for the random fractions in [0, 1), which are among `values`."""
        indices = values[FRACTIONS] * (np.array(sizes) + 1) - 1  # from −1 to the size
        nearest = np.rint(indices)
        indices_near_elements = nearest + np.clip(indices - nearest, -0.35, 0.35)
        coordinates = (2 * indices_near_elements + 1) / np.array(sizes) - 1
        return coordinates[..., ::-1]  # a point begins with the coordinate along the last axis

    fractions = TensorSpec(grid_shape, Dtype.float64, uniform(0, 1))
    return {FRACTIONS: fractions, "grid": tensor(*grid_shape, layout=layout, compute=coordinates_near_elements)}


def exact_sampling_template(
    label: str, mode: str, coordinates: Sequence[float], **fields: Unpack[TemplateFields]
) -> CaseTemplate:
    """Return a template whose results have no rounding error.

    Args:
        label: The start of the label; a dash and the mode follow.
        mode: "bilinear" or "nearest".
        coordinates: Coordinates for which every interpolation weight is exact. The points of the grid are random pairs
            of them, and the input consists of small integers.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    grid = tensor(1, len(coordinates), len(coordinates), 2, domain=choice(coordinates))
    arguments: Arguments = {"input": tensor(1, 2, 4, 2, domain=integer_values(-4, 4)), "grid": grid, "mode": mode}
    return CaseTemplate(f"{label}-{mode}", arguments=arguments, exact=True).replace(**fields)


EIGHTH_COORDINATES = [number / 8 for number in range(-12, 13)]
"""Coordinates from −1.5 to 1.5 that are multiples of ⅛."""

HALFWAY_COORDINATES = [-1.25, -1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1, 1.25]
"""Coordinates of which some lie exactly halfway between two elements, so that rounding to even decides."""

OUTSIDE_COORDINATES = [-100, -3, -0.5, 0.25, 0.75, 3, 1e12]
"""Coordinates of which some are far outside the input, up to 10^12, which int32 does not represent."""

SAMPLINGS = (
    *sampling_templates("plane", (2, 2, 4, 3), (3, 2), **SMOKE_IN_ALL_DTYPES),
    *sampling_templates(
        "volume", (1, 2, 2, 3, 4), (1, 2, 3), (strided, strided), result_layout=strided, **SMOKE_IN_ALL_DTYPES
    ),
    *sampling_templates(
        "channels-last", (2, 3, 3, 5), (4, 2), (channels_last, transposed), result_layout=channels_last
    ),
    *sampling_templates("transposed", (2, 3, 4, 5), (2, 6), (transposed, contiguous), result_layout=transposed),
    *sampling_templates(
        "volume-channels-last", (2, 2, 3, 2, 4), (2, 3, 2), (channels_last, contiguous), result_layout=channels_last
    ),
    *sampling_templates("one-element", (1, 2, 1, 1), (4, 3)),
    *sampling_templates("row", (2, 1, 1, 7), (1, 9)),
    *sampling_templates("expanded", (2, 2, 3, 4), (3, 3), (contiguous, expanded)),
    *sampling_templates("no-samples", (0, 2, 3, 3), (2, 2)),
    *sampling_templates("no-points", (2, 2, 3, 3), (0, 2)),
    *sampling_templates("undefined", (2, 2, 3, 4), (3, 2), domain=half_nan, max_coordinate=0.9),
    *sampling_templates("long", (2, 8, 5, 6), (7, 9)),
    exact_sampling_template("exact", "bilinear", EIGHTH_COORDINATES, dtypes=DtypeSelection.all),
    exact_sampling_template("exact", "nearest", HALFWAY_COORDINATES, dtypes=DtypeSelection.all),
    exact_sampling_template("far-outside", "bilinear", OUTSIDE_COORDINATES),
    exact_sampling_template("far-outside", "nearest", OUTSIDE_COORDINATES),
    *sampling_templates("images", (3, 37, 29, 31), (31, 23), large=True),
    *sampling_templates("half-volume", (2, 23, 5, 7, 11), (7, 11, 13), dtypes=FLOAT16_ONLY, large=True),
)
"""The templates of grid sampling."""

register("diopiGridSample", templates=SAMPLINGS)

CaseFacts(attribute_changes={"float32-up-bilinear": [{"size": (3, 7)}]}).declare("diopiUpsampleLinear")
CaseFacts(attribute_changes={"float32-up-bilinear": [{"in_size": (1, 2, 3, 2)}]}).declare("diopiUpsampleLinearBackward")
CaseFacts(attribute_changes={"float32-up": [{"size": (3, 7)}]}).declare("diopiUpsampleNearest")
CaseFacts(attribute_changes={"float32-up": [{"in_size": (1, 2, 3, 2)}]}).declare("diopiUpsampleNearestBackward")
