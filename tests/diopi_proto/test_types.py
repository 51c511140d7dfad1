"""The enumerations have the names and values of the C interface, and scalars use the payload of their type."""

from enum import IntEnum

import pytest

from diopi_proto.types import (
    C_ENUMERATORS,
    VERSION,
    VERSION_NUMBER,
    Device,
    Dtype,
    Error,
    MemoryFormat,
    Reduction,
    RoundMode,
    Scalar,
)

C_VALUES: dict[type[IntEnum], dict[str, int]] = {
    Dtype: {
        "diopi_dtype_int8": 0,
        "diopi_dtype_uint8": 1,
        "diopi_dtype_int16": 2,
        "diopi_dtype_uint16": 3,
        "diopi_dtype_int32": 4,
        "diopi_dtype_uint32": 5,
        "diopi_dtype_int64": 6,
        "diopi_dtype_uint64": 7,
        "diopi_dtype_float16": 8,
        "diopi_dtype_float32": 9,
        "diopi_dtype_float64": 10,
        "diopi_dtype_bool": 11,
        "diopi_dtype_bfloat16": 12,
        "diopi_dtype_tfloat32": 13,
        "diopi_dtype_complex32": 14,
        "diopi_dtype_complex64": 15,
        "diopi_dtype_complex128": 16,
        "diopi_dtype_unsupported": 255,
    },
    Error: {
        "diopiSuccess": 0,
        "diopiErrorOccurred": 1,
        "diopiNotInited": 2,
        "diopiNoRegisteredStreamCreateFunction": 3,
        "diopiNoRegisteredStreamDestoryFunction": 4,
        "diopiNoRegisteredStreamSyncFunction": 5,
        "diopiNoRegisteredDeviceMemoryMallocFunction": 6,
        "diopiNoRegisteredDeviceMemoryFreeFunction": 7,
        "diopiNoRegisteredDevice2DdeviceMemoryCopyFunction": 8,
        "diopiNoRegisteredDevice2HostMemoryCopyFunction": 9,
        "diopiNoRegisteredHost2DeviceMemoryCopyFunction": 10,
        "diopiNoRegisteredGetLastErrorFunction": 11,
        "diopi5DNotSupported": 12,
        "diopiNoImplement": 13,
        "diopiForceFallbackToCPU": 14,
        "diopiDtypeNotSupported": 1000,
    },
    Device: {"diopi_host": 0, "diopi_device": 1},
    MemoryFormat: {"Contiguous": 0, "ChannelsLast": 1, "ChannelsLast3d": 2, "Preserve": 3, "ChannelsLast1d": 4},
    Reduction: {"ReductionNone": 0, "ReductionMean": 1, "ReductionSum": 2, "ReductionEND": 3},
    RoundMode: {"RoundModeNone": 0, "RoundModeTrunc": 1, "RoundModeFloor": 2, "RoundModeEND": 3},
}


@pytest.mark.parametrize("enum", C_VALUES, ids=lambda enum: enum.__name__)
def test_enumerators_are_those_of_the_interface(enum: type[IntEnum]) -> None:
    assert C_ENUMERATORS[enum] == tuple(C_VALUES[enum].items())
    assert [member.value for member in enum] == list(C_VALUES[enum].values())


def test_every_enum_has_c_enumerators() -> None:
    assert C_ENUMERATORS.keys() == C_VALUES.keys()


def test_the_version_is_that_of_the_interface() -> None:
    assert (VERSION, VERSION_NUMBER) == ((1, 0, 0), 1000)


@pytest.mark.parametrize(
    ("value", "dtype", "payload"),
    [(True, Dtype.bool, 1), (-3, Dtype.int64, -3), (2.0, Dtype.float64, 2.0)],
)
def test_a_python_number_becomes_a_scalar(value: bool | int | float, dtype: Dtype, payload: int | float) -> None:
    scalar = Scalar.from_number(value)
    assert (scalar.dtype, scalar.value, type(scalar.value)) == (dtype, payload, type(payload))


@pytest.mark.parametrize(
    ("dtype", "value", "number"),
    [(Dtype.bool, 1, True), (Dtype.bool, 0, False), (Dtype.uint8, 2, 2), (Dtype.float32, 2, 2.0), (Dtype.int64, 0, 0)],
)
def test_the_number_of_a_scalar_has_the_kind_of_its_dtype(dtype: Dtype, value: int, number: bool | int | float) -> None:
    scalar = Scalar(dtype, value).number
    assert (scalar, type(scalar)) == (number, type(number))


def test_scalar_rejects_objects_that_are_not_numbers() -> None:
    with pytest.raises(TypeError, match="float"):
        Scalar.from_number("1")  # type: ignore[arg-type]  # the test passes a wrong type on purpose


def test_integer_dtypes_and_bool_have_an_integer_payload() -> None:
    integers = {dtype for dtype in Dtype if Scalar(dtype, 0).is_integer}
    assert {dtype.name for dtype in integers} == {
        "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool",
    }  # fmt: skip
