"""Faulty device runtimes: edits of the sources of the built-in device, with the case that must detect each."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from diopi_proto.headers import INCLUDE_DIR

SOURCES = sorted((Path(__file__).parents[2] / "lib_rt" / "src" / "device_runtime").glob("*.c"))
"""The sources of the device runtime of the built-in device."""

COMPILER_FLAGS = ("-std=c11", "-O1", "-g", "-D_GNU_SOURCE", "-fPIC", "-w", f"-I{INCLUDE_DIR}", f"-I{SOURCES[0].parent}")
"""The flags of the compiler; faults may cause warnings."""


@dataclass(frozen=True, kw_only=True)
class RuntimeMutant:
    """A faulty device runtime.

    Attributes:
        name: the fault in words.
        file: the source that is edited.
        edits: texts of the source, each with its replacement. Each text occurs once.
        detected_by: the case that detects the fault.
        is_race: whether the fault depends on the order in which threads run, so a run of the case can miss it.
    """

    name: str
    file: str
    edits: Sequence[tuple[str, str]]
    detected_by: str
    is_race: bool = False

    def edited_source(self, sources: Sequence[Path]) -> str:
        """Return the text of the source `file`, which is one of `sources`, with the edits."""
        text = next(path for path in sources if path.name == self.file).read_text("utf-8")
        for old, new in self.edits:
            assert text.count(old) == 1, f"{self.name}: {self.file} has {text.count(old)} times: {old}"
            text = text.replace(old, new)
        return text


def compile_objects(folder: Path, sources: Sequence[Path] = SOURCES) -> list[Path]:
    """Compile the sources without a fault; return the object files in the same order."""
    objects = [folder / f"{path.parent.name}_{path.stem}.o" for path in sources]
    for path, output in zip(sources, objects, strict=True):
        subprocess.run(["cc", *COMPILER_FLAGS, "-c", str(path), "-o", str(output)], check=True)
    return objects


def build_mutant(
    mutant: RuntimeMutant, objects: Sequence[Path], folder: Path, sources: Sequence[Path] = SOURCES
) -> Path:
    """Build a faulty runtime from the edited source and the other object files; return the library."""
    source, library = folder / mutant.file, folder / "libmutant.so"
    source.write_text(mutant.edited_source(sources), "utf-8")
    pairs = zip(sources, objects, strict=True)
    unchanged_objects = [str(output) for path, output in pairs if path.name != mutant.file]
    command = ["cc", *COMPILER_FLAGS, f"-I{sources[0].parent}", "-shared", str(source), *unchanged_objects]
    subprocess.run([*command, "-lpthread", "-lm", "-o", str(library)], check=True)
    return library


def _mutant(name: str, file: str, old: str, new: str, detected_by: str) -> RuntimeMutant:
    """Return a mutant with one edit.

    Args:
        name: the name of the mutant.
        file: the source file.
        old: the text that the edit replaces.
        new: the new text.
        detected_by: the case that must detect the mutant.
    """
    return RuntimeMutant(name=name, file=file, edits=[(old, new)], detected_by=detected_by)


_WAIT_IN_SYNC_STREAM = """    stream_wait(stream, 0);
    stream_release(stream);
    return report_asynchronous_error("syncStream");"""
_RETURN_WHETHER_EMPTY = "*result = stream->completed == stream->enqueued;"
_RETURN_EVENT_STATUS = "*result = event->record == NULL || event->record->is_ready ? READY : PENDING;"
_IF_NEVER_RECORDED = "if (last != NULL && (first->record == NULL || last->record == NULL)) {"
_CHECK_ALLOCATION = "allocation != NULL && allocation->address == address && (allocation->device == HOST) == is_pinned;"
_RUN_COPY = "memmove(command->to, command->from, command->bytes);"
_RUN_FILL = "memset(command->to, command->value, command->bytes);"
_APPEND_COMMAND = """    stream->last = command;
    uint64_t number"""
_RELEASE_LOCK = "    pthread_mutex_unlock(&lock);\n    usleep(500);\n    pthread_mutex_lock(&lock);\n"
"""C code that releases the lock for so long that other threads nearly always take it."""
_INSERT_ALLOCATION = "    memmove(&sorted[position + 1], &sorted[position], (count - position) * sizeof *sorted);"
_ELAPSED_MILLISECONDS = "(float)(last->record->nanoseconds - first->record->nanoseconds) / 1e6f"

STREAM_MUTANTS = [
    _mutant(
        "syncStream does not wait",
        "streams.c",
        _WAIT_IN_SYNC_STREAM,
        _WAIT_IN_SYNC_STREAM.replace("stream_wait(stream, 0);", ""),
        "sync_stream_waits_for_its_work",
    ),
    _mutant(
        "syncStream does not wait for the default stream",
        "streams.c",
        _WAIT_IN_SYNC_STREAM,
        _WAIT_IN_SYNC_STREAM.replace("stream_wait(", "if (handle != NULL) stream_wait("),
        "sync_stream_waits_for_its_work",
    ),
    _mutant(
        "syncStream does not wait for streams with priority",
        "streams.c",
        _WAIT_IN_SYNC_STREAM,
        _WAIT_IN_SYNC_STREAM.replace("stream_wait(", "if (!stream->has_priority) stream_wait("),
        "sync_stream_waits_for_its_work",
    ),
    _mutant(
        "syncDevice does not wait for the default stream",
        "streams.c",
        "if (device_at(device)->default_stream != NULL) found",
        "if (false) found",
        "sync_device_waits_for_all_streams",
    ),
    _mutant(
        "syncDevice waits only for the default stream",
        "streams.c",
        "s = next_stream(device, s)) found[n++] = s;",
        "s = next_stream(device, s)) continue;",
        "sync_device_waits_for_all_streams",
    ),
    _mutant(
        "syncDevice waits for device 0 whichever device is current",
        "devices.c",
        "device_wait(current);",
        "device_wait(0);",
        "a_stream_belongs_to_the_device_of_its_creation",
    ),
    _mutant(
        "a stream is always empty",
        "streams.c",
        _RETURN_WHETHER_EMPTY,
        "*result = true;",
        "a_stream_is_empty_when_its_work_is_complete",
    ),
    _mutant(
        "a stream is never empty",
        "streams.c",
        _RETURN_WHETHER_EMPTY,
        "*result = false;",
        "a_stream_is_empty_when_its_work_is_complete",
    ),
    _mutant(
        "a stream is empty while its last command runs",
        "streams.c",
        _RETURN_WHETHER_EMPTY,
        "*result = stream->first == NULL;",
        "a_stream_is_not_empty_while_its_last_copy_runs",
    ),
    _mutant(
        "the default stream is not recognized",
        "streams.c",
        "*result = handle != NULL;",
        "*result = true;",
        "only_null_is_the_default_stream",
    ),
    _mutant(
        "commands run in reverse order",
        "streams.c",
        "    if (stream->first == NULL) {\n        stream->first = command;",
        "    if (true) {\n        command->next = stream->first;\n        stream->first = command;",
        "work_on_a_stream_runs_in_order",
    ),
    _mutant(
        "commands of streams with priority overtake earlier ones",
        "streams.c",
        "    if (stream->first == NULL) {\n        stream->first = command;",
        "    if (stream->has_priority) {\n        command->next = stream->first;\n        stream->first = command;\n"
        "    } else if (stream->first == NULL) {\n        stream->first = command;",
        "work_on_a_stream_with_priority_runs_in_order",
    ),
    _mutant(
        "small commands overtake large ones",
        "streams.c",
        "    if (stream->first == NULL) {\n        stream->first = command;",
        "    if (stream->first != NULL && stream->first->bytes > 4 * command->bytes && command->kind == FILL) {\n"
        "        command->next = stream->first;\n        stream->first = command;\n"
        "        uint64_t early = ++stream->enqueued;\n        pthread_mutex_unlock(&stream->lock);\n"
        "        return early;\n    }\n    if (stream->first == NULL) {\n        stream->first = command;",
        "copies_and_fills_of_different_sizes_run_in_order",
    ),
    _mutant(
        "fills run at once instead of in stream order",
        "copies.c",
        "status == DIPU_SUCCESS ? submit(stream, fields, 0, waits, function) : status;\n}\n\ntypedef",
        "memset(fields.to, fields.value, fields.bytes), status;\n}\n\ntypedef",
        "work_on_a_stream_runs_in_order",
    ),
    _mutant(
        "copies between devices run at once instead of in stream order",
        "copies.c",
        "    if (status == DIPU_SUCCESS && stream->device != fields.to_device",
        "    if (status == DIPU_SUCCESS) memmove(fields.to, fields.from, fields.bytes);\n"
        "    if (status == DIPU_SUCCESS) return status;\n"
        "    if (status == DIPU_SUCCESS && stream->device != fields.to_device",
        "work_on_a_stream_runs_in_order",
    ),
    _mutant(
        "destroyStream discards enqueued work",
        "streams.c",
        "static void destroy(struct stream* stream) {\n    stream_wait(stream, 0);",
        "static void destroy(struct stream* stream) {\n    pthread_mutex_lock(&stream->lock);\n"
        "    stream->first = NULL;\n    stream->completed = stream->enqueued;\n"
        "    pthread_mutex_unlock(&stream->lock);",
        "a_destroyed_stream_completes_its_work",
    ),
    _mutant(
        "destroyStream removes other streams, too",
        "streams.c",
        "            *link = stream->next;",
        "            *link = stream->next != NULL ? stream->next->next : NULL;",
        "destroying_a_stream_leaves_others_valid",
    ),
    _mutant(
        "destroyStream accepts an unknown device",
        "streams.c",
        'if (!device_exists(device)) return fail_no_device("destroyStream", device);\n',
        "",
        "the_stream_of_an_unknown_device_is_not_destroyed",
    ),
    _mutant(
        "destroyStream of a device changes the current device",
        "streams.c",
        "    return destroy_stream(handle);",
        "    set_device(device);\n    return destroy_stream(handle);",
        "a_stream_can_be_destroyed_while_another_device_is_current",
    ),
    _mutant(
        "streams belong to device 0",
        "streams.c",
        "new_stream(current_index(), prior)",
        "new_stream(0, prior)",
        "a_stream_belongs_to_the_device_of_its_creation",
    ),
    _mutant(
        "all devices share a default stream",
        "streams.c",
        "struct device* device = device_at(index);\n    if (device->default_stream",
        "index = 0;\n    struct device* device = device_at(index);\n    if (device->default_stream",
        "each_device_has_a_default_stream",
    ),
    _mutant(
        "releaseStream destroys all streams of the device",
        "streams.c",
        "int32_t release_stream(void) { return",
        "int32_t release_stream(void) { device_destroy_streams(0); return",
        "destroying_a_stream_leaves_others_valid",
    ),
    _mutant(
        "only 32 streams can exist",
        "streams.c",
        "    if (created == NULL) return fail(",
        "    int count = 0;\n    for (struct stream* s = streams; s != NULL; s = s->next) count++;\n"
        "    if (created == NULL || count >= 32) return fail(",
        "many_streams_work_at_once",
    ),
]

EVENT_MUTANTS = [
    _mutant(
        "waitEvent does not wait",
        "events.c",
        "    record_wait(record);\n    record_release(record);\n    return report",
        "    record_release(record);\n    return report",
        "wait_event_waits_for_the_recorded_work",
    ),
    _mutant(
        "waitEvent rejects an event that was never recorded",
        "events.c",
        "if (record == NULL) return DIPU_SUCCESS;",
        'if (record == NULL) return fail("never recorded");',
        "an_event_that_was_never_recorded_is_ready",
    ),
    _mutant(
        "streamWaitEvent does nothing",
        "events.c",
        'status = enqueue(stream, WAIT, record, "streamWaitEvent");',
        "record_release(record);",
        "a_stream_waits_for_an_event",
    ),
    _mutant(
        "the default stream does not wait for events",
        "events.c",
        "if (status == DIPU_SUCCESS && record != NULL) status = enqueue(stream, WAIT",
        "if (status == DIPU_SUCCESS && record != NULL && handle != NULL) status = enqueue(stream, WAIT",
        "a_stream_waits_for_an_event",
    ),
    _mutant(
        "streamWaitEvent ignores events of other devices",
        "events.c",
        'status = enqueue(stream, WAIT, record, "streamWaitEvent");',
        "status = stream->device == ((struct event*)event)->device ? "
        'enqueue(stream, WAIT, record, "streamWaitEvent") : DIPU_SUCCESS;',
        "a_stream_waits_for_an_event_of_another_device",
    ),
    _mutant(
        "a stream waits only for the first of several events",
        "events.c",
        "if (status == DIPU_SUCCESS && record != NULL) status = enqueue(stream, WAIT",
        "static void* waiting;\n    bool repeats = waiting == handle && handle != NULL;\n    waiting = handle;\n"
        "    if (status == DIPU_SUCCESS && record != NULL && !repeats) status = enqueue(stream, WAIT",
        "a_stream_waits_for_several_events",
    ),
    _mutant(
        "an event is ready for only one waiting stream",
        "copies.c",
        "    case WAIT:\n        record_wait(command->record);",
        "    case WAIT:;\n        static struct record* last;\n        if (last == command->record) break;\n"
        "        last = command->record;\n        record_wait(command->record);",
        "several_streams_wait_for_an_event",
    ),
    RuntimeMutant(
        name="a new record resets the earlier one, for which streams still wait",
        file="events.c",
        edits=[
            (
                "    struct record* record = calloc(1, sizeof *record);\n    int32_t status = record",
                "    struct record* record = ((struct event*)handle)->record;\n"
                "    if (record == NULL) record = calloc(1, sizeof *record);\n    record->is_ready = false;\n"
                "    int32_t status = record",
            ),
            ("        record->users = 1;", "        record->users += 3;"),
        ],
        detected_by="a_record_on_an_idle_stream_does_not_end_an_earlier_wait",
    ),
    _mutant(
        "only the first record of an event counts",
        "events.c",
        "    if (is_valid) {\n        drop(event->record);\n        event->record = record;\n        record->users++;",
        "    if (is_valid && event->record == NULL) {\n        event->record = record;\n        record->users++;",
        "a_new_record_replaces_the_earlier_one",
    ),
    _mutant(
        "an event is always ready",
        "events.c",
        _RETURN_EVENT_STATUS,
        "*result = READY;",
        "an_event_is_ready_only_after_its_work",
    ),
    _mutant(
        "an event is ready only if it was recorded",
        "events.c",
        _RETURN_EVENT_STATUS,
        "*result = event->record != NULL && event->record->is_ready ? READY : PENDING;",
        "an_event_that_was_never_recorded_is_ready",
    ),
    _mutant(
        "an event is never ready",
        "events.c",
        _RETURN_EVENT_STATUS,
        "*result = PENDING;",
        "wait_event_waits_for_the_recorded_work",
    ),
    _mutant(
        "an event is ready when it is recorded",
        "events.c",
        'status = enqueue(stream, RECORD, record, "recordEvent");',
        'record_complete(record), status = enqueue(stream, RECORD, record, "recordEvent");',
        "an_event_is_ready_only_after_its_work",
    ),
    _mutant(
        "an event on the default stream is ready at once",
        "events.c",
        'status = enqueue(stream, RECORD, record, "recordEvent");',
        "(stream_handle == NULL ? record_complete(record) : (void)0),\n"
        '            status = enqueue(stream, RECORD, record, "recordEvent");',
        "wait_event_waits_for_the_recorded_work",
    ),
    _mutant(
        "destroyEvent ends the waits for the event",
        "events.c",
        "            *link = event->next;\n            drop",
        "            *link = event->next;\n            if (event->record != NULL) event->record->is_ready = true;\n"
        "            pthread_cond_broadcast(&ready);\n            drop",
        "a_destroyed_event_is_still_waited_for",
    ),
    _mutant(
        "time in microseconds",
        "events.c",
        _ELAPSED_MILLISECONDS,
        _ELAPSED_MILLISECONDS.replace("1e6f", "1e3f"),
        "elapsed_time_is_that_of_the_host",
    ),
    _mutant(
        "time in seconds",
        "events.c",
        _ELAPSED_MILLISECONDS,
        _ELAPSED_MILLISECONDS.replace("1e6f", "1e9f"),
        "elapsed_time_is_that_of_the_host",
    ),
    _mutant(
        "time with the wrong sign",
        "events.c",
        _ELAPSED_MILLISECONDS,
        f"-{_ELAPSED_MILLISECONDS}",
        "elapsed_time_is_that_of_the_host",
    ),
    _mutant(
        "time without a sign",
        "events.c",
        _ELAPSED_MILLISECONDS,
        f"({_ELAPSED_MILLISECONDS} > 0 ? {_ELAPSED_MILLISECONDS} : -{_ELAPSED_MILLISECONDS})",
        "elapsed_time_is_monotonic_and_additive",
    ),
    _mutant(
        "time with a resolution of 64 ms",
        "events.c",
        "record->nanoseconds = now();",
        "record->nanoseconds = now() >> 26 << 26;",
        "elapsed_time_is_that_of_the_host",
    ),
    RuntimeMutant(
        name="time of the call instead of the device",
        file="events.c",
        edits=[
            ("    record->nanoseconds = now();\n", ""),
            ("        record->users = 1;", "        record->users = 1;\n        record->nanoseconds = now();"),
        ],
        detected_by="elapsed_time_includes_the_work_between_the_events",
    ),
    _mutant(
        "events that were never recorded have a time",
        "events.c",
        _IF_NEVER_RECORDED,
        "if (last != NULL && (first->record == NULL || last->record == NULL)) {\n        *milliseconds = 0;\n"
        "    } else if (false) {",
        "elapsed_time_needs_recorded_events",
    ),
    _mutant(
        "events that are not ready have a time",
        "events.c",
        "!(first->record->is_ready && last->record->is_ready)",
        "false",
        "elapsed_time_needs_ready_events",
    ),
    _mutant(
        "only 256 events can exist",
        "events.c",
        '    if (created == NULL) return fail("createEvent',
        "    int count = 0;\n    for (struct event* e = events; e != NULL; e = e->next) count++;\n"
        '    if (created == NULL || count >= 256) return fail("createEvent',
        "many_events_can_exist",
    ),
]

MEMORY_MUTANTS = [
    _mutant(
        "allocations are aligned to 16 bytes",
        "memory.c",
        "posix_memalign(&memory, ALIGNMENT, bytes > 0 ? bytes : 1)",
        "posix_memalign(&memory, 16, bytes > 0 ? bytes : 1)",
        "device_allocations_do_not_overlap",
    ),
    _mutant(
        "memory is handed out twice",
        "memory.c",
        "    void* memory = allocate(bytes, current_index());\n",
        "    static void* last;\n"
        "    void* memory = bytes == 31 && last != NULL ? last : allocate(bytes, current_index());\n"
        "    if (bytes == 31) last = memory;\n",
        "device_allocations_do_not_overlap",
    ),
    _mutant(
        "zero bytes can't be allocated",
        "memory.c",
        "    bool is_possible = allocation != NULL && bytes <= SIZE_MAX / 2;",
        "    bool is_possible = allocation != NULL && bytes > 0 && bytes <= SIZE_MAX / 2;",
        "zero_bytes_can_be_allocated_and_freed",
    ),
    _mutant(
        "NULL can't be freed",
        "memory.c",
        "    if (address == NULL) return DIPU_SUCCESS;\n",
        "",
        "zero_bytes_can_be_allocated_and_freed",
    ),
    _mutant(
        "freed memory is not available again",
        "memory.c",
        "device_at(allocation->device)->used -= allocation->bytes;",
        "device_at(allocation->device)->used -= 0;",
        "freed_memory_can_be_allocated_again",
    ),
    _mutant(
        "freed memory is credited to the current device",
        "memory.c",
        "device_at(allocation->device)->used -= allocation->bytes;",
        "device_at(current_index())->used -= allocation->bytes;",
        "memory_can_be_freed_while_another_device_is_current",
    ),
    _mutant(
        "device memory has no limit",
        "memory.c",
        "is_possible = bytes <= device_bytes() - device_at(device)->used;",
        "is_possible = bytes < (size_t)1 << 36;",
        "exhausted_memory_has_a_status_and_recovers",
    ),
    _mutant(
        "sizes overflow when they are rounded up",
        "memory.c",
        "    bool is_possible = allocation != NULL && bytes <= SIZE_MAX / 2;",
        "    bytes = (bytes + 511) / 512 * 512;\n    bool is_possible = allocation != NULL;",
        "too_large_allocations_have_a_status",
    ),
    _mutant(
        "too little memory has an unknown error",
        "memory.c",
        "return throws ? DIPU_EXCEPTION : DIPU_ERR_NOMEM;",
        "return throws ? DIPU_EXCEPTION : DIPU_ERR_UNKNOWN;",
        "exhausted_memory_has_a_status_and_recovers",
    ),
    _mutant(
        "mallocDevice never throws",
        "memory.c",
        "return throws ? DIPU_EXCEPTION : DIPU_ERR_NOMEM;",
        "return DIPU_ERR_NOMEM;",
        "too_large_allocations_have_a_status",
    ),
    _mutant(
        "mallocDevice always throws",
        "memory.c",
        "return throws ? DIPU_EXCEPTION : DIPU_ERR_NOMEM;",
        "return DIPU_EXCEPTION;",
        "too_large_allocations_have_a_status",
    ),
    _mutant(
        "mallocHost reports success without memory",
        "memory.c",
        'if (memory == NULL) return fail("mallocHost',
        'if (false) return fail("mallocHost',
        "too_large_allocations_have_a_status",
    ),
    _mutant(
        "an address in the middle of memory frees it",
        "memory.c",
        _CHECK_ALLOCATION,
        "allocation != NULL && (allocation->device == HOST) == is_pinned\n"
        "        && (char*)address < allocation->address + 100;",
        "device_memory_is_freed_only_by_its_first_address",
    ),
    _mutant(
        "freeDevice frees pinned memory",
        "memory.c",
        _CHECK_ALLOCATION,
        "allocation != NULL && allocation->address == address && (!is_pinned || allocation->device == HOST);",
        "device_memory_is_freed_only_by_its_first_address",
    ),
    _mutant(
        "freeHost frees device memory",
        "memory.c",
        _CHECK_ALLOCATION,
        "allocation != NULL && allocation->address == address && (is_pinned || allocation->device != HOST);",
        "pinned_memory_is_freed_only_by_its_first_address",
    ),
    _mutant(
        "freeing memory twice is accepted",
        "memory.c",
        "return is_valid ? DIPU_SUCCESS : fail(",
        "return is_valid || allocation == NULL || allocation->address + allocation->bytes <= (char*)address\n"
        "        ? DIPU_SUCCESS : fail(",
        "memory_can_be_freed_only_once",
    ),
    _mutant(
        "only the first byte of pinned memory is pinned",
        "memory.c",
        "*result = memory_device(address, 1) == HOST;",
        "*result = memory_device(address, 1) == HOST && memory_device((const char*)address - 1, 1) != HOST;",
        "every_byte_of_pinned_memory_is_pinned",
    ),
    _mutant(
        "device memory is pinned",
        "memory.c",
        "*result = memory_device(address, 1) == HOST;",
        "*result = memory_device(address, 1) != NOWHERE;",
        "other_memory_is_not_pinned",
    ),
    _mutant(
        "all memory is pinned",
        "memory.c",
        "*result = memory_device(address, 1) == HOST;",
        "*result = memory_device(address, 1) < 0;",
        "other_memory_is_not_pinned",
    ),
    _mutant(
        "freed memory stays pinned",
        "memory.c",
        'int32_t free_host(void* address) { return release(address, true, "freeHost"); }',
        "int32_t free_host(void* address) {\n    return memory_device(address, 1) == HOST ? DIPU_SUCCESS "
        ': release(address, true, "freeHost");\n}',
        "other_memory_is_not_pinned",
    ),
    _mutant(
        "only device 0 can use pinned memory",
        "copies.c",
        "    fields.from_device = memory_device(fields.from, fields.bytes);",
        "    fields.from_device = memory_device(fields.from, fields.bytes);\n"
        '    if (fields.from_device == HOST && stream->device > 0) return fail("%s: pinned by device 0", function);',
        "pinned_memory_can_be_used_by_all_devices",
    ),
]

COPY_MUTANTS = [
    _mutant(
        "the end of a copy is missing",
        "copies.c",
        _RUN_COPY,
        "memmove(command->to, command->from, command->bytes & ~(size_t)3);",
        "synchronous_copies_from_the_host_are_exact",
    ),
    _mutant(
        "a copy writes whole words",
        "copies.c",
        _RUN_COPY,
        "memmove(command->to, command->from, (command->bytes + 3) & ~(size_t)3);",
        "synchronous_copies_to_the_host_are_exact",
    ),
    _mutant(
        "the target of a copy is aligned",
        "copies.c",
        _RUN_COPY,
        "memmove((void*)((uintptr_t)command->to & ~(uintptr_t)3), command->from, command->bytes);",
        "copies_within_a_device_are_exact",
    ),
    _mutant(
        "the source of a copy is aligned",
        "copies.c",
        _RUN_COPY,
        "memmove(command->to, (void*)((uintptr_t)command->from & ~(uintptr_t)7), command->bytes);",
        "asynchronous_copies_to_pinned_memory_are_exact",
    ),
    _mutant(
        "large copies are incomplete",
        "copies.c",
        _RUN_COPY,
        "memmove(command->to, command->from, command->bytes > 32 << 20 ? 32 << 20 : command->bytes);",
        "large_copies_are_complete",
    ),
    _mutant(
        "the first byte behind 4096 bytes is damaged",
        "copies.c",
        _RUN_COPY,
        "memmove(command->to, command->from, command->bytes);\n"
        "        if (command->bytes > 4096) ((char*)command->to)[4096] ^= 1;",
        "asynchronous_copies_from_pageable_memory_are_exact",
    ),
    _mutant(
        "fills keep seven bits of the value",
        "copies.c",
        _RUN_FILL,
        _RUN_FILL.replace("value", "value & 0x7F"),
        "fills_are_exact",
    ),
    _mutant(
        "fills write the value as an integer of four bytes",
        "copies.c",
        _RUN_FILL,
        "for (size_t i = 0; i < command->bytes; i++) ((char*)command->to)[i] = ((char*)&command->value)[i % 4];",
        "fills_are_exact",
    ),
    _mutant(
        "the end of a fill is missing",
        "copies.c",
        _RUN_FILL,
        _RUN_FILL.replace("command->bytes", "command->bytes & ~(size_t)15"),
        "fills_are_exact",
    ),
    _mutant(
        "a fill writes whole words",
        "copies.c",
        _RUN_FILL,
        _RUN_FILL.replace("command->bytes", "(command->bytes + 3) & ~(size_t)3"),
        "fills_are_exact",
    ),
    _mutant(
        "copies of zero bytes are rejected",
        "copies.c",
        "    if (fields.bytes == 0) return DIPU_SUCCESS;\n",
        "",
        "copies_and_fills_of_zero_bytes_change_nothing",
    ),
    _mutant(
        "asynchronous copies of zero bytes are rejected",
        "copies.c",
        "fields.bytes > 0 ? enqueue(stream, fields, false, function) : DIPU_SUCCESS;",
        "enqueue(stream, fields, false, function);",
        "copies_and_fills_of_zero_bytes_change_nothing",
    ),
    _mutant(
        "a pageable source is read after the call",
        "copies.c",
        "bool is_staged = fields.from_device != HOST && !waits;",
        "bool is_staged = false;",
        "pageable_memory_can_be_changed_after_the_call",
    ),
    _mutant(
        "a large pageable source is read after the call",
        "copies.c",
        "bool is_staged = fields.from_device != HOST && !waits;",
        "bool is_staged = fields.from_device != HOST && !waits && fields.bytes < 65536;",
        "pageable_memory_can_be_changed_after_the_call",
    ),
    _mutant(
        "a pageable target is written after the call",
        "copies.c",
        "waits || fields.to_device != HOST, function);",
        "waits, function);",
        "pageable_memory_is_written_when_the_call_returns",
    ),
    _mutant(
        "synchronous copies do not wait",
        "copies.c",
        "    if (!waits) return DIPU_SUCCESS;\n",
        "    return DIPU_SUCCESS;\n",
        "synchronous_copies_from_the_host_are_exact",
    ),
    _mutant(
        "synchronous copies pass the default stream",
        "copies.c",
        "    struct stream* stream = stream_acquire_default(device, function);",
        "    if (enqueue != copy_between) return memmove(fields.to, fields.from, fields.bytes), DIPU_SUCCESS;\n"
        "    struct stream* stream = stream_acquire_default(device, function);",
        "synchronous_copies_wait_for_the_default_stream",
    ),
    _mutant(
        "memCopyD2D passes the default stream",
        "copies.c",
        "    struct stream* stream = stream_acquire_default(device, function);",
        "    if (enqueue == copy_between) return memmove(fields.to, fields.from, fields.bytes), DIPU_SUCCESS;\n"
        "    struct stream* stream = stream_acquire_default(device, function);",
        "synchronous_copies_wait_for_the_default_stream",
    ),
    _mutant(
        "copies to a peer have the wrong direction",
        "copies.c",
        _RUN_COPY,
        "command->to_device > command->from_device && command->from_device >= 0\n"
        "            ? memmove((void*)command->from, command->to, command->bytes)\n"
        "            : memmove(command->to, command->from, command->bytes);",
        "copies_to_a_peer_are_exact",
    ),
    _mutant(
        "copies from a peer do nothing",
        "copies.c",
        _RUN_COPY,
        "if (command->from_device <= command->to_device || command->to_device < 0)\n"
        "            memmove(command->to, command->from, command->bytes);",
        "copies_from_a_peer_are_exact",
    ),
    _mutant(
        "memCopyD2D requires the current device",
        "copies.c",
        '"memCopyD2D");\n    return status == DIPU_SUCCESS ? run_now',
        '"memCopyD2D");\n    if (to_device != current_index()) return fail("another device is current");\n'
        "    return status == DIPU_SUCCESS ? run_now",
        "copies_to_a_peer_are_exact",
    ),
]

DEVICE_MUTANTS = [
    _mutant(
        "the current device is the same for all threads",
        "devices.c",
        "static _Thread_local int32_t current;",
        "static int32_t current;",
        "a_new_thread_begins_on_device_0",
    ),
    _mutant(
        "the current device is always 0",
        "devices.c",
        "    *result = current;\n",
        "    *result = 0;\n",
        "a_device_can_be_made_the_current_one",
    ),
    _mutant(
        "setDevice accepts the number of devices",
        "devices.c",
        "index >= 0 && index < device_count();",
        "index >= 0 && index <= device_count();",
        "unknown_devices_are_rejected",
    ),
    _mutant(
        "negative devices are accepted",
        "devices.c",
        "index >= 0 && index < device_count();",
        "index < device_count();",
        "unknown_devices_are_rejected",
    ),
    _mutant(
        "setDevice changes the device although it fails",
        "devices.c",
        '    if (!device_exists(device)) return fail_no_device("setDevice", device);',
        "    if (!device_exists(device)) {\n        current = 0x7F;\n"
        '        return fail_no_device("setDevice", device);\n    }',
        "unknown_devices_are_rejected",
    ),
    _mutant(
        "getDeviceStatus accepts unknown devices",
        "devices.c",
        'if (!device_exists(device)) return fail_no_device("getDeviceStatus", device);',
        "if (!device_exists(device)) device = 0;",
        "the_status_of_unknown_devices_is_rejected",
    ),
    _mutant(
        "devices have no name",
        "devices.c",
        'snprintf(result->name, sizeof result->name, "DIOPI built-in device");',
        "",
        "every_device_has_properties",
    ),
    _mutant(
        "devices have no processors",
        "devices.c",
        ".multiProcessorCount = 1",
        ".multiProcessorCount = 0",
        "every_device_has_properties",
    ),
    _mutant(
        "the version is 0",
        "devices.c",
        "*version = 100;",
        "*version = 0;",
        "the_number_of_devices_and_the_versions_are_positive",
    ),
    _mutant(
        "all memory is always free",
        "devices.c",
        "total - memory_used(device)",
        "total",
        "the_status_counts_allocated_memory",
    ),
    _mutant(
        "the status is that of device 0",
        "devices.c",
        "total - memory_used(device)",
        "total - memory_used(0)",
        "the_status_belongs_to_its_device",
    ),
    _mutant(
        "resetDevice keeps memory",
        "devices.c",
        "    device_free_all(device);\n",
        "",
        "a_reset_device_can_be_used_again",
    ),
    _mutant(
        "resetDevice frees pinned memory",
        "devices.c",
        "    device_free_all(device);\n",
        "    device_free_all(device);\n    device_free_all(HOST);\n",
        "resetting_a_device_waits_for_its_work",
    ),
    _mutant(
        "resetDevice frees the memory of the current device",
        "devices.c",
        "    device_destroy_streams(device);\n",
        "    if (current != device) device_free_all(current);\n    device_destroy_streams(device);\n",
        "resetting_a_device_leaves_others_unchanged",
    ),
    _mutant(
        "resetDevice makes the device the current one",
        "devices.c",
        "    device_destroy_streams(device);\n",
        "    device_destroy_streams(device);\n    current = device;\n",
        "resetting_a_device_leaves_others_unchanged",
    ),
    _mutant(
        "a second start releases everything",
        "devices.c",
        "    device_count();\n    return DIPU_SUCCESS;",
        "    static bool is_started;\n    if (is_started) finalize_vendor();\n    is_started = true;\n"
        "    return DIPU_SUCCESS;",
        "starting_twice_changes_nothing",
    ),
    _mutant(
        "the runtime can't be started again",
        "devices.c",
        "    device_free_all(HOST);\n",
        "    device_free_all(HOST);\n    count = 0;\n",
        "the_runtime_can_be_ended_and_started_again",
    ),
    _mutant(
        "an error is reported forever",
        "errors.c",
        'int32_t check_last_error(void) { return report_asynchronous_error("checkLastError"); }',
        "int32_t check_last_error(void) { return error_text[0] == 0 ? DIPU_SUCCESS : DIPU_EXCEPTION; }",
        "an_error_is_reported_once",
    ),
    _mutant(
        "errors reach other threads",
        "errors.c",
        "    va_end(arguments);\n",
        '    va_end(arguments);\n    store_asynchronous_error("an earlier call failed");\n',
        "an_error_of_a_thread_does_not_reach_others",
    ),
    _mutant(
        "errors have no text",
        "errors.c",
        "    vsnprintf(error_text, sizeof error_text, format, arguments);\n",
        "",
        "errors_have_a_text",
    ),
]

THREAD_MUTANTS = [
    RuntimeMutant(
        name="commands of two threads get the same number",
        file="streams.c",
        edits=[
            (
                "    uint64_t number = ++stream->enqueued;",
                "    uint64_t number = stream->enqueued + 1;\n    pthread_mutex_unlock(&stream->lock);\n"
                "    usleep(500);\n    pthread_mutex_lock(&stream->lock);\n    stream->enqueued = number;",
            ),
            # slow commands are still incomplete when a wait for a number that is too low returns
            ("        run_command(stream, command);", "        usleep(1000);\n        run_command(stream, command);"),
        ],
        detected_by="threads_share_a_stream",
        is_race=True,
    ),
    RuntimeMutant(
        name="allocations of two threads overwrite each other's entry",
        file="memory.c",
        edits=[(_INSERT_ALLOCATION, _RELEASE_LOCK + _INSERT_ALLOCATION)],
        detected_by="threads_allocate_at_the_same_time",
        is_race=True,
    ),
    RuntimeMutant(
        name="events of two threads overwrite each other's entry",
        file="events.c",
        edits=[("    created->next = events;\n", "    created->next = events;\n" + _RELEASE_LOCK)],
        detected_by="threads_create_and_destroy_streams_and_events",
        is_race=True,
    ),
    RuntimeMutant(
        name="streams of two threads overwrite each other's entry",
        file="streams.c",
        edits=[("    created->next = streams;\n", "    created->next = streams;\n" + _RELEASE_LOCK)],
        detected_by="threads_create_and_destroy_streams_and_events",
        is_race=True,
    ),
]

MUTANTS = [*STREAM_MUTANTS, *EVENT_MUTANTS, *MEMORY_MUTANTS, *COPY_MUTANTS, *DEVICE_MUTANTS, *THREAD_MUTANTS]
"""All mutants."""
