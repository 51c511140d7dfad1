/* What the generated operators share with service.py, which fills in the tables, with describe.c and explain.c. */
#ifndef DIOPI_EXPORTED_H_
#define DIOPI_EXPORTED_H_

#include <diopi/diopirt.h>

#include "host.h"

/* begin declarations */
/* Room for what is told of a call, in numbers: its stream; then of each tensor the address of its first element, how
 * many numbers follow, and these: element type, device, storage offset, the sizes, the strides. */
enum { DIOPI_FACTS_ROOM = 512 };

struct diopi_exported {
    const char* vendor;           /* module:attribute */
    const char* const* operators; /* their names, ended by NULL */
    const function_t* runtime;    /* the functions of diopirt.h in header order; NULL is what the framework lacks */
    function_t* implementations; /* of the operators, which service.py fills in */
    function_t* services;        /* likewise, in the order of their registration */
    void (*fail)(const char* reason);
    int64_t (*describe)(diopiContextHandle_t context, const diopiConstTensorHandle_t* tensors, int64_t count, int64_t* facts);
};
/* end declarations */

#pragma GCC visibility push(hidden)

/* Ask the framework for all facts of a call: how many numbers they are. 0 if a tensor is sparse, an answer is lacking, an
 * error or no shape, or there is no room for so many. */
int64_t describe(diopiContextHandle_t context, const diopiConstTensorHandle_t* tensors, int64_t count, int64_t* facts);

/* Have the vendor's last error, if it has words for it, say why its service of this name failed. */
void explain(const char* service, const char* (*last_error)(void));

#pragma GCC visibility pop

#endif /* DIOPI_EXPORTED_H_ */
