"""Faulty collectives: edits of the sources of the built-in device, with the case that must detect each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from device_runtime_mutants import SOURCES as RUNTIME_SOURCES
from device_runtime_mutants import RuntimeMutant

SOURCES: Sequence[Path] = [
    *sorted((RUNTIME_SOURCES[0].parents[1] / "collectives").glob("*.c")),
    *RUNTIME_SOURCES,
]
"""The sources of the collectives and of the device runtime that they use."""


def _fault(name: str, file: str, old: str, new: str, detected_by: str) -> RuntimeMutant:
    """Return a mutant with one edit.

    Args:
        name: the name of the mutant.
        file: the source file.
        old: the text that the edit replaces.
        new: the new text.
        detected_by: the case that must detect the mutant.
    """
    return RuntimeMutant(name=name, file=file, edits=[(old, new)], detected_by=detected_by)


_EQUAL_PART = "work->count % (size_t)work->comm->ranks * (size_t)rank / (size_t)work->comm->ranks;"
_BROADCAST_COPY = "        copy_own(work, 0, 0, work->count);\n"
_GATHER_COPY = "copy_own(work, (size_t)comm->rank * work->count, 0, work->count);"
_GATHERED = "work->receive + (size_t)peer * size, size};"
_FROM_PEER = "work->receive + work->receive_displacements[peer] * bytes;"
_OWN_SPLIT = "copy_own(work, work->receive_displacements[own], work->send_displacements[own], work->send_counts[own]);"
_EQUAL_SPLIT = "fields.send_displacements[peer] = fields.receive_displacements[peer] = count * (size_t)peer;"
_INPUT = "work->send + start * bytes : received"
_FIRST = "work->receive + first * bytes, (last - first) * bytes};"
_TURN = "while (comm->completed + 1 < work->number) pthread_cond_wait(&comm->changed, &comm->lock);"
_ENQUEUE = "    stream_enqueue(stream, command);\n"
_AVERAGE = "total.reals[i] /= input_count;"
_LAST_SEND = "transfers[0] = (struct transfer){work->root, true, (char*)work->send, work->send_size};"
_LAST_RECEIVE = "transfers[0] = (struct transfer){work->root, false, work->receive, work->receive_size};"

MOVEMENT_MUTANTS = [
    _fault(
        "a broadcast comes from rank 0 whatever the root is",
        "calls.c",
        "struct work fields = {.kind = BROADCAST, .send = send, .receive = receive, .root = root};",
        "struct work fields = {.kind = BROADCAST, .send = send, .receive = receive};",
        "diclBroadcast_moves[int32]",
    ),
    _fault(
        "the root of a broadcast does not copy its own elements",
        "calls.c",
        _BROADCAST_COPY,
        "",
        "diclBroadcast_moves[uint8]",
    ),
    _fault(
        "a broadcast misses the last element",
        "calls.c",
        "transfers[count++] = (struct transfer){peer, true, (char*)work->send, size};\n        }\n        copy_own",
        "transfers[count++] = (struct transfer){peer, true, (char*)work->send, size ? size - work->type->bytes : 0};\n"
        "        }\n        copy_own",
        "diclBroadcast_moves[float64]",
    ),
    _fault(
        "a gather misses the elements of the rank itself",
        "calls.c",
        f"    {_GATHER_COPY}\n",
        "",
        "diclAllGather_moves[bool]",
    ),
    _fault(
        "a gather is wrong in place",
        "calls.c",
        _GATHER_COPY,
        f"if (work->send != work->receive + (size_t)comm->rank * size) {_GATHER_COPY}\n"
        "    else memset(work->receive + (size_t)comm->rank * size, 0, size);",
        "diclAllGather_moves[int16]",
    ),
    _fault(
        "a gather stores parts in reverse order",
        "calls.c",
        f"transfers[count++] = (struct transfer){{peer, false, {_GATHERED}",
        "transfers[count++] = (struct transfer){peer, false, "
        "work->receive + (size_t)((2 * comm->rank - peer + comm->ranks) % comm->ranks) * size, size};",
        "diclAllGather_moves[int8]",
    ),
    _fault(
        "parts of an all-to-all begin one element late",
        "calls.c",
        _FROM_PEER,
        "work->receive + (work->receive_displacements[peer] + (peer == 1)) * bytes;",
        "diclAllToAllEqualSplit_moves[float32]",
    ),
    _fault(
        "an all-to-all misses the own part",
        "calls.c",
        f"    {_OWN_SPLIT}\n",
        "",
        "diclAllToAllEqualSplit_moves[complex64]",
    ),
    _fault(
        "unequal parts are stored without gaps",
        "calls.c",
        "char* from_peer = work->receive",
        "char* from_peer = peer == 0 ? work->receive : work->receive",
        "diclAllToAllUnequalSplit_moves[int64]",
    ),
    _fault(
        "the own part of unequal parts is copied to the beginning",
        "calls.c",
        _OWN_SPLIT,
        "copy_own(work, 0, work->send_displacements[own], work->send_counts[own]);",
        "diclAllToAllUnequalSplit_moves[uint16]",
    ),
    _fault(
        "equal parts are taken in reverse order",
        "calls.c",
        _EQUAL_SPLIT,
        "fields.receive_displacements[peer] = count * (size_t)peer;\n"
        "        fields.send_displacements[peer] = count * (size_t)(fields.comm->ranks - 1 - peer);",
        "diclAllToAllEqualSplit_moves[uint32]",
    ),
    _fault(
        "a send misses the last byte",
        "calls.c",
        _LAST_RECEIVE,
        f"{_LAST_RECEIVE}\n        if (work->receive_size > 1) transfers[0].remaining--;",
        "diclSend_and_diclRecv_moves[float16]",
    ),
    _fault(
        "a receive writes one element before the buffer",
        "calls.c",
        _LAST_RECEIVE,
        _LAST_RECEIVE.replace("work->receive,", "work->receive - work->type->bytes,"),
        "diclSend_and_diclRecv_moves[uint8]",
    ),
    _fault(
        "a send changes the buffer",
        "calls.c",
        f"{_LAST_SEND}\n        transfer_all(work->comm, transfers, 1);",
        f"{_LAST_SEND}\n        transfer_all(work->comm, transfers, 1);\n"
        "        memset((char*)work->send, 0, work->send_size);",
        "diclSend_and_diclRecv_moves[int32]",
    ),
    _fault(
        "large messages lose their order in the ring",
        "links.c",
        "memcpy(bytes + first, ring->bytes, count - first);",
        "memcpy(bytes + first, ring->bytes + 1, count - first);",
        "diclBroadcast_moves_many_elements",
    ),
    _fault(
        "the writer overwrites unread bytes of the ring",
        "links.c",
        "RING_BYTES - (size_t)(written - read) : (size_t)(written - read);",
        "RING_BYTES : (size_t)(written - read);",
        "diclSend_and_diclRecv_moves_many_elements",
    ),
    _fault(
        "an element type has the wrong size",
        "reduction.c",
        "X(9, float, COMPLEX, 2, reals, x, (float)x)",
        "X(9, float, COMPLEX, 1, reals, x, (float)x)",
        "diclBroadcast_moves[complex64]",
    ),
    _fault(
        "calls without elements do not take part",
        "calls.c",
        "    if (status == DIPU_SUCCESS) status = enqueue_work(stream, fields, function);",
        "    bool is_empty = fields.send_size + fields.receive_size == 0;\n"
        "    if (status == DIPU_SUCCESS && !is_empty) status = enqueue_work(stream, fields, function);",
        "a_rank_with_no_elements_is_an_error",
    ),
    RuntimeMutant(
        name="arrays of counts are not copied",
        file="calls.c",
        edits=[
            (
                "    fields.send_size = sent * fields.type->bytes;",
                "    fields.send_counts = (size_t*)send_counts;\n"
                "    fields.receive_counts = (size_t*)receive_counts;\n"
                "    fields.send_size = sent * fields.type->bytes;",
            ),
            ("    free(work->send_counts);\n    free(work);", "    free(work);"),
        ],
        detected_by="arrays_of_counts_can_be_changed_after_the_call",
    ),
]

COMBINATION_MUTANTS = [
    _fault(
        "the last part of a reduction misses its last element",
        "calls.c",
        "work->operation, inputs, comm->ranks, result, size);",
        "work->operation, inputs, comm->ranks, result, size - (size > 0 && comm->rank == comm->ranks - 1));",
        "diclAllReduce_combines[float32-SUM]",
    ),
    _fault(
        "the elements of the last rank are left out",
        "calls.c",
        "work->operation, inputs, comm->ranks, result, size);",
        "work->operation, inputs, comm->ranks - 1, result, size);",
        "diclAllReduce_combines[int32-SUM]",
    ),
    _fault(
        "the result of a reduction goes to the next rank",
        "calls.c",
        ".kind = REDUCE, .send = send, .receive = receive, .operation = operation, .root = root};",
        ".kind = REDUCE, .send = send, .receive = receive, .operation = operation, .root = root};\n"
        "    if (root > 0) fields.root = root - 1;",
        "diclReduce_combines[int32-MAX]",
    ),
    _fault(
        "parts of a reduction overlap",
        "calls.c",
        _EQUAL_PART,
        "0;",
        "diclAllReduce_combines[int16-SUM]",
    ),
    _fault(
        "parts of a scatter are exchanged",
        "calls.c",
        "char* ours = (char*)work->send + first * bytes;",
        "size_t wrong = part_start(work, comm->ranks - 1 - peer);\n"
        "        char* ours = (char*)work->send + (work->kind == REDUCE_SCATTER ? wrong : first) * bytes;",
        "diclReduceScatter_combines[int32-SUM]",
    ),
    _fault(
        "a reduction takes the own part from the beginning",
        "calls.c",
        _INPUT,
        "work->send : received",
        "diclAllReduce_combines[int64-SUM]",
    ),
    _fault(
        "the results of the other ranks are not gathered",
        "calls.c",
        "if (reduce_parts(work, transfers, part)) gather_parts(work, transfers);",
        "reduce_parts(work, transfers, part);",
        "diclAllReduce_combines[uint8-BOR]",
    ),
    _fault(
        "a reduction is wrong in place",
        "calls.c",
        "        inputs[peer] = peer == comm->rank ?",
        "        if (work->send == work->receive && size > 0) memset(work->receive + start * bytes, 0, size * bytes);\n"
        "        inputs[peer] = peer == comm->rank ?",
        "diclAllReduce_combines[int8-SUM]",
    ),
    _fault(
        "the other ranks receive their own elements from a reduction",
        "calls.c",
        "    case REDUCE:\n    case REDUCE_SCATTER:\n",
        "    case REDUCE:\n        if (work->receive != work->send && work->comm->rank != work->root)\n"
        "            memcpy(work->receive, work->send, work->send_size);\n    case REDUCE_SCATTER:\n",
        "diclReduce_combines[int32-SUM]",
    ),
    _fault(
        "MAX of unsigned integers is signed",
        "reduction.c",
        "if (operation == MAX && !is_signed) COMBINE(naturals, a > b ? a : b);",
        "if (operation == MAX && !is_signed) COMBINE(integers, a > b ? a : b);",
        "diclAllReduce_combines[uint64-MAX]",
    ),
    _fault(
        "MIN of signed integers is unsigned",
        "reduction.c",
        "if (operation == MIN && is_signed) COMBINE(integers, a < b ? a : b);",
        "if (operation == MIN && is_signed) COMBINE(naturals, a < b ? a : b);",
        "diclReduce_combines[int32-MIN]",
    ),
    _fault(
        "BXOR is BOR",
        "reduction.c",
        "COMBINE(naturals, a ^ b);",
        "COMBINE(naturals, a | b);",
        "diclReduceScatter_combines[uint8-BXOR]",
    ),
    _fault(
        "BAND of Booleans is BOR",
        "reduction.c",
        "    if (operation == BAND) COMBINE",
        "    if (operation == BAND && count == 1) operation = BOR;\n    if (operation == BAND) COMBINE",
        "diclAllReduce_combines[bool-BAND]",
    ),
    _fault(
        "products of float16 are sums",
        "reduction.c",
        "        narrow(type->code, &total,",
        "        if (type->code == 5 && operation == PRODUCT) {\n"
        "            widen(type->code, inputs[0] + start * type->bytes, &total, size);\n"
        "            for (int32_t i = 1; i < input_count; i++) {\n"
        "                widen(type->code, inputs[i] + start * type->bytes, &input, size);\n"
        "                combine(type, SUM, &total, &input, size);\n            }\n        }\n"
        "        narrow(type->code, &total,",
        "diclReduce_combines[float16-PRODUCT]",
    ),
    _fault(
        "complex products are products of components",
        "reduction.c",
        "if (type->kind == COMPLEX && operation == PRODUCT) {",
        "if (false) {",
        "diclAllReduce_combines[complex128-PRODUCT]",
    ),
    _fault(
        "averages are sums",
        "reduction.c",
        _AVERAGE,
        "total.reals[i] /= 1;",
        "diclAllReduce_combines[float32-AVG]",
    ),
    _fault(
        "averages of bfloat16 are divided twice",
        "reduction.c",
        _AVERAGE,
        "total.reals[i] /= type->code == 15 ? input_count * input_count : input_count;",
        "diclReduceScatter_combines[bfloat16-AVG]",
    ),
    _fault(
        "float64 is combined in float32",
        "reduction.c",
        "X(7, double, REAL, 1, reals, x, x)",
        "X(7, double, REAL, 1, reals, (float)x, x)",
        "diclAllReduce_combines[float64-SUM]",
    ),
    _fault(
        "float32 is combined in bfloat16",
        "reduction.c",
        "X(6, float, REAL, 1, reals, x, (float)x)",
        "X(6, float, REAL, 1, reals, decode(encode(x, bfloat16), bfloat16), (float)x)",
        "diclAllReduce_combines[float32-SUM]",
    ),
    _fault(
        "bfloat16 is truncated to three bits",
        "reduction.c",
        "encode(x, bfloat16))",
        "encode(x, bfloat16) & 0xFFF0)",
        "sums_of_small_integers_in_floating_point_are_exact",
    ),
    _fault(
        "int64 is combined in float64",
        "reduction.c",
        "X(4, int64_t, SIGNED, 1, integers, x, x)",
        "X(4, int64_t, SIGNED, 1, integers, (int64_t)(double)(x / 2) * 2, x)",
        "diclAllReduce_combines[int64-MAX]",
    ),
    _fault(
        "uint32 saturates",
        "reduction.c",
        "X(28, uint32_t, UNSIGNED, 1, naturals, x, (uint32_t)x)",
        "X(28, uint32_t, UNSIGNED, 1, naturals, x, x > 0xFFFFFFFF ? 0xFFFFFFFF : (uint32_t)x)",
        "diclAllReduce_combines[uint32-SUM]",
    ),
    _fault(
        "sums of Booleans wrap around",
        "reduction.c",
        "X(11, uint8_t, UNSIGNED, 1, naturals, x != 0, x != 0)",
        "X(11, uint8_t, UNSIGNED, 1, naturals, x != 0, x & 1)",
        "diclAllReduce_combines[bool-SUM]",
    ),
    _fault(
        "infinities become large numbers",
        "reduction.c",
        "X(6, float, REAL, 1, reals, x, (float)x)",
        "X(6, float, REAL, 1, reals, isinf(x) ? copysign(3e38, x) : x, (float)x)",
        "infinities_and_nan_spread_in_sums",
    ),
    _fault(
        "subnormal float16 lose a bit",
        "reduction.c",
        "(field > 0 ? field - 1 : 0));",
        "(field > 0 ? field - 1 : mantissa > 100 ? 1 : 0));",
        "subnormal_numbers_are_moved_and_compared_exactly",
    ),
    _fault(
        "the block after 512 elements is wrong",
        "reduction.c",
        "            widen(type->code, inputs[i] + start * type->bytes, &input, size);\n            combine(",
        "            widen(type->code, inputs[i], &input, size);\n            combine(",
        "diclReduce_combines[int32-SUM]",
    ),
    _fault(
        "ranks round differently",
        "calls.c",
        "if (reduce_parts(work, transfers, part)) gather_parts(work, transfers);",
        "if (reduce_parts(work, transfers, part)) gather_parts(work, transfers);\n"
        "        if (work->type->code == 6 && work->count && work->comm->rank == 1) work->receive[0] ^= 1;",
        "all_ranks_receive_the_same_bits",
    ),
    _fault(
        "unknown operations are accepted",
        "reduction.c",
        "    default:\n        return false;",
        "    default:\n        return true;",
        "unknown_operations_and_roots_are_rejected",
    ),
    _fault(
        "operations on bits of floating-point numbers are accepted",
        "reduction.c",
        "        return !is_floating;",
        "        return true;",
        "unknown_operations_and_roots_are_rejected",
    ),
    _fault(
        "unknown roots are accepted",
        "calls.c",
        "fields.root < 0 || fields.root >= fields.comm->ranks",
        "fields.root < 0 || fields.root > fields.comm->ranks",
        "unknown_operations_and_roots_are_rejected",
    ),
]

ORDER_MUTANTS = [
    _fault(
        "work begins at the call instead of in stream order",
        "calls.c",
        _ENQUEUE,
        "    pthread_mutex_unlock(&fields.comm->lock);\n    command->call(command->argument);\n"
        "    pthread_mutex_lock(&fields.comm->lock);\n",
        "diclAllReduce_is_ordered_with_other_work_on_the_stream",
    ),
    _fault(
        "a call waits for its work",
        "calls.c",
        "    if (stream != NULL) stream_release(stream);\n    if (status != DIPU_SUCCESS) free",
        "    if (stream != NULL && status == DIPU_SUCCESS) stream_wait(stream, 0);\n"
        "    if (stream != NULL) stream_release(stream);\n    if (status != DIPU_SUCCESS) free",
        "a_call_does_not_wait_for_other_ranks",
    ),
    _fault(
        "the stream does not wait for the work",
        "copies.c",
        "        command->call(command->argument);",
        "        {\n            pthread_t thread;\n"
        "            pthread_create(&thread, NULL, (void* (*)(void*))command->call, command->argument);\n"
        "            pthread_detach(thread);\n        }",
        "events_wait_for_collectives",
    ),
    _fault(
        "work of a communicator has no order",
        "calls.c",
        _TURN,
        "",
        "calls_on_several_streams_keep_their_order",
    ),
    _fault(
        "a device does the work of one communicator at a time",
        "copies.c",
        "        command->call(command->argument);",
        "        device_begin(stream);\n        command->call(command->argument);\n        device_end(stream);",
        "communicators_on_different_streams_do_not_wait_for_each_other",
    ),
    _fault(
        "work runs on the default stream",
        "calls.c",
        "(stream = stream_acquire(handle, function)) == NULL",
        "(stream = stream_acquire(NULL, function)) == NULL",
        "diclBroadcast_is_ordered_with_other_work_on_the_stream",
    ),
]

COMMUNICATOR_MUTANTS = [
    _fault(
        "all names are equal",
        "communicator.c",
        '"diopi-%016llx", (unsigned long long)point.key',
        '"diopi-%016llx", 0ull * point.key',
        "a_communicator_has_the_same_name_on_all_ranks",
    ),
    _fault(
        "names contain the rank",
        "communicator.c",
        '"diopi-%016llx", (unsigned long long)point.key',
        '"diopi-%016llx", (unsigned long long)point.key + rank',
        "a_communicator_has_the_same_name_on_all_ranks",
    ),
    _fault(
        "unique ids repeat",
        "communicator.c",
        "    memset(unique_id, 0, UNIQUE_ID_BYTES);",
        "    static struct meeting_point first;\n    if (first.key == 0) first = point;\n    point = first;\n"
        "    memset(unique_id, 0, UNIQUE_ID_BYTES);",
        "unique_ids_differ",
    ),
    _fault(
        "unknown devices are accepted",
        "communicator.c",
        "    if (!device_exists(device)) return",
        "    if (false) return",
        "invalid_ranks_and_devices_are_rejected",
    ),
    _fault(
        "the chosen device is ignored",
        "communicator.c",
        "local_device == -1 ? current_index() : local_device",
        "local_device == -1 || device_exists(local_device) ? current_index() : local_device",
        "the_device_of_a_communicator_can_be_chosen",
    ),
    _fault(
        "diclCommInitRank changes the current device",
        "communicator.c",
        "    *result = comm;",
        "    *result = comm;\n    set_device(device);",
        "the_device_of_a_communicator_can_be_chosen",
    ),
    _fault(
        "diclCommDestroy discards work",
        "communicator.c",
        "    while (comm->completed < comm->enqueued) pthread_cond_wait(&comm->changed, &comm->lock);\n",
        "    comm->has_failed = true;\n"
        "    while (comm->completed < comm->enqueued) pthread_cond_wait(&comm->changed, &comm->lock);\n",
        "a_rank_may_destroy_its_communicator_before_others_have_finished",
    ),
    _fault(
        "only 16 communicators can be created",
        "communicator.c",
        "    struct communicator* comm = new_communicator(ranks, rank, device);",
        "    static int created;\n    if (created++ >= 16) return DICL_ERR_UNDEF;\n"
        "    struct communicator* comm = new_communicator(ranks, rank, device);",
        "many_communicators_can_be_created_and_destroyed",
    ),
    _fault(
        "communicators of one rank are rejected",
        "communicator.c",
        "if (ranks < 1 ||",
        "if (ranks < 2 ||",
        "a_communicator_of_one_rank_works",
    ),
]

FAILURE_MUTANTS = [
    _fault(
        "a late rank is awaited forever",
        "links.c",
        "} else if (now() > deadline) {",
        "} else if (false) {",
        "a_rank_that_is_late_is_an_error_within_the_time_limit",
    ),
    _fault(
        "the time limit is ignored",
        "settings.c",
        '    const char* text = getenv("DICL_TIMEOUT");',
        "    const char* text = NULL;",
        "a_rank_that_is_late_is_an_error_within_the_time_limit",
    ),
    _fault(
        "the time limit is half a second",
        "settings.c",
        "return (int64_t)(seconds * 1e9);",
        "return (int64_t)5e8;",
        "a_rank_that_is_late_within_the_time_limit_is_awaited",
    ),
    RuntimeMutant(
        name="a rank that has ended is awaited forever",
        file="links.c",
        edits=[
            ("    return received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR);", "    return false;"),
            ("} else if (now() > deadline) {", "} else if (false) {"),
        ],
        detected_by="a_rank_that_has_ended_is_an_error",
    ),
    _fault(
        "diclRecv takes the count of diclSend",
        "calls.c",
        "    struct signature ours = describe(work, peer);\n",
        "    if (work->kind == RECEIVE) work->receive_size = theirs->to_you * work->type->bytes;\n"
        "    if (is_pairwise(work)) work->count = theirs->to_you;\n"
        "    struct signature ours = describe(work, peer);\n",
        "a_send_of_another_count_than_the_receive_is_an_error",
    ),
    _fault(
        "other element types are accepted",
        "calls.c",
        "theirs->type == ours.type && ",
        "",
        "a_rank_with_another_type_of_the_same_size_is_an_error",
    ),
    _fault(
        "other operations are accepted",
        "calls.c",
        "theirs->operation == ours.operation &&\n",
        "true &&\n",
        "a_rank_with_another_operation_is_an_error",
    ),
    _fault(
        "errors of communicators are not reported",
        "communicator.c",
        "return has_failed ? DICL_ERR_UNDEF : DICL_SUCCESS;",
        "return DICL_SUCCESS;",
        "a_rank_with_another_count_is_an_error",
    ),
    _fault(
        "an error is reported once",
        "communicator.c",
        '    if (has_failed) fail("%s", comm->error);\n',
        '    if (has_failed) fail("%s", comm->error);\n    comm->has_failed = false;\n',
        "a_rank_with_another_root_is_an_error",
    ),
    _fault(
        "calls on a communicator that has failed are accepted",
        "calls.c",
        "    if (comm->has_failed) status = fail(",
        "    if (false) status = fail(",
        "a_rank_with_another_count_in_a_gather_is_an_error",
    ),
    _fault(
        "an error of a communicator reaches all others",
        "communicator.c",
        "    comm->has_failed = true;\n    pthread_mutex_unlock(&comm->lock);\n    va_end(arguments);",
        "    comm->has_failed = true;\n    pthread_mutex_unlock(&comm->lock);\n    va_end(arguments);\n"
        "    for (struct communicator* c = communicators; c != NULL; c = c->next) c->has_failed = true;",
        "parts_of_different_sizes_are_an_error",
    ),
    _fault(
        "the stream stops after a failure",
        "calls.c",
        "static void free_work(struct work* work) {\n",
        "static void free_work(struct work* work) {\n    if (work->comm->has_failed) pause();\n",
        "a_rank_with_another_count_in_a_broadcast_is_an_error",
    ),
    RuntimeMutant(
        name="a missing rank is awaited for an hour",
        file="rendezvous.c",
        edits=[
            ("    meeting->deadline = now() + time_limit();", "    meeting->deadline = now() + 3600000000000;"),
            ("    int64_t deadline = now() + comm->limit;", "    int64_t deadline = now() + 3600000000000;"),
        ],
        detected_by="a_rank_that_is_missing_at_the_creation_is_an_error",
    ),
]

MUTANTS = [*MOVEMENT_MUTANTS, *COMBINATION_MUTANTS, *ORDER_MUTANTS, *COMMUNICATOR_MUTANTS, *FAILURE_MUTANTS]
"""All mutants."""
