"""Convolutions over two and three spatial axes, transposed ones, their gradients, and their unrolled form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, ResultOverride, TensorSpec, cases_for
from diopi_test.cases.products import exact_numbers, label, with_special
from diopi_test.domains import Domain, normal, special, whole
from diopi_test.layouts import Layout, channels_last, contiguous, expanded, strided, transposed

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Setup:
    """A convolution: sizes and attributes for depth, height and width, of which two spatial axes take the last two.

    Attributes:
        label: the part of the case's label after the element type.
        input: spatial sizes of the input.
        batch: None for an input without its batch axis.
        bias: whether there is one.
        layout: of every tensor but the bias.
        smoke: whether cases of this setup belong to the smoke level.
    """

    label: str
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
    layout: Layout = contiguous
    smoke: bool = False

    def over(self, rank: int) -> Setup:
        """The setup for `rank` spatial axes."""
        lists = "input", "kernel", "stride", "padding", "dilation", "output_padding"
        return replace(self, **{name: getattr(self, name)[-rank:] for name in lists})

    def attributes(self, names: Sequence[str]) -> dict[str, Any]:
        """The attributes among `names`."""
        return {name: getattr(self, name) for name in names if name in ATTRIBUTES}

    @property
    def lead(self) -> Sizes:
        """The batch axis, if there is one."""
        return () if self.batch is None else (self.batch,)

    def convolved(self) -> Sizes:
        """Spatial sizes of the convolution's result."""
        axes = zip(self.input, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return tuple((size + 2 * pad - spread * (k - 1) - 1) // step + 1 for size, k, step, pad, spread in axes)

    def transposed(self) -> Sizes:
        """Spatial sizes of the transposed convolution's result."""
        axes = zip(self.input, self.kernel, self.stride, self.padding, self.dilation, self.output_padding, strict=True)
        return tuple((size - 1) * step - 2 * pad + far * (k - 1) + more + 1 for size, k, step, pad, far, more in axes)


ATTRIBUTES = ("stride", "padding", "dilation", "groups", "output_padding")

EVERY = (
    Setup("plain", input=(2, 3, 3), kernel=(1, 2, 3), smoke=True),
    Setup(
        "all-attributes",
        stride=(2, 2, 1),
        padding=(1, 1, 2),
        dilation=(1, 2, 3),
        input=(3, 6, 5),
        output_padding=(1, 1, 2),
        channels=(4, 6),
        groups=2,
        batch=1,
        layout=strided,
    ),
    Setup("channels-last", padding=(1, 0, 1), channels=(4, 3), layout=channels_last),
)
"""For all element types."""

EXACTLY = [setup.label for setup in EVERY]
"""The setups that come with whole numbers too."""

SOME = (
    Setup("stride", stride=(2, 3, 2)),
    Setup("padding", padding=(1, 2, 1)),
    Setup("dilation", dilation=(1, 2, 3)),
    Setup("groups", channels=(4, 6), groups=2),
    Setup("by-channel", channels=(3, 3), groups=3, batch=1),
    Setup("by-channel-doubled", channels=(3, 6), groups=3, batch=1, layout=channels_last),
    Setup("one-element-kernel", kernel=(1, 1, 1), input=(2, 3, 4), channels=(5, 3)),
    Setup("whole-image-kernel", input=(2, 3, 4), kernel=(2, 3, 4), stride=(2, 3, 2), channels=(3, 2)),
    Setup("order-of-strides", input=(5, 5, 5), kernel=(2, 2, 2), stride=(2, 2, 3), channels=(1, 2), batch=1),
    Setup("order-of-padding", input=(5, 5, 5), kernel=(2, 2, 2), stride=(3, 3, 3), padding=(1, 1, 0), channels=(1, 2)),
    Setup(
        "order-of-dilation", input=(6, 6, 6), kernel=(2, 2, 2), stride=(3, 3, 3), dilation=(2, 2, 1), channels=(2, 1)
    ),
    Setup("one-channel", channels=(1, 1), layout=transposed),
    Setup("no-bias", bias=False),
    Setup("unbatched", batch=None, padding=(1, 1, 0)),
    Setup("no-batch", batch=0),
    Setup("transposed", layout=transposed, stride=(1, 2, 1)),
    Setup("strides-past-the-kernel", kernel=(1, 2, 1), stride=(2, 3, 3), input=(3, 8, 7), batch=1),
    Setup("long", channels=(73, 2), input=(2, 3, 2), stride=(2, 3, 2), batch=1),
    Setup("three-by-three", input=(2, 7, 9), kernel=(3, 3, 3), padding=(1, 1, 1), channels=(5, 37), batch=1),
    Setup("strided-points", input=(3, 5, 7), kernel=(1, 1, 1), stride=(2, 2, 3), channels=(5, 3)),
    Setup("many-by-channel", input=(1, 4, 5), kernel=(1, 3, 3), padding=(0, 1, 1), channels=(35, 35), groups=35),
    Setup(
        "seven-by-seven",
        input=(3, 13, 11),
        kernel=(2, 7, 7),
        stride=(1, 2, 2),
        padding=(1, 3, 3),
        channels=(3, 4),
        batch=1,
    ),
    Setup("wide", input=(1, 2, 131), kernel=(1, 2, 3), channels=(2, 2), batch=1),
)
"""For float32, and every other one for float16."""

TRANSPOSED = (
    Setup("output-padding", stride=(2, 3, 2), output_padding=(1, 2, 1), input=(2, 2, 3)),
    Setup("output-padding-past-stride", dilation=(2, 3, 2), output_padding=(1, 2, 0), input=(2, 2, 3)),
    Setup("output-padding-no-bias", stride=(2, 2, 3), output_padding=(1, 0, 2), input=(2, 3, 2), bias=False),
)
"""More of those for transposed convolutions."""

LARGE_IMAGE = Setup("accumulated-positions", channels=(1, 2), input=(1, 33, 35), kernel=(1, 1, 2), batch=1)
"""Of which the gradients of kernel and bias are long sums."""

GROWING = Setup("accumulated", channels=(73, 2), input=(2, 3, 3), kernel=(2, 3, 3), batch=1, bias=False)
GRADIENTS = ("grad_input", "grad_weight", "grad_bias")


def _rank(prototype: Prototype) -> int:
    return 2 if "2d" in prototype.name else 3


def _is_transposed(prototype: Prototype) -> bool:
    return "Transpose" in prototype.name


def _setups(prototype: Prototype, dtype: Dtype) -> Iterator[Setup]:
    more = TRANSPOSED if _is_transposed(prototype) else ()
    some = {Dtype.float32: (*SOME, *more), Dtype.float16: (*SOME[::2], *more[::2])}
    for setup in (*EVERY, *some.get(dtype, ())):
        yield (setup if _is_transposed(prototype) else replace(setup, output_padding=(0, 0, 0))).over(_rank(prototype))


def _shapes(setup: Setup, is_transposed: bool) -> dict[str, Sizes]:
    """Shapes of the tensors, the result under "out"."""
    received, given = setup.channels
    outer, inner = (received, given) if is_transposed else (given, received)
    return {
        "input": (*setup.lead, received, *setup.input),
        "weight": (outer, inner // setup.groups, *setup.kernel),
        "bias": (given,),
        "out": (*setup.lead, given, *(setup.transposed() if is_transposed else setup.convolved())),
    }


def _tensors(prototype: Prototype, setup: Setup, dtype: Dtype, domain: Domain) -> dict[str, TensorSpec]:
    """Input, weight, bias and, under "grad_output", a gradient of the result."""
    shapes = _shapes(setup, _is_transposed(prototype))
    shapes["grad_output"] = shapes.pop("out")
    vector = strided if setup.layout is strided else contiguous
    return {
        name: TensorSpec(shape, dtype, domain, vector if name == "bias" else setup.layout)
        for name, shape in shapes.items()
    }


def _expanded(case: Case, name: str) -> Case:
    """The same case with a tensor argument expanded, as gradients of sums are."""
    return replace(case, arguments={**case.arguments, name: replace(case.arguments[name], layout=expanded)})


@cases_for("diopiConvolution2d", "diopiConvolution3d", "diopiConvTranspose2d", "diopiConvTranspose3d")
def convolutions(prototype: Prototype) -> Iterator[Case]:
    names = [p.name for p in prototype.arguments]

    def case(setup: Setup, dtype: Dtype, domain: Domain, *words: str, **options: Any) -> Case:
        tensors = _tensors(prototype, setup, dtype, domain)
        arguments = {
            "input": tensors["input"],
            "weight": tensors["weight"],
            "bias": tensors["bias"] if setup.bias else None,
            **setup.attributes(names),
        }
        out = {"out": ResultOverride(layout=setup.layout)}
        return Case(label(dtype, setup.label, *words), dtype, arguments, out, **options)

    for dtype in prototype.dtypes:
        for setup in _setups(prototype, dtype):
            yield case(setup, dtype, normal(), smoke=setup.smoke)
            if setup.label in EXACTLY:
                yield case(setup, dtype, exact_numbers, "exact", exact=True)
        yield with_special(case(EVERY[0].over(_rank(prototype)), dtype, normal(), "special"), "input")
    yield _expanded(case(EVERY[0].over(_rank(prototype)), Dtype.float32, normal(), "expanded"), "input")
    for dtype in half:
        yield case(GROWING.over(_rank(prototype)), dtype, whole(1, 7), exact=True)


@cases_for(
    "diopiConvolution2dBackward",
    "diopiConvolution3dBackward",
    "diopiConvTranspose2dBackward",
    "diopiConvTranspose3dBackward",
)
def gradients(prototype: Prototype) -> Iterator[Case]:
    names = [p.name for p in prototype.arguments]

    def case(
        setup: Setup, dtype: Dtype, domain: Domain, *words: str, absent: Sequence[str] = (), **options: Any
    ) -> Case:
        tensors = _tensors(prototype, setup, dtype, domain)
        sizes = tensors.pop("bias").shape if setup.bias else None
        arguments = {
            **{name: tensors[name] for name in ("grad_output", "input", "weight")},
            "bias_sizes": sizes,
            **setup.attributes(names),
        }
        layouts = {
            "grad_input": setup.layout,
            "grad_weight": setup.layout,
            "grad_bias": strided if setup.layout is strided else contiguous,
        }
        results = {
            name: None if name in absent or (name == "grad_bias" and not setup.bias) else ResultOverride(layout=layout)
            for name, layout in layouts.items()
        }
        words = (*words, *(f"no-{name}" for name in absent))
        return Case(label(dtype, setup.label, *words), dtype, arguments, results, **options)

    for dtype in prototype.dtypes:
        for setup in _setups(prototype, dtype):
            yield case(setup, dtype, normal(), smoke=setup.smoke)
            if setup.label in EXACTLY:
                yield case(setup, dtype, exact_numbers, "exact", exact=True)
            if setup.label == "plain":
                yield with_special(case(setup, dtype, normal(), "special"), "grad_output")
            if setup.label == "all-attributes":
                for unwanted in GRADIENTS:
                    yield case(setup, dtype, normal(), absent=[unwanted])
    yield _expanded(case(EVERY[0].over(_rank(prototype)), Dtype.float32, normal(), "expanded"), "grad_output")
    for dtype in half:
        for setup in (LARGE_IMAGE, replace(GROWING, channels=(2, 73), input=(2, 5, 5), padding=(0, 1, 1), bias=True)):
            yield case(setup.over(_rank(prototype)), dtype, whole(1, 7), exact=True)
    for wanted in GRADIENTS:
        others = [name for name in GRADIENTS if name != wanted]
        yield case(EVERY[0].over(_rank(prototype)), Dtype.float32, normal(), absent=others)


# --- Unrolled -----------------------------------------------------------------------------------------------------

PATCHES = (
    Setup("plain", input=(1, 4, 5), kernel=(1, 3, 2), smoke=True),
    Setup("all-attributes", input=(1, 6, 5), stride=(1, 2, 1), padding=(0, 1, 2), dilation=(1, 2, 3), layout=strided),
)
PATCHES_FEW = (
    Setup("stride", input=(1, 7, 6), stride=(1, 2, 3)),
    Setup("padding", padding=(0, 1, 2)),
    Setup("dilation", input=(1, 6, 5), dilation=(1, 2, 3)),
    Setup("order-of-strides", input=(1, 5, 5), kernel=(1, 2, 2), stride=(1, 2, 3)),
    Setup("order-of-dilation", input=(1, 6, 6), kernel=(1, 2, 2), stride=(1, 3, 3), dilation=(1, 2, 1)),
    Setup("transposed", layout=transposed, stride=(1, 1, 2)),
    Setup("channels-last", layout=channels_last, channels=(4, 4), padding=(0, 2, 0)),
    Setup("only-padding", kernel=(1, 1, 2), padding=(0, 1, 2), input=(1, 3, 2)),
    Setup("gaps", kernel=(1, 2, 1), stride=(1, 3, 2), input=(1, 8, 6)),
    Setup("whole-image", kernel=(1, 4, 3), input=(1, 4, 3)),
    Setup("unbatched", batch=None, padding=(0, 1, 1)),
    Setup("no-batch", batch=0),
    Setup("long", input=(1, 17, 16), channels=(2, 2), padding=(0, 1, 0), batch=1),
)


def _patch_attributes(setup: Setup) -> dict[str, Sizes]:
    return {
        "kernel_size": setup.kernel,
        "dilation": setup.dilation,
        "padding": setup.padding,
        "stride": setup.stride,
    }


def _patch_setups(dtype: Dtype) -> list[Setup]:
    few = (
        PATCHES_FEW if dtype is Dtype.float32 else PATCHES_FEW[::3] if dtype in (Dtype.float16, Dtype.complex64) else ()
    )
    return [setup.over(2) for setup in (*PATCHES, *few)]


@cases_for("diopiIm2Col")
def im2col(prototype: Prototype) -> Iterator[Case]:
    def case(setup: Setup, dtype: Dtype, domain: Domain, *words: str) -> Case:
        image = TensorSpec((*setup.lead, setup.channels[0], *setup.input), dtype, domain, setup.layout)
        out = ResultOverride(layout=transposed if setup.layout is channels_last else setup.layout)
        arguments = {"input": image, **_patch_attributes(setup)}
        return Case(label(dtype, setup.label, *words), dtype, arguments, {"out": out}, smoke=setup.smoke)

    for dtype in prototype.dtypes:
        for setup in _patch_setups(dtype):
            yield case(setup, dtype, normal())
        yield case(PATCHES[1].over(2), dtype, special, "special")


@cases_for("diopiCol2Im")
def col2im(prototype: Prototype) -> Iterator[Case]:
    def case(setup: Setup, dtype: Dtype, domain: Domain, *words: str, **options: Any) -> Case:
        rows, columns = setup.channels[0] * int(np.prod(setup.kernel)), int(np.prod(setup.convolved()))
        layout = transposed if setup.layout is channels_last else setup.layout
        patches = TensorSpec((*setup.lead, rows, columns), dtype, domain, layout)
        arguments = {"input": patches, "output_size": setup.input, **_patch_attributes(setup)}
        out = ResultOverride(layout=setup.layout)
        return Case(label(dtype, setup.label, *words), dtype, arguments, {"out": out}, **options)

    for dtype in prototype.dtypes:
        for setup in _patch_setups(dtype):
            yield case(setup, dtype, normal(), smoke=setup.smoke)
        for setup in PATCHES:
            yield case(setup.over(2), dtype, exact_numbers, "exact", exact=True)
