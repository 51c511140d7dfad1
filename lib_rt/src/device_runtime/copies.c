/* Copies and fills: calls that enqueue them, and the commands that streams run. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime.h"

static void pause_before_command(void) {
    unsigned delay = command_delay();
    if (delay == 0) return;
    struct timespec time = {delay / 1000000, (long)(delay % 1000000) * 1000};
    nanosleep(&time, NULL);
}

/* Hold the memory on one side of a command; return whether it still exists. */
static bool hold(const void* address, const struct command* command, int32_t device, struct allocation** allocation) {
    *allocation = device == NOWHERE ? NULL : memory_hold(address, command->bytes, device);
    return device == NOWHERE || *allocation != NULL;
}

static void move_bytes(struct command* command) {
    struct allocation *to = NULL, *from = NULL;
    bool exists = hold(command->to, command, command->to_device, &to);
    exists = hold(command->from, command, command->from_device, &from) && exists;
    if (!exists) {
        store_asynchronous_error("memory of a copy or fill was freed before the stream reached it");
    } else if (command->kind == COPY) {
        memmove(command->to, command->from, command->bytes);
    } else {
        memset(command->to, command->value, command->bytes);
    }
    if (to != NULL) memory_release(to);
    if (from != NULL) memory_release(from);
}

void run_command(struct stream* stream, struct command* command) {
    switch (command->kind) {
    case COPY:
    case FILL:
        device_begin(stream);
        pause_before_command();
        move_bytes(command);
        device_end(stream);
        break;
    case RECORD: /* the stream completes the record when it counts the command */
        break;
    case WAIT:
        record_wait(command->record);
        break;
    case CALL:
        command->call(command->argument);
        break;
    }
}

/* Return a command, or NULL with an error; `staged` bytes of `from` are copied behind it. */
static struct command* new_command(struct command fields, size_t staged, const char* function) {
    struct command* command = malloc(sizeof *command + staged);
    if (command == NULL) {
        fail("%s: out of memory", function);
        return NULL;
    }
    *command = fields;
    if (staged > 0) command->from = memcpy(command + 1, fields.from, staged);
    return command;
}

/* Return an error unless the bytes lie in one allocation of the device. */
static int32_t require_memory(const void* address, size_t bytes, int32_t device, const char* function) {
    int32_t found = memory_device(address, bytes);
    if (found == device) return DIPU_SUCCESS;
    if (found == NOWHERE) return fail("%s: %zu bytes do not lie in an allocation of device memory", function, bytes);
    const char* owner = found == HOST ? "the host" : "another device";
    return fail("%s: the memory belongs to %s, not to device %d", function, owner, (int)device);
}

/* Return an error if the address lies in device memory instead of host memory. */
static int32_t require_host(const void* address, const char* function) {
    if (memory_device(address, 1) < 0) return DIPU_SUCCESS;
    return fail("%s: device memory where host memory is expected", function);
}

/* Enqueue a command and, if `waits`, wait until the stream has completed it. */
static int32_t submit(struct stream* stream, struct command fields, size_t staged, bool waits, const char* function) {
    struct command* command = new_command(fields, staged, function);
    if (command == NULL) return DIPU_EXCEPTION;
    uint64_t number = stream_enqueue(stream, command);
    if (!waits) return DIPU_SUCCESS;
    stream_wait(stream, number);
    return report_asynchronous_error(function);
}

/* Check and enqueue a copy from host memory, and wait for it if `waits`. */
static int32_t copy_from_host(struct stream* stream, struct command fields, bool waits, const char* function) {
    int32_t status = require_memory(fields.to, fields.bytes, stream->device, function);
    if (status == DIPU_SUCCESS) status = require_host(fields.from, function);
    if (status != DIPU_SUCCESS) return status;
    fields.to_device = stream->device;
    fields.from_device = memory_device(fields.from, fields.bytes);
    bool is_staged = fields.from_device != HOST && !waits; /* the program may change pageable memory at once */
    return submit(stream, fields, is_staged ? fields.bytes : 0, waits, function);
}

/* Check and enqueue a copy to host memory, and wait for it if `waits` or if the memory is pageable. */
static int32_t copy_to_host(struct stream* stream, struct command fields, bool waits, const char* function) {
    int32_t status = require_memory(fields.from, fields.bytes, stream->device, function);
    if (status == DIPU_SUCCESS) status = require_host(fields.to, function);
    if (status != DIPU_SUCCESS) return status;
    fields.to_device = memory_device(fields.to, fields.bytes);
    fields.from_device = stream->device;
    return submit(stream, fields, 0, waits || fields.to_device != HOST, function);
}

