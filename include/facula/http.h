/* facula/http.h: a small HTTP/1.1 server, for programs that show or serve something on this
 * machine.
 *
 *   fac_http          a server: a socket, a table of routes, a thread for each connection
 *   fac_http_request  one request and its answer, within its handler only
 *
 *     static void health(void *self, fac_http_request *r) { fac_http_json(r, 200, "{}"); }
 *     static const fac_http_route routes[] = { { "GET", "/health", health, FAC_HTTP_OPEN, 0 } };
 *     fac_http_start(&(fac_http_opts){ .port = 8080 }, routes, 1, &server, &err);
 *
 * HTTP itself is libmicrohttpd's (Debian: libmicrohttpd12), which is opened when a server starts.
 *
 * Before a handler is called, each request has been checked; what fails is answered with
 * {"error":{"message","type","param","code"}} and the connection ends:
 *   400  headers that count are there twice, or the length of the body is none
 *   401  no key, or another one, unless the route is FAC_HTTP_OPEN
 *   403  Host is not this server (of those on the loopback: a name that was rebound in DNS), or
 *        Origin is another page
 *   404  no route has this path; paths are compared as bytes, without unescaping: there are no
 *        files beneath them, so none can be reached by "..", "%2f" or a NUL
 *   405  the path has other methods
 *   411  a body without Content-Length
 *   413  a body that is larger than the route takes
 *   415  a body that is not application/json, unless the route is FAC_HTTP_RAW
 * A request has `seconds` to be whole, and each piece of an answer as long to be taken; then the
 * connection is cut.  No CORS header is sent unless cors_origin says so.  All answers say nosniff,
 * no-store, and let a page load and reach nothing but this server. */
#ifndef FACULA_HTTP_H
#define FACULA_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "facula/status.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_http fac_http;
typedef struct fac_http_request fac_http_request;

/* Answers a request, by one of the four calls below; several run at once, each in the thread of its
 * connection, and may take as long as they like.  self: that of the options. */
typedef void (*fac_http_handler)(void *self, fac_http_request *r);

enum {
    FAC_HTTP_OPEN = 1,   /* no key is asked: for the page itself, and for health */
    FAC_HTTP_RAW = 2,    /* a body of any content type */
    FAC_HTTP_PREFIX = 4, /* all paths that are longer and begin so */
};

typedef struct fac_http_route {
    const char *method, *path; /* "GET" answers HEAD, too */
    fac_http_handler answer;
    unsigned flags;
    size_t most; /* bytes of a body; 0: 64 KiB for POST, PUT and PATCH, none for others */
} fac_http_route;

typedef struct fac_http_opts { /* zero is the default everywhere */
    const char *host;          /* an address; NULL: 127.0.0.1 */
    int port;                  /* 0: one that is free */
    const char *key;           /* NULL: none is asked.  Beyond the loopback there must be one */
    const char *cors_origin;   /* the one page elsewhere that may call: "http://localhost:3000" */
    int connections;           /* at once; more wait or are closed.  0: 16 */
    int seconds;               /* for a request to be whole; 0: 30 */
    void *self;                /* for handlers and log */
    /* After each request, in its thread; status 0: the connection ended before its answer. */
    void (*log)(void *self, const char *method, const char *path, int status);
} fac_http_opts;

/* Routes, options and their strings must outlive the server.  FAC_E_UNSUPPORTED: there is no
 * libmicrohttpd, with the name of the package.  FAC_E_ARGUMENT: an address that is none, no key
 * beyond the loopback.  FAC_E_IO: the port is taken. */
fac_status fac_http_start(const fac_http_opts *opts, const fac_http_route *routes, int n,
                          fac_http **out, fac_error *err);
/* The port that the server listens on, also when port 0 asked for any. */
int fac_http_port(const fac_http *h);
int fac_http_running(const fac_http *h); /* requests that are answered just now */
/* No more connections are accepted; answers under way go on. */
void fac_http_close(fac_http *h);
/* Ends streams, waits for handlers, frees.  NULL is fine. */
void fac_http_stop(fac_http *h);

/* 128 random bits in hexadecimal digits, for opts.key. */
fac_status fac_http_new_key(char to[33], fac_error *err);

/* ---- within a handler ---- */

/* "GET", "POST", ...; it lives as long as the request. */
const char *fac_http_method(const fac_http_request *r);
const char *fac_http_path(const fac_http_request *r); /* as it was sent, without the query */
/* The body, with a zero after its last byte. */
const char *fac_http_body(const fac_http_request *r, size_t *bytes);
/* The client has left, or the server ends: nothing waits for the answer any more. */
bool fac_http_gone(const fac_http_request *r);

/* The whole answer; the bytes are copied. */
void fac_http_reply(fac_http_request *r, int status, const char *type, const void *data,
                    size_t bytes);
/* The whole answer as application/json; the text is copied. */
void fac_http_json(fac_http_request *r, int status, const char *text);
/* {"error":{"message": TEXT, "type": ..., "param": null, "code": CODE}}; code may be NULL. */
void fac_http_fail(fac_http_request *r, int status, const char *code, const char *format, ...)
    FAC_PRINTF(4, 5);

/* An answer whose length is not known: `next` is called until it says that it is over, after the
 * handler returned, in the same thread.  It writes up to `room` bytes and returns how many; 0: none
 * came within about `wait_ms`, ask again; -1: that was all; -2: it broke off.  Between two calls
 * it is seen whether the client left or the server ends.  `done` comes once, whatever happened.
 * For server-sent events the type is "text/event-stream". */
typedef int64_t (*fac_http_next)(void *stream, char *to, size_t room, int wait_ms);
void fac_http_stream(fac_http_request *r, const char *type, fac_http_next next,
                     void (*done)(void *stream), void *stream);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
