/* Functions that both files of the example vendor use. */
#ifndef EXAMPLE_H_
#define EXAMPLE_H_

#include <diopi/functions.h>
#include <diopi/functions_sparse.h>

/* Store the reason of a failure for diopiGetLastErrorString, and return `code`. */
diopiError_t fail(diopiError_t code, const char* format, ...) __attribute__((format(printf, 2, 3)));

#endif /* EXAMPLE_H_ */
