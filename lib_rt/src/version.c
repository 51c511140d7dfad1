/* The version of the interface, as text. */
#include "runtime.h"

#define TEXT(number) #number
#define DOTTED(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char* diopiGetVersion(void) { return DOTTED(DIOPI_VERSION_MAJOR, DIOPI_VERSION_MINOR, DIOPI_VERSION_PATCH); }
