/* The last error of each thread. */
#include <stdarg.h>
#include <stdio.h>

#include "runtime.h"

static DIOPIRT_THREAD_LOCAL diopiError_t last_code = diopiSuccess;
static DIOPIRT_THREAD_LOCAL char text[ERROR_BYTES];

diopiError_t fail(diopiError_t code, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    last_code = code;
    return code;
}

const char* diopirt_last_error(void) { return text; }

diopiError_t diopirt_last_code(void) { return last_code; }
