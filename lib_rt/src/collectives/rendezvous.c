/* How the ranks of a communicator find each other. The process that creates the unique id serves a meeting point, where
 * each rank leaves its address and learns those of the others. Then each pair of ranks connects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../device_runtime/runtime.h"
#include "collectives.h"

#define HOST_BYTES 40 /* of the text that identifies a machine */

/* What a rank tells at the meeting point. */
struct arrival {
    uint64_t key;
    int32_t rank, ranks;
    uint32_t address;
    uint16_t port;
    char host[HOST_BYTES];
};

/* What a rank tells another rank. */
struct greeting {
    uint64_t key;
    int32_t rank;
};

struct meeting {
    struct meeting_point point;
    int listener;
    int64_t deadline;
    int32_t ranks, arrived;
    int sockets[MAX_RANKS];
    struct arrival arrivals[MAX_RANKS];
    char error[TEXT_BYTES];
};

/* Enter a rank that has arrived; state an error of the whole meeting if its arguments do not fit the others. */
static void enter(struct meeting* meeting, int socket, const struct arrival* arrival) {
    if (meeting->ranks == 0) meeting->ranks = arrival->ranks;
    if (arrival->ranks != meeting->ranks) {
        snprintf(meeting->error, TEXT_BYTES, "rank %d expects %d ranks, and another rank expects %d", arrival->rank,
                 arrival->ranks, meeting->ranks);
    } else if (meeting->sockets[arrival->rank] >= 0) {
        snprintf(meeting->error, TEXT_BYTES, "there are two ranks %d", arrival->rank);
    } else {
        meeting->sockets[arrival->rank] = socket;
        meeting->arrivals[arrival->rank] = *arrival;
        meeting->arrived++;
        return;
    }
    send_bytes(socket, meeting->error, TEXT_BYTES, meeting->deadline);
    close(socket);
}

static void await_ranks(struct meeting* meeting) {
    while (meeting->error[0] == '\0' && (meeting->ranks == 0 || meeting->arrived < meeting->ranks)) {
        struct arrival arrival;
        int socket = accept_connection(meeting->listener, meeting->deadline);
        if (socket < 0) {
            int missing = 0;
            while (missing < meeting->ranks && meeting->sockets[missing] >= 0) missing++;
            snprintf(meeting->error, TEXT_BYTES, "rank %d did not arrive within the time limit", missing);
        } else if (receive_bytes(socket, &arrival, sizeof arrival, meeting->deadline) &&
                   arrival.key == meeting->point.key && arrival.ranks <= MAX_RANKS && arrival.rank >= 0 &&
                   arrival.rank < arrival.ranks) {
            enter(meeting, socket, &arrival);
        } else {
            close(socket);
        }
    }
}

static void* serve(void* argument) {
    struct meeting* meeting = argument;
    await_ranks(meeting);
    int64_t deadline = now() + time_limit();
    for (int rank = 0; rank < MAX_RANKS; rank++) {
        int socket = meeting->sockets[rank];
        if (socket < 0) continue;
        send_bytes(socket, meeting->error, TEXT_BYTES, deadline);
        if (meeting->error[0] == '\0') {
            send_bytes(socket, meeting->arrivals, (size_t)meeting->ranks * sizeof *meeting->arrivals, deadline);
        }
        close(socket);
    }
    close(meeting->listener);
    free(meeting);
    return NULL;
}

static bool fill_random(void* bytes, size_t count) {
    FILE* file = fopen("/dev/urandom", "rb");
    bool is_filled = file != NULL && fread(bytes, count, 1, file) == 1;
    if (file != NULL) fclose(file);
    return is_filled;
}

