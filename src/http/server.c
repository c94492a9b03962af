/* Starting and stopping: the socket is made here, so that its errors are told. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/error.h"
#include "base/memory.h"
#include "http/http.h"

enum { CONNECTIONS = 16, SECONDS = 30, BACKLOG = 64, CONNECTION_MEMORY = 128 << 10 };

/* ---- the socket ---- */

static bool is_loopback(const struct sockaddr *a) {
    if (a->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, a, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
    }
    struct sockaddr_in6 v6;
    memcpy(&v6, a, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

static int port_of(int socket) {
    struct sockaddr_storage a = { 0 };
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    socklen_t n = sizeof a;
    if (getsockname(socket, (struct sockaddr *)&a, &n)) return 0;
    memcpy(&v4, &a, sizeof v4);
    memcpy(&v6, &a, sizeof v6);
    return ntohs(a.ss_family == AF_INET ? v4.sin_port : v6.sin6_port);
}

static fac_status listen_at(const struct addrinfo *a, const fac_http_opts *o, int *to,
                            fac_error *err) {
    const int one = 1;
    const int s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0) return fac_raise(err, FAC_E_IO, "no socket: %s", strerror(errno));
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (!bind(s, a->ai_addr, a->ai_addrlen) && !listen(s, BACKLOG)) {
        *to = s;
        return FAC_OK;
    }
    const int why = errno;
    close(s);
    return fac_raise(err, FAC_E_IO, "%s port %d: %s", o->host, o->port, strerror(why));
}

static fac_status find_address(const fac_http_opts *o, struct addrinfo **to, fac_error *err) {
    const struct addrinfo wish = { .ai_flags = AI_NUMERICHOST | AI_PASSIVE | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM };
    const char *host = strcmp(o->host, "localhost") ? o->host : "127.0.0.1";
    char port[16];
    if (o->port < 0 || o->port > 65535)
        return fac_raise(err, FAC_E_ARGUMENT, "port %d: ports are 0 to 65535", o->port);
    snprintf(port, sizeof port, "%d", o->port);
    if (!getaddrinfo(host, port, &wish, to)) return FAC_OK;
    return fac_raise(err, FAC_E_ARGUMENT, "'%s' is no address (such as 127.0.0.1 or ::1)", host);
}

static fac_status open_socket(fac_http *h, fac_error *err) {
    struct addrinfo *a;
    FAC_TRY(find_address(&h->opts, &a, err));
    h->guard.loopback = is_loopback(a->ai_addr);
    fac_status status = FAC_OK;
    if (!h->guard.loopback && !h->opts.key)
        status = fac_raise(err, FAC_E_ARGUMENT,
                           "%s can be reached from other machines: that needs a key", h->opts.host);
    if (!status) status = listen_at(a, &h->opts, &h->socket, err);
    freeaddrinfo(a);
    if (!status) h->guard.port = port_of(h->socket);
    return status;
}

/* ---- the daemon ---- */

/* Paths stay as they were sent. */
static size_t keep_escapes(void *self, void *connection, char *s) {
    (void)self, (void)connection;
    return strlen(s);
}

static void notify(void *self, void *connection, void **context, int what) {
    fac_http *h = self;
    if (what == FAC_MHD_CONNECTION_NOTIFY_STARTED) {
        const int *fd =
            h->mhd.get_connection_info(connection, FAC_MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = fd ? fac_http_connection_new(&h->watch, *fd) : NULL;
    } else if (*context) {
        fac_http_connection_free(&h->watch, *context);
        *context = NULL;
    }
}

/* Signals are for the threads of the program, so those of the server inherit that all are blocked.
 */
static fac_status start_daemon(fac_http *h, fac_error *err) {
    const unsigned flags = FAC_MHD_USE_THREAD_PER_CONNECTION | FAC_MHD_USE_INTERNAL_POLLING_THREAD |
                           FAC_MHD_USE_POLL | FAC_MHD_USE_ITC;
    const unsigned most = (unsigned)h->opts.connections;
    h->daemon = h->mhd.start_daemon(
        flags, 0, NULL, NULL, fac_http_access, h, FAC_MHD_OPTION_LISTEN_SOCKET, h->socket,
        FAC_MHD_OPTION_CONNECTION_LIMIT, most, FAC_MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, FAC_MHD_OPTION_NOTIFY_COMPLETED, fac_http_completed, h,
        FAC_MHD_OPTION_NOTIFY_CONNECTION, notify, h, FAC_MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes,
        NULL, FAC_MHD_OPTION_END);
    if (!h->daemon) return fac_raise(err, FAC_E_IO, "libmicrohttpd does not start");
    h->socket = -1;
    return FAC_OK;
}

static fac_status start_threads(fac_http *h, fac_error *err) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    fac_status status = fac_http_watch_start(&h->watch, h->opts.seconds, err);
    if (!status && (status = start_daemon(h, err))) fac_http_watch_stop(&h->watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

static void close_socket(fac_http *h) {
    if (h->socket >= 0) close(h->socket);
    h->socket = -1;
}

fac_status fac_http_start(const fac_http_opts *opts, const fac_http_route *routes, int n,
                          fac_http **out, fac_error *err) {
    fac_http *h = fac_alloc(1, sizeof *h);
    if (!h) return fac_raise_memory(err, "a server");
    h->opts = *opts;
    if (!h->opts.host) h->opts.host = "127.0.0.1";
    if (h->opts.connections <= 0) h->opts.connections = CONNECTIONS;
    if (h->opts.seconds <= 0) h->opts.seconds = SECONDS;
    h->socket = -1;
    h->guard = (fac_http_guard){ routes, n, 0, true, opts->key, opts->cors_origin };
    fac_status status = fac_mhd_open(&h->mhd, err);
    if (!status) status = open_socket(h, err);
    if (!status) status = start_threads(h, err);
    if (!status) {
        *out = h;
        return FAC_OK;
    }
    close_socket(h);
    fac_release(h);
    return status;
}

int fac_http_port(const fac_http *h) { return h->guard.port; }
int fac_http_running(const fac_http *h) { return atomic_load(&h->running); }

void fac_http_close(fac_http *h) {
    if (h->socket < 0) h->socket = h->mhd.quiesce_daemon(h->daemon);
    close_socket(h);
}

void fac_http_stop(fac_http *h) {
    if (!h) return;
    atomic_store(&h->closing, true);
    fac_http_close(h);
    h->mhd.stop_daemon(h->daemon);
    fac_http_watch_stop(&h->watch);
    fac_release(h);
}
