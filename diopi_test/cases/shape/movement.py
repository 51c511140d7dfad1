"""Cases of functions that move the elements of one tensor: views, flips, repetitions, windows, triangles and padding.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). Large cases belong to a level with the sizes of real
models. `Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, nan
from typing import Any, Unpack

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.axes import untested_axes
from diopi_test.cases.case import Case, ResultOverride
from diopi_test.cases.domains import Domain, choice, integer_values, normal, special
from diopi_test.cases.facts import CallsUndefinedInPyTorch, CaseFacts
from diopi_test.cases.layouts import Layout, channels_last, contiguous, expanded, strided, strides, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    Arguments,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    register,
    same_layout,
)
from diopi_test.cases.tensors import derive_single_tensor

Shape = tuple[int, ...]
"""The sizes of a tensor."""

SPECIAL: Mapping[str, Domain] = {"input": special}
"""The domain of NaN, infinities and subnormal numbers for the argument `input`."""

LARGE_HALF: Mapping[str, Any] = {"dtypes": (Dtype.float16,), "large": True}
"""Fields of large templates in float16."""

PLANE, SIX_AXES, EIGHT_AXES = (263, 257), (7, 3, 11, 5, 13, 5), (2, 5, 3, 2, 7, 3, 5, 11)
"""The shapes of large tensors with two, six and eight axes."""

FAR_AXES = strides(1, 3, 16, 49, 100, 701, 2104, 10_521)
"""A layout that stores a tensor of the shape `EIGHT_AXES` with reversed axes and gaps."""

TRIANGLES = (
    CaseTemplate("square", (4, 4), {"diagonal": 0}, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("strided", (2, 3, 4), {"diagonal": 1}, **same_layout(strided), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("wide", (3, 6), {"diagonal": -1}, **same_layout(transposed)),
    CaseTemplate("tall", (6, 3), {"diagonal": -2}),
    CaseTemplate("tall-above", (6, 3), {"diagonal": 1}),
    CaseTemplate("wide-above", (3, 6), {"diagonal": 3}),
    CaseTemplate("batch", (2, 2, 3, 5), {"diagonal": -1}),
    CaseTemplate("far-below", (3, 4), {"diagonal": -9}),
    CaseTemplate("far-above", (3, 4), {"diagonal": 9}),
    CaseTemplate("far-below-int32", (3, 4), {"diagonal": -(2**33) - 1}),
    CaseTemplate("far-above-int32", (3, 4), {"diagonal": 2**33 + 1}),
    CaseTemplate("one-column", (5, 1), {"diagonal": -2}),
    CaseTemplate("one-row", (1, 5), {"diagonal": 2}),
    CaseTemplate("empty", (0, 3, 3), {"diagonal": 0}),
    CaseTemplate("special", (5, 19), {"diagonal": 4}, domains=SPECIAL),
    CaseTemplate("rank-5", (2, 1, 2, 4, 3), {"diagonal": -1}, layout=strided),
    CaseTemplate("long", (33, 35), {"diagonal": 5}, dtypes=DtypeSelection.one_per_size),
    CaseTemplate("plane", PLANE, {"diagonal": -17}, large=True),
    CaseTemplate("half-batch", (11, 67, 131), {"diagonal": 3}, layout=strides(20_011, 263, 2), **LARGE_HALF),
)
"""The templates of `diopiTril` and `diopiTriu`; `diagonal` is the offset of the diagonal, positive above it."""

TRANSPOSE = (
    CaseTemplate("matrix", (3, 5), {"dim0": 0, "dim1": 1}, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("strided", (2, 3, 2), {"dim0": -1, "dim1": 0}, **same_layout(strided), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("middle", (2, 3, 4, 5), {"dim0": 1, "dim1": -2}),
    CaseTemplate("outer", (2, 3, 4, 5), {"dim0": 3, "dim1": 0}, **same_layout(transposed)),
    CaseTemplate("rank-5", (2, 3, 1, 2, 4), {"dim0": -4, "dim1": 4}),
    CaseTemplate("rank-6", (2, 3, 2, 1, 4, 2), {"dim0": 1, "dim1": -2}, layout=strided),
    CaseTemplate("itself", (3, 4), {"dim0": 1, "dim1": -1}),
    CaseTemplate("scalar", (), {"dim0": 0, "dim1": -1}),
    CaseTemplate("empty", (0, 3), {"dim0": 0, "dim1": 1}),
    CaseTemplate("special", (19, 2), {"dim0": 0, "dim1": 1}, domains=SPECIAL),
    CaseTemplate("tiles", (70, 65), {"dim0": 1, "dim1": 0}, dtypes=DtypeSelection.one_per_size),
    CaseTemplate("cube", (4, 4, 4), {"dim0": 0, "dim1": 2}),
    CaseTemplate("long", (8, 131), {"dim0": 0, "dim1": 1}, layout=expanded, dtypes=DtypeSelection.one_per_size),
    CaseTemplate("plane", PLANE, {"dim0": 0, "dim1": 1}, large=True),
    CaseTemplate("half-eight-axes", EIGHT_AXES, {"dim0": 1, "dim1": 6}, layout=FAR_AXES, **LARGE_HALF),
    CaseTemplate("rows", (70_001, 3), {"dim0": 0, "dim1": 1}, large=True),
)
"""The templates of `diopiTranspose`, which swaps two axes."""

PERMUTE = (
    CaseTemplate("cycle", (2, 3, 4), {"dims": (1, 2, 0)}, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("strided", (2, 3, 2), {"dims": (-1, 0, -2)}, **same_layout(strided), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("other-cycle", (2, 3, 4), {"dims": (2, 0, 1)}, layout=transposed),
    CaseTemplate("rank-4", (2, 3, 4, 5), {"dims": (3, 1, 0, 2)}, **same_layout(channels_last)),
    CaseTemplate("rank-5", (2, 1, 3, 2, 4), {"dims": (4, -3, 0, -2, 1)}, result_layout=transposed),
    CaseTemplate("rank-6", (2, 3, 2, 3, 4, 2), {"dims": (0, 3, 1, 4, 2, 5)}, dtypes=DtypeSelection.one_per_size),
    CaseTemplate("rank-7", (2, 1, 3, 2, 2, 3, 2), {"dims": (5, 0, 3, 1, 6, 4, 2)}, layout=strided),
    CaseTemplate("identity", (4, 3), {"dims": (0, 1)}),
    CaseTemplate("vector", (7,), {"dims": (-1,)}),
    CaseTemplate("scalar", (), {"dims": ()}),
    CaseTemplate("empty", (2, 0, 3), {"dims": (2, 0, 1)}),
    CaseTemplate("special", (19, 2), {"dims": (1, 0)}, domains=SPECIAL),
    CaseTemplate("cube", (4, 4, 4), {"dims": (1, 2, 0)}),
    CaseTemplate("long", (7, 13, 12), {"dims": (2, 0, 1)}, dtypes=DtypeSelection.one_per_size),
    # Kernels transpose tiles of up to 64 × 64 elements, and have other kernels for elements of one byte.
    CaseTemplate("tiles", (67, 131), {"dims": (1, 0)}, dtypes=DtypeSelection.one_per_size),
    CaseTemplate("eight-axes", EIGHT_AXES, {"dims": (7, 2, 5, 0, 3, 6, 1, 4)}, large=True),
    CaseTemplate("half-image", (3, 37, 29, 31), {"dims": (0, 2, 3, 1)}, layout=channels_last, **LARGE_HALF),
)
"""The templates of `diopiPermute`. For many of them, the inverse permutation gives another result."""

FLIP = (
    CaseTemplate("rows", (4, 3), {"dims": (0,)}, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("strided", (2, 3, 2), {"dims": (-1, 0)}, **same_layout(strided), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("columns", (4, 5), {"dims": (-1,)}, **same_layout(transposed)),
    CaseTemplate("every-axis", (3, 2, 4), {"dims": (0, 2, 1)}),
    CaseTemplate("middle-two", (2, 3, 4, 2), {"dims": (1, -2)}, layout=channels_last),
    CaseTemplate("rank-5", (2, 3, 1, 4, 2), {"dims": (-4, 0, 3)}),
    CaseTemplate("cube", (4, 4, 4), {"dims": (-2,)}),
    CaseTemplate("none", (4, 3), {"dims": ()}),
    CaseTemplate("scalar", (), {"dims": ()}),
    CaseTemplate("scalar-axis", (), {"dims": (0,)}),
    CaseTemplate("scalar-last-axis", (), {"dims": (-1,)}),
    CaseTemplate("empty", (0, 3), {"dims": (0, 1)}),
    CaseTemplate("special", (19,), {"dims": (0,)}, domains=SPECIAL),
    CaseTemplate("long", (1031,), {"dims": (-1,)}, dtypes=DtypeSelection.one_per_size),
    CaseTemplate("rows", (70_001, 3), {"dims": (0,)}, large=True),
    CaseTemplate("half-eight-axes", EIGHT_AXES, {"dims": (1, 4, 7)}, layout=FAR_AXES, **LARGE_HALF),
)
"""The templates of `diopiFlip`, which reverses axes."""

ROLL = (
    CaseTemplate("rows", (5, 3), {"shifts": (2,), "dims": (0,)}, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate(
        "strided", (2, 4, 2), {"shifts": (-1, 3), "dims": (0, -2)}, **same_layout(strided), **SMOKE_IN_ALL_DTYPES
    ),
    CaseTemplate("flat", (3, 4), {"shifts": (5,), "dims": ()}),
    CaseTemplate("flat-back", (3, 4), {"shifts": (-7,), "dims": ()}, layout=transposed),
    CaseTemplate("several", (3, 4, 5), {"shifts": (1, -2, 4), "dims": (2, 0, 1)}, **same_layout(transposed)),
    CaseTemplate("same-axis-twice", (3, 5), {"shifts": (1, 2, 1), "dims": (1, 0, -1)}),
    CaseTemplate("both-on-one-axis", (3, 7), {"shifts": (2, 3), "dims": (1, 1)}),
    CaseTemplate("once-around", (4, 3), {"shifts": (4, 0), "dims": (0, 1)}),
    CaseTemplate("further-than-around", (5, 3), {"shifts": (13, -8), "dims": (0, 1)}),
    CaseTemplate("beyond-int32", (7, 3), {"shifts": (2**33 + 3,), "dims": (0,)}),
    CaseTemplate("rank-5", (2, 3, 1, 4, 2), {"shifts": (1, -3), "dims": (-4, 3)}),
    CaseTemplate("cube", (4, 4, 4), {"shifts": (1, 2), "dims": (1, 0)}),
    CaseTemplate("scalar", (), {"shifts": (3,), "dims": ()}),
    CaseTemplate("empty", (0, 3), {"shifts": (1,), "dims": (0,)}),
    CaseTemplate("special", (19,), {"shifts": (7,), "dims": (0,)}, domains=SPECIAL),
    CaseTemplate("long", (1031,), {"shifts": (-300,), "dims": (-1,)}, dtypes=DtypeSelection.one_per_size),
    CaseTemplate("rows", (70_001, 3), {"shifts": (65_537,), "dims": (0,)}, large=True),
    CaseTemplate("half-six-axes", SIX_AXES, {"shifts": (-5, 40, 3), "dims": (0, 2, 4)}, **LARGE_HALF),
)
"""The templates of `diopiRoll`, which shifts elements cyclically; without `dims` it shifts the flattened tensor."""

REPEAT = (
    CaseTemplate("matrix", (3, 4), {"repeats_size": (3, 2)}, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("strided", (3, 3), {"repeats_size": (2, 1, 3)}, **same_layout(strided), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("columns", (3, 2), {"repeats_size": (1, 4)}, **same_layout(transposed)),
    CaseTemplate("leading", (3,), {"repeats_size": (2, 4, 1)}),
    CaseTemplate("once", (2, 3), {"repeats_size": (1, 1)}),
    CaseTemplate("rank-5", (2, 1, 3), {"repeats_size": (2, 1, 2, 3, 1)}),
    CaseTemplate("scalar", (), {"repeats_size": (2, 3)}, domains={"input": normal()}),
    CaseTemplate("scalar-to-scalar", (), {"repeats_size": ()}),
    CaseTemplate("never", (2, 3), {"repeats_size": (2, 0)}),
    CaseTemplate("empty", (0, 3), {"repeats_size": (2, 2)}),
    CaseTemplate("special", (19,), {"repeats_size": (2,)}, domains=SPECIAL),
    CaseTemplate("long", (5, 9), {"repeats_size": (7, 5)}, dtypes=DtypeSelection.one_per_size),
    CaseTemplate("plane", (67, 17), {"repeats_size": (5, 13)}, large=True),
    CaseTemplate("half-batch", (67, 17), {"repeats_size": (3, 7, 5)}, layout=strides(37, 2), **LARGE_HALF),
)
"""The templates of `diopiRepeat`, which tiles a tensor."""

UNFOLD = (
    CaseTemplate("overlapping", (7, 2), {"dim": 0, "size": 3, "step": 2}, **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("strided", (2, 5), {"dim": -1, "size": 2, "step": 1}, **same_layout(strided), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("middle", (2, 6, 3), {"dim": 1, "size": 4, "step": 1}, **same_layout(transposed)),
    CaseTemplate("apart", (11, 2), {"dim": -2, "size": 2, "step": 4}),
    CaseTemplate("remainder", (2, 8), {"dim": 1, "size": 3, "step": 3}),
    CaseTemplate("one-window", (3, 4), {"dim": 1, "size": 4, "step": 5}),
    CaseTemplate("single-elements", (5, 2), {"dim": 0, "size": 1, "step": 2}),
    CaseTemplate("no-elements", (3, 2), {"dim": 0, "size": 0, "step": 2}),
    CaseTemplate("vector", (9,), {"dim": 0, "size": 4, "step": 3}),
    CaseTemplate("rank-5", (2, 1, 7, 2, 3), {"dim": -3, "size": 3, "step": 2}),
    CaseTemplate("cube", (6, 6, 6), {"dim": 1, "size": 3, "step": 2}),
    CaseTemplate("scalar", (), {"dim": 0, "size": 1, "step": 1}, domains={"input": normal()}),
    CaseTemplate("scalar-without-elements", (), {"dim": -1, "size": 0, "step": 1}),
    CaseTemplate("empty", (0, 4), {"dim": 1, "size": 2, "step": 1}),
    CaseTemplate("special", (19,), {"dim": 0, "size": 4, "step": 3}, domains=SPECIAL),
    CaseTemplate("long", (431,), {"dim": 0, "size": 5, "step": 2}, dtypes=DtypeSelection.one_per_size),
)
"""The templates of `diopiUnfold`, which appends an axis for the elements of each window along `dim`; no large ones."""


def expand_template(
    label: str, shape: Shape, target: Shape, layout: Layout = contiguous, /, **fields: Unpack[TemplateFields]
) -> CaseTemplate[Shape]:
    """Return a template that broadcasts a tensor.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the input.
        target: The shape of the result.
        layout: The layout of input and result.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    result = ResultOverride(layout=layout, shape=target)
    return CaseTemplate(label, shape, **fields).replace(layout=layout, results={"out": result})


