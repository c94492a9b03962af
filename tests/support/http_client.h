/* Requests byte by byte, as no client would send them. */
#ifndef FACULA_TESTS_HTTP_CLIENT_H
#define FACULA_TESTS_HTTP_CLIENT_H
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static inline int http_connect(int port) {
    const struct sockaddr_in to = { .sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (const struct sockaddr *)&to, sizeof to)) fail_msg("no connection");
    return s;
}

static inline void http_put(int s, const char *bytes, size_t n) {
    while (n) {
        const ssize_t sent = send(s, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0) return;
        bytes += sent;
        n -= (size_t)sent;
    }
}

/* All that comes until the other side closes, or nothing for 20 s. */
static inline size_t http_get(int s, char *to, size_t room) {
    size_t n = 0;
    struct pollfd p = { .fd = s, .events = POLLIN };
    while (n + 1 < room && poll(&p, 1, 20000) > 0) {
        const ssize_t got = recv(s, to + n, room - 1 - n, 0);
        if (got <= 0) break;
        n += (size_t)got;
    }
    to[n] = 0;
    return n;
}
#endif
