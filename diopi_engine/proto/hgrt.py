"""HanGuangRT: the interface by which a program loads compiled networks and runs them on the cores of a device.

A device has several cores, each with local memory. A bit mask selects cores. An engine is a compiled network. The
engines of a group were compiled to share devices and cores; each of them contains the scheme, which describes how. The
devices and cores of a scheme are virtual and numbered from 0. A context maps the virtual devices and cores of the whole
group to physical ones.
"""

from __future__ import annotations

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

VERSION = 100
"""The version of the interface: 100 times the major number plus the minor number."""

MAX_DIMS = 8
"""The maximum number of axes of a binding or tensor."""


class Result(Enumeration):
    """The result of a call. A call that does not return HG_SUCCESS has changed nothing."""

    SUCCESS = 0, "The call succeeded."
    ERROR_INVALID_ARGUMENT = 1, "An argument is NULL, out of range or not an enumerator."
    ERROR_INVALID_HANDLE = 2, "A handle refers to no live object, or to an object of another kind."
    ERROR_INVALID_DEVICE = 3, "There is no device with this number."
    ERROR_WRONG_DEVICE = 4, "The engine, context or tensor does not belong to the current device."
    ERROR_INVALID_FILE = 5, "The bytes are not an engine, or are damaged, truncated or extended."
    ERROR_VERSION = 6, "The version of the compiler that created the engine differs from the runtime's version."
    ERROR_CORES_UNAVAILABLE = 7, "Too few cores are free, or a core of the mask is not free."
    ERROR_IN_USE = 8, "The object is in use: a context uses its engine and cores, a mapping uses its tensor."
    ERROR_CONTEXT_EXISTS = 9, "The engine already has a context; it can have only one at a time."
    ERROR_BATCH_SIZE = 10, "The batch size is less than 1, or exceeds the maximum of the engine."
    ERROR_BINDING = 11, "A binding is NULL, too small, or a tensor that does not match the engine."
    ERROR_OUT_OF_MEMORY = 12, "There is not enough memory."
    ERROR_NOT_SUPPORTED = 13, "The device does not support this valid call."
    ERROR_INTERNAL = 14, "The runtime failed; hgGetLastErrorString returns the reason."


class DeviceAttribute(Enumeration):
    """The attributes of a device."""

    CORE_COUNT = 0, "Number of cores."
    LOCAL_MEMORY_SIZE = 1, "Local memory of a core, in bytes."
    FREE_CORE_COUNT = 2, "The number of cores that no process uses at the time of the call."
    RETAINED_CORE_MASK = 3, "The mask of the cores that this process has retained."


class DevicePriority(Enumeration):
    """The priority of retaining cores. P0 is the highest; priority k leaves k quarters of the device's cores free."""

    P0 = 0, "May take every free core."
    P1 = 1, "Leaves a quarter of the cores free."
    P2 = 2, "Leaves half of the cores free."
    P3 = 3, "Leaves three quarters of the cores free."


class DataType(Enumeration):
    """The element type of a binding or tensor, with the numbers of diopiDtype_t."""

    INT8 = 0, "8-bit integer."
    UINT8 = 1, "Unsigned 8-bit integer."
    INT16 = 2, "16-bit integer."
    UINT16 = 3, "Unsigned 16-bit integer."
    INT32 = 4, "32-bit integer."
    UINT32 = 5, "Unsigned 32-bit integer."
    INT64 = 6, "64-bit integer."
    UINT64 = 7, "Unsigned 64-bit integer."
    FLOAT16 = 8, "IEEE binary16."
    FLOAT32 = 9, "IEEE binary32."
    FLOAT64 = 10, "IEEE binary64."
    BOOL = 11, "A byte that is 0 or 1."
    BFLOAT16 = 12, "The upper half of an IEEE binary32."


