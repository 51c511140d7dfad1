"""Cases of convolutions and transposed convolutions, their gradients, and the functions im2col and col2im.

A template describes cases that differ only in their element type. The `sizes` of the templates are `Convolution`
objects. They have three spatial axes; functions with two spatial axes use the last two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases import half_sums
from diopi_test.cases.case import Case, ResultOverride, cases_for
from diopi_test.cases.domains import Domain, integer_values, special
from diopi_test.cases.facts import CallsUndefinedInPyTorch, CaseFacts
from diopi_test.cases.layouts import Layout, channels_last, contiguous, expanded, strided, strides, transposed
from diopi_test.cases.products import exact_numbers, partly_infinite
from diopi_test.cases.template import CaseTemplate, Derive, DtypeSelection, expand, tensor
from diopi_test.cases.windows import WINDOWS

Sizes = tuple[int, ...]
"""The sizes of a tensor, or one number per spatial axis, such as the stride."""


@dataclass(frozen=True, kw_only=True)
class Convolution:
    """The sizes and attributes of a convolution or a transposed convolution.

    Tuples with three entries describe depth, height and width.

    Attributes:
        input: The spatial sizes of the input.
        kernel: The spatial sizes of the kernel.
        stride, padding, dilation, groups: The arguments of these names.
        output_padding: The argument of transposed convolutions: how many elements are added to the end of each axis of
            the result. Convolutions ignore it.
        channels: The number of channels of the input and the number of channels of the result.
        batch: The number of samples; None for an input without a batch axis.
        bias: Whether the call has a bias.
    """

    input: Sizes = (2, 5, 4)
    kernel: Sizes = (2, 3, 2)
    stride: Sizes = (1, 1, 1)
    padding: Sizes = (0, 0, 0)
    dilation: Sizes = (1, 1, 1)
    output_padding: Sizes = (0, 0, 0)
    channels: tuple[int, int] = (2, 3)
    groups: int = 1
    batch: int | None = 2
    bias: bool = True

    def with_rank(self, rank: int) -> Convolution:
        """Return a copy that has only the last `rank` spatial axes."""
        tuple_names = "input", "kernel", "stride", "padding", "dilation", "output_padding"
        return replace(self, **{name: getattr(self, name)[-rank:] for name in tuple_names})

    @property
    def batch_shape(self) -> Sizes:
        """Return the leading part of the shapes of input and result: (batch,), or () if there is no batch axis."""
        return () if self.batch is None else (self.batch,)

    def result_sizes(self) -> Sizes:
        """Return the spatial sizes of the convolution's result."""
        axes = zip(self.input, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return tuple((size + 2 * pad - dilation * (k - 1) - 1) // step + 1 for size, k, step, pad, dilation in axes)

    def transposed_result_sizes(self) -> Sizes:
        """Return the spatial sizes of the transposed convolution's result."""
        axes = zip(self.input, self.kernel, self.stride, self.padding, self.dilation, self.output_padding, strict=True)
        return tuple(
            (size - 1) * step - 2 * pad + dilation * (k - 1) + extra + 1 for size, k, step, pad, dilation, extra in axes
        )

    def shapes(self, is_transposed: bool) -> dict[str, Sizes]:
        """Return the shapes of the tensors `grad_output`, `input`, `weight` and `bias` by name.

        Args:
            is_transposed: Whether to return the shapes of a transposed convolution instead of those of a convolution.

        Returns:
            The shapes. The shape of `grad_output` is also that of the result.
        """
        in_channels, out_channels = self.channels
        outer, inner = (in_channels, out_channels) if is_transposed else (out_channels, in_channels)
        return {
            "grad_output": (
                *self.batch_shape,
                out_channels,
                *(self.transposed_result_sizes() if is_transposed else self.result_sizes()),
            ),
            "input": (*self.batch_shape, in_channels, *self.input),
            "weight": (outer, inner // self.groups, *self.kernel),
            "bias": (out_channels,),
        }


ATTRIBUTES = ("stride", "padding", "dilation", "groups", "output_padding")
"""The names of the fields of `Convolution` that are arguments of the functions."""


def with_more_dtypes(
    dtypes: Sequence[Dtype], step: int, *templates: CaseTemplate[Convolution]
) -> tuple[CaseTemplate[Convolution], ...]:
    """Return copies of the templates in float32, some of them also in other element types.

    Args:
        dtypes: The other element types.
        step: The first template and every `step`-th template after it are also in `dtypes`.
        *templates: The templates.

    Returns:
        The copies.
    """
    return tuple(
        template.replace(dtypes=(Dtype.float32, *(() if number % step else dtypes)))
        for number, template in enumerate(templates)
    )


def replace_domain(
    template: CaseTemplate[Convolution], suffix: str, domain: Domain, **changes: Any
) -> CaseTemplate[Convolution]:
    """Return a copy of a template that has another domain and no smoke cases.

    A domain is a distribution or a set of values, from which the elements of a tensor are drawn.

    Args:
        template: The template.
        suffix: The end of the new label, after a dash; empty to keep the label.
        domain: The domain of all tensors.
        **changes: New values of other fields.

    Returns:
        The new template.
    """
    label = f"{template.label}-{suffix}" if suffix else template.label
    domains = dict.fromkeys(("grad_output", "input", "weight", "bias"), domain)
    return template.replace(label, domains=domains, smoke=False, **changes)


TEMPLATES_IN_ALL_DTYPES = (
    CaseTemplate("plain", Convolution(input=(2, 3, 3), kernel=(1, 2, 3)), dtypes=DtypeSelection.all, smoke=True),
    CaseTemplate(
        "all-attributes",
        Convolution(
            stride=(2, 2, 1),
            padding=(1, 1, 2),
            dilation=(1, 2, 3),
            input=(3, 6, 5),
            output_padding=(1, 1, 2),
            channels=(4, 6),
            groups=2,
            batch=1,
        ),
        dtypes=DtypeSelection.all,
        layout=strided,
    ),
    CaseTemplate(
        "channels-last",
        Convolution(padding=(1, 0, 1), channels=(4, 3)),
        dtypes=DtypeSelection.all,
        layout=channels_last,
    ),
)
"""Templates of all convolutions and gradients in every element type."""

TEMPLATES_IN_SOME_DTYPES = with_more_dtypes(
    (Dtype.float16,),
    2,
    CaseTemplate("stride", Convolution(stride=(2, 3, 2))),
    CaseTemplate("padding", Convolution(padding=(1, 2, 1))),
    CaseTemplate("dilation", Convolution(dilation=(1, 2, 3))),
    CaseTemplate("groups", Convolution(channels=(4, 6), groups=2)),
    CaseTemplate("by-channel", Convolution(channels=(3, 3), groups=3, batch=1)),
    CaseTemplate("by-channel-doubled", Convolution(channels=(3, 6), groups=3, batch=1), layout=channels_last),
    CaseTemplate("one-element-kernel", Convolution(kernel=(1, 1, 1), input=(2, 3, 4), channels=(5, 3))),
    CaseTemplate(
        "whole-image-kernel", Convolution(input=(2, 3, 4), kernel=(2, 3, 4), stride=(2, 3, 2), channels=(3, 2))
    ),
    CaseTemplate(
        "order-of-strides", Convolution(input=(5, 5, 5), kernel=(2, 2, 2), stride=(2, 2, 3), channels=(1, 2), batch=1)
    ),
    CaseTemplate(
        "order-of-padding",
        Convolution(input=(5, 5, 5), kernel=(2, 2, 2), stride=(3, 3, 3), padding=(1, 1, 0), channels=(1, 2)),
    ),
    CaseTemplate(
        "order-of-dilation",
        Convolution(input=(6, 6, 6), kernel=(2, 2, 2), stride=(3, 3, 3), dilation=(2, 2, 1), channels=(2, 1)),
    ),
    CaseTemplate("one-channel", Convolution(channels=(1, 1)), layout=transposed),
    CaseTemplate("no-bias", Convolution(bias=False)),
    CaseTemplate("unbatched", Convolution(batch=None, padding=(1, 1, 0))),
    CaseTemplate("no-batch", Convolution(batch=0)),
    CaseTemplate("transposed", Convolution(stride=(1, 2, 1)), layout=transposed),
    CaseTemplate("strides-past-the-kernel", Convolution(kernel=(1, 2, 1), stride=(2, 3, 3), input=(3, 8, 7), batch=1)),
    CaseTemplate("long", Convolution(channels=(73, 2), input=(2, 3, 2), stride=(2, 3, 2), batch=1)),
    CaseTemplate(
        "three-by-three", Convolution(input=(2, 7, 9), kernel=(3, 3, 3), padding=(1, 1, 1), channels=(5, 37), batch=1)
    ),
    CaseTemplate("strided-points", Convolution(input=(3, 5, 7), kernel=(1, 1, 1), stride=(2, 2, 3), channels=(5, 3))),
    CaseTemplate(
        "many-by-channel",
        Convolution(input=(1, 4, 5), kernel=(1, 3, 3), padding=(0, 1, 1), channels=(35, 35), groups=35),
    ),
    CaseTemplate(
        "seven-by-seven",
        Convolution(input=(3, 13, 11), kernel=(2, 7, 7), stride=(1, 2, 2), padding=(1, 3, 3), channels=(3, 4), batch=1),
    ),
    CaseTemplate("wide", Convolution(input=(1, 2, 131), kernel=(1, 2, 3), channels=(2, 2), batch=1)),
)
"""Templates of all convolutions and gradients in float32, every second of them also in float16.

In the templates "order-of-…", the attribute has another value on the last axis, and all axes have equal sizes. The
order in which a function applies the values of the attribute to the axes therefore changes only the result's values.
"""

OUTPUT_PADDING_TEMPLATES = with_more_dtypes(
    (Dtype.float16,),
    2,
    CaseTemplate("output-padding", Convolution(stride=(2, 3, 2), output_padding=(1, 2, 1), input=(2, 2, 3))),
    CaseTemplate(
        "output-padding-past-stride", Convolution(dilation=(2, 3, 2), output_padding=(1, 2, 0), input=(2, 2, 3))
    ),
    CaseTemplate(
        "output-padding-no-bias", Convolution(stride=(2, 2, 3), output_padding=(1, 0, 2), input=(2, 3, 2), bias=False)
    ),
)
"""Further templates of transposed convolutions and their gradients, with output padding."""

LONG_GRADIENT_SUMS = CaseTemplate(
    "accumulated-positions", Convolution(channels=(1, 2), input=(1, 33, 35), kernel=(1, 1, 2), batch=1)
)
"""A template of an image so large that the gradients of weight and bias are sums of many terms."""

LONG_SUMS = CaseTemplate(
    "accumulated", Convolution(channels=(73, 2), input=(2, 3, 3), kernel=(2, 3, 3), batch=1, bias=False)
)
"""A template of a convolution whose results are sums of many terms."""

_EQUAL_SHAPES = CaseTemplate(
    "alike",
    Convolution(input=(5, 5, 5), kernel=(2, 2, 2), stride=(3, 3, 3), padding=(1, 1, 1), channels=(1, 2), batch=1),
)
"""The first template of `EQUAL_SHAPES`."""

EQUAL_SHAPES = (
    _EQUAL_SHAPES,
    _EQUAL_SHAPES.with_sizes("alike-stride", stride=(4, 4, 4)),
    _EQUAL_SHAPES.with_sizes("alike-padding", padding=(0, 0, 0)),
    _EQUAL_SHAPES.with_sizes("alike-dilation", dilation=(2, 2, 2)),
)
"""Templates of four convolutions that have the same shapes of input, kernel and result.

Each of the last three changes one attribute of the first. A vendor that caches the first call by the shapes only then
fails.
"""

GRADIENT_NAMES = ("grad_input", "grad_weight", "grad_bias")
"""The names of the results of the gradient functions."""

GROUP_TEMPLATES = (
    CaseTemplate("groups-4", Convolution(channels=(8, 12), groups=4, input=(2, 5, 4))),
    CaseTemplate("groups-5", Convolution(channels=(10, 5), groups=5, input=(2, 5, 4), stride=(1, 2, 1))),
    CaseTemplate("groups-7-by-channel", Convolution(channels=(7, 14), groups=7, padding=(0, 1, 1))),
    CaseTemplate("groups-16", Convolution(channels=(32, 16), groups=16, input=(2, 4, 3), batch=1)),
    CaseTemplate(
        "groups-8",
        Convolution(**WINDOWS["dilation-2-stride-2"].attributes, input=(3, 5, 4), channels=(16, 8), groups=8),
    ),
)
"""Templates with 4 to 16 groups and different numbers of channels per group."""

SPECIAL_PATHS = (
    CaseTemplate(
        "three-by-three-of-16",
        Convolution(input=(1, 5, 6), kernel=(1, 3, 3), padding=(0, 1, 1), channels=(16, 32), batch=1),
        dtypes=(Dtype.float32, Dtype.float16),
    ),
    CaseTemplate(
        "by-channel-dilated",
        Convolution(input=(1, 7, 6), kernel=(1, 3, 3), dilation=(1, 2, 2), channels=(5, 5), groups=5, batch=1),
    ),
    CaseTemplate("grouped-points", Convolution(input=(1, 3, 5), kernel=(1, 1, 1), channels=(8, 12), groups=2, batch=1)),
    CaseTemplate("many-samples", Convolution(input=(1, 4, 3), kernel=(1, 3, 2), channels=(2, 3), batch=37)),
    CaseTemplate("from-one-channel", Convolution(input=(1, 5, 4), kernel=(1, 3, 2), channels=(1, 67), batch=1)),
    CaseTemplate("to-one-channel", Convolution(input=(1, 5, 4), kernel=(1, 3, 2), channels=(67, 1), batch=1)),
    CaseTemplate(
        "small-input",
        Convolution(input=(1, 2, 3), kernel=(1, 5, 4), padding=(0, 2, 2), channels=(3, 4), batch=1),
    ),
    CaseTemplate(
        "dilated-row", Convolution(input=(1, 4, 9), kernel=(1, 1, 3), dilation=(1, 1, 2), channels=(3, 4), batch=1)
    ),
    CaseTemplate(
        "dilated-column", Convolution(input=(1, 9, 4), kernel=(1, 3, 1), dilation=(1, 2, 1), channels=(3, 4), batch=1)
    ),
    CaseTemplate(
        "long-strides",
        Convolution(input=(1, 11, 13), kernel=(1, 3, 3), stride=(1, 3, 4), padding=(0, 1, 1), channels=(3, 4), batch=1),
    ),
)
"""Convolutions for which libraries have kernels of their own, such as Winograd's algorithm for kernels of 3 × 3."""


def windowed_templates(is_transposed: bool) -> Iterator[CaseTemplate[Convolution]]:
    """Yield templates of convolutions with the windows of real models (`WINDOWS`).

    Args:
        is_transposed: Whether the templates are for transposed convolutions, whose inputs have the sizes of the results
            of convolutions.

    Yields:
        One template per window.
    """
    for label, window in WINDOWS.items():
        size = window.COUNTS if is_transposed else window.lengths
        yield CaseTemplate(label, Convolution(**window.attributes, input=size, channels=(2, 3), batch=1))


def _is_transposed(prototype: Prototype) -> bool:
    """Return whether the function is a transposed convolution or its gradient."""
    return "Transpose" in prototype.name


LARGE_CONVOLUTIONS = (
    CaseTemplate(
        "images", Convolution(input=(2, 29, 31), kernel=(1, 3, 3), padding=(0, 1, 1), channels=(37, 41), batch=2)
    ),
    CaseTemplate(
        "half-points",
        Convolution(input=(1, 7, 7), kernel=(1, 1, 1), channels=(512, 131), batch=11),
        dtypes=(Dtype.float16,),
    ),
    CaseTemplate(
        "wide",
        Convolution(input=(1, 7, 7), kernel=(1, 3, 3), padding=(0, 1, 1), channels=(257, 37)),
        layout=channels_last,
    ),
    CaseTemplate(
        "by-channel",
        Convolution(input=(2, 29, 31), kernel=(1, 3, 3), dilation=(1, 2, 2), channels=(131, 131), groups=131, batch=1),
    ),
    CaseTemplate(
        "groups",
        Convolution(
            input=(3, 17, 19), kernel=(3, 3, 3), stride=(1, 2, 2), channels=(32, 64), groups=8, batch=1, bias=False
        ),
    ),
)
"""The templates of all convolutions and gradients with large sizes."""

STEM = CaseTemplate(
    "stem",
    Convolution(input=(1, 113, 112), kernel=(1, 7, 7), stride=(1, 2, 2), padding=(0, 3, 3), channels=(3, 23), batch=1),
)
"""A large template with the attributes of the first layer (the stem) of many networks for images.

Transposed convolutions do not use it, because their result would have a million elements.
"""


def _arguments(prototype: Prototype) -> Derive[Convolution]:
    """Return the function that derives the arguments of a call from a template, for `expand`.

    Args:
        prototype: The prototype of a convolution, a transposed convolution or a gradient.

    Returns:
        A function of a template and an element type, which returns the arguments by name.
    """
    rank = 2 if "2d" in prototype.name else 3
    attributes = [p.name for p in prototype.arguments if p.name in ATTRIBUTES]

    def arguments(template: CaseTemplate[Convolution], dtype: Dtype) -> Mapping[str, Any]:
        sizes = template.sizes.with_rank(rank)
        shapes = sizes.shapes(_is_transposed(prototype))
        tensors = {name: tensor(*shape, layout=template.layout) for name, shape in shapes.items()}
        bias = replace(tensors["bias"], layout=_vector_layout(template))
        return {
            **tensors,
            "bias": bias if sizes.bias else None,
            "bias_sizes": bias.shape if sizes.bias else None,
            **{name: getattr(sizes, name) for name in attributes},
        }

    return arguments


def _vector_layout(template: CaseTemplate[Convolution]) -> Layout:
    """Return the layout of the bias, a vector: strided if the template's layout is strided, otherwise contiguous."""
    return strided if template.layout is strided else contiguous


def _with_results(template: CaseTemplate[Convolution]) -> CaseTemplate[Convolution]:
    """Return a copy of the template whose results have the layout of its arguments.

    The result `grad_bias` has the layout of a vector. It is omitted if the call has no bias.
    """
    bias = ResultOverride(layout=_vector_layout(template)) if template.sizes.bias else None
    return template.replace(result_layout=template.layout, results={"grad_bias": bias, **template.results})


def _common_templates(prototype: Prototype, first: str) -> Iterator[CaseTemplate[Convolution]]:
    """Yield the templates that a function shares with its gradient.

    Args:
        prototype: The prototype of the function or gradient.
        first: The name of the first tensor argument. In one template, this tensor begins with infinity and ends with
            NaN. In another template, it is an expanded view, in which several elements share memory.

    Yields:
        The templates.
    """
    yield from (
        *TEMPLATES_IN_ALL_DTYPES,
        *TEMPLATES_IN_SOME_DTYPES,
        *(OUTPUT_PADDING_TEMPLATES if _is_transposed(prototype) else ()),
    )
    yield from (replace_domain(template, "exact", exact_numbers, exact=True) for template in TEMPLATES_IN_ALL_DTYPES)
    plain = TEMPLATES_IN_ALL_DTYPES[0].replace(smoke=False)
    yield plain.replace("plain-special", domains={first: partly_infinite})
    # PyTorch passes an expanded view for grad_output if the result of a convolution is summed up.
    view = replace(_arguments(prototype)(plain, Dtype.float32)[first], layout=expanded)
    yield plain.replace("plain-expanded", {first: view}, dtypes=DtypeSelection.leading)


def _model_templates(prototype: Prototype) -> Iterator[CaseTemplate[Convolution]]:
    """Yield the templates with the windows of real models, with many groups, and with large sizes."""
    yield from (*windowed_templates(_is_transposed(prototype)), *GROUP_TEMPLATES, *SPECIAL_PATHS)
    for template in LARGE_CONVOLUTIONS if _is_transposed(prototype) else (*LARGE_CONVOLUTIONS, STEM):
        yield template.replace(large=True)


@cases_for("diopiConvolution2d", "diopiConvolution3d", "diopiConvTranspose2d", "diopiConvTranspose3d")
def convolution_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of a convolution or a transposed convolution."""
    long_sums = replace_domain(LONG_SUMS, "", integer_values(1, 7), dtypes=half, exact=True)
    templates = [*_common_templates(prototype, "input"), long_sums, *_model_templates(prototype)]
    cases = expand(prototype, map(_with_results, templates), _arguments(prototype))
    return half_sums.reveal_half_sums(cases, half_sums.terms_of_convolution, addends=("bias",))


def without_gradients(template: CaseTemplate[Convolution], *omitted_names: str) -> CaseTemplate[Convolution]:
    """Return a copy of a template without smoke cases, whose caller does not request the results `omitted_names`."""
    label = "-".join([template.label, *(f"no-{name}" for name in omitted_names)])
    return template.replace(label, results=dict.fromkeys(omitted_names), smoke=False)


@cases_for(
    "diopiConvolution2dBackward",
    "diopiConvolution3dBackward",
    "diopiConvTranspose2dBackward",
    "diopiConvTranspose3dBackward",
)
def convolution_gradient_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of a function that computes the gradients of input, weight and bias."""
    long_sums = LONG_SUMS.with_sizes(channels=(2, 73), input=(2, 5, 5), padding=(0, 1, 1), bias=True)
    templates = [
        *_common_templates(prototype, "grad_output"),
        *(without_gradients(TEMPLATES_IN_ALL_DTYPES[1], name) for name in GRADIENT_NAMES),
        *(
            replace_domain(large, "", integer_values(1, 7), dtypes=half, exact=True)
            for large in (LONG_GRADIENT_SUMS, long_sums)
        ),
        *(
            without_gradients(
                TEMPLATES_IN_ALL_DTYPES[0], *(name for name in GRADIENT_NAMES if name != requested_name)
            ).replace(dtypes=DtypeSelection.leading)
            for requested_name in GRADIENT_NAMES
        ),
        *(() if _is_transposed(prototype) else EQUAL_SHAPES),
        *_model_templates(prototype),
    ]
    cases = expand(prototype, map(_with_results, templates), _arguments(prototype))
    return half_sums.reveal_half_sums(cases, half_sums.terms_of_gradients)


# Patches: im2col copies the patches of an image to the columns of a matrix, and col2im adds such columns to an image.

PATCHES = (
    CaseTemplate("plain", Convolution(input=(1, 4, 5), kernel=(1, 3, 2)), dtypes=DtypeSelection.all, smoke=True),
    CaseTemplate(
        "all-attributes",
        Convolution(input=(1, 6, 5), stride=(1, 2, 1), padding=(0, 1, 2), dilation=(1, 2, 3)),
        dtypes=DtypeSelection.all,
        layout=strided,
    ),
)
"""The templates of im2col and col2im in every element type."""

PATCHES_IN_SOME_DTYPES = with_more_dtypes(
    (Dtype.float16, Dtype.complex64),
    3,
    CaseTemplate("stride", Convolution(input=(1, 7, 6), stride=(1, 2, 3))),
    CaseTemplate("padding", Convolution(padding=(0, 1, 2))),
    CaseTemplate("dilation", Convolution(input=(1, 6, 5), dilation=(1, 2, 3))),
    CaseTemplate("order-of-strides", Convolution(input=(1, 5, 5), kernel=(1, 2, 2), stride=(1, 2, 3))),
    CaseTemplate(
        "order-of-dilation", Convolution(input=(1, 6, 6), kernel=(1, 2, 2), stride=(1, 3, 3), dilation=(1, 2, 1))
    ),
    CaseTemplate("transposed", Convolution(stride=(1, 1, 2)), layout=transposed),
    CaseTemplate("channels-last", Convolution(channels=(4, 4), padding=(0, 2, 0)), layout=channels_last),
    CaseTemplate("only-padding", Convolution(kernel=(1, 1, 2), padding=(0, 1, 2), input=(1, 3, 2))),
    CaseTemplate("gaps", Convolution(kernel=(1, 2, 1), stride=(1, 3, 2), input=(1, 8, 6))),
    CaseTemplate("whole-image", Convolution(kernel=(1, 4, 3), input=(1, 4, 3))),
    CaseTemplate("unbatched", Convolution(batch=None, padding=(0, 1, 1))),
    CaseTemplate("no-batch", Convolution(batch=0)),
    CaseTemplate("long", Convolution(input=(1, 17, 16), channels=(2, 2), padding=(0, 1, 0), batch=1)),
)
"""The templates of im2col and col2im in float32, every third of them also in float16 and complex64."""

LARGE_PATCH_SIZES = Convolution(
    input=(1, 67, 41), kernel=(1, 3, 5), stride=(1, 1, 2), padding=(0, 1, 2), channels=(7, 7)
)
"""The sizes of a large call of im2col or col2im."""

LARGE_PATCHES = CaseTemplate("images", LARGE_PATCH_SIZES, large=True)
"""A large template of im2col and col2im in float32."""

LARGE_FLOAT16_PATCHES = LARGE_PATCHES.with_sizes(input=(1, 67, 71), channels=(3, 3)).replace(dtypes=(Dtype.float16,))
"""A large template of im2col and col2im in float16."""

LARGE_IM2COL = (
    LARGE_PATCHES,
    LARGE_FLOAT16_PATCHES.replace("half-far-apart", layout=strides(100_003, 20_011, 263, 2)),
)
"""The large templates of `diopiIm2Col`."""

LARGE_COL2IM = (LARGE_PATCHES, LARGE_FLOAT16_PATCHES.replace("half"))
"""The large templates of `diopiCol2Im`."""


def _columns_layout(template: CaseTemplate[Convolution]) -> Layout:
    """Return the layout of the matrix of patches: that of the images, or transposed for images in channels-last."""
    return transposed if template.layout is channels_last else template.layout


@cases_for("diopiIm2Col", "diopiCol2Im")
def patch_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of im2col, or of col2im, which adds up elements where patches overlap."""
    unrolls = prototype.name == "diopiIm2Col"

    def arguments(template: CaseTemplate[Convolution], dtype: Dtype) -> Mapping[str, Any]:
        sizes = template.sizes.with_rank(2)
        rows, columns = sizes.channels[0] * int(np.prod(sizes.kernel)), int(np.prod(sizes.result_sizes()))
        image = tensor(*sizes.batch_shape, sizes.channels[0], *sizes.input, layout=template.layout)
        return {
            "input": image if unrolls else tensor(*sizes.batch_shape, rows, columns, layout=_columns_layout(template)),
            "output_size": sizes.input,
            "kernel_size": sizes.kernel,
            "dilation": sizes.dilation,
            "padding": sizes.padding,
            "stride": sizes.stride,
        }

    special_patches = [replace_domain(PATCHES[1], "special", special)]
    exact_patches = [replace_domain(template, "exact", exact_numbers, exact=True) for template in PATCHES]
    templates = (
        *PATCHES,
        *PATCHES_IN_SOME_DTYPES,
        *(special_patches if unrolls else exact_patches),
        *windowed_templates(False),
    )
    templates_with_layouts = (
        template.replace(result_layout=_columns_layout(template) if unrolls else template.layout)
        for template in templates
    )
    large = LARGE_IM2COL if unrolls else LARGE_COL2IM
    return expand(prototype, [*templates_with_layouts, *large], arguments)


CaseFacts(attribute_changes={"float32-plain": [{"kernel_size": (2, 3)}, {"dilation": (1, 2)}]}).declare("diopiIm2Col")


def _lacks_batch_axis(prototype: Prototype, case: Case) -> bool:
    """Return whether the input of the case has no batch axis, and so one axis less than the weight."""
    return len(case.arguments["input"].shape) < len(case.arguments["weight"].shape)


CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _lacks_batch_axis,
            "torch.ops.aten.convolution takes a batch; callers above it add the axis where there is none",
        )
    ]
).declare(
    *(
        f"diopi{kind}{rank}d{form}"
        for kind in ("Convolution", "ConvTranspose")
        for rank in (2, 3)
        for form in ("", "Backward")
    )
)