EXPAND = (
    expand_template("columns", (9, 1), (9, 4), **SMOKE_IN_ALL_DTYPES),
    expand_template("strided", (1, 3), (2, 2, 3), strided, **SMOKE_IN_ALL_DTYPES),
    expand_template("leading", (3,), (2, 4, 3)),
    expand_template("middle", (2, 1, 3), (2, 4, 3), transposed),
    expand_template("both-ends", (1, 3, 1), (2, 3, 4)),
    expand_template("scalar", (), (2, 3), domains={"input": normal()}),
    expand_template("rank-5", (3, 1, 2), (2, 1, 3, 4, 2)),
    expand_template("rank-7", (1, 3, 1, 2, 1, 2), (2, 3, 3, 2, 2, 3, 2)),
    expand_template("scalar-to-scalar", (), ()),
    expand_template("same-shape", (4, 3), (4, 3)),
    expand_template("to-none", (1, 3), (0, 3)),
    expand_template("special", (19, 1), (19, 3), domains=SPECIAL),
    expand_template("long", (1, 37), (33, 37), dtypes=DtypeSelection.one_per_size),
    expand_template("rows", (70_001, 1), (70_001, 3), large=True),
    expand_template("half-plane", (263, 1), PLANE, **LARGE_HALF).replace(layout=strides(31, 1)),
)
"""The templates of `diopiExpand`, which broadcasts a tensor."""


