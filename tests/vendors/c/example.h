/* What the two files of the example vendor share. */
#ifndef EXAMPLE_H_
#define EXAMPLE_H_

#include <diopi/functions.h>
#include <diopi/functions_sparse.h>

/* Note why a call failed, for diopiGetLastErrorString, and return `code`. */
diopiError_t fail(diopiError_t code, const char* format, ...) __attribute__((format(printf, 2, 3)));

#endif /* EXAMPLE_H_ */