class Layout(Enumeration):
    """The meaning of the axes of a binding or tensor, in the order of memory; the last axis is contiguous."""

    LINEAR = 0, "Axes without a meaning, in row-major order."
    NCHW = 1, "Batch, channels, height, width."
    NHWC = 2, "Batch, height, width, channels."


class BindingAttribute(Enumeration):
    """The attributes of a binding that are numbers."""

    IS_INPUT = 0, "1 for an input, 0 for an output."
    DATA_TYPE = 1, "The element type, a hgDataType."
    LAYOUT = 2, "The layout, a hgLayout."
    NB_DIMS = 3, "The number of axes."
    BATCH_DIM = 4, "The axis of the batch; -1 if all sizes are fixed."
    SAMPLE_SIZE = 5, "The number of bytes of one sample of the batch, or of the whole binding if all sizes are fixed."


class ExecuteMode(Enumeration):
    """How the cores of an engine share the work; all engines of a virtual device have the same mode."""

    NORMAL = 0, "Each core computes separate batches with all weights."
    WEIGHT_SPLIT = 1, "All cores compute one batch together, each with a part of the weights."


class BatchSizeFlags(Enumeration):
    """The kind of execution for which hgEngineGetMaxBatchSize returns the size; join flags with `|`."""

    DEFAULT = 0, "Tensors in system memory, and a context with the fewest cores."
    HOST_TENSOR = 1, "Tensors in page-locked host memory."
    MAX_CORES = 2, "A context with the most cores that the device has."


class CoreAllocPolicy(Enumeration):
    """The cores that a new context allocates for the group of its engine.

    If the process has retained cores of a device, HG_CORE_ALLOC_MINIMUM and HG_CORE_ALLOC_MAXIMUM select only from
    these cores; otherwise they select from all free cores.
    """

    MINIMUM = 0, "The cores that one scheme needs."
    MAXIMUM = 1, "The largest multiple of these cores that is available, at least one."
    AS_CORE_MASK = (
        2,
        "Exactly the physical cores of the mask for this engine, and MINIMUM for the other engines of its group.",
    )


class MemFlags(Enumeration):
    """The kind of memory of a tensor or binding. The interface defines the numbers."""

    SYSTEM = 1, "System memory; a binding is an address."
    HOST = 2, "Page-locked host memory; a binding is the handle of a tensor."


ENUMS = (
    EnumDeclaration("hgResult", "HG_", Result),
    EnumDeclaration("hgDeviceAttribute", "HG_DEVICE_", DeviceAttribute),
    EnumDeclaration("hgDevicePriority", "HG_DEVICE_", DevicePriority),
    EnumDeclaration("hgDataType", "HG_TYPE_", DataType),
    EnumDeclaration("hgLayout", "HG_LAYOUT_", Layout),
    EnumDeclaration("hgBindingAttribute", "HG_BINDING_ATTR_", BindingAttribute),
    EnumDeclaration("hgExecuteMode", "HG_EXECUTE_", ExecuteMode),
    EnumDeclaration("hgBatchSizeFlags", "HG_BATCH_SIZE_", BatchSizeFlags),
    EnumDeclaration("hgCoreAllocPolicy", "HG_CORE_ALLOC_", CoreAllocPolicy),
    EnumDeclaration("hgMemFlags", "HG_MEM_", MemFlags, is_project_defined=False),
)
"""The enumerations of the interface."""

