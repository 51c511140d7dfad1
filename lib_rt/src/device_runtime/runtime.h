/* The device runtime of the built-in device: several devices whose memory is host memory.
 *
 * Each stream has a thread that runs its commands in order. A device runs one command at a time, and commands of
 * streams with priority first. Work is therefore really asynchronous, and the streams of a device interleave. */
#ifndef DIOPI_DEVICE_RUNTIME_H_
#define DIOPI_DEVICE_RUNTIME_H_

#include <dipu/device_runtime_c.h>
#include <pthread.h>
#include <stdint.h>

#define MAX_DEVICES 16
#define HOST (-1)    /* the device of pinned host memory */
#define NOWHERE (-2) /* the device of memory that the runtime did not allocate */
#define ALIGNMENT 64

struct device {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    bool is_busy;
    int waiting_with_priority;
    uint64_t arrived, begun; /* numbers of commands without priority */
    size_t used; /* protected by the lock of memory.c */
    struct stream* default_stream;
};

/* The point in the work of a stream at which an event was recorded. The event and the commands that use it share it. */
struct record {
    int users;
    bool is_ready;
    int64_t nanoseconds; /* when the stream reached the point */
};

struct event {
    struct event* next;
    int32_t device;
    struct record* record; /* NULL if the event was never recorded */
};

enum command_kind { COPY, FILL, RECORD, WAIT, CALL };

struct command {
    struct command* next;
    enum command_kind kind;
    int32_t to_device, from_device; /* the device of the memory, HOST or NOWHERE */
    void* to;
    const void* from;
    size_t bytes;
    int32_t value;
    struct record* record;
    void (*call)(void* argument);
    void* argument;
    /* a copy of the bytes of a pageable source may follow */
};

struct stream {
    struct stream* next;
    int32_t device;
    bool has_priority;
    bool is_waiting; /* whether it has a place on its device before the next command; used by the thread alone */
    int users; /* calls that use the stream; protected by the lock of streams.c */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct command *first, *last;
    uint64_t enqueued, completed; /* numbers of commands */
    bool is_ending;
    pthread_t thread;
};

/* errors.c */
int32_t fail(const char* format, ...) __attribute__((format(printf, 1, 2)));
const char* last_error_text(void);
void store_asynchronous_error(const char* text);
int32_t report_asynchronous_error(const char* function);

/* devices.c */
int32_t device_count(void);
size_t device_bytes(void);
unsigned command_delay(void);
struct device* device_at(int32_t index);
bool device_exists(int32_t index);
int32_t current_index(void);
int32_t fail_no_device(const char* function, int32_t index);
void device_begin(struct stream* stream);
void device_end(struct stream* stream);
int32_t reset_device(int32_t index);
int64_t now(void);

/* streams.c */
bool stream_continues(struct stream* stream);
struct stream* stream_acquire(void* handle, const char* function);
struct stream* stream_acquire_default(int32_t device, const char* function);
void stream_release(struct stream* stream);
uint64_t stream_enqueue(struct stream* stream, struct command* command);
void stream_wait(struct stream* stream, uint64_t number);
void device_wait(int32_t device);
void device_destroy_streams(int32_t device);

/* events.c */
void record_complete(struct record* record);
void record_wait(struct record* record);
void record_release(struct record* record);
void device_destroy_events(int32_t device);

/* memory.c */
struct allocation;
struct allocation* memory_hold(const void* address, size_t bytes, int32_t device);
void memory_release(struct allocation* allocation);
int32_t memory_device(const void* address, size_t bytes);
size_t memory_used(int32_t device);
void device_free_all(int32_t device);

/* copies.c */
void run_command(struct stream* stream, struct command* command);

/* The functions of the table; device_runtime.h documents them. */
int32_t initialize_vendor(void);
int32_t finalize_vendor(void);
int32_t get_current_device(int32_t* result);
int32_t get_device_properties(int32_t device, dipuDeviceProperties* result);
int32_t get_device_status(int32_t device, dipuDeviceStatus* result);
int32_t set_device(int32_t device);
int32_t sync_device(void);
int32_t check_last_error(void);
int32_t release_stream(void);
int32_t get_device_count(int32_t* result);
int32_t get_version(int32_t* version);
int32_t create_stream(void** stream, bool prior);
int32_t destroy_stream(void* stream);
int32_t destroy_stream_of_device(void* stream, int32_t device);
int32_t sync_stream(void* stream);
int32_t stream_not_null(void* stream, bool* result);
int32_t is_stream_empty(void* stream, bool* result);
int32_t stream_wait_event(void* stream, void* event);
int32_t create_event(void** event);
int32_t destroy_event(void* event);
int32_t wait_event(void* event);
int32_t record_event(void* event, void* stream);
int32_t event_elapsed_time(float* milliseconds, void* start, void* end);
int32_t get_event_status(void* event, int32_t* result);
int32_t malloc_host(void** address, size_t bytes);
int32_t free_host(void* address);
int32_t is_pinned_ptr(const void* address, bool* result);
int32_t malloc_device(void** address, size_t bytes, bool throws);
int32_t free_device(void* address);
int32_t mem_set_async(void* stream, void* address, int32_t value, size_t bytes);
int32_t mem_copy_d2d(size_t bytes, int32_t to_device, void* to, int32_t from_device, const void* from);
int32_t mem_copy_h2d(size_t bytes, void* to, const void* from);
int32_t mem_copy_d2h(size_t bytes, void* to, const void* from);
int32_t mem_copy_d2d_async(void* stream, size_t bytes, int32_t to_device, void* to, int32_t from_device,
                           const void* from);
int32_t mem_copy_h2d_async(void* stream, size_t bytes, void* to, const void* from);
int32_t mem_copy_d2h_async(void* stream, size_t bytes, void* to, const void* from);

#endif /* DIOPI_DEVICE_RUNTIME_H_ */
