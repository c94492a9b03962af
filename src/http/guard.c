/* Who is let in: paths, methods, Host against DNS rebinding, Origin against other pages, the key,
 * and bodies before a byte of them is read. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "base/error.h"
#include "http/http.h"

void fac_http_header_add(fac_http_headers *h, const char *name, const char *value) {
    const struct {
        const char *name;
        const char **to;
    } known[] = { { "Host", &h->host },
                  { "Origin", &h->origin },
                  { "Content-Type", &h->type },
                  { "Content-Length", &h->length },
                  { "Transfer-Encoding", &h->transfer },
                  { "Authorization", &h->authorization },
                  { "X-Facula-Key", &h->key } };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (strcasecmp(name, known[k].name)) continue;
        h->twice |= *known[k].to != NULL;
        *known[k].to = value ? value : "";
    }
}

/* ---- where from ---- */

/* "NAME:PORT"; the port may be missing where it is 80. */
static bool is_host(const char *host, const char *name, int port) {
    char with_port[80];
    snprintf(with_port, sizeof with_port, "%s:%d", name, port);
    return !strcasecmp(host, with_port) || (port == 80 && !strcasecmp(host, name));
}

static bool host_is_ours(const fac_http_guard *g, const char *host) {
    if (!host) return false;
    return !g->loopback || is_host(host, "127.0.0.1", g->port) ||
           is_host(host, "localhost", g->port) || is_host(host, "[::1]", g->port);
}

/* A page of this server says http:// and the Host that it sends. */
static bool origin_is_ours(const fac_http_guard *g, const char *origin, const char *host) {
    if (g->cors_origin && !strcmp(origin, g->cors_origin)) return true;
    return !strncasecmp(origin, "http://", 7) && !strcasecmp(origin + 7, host);
}

/* ---- the key ---- */

/* The time does not tell how many bytes were right. */
static bool same_key(const char *key, const char *given) {
    const size_t n = strlen(key), m = strlen(given);
    unsigned char differs = n != m;
    for (size_t k = 0; k < n; k++) differs |= (unsigned char)(key[k] ^ given[m ? k % m : 0]);
    return !differs;
}

static bool has_key(const fac_http_guard *g, const fac_http_headers *h) {
    static const char bearer[] = "Bearer ";
    const size_t n = sizeof bearer - 1;
    if (!g->key) return true;
    if (h->key) return same_key(g->key, h->key);
    return h->authorization && !strncasecmp(h->authorization, bearer, n) &&
           same_key(g->key, h->authorization + n);
}

fac_status fac_http_new_key(char to[33], fac_error *err) {
    unsigned char bits[16];
    FILE *f = fopen("/dev/urandom", "rb");
    const size_t n = f ? fread(bits, 1, sizeof bits, f) : 0;
    if (f) fclose(f);
    if (n != sizeof bits) return fac_raise(err, FAC_E_IO, "/dev/urandom gives no random bits");
    for (size_t k = 0; k < sizeof bits; k++) snprintf(to + 2 * k, 3, "%02x", bits[k]);
    return FAC_OK;
}

/* ---- where to ---- */

bool fac_http_path_fits(const fac_http_route *r, const char *path) {
    const size_t n = strlen(r->path);
    if (r->flags & FAC_HTTP_PREFIX) return !strncmp(path, r->path, n) && path[n];
    return !strcmp(path, r->path);
}

static bool method_fits(const fac_http_route *r, const char *method) {
    return !strcmp(method, r->method) || (!strcmp(method, "HEAD") && !strcmp(r->method, "GET"));
}

static const fac_http_route *find(const fac_http_guard *g, const char *path, const char *method) {
    for (int k = 0; k < g->nroutes; k++) {
        const fac_http_route *r = &g->routes[k];
        if (fac_http_path_fits(r, path) && (!method || method_fits(r, method))) return r;
    }
    return NULL;
}

/* ---- the body ---- */

static size_t most_of(const fac_http_route *r) {
    if (r->most) return r->most;
    return *r->method == 'P' ? (size_t)64 << 10 : 0; /* POST, PUT, PATCH */
}

/* Digits alone, no sign; false: no length, or one that no size_t holds. */
static bool read_length(const char *s, size_t *to) {
    size_t n = 0;
    if (!*s) return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9') return false;
        if (__builtin_mul_overflow(n, 10, &n)) return false;
        if (__builtin_add_overflow(n, (size_t)(*s - '0'), &n)) return false;
    }
    *to = n;
    return true;
}

static bool is_json(const char *type) {
    static const char json[] = "application/json";
    const size_t n = sizeof json - 1;
    return type && !strncasecmp(type, json, n) && strchr("; \t", type[n]); /* its end, too */
}

static fac_http_verdict refused(int status, const char *code, const char *message) {
    return (fac_http_verdict){ .status = status, .code = code, .message = message };
}

static fac_http_verdict judge_body(const fac_http_route *r, const fac_http_headers *h) {
    size_t bytes = 0;
    if (h->transfer) return refused(411, "length_required", "the body needs a Content-Length");
    if (h->length && !read_length(h->length, &bytes))
        return refused(400, "bad_length", "Content-Length is no number");
    if (bytes > most_of(r))
        return refused(413, "body_too_large", "the body is larger than this path takes");
    if (bytes && !(r->flags & FAC_HTTP_RAW) && !is_json(h->type))
        return refused(415, "not_json", "the content type must be application/json");
    return (fac_http_verdict){ .route = r, .bytes = bytes };
}

fac_http_verdict fac_http_judge(const fac_http_guard *g, const char *method, const char *path,
                                const fac_http_headers *h) {
    if (h->twice)
        return refused(400, "header_twice",
                       "a header that may be there once is there "
                       "twice");
    if (!host_is_ours(g, h->host)) return refused(403, "wrong_host", "Host is not this server");
    if (h->origin && !origin_is_ours(g, h->origin, h->host))
        return refused(403, "wrong_origin", "this page may not call this server");
    if (!find(g, path, NULL)) return refused(404, "not_found", "there is nothing at this path");
    if (g->cors_origin && !strcmp(method, "OPTIONS"))
        return (fac_http_verdict){ .preflight = true };
    const fac_http_route *r = find(g, path, method);
    if (!r) return refused(405, "wrong_method", "this path has other methods");
    if (!(r->flags & FAC_HTTP_OPEN) && !has_key(g, h))
        return refused(401, "invalid_api_key",
                       "the key is missing or wrong (Authorization: Bearer KEY)");
    return judge_body(r, h);
}