def next_axis(axis: int, rank: int) -> int:
    """Return the following axis (0 after the last one).

    Args:
        axis: An axis, which may count from the last axis.
        rank: The number of axes.

    Returns:
        The following axis. It counts from the last axis if `axis` does not, and vice versa, so that a call has both
        signs.
    """
    return (axis + 1) % rank - (rank if axis >= 0 else 0)


def cyclic_axes(axis: int, rank: int) -> tuple[int, ...]:
    """Return all axes in cyclic order, beginning with an axis.

    Args:
        axis: The first axis, which may count from the last axis.
        rank: The number of axes.

    Returns:
        The axes. If `axis` is negative, all other axes are not negative, and vice versa.
    """
    return tuple((axis + i) % rank - (rank if (axis < 0) == (i == 0) else 0) for i in range(rank))


TRANSPOSE_ALONG_OTHER_AXES = tuple(
    CaseTemplate(label, shape, {"dim0": axis, "dim1": next_axis(axis, len(shape))})
    for label, shape, axis in untested_axes()
)
"""Templates that swap each axis of each rank with the next one."""

PERMUTE_ALONG_OTHER_AXES = tuple(
    CaseTemplate(label.replace("axis", "from"), shape, {"dims": cyclic_axes(axis, len(shape))})
    for label, shape, axis in untested_axes()
)
"""Templates of cyclic permutations that start at each axis of each rank."""

