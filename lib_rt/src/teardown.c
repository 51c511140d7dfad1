/* Destruction of a context, which checks and frees all its tensors.

   No other thread uses a context that is being destroyed, so its tensors are visited without the lock. */
#include "runtime.h"

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

/* Let the stream release all fetched images, because a copy or the wait failed. */
static void keep_images(struct diopiContext* context) {
    for (struct diopiTensor* tensor = context->first; tensor != NULL; tensor = tensor->next) {
        if (tensor->block.image != NULL) stream_keep(context->stream, tensor->block.image);
    }
}

/* Check the newest tensor first, so that `damage` finally describes the oldest damaged tensor. */
static diopiError_t verify_all(struct diopiContext* context, int64_t* damage) {
    diopiError_t code = diopiSuccess;
    for (struct diopiTensor* tensor = context->last; tensor != NULL; tensor = tensor->previous) {
        if (!tensor_is_sparse(tensor) && block_verify(&tensor->block, tensor->block.image, damage) != diopiSuccess) {
            code = diopiErrorOccurred;
        }
    }
    return code;
}

/* Copy all tensors to the host with a single wait for the stream, because a wait takes longer than a copy. */
static diopiError_t check_all(struct diopiContext* context, int64_t* damage) {
    diopiError_t fetched = fetch_all(context), waited = stream_synchronize(context->stream);
    if (fetched == diopiSuccess && waited == diopiSuccess) return verify_all(context, damage);
    keep_images(context);
    return waited != diopiSuccess ? waited : fetched;
}

diopiError_t diopirt_context_destroy(diopiContextHandle_t context, int64_t* damage) {
    TRY(handle_check(context, CONTEXT, __func__));
    diopirt_stream_t stream = context->stream;
    bool owns_stream = context->owns_stream;
    if (owns_stream) TRY(stream_releasable(stream));
    TRY(all_releasable(context));
    diopiError_t checked = context->first != NULL ? check_all(context, damage) : diopiSuccess;
    while (context->first != NULL) tensor_free(context->first);
    diopirt_lock_destroy(&context->lock);
    stream->users--;
    handle_retire(context);
    if (!owns_stream) return checked;
    return checked == diopiSuccess ? diopirt_stream_destroy(stream) : stream_destroy_after_failure(stream, checked);
}
