/* Answers.  All of them are read by libmicrohttpd piece by piece, so that a client that takes none
 * is seen, and one that has left. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "base/memory.h"
#include "base/quote.h"
#include "http/http.h"

enum { PIECE = 32 << 10, WAIT_MS = 200 };

typedef struct outgoing {
    fac_http *h;
    fac_http_connection *c;
    char *data; /* a whole answer */
    size_t bytes;
    fac_http_next next; /* or a stream */
    void (*done)(void *stream);
    void *stream;
} outgoing;

bool fac_http_left(const fac_http *h, const fac_http_connection *c) {
    char byte;
    if (atomic_load(&h->closing)) return true;
    const ssize_t n = recv(c->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return !n || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

bool fac_http_gone(const fac_http_request *r) { return fac_http_left(r->h, r->c); }

static ssize_t read_whole(void *self, uint64_t at, char *to, size_t room) {
    outgoing *o = self;
    const size_t left = o->bytes - (size_t)at, n = left < room ? left : room;
    if (!n) return FAC_MHD_STREAM_END;
    fac_http_phase_set(&o->h->watch, o->c, FAC_HTTP_SENDS);
    memcpy(to, o->data + at, n);
    return (ssize_t)n;
}

static ssize_t read_stream(void *self, uint64_t at, char *to, size_t room) {
    outgoing *o = self;
    int64_t n = 0;
    (void)at;
    fac_http_phase_set(&o->h->watch, o->c, FAC_HTTP_WORKS);
    while (!n) {
        if (fac_http_left(o->h, o->c)) return FAC_MHD_STREAM_ERROR;
        n = o->next(o->stream, to, room, WAIT_MS);
    }
    fac_http_phase_set(&o->h->watch, o->c, FAC_HTTP_SENDS);
    return (ssize_t)n;
}

static void end(void *self) {
    outgoing *o = self;
    if (o->done) o->done(o->stream);
    fac_release(o->data);
    fac_release(o);
}

/* ---- headers ---- */

static void add_headers(const fac_http *h, void *response, const char *type) {
    static const char *const always[][2] = {
        { "X-Content-Type-Options", "nosniff" },
        { "Cache-Control", "no-store" },
        { "Referrer-Policy", "no-referrer" },
        { "Cross-Origin-Resource-Policy", "same-origin" },
        { "Content-Security-Policy",
          "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
    };
    for (size_t k = 0; k < sizeof always / sizeof *always; k++)
        h->mhd.add_response_header(response, always[k][0], always[k][1]);
    if (type) h->mhd.add_response_header(response, "Content-Type", type);
}

static void add_cors(const fac_http *h, void *response) {
    if (!h->opts.cors_origin) return;
    h->mhd.add_response_header(response, "Access-Control-Allow-Origin", h->opts.cors_origin);
    h->mhd.add_response_header(response, "Vary", "Origin");
    h->mhd.add_response_header(response, "Access-Control-Allow-Methods", "GET, POST");
    h->mhd.add_response_header(response, "Access-Control-Allow-Headers",
                               "Authorization, Content-Type, X-Facula-Key");
}

/* The methods that a path has. */
static void add_allow(const fac_http_request *r, void *response) {
    const fac_http_guard *g = &r->h->guard;
    fac_text all = { 0 };
    for (int k = 0; k < g->nroutes; k++)
        if (fac_http_path_fits(&g->routes[k], r->path))
            fac_text_print(&all, "%s%s", all.n ? ", " : "", g->routes[k].method);
    if (all.n && !all.failed) r->h->mhd.add_response_header(response, "Allow", all.s);
    fac_text_free(&all);
}

static void queue(fac_http_request *r, int status, const char *type, outgoing *o) {
    const fac_mhd *m = &r->h->mhd;
    const uint64_t size = o->next ? FAC_MHD_SIZE_UNKNOWN : o->bytes;
    void *response =
        m->create_response_from_callback(size, PIECE, o->next ? read_stream : read_whole, o, end);
    r->status = status;
    if (!response) {
        end(o);
        return;
    }
    add_headers(r->h, response, type);
    add_cors(r->h, response);
    if (status == 405) add_allow(r, response);
    if (r->verdict.status) m->add_response_header(response, "Connection", "close");
    fac_http_phase_set(&r->h->watch, r->c, FAC_HTTP_SENDS);
    r->queued = m->queue_response(r->connection, (unsigned)status, response);
    m->destroy_response(response);
}

/* ---- answers ---- */

static outgoing *new_outgoing(fac_http_request *r) {
    outgoing *o = fac_alloc(1, sizeof *o);
    if (o)
        *o = (outgoing){ .h = r->h, .c = r->c };
    else
        r->status = 500; /* the connection ends without an answer */
    return o;
}

void fac_http_reply(fac_http_request *r, int status, const char *type, const void *data,
                    size_t bytes) {
    outgoing *o = r->status ? NULL : new_outgoing(r);
    if (!o) return;
    o->data = fac_alloc(bytes + 1, 1);
    o->bytes = bytes;
    if (o->data) {
        memcpy(o->data, data, bytes);
        queue(r, status, type, o);
        return;
    }
    fac_release(o);
    r->status = 500;
}

void fac_http_json(fac_http_request *r, int status, const char *text) {
    fac_http_reply(r, status, "application/json", text, strlen(text));
}

void fac_http_stream(fac_http_request *r, const char *type, fac_http_next next,
                     void (*done)(void *stream), void *stream) {
    outgoing *o = r->status ? NULL : new_outgoing(r);
    if (!o) {
        if (done) done(stream);
        return;
    }
    o->next = next;
    o->done = done;
    o->stream = stream;
    queue(r, 200, type, o);
}

/* ---- errors ---- */

static void say_error(fac_http_request *r, int status, const char *code, const char *message) {
    fac_text t = { 0 };
    const char *type = status >= 500 ? "server_error" : "invalid_request_error";
    fac_text_add(&t, "{\"error\":{\"message\":");
    fac_text_quote(&t, message, strlen(message));
    fac_text_print(&t, ",\"type\":\"%s\",\"param\":null,\"code\":", type);
    fac_text_print(&t, code ? "\"%s\"}}" : "null}}", code);
    if (t.failed)
        fac_http_json(r, status, "{}");
    else
        fac_http_json(r, status, t.s);
    fac_text_free(&t);
}

void fac_http_fail(fac_http_request *r, int status, const char *code, const char *format, ...) {
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    say_error(r, status, code, message);
}

void fac_http_refuse(fac_http_request *r) {
    say_error(r, r->verdict.status, r->verdict.code, r->verdict.message);
}
