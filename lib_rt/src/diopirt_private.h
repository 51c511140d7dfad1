/* What the Python binding (or a test program) uses beside diopirt.h: devices, streams, and tensors with a memory.
 *
 * Every handle is checked: NULL, dead and foreign ones give diopiErrorOccurred, and diopirt_last_error() says what was
 * wrong. Calls that fail change nothing; only the destroying ones, and ending a record, release what they were given
 * all the same, unless they answer that a function they need is not registered.
 *
 * Any thread may call any function at any time, but for one thing: what is destroyed, nobody else may be using. */
#ifndef DIOPIRT_PRIVATE_H_
#define DIOPIRT_PRIVATE_H_

#include "diopi/diopi_register.h"
#include "diopirt/services.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of the services: diopirt_stream_create_service is 0, and so on. */
#define DIOPIRT_NUMBER(name, stem, title, missing) diopirt_##name##_service,
enum diopirt_service { DIOPIRT_SERVICES(DIOPIRT_NUMBER) diopirt_service_count };

/* begin declarations */
typedef struct diopirt_device* diopirt_device_t;
typedef struct diopirt_stream* diopirt_stream_t;
typedef void (*diopirt_function_t)(void);

/* Text of the last error in this thread; empty before the first. */
DIOPI_EXPORT const char* diopirt_last_error(void);
/* Its code; success before the first. For the functions that answer with a handle, which is NULL where they fail. */
DIOPI_EXPORT diopiError_t diopirt_last_code(void);

/* A device: the table of functions one vendor registered. The process starts with one, which is current;
 * diopiRegister… fills the table of the current one. Destroying fails while streams or contexts live on it. */
DIOPI_EXPORT diopiError_t diopirt_device_create(diopirt_device_t* device);
DIOPI_EXPORT diopiError_t diopirt_device_destroy(diopirt_device_t device);
DIOPI_EXPORT diopirt_device_t diopirt_device_current(void);
DIOPI_EXPORT diopiError_t diopirt_device_use(diopirt_device_t device);
/* Register `function` (NULL: none) as `service`, and tell which was registered before. */
DIOPI_EXPORT diopiError_t diopirt_device_exchange(diopirt_device_t device, int32_t service, diopirt_function_t function,
                                                  diopirt_function_t* previous);
/* Number and bytes (guards not counted) of the tensor memories alive on the device, host ones included. */
DIOPI_EXPORT diopiError_t diopirt_device_live(diopirt_device_t device, int64_t* blocks, int64_t* bytes);
/* Number of pieces of device memory alive: those of tensors, and bare ones. */
DIOPI_EXPORT diopiError_t diopirt_device_allocations(diopirt_device_t device, int64_t* count);
/* The services themselves. Malloc fails when the vendor returns NULL. */
DIOPI_EXPORT diopiError_t diopirt_device_malloc(diopirt_device_t device, uint64_t bytes, void** ptr);
DIOPI_EXPORT diopiError_t diopirt_device_free(diopirt_device_t device, void* ptr);
DIOPI_EXPORT diopiError_t diopirt_device_last_error(diopirt_device_t device, const char** text);

DIOPI_EXPORT diopiError_t diopirt_stream_create(diopirt_device_t device, diopirt_stream_t* stream);
DIOPI_EXPORT diopiError_t diopirt_stream_destroy(diopirt_stream_t stream);
DIOPI_EXPORT diopiError_t diopirt_stream_synchronize(diopirt_stream_t stream);
DIOPI_EXPORT diopiError_t diopirt_stream_native(diopirt_stream_t stream, diopiStreamHandle_t* native);
/* Enqueue one copy by `service`, one of h2d, d2h and d2d. */
DIOPI_EXPORT diopiError_t diopirt_stream_copy(diopirt_stream_t stream, int32_t service, void* dst, const void* src,
                                              uint64_t bytes);

/* A context on `stream`, which must outlive it. Destroying it waits for the stream and releases every tensor made in
 * it; the first damaged guard is told as by diopirt_tensor_destroy. */
DIOPI_EXPORT diopiError_t diopirt_context_create(diopirt_stream_t stream, diopiContextHandle_t* context);
DIOPI_EXPORT diopiError_t diopirt_context_destroy(diopiContextHandle_t context, int64_t* damage);
/* A context on a stream of its own, which is destroyed with it unless it was taken: then it is the caller's. */
DIOPI_EXPORT diopiContextHandle_t diopirt_context_open(diopirt_device_t device);
DIOPI_EXPORT diopiError_t diopirt_context_take_stream(diopiContextHandle_t context, diopirt_stream_t* stream);
/* Wait for its stream. */
DIOPI_EXPORT diopiError_t diopirt_context_synchronize(diopiContextHandle_t context);
/* The tensors operators required, oldest first: up to `capacity` of them, and their number. */
DIOPI_EXPORT diopiError_t diopirt_context_required(diopiContextHandle_t context, diopiTensorHandle_t* tensors,
                                                   int64_t capacity, int64_t* count);

