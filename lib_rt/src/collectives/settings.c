/* The environment variables of the collectives, which are read when a communicator is created. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives.h"

#define DEFAULT_SECONDS 600.0

int64_t time_limit(void) {
    const char* text = getenv("DICL_TIMEOUT");
    char* end = NULL;
    double seconds = text != NULL ? strtod(text, &end) : DEFAULT_SECONDS;
    if (text != NULL && (end == text || *end != '\0' || !(seconds > 0 && seconds < 1e9))) {
        fprintf(stderr, "DICL_TIMEOUT is %s, expected a positive number of seconds; using %g\n", text, DEFAULT_SECONDS);
        seconds = DEFAULT_SECONDS;
    }
    return (int64_t)(seconds * 1e9);
}

bool uses_shared_memory(void) {
    const char* text = getenv("DIOPI_COLLECTIVES_TRANSPORT");
    if (text == NULL || strcmp(text, "shm") == 0) return true;
    if (strcmp(text, "tcp") != 0) {
        fprintf(stderr, "DIOPI_COLLECTIVES_TRANSPORT is %s, expected shm or tcp; using shm\n", text);
        return true;
    }
    return false;
}

/* Return the IPv4 address at which other processes reach this one, in network byte order. */
uint32_t own_address(void) {
    const char* text = getenv("DIOPI_COLLECTIVES_ADDRESS");
    struct in_addr address = {htonl(INADDR_LOOPBACK)};
    if (text != NULL && inet_pton(AF_INET, text, &address) != 1) {
        fprintf(stderr, "DIOPI_COLLECTIVES_ADDRESS is %s, expected an IPv4 address; using 127.0.0.1\n", text);
        address.s_addr = htonl(INADDR_LOOPBACK);
    }
    return address.s_addr;
}