_TYPES: tuple[Declaration, ...] = (
    NumericMacro(
        "HG_VERSION", VERSION, "The version of the interface: 100 times the major number plus the minor number."
    ),
    NumericMacro("HG_MAX_DIMS", MAX_DIMS, "The maximum number of axes of a binding or tensor."),
    *ENUMS,
    Typedef("int32_t hgDevice", "The number of a device, starting at 0."),
    Typedef("struct hgEngine_st* hgEngine", "An engine: a compiled network, read from bytes."),
    Typedef(
        "struct hgExecutionScheme_st* hgExecutionScheme",
        "The scheme of an engine's group. It is valid until the engine is destroyed.",
    ),
    Typedef(
        "struct hgExecutionContext_st* hgExecutionContext",
        "An execution context: the cores and the uploaded weights of an engine.",
    ),
    Typedef("struct hgTensor_st* hgTensor", "A tensor in memory of the runtime."),
    StructDeclaration(
        "hgDims",
        "The sizes of a binding or tensor.",
        (
            StructField("int32_t nbDims", "Number of axes."),
            StructField("int64_t d[HG_MAX_DIMS]", "The sizes; the size of the batch is -1."),
        ),
        is_project_defined=True,
    ),
    StructDeclaration(
        "hgTensorDesc",
        "The description of a tensor.",
        (
            StructField("hgDataType type", "The element type."),
            StructField("hgLayout layout", "The meaning of the axes."),
            StructField("hgDims dims", "The sizes, each 0 or more."),
        ),
    ),
    StructDeclaration(
        "hgMemDesc",
        "The memory of a tensor.",
        (
            StructField("hgMemFlags location", "The kind of memory; 0 if `flags` of hgTensorCreate states it."),
            StructField("size_t alignment", "A power of two that divides the address; 0 lets the runtime choose."),
        ),
    ),
    StructDeclaration(
        "hgHostTensorDesc",
        "The memory of all bindings during an execution.",
        (
            StructField(
                "hgMemFlags location",
                "HG_MEM_SYSTEM: each binding is an address; HG_MEM_HOST: each is the handle of a tensor.",
            ),
            StructField(
                "size_t size",
                "The number of bytes at every address; a binding that needs more is rejected. 0: no check.",
            ),
        ),
    ),
    StructDeclaration(
        "hgEngineControl",
        "The entry of a scheme for one engine. It is valid until the engine that returned the scheme is destroyed.",
        (
            StructField("int32_t engineId", "The number of the engine in its group."),
            StructField("const char* engineName", "The name of the engine."),
            StructField("int32_t virtualDeviceId", "The virtual device that the engine runs on."),
            StructField(
                "int32_t engineGroupId", "Engines with the same number share memory and do not run at the same time."
            ),
            StructField("hgExecuteMode executeMode", "How the cores share the work."),
            StructField("int32_t coresPerBatch", "The minimum number of cores for one batch."),
            StructField("uint32_t coreMask", "The mask of the virtual cores that the engine runs on."),
            StructField(
                "uint64_t memoryConsumption", "The local memory of a core for one patch, in bytes, including weights."
            ),
        ),
    ),
)
"""The macros, the types and the structures of the interface."""

_RUNTIME = (
    FunctionDeclaration(
        "hgRuntimeGetVersion",
        "int* version",
        "Return the version of the interface: HG_VERSION at the time the library was built.",
    ),
    FunctionDeclaration(
        "hgGetResultName",
        "hgResult result, const char** name",
        "Return the name of a result, such as `HG_SUCCESS`.",
        is_project_defined=True,
    ),
    FunctionDeclaration(
        "hgGetResultDescription",
        "hgResult result, const char** description",
        "Return the meaning of a result.",
        is_project_defined=True,
    ),
    FunctionDeclaration(
        "hgGetLastErrorString",
        "const char** text",
        "Return why the latest failed call of this thread failed: what was passed and what was expected. The text is\n"
        "valid until the next call of the thread.",
        is_project_defined=True,
    ),
)
"""The functions that describe the runtime and its results."""

