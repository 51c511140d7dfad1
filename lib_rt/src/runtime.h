/* The structures of the runtime, and the functions that its source files share. */
#ifndef DIOPIRT_RUNTIME_H_
#define DIOPIRT_RUNTIME_H_

#include <stdatomic.h>

#include "diopirt_private.h"
#include "lock.h"


/* error.c */
enum { ERROR_BYTES = 512 }; /* maximum size of the text of an error */
/* Set the last error of this thread, and return its code. */

diopiError_t fail(diopiError_t code, const char* format, ...) __attribute__((format(printf, 2, 3)));

#define TRY(call)                                  \
    do {                                           \
        diopiError_t code_ = (call);               \
        if (code_ != diopiSuccess) return code_;   \
    } while (0)
#define EXPECT(condition, ...)                                             \
    do {                                                                   \
        if (!(condition)) return fail(diopiErrorOccurred, __VA_ARGS__);    \
    } while (0)
#define EXPECT_RESULT(pointer) EXPECT((pointer) != NULL, "%s: the result pointer " #pointer " is NULL", __func__)

/* handle.c: every handle points to a structure that begins with a `struct handle`. */
enum { SLOT_BYTES = 256 }; /* maximum size of such a structure */

enum handle_kind { DEAD, DEVICE, STREAM, CONTEXT, TENSOR, GENERATOR, RECORD, HOST_STREAM };

struct handle {
    _Atomic(enum handle_kind) kind;
    struct handle* next_retired;
};

void* handle_new(enum handle_kind kind); /* zeroed; NULL if there is not enough memory */
void handle_retire(void* handle);
/* Return an error unless `handle` is a live handle of this kind; `caller` is the function that the message names. */
diopiError_t handle_check(const void* handle, enum handle_kind kind, const char* caller);

/* device.c */
struct diopirt_device {
    struct handle handle;
    _Atomic(diopirt_function_t) functions[diopirt_service_count];
    atomic_int_fast64_t live_blocks, live_bytes, allocations;
    atomic_int users; /* number of streams on the device */
};

/* Store the function registered as `service`; return the error of this service if there is none. Read the function only
 * once per call, because another thread may replace it. */
diopiError_t device_function(diopirt_device_t device, enum diopirt_service service, diopirt_function_t* function);
/* Return the error of a service if it is not registered. */
diopiError_t device_require(diopirt_device_t device, enum diopirt_service service);
/* Return the error of a service whose function returned `code`. */
diopiError_t device_failed(diopirt_device_t device, enum diopirt_service service, int32_t code);

/* stream.c */
struct staging { /* host memory that an enqueued copy may still use; released after the stream has been waited for */
    struct staging* next;
    unsigned char bytes[];
};

struct diopirt_stream {
    struct handle handle;
    diopirt_device_t device;
    diopiStreamHandle_t native;
    _Atomic(struct staging*) pending; /* a list; threads add entries, or take the whole list */
    atomic_int users; /* number of contexts on the stream */
};

struct staging* staging_new(int64_t bytes);
/* Return an error if a service that releasing the stream needs is not registered. */
diopiError_t stream_releasable(diopirt_stream_t stream);
diopiError_t stream_synchronize(diopirt_stream_t stream);
diopiError_t stream_copy(diopirt_stream_t stream, enum diopirt_service service, void* dst, const void* src,
                         uint64_t bytes);
/* Destroy the stream, and return `code` with the current message even if destroying the stream fails. */
diopiError_t stream_destroy_after_failure(diopirt_stream_t stream, diopiError_t code);
/* Release `staging` after the next successful wait for the stream. */
void stream_keep(diopirt_stream_t stream, struct staging* staging);
/* Enqueue the copy of `staging` to the device, and take ownership of it, also if the call fails. */
diopiError_t stream_upload(diopirt_stream_t stream, void* dst, struct staging* staging, uint64_t bytes);

/* memory.c */
enum { GUARD_BYTES = 256 };

struct block { /* guard zone | payload | guard zone; borrowed memory has only the payload */
    bool borrowed; /* whether the caller owns the memory */
    diopiDevice_t memory_kind;
    int64_t nbytes; /* size of the payload */
    unsigned char* base;
    struct staging* image; /* copy of a block on the device, while the context checks all its guard zones */
};

int64_t element_size(diopiDtype_t dtype); /* 0 for an unknown dtype */
diopiError_t block_create(struct block* block, diopirt_stream_t stream, diopiDevice_t memory_kind, diopiDtype_t dtype,
                          int64_t nbytes, const void* payload);
void block_borrow(struct block* block, diopiDevice_t memory_kind, int64_t nbytes, void* memory);
unsigned char* block_payload(const struct block* block);
/* Enqueue the copy of the block with its guard zones to the host, into a new `*image`. `*image` is NULL if the block is
 * in host memory or has no guard zones. */
diopiError_t block_fetch(const struct block* block, diopirt_stream_t stream, struct staging** image);
/* Check the guard zones, after the copy to `image` is complete, and release `image`. */
diopiError_t block_verify(const struct block* block, struct staging* image, int64_t* damage);
/* Return an error if a service that releasing the block needs is not registered. */
diopiError_t block_releasable(const struct block* block, diopirt_device_t device);
void block_release(struct block* block, diopirt_device_t device);

/* context.c */
struct diopiContext {
    struct handle handle;
    diopirt_stream_t stream;
    bool owns_stream; /* whether the stream is destroyed together with the context */
    diopirt_lock_t lock;
    struct diopiTensor *first, *last; /* the tensors of the context, oldest first */
    int64_t required;                 /* number of these tensors that operators required */
};

void context_adopt(struct diopiContext* context, struct diopiTensor* tensor);
void context_release(struct diopiContext* context, struct diopiTensor* tensor);

/* tensor.c */
enum sparse_part { CROW, COL, VALUES, PARTS };

struct diopiTensor {
    struct handle handle;
    struct diopiContext* context;
    struct diopiTensor *previous, *next; /* neighbors in the list of the context */
    bool required;                       /* whether an operator required the tensor */
    diopiDtype_t dtype;
    int64_t dimensions, numel, offset;
    int64_t* shape;   /* followed by the strides, in elements */
    int64_t* strides; /* NULL for a sparse tensor, which does not use `block` */
    struct block block;
    const struct diopiTensor* parts[PARTS];
};

struct origin { /* the source of a tensor's memory and contents */
    const void* payload; /* initial contents, see diopirt_tensor_create */
    void* memory;        /* memory of the caller; NULL to allocate memory */
    bool required;       /* whether an operator requires the tensor */
};

diopiError_t tensor_create(diopiContextHandle_t context, const struct diopirt_layout* layout, struct origin origin,
                           diopiTensorHandle_t* tensor);
void tensor_free(struct diopiTensor* tensor); /* without checking guard zones */
bool tensor_is_sparse(const struct diopiTensor* tensor);

#endif /* DIOPIRT_RUNTIME_H_ */
