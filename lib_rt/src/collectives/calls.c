/* The collectives: calls that enqueue work on a stream, and the work itself. */
#include <stdlib.h>
#include <string.h>

#include "../device_runtime/runtime.h"
#include "collectives.h"

enum kind { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, SEND, RECEIVE };

/* Work of a communicator on a stream. Counts and displacements are numbers of elements. */
struct work {
    enum kind kind;
    struct communicator* comm;
    uint64_t number;
    const char* send;
    char* receive;
    size_t send_size, receive_size; /* bytes that the work reads and writes; 0 if it does not use the buffer */
    size_t count;
    const struct element_type* type;
    int32_t operation, root; /* the root is the peer of SEND and RECEIVE */
    size_t *send_counts, *send_displacements, *receive_counts, *receive_displacements; /* of ALL_TO_ALL */
};

/* What two ranks tell each other about a call before they exchange elements. */
struct signature {
    uint64_t to_you, from_you; /* numbers of elements */
    int32_t kind, type, operation, root;
};

static const char* const names[] = {"diclAllReduce", "diclReduce", "diclBroadcast", "diclAllGather",
                                    "diclReduceScatter", "diclAllToAll", "diclSend", "diclRecv"};

static bool is_pairwise(const struct work* work) { return work->kind == SEND || work->kind == RECEIVE; }

static bool concerns(const struct work* work, int32_t peer) {
    return peer != work->comm->rank && (!is_pairwise(work) || peer == work->root);
}

static struct signature describe(const struct work* work, int32_t peer) {
    bool is_split = work->kind == ALL_TO_ALL;
    return (struct signature){.to_you = is_split ? work->send_counts[peer] : work->count,
                              .from_you = is_split ? work->receive_counts[peer] : work->count,
                              .kind = work->kind == RECEIVE ? SEND : work->kind,
                              .type = work->type->code,
                              .operation = work->operation,
                              .root = is_pairwise(work) ? 0 : work->root};
}

/* Let the communicator fail if another rank makes another call; return whether it makes the same one. */
static bool check_signature(struct work* work, int32_t peer, const struct signature* theirs) {
    struct signature ours = describe(work, peer);
    bool is_same = theirs->kind == ours.kind && theirs->type == ours.type && theirs->operation == ours.operation &&
                   theirs->root == ours.root && theirs->from_you == ours.to_you && theirs->to_you == ours.from_you;
    if (is_same) return true;
    const char* their_name = theirs->kind >= 0 && theirs->kind <= RECEIVE ? names[theirs->kind] : "something else";
    communicator_fail(work->comm,
                      "%s of %llu elements of type %d (operation %d, root %d), but rank %d calls %s of %llu elements "
                      "of type %d (operation %d, root %d)",
                      names[work->kind], (unsigned long long)ours.from_you, (int)ours.type, (int)ours.operation,
                      (int)ours.root, (int)peer, their_name, (unsigned long long)theirs->to_you, (int)theirs->type,
                      (int)theirs->operation, (int)theirs->root);
    return false;
}

/* Tell all ranks that take part what this rank calls, and check that they call the same. */
static bool exchange_signatures(struct work* work, struct transfer* transfers) {
    struct communicator* comm = work->comm;
    struct signature* ours = calloc(2 * (size_t)comm->ranks, sizeof *ours);
    if (ours == NULL) {
        communicator_fail(comm, "out of memory");
        return false;
    }
    struct signature* theirs = ours + comm->ranks;
    size_t count = 0;
    for (int32_t peer = 0; peer < comm->ranks; peer++) {
        if (!concerns(work, peer)) continue;
        ours[peer] = describe(work, peer);
        transfers[count++] = (struct transfer){peer, true, (char*)&ours[peer], sizeof *ours};
        transfers[count++] = (struct transfer){peer, false, (char*)&theirs[peer], sizeof *theirs};
    }
    bool is_same = transfer_all(comm, transfers, count);
    for (int32_t peer = 0; is_same && peer < comm->ranks; peer++) {
        is_same = !concerns(work, peer) || check_signature(work, peer, &theirs[peer]);
    }
    free(ours);
    return is_same;
}

/* Return the first element of the part of the result that a rank computes; that of the number of ranks is the end. */
static size_t part_start(const struct work* work, int32_t rank) {
    switch (work->kind) {
    case REDUCE:
        return rank > work->root ? work->count : 0;
    case REDUCE_SCATTER:
        return (size_t)rank * work->count;
    default:
        return work->count / (size_t)work->comm->ranks * (size_t)rank +
               work->count % (size_t)work->comm->ranks * (size_t)rank / (size_t)work->comm->ranks;
    }
}

