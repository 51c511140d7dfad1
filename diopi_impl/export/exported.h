/* What the generated operators share with service.py, which fills in the tables, with tell.c and explain.c. */
#ifndef DIOPI_EXPORTED_H_
#define DIOPI_EXPORTED_H_

#include <diopi/diopirt.h>

#include "host.h"

/* begin declarations */
enum { DIOPI_TENSORS_ROOM = 64, DIOPI_LAYOUTS_ROOM = 512 };

/* What the framework tells of a call before Python is entered, in the order of its parameters. */
struct diopi_told {
    int64_t tensors;                            /* how many there are; -1: some can't be told, or there is no room */
    uint64_t addresses[1 + DIOPI_TENSORS_ROOM]; /* the stream's handle; then of each tensor its first element */
    int64_t length;                             /* how many numbers follow */
    int64_t layouts[DIOPI_LAYOUTS_ROOM];        /* of each: axes, element type, device, storage offset, sizes, strides */
};

struct diopi_exported {
    const char* vendor;           /* module:attribute */
    const char* const* operators; /* their names, ended by NULL */
    const function_t* runtime;    /* the functions of diopirt.h in header order; NULL is what the framework lacks */
    function_t* implementations; /* of the operators, which service.py fills in; they take what was told as well */
    function_t* services;        /* likewise, in the order of their registration */
    void (*fail)(const char* reason);
};
/* end declarations */

#pragma GCC visibility push(hidden)

/* Begin `told` with the stream of the context; then tell each tensor, or array of them, that is not NULL. A tensor can't
 * be told if it is sparse, or an answer is lacking, an error or no shape. */
void tell_context(struct diopi_told* told, diopiContextHandle_t context);
void tell_tensor(struct diopi_told* told, diopiConstTensorHandle_t tensor);
void tell_tensors(struct diopi_told* told, const diopiConstTensorHandle_t* tensors, int64_t count);

/* Have the vendor's last error, if it has words for it, say why its service of this name failed. */
void explain(const char* service, const char* (*last_error)(void));

#pragma GCC visibility pop

#endif /* DIOPI_EXPORTED_H_ */
