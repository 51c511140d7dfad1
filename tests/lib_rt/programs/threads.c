/* Eight threads call all functions concurrently, on separate and on shared devices, streams and contexts. */
#include <pthread.h>
#include <string.h>

#include "program.h"

enum { THREADS = 8, ROUNDS = 100, ELEMENTS = 33 };

static diopirt_device_t device;
static diopiContextHandle_t shared;
static diopiGeneratorHandle_t generator;
static pthread_barrier_t start;

bool fault(void) { return false; }

#define DO(call) CHECK((call) == diopiSuccess)

static void use_tensors(diopiContextHandle_t context, int32_t seed) {
    int64_t length = ELEMENTS, numel;
    diopiSize_t shape = {&length, 1};
    int32_t values[ELEMENTS], found[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) values[i] = seed + i;
    diopiTensorHandle_t tensor, clone;
    DO(diopirt_tensor_create(context, &shape, NULL, diopi_dtype_int32, diopi_device, 0, -1, values, &tensor));
    DO(diopirt_tensor_clone(tensor, &clone));
    values[0] = -seed;
    DO(diopirt_tensor_write(clone, 0, sizeof values, values));
    DO(diopirt_tensor_read(clone, 0, sizeof found, found));
    CHECK(memcmp(values, found, sizeof values) == 0);
    DO(diopirt_tensor_read(tensor, 0, sizeof found, found));
    CHECK(found[0] == seed);
    DO(diopirt_tensor_check(tensor, NULL));
    DO(diopirt_tensor_destroy(tensor, NULL));
    DO(diopirt_tensor_destroy(clone, NULL));
    diopiGeneratorHandle_t dead = (diopiGeneratorHandle_t)(void*)tensor; /* may be another thread's tensor by now */
    CHECK(diopirt_generator_destroy(dead) != diopiSuccess);
    DO(diopiRequireTensor(context, &tensor, &shape, NULL, diopi_dtype_int8, diopi_host));
    DO(diopiGetTensorNumel(tensor, &numel));
    CHECK(numel == ELEMENTS);
}

static void use_required(diopiContextHandle_t context) {
    diopiTensorHandle_t tensors[4] = {NULL};
    int64_t count;
    DO(diopirt_context_required(context, tensors, 4, &count));
    CHECK(count > 0 && tensors[0] != NULL);
}

static void use_own_context(diopirt_device_t used_device, int32_t seed) {
    diopirt_stream_t stream;
    diopiContextHandle_t context;
    DO(diopirt_stream_create(used_device, &stream));
    DO(diopirt_context_create(stream, &context));
    use_tensors(context, seed);
    use_required(context);
    DO(diopirt_context_destroy(context, NULL));
    DO(diopirt_stream_destroy(stream));
}

static void use_opened_context(diopirt_device_t used_device, int32_t seed) {
    diopiContextHandle_t context = diopirt_context_open(used_device);
    CHECK(context != NULL);
    use_tensors(context, seed);
    DO(diopirt_context_synchronize(context));
    DO(diopirt_context_destroy(context, NULL));
}

static void use_own_device(int32_t seed) {
    diopirt_device_t own = open_device();
    CHECK(own != NULL);
    use_own_context(own, seed);
    DO(diopirt_device_destroy(own));
}

static void use_generator(uint64_t seed) {
    uint64_t found_seed, found_offset;
    diopiTensorHandle_t state;
    DO(diopiGeneratorSetSeedAndOffset(generator, seed, seed));
    DO(diopiGeneratorGetSeedAndOffset(generator, &found_seed, &found_offset));
    CHECK(found_seed == found_offset);
    DO(diopiGeneratorGetState(shared, generator, &state));
    DO(diopiGeneratorSetState(generator, state));
}

static void use_records(void) {
    void *outer, *inner;
    DO(diopiRecordStart("outer", &outer));
    DO(diopiRecordStart("inner", &inner));
    DO(diopiRecordEnd(&inner));
    DO(diopiRecordEnd(&outer));
}

/* Only one thread starts, reads and ends the log, because its records live until the log ends. */
static void read_log(void) {
    diopirt_record_log(true);
    for (int i = 0; i < 100; i++) use_records();
    for (int64_t i = 0; i < diopirt_record_count(); i++) {
        const char* name;
        int32_t depth;
        int64_t nanoseconds;
        DO(diopirt_record_logged(i, &name, &depth, &nanoseconds));
        CHECK(strcmp(name, depth == 0 ? "outer" : "inner") == 0);
    }
    diopirt_record_log(false);
}

static void use_errors(int seed) {
    char expected[32];
    const char* text;
    snprintf(expected, sizeof expected, "there is no service %d", 1000 + seed);
    CHECK(diopirt_device_exchange(device, 1000 + seed, NULL, NULL) != diopiSuccess);
    CHECK(strstr(diopirt_last_error(), expected) != NULL);
    diopiError_t code = diopirt_device_last_error(device, &text); /* another thread may have removed the service */
    CHECK(code == diopiSuccess || code == diopiNoRegisteredGetLastErrorFunction);
}

static void take_service_away_for_a_moment(void) {
    diopirt_function_t taken;
    DO(diopirt_device_exchange(device, diopirt_last_error_service, NULL, &taken));
    DO(diopirt_device_exchange(device, diopirt_last_error_service, taken, NULL));
}

static void use_counts(void) {
    int64_t blocks, bytes, allocations;
    DO(diopirt_device_live(device, &blocks, &bytes));
    DO(diopirt_device_allocations(device, &allocations));
    CHECK(blocks >= 0 && bytes >= 0 && allocations >= 0);
}

static void* work(void* argument) {
    int seed = *(int*)argument;
    pthread_barrier_wait(&start);
    CHECK(diopirt_device_current() != NULL);
    for (int round = 0; round < ROUNDS; round++) {
        int32_t number = 1000 * seed + round;
        use_tensors(shared, number);
        use_required(shared);
        use_own_context(device, number);
        use_opened_context(device, number);
        if (round % 8 == 0) use_own_device(number);
        use_generator((uint64_t)number);
        use_errors(seed);
        use_counts();
        if (seed == 1) read_log();
        if (seed == 2) take_service_away_for_a_moment();
        use_records();
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    int seeds[THREADS];
    diopirt_stream_t stream;
    device = open_device();
    CHECK(device != NULL);
    DO(diopirt_stream_create(device, &stream));
    DO(diopirt_context_create(stream, &shared));
    DO(diopirt_generator_create(1, 1, &generator));
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = i + 1;
        CHECK(pthread_create(&threads[i], NULL, work, &seeds[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    DO(diopirt_generator_destroy(generator));
    DO(diopirt_context_destroy(shared, NULL));
    DO(diopirt_stream_destroy(stream));
    CHECK(live_count() == 0);
    DO(diopirt_device_destroy(device));
    return 0;
}
