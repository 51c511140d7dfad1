/* What the generated operators share with service.py, which fills in the tables, with describe.c and explain.c. */
#ifndef DIOPI_EXPORTED_H_
#define DIOPI_EXPORTED_H_

#include <diopi/diopirt.h>

#include "host.h"

/* begin declarations */
enum { DIOPI_FORM_ROOM = 67 };

struct diopi_tensor_facts {
    uintptr_t data; /* address of the first element */
    int64_t length; /* of what follows: element type, device, storage offset, the sizes, the strides */
    int64_t form[DIOPI_FORM_ROOM];
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

/* Ask the framework for the facts of a dense tensor; false if it is sparse, an answer is lacking, an error or no shape,
 * or there is no room for so many axes. */
bool describe(diopiConstTensorHandle_t tensor, struct diopi_tensor_facts* facts);

/* Have the vendor's last error, if it has words for it, say why its service of this name failed. */
void explain(const char* service, const char* (*last_error)(void));

#pragma GCC visibility pop

#endif /* DIOPI_EXPORTED_H_ */