/* Check and enqueue a copy between devices, and wait for it if `waits`. */
static int32_t copy_between(struct stream* stream, struct command fields, bool waits, const char* function) {
    int32_t status = require_memory(fields.to, fields.bytes, fields.to_device, function);
    if (status == DIPU_SUCCESS) status = require_memory(fields.from, fields.bytes, fields.from_device, function);
    if (status == DIPU_SUCCESS && stream->device != fields.to_device && stream->device != fields.from_device) {
        status = fail("%s: the stream belongs to neither device", function);
    }
    return status == DIPU_SUCCESS ? submit(stream, fields, 0, waits, function) : status;
}

static int32_t fill(struct stream* stream, struct command fields, bool waits, const char* function) {
    int32_t status = require_memory(fields.to, fields.bytes, stream->device, function);
    fields.to_device = stream->device;
    fields.from_device = NOWHERE;
    return status == DIPU_SUCCESS ? submit(stream, fields, 0, waits, function) : status;
}

typedef int32_t (*enqueue_function)(struct stream*, struct command, bool, const char*);

/* Enqueue a command with the function, unless it has no bytes. */
static int32_t enqueue_on(void* handle, struct command fields, enqueue_function enqueue, const char* function) {
    struct stream* stream = stream_acquire(handle, function);
    if (stream == NULL) return DIPU_EXCEPTION;
    int32_t status = fields.bytes > 0 ? enqueue(stream, fields, false, function) : DIPU_SUCCESS;
    stream_release(stream);
    return status;
}

/* Run a command on the default stream of the device that the device memory at `address` belongs to. */
static int32_t run_now(const void* address, struct command fields, enqueue_function enqueue, const char* function) {
    if (fields.bytes == 0) return DIPU_SUCCESS;
    int32_t device = memory_device(address, fields.bytes);
    if (device < 0) return require_memory(address, fields.bytes, current_index(), function);
    struct stream* stream = stream_acquire_default(device, function);
    if (stream == NULL) return DIPU_EXCEPTION;
    int32_t status = enqueue(stream, fields, true, function);
    stream_release(stream);
    return status;
}

static int32_t require_devices(int32_t to_device, int32_t from_device, const char* function) {
    if (!device_exists(to_device)) return fail_no_device(function, to_device);
    return device_exists(from_device) ? DIPU_SUCCESS : fail_no_device(function, from_device);
}

int32_t mem_set_async(void* stream, void* address, int32_t value, size_t bytes) {
    struct command fields = {.kind = FILL, .to = address, .bytes = bytes, .value = value};
    return enqueue_on(stream, fields, fill, "memSetAsync");
}

int32_t mem_copy_d2d(size_t bytes, int32_t to_device, void* to, int32_t from_device, const void* from) {
    struct command fields = {
        .to_device = to_device, .from_device = from_device, .to = to, .from = from, .bytes = bytes};
    int32_t status = require_devices(to_device, from_device, "memCopyD2D");
    return status == DIPU_SUCCESS ? run_now(to, fields, copy_between, "memCopyD2D") : status;
}

int32_t mem_copy_d2d_async(void* stream, size_t bytes, int32_t to_device, void* to, int32_t from_device,
                           const void* from) {
    struct command fields = {
        .to_device = to_device, .from_device = from_device, .to = to, .from = from, .bytes = bytes};
    int32_t status = require_devices(to_device, from_device, "memCopyD2DAsync");
    return status == DIPU_SUCCESS ? enqueue_on(stream, fields, copy_between, "memCopyD2DAsync") : status;
}

int32_t mem_copy_h2d(size_t bytes, void* to, const void* from) {
    struct command fields = {.to = to, .from = from, .bytes = bytes};
    return run_now(to, fields, copy_from_host, "memCopyH2D");
}

int32_t mem_copy_d2h(size_t bytes, void* to, const void* from) {
    struct command fields = {.to = to, .from = from, .bytes = bytes};
    return run_now(from, fields, copy_to_host, "memCopyD2H");
}

int32_t mem_copy_h2d_async(void* stream, size_t bytes, void* to, const void* from) {
    struct command fields = {.to = to, .from = from, .bytes = bytes};
    return enqueue_on(stream, fields, copy_from_host, "memCopyH2DAsync");
}

int32_t mem_copy_d2h_async(void* stream, size_t bytes, void* to, const void* from) {
    struct command fields = {.to = to, .from = from, .bytes = bytes};
    return enqueue_on(stream, fields, copy_to_host, "memCopyD2HAsync");
}
