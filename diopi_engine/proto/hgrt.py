"""HanGuangRT: the interface by which a program loads compiled networks and runs them on the cores of a device.

A device has several cores, each with local memory; cores are named by a bit mask. An engine is a compiled network; the
engines of a group were compiled to share devices and cores, and the scheme, which each of them holds, says how. Devices
and cores of a scheme are virtual, numbered from 0; a context maps those of the whole group to physical ones.
"""

from __future__ import annotations

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

VERSION = 100
"""The version of the interface: 100 times the major number and the minor one."""

MAX_DIMS = 8
"""Axes a binding or tensor has at most."""


class Result(Enumeration):
    """What a call answers. A call that does not answer HG_SUCCESS changed nothing."""

    SUCCESS = 0, "The call did what it was asked."
    ERROR_INVALID_ARGUMENT = 1, "An argument is NULL, out of range or no enumerator."
    ERROR_INVALID_HANDLE = 2, "A handle refers to no live object, or to an object of another kind."
    ERROR_INVALID_DEVICE = 3, "There is no device of that number."
    ERROR_WRONG_DEVICE = 4, "The engine, context or tensor belongs to another device than the current one."
    ERROR_INVALID_FILE = 5, "The bytes are no engine, or not all that was written: damaged, cut off, added to."
    ERROR_VERSION = 6, "The engine was made by another version of the compiler than the runtime's."
    ERROR_CORES_UNAVAILABLE = 7, "Not so many cores are free, or one of the mask is not."
    ERROR_IN_USE = 8, "Something that is alive uses it: a context its engine and cores, a mapping its tensor."
    ERROR_CONTEXT_EXISTS = 9, "The engine has a context, and may have one at a time."
    ERROR_BATCH_SIZE = 10, "The batch is 0 or less, or larger than the engine takes."
    ERROR_BINDING = 11, "A binding is NULL, too small, or a tensor that is not what the engine describes."
    ERROR_OUT_OF_MEMORY = 12, "There is not so much memory."
    ERROR_NOT_SUPPORTED = 13, "The device can't do it, though the call is legal."
    ERROR_INTERNAL = 14, "The runtime failed; hgGetLastErrorString says why."


class DeviceAttribute(Enumeration):
    """What can be asked of a device."""

    CORE_COUNT = 0, "Number of cores."
    LOCAL_MEMORY_SIZE = 1, "Local memory of a core, in bytes."
    FREE_CORE_COUNT = 2, "Cores that no process has taken, as of now."
    RETAINED_CORE_MASK = 3, "Cores that this process has retained."


class DevicePriority(Enumeration):
    """How urgent it is to retain cores: the less urgent, the more cores of the device are left to others.

    Priority k leaves k quarters of the device's cores free.
    """

    P0 = 0, "May take every free core."
    P1 = 1, "Leaves a quarter of the cores free."
    P2 = 2, "Leaves half of the cores free."
    P3 = 3, "Leaves three quarters of the cores free."


class DataType(Enumeration):
    """Element type of a binding or tensor; the numbers are those of diopiDtype_t."""

    INT8 = 0, "8-bit integer."
    UINT8 = 1, "8-bit integer without sign."
    INT16 = 2, "16-bit integer."
    UINT16 = 3, "16-bit integer without sign."
    INT32 = 4, "32-bit integer."
    UINT32 = 5, "32-bit integer without sign."
    INT64 = 6, "64-bit integer."
    UINT64 = 7, "64-bit integer without sign."
    FLOAT16 = 8, "IEEE binary16."
    FLOAT32 = 9, "IEEE binary32."
    FLOAT64 = 10, "IEEE binary64."
    BOOL = 11, "A byte that is 0 or 1."
    BFLOAT16 = 12, "The upper half of an IEEE binary32."


class Layout(Enumeration):
    """What the axes of a binding or tensor are, in the order of memory, the last without gaps."""

    LINEAR = 0, "Axes without names, the first one slowest."
    NCHW = 1, "Batch, channels, height, width."
    NHWC = 2, "Batch, height, width, channels."


