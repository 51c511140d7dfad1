"""Cases of copies of a tensor: in another element type, to another place, in another memory format.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). Smoke cases belong to the shortest level of the
suite. Large cases belong to a level with the sizes of real models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import DtypeSet, all_dtypes, category, complexes, floating, half, integer
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, MemoryFormat
from diopi_test.cases.case import Case, ResultOverride, cases_for
from diopi_test.cases.domains import Domain, any_value, choice, half_zeros, normal, special, uniform
from diopi_test.cases.layouts import Layout, channels_last, contiguous, expanded, strided, strides, transposed
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, register, tensor
from diopi_test.cases.tensors import derive_single_tensor
from lib_rt.dtypes import integer_range, to_numpy
from lib_rt.formats import format_of, is_inexact

Shape = tuple[int, ...]
"""The sizes of a tensor."""

HALF: DtypeSet = (Dtype.float16,)
"""The element type of large half-precision cases."""

PLANE, SIX_AXES, EIGHT_AXES = (263, 257), (7, 3, 11, 5, 13, 5), (2, 5, 3, 2, 7, 3, 5, 11)
"""The shapes of large tensors with two, six and eight axes."""

FAR_AXES = strides(1, 3, 16, 49, 100, 701, 2104, 10_521)
"""A layout that stores a tensor of the shape `EIGHT_AXES` with reversed axes and gaps."""


def convertible_numbers(source: Dtype, target: Dtype) -> Domain:
    """Return a domain of numbers whose conversion is specified.

    Args:
        source: The element type of the numbers.
        target: The element type to which they are converted.

    Returns:
        The domain. Floating-point numbers for an integer type are in its range; other conversions accept all numbers.
    """
    if target is Dtype.bool:
        return half_zeros
    if category(source) < 2 or category(target) != 1:
        return any_value
    return uniform(-0.9, 250) if target is Dtype.uint8 else uniform(-120, 120)


def halfway_numbers(target: Dtype) -> Domain:
    """Return a domain of integers halfway between two neighboring numbers of a floating-point type.

    They are rounded to the number with an even significand. For floating-point sources, the domain also contains the
    least numbers that overflow.

    Args:
        target: The floating-point type to which the numbers are converted.

    Returns:
        The domain.
    """
    form = format_of(target)
    numbers = [sign * (2.0**form.precision + 2 * step + 1) for step in range(9) for sign in (1, -1)]
    beyond = [form.overflow, -form.overflow]
    return lambda rng, count, dtype: choice([*numbers, *beyond] if is_inexact(dtype) else numbers)(rng, count, dtype)


def _numbers_rounded_twice() -> Domain:
    """Return a domain of numbers just above or below the middle of two neighboring numbers of float16.

    Float32 rounds them to the middle. A conversion through float32 then rounds half of them to the wrong neighbor.
    """
    unit = 2.0 ** -format_of(Dtype.float16).precision  # half of the distance between 1 and the next number
    signs = (-1, 1)
    return choice(
        [sign * (1 + step * unit + side * 2.0**-40) for step in (1, 3, 5) for side in signs for sign in signs]
    )


def extreme_truncated_numbers(target: Dtype) -> Domain:
    """Return a domain of the floating-point numbers furthest from 0 that an integer type can hold when truncated.

    Args:
        target: The integer type to which the numbers are converted.

    Returns:
        The domain, which also contains half of these numbers.
    """
    low, high = integer_range(target)

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Return the extreme numbers for a floating-point type, in random order."""
        kind = to_numpy(dtype)
        beyond = np.array([low - 1.0, high + 1.0]).astype(kind)  # high + 1 is a power of two, low − 1 may round to low
        ends = [*np.nextafter(beyond, np.zeros_like(beyond)), *np.array([low, low / 2, high / 2]).astype(kind)]
        return choice([float(end) for end in ends])(rng, count, dtype)

    return draw


