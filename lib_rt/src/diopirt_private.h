/* The functions that the Python binding and test programs use besides diopirt.h: devices, streams, and tensors with
 * memory.
 *
 * Every handle is checked. For a handle that is NULL, released or foreign, a function returns diopiErrorOccurred, and
 * diopirt_last_error() returns the reason. A call that fails changes nothing. There are two exceptions: functions that
 * destroy an object, and diopiRecordEnd, release their argument even if they fail, unless a function that they need is
 * not registered.
 *
 * Any thread may call any function at any time, except that no thread may use an object while it is destroyed. */
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

/* Return the text of the last error in this thread; it is empty before the first error. */
DIOPI_EXPORT const char* diopirt_last_error(void);
/* Return the code of the last error in this thread; it is diopiSuccess before the first error. Functions that return a
 * handle return NULL if they fail, so callers need this code. */
DIOPI_EXPORT diopiError_t diopirt_last_code(void);

/* A device has the table of the functions that one vendor registered. The first call of diopirt_device_current creates
 * a device if none is current. The diopiRegister… functions fill the table of the current device. A device that has
 * streams can't be destroyed. */
DIOPI_EXPORT diopiError_t diopirt_device_create(diopirt_device_t* device);
DIOPI_EXPORT diopiError_t diopirt_device_destroy(diopirt_device_t device);
DIOPI_EXPORT diopirt_device_t diopirt_device_current(void);
DIOPI_EXPORT diopiError_t diopirt_device_use(diopirt_device_t device);
/* Register `function` as `service`, and return the previous function in `previous`; NULL stands for no function. */
DIOPI_EXPORT diopiError_t diopirt_device_exchange(diopirt_device_t device, int32_t service, diopirt_function_t function,
                                                  diopirt_function_t* previous);
/* Return the number and the total bytes of the device's live tensor allocations, including those in host memory. The
 * bytes do not include guard zones. */
DIOPI_EXPORT diopiError_t diopirt_device_live(diopirt_device_t device, int64_t* blocks, int64_t* bytes);
/* Return the number of live allocations of device memory: those of tensors and those of diopirt_device_malloc. */
DIOPI_EXPORT diopiError_t diopirt_device_allocations(diopirt_device_t device, int64_t* count);
/* Call a service of the vendor. diopirt_device_malloc fails if the vendor returns NULL. */
DIOPI_EXPORT diopiError_t diopirt_device_malloc(diopirt_device_t device, uint64_t bytes, void** ptr);
DIOPI_EXPORT diopiError_t diopirt_device_free(diopirt_device_t device, void* ptr);
DIOPI_EXPORT diopiError_t diopirt_device_last_error(diopirt_device_t device, const char** text);

DIOPI_EXPORT diopiError_t diopirt_stream_create(diopirt_device_t device, diopirt_stream_t* stream);
DIOPI_EXPORT diopiError_t diopirt_stream_destroy(diopirt_stream_t stream);
DIOPI_EXPORT diopiError_t diopirt_stream_synchronize(diopirt_stream_t stream);
DIOPI_EXPORT diopiError_t diopirt_stream_native(diopirt_stream_t stream, diopiStreamHandle_t* native);
/* Enqueue a copy; `service` is the number of the service h2d, d2h or d2d. */
DIOPI_EXPORT diopiError_t diopirt_stream_copy(diopirt_stream_t stream, int32_t service, void* dst, const void* src,
                                              uint64_t bytes);

/* Create a context on `stream`, which must outlive the context. Destroying the context waits for the stream and
 * releases all tensors of the context. It reports the first damaged guard zone as diopirt_tensor_destroy does. */
DIOPI_EXPORT diopiError_t diopirt_context_create(diopirt_stream_t stream, diopiContextHandle_t* context);
DIOPI_EXPORT diopiError_t diopirt_context_destroy(diopiContextHandle_t context, int64_t* damage);
/* Create a context on a new stream, which is destroyed together with the context. diopirt_context_take_stream transfers
 * the ownership of the stream to the caller. */
DIOPI_EXPORT diopiContextHandle_t diopirt_context_open(diopirt_device_t device);
DIOPI_EXPORT diopiError_t diopirt_context_take_stream(diopiContextHandle_t context, diopirt_stream_t* stream);
/* Wait for the stream of the context. */
DIOPI_EXPORT diopiError_t diopirt_context_synchronize(diopiContextHandle_t context);
/* Store up to `capacity` of the tensors that operators required, oldest first, and the number of all of them. */
DIOPI_EXPORT diopiError_t diopirt_context_required(diopiContextHandle_t context, diopiTensorHandle_t* tensors,
                                                   int64_t capacity, int64_t* count);

