/* The declarations that the generated operators share with service.py, which fills in the tables, and with describe.c
 * and explain.c. */
#ifndef DIOPI_EXPORTED_H_
#define DIOPI_EXPORTED_H_

#include <diopi/diopirt.h>

#include "host.h"

/* begin declarations */
enum { DIOPI_TENSORS_ROOM = 64, DIOPI_LAYOUTS_ROOM = 512 };

/* The stream and the tensors of a call, in parameter order. C queries them from the framework before entering Python. */
struct diopi_call_description {
    int64_t tensors;                            /* their number; -1 if a tensor can't be described or does not fit */
    uint64_t addresses[1 + DIOPI_TENSORS_ROOM]; /* the stream's handle, then each tensor's first element */
    int64_t length;                             /* the number of values in `layouts` */
    int64_t layouts[DIOPI_LAYOUTS_ROOM];        /* per tensor: axes, element type, device, offset, sizes, strides */
};

struct diopi_exported {
    const char* vendor;           /* module:attribute */
    const char* const* operators; /* the names of the operators, terminated by NULL */
    const function_t* runtime;    /* the functions of diopirt.h in header order; NULL for a missing function */
    function_t* implementations;  /* one per operator, from service.py; their last parameter is the call description */
    function_t* services;         /* the vendor's runtime functions in the order of registration, from service.py */
    void (*fail)(const char* reason);
};
/* end declarations */

#pragma GCC visibility push(hidden)

/* Call `describe_context` first, then one of the others for each tensor or array of tensors. NULL tensors are skipped.
 * A tensor can't be described if it is sparse, or if one of the framework's functions is missing or fails. */
void describe_context(struct diopi_call_description* description, diopiContextHandle_t context);
void describe_tensor(struct diopi_call_description* description, diopiConstTensorHandle_t tensor);
void describe_tensors(struct diopi_call_description* description, const diopiConstTensorHandle_t* tensors,
                      int64_t count);

/* Set this thread's last error to the vendor's reason why the named service failed, if the vendor gives a reason. */
void explain(const char* service, const char* (*last_error)(void));

#pragma GCC visibility pop

#endif /* DIOPI_EXPORTED_H_ */
