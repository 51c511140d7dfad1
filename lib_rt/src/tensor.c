/* Tensors: layout, memory, and the functions with which an operator inspects them. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

bool tensor_is_sparse(const struct diopiTensor* tensor) { return tensor->strides == NULL; }

enum { MAX_AXES = 1024 }; /* a shape with more axes is certainly invalid */

/* Set the shape; the allocated memory also has room for the strides. */
static diopiError_t set_shape(struct diopiTensor* tensor, const diopiSize_t* shape) {
    int64_t numel = 1;
    EXPECT(shape->len <= MAX_AXES, "a shape has %lld axes, more than %d", (long long)shape->len, MAX_AXES);
    for (int64_t i = 0; i < shape->len; i++) {
        EXPECT(shape->data[i] >= 0, "axis %lld of a shape has negative size %lld", (long long)i,
               (long long)shape->data[i]);
        EXPECT(!__builtin_mul_overflow(numel, shape->data[i], &numel), "a shape has more than 2^63 elements");
    }
    tensor->shape = malloc(sizeof(int64_t) * (size_t)(2 * shape->len + 1));
    EXPECT(tensor->shape != NULL, "out of host memory for a tensor");
    if (shape->len > 0) memcpy(tensor->shape, shape->data, sizeof(int64_t) * (size_t)shape->len);
    tensor->dimensions = shape->len;
    tensor->numel = numel;
    return diopiSuccess;
}

static diopiError_t set_contiguous(struct diopiTensor* tensor) {
    int64_t stride = 1;
    for (int64_t i = tensor->dimensions - 1; i >= 0; i--) {
        tensor->strides[i] = stride;
        int64_t size = tensor->shape[i] > 0 ? tensor->shape[i] : 1;
        EXPECT(!__builtin_mul_overflow(stride, size, &stride), "the axes of a shape behind an empty one are too large");
    }
    return diopiSuccess;
}

static diopiError_t set_strides(struct diopiTensor* tensor, const diopiSize_t* strides) {
    tensor->strides = tensor->shape + tensor->dimensions;
    if (strides == NULL) return set_contiguous(tensor);
    EXPECT(strides->len == tensor->dimensions, "%lld strides for a %lld-d tensor", (long long)strides->len,
           (long long)tensor->dimensions);
    for (int64_t i = 0; i < strides->len; i++) {
        EXPECT(strides->data[i] >= 0, "the stride of axis %lld is negative: %lld", (long long)i,
               (long long)strides->data[i]);
        tensor->strides[i] = strides->data[i];
    }
    return diopiSuccess;
}

/* Compute the number of elements from the start of the storage to the last element of the tensor. */
static diopiError_t extent(const struct diopiTensor* tensor, int64_t* elements) {
    int64_t last = tensor->offset;
    for (int64_t i = 0; i < tensor->dimensions && tensor->numel > 0; i++) {
        int64_t step;
        EXPECT(!__builtin_mul_overflow(tensor->shape[i] - 1, tensor->strides[i], &step) &&
                   !__builtin_add_overflow(last, step, &last),
               "the strides reach over more than 2^63 elements");
    }
    EXPECT(!__builtin_add_overflow(last, tensor->numel > 0, elements),
           "the strides reach over more than 2^63 elements");
    return diopiSuccess;
}

static diopiError_t storage_bytes(const struct diopiTensor* tensor, int64_t storage_elements, int64_t* bytes) {
    int64_t needed = 0, padded;
    TRY(extent(tensor, &needed));
    int64_t elements = storage_elements == -1 ? needed : storage_elements;
    EXPECT(elements >= needed, "the tensor needs %lld elements, its storage has %lld", (long long)needed,
           (long long)elements);
    EXPECT(!__builtin_mul_overflow(elements, element_size(tensor->dtype), bytes) &&
               !__builtin_add_overflow(*bytes, 2 * GUARD_BYTES, &padded),
           "a storage of %lld elements has more than 2^63 bytes", (long long)elements);
    EXPECT((uint64_t)padded <= SIZE_MAX / 2, "a storage of %lld elements is too large for this processor",
           (long long)elements);
    return diopiSuccess;
}

static diopiError_t check_arguments(diopiContextHandle_t context, const diopiSize_t* shape, const diopiSize_t* strides,
                                    const void* result) {
    TRY(handle_check(context, CONTEXT, "tensor"));
    EXPECT(shape != NULL && shape->len >= 0 && (shape->data != NULL || shape->len == 0), "the tensor has no shape");
    EXPECT(strides == NULL || strides->len == 0 || strides->data != NULL, "the tensor's strides are NULL");
    EXPECT(result != NULL, "the result pointer for a tensor is NULL");
    return diopiSuccess;
}

