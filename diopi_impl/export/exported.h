/* What the generated operators share with service.py, which fills in the tables, and with describe.c. */
#ifndef DIOPI_EXPORTED_H_
#define DIOPI_EXPORTED_H_

#include <diopi/diopirt.h>

#include "host.h"

/* begin declarations */
struct diopi_tensor_facts {
    diopiDtype_t dtype;
    diopiDevice_t device;
    diopiSize_t shape, strides;
    int64_t storage_offset;
    const void* data; /* the first element */
};

struct diopi_exported {
    const char* vendor;           /* module:attribute */
    const char* const* operators; /* their names, ended by NULL */
    const function_t* runtime;    /* the functions of diopirt.h in header order; NULL is what the framework lacks */
    function_t* implementations; /* of the operators, which service.py fills in */
    function_t* services;        /* likewise, in the order of their registration */
    void (*fail)(const char* reason);
    bool (*describe)(diopiConstTensorHandle_t tensor, struct diopi_tensor_facts* facts);
};
/* end declarations */

#pragma GCC visibility push(hidden)

/* Ask the framework for the facts of a dense tensor; false if it is sparse, or an answer is lacking or an error. */
bool describe(diopiConstTensorHandle_t tensor, struct diopi_tensor_facts* facts);

#pragma GCC visibility pop

#endif /* DIOPI_EXPORTED_H_ */