class BindingAttribute(Enumeration):
    """What can be asked of a binding as a number."""

    IS_INPUT = 0, "1 for an input, 0 for an output."
    DATA_TYPE = 1, "Its element type, a hgDataType."
    LAYOUT = 2, "Its layout, a hgLayout."
    NB_DIMS = 3, "Number of its axes."
    BATCH_DIM = 4, "The axis of the batch, -1 if its sizes are fixed."
    SAMPLE_SIZE = 5, "Bytes of one element of the batch; of the whole binding if its sizes are fixed."


class ExecuteMode(Enumeration):
    """How the cores of an engine share the work; it is equal for the engines of one virtual device."""

    NORMAL = 0, "Each core computes batches of its own, with all weights."
    WEIGHT_SPLIT = 1, "The cores compute one batch together, each with a part of the weights."


class BatchSizeFlags(Enumeration):
    """For which execution hgEngineGetMaxBatchSize answers; flags are joined by `|`."""

    DEFAULT = 0, "Tensors in system memory, a context with the fewest cores."
    HOST_TENSOR = 1, "Tensors in page-locked host memory."
    MAX_CORES = 2, "A context with the most cores that the device has."


class CoreAllocPolicy(Enumeration):
    """Which cores a new context takes for the group of its engine.

    If the process has retained cores of a device, HG_CORE_ALLOC_MINIMUM and HG_CORE_ALLOC_MAXIMUM choose among those
    alone, else among the free ones.
    """

    MINIMUM = 0, "The cores that one scheme needs."
    MAXIMUM = 1, "As many times those as there are cores for, at least once."
    AS_CORE_MASK = 2, "For this engine exactly the given physical cores; for others of its group as MINIMUM."


class MemoryType(Enumeration):
    """Where a tensor or a binding lies. The numbers are the interface's."""

    SYSTEM = 1, "System memory: a binding is its address."
    HOST = 2, "Page-locked host memory: a binding is the handle of a tensor."


ENUMS = (
    Enum("hgResult", "HG_", Result),
    Enum("hgDeviceAttribute", "HG_DEVICE_", DeviceAttribute),
    Enum("hgDevicePriority", "HG_DEVICE_", DevicePriority),
    Enum("hgDataType", "HG_TYPE_", DataType),
    Enum("hgLayout", "HG_LAYOUT_", Layout),
    Enum("hgBindingAttribute", "HG_BINDING_ATTR_", BindingAttribute),
    Enum("hgExecuteMode", "HG_EXECUTE_", ExecuteMode),
    Enum("hgBatchSizeFlags", "HG_BATCH_SIZE_", BatchSizeFlags),
    Enum("hgCoreAllocPolicy", "HG_CORE_ALLOC_", CoreAllocPolicy),
    Enum("hgMemoryType", "HG_MEM_", MemoryType, ours=False),
)

_TYPES: tuple[Declaration, ...] = (
    NumericMacro("HG_VERSION", VERSION, "Version of the interface: 100 times the major number and the minor one."),
    NumericMacro("HG_MAX_DIMS", MAX_DIMS, "Axes a binding or tensor has at most."),
    *ENUMS,
    Typedef("int32_t hgDevice", "The number of a device, from 0."),
    Typedef("struct hgEngine_st* hgEngine", "An engine: a compiled network, read from bytes."),
    Typedef(
        "struct hgExecutionScheme_st* hgExecutionScheme", "The scheme of an engine's group. It lives as the engine."
    ),
    Typedef(
        "struct hgExecutionContext_st* hgExecutionContext", "What an engine is executed by: its cores and weights."
    ),
    Typedef("struct hgTensor_st* hgTensor", "A tensor in memory of the runtime."),
    Struct(
        "hgDims",
        "The sizes of a binding or tensor.",
        (Field("int32_t nbDims", "Number of axes."), Field("int64_t d[HG_MAX_DIMS]", "Their sizes; a batch is -1.")),
        ours=True,
    ),
    Struct(
        "hgTensorDesc",
        "What a tensor is.",
        (
            Field("hgDataType type", "Its element type."),
            Field("hgLayout layout", "What its axes are."),
            Field("hgDims dims", "Their sizes, each 0 or more."),
        ),
    ),
    Struct(
        "hgMemDesc",
        "Where a tensor lies.",
        (
            Field("hgMemoryType location", "Kind of memory."),
            Field("size_t alignment", "The address is a multiple of it, a power of two; 0: the runtime chooses."),
        ),
    ),
    Struct(
        "hgHostTensorDesc",
        "Where a binding of an execution lies.",
        (
            Field("hgMemoryType location", "HG_MEM_SYSTEM: the binding is an address; HG_MEM_HOST: a tensor's handle."),
            Field("size_t size", "Bytes that lie at the address, which are checked; 0: as many as are needed."),
        ),
    ),
    Struct(
        "hgEngineControl",
        "What a scheme says of one engine. It lives as the engine from which the scheme was asked.",
        (
            Field("int32_t engineId", "Number in its group."),
            Field("const char* engineName", "Name it was compiled with."),
            Field("int32_t virtualDeviceId", "Device it runs on, virtual."),
            Field("int32_t engineGroupId", "Engines of one number share memory: they do not run at the same time."),
            Field("hgExecuteMode executeMode", "How its cores share the work."),
            Field("int32_t coresPerBatch", "Fewest cores for one batch."),
            Field("uint32_t coreMask", "Cores it runs on, virtual."),
            Field("uint64_t memoryConsumption", "Local memory of a core for one patch, in bytes, weights included."),
        ),
    ),
)

