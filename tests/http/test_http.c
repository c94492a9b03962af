/* facula/http.h: who is let in, what is answered, streams, limits.  Requests are written byte by
 * byte, as no client would send them. */
#include "http_check.h"

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
        cmocka_unit_test(hosts_and_origins), cmocka_unit_test(keys),
        cmocka_unit_test(paths_and_methods), cmocka_unit_test(bodies),
        cmocka_unit_test(large_bodies),      cmocka_unit_test(headers_and_errors),
        cmocka_unit_test(streams_end),       cmocka_unit_test(handlers_see_who_left),
    };
    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
