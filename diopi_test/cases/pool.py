"""Cases of pooling over the last one, two or three axes, and of its gradients.

A template describes cases that differ only in their element type (`diopi_test.cases.template`). Each template describes
three spatial axes. Functions with fewer spatial axes use the last of them. A kind is the name of a function without
`diopi` and the number of axes, such as "AdaptiveMaxPool".

A domain draws the values of a tensor (`diopi_test.cases.domains`). A case does not pass arguments whose names start
with `_`; it computes other arguments from them. Large cases belong to a level with the sizes of real models.
`Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from math import inf, nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOf, ResultOverride, cases_for
from diopi_test.cases.domains import choice, distinct, integer_values, normal, uniform, with_value_in_middle
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import channels_last, contiguous, expanded, strided, transposed
from diopi_test.cases.template import CaseTemplate, Derive, DtypeSelection, expand, tensor
from diopi_test.cases.windows import WINDOWS
from lib_rt.formats import format_of


def _draw_half_infinite(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return −∞ for the first half of the elements, and different numbers in random order for the other half."""
    values = distinct(rng, count, dtype)
    values[: count // 2] = -inf
    return values


def _draw_subnormal(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return different subnormal numbers of both signs, spread over their range, and zero, in random order."""
    form = format_of(dtype)
    multiples = rng.permutation(np.arange(count) - count // 2)
    return multiples * (2 * form.tiny // (form.subnormal * (count + 1))) * form.subnormal


def _draw_half_with_nans(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return different numbers, with about half of the numbers in the first half of the elements replaced by NaN."""
    values = distinct(rng, count, dtype)
    values[: count // 2][rng.random(count // 2) < 0.5] = nan
    return values


TIED_NUMBERS = choice([3.0, *[2.0] * 4, *[1.0] * 15])
"""A domain of the numbers 1, 2 and rarely 3. In most windows, several elements equal the maximum."""


@dataclass(frozen=True)
class PoolingSizes:
    """The sizes and attributes of pooling. Tuples describe depth, height and width.

    Functions with fewer spatial axes use the last one or two entries of a tuple.

    Attributes:
        input_sizes: The spatial sizes of the input.
        kernel: The sizes of a window.
        stride: The distances between the beginnings of neighboring windows. An empty tuple means the sizes of a window.
        padding: The number of elements added at either end of an axis.
        dilation: The distances between neighboring elements of a window.
        ceil_mode: Whether the last window may reach beyond the padded input.
        include_pad: Whether means count the elements of the padding.
        divisor: The number by which sums are divided; None for the number of elements.
        output_sizes: The spatial sizes of the result of adaptive pooling.
        leading_sizes: The sizes of the axes of the input before the spatial axes, such as (samples, channels).
        index_dtype: The element type of the positions of maxima.
    """

    input_sizes: tuple[int, ...]
    kernel: tuple[int, ...] = (2, 2, 2)
    stride: tuple[int, ...] = ()
    _: KW_ONLY
    padding: tuple[int, ...] = (0, 0, 0)
    dilation: tuple[int, ...] = (1, 1, 1)
    ceil_mode: bool = False
    include_pad: bool = True
    divisor: int | None = None
    output_sizes: tuple[int, ...] = (2, 2, 2)
    leading_sizes: tuple[int, ...] = (2, 2)
    index_dtype: Dtype = Dtype.int64

    def result_sizes(self, rank: int, kind: str) -> tuple[int, ...]:
        """Return the spatial sizes of the result.

        Args:
            rank: The number of spatial axes.
            kind: The kind of pooling. Only kinds with "Max" have a dilation, and kinds with "Adaptive" have the sizes
                `output_sizes`.

        Returns:
            The sizes.
        """
        if "Adaptive" in kind:
            return self.output_sizes[-rank:]
        dilation = self.dilation if "Max" in kind else (1, 1, 1)
        axes = zip(self.input_sizes, self.kernel, self.stride or self.kernel, self.padding, dilation, strict=True)
        return tuple(self._window_count(*axis) for axis in axes)[-rank:]

    def _window_count(self, size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
        """Return the number of windows along an axis.

        In ceil mode, the last window may reach beyond the padded input. But it must begin in the input or in the
        padding before the input.

        Args:
            size: The size of the input along the axis.
            kernel: The size of a window.
            stride: The distance between the beginnings of neighboring windows.
            padding: The number of elements added at either end.
            dilation: The distance between neighboring elements of a window.

        Returns:
            The number of windows.
        """
        free_length = size + 2 * padding - dilation * (kernel - 1) - 1
        if not self.ceil_mode:
            return free_length // stride + 1
        windows = -(-free_length // stride) + 1
        return windows - ((windows - 1) * stride >= size + padding)

    def attributes(self, rank: int) -> dict[str, Any]:
        """Return the attributes of all pooling functions by name.

        Args:
            rank: The number of spatial axes.

        Returns:
            The attributes; functions use different names for the same number.
        """
        return {
            "kernel_size": self.kernel[-rank:],
            "ksize": self.kernel[-rank:],
            "stride": self.stride[-rank:],
            "padding": self.padding[-rank:],
            "dilation": self.dilation[-rank:],
            "ceil_mode": self.ceil_mode,
            "count_include_pad": self.include_pad,
            "exclusive": not self.include_pad,
            "divisor_override": self.divisor,
            "output_size": self.output_sizes[-rank:],
        }


def _rank(prototype: Prototype) -> int:
    """Return the number of spatial axes that the function's name states."""
    match = re.search(r"([123])d", prototype.name)
    assert match
    return int(match[1])


def _derive_arguments(prototype: Prototype, kind: str) -> Derive[PoolingSizes]:
    """Return a function that derives the arguments of a pooling function or of its gradient from a template.

    Args:
        prototype: The prototype of the function or of its gradient.
        kind: The kind of pooling.

    Returns:
        The function. It takes a template and an element type, and returns the arguments by name.
    """
    rank = _rank(prototype)

    def arguments(template: CaseTemplate[PoolingSizes], dtype: Dtype) -> Mapping[str, Any]:
        """Return the arguments by name. The reference computes the positions of the maxima (`indices`)."""
        sizes, layout = template.sizes, template.layout
        attributes = sizes.attributes(rank)
        result = (*sizes.leading_sizes, *sizes.result_sizes(rank, kind))
        positions = ResultOf(f"diopi{kind}{rank}dWithIndices", "indices", extra_arguments=attributes)
        return {
            "input": tensor(*sizes.leading_sizes, *sizes.input_sizes[-rank:], domain=distinct, layout=layout),
            **attributes,
            "indices": tensor(*result, dtype=sizes.index_dtype, layout=layout, compute=positions)
            if "Max" in kind
            else None,
            "grad_output": tensor(*result, layout=layout),
        }

    return arguments


def _expand(
    prototype: Prototype,
    kind: str,
    templates: Iterable[CaseTemplate[PoolingSizes]],
    derive: Derive[PoolingSizes] | None = None,
) -> Iterator[Case]:
    """Return the cases of the templates.

    Args:
        prototype: The prototype of the function or of its gradient.
        kind: The kind of pooling, such as "MaxPool".
        templates: The templates.
        derive: Returns the arguments for a template and an element type; None for `_derive_arguments`.

    Returns:
        The cases.
    """
    return expand(prototype, map(_with_results, templates), derive or _derive_arguments(prototype, kind))


def _with_results(template: CaseTemplate[PoolingSizes]) -> CaseTemplate[PoolingSizes]:
    """Return the template with results in the layout of the input.

    Args:
        template: The template.

    Returns:
        The new template. Results are contiguous if the input is an expanded view, because results can't share memory.
    """
    layout = contiguous if template.layout is expanded else template.layout
    return template.replace(
        result_layout=layout, results={"indices": ResultOverride(template.sizes.index_dtype, layout)}
    )


F32_AND_F16, F32_AND_BF16 = (Dtype.float32, Dtype.float16), (Dtype.float32, Dtype.bfloat16)
"""Element types of templates for more types than float32."""

PLAIN = CaseTemplate(
    "plain", PoolingSizes((3, 5, 6), (2, 3, 2), (1, 2, 3), leading_sizes=(1, 3)), dtypes=floating, smoke=True
)
"""A template whose windows differ along every axis."""

PADDED = CaseTemplate("padded", PoolingSizes((4, 5, 6), (2, 3, 5), (2, 1, 3), padding=(1, 1, 2)), dtypes=floating)
"""A template whose windows differ along every axis, with padding."""

CEIL = CaseTemplate("ceil", PoolingSizes((5, 6, 8), (2, 3, 3), (2, 2, 2), ceil_mode=True), dtypes=floating)
"""A template whose last windows reach beyond the input (ceil mode)."""

CEIL_PADDED = CaseTemplate(
    "ceil-padded", PoolingSizes((4, 6, 6), (3, 3, 3), (2, 2, 2), padding=(1, 1, 1), ceil_mode=True)
)
"""A template whose last windows reach beyond the padded input (ceil mode)."""

BOX = CaseTemplate("box", PoolingSizes((4, 5, 6), (2, 3, 2), output_sizes=(3, 2, 4)))
"""A template for sliding and for adaptive pooling."""

LAYOUT_TEMPLATES = (
    BOX.with_sizes("unbatched", leading_sizes=(3,)),
    CaseTemplate("no-samples", PoolingSizes((4, 5, 6), (2, 3, 2), leading_sizes=(0, 3))),
    CaseTemplate("one-channel", PoolingSizes((3, 4, 7), (2, 2, 3), leading_sizes=(3, 1))),
    BOX.with_sizes("channels-last", leading_sizes=(2, 3)).replace(layout=channels_last, dtypes=F32_AND_F16),
    CaseTemplate(
        "many-channels-last",
        PoolingSizes((2, 3, 5), leading_sizes=(1, 37)),
        layout=channels_last,
        domains={"input": normal()},
    ),
    CaseTemplate("strided", PoolingSizes((3, 4, 6), (2, 2, 3)), layout=strided),
    CaseTemplate("transposed", PoolingSizes((3, 4, 5), (2, 3, 2)), layout=transposed),
    CaseTemplate("expanded", PoolingSizes((3, 4, 5), (2, 3, 2), leading_sizes=(3, 5)), layout=expanded),
)
"""Templates of various layouts and leading sizes, for every kind of pooling."""

SLIDING_TEMPLATES = (
    PLAIN,
    PADDED,
    CEIL,
    CEIL_PADDED,
    CEIL.with_sizes("floor", ceil_mode=False).replace(dtypes=DtypeSelection.leading),
    CaseTemplate("ceil-dropped", PoolingSizes((4, 4, 4), (2, 2, 2), (3, 3, 3), padding=(1, 1, 1), ceil_mode=True)),
    CaseTemplate("ceil-touching", PoolingSizes((3, 5, 8), (2, 3, 3), (4, 3, 3), padding=(1, 1, 1), ceil_mode=True)),
    CaseTemplate("ceil-fitting", PoolingSizes((4, 6, 6), (2, 2, 2), (2, 2, 2), ceil_mode=True)),
    CaseTemplate("default-stride", PoolingSizes((4, 6, 7), (2, 3, 3))),
    CaseTemplate("gaps", PoolingSizes((5, 7, 8), (2, 2, 2), (3, 4, 3))),
    CaseTemplate("overlapping", PoolingSizes((3, 5, 6), (2, 3, 4), (1, 1, 1)), dtypes=F32_AND_BF16),
    CaseTemplate("whole", PoolingSizes((3, 4, 5), (3, 4, 5), leading_sizes=(3, 5))),
    CaseTemplate("one-element-windows", PoolingSizes((3, 2, 4), (1, 1, 1))),
    CaseTemplate("wide", PoolingSizes((2, 3, 131), (1, 2, 3), (1, 1, 2), padding=(0, 1, 1), leading_sizes=(1, 2))),
    *LAYOUT_TEMPLATES,
)
"""Templates of maxima and means over sliding windows."""

DILATED = CaseTemplate("dilated", PoolingSizes((5, 6, 8), (2, 3, 3), (1, 2, 1), dilation=(2, 1, 3)), dtypes=floating)
"""A template whose windows have gaps between their elements (dilation). Only maximum pooling supports dilation."""

MAXIMUM_TEMPLATES = (
    DILATED,
    DILATED.with_sizes("dilated-padded", padding=(1, 1, 1)).replace(dtypes=DtypeSelection.leading),
    DILATED.with_sizes("dilated-ceil", padding=(1, 1, 1), stride=(2, 3, 3), ceil_mode=True).replace(
        dtypes=DtypeSelection.leading
    ),
    PADDED.replace("negative-padded", domains={"input": uniform(-9, -1)}),
    CEIL_PADDED.replace("negative-ceil-padded", domains={"input": uniform(-9, -1)}),
    PADDED.replace("minus-infinity-padded", domains={"input": _draw_half_infinite}, dtypes=DtypeSelection.leading),
    BOX.with_sizes("minus-infinity-channels-last", leading_sizes=(2, 3)).replace(
        layout=channels_last, domains={"input": _draw_half_infinite}
    ),
    PADDED.replace(
        "some-infinities",
        domains={"input": choice([*[-inf] * 12, -2.0, 1.5, 1.0, inf])},
        dtypes=DtypeSelection.leading,
    ),
    PADDED.replace("nan", domains={"input": with_value_in_middle(nan, distinct)}),
    PADDED.replace("ties", domains={"input": TIED_NUMBERS}, dtypes=F32_AND_F16),
    PADDED.replace("several-nan", domains={"input": _draw_half_with_nans}, dtypes=F32_AND_F16),
    PADDED.replace("subnormal", domains={"input": _draw_subnormal}, dtypes=F32_AND_F16),
    PADDED.with_sizes("indices32", index_dtype=Dtype.int32).replace(dtypes=DtypeSelection.leading),
)
"""Templates of maxima over sliding windows, but not of means."""

EXACT_FIELDS: Mapping[str, Any] = {"dtypes": floating, "exact": True}
"""The fields of templates with exact results."""

LARGE_INTEGERS = dict.fromkeys(("input", "grad_output"), integer_values(129, 255))
"""Domains of integers whose sums need more bits than half precision has."""

EXACT_SUMS = CaseTemplate(
    "exact",
    PoolingSizes((2, 4, 32), (2, 2, 16), (1, 2, 8), output_sizes=(1, 2, 2)),
    domains=LARGE_INTEGERS,
    **EXACT_FIELDS,
)
"""A template of means with exact results.

Float32 represents the sums exactly, and half precision does not. The divisors are powers of two.
"""

NEARLY_TOO_LARGE = uniform(50000, 65000)
"""A domain of numbers whose sums exceed the range of float16, while their means do not."""

MEAN_TEMPLATES = (
    PADDED.with_sizes("excluding-padding", include_pad=False),
    CEIL_PADDED.with_sizes("ceil-excluding-padding", include_pad=False),
    CEIL.with_sizes("ceil-excluding", include_pad=False).replace(dtypes=DtypeSelection.leading),
    PADDED.replace("nan", domains={"input": with_value_in_middle(nan, distinct)}, dtypes=DtypeSelection.leading),
    PADDED.replace("infinity", domains={"input": with_value_in_middle(inf, distinct)}, dtypes=DtypeSelection.leading),
    PADDED.with_sizes("large", include_pad=False).replace(domains={"input": NEARLY_TOO_LARGE}, dtypes=(Dtype.float16,)),
    EXACT_SUMS,
)
"""Templates of means over sliding windows, but not of maxima."""

DIVISORS = (
    PADDED.with_sizes("divided-by-3", divisor=3),
    PADDED.with_sizes("divided-by-minus-2", divisor=-2, include_pad=False).replace(dtypes=DtypeSelection.leading),
    CEIL_PADDED.with_sizes("ceil-divided-by-1", divisor=1),
)
"""Templates of means that are divided by an attribute instead of the number of elements."""

_EQUAL_SHAPES_TEMPLATE = CaseTemplate(
    "alike", PoolingSizes((5, 5, 5), (2, 2, 2), (3, 3, 3), padding=(1, 1, 1), leading_sizes=(1, 2))
)
"""A template for which input and result have the same shape."""

EQUAL_SHAPES = (
    _EQUAL_SHAPES_TEMPLATE,
    _EQUAL_SHAPES_TEMPLATE.with_sizes("alike-kernel", kernel=(3, 3, 3)),
    _EQUAL_SHAPES_TEMPLATE.with_sizes("alike-stride", stride=(4, 4, 4)),
    _EQUAL_SHAPES_TEMPLATE.with_sizes("alike-padding", padding=(0, 0, 0)),
)
"""Templates for which input and result have the same shape. Each further template changes one attribute of the first.

A function that ignores the attribute returns a result of the expected shape, but with other values.
"""

ADAPTIVE = (
    CaseTemplate(
        "plain", PoolingSizes((3, 5, 4), output_sizes=(2, 3, 3), leading_sizes=(1, 2)), dtypes=floating, smoke=True
    ),
    CaseTemplate("divisible", PoolingSizes((4, 6, 8), output_sizes=(2, 3, 4))),
    CaseTemplate("uneven", PoolingSizes((3, 7, 11), output_sizes=(2, 5, 4)), dtypes=floating),
    CaseTemplate("to-one", PoolingSizes((3, 4, 5), output_sizes=(1, 1, 1), leading_sizes=(3, 5)), dtypes=F32_AND_BF16),
    CaseTemplate("same-size", PoolingSizes((3, 2, 4), output_sizes=(3, 2, 4))),
    CaseTemplate("enlarging", PoolingSizes((3, 2, 4), output_sizes=(5, 3, 7))),
    CaseTemplate("one-axis-whole", PoolingSizes((3, 4, 6), output_sizes=(3, 1, 4))),
    CaseTemplate("wide", PoolingSizes((2, 3, 131), output_sizes=(1, 2, 67), leading_sizes=(1, 2))),
    CaseTemplate("no-result", PoolingSizes((3, 4, 5), output_sizes=(2, 0, 0))),
    CaseTemplate("negative", PoolingSizes((5, 7, 5), output_sizes=(3, 4, 2)), domains={"input": uniform(-9, -1)}),
    CaseTemplate(
        "nan", PoolingSizes((5, 7, 6), output_sizes=(3, 4, 4)), domains={"input": with_value_in_middle(nan, distinct)}
    ),
    *(template.with_sizes(template.label, output_sizes=(2, 3, 4)) for template in LAYOUT_TEMPLATES),
)
"""Templates of adaptive pooling, whose windows follow from the sizes of the result."""

LARGE_MEANS = ADAPTIVE[0].replace("large", domains={"input": NEARLY_TOO_LARGE}, dtypes=(Dtype.float16,), smoke=False)
"""A template of means in float16 of numbers whose sums exceed its range."""

ADAPTIVE_MAXIMA = (
    CaseTemplate(
        "ties", PoolingSizes((5, 7, 6), output_sizes=(3, 4, 4)), domains={"input": TIED_NUMBERS}, dtypes=F32_AND_F16
    ),
    CaseTemplate(
        "several-nan",
        PoolingSizes((5, 7, 6), output_sizes=(3, 4, 4)),
        domains={"input": _draw_half_with_nans},
        dtypes=F32_AND_F16,
    ),
    CaseTemplate(
        "subnormal",
        PoolingSizes((5, 7, 6), output_sizes=(3, 4, 4)),
        domains={"input": _draw_subnormal},
        dtypes=F32_AND_F16,
    ),
    CaseTemplate("minus-infinity", PoolingSizes((3, 4, 5)), domains={"input": _draw_half_infinite}),
    CaseTemplate("indices32", PoolingSizes((5, 7, 6), output_sizes=(3, 4, 4), index_dtype=Dtype.int32)),
)
"""Templates of adaptive pooling for maxima, but not for means."""

NAN_OF_MANY = CaseTemplate(
    "one-nan-of-many",
    PoolingSizes((2, 2, 1031), output_sizes=(1, 1, 515), leading_sizes=(1, 5)),
    domains={"input": with_value_in_middle(nan, integer_values(0, 99))},
    dtypes=floating,
)
"""A template of a long input with a single NaN.

Kernels compute maxima of many elements with vector instructions or with a library, which may lose the NaN.
"""

FEW_MAXIMA = {"input": choice([1.0, 2.0]), "grad_output": integer_values(513, 1023)}
"""Domains of inputs with many equal maxima, and of gradients that are integers."""

EXACT_GRADIENTS = CaseTemplate(
    "exact", PoolingSizes((3, 4, 6), (2, 2, 4), (1, 1, 1), output_sizes=(4, 5, 8)), domains=FEW_MAXIMA, **EXACT_FIELDS
)
"""A template of gradients in which many windows have the same maximum.

Float32 represents the sums of the windows' gradients exactly, and half precision does not.
"""


MODEL_WINDOWS = tuple(
    CaseTemplate(label, PoolingSizes(window.lengths, leading_sizes=(1, 2), ceil_mode=window.stride > 2)).with_sizes(
        **window.attributes
    )
    for label, window in WINDOWS.items()
)
"""A template for each window in `WINDOWS`, which come from real models."""

UNDILATED_MODEL_WINDOWS = tuple(template for template in MODEL_WINDOWS if template.sizes.dilation == (1, 1, 1))
"""The templates in `MODEL_WINDOWS` without dilation, which means can have, too."""

FURTHER_SIZES = (
    CaseTemplate("to-7", PoolingSizes((8, 13, 20), output_sizes=(7, 7, 7), leading_sizes=(1, 2))),
    CaseTemplate("to-6-from-less", PoolingSizes((5, 4, 3), output_sizes=(6, 6, 6), leading_sizes=(1, 2))),
    CaseTemplate("whole-plane", PoolingSizes((2, 33, 35), output_sizes=(1, 1, 1), leading_sizes=(1, 2))),
    CaseTemplate("to-odd", PoolingSizes((9, 16, 31), output_sizes=(2, 5, 11), leading_sizes=(1, 2))),
)
"""Templates with further sizes of results of adaptive pooling."""

TEMPLATES_BY_KIND: Mapping[str, Sequence[CaseTemplate[PoolingSizes]]] = {
    "MaxPool": (*SLIDING_TEMPLATES, *MAXIMUM_TEMPLATES, *MODEL_WINDOWS),
    "AvgPool": (*SLIDING_TEMPLATES, *MEAN_TEMPLATES, *DIVISORS, *EQUAL_SHAPES, *UNDILATED_MODEL_WINDOWS),
    "AdaptiveMaxPool": (*ADAPTIVE, *ADAPTIVE_MAXIMA, *FURTHER_SIZES),
    "AdaptiveAvgPool": (*ADAPTIVE, LARGE_MEANS, EXACT_SUMS, *FURTHER_SIZES),
}
"""The templates of each kind of pooling, without the large templates."""

LARGE_MANY_CHANNELS = CaseTemplate(
    "many-channels", PoolingSizes((3, 7, 91), (2, 3, 3), (1, 2, 2), padding=(1, 1, 1)), large=True
)
"""A large template with many channels; `_large_templates` sets their number."""

LARGE_LONG = CaseTemplate("long", PoolingSizes((3, 11, 1031), (3, 3, 2), (1, 2, 1)), large=True)
"""A large template with long rows; `_large_templates` sets the number of channels."""

LARGE_HALF = CaseTemplate(
    "half-channels-last",
    PoolingSizes((5, 13, 17), (3, 2, 3), (2, 1, 1), leading_sizes=(7, 131)),
    layout=channels_last,
    dtypes=(Dtype.float16,),
    domains={"input": normal()},
    large=True,
)
"""A large template in float16 whose channels are adjacent in memory."""

MANY_CHANNELS_SIZES = {1: (3, 509), 2: (1, 509), 3: (1, 131)}
"""The leading sizes (samples, channels) of `LARGE_MANY_CHANNELS`, by the number of spatial axes."""

LONG_ROWS_SIZES = {1: (3, 37), 2: (1, 19), 3: (1, 19)}
"""The leading sizes (samples, channels) of `LARGE_LONG`, by the number of spatial axes."""


def _large_templates(kind: str, rank: int) -> tuple[CaseTemplate[PoolingSizes], ...]:
    """Return the large templates of pooling.

    Args:
        kind: The kind of pooling.
        rank: The number of spatial axes.

    Returns:
        The templates: many channels, long rows, and half precision.
    """
    many_channels, long_rows = (
        LARGE_MANY_CHANNELS.with_sizes(leading_sizes=MANY_CHANNELS_SIZES[rank]),
        LARGE_LONG.with_sizes(leading_sizes=LONG_ROWS_SIZES[rank]),
    )
    if "Adaptive" not in kind:
        return many_channels, long_rows, LARGE_HALF
    return (
        many_channels.with_sizes(output_sizes=(2, 4, 46)),
        long_rows.with_sizes(output_sizes=(1, 7, 517)),
        LARGE_HALF.with_sizes(output_sizes=(3, 5, 7)),
    )


RANKS = (1, 2, 3)
"""The numbers of spatial axes for which there are functions."""

FORM_SUFFIXES = ("", "Backward", "WithIndices")
"""The ends of the functions' names: the result, the gradient, and (for maxima) the result with positions."""


WINDOW_REASONS = {
    "(MaxPool-)?dilation-[24]-stride-[24]": "the windows are far apart, so few elements have a gradient other than 0"
}
"""Why many wrong results can pass a case (`Case.non_discriminating`), by a regular expression for labels."""


@cases_for(
    *(
        f"diopi{k}{n}d{form}"
        for k in TEMPLATES_BY_KIND
        for n in RANKS
        for form in FORM_SUFFIXES[: 3 if "Max" in k else 2]
    ),
    non_discriminating=WINDOW_REASONS,
)
def pooling_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield the cases of a pooling function that is named after its kind, or of its gradient."""
    kind = next(kind for kind in TEMPLATES_BY_KIND if prototype.name.startswith(f"diopi{kind}"))
    has_divisor = any(p.name == "divisor_override" for p in prototype.arguments)
    yield from _expand(
        prototype,
        kind,
        (template for template in TEMPLATES_BY_KIND[kind] if has_divisor or template.sizes.divisor is None),
    )
    yield from _expand(prototype, kind, _large_templates(kind, _rank(prototype)))
    if "Max" in kind and not prototype.name.endswith("Backward"):
        yield from _expand(prototype, kind, [NAN_OF_MANY])
    if "Max" in kind and prototype.name.endswith("Backward"):
        yield from _expand(prototype, kind, [EXACT_GRADIENTS])
        yield from _foreign_index_cases(prototype, kind)


def _foreign_index_cases(prototype: Prototype, kind: str) -> Iterator[Case]:
    """Return a case of a gradient whose indices belong to another input.

    The gradient depends only on the shape of the input, so that the input can contain only NaN.

    Args:
        prototype: The prototype of the gradient.
        kind: The kind of pooling.

    Returns:
        The case, in an iterator.
    """

    def arguments(template: CaseTemplate[PoolingSizes], dtype: Dtype) -> Mapping[str, Any]:
        """Return the arguments by name. The indices are those of the tensor `_drawn`, which is not passed."""
        default_arguments = _derive_arguments(prototype, kind)(template, dtype)
        indices = default_arguments["indices"]
        positions = replace(indices.compute, argument_names={"input": "_drawn"})
        return {
            "_drawn": default_arguments["input"],
            **default_arguments,
            "indices": replace(indices, compute=positions),
        }

    template = ADAPTIVE[0] if "Adaptive" in kind else PADDED
    other_values = template.replace(
        "other-values", domains={"input": choice([nan])}, dtypes=DtypeSelection.leading, smoke=False
    )
    return _expand(prototype, kind, [other_values], arguments)


ZERO_ATTRIBUTES: Mapping[str, Any] = dict.fromkeys(("kernel", "stride", "padding", "dilation"), (0, 0, 0))
"""Attributes of a window that adaptive pooling must ignore."""

POOL_TEMPLATES = {
    ("max", False): ("MaxPool", (*SLIDING_TEMPLATES[:6], *MAXIMUM_TEMPLATES[:4], *LAYOUT_TEMPLATES[:4])),
    ("avg", False): (
        "AvgPool",
        (
            *(*SLIDING_TEMPLATES[:6], *MEAN_TEMPLATES, *LAYOUT_TEMPLATES[:4], *EQUAL_SHAPES),
            PADDED.with_sizes("dilation-ignored", dilation=(2, 2, 2), output_sizes=(1, 1, 1)),
            PADDED.replace("indices-ignored", {"indices": tensor(1, dtype=Dtype.int64, domain=choice([-7]))}),
        ),
    ),
    ("max", True): (
        "AdaptiveMaxPool",
        (*ADAPTIVE[:6], *ADAPTIVE_MAXIMA, *LAYOUT_TEMPLATES[:4], ADAPTIVE[2].with_sizes("zeros", **ZERO_ATTRIBUTES)),
    ),
    ("avg", True): (
        "AdaptiveAvgPool",
        (*ADAPTIVE[:6], *LAYOUT_TEMPLATES[:4], ADAPTIVE[2].with_sizes("zeros", **ZERO_ATTRIBUTES)),
    ),
}
"""The kind of pooling and the templates of `diopiPool`, by its arguments `mode` and `adaptive`.

Some templates have arguments that the kind of pooling must ignore.
"""

FURTHER_POOL_TEMPLATES = {
    ("max", False): ("MaxPool", MODEL_WINDOWS),
    ("avg", False): ("AvgPool", UNDILATED_MODEL_WINDOWS),
    ("max", True): ("AdaptiveMaxPool", FURTHER_SIZES),
    ("avg", True): ("AdaptiveAvgPool", FURTHER_SIZES),
}
"""The kind of pooling and further templates of `diopiPool`, by its arguments `mode` and `adaptive`."""


@cases_for(
    *(f"diopiPool{rank}d{form}" for rank in RANKS for form in FORM_SUFFIXES[:2]), non_discriminating=WINDOW_REASONS
)
def pool_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield the cases of `diopiPool`, whose arguments `mode` and `adaptive` choose the kind of pooling."""
    for (mode, adaptive), (kind, _) in POOL_TEMPLATES.items():
        many_channels, long_rows, half = _large_templates(kind, _rank(prototype))
        large = (
            template.replace(f"{kind}-{template.label}", {"mode": mode, "adaptive": adaptive})
            for template in (many_channels, half if mode == "max" else long_rows)
        )
        yield from _expand(prototype, kind, large)
    for (mode, adaptive), (kind, templates) in (*POOL_TEMPLATES.items(), *FURTHER_POOL_TEMPLATES.items()):
        selected_templates = (
            template.replace(
                f"{kind}-{template.label}",
                {"mode": mode, "adaptive": adaptive},
                dtypes=template.dtypes if template.smoke or template.exact else DtypeSelection.leading,
                smoke=template.smoke if mode == "max" or not template.smoke else (Dtype.float32,),
            )
            for template in templates
        )
        yield from _expand(prototype, kind, selected_templates)


for pooling_kind in ("MaxPool", "AdaptiveMaxPool"):
    for rank in RANKS:
        CaseFacts(saved={"indices": ResultOf(f"diopi{pooling_kind}{rank}dWithIndices", "indices")}).declare(
            f"diopi{pooling_kind}{rank}dBackward"
        )
        CaseFacts(finds_extremes=True).declare(f"diopi{pooling_kind}{rank}d", f"diopi{pooling_kind}{rank}dWithIndices")