_RUNTIME = (
    Function("hgRuntimeGetVersion", "int* version", "The version of the interface, HG_VERSION when it was built."),
    Function("hgGetResultName", "hgResult result, const char** name", "The name of a result, `HG_SUCCESS`.", ours=True),
    Function("hgGetResultDescription", "hgResult result, const char** description", "What a result means.", ours=True),
    Function(
        "hgGetLastErrorString",
        "const char** text",
        "Why the latest call of this thread that failed did: what was given, what was expected. It holds until the\n"
        "next call of the thread.",
        ours=True,
    ),
)

_DEVICES = (
    Function("hgDeviceGetCount", "int* count", "How many devices there are."),
    Function("hgDeviceGetCurrent", "hgDevice* device", "The current device of this thread; 0 at first."),
    Function(
        "hgDeviceSetCurrent",
        "hgDevice device",
        "Make a device the current one of this thread. Engines, contexts and tensors belong to the device that was\n"
        "current when they were made, and are used while it is.",
    ),
    Function(
        "hgDeviceGetAttribute", "hgDevice device, hgDeviceAttribute attribute, int* value", "An attribute of a device."
    ),
    Function(
        "hgDeviceRetain",
        "hgDevice device, unsigned int coreCount, hgDevicePriority priority, unsigned int* retainedCoreMask",
        "Take cores for this process, which keeps them until it releases them or ends.\n\n"
        "All `coreCount` (1 or more) are given, those of `retainedCoreMask`, or none: HG_ERROR_CORES_UNAVAILABLE.",
    ),
    Function(
        "hgDeviceRelease",
        "hgDevice device, unsigned int coreMask",
        "Give retained cores back.\n\n"
        "HG_ERROR_INVALID_ARGUMENT for an empty mask or a core that is not retained, HG_ERROR_IN_USE for one that a\n"
        "context uses; none is given back then.",
    ),
)

_ENGINES = (
    Function(
        "hgEngineCreate",
        "const char* serialized, size_t size, hgEngine* engine",
        "Make an engine from the bytes of an engine file, for the current device. The bytes may go afterwards.\n\n"
        "HG_ERROR_INVALID_FILE, HG_ERROR_VERSION.",
    ),
    Function("hgEngineDestroy", "hgEngine engine", "Destroy an engine that has no context.", ours=True),
    Function("hgEngineGetNbBindings", "hgEngine engine, int32_t* count", "Number of bindings, inputs before outputs."),
    Function(
        "hgEngineGetBindingIndex", "hgEngine engine, const char* name, int* index", "The binding of a name.", ours=True
    ),
    Function(
        "hgEngineGetBindingName", "hgEngine engine, int index, const char** name", "The name of a binding.", ours=True
    ),
    Function(
        "hgEngineGetBindingDimensions",
        "hgEngine engine, int index, hgDims* dims",
        "The sizes of a binding; that of the batch is -1.",
        ours=True,
    ),
    Function("hgEngineGetBindingType", "hgEngine engine, int index, hgDataType* type", "Its element type.", ours=True),
    Function("hgEngineGetBindingLayout", "hgEngine engine, int index, hgLayout* layout", "Its layout.", ours=True),
    Function(
        "hgEngineGetBindingAttribute",
        "hgEngine engine, int index, hgBindingAttribute attribute, int* value",
        "An attribute of a binding.",
    ),
    Function(
        "hgEngineGetExecutionScheme", "hgEngine engine, hgExecutionScheme* scheme", "The scheme of the engine's group."
    ),
    Function("hgEngineGetEngineID", "hgEngine engine, int* engineId", "The engine's number in its group."),
    Function("hgSchemeGetEngineCount", "hgExecutionScheme scheme, int* count", "Number of engines in a group."),
    Function(
        "hgSchemeGetEngineControl",
        "hgExecutionScheme scheme, int engineId, hgEngineControl** control",
        "What a scheme says of an engine.",
    ),
    Function(
        "hgEngineGetMaxBatchSize",
        "hgEngine engine, unsigned int flags, int* size",
        "The largest batch of one execution; `flags` are hgBatchSizeFlags, joined.",
    ),
)

