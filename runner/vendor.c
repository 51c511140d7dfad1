/* Load the vendor's library, find its functions, and let it register its device. */
#include "vendor.h"

#include <stdlib.h>
#include <string.h>

#ifndef DIOPI_RUNNER_STATIC
#include <dlfcn.h>
#endif

#ifdef DIOPI_RUNNER_STATIC
#define LINKED(name) ((function_t)(name))
DIOPI_WEAK int32_t initLibrary(void);
DIOPI_WEAK int32_t finalizeLibrary(void);
#else
#define LINKED(name) NULL
#endif

/* The functions of the standard, sorted by name after `vendor_load`. */
#define ENTRY(name, count, call) {#name, count, call, LINKED(name)},
static struct operator_entry operators[] = {DIOPIRT_CALLS(ENTRY)};
enum { OPERATOR_COUNT = sizeof operators / sizeof *operators };

/* Compare two entries by name, for qsort and bsearch. */
static int compare(const void* first, const void* second) {
    return strcmp(((const struct operator_entry*)first)->name, ((const struct operator_entry*)second)->name);
}

const struct operator_entry* vendor_operator(const char* name, size_t length) {
    char text[128];
    if (length >= sizeof text) return NULL;
    memcpy(text, name, length);
    text[length] = '\0';
    struct operator_entry wanted = {.name = text};
    return bsearch(&wanted, operators, OPERATOR_COUNT, sizeof *operators, compare);
}

#ifdef DIOPI_RUNNER_STATIC

/* Return the function of the library with this name; NULL if the library does not have it. */
static function_t find(const char* name) {
    static const struct {
        const char* name;
        function_t function;
    } functions[] = {
        {"initLibrary", LINKED(initLibrary)},
        {"finalizeLibrary", LINKED(finalizeLibrary)},
        {"diopiGetVendorName", LINKED(diopiGetVendorName)},
        {"diopiGetImplVersion", LINKED(diopiGetImplVersion)},
        {"diopiGetLastErrorString", LINKED(diopiGetLastErrorString)},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(functions[i].name, name) == 0) return functions[i].function;
    }
    return NULL;
}

/* Return whether no path was passed, because the library is linked into the program; complain otherwise. */
static bool open_library(const char* path) {
    if (path == NULL) return true;
    complain("this runner contains its vendor and loads no library; leave out %s", path);
    return false;
}

#else

static void* library;

/* Return the function of the library with this name; NULL if the library does not have it. */
static function_t find(const char* name) {
    function_t function = NULL;
    void* symbol = dlsym(library, name);
    memcpy(&function, &symbol, sizeof function);
    return function;
}

/* Load the library and look up its functions; return false after a complaint. */
static bool open_library(const char* path) {
    if (path == NULL) {
        complain("the path of the vendor's library is missing");
        return false;
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        complain("vendor %s can't be loaded: %s", path, dlerror());
        return false;
    }
    for (int i = 0; i < OPERATOR_COUNT; i++) operators[i].function = find(operators[i].name);
    return true;
}

#endif

/* Register the functions with well-known names; initLibrary may register others. */
static void register_well_known(diopirt_device_t device) {
    static const char* const names[diopirt_service_count] = {
        [diopirt_stream_create_service] = "device_make_stream",
        [diopirt_stream_destroy_service] = "device_destroy_stream",
        [diopirt_stream_sync_service] = "device_synchronize_stream",
        [diopirt_malloc_service] = "device_malloc",
        [diopirt_free_service] = "device_free",
        [diopirt_h2d_service] = "device_memcpy_h2d_async",
        [diopirt_d2h_service] = "device_memcpy_d2h_async",
        [diopirt_d2d_service] = "device_memcpy_d2d_async",
        [diopirt_last_error_service] = "diopiGetLastErrorString",
    };
    for (int service = 0; service < diopirt_service_count; service++) {
        function_t function = find(names[service]);
        if (function != NULL) diopirt_device_exchange(device, service, function, NULL);
    }
}

/* Return the text that a function of the library returns; NULL if the library does not have the function. */
static const char* query(const char* name) {
    function_t function = find(name);
    return function != NULL ? ((const char* (*)(void))function)() : NULL;
}

bool vendor_load(struct vendor* vendor, const char* path) {
    qsort(operators, OPERATOR_COUNT, sizeof *operators, compare);
    if (!open_library(path)) return false;
    if (diopirt_device_create(&vendor->device) != diopiSuccess || diopirt_device_use(vendor->device) != diopiSuccess) {
        complain("no device can be created: %s", diopirt_last_error());
        return false;
    }
    vendor->last_error = (const char* (*)(void))find("diopiGetLastErrorString");
    register_well_known(vendor->device);
    function_t initialize = find("initLibrary");
    int32_t code = initialize != NULL ? ((int32_t(*)(void))initialize)() : 0;
    if (code != 0) complain("the vendor's initLibrary returned %d; 0 is expected", (int)code);
    return code == 0;
}

void vendor_describe(struct output* output) {
    const char *name = query("diopiGetVendorName"), *version = query("diopiGetImplVersion");
    int64_t count = 0;
    for (int i = 0; i < OPERATOR_COUNT; i++) count += operators[i].function != NULL;
    begin_record(output, "VEND");
    put_text(output, name != NULL ? name : "unknown");
    put_text(output, version != NULL ? version : "unknown");
    put_number(output, count);
    for (int i = 0; i < OPERATOR_COUNT; i++) {
        if (operators[i].function != NULL) put_text(output, operators[i].name);
    }
    end_record(output);
}

bool vendor_finish(struct vendor* vendor) {
    diopirt_device_destroy(vendor->device);
    function_t finalize = find("finalizeLibrary");
    int32_t code = finalize != NULL ? ((int32_t(*)(void))finalize)() : 0;
    if (code != 0) complain("the vendor's finalizeLibrary returned %d; 0 is expected", (int)code);
    return code == 0;
}
