/* Generators: the seed and offset of random operators, and their state as a tensor. */
#include "runtime.h"

enum { STATE_BYTES = 16 }; /* seed and offset, least significant byte first */

struct diopiGenerator {
    struct handle handle;
    diopirt_lock_t lock; /* seed and offset are read and written together */
    uint64_t seed, offset;
};

_Static_assert(sizeof(struct diopiGenerator) <= SLOT_BYTES, "a generator fits a slot");

diopiError_t diopirt_generator_create(uint64_t seed, uint64_t offset, diopiGeneratorHandle_t* generator) {
    EXPECT_RESULT(generator);
    diopiGeneratorHandle_t new_generator = handle_new(GENERATOR);
    EXPECT(new_generator != NULL, "out of host memory for a generator");
    diopirt_lock_init(&new_generator->lock);
    new_generator->seed = seed;
    new_generator->offset = offset;
    *generator = new_generator;
    return diopiSuccess;
}

diopiError_t diopirt_generator_destroy(diopiGeneratorHandle_t generator) {
    TRY(handle_check(generator, GENERATOR, __func__));
    diopirt_lock_destroy(&generator->lock);
    handle_retire(generator);
    return diopiSuccess;
}

static void read_state(struct diopiGenerator* generator, uint64_t* seed, uint64_t* offset) {
    diopirt_lock_acquire(&generator->lock);
    *seed = generator->seed;
    *offset = generator->offset;
    diopirt_lock_release(&generator->lock);
}

static void write_state(struct diopiGenerator* generator, uint64_t seed, uint64_t offset) {
    diopirt_lock_acquire(&generator->lock);
    generator->seed = seed;
    generator->offset = offset;
    diopirt_lock_release(&generator->lock);
}

diopiError_t diopiGeneratorGetSeedAndOffset(diopiGeneratorHandle_t th, uint64_t* ptrSeed, uint64_t* ptrOffset) {
    TRY(handle_check(th, GENERATOR, __func__));
    EXPECT_RESULT(ptrSeed);
    EXPECT_RESULT(ptrOffset);
    read_state(th, ptrSeed, ptrOffset);
    return diopiSuccess;
}

diopiError_t diopiGeneratorSetSeedAndOffset(diopiGeneratorHandle_t th, uint64_t seed, uint64_t offset) {
    TRY(handle_check(th, GENERATOR, __func__));
    write_state(th, seed, offset);
    return diopiSuccess;
}

static uint64_t load(const unsigned char* bytes) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

static void store(unsigned char* bytes, uint64_t value) {
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(value >> 8 * i);
}

diopiError_t diopiGeneratorGetState(diopiContextHandle_t ctx, diopiConstGeneratorHandle_t th,
                                    diopiTensorHandle_t* data) {
    TRY(handle_check(th, GENERATOR, __func__));
    uint64_t seed, offset;
    read_state((struct diopiGenerator*)th, &seed, &offset); /* changes only the lock */
    unsigned char state[STATE_BYTES];
    store(state, seed);
    store(state + 8, offset);
    int64_t length = STATE_BYTES;
    diopiSize_t size = {&length, 1};
    struct diopirt_layout layout = {&size, NULL, diopi_dtype_uint8, diopi_host, 0, -1};
    return tensor_create(ctx, &layout, (struct origin){.payload = state, .required = true}, data);
}

diopiError_t diopiGeneratorSetState(diopiGeneratorHandle_t th, diopiConstTensorHandle_t state) {
    TRY(handle_check(th, GENERATOR, __func__));
    TRY(handle_check(state, TENSOR, __func__));
    EXPECT(state->dtype == diopi_dtype_uint8 && state->dimensions == 1 && state->numel == STATE_BYTES &&
               !tensor_is_sparse(state) && state->strides[0] == 1,
           "%s: a state is a contiguous uint8 tensor of %d elements", __func__, STATE_BYTES);
    unsigned char bytes[STATE_BYTES];
    TRY(diopirt_tensor_read(state, state->offset, STATE_BYTES, bytes));
    write_state(th, load(bytes), load(bytes + 8));
    return diopiSuccess;
}
