/* facula/studio.h without a browser: a program of one's own shows its training, a client reads the
 * page Notebook byte by byte. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "facula/studio.h"
#include "http_client.h"

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

enum { ROOM = 1 << 20 };
static char got[ROOM];

static fac_studio *open_studio(void) {
    fac_studio *s;
    const fac_status status = fac_studio_open(NULL, &s, &err);
    if (status == FAC_E_UNSUPPORTED) skip(); /* no libmicrohttpd */
    if (status) fail_msg("%s", err.text);
    return s;
}

static int port_of(const fac_studio *s) {
    return atoi(strchr(strchr(fac_studio_address(s), ':') + 1, ':') + 1);
}

static const char *key_of(const fac_studio *s) { return strchr(fac_studio_address(s), '=') + 1; }

/* The body of the answer, which is 200. */
static const char *post(const fac_studio *s, const char *path, const char *body) {
    char request[1000];
    const int n = snprintf(request, sizeof request,
                           "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-Facula-Key: %s\r\n"
                           "Content-Type: application/json\r\nContent-Length: %zu\r\n"
                           "Connection: close\r\n\r\n%s",
                           path, port_of(s), key_of(s), strlen(body), body);
    const int c = http_connect(port_of(s));
    http_put(c, request, (size_t)n);
    http_get(c, got, sizeof got);
    close(c);
    if (strncmp(got, "HTTP/1.1 200", 12)) fail_msg("%s: %s", path, got);
    return strstr(got, "\r\n\r\n") + 4;
}

/* Reads a stream until a text stands in it. */
static void expect(const fac_studio *s, const char *id, const char *text) {
    char request[400];
    size_t n = 0;
    const int c = http_connect(port_of(s));
    const int size = snprintf(request, sizeof request,
                              "GET /api/stream/%.32s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                              "X-Facula-Key: %s\r\n\r\n",
                              id, port_of(s), key_of(s));
    http_put(c, request, (size_t)size);
    struct pollfd p = { .fd = c, .events = POLLIN };
    bool found = false;
    while (!found && n + 1 < sizeof got && poll(&p, 1, 20000) > 0) {
        const ssize_t more = recv(c, got + n, sizeof got - 1 - n, 0);
        if (more <= 0) break;
        n += (size_t)more;
        found = memmem(got, n, text, strlen(text)) != NULL;
    }
    close(c);
    if (!found) fail_msg("no %s within %zu bytes", text, n);
}

static void open_page(const fac_studio *s, char id[33]) {
    const char *answer = strstr(post(s, "/api/open", "{\"page\":\"notebook\"}"), "\"id\":\"");
    assert_non_null(answer);
    snprintf(id, 33, "%.32s", answer + 6);
}

static void curves_and_weights_are_shown(void **state) {
    static const char *const names[] = { "loss", "accuracy" };
    static const char *const tensors[] = { "fc.weight" };
    const float numbers[6] = { -1, 0, 1, 2, 3, 4 }, broken[6] = { NAN, -1, 0, 1, 2, 4 };
    fac_studio *s = open_studio();
    fac_tensor *t;
    char id[33];
    (void)state;
    open_page(s, id);
    for (int k = 1; k <= 3; k++)
        OK(fac_studio_log(s, k, 2, names, (const double[]){ 1.0 / k, 0.25 * k }, &err));
    expect(s, id, "\"x\":[1,2,3],\"y\":[0.25,0.5,0.75]");
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(2, 3), &t, &err));
    OK(fac_tensor_write(t, numbers, sizeof numbers, &err));
    OK(fac_studio_weights(s, 1, tensors, &t, &err));
    expect(s, id, "\"name\":\"fc.weight\",\"shape\":[2,3],\"min\":-1,\"max\":4,\"mean\":1.5");
    OK(fac_tensor_write(t, broken, sizeof broken, &err));
    OK(fac_studio_weights(s, 1, tensors, &t, &err));
    expect(s, id, "\"min\":-1,\"max\":4,\"mean\":\"NaN\"");
    expect(s, id, "\"counts\":[1,0,0,0,1,0,0,0,0,1,");
    fac_tensor_free(t);
    fac_studio_close(s);
}

static void the_page_may_stop_it(void **state) {
    fac_studio *s = open_studio();
    char id[33], path[64];
    (void)state;
    open_page(s, id);
    assert_false(fac_studio_stop_asked(s));
    snprintf(path, sizeof path, "/api/do/%s", id);
    post(s, path, "{\"do\":\"stop\"}");
    assert_true(fac_studio_stop_asked(s));
    expect(s, id, "\"stopped\":true");
    fac_studio_close(s);
}

static void wrong_calls_say_so(void **state) {
    char name[20], long_name[200];
    const char *one = name;
    fac_studio *s = open_studio();
    (void)state;
    for (int k = 0; k < 16; k++) {
        snprintf(name, sizeof name, "curve %d", k);
        OK(fac_studio_log(s, 0, 1, &one, (const double[]){ k }, &err));
    }
    snprintf(name, sizeof name, "one more");
    assert_int_equal(fac_studio_log(s, 0, 1, &one, (const double[]){ 0 }, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "16 curves"));
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    one = long_name;
    assert_int_equal(fac_studio_log(s, 0, 1, &one, (const double[]){ 0 }, &err), FAC_E_ARGUMENT);
    one = "";
    assert_int_equal(fac_studio_log(s, 0, 1, &one, (const double[]){ 0 }, NULL), FAC_E_ARGUMENT);
    OK(fac_studio_log(s, 0, 0, NULL, NULL, &err));
    fac_studio_close(s);
    fac_studio_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curves_and_weights_are_shown),
        cmocka_unit_test(the_page_may_stop_it),
        cmocka_unit_test(wrong_calls_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
