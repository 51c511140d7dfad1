/* The functions of host.c that the generated functions call, and the data that they provide. */
#ifndef DIOPI_HOST_H_
#define DIOPI_HOST_H_

#include <fenv.h>
#include <stdbool.h>
#include <wchar.h>

typedef void (*function_t)(void);

/* Hidden symbols: a process may load several libraries, and no library may bind to the tables of another one. */
#pragma GCC visibility push(hidden)

/* What the library gives access to, for messages ("the vendor"); the Python module that fills the tables; the tables,
 * whose address the function `serve` of the module receives. Generated. */
extern const char service_description[];
extern const char python_service[];
extern const void* const service_tables;

/* The location of Python and of its modules; generated. */
extern const char python_version[];      /* such as "3.11" */
extern const char python_library[];      /* path of libpython3.11.so.1.0; empty if Python was built without it */
extern const wchar_t python_home[];      /* sys.base_prefix */
extern const char python_landmark[];     /* a file of the standard library */
extern const char* const python_paths[]; /* sys.path, terminated by NULL */

/* Return whether the implementations can be called; if not, the last error contains the reason. */
bool ready(void);

/* Store the floating-point environment of the thread, and set the default one: no traps, rounding to nearest, and
 * subnormal numbers kept. */
void set_default_arithmetic(fenv_t* saved);

/* Set the environment that the thread had; exceptions that were raised in between are discarded. */
void restore_arithmetic(const fenv_t* saved);

/* A statement after which the thread computes in the default floating-point environment until the block ends. */
#define USE_DEFAULT_ARITHMETIC                                             \
    __attribute__((cleanup(restore_arithmetic))) fenv_t saved_environment; \
    set_default_arithmetic(&saved_environment)

/* Set the last error of this thread. */
void fail(const char* reason);

/* Return the last error of this thread. */
const char* last_failure(void);

#pragma GCC visibility pop

#endif /* DIOPI_HOST_H_ */