def conversion_template(
    source: Dtype,
    target: Dtype,
    label: str,
    shape: Shape,
    domain: Domain = any_value,
    layouts: tuple[Layout, Layout] = (contiguous, contiguous),
    target_shape: Shape | None = None,
    smoke: bool = False,
) -> CaseTemplate:
    """Return a template of a conversion.

    Args:
        source: The element type of the input, which is the type under test.
        target: The element type of the result.
        label: The end of the label.
        shape: The shape of the input.
        domain: The domain of the input.
        layouts: The layouts of the input and of the result.
        target_shape: The shape of the result, to which the input is broadcast; None for `shape`.
        smoke: Whether the cases are smoke cases.

    Returns:
        The template.
    """
    input_layout, output_layout = layouts
    numbers = tensor(*shape, domain=domain, layout=input_layout)
    result = ResultOverride(target, output_layout, shape if target_shape is None else target_shape)
    return CaseTemplate(
        f"to-{target.name}{label}",
        arguments={"input": numbers, "src": numbers},
        results={"out": result, "dest": result},
        dtypes=(source,),
        smoke=smoke,
    )


CONVERSION_SHAPES: Mapping[str, tuple[Shape, tuple[Layout, Layout]]] = {
    "-transposed": ((3, 4), (transposed, contiguous)),
    "-strided": ((2, 3, 2), (contiguous, strided)),
    "-channels-last": ((2, 3, 2, 2), (strided, channels_last)),
    "-scalar": ((), (contiguous, contiguous)),
    "-empty": ((0, 3), (contiguous, contiguous)),
    "-long": ((1031,), (contiguous, contiguous)),
}
"""By the end of the label, the shape, and the layouts of input and result."""

ROUNDING_TARGETS = {
    Dtype.float32: half,
    Dtype.float64: (*half, Dtype.float32),
    Dtype.int32: (*half, Dtype.float32),
    Dtype.int64: (Dtype.float32, Dtype.float64),
}
"""By source type, the target types that do not represent every number of the source type."""

F32, F64 = Dtype.float32, Dtype.float64
"""Short names for the source types whose conversion to integers is tested at the limits of the target."""

SPECIAL_TARGETS = (Dtype.bool, Dtype.int32, Dtype.int64, *floating)
"""The types to which NaN, infinities and subnormal numbers are converted."""

EXTREME_TARGETS = (*half, F32, Dtype.uint8, Dtype.bool)
"""The types to which extreme int64 numbers are converted."""


def basic_templates(all_pairs: bool) -> Iterator[CaseTemplate]:
    """Yield templates of conversions between pairs of element types.

    Args:
        all_pairs: Whether there is a template for every pair. Otherwise each type is converted to the next type, and
            float32 to every type.

    Yields:
        The templates. Conversions to the next type are smoke cases.
    """
    for position, source in enumerate(all_dtypes):
        for target in all_dtypes:
            is_next = target is all_dtypes[(position + 1) % len(all_dtypes)]  # every type once on each side
            if all_pairs or is_next or source is F32:
                yield conversion_template(
                    source, target, "", (3, 4), convertible_numbers(source, target), smoke=is_next
                )


CONVERSIONS = (
    *(
        conversion_template(source, target, label, shape, layouts=layouts)
        for source, target in ((F32, Dtype.float16), (Dtype.int64, F32))
        for label, (shape, layouts) in CONVERSION_SHAPES.items()
    ),
    *(
        conversion_template(source, target, "-special", (36,), special)
        for source in (*floating, *complexes)
        for target in SPECIAL_TARGETS
    ),
    *(
        conversion_template(source, target, "-halfway", (20,), halfway_numbers(target))
        for source, targets in ROUNDING_TARGETS.items()
        for target in targets
    ),
    conversion_template(F64, Dtype.float16, "-rounded-twice", (12,), _numbers_rounded_twice()),
    *(
        conversion_template(source, target, "-ends", (5,), extreme_truncated_numbers(target))
        for source in (F32, F64)
        for target in integer
    ),
    *(conversion_template(Dtype.int64, target, "-extreme", (8,), special) for target in EXTREME_TARGETS),
)
"""Templates of conversions with shapes, layouts and numbers that `basic_templates` does not have."""