int32_t create_meeting_point(struct meeting_point* point) {
    struct meeting* meeting = calloc(1, sizeof *meeting);
    if (meeting == NULL) return fail("diclGetUniqueId: out of memory");
    for (int rank = 0; rank < MAX_RANKS; rank++) meeting->sockets[rank] = -1;
    meeting->point.address = own_address();
    meeting->listener = open_listener(meeting->point.address, &meeting->point.port);
    meeting->deadline = now() + time_limit();
    bool is_ready = meeting->listener >= 0 && fill_random(&meeting->point.key, sizeof meeting->point.key);
    *point = meeting->point;
    pthread_t thread;
    if (is_ready && pthread_create(&thread, NULL, serve, meeting) == 0) {
        pthread_detach(thread);
        return DIPU_SUCCESS;
    }
    if (meeting->listener >= 0) close(meeting->listener);
    free(meeting);
    return fail("diclGetUniqueId: a socket can't be opened at the address of DIOPI_COLLECTIVES_ADDRESS");
}

/* Get a text that is the same in all processes of a machine until it is restarted. */
static void identify_host(char* host) {
    memset(host, 0, HOST_BYTES);
    FILE* file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file != NULL && fgets(host, HOST_BYTES, file) == NULL) host[0] = '\0';
    if (file != NULL) fclose(file);
}

/* Meet the other ranks and get their addresses; return false with an error if this fails. */
static bool meet(struct communicator* comm, const struct meeting_point* point, const struct arrival* own,
                 struct arrival* all, int64_t deadline, char* error) {
    snprintf(error, TEXT_BYTES, "the process of the unique id does not answer");
    int socket = open_connection(point->address, point->port, deadline);
    if (socket < 0) return false;
    char answer[TEXT_BYTES];
    bool is_done = send_bytes(socket, own, sizeof *own, deadline);
    is_done = is_done && receive_bytes(socket, answer, TEXT_BYTES, deadline);
    if (is_done && answer[0] != '\0') {
        memcpy(error, answer, TEXT_BYTES);
        is_done = false;
    }
    is_done = is_done && receive_bytes(socket, all, (size_t)comm->ranks * sizeof *all, deadline);
    close(socket);
    return is_done;
}

static bool connect_to(struct communicator* comm, int32_t rank, const struct arrival* arrival, int64_t deadline) {
    struct link* link = &comm->links[rank];
    struct greeting greeting = {.key = arrival->key, .rank = comm->rank};
    link->socket = open_connection(arrival->address, arrival->port, deadline);
    return link->socket >= 0 && send_bytes(link->socket, &greeting, sizeof greeting, deadline) &&
           link_accept_rings(link, deadline);
}

/* Accept the connection of a higher rank; strangers are turned away. */
static bool accept_from(struct communicator* comm, int listener, const struct arrival* all, int64_t deadline) {
    for (;;) {
        struct greeting greeting;
        int socket = accept_connection(listener, deadline);
        if (socket < 0) return false;
        if (receive_bytes(socket, &greeting, sizeof greeting, deadline) && greeting.key == all[0].key &&
            greeting.rank > comm->rank && greeting.rank < comm->ranks && comm->links[greeting.rank].socket < 0) {
            bool is_near = memcmp(all[greeting.rank].host, all[comm->rank].host, HOST_BYTES) == 0;
            comm->links[greeting.rank].socket = socket;
            return link_offer_rings(&comm->links[greeting.rank], is_near && uses_shared_memory(), deadline);
        }
        close(socket);
    }
}

/* Connect the communicator with all other ranks. Each rank connects to lower ranks and accepts higher ones. */
bool connect_ranks(struct communicator* comm, const struct meeting_point* point, char* error) {
    struct arrival own = {.key = point->key, .rank = comm->rank, .ranks = comm->ranks, .address = own_address()};
    struct arrival* all = calloc((size_t)comm->ranks, sizeof *all);
    int64_t deadline = now() + comm->limit;
    int listener = open_listener(own.address, &own.port);
    identify_host(own.host);
    bool is_done = all != NULL && listener >= 0 && meet(comm, point, &own, all, deadline, error);
    if (is_done) snprintf(error, TEXT_BYTES, "another rank does not connect within the time limit");
    for (int32_t rank = 0; is_done && rank < comm->rank; rank++) is_done = connect_to(comm, rank, &all[rank], deadline);
    for (int32_t rank = comm->rank + 1; is_done && rank < comm->ranks; rank++) {
        is_done = accept_from(comm, listener, all, deadline);
    }
    if (listener >= 0) close(listener);
    free(all);
    return is_done;
}
