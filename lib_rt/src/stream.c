/* Streams: the vendor's queues, the copies enqueued on them, and the host memory that these copies use. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

diopiError_t diopirt_stream_create(diopirt_device_t device, diopirt_stream_t* stream) {
    TRY(handle_check(device, DEVICE, __func__));
    EXPECT_RESULT(stream);
    diopirt_function_t create;
    TRY(device_function(device, diopirt_stream_create_service, &create));
    diopirt_stream_t new_stream = handle_new(STREAM);
    EXPECT(new_stream != NULL, "out of host memory for a stream");
    int32_t code = ((diopiStreamCreateFunc_t)create)(&new_stream->native);
    if (code != 0) {
        handle_retire(new_stream);
        return device_failed(device, diopirt_stream_create_service, code);
    }
    new_stream->device = device;
    device->users++;
    *stream = new_stream;
    return diopiSuccess;
}

diopiError_t stream_releasable(diopirt_stream_t stream) {
    TRY(device_require(stream->device, diopirt_stream_destroy_service));
    return device_require(stream->device, diopirt_stream_sync_service);
}

diopiError_t diopirt_stream_destroy(diopirt_stream_t stream) {
    TRY(handle_check(stream, STREAM, __func__));
    EXPECT(stream->users == 0, "%s: %d contexts are alive on the stream", __func__, (int)stream->users);
    diopirt_device_t device = stream->device;
    diopirt_function_t destroy;
    TRY(stream_releasable(stream));
    TRY(device_function(device, diopirt_stream_destroy_service, &destroy));
    diopiError_t waited = stream_synchronize(stream); /* if this fails, the pending staging memory is never released */
    int32_t code = ((diopiStreamDestroyFunc_t)destroy)(stream->native);
    handle_retire(stream);
    device->users--;
    return code == 0 ? waited : device_failed(device, diopirt_stream_destroy_service, code);
}

diopiError_t diopirt_stream_native(diopirt_stream_t stream, diopiStreamHandle_t* native) {
    TRY(handle_check(stream, STREAM, __func__));
    EXPECT_RESULT(native);
    *native = stream->native;
    return diopiSuccess;
}

void stream_keep(diopirt_stream_t stream, struct staging* staging) {
    staging->next = stream->pending;
    while (!atomic_compare_exchange_weak(&stream->pending, &staging->next, staging)) continue;
}

static struct staging* detach(struct staging** list) {
    struct staging* first = *list;
    *list = first->next;
    return first;
}

diopiError_t stream_synchronize(diopirt_stream_t stream) {
    diopirt_function_t synchronize;
    TRY(device_function(stream->device, diopirt_stream_sync_service, &synchronize));
    struct staging* waited = atomic_exchange(&stream->pending, NULL);
    int32_t code = ((diopiSynchronizeStreamFunc_t)synchronize)(stream->native);
    if (code == 0) {
        while (waited != NULL) free(detach(&waited));
        return diopiSuccess;
    }
    while (waited != NULL) stream_keep(stream, detach(&waited)); /* copies may still use it */
    return device_failed(stream->device, diopirt_stream_sync_service, code);
}

diopiError_t diopirt_stream_synchronize(diopirt_stream_t stream) {
    TRY(handle_check(stream, STREAM, __func__));
    return stream_synchronize(stream);
}

diopiError_t stream_copy(diopirt_stream_t stream, enum diopirt_service service, void* dst, const void* src,
                         uint64_t bytes) {
    diopirt_function_t copy;
    TRY(device_function(stream->device, service, &copy));
    int32_t code = ((diopiMemcpyH2DAsyncFunc_t)copy)(stream->native, dst, src, bytes); /* all three have this type */
    return code == 0 ? diopiSuccess : device_failed(stream->device, service, code);
}

diopiError_t diopirt_stream_copy(diopirt_stream_t stream, int32_t service, void* dst, const void* src,
                                 uint64_t bytes) {
    TRY(handle_check(stream, STREAM, __func__));
    EXPECT(service >= diopirt_h2d_service && service <= diopirt_d2d_service, "%s: service %d is not a copy service",
           __func__, (int)service);
    EXPECT(bytes == 0 || (dst != NULL && src != NULL), "%s: the %s is NULL", __func__,
           dst == NULL ? "destination" : "source");
    return stream_copy(stream, (enum diopirt_service)service, dst, src, bytes);
}

struct staging* staging_new(int64_t bytes) { return malloc(sizeof(struct staging) + (size_t)bytes); }

diopiError_t stream_upload(diopirt_stream_t stream, void* dst, struct staging* staging, uint64_t bytes) {
    diopiError_t code = stream_copy(stream, diopirt_h2d_service, dst, staging->bytes, bytes);
    /* If this came before the copy was enqueued, another thread's wait could release the memory that the copy reads. */
    stream_keep(stream, staging);
    return code;
}

diopiError_t diopiGetStream(diopiContextHandle_t ctx, diopiStreamHandle_t* stream) {
    TRY(handle_check(ctx, CONTEXT, __func__));
    EXPECT_RESULT(stream);
    *stream = ctx->stream->native;
    return diopiSuccess;
}

diopiError_t stream_destroy_after_failure(diopirt_stream_t stream, diopiError_t code) {
    char reason[ERROR_BYTES];
    strcpy(reason, diopirt_last_error());
    diopirt_stream_destroy(stream);
    return fail(code, "%s", reason);
}
