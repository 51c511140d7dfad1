// A device in host memory that works synchronously, with the well-known names.
#include <diopi/conform_test.h>

#include <cstdlib>
#include <cstring>

#include "example.hpp"

static thread_local std::string lastError;

diopiError_t noteFailure(const char* function, diopiError_t code, const std::string& reason) {
    lastError = std::string(function) + ": " + reason;
    return code;
}

const char* diopiGetVendorName() { return "example_cpp"; }
const char* diopiGetImplVersion() { return "0.9"; }
const char* diopiGetLastErrorString() { return lastError.c_str(); }

int32_t initLibrary() { return 0; }
int32_t finalizeLibrary() { return 0; }

diopiError_t device_make_stream(diopiStreamHandle_t* stream) {
    *stream = new char;
    return diopiSuccess;
}

diopiError_t device_destroy_stream(diopiStreamHandle_t stream) {
    delete static_cast<char*>(stream);
    return diopiSuccess;
}

diopiError_t device_synchronize_stream(diopiStreamHandle_t) { return diopiSuccess; }

void* device_malloc(uint64_t bytes) {
    void* memory = std::malloc(bytes > 0 ? bytes : 1);
    if (memory == nullptr) noteFailure("device_malloc", diopiErrorOccurred, "out of memory");
    return memory;
}

void device_free(void* memory) { std::free(memory); }

static diopiError_t copy(void* dst, const void* src, uint64_t bytes) {
    if (bytes > 0) std::memmove(dst, src, bytes);
    return diopiSuccess;
}

diopiError_t device_memcpy_h2d_async(diopiStreamHandle_t, void* dst, const void* src, uint64_t bytes) {
    return copy(dst, src, bytes);
}

diopiError_t device_memcpy_d2h_async(diopiStreamHandle_t, void* dst, const void* src, uint64_t bytes) {
    return copy(dst, src, bytes);
}

diopiError_t device_memcpy_d2d_async(diopiStreamHandle_t, void* dst, const void* src, uint64_t bytes) {
    return copy(dst, src, bytes);
}
