"""The results, element types and operations of the collectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from diopi_proto.types import Dtype

RESULTS = (
    ("DICL_SUCCESS", 0, "The call succeeded."),
    ("DICL_ERR_UNDEF", 0x1000, "The call failed, or the communicator has failed."),
)
"""The names, values and meanings of `diclResult_t`."""

UNIQUE_ID_BYTES = 128
"""The size of a unique id in bytes, unless the vendor's header defines another size."""


@final
@dataclass(frozen=True, kw_only=True)
class ElementType:
    """An element type of the collectives.

    Attributes:
        name: the name in `at::ScalarType`.
        value: the value in `at::ScalarType`.
        dtype: the same element type in the interface of the operators.
        reduces: whether every vendor implements `REQUIRED_OPERATIONS` for the type; for other types, vendors need only
            move elements.
    """

    name: str
    value: int
    dtype: Dtype
    reduces: bool = False


ELEMENT_TYPES = (
    ElementType(name="Byte", value=0, dtype=Dtype.uint8, reduces=True),
    ElementType(name="Char", value=1, dtype=Dtype.int8, reduces=True),
    ElementType(name="Short", value=2, dtype=Dtype.int16),
    ElementType(name="Int", value=3, dtype=Dtype.int32, reduces=True),
    ElementType(name="Long", value=4, dtype=Dtype.int64, reduces=True),
    ElementType(name="Half", value=5, dtype=Dtype.float16, reduces=True),
    ElementType(name="Float", value=6, dtype=Dtype.float32, reduces=True),
    ElementType(name="Double", value=7, dtype=Dtype.float64, reduces=True),
    ElementType(name="ComplexFloat", value=9, dtype=Dtype.complex64),
    ElementType(name="ComplexDouble", value=10, dtype=Dtype.complex128),
    ElementType(name="Bool", value=11, dtype=Dtype.bool),
    ElementType(name="BFloat16", value=15, dtype=Dtype.bfloat16, reduces=True),
    ElementType(name="UInt16", value=27, dtype=Dtype.uint16),
    ElementType(name="UInt32", value=28, dtype=Dtype.uint32),
    ElementType(name="UInt64", value=29, dtype=Dtype.uint64),
)
"""The element types of the interface, which have the names and values of PyTorch."""

OPERATIONS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM", "UNUSED")
"""The operations in the order of their values, which are those of c10d's `ReduceOp::RedOpType`."""

REQUIRED_OPERATIONS: Sequence[str] = ("SUM", "AVG", "PRODUCT", "MIN", "MAX")
"""Every vendor implements these operations for the types with `reduces`; AVG only for the floating-point types."""
