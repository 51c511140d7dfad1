/* Build the tensors and arguments of the calls of a group, make the calls, and write what they left behind. */
#include "group.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The bits of a group's flags. IS_QUEUED: the inputs are still being copied when the call is made. IS_CHAIN: all calls
 * of the group are in flight at the same time. */
enum group_flag { IS_QUEUED = 1, IS_CHAIN = 2 };
/* Values of a tensor's `base` that are no number of a tensor, and the number of tensors that a sparse tensor has. */
enum { OWNS_STORAGE = -1, IS_SPARSE = -2, SPARSE_PARTS = 3 };

/* Copies that keep a stream busy, with the values of diopi_test/execution/ballast.py, which explains them. */
enum { BALLAST_BYTES = 1 << 20, BALLAST_COPIES = 8, ATTEMPTS = 3 };
static const double min_copy_seconds = 1e-4, max_wait_share = 0.05;

enum argument_kind {
    NULL_ARGUMENT,
    INTEGER,
    NUMBER,
    SIZE,
    SIZE_POINTER,
    INTEGER_POINTER,
    NUMBER_POINTER,
    BOOLEAN_POINTER,
    SCALAR,
    TEXT,
    TENSOR,
    TENSORS,
    GENERATOR,
    GENERATORS,
    NEW_TENSORS,
    INTEGER_RESULT,
    NUMBER_RESULT,
    BOOLEAN_RESULT,
};

struct tensor {
    diopiTensorHandle_t handle;
    int64_t base, bytes;                 /* the tensor whose storage it shares; the size of the storage */
    int64_t start, length;               /* the part of the storage that is not poison before the call */
    const unsigned char *content, *poison; /* the bytes of that part, and a word of poison */
};

/* A result that the callee stores through a pointer. */
struct box {
    enum argument_kind kind;
    int64_t count;
    union {
        int64_t integer;
        double number;
        bool boolean;
    } value;
    diopiTensorHandle_t* tensors; /* NULL unless the kind is NEW_TENSORS */
};

struct call {
    const struct operator_entry* entry;
    const unsigned char* key; /* identifies the call in the results */
    int64_t context, state_count, tensor_count, argument_bytes;
    const unsigned char *states, *arguments; /* the states of the generators and the arguments, as in the bundle */
    struct cursor tensor_data;               /* the descriptions of the tensors in the bundle */
    struct tensor* tensors;
    diopiGeneratorHandle_t* generators;
    union diopirt_argument values[MAX_ARGUMENTS]; /* the arguments that are passed to the function */
    struct box boxes[MAX_ARGUMENTS];
    int box_count;
    diopiError_t code;
};

/* Memory that is released together with the group. It is allocated once, and again only for a larger group. */
struct chunk {
    struct chunk* next;
    max_align_t memory[];
};

static struct {
    unsigned char* memory;
    size_t size, used; /* `used` may be larger than `size`: the rest is in chunks */
} arena;

/* Memory into which storages are read. */
static struct {
    unsigned char* memory;
    size_t size;
} scratch;

struct group {
    const struct vendor* vendor;
    struct output* output;
    struct progress* progress;
    const unsigned char *contents, *contents_end;
    int64_t flags, context_count, generator_count, call_count;
    struct call* calls;
    diopirt_stream_t* streams; /* one per context */
    diopiContextHandle_t* contexts;
    struct chunk* chunks;
    void* ballast;
};

