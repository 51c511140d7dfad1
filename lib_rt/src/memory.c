/* Guarded memory: every allocation is between two guard zones; it initially contains the caller's bytes or poison. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

static const struct {
    int64_t bytes;
    uint64_t poison; /* a signaling NaN of the type or of its components, else bytes 0xA5, repeated to 8 bytes */
} elements[] = {
    [diopi_dtype_int8] = {1, 0xA5A5A5A5A5A5A5A5},       [diopi_dtype_uint8] = {1, 0xA5A5A5A5A5A5A5A5},
    [diopi_dtype_int16] = {2, 0xA5A5A5A5A5A5A5A5},      [diopi_dtype_uint16] = {2, 0xA5A5A5A5A5A5A5A5},
    [diopi_dtype_int32] = {4, 0xA5A5A5A5A5A5A5A5},      [diopi_dtype_uint32] = {4, 0xA5A5A5A5A5A5A5A5},
    [diopi_dtype_int64] = {8, 0xA5A5A5A5A5A5A5A5},      [diopi_dtype_uint64] = {8, 0xA5A5A5A5A5A5A5A5},
    [diopi_dtype_float16] = {2, 0x7D5A7D5A7D5A7D5A},    [diopi_dtype_float32] = {4, 0x7FA5A5A57FA5A5A5},
    [diopi_dtype_float64] = {8, 0x7FF5A5A5A5A5A5A5},    [diopi_dtype_bool] = {1, 0xA5A5A5A5A5A5A5A5},
    [diopi_dtype_bfloat16] = {2, 0x7FA57FA57FA57FA5},   [diopi_dtype_tfloat32] = {4, 0x7FA5A5A57FA5A5A5},
    [diopi_dtype_complex32] = {4, 0x7D5A7D5A7D5A7D5A},  [diopi_dtype_complex64] = {8, 0x7FA5A5A57FA5A5A5},
    [diopi_dtype_complex128] = {16, 0x7FF5A5A5A5A5A5A5},
};

int64_t element_size(diopiDtype_t dtype) {
    return (size_t)dtype < sizeof elements / sizeof *elements ? elements[dtype].bytes : 0;
}

#define BYTE(i) (unsigned char)(0x5B + 37 * (i)) /* different for each i from 0 to 255 */
#define BYTES_4(i) BYTE(i), BYTE(i + 1), BYTE(i + 2), BYTE(i + 3)
#define BYTES_16(i) BYTES_4(i), BYTES_4(i + 4), BYTES_4(i + 8), BYTES_4(i + 12)
#define BYTES_64(i) BYTES_16(i), BYTES_16(i + 16), BYTES_16(i + 32), BYTES_16(i + 48)
static const unsigned char intact[GUARD_BYTES] = {BYTES_64(0), BYTES_64(64), BYTES_64(128), BYTES_64(192)};

static void fill_guard(unsigned char* guard) { memcpy(guard, intact, GUARD_BYTES); }

static int64_t first_damage(const unsigned char* guard) {
    if (memcmp(guard, intact, GUARD_BYTES) == 0) return GUARD_BYTES;
    int64_t i = 0;
    while (i < GUARD_BYTES && guard[i] == intact[i]) i++;
    return i;
}

static void fill_poison(unsigned char* payload, int64_t nbytes, uint64_t poison) {
    int64_t i = 0;
    for (; i + 8 <= nbytes; i += 8) memcpy(payload + i, &poison, 8);
    memcpy(payload + i, &poison, (size_t)(nbytes - i));
}

static void fill(unsigned char* image, int64_t nbytes, diopiDtype_t dtype, const void* payload) {
    fill_guard(image);
    fill_guard(image + GUARD_BYTES + nbytes);
    if (payload == NULL) {
        fill_poison(image + GUARD_BYTES, nbytes, elements[dtype].poison);
    } else {
        memcpy(image + GUARD_BYTES, payload, (size_t)nbytes);
    }
}

static int64_t guarded_size(const struct block* block) { return block->nbytes + 2 * GUARD_BYTES; }

unsigned char* block_payload(const struct block* block) { return block->base + (block->borrowed ? 0 : GUARD_BYTES); }

