/* Sets the library's last error to the vendor's text about a failed service. */
#include <stdio.h>

#include "exported.h"

void explain(const char* service, const char* (*last_error)(void)) {
    const char* reason = last_error != NULL ? last_error() : NULL;
    char text[1024];
    snprintf(text, sizeof text, "%s: %s", service, reason != NULL ? reason : "the vendor gives no reason");
    fail(text);
}
