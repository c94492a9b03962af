/* facula/http.h: slow clients and many, malformed requests, addresses, ends.  Requests are written
 * byte by byte, as no client would send them. */
#include "http_check.h"

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
        cmocka_unit_test(slow_ones_are_cut),  cmocka_unit_test(a_thousand_connections),
        cmocka_unit_test(malformed_requests), cmocka_unit_test(addresses),
        cmocka_unit_test(pages_elsewhere),    cmocka_unit_test(it_stops_with_streams_open),
    };
    return cmocka_run_group_tests_name("http_ends", tests, NULL, NULL);
}
