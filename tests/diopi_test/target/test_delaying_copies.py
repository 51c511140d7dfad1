"""The runner delays inputs with further copies only on a device that these copies keep busy."""

from pathlib import Path

import pytest
from target_commands import Bundles, run_runner, select
from toolchain import library

from diopi_test.execution.ballast import ATTEMPTS, COPY_COUNT

VENDOR = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <diopi/conform_test.h>
#include <diopi/functions.h>

static int copies, waiting;
static void work(void) {
    struct timespec duration = {0, 4000000};
    for (; waiting > 0; waiting--) nanosleep(&duration, NULL);
}
int32_t initLibrary(void) { return 0; }
int32_t finalizeLibrary(void) { return fprintf(stderr, "%d copies", copies) < 0; }
diopiError_t device_make_stream(diopiStreamHandle_t* stream) { *stream = &copies; return diopiSuccess; }
diopiError_t device_destroy_stream(diopiStreamHandle_t stream) { (void)stream; return diopiSuccess; }
diopiError_t device_synchronize_stream(diopiStreamHandle_t stream) { (void)stream; work(); return diopiSuccess; }
void* device_malloc(uint64_t bytes) { return malloc(bytes > 0 ? bytes : 1); }
void device_free(void* memory) { free(memory); }
static diopiError_t copy(void* dst, const void* src, uint64_t bytes) {
    if (bytes > 0) memmove(dst, src, bytes);
    return diopiSuccess;
}
diopiError_t device_memcpy_h2d_async(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    (void)stream;
    return copy(dst, src, bytes);
}
diopiError_t device_memcpy_d2h_async(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    (void)stream;
    return copy(dst, src, bytes);
}
diopiError_t device_memcpy_d2d_async(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    (void)stream;
    copies++;
    waiting++;
    if (IMMEDIATE) work();
    return copy(dst, src, bytes);
}
diopiError_t diopiAbs(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    (void)ctx, (void)out, (void)input;
    return diopiSuccess;
}
"""
"""A vendor whose copies on the device take 4 ms each, when they are enqueued or when the stream is synchronized. It
writes their number to standard error."""


@pytest.mark.parametrize("is_immediate", [True, False], ids=["immediate", "later"])
def test_copies_that_can_not_delay_inputs_are_omitted(
    is_immediate: bool, runner: Path, tmp_path: Path, bundles: Bundles
) -> None:
    cases = bundles(*select(("diopiAbs",)))
    vendor = library(tmp_path, VENDOR, f"-DIMMEDIATE={int(is_immediate)}")
    output = run_runner(runner, cases, vendor, "-o", tmp_path / "results.diopi")
    copies = int(output.split()[0])
    measured = ATTEMPTS * COPY_COUNT
    assert copies == measured if is_immediate else copies > measured, output
