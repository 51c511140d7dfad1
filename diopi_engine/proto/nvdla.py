"""The user-mode driver of NVDLA: the C++ class IRuntime, and the C layer by which the driver reaches the kernel's.

A loadable is a compiled network: layers with dependencies, memory and configuration. Every implementation must be able
to read every loadable, even one it can't run.
"""

from __future__ import annotations

from functools import partial

from diopi_engine.proto.declarations import (
    Declaration,
    Enum,
    Enumeration,
    Field,
    Function,
    NumericMacro,
    Struct,
    Typedef,
)

MAX_DIMS = 8
"""Axes a tensor has at most."""

NAME_LENGTH = 80
"""Bytes of a tensor's name with the zero at its end."""


class Error(Enumeration):
    """What a call answers. A call that does not answer NvSuccess changed nothing."""

    Success = 0, "The call did what it was asked."
    Error_BadParameter = 1, "An argument is NULL, out of range, or not what the network takes."
    Error_BadValue = 2, "A handle refers to no live object."
    Error_NotInitialized = 3, "Nothing is loaded, or a tensor is not bound."
    Error_Busy = 4, "It is in use: a network is loaded, memory is bound."
    Error_InvalidFile = 5, "The bytes are no loadable, or damaged."
    Error_FileVersion = 6, "The loadable was made by another version of the compiler."
    Error_InsufficientMemory = 7, "The heap has not so much memory."
    Error_NotSupported = 8, "The implementation can read this loadable, not run it; or can't change this field."
    Error_DeviceNotFound = 9, "There is no device of that number."
    Error_Internal = 10, "The driver failed."


class Heap(Enumeration):
    """Where memory is allocated."""

    DRAM = 0, "The system's memory, which host and device address."
    SRAM = 1, "The memory on the chip: little, and fast."


class DataType(Enumeration):
    """Element type of a tensor; the numbers are those of diopiDtype_t."""

    INT8 = 0, "8-bit integer."
    UINT8 = 1, "8-bit integer without sign."
    INT16 = 2, "16-bit integer."
    UINT16 = 3, "16-bit integer without sign."
    INT32 = 4, "32-bit integer."
    UINT32 = 5, "32-bit integer without sign."
    INT64 = 6, "64-bit integer."
    UINT64 = 7, "64-bit integer without sign."
    HALF = 8, "IEEE binary16."
    FLOAT = 9, "IEEE binary32."
    DOUBLE = 10, "IEEE binary64."
    BOOL = 11, "A byte that is 0 or 1."
    BFLOAT16 = 12, "The upper half of an IEEE binary32."


class DataFormat(Enumeration):
    """What the axes of a tensor are, in the order of memory."""

    LINEAR = 0, "Axes without names, the first one slowest."
    NCHW = 1, "Batch, channels, height, width."
    NHWC = 2, "Batch, height, width, channels."


_NUMBERS = (
    Typedef("uint8_t NvU8", "8 bits without sign."),
    Typedef("uint16_t NvU16", "16 bits without sign."),
    Typedef("uint32_t NvU32", "32 bits without sign."),
    Typedef("uint64_t NvU64", "64 bits without sign."),
    Typedef("int64_t NvS64", "64 bits with sign.", ours=True),
)

_TYPES: tuple[Declaration, ...] = (
    *_NUMBERS,
    NumericMacro("NVDLA_MAX_DIMS", MAX_DIMS, "Axes a tensor has at most."),
    NumericMacro("NVDLA_NAME_LENGTH", NAME_LENGTH, "Bytes of a tensor's name with the zero at its end."),
    Enum("NvError", "Nv", Error),
    Enum("NvDlaHeap", "NvDlaHeap_", Heap),
    Enum("NvDlaDataType", "NvDlaDataType_", DataType),
    Enum("NvDlaDataFormat", "NvDlaDataFormat_", DataFormat),
    Struct(
        "NvDlaTensor",
        "An input or output of a network. Nothing of it can be changed but the size of the batch, which is 1 at first\n"
        "and that of all inputs and outputs at once.",
        (
            Field("char name[NVDLA_NAME_LENGTH]", "Its name, ended by a zero."),
            Field(
                "NvU64 bufferSize", "Bytes it takes. It follows from the sizes: it is not read where a tensor is set."
            ),
            Field("NvDlaDataType dataType", "Its element type."),
            Field("NvDlaDataFormat dataFormat", "What its axes are."),
            Field("NvU32 numDims", "Number of axes."),
            Field("NvS64 dims[NVDLA_MAX_DIMS]", "Their sizes; the batch is the first one."),
            Field("NvS64 maxBatch", "What the first size may be at most; 0 if all sizes are fixed."),
        ),
        ours=True,
    ),
    Struct(
        "NvDlaMemDesc",
        "Memory a task uses.",
        (Field("void* handle", "Its handle, of NvDlaAllocMem."), Field("NvU32 size", "Its bytes.")),
    ),
    Struct(
        "NvDlaTask",
        "What a device does next, as the driver fills it from a loadable.",
        (
            Field("NvU32 batchSize", "Size of the batch; 1 for a network without."),
            Field("NvU32 numAddresses", "Number of memories."),
            Field("const NvDlaMemDesc* addressList", "They: the loadable, its inputs, its outputs, in its order."),
        ),
        ours=True,
    ),
)

