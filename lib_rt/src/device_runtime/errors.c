/* The text of a thread's last error, and errors of asynchronous work until a call reports them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime.h"

static _Thread_local char error_text[512];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char asynchronous_error[256];

int32_t fail(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error_text, sizeof error_text, format, arguments);
    va_end(arguments);
    return DIPU_EXCEPTION;
}

const char* last_error_text(void) { return error_text; }

void store_asynchronous_error(const char* text) {
    pthread_mutex_lock(&lock);
    if (asynchronous_error[0] == '\0') snprintf(asynchronous_error, sizeof asynchronous_error, "%s", text);
    pthread_mutex_unlock(&lock);
}

int32_t report_asynchronous_error(const char* function) {
    char text[sizeof asynchronous_error];
    pthread_mutex_lock(&lock);
    memcpy(text, asynchronous_error, sizeof text);
    asynchronous_error[0] = '\0';
    pthread_mutex_unlock(&lock);
    return text[0] == '\0' ? DIPU_SUCCESS : fail("%s: asynchronous work failed: %s", function, text);
}

int32_t check_last_error(void) { return report_asynchronous_error("checkLastError"); }
