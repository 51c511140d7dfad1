/* Communicators: how they are created, destroyed and described, and their errors. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../device_runtime/runtime.h"
#include "collectives.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list */
static struct communicator* communicators;

/* Store the first error of the communicator and close its links, so that other ranks stop to wait for this one. */
void communicator_fail(struct communicator* comm, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&comm->lock);
    if (!comm->has_failed) vsnprintf(comm->error, sizeof comm->error, format, arguments);
    comm->has_failed = true;
    pthread_mutex_unlock(&comm->lock);
    va_end(arguments);
    for (int32_t rank = 0; rank < comm->ranks; rank++) link_shut_down(&comm->links[rank]);
}

struct communicator* communicator_find(const void* handle, const char* function) {
    pthread_mutex_lock(&lock);
    struct communicator* comm = communicators;
    while (comm != NULL && comm != handle) comm = comm->next;
    pthread_mutex_unlock(&lock);
    if (comm == NULL) fail("%s: there is no communicator with this handle", function);
    return comm;
}

int32_t get_unique_id(void* unique_id) {
    struct meeting_point point;
    if (create_meeting_point(&point) != DIPU_SUCCESS) return DICL_ERR_UNDEF;
    memset(unique_id, 0, UNIQUE_ID_BYTES);
    memcpy(unique_id, &point, sizeof point);
    return DICL_SUCCESS;
}

static void free_communicator(struct communicator* comm) {
    for (int32_t rank = 0; comm->links != NULL && rank < comm->ranks; rank++) link_close(&comm->links[rank]);
    pthread_cond_destroy(&comm->changed);
    pthread_mutex_destroy(&comm->lock);
    free(comm->links);
    free(comm);
}

/* Return a communicator without connections, or NULL if there is too little memory. */
static struct communicator* new_communicator(int32_t ranks, int32_t rank, int32_t device) {
    struct communicator* comm = calloc(1, sizeof *comm);
    if (comm == NULL) return NULL;
    *comm = (struct communicator){.rank = rank, .ranks = ranks, .device = device, .limit = time_limit()};
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->changed, NULL);
    comm->links = calloc((size_t)ranks, sizeof *comm->links);
    if (comm->links == NULL) {
        free_communicator(comm);
        return NULL;
    }
    for (int32_t other = 0; other < ranks; other++) comm->links[other].socket = -1;
    return comm;
}

int32_t init_rank(void** result, int32_t ranks, const void* unique_id, int32_t rank, int32_t local_device) {
    int32_t device = local_device == -1 ? current_index() : local_device;
    const char* function = "diclCommInitRank";
    if (ranks < 1 || ranks > MAX_RANKS || rank < 0 || rank >= ranks) {
        fail("%s: rank %d of %d; expected a rank below their number, and at most %d", function, rank, ranks, MAX_RANKS);
        return DICL_ERR_UNDEF;
    }
    if (!device_exists(device)) return fail_no_device(function, device), DICL_ERR_UNDEF;
    struct communicator* comm = new_communicator(ranks, rank, device);
    struct meeting_point point;
    char error[TEXT_BYTES] = "out of memory";
    memcpy(&point, unique_id, sizeof point);
    if (comm == NULL || !connect_ranks(comm, &point, error)) {
        if (comm != NULL) free_communicator(comm);
        fail("%s: %s", function, error);
        return DICL_ERR_UNDEF;
    }
    snprintf(comm->name, sizeof comm->name, "diopi-%016llx", (unsigned long long)point.key);
    pthread_mutex_lock(&lock);
    comm->next = communicators;
    communicators = comm;
    pthread_mutex_unlock(&lock);
    *result = comm;
    return DICL_SUCCESS;
}

int32_t destroy_communicator(void* handle) {
    pthread_mutex_lock(&lock);
    struct communicator** place = &communicators;
    while (*place != NULL && *place != handle) place = &(*place)->next;
    struct communicator* comm = *place;
    if (comm != NULL) *place = comm->next;
    pthread_mutex_unlock(&lock);
    if (comm == NULL) {
        fail("diclCommDestroy: there is no communicator with this handle");
        return DICL_ERR_UNDEF;
    }
    pthread_mutex_lock(&comm->lock);
    while (comm->completed < comm->enqueued) pthread_cond_wait(&comm->changed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
    free_communicator(comm);
    return DICL_SUCCESS;
}

int32_t get_async_error(void* handle) {
    struct communicator* comm = communicator_find(handle, "diclGetCommAsyncError");
    if (comm == NULL) return DICL_ERR_UNDEF;
    pthread_mutex_lock(&comm->lock);
    bool has_failed = comm->has_failed;
    if (has_failed) fail("%s", comm->error);
    pthread_mutex_unlock(&comm->lock);
    return has_failed ? DICL_ERR_UNDEF : DICL_SUCCESS;
}

int32_t get_name(char* name, size_t name_bytes, void* handle) {
    struct communicator* comm = communicator_find(handle, "diclGetCommName");
    if (comm == NULL) return DICL_ERR_UNDEF;
    snprintf(name, name_bytes, "%s", comm->name);
    return DICL_SUCCESS;
}
