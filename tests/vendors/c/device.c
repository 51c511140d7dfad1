/* A device in host memory that works synchronously and is registered with the runtime when the library starts. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <diopi/diopi_register.h>

#include "example.h"

static _Thread_local char last_error[256];

diopiError_t fail(diopiError_t code, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return code;
}

const char* diopiGetVendorName(void) { return "example_c"; }
const char* diopiGetImplVersion(void) { return "1.2.3"; }
const char* diopiGetLastErrorString(void) { return last_error; }

static int32_t create(diopiStreamHandle_t* stream) {
    *stream = malloc(1);
    return *stream == NULL;
}

static int32_t destroy(diopiStreamHandle_t stream) {
    free(stream);
    return 0;
}

static int32_t synchronize(diopiStreamHandle_t stream) {
    (void)stream;
    return 0;
}

static void* allocate(uint64_t bytes) {
    void* memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) fail(diopiErrorOccurred, "out of memory: %llu bytes", (unsigned long long)bytes);
    return memory;
}

static int32_t copy(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    (void)stream;
    if (bytes > 0) memmove(dst, src, bytes);
    return 0;
}

static int starts; /* the library is started once however many devices are opened */

int32_t initLibrary(void) {
    if (starts++ > 0) return fail(diopiErrorOccurred, "the library is started already");
    diopiRegisterStreamCreateFunc(create);
    diopiRegisterStreamDestroyFunc(destroy);
    diopiRegisterSynchronizeStreamFunc(synchronize);
    diopiRegisterDeviceMallocFunc(allocate);
    diopiRegisterDevMemFreeFunc(free);
    diopiRegisterMemcpyH2DAsyncFunc(copy);
    diopiRegisterMemcpyD2HAsyncFunc(copy);
    diopiRegisterMemcpyD2DAsyncFunc(copy);
    diopiRegisterGetLastErrorFunc(diopiGetLastErrorString);
    return 0;
}

int32_t finalizeLibrary(void) { return --starts; }