/* Let each rank combine its part of all inputs into `result`. */
static bool reduce_parts(struct work* work, struct transfer* transfers, char* result) {
    struct communicator* comm = work->comm;
    size_t bytes = work->type->bytes, start = part_start(work, comm->rank);
    size_t size = part_start(work, comm->rank + 1) - start, count = 0;
    char* received = malloc(size * bytes * (size_t)comm->ranks + 1);
    const char** inputs = calloc((size_t)comm->ranks, sizeof *inputs);
    bool is_done = received != NULL && inputs != NULL;
    if (!is_done) communicator_fail(comm, "out of memory");
    for (int32_t peer = 0; is_done && peer < comm->ranks; peer++) {
        inputs[peer] = peer == comm->rank ? work->send + start * bytes : received + (size_t)peer * size * bytes;
        if (peer == comm->rank) continue;
        size_t first = part_start(work, peer), end = part_start(work, peer + 1);
        char* ours = (char*)work->send + first * bytes;
        transfers[count++] = (struct transfer){peer, true, ours, (end - first) * bytes};
        transfers[count++] = (struct transfer){peer, false, (char*)inputs[peer], size * bytes};
    }
    is_done = is_done && transfer_all(comm, transfers, count);
    if (is_done) reduce_elements(work->type, work->operation, inputs, comm->ranks, result, size);
    free(inputs);
    free(received);
    return is_done;
}

/* Let each rank send its part of the result to all others. */
static bool gather_parts(struct work* work, struct transfer* transfers) {
    struct communicator* comm = work->comm;
    size_t bytes = work->type->bytes, count = 0;
    size_t start = part_start(work, comm->rank), end = part_start(work, comm->rank + 1);
    for (int32_t peer = 0; peer < comm->ranks; peer++) {
        if (peer == comm->rank) continue;
        size_t first = part_start(work, peer), last = part_start(work, peer + 1);
        transfers[count++] = (struct transfer){peer, true, work->receive + start * bytes, (end - start) * bytes};
        transfers[count++] = (struct transfer){peer, false, work->receive + first * bytes, (last - first) * bytes};
    }
    return transfer_all(comm, transfers, count);
}

static void copy_own(struct work* work, size_t to, size_t from, size_t count) {
    size_t bytes = work->type->bytes;
    if (count > 0) memmove(work->receive + to * bytes, work->send + from * bytes, count * bytes);
}

static bool run_broadcast(struct work* work, struct transfer* transfers) {
    struct communicator* comm = work->comm;
    size_t size = work->count * work->type->bytes, count = 0;
    if (comm->rank != work->root) {
        transfers[count++] = (struct transfer){work->root, false, work->receive, size};
    } else {
        for (int32_t peer = 0; peer < comm->ranks; peer++) {
            if (peer != comm->rank) transfers[count++] = (struct transfer){peer, true, (char*)work->send, size};
        }
        copy_own(work, 0, 0, work->count);
    }
    return transfer_all(comm, transfers, count);
}

static bool run_all_gather(struct work* work, struct transfer* transfers) {
    struct communicator* comm = work->comm;
    size_t size = work->count * work->type->bytes, count = 0;
    copy_own(work, (size_t)comm->rank * work->count, 0, work->count);
    for (int32_t peer = 0; peer < comm->ranks; peer++) {
        if (peer == comm->rank) continue;
        char* own = work->receive + (size_t)comm->rank * size;
        transfers[count++] = (struct transfer){peer, true, own, size};
        transfers[count++] = (struct transfer){peer, false, work->receive + (size_t)peer * size, size};
    }
    return transfer_all(comm, transfers, count);
}

static bool run_all_to_all(struct work* work, struct transfer* transfers) {
    struct communicator* comm = work->comm;
    size_t bytes = work->type->bytes, count = 0;
    int32_t own = comm->rank;
    copy_own(work, work->receive_displacements[own], work->send_displacements[own], work->send_counts[own]);
    for (int32_t peer = 0; peer < comm->ranks; peer++) {
        if (peer == own) continue;
        char* to_peer = (char*)work->send + work->send_displacements[peer] * bytes;
        char* from_peer = work->receive + work->receive_displacements[peer] * bytes;
        transfers[count++] = (struct transfer){peer, true, to_peer, work->send_counts[peer] * bytes};
        transfers[count++] = (struct transfer){peer, false, from_peer, work->receive_counts[peer] * bytes};
    }
    return transfer_all(comm, transfers, count);
}