static diopiError_t create_on_host(struct block* block, diopiDtype_t dtype, const void* payload) {
    size_t rounded = ((size_t)guarded_size(block) + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    block->base = aligned_alloc(GUARD_BYTES, rounded);
    EXPECT(block->base != NULL, "out of host memory: %lld bytes", (long long)block->nbytes);
    fill(block->base, block->nbytes, dtype, payload);
    return diopiSuccess;
}

static diopiError_t create_on_device(struct block* block, diopirt_stream_t stream, diopiDtype_t dtype,
                                     const void* payload) {
    TRY(device_require(stream->device, diopirt_h2d_service));
    void* base;
    TRY(diopirt_device_malloc(stream->device, (uint64_t)guarded_size(block), &base));
    struct staging* staging = staging_new(guarded_size(block));
    diopiError_t code = diopiErrorOccurred;
    if (staging == NULL) {
        fail(code, "out of host memory: %lld bytes", (long long)block->nbytes);
    } else {
        fill(staging->bytes, block->nbytes, dtype, payload);
        code = stream_upload(stream, base, staging, (uint64_t)guarded_size(block));
    }
    if (code != diopiSuccess) {
        if (stream->device->functions[diopirt_free_service] != NULL) diopirt_device_free(stream->device, base);
        return code;
    }
    block->base = base;
    return diopiSuccess;
}

diopiError_t block_create(struct block* block, diopirt_stream_t stream, diopiDevice_t memory_kind, diopiDtype_t dtype,
                          int64_t nbytes, const void* payload) {
    block->memory_kind = memory_kind;
    block->nbytes = nbytes;
    TRY(memory_kind == diopi_host ? create_on_host(block, dtype, payload)
                                  : create_on_device(block, stream, dtype, payload));
    stream->device->live_blocks++;
    stream->device->live_bytes += nbytes;
    return diopiSuccess;
}

void block_borrow(struct block* block, diopiDevice_t memory_kind, int64_t nbytes, void* memory) {
    *block = (struct block){.borrowed = true, .memory_kind = memory_kind, .nbytes = nbytes, .base = memory};
}

diopiError_t block_fetch(const struct block* block, diopirt_stream_t stream, struct staging** image) {
    *image = NULL;
    if (block->borrowed || block->memory_kind == diopi_host) return diopiSuccess;
    struct staging* new_image = staging_new(guarded_size(block));
    EXPECT(new_image != NULL, "out of host memory: %lld bytes", (long long)guarded_size(block));
    uint64_t bytes = (uint64_t)guarded_size(block);
    diopiError_t code = stream_copy(stream, diopirt_d2h_service, new_image->bytes, block->base, bytes);
    if (code == diopiSuccess) {
        *image = new_image;
    } else {
        stream_keep(stream, new_image); /* the device may still write to it */
    }
    return code;
}

/* Return whether a guard zone is damaged; `offset` becomes the first damaged byte, relative to the payload. */
static bool find_damage(const struct block* block, const unsigned char* image, int64_t* offset) {
    int64_t before = first_damage(image), behind = first_damage(image + GUARD_BYTES + block->nbytes);
    *offset = before < GUARD_BYTES ? before - GUARD_BYTES : block->nbytes + behind;
    return before < GUARD_BYTES || behind < GUARD_BYTES;
}

diopiError_t block_verify(const struct block* block, struct staging* image, int64_t* damage) {
    if (block->borrowed) return diopiSuccess;
    int64_t offset;
    bool damaged = find_damage(block, image != NULL ? image->bytes : block->base, &offset);
    free(image);
    if (!damaged) return diopiSuccess;
    if (damage != NULL) *damage = offset;
    return fail(diopiErrorOccurred, "the guard of a tensor of %lld bytes is damaged at byte %lld",
                (long long)block->nbytes, (long long)offset);
}

diopiError_t block_releasable(const struct block* block, diopirt_device_t device) {
    if (block->borrowed) return diopiSuccess;
    TRY(device_require(device, diopirt_stream_sync_service));
    if (block->memory_kind == diopi_host) return diopiSuccess;
    TRY(device_require(device, diopirt_d2h_service));
    return device_require(device, diopirt_free_service);
}

void block_release(struct block* block, diopirt_device_t device) {
    if (block->borrowed) return;
    if (block->memory_kind == diopi_host) {
        free(block->base);
    } else {
        diopirt_device_free(device, block->base);
    }
    device->live_blocks--;
    device->live_bytes -= block->nbytes;
}
