/* The end of a context, which checks and frees all its tensors.

   Nobody else uses a context that is being destroyed, so its tensors are visited without the lock. */
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
    return checked == diopiSuccess ? diopirt_stream_destroy(stream) : stream_destroy_after_failure(stream, checked);
}
