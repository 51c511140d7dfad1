/* Streams: queues of commands, each with a thread that runs them in order. */
#include <stdlib.h>

#include "runtime.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list, the default streams and `users` */
static pthread_cond_t unused = PTHREAD_COND_INITIALIZER;
static struct stream* streams; /* all streams except default streams */

static struct command* next_command(struct stream* stream) {
    pthread_mutex_lock(&stream->lock);
    while (stream->first == NULL && !stream->is_ending) pthread_cond_wait(&stream->changed, &stream->lock);
    struct command* command = stream->first;
    if (command != NULL) stream->first = command->next;
    pthread_mutex_unlock(&stream->lock);
    return command;
}

/* Return whether the next command of the stream needs the device. */
bool stream_continues(struct stream* stream) {
    pthread_mutex_lock(&stream->lock);
    bool result = stream->first != NULL && (stream->first->kind == COPY || stream->first->kind == FILL);
    pthread_mutex_unlock(&stream->lock);
    return result;
}

static void* run_commands(void* argument) {
    struct stream* stream = argument;
    for (struct command* command; (command = next_command(stream)) != NULL;) {
        run_command(stream, command);
        pthread_mutex_lock(&stream->lock);
        /* under the lock, so that a caller never sees one of event and stream complete and the other not */
        if (command->kind == RECORD) record_complete(command->record);
        stream->completed++;
        pthread_cond_broadcast(&stream->changed);
        pthread_mutex_unlock(&stream->lock);
        if (command->record != NULL) record_release(command->record);
        free(command);
    }
    return NULL;
}

static struct stream* new_stream(int32_t device, bool has_priority) {
    struct stream* stream = calloc(1, sizeof *stream);
    if (stream == NULL) return NULL;
    stream->device = device;
    stream->has_priority = has_priority;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    if (pthread_create(&stream->thread, NULL, run_commands, stream) == 0) return stream;
    free(stream);
    return NULL;
}

/* Return the default stream of a device, which the first call creates; the caller has the lock. */
static struct stream* default_stream(int32_t index) {
    struct device* device = device_at(index);
    if (device->default_stream == NULL) device->default_stream = new_stream(index, false);
    return device->default_stream;
}

/* Return a stream of the list, or NULL if there is none with this handle; the caller has the lock. */
static struct stream* find_stream(void* handle) {
    struct stream* stream = streams;
    while (stream != NULL && stream != handle) stream = stream->next;
    return stream;
}

