/* Functions of the faulty vendor. Its sources compile as C and as C++, in which they can throw exceptions.
 *
 * DIOPI_TEST_FAULT specifies faults, for example "diopiSin=segfault,diopiCos=hang*,malloc=fail": each entry is a place
 * and one of the faults in faults.c. In an operator, the fault occurs if an input has a NaN whose sign bit is 0, which is only
 * in the case float32-special of each operator, or with a star in every call. In a function of device.c, it always
 * occurs. Without the variable, no fault occurs. */
#ifndef FAULTY_H
#define FAULTY_H

#include <diopi/functions.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Store the text of an error for diopiGetLastErrorString, and return its code. */
diopiError_t fail(diopiError_t code, const char* reason);

/* Execute the fault that DIOPI_TEST_FAULT specifies for `place`, if any, after `bytes` of `memory` were written. */
diopiError_t go_wrong(const char* place, bool is_special, char* memory, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