/* Where elements lie, as the next function takes it. */
struct diopirt_layout {
    const diopiSize_t *shape, *strides;
    diopiDtype_t dtype;
    diopiDevice_t where;
    int64_t offset, storage_elements;
};
/* A tensor in memory of its own. `strides` NULL: contiguous; `storage_elements` -1: just enough. `payload` is what
 * the whole storage holds at first; NULL: poison. Both are in elements but `payload`, which is the bytes themselves. */
DIOPI_EXPORT diopiError_t diopirt_tensor_create(diopiContextHandle_t context, const diopiSize_t* shape,
                                                const diopiSize_t* strides, diopiDtype_t dtype, diopiDevice_t where,
                                                int64_t offset, int64_t storage_elements, const void* payload,
                                                diopiTensorHandle_t* tensor);
/* The same of a layout that is kept, since many tensors have it. */
DIOPI_EXPORT diopiTensorHandle_t diopirt_tensor_open(diopiContextHandle_t context, const struct diopirt_layout* layout,
                                                     const void* payload);
/* A tensor in device memory that the caller has and keeps until the tensor is destroyed, which does not wait for the
 * stream: `bytes` of it, from `memory` on. Neither poison nor guards; all else as above. */
DIOPI_EXPORT diopiError_t diopirt_tensor_over(diopiContextHandle_t context, const diopiSize_t* shape,
                                              const diopiSize_t* strides, diopiDtype_t dtype, int64_t offset,
                                              void* memory, int64_t bytes, diopiTensorHandle_t* tensor);
/* A tensor with the same geometry and, by a device-to-device copy, the same storage contents. */
DIOPI_EXPORT diopiError_t diopirt_tensor_clone(diopiTensorHandle_t tensor, diopiTensorHandle_t* clone);
/* A CSR tensor; it refers to its three parts, which must outlive it. */
DIOPI_EXPORT diopiError_t diopirt_tensor_sparse_csr(diopiContextHandle_t context, const diopiSize_t* shape,
                                                    diopiTensorHandle_t crow, diopiTensorHandle_t col,
                                                    diopiTensorHandle_t values, diopiTensorHandle_t* tensor);
/* Check the guards and release the tensor, damaged or not. A damaged guard is an error, and `*damage` the place of its
 * first damaged byte: negative before the storage, at least the storage's size behind it. Else `*damage` is untouched. */
DIOPI_EXPORT diopiError_t diopirt_tensor_destroy(diopiTensorHandle_t tensor, int64_t* damage);
DIOPI_EXPORT diopiError_t diopirt_tensor_check(diopiTensorHandle_t tensor, int64_t* damage);
/* Copy part of the storage, `start` and `bytes` in bytes. Reading waits for the stream, writing does not. */
DIOPI_EXPORT diopiError_t diopirt_tensor_read(diopiConstTensorHandle_t tensor, int64_t start, int64_t bytes, void* dst);
DIOPI_EXPORT diopiError_t diopirt_tensor_write(diopiTensorHandle_t tensor, int64_t start, int64_t bytes,
                                               const void* src);

DIOPI_EXPORT diopiError_t diopirt_generator_create(uint64_t seed, uint64_t offset, diopiGeneratorHandle_t* generator);
DIOPI_EXPORT diopiError_t diopirt_generator_destroy(diopiGeneratorHandle_t generator);

/* Timing records are dropped until a log is begun; beginning and ending it empties it. */
DIOPI_EXPORT void diopirt_record_log(bool keep);
DIOPI_EXPORT int64_t diopirt_record_count(void);
/* The record that was the `index`-th to end: its name, nesting depth (0: outermost) and duration. The name lives
 * until the log is begun or ended. */
DIOPI_EXPORT diopiError_t diopirt_record_logged(int64_t index, const char** name, int32_t* depth, int64_t* nanoseconds);

/* The functions of the built-in device, host memory, as a vendor registers them. Its streams do their copies when they
 * are waited for, or have so many of them to do. */
enum { DIOPIRT_HOST_ALIGNMENT = 256, DIOPIRT_HOST_COPIES = 1024 };
DIOPI_EXPORT int32_t diopirt_host_stream_create(diopiStreamHandle_t* stream);
DIOPI_EXPORT int32_t diopirt_host_stream_destroy(diopiStreamHandle_t stream);
DIOPI_EXPORT int32_t diopirt_host_stream_sync(diopiStreamHandle_t stream);
DIOPI_EXPORT void* diopirt_host_malloc(uint64_t bytes);
DIOPI_EXPORT void diopirt_host_free(void* memory);
DIOPI_EXPORT int32_t diopirt_host_copy(diopiStreamHandle_t stream, void* destination, const void* source,
                                       uint64_t bytes);
DIOPI_EXPORT const char* diopirt_host_last_error(void);
/* end declarations */

#ifdef __cplusplus
}
#endif

#endif /* DIOPIRT_PRIVATE_H_ */