static diopiError_t check_layout(const struct diopirt_layout* layout) {
    diopiDtype_t dtype = layout->dtype;
    diopiDevice_t memory_kind = layout->memory_kind;
    if (element_size(dtype) == 0) return fail(diopiDtypeNotSupported, "%d is not an element type", (int)dtype);
    EXPECT(memory_kind == diopi_host || memory_kind == diopi_device, "%d is neither host nor device", (int)memory_kind);
    EXPECT(layout->offset >= 0, "the storage offset is negative: %lld", (long long)layout->offset);
    return diopiSuccess;
}

static void discard(struct diopiTensor* tensor) {
    free(tensor->shape);
    handle_retire(tensor);
}

static diopiError_t build_dense(struct diopiTensor* tensor, diopiContextHandle_t context,
                                const struct diopirt_layout* layout, struct origin origin) {
    int64_t bytes = 0;
    TRY(set_shape(tensor, layout->shape));
    TRY(set_strides(tensor, layout->strides));
    TRY(storage_bytes(tensor, layout->storage_elements, &bytes));
    if (origin.memory != NULL) {
        block_borrow(&tensor->block, layout->memory_kind, bytes, origin.memory);
        return diopiSuccess;
    }
    return block_create(&tensor->block, context->stream, layout->memory_kind, tensor->dtype, bytes, origin.payload);
}

diopiError_t tensor_create(diopiContextHandle_t context, const struct diopirt_layout* layout, struct origin origin,
                           diopiTensorHandle_t* tensor) {
    TRY(check_arguments(context, layout->shape, layout->strides, tensor));
    TRY(check_layout(layout));
    struct diopiTensor* new_tensor = handle_new(TENSOR);
    EXPECT(new_tensor != NULL, "out of host memory for a tensor");
    new_tensor->dtype = layout->dtype;
    new_tensor->offset = layout->offset;
    new_tensor->required = origin.required;
    diopiError_t code = build_dense(new_tensor, context, layout, origin);
    if (code != diopiSuccess) {
        discard(new_tensor);
        return code;
    }
    context_adopt(context, new_tensor);
    *tensor = new_tensor;
    return diopiSuccess;
}

diopiError_t diopirt_tensor_create(diopiContextHandle_t context, const diopiSize_t* shape, const diopiSize_t* strides,
                                   diopiDtype_t dtype, diopiDevice_t memory_kind, int64_t offset,
                                   int64_t storage_elements, const void* payload, diopiTensorHandle_t* tensor) {
    struct diopirt_layout layout = {shape, strides, dtype, memory_kind, offset, storage_elements};
    return tensor_create(context, &layout, (struct origin){.payload = payload}, tensor);
}

diopiTensorHandle_t diopirt_tensor_open(diopiContextHandle_t context, const struct diopirt_layout* layout,
                                        const void* payload) {
    diopiTensorHandle_t new_tensor = NULL;
    if (layout == NULL) {
        fail(diopiErrorOccurred, "%s: the layout is NULL", __func__);
    } else {
        tensor_create(context, layout, (struct origin){.payload = payload}, &new_tensor);
    }
    return new_tensor;
}

diopiError_t diopirt_tensor_over(diopiContextHandle_t context, const diopiSize_t* shape, const diopiSize_t* strides,
                                 diopiDtype_t dtype, int64_t offset, void* memory, int64_t bytes,
                                 diopiTensorHandle_t* tensor) {
    EXPECT(memory != NULL && bytes >= 0, "%s: %lld bytes of memory at %p", __func__, (long long)bytes, memory);
    int64_t size = element_size(dtype), elements = size > 0 ? bytes / size : 0;
    struct diopirt_layout layout = {shape, strides, dtype, diopi_device, offset, elements};
    return tensor_create(context, &layout, (struct origin){.memory = memory}, tensor);
}

static diopiError_t check_dense(const struct diopiTensor* tensor, const char* caller) {
    TRY(handle_check(tensor, TENSOR, caller));
    EXPECT(!tensor_is_sparse(tensor), "%s: a sparse tensor has no dense memory", caller);
    return diopiSuccess;
}

static diopiError_t check_sparse(const struct diopiTensor* tensor, const char* caller) {
    TRY(handle_check(tensor, TENSOR, caller));
    EXPECT(tensor_is_sparse(tensor), "%s: the tensor is not sparse", caller);
    return diopiSuccess;
}