FLIP_ALONG_OTHER_AXES = tuple(CaseTemplate(label, shape, {"dims": (axis,)}) for label, shape, axis in untested_axes())
"""Templates that reverse each axis of each rank."""

ROLL_ALONG_OTHER_AXES = tuple(
    CaseTemplate(label, shape, {"shifts": (7 * axis + 1,), "dims": (axis,)}) for label, shape, axis in untested_axes()
)
"""Templates that shift along each axis of each rank."""

UNFOLD_ALONG_OTHER_AXES = tuple(
    CaseTemplate(label, shape, {"dim": dim, "size": 2, "step": 1 + dim % 2})
    for label, shape, dim in untested_axes({(len(template.sizes), template.argument("dim")) for template in UNFOLD})
)
"""Templates of `diopiUnfold` for each axis of ranks 1 to 4 along which no template of `UNFOLD` has windows."""

LARGE_UNFOLD = (
    CaseTemplate("rows", (32_003, 3), {"dim": 0, "size": 5, "step": 3}, large=True),
    CaseTemplate("half-columns", (67, 1031), {"dim": 1, "size": 7, "step": 4}, layout=strides(2063, 2), **LARGE_HALF),
)
"""The large templates of `diopiUnfold`."""

FURTHER_ROLLS = tuple(
    CaseTemplate(f"by-{'-'.join(map(str, shifts))}", (4, 7, 3), {"shifts": shifts, "dims": dims})
    for shifts, dims in (
        ((9,), (0,)),
        ((-30,), (1,)),
        ((14, -14), (1, 2)),
        ((100, -101, 10), (-1, -2, -3)),
        ((85,), ()),
        ((-1000,), ()),
        ((-(2**40) - 1,), (1,)),
    )
)
"""Templates of shifts far beyond the length of an axis, in both directions, and of the flattened tensor."""

