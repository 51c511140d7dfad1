/* The memory of handles: slots that are never returned to the system, so that any pointer can be checked. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

enum {
    FIRST_SLAB_SLOTS = 1024,
    MAX_SLABS = 24,  /* each slab has twice as many slots as the previous one */
    QUARANTINE = 512 /* the oldest retired slot is reused when there are more retired slots than this */
};

_Static_assert(sizeof(struct diopiTensor) <= SLOT_BYTES, "a tensor fits a slot");
_Static_assert(sizeof(struct diopiContext) <= SLOT_BYTES, "a context fits a slot");
_Static_assert(sizeof(struct diopirt_device) <= SLOT_BYTES, "a device fits a slot");
_Static_assert(sizeof(struct diopirt_stream) <= SLOT_BYTES, "a stream fits a slot");

static diopirt_lock_t lock = DIOPIRT_LOCK_INITIALIZER;
static _Atomic(unsigned char*) slabs[MAX_SLABS];
static int slab_count;
static size_t used_slots; /* in the last slab */
static struct handle *oldest_retired, *newest_retired;
static size_t retired_count;

static const char* const kind_names[] = {
    [DEAD] = "dead handle", [DEVICE] = "device",       [STREAM] = "stream", [CONTEXT] = "context",
    [TENSOR] = "tensor",    [GENERATOR] = "generator", [RECORD] = "record", [HOST_STREAM] = "stream of the host",
};

static size_t slab_slots(int slab) { return (size_t)FIRST_SLAB_SLOTS << slab; }

static void* fresh_slot(void) {
    if (slab_count == 0 || used_slots == slab_slots(slab_count - 1)) {
        unsigned char* slab = slab_count < MAX_SLABS ? calloc(slab_slots(slab_count), SLOT_BYTES) : NULL;
        if (slab == NULL) return NULL;
        slabs[slab_count++] = slab;
        used_slots = 0;
    }
    return slabs[slab_count - 1] + SLOT_BYTES * used_slots++;
}

static void* reused_slot(void) {
    struct handle* slot = oldest_retired;
    oldest_retired = slot->next_retired;
    retired_count--;
    memset(slot + 1, 0, SLOT_BYTES - sizeof *slot); /* not the kind, which other threads may be checking */
    return slot;
}

void* handle_new(enum handle_kind kind) {
    diopirt_lock_acquire(&lock);
    struct handle* slot = retired_count > QUARANTINE ? reused_slot() : fresh_slot();
    diopirt_lock_release(&lock);
    if (slot != NULL) slot->kind = kind;
    return slot;
}

void handle_retire(void* handle) {
    struct handle* slot = handle;
    slot->kind = DEAD;
    slot->next_retired = NULL;
    diopirt_lock_acquire(&lock);
    if (retired_count++ == 0) {
        oldest_retired = slot;
    } else {
        newest_retired->next_retired = slot;
    }
    newest_retired = slot;
    diopirt_lock_release(&lock);
}

static bool is_slot(const void* pointer) {
    for (int i = 0; i < MAX_SLABS && slabs[i] != NULL; i++) {
        uintptr_t distance = (uintptr_t)pointer - (uintptr_t)slabs[i];
        if (distance < slab_slots(i) * SLOT_BYTES) return distance % SLOT_BYTES == 0;
    }
    return false;
}

diopiError_t handle_check(const void* handle, enum handle_kind kind, const char* caller) {
    EXPECT(handle != NULL, "%s: the %s is NULL", caller, kind_names[kind]);
    EXPECT(is_slot(handle), "%s: %p is not a handle of this runtime, expected a %s", caller, handle, kind_names[kind]);
    enum handle_kind found = ((const struct handle*)handle)->kind;
    EXPECT(found == kind, "%s: %p is a %s, expected a live %s", caller, handle, kind_names[found], kind_names[kind]);
    return diopiSuccess;
}