BROADCAST_COPIES = tuple(
    conversion_template(source, target, label, shape, any_value if shape else normal(9), layouts, target_shape)
    for label, shape, target_shape, layouts in (
        ("-row", (3,), (2, 3), (contiguous, contiguous)),
        ("-column", (4, 1), (4, 3), (strided, transposed)),
        ("-scalar", (), (2, 3), (contiguous, strided)),
        ("-outer", (2, 1, 3), (5, 2, 4, 3), (transposed, strided)),
        ("-same", (4, 3), (4, 3), (transposed, transposed)),
    )
    for source, target in ((F32, F32), (Dtype.int32, F64))
)
"""Templates of copies to a larger tensor, to whose shape the source is broadcast."""

LARGE_CASTS = (
    conversion_template(F32, Dtype.float16, "", PLANE, convertible_numbers(F32, Dtype.float16)),
    conversion_template(Dtype.int64, F32, "", EIGHT_AXES, layouts=(FAR_AXES, contiguous)),
)
"""The large templates of `diopiCastDtype`; `register` receives copies that are marked as large."""

FAR_ROWS = strides(7_703, 1)
"""A layout that places rows of three numbers so far apart that 70,001 rows of float32 span more than 2^31 bytes."""

LARGE_COPIES = (
    LARGE_CASTS[0],
    conversion_template(
        F32, Dtype.float16, "", (70_001, 3), convertible_numbers(F32, Dtype.float16), (FAR_ROWS, contiguous)
    ).replace("huge"),
    conversion_template(
        F32, Dtype.int64, "", SIX_AXES, convertible_numbers(F32, Dtype.int64), (transposed, contiguous)
    ),
)
"""The large templates of `diopiCopyInp`; `register` receives copies that are marked as large."""

register(
    "diopiCastDtype",
    templates=(*basic_templates(all_pairs=True), *CONVERSIONS, *(cast.replace(large=True) for cast in LARGE_CASTS)),
)
register(
    "diopiCopyInp",
    templates=(
        *basic_templates(all_pairs=False),
        *CONVERSIONS,
        *BROADCAST_COPIES,
        *(copy.replace(large=True) for copy in LARGE_COPIES),
    ),
    non_discriminating={"to-float(32|64)-scalar": "all result elements are the only element of the input"},
)

MEMORY_FORMATS: Mapping[str, tuple[Shape, Layout, MemoryFormat, Layout]] = {
    "already-contiguous": ((3, 4), contiguous, MemoryFormat.Contiguous, contiguous),
    "strided": ((2, 3, 2), strided, MemoryFormat.Contiguous, contiguous),
    "transposed": ((4, 2, 3), transposed, MemoryFormat.Contiguous, contiguous),
    "from-channels-last": ((2, 3, 2, 4), channels_last, MemoryFormat.Contiguous, contiguous),
    "expanded": ((4, 3), expanded, MemoryFormat.Contiguous, contiguous),
    "channels-last": ((2, 3, 2, 2), contiguous, MemoryFormat.ChannelsLast, channels_last),
    "already-channels-last": ((2, 3, 4, 2), channels_last, MemoryFormat.ChannelsLast, channels_last),
    "channels-last-from-strided": ((2, 3, 2, 4), strided, MemoryFormat.ChannelsLast, channels_last),
    "channels-last-from-transposed": ((2, 3, 2, 4), transposed, MemoryFormat.ChannelsLast, channels_last),
    "channels-last-1d": ((2, 3, 4), contiguous, MemoryFormat.ChannelsLast1d, channels_last),
    "channels-last-3d": ((2, 3, 2, 4, 2), contiguous, MemoryFormat.ChannelsLast3d, channels_last),
    "preserve": ((3, 4), contiguous, MemoryFormat.Preserve, contiguous),
    "preserve-transposed": ((2, 3, 4), transposed, MemoryFormat.Preserve, transposed),
    "preserve-channels-last": ((2, 3, 4, 2), channels_last, MemoryFormat.Preserve, channels_last),
    "preserve-strided": ((2, 3, 4), strided, MemoryFormat.Preserve, contiguous),
    "preserve-expanded": ((4, 3), expanded, MemoryFormat.Preserve, contiguous),
    "scalar": ((), contiguous, MemoryFormat.Preserve, contiguous),
    "empty": ((0, 3, 2, 2), contiguous, MemoryFormat.ChannelsLast, channels_last),
    "long": ((33, 35), transposed, MemoryFormat.Contiguous, contiguous),
}
"""By label: shape and layout of the input, the requested memory format, and the layout of the result."""