TEMPLATES_BY_FUNCTION = {
    "diopiTranspose": (*TRANSPOSE, *TRANSPOSE_ALONG_OTHER_AXES),
    "diopiPermute": (*PERMUTE, *PERMUTE_ALONG_OTHER_AXES),
    "diopiExpand": EXPAND,
    "diopiFlip": (*FLIP, *FLIP_ALONG_OTHER_AXES),
    "diopiRoll": (*ROLL, *ROLL_ALONG_OTHER_AXES, *FURTHER_ROLLS),
    "diopiRepeat": REPEAT,
    "diopiUnfold": (*UNFOLD, *UNFOLD_ALONG_OTHER_AXES, *LARGE_UNFOLD),
    "diopiTril": TRIANGLES,
    "diopiTriu": TRIANGLES,
}
"""By function name, the templates of functions that move the elements of their input without padding."""

EQUAL_ELEMENTS_REASONS = {
    "scalar": "all result elements are the only element of the input",
    "far-below": "the diagonal lies below all elements",
    "far-above": "the diagonal lies above all elements",
    "one-window": "the only window is at the start, whatever the step is",
}
"""Why wrong results can pass a case (`Case.non_discriminating`), by the start of the label."""


for function_name, templates in TEMPLATES_BY_FUNCTION.items():
    register(
        function_name, templates=templates, derive=derive_single_tensor(), non_discriminating=EQUAL_ELEMENTS_REASONS
    )


