/* The functions of host.c that the generated functions call, and the data that they provide. */
#ifndef DIOPI_HOST_H_
#define DIOPI_HOST_H_

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

/* Set the last error of this thread. */
void fail(const char* reason);

/* Return the last error of this thread. */
const char* last_failure(void);

#pragma GCC visibility pop

#endif /* DIOPI_HOST_H_ */
