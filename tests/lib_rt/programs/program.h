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

/* Return a device with all services; NULL if it can't be created. */
diopirt_device_t open_device(void);

/* Whether the service that is called must fail. Each program defines it. */
bool fault(void);

/* Number of streams and blocks of memory that the vendor has created and that were not released. */
int live_count(void);

#endif /* PROGRAM_H_ */
