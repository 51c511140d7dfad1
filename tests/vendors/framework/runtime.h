/* The runtime of a small framework in C and C++: tensors of up to six axes, contexts that own them, generators. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <diopi/conform_test.h>
#include <diopi/diopi_register.h>
#include <diopi/functions.h>

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition,      \
                    diopiGetLastErrorString());                                     \
            exit(3);                                                                \
        }                                                                           \
    } while (0)

/* The runtime. */

struct diopiTensor {
    int64_t shape[6], strides[6], rank, numel;
    diopiDtype_t dtype;
    void* data;
};

struct diopiGenerator {
    uint64_t seed, offset;
};

struct diopiContext {
    diopiStreamHandle_t stream;
    struct diopiTensor tensors[2048];
    int count;
};

typedef struct {
    diopiStreamCreateFunc_t create;
    diopiStreamDestroyFunc_t destroy;
    diopiSynchronizeStreamFunc_t synchronize;
    diopiDeviceMallocFunc_t allocate;
    diopiDevMemFreeFunc_t release;
    diopiMemcpyH2DAsyncFunc_t h2d;
    diopiMemcpyD2HAsyncFunc_t d2h;
    diopiGetLastErrorFunc_t last_error;
} Device;

static Device device = {
    (diopiStreamCreateFunc_t)device_make_stream,
    (diopiStreamDestroyFunc_t)device_destroy_stream,
    (diopiSynchronizeStreamFunc_t)device_synchronize_stream,
    device_malloc,
    device_free,
    (diopiMemcpyH2DAsyncFunc_t)device_memcpy_h2d_async,
    (diopiMemcpyD2HAsyncFunc_t)device_memcpy_d2h_async,
    diopiGetLastErrorString,
};

#define REGISTRATION(name, type, member)                        \
    diopiError_t diopiRegister##name##Func(type function) {     \
        device.member = function;                               \
        return diopiSuccess;                                    \
    }

#ifdef __cplusplus
extern "C" {
#endif

REGISTRATION(StreamCreate, diopiStreamCreateFunc_t, create)
REGISTRATION(StreamDestroy, diopiStreamDestroyFunc_t, destroy)
REGISTRATION(SynchronizeStream, diopiSynchronizeStreamFunc_t, synchronize)
REGISTRATION(DeviceMalloc, diopiDeviceMallocFunc_t, allocate)
REGISTRATION(DevMemFree, diopiDevMemFreeFunc_t, release)
REGISTRATION(MemcpyH2DAsync, diopiMemcpyH2DAsyncFunc_t, h2d)
REGISTRATION(MemcpyD2HAsync, diopiMemcpyD2HAsyncFunc_t, d2h)
REGISTRATION(GetLastError, diopiGetLastErrorFunc_t, last_error)

#define QUESTION(name, type, answer)                                    \
    diopiError_t name(diopiConstTensorHandle_t th, type* result) {      \
        *result = answer;                                               \
        return diopiSuccess;                                            \
    }

static diopiSize_t size_of(const int64_t* data, int64_t length) {
    diopiSize_t size;
    size.data = data;
    size.len = length;
    return size;
}

static int64_t element_size(diopiDtype_t dtype) {
    return dtype == diopi_dtype_float32 ? 4 : dtype == diopi_dtype_bool || dtype == diopi_dtype_uint8 ? 1 : 8;
}

QUESTION(diopiGetTensorShape, diopiSize_t, size_of(th->shape, th->rank))
QUESTION(diopiGetTensorStride, diopiSize_t, size_of(th->strides, th->rank))
QUESTION(diopiGetTensorDtype, diopiDtype_t, th->dtype)
QUESTION(diopiGetTensorDataConst, const void*, th->data)
QUESTION(diopiGetTensorStorageOffset, int64_t, ((void)th, 0))
QUESTION(diopiGetTensorDevice, diopiDevice_t, ((void)th, diopi_device))
/* There is no function for sparse tensors, as in frameworks for the first version of the interface. */

diopiError_t diopiGetStream(diopiContextHandle_t ctx, diopiStreamHandle_t* stream) {
    *stream = ctx->stream;
    return diopiSuccess;
}

diopiError_t diopiRequireTensor(diopiContextHandle_t ctx, diopiTensorHandle_t* tensor, const diopiSize_t* size,
                                const diopiSize_t* stride, const diopiDtype_t dtype, const diopiDevice_t where) {
    (void)stride;
    (void)where;
    CHECK(ctx->count < 2048 && size->len <= 6);
    struct diopiTensor* made = &ctx->tensors[ctx->count++];
    made->rank = size->len;
    made->numel = 1;
    made->dtype = dtype;
    for (int64_t i = size->len - 1; i >= 0; i--) {
        made->shape[i] = size->data[i];
        made->strides[i] = made->numel;
        made->numel *= size->data[i];
    }
    made->data = device.allocate((uint64_t)(made->numel * element_size(dtype)));
    CHECK(made->data != NULL);
    *tensor = made;
    return diopiSuccess;
}

diopiError_t diopiGeneratorGetSeedAndOffset(diopiGeneratorHandle_t th, uint64_t* seed, uint64_t* offset) {
    *seed = th->seed;
    *offset = th->offset;
    return diopiSuccess;
}

diopiError_t diopiGeneratorSetSeedAndOffset(diopiGeneratorHandle_t th, uint64_t seed, uint64_t offset) {
    th->seed = seed;
    th->offset = offset;
    return diopiSuccess;
}

#ifdef ANOTHER_PYTHON
const char* Py_GetVersion(void) { return "2.7.18 (default)"; }
#endif

#ifdef __cplusplus
}
#endif

/* The tensors of a program, and the text that it prints. */

typedef struct {
    struct diopiContext context;
    char text[1 << 16];
    size_t length;
} Session;

static void open_session(Session* session) {
    memset(session, 0, sizeof *session);
    CHECK(device.create(&session->context.stream) == 0);
}

static void close_session(Session* session) {
    for (int i = 0; i < session->context.count; i++) device.release(session->context.tensors[i].data);
    CHECK(device.destroy(session->context.stream) == 0);
}

/* Return a tensor with these values, or with zeros for NULL. */
static diopiTensorHandle_t tensor_of(Session* session, diopiDtype_t dtype, const int64_t* shape, int64_t rank,
                                     const void* values) {
    diopiSize_t size = size_of(shape, rank);
    diopiTensorHandle_t made;
    CHECK(diopiRequireTensor(&session->context, &made, &size, NULL, dtype, diopi_device) == diopiSuccess);
    uint64_t bytes = (uint64_t)(made->numel * element_size(dtype));
    void* zeros = calloc(bytes + 1, 1);
    CHECK(device.h2d(session->context.stream, made->data, values != NULL ? values : zeros, bytes) == 0);
    CHECK(device.synchronize(session->context.stream) == 0);
    free(zeros);
    return made;
}

#endif
