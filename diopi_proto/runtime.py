"""The functions of `diopirt.h`: what the runtime offers to an operator while it runs.

Every function answers `diopiSuccess`, or an error code and leaves its results alone: `diopiErrorOccurred` for a NULL or
dead handle and for a NULL result pointer, the code of its own for a function the vendor has not registered. Sizes and
strides handed out stay valid as long as the tensor does. A tensor's memory is read and written through its stream only.
Source: the DIOPI interface; strides, offsets and sparse parts mean what they mean in PyTorch (torch.Tensor.stride,
storage_offset, crow_indices, col_indices, values).
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
    """Address of the tensor's first element, where `th` lies: storage address + offset · element size.

    Errors: a sparse tensor has no dense data.
    """


@prototype()
def diopiGetTensorDataConst(th: In, ptr: ConstAddressOut):
    """Address of the tensor's first element, to be read only. Errors: as `diopiGetTensorData`."""


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
    """Element type of the tensor; of a sparse tensor that of its values."""


@prototype()
def diopiGetTensorDevice(th: In, device: DeviceOut):
    """Whether the tensor's memory lies on the device or in host memory."""


@prototype()
def diopiGetTensorNumel(th: In, numel: OutI64):
    """Number of elements, the product of the shape; 1 for a 0-d tensor."""


@prototype()
def diopiGetTensorElemSize(th: In, itemsize: OutI64):
    """Bytes an element takes."""


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
    """Number of the device the tensor lies on, 0 for the first; host tensors give 0."""


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
    """Number of the device the calling thread works with, 0 for the first."""


@prototype()
def diopiGetStream(ctx: Context, stream: StreamOut):
    """Stream of the context, made by the vendor's stream-create function; operators enqueue their work on it."""


@prototype()
def diopiRequireTensor(
    ctx: Context, tensor: NewOut, size: SizeIn, stride: SizeIn, dtype: DtypeIn, device: ConstDeviceIn
):
    """Make a tensor with undefined elements; the context owns it and releases it when it is destroyed.

    `size` is the shape; `stride` NULL means contiguous, else as many strides as `size` has entries, none negative.
    Errors: `diopiDtypeNotSupported` for an unknown `dtype`; `size` NULL or with a negative entry; out of memory.
    """


@prototype()
def diopiRequireBuffer(ctx: Context, tensor: NewOut, num_bytes: i64, device: DeviceIn):
    """Make a one-dimensional uint8 tensor of `num_bytes` undefined elements, owned by the context.

    Errors: `num_bytes` negative; out of memory.
    """


@prototype()
def diopiGeneratorGetState(ctx: Context, th: ConstGenerator, data: NewOut):
    """The generator's state as a uint8 host tensor of 16 elements, owned by the context.

    The elements are seed and offset, eight bytes each, least significant first.
    """


@prototype()
def diopiGeneratorSetState(th: Generator, state: In):
    """Set the generator to a state `diopiGeneratorGetState` gave.

    Errors: `state` is not a contiguous uint8 tensor of 16 elements.
    """


@prototype()
def diopiGeneratorGetSeedAndOffset(th: Generator, ptrSeed: U64Out, ptrOffset: U64Out):
    """Seed of the generator, and how many numbers were drawn since it was set."""


@prototype()
def diopiGeneratorSetSeedAndOffset(th: Generator, seed: U64, offset: U64):
    """Set seed and offset of the generator."""


@prototype()
def diopiRecordStart(record_name: Text, record: AddressOut):
    """Begin a named timing record; records nest within a thread. `record` gets the handle that ends it."""


@prototype()
def diopiRecordEnd(record: AddressOut):
    """End the record `*record` and set `*record` to NULL. Errors: `*record` is not a running record."""