static void exchange_elements(struct work* work, struct transfer* transfers) {
    switch (work->kind) {
    case ALL_REDUCE: {
        char* part = work->receive + part_start(work, work->comm->rank) * work->type->bytes;
        if (reduce_parts(work, transfers, part)) gather_parts(work, transfers);
        break;
    }
    case REDUCE:
    case REDUCE_SCATTER:
        reduce_parts(work, transfers, work->receive);
        break;
    case BROADCAST:
        run_broadcast(work, transfers);
        break;
    case ALL_GATHER:
        run_all_gather(work, transfers);
        break;
    case ALL_TO_ALL:
        run_all_to_all(work, transfers);
        break;
    case SEND:
        transfers[0] = (struct transfer){work->root, true, (char*)work->send, work->send_size};
        transfer_all(work->comm, transfers, 1);
        break;
    case RECEIVE:
        transfers[0] = (struct transfer){work->root, false, work->receive, work->receive_size};
        transfer_all(work->comm, transfers, 1);
        break;
    }
}

/* Wait until the earlier work of the communicator is complete; return whether it has not failed. */
static bool await_turn(struct work* work) {
    struct communicator* comm = work->comm;
    pthread_mutex_lock(&comm->lock);
    while (comm->completed + 1 < work->number) pthread_cond_wait(&comm->changed, &comm->lock);
    bool is_usable = !comm->has_failed;
    pthread_mutex_unlock(&comm->lock);
    return is_usable;
}

static void free_work(struct work* work) {
    free(work->send_counts);
    free(work);
}

/* Exchange signatures and elements while the memory of the buffers can't be freed. */
static void do_work(struct work* work, struct transfer* transfers) {
    struct communicator* comm = work->comm;
    struct allocation *send = NULL, *receive = NULL;
    if (work->send_size > 0) send = memory_hold(work->send, work->send_size, comm->device);
    if (work->receive_size > 0) receive = memory_hold(work->receive, work->receive_size, comm->device);
    if ((work->send_size > 0 && send == NULL) || (work->receive_size > 0 && receive == NULL)) {
        communicator_fail(comm, "memory of %s was freed before the stream reached it", names[work->kind]);
    } else if (exchange_signatures(work, transfers)) {
        exchange_elements(work, transfers);
    }
    if (send != NULL) memory_release(send);
    if (receive != NULL) memory_release(receive);
}

/* Do the work when its turn comes; a stream calls this function. */
static void run_work(void* argument) {
    struct work* work = argument;
    struct communicator* comm = work->comm;
    if (await_turn(work)) {
        struct transfer* transfers = calloc(2 * (size_t)comm->ranks, sizeof *transfers);
        if (transfers == NULL) {
            communicator_fail(comm, "out of memory");
        } else {
            do_work(work, transfers);
        }
        free(transfers);
    }
    pthread_mutex_lock(&comm->lock);
    comm->completed++;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
    free_work(work);
}

static int32_t require_buffer(const struct work* work, const void* buffer, size_t size, const char* function) {
    if (size == 0 || memory_device(buffer, size) == work->comm->device) return DIPU_SUCCESS;
    return fail("%s: %zu bytes do not lie in an allocation on device %d of the communicator", function, size,
                (int)work->comm->device);
}

