/* Links between two ranks: rings in shared memory, or a socket. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../device_runtime/runtime.h"
#include "collectives.h"

#define RING_BYTES (256 << 10)
#define NAME_BYTES 64
#define YIELDS 50 /* attempts before a waiting thread sleeps */

/* A queue of bytes with one writer and one reader, in different processes. */
struct ring {
    _Alignas(ALIGNMENT) _Atomic uint64_t written;
    _Alignas(ALIGNMENT) _Atomic uint64_t read;
    _Alignas(ALIGNMENT) char bytes[RING_BYTES];
};

/* Copy bytes between the ring, from a position that counts from the beginning of time, and an array. */
static void copy_ring(struct ring* ring, uint64_t position, char* bytes, size_t count, bool is_outgoing) {
    size_t offset = position % RING_BYTES;
    size_t first = count < RING_BYTES - offset ? count : RING_BYTES - offset;
    if (is_outgoing) {
        memcpy(ring->bytes + offset, bytes, first);
        memcpy(ring->bytes, bytes + first, count - first);
    } else {
        memcpy(bytes, ring->bytes + offset, first);
        memcpy(bytes + first, ring->bytes, count - first);
    }
}

/* Move as many bytes as possible without waiting, and return their number. */
static size_t move_through_ring(struct ring* ring, char* bytes, size_t count, bool is_outgoing) {
    uint64_t written = atomic_load(&ring->written), read = atomic_load(&ring->read);
    size_t possible = is_outgoing ? RING_BYTES - (size_t)(written - read) : (size_t)(written - read);
    if (count > possible) count = possible;
    copy_ring(ring, is_outgoing ? written : read, bytes, count, is_outgoing);
    atomic_fetch_add(is_outgoing ? &ring->written : &ring->read, count);
    return count;
}

/* Return whether the other process has closed its end of the socket, through which nothing else arrives. */
static bool is_closed(int socket) {
    char byte;
    ssize_t received = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR);
}

