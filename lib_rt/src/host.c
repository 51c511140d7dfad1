/* The built-in device, as a vendor would provide one: aligned host memory, and streams that do their copies when they
 * are waited for.
 *
 * Copies are as late as they may be: a call returns before the bytes have moved, and nothing orders two streams. Code
 * that forgets to synchronise fails here, each time, as it would now and then on a chip. */
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
    pthread_mutex_t lock;
    int copies; /* queued, in their order */
    struct copy* queue;
};

_Static_assert(sizeof(struct host_stream) <= SLOT_BYTES, "a stream of the built-in device fits a slot");

static _Thread_local char last_error[256];

const char* diopirt_host_last_error(void) { return last_error; }

static int32_t failed(diopiError_t code) {
    snprintf(last_error, sizeof last_error, "%s", diopirt_last_error());
    return (int32_t)code;
}

static diopiError_t make(diopiStreamHandle_t* stream) {
    struct host_stream* made = handle_new(HOST_STREAM);
    struct copy* queue = made != NULL ? malloc(DIOPIRT_HOST_COPIES * sizeof *queue) : NULL;
    if (queue == NULL) {
        if (made != NULL) handle_retire(made);
        return fail(diopiErrorOccurred, "out of memory for a stream");
    }
    made->queue = queue;
    pthread_mutex_init(&made->lock, NULL);
    *stream = made;
    return diopiSuccess;
}

int32_t diopirt_host_stream_create(diopiStreamHandle_t* stream) {
    diopiError_t code = make(stream);
    return code == diopiSuccess ? 0 : failed(code);
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
    if (code != diopiSuccess) return failed(code);
    struct host_stream* stream = handle;
    pthread_mutex_lock(&stream->lock); /* which a thread that is copying holds */
    copy_all(stream);
    pthread_mutex_unlock(&stream->lock);
    return 0;
}

int32_t diopirt_host_stream_destroy(diopiStreamHandle_t handle) {
    diopiError_t code = handle_check(handle, HOST_STREAM, "stream destroy");
    if (code != diopiSuccess) return failed(code);
    struct host_stream* stream = handle;
    copy_all(stream);
    pthread_mutex_destroy(&stream->lock);
    free(stream->queue);
    handle_retire(stream);
    return 0;
}

int32_t diopirt_host_copy(diopiStreamHandle_t handle, void* destination, const void* source, uint64_t bytes) {
    diopiError_t code = handle_check(handle, HOST_STREAM, "copy");
    if (code != diopiSuccess) return failed(code);
    struct host_stream* stream = handle;
    pthread_mutex_lock(&stream->lock);
    stream->queue[stream->copies++] = (struct copy){destination, source, bytes};
    if (stream->copies == DIOPIRT_HOST_COPIES) copy_all(stream);
    pthread_mutex_unlock(&stream->lock);
    return 0;
}

void* diopirt_host_malloc(uint64_t bytes) {
    void* memory = NULL;
    if (posix_memalign(&memory, DIOPIRT_HOST_ALIGNMENT, bytes > 0 ? (size_t)bytes : 1) == 0) return memory;
    failed(fail(diopiErrorOccurred, "out of memory: %llu bytes were asked for", (unsigned long long)bytes));
    return NULL;
}

void diopirt_host_free(void* memory) { free(memory); }