static int32_t require_usable(struct communicator* comm, const char* function) {
    pthread_mutex_lock(&comm->lock);
    int32_t status = DIPU_SUCCESS;
    if (comm->has_failed) status = fail("%s: the communicator has failed: %s", function, comm->error);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

/* Number the work and enqueue it, so that streams reach the work of a communicator in the order of the numbers. */
static int32_t enqueue_work(struct stream* stream, struct work fields, const char* function) {
    struct work* work = malloc(sizeof *work);
    struct command* command = calloc(1, sizeof *command);
    if (work == NULL || command == NULL) {
        free(work);
        free(command);
        return fail("%s: out of memory", function);
    }
    *work = fields;
    command->kind = CALL;
    command->call = run_work;
    command->argument = work;
    pthread_mutex_lock(&fields.comm->lock);
    work->number = ++fields.comm->enqueued;
    stream_enqueue(stream, command);
    pthread_mutex_unlock(&fields.comm->lock);
    return DIPU_SUCCESS;
}

/* Check the arguments of a call and enqueue its work; free the counts of the fields on an error. */
static int32_t submit(struct work fields, void* handle, const char* function) {
    struct stream* stream = NULL;
    int32_t status = require_usable(fields.comm, function);
    if (status == DIPU_SUCCESS && !operation_applies(fields.operation, fields.type)) {
        status = fail("%s: there is no operation %d for type %d", function, fields.operation, fields.type->code);
    }
    if (status == DIPU_SUCCESS && (fields.root < 0 || fields.root >= fields.comm->ranks)) {
        status = fail("%s: rank %d of %d does not exist", function, fields.root, fields.comm->ranks);
    }
    if (status == DIPU_SUCCESS && is_pairwise(&fields) && fields.root == fields.comm->rank) {
        status = fail("%s: a rank can't send to itself", function);
    }
    if (status == DIPU_SUCCESS) status = require_buffer(&fields, fields.send, fields.send_size, function);
    if (status == DIPU_SUCCESS) status = require_buffer(&fields, fields.receive, fields.receive_size, function);
    if (status == DIPU_SUCCESS && (stream = stream_acquire(handle, function)) == NULL) status = DIPU_EXCEPTION;
    if (status == DIPU_SUCCESS && stream->device != fields.comm->device) {
        status = fail("%s: the stream and the communicator belong to different devices", function);
    }
    if (status == DIPU_SUCCESS) status = enqueue_work(stream, fields, function);
    if (stream != NULL) stream_release(stream);
    if (status != DIPU_SUCCESS) free(fields.send_counts);
    return status == DIPU_SUCCESS ? DICL_SUCCESS : DICL_ERR_UNDEF;
}

/* Find the communicator and the element type of a call, and check that the bytes of all ranks can be counted. */
static bool resolve(struct work* fields, void* comm, int32_t type, size_t count, const char* function) {
    fields->comm = communicator_find(comm, function);
    if (fields->comm == NULL) return false;
    fields->type = find_type(type);
    if (fields->type == NULL) return fail("%s: there is no element type %d", function, (int)type), false;
    fields->count = count;
    bool is_countable = count <= SIZE_MAX / 2 / MAX_RANKS / fields->type->bytes;
    if (!is_countable) fail("%s: %zu elements are too many", function, count);
    return is_countable;
}

int32_t all_reduce(const void* send, void* receive, size_t count, int32_t type, int32_t operation, void* comm,
                   void* stream) {
    struct work fields = {.kind = ALL_REDUCE, .send = send, .receive = receive, .operation = operation};
    if (!resolve(&fields, comm, type, count, "diclAllReduce")) return DICL_ERR_UNDEF;
    fields.send_size = fields.receive_size = count * fields.type->bytes;
    return submit(fields, stream, "diclAllReduce");
}

int32_t reduce(const void* send, void* receive, size_t count, int32_t type, int32_t operation, int32_t root,
               void* comm, void* stream) {
    struct work fields = {
        .kind = REDUCE, .send = send, .receive = receive, .operation = operation, .root = root};
    if (!resolve(&fields, comm, type, count, "diclReduce")) return DICL_ERR_UNDEF;
    fields.send_size = count * fields.type->bytes;
    fields.receive_size = fields.comm->rank == root ? fields.send_size : 0;
    return submit(fields, stream, "diclReduce");
}

int32_t broadcast(const void* send, void* receive, size_t count, int32_t type, int32_t root, void* comm,
                  void* stream) {
    struct work fields = {.kind = BROADCAST, .send = send, .receive = receive, .root = root};
    if (!resolve(&fields, comm, type, count, "diclBroadcast")) return DICL_ERR_UNDEF;
    fields.receive_size = count * fields.type->bytes;
    fields.send_size = fields.comm->rank == root ? fields.receive_size : 0;
    return submit(fields, stream, "diclBroadcast");
}

int32_t all_gather(const void* send, void* receive, size_t send_count, int32_t type, void* comm, void* stream) {
    struct work fields = {.kind = ALL_GATHER, .send = send, .receive = receive};
    if (!resolve(&fields, comm, type, send_count, "diclAllGather")) return DICL_ERR_UNDEF;
    fields.send_size = send_count * fields.type->bytes;
    fields.receive_size = fields.send_size * (size_t)fields.comm->ranks;
    return submit(fields, stream, "diclAllGather");
}

int32_t reduce_scatter(void* send, void* receive, size_t receive_count, int32_t type, int32_t operation, void* comm,
                       void* stream) {
    struct work fields = {.kind = REDUCE_SCATTER, .send = send, .receive = receive, .operation = operation};
    if (!resolve(&fields, comm, type, receive_count, "diclReduceScatter")) return DICL_ERR_UNDEF;
    fields.receive_size = receive_count * fields.type->bytes;
    fields.send_size = fields.receive_size * (size_t)fields.comm->ranks;
    return submit(fields, stream, "diclReduceScatter");
}

/* Let the work have arrays of counts and displacements, whose elements are 0; return whether there is memory. */
static bool allocate_counts(struct work* fields, const char* function) {
    size_t ranks = (size_t)fields->comm->ranks;
    size_t* counts = calloc(4 * ranks, sizeof *counts);
    if (counts == NULL) return fail("%s: out of memory", function), false;
    fields->send_counts = counts;
    fields->send_displacements = counts + ranks;
    fields->receive_counts = counts + 2 * ranks;
    fields->receive_displacements = counts + 3 * ranks;
    return true;
}

int32_t all_to_all_equal(const void* send, void* receive, size_t count, int32_t type, void* comm, void* stream) {
    const char* function = "diclAllToAllEqualSplit";
    struct work fields = {.kind = ALL_TO_ALL, .send = send, .receive = receive};
    if (!resolve(&fields, comm, type, count, function) || !allocate_counts(&fields, function)) return DICL_ERR_UNDEF;
    for (int32_t peer = 0; peer < fields.comm->ranks; peer++) {
        fields.send_counts[peer] = fields.receive_counts[peer] = count;
        fields.send_displacements[peer] = fields.receive_displacements[peer] = count * (size_t)peer;
    }
    fields.send_size = fields.receive_size = count * (size_t)fields.comm->ranks * fields.type->bytes;
    return submit(fields, stream, function);
}

/* Copy counts and displacements; return the number of elements up to the last one that is used, or SIZE_MAX if there
 * are too many. */
static size_t copy_counts(const size_t* counts, const size_t* displacements, int32_t ranks, size_t* to_counts,
                          size_t* to_displacements) {
    const size_t largest = SIZE_MAX / 64;
    size_t extent = 0;
    for (int32_t peer = 0; peer < ranks; peer++) {
        if (counts[peer] > largest || displacements[peer] > largest) return SIZE_MAX;
        size_t end = counts[peer] > 0 ? displacements[peer] + counts[peer] : 0;
        extent = end > extent ? end : extent;
        to_counts[peer] = counts[peer];
        to_displacements[peer] = displacements[peer];
    }
    return extent;
}

int32_t all_to_all_unequal(const void* send, const size_t* send_counts, const size_t* send_displacements,
                           void* receive, const size_t* receive_counts, const size_t* receive_displacements,
                           int32_t type, void* comm, void* stream) {
    const char* function = "diclAllToAllUnequalSplit";
    struct work fields = {.kind = ALL_TO_ALL, .send = send, .receive = receive};
    if (!resolve(&fields, comm, type, 0, function) || !allocate_counts(&fields, function)) return DICL_ERR_UNDEF;
    size_t sent = copy_counts(send_counts, send_displacements, fields.comm->ranks, fields.send_counts,
                              fields.send_displacements);
    size_t received = copy_counts(receive_counts, receive_displacements, fields.comm->ranks, fields.receive_counts,
                                  fields.receive_displacements);
    if (sent == SIZE_MAX || received == SIZE_MAX) {
        free(fields.send_counts);
        return fail("%s: a count or displacement is too large", function), DICL_ERR_UNDEF;
    }
    fields.send_size = sent * fields.type->bytes;
    fields.receive_size = received * fields.type->bytes;
    return submit(fields, stream, function);
}

int32_t send_to(const void* send, size_t count, int32_t type, int32_t peer, void* comm, void* stream) {
    struct work fields = {.kind = SEND, .send = send, .root = peer};
    if (!resolve(&fields, comm, type, count, "diclSend")) return DICL_ERR_UNDEF;
    fields.send_size = count * fields.type->bytes;
    return submit(fields, stream, "diclSend");
}

int32_t receive_from(void* receive, size_t count, int32_t type, int32_t peer, void* comm, void* stream) {
    struct work fields = {.kind = RECEIVE, .receive = receive, .root = peer};
    if (!resolve(&fields, comm, type, count, "diclRecv")) return DICL_ERR_UNDEF;
    fields.receive_size = count * fields.type->bytes;
    return submit(fields, stream, "diclRecv");
}