def unfolded_shape(sizes: Shape, dim: int, size: int, step: int) -> Shape:
    """Return the shape of the result of `diopiUnfold`.

    Args:
        sizes: The shape of the input.
        dim: The axis along which windows move.
        size: The number of elements of a window.
        step: The distance between the beginnings of windows.

    Returns:
        The shape; the last axis contains the elements of a window.
    """
    axis = dim % max(len(sizes), 1)
    return (*((n - size) // step + 1 if i == axis else n for i, n in enumerate(sizes)), size)


def unfold_backward_template(unfold: CaseTemplate[Shape]) -> CaseTemplate[Shape]:
    """Return a template of the gradient of a call of `diopiUnfold`.

    Args:
        unfold: The template of the call.

    Returns:
        The template. Its sizes are the shape of `grad_output`.
    """
    shape = unfolded_shape(unfold.sizes, *(unfold.argument(name) for name in ("dim", "size", "step")))
    return replace(unfold, sizes=shape, arguments={"input_sizes": unfold.sizes, **unfold.arguments}, domains={})


MANY_WINDOWS = CaseTemplate("exact", (3, 67), {"dim": 1, "size": 5, "step": 2}, dtypes=DtypeSelection.all)
"""A template of overlapping windows, whose integer gradients have exact sums."""

NON_FINITE_WINDOWS = CaseTemplate("undefined", (2, 5), {"dim": 1, "size": 3, "step": 1}, dtypes=DtypeSelection.all)
"""A template of overlapping windows, for infinite and NaN gradients."""

UNFOLD_BACKWARD = (
    *(unfold_backward_template(unfold) for unfold in UNFOLD),
    unfold_backward_template(MANY_WINDOWS).replace(domains={"grad_output": integer_values(-9, 9)}, exact=True),
    unfold_backward_template(NON_FINITE_WINDOWS).replace(domains={"grad_output": choice([1, -2, 3, inf, nan])}),
    *(unfold_backward_template(unfold) for unfold in UNFOLD_ALONG_OTHER_AXES),
    *(unfold_backward_template(unfold).replace(layout=contiguous) for unfold in LARGE_UNFOLD),
)
"""The templates of `diopiUnfoldBackward`, which adds up the gradients of all windows that contain an element."""

register(
    "diopiUnfoldBackward",
    templates=UNFOLD_BACKWARD,
    derive=derive_single_tensor(normal(), "grad_output"),
    non_discriminating=EQUAL_ELEMENTS_REASONS,
)


def padding_arguments(pad: tuple[int, ...], mode: str = "constant", value: float | None = None) -> Arguments:
    """Return the arguments of `diopiPad`.

    Args:
        pad: The margins before and after each axis, beginning with the last axis. Negative margins remove elements.
        mode: The source of the elements in the margins: "constant", or one of `INPUT_MODES`.
        value: The element in the margins for "constant"; None for the default.

    Returns:
        The arguments by name.
    """
    return {"pad": pad, "mode": mode, "value": value}


zero_padding = partial(padding_arguments, value=0.0)
"""Return the arguments of `diopiPad` for padding with zeros."""


INPUT_MODES = ("reflect", "replicate", "circular")
"""The modes of padding that fill margins with elements of the input."""

NEGATIVE_MARGINS: Mapping[str, Sequence[tuple[Shape, tuple[int, ...]]]] = {
    "constant": (
        ((7,), (-2, -3)),
        ((7,), (3, -5)),
        ((5, 6), (-1, -2, -2, -1)),
        ((4, 5, 6), (-2, 4, 3, -1, -1, 2)),
        ((2, 3, 4, 5), (2, -1, -1, 2, 0, 0, -1, 2)),
        ((4, 5), (-4, 3)),
        ((4, 5), (0, 0, 2, -3)),
    ),
    **{
        mode: (
            ((2, 7), (-2, -3)),
            ((3, 7), (2, -3)),
            ((1, 2, 5, 6), (-2, 3, 1, -2)),
            ((1, 2, 5, 6), (-1, -2, -2, -1)),
            ((1, 2, 4, 5, 6), (-1, 2, 2, -1, -2, 1)),
        )
        for mode in INPUT_MODES
    },
}
"""By mode of padding, pairs of a shape and its margins. Negative margins remove elements."""

PAD_TEMPLATES = (
    CaseTemplate("constant", (3, 2), zero_padding((1, 2)), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate(
        "constant-strided",
        (2, 3, 2),
        padding_arguments((1, 0, 0, 2), value=1),
        **same_layout(strided),
        **SMOKE_IN_ALL_DTYPES,
    ),
    CaseTemplate(
        "constant-every-axis", (2, 3, 4), padding_arguments((1, 2, 3, 0, 0, 1), value=-0.3), **same_layout(transposed)
    ),
    CaseTemplate("constant-cut", (4, 5), padding_arguments((-1, 2, 3, -2), value=2.5)),
    CaseTemplate("constant-cut-all", (4, 3), zero_padding((-2, -1))),
    CaseTemplate("constant-nan", (3, 4), padding_arguments((0, 1, 1, 0), value=nan)),
    CaseTemplate("constant-infinite", (3, 4), padding_arguments((1, 1), value=-inf)),
    CaseTemplate("constant-negative-zero", (2, 3), padding_arguments((1, 1), value=-0.0)),
    CaseTemplate("constant-rank-5", (3, 2, 3, 2, 3), padding_arguments((1, 0, 0, 1, -1, 1, 0, 1, 1, 0), value=7.5)),
    CaseTemplate("constant-no-margins", (3, 4), padding_arguments((), value=5.0)),
    CaseTemplate("constant-from-none", (0, 3), padding_arguments((1, 1, 2, 0), value=0.1)),
    CaseTemplate("reflect", (2, 5), padding_arguments((3, 1), "reflect"), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("reflect-strided", (1, 3, 4), padding_arguments((2, 3), "reflect"), **same_layout(strided)),
    CaseTemplate(
        "reflect-two-axes", (2, 2, 4, 5), padding_arguments((2, 1, 0, 3), "reflect"), **same_layout(channels_last)
    ),
    CaseTemplate("reflect-three-axes", (1, 2, 3, 4, 2), padding_arguments((1, 0, 2, 3, 2, 1), "reflect")),
    CaseTemplate("reflect-cut", (2, 6), padding_arguments((-3, 5), "reflect")),
    CaseTemplate("replicate", (2, 3), padding_arguments((4, 1), "replicate"), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate(
        "replicate-two-axes", (2, 4, 3), padding_arguments((0, 2, 5, 1), "replicate"), **same_layout(transposed)
    ),
    CaseTemplate("replicate-three-axes", (2, 3, 2, 4), padding_arguments((1, 0, 2, 3, 0, 1), "replicate")),
    CaseTemplate("replicate-cut", (2, 6), padding_arguments((-2, 3), "replicate")),
    CaseTemplate("circular", (2, 4), padding_arguments((3, 1), "circular"), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("circular-once-around", (2, 3), padding_arguments((3, 3), "circular"), **same_layout(strided)),
    CaseTemplate(
        "circular-two-axes", (1, 2, 4, 3), padding_arguments((2, 1, 0, 3), "circular"), **same_layout(channels_last)
    ),
    CaseTemplate("circular-three-axes", (1, 2, 3, 2, 4), padding_arguments((1, 2, 1, 0, 0, 2), "circular")),
    CaseTemplate("circular-cut", (2, 6), padding_arguments((2, -1), "circular")),
    CaseTemplate("circular-cut-front", (2, 6), padding_arguments((-1, 2), "circular")),
    CaseTemplate("constant-special", (19,), zero_padding((2, 1)), domains=SPECIAL),
    CaseTemplate("reflect-as-far-as-can-be", (1, 2, 4, 3), padding_arguments((2, 2, 3, 3), "reflect")),
    CaseTemplate(
        "replicate-long", (3, 331), padding_arguments((2, 40), "replicate"), dtypes=DtypeSelection.one_per_size
    ),
    CaseTemplate("constant-long", (3, 331), padding_arguments((5, 3), value=3.0), dtypes=DtypeSelection.one_per_size),
    *(CaseTemplate(f"{mode}-no-batch", (0, 3, 3), padding_arguments((1, 2), mode)) for mode in INPUT_MODES),
    *(CaseTemplate(f"{mode}-no-samples", (0, 2, 4, 3), padding_arguments((2, 1, 0, 3), mode)) for mode in INPUT_MODES),
    CaseTemplate("reflect-long", (3, 331), padding_arguments((7, 4), "reflect"), dtypes=DtypeSelection.one_per_size),
    CaseTemplate("constant-no-value", (3, 2), padding_arguments((2, 1)), dtypes=DtypeSelection.one_per_size),
    CaseTemplate("constant-converted", (2, 3), padding_arguments((1, 1, 0, 1), value=2.7), dtypes=DtypeSelection.all),
    *(
        CaseTemplate(f"{mode}-cut-{number}", shape, padding_arguments(pad, mode, 1.5 if mode == "constant" else None))
        for mode, shapes_and_margins in NEGATIVE_MARGINS.items()
        for number, (shape, pad) in enumerate(shapes_and_margins)
    ),
    CaseTemplate("plane", PLANE, zero_padding((3, 5, 7, 1)), large=True),
    CaseTemplate("half-rows", (70_001, 1), zero_padding((1, 2)), **LARGE_HALF),
)
"""The templates of `diopiPad`."""

register(
    "diopiPad",
    templates=PAD_TEMPLATES,
    derive=derive_single_tensor(),
    non_discriminating={"constant-no-margins": "there is no padding to fill"},
)


def _pads_bool_with_edges(prototype: Prototype, case: Case) -> bool:
    """Return whether a call reflects or replicates the elements of a bool tensor."""
    return case.dtype is Dtype.bool and case.arguments["mode"] in ("reflect", "replicate")


def _lacks_padding_value(prototype: Prototype, case: Case) -> bool:
    """Return whether a call pads with a constant but omits the constant."""
    return case.arguments["mode"] == "constant" and case.arguments["value"] is None


CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _pads_bool_with_edges, "torch.nn.functional.pad has no kernel for bool that repeats edges"
        ),
        CallsUndefinedInPyTorch(
            _lacks_padding_value,
            "torch.ops.aten.constant_pad_nd requires a number; its callers insert 0 for a missing number",
        ),
    ]
).declare("diopiPad")

CaseFacts(attribute_changes={"float32-matrix": [{"repeats_size": (2, 3)}]}).declare("diopiRepeat")
CaseFacts(attribute_changes={"float32-overlapping": [{"step": 1}, {"size": 2}, {"dim": 1, "size": 2}]}).declare(
    "diopiUnfold"
)
CaseFacts(attribute_changes={"float32-cube": [{"step": 3}, {"step": 3, "input_sizes": (6, 7, 6)}]}).declare(
    "diopiUnfoldBackward"
)
