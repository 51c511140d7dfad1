"""The types of the interface: its enumerations, and the value types `Scalar` and `Size`.

Names and values are those of the C headers; `C_ENUMERATORS` contains the names of the enumerators in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

VERSION = (1, 0, 0)
"""Version of the interface: major, minor, patch."""

VERSION_NUMBER = VERSION[0] * 1000 + VERSION[1] * 100 + VERSION[2]
"""The value of the C macro `DIOPI_VERSION`."""


class Dtype(IntEnum):
    """Element type of a tensor, `diopiDtype_t`."""

    int8 = 0
    uint8 = 1
    int16 = 2
    uint16 = 3
    int32 = 4
    uint32 = 5
    int64 = 6
    uint64 = 7
    float16 = 8
    float32 = 9
    float64 = 10
    bool = 11
    bfloat16 = 12
    tfloat32 = 13
    complex32 = 14
    complex64 = 15
    complex128 = 16
    unsupported = 255


class Error(IntEnum):
    """The error code that a call returns, `diopiError_t`; two names are misspelled here because they are in C."""

    Success = 0
    ErrorOccurred = 1
    NotInited = 2
    NoRegisteredStreamCreateFunction = 3
    NoRegisteredStreamDestoryFunction = 4
    NoRegisteredStreamSyncFunction = 5
    NoRegisteredDeviceMemoryMallocFunction = 6
    NoRegisteredDeviceMemoryFreeFunction = 7
    NoRegisteredDevice2DdeviceMemoryCopyFunction = 8
    NoRegisteredDevice2HostMemoryCopyFunction = 9
    NoRegisteredHost2DeviceMemoryCopyFunction = 10
    NoRegisteredGetLastErrorFunction = 11
    _5DNotSupported = 12
    NoImplement = 13
    ForceFallbackToCPU = 14
    DtypeNotSupported = 1000


class Device(IntEnum):
    """The kind of memory that a tensor is in, `diopiDevice_t`."""

    host = 0
    device = 1


class MemoryFormat(IntEnum):
    """Order of a tensor's axes in memory, `diopiMemoryFormat_t`."""

    Contiguous = 0
    ChannelsLast = 1
    ChannelsLast3d = 2
    Preserve = 3
    ChannelsLast1d = 4


class Reduction(IntEnum):
    """How a loss reduces the losses of the elements, `diopiReduction_t`; `END` and greater values are errors."""

    none = 0
    mean = 1
    sum = 2
    END = 3


class RoundMode(IntEnum):
    """Rounding of a quotient, `diopiRoundMode_t`; `END` and greater values are errors."""

    none = 0
    trunc = 1
    floor = 2
    END = 3


C_ENUMERATORS: dict[type[IntEnum], tuple[tuple[str, int], ...]] = {
    Dtype: tuple((f"diopi_dtype_{member.name}", member.value) for member in Dtype),
    Error: tuple((f"diopi{member.name.removeprefix('_')}", member.value) for member in Error),
    Device: tuple((f"diopi_{member.name}", member.value) for member in Device),
    MemoryFormat: tuple((member.name, member.value) for member in MemoryFormat),
    Reduction: tuple(
        (f"Reduction{member.name if member.name.isupper() else member.name.title()}", member.value)
        for member in Reduction
    ),
    RoundMode: tuple(
        (f"RoundMode{member.name if member.name.isupper() else member.name.title()}", member.value)
        for member in RoundMode
    ),
}
"""The enumerators of each C enum, in order: (C name, value)."""

Number = bool | int | float
"""The Python types of a number that is passed as an attribute."""


@dataclass(frozen=True)
class Scalar:
    """A number with its element type, `diopiScalar_t`.

    The payload is an integer for integer dtypes and bool, and a double for floating-point dtypes.

    Attributes:
        dtype: the element type.
        value: the number.
    """

    dtype: Dtype
    value: Number

    @classmethod
    def from_number(cls, value: Number) -> Scalar:
        """Return the scalar for a Python number of type bool (bool), int (int64) or float (float64).

        Raises:
            TypeError: The value has another type.
        """
        if isinstance(value, bool):
            return cls(Dtype.bool, int(value))
        if isinstance(value, int):
            return cls(Dtype.int64, int(value))
        if isinstance(value, float):
            return cls(Dtype.float64, value)
        raise TypeError(f"value is {value!r}, expected a bool, int or float")

    @property
    def is_integer(self) -> bool:
        """Whether the payload is the integer member of the C union."""
        return self.dtype <= Dtype.uint64 or self.dtype is Dtype.bool

    @property
    def number(self) -> Number:
        """The value as a bool, int or float, according to the dtype."""
        if self.dtype is Dtype.bool:
            return bool(self.value)
        return int(self.value) if self.is_integer else float(self.value)


Size = Sequence[int]
"""A list of sizes, axes or strides, `diopiSize_t`."""
