"""The user-mode driver of NVDLA as the released open-source headers declare it.

The module `nvdla` declares the same driver as the published document describes it. The released headers have another
order of methods, other types of results, other error numbers and other structures. The tables contain only what binary
compatibility needs: order, types and values. Functions and values that both interfaces have share their texts.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from diopi_engine.proto import nvdla
from diopi_engine.proto.declarations import (
    Declaration,
    EnumDeclaration,
    Enumeration,
    FunctionDeclaration,
    NumericMacro,
    StructDeclaration,
    StructField,
)

NAME_LENGTH = 80
"""The maximum number of bytes of a tensor's name, without the terminating zero."""

STRIDES = 8
"""The number of strides of a tensor."""

MAX_ADDRESSES = 6144
"""The maximum number of memories of a task."""

ERROR_TYPE = "NvDlaError"
"""The type of a result."""


class DriverError(Enumeration):
    """The result of a call."""

    Success = 0x0, nvdla.Error.Success.meaning
    Error_NotImplemented = 0x1, "The function is not implemented."
    Error_NotSupported = 0x2, nvdla.Error.Error_NotSupported.meaning
    Error_NotInitialized = 0x3, nvdla.Error.Error_NotInitialized.meaning
    Error_BadParameter = 0x4, nvdla.Error.Error_BadParameter.meaning
    Error_Timeout = 0x5, "The time limit of the call is exceeded."
    Error_InsufficientMemory = 0x6, nvdla.Error.Error_InsufficientMemory.meaning
    Error_ReadOnlyAttribute = 0x7, "The attribute can't be changed."
    Error_InvalidState = 0x8, nvdla.Error.Error_Internal.meaning
    Error_InvalidAddress = 0x9, "The address is invalid."
    Error_InvalidSize = 0xA, "The size is invalid."
    Error_BadValue = 0xB, nvdla.Error.Error_BadValue.meaning
    Error_AlreadyAllocated = 0xD, "The memory is already allocated."
    Error_Busy = 0xE, nvdla.Error.Error_Busy.meaning
    Error_ResourceError = 0xF, "A resource is invalid."
    Error_CountMismatch = 0x10, "A count differs from the expected one."
    Error_OverFlow = 0x11, "A value exceeds the range of its type."
    Error_Disconnected = 0x12, "The connection to the device is lost."
    Error_FileNotFound = 0x13, "There is no such file."
    Error_TestApplicationFailed = 0x14, "The program failed."
    Error_DeviceNotFound = 0x15, nvdla.Error.Error_DeviceNotFound.meaning
    Error_SurfaceNotSupported = 0x10003, "The surface is not supported."
    Error_FileReadFailed = 0x30001, "The bytes are not a loadable, are damaged, or are of another compiler version."
    Error_EndOfFile = 0x30002, "The file ends."
    Error_FileOperationFailed = 0x30003, "An operation on a file failed."
    Error_DirOperationFailed = 0x30004, "An operation on a folder failed."
    Error_EndOfDirList = 0x30005, "The folder has no more entries."
    Error_IoctlFailed = 0x3000F, "A call of the kernel's driver failed."
    Error_PathAlreadyExists = 0x30014, "The path exists."
    Error_ModuleNotPresent = 0xA000E, "The module is not present."


class ReleasedHeap(Enumeration):
    """The heap in which memory is allocated."""

    System = 0, nvdla.Heap.DRAM.meaning
    SRAM = 1, nvdla.Heap.SRAM.meaning


class ReleasedDataType(Enumeration):
    """The values of `dataType`. The element types that are not listed are unknown."""

    UNKNOWN = 0, "Another element type."
    FLOAT = 1, nvdla.DataType.FLOAT.meaning
    HALF = 2, nvdla.DataType.HALF.meaning
    INT16 = 3, nvdla.DataType.INT16.meaning
    INT8 = 4, nvdla.DataType.INT8.meaning


class ReleasedDataFormat(Enumeration):
    """The values of `dataFormat`."""

    UNKNOWN = 0, "Another order."
    NCHW = 1, nvdla.DataFormat.NCHW.meaning
    NHWC = 2, nvdla.DataFormat.NHWC.meaning


class ReleasedPixelFormat(Enumeration):
    """The values of `pixelFormat`."""

    FEATURE = 36, "The tensor is not a picture."
    UNKNOWN = 38, "Another format."


TENSOR = StructDeclaration(
    "NvDlaTensor",
    "An input or output of a network. Only the size of the batch, `dims.n`, can be changed.",
    (
        StructField("char name[NVDLA_RELEASED_NAME_LENGTH + 1]", "The name, terminated by a zero."),
        StructField("NvU64 bufferSize", "The number of bytes. It is not read when a tensor is set."),
        StructField("NvDlaDims4 dims", "The sizes."),
        StructField("NvU8 dataFormat", "The order of the sizes in memory."),
        StructField("NvU8 dataType", "The element type."),
        StructField("NvU8 dataCategory", "Always 0."),
        StructField("NvU8 pixelFormat", "Always 36, a feature."),
        StructField("NvU8 pixelMapping", "Always 0, linear."),
        StructField("NvU32 stride[8]", "Bytes of an element, a line, a surface and a sample; the others are 0."),
    ),
)
"""The description of a tensor, which C++ programs use as a member of IRuntime."""

