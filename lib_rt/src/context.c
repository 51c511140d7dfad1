/* Contexts: the first argument of every operator. A context owns all tensors that are created in it. */
#include "runtime.h"

diopiError_t diopirt_context_create(diopirt_stream_t stream, diopiContextHandle_t* context) {
    TRY(handle_check(stream, STREAM, __func__));
    EXPECT_RESULT(context);
    diopiContextHandle_t new_context = handle_new(CONTEXT);
    EXPECT(new_context != NULL, "out of host memory for a context");
    new_context->stream = stream;
    stream->users++;
    diopirt_lock_init(&new_context->lock);
    *context = new_context;
    return diopiSuccess;
}

diopiContextHandle_t diopirt_context_open(diopirt_device_t device) {
    diopirt_stream_t stream;
    diopiContextHandle_t new_context = NULL;
    if (diopirt_stream_create(device, &stream) != diopiSuccess) return NULL;
    if (diopirt_context_create(stream, &new_context) != diopiSuccess) {
        stream_destroy_after_failure(stream, diopirt_last_code());
        return NULL;
    }
    new_context->owns_stream = true;
    return new_context;
}

diopiError_t diopirt_context_take_stream(diopiContextHandle_t context, diopirt_stream_t* stream) {
    TRY(handle_check(context, CONTEXT, __func__));
    EXPECT_RESULT(stream);
    diopirt_lock_acquire(&context->lock);
    bool owned = context->owns_stream;
    context->owns_stream = false;
    diopirt_lock_release(&context->lock);
    EXPECT(owned, "%s: the context does not own its stream", __func__);
    *stream = context->stream;
    return diopiSuccess;
}

diopiError_t diopirt_context_synchronize(diopiContextHandle_t context) {
    TRY(handle_check(context, CONTEXT, __func__));
    return stream_synchronize(context->stream);
}

void context_adopt(struct diopiContext* context, struct diopiTensor* tensor) {
    tensor->context = context;
    diopirt_lock_acquire(&context->lock);
    tensor->previous = context->last;
    *(context->last != NULL ? &context->last->next : &context->first) = tensor;
    context->last = tensor;
    context->required += tensor->required;
    diopirt_lock_release(&context->lock);
}

void context_release(struct diopiContext* context, struct diopiTensor* tensor) {
    diopirt_lock_acquire(&context->lock);
    *(tensor->previous != NULL ? &tensor->previous->next : &context->first) = tensor->next;
    *(tensor->next != NULL ? &tensor->next->previous : &context->last) = tensor->previous;
    context->required -= tensor->required;
    diopirt_lock_release(&context->lock);
}

diopiError_t diopirt_context_required(diopiContextHandle_t context, diopiTensorHandle_t* tensors, int64_t capacity,
                                      int64_t* count) {
    TRY(handle_check(context, CONTEXT, __func__));
    EXPECT_RESULT(count);
    EXPECT(tensors != NULL || capacity == 0, "%s: the array for %lld tensors is NULL", __func__, (long long)capacity);
    int64_t found = 0;
    diopirt_lock_acquire(&context->lock);
    for (struct diopiTensor* tensor = context->first; found < context->required; tensor = tensor->next) {
        if (!tensor->required) continue;
        if (found < capacity) tensors[found] = tensor;
        found++;
    }
    diopirt_lock_release(&context->lock);
    *count = found;
    return diopiSuccess;
}
