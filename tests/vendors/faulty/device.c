/* A device in host memory. Faults can occur in each of its functions and when the library is loaded or unloaded. */
#include <stdlib.h>
#include <string.h>

#include <diopi/diopi_register.h>

#include "faulty.h"

static const char* last_error = "";

diopiError_t fail(diopiError_t code, const char* reason) {
    last_error = reason;
    return code;
}

static diopiError_t at(const char* place) { return go_wrong(place, true, NULL, 0); }

const char* diopiGetVendorName(void) { return "faulty"; }
const char* diopiGetImplVersion(void) { return "1"; }
const char* diopiGetLastErrorString(void) { return last_error; }

static int32_t create(diopiStreamHandle_t* stream) {
    *stream = (diopiStreamHandle_t)malloc(1);
    return at("create");
}

static int32_t destroy(diopiStreamHandle_t stream) {
    free(stream);
    return at("destroy");
}

static int32_t synchronize(diopiStreamHandle_t stream) {
    (void)stream;
    return at("synchronize");
}

static void* allocate(uint64_t bytes) {
    if (at("malloc") != diopiSuccess) return NULL;
    void* memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) fail(diopiErrorOccurred, "out of memory");
    return memory;
}

static void release(void* memory) {
    at("free");
    free(memory);
}

static int32_t copy(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    (void)stream;
    if (bytes > 0) memmove(dst, src, bytes);
    return go_wrong("copy", true, (char*)dst, bytes);
}

__attribute__((constructor)) static void load(void) { at("constructor"); }
__attribute__((destructor)) static void unload(void) { at("destructor"); }

int32_t initLibrary(void) {
    if (at("initLibrary") != diopiSuccess) return 1;
    if (at("register_create") == diopiSuccess) diopiRegisterStreamCreateFunc(create);
    diopiRegisterStreamDestroyFunc(destroy);
    diopiRegisterSynchronizeStreamFunc(synchronize);
    if (at("register_malloc") == diopiSuccess) diopiRegisterDeviceMallocFunc(allocate);
    diopiRegisterDevMemFreeFunc(release);
    diopiRegisterMemcpyH2DAsyncFunc(copy);
    diopiRegisterMemcpyD2HAsyncFunc(copy);
    diopiRegisterMemcpyD2DAsyncFunc(copy);
    diopiRegisterGetLastErrorFunc(diopiGetLastErrorString);
    return 0;
}

int32_t finalizeLibrary(void) { return at("finalizeLibrary"); }