_TYPES: tuple[Declaration, ...] = (
    *(number for number in nvdla.NUMBERS if not number.is_project_defined),
    NumericMacro(
        "NVDLA_RELEASED_NAME_LENGTH", NAME_LENGTH, "The maximum number of bytes of a tensor's name, without the zero."
    ),
    EnumDeclaration(ERROR_TYPE, "NvDla", DriverError, is_project_defined=False),
    EnumDeclaration("NvDlaHeap", "NvDlaHeap_", ReleasedHeap, is_project_defined=False),
    EnumDeclaration("NvDlaReleasedDataType", "NvDlaReleasedDataType_", ReleasedDataType),
    EnumDeclaration("NvDlaReleasedDataFormat", "NvDlaReleasedDataFormat_", ReleasedDataFormat),
    EnumDeclaration("NvDlaReleasedPixelFormat", "NvDlaReleasedPixelFormat_", ReleasedPixelFormat),
    StructDeclaration(
        "NvDlaDims4",
        "The sizes of a tensor.",
        tuple(
            StructField(f"int {name}", doc)
            for name, doc in {
                "n": "The size of the batch.",
                "c": "The number of channels.",
                "h": "The height.",
                "w": "The width.",
            }.items()
        ),
    ),
    TENSOR,
    StructDeclaration(
        "NvDlaMemDesc",
        "A memory that a task uses.",
        (
            StructField("void* handle", "The handle that NvDlaAllocMem returned."),
            StructField("NvU32 offset", "The offset of the first byte in the memory."),
        ),
    ),
    StructDeclaration(
        "NvDlaTask",
        "A task of a device; the driver fills it from a loadable.",
        (
            StructField("NvU64 task_id", "A number that the device does not read."),
            StructField("NvU32 num_addresses", "The number of memories."),
            StructField(
                "NvDlaMemDesc address_list[6144]",
                "The memories of the loadable, of the batch size (an NvU32), of its inputs and of its outputs.",
            ),
        ),
    ),
)
"""The macros, the types and the structures of the interface."""

_function = partial(FunctionDeclaration, returns=ERROR_TYPE)
"""Return the declaration of a function that returns an error by default."""


def _find(functions: tuple[FunctionDeclaration, ...], name: str) -> FunctionDeclaration:
    """Return the declaration of a function that both interfaces have, with the released type of its result."""
    declared = next(function for function in functions if function.name == name)
    returns = ERROR_TYPE if declared.returns == "NvError" else declared.returns
    return replace(declared, returns=returns, doc=declared.doc.replace("NvError", ERROR_TYPE), is_project_defined=False)


_layer = partial(_find, nvdla.PORTABILITY)
"""Returns the released declaration of a published function of the portability layer, by its name."""

_method = partial(_find, nvdla.METHODS)
"""Returns the released declaration of a published method, by its name."""

PORTABILITY: tuple[FunctionDeclaration, ...] = (
    _layer("NvDlaInitialize"),
    _layer("NvDlaDestroy"),
    _layer("NvDlaOpen"),
    replace(_layer("NvDlaClose"), declared="void* device_handle"),
    _layer("NvDlaSubmit"),
    _layer("NvDlaAllocMem"),
    _layer("NvDlaFreeMem"),
    _layer("NvDlaDebugPrintf"),
)
"""The portability layer, in C."""

METHODS: tuple[FunctionDeclaration, ...] = (
    _method("getMaxDevices"),
    _method("getNumDevices"),
    _function("initEMU", "", "Start the emulator, which executes all layers; return true.", returns="bool"),
    _function("stopEMU", "", "Stop the emulator.", returns="void"),
    _function(
        "load",
        "NvU8* buf, int instance",
        "Load a loadable on the device `instance`; return false if it fails.",
        returns="bool",
    ),
    _function(
        "unload", "", "Unload the network, end its bindings, and free the memory that was bound.", returns="void"
    ),
    _method("allocateSystemMemory"),
    replace(_method("freeSystemMemory"), returns="void"),
    replace(_method("bindInputTensor"), returns="bool"),
    replace(_method("bindOutputTensor"), returns="bool"),
    _function(
        "getNetworkDataType", "uint8_t* data_type", "Return the element type of the first input.", is_constant=True
    ),
    _method("getNumInputTensors"),
    _method("getInputTensorDesc"),
    _method("setInputTensorDesc"),
    _method("getNumOutputTensors"),
    _method("getOutputTensorDesc"),
    _method("setOutputTensorDesc"),
    replace(_method("submit"), returns="bool"),
)
"""The methods of the C++ class `nvdla::IRuntime`, in the order of the table of virtual functions."""

FACTORIES: tuple[FunctionDeclaration, ...] = tuple(_find(nvdla.FACTORIES, name.name) for name in nvdla.FACTORIES)
"""The functions of the namespace `nvdla`."""

DECLARATIONS: tuple[Declaration, ...] = (*_TYPES, *PORTABILITY)
"""The declarations of the C part of the header, in order."""