_CONTEXTS = (
    Function(
        "hgEngineCreateExecutionContext",
        "hgEngine engine, hgExecutionContext* context, hgCoreAllocPolicy policy, uint32_t coreMask",
        "Make the context of an engine, which must have none: take cores for its group, upload weights.\n\n"
        "The first context of a group takes the cores of all its engines; the others use them, whatever their policy,\n"
        "but for a mask, which must be the one the engine has. `coreMask` is 0 unless the policy is\n"
        "HG_CORE_ALLOC_AS_CORE_MASK. HG_ERROR_CORES_UNAVAILABLE, with nothing taken; HG_ERROR_CONTEXT_EXISTS.",
    ),
    Function(
        "hgExecutionContextDestroy",
        "hgExecutionContext context",
        "Destroy a context when what it executes has ended; the last one of a group gives back the cores it took.",
        ours=True,
    ),
    Function(
        "hgExecutionContextExecute",
        "hgExecutionContext context, int batchSize, void** bindings, const hgHostTensorDesc* tensorInfo",
        "Execute the engine on a batch, and return when its outputs are written.\n\n"
        "`bindings` has an entry a binding, and `tensorInfo` says where they lie; NULL: in system memory. A large\n"
        "batch is split, and upload, compute and download of its parts overlap. Calls of several threads on one\n"
        "context follow one another. HG_ERROR_BATCH_SIZE, HG_ERROR_BINDING.",
    ),
)

_TENSORS = (
    Function(
        "hgTensorCreate",
        "const hgTensorDesc* desc, const hgMemDesc* memory, unsigned int flags, hgTensor* tensor",
        "Make a tensor of the current device. Without `desc`, which may be NULL, it has no memory before\n"
        "hgTensorUpdateDesc. No `flags` are known: 0.",
    ),
    Function("hgTensorDestroy", "hgTensor tensor", "Destroy a tensor that is not mapped.", ours=True),
    Function(
        "hgTensorUpdateDesc",
        "hgTensor tensor, const hgTensorDesc* desc",
        "Give a tensor its first description, or another; memory is allocated when what it has is not enough.",
    ),
    Function(
        "hgTensorData", "hgTensor tensor, const void* data, size_t size", "Copy `size` bytes, all, into a tensor."
    ),
    Function(
        "hgTensorMap",
        "hgTensor tensor, void** address",
        "Where a tensor lies, for direct access until it is unmapped; it is neither described anew nor destroyed then.",
    ),
    Function("hgTensorUnmap", "hgTensor tensor", "End the direct access to a mapped tensor."),
    Function("hgTensorGetDesc", "hgTensor tensor, hgTensorDesc* desc", "The description of a tensor.", ours=True),
    Function("hgTensorGetSize", "hgTensor tensor, size_t* size", "Bytes of a tensor's elements.", ours=True),
    Function("hgTensorGetAlignedSize", "hgTensor tensor, size_t* size", "Bytes of the memory a tensor has.", ours=True),
)

FUNCTIONS: tuple[Function, ...] = (*_RUNTIME, *_DEVICES, *_ENGINES, *_CONTEXTS, *_TENSORS)
"""Every function, in the order in which a program needs them."""

DECLARATIONS: tuple[Declaration, ...] = (*_TYPES, *FUNCTIONS)
"""All that the header declares, in its order."""
