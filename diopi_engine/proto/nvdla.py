"""The user-mode driver of NVDLA: the C++ class IRuntime, and the C layer through which it calls the kernel's driver.

A loadable is a file with a compiled network: layers with their dependencies, memory and configuration. Every
implementation must be able to read every loadable, even a loadable that it can't run.
"""

from __future__ import annotations

from functools import partial

from diopi_engine.proto.declarations import (
    Declaration,
    EnumDeclaration,
    Enumeration,
    FunctionDeclaration,
    NumericMacro,
    StructDeclaration,
    StructField,
    Typedef,
)

MAX_DIMS = 8
"""The maximum number of axes of a tensor."""

NAME_LENGTH = 80
"""The maximum number of bytes of a tensor's name, including the terminating zero."""


class Error(Enumeration):
    """The result of a call. A call that does not return NvSuccess has changed nothing."""

    Success = 0, "The call succeeded."
    Error_BadParameter = 1, "An argument is NULL, out of range, or does not match the network."
    Error_BadValue = 2, "A handle refers to no live object."
    Error_NotInitialized = 3, "No network is loaded, or a tensor is not bound."
    Error_Busy = 4, "The object is in use: a network is loaded, or memory is bound."
    Error_InvalidFile = 5, "The bytes are not a loadable, or are damaged."
    Error_FileVersion = 6, "Another version of the compiler created the loadable."
    Error_InsufficientMemory = 7, "The heap does not have enough memory."
    Error_NotSupported = 8, "The implementation can read this loadable but not run it, or can't change this field."
    Error_DeviceNotFound = 9, "There is no device with this number."
    Error_Internal = 10, "The driver failed."


class Heap(Enumeration):
    """The heap in which memory is allocated."""

    DRAM = 0, "System memory, which host and device can address."
    SRAM = 1, "On-chip memory, which is small and fast."


class DataType(Enumeration):
    """The element type of a tensor, with the numbers of diopiDtype_t."""

    INT8 = 0, "8-bit integer."
    UINT8 = 1, "Unsigned 8-bit integer."
    INT16 = 2, "16-bit integer."
    UINT16 = 3, "Unsigned 16-bit integer."
    INT32 = 4, "32-bit integer."
    UINT32 = 5, "Unsigned 32-bit integer."
    INT64 = 6, "64-bit integer."
    UINT64 = 7, "Unsigned 64-bit integer."
    HALF = 8, "IEEE binary16."
    FLOAT = 9, "IEEE binary32."
    DOUBLE = 10, "IEEE binary64."
    BOOL = 11, "A byte that is 0 or 1."
    BFLOAT16 = 12, "The upper half of an IEEE binary32."


class DataFormat(Enumeration):
    """The meaning of the axes of a tensor, in the order of memory."""

    LINEAR = 0, "Axes without a meaning, in row-major order."
    NCHW = 1, "Batch, channels, height, width."
    NHWC = 2, "Batch, height, width, channels."


NUMBERS = (
    Typedef("uint8_t NvU8", "An unsigned 8-bit integer."),
    Typedef("uint16_t NvU16", "An unsigned 16-bit integer."),
    Typedef("uint32_t NvU32", "An unsigned 32-bit integer."),
    Typedef("uint64_t NvU64", "An unsigned 64-bit integer."),
    Typedef("int64_t NvS64", "A signed 64-bit integer.", is_project_defined=True),
)
"""The types of numbers."""

_TYPES: tuple[Declaration, ...] = (
    *NUMBERS,
    NumericMacro("NVDLA_MAX_DIMS", MAX_DIMS, "The maximum number of axes of a tensor."),
    NumericMacro(
        "NVDLA_NAME_LENGTH",
        NAME_LENGTH,
        "The maximum number of bytes of a tensor's name, including the terminating zero.",
    ),
    EnumDeclaration("NvError", "Nv", Error),
    EnumDeclaration("NvDlaHeap", "NvDlaHeap_", Heap),
    EnumDeclaration("NvDlaDataType", "NvDlaDataType_", DataType),
    EnumDeclaration("NvDlaDataFormat", "NvDlaDataFormat_", DataFormat),
    StructDeclaration(
        "NvDlaTensor",
        "An input or output of a network. Only the size of the batch can be changed. It is initially 1, and it is the\n"
        "same for all inputs and outputs.",
        (
            StructField("char name[NVDLA_NAME_LENGTH]", "The name, terminated by a zero."),
            StructField(
                "NvU64 bufferSize",
                "The number of bytes. It follows from the sizes, so it is not read when a tensor is set.",
            ),
            StructField("NvDlaDataType dataType", "The element type."),
            StructField("NvDlaDataFormat dataFormat", "The meaning of the axes."),
            StructField("NvU32 numDims", "The number of axes."),
            StructField("NvS64 dims[NVDLA_MAX_DIMS]", "The sizes; the first one is the size of the batch."),
            StructField("NvS64 maxBatch", "The maximum of the first size; 0 if all sizes are fixed."),
        ),
        is_project_defined=True,
    ),
    StructDeclaration(
        "NvDlaMemDesc",
        "A memory that a task uses.",
        (
            StructField("void* handle", "The handle that NvDlaAllocMem returned."),
            StructField("NvU32 size", "The number of bytes."),
        ),
    ),
    StructDeclaration(
        "NvDlaTask",
        "A task of a device; the driver fills it from a loadable.",
        (
            StructField("NvU32 batchSize", "The size of the batch; 1 for a network without batches."),
            StructField("NvU32 numAddresses", "The number of memories."),
            StructField(
                "const NvDlaMemDesc* addressList",
                "The memories of the loadable, its inputs and its outputs, in the order of the loadable.",
            ),
        ),
        is_project_defined=True,
    ),
)
"""The macros, the types and the structures of the interface."""