/* Move bytes without waiting; return their number, or -1 if the link is closed. */
static ssize_t move_bytes(struct link* link, char* bytes, size_t count, bool is_outgoing) {
    if (link->mapping == NULL) {
        int socket = link->socket;
        ssize_t moved = is_outgoing ? send(socket, bytes, count, MSG_NOSIGNAL) : recv(socket, bytes, count, 0);
        if (moved < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
        return moved == 0 && !is_outgoing ? -1 : moved;
    }
    struct ring* ring = is_outgoing ? link->outgoing : link->incoming;
    size_t moved = move_through_ring(ring, bytes, count, is_outgoing);
    if (moved > 0 || !is_closed(link->socket)) return (ssize_t)moved;
    moved = is_outgoing ? 0 : move_through_ring(ring, bytes, count, false); /* written before the end */
    return moved > 0 ? (ssize_t)moved : -1;
}

/* Pause before another attempt, longer after many attempts. */
static void pause_attempts(unsigned attempts) {
    if (attempts < YIELDS) {
        sched_yield();
        return;
    }
    struct timespec time = {0, attempts < 2000 ? 50000 : 500000};
    nanosleep(&time, NULL);
}

/* Perform one attempt for each transfer. Return whether any bytes moved, and in `pending` a transfer that is not
 * complete, or NULL. Return false and set `closed` if a link is closed. */
static bool attempt(struct communicator* comm, struct transfer* transfers, size_t count, struct transfer** pending,
                    bool* closed) {
    bool has_moved = false;
    *pending = NULL;
    for (struct transfer* transfer = transfers; transfer < transfers + count; transfer++) {
        if (transfer->remaining == 0) continue;
        struct link* link = &comm->links[transfer->peer];
        ssize_t moved = move_bytes(link, transfer->bytes, transfer->remaining, transfer->is_outgoing);
        if (moved < 0) {
            *pending = transfer;
            *closed = true;
            return false;
        }
        has_moved = has_moved || moved > 0;
        transfer->bytes += moved;
        transfer->remaining -= (size_t)moved;
        if (transfer->remaining > 0) *pending = transfer;
    }
    return has_moved;
}

/* Complete all transfers at the same time. If a rank is gone or makes no progress within the time limit, the
 * communicator fails, and the result is false. */
bool transfer_all(struct communicator* comm, struct transfer* transfers, size_t count) {
    struct transfer* pending = NULL;
    bool closed = false;
    int64_t deadline = now() + comm->limit;
    for (unsigned attempts = 0;; attempts++) {
        bool has_moved = attempt(comm, transfers, count, &pending, &closed);
        if (pending == NULL) return true;
        if (closed) {
            communicator_fail(comm, "rank %d has ended or left the communicator", (int)pending->peer);
            return false;
        }
        if (has_moved) {
            attempts = 0;
            deadline = now() + comm->limit;
        } else if (now() > deadline) {
            communicator_fail(comm, "rank %d is late by %g s", (int)pending->peer, (double)comm->limit / 1e9);
            return false;
        }
        pause_attempts(attempts);
    }
}

static void* map_rings(int descriptor) {
    void* mapping = mmap(NULL, 2 * sizeof(struct ring), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return mapping == MAP_FAILED ? NULL : mapping;
}

static void use_rings(struct link* link, void* mapping, int first) {
    struct ring* rings = mapping;
    link->mapping = mapping;
    link->incoming = &rings[first];
    link->outgoing = &rings[1 - first];
}

/* Create shared memory with two rings; return it and its name, or NULL. */
static void* create_rings(char* name) {
    static _Atomic unsigned counter;
    snprintf(name, NAME_BYTES, "/diopi-%ld-%u-%llx", (long)getpid(), atomic_fetch_add(&counter, 1),
             (unsigned long long)now());
    int descriptor = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (descriptor < 0) return NULL;
    void* mapping = ftruncate(descriptor, 2 * sizeof(struct ring)) == 0 ? map_rings(descriptor) : NULL;
    close(descriptor);
    if (mapping == NULL) shm_unlink(name);
    return mapping;
}

/* Offer rings to the other rank, which may be unable to use them; return false if it does not answer. */
bool link_offer_rings(struct link* link, bool is_allowed, int64_t deadline) {
    char name[NAME_BYTES] = "", is_used = 0;
    void* mapping = is_allowed ? create_rings(name) : NULL;
    if (mapping == NULL) name[0] = '\0';
    bool is_answered = send_bytes(link->socket, name, sizeof name, deadline) &&
                       receive_bytes(link->socket, &is_used, 1, deadline);
    if (mapping != NULL) shm_unlink(name);
    if (is_answered && is_used) {
        use_rings(link, mapping, 0);
    } else if (mapping != NULL) {
        munmap(mapping, 2 * sizeof(struct ring));
    }
    return is_answered;
}

/* Use the rings that the other rank offers, if possible; return false if it does not answer. */
bool link_accept_rings(struct link* link, int64_t deadline) {
    char name[NAME_BYTES];
    if (!receive_bytes(link->socket, name, sizeof name, deadline)) return false;
    name[NAME_BYTES - 1] = '\0';
    int descriptor = name[0] != '\0' ? shm_open(name, O_RDWR, 0600) : -1;
    void* mapping = descriptor >= 0 ? map_rings(descriptor) : NULL;
    if (descriptor >= 0) close(descriptor);
    if (mapping != NULL) use_rings(link, mapping, 1);
    char is_used = mapping != NULL;
    return send_bytes(link->socket, &is_used, 1, deadline);
}

/* Let both ends see the link as closed. What was sent before can still be received. */
void link_shut_down(struct link* link) {
    if (link->socket >= 0) shutdown(link->socket, SHUT_RDWR);
}

void link_close(struct link* link) {
    if (link->socket >= 0) close(link->socket);
    if (link->mapping != NULL) munmap(link->mapping, 2 * sizeof(struct ring));
}
