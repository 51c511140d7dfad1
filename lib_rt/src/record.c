/* Timing records: named spans that nest within a thread, kept only while a log is being written. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime.h"

struct record {
    struct handle handle;
    char* name;
    int32_t depth;
    int64_t started;
};

struct entry {
    char* name;
    int32_t depth;
    int64_t nanoseconds;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool logging;
static struct entry* entries;
static int64_t entry_count, capacity;
static _Thread_local int32_t depth;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static bool has_room(void) {
    if (entry_count < capacity) return true;
    int64_t larger = capacity > 0 ? 2 * capacity : 64;
    struct entry* moved = realloc(entries, (size_t)larger * sizeof *entries);
    if (moved == NULL) return false;
    entries = moved;
    capacity = larger;
    return true;
}

static void empty(void) {
    while (entry_count > 0) free(entries[--entry_count].name);
}

/* Takes `name` over. */
static void keep(char* name, int32_t record_depth, int64_t nanoseconds) {
    pthread_mutex_lock(&lock);
    bool kept = logging && has_room();
    if (kept) entries[entry_count++] = (struct entry){name, record_depth, nanoseconds};
    pthread_mutex_unlock(&lock);
    if (!kept) free(name);
}

void diopirt_record_log(bool on) {
    pthread_mutex_lock(&lock);
    empty();
    logging = on;
    pthread_mutex_unlock(&lock);
}

int64_t diopirt_record_count(void) {
    pthread_mutex_lock(&lock);
    int64_t count = entry_count;
    pthread_mutex_unlock(&lock);
    return count;
}

diopiError_t diopirt_record_logged(int64_t index, const char** name, int32_t* record_depth, int64_t* nanoseconds) {
    EXPECT_RESULT(name);
    EXPECT_RESULT(record_depth);
    EXPECT_RESULT(nanoseconds);
    EXPECT(index >= 0 && index < entry_count, "%s: record %lld of %lld", __func__, (long long)index,
           (long long)entry_count);
    *name = entries[index].name;
    *record_depth = entries[index].depth;
    *nanoseconds = entries[index].nanoseconds;
    return diopiSuccess;
}

diopiError_t diopiRecordStart(const char* record_name, void** record) {
    EXPECT(record_name != NULL, "%s: the name is NULL", __func__);
    EXPECT_RESULT(record);
    struct record* made = handle_new(RECORD);
    char* name = strdup(record_name);
    EXPECT(made != NULL && name != NULL, "out of host memory for a record");
    made->name = name;
    made->depth = depth++;
    made->started = now();
    *record = made;
    return diopiSuccess;
}

diopiError_t diopiRecordEnd(void** record) {
    EXPECT(record != NULL, "%s: the record pointer is NULL", __func__);
    TRY(handle_check(*record, RECORD, __func__));
    struct record* ended = *record;
    keep(ended->name, ended->depth, now() - ended->started);
    depth--;
    handle_retire(ended);
    *record = NULL;
    return diopiSuccess;
}