CONTIGUOUS = tuple(
    CaseTemplate(
        label,
        shape,
        {"memoryFormat": int(order)},
        layout=layout,
        result_layout=result,
        **(SMOKE_IN_ALL_DTYPES if label in ("strided", "channels-last") else {}),
    )
    for label, (shape, layout, order, result) in MEMORY_FORMATS.items()
)
"""The templates of `diopiContiguous`, except for the large ones."""

LARGE_CONTIGUOUS = (
    CaseTemplate("eight-axes", EIGHT_AXES, {"memoryFormat": int(MemoryFormat.Contiguous)}, layout=FAR_AXES, large=True),
    CaseTemplate(
        "channels-last",
        (3, 37, 29, 31),
        {"memoryFormat": int(MemoryFormat.ChannelsLast)},
        result_layout=channels_last,
        large=True,
    ),
)
"""The large templates of `diopiContiguous`."""

register("diopiContiguous", templates=(*CONTIGUOUS, *LARGE_CONTIGUOUS), derive=derive_single_tensor())

UNCHANGED_TENSORS = (
    CaseTemplate("matrix", (3, 4), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("strided", (2, 3, 2), layout=strided),
    CaseTemplate("transposed", (4, 2, 3), layout=transposed),
    CaseTemplate("channels-last", (2, 3, 2, 2), layout=channels_last),
    CaseTemplate("scalar", ()),
    CaseTemplate("empty", (0, 3)),
    CaseTemplate("long", (1031,)),
)
"""Templates of tensors that keep their element type and memory format."""

LARGE_PLANE = CaseTemplate("plane", PLANE, large=True)
"""A template of a large matrix."""

LARGE_LINE = CaseTemplate("half", (70_001,), dtypes=HALF, large=True)
"""A template of a long vector in float16."""

register("diopiGetNativeMemoryFormat", templates=(*UNCHANGED_TENSORS, LARGE_PLANE), derive=derive_single_tensor())
register(
    "diopiNativeMemoryFormatCast",
    templates=[template.replace(arguments={"format": 0}) for template in (*UNCHANGED_TENSORS, LARGE_PLANE, LARGE_LINE)],
    derive=derive_single_tensor(name="in_"),
)


@cases_for("diopiTensorDestructionHook")
def tensor_destruction_hook_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield cases with the addresses of tensors, with a NULL address, and with an address that no tensor has."""
    for template in (*UNCHANGED_TENSORS, LARGE_PLANE):
        for dtype in (F32, Dtype.int64) if template.smoke else (F32,):
            pointed_tensor = tensor(*template.sizes, domain=any_value, layout=template.layout).resolve(dtype)
            yield Case(
                f"{dtype.name}-{template.label}",
                dtype,
                {"ptr": pointed_tensor},
                smoke=template.smoke is True,
                large=template.large,
            )
    for label, address in (("null", 0), ("unknown-address", 0x1000)):
        yield Case(f"float32-{label}", F32, {"ptr": address})
