/* Streams: the vendor's queues, the copies enqueued on them, and the host memory those copies still read. */
#include <stdlib.h>

#include "runtime.h"

static int32_t call(diopirt_device_t device, enum diopirt_service service, diopiStreamHandle_t native) {
    return ((diopiSynchronizeStreamFunc_t)device->functions[service])(native); /* destroying looks the same */
}

diopiError_t diopirt_stream_create(diopirt_device_t device, diopirt_stream_t* stream) {
    TRY(handle_check(device, DEVICE, __func__));
    EXPECT_RESULT(stream);
    TRY(device_require(device, diopirt_stream_create_service));
    diopirt_stream_t made = handle_new(STREAM);
    EXPECT(made != NULL, "out of host memory for a stream");
    int32_t code = ((diopiStreamCreateFunc_t)device->functions[diopirt_stream_create_service])(&made->native);
    if (code != 0) {
        handle_retire(made);
        return device_failed(device, diopirt_stream_create_service, code);
    }
    made->device = device;
    device->users++;
    pthread_mutex_init(&made->lock, NULL);
    *stream = made;
    return diopiSuccess;
}

diopiError_t diopirt_stream_destroy(diopirt_stream_t stream) {
    TRY(handle_check(stream, STREAM, __func__));
    EXPECT(stream->users == 0, "%s: %d contexts are alive on the stream", __func__, (int)stream->users);
    diopirt_device_t device = stream->device;
    TRY(device_require(device, diopirt_stream_destroy_service));
    TRY(device_require(device, diopirt_stream_sync_service));
    diopiError_t passed = stream_synchronize(stream);
    int32_t code = call(device, diopirt_stream_destroy_service, stream->native);
    pthread_mutex_destroy(&stream->lock);
    handle_retire(stream);
    device->users--;
    return code == 0 ? passed : device_failed(device, diopirt_stream_destroy_service, code);
}

diopiError_t diopirt_stream_native(diopirt_stream_t stream, diopiStreamHandle_t* native) {
    TRY(handle_check(stream, STREAM, __func__));
    EXPECT_RESULT(native);
    *native = stream->native;
    return diopiSuccess;
}

static struct staging* exchange_pending(diopirt_stream_t stream, struct staging* pending) {
    pthread_mutex_lock(&stream->lock);
    struct staging* previous = stream->pending;
    stream->pending = pending;
    pthread_mutex_unlock(&stream->lock);
    return previous;
}

static void await(diopirt_stream_t stream, struct staging* staging) {
    pthread_mutex_lock(&stream->lock);
    staging->next = stream->pending;
    stream->pending = staging;
    pthread_mutex_unlock(&stream->lock);
}

static void free_all(struct staging* staging) {
    while (staging != NULL) {
        struct staging* next = staging->next;
        free(staging);
        staging = next;
    }
}

diopiError_t stream_synchronize(diopirt_stream_t stream) {
    TRY(device_require(stream->device, diopirt_stream_sync_service));
    struct staging* passed = exchange_pending(stream, NULL);
    int32_t code = call(stream->device, diopirt_stream_sync_service, stream->native);
    if (code != 0) return device_failed(stream->device, diopirt_stream_sync_service, code); /* `passed` may be in use */
    free_all(passed);
    return diopiSuccess;
}

diopiError_t diopirt_stream_synchronize(diopirt_stream_t stream) {
    TRY(handle_check(stream, STREAM, __func__));
    return stream_synchronize(stream);
}

diopiError_t stream_copy(diopirt_stream_t stream, enum diopirt_service service, void* dst, const void* src,
                         uint64_t bytes) {
    TRY(device_require(stream->device, service));
    diopiMemcpyH2DAsyncFunc_t copy = (diopiMemcpyH2DAsyncFunc_t)stream->device->functions[service];
    int32_t code = copy(stream->native, dst, src, bytes);
    return code == 0 ? diopiSuccess : device_failed(stream->device, service, code);
}

diopiError_t diopirt_stream_copy(diopirt_stream_t stream, int32_t service, void* dst, const void* src,
                                 uint64_t bytes) {
    TRY(handle_check(stream, STREAM, __func__));
    EXPECT(service >= diopirt_h2d_service && service <= diopirt_d2d_service, "%s: service %d is no copy", __func__,
           (int)service);
    return stream_copy(stream, (enum diopirt_service)service, dst, src, bytes);
}

struct staging* staging_new(int64_t bytes) { return malloc(sizeof(struct staging) + (size_t)bytes); }

diopiError_t stream_upload(diopirt_stream_t stream, void* dst, struct staging* staging, uint64_t bytes) {
    diopiError_t code = stream_copy(stream, diopirt_h2d_service, dst, staging->bytes, bytes);
    await(stream, staging); /* not before it is enqueued: another thread's wait would not cover it, but release it */
    return code;
}

diopiError_t diopiGetStream(diopiContextHandle_t ctx, diopiStreamHandle_t* stream) {
    TRY(handle_check(ctx, CONTEXT, __func__));
    EXPECT_RESULT(stream);
    *stream = ctx->stream->native;
    return diopiSuccess;
}
