/* The structures of the runtime, and what its files offer one another. */
#ifndef DIOPIRT_RUNTIME_H_
#define DIOPIRT_RUNTIME_H_

#include <pthread.h>
#include <stdatomic.h>

#include "diopirt_private.h"

_Static_assert(sizeof(size_t) >= sizeof(int64_t), "every number of bytes is a size_t");

/* error.c */
enum { ERROR_BYTES = 512 }; /* of the text of an error */

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
enum { SLOT_BYTES = 256 }; /* which is what each of them may take */

enum handle_kind { DEAD, DEVICE, STREAM, CONTEXT, TENSOR, GENERATOR, RECORD, HOST_STREAM };

struct handle {
    _Atomic(enum handle_kind) kind;
    struct handle* next_retired;
};

void* handle_new(enum handle_kind kind); /* zeroed; NULL when out of memory */
void handle_retire(void* handle);
diopiError_t handle_check(const void* handle, enum handle_kind kind, const char* caller);

/* device.c */
struct diopirt_device {
    struct handle handle;
    _Atomic(diopirt_function_t) functions[diopirt_service_count];
    atomic_int_fast64_t live_blocks, live_bytes, allocations;
    atomic_int users; /* streams on it */
};

/* The function registered as `service`, which others may replace meanwhile; its own error if there is none. */
diopiError_t device_function(diopirt_device_t device, enum diopirt_service service, diopirt_function_t* function);
diopiError_t device_require(diopirt_device_t device, enum diopirt_service service);
diopiError_t device_failed(diopirt_device_t device, enum diopirt_service service, int32_t code);

/* stream.c */
struct staging { /* host memory a copy may still be using; released once the stream is known to be past it */
    struct staging* next;
    unsigned char bytes[];
};

struct diopirt_stream {
    struct handle handle;
    diopirt_device_t device;
    diopiStreamHandle_t native;
    _Atomic(struct staging*) pending; /* a list, which threads add to and take as a whole */
    atomic_int users; /* contexts on it */
};

struct staging* staging_new(int64_t bytes);
diopiError_t stream_releasable(diopirt_stream_t stream);
diopiError_t stream_synchronize(diopirt_stream_t stream);
diopiError_t stream_copy(diopirt_stream_t stream, enum diopirt_service service, void* dst, const void* src,
                         uint64_t bytes);
/* Destroy the stream and report `code` with the current message, whatever becomes of the stream. */
diopiError_t stream_destroy_after_failure(diopirt_stream_t stream, diopiError_t code);
/* Release `staging` once the stream was waited for. */
void stream_keep(diopirt_stream_t stream, struct staging* staging);
/* Enqueue the copy of `staging` to the device; takes it over in any case. */
diopiError_t stream_upload(diopirt_stream_t stream, void* dst, struct staging* staging, uint64_t bytes);

/* memory.c */
enum { GUARD_BYTES = 256 };

struct block { /* guard | payload | guard; of borrowed memory the payload alone */
    bool borrowed; /* somebody else's, who releases it */
    diopiDevice_t where;
    int64_t nbytes; /* of the payload */
    unsigned char* base;
    struct staging* image; /* copy of a block on the device, while its context compares the guards of all */
};

int64_t element_size(diopiDtype_t dtype); /* 0: no such dtype */
diopiError_t block_create(struct block* block, diopirt_stream_t stream, diopiDevice_t where, diopiDtype_t dtype,
                          int64_t nbytes, const void* payload);
void block_borrow(struct block* block, diopiDevice_t where, int64_t nbytes, void* memory);
unsigned char* block_payload(const struct block* block);
/* Enqueue the copy of the whole block back to the host, into a fresh `*image`; NULL if it is there, or has no guards. */
diopiError_t block_fetch(const struct block* block, diopirt_stream_t stream, struct staging** image);
/* Compare the guards, once the stream is past the copy to `image`, which is released. */
diopiError_t block_verify(const struct block* block, struct staging* image, int64_t* damage);
diopiError_t block_releasable(const struct block* block, diopirt_device_t device);
void block_release(struct block* block, diopirt_device_t device);

/* context.c */
struct diopiContext {
    struct handle handle;
    diopirt_stream_t stream;
    bool owns_stream; /* which ends with the context then */
    pthread_mutex_t lock;
    struct diopiTensor *first, *last; /* the tensors made in it, oldest first */
    int64_t required;                 /* how many of them operators required */
};

void context_adopt(struct diopiContext* context, struct diopiTensor* tensor);
void context_release(struct diopiContext* context, struct diopiTensor* tensor);

/* tensor.c */
enum sparse_part { CROW, COL, VALUES, PARTS };

struct diopiTensor {
    struct handle handle;
    struct diopiContext* context;
    struct diopiTensor *previous, *next; /* in the context */
    bool required;                       /* by an operator */
    diopiDtype_t dtype;
    int64_t dimensions, numel, offset;
    int64_t* shape;   /* followed by the strides, in elements */
    int64_t* strides; /* NULL: sparse, and `block` is unused */
    struct block block;
    const struct diopiTensor* parts[PARTS];
};

struct origin { /* what a tensor is made of, and by whom */
    const void* payload; /* as diopirt_tensor_create takes it */
    void* memory;        /* NULL: of its own */
    bool required;       /* by an operator */
};

diopiError_t tensor_create(diopiContextHandle_t context, const struct diopirt_layout* layout, struct origin origin,
                           diopiTensorHandle_t* tensor);
void tensor_free(struct diopiTensor* tensor); /* no checks, no copies */
bool tensor_is_sparse(const struct diopiTensor* tensor);

#endif /* DIOPIRT_RUNTIME_H_ */
