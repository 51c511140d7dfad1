"""Sets of element types that prototypes accept, and the rules that determine the element type of a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from diopi_proto.types import Dtype, Number

DtypeSet = tuple[Dtype, ...]
"""Element types without repetition."""

half: DtypeSet = (Dtype.float16, Dtype.bfloat16)
"""Half-precision types."""

floating: DtypeSet = (*half, Dtype.float32, Dtype.float64)
"""Real floating-point types."""

signed: DtypeSet = (Dtype.int8, Dtype.int16, Dtype.int32, Dtype.int64)
"""Signed integer types."""

integer: DtypeSet = (*signed, Dtype.uint8)
"""Integer types that functions accept."""

boolean: DtypeSet = (Dtype.bool,)
"""Only bool."""

integral: DtypeSet = (*integer, *boolean)
"""Integer types and bool."""

index: DtypeSet = (Dtype.int64, Dtype.int32)
"""Types of indices, lengths and positions."""

index32: DtypeSet = (Dtype.int32,)
"""Only int32."""

index64: DtypeSet = (Dtype.int64,)
"""Only int64."""

complexes: DtypeSet = (Dtype.complex64, Dtype.complex128)
"""Complex types."""

numeric: DtypeSet = (*floating, *integer)
"""Real types except bool."""

real: DtypeSet = (*floating, *integral)
"""Real types, including bool."""

all_dtypes: DtypeSet = (*real, *complexes)
"""All types that functions accept."""

single: DtypeSet = (Dtype.float32,)
"""Only float32."""

narrow: DtypeSet = (*half, Dtype.float32)
"""Floating-point types of at most 32 bits."""

wide: DtypeSet = (Dtype.float32, Dtype.float64)
"""Floating-point types of at least 32 bits."""

COMPONENT = {Dtype.complex32: Dtype.float16, Dtype.complex64: Dtype.float32, Dtype.complex128: Dtype.float64}
"""The dtype of the real and imaginary part, by complex dtype."""

COMPLEX = {component: dtype for dtype, component in COMPONENT.items()}
"""The complex dtype, by the dtype of its real and imaginary part."""

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
"""The size of an element in bytes, by element type."""


def is_floating(dtype: Dtype) -> bool:
    """Return whether `dtype` is a real floating-point type."""
    return dtype in floating


def is_complex(dtype: Dtype) -> bool:
    """Return whether `dtype` is a complex type."""
    return dtype in COMPONENT


def category(dtype: Dtype) -> int:
    """Return the category of `dtype` as in type promotion: 0 bool, 1 integer, 2 floating-point, 3 complex."""
    if dtype is Dtype.bool:
        return 0
    return 3 if is_complex(dtype) else 2 if is_floating(dtype) else 1


def promote(first: Dtype, *remaining: Dtype) -> Dtype:
    """Return the common type of tensor operands.

    The rules are PyTorch's ("Type promotion documentation"), except that 0-d tensors are treated like all others.

    Args:
        first: the element type of the first operand.
        remaining: the element types of the remaining operands.

    Returns:
        The element type to which all operands are converted.
    """
    result = first
    for dtype in remaining:
        result = _promote_two(result, dtype)
    return result


def _promote_two(first: Dtype, second: Dtype) -> Dtype:
    """Return the element type to which PyTorch promotes two element types."""
    if first is second:
        return first
    low, high = sorted((first, second), key=lambda dtype: (category(dtype), ELEMENT_SIZE[dtype]))
    if category(low) == 2 and category(high) == 3:
        return COMPLEX[_promote_two(low, COMPONENT[high])]
    if category(low) != category(high):
        return high
    if set((low, high)) == set(half):
        return Dtype.float32
    if Dtype.uint8 in (low, high):
        return high if high is not Dtype.uint8 and ELEMENT_SIZE[high] > 1 else Dtype.int16
    return high


def promote_with_numbers(dtype: Dtype, scalars: Sequence[Number]) -> Dtype:
    """Return the common type of a tensor and numbers; a number of a higher category has its category's default type."""
    for scalar in scalars:
        if isinstance(scalar, float) and category(dtype) < 2:
            dtype = Dtype.float32
        elif isinstance(scalar, int) and not isinstance(scalar, bool) and dtype is Dtype.bool:
            dtype = Dtype.int64
    return dtype


def common_dtype(dtypes: Sequence[Dtype], scalars: Sequence[Number] = ()) -> Dtype:
    """Return the type to which tensors of the types `dtypes`, together with numbers, are converted."""
    return promote(*(promote_with_numbers(dtype, scalars) for dtype in dtypes))


ResultRule = Callable[[Sequence[Dtype]], Dtype]
"""A function from the element types of the tensor inputs, in order, to the element type of a result."""


def same(inputs: Sequence[Dtype]) -> Dtype:
    """Return the type of the first input."""
    return inputs[0]


def promoted(inputs: Sequence[Dtype]) -> Dtype:
    """Return the common type of all inputs."""
    return promote(*inputs)


def promoted_to_floating(inputs: Sequence[Dtype]) -> Dtype:
    """Return the common type of all inputs, or float32 if that is an integer type or bool."""
    dtype = promote(*inputs)
    return dtype if category(dtype) >= 2 else Dtype.float32


def summed(inputs: Sequence[Dtype]) -> Dtype:
    """Return the type of the first input, or int64 if that is an integer type or bool."""
    return inputs[0] if category(inputs[0]) >= 2 else Dtype.int64


def component(inputs: Sequence[Dtype]) -> Dtype:
    """Return the type of the first input, or the type of its components if it is complex."""
    return COMPONENT.get(inputs[0], inputs[0])


def statistic(inputs: Sequence[Dtype]) -> Dtype:
    """Return the type of the first input, or float32 if that is a half-precision type."""
    return Dtype.float32 if inputs[0] in half else inputs[0]


_ORDINALS = {0: "first", 1: "second", 2: "third", -1: "last"}
"""The position of a tensor input in words."""


def same_as_input(position: int) -> ResultRule:
    """Return the rule that a result has the type of the tensor input at `position`: 0 is the first, −1 the last."""

    def rule(inputs: Sequence[Dtype]) -> Dtype:
        return inputs[position]

    rule.__doc__ = f"The type of the {_ORDINALS[position]} tensor input."
    return rule


def caller_chosen(inputs: Sequence[Dtype]) -> Dtype:
    """Return float32, the default of PyTorch; the caller may choose any other type for the result."""
    return Dtype.float32


def constant(dtype: Dtype) -> ResultRule:
    """Return the rule that a result always has the type `dtype`."""

    def rule(inputs: Sequence[Dtype]) -> Dtype:
        return dtype

    rule.__doc__ = f"Always {dtype.name}."
    return rule


truth = constant(Dtype.bool)
"""The rule that a result is always bool."""

position = constant(Dtype.int64)
"""The rule that a result is always int64."""

position32 = constant(Dtype.int32)
"""The rule that a result is always int32."""

discrete_rules = (truth, position, position32)
"""The rules of results that are truth values or positions. Such a result is exact, in a tensor of any type."""


def leading_dtype(dtypes: Sequence[Dtype]) -> Dtype:
    """Return the element type that represents all of `dtypes`: float32, or the first type without float32."""
    return Dtype.float32 if Dtype.float32 in dtypes else dtypes[0]
