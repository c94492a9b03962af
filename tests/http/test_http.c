/* facula/http.h: who is let in, what is answered, streams, limits, ends.  Requests are written byte
 * by byte, as no client would send them. */
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

/* ---- who is let in ---- */

static void hosts_and_origins(void **state) {
    (void)state;
    answers(200, GET("/hello", "%K\r\n"));
    answers(200, "GET /hello HTTP/1.1\r\nhost: LOCALHOST:%P\r\nConnection: close\r\n%K\r\n\r\n");
    answers(200, "GET /hello HTTP/1.1\r\nHost: [::1]:%P\r\nConnection: close\r\n%K\r\n\r\n");
    answers(403, "GET /hello HTTP/1.1\r\nHost: evil.example:%P\r\n%K\r\n\r\n");
    answers(403, "GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n%K\r\n\r\n");
    answers(403, "GET /hello HTTP/1.1\r\nHost: 127.0.0.1:1\r\n%K\r\n\r\n");
    answers(403, "GET /hello HTTP/1.1\r\nHost: 127.0.0.1:%P.evil.example\r\n%K\r\n\r\n");
    answers(403, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    answers(403, "GET / HTTP/1.0\r\n\r\n");
    answers(200, GET("/hello", "%K\r\nOrigin: http://127.0.0.1:%P\r\n"));
    answers(403, GET("/hello", "%K\r\nOrigin: http://evil.example\r\n"));
    answers(403, GET("/hello", "%K\r\nOrigin: null\r\n"));
    answers(403, GET("/hello", "%K\r\nOrigin: http://localhost:%P\r\n")); /* not the Host */
    answers(400, "GET /hello HTTP/1.1\r\nHost: 127.0.0.1:%P\r\nHost: evil.example\r\n%K\r\n\r\n");
}

static void keys(void **state) {
    (void)state;
    answers(200, GET("/", ""));
    answers(401, GET("/hello", ""));
    answers(401, GET("/hello", "X-Facula-Key: \r\n"));
    answers(401, GET("/hello", "X-Facula-Key: 0123456789abcdef0123456789abcde\r\n"));
    answers(401, GET("/hello", "X-Facula-Key: 0123456789abcdef0123456789abcdeg\r\n"));
    answers(401, GET("/hello", "X-Facula-Key: 0123456789abcdef0123456789abcdef0\r\n"));
    answers(200, GET("/hello", "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n"));
    answers(401, GET("/hello", "Authorization: Basic 0123456789abcdef0123456789abcdef\r\n"));
    answers(400, GET("/hello", "%K\r\n%K\r\n"));
    char one[33], two[33];
    OK(fac_http_new_key(one, &err));
    OK(fac_http_new_key(two, &err));
    assert_int_equal(strlen(one), 32);
    assert_string_not_equal(one, two);
}

static void paths_and_methods(void **state) {
    (void)state;
    answers(404, GET("/helloo", "%K\r\n"));
    answers(404, GET("/hello/", "%K\r\n"));
    answers(404, GET("/../hello", "%K\r\n"));
    answers(404, GET("/..%2fhello", "%K\r\n"));
    answers(404, GET("/%2e%2e/etc/passwd", "%K\r\n"));
    answers(404, GET("/hello%00", "%K\r\n"));
    answers(404, GET("/h%65llo", "%K\r\n"));
    answers(404, GET("/models/", "%K\r\n"));
    answers(200, GET("/models/..%2f..%2fetc", "%K\r\n")); /* a name, no file */
    has("/models/..%2f..%2fetc");
    answers(200, GET("/hello?x=%2e&y", "%K\r\n"));
    answers(405, "DELETE /hello HTTP/1.1\r\nHost: 127.0.0.1:%P\r\n%K\r\n\r\n");
    has("Allow: GET, POST");
    answers(405,
            "OPTIONS /hello HTTP/1.1\r\nHost: 127.0.0.1:%P\r\nOrigin: http://127.0.0.1:%P\r\n\r\n");
    assert_null(strstr(answer, "Access-Control"));
    answers(200, "HEAD /hello HTTP/1.1\r\nHost: 127.0.0.1:%P\r\nConnection: close\r\n%K\r\n\r\n");
    assert_null(strstr(answer, "hello"));
}

static void bodies(void **state) {
    (void)state;
    answers(200, POST("/hello", JSON "Content-Length: 2\r\n", "{}"));
    has("\r\n\r\n{}");
    answers(200,
            POST("/hello", "Content-Type: application/json; charset=utf-8\r\nContent-Length: 2\r\n",
                 "{}"));
    answers(415, POST("/hello", "Content-Length: 2\r\n", "{}"));
    answers(415, POST("/hello", "Content-Type: text/plain\r\nContent-Length: 2\r\n", "{}"));
    answers(415, POST("/hello", "Content-Type: application/jsonp\r\nContent-Length: 2\r\n", "{}"));
    answers(411, POST("/hello", JSON "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"));
    answers(413, POST("/hello", JSON "Content-Length: 65537\r\n", ""));
    answers(413, POST("/raw", "Content-Length: 99999999999\r\n", ""));
    answers(413, GET("/hello", "%K\r\nContent-Length: 1\r\n"));
    answers(200, POST("/raw", "Content-Length: 3\r\n", "abc"));
    assert_int_not_equal(ask_bytes(POST("/hello", JSON "Content-Length: -1\r\n", "{}")), 200);
    assert_int_not_equal(
        ask_bytes(POST("/hello", JSON "Content-Length: 99999999999999999999999\r\n", "{}")), 200);
    assert_int_not_equal(
        ask_bytes(POST("/hello", JSON "Content-Length: 2\r\nContent-Length: 3\r\n", "{}")), 200);
}

static void large_bodies(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    char *all = malloc(N + 512);
    const int head = snprintf(all, 512,
                              "POST /raw HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n"
                              "X-Facula-Key: %s\r\nContent-Length: %d\r\n\r\n",
                              port, key, N - 512);
    for (int k = 0; k < N - 512; k++) all[head + k] = (char)('a' + k % 23);
    const int s = connected();
    http_put(s, all, (size_t)(head + N - 512));
    const size_t n = http_get(s, answer, sizeof answer);
    close(s);
    const char *body = strstr(answer, "\r\n\r\n");
    assert_non_null(body);
    assert_int_equal(answer + n - (body + 4), N - 512);
    assert_memory_equal(body + 4, all + head, N - 512);
    free(all);
}

/* ---- answers ---- */

static void headers_and_errors(void **state) {
    (void)state;
    answers(200, GET("/hello", "%K\r\n"));
    has("Content-Security-Policy: default-src 'self'");
    has("X-Content-Type-Options: nosniff");
    has("Cache-Control: no-store");
    has("Content-Length: 9");
    assert_null(strstr(answer, "Access-Control"));
    answers(500, GET("/silent", "%K\r\n"));
    answers(422, GET("/broken", "%K\r\n"));
    has("{\"error\":{\"message\":\"a \\\"name\\\"\\u000a\\\\ of "
        "7\",\"type\":\"invalid_request_error\","
        "\"param\":null,\"code\":\"odd\"}}");
}

static void wait_for_streams(int n) {
    for (int k = 0; k < 400 && atomic_load(&streams) != n; k++) usleep(25000);
    assert_int_equal(atomic_load(&streams), n);
}

static void streams_end(void **state) {
    (void)state;
    answers(200, GET("/numbers", "%K\r\n"));
    has("Content-Type: text/event-stream");
    has("data: 0\n\n");
    has("data: 999\n\n");
    wait_for_streams(0);
    const int s = connected();
    char request[512];
    http_put(s, request,
             (size_t)snprintf(request, sizeof request,
                              "GET /idle HTTP/1.1\r\nHost: localhost:%s\r\n"
                              "X-Facula-Key: %s\r\n\r\n",
                              port, key));
    wait_for_streams(1);
    close(s); /* a client that leaves is seen, though nothing is sent */
    wait_for_streams(0);
}

static void handlers_see_who_left(void **state) {
    (void)state;
    char request[512];
    const int s = connected();
    atomic_store(&saw_gone, false);
    http_put(s, request,
             (size_t)snprintf(request, sizeof request,
                              "GET /waits HTTP/1.1\r\nHost: localhost:%s\r\n"
                              "X-Facula-Key: %s\r\n\r\n",
                              port, key));
    for (int k = 0; k < 100 && !fac_http_running(server); k++) usleep(20000);
    close(s);
    for (int k = 0; k < 100 && !atomic_load(&saw_gone); k++) usleep(50000);
    assert_true(atomic_load(&saw_gone));
}

/* ---- slow ones, and many ---- */

static void slow_ones_are_cut(void **state) {
    (void)state;
    char request[512];
    const int64_t began = fac_now_ns();
    const int half = connected(), none = connected(), deaf = connected();
    http_put(half, "GET /hello HTTP/1.1\r\nHo", 23);
    http_put(deaf, request,
             (size_t)snprintf(request, sizeof request,
                              "GET /flood HTTP/1.1\r\nHost: localhost:%s\r\n"
                              "X-Facula-Key: %s\r\n\r\n",
                              port, key));
    wait_for_streams(1);
    assert_int_equal(http_get(half, answer, 1 << 10), 0);
    assert_int_equal(http_get(none, answer, 1 << 10), 0);
    wait_for_streams(0); /* it takes nothing of what is sent to it */
    const double seconds = (double)(fac_now_ns() - began) * 1e-9;
    if (seconds > 15) fail_msg("slow connections lived for %.1f s", seconds);
    close(half);
    close(none);
    close(deaf);
}

static void a_thousand_connections(void **state) {
    (void)state;
    for (int k = 0; k < 1000; k++) {
        const int s = connected();
        if (k % 3 == 0) http_put(s, "\0\xff\r\n\r\nGET", 9);
        if (k % 3 == 1) http_put(s, "GET / HTTP/9.9\r\n\r\n", 18);
        close(s);
    }
    int status = 0; /* at most 16 at once: what comes meanwhile waits, or is closed */
    for (int k = 0; k < 100 && status != 200; k++) {
        if (k) usleep(100000);
        status = ask_bytes(GET("/hello", "%K\r\n"));
    }
    assert_int_equal(status, 200);
}

/* Bytes of a good request are changed, left out or put in: any answer will do, but the server
 * lives. */
static void malformed_requests(void **state) {
    (void)state;
    char good[512];
    unsigned x = 12345;
    const int n = snprintf(
        good, sizeof good,
        "POST /hello HTTP/1.1\r\nHost: localhost:%s\r\nX-Facula-Key: %s\r\n"
        "Connection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        port, key);
    for (int k = 0; k < 300; k++) {
        char bad[512];
        const int s = connected();
        memcpy(bad, good, (size_t)n);
        for (int j = 0; j < 3; j++) {
            x = x * 1664525u + 1013904223u;
            bad[(x >> 8) % (unsigned)n] = (char)(x >> 24);
        }
        http_put(s, bad, (size_t)n);
        shutdown(s, SHUT_WR);
        http_get(s, answer, sizeof answer);
        close(s);
    }
    answers(200, GET("/hello", "%K\r\n"));
}

/* ---- starting and stopping ---- */

static void addresses(void **state) {
    (void)state;
    fac_http *other;
    assert_int_equal(
        fac_http_start(&(fac_http_opts){ .host = "0.0.0.0" }, routes, ROUTES, &other, &err),
        FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "key"));
    assert_int_equal(
        fac_http_start(&(fac_http_opts){ .host = "nowhere" }, routes, ROUTES, &other, &err),
        FAC_E_ARGUMENT);
    assert_int_equal(
        fac_http_start(&(fac_http_opts){ .port = 65536 }, routes, ROUTES, &other, &err),
        FAC_E_ARGUMENT);
    assert_int_equal(fac_http_start(&(fac_http_opts){ .port = fac_http_port(server) }, routes,
                                    ROUTES, &other, &err),
                     FAC_E_IO);
    OK(fac_http_start(&(fac_http_opts){ .host = "0.0.0.0", .key = key }, routes, ROUTES, &other,
                      &err));
    fac_http_stop(other);
    fac_http_stop(NULL);
}

static void pages_elsewhere(void **state) {
    (void)state;
    fac_http *before = server;
    const fac_http_opts o = { .key = key, .cors_origin = "http://localhost:3000" };
    OK(fac_http_start(&o, routes, ROUTES, &server, &err));
    snprintf(port, sizeof port, "%d", fac_http_port(server));
    answers(204, "OPTIONS /hello HTTP/1.1\r\nHost: localhost:%P\r\nConnection: close\r\n"
                 "Origin: http://localhost:3000\r\n\r\n");
    has("Access-Control-Allow-Origin: http://localhost:3000");
    answers(200, GET("/hello", "%K\r\nOrigin: http://localhost:3000\r\n"));
    answers(403, GET("/hello", "%K\r\nOrigin: http://localhost:3001\r\n"));
    fac_http_stop(server);
    server = before;
    snprintf(port, sizeof port, "%d", fac_http_port(server));
}

static void it_stops_with_streams_open(void **state) {
    (void)state;
    char request[512];
    const int s = connected();
    http_put(s, request,
             (size_t)snprintf(request, sizeof request,
                              "GET /idle HTTP/1.1\r\nHost: localhost:%s\r\n"
                              "X-Facula-Key: %s\r\n\r\n",
                              port, key));
    wait_for_streams(1);
    fac_http_close(server);
    const int64_t began = fac_now_ns();
    fac_http_stop(server);
    assert_int_equal(atomic_load(&streams), 0);
    assert_true(fac_now_ns() - began < (int64_t)5000000000);
    close(s);
    assert_true(atomic_load(&logged) > 100);
}

#if __has_include(<microhttpd.h>)
#include <microhttpd.h>
/* What is used of the library, in our words, is what its own header says. */
#define SAME(ours, its) _Static_assert((uint64_t)FAC_MHD_##ours == (uint64_t)MHD_##its, "MHD_" #its)
SAME(USE_THREAD_PER_CONNECTION, USE_THREAD_PER_CONNECTION);
SAME(USE_INTERNAL_POLLING_THREAD, USE_INTERNAL_POLLING_THREAD);
SAME(USE_POLL, USE_POLL);
SAME(USE_ITC, USE_ITC);
SAME(OPTION_END, OPTION_END);
SAME(OPTION_CONNECTION_MEMORY_LIMIT, OPTION_CONNECTION_MEMORY_LIMIT);
SAME(OPTION_CONNECTION_LIMIT, OPTION_CONNECTION_LIMIT);
SAME(OPTION_NOTIFY_COMPLETED, OPTION_NOTIFY_COMPLETED);
SAME(OPTION_LISTEN_SOCKET, OPTION_LISTEN_SOCKET);
SAME(OPTION_UNESCAPE_CALLBACK, OPTION_UNESCAPE_CALLBACK);
SAME(OPTION_NOTIFY_CONNECTION, OPTION_NOTIFY_CONNECTION);
SAME(NO, NO);
SAME(YES, YES);
SAME(HEADER_KIND, HEADER_KIND);
SAME(CONNECTION_NOTIFY_STARTED, CONNECTION_NOTIFY_STARTED);
SAME(CONNECTION_NOTIFY_CLOSED, CONNECTION_NOTIFY_CLOSED);
SAME(CONNECTION_INFO_CONNECTION_FD, CONNECTION_INFO_CONNECTION_FD);
SAME(CONNECTION_INFO_SOCKET_CONTEXT, CONNECTION_INFO_SOCKET_CONTEXT);
SAME(STREAM_END, CONTENT_READER_END_OF_STREAM);
SAME(STREAM_ERROR, CONTENT_READER_END_WITH_ERROR);
SAME(SIZE_UNKNOWN, SIZE_UNKNOWN);
#endif

int main(void) {
    const fac_http_opts o = { .key = key, .seconds = 2, .log = count };
    const fac_status status = fac_http_start(&o, routes, ROUTES, &server, &err);
    if (status == FAC_E_UNSUPPORTED) {
        printf("skipped: %s\n", err.text);
        return strstr(err.text, "Debian: libmicrohttpd12") ? 0 : 1;
    }
    if (status) return fprintf(stderr, "%s\n", err.text), 1;
    snprintf(port, sizeof port, "%d", fac_http_port(server));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_and_origins),  cmocka_unit_test(keys),
        cmocka_unit_test(paths_and_methods),  cmocka_unit_test(bodies),
        cmocka_unit_test(large_bodies),       cmocka_unit_test(headers_and_errors),
        cmocka_unit_test(streams_end),        cmocka_unit_test(handlers_see_who_left),
        cmocka_unit_test(slow_ones_are_cut),  cmocka_unit_test(a_thousand_connections),
        cmocka_unit_test(malformed_requests), cmocka_unit_test(addresses),
        cmocka_unit_test(pages_elsewhere),    cmocka_unit_test(it_stops_with_streams_open),
    };
    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
