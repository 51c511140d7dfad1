"""The functions of `diopirt.h`: what the runtime offers to an operator while it runs.

Every function returns `diopiSuccess`, or returns an error code and does not write its results. The code is
`diopiErrorOccurred` for a NULL or invalid handle and for a NULL result pointer; a function that the vendor has not
registered has a specific code. Returned sizes and strides stay valid as long as the tensor exists. A tensor's memory
may be read and written only through its stream.

Source: the DIOPI interface; strides, offsets and sparse parts are as in PyTorch (torch.Tensor.stride, storage_offset,
crow_indices, col_indices, values).
"""

from typing import Annotated

from diopi_proto.declaration import prototype
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

# Each of these annotations stands for the C type in quotes. "Out" means that the function writes the value.

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
    """Return the version of the interface as text, `major.minor.patch`, in a static string."""


@prototype()
def diopiGetTensorData(th: MutableIn, ptr: AddressOut):
    """Get the address of the tensor's first element on its device: storage address + offset · element size.

    Errors: a sparse tensor, which has no dense data.
    """


@prototype()
def diopiGetTensorDataConst(th: In, ptr: ConstAddressOut):
    """Get the read-only address of the tensor's first element. Errors: as `diopiGetTensorData`."""


@prototype()
def diopiGetTensorShape(th: In, size: SizeOut):
    """Get the shape of the tensor; its length is the number of dimensions, which is 0 for a 0-d tensor."""


@prototype()
def diopiGetTensorStride(th: In, stride: SizeOut):
    """Get the distance in elements between neighbors along each axis; it is 0 along an expanded axis.

    Errors: a sparse tensor, which has no strides.
    """


@prototype()
def diopiGetTensorDtype(th: In, dtype: DtypeOut):
    """Get the element type of the tensor; for a sparse tensor, the element type of its values."""


@prototype()
def diopiGetTensorDevice(th: In, device: DeviceOut):
    """Get the kind of memory that contains the tensor: device or host memory."""


@prototype()
def diopiGetTensorNumel(th: In, numel: OutI64):
    """Get the number of elements, which is the product of the shape; it is 1 for a 0-d tensor."""


@prototype()
def diopiGetTensorElemSize(th: In, itemsize: OutI64):
    """Get the size of an element in bytes."""


@prototype()
def diopiGetTensorStoragePtr(th: In, pStoragePtr: AddressOut):
    """Get the address of the storage that the tensor is a view of. Errors: a sparse tensor, which has no storage."""


@prototype()
def diopiGetTensorStorageOffset(th: In, pOffset: OutI64):
    """Get the offset of the tensor's first element in its storage, in elements.

    Errors: as `diopiGetTensorStoragePtr`.
    """


@prototype()
def diopiGetTensorStorageNbytes(th: In, pNbytes: BytesOut):
    """Get the size of the storage in bytes. Errors: as `diopiGetTensorStoragePtr`."""


@prototype()
def diopiGetTensorDeviceIndex(th: In, pDevIndex: DeviceIndexOut):
    """Get the index of the tensor's device; it is 0 for the first device and for host tensors."""


@prototype()
def diopiGetTensorCrowIndices(th: In, crow_indices: ConstTensorOut):
    """Get the row pointers of a CSR tensor, shape (rows + 1). Errors: the tensor is not sparse."""


@prototype()
def diopiGetTensorColIndices(th: In, col_indices: ConstTensorOut):
    """Get the column of each stored element of a CSR tensor, shape (nnz). Errors: the tensor is not sparse."""


@prototype()
def diopiGetTensorValues(th: In, values: ConstTensorOut):
    """Get the nnz stored elements of a CSR tensor, shape (nnz). Errors: the tensor is not sparse."""


@prototype()
def diopiIsTensorSparse(th: In, is_sparse: OutBool):
    """Get whether the tensor is in compressed sparse row (CSR) form."""


@prototype()
def diopiGetCurrentDeviceIndex(pDevIndex: DeviceIndexOut):
    """Get the index of the current device of the calling thread; it is 0 for the first device."""


@prototype()
def diopiGetStream(ctx: Context, stream: StreamOut):
    """Get the stream of the context, on which operators enqueue their work.

    The vendor's stream-create function created it.
    """


@prototype()
def diopiRequireTensor(
    ctx: Context, tensor: NewOut, size: SizeIn, stride: SizeIn, dtype: DtypeIn, device: ConstDeviceIn
):
    """Create a tensor with undefined elements; the context owns it and releases it when the context is destroyed.

    `size` is the shape. `stride` is NULL for a contiguous tensor; otherwise it has as many entries as `size`, and none
    is negative. Errors: `diopiDtypeNotSupported` for an unknown `dtype`; a `size` that is NULL or has a negative entry;
    out of memory.
    """


@prototype()
def diopiRequireBuffer(ctx: Context, tensor: NewOut, num_bytes: i64, device: DeviceIn):
    """Create a one-dimensional uint8 tensor of `num_bytes` undefined elements, which the context owns.

    Errors: a negative `num_bytes`; out of memory.
    """


@prototype()
def diopiGeneratorGetState(ctx: Context, th: ConstGenerator, data: NewOut):
    """Get the generator's state as a uint8 host tensor of 16 elements, which the context owns.

    The elements are the seed and the offset, eight bytes each, least significant byte first.
    """


@prototype()
def diopiGeneratorSetState(th: Generator, state: In):
    """Set the generator to a state from `diopiGeneratorGetState`.

    Errors: `state` is not a contiguous uint8 tensor of 16 elements.
    """


@prototype()
def diopiGeneratorGetSeedAndOffset(th: Generator, ptrSeed: U64Out, ptrOffset: U64Out):
    """Get the seed of the generator and the count of numbers drawn since the seed was set."""


@prototype()
def diopiGeneratorSetSeedAndOffset(th: Generator, seed: U64, offset: U64):
    """Set the seed and the offset of the generator."""


@prototype()
def diopiRecordStart(record_name: Text, record: AddressOut):
    """Begin a named timing record and store in `*record` the handle that ends it; records nest within a thread."""


@prototype()
def diopiRecordEnd(record: AddressOut):
    """End the record `*record` and set `*record` to NULL. Errors: `*record` is not a running record."""
