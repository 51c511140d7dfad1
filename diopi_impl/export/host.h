/* What the generated functions need of host.c, and what both share with the service in Python. */
#ifndef DIOPI_HOST_H_
#define DIOPI_HOST_H_

#include <stdbool.h>

typedef void (*function_t)(void);

/* begin declarations */
struct diopi_exported {
    const char* vendor;           /* module:attribute */
    const char* const* operators; /* their names, ended by NULL */
    const function_t* runtime;    /* the functions of diopirt.h in header order; NULL is what the framework lacks */
    function_t* implementations; /* of the operators, which service.py fills in */
    function_t* services;        /* likewise, in the order of their registration */
    void (*fail)(const char* reason);
};
/* end declarations */

/* The module that serves the library, and the tables its function `serve` is given the address of; generated. */
extern const char python_service[];
extern const void* const served;

/* Where Python is, and where it finds its modules; generated. */
extern const char python_version[];      /* "3.11" */
extern const char python_library[];      /* path of libpython3.11.so.1.0; empty: Python was built without one */
extern const wchar_t python_home[];      /* sys.base_prefix */
extern const char python_landmark[];     /* a file of the standard library */
extern const char* const python_paths[]; /* sys.path, ended by NULL */

/* Whether the implementations can be called; if not, the last error says why. */
bool ready(void);

/* Set the last error of this thread. */
void fail(const char* reason);

/* The last error of this thread. */
const char* last_failure(void);

#endif /* DIOPI_HOST_H_ */
