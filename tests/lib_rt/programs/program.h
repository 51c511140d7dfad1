/* What the test programs of the runtime share: a device in host memory, each stream of which is a thread. */
#ifndef PROGRAM_H_
#define PROGRAM_H_

#include <stdio.h>
#include <stdlib.h>

#include "diopirt_private.h"

#define CHECK(condition)                                                                                          \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, diopirt_last_error());             \
            exit(3);                                                                                              \
        }                                                                                                         \
    } while (0)

/* A device with all services; NULL if it can't be made. */
diopirt_device_t open_device(void);

/* Whether the service that is called is to fail; each program has its own answer. */
bool fault(void);

/* Number of streams and pieces of memory the vendor has given and not got back. */
int given(void);

#endif /* PROGRAM_H_ */