/* The layout of a tensor, with the parameters of diopirt_tensor_create. */
struct diopirt_layout {
    const diopiSize_t *shape, *strides;
    diopiDtype_t dtype;
    diopiDevice_t memory_kind;
    int64_t offset, storage_elements;
};
/* Create a tensor with newly allocated memory. If `strides` is NULL, the tensor is contiguous. `offset` and
 * `storage_elements` are in elements; -1 stands for the smallest storage that contains the tensor. `payload` has the
 * initial bytes of the whole storage; if it is NULL, the storage is poisoned. */
DIOPI_EXPORT diopiError_t diopirt_tensor_create(diopiContextHandle_t context, const diopiSize_t* shape,
                                                const diopiSize_t* strides, diopiDtype_t dtype,
                                                diopiDevice_t memory_kind, int64_t offset, int64_t storage_elements,
                                                const void* payload, diopiTensorHandle_t* tensor);
/* Create a tensor like diopirt_tensor_create, with a layout that the caller reuses; return NULL on failure. */
DIOPI_EXPORT diopiTensorHandle_t diopirt_tensor_open(diopiContextHandle_t context, const struct diopirt_layout* layout,
                                                     const void* payload);
/* Create a tensor in the caller's device memory, `bytes` bytes from the address `memory`, without poison and guard
 * zones. The caller must not free the memory before the tensor is destroyed. Destroying the tensor does not wait for
 * the stream. */
DIOPI_EXPORT diopiError_t diopirt_tensor_over(diopiContextHandle_t context, const diopiSize_t* shape,
                                              const diopiSize_t* strides, diopiDtype_t dtype, int64_t offset,
                                              void* memory, int64_t bytes, diopiTensorHandle_t* tensor);
/* Create a tensor with the same layout and storage contents, which a device-to-device copy transfers. */
DIOPI_EXPORT diopiError_t diopirt_tensor_clone(diopiTensorHandle_t tensor, diopiTensorHandle_t* clone);
/* Create a CSR tensor. It refers to its three parts, which must outlive it. */
DIOPI_EXPORT diopiError_t diopirt_tensor_sparse_csr(diopiContextHandle_t context, const diopiSize_t* shape,
                                                    diopiTensorHandle_t crow, diopiTensorHandle_t col,
                                                    diopiTensorHandle_t values, diopiTensorHandle_t* tensor);
/* Check the guard zones; diopirt_tensor_destroy then releases the tensor, whether they are damaged or not. A damaged
 * guard zone is an error. Then `*damage` becomes the position of its first damaged byte relative to the storage: it is
 * negative before the storage, and at least the size of the storage after it. Otherwise, `*damage` is not written. */
DIOPI_EXPORT diopiError_t diopirt_tensor_destroy(diopiTensorHandle_t tensor, int64_t* damage);
DIOPI_EXPORT diopiError_t diopirt_tensor_check(diopiTensorHandle_t tensor, int64_t* damage);
/* Copy a part of the storage; `start` and `bytes` are in bytes. Reading waits for the stream. Writing waits only for
 * tensors in host memory. */
DIOPI_EXPORT diopiError_t diopirt_tensor_read(diopiConstTensorHandle_t tensor, int64_t start, int64_t bytes, void* dst);
DIOPI_EXPORT diopiError_t diopirt_tensor_write(diopiTensorHandle_t tensor, int64_t start, int64_t bytes,
                                               const void* src);

DIOPI_EXPORT diopiError_t diopirt_generator_create(uint64_t seed, uint64_t offset, diopiGeneratorHandle_t* generator);
DIOPI_EXPORT diopiError_t diopirt_generator_destroy(diopiGeneratorHandle_t generator);

/* Start (true) or end (false) the log of timing records, and empty it. Without a log, timing records are discarded. */
DIOPI_EXPORT void diopirt_record_log(bool start);
DIOPI_EXPORT int64_t diopirt_record_count(void);
/* Return the record with this index in the order in which records ended: its name, nesting depth (0: outermost) and
 * duration. The name is valid until the log is started or ended. */
DIOPI_EXPORT diopiError_t diopirt_record_logged(int64_t index, const char** name, int32_t* depth, int64_t* nanoseconds);

/* The functions of the built-in device, whose memory is host memory, as a vendor registers them. A stream performs its
 * copies when a caller waits for it, or when DIOPIRT_HOST_COPIES copies are queued. */
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