_DEVICES = (
    FunctionDeclaration("hgDeviceGetCount", "int* count", "Return the number of devices."),
    FunctionDeclaration(
        "hgDeviceGetCurrent", "hgDevice* device", "Return the current device of this thread, initially 0."
    ),
    FunctionDeclaration(
        "hgDeviceSetCurrent",
        "hgDevice device",
        "Make a device the current one of this thread. Engines, contexts and tensors belong to the device that was\n"
        "current when they were created. They can be used only while this device is current.",
    ),
    FunctionDeclaration(
        "hgDeviceGetAttribute",
        "hgDevice device, hgDeviceAttribute attribute, int* value",
        "Return an attribute of a device.",
    ),
    FunctionDeclaration(
        "hgDeviceRetain",
        "hgDevice device, unsigned int coreCount, hgDevicePriority priority, unsigned int* retainedCoreMask",
        "Retain cores for this process until it releases them or ends.\n\n"
        "The call retains `coreCount` cores (1 or more) and writes their mask to `retainedCoreMask`. Otherwise, it\n"
        "retains none and returns HG_ERROR_CORES_UNAVAILABLE.",
    ),
    FunctionDeclaration(
        "hgDeviceRelease",
        "hgDevice device, unsigned int coreMask",
        "Release retained cores.\n\n"
        "HG_ERROR_INVALID_ARGUMENT if the mask is empty or a core is not retained, HG_ERROR_IN_USE if a context uses\n"
        "a core. In both cases, no core is released.",
    ),
)
"""The functions that describe and retain devices."""

_ENGINES = (
    FunctionDeclaration(
        "hgEngineCreate",
        "const char* serialized, size_t size, hgEngine* engine",
        "Create an engine on the current device from the bytes of an engine file. They may be freed afterwards.\n\n"
        "HG_ERROR_INVALID_FILE, HG_ERROR_VERSION.",
    ),
    FunctionDeclaration(
        "hgEngineDestroy", "hgEngine engine", "Destroy an engine that has no context.", is_project_defined=True
    ),
    FunctionDeclaration(
        "hgEngineGetNbBindings",
        "hgEngine engine, int32_t* count",
        "Return the number of bindings; inputs precede outputs.",
    ),
    FunctionDeclaration(
        "hgEngineGetBindingIndex",
        "hgEngine engine, const char* name, int* index",
        "Return the index of the binding with this name.",
        is_project_defined=True,
    ),
    FunctionDeclaration(
        "hgEngineGetBindingName",
        "hgEngine engine, int index, const char** name",
        "Return the name of a binding.",
        is_project_defined=True,
    ),
    FunctionDeclaration(
        "hgEngineGetBindingDimensions",
        "hgEngine engine, int index, hgDims* dims",
        "Return the sizes of a binding; the size of the batch is -1.",
        is_project_defined=True,
    ),
    FunctionDeclaration(
        "hgEngineGetBindingType",
        "hgEngine engine, int index, hgDataType* type",
        "Return the element type of a binding.",
        is_project_defined=True,
    ),
    FunctionDeclaration(
        "hgEngineGetBindingLayout",
        "hgEngine engine, int index, hgLayout* layout",
        "Return the layout of a binding.",
        is_project_defined=True,
    ),
    FunctionDeclaration(
        "hgEngineGetBindingAttribute",
        "hgEngine engine, int index, hgBindingAttribute attribute, int* value",
        "Return an attribute of a binding.",
    ),
    FunctionDeclaration(
        "hgEngineGetExecutionScheme",
        "hgEngine engine, hgExecutionScheme* scheme",
        "Return the scheme of the engine's group.",
    ),
    FunctionDeclaration(
        "hgEngineGetEngineID", "hgEngine engine, int* engineId", "Return the number of the engine in its group."
    ),
    FunctionDeclaration(
        "hgSchemeGetEngineCount", "hgExecutionScheme scheme, int* count", "Return the number of engines in a group."
    ),
    FunctionDeclaration(
        "hgSchemeGetEngineControl",
        "hgExecutionScheme scheme, int engineId, hgEngineControl** control",
        "Return the entry of a scheme for an engine.",
    ),
    FunctionDeclaration(
        "hgEngineGetMaxBatchSize",
        "hgEngine engine, unsigned int flags, int* size",
        "Return the largest batch of one execution; `flags` are joined hgBatchSizeFlags.",
    ),
)
"""The functions that create and describe engines."""

