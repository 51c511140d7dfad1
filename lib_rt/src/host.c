/* The built-in device, with functions like those of a vendor: aligned host memory, and streams that perform their
 * copies when a caller waits for them.
 *
 * Copies are as late as the interface permits: a call returns before the bytes are copied, and the copies of separate
 * streams have no order. Code that does not synchronize always fails here, while it fails only sometimes on a chip. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

struct copy {
    void* destination;
    const void* source;
    uint64_t bytes;
};

struct host_stream {
    struct handle handle;
    diopirt_lock_t lock;
    int copies; /* number of copies in the queue */
    struct copy* queue;
};

_Static_assert(sizeof(struct host_stream) <= SLOT_BYTES, "a stream of the built-in device fits a slot");

static DIOPIRT_THREAD_LOCAL char last_error[256];

const char* diopirt_host_last_error(void) { return last_error; }

static int32_t report_error(diopiError_t code) {
    snprintf(last_error, sizeof last_error, "%s", diopirt_last_error());
    return (int32_t)code;
}

static diopiError_t create_stream(diopiStreamHandle_t* stream) {
    struct host_stream* new_stream = handle_new(HOST_STREAM);
    struct copy* queue = new_stream != NULL ? malloc(DIOPIRT_HOST_COPIES * sizeof *queue) : NULL;
    if (queue == NULL) {
        if (new_stream != NULL) handle_retire(new_stream);
        return fail(diopiErrorOccurred, "out of memory for a stream");
    }
    new_stream->queue = queue;
    diopirt_lock_init(&new_stream->lock);
    *stream = new_stream;
    return diopiSuccess;
}

int32_t diopirt_host_stream_create(diopiStreamHandle_t* stream) {
    diopiError_t code = create_stream(stream);
    return code == diopiSuccess ? 0 : report_error(code);
}

static void copy_all(struct host_stream* stream) {
    for (int i = 0; i < stream->copies; i++) {
        struct copy* copy = &stream->queue[i];
        if (copy->bytes > 0) memmove(copy->destination, copy->source, (size_t)copy->bytes);
    }
    stream->copies = 0;
}

int32_t diopirt_host_stream_sync(diopiStreamHandle_t handle) {
    diopiError_t code = handle_check(handle, HOST_STREAM, "stream synchronize");
    if (code != diopiSuccess) return report_error(code);
    struct host_stream* stream = handle;
    diopirt_lock_acquire(&stream->lock); /* waits for a thread that is copying */
    copy_all(stream);
    diopirt_lock_release(&stream->lock);
    return 0;
}

int32_t diopirt_host_stream_destroy(diopiStreamHandle_t handle) {
    diopiError_t code = handle_check(handle, HOST_STREAM, "stream destroy");
    if (code != diopiSuccess) return report_error(code);
    struct host_stream* stream = handle;
    copy_all(stream);
    diopirt_lock_destroy(&stream->lock);
    free(stream->queue);
    handle_retire(stream);
    return 0;
}

int32_t diopirt_host_copy(diopiStreamHandle_t handle, void* destination, const void* source, uint64_t bytes) {
    diopiError_t code = handle_check(handle, HOST_STREAM, "copy");
    if (code != diopiSuccess) return report_error(code);
    struct host_stream* stream = handle;
    diopirt_lock_acquire(&stream->lock);
    stream->queue[stream->copies++] = (struct copy){destination, source, bytes};
    if (stream->copies == DIOPIRT_HOST_COPIES) copy_all(stream);
    diopirt_lock_release(&stream->lock);
    return 0;
}

void* diopirt_host_malloc(uint64_t bytes) {
    void* memory = NULL;
    bool is_possible = bytes <= SIZE_MAX / 2; /* on a processor of 32 bits, a size_t does not represent every number */
    if (is_possible && posix_memalign(&memory, DIOPIRT_HOST_ALIGNMENT, bytes > 0 ? (size_t)bytes : 1) == 0) return memory;
    report_error(fail(diopiErrorOccurred, "out of memory: %llu bytes were requested", (unsigned long long)bytes));
    return NULL;
}

void diopirt_host_free(void* memory) { free(memory); }
