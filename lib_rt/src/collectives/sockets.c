/* TCP sockets whose operations end at a deadline. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../device_runtime/runtime.h"
#include "collectives.h"

/* Wait until the socket is ready; return false if the deadline passes first. */
static bool wait_for(int socket, short events, int64_t deadline) {
    for (;;) {
        int64_t milliseconds = (deadline - now()) / 1000000;
        struct pollfd entry = {.fd = socket, .events = events};
        int ready = poll(&entry, 1, milliseconds < 0 ? 0 : milliseconds > 1000 ? 1000 : (int)milliseconds);
        if (ready > 0) return true;
        if ((ready < 0 && errno != EINTR) || now() >= deadline) return false;
    }
}

/* Let operations of the socket return at once, send small messages without delay, and do not pass it to programs. */
static int prepare(int socket) {
    int yes = 1;
    if (socket < 0) return -1;
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return socket;
}

/* Return a socket that listens at the address, and its port in network byte order; -1 if this is impossible. */
int open_listener(uint32_t address, uint16_t* port) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = address};
    socklen_t size = sizeof place;
    int listener = prepare(socket(AF_INET, SOCK_STREAM, 0));
    if (listener < 0) return -1;
    if (bind(listener, (struct sockaddr*)&place, size) == 0 && listen(listener, MAX_RANKS) == 0 &&
        getsockname(listener, (struct sockaddr*)&place, &size) == 0) {
        *port = place.sin_port;
        return listener;
    }
    close(listener);
    return -1;
}

int accept_connection(int listener, int64_t deadline) {
    while (wait_for(listener, POLLIN, deadline)) {
        int connection = accept(listener, NULL, NULL);
        if (connection >= 0) return prepare(connection);
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) return -1;
    }
    return -1;
}

int open_connection(uint32_t address, uint16_t port, int64_t deadline) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = address, .sin_port = port};
    int connection = prepare(socket(AF_INET, SOCK_STREAM, 0));
    if (connection < 0) return -1;
    int error = 0;
    socklen_t size = sizeof error;
    bool is_open = connect(connection, (struct sockaddr*)&place, sizeof place) == 0;
    if (!is_open && errno == EINPROGRESS && wait_for(connection, POLLOUT, deadline)) {
        is_open = getsockopt(connection, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    }
    if (is_open) return connection;
    close(connection);
    return -1;
}

bool send_bytes(int socket, const void* bytes, size_t count, int64_t deadline) {
    for (const char* next = bytes; count > 0;) {
        ssize_t sent = send(socket, next, count, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (sent < 0 && !wait_for(socket, POLLOUT, deadline)) return false;
        if (sent > 0) next += sent, count -= (size_t)sent;
    }
    return true;
}

bool receive_bytes(int socket, void* bytes, size_t count, int64_t deadline) {
    for (char* next = bytes; count > 0;) {
        ssize_t received = recv(socket, next, count, 0);
        if (received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR)) return false;
        if (received < 0 && !wait_for(socket, POLLIN, deadline)) return false;
        if (received > 0) next += received, count -= (size_t)received;
    }
    return true;
}
