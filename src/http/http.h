/* Between the files of the server. */
#ifndef FACULA_HTTP_HTTP_H
#define FACULA_HTTP_HTTP_H
#include <pthread.h>
#include <stdatomic.h>
#include "facula/http.h"
#include "http/microhttpd.h"

/* ---- guard.c: what a request says of itself, and whether it is let in ---- */

typedef struct fac_http_headers {
    const char *host, *origin, *type, *length, *transfer, *authorization, *key;
    bool twice; /* one of these was there before */
} fac_http_headers;

typedef struct fac_http_guard { /* the server, as far as requests are judged by it */
    const fac_http_route *routes;
    int nroutes, port;
    bool loopback; /* names of this machine are the only ones in Host */
    const char *key, *cors_origin;
} fac_http_guard;

typedef struct fac_http_verdict {
    int status; /* 0: let in */
    const char *code, *message;
    const fac_http_route *route;
    size_t bytes; /* of the body */
    bool preflight;
} fac_http_verdict;

void fac_http_header_add(fac_http_headers *h, const char *name, const char *value);
bool fac_http_path_fits(const fac_http_route *r, const char *path);
fac_http_verdict fac_http_judge(const fac_http_guard *g, const char *method, const char *path,
                                const fac_http_headers *h);

/* ---- connection.c: connections, and those that take too long ---- */

typedef enum fac_http_phase { FAC_HTTP_WAITS, FAC_HTTP_WORKS, FAC_HTTP_SENDS } fac_http_phase;

typedef struct fac_http_connection {
    struct fac_http_connection *next, *before;
    int socket;
    fac_http_phase phase;
    int64_t since; /* when it came into this phase, or last moved on in it */
} fac_http_connection;

typedef struct fac_http_watch {
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t ends;
    pthread_t thread;
    fac_http_connection *first;
    int64_t patience; /* nanoseconds */
    bool stop;
} fac_http_watch;

fac_status fac_http_watch_start(fac_http_watch *w, int seconds, fac_error *err);
void fac_http_watch_stop(fac_http_watch *w); /* connections must be gone */
fac_http_connection *fac_http_connection_new(fac_http_watch *w, int socket); /* NULL: no memory */
void fac_http_connection_free(fac_http_watch *w, fac_http_connection *c);
void fac_http_phase_set(fac_http_watch *w, fac_http_connection *c, fac_http_phase phase);

/* ---- the server ---- */

struct fac_http {
    fac_mhd mhd;
    fac_http_opts opts;
    fac_http_guard guard;
    fac_http_watch watch;
    void *daemon;
    int socket; /* -1: closed, or the daemon's */
    atomic_bool closing;
    atomic_int running; /* requests whose answers are not over */
};

/* ---- request.c ---- */

struct fac_http_request {
    fac_http *h;
    void *connection; /* libmicrohttpd's */
    fac_http_connection *c;
    const char *method;
    char *path, *body;
    size_t bytes, room;
    fac_http_verdict verdict;
    int status, queued; /* of the answer; what libmicrohttpd said to it */
};

int fac_http_access(void *self, void *connection, const char *url, const char *method,
                    const char *version, const char *data, size_t *bytes, void **request);
void fac_http_completed(void *self, void *connection, void **request, int how);

/* ---- answer.c ---- */

/* The answer to a request that was not let in; the connection ends. */
void fac_http_refuse(fac_http_request *r);
bool fac_http_left(const fac_http *h, const fac_http_connection *c);
#endif
