/* What the parts of the faulty vendor share. Its sources are C and C++ alike: compiled as C++ they can throw, too.
 *
 * DIOPI_TEST_FAULT says what goes wrong and where, as "diopiSin=segfault,diopiCos=hang*,malloc=fail": a place and one of
 * the faults in faults.c. A place is an operator, where the fault comes with an input that holds a NaN (the case
 * float32-special of every operator, and no other), or with a star in every call; or it is one of device.c, where the
 * fault always comes. Without the variable nothing goes wrong. */
#ifndef FAULTY_H
#define FAULTY_H

#include <diopi/functions.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Note an error's text for diopiGetLastErrorString, and return its code. */
diopiError_t fail(diopiError_t code, const char* reason);

/* Let what DIOPI_TEST_FAULT has for `place` happen to the `bytes` of `memory` that were just written, if any. */
diopiError_t go_wrong(const char* place, bool is_special, char* memory, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