_function = partial(FunctionDeclaration, returns="NvError")
"""Return the declaration of a function that returns an NvError by default."""

PORTABILITY: tuple[FunctionDeclaration, ...] = (
    _function("NvDlaInitialize", "void** session_handle", "Start a session with the driver in the kernel."),
    _function(
        "NvDlaDestroy", "void* session_handle", "End a session, whose devices must already be closed.", returns="void"
    ),
    _function(
        "NvDlaOpen", "void* session_handle, NvU32 instance, void** device_handle", "Open a device by its number."
    ),
    _function(
        "NvDlaClose",
        "void* session_handle, void* device_handle",
        "Close a device and free the memory that was allocated for it.",
        returns="void",
    ),
    _function(
        "NvDlaSubmit",
        "void* session_handle, void* device_handle, NvDlaTask* tasks, NvU32 num_tasks",
        "Check all tasks, run them on a device in order, and return when they have finished.\n\n"
        "The driver reads a loadable when a task first runs it. Later tasks reuse what was read until you free the\n"
        "memory of the loadable. Each output must be in separate memory.",
    ),
    _function(
        "NvDlaAllocMem",
        "void* session_handle, void* device_handle, void** mem_handle, void** pData, NvU32 size, NvDlaHeap heap",
        "Allocate `size` bytes, 1 or more, in a heap; return a handle for the device and an address for the host.\n\n"
        "Each heap of a device has a limited size. The call returns NvError_InsufficientMemory if the heap does not\n"
        "have enough free memory.",
    ),
    _function(
        "NvDlaFreeMem",
        "void* session_handle, void* device_handle, void* mem_handle, void* pData, NvU32 size",
        "Free memory; pass the address and the size of the allocation.",
    ),
    _function(
        "NvDlaDebugPrintf",
        "const char* format, ...",
        "Print a message for debugging, with the format of printf.",
        returns="void",
    ),
)
"""The portability layer, in C."""

METHODS: tuple[FunctionDeclaration, ...] = (
    _function("getMaxDevices", "", "Return the number of devices that the configuration supports.", returns="NvU16"),
    _function(
        "getNumDevices", "", "Return the number of available devices. A task runs on one device.", returns="NvU16"
    ),
    _function(
        "load",
        "const NvU8* buf, int instance",
        "Load a loadable on the device `instance`. The bytes themselves contain their size.",
    ),
    _function("unload", "int instance", "Unload the network and end its bindings; bound memory stays allocated."),
    _function("getNumInputTensors", "int* count", "Return the number of inputs of the loaded network."),
    _function("getInputTensorDesc", "int id, NvDlaTensor* tensor", "Return the description of an input."),
    _function("setInputTensorDesc", "int id, const NvDlaTensor* tensor", "Change the size of the batch of an input."),
    _function("getNumOutputTensors", "int* count", "Return the number of outputs of the loaded network."),
    _function("getOutputTensorDesc", "int id, NvDlaTensor* tensor", "Return the description of an output."),
    _function("setOutputTensorDesc", "int id, const NvDlaTensor* tensor", "Change the size of the batch of an output."),
    _function(
        "allocateSystemMemory",
        "void** h_mem, NvU64 size, void** pData",
        "Allocate memory that host and device can address, on the device of the loaded network.",
    ),
    _function("freeSystemMemory", "void* h_mem, NvU64 size", "Free memory that is not bound.", is_project_defined=True),
    _function("bindInputTensor", "int id, void* hMem", "Bind an input to memory, which must be large enough."),
    _function("bindOutputTensor", "int id, void* hMem", "Bind an output to memory, which must be large enough."),
    _function("submit", "", "Run the network with the bound memory, and return when the outputs are written."),
)
"""The methods of the C++ class `nvdla::IRuntime`."""

FACTORIES: tuple[FunctionDeclaration, ...] = (
    _function("createRuntime", "", "Create a runtime; return NULL if there is not enough memory.", returns="IRuntime*"),
    _function(
        "destroyRuntime",
        "IRuntime* runtime",
        "Destroy a runtime, unload its network, and free its memory.",
        returns="void",
        is_project_defined=True,
    ),
)
"""The functions of the namespace `nvdla`."""

DECLARATIONS: tuple[Declaration, ...] = (*_TYPES, *PORTABILITY)
"""The declarations of the C part of the header, in order."""
