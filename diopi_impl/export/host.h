/* What the generated operators need of host.c, and what both share with service.py. */
#ifndef DIOPI_HOST_H_
#define DIOPI_HOST_H_

#include <stdbool.h>

#include <diopi/diopirt.h>

typedef void (*function_t)(void);

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

extern const struct diopi_exported exported; /* generated */

/* Where Python is, and where it finds its modules; generated. */
extern const char python_version[];      /* "3.11" */
extern const char python_library[];      /* path of libpython3.11.so.1.0; empty: Python was built without one */
extern const wchar_t python_home[];      /* sys.base_prefix */
extern const char python_landmark[];     /* a file of the standard library */
extern const char* const python_paths[]; /* sys.path, ended by NULL */

/* Whether the implementations can be called; if not, the last error says why. */
bool ready(void);

/* Ask the framework for the facts of a dense tensor; false if it is sparse, or an answer is lacking or an error. */
bool describe(diopiConstTensorHandle_t tensor, struct diopi_tensor_facts* facts);

/* Set the last error of this thread. */
void fail(const char* reason);

#endif /* DIOPI_HOST_H_ */