diopiError_t diopirt_tensor_clone(diopiTensorHandle_t tensor, diopiTensorHandle_t* clone) {
    TRY(check_dense(tensor, __func__));
    EXPECT_RESULT(clone);
    diopirt_stream_t stream = tensor->context->stream;
    int64_t bytes = tensor->block.nbytes;
    if (tensor->block.memory_kind == diopi_device) TRY(device_require(stream->device, diopirt_d2d_service));
    diopiSize_t shape = {tensor->shape, tensor->dimensions}, strides = {tensor->strides, tensor->dimensions};
    diopiTensorHandle_t new_tensor;
    TRY(diopirt_tensor_create(tensor->context, &shape, &strides, tensor->dtype, tensor->block.memory_kind,
                              tensor->offset, bytes / element_size(tensor->dtype),
                              tensor->block.memory_kind == diopi_host ? block_payload(&tensor->block) : NULL,
                              &new_tensor));
    if (new_tensor->block.memory_kind == diopi_device) {
        diopiError_t code = stream_copy(stream, diopirt_d2d_service, block_payload(&new_tensor->block),
                                        block_payload(&tensor->block), (uint64_t)bytes);
        if (code != diopiSuccess) {
            stream_synchronize(stream); /* the copy of the poison may still be running */
            tensor_free(new_tensor);
            return code;
        }
    }
    *clone = new_tensor;
    return diopiSuccess;
}

diopiError_t diopirt_tensor_sparse_csr(diopiContextHandle_t context, const diopiSize_t* shape, diopiTensorHandle_t crow,
                                       diopiTensorHandle_t col, diopiTensorHandle_t values,
                                       diopiTensorHandle_t* tensor) {
    TRY(check_arguments(context, shape, NULL, tensor));
    const struct diopiTensor* parts[PARTS] = {[CROW] = crow, [COL] = col, [VALUES] = values};
    for (int i = 0; i < PARTS; i++) TRY(check_dense(parts[i], __func__));
    struct diopiTensor* new_tensor = handle_new(TENSOR);
    EXPECT(new_tensor != NULL, "out of host memory for a tensor");
    diopiError_t code = set_shape(new_tensor, shape);
    if (code != diopiSuccess) {
        discard(new_tensor);
        return code;
    }
    new_tensor->dtype = values->dtype;
    new_tensor->block.memory_kind = values->block.memory_kind;
    memcpy(new_tensor->parts, parts, sizeof parts);
    context_adopt(context, new_tensor);
    *tensor = new_tensor;
    return diopiSuccess;
}

void tensor_free(struct diopiTensor* tensor) {
    context_release(tensor->context, tensor);
    if (!tensor_is_sparse(tensor)) block_release(&tensor->block, tensor->context->stream->device);
    discard(tensor);
}

static diopiError_t check_guards(struct diopiTensor* tensor, int64_t* damage) {
    diopirt_stream_t stream = tensor->context->stream;
    struct staging* image;
    diopiError_t fetched = block_fetch(&tensor->block, stream, &image);
    diopiError_t waited = stream_synchronize(stream); /* also after an error: diopirt_tensor_destroy relies on it */
    if (fetched == diopiSuccess && waited == diopiSuccess) return block_verify(&tensor->block, image, damage);
    if (image != NULL) stream_keep(stream, image);
    return waited != diopiSuccess ? waited : fetched;
}

diopiError_t diopirt_tensor_check(diopiTensorHandle_t tensor, int64_t* damage) {
    TRY(check_dense(tensor, __func__));
    return check_guards(tensor, damage);
}

diopiError_t diopirt_tensor_destroy(diopiTensorHandle_t tensor, int64_t* damage) {
    TRY(handle_check(tensor, TENSOR, __func__));
    diopiError_t checked = diopiSuccess;
    if (!tensor_is_sparse(tensor)) {
        TRY(block_releasable(&tensor->block, tensor->context->stream->device));
        if (!tensor->block.borrowed) checked = check_guards(tensor, damage);
    }
    tensor_free(tensor);
    return checked;
}

static diopiError_t check_range(const struct diopiTensor* tensor, int64_t start, int64_t bytes, const void* host,
                                const char* caller) {
    TRY(check_dense(tensor, caller));
    EXPECT(start >= 0 && bytes >= 0 && bytes <= tensor->block.nbytes - start,
           "%s: %lld bytes from byte %lld of a storage of %lld", caller, (long long)bytes, (long long)start,
           (long long)tensor->block.nbytes);
    EXPECT(host != NULL || bytes == 0, "%s: the host memory is NULL", caller);
    return diopiSuccess;
}

diopiError_t diopirt_tensor_read(diopiConstTensorHandle_t tensor, int64_t start, int64_t bytes, void* dst) {
    TRY(check_range(tensor, start, bytes, dst, __func__));
    diopirt_stream_t stream = tensor->context->stream;
    const unsigned char* src = block_payload(&tensor->block) + start;
    if (tensor->block.memory_kind == diopi_host) {
        TRY(stream_synchronize(stream));
        if (bytes > 0) memcpy(dst, src, (size_t)bytes);
        return diopiSuccess;
    }
    TRY(device_require(stream->device, diopirt_stream_sync_service));
    if (bytes > 0) TRY(stream_copy(stream, diopirt_d2h_service, dst, src, (uint64_t)bytes));
    return stream_synchronize(stream);
}

