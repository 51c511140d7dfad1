"""The functions of `diopirt.h`: what the runtime offers to an operator while it runs.

Every function returns `diopiSuccess`, or returns an error code and does not write its results. The code is
`diopiErrorOccurred` for a NULL or invalid handle and for a NULL result pointer; a function that the vendor has not
registered has a specific code. Returned sizes and strides stay valid as long as the tensor exists. A tensor's memory
may be read and written only through its stream. Source: the DIOPI interface; strides, offsets and sparse parts are as
in PyTorch (torch.Tensor.stride, storage_offset, crow_indices, col_indices, values).
"""

from typing import Annotated

from diopi_proto.parameters import (
    Context,
    Generator,
    In,
    MutableIn,
    NewOut,
    OutBool,
    OutI64,
    Text,
    i64,
)
from diopi_proto.prototype import prototype

AddressOut = Annotated[object, "void**"]
ConstAddressOut = Annotated[object, "const void**"]
SizeOut = Annotated[object, "diopiSize_t*"]
SizeIn = Annotated[object, "const diopiSize_t*"]
DtypeIn = Annotated[object, "const diopiDtype_t"]
DtypeOut = Annotated[object, "diopiDtype_t*"]
DeviceIn = Annotated[object, "diopiDevice_t"]
ConstDeviceIn = Annotated[object, "const diopiDevice_t"]
DeviceOut = Annotated[object, "diopiDevice_t*"]
DeviceIndexOut = Annotated[object, "diopiDeviceIndex_t*"]
BytesOut = Annotated[object, "size_t*"]
ConstTensorOut = Annotated[object, "diopiConstTensorHandle_t*"]
StreamOut = Annotated[object, "diopiStreamHandle_t*"]
ConstGenerator = Annotated[object, "diopiConstGeneratorHandle_t"]
U64 = Annotated[object, "uint64_t"]
U64Out = Annotated[object, "uint64_t*"]


@prototype(returns="const char*")
def diopiGetVersion():
    """Version of the interface as text, `major.minor.patch`; a static string."""


@prototype()
def diopiGetTensorData(th: MutableIn, ptr: AddressOut):
    """Address of the tensor's first element on its device: storage address + offset · element size.

    Errors: a sparse tensor has no dense data.
    """


@prototype()
def diopiGetTensorDataConst(th: In, ptr: ConstAddressOut):
    """Read-only address of the tensor's first element. Errors: as `diopiGetTensorData`."""


@prototype()
def diopiGetTensorShape(th: In, size: SizeOut):
    """Shape of the tensor; its length is the number of dimensions, 0 for a 0-d tensor."""


@prototype()
def diopiGetTensorStride(th: In, stride: SizeOut):
    """Distance in elements between neighbours along each axis; 0 along an expanded axis.

    Errors: a sparse tensor has no strides.
    """


@prototype()
def diopiGetTensorDtype(th: In, dtype: DtypeOut):
    """Element type of the tensor; for a sparse tensor, the type of its values."""


@prototype()
def diopiGetTensorDevice(th: In, device: DeviceOut):
    """The kind of memory that the tensor is in: device or host memory."""


@prototype()
def diopiGetTensorNumel(th: In, numel: OutI64):
    """Number of elements, the product of the shape; 1 for a 0-d tensor."""


@prototype()
def diopiGetTensorElemSize(th: In, itemsize: OutI64):
    """Size of an element in bytes."""


@prototype()
def diopiGetTensorStoragePtr(th: In, pStoragePtr: AddressOut):
    """Address of the storage the tensor is a view of. Errors: a sparse tensor has no storage of its own."""


@prototype()
def diopiGetTensorStorageOffset(th: In, pOffset: OutI64):
    """Position of the tensor's first element in its storage, in elements. Errors: as `diopiGetTensorStoragePtr`."""


@prototype()
def diopiGetTensorStorageNbytes(th: In, pNbytes: BytesOut):
    """Size of the storage in bytes. Errors: as `diopiGetTensorStoragePtr`."""


@prototype()
def diopiGetTensorDeviceIndex(th: In, pDevIndex: DeviceIndexOut):
    """Number of the tensor's device, 0 for the first device and for host tensors."""


@prototype()
def diopiGetTensorCrowIndices(th: In, crow_indices: ConstTensorOut):
    """Row pointers of a CSR tensor, shape (rows + 1). Errors: the tensor is not sparse."""


@prototype()
def diopiGetTensorColIndices(th: In, col_indices: ConstTensorOut):
    """Column of each stored element of a CSR tensor, shape (stored). Errors: the tensor is not sparse."""


@prototype()
def diopiGetTensorValues(th: In, values: ConstTensorOut):
    """Stored elements of a CSR tensor, shape (stored). Errors: the tensor is not sparse."""


@prototype()
def diopiIsTensorSparse(th: In, is_sparse: OutBool):
    """Whether the tensor is in compressed sparse row (CSR) form."""


@prototype()
def diopiGetCurrentDeviceIndex(pDevIndex: DeviceIndexOut):
    """Number of the current device of the calling thread, 0 for the first device."""


@prototype()
def diopiGetStream(ctx: Context, stream: StreamOut):
    """Stream of the context, created by the vendor's stream-create function; operators enqueue their work on it."""


@prototype()
def diopiRequireTensor(
    ctx: Context, tensor: NewOut, size: SizeIn, stride: SizeIn, dtype: DtypeIn, device: ConstDeviceIn
):
    """Create a tensor with undefined elements; the context owns it and releases it when it is destroyed.

    `size` is the shape. `stride` is NULL for a contiguous tensor; otherwise it has as many entries as `size`, none
    negative. Errors: `diopiDtypeNotSupported` for an unknown `dtype`; `size` NULL or with a negative entry; out of
    memory.
    """


@prototype()
def diopiRequireBuffer(ctx: Context, tensor: NewOut, num_bytes: i64, device: DeviceIn):
    """Create a one-dimensional uint8 tensor of `num_bytes` undefined elements, owned by the context.

    Errors: `num_bytes` negative; out of memory.
    """


@prototype()
def diopiGeneratorGetState(ctx: Context, th: ConstGenerator, data: NewOut):
    """The generator's state as a uint8 host tensor of 16 elements, owned by the context.

    The elements are seed and offset, eight bytes each, least significant first.
    """


@prototype()
def diopiGeneratorSetState(th: Generator, state: In):
    """Set the generator to a state from `diopiGeneratorGetState`.

    Errors: `state` is not a contiguous uint8 tensor of 16 elements.
    """


@prototype()
def diopiGeneratorGetSeedAndOffset(th: Generator, ptrSeed: U64Out, ptrOffset: U64Out):
    """Seed of the generator, and the count of numbers drawn since the seed was set."""


@prototype()
def diopiGeneratorSetSeedAndOffset(th: Generator, seed: U64, offset: U64):
    """Set seed and offset of the generator."""


@prototype()
def diopiRecordStart(record_name: Text, record: AddressOut):
    """Begin a named timing record; records nest within a thread. `record` gets the handle that ends it."""


@prototype()
def diopiRecordEnd(record: AddressOut):
    """End the record `*record` and set `*record` to NULL. Errors: `*record` is not a running record."""
