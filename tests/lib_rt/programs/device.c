/* The vendor of the test programs. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "program.h"

struct copy {
    struct copy* next;
    void* dst;
    const void* src;
    uint64_t bytes;
};

struct queue {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct copy *first, *last; /* the thread executes the first */
    bool ended;
};

static atomic_int count;

int live_count(void) { return count; }

static void* work(void* argument) {
    struct queue* queue = argument;
    pthread_mutex_lock(&queue->lock);
    while (queue->first != NULL || !queue->ended) {
        struct copy* copy = queue->first;
        if (copy == NULL) {
            pthread_cond_wait(&queue->changed, &queue->lock);
            continue;
        }
        pthread_mutex_unlock(&queue->lock);
        memmove(copy->dst, copy->src, copy->bytes);
        pthread_mutex_lock(&queue->lock);
        queue->first = copy->next;
        free(copy);
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

static int32_t create(diopiStreamHandle_t* stream) {
    struct queue* queue = fault() ? NULL : calloc(1, sizeof *queue);
    if (queue == NULL) return 1;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    CHECK(pthread_create(&queue->thread, NULL, work, queue) == 0);
    *stream = queue;
    count++;
    return 0;
}

static int32_t destroy(diopiStreamHandle_t stream) {
    struct queue* queue = stream;
    pthread_mutex_lock(&queue->lock);
    queue->ended = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
    count--;
    return fault();
}

static int32_t synchronize(diopiStreamHandle_t stream) {
    struct queue* queue = stream;
    pthread_mutex_lock(&queue->lock);
    while (queue->first != NULL) pthread_cond_wait(&queue->changed, &queue->lock);
    pthread_mutex_unlock(&queue->lock);
    return fault();
}

static void* allocate(uint64_t bytes) {
    void* memory = fault() ? NULL : malloc(bytes);
    if (memory != NULL) count++;
    return memory;
}

static void release(void* memory) {
    if (memory != NULL) count--;
    free(memory);
}

static int32_t copy(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    struct queue* queue = stream;
    struct copy* new_copy = fault() ? NULL : malloc(sizeof *new_copy);
    if (new_copy == NULL) return 1;
    *new_copy = (struct copy){NULL, dst, src, bytes};
    pthread_mutex_lock(&queue->lock);
    *(queue->first != NULL ? &queue->last->next : &queue->first) = new_copy;
    queue->last = new_copy;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return 0;
}

static const char* last_error(void) { return "it was to fail"; }

static const diopirt_function_t services[] = {
    [diopirt_stream_create_service] = (diopirt_function_t)create,
    [diopirt_stream_destroy_service] = (diopirt_function_t)destroy,
    [diopirt_stream_sync_service] = (diopirt_function_t)synchronize,
    [diopirt_malloc_service] = (diopirt_function_t)allocate,
    [diopirt_free_service] = (diopirt_function_t)release,
    [diopirt_h2d_service] = (diopirt_function_t)copy,
    [diopirt_d2h_service] = (diopirt_function_t)copy,
    [diopirt_d2d_service] = (diopirt_function_t)copy,
    [diopirt_last_error_service] = (diopirt_function_t)last_error,
};

diopirt_device_t open_device(void) {
    diopirt_device_t device;
    if (diopirt_device_create(&device) != diopiSuccess) return NULL;
    for (int32_t service = 0; service < diopirt_service_count; service++) {
        CHECK(diopirt_device_exchange(device, service, services[service], NULL) == diopiSuccess);
    }
    return device;
}
