/* Device memory and pinned memory. All allocations are known, so that wrong addresses are errors. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

struct allocation {
    char* address;
    size_t bytes;
    int32_t device;
    int users; /* commands that are running */
    bool is_freed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unused = PTHREAD_COND_INITIALIZER;
static struct allocation** sorted; /* by address */
static size_t count, capacity;

/* Return the number of allocations that begin at or before the address. */
static size_t position_of(const char* address) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle]->address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Return the allocation that contains the bytes, or NULL; the caller has the lock. */
static struct allocation* find(const char* address, size_t bytes) {
    size_t position = position_of(address);
    if (position == 0) return NULL;
    struct allocation* allocation = sorted[position - 1];
    size_t offset = (size_t)(address - allocation->address);
    bool is_inside = offset < allocation->bytes && bytes <= allocation->bytes - offset;
    return is_inside ? allocation : NULL;
}

/* Return the allocation that contains the bytes, which can't be freed until it is released; NULL if there is none. */
struct allocation* memory_hold(const void* address, size_t bytes, int32_t device) {
    pthread_mutex_lock(&lock);
    struct allocation* allocation = find(address, bytes);
    if (allocation != NULL && allocation->device != device) allocation = NULL;
    if (allocation != NULL) allocation->users++;
    pthread_mutex_unlock(&lock);
    return allocation;
}

void memory_release(struct allocation* allocation) {
    pthread_mutex_lock(&lock);
    allocation->users--;
    pthread_cond_broadcast(&unused);
    pthread_mutex_unlock(&lock);
}

/* Return the device of the allocation that contains the bytes, HOST for pinned memory, or NOWHERE. */
int32_t memory_device(const void* address, size_t bytes) {
    pthread_mutex_lock(&lock);
    struct allocation* allocation = find(address, bytes);
    int32_t device = allocation != NULL ? allocation->device : NOWHERE;
    pthread_mutex_unlock(&lock);
    return device;
}

size_t memory_used(int32_t device) {
    pthread_mutex_lock(&lock);
    size_t used = device_at(device)->used;
    pthread_mutex_unlock(&lock);
    return used;
}

/* Enter an allocation at its place; the caller has the lock. */
static bool insert(struct allocation* allocation) {
    if (count == capacity) {
        size_t larger = capacity > 0 ? 2 * capacity : 64;
        struct allocation** moved = realloc(sorted, larger * sizeof *moved);
        if (moved == NULL) return false;
        sorted = moved;
        capacity = larger;
    }
    size_t position = position_of(allocation->address);
    memmove(&sorted[position + 1], &sorted[position], (count - position) * sizeof *sorted);
    sorted[position] = allocation;
    count++;
    return true;
}

/* Return new memory, or NULL if there is too little. */
static void* allocate(size_t bytes, int32_t device) {
    struct allocation* allocation = calloc(1, sizeof *allocation);
    void* memory = NULL;
    bool is_possible = allocation != NULL && bytes <= SIZE_MAX / 2;
    pthread_mutex_lock(&lock);
    if (is_possible && device != HOST) is_possible = bytes <= device_bytes() - device_at(device)->used;
    is_possible = is_possible && posix_memalign(&memory, ALIGNMENT, bytes > 0 ? bytes : 1) == 0;
    if (is_possible) {
        *allocation = (struct allocation){.address = memory, .bytes = bytes, .device = device};
        is_possible = insert(allocation);
    }
    if (is_possible && device != HOST) device_at(device)->used += bytes;
    pthread_mutex_unlock(&lock);
    if (is_possible) return memory;
    free(allocation);
    free(memory);
    return NULL;
}

/* Remove the allocation at a position, wait for the commands that use it, and free it; the caller has the lock. */
static void remove_at(size_t position) {
    struct allocation* allocation = sorted[position];
    memmove(&sorted[position], &sorted[position + 1], (count - position - 1) * sizeof *sorted);
    count--;
    while (allocation->users > 0) pthread_cond_wait(&unused, &lock);
    if (allocation->device != HOST) device_at(allocation->device)->used -= allocation->bytes;
    free(allocation->address);
    free(allocation);
}

static int32_t release(void* address, bool is_pinned, const char* function) {
    if (address == NULL) return DIPU_SUCCESS;
    pthread_mutex_lock(&lock);
    size_t position = position_of(address);
    struct allocation* allocation = position > 0 ? sorted[position - 1] : NULL;
    bool is_valid = allocation != NULL && allocation->address == address && (allocation->device == HOST) == is_pinned;
    if (is_valid) remove_at(position - 1);
    pthread_mutex_unlock(&lock);
    const char* kind = is_pinned ? "pinned" : "device";
    return is_valid ? DIPU_SUCCESS : fail("%s: the address is not the beginning of %s memory", function, kind);
}

void device_free_all(int32_t device) {
    pthread_mutex_lock(&lock);
    for (size_t i = count; i > 0; i--) {
        if (i <= count && sorted[i - 1]->device == device) remove_at(i - 1);
    }
    pthread_mutex_unlock(&lock);
}

int32_t malloc_host(void** address, size_t bytes) {
    void* memory = allocate(bytes, HOST);
    if (memory == NULL) return fail("mallocHost: %zu bytes of pinned memory are not available", bytes);
    *address = memory;
    return DIPU_SUCCESS;
}

int32_t free_host(void* address) { return release(address, true, "freeHost"); }

int32_t is_pinned_ptr(const void* address, bool* result) {
    *result = memory_device(address, 1) == HOST;
    return DIPU_SUCCESS;
}

int32_t malloc_device(void** address, size_t bytes, bool throws) {
    if (!device_exists(current_index())) return fail_no_device("mallocDevice", current_index());
    void* memory = allocate(bytes, current_index());
    if (memory != NULL) {
        *address = memory;
        return DIPU_SUCCESS;
    }
    fail("mallocDevice: %zu bytes are not available on device %d", bytes, (int)current_index());
    return throws ? DIPU_EXCEPTION : DIPU_ERR_NOMEM;
}

int32_t free_device(void* address) { return release(address, false, "freeDevice"); }
