"""Sets of element types that prototypes accept, and the rules that give a result its element type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from diopi_proto.types import Dtype, Number

DtypeSet = tuple[Dtype, ...]

half: DtypeSet = (Dtype.float16, Dtype.bfloat16)
floating: DtypeSet = (*half, Dtype.float32, Dtype.float64)
signed: DtypeSet = (Dtype.int8, Dtype.int16, Dtype.int32, Dtype.int64)
integer: DtypeSet = (*signed, Dtype.uint8)
boolean: DtypeSet = (Dtype.bool,)
integral: DtypeSet = (*integer, *boolean)
index: DtypeSet = (Dtype.int64, Dtype.int32)
index32: DtypeSet = (Dtype.int32,)
index64: DtypeSet = (Dtype.int64,)
complexes: DtypeSet = (Dtype.complex64, Dtype.complex128)
numeric: DtypeSet = (*floating, *integer)
real: DtypeSet = (*floating, *integral)
every: DtypeSet = (*real, *complexes)
single: DtypeSet = (Dtype.float32,)
narrow: DtypeSet = (*half, Dtype.float32)
wide: DtypeSet = (Dtype.float32, Dtype.float64)

COMPONENT = {Dtype.complex32: Dtype.float16, Dtype.complex64: Dtype.float32, Dtype.complex128: Dtype.float64}
"""The dtype of a complex number's real and imaginary part."""

COMPLEX = {part: whole for whole, part in COMPONENT.items()}
"""The dtype of a complex number with parts of a dtype."""

ELEMENT_SIZE = {
    Dtype.int8: 1,
    Dtype.uint8: 1,
    Dtype.bool: 1,
    Dtype.int16: 2,
    Dtype.uint16: 2,
    Dtype.float16: 2,
    Dtype.bfloat16: 2,
    Dtype.int32: 4,
    Dtype.uint32: 4,
    Dtype.float32: 4,
    Dtype.tfloat32: 4,
    Dtype.complex32: 4,
    Dtype.int64: 8,
    Dtype.uint64: 8,
    Dtype.float64: 8,
    Dtype.complex64: 8,
    Dtype.complex128: 16,
}
"""Bytes an element takes."""


def is_floating(dtype: Dtype) -> bool:
    """Whether `dtype` is a real floating type."""
    return dtype in floating


def is_complex(dtype: Dtype) -> bool:
    """Whether `dtype` is a complex type."""
    return dtype in COMPONENT


def category(dtype: Dtype) -> int:
    """Place of `dtype` among bool 0 < integer 1 < floating 2 < complex 3."""
    if dtype is Dtype.bool:
        return 0
    return 3 if is_complex(dtype) else 2 if is_floating(dtype) else 1


def promote(first: Dtype, *others: Dtype) -> Dtype:
    """The common type of tensor operands (PyTorch, "Type promotion documentation"; 0-d operands count as any other)."""
    result = first
    for other in others:
        result = _promote_two(result, other)
    return result


def _promote_two(one: Dtype, two: Dtype) -> Dtype:
    if one is two:
        return one
    low, high = sorted((one, two), key=lambda dtype: (category(dtype), ELEMENT_SIZE[dtype]))
    if category(low) == 2 and category(high) == 3:
        return COMPLEX[_promote_two(low, COMPONENT[high])]
    if category(low) != category(high):
        return high
    if set((low, high)) == set(half):
        return Dtype.float32
    if Dtype.uint8 in (low, high):
        return high if high is not Dtype.uint8 and ELEMENT_SIZE[high] > 1 else Dtype.int16
    return high


def lift(dtype: Dtype, scalars: Sequence[Number]) -> Dtype:
    """The type of a tensor of `dtype` together with numbers: one of a higher category gives that category's default."""
    for scalar in scalars:
        if isinstance(scalar, float) and category(dtype) < 2:
            dtype = Dtype.float32
        elif isinstance(scalar, int) and not isinstance(scalar, bool) and dtype is Dtype.bool:
            dtype = Dtype.int64
    return dtype


def common(dtypes: Sequence[Dtype], scalars: Sequence[Number] = ()) -> Dtype:
    """The type to which tensors of `dtypes` that meet, together with numbers, are converted."""
    return promote(*(lift(dtype, scalars) for dtype in dtypes))


ResultRule = Callable[[Sequence[Dtype]], Dtype]
"""From the element types of the tensor inputs, in order, to that of a result."""


def same(inputs: Sequence[Dtype]) -> Dtype:
    """The type of the first input."""
    return inputs[0]


def promoted(inputs: Sequence[Dtype]) -> Dtype:
    """The common type of all inputs."""
    return promote(*inputs)


def floated(inputs: Sequence[Dtype]) -> Dtype:
    """The common type of all inputs, float32 where that is an integer type or bool."""
    common = promote(*inputs)
    return common if category(common) >= 2 else Dtype.float32


def summed(inputs: Sequence[Dtype]) -> Dtype:
    """The type of the first input, int64 where that is an integer type or bool."""
    return inputs[0] if category(inputs[0]) >= 2 else Dtype.int64


def component(inputs: Sequence[Dtype]) -> Dtype:
    """The type of the first input, or of its parts where that is complex."""
    return COMPONENT.get(inputs[0], inputs[0])


def statistic(inputs: Sequence[Dtype]) -> Dtype:
    """The type of the first input, float32 where that is a half-precision type."""
    return Dtype.float32 if inputs[0] in half else inputs[0]


def like(position: int) -> ResultRule:
    """The rule that the result is of the type of the tensor input at `position`: 0 the first, −1 the last."""

    def rule(inputs: Sequence[Dtype]) -> Dtype:
        return inputs[position]

    rule.__doc__ = f"The type of tensor input {position}: 0 is the first, -1 the last."
    return rule


def chosen(inputs: Sequence[Dtype]) -> Dtype:
    """Whatever type the caller made the result with; float32, PyTorch's default, where nothing else is said."""
    return Dtype.float32


def always(dtype: Dtype) -> ResultRule:
    """The rule that the result is of `dtype` whatever the inputs are."""

    def rule(inputs: Sequence[Dtype]) -> Dtype:
        return dtype

    rule.__doc__ = f"Always {dtype.name}."
    return rule


truth = always(Dtype.bool)
position = always(Dtype.int64)
position32 = always(Dtype.int32)
whole = (truth, position, position32)
"""The rules of results without fractions, in a tensor of whatever type the caller made."""
