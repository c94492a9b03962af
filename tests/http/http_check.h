/* A server with handlers of every kind, and a client that writes bytes. */
#ifndef FACULA_HTTP_CHECK_H
#define FACULA_HTTP_CHECK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/clock.h"
#include "facula/http.h"
#include "http/http.h"
#include "http_client.h"

static fac_error err;
static fac_http *server;
static char port[8];
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

/* ---- handlers ---- */

static atomic_int streams, logged, last_status;
static atomic_bool saw_gone;

static void hello(void *self, fac_http_request *r) {
    (void)self;
    fac_http_reply(r, 200, "text/plain", "hello\0you", 9);
}
static void echo(void *self, fac_http_request *r) {
    size_t n;
    const char *body = fac_http_body(r, &n);
    (void)self;
    fac_http_reply(r, 200, "application/octet-stream", body, n);
}
static void silent(void *self, fac_http_request *r) { (void)self, (void)r; }
static void broken(void *self, fac_http_request *r) {
    (void)self;
    fac_http_fail(r, 422, "odd", "a \"name\"\n\\ of %d", 7);
    fac_http_json(r, 200, "{}"); /* a second answer counts for nothing */
}
static void named(void *self, fac_http_request *r) {
    (void)self;
    fac_http_json(r, 200, fac_http_path(r));
}
/* Answers when the client is gone, at the latest after 10 s. */
static void waits(void *self, fac_http_request *r) {
    (void)self;
    for (int k = 0; k < 200 && !fac_http_gone(r); k++) usleep(50000);
    atomic_store(&saw_gone, fac_http_gone(r));
    fac_http_json(r, 200, "{}");
}

typedef struct counter {
    int at, to;
} counter;
static int64_t next_number(void *stream, char *to, size_t room, int wait_ms) {
    counter *c = stream;
    (void)wait_ms;
    if (c->at == c->to) return -1;
    return snprintf(to, room, "data: %d\n\n", c->at++);
}
static int64_t never(void *stream, char *to, size_t room, int wait_ms) {
    (void)stream, (void)to, (void)room;
    usleep((unsigned)wait_ms * 1000);
    return 0;
}
static int64_t always(void *stream, char *to, size_t room, int wait_ms) {
    (void)stream, (void)wait_ms;
    memset(to, 'x', room);
    return (int64_t)room;
}
static void ended(void *stream) {
    atomic_fetch_sub(&streams, 1);
    free(stream);
}
static void start_stream(fac_http_request *r, fac_http_next next) {
    counter *c = malloc(sizeof *c);
    *c = (counter){ 0, 1000 };
    atomic_fetch_add(&streams, 1);
    fac_http_stream(r, "text/event-stream", next, ended, c);
}
static void numbers(void *self, fac_http_request *r) {
    (void)self;
    start_stream(r, next_number);
}
static void idle(void *self, fac_http_request *r) {
    (void)self;
    start_stream(r, never);
}
static void flood(void *self, fac_http_request *r) {
    (void)self;
    start_stream(r, always);
}

static const fac_http_route routes[] = {
    { "GET", "/", hello, FAC_HTTP_OPEN, 0 },
    { "GET", "/hello", hello, 0, 0 },
    { "POST", "/hello", echo, 0, 0 },
    { "POST", "/raw", echo, FAC_HTTP_RAW, 1 << 20 },
    { "GET", "/silent", silent, 0, 0 },
    { "GET", "/broken", broken, 0, 0 },
    { "GET", "/waits", waits, 0, 0 },
    { "GET", "/numbers", numbers, 0, 0 },
    { "GET", "/idle", idle, 0, 0 },
    { "GET", "/flood", flood, 0, 0 },
    { "GET", "/models/", named, FAC_HTTP_PREFIX, 0 },
};
enum { ROUTES = sizeof routes / sizeof *routes };
static const char key[] = "0123456789abcdef0123456789abcdef";

static void count(void *self, const char *method, const char *path, int status) {
    (void)self, (void)method, (void)path;
    atomic_fetch_add(&logged, 1);
    atomic_store(&last_status, status);
}

/* ---- a client ---- */

static int connected(void) { return http_connect(fac_http_port(server)); }

static char answer[1 << 20];

/* Sends "%P" as the port, "%K" as a header with the key; the status of the answer, 0: there is
 * none. */
static int ask_bytes(const char *text) {
    static char out[4096];
    size_t n = 0;
    for (const char *s = text; *s; s++) {
        if (s[0] != '%' || (s[1] != 'P' && s[1] != 'K')) {
            out[n++] = *s;
            continue;
        }
        n += (size_t)snprintf(out + n, sizeof out - n, s[1] == 'P' ? "%s" : "X-Facula-Key: %s",
                              s[1] == 'P' ? port : key);
        s++;
    }
    const int s = connected();
    int status = 0;
    http_put(s, out, n);
    http_get(s, answer, sizeof answer);
    close(s);
    sscanf(answer, "HTTP/1.1 %d", &status);
    return status;
}

#define GET(path, more)                                                                            \
    "GET " path " HTTP/1.1\r\nHost: 127.0.0.1:%P\r\nConnection: close\r\n" more "\r\n"
#define POST(path, more, body)                                                                     \
    "POST " path " HTTP/1.1\r\nHost: 127.0.0.1:%P\r\nConnection: close\r\n%K\r\n" more "\r\n" body
#define JSON "Content-Type: application/json\r\n"

static void answers(int status, const char *request) {
    const int got = ask_bytes(request);
    if (got != status) fail_msg("%d instead of %d for\n%s\n%s", got, status, request, answer);
    if (status >= 400 && !strstr(answer, "{\"error\":{\"message\":\""))
        fail_msg("no error in %s", answer);
}

static void has(const char *text) {
    if (!strstr(answer, text)) fail_msg("no '%s' in\n%s", text, answer);
}

static void wait_for_streams(int n) {
    for (int k = 0; k < 400 && atomic_load(&streams) != n; k++) usleep(25000);
    assert_int_equal(atomic_load(&streams), n);
}
#endif
