/* The collectives of the built-in device: communicators between processes, over shared memory or TCP.
 *
 * Each pair of ranks has a link. A call enqueues its work on a stream, and the thread of the stream does the work. A
 * rank waits for others at most for the time limit; afterwards the communicator has failed. */
#ifndef DIOPI_COLLECTIVES_H_
#define DIOPI_COLLECTIVES_H_

#include <dipu/collectives_c.h>
#include <pthread.h>
#include <stdint.h>

#define MAX_RANKS 1024
#define TEXT_BYTES 256
#define UNIQUE_ID_BYTES 128

/* What a process needs to find the others. It fills the beginning of the bytes of a unique id. */
struct meeting_point {
    uint64_t key;     /* random; keeps out strangers */
    uint32_t address; /* IPv4, in network byte order */
    uint16_t port;    /* in network byte order */
};

struct ring;

/* A connection to another rank. Bytes pass through the rings if there are any, and otherwise through the socket, whose
 * end shows in both cases that the other process has ended or closed the link. */
struct link {
    int socket;
    struct ring *incoming, *outgoing;
    void* mapping;
};

/* Bytes that are being sent or received. */
struct transfer {
    int32_t peer;
    bool is_outgoing;
    char* bytes;
    size_t remaining;
};

struct communicator {
    struct communicator* next;
    int32_t rank, ranks, device;
    int64_t limit; /* nanoseconds without progress, after which waiting for a rank fails */
    char name[TEXT_BYTES];
    struct link* links; /* one per rank; that of the own rank is unused */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t enqueued, completed; /* numbers of calls */
    bool has_failed;
    char error[TEXT_BYTES];
};

enum number_kind { SIGNED, UNSIGNED, REAL, COMPLEX };

struct element_type {
    int32_t code; /* of at::ScalarType */
    size_t bytes;
    enum number_kind kind;
};

enum operation { SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, OPERATIONS };

/* settings.c */
int64_t time_limit(void);
bool uses_shared_memory(void);
uint32_t own_address(void);

/* sockets.c */
int open_listener(uint32_t address, uint16_t* port);
int accept_connection(int listener, int64_t deadline);
int open_connection(uint32_t address, uint16_t port, int64_t deadline);
bool send_bytes(int socket, const void* bytes, size_t count, int64_t deadline);
bool receive_bytes(int socket, void* bytes, size_t count, int64_t deadline);

/* links.c */
bool link_accept_rings(struct link* link, int64_t deadline);
bool link_offer_rings(struct link* link, bool is_allowed, int64_t deadline);
void link_close(struct link* link);
void link_shut_down(struct link* link);
bool transfer_all(struct communicator* comm, struct transfer* transfers, size_t count);

/* rendezvous.c */
int32_t create_meeting_point(struct meeting_point* point);
bool connect_ranks(struct communicator* comm, const struct meeting_point* point, char* error);

/* reduction.c */
const struct element_type* find_type(int32_t code);
bool operation_applies(int32_t operation, const struct element_type* type);
void reduce_elements(const struct element_type* type, enum operation operation, const char* const* inputs,
                     int32_t input_count, char* result, size_t count);

/* communicator.c */
void communicator_fail(struct communicator* comm, const char* format, ...) __attribute__((format(printf, 2, 3)));
struct communicator* communicator_find(const void* handle, const char* function);
int32_t get_unique_id(void* unique_id);
int32_t init_rank(void** comm, int32_t ranks, const void* unique_id, int32_t rank, int32_t local_device);
int32_t destroy_communicator(void* comm);
int32_t get_async_error(void* comm);
int32_t get_name(char* name, size_t name_bytes, void* comm);

/* calls.c */
int32_t all_reduce(const void* send, void* receive, size_t count, int32_t type, int32_t operation, void* comm,
                   void* stream);
int32_t reduce(const void* send, void* receive, size_t count, int32_t type, int32_t operation, int32_t root,
               void* comm, void* stream);
int32_t broadcast(const void* send, void* receive, size_t count, int32_t type, int32_t root, void* comm,
                  void* stream);
int32_t all_gather(const void* send, void* receive, size_t send_count, int32_t type, void* comm, void* stream);
int32_t reduce_scatter(void* send, void* receive, size_t receive_count, int32_t type, int32_t operation, void* comm,
                       void* stream);
int32_t all_to_all_equal(const void* send, void* receive, size_t count, int32_t type, void* comm, void* stream);
int32_t all_to_all_unequal(const void* send, const size_t* send_counts, const size_t* send_displacements,
                           void* receive, const size_t* receive_counts, const size_t* receive_displacements,
                           int32_t type, void* comm, void* stream);
int32_t send_to(const void* send, size_t count, int32_t type, int32_t peer, void* comm, void* stream);
int32_t receive_from(void* receive, size_t count, int32_t type, int32_t peer, void* comm, void* stream);

#endif /* DIOPI_COLLECTIVES_H_ */
