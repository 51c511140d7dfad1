/* The vendor's library: its functions, and the device that it registers. */
#ifndef RUNNER_VENDOR_H_
#define RUNNER_VENDOR_H_

#include "diopirt/calls.h"
#include "diopirt_private.h"
#include "files.h"

typedef void (*function_t)(void);

struct operator_entry {
    const char* name;
    int argument_count; /* without the context */
    diopirt_call_t call;
    function_t function; /* NULL if the library does not have it */
};

enum { MAX_ARGUMENTS = 64 };

struct vendor {
    diopirt_device_t device;
    const char* (*last_error)(void);
};

/* Load the library at `path`, which is NULL if the library is linked into the program; return false after a
 * complaint. */
bool vendor_load(struct vendor* vendor, const char* path);
/* Return the entry of a standard function; NULL if there is no such function. */
const struct operator_entry* vendor_operator(const char* name, size_t length);
/* Append the record that describes the vendor. */
void vendor_describe(struct output* output);
/* Let the library finish; return false after a complaint. */
bool vendor_finish(struct vendor* vendor);

#endif /* RUNNER_VENDOR_H_ */
