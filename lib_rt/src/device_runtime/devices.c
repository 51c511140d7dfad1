/* The devices: their number and properties, the current device of each thread, and which command a device runs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime.h"

#define DEFAULT_DEVICES 2
#define DEFAULT_MEBIBYTES 2048

static struct device devices[MAX_DEVICES];
static int32_t count;
static size_t bytes_per_device;
static unsigned delay; /* in microseconds */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local int32_t current;

/* Return the integer of an environment variable, or the default if the variable is not set or out of range. */
static long read_setting(const char* name, long minimum, long maximum, long default_value) {
    const char* text = getenv(name);
    char* end = NULL;
    long value = text != NULL ? strtol(text, &end, 10) : default_value;
    bool is_valid = text == NULL || (end != text && *end == '\0' && value >= minimum && value <= maximum);
    if (is_valid) return value;
    fprintf(stderr, "%s is %s, expected %ld to %ld; using %ld\n", name, text, minimum, maximum, default_value);
    return default_value;
}

static void start(void) {
    count = (int32_t)read_setting("DIOPI_DEVICE_COUNT", 0, MAX_DEVICES, DEFAULT_DEVICES);
    bytes_per_device = (size_t)read_setting("DIOPI_DEVICE_MEMORY", 1, 1L << 30, DEFAULT_MEBIBYTES) << 20;
    delay = (unsigned)read_setting("DIOPI_DEVICE_DELAY", 0, 1000000, 0);
    for (int i = 0; i < MAX_DEVICES; i++) {
        pthread_mutex_init(&devices[i].lock, NULL);
        pthread_cond_init(&devices[i].idle, NULL);
    }
}

int32_t device_count(void) {
    pthread_once(&once, start);
    return count;
}

size_t device_bytes(void) {
    pthread_once(&once, start);
    return bytes_per_device;
}

unsigned command_delay(void) { return delay; }

struct device* device_at(int32_t index) {
    pthread_once(&once, start);
    return &devices[index];
}

bool device_exists(int32_t index) { return index >= 0 && index < device_count(); }

int32_t current_index(void) { return current; }

int32_t fail_no_device(const char* function, int32_t index) {
    return fail("%s: there is no device %d; the number of devices is %d", function, (int)index, (int)device_count());
}

/* Wait until the device may run a command of the stream. Commands without priority come in the order of their arrival,
 * so that the streams of the device alternate. */
void device_begin(struct stream* stream) {
    struct device* device = device_at(stream->device);
    bool has_priority = stream->has_priority;
    pthread_mutex_lock(&device->lock);
    device->waiting_with_priority += has_priority && !stream->is_waiting;
    uint64_t ticket = has_priority ? 0 : device->arrived++;
    while (device->is_busy || (!has_priority && (device->waiting_with_priority > 0 || ticket != device->begun))) {
        pthread_cond_wait(&device->idle, &device->lock);
    }
    device->is_busy = true;
    device->waiting_with_priority -= has_priority;
    stream->is_waiting = false;
    device->begun += !has_priority;
    pthread_mutex_unlock(&device->lock);
}

/* Let another command run. A stream with priority whose next command needs the device waits for it at once, so that no
 * other command comes between, even if the system stops the stream's thread. */
void device_end(struct stream* stream) {
    struct device* device = device_at(stream->device);
    stream->is_waiting = stream->has_priority && stream_continues(stream);
    pthread_mutex_lock(&device->lock);
    device->is_busy = false;
    device->waiting_with_priority += stream->is_waiting;
    pthread_cond_broadcast(&device->idle);
    pthread_mutex_unlock(&device->lock);
}

int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int32_t initialize_vendor(void) {
    device_count();
    return DIPU_SUCCESS;
}

int32_t finalize_vendor(void) {
    for (int32_t index = 0; index < device_count(); index++) reset_device(index);
    device_free_all(HOST);
    return DIPU_SUCCESS;
}

int32_t get_current_device(int32_t* result) {
    *result = current;
    return DIPU_SUCCESS;
}

int32_t get_device_properties(int32_t device, dipuDeviceProperties* result) {
    if (!device_exists(device)) return fail_no_device("getDeviceProperties", device);
    *result = (dipuDeviceProperties){.totalGlobalMem = device_bytes(), .major = 1, .multiProcessorCount = 1};
    snprintf(result->name, sizeof result->name, "DIOPI built-in device");
    return DIPU_SUCCESS;
}

int32_t get_device_status(int32_t device, dipuDeviceStatus* result) {
    if (!device_exists(device)) return fail_no_device("getDeviceStatus", device);
    size_t total = device_bytes();
    *result = (dipuDeviceStatus){.freeGlobalMem = total - memory_used(device), .totalGlobalMem = total};
    return DIPU_SUCCESS;
}

int32_t set_device(int32_t device) {
    if (!device_exists(device)) return fail_no_device("setDevice", device);
    current = device;
    return DIPU_SUCCESS;
}

int32_t reset_device(int32_t device) {
    if (!device_exists(device)) return fail_no_device("resetDevice", device);
    device_destroy_streams(device);
    device_destroy_events(device);
    device_free_all(device);
    return DIPU_SUCCESS;
}

int32_t sync_device(void) {
    device_wait(current);
    return report_asynchronous_error("syncDevice");
}

int32_t get_device_count(int32_t* result) {
    *result = device_count();
    return DIPU_SUCCESS;
}

int32_t get_version(int32_t* version) {
    *version = 100;
    return DIPU_SUCCESS;
}