diopiError_t diopirt_tensor_write(diopiTensorHandle_t tensor, int64_t start, int64_t bytes, const void* src) {
    TRY(check_range(tensor, start, bytes, src, __func__));
    diopirt_stream_t stream = tensor->context->stream;
    unsigned char* dst = block_payload(&tensor->block) + start;
    if (bytes == 0) return diopiSuccess;
    if (tensor->block.memory_kind == diopi_host) {
        TRY(stream_synchronize(stream));
        memcpy(dst, src, (size_t)bytes);
        return diopiSuccess;
    }
    TRY(device_require(stream->device, diopirt_h2d_service));
    struct staging* staging = staging_new(bytes);
    EXPECT(staging != NULL, "out of host memory: %lld bytes", (long long)bytes);
    memcpy(staging->bytes, src, (size_t)bytes);
    return stream_upload(stream, dst, staging, (uint64_t)bytes);
}

diopiError_t diopiRequireTensor(diopiContextHandle_t ctx, diopiTensorHandle_t* tensor, const diopiSize_t* size,
                                const diopiSize_t* stride, const diopiDtype_t dtype, const diopiDevice_t device) {
    struct diopirt_layout layout = {size, stride, dtype, device, 0, -1};
    return tensor_create(ctx, &layout, (struct origin){.required = true}, tensor);
}

diopiError_t diopiRequireBuffer(diopiContextHandle_t ctx, diopiTensorHandle_t* tensor, int64_t num_bytes,
                                diopiDevice_t device) {
    diopiSize_t size = {&num_bytes, 1};
    return diopiRequireTensor(ctx, tensor, &size, NULL, diopi_dtype_uint8, device);
}

/* Define a getter: its name, the types of its handle and result, the check of the tensor, and the result. */
#define GETTER(function, handle_t, result_t, check, value) \
    diopiError_t function(handle_t th, result_t* result) { \
        EXPECT_RESULT(result);                             \
        TRY(check(th, __func__));                          \
        *result = (value);                                 \
        return diopiSuccess;                               \
    }

static diopiError_t check_any(const struct diopiTensor* tensor, const char* caller) {
    return handle_check(tensor, TENSOR, caller);
}

static void* data(const struct diopiTensor* tensor) {
    return block_payload(&tensor->block) + tensor->offset * element_size(tensor->dtype);
}

GETTER(diopiGetTensorData, diopiTensorHandle_t, void*, check_dense, data(th))
GETTER(diopiGetTensorDataConst, diopiConstTensorHandle_t, const void*, check_dense, data(th))
GETTER(diopiGetTensorShape, diopiConstTensorHandle_t, diopiSize_t, check_any,
       ((diopiSize_t){th->shape, th->dimensions}))
GETTER(diopiGetTensorStride, diopiConstTensorHandle_t, diopiSize_t, check_dense,
       ((diopiSize_t){th->strides, th->dimensions}))
GETTER(diopiGetTensorDtype, diopiConstTensorHandle_t, diopiDtype_t, check_any, th->dtype)
GETTER(diopiGetTensorDevice, diopiConstTensorHandle_t, diopiDevice_t, check_any, th->block.memory_kind)
GETTER(diopiGetTensorNumel, diopiConstTensorHandle_t, int64_t, check_any, th->numel)
GETTER(diopiGetTensorElemSize, diopiConstTensorHandle_t, int64_t, check_any, element_size(th->dtype))
GETTER(diopiGetTensorStoragePtr, diopiConstTensorHandle_t, void*, check_dense, block_payload(&th->block))
GETTER(diopiGetTensorStorageOffset, diopiConstTensorHandle_t, int64_t, check_dense, th->offset)
GETTER(diopiGetTensorStorageNbytes, diopiConstTensorHandle_t, size_t, check_dense, (size_t)th->block.nbytes)
GETTER(diopiGetTensorDeviceIndex, diopiConstTensorHandle_t, diopiDeviceIndex_t, check_any, 0)
GETTER(diopiGetTensorCrowIndices, diopiConstTensorHandle_t, diopiConstTensorHandle_t, check_sparse, th->parts[CROW])
GETTER(diopiGetTensorColIndices, diopiConstTensorHandle_t, diopiConstTensorHandle_t, check_sparse, th->parts[COL])
GETTER(diopiGetTensorValues, diopiConstTensorHandle_t, diopiConstTensorHandle_t, check_sparse, th->parts[VALUES])
GETTER(diopiIsTensorSparse, diopiConstTensorHandle_t, bool, check_any, tensor_is_sparse(th))