/* Return memory of zeros for `count` objects of `bytes` bytes each, which `release_memory` releases. */
static void* reserve(struct group* group, size_t count, size_t bytes) {
    size_t size = (count * bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    void* memory = arena.memory + arena.used;
    arena.used += size;
    if (arena.used > arena.size) {
        struct chunk* chunk = allocate_or_exit(NULL, sizeof *chunk + size);
        chunk->next = group->chunks;
        group->chunks = chunk;
        memory = chunk->memory;
    }
    memset(memory, 0, size);
    return memory;
}

/* Release everything that `reserve` returned. If the arena was too small, make it as large as the group needed. */
static void release_memory(struct group* group) {
    while (group->chunks != NULL) {
        struct chunk* chunk = group->chunks;
        group->chunks = chunk->next;
        free(chunk);
    }
    if (arena.used > arena.size) {
        free(arena.memory);
        arena.size = arena.used;
        arena.memory = allocate_or_exit(NULL, arena.size);
    }
    arena.used = 0;
}

/* Return memory of at least this size, which the next call of this function returns again. */
static unsigned char* require_scratch(size_t bytes) {
    if (bytes > scratch.size) {
        scratch.memory = allocate_or_exit(scratch.memory, bytes);
        scratch.size = bytes;
    }
    return scratch.memory;
}

/* Return whether a number in a file is plausible as a count, so that a damaged file does not request much memory. */
static bool is_count(int64_t count) { return count >= 0 && count <= 1 << 20; }

double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Reading the group. */

/* Read the description of a call; return false if it is damaged or if there is no such function. */
static bool read_call(struct cursor* cursor, struct call* call) {
    int64_t length = take_number(cursor);
    const unsigned char* name = take_bytes(cursor, length);
    call->entry = name != NULL ? vendor_operator((const char*)name, (size_t)length) : NULL;
    call->key = take_bytes(cursor, KEY_BYTES);
    call->context = take_number(cursor);
    call->state_count = take_number(cursor);
    call->tensor_count = take_number(cursor);
    if (!is_count(call->state_count) || !is_count(call->tensor_count)) return false;
    call->states = take_bytes(cursor, 3 * WORD * call->state_count);
    call->tensor_data = *cursor;
    for (int64_t i = 0; i < call->tensor_count && !cursor->failed; i++) {
        take_number(cursor);
        take_number(cursor);
        int64_t base = take_number(cursor), rank = take_number(cursor);
        if (!is_count(rank)) return false;
        take_bytes(cursor, WORD * (6 + rank + (base == IS_SPARSE ? SPARSE_PARTS : rank)));
    }
    call->argument_bytes = take_number(cursor);
    call->arguments = take_bytes(cursor, call->argument_bytes);
    return !cursor->failed && call->entry != NULL && call->entry->argument_count <= MAX_ARGUMENTS;
}

bool group_skip(struct cursor* cursor) {
    struct call call = {0};
    take_number(cursor);
    take_number(cursor);
    take_number(cursor);
    int64_t count = take_number(cursor);
    for (int64_t i = 0; i < count; i++) {
        if (!read_call(cursor, &call)) return false;
    }
    return !cursor->failed;
}

/* Read the description of a group and reserve its memory; return false if it is damaged. */
static bool read_group(struct cursor* cursor, struct group* group) {
    group->flags = take_number(cursor);
    group->context_count = take_number(cursor);
    group->generator_count = take_number(cursor);
    group->call_count = take_number(cursor);
    if (!is_count(group->context_count) || !is_count(group->generator_count) || !is_count(group->call_count)) {
        return false;
    }
    group->streams = reserve(group, (size_t)group->context_count, sizeof *group->streams);
    group->contexts = reserve(group, (size_t)group->context_count, sizeof *group->contexts);
    group->calls = reserve(group, (size_t)group->call_count, sizeof *group->calls);
    diopiGeneratorHandle_t* common = reserve(group, (size_t)group->generator_count, sizeof *common);
    for (int64_t i = 0; i < group->call_count; i++) {
        struct call* call = &group->calls[i];
        if (!read_call(cursor, call) || call->context < 0 || call->context >= group->context_count ||
            call->state_count > group->generator_count) {
            return false;
        }
        call->tensors = reserve(group, (size_t)call->tensor_count, sizeof *call->tensors);
        call->generators = (group->flags & IS_CHAIN) == 0
                               ? common
                               : reserve(group, (size_t)call->state_count, sizeof *call->generators);
    }
    return true;
}

/* Building a call. Functions that return an error code return diopiErrorOccurred if the description is damaged. */

/* Create a sparse tensor from tensors of the call that exist already, whose numbers are in `data`. */
static diopiError_t make_sparse(diopiContextHandle_t context, struct call* call, struct tensor* tensor, int64_t rank,
                                struct cursor* data) {
    diopiSize_t shape = {(const int64_t*)take_bytes(data, WORD * rank), rank};
    diopiTensorHandle_t parts[SPARSE_PARTS];
    for (int i = 0; i < SPARSE_PARTS; i++) {
        int64_t index = take_number(data);
        if (index < 0 || index >= tensor - call->tensors) return diopiErrorOccurred;
        parts[i] = call->tensors[index].handle;
    }
    return diopirt_tensor_sparse_csr(context, &shape, parts[0], parts[1], parts[2], &tensor->handle);
}

/* Create a tensor in the storage of another tensor. */
static diopiError_t make_view(diopiContextHandle_t context, const struct tensor* base, struct tensor* tensor,
                              const struct diopirt_layout* layout) {
    void* memory;
    diopiError_t code = diopiGetTensorStoragePtr(base->handle, &memory);
    if (code != diopiSuccess) return code;
    return diopirt_tensor_over(context, layout->shape, layout->strides, layout->dtype, layout->offset, memory,
                               base->bytes, &tensor->handle);
}

/* Create a tensor from its description in `data`. Its elements are not copied yet. */
static diopiError_t make_tensor(struct group* group, struct call* call, struct tensor* tensor, struct cursor* data) {
    diopiContextHandle_t context = group->contexts[call->context];
    struct diopirt_layout layout = {.dtype = (diopiDtype_t)take_number(data)};
    layout.memory_kind = (diopiDevice_t)take_number(data);
    tensor->base = take_number(data);
    int64_t rank = take_number(data);
    tensor->poison = take_bytes(data, WORD);
    tensor->start = take_number(data);
    tensor->length = take_number(data);
    int64_t position = take_number(data), size = group->contents_end - group->contents;
    if (position < 0 || position > size || tensor->length < 0 || tensor->length > size - position) {
        return diopiErrorOccurred;
    }
    tensor->content = group->contents + position;
    layout.offset = take_number(data);
    layout.storage_elements = take_number(data);
    if (tensor->base == IS_SPARSE) return make_sparse(context, call, tensor, rank, data);
    diopiSize_t shape = {(const int64_t*)take_bytes(data, WORD * rank), rank};
    diopiSize_t strides = {(const int64_t*)take_bytes(data, WORD * rank), rank};
    layout.shape = &shape;
    layout.strides = &strides;
    if (tensor->base >= 0) {
        if (tensor->base >= tensor - call->tensors) return diopiErrorOccurred;
        return make_view(context, &call->tensors[tensor->base], tensor, &layout);
    }
    tensor->handle = diopirt_tensor_open(context, &layout, NULL);
    size_t bytes = 0;
    if (tensor->handle == NULL || diopiGetTensorStorageNbytes(tensor->handle, &bytes) != diopiSuccess) {
        return diopirt_last_code();
    }
    tensor->bytes = (int64_t)bytes;
    return diopiSuccess;
}

/* Set a generator to its state: a flag, a seed and an offset. If the generator does not exist, it is created. If it
 * exists and the flag is not 0, it keeps its seed, and the offset is added to its offset. */
static diopiError_t set_generator(struct call* call, int64_t number) {
    uint64_t state[3], seed, offset;
    memcpy(state, call->states + 3 * WORD * number, sizeof state);
    diopiGeneratorHandle_t* generator = &call->generators[number];
    if (*generator == NULL) return diopirt_generator_create(state[1], state[2], generator);
    if (state[0] == 0) return diopiGeneratorSetSeedAndOffset(*generator, state[1], state[2]);
    diopiError_t code = diopiGeneratorGetSeedAndOffset(*generator, &seed, &offset);
    return code != diopiSuccess ? code : diopiGeneratorSetSeedAndOffset(*generator, seed, offset + state[2]);
}

/* Return a new box of a call, in which the callee stores `count` results. */
static struct box* add_box(struct call* call, enum argument_kind kind, int64_t count) {
    struct box* box = &call->boxes[call->box_count++];
    box->kind = kind;
    box->count = count;
    return box;
}

/* Return the handles of `count` tensors or generators, whose numbers follow; NULL if a number is invalid. */
static void* take_handles(struct group* group, struct call* call, bool are_tensors, int64_t count,
                          struct cursor* data) {
    if (!is_count(count)) return NULL;
    void** handles = reserve(group, (size_t)count, sizeof *handles);
    int64_t limit = are_tensors ? call->tensor_count : call->state_count;
    for (int64_t i = 0; i < count; i++) {
        int64_t number = take_number(data);
        if (number >= limit || data->failed) return NULL;
        if (number >= 0) handles[i] = are_tensors ? (void*)call->tensors[number].handle : (void*)call->generators[number];
    }
    return handles;
}

/* Return a list of integers that stays in the memory of `data`. */
static diopiSize_t take_size(struct cursor* data) {
    int64_t count = take_number(data);
    return (diopiSize_t){(const int64_t*)take_bytes(data, is_count(count) ? WORD * count : -1), count};
}

static diopiScalar_t* take_scalar(struct group* group, struct cursor* data) {
    diopiScalar_t* scalar = reserve(group, 1, sizeof *scalar);
    scalar->stype = (diopiDtype_t)take_number(data);
    scalar->ival = take_number(data); /* the same bits as those of `fval` */
    return scalar;
}

/* Return a pointer to a number of this kind. */
static void* take_cell(struct group* group, enum argument_kind kind, struct cursor* data) {
    int64_t* cell = reserve(group, 1, sizeof *cell);
    *cell = take_number(data); /* the same bits as those of a double */
    if (kind == BOOLEAN_POINTER) *(bool*)cell = *cell != 0;
    return cell;
}

/* Return a pointer to which the callee writes a number. An integer has a value before the call. */
static void* add_result(struct call* call, enum argument_kind kind, struct cursor* data) {
    struct box* box = add_box(call, kind, 1);
    int64_t before = take_number(data);
    if (kind == INTEGER_RESULT) box->value.integer = before;
    return &box->value;
}

/* Return a pointer to which the callee writes the handles of tensors that it allocates. */
static void* add_new_tensors(struct group* group, struct call* call, struct cursor* data) {
    int64_t count = take_number(data);
    struct box* box = add_box(call, NEW_TENSORS, is_count(count) ? count : 0);
    box->tensors = reserve(group, (size_t)box->count, sizeof *box->tensors);
    return box->tensors;
}

/* Set an argument from its description in `data`; return false if the description is damaged. */
static bool make_argument(struct group* group, struct call* call, union diopirt_argument* value, struct cursor* data) {
    enum argument_kind kind = (enum argument_kind)take_number(data);
    int64_t bits;
    void** handles;
    switch (kind) {
        case NULL_ARGUMENT: break;
        case INTEGER: value->integer = take_number(data); break;
        case NUMBER:
            bits = take_number(data);
            memcpy(&value->number, &bits, sizeof bits);
            break;
        case SIZE: value->size = take_size(data); break;
        case SIZE_POINTER:
            value->pointer = reserve(group, 1, sizeof(diopiSize_t));
            *(diopiSize_t*)value->pointer = take_size(data);
            break;
        case INTEGER_POINTER:
        case NUMBER_POINTER:
        case BOOLEAN_POINTER: value->pointer = take_cell(group, kind, data); break;
        case SCALAR: value->pointer = take_scalar(group, data); break;
        case TEXT:
            bits = take_number(data);
            value->pointer = reserve(group, is_count(bits) ? (size_t)bits + 1 : 1, 1);
            if (bits > 0 && is_count(bits)) {
                const unsigned char* text = take_bytes(data, bits);
                if (text != NULL) memcpy(value->pointer, text, (size_t)bits);
            }
            break;
        case TENSOR:
        case GENERATOR:
            handles = take_handles(group, call, kind == TENSOR, 1, data);
            if (handles == NULL) return false;
            value->pointer = handles[0];
            break;
        case TENSORS:
        case GENERATORS:
            value->pointer = take_handles(group, call, kind == TENSORS, take_number(data), data);
            if (value->pointer == NULL) return false;
            break;
        case NEW_TENSORS: value->pointer = add_new_tensors(group, call, data); break;
        case INTEGER_RESULT:
        case NUMBER_RESULT:
        case BOOLEAN_RESULT: value->pointer = add_result(call, kind, data); break;
        default: return false;
    }
    return !data->failed;
}

/* Create the tensors, the generators and the arguments of a call; return false if that fails. */
static bool build(struct group* group, struct call* call) {
    struct cursor data = call->tensor_data;
    for (int64_t i = 0; i < call->tensor_count; i++) {
        if (make_tensor(group, call, &call->tensors[i], &data) != diopiSuccess) {
            complain("a tensor of %s can't be created: %s", call->entry->name, diopirt_last_error());
            return false;
        }
    }
    for (int64_t i = 0; i < call->state_count; i++) {
        if (set_generator(call, i) != diopiSuccess) return false;
    }
    data = (struct cursor){.at = call->arguments, .end = call->arguments + call->argument_bytes};
    for (int i = 0; i < call->entry->argument_count; i++) {
        if (!make_argument(group, call, &call->values[i], &data)) return false;
    }
    return true;
}

/* Making a call. */

static void enqueue_copies(diopirt_stream_t stream, unsigned char* memory) {
    for (int i = 0; i < BALLAST_COPIES; i++) {
        diopirt_stream_copy(stream, diopirt_d2d_service, memory + BALLAST_BYTES, memory, BALLAST_BYTES);
    }
}

/* Return whether every copy seems to be complete when the call that enqueues it returns. */
static bool copies_immediately(diopirt_stream_t stream, unsigned char* memory) {
    double start = seconds();
    enqueue_copies(stream, memory);
    double enqueued = seconds();
    diopirt_stream_synchronize(stream);
    double duration = enqueued - start;
    return duration > min_copy_seconds && seconds() - enqueued < max_wait_share * duration;
}

/* Enqueue copies on an idle stream, so that what is queued behind them is done late. Copies can't keep a device busy
 * that copies immediately; they are omitted there. The device is measured once to find this out. */
static void keep_busy(struct group* group, diopirt_stream_t stream) {
    static enum { IS_UNKNOWN, COPIES_IMMEDIATELY, COPIES_LATER } behavior;
    if (behavior == COPIES_IMMEDIATELY) return;
    if (group->ballast == NULL &&
        diopirt_device_malloc(group->vendor->device, 2 * BALLAST_BYTES, &group->ballast) != diopiSuccess) {
        group->ballast = NULL;
        return;
    }
    if (behavior == IS_UNKNOWN) {
        behavior = COPIES_IMMEDIATELY;
        for (int i = 0; i < ATTEMPTS && behavior == COPIES_IMMEDIATELY; i++) {
            if (!copies_immediately(stream, group->ballast)) behavior = COPIES_LATER;
        }
    }
    if (behavior == COPIES_LATER) enqueue_copies(stream, group->ballast);
}

/* Copy the inputs of a call to the device; return false if that fails. If the group is queued, do not wait for the
 * copies, which are enqueued behind other copies. */
static bool send_inputs(struct group* group, struct call* call) {
    diopiContextHandle_t context = group->contexts[call->context];
    bool queued = group->flags & IS_QUEUED;
    if (queued) {
        diopirt_context_synchronize(context);
        keep_busy(group, group->streams[call->context]);
    }
    for (int64_t i = 0; i < call->tensor_count; i++) {
        struct tensor* tensor = &call->tensors[i];
        if (tensor->length > 0 &&
            diopirt_tensor_write(tensor->handle, tensor->start, tensor->length, tensor->content) != diopiSuccess) {
            complain("an input of %s can't be copied: %s", call->entry->name, diopirt_last_error());
            return false;
        }
    }
    return queued || diopirt_context_synchronize(context) == diopiSuccess;
}

/* Write down that the call begins, so that a crash can be attributed to it; then make the call. */
static void make_call(struct group* group, struct call* call) {
    struct output* output = group->output;
    begin_record(output, "CALL");
    put_bytes(output, call->key, KEY_BYTES);
    put_number(output, (int64_t)group->progress->case_position);
    put_number(output, (int64_t)group->progress->group);
    end_record(output);
    group->progress->committed += output_flush(output);
    group->progress->calls++;
    group->progress->is_pending = 1;
    call->code = call->entry->call(call->entry->function, group->contexts[call->context], call->values);
    end_copies(output);
}

/* Writing what a call left behind. */

/* Return the byte at a position of a storage before the call. */
static unsigned char byte_before(const struct tensor* tensor, int64_t position) {
    bool is_content = position >= tensor->start && position < tensor->start + tensor->length;
    return is_content ? tensor->content[position - tensor->start] : tensor->poison[position % WORD];
}

/* Write the part of a storage that has changed: its position, its length and its bytes. Return false if the storage
 * can't be read. */
static bool put_changes(struct output* output, const struct tensor* tensor) {
    unsigned char* now = require_scratch((size_t)tensor->bytes);
    bool is_read = diopirt_tensor_read(tensor->handle, 0, tensor->bytes, now) == diopiSuccess;
    int64_t first = 0, end = is_read ? tensor->bytes : 0;
    while (first < end && now[first] == byte_before(tensor, first)) first++;
    while (end > first && now[end - 1] == byte_before(tensor, end - 1)) end--;
    put_number(output, first);
    put_number(output, end - first);
    put_bytes(output, now + first, (size_t)(end - first));
    return is_read;
}

/* Write a list of integers, without their number. */
static void put_size(struct output* output, diopiSize_t size) {
    for (int64_t i = 0; i < size.len; i++) put_number(output, size.data[i]);
}

/* Write a tensor that the callee allocated; a single 0 if it allocated none. */
static void put_new_tensor(struct output* output, diopiTensorHandle_t handle) {
    diopiDtype_t dtype;
    diopiDevice_t memory_kind;
    diopiSize_t shape, strides;
    int64_t offset;
    size_t bytes;
    bool is_there = handle != NULL && diopiGetTensorDtype(handle, &dtype) == diopiSuccess &&
                    diopiGetTensorDevice(handle, &memory_kind) == diopiSuccess &&
                    diopiGetTensorShape(handle, &shape) == diopiSuccess &&
                    diopiGetTensorStride(handle, &strides) == diopiSuccess &&
                    diopiGetTensorStorageOffset(handle, &offset) == diopiSuccess &&
                    diopiGetTensorStorageNbytes(handle, &bytes) == diopiSuccess;
    put_number(output, is_there);
    if (!is_there) return;
    unsigned char* content = require_scratch(bytes);
    diopirt_tensor_read(handle, 0, (int64_t)bytes, content);
    int64_t numbers[] = {dtype, memory_kind, shape.len, offset, (int64_t)bytes};
    put_bytes(output, numbers, sizeof numbers);
    put_size(output, shape);
    put_size(output, strides);
    put_bytes(output, content, bytes);
}

/* Write the results that the callee has stored in a box. */
static void put_box(struct output* output, const struct box* box) {
    for (int64_t i = 0; box->kind == NEW_TENSORS && i < box->count; i++) put_new_tensor(output, box->tensors[i]);
    if (box->kind == INTEGER_RESULT) put_number(output, box->value.integer);
    if (box->kind == NUMBER_RESULT) put_double(output, box->value.number);
    if (box->kind == BOOLEAN_RESULT) put_number(output, box->value.boolean);
}

/* Wait for the stream of a call, and write the record of its results. */
static void put_result(struct group* group, struct call* call) {
    struct output* output = group->output;
    const char* (*last_error)(void) = group->vendor->last_error;
    const char* reason = call->code != diopiSuccess && last_error != NULL ? last_error() : NULL;
    begin_record(output, "RSLT");
    put_bytes(output, call->key, KEY_BYTES);
    put_number(output, call->code);
    put_text(output, reason);
    diopirt_context_synchronize(group->contexts[call->context]);
    put_number(output, call->state_count);
    for (int64_t i = 0; i < call->state_count; i++) {
        uint64_t state[2] = {0, 0};
        diopiGeneratorGetSeedAndOffset(call->generators[i], &state[0], &state[1]);
        put_bytes(output, state, sizeof state);
    }
    put_number(output, call->tensor_count);
    for (int64_t i = 0; i < call->tensor_count; i++) {
        if (call->tensors[i].base == OWNS_STORAGE) {
            put_changes(output, &call->tensors[i]);
        } else {
            int64_t nothing[2] = {0, 0};
            put_bytes(output, nothing, sizeof nothing);
        }
    }
    for (int i = 0; i < call->box_count && call->code == diopiSuccess; i++) put_box(output, &call->boxes[i]);
    end_record(output);
}

/* Destroy a tensor. If a guard zone of it is damaged, write the call, the number of the tensor and the offset. */
static void put_damage(struct output* output, const struct call* call, int64_t number, diopiTensorHandle_t tensor) {
    int64_t offset = INT64_MAX;
    if (tensor == NULL || diopirt_tensor_destroy(tensor, &offset) == diopiSuccess || offset == INT64_MAX) return;
    put_bytes(output, call->key, KEY_BYTES);
    put_number(output, number);
    put_number(output, offset);
}

/* Release the tensors of the group, newest first, and write which guard zones are damaged. */
static void release_tensors(struct group* group) {
    begin_record(group->output, "GARD");
    for (int64_t i = group->call_count - 1; i >= 0; i--) {
        struct call* call = &group->calls[i];
        int64_t number = call->tensor_count;
        for (int box = 0; box < call->box_count && call->code == diopiSuccess; box++) {
            for (int64_t entry = 0; call->boxes[box].tensors != NULL && entry < call->boxes[box].count; entry++) {
                put_damage(group->output, call, number++, call->boxes[box].tensors[entry]);
            }
        }
        for (int64_t tensor = call->tensor_count - 1; tensor >= 0; tensor--) {
            put_damage(group->output, call, tensor, call->tensors[tensor].handle);
        }
    }
    end_record(group->output);
}

/* Release everything of the group except its tensors. */
static void release_group(struct group* group) {
    for (int64_t i = 0; i < group->context_count; i++) {
        if (group->contexts[i] != NULL) diopirt_context_destroy(group->contexts[i], NULL);
        if (group->streams[i] != NULL) diopirt_stream_destroy(group->streams[i]);
    }
    for (int64_t i = 0; i < group->call_count; i++) {
        struct call* call = &group->calls[i];
        for (int64_t number = 0; call->generators != NULL && number < call->state_count; number++) {
            if (call->generators[number] != NULL) diopirt_generator_destroy(call->generators[number]);
            call->generators[number] = NULL;
        }
    }
    if (group->ballast != NULL) diopirt_device_free(group->vendor->device, group->ballast);
    release_memory(group);
}

/* Build, make and record one call after another; return false if a call can't be built. */
static bool run_one_after_another(struct group* group) {
    for (int64_t i = 0; i < group->call_count; i++) {
        struct call* call = &group->calls[i];
        if (!build(group, call) || !send_inputs(group, call)) return false;
        make_call(group, call);
        put_result(group, call);
    }
    return true;
}

/* Make all calls before the results of any call are read; return false if a call can't be built. */
static bool run_in_flight(struct group* group) {
    for (int64_t i = 0; i < group->call_count; i++) {
        if (!build(group, &group->calls[i])) return false;
    }
    for (int64_t i = 0; i < group->call_count; i++) {
        if (!send_inputs(group, &group->calls[i])) return false;
    }
    for (int64_t i = 0; i < group->context_count; i++) keep_busy(group, group->streams[i]);
    for (int64_t i = 0; i < group->call_count; i++) make_call(group, &group->calls[i]);
    for (int64_t i = 0; i < group->call_count; i++) put_result(group, &group->calls[i]);
    return true;
}

/* Leave out calls of functions that the library does not have. */
static void keep_implemented(struct group* group) {
    int64_t kept = 0;
    for (int64_t i = 0; i < group->call_count; i++) {
        if (group->calls[i].entry->function != NULL) group->calls[kept++] = group->calls[i];
    }
    group->call_count = kept;
}

/* Create the streams and contexts of a group; return false after a complaint. */
static bool open_contexts(struct group* group) {
    for (int64_t i = 0; i < group->context_count; i++) {
        if (diopirt_stream_create(group->vendor->device, &group->streams[i]) != diopiSuccess ||
            diopirt_context_create(group->streams[i], &group->contexts[i]) != diopiSuccess) {
            complain("no stream can be created: %s", diopirt_last_error());
            return false;
        }
    }
    return true;
}

/* Make the calls of a group, and release its tensors; return false if that fails. */
static bool run_calls(struct group* group) {
    if (!open_contexts(group)) return false;
    if (!(group->flags & IS_CHAIN ? run_in_flight(group) : run_one_after_another(group))) return false;
    release_tensors(group);
    return true;
}

bool group_run(struct cursor* cursor, const unsigned char* contents, const struct vendor* vendor, struct output* output,
               struct progress* progress) {
    struct group group = {.vendor = vendor, .output = output, .progress = progress, .contents = contents};
    group.contents_end = cursor->end;
    bool is_done = read_group(cursor, &group);
    if (!is_done) complain("the case at byte %llu is damaged", (unsigned long long)progress->case_position);
    if (is_done) keep_implemented(&group);
    if (is_done && group.call_count > 0) is_done = run_calls(&group);
    release_group(&group); /* before the group counts as complete: the vendor may crash here as well */
    progress->committed += output_flush(output);
    progress->is_pending = 0;
    if (is_done) progress->group++;
    return is_done;
}