_function = partial(Function, returns="NvError")

PORTABILITY: tuple[Function, ...] = (
    _function("NvDlaInitialize", "void** session_handle", "Begin a session with the kernel's driver."),
    _function("NvDlaDestroy", "void* session_handle", "End a session that has no open device.", returns="void"),
    _function(
        "NvDlaOpen", "void* session_handle, NvU32 instance, void** device_handle", "Open a device by its number."
    ),
    _function(
        "NvDlaClose",
        "void* session_handle, void* device_handle",
        "Close a device; memory that was allocated for it is freed.",
        returns="void",
    ),
    _function(
        "NvDlaSubmit",
        "void* session_handle, void* device_handle, NvDlaTask* tasks, NvU32 num_tasks",
        "Run tasks on a device in their order, and return when they are done. All are checked before.\n\n"
        "A loadable is read when a task runs it first, and not again until its memory is freed. An output must be in\n"
        "memory of its own.",
    ),
    _function(
        "NvDlaAllocMem",
        "void* session_handle, void* device_handle, void** mem_handle, void** pData, NvU32 size, NvDlaHeap heap",
        "Allocate `size` bytes, 1 or more, in a heap: a handle for the device, an address for the host.\n\n"
        "NvError_InsufficientMemory when the heap of the device, whose size is limited, has not so much.",
    ),
    _function(
        "NvDlaFreeMem",
        "void* session_handle, void* device_handle, void* mem_handle, void* pData, NvU32 size",
        "Free memory, with the address and the size it was allocated with.",
    ),
    _function(
        "NvDlaDebugPrintf",
        "const char* format, ...",
        "Print for who looks for a fault, as printf does.",
        returns="void",
    ),
)
"""The portability layer, in C."""

METHODS: tuple[Function, ...] = (
    _function("getMaxDevices", "", "How many devices the configuration supports.", returns="NvU16"),
    _function("getNumDevices", "", "How many devices are available. A task runs on one.", returns="NvU16"),
    _function(
        "load",
        "const NvU8* buf, int instance",
        "Parse a loadable into what the tasks of the device `instance` need. Where the bytes end, they say themselves.",
    ),
    _function("unload", "int instance", "Free what was loaded, and end its bindings; memory that was bound stays."),
    _function("getNumInputTensors", "int* count", "Number of inputs of the loaded network."),
    _function("getInputTensorDesc", "int id, NvDlaTensor* tensor", "What an input is."),
    _function("setInputTensorDesc", "int id, const NvDlaTensor* tensor", "Change an input, in what can be changed."),
    _function("getNumOutputTensors", "int* count", "Number of outputs of the loaded network."),
    _function("getOutputTensorDesc", "int id, NvDlaTensor* tensor", "What an output is."),
    _function("setOutputTensorDesc", "int id, const NvDlaTensor* tensor", "Change an output, in what can be changed."),
    _function(
        "allocateSystemMemory",
        "void** h_mem, NvU64 size, void** pData",
        "Memory that both sides address, of the device of the loaded network: its handle, and its address.",
    ),
    _function("freeSystemMemory", "void* h_mem, NvU64 size", "Free it; it must not be bound.", ours=True),
    _function("bindInputTensor", "int id, void* hMem", "Let an input be in memory of a handle, which is large enough."),
    _function("bindOutputTensor", "int id, void* hMem", "Let an output be in memory of a handle, likewise."),
    _function("submit", "", "Run the network on what is bound; it returns when the outputs are written."),
)
"""Of the C++ class `nvdla::IRuntime`."""

FACTORIES: tuple[Function, ...] = (
    _function("createRuntime", "", "A runtime; NULL if there is no memory.", returns="IRuntime*"),
    _function(
        "destroyRuntime",
        "IRuntime* runtime",
        "Destroy a runtime, unload what it loaded, and free its memory.",
        returns="void",
        ours=True,
    ),
)
"""Of the namespace `nvdla`."""

DECLARATIONS: tuple[Declaration, ...] = (*_TYPES, *PORTABILITY)
"""What the C part of the header declares, in its order."""
