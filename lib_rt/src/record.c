/* Timing records: named time spans that nest within a thread. They are stored only while there is a log. */
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

_Static_assert(sizeof(struct record) <= SLOT_BYTES, "a record fits a slot");

struct entry {
    char* name;
    int32_t depth;
    int64_t nanoseconds;
};

static diopirt_lock_t lock = DIOPIRT_LOCK_INITIALIZER;
static bool logging;
static struct entry* entries;
static int64_t entry_count, capacity;
static DIOPIRT_THREAD_LOCAL int32_t depth;

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
    free(entries);
    entries = NULL;
    capacity = 0;
}

/* Append an entry to the log, if there is one, and take ownership of its name; return false if memory is exhausted. */
static bool append_entry(struct entry entry) {
    diopirt_lock_acquire(&lock);
    bool is_logging = logging, is_stored = is_logging && has_room();
    if (is_stored) entries[entry_count++] = entry;
    diopirt_lock_release(&lock);
    if (!is_stored) free(entry.name);
    return is_stored || !is_logging;
}

void diopirt_record_log(bool start) {
    diopirt_lock_acquire(&lock);
    empty();
    logging = start;
    diopirt_lock_release(&lock);
}

int64_t diopirt_record_count(void) {
    diopirt_lock_acquire(&lock);
    int64_t count = entry_count;
    diopirt_lock_release(&lock);
    return count;
}

diopiError_t diopirt_record_logged(int64_t index, const char** name, int32_t* record_depth, int64_t* nanoseconds) {
    EXPECT_RESULT(name);
    EXPECT_RESULT(record_depth);
    EXPECT_RESULT(nanoseconds);
    struct entry found = {0};
    diopirt_lock_acquire(&lock);
    int64_t count = entry_count;
    if (index >= 0 && index < count) found = entries[index];
    diopirt_lock_release(&lock);
    EXPECT(found.name != NULL, "%s: there is no record %lld, the log has %lld", __func__, (long long)index,
           (long long)count);
    *name = found.name;
    *record_depth = found.depth;
    *nanoseconds = found.nanoseconds;
    return diopiSuccess;
}

diopiError_t diopiRecordStart(const char* record_name, void** record) {
    EXPECT(record_name != NULL, "%s: the name is NULL", __func__);
    EXPECT_RESULT(record);
    char* name = strdup(record_name);
    struct record* new_record = name != NULL ? handle_new(RECORD) : NULL;
    if (new_record == NULL) {
        free(name);
        return fail(diopiErrorOccurred, "out of host memory for a record");
    }
    new_record->name = name;
    new_record->depth = depth++;
    new_record->started = now();
    *record = new_record;
    return diopiSuccess;
}

diopiError_t diopiRecordEnd(void** record) {
    EXPECT(record != NULL, "%s: the record pointer is NULL", __func__);
    TRY(handle_check(*record, RECORD, __func__));
    struct record* ended = *record;
    bool succeeded = append_entry((struct entry){ended->name, ended->depth, now() - ended->started});
    depth--;
    handle_retire(ended);
    *record = NULL;
    EXPECT(succeeded, "out of host memory for the log of records");
    return diopiSuccess;
}
