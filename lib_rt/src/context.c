/* Contexts: what an operator is called with. A context owns every tensor made in it. */
#include <string.h>

#include "runtime.h"

/* What is told is the failure there was before, whatever becomes of the stream. */
static diopiError_t destroy_after_failure(diopirt_stream_t stream, diopiError_t code) {
    char reason[ERROR_BYTES];
    strcpy(reason, diopirt_last_error());
    diopirt_stream_destroy(stream);
    return fail(code, "%s", reason);
}

diopiError_t diopirt_context_create(diopirt_stream_t stream, diopiContextHandle_t* context) {
    TRY(handle_check(stream, STREAM, __func__));
    EXPECT_RESULT(context);
    diopiContextHandle_t made = handle_new(CONTEXT);
    EXPECT(made != NULL, "out of host memory for a context");
    made->stream = stream;
    stream->users++;
    pthread_mutex_init(&made->lock, NULL);
    *context = made;
    return diopiSuccess;
}

diopiContextHandle_t diopirt_context_open(diopirt_device_t device) {
    diopirt_stream_t stream;
    diopiContextHandle_t made;
    if (diopirt_stream_create(device, &stream) != diopiSuccess) return NULL;
    if (diopirt_context_create(stream, &made) != diopiSuccess) {
        destroy_after_failure(stream, diopirt_last_code());
        return NULL;
    }
    made->owns_stream = true;
    return made;
}

diopiError_t diopirt_context_take_stream(diopiContextHandle_t context, diopirt_stream_t* stream) {
    TRY(handle_check(context, CONTEXT, __func__));
    EXPECT_RESULT(stream);
    pthread_mutex_lock(&context->lock);
    bool owned = context->owns_stream;
    context->owns_stream = false;
    pthread_mutex_unlock(&context->lock);
    EXPECT(owned, "%s: the stream is not the context's own", __func__);
    *stream = context->stream;
    return diopiSuccess;
}

diopiError_t diopirt_context_synchronize(diopiContextHandle_t context) {
    TRY(handle_check(context, CONTEXT, __func__));
    return stream_synchronize(context->stream);
}

void context_adopt(struct diopiContext* context, struct diopiTensor* tensor) {
    tensor->context = context;
    pthread_mutex_lock(&context->lock);
    tensor->previous = context->last;
    *(context->last != NULL ? &context->last->next : &context->first) = tensor;
    context->last = tensor;
    context->required += tensor->required;
    pthread_mutex_unlock(&context->lock);
}

void context_release(struct diopiContext* context, struct diopiTensor* tensor) {
    pthread_mutex_lock(&context->lock);
    *(tensor->previous != NULL ? &tensor->previous->next : &context->first) = tensor->next;
    *(tensor->next != NULL ? &tensor->next->previous : &context->last) = tensor->previous;
    context->required -= tensor->required;
    pthread_mutex_unlock(&context->lock);
}

/* Below, the context is being destroyed: nobody else uses it, and its tensors are gone through without the lock. */

static diopiError_t all_releasable(const struct diopiContext* context) {
    for (struct diopiTensor* tensor = context->first; tensor != NULL; tensor = tensor->next) {
        if (!tensor_is_sparse(tensor)) TRY(block_releasable(&tensor->block, context->stream->device));
    }
    return diopiSuccess;
}

static diopiError_t fetch_all(struct diopiContext* context) {
    for (struct diopiTensor* tensor = context->first; tensor != NULL; tensor = tensor->next) {
        if (!tensor_is_sparse(tensor)) TRY(block_fetch(&tensor->block, context->stream, &tensor->block.image));
    }
    return diopiSuccess;
}

/* What could be fetched goes unread, since something else failed. */
static void give_up_all(struct diopiContext* context) {
    for (struct diopiTensor* tensor = context->first; tensor != NULL; tensor = tensor->next) {
        if (tensor->block.image != NULL) stream_keep(context->stream, tensor->block.image);
    }
}

/* Newest first, so that what is told in the end is the damage of the oldest. */
static diopiError_t verify_all(struct diopiContext* context, int64_t* damage) {
    diopiError_t code = diopiSuccess;
    for (struct diopiTensor* tensor = context->last; tensor != NULL; tensor = tensor->previous) {
        if (!tensor_is_sparse(tensor) && block_verify(&tensor->block, tensor->block.image, damage) != diopiSuccess) {
            code = diopiErrorOccurred;
        }
    }
    return code;
}

/* All read back with one wait for the stream, since a wait costs more than a copy. */
static diopiError_t check_all(struct diopiContext* context, int64_t* damage) {
    diopiError_t fetched = fetch_all(context), passed = stream_synchronize(context->stream);
    if (fetched == diopiSuccess && passed == diopiSuccess) return verify_all(context, damage);
    give_up_all(context);
    return passed != diopiSuccess ? passed : fetched;
}

diopiError_t diopirt_context_destroy(diopiContextHandle_t context, int64_t* damage) {
    TRY(handle_check(context, CONTEXT, __func__));
    diopirt_stream_t stream = context->stream;
    bool owns_stream = context->owns_stream;
    if (owns_stream) TRY(stream_releasable(stream));
    TRY(all_releasable(context));
    diopiError_t checked = context->first != NULL ? check_all(context, damage) : diopiSuccess;
    while (context->first != NULL) tensor_free(context->first);
    pthread_mutex_destroy(&context->lock);
    stream->users--;
    handle_retire(context);
    if (!owns_stream) return checked;
    return checked == diopiSuccess ? diopirt_stream_destroy(stream) : destroy_after_failure(stream, checked);
}

diopiError_t diopirt_context_required(diopiContextHandle_t context, diopiTensorHandle_t* tensors, int64_t capacity,
                                      int64_t* count) {
    TRY(handle_check(context, CONTEXT, __func__));
    EXPECT_RESULT(count);
    EXPECT(tensors != NULL || capacity == 0, "%s: no room for %lld tensors", __func__, (long long)capacity);
    int64_t found = 0;
    pthread_mutex_lock(&context->lock);
    for (struct diopiTensor* tensor = context->first; found < context->required; tensor = tensor->next) {
        if (!tensor->required) continue;
        if (found < capacity) tensors[found] = tensor;
        found++;
    }
    pthread_mutex_unlock(&context->lock);
    *count = found;
    return diopiSuccess;
}
