/* Events. A record is a point in the work of a stream; an event refers to its latest record. */
#include <stdlib.h>

#include "runtime.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list, the events and the records */
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static struct event* events;

/* Give up a use of a record; the caller has the lock. */
static void drop(struct record* record) {
    if (record != NULL && --record->users == 0) free(record);
}

void record_release(struct record* record) {
    pthread_mutex_lock(&lock);
    drop(record);
    pthread_mutex_unlock(&lock);
}

void record_complete(struct record* record) {
    pthread_mutex_lock(&lock);
    record->nanoseconds = now();
    record->is_ready = true;
    pthread_cond_broadcast(&ready);
    pthread_mutex_unlock(&lock);
}

void record_wait(struct record* record) {
    pthread_mutex_lock(&lock);
    while (!record->is_ready) pthread_cond_wait(&ready, &lock);
    pthread_mutex_unlock(&lock);
}

/* Return the event of a handle; NULL with an error if there is none. The caller has the lock. */
static struct event* find_event(void* handle, const char* function) {
    struct event* event = events;
    while (event != NULL && event != handle) event = event->next;
    if (event == NULL) fail("%s: there is no event with this handle", function);
    return event;
}

/* Get the latest record of an event, which the caller then uses; NULL if the event was never recorded. */
static int32_t latest_record(void* handle, const char* function, struct record** record) {
    pthread_mutex_lock(&lock);
    struct event* event = find_event(handle, function);
    *record = event != NULL ? event->record : NULL;
    if (*record != NULL) (*record)->users++;
    pthread_mutex_unlock(&lock);
    return event != NULL ? DIPU_SUCCESS : DIPU_EXCEPTION;
}

int32_t create_event(void** event) {
    if (!device_exists(current_index())) return fail_no_device("createEvent", current_index());
    struct event* created = calloc(1, sizeof *created);
    if (created == NULL) return fail("createEvent: out of memory");
    created->device = current_index();
    pthread_mutex_lock(&lock);
    created->next = events;
    events = created;
    pthread_mutex_unlock(&lock);
    *event = created;
    return DIPU_SUCCESS;
}

/* Remove the first event in the list that has this handle, or belongs to the device; the caller has the lock. */
static bool remove_event(const void* handle, int32_t device) {
    for (struct event** link = &events; *link != NULL; link = &(*link)->next) {
        struct event* event = *link;
        if (event == handle || event->device == device) {
            *link = event->next;
            drop(event->record);
            free(event);
            return true;
        }
    }
    return false;
}

int32_t destroy_event(void* handle) {
    pthread_mutex_lock(&lock);
    bool is_removed = remove_event(handle, NOWHERE);
    pthread_mutex_unlock(&lock);
    return is_removed ? DIPU_SUCCESS : fail("destroyEvent: there is no event with this handle");
}

void device_destroy_events(int32_t device) {
    pthread_mutex_lock(&lock);
    while (remove_event(NULL, device)) continue;
    pthread_mutex_unlock(&lock);
}

int32_t wait_event(void* handle) {
    struct record* record;
    if (latest_record(handle, "waitEvent", &record) != DIPU_SUCCESS) return DIPU_EXCEPTION;
    if (record == NULL) return DIPU_SUCCESS;
    record_wait(record);
    record_release(record);
    return report_asynchronous_error("waitEvent");
}

/* Enqueue a command that uses a record and frees it at its end. */
static int32_t enqueue(struct stream* stream, enum command_kind kind, struct record* record, const char* function) {
    struct command* command = calloc(1, sizeof *command);
    if (command == NULL) {
        record_release(record);
        return fail("%s: out of memory", function);
    }
    command->kind = kind;
    command->record = record;
    stream_enqueue(stream, command);
    return DIPU_SUCCESS;
}

int32_t stream_wait_event(void* handle, void* event) {
    struct stream* stream = stream_acquire(handle, "streamWaitEvent");
    if (stream == NULL) return DIPU_EXCEPTION;
    struct record* record;
    int32_t status = latest_record(event, "streamWaitEvent", &record);
    if (status == DIPU_SUCCESS && record != NULL) status = enqueue(stream, WAIT, record, "streamWaitEvent");
    stream_release(stream);
    return status;
}

/* Replace the record of the event, and return whether there is such an event of the device. */
static int32_t replace_record(void* handle, struct record* record, int32_t device) {
    pthread_mutex_lock(&lock);
    struct event* event = find_event(handle, "recordEvent");
    bool is_valid = event != NULL && event->device == device;
    if (is_valid) {
        drop(event->record);
        event->record = record;
        record->users++;
    }
    pthread_mutex_unlock(&lock);
    if (event != NULL && !is_valid) fail("recordEvent: the event and the stream belong to different devices");
    return is_valid ? DIPU_SUCCESS : DIPU_EXCEPTION;
}

int32_t record_event(void* handle, void* stream_handle) {
    struct stream* stream = stream_acquire(stream_handle, "recordEvent");
    if (stream == NULL) return DIPU_EXCEPTION;
    struct record* record = calloc(1, sizeof *record);
    int32_t status = record != NULL ? DIPU_SUCCESS : fail("recordEvent: out of memory");
    if (record != NULL) {
        record->users = 1;
        status = replace_record(handle, record, stream->device);
        if (status == DIPU_SUCCESS) {
            status = enqueue(stream, RECORD, record, "recordEvent");
        } else {
            record_release(record);
        }
    }
    stream_release(stream);
    return status;
}

int32_t event_elapsed_time(float* milliseconds, void* start, void* end) {
    pthread_mutex_lock(&lock);
    struct event* first = find_event(start, "eventElapsedTime");
    struct event* last = first != NULL ? find_event(end, "eventElapsedTime") : NULL;
    int32_t status = last != NULL ? DIPU_SUCCESS : DIPU_EXCEPTION;
    if (last != NULL && (first->record == NULL || last->record == NULL)) {
        status = fail("eventElapsedTime: the %s event was never recorded", first->record == NULL ? "first" : "second");
    } else if (last != NULL && !(first->record->is_ready && last->record->is_ready)) {
        status = fail("eventElapsedTime: the %s event is not ready", first->record->is_ready ? "second" : "first");
    } else if (last != NULL) {
        *milliseconds = (float)(last->record->nanoseconds - first->record->nanoseconds) / 1e6f;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int32_t get_event_status(void* handle, int32_t* result) {
    enum { PENDING = 0, READY = 3 }; /* of EventStatus in device_runtime.h */
    pthread_mutex_lock(&lock);
    struct event* event = find_event(handle, "getEventStatus");
    if (event != NULL) *result = event->record == NULL || event->record->is_ready ? READY : PENDING;
    pthread_mutex_unlock(&lock);
    return event != NULL ? DIPU_SUCCESS : DIPU_EXCEPTION;
}
