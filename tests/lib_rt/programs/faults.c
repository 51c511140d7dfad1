/* Each allocation, each handle and each service of the vendor that the runtime requests fails once. The call then
 * returns an error, no memory leaks, and later calls work.
 *
 * Linked with --wrap for the functions below. */
#include <string.h>

#include "program.h"

static _Thread_local int countdown; /* number of the request that fails, counted down; 0: none */

bool fault(void) { return countdown > 0 && --countdown == 0; }

#define DENIABLE(name, parameters, arguments) \
    void* __real_##name parameters;           \
    void* __wrap_##name parameters;           \
    void* __wrap_##name parameters { return fault() ? NULL : __real_##name arguments; }

DENIABLE(malloc, (size_t bytes), (bytes))
DENIABLE(calloc, (size_t number, size_t bytes), (number, bytes))
DENIABLE(realloc, (void* memory, size_t bytes), (memory, bytes))
DENIABLE(aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes))
DENIABLE(strdup, (const char* text), (text))
DENIABLE(handle_new, (int kind), (kind))

static int failures;

static bool succeeded(diopiError_t code) {
    CHECK(code == diopiSuccess || code == diopiErrorOccurred);
    CHECK(code == diopiSuccess || diopirt_last_error()[0] != '\0');
    failures += code != diopiSuccess;
    return code == diopiSuccess;
}

static const int64_t rows_and_columns[] = {3, 4}, column_major[] = {1, 3};
static const diopiSize_t shape = {rows_and_columns, 2}, strides = {column_major, 2};

static diopiTensorHandle_t make_tensor(diopiContextHandle_t context, diopiDevice_t memory_kind) {
    static const int32_t values[20] = {1, 2, 3};
    diopiTensorHandle_t tensor = NULL;
    succeeded(diopirt_tensor_create(context, &shape, &strides, diopi_dtype_int32, memory_kind, 2, 20, values, &tensor));
    return tensor;
}

static void use_tensor(diopiContextHandle_t context, diopiDevice_t memory_kind) {
    diopiTensorHandle_t tensor = make_tensor(context, memory_kind), clone = NULL;
    int32_t values[20] = {0};
    if (tensor == NULL) return;
    if (succeeded(diopirt_tensor_read(tensor, 0, sizeof values, values))) CHECK(values[2] == 3);
    succeeded(diopirt_tensor_write(tensor, 0, sizeof values, values));
    succeeded(diopirt_tensor_check(tensor, NULL));
    if (succeeded(diopirt_tensor_clone(tensor, &clone))) {
        succeeded(diopirt_tensor_destroy(clone, NULL));
    } else {
        CHECK(clone == NULL);
    }
    succeeded(diopirt_tensor_destroy(tensor, NULL));
}

static void leave_tensors(diopiContextHandle_t context) {
    diopiTensorHandle_t required = NULL, csr = NULL, parts[3];
    if (!succeeded(diopiRequireTensor(context, &required, &shape, NULL, diopi_dtype_float64, diopi_device))) {
        CHECK(required == NULL);
    }
    bool complete = true;
    for (int i = 0; i < 3; i++) {
        parts[i] = make_tensor(context, i == 0 ? diopi_host : diopi_device);
        complete = complete && parts[i] != NULL;
    }
    if (complete && succeeded(diopirt_tensor_sparse_csr(context, &shape, parts[0], parts[1], parts[2], &csr))) {
        succeeded(diopirt_tensor_destroy(csr, NULL));
    }
}

static void use_generator(diopiContextHandle_t context) {
    diopiGeneratorHandle_t generator;
    diopiTensorHandle_t state = NULL;
    if (!succeeded(diopirt_generator_create(7, 0, &generator))) return;
    if (succeeded(diopiGeneratorGetState(context, generator, &state))) {
        succeeded(diopiGeneratorSetState(generator, state));
    }
    succeeded(diopirt_generator_destroy(generator));
}

enum { RECORDS = 70 }; /* more than the log has room for at first */

static void use_records(void) {
    int before = failures;
    diopirt_record_log(true);
    for (int i = 0; i < RECORDS; i++) {
        void* record = NULL;
        if (succeeded(diopiRecordStart("a span", &record))) succeeded(diopiRecordEnd(&record));
        CHECK(record == NULL);
    }
    CHECK(diopirt_record_count() == RECORDS - (failures - before));
    for (int64_t i = 0; i < diopirt_record_count(); i++) {
        const char* name;
        int32_t depth;
        int64_t nanoseconds;
        CHECK(diopirt_record_logged(i, &name, &depth, &nanoseconds) == diopiSuccess);
        CHECK(strcmp(name, "a span") == 0 && depth == 0 && nanoseconds >= 0);
    }
    diopirt_record_log(false);
}

static void use_context(diopirt_stream_t stream) {
    diopiContextHandle_t context;
    if (!succeeded(diopirt_context_create(stream, &context))) return;
    use_tensor(context, diopi_device);
    use_tensor(context, diopi_host);
    use_generator(context);
    leave_tensors(context);
    succeeded(diopirt_context_destroy(context, NULL));
}

/* Open and destroy a context that creates its stream, which `take` removes from it to destroy it afterwards. */
static void open_context(diopirt_device_t device, bool take) {
    struct diopirt_layout layout = {&shape, &strides, diopi_dtype_int32, diopi_device, 2, 20};
    diopirt_stream_t stream = NULL;
    diopiContextHandle_t context = diopirt_context_open(device);
    succeeded(context == NULL ? diopirt_last_code() : diopiSuccess);
    if (context == NULL) return;
    if (take) CHECK(diopirt_context_take_stream(context, &stream) == diopiSuccess);
    if (diopirt_tensor_open(context, &layout, NULL) == NULL) succeeded(diopirt_last_code());
    succeeded(diopirt_context_synchronize(context));
    succeeded(diopirt_context_destroy(context, NULL));
    if (take) succeeded(diopirt_stream_destroy(stream));
}

/* Call all functions of the runtime, and check that all memory is released. */
static void use_all(void) {
    int64_t blocks, bytes, allocations;
    diopirt_stream_t stream;
    diopirt_device_t device = open_device();
    use_records();
    if (device == NULL) {
        failures++;
        return;
    }
    if (succeeded(diopirt_stream_create(device, &stream))) {
        use_context(stream);
        succeeded(diopirt_stream_destroy(stream));
    }
    open_context(device, false);
    open_context(device, true);
    CHECK(diopirt_device_live(device, &blocks, &bytes) == diopiSuccess && blocks == 0 && bytes == 0);
    CHECK(diopirt_device_allocations(device, &allocations) == diopiSuccess && allocations == 0);
    CHECK(live_count() == 0);
    CHECK(diopirt_device_destroy(device) == diopiSuccess);
}

int main(void) {
    countdown = 1; /* the process's first device */
    CHECK(diopiRegisterGetLastErrorFunc(diopirt_last_error) != diopiSuccess);
    CHECK(diopiRegisterGetLastErrorFunc(diopirt_last_error) == diopiSuccess);
    int denied = 0;
    do {
        failures = 0;
        countdown = ++denied;
        use_all();
        CHECK((failures > 0) == (countdown == 0));
    } while (countdown == 0);
    printf("%d faults\n", denied - 1);
    return 0;
}