_CONTEXTS = (
    FunctionDeclaration(
        "hgEngineCreateExecutionContext",
        "hgEngine engine, hgExecutionContext* context, hgCoreAllocPolicy policy, uint32_t coreMask",
        "Create the context of an engine that has none: allocate cores for its group and upload the weights.\n\n"
        "The first context of a group allocates the cores of all engines of the group. Further contexts use these,\n"
        "whatever their policy; a mask must then equal the mask of the engine. `coreMask` is 0 unless the policy is\n"
        "HG_CORE_ALLOC_AS_CORE_MASK. HG_ERROR_CORES_UNAVAILABLE (no core is allocated then), HG_ERROR_CONTEXT_EXISTS.",
    ),
    FunctionDeclaration(
        "hgExecutionContextDestroy",
        "hgExecutionContext context",
        "Destroy a context after its execution has ended. The last context of a group releases the allocated cores.",
        is_project_defined=True,
    ),
    FunctionDeclaration(
        "hgExecutionContextExecute",
        "hgExecutionContext context, int batchSize, void** bindings, const hgHostTensorDesc* tensorInfo",
        "Execute the engine on a batch, and return when its outputs are written.\n\n"
        "`bindings` has one entry per binding. `tensorInfo` points to one description, which applies to all bindings;\n"
        "NULL means system memory. A large batch is split, and upload, computation and download of its parts overlap.\n"
        "Calls of several threads on one context run one after the other. HG_ERROR_BATCH_SIZE, HG_ERROR_BINDING.",
    ),
)
"""The functions that execute engines."""

_TENSORS = (
    FunctionDeclaration(
        "hgTensorCreate",
        "const hgTensorDesc* desc, const hgMemDesc* memory, unsigned int flags, hgTensor* tensor",
        "Create a tensor on the current device. If `desc` is NULL, the tensor has no memory until hgTensorUpdateDesc\n"
        "is called. `flags` is an hgMemFlags, or 0 for the location in `memory`. If `flags` is not 0, `memory` may be\n"
        "NULL or have the location 0; a location that differs from `flags` is rejected.",
    ),
    FunctionDeclaration(
        "hgTensorDestroy", "hgTensor tensor", "Destroy a tensor that is not mapped.", is_project_defined=True
    ),
    FunctionDeclaration(
        "hgTensorUpdateDesc",
        "hgTensor tensor, const hgTensorDesc* desc",
        "Set or replace the description of a tensor; memory is allocated if the tensor does not have enough.",
    ),
    FunctionDeclaration(
        "hgTensorData",
        "hgTensor tensor, const void* data, size_t size",
        "Copy `size` bytes to a tensor; `size` must be the size of the tensor.",
    ),
    FunctionDeclaration(
        "hgTensorMap",
        "hgTensor tensor, void** address",
        "Return the address of a tensor for direct access. Until it is unmapped, it can't be changed or destroyed.",
    ),
    FunctionDeclaration("hgTensorUnmap", "hgTensor tensor", "End the direct access to a mapped tensor."),
    FunctionDeclaration(
        "hgTensorGetDesc",
        "hgTensor tensor, hgTensorDesc* desc",
        "Return the description of a tensor.",
        is_project_defined=True,
    ),
    FunctionDeclaration(
        "hgTensorGetSize",
        "hgTensor tensor, size_t* size",
        "Return the number of bytes of a tensor's elements.",
        is_project_defined=True,
    ),
    FunctionDeclaration(
        "hgTensorGetAlignedSize",
        "hgTensor tensor, size_t* size",
        "Return the number of bytes of a tensor's memory.",
        is_project_defined=True,
    ),
)
"""The functions that create and access tensors."""

FUNCTIONS: tuple[FunctionDeclaration, ...] = (*_RUNTIME, *_DEVICES, *_ENGINES, *_CONTEXTS, *_TENSORS)
"""Every function, in the order in which a program needs them."""

DECLARATIONS: tuple[Declaration, ...] = (*_TYPES, *FUNCTIONS)
"""All declarations of the header, in order."""
