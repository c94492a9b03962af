/* A request as libmicrohttpd brings it: its headers, then its body in pieces, then its end. */
#include <string.h>
#include "base/memory.h"
#include "http/http.h"

static int add_header(void *self, int kind, const char *name, const char *value) {
    (void)kind;
    fac_http_header_add(self, name, value);
    return FAC_MHD_YES;
}

static fac_http_connection *connection_of(const fac_mhd *m, void *connection) {
    void *const *context =
        m->get_connection_info(connection, FAC_MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return context ? *context : NULL;
}

static fac_http_request *new_request(fac_http *h, void *connection, const char *url,
                                     const char *method) {
    fac_http_request *r = fac_alloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (fac_http_request){ .h = h, .connection = connection, .method = method };
    r->c = connection_of(&h->mhd, connection);
    r->path = fac_copy_text(url);
    if (r->c && r->path) {
        atomic_fetch_add(&h->running, 1);
        return r;
    }
    fac_release(r->path);
    fac_release(r);
    return NULL;
}

/* Its headers are there.  Who is not let in is answered before the body comes. */
static int begin(fac_http *h, void *connection, const char *url, const char *method,
                 void **request) {
    fac_http_request *r = new_request(h, connection, url, method);
    fac_http_headers headers = { 0 };
    if (!r) return FAC_MHD_NO;
    *request = r;
    h->mhd.get_connection_values(connection, FAC_MHD_HEADER_KIND, add_header, &headers);
    r->verdict = fac_http_judge(&h->guard, method, url, &headers);
    if (!r->verdict.status) return FAC_MHD_YES;
    fac_http_refuse(r);
    return r->queued;
}

/* No more than was announced, and that was judged. */
static int take(fac_http_request *r, const char *data, size_t bytes) {
    if (bytes > r->verdict.bytes - r->bytes) return FAC_MHD_NO;
    if (!fac_reserve(&r->body, &r->room, r->bytes + bytes + 1, 1)) return FAC_MHD_NO;
    memcpy(r->body + r->bytes, data, bytes);
    r->bytes += bytes;
    r->body[r->bytes] = 0;
    return FAC_MHD_YES;
}

static int answer(fac_http_request *r) {
    fac_http *h = r->h;
    fac_http_phase_set(&h->watch, r->c, FAC_HTTP_WORKS);
    if (r->verdict.preflight)
        fac_http_reply(r, 204, NULL, "", 0);
    else
        r->verdict.route->answer(h->opts.self, r);
    if (!r->status) fac_http_fail(r, 500, "no_answer", "this path gave no answer");
    return r->queued;
}

int fac_http_access(void *self, void *connection, const char *url, const char *method,
                    const char *version, const char *data, size_t *bytes, void **request) {
    fac_http_request *r = *request;
    (void)version;
    if (!r) return begin(self, connection, url, method, request);
    if (r->status) return FAC_MHD_YES; /* answered before its body */
    if (!*bytes) return answer(r);
    const int taken = take(r, data, *bytes);
    *bytes = 0;
    return taken;
}

void fac_http_completed(void *self, void *connection, void **request, int how) {
    fac_http *h = self;
    fac_http_request *r = *request;
    (void)connection;
    if (!r) return;
    if (h->opts.log) h->opts.log(h->opts.self, r->method, r->path, how ? 0 : r->status);
    fac_http_phase_set(&h->watch, r->c, FAC_HTTP_WAITS);
    fac_release(r->path);
    fac_release(r->body);
    fac_release(r);
    *request = NULL;
    atomic_fetch_sub(&h->running, 1);
}

const char *fac_http_method(const fac_http_request *r) { return r->method; }
const char *fac_http_path(const fac_http_request *r) { return r->path; }
const char *fac_http_body(const fac_http_request *r, size_t *bytes) {
    if (bytes) *bytes = r->bytes;
    return r->body ? r->body : "";
}