struct stream* stream_acquire_default(int32_t device, const char* function) {
    if (!device_exists(device)) {
        fail_no_device(function, device);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    struct stream* stream = default_stream(device);
    if (stream != NULL) stream->users++;
    pthread_mutex_unlock(&lock);
    if (stream == NULL) fail("%s: out of memory or threads", function);
    return stream;
}

/* Return the stream of a handle, which stays valid until it is released; NULL with an error if there is none. */
struct stream* stream_acquire(void* handle, const char* function) {
    if (handle == NULL) return stream_acquire_default(current_index(), function);
    pthread_mutex_lock(&lock);
    struct stream* stream = find_stream(handle);
    if (stream != NULL) stream->users++;
    pthread_mutex_unlock(&lock);
    if (stream == NULL) fail("%s: there is no stream with this handle", function);
    return stream;
}

void stream_release(struct stream* stream) {
    pthread_mutex_lock(&lock);
    stream->users--;
    pthread_cond_broadcast(&unused);
    pthread_mutex_unlock(&lock);
}

/* Append a command, which the stream frees, and return its number. */
uint64_t stream_enqueue(struct stream* stream, struct command* command) {
    command->next = NULL;
    pthread_mutex_lock(&stream->lock);
    if (stream->first == NULL) {
        stream->first = command;
    } else {
        stream->last->next = command;
    }
    stream->last = command;
    uint64_t number = ++stream->enqueued;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return number;
}

/* Wait until the stream has completed the command of this number; 0 stands for all commands so far. */
void stream_wait(struct stream* stream, uint64_t number) {
    pthread_mutex_lock(&stream->lock);
    if (number == 0) number = stream->enqueued;
    while (stream->completed < number) pthread_cond_wait(&stream->changed, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
}

static void end_stream(struct stream* stream) {
    pthread_mutex_lock(&stream->lock);
    stream->is_ending = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* Return a stream of the device that comes after `previous`; the caller has the lock. NULL begins and ends. */
static struct stream* next_stream(int32_t device, struct stream* previous) {
    struct stream* stream = previous == NULL ? streams : previous->next;
    while (stream != NULL && stream->device != device) stream = stream->next;
    return stream;
}

void device_wait(int32_t device) {
    if (!device_exists(device)) return;
    pthread_mutex_lock(&lock);
    size_t count = 1;
    for (struct stream* s = next_stream(device, NULL); s != NULL; s = next_stream(device, s)) count++;
    struct stream** found = malloc(count * sizeof *found);
    size_t n = 0;
    if (found != NULL) {
        for (struct stream* s = next_stream(device, NULL); s != NULL; s = next_stream(device, s)) found[n++] = s;
        if (device_at(device)->default_stream != NULL) found[n++] = device_at(device)->default_stream;
    }
    for (size_t i = 0; i < n; i++) found[i]->users++;
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < n; i++) {
        stream_wait(found[i], 0);
        stream_release(found[i]);
    }
    free(found);
}

/* Complete the work of a stream, remove it from the list and free it. */
static void destroy(struct stream* stream) {
    stream_wait(stream, 0);
    pthread_mutex_lock(&lock);
    for (struct stream** link = &streams; *link != NULL; link = &(*link)->next) {
        if (*link == stream) {
            *link = stream->next;
            break;
        }
    }
    while (stream->users > 1) pthread_cond_wait(&unused, &lock); /* the caller is a user */
    pthread_mutex_unlock(&lock);
    end_stream(stream);
}

void device_destroy_streams(int32_t device) {
    device_wait(device);
    for (;;) {
        pthread_mutex_lock(&lock);
        struct stream* stream = next_stream(device, NULL);
        if (stream == NULL) {
            stream = device_at(device)->default_stream;
            device_at(device)->default_stream = NULL;
        }
        if (stream != NULL) stream->users++;
        pthread_mutex_unlock(&lock);
        if (stream == NULL) return;
        destroy(stream);
    }
}

int32_t create_stream(void** stream, bool prior) {
    if (!device_exists(current_index())) return fail_no_device("createStream", current_index());
    struct stream* created = new_stream(current_index(), prior);
    if (created == NULL) return fail("createStream: out of memory or threads");
    pthread_mutex_lock(&lock);
    created->next = streams;
    streams = created;
    pthread_mutex_unlock(&lock);
    *stream = created;
    return DIPU_SUCCESS;
}

int32_t destroy_stream(void* handle) {
    if (handle == NULL) return fail("destroyStream: the default stream can't be destroyed");
    struct stream* stream = stream_acquire(handle, "destroyStream");
    if (stream == NULL) return DIPU_EXCEPTION;
    destroy(stream);
    return DIPU_SUCCESS;
}

int32_t destroy_stream_of_device(void* handle, int32_t device) {
    if (!device_exists(device)) return fail_no_device("destroyStream", device);
    return destroy_stream(handle);
}

int32_t sync_stream(void* handle) {
    struct stream* stream = stream_acquire(handle, "syncStream");
    if (stream == NULL) return DIPU_EXCEPTION;
    stream_wait(stream, 0);
    stream_release(stream);
    return report_asynchronous_error("syncStream");
}

int32_t stream_not_null(void* handle, bool* result) {
    *result = handle != NULL;
    return DIPU_SUCCESS;
}

int32_t is_stream_empty(void* handle, bool* result) {
    struct stream* stream = stream_acquire(handle, "isStreamEmpty");
    if (stream == NULL) return DIPU_EXCEPTION;
    pthread_mutex_lock(&stream->lock);
    *result = stream->completed == stream->enqueued;
    pthread_mutex_unlock(&stream->lock);
    stream_release(stream);
    return DIPU_SUCCESS;
}

/* Nothing is kept of destroyed streams. */
int32_t release_stream(void) { return DIPU_SUCCESS; }
