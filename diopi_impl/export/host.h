/* What the generated functions need of host.c. */
#ifndef DIOPI_HOST_H_
#define DIOPI_HOST_H_

#include <stdbool.h>
#include <wchar.h>

typedef void (*function_t)(void);

/* Each library has these for itself: a process may load several, and must not bind one to the tables of another. */
#pragma GCC visibility push(hidden)

/* What the library gives access to ("the vendor"), the module that serves it, and the tables its function `serve` is given
 * the address of; generated. */
extern const char what_is_served[];
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

#pragma GCC visibility pop

#endif /* DIOPI_HOST_H_ */
