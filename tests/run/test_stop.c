/* facula/stop.h: runs, plans and loops end when they are asked to, and the device works on. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>
#include "facula/facula.h"

static int looked, until;

static bool asked(void *self) {
    (void)self;
    return until && ++looked >= until;
}

static fac_graph *chain(int n) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(4, 4));
    for (int i = 0; i < n; i++) x = fac_tanh(x);
    fac_output(g, "y", x);
    return g;
}

static fac_tensor *fours(void) {
    float x[16] = { 1, -2, 0.5f };
    fac_tensor *t;
    fac_error err;
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(4, 4), &t, &err), FAC_OK);
    assert_int_equal(fac_tensor_write(t, x, sizeof x, &err), FAC_OK);
    return t;
}

static void stops(fac_program *p, fac_tensor *x, int after) {
    fac_error err;
    fac_tensor *y = NULL;
    looked = 0;
    until = after;
    assert_int_equal(fac_program_run(p, &x, &y, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "stopped"));
    assert_null(y);
    assert_int_equal(looked, after); /* nobody asks again, and nothing runs on */
    until = 0;
}

static void a_run_ends(void **state) {
    (void)state;
    fac_error err;
    fac_device *d;
    fac_program *p;
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    fac_device_stop(d, asked, NULL);
    fac_graph *g = chain(20);
    const fac_program_opts opts = { .no_fuse = true };
    assert_int_equal(fac_program_new(g, d, &opts, &p, &err), FAC_OK);
    fac_tensor *x = fours(), *y = NULL;
    stops(p, x, 1); /* while it plans */
    stops(p, x, 7);
    assert_int_equal(fac_program_run(p, &x, &y, &err), FAC_OK);
    fac_tensor_free(y);
    stops(p, x, 3); /* between steps of a plan that is there */
    y = NULL;
    assert_int_equal(fac_program_run(p, &x, &y, &err), FAC_OK);
    fac_tensor_free(y);
    fac_tensor_free(x);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(d);
}

/* Updates of a run that was stopped: each parameter is old or new, whole. */
static void parameters_stay_whole(void **state) {
    (void)state;
    fac_error err;
    fac_device *d;
    fac_program *p;
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    fac_device_stop(d, asked, NULL);
    fac_graph *g = fac_graph_new();
    fac_tensor *w[2] = { fours(), fours() };
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(4, 4));
    for (int k = 0; k < 2; k++) {
        fac_value *s = fac_state(g, k ? "b" : "a", w[k]);
        fac_update(s, fac_add(fac_matmul(s, x), x));
        fac_output(g, k ? "y" : "z", fac_tanh(s));
    }
    const fac_program_opts opts = { .no_fuse = true };
    assert_int_equal(fac_program_new(g, d, &opts, &p, &err), FAC_OK);
    fac_tensor *in = fours(), *y[2] = { NULL, NULL };
    assert_int_equal(fac_program_run(p, &in, y, &err), FAC_OK);
    fac_tensor_free(y[0]);
    fac_tensor_free(y[1]);
    for (int after = 1; after < 6; after++) {
        float old[2][16], now[16], next[16], b[16];
        for (int k = 0; k < 2; k++) fac_tensor_read(w[k], old[k], sizeof old[k], &err);
        fac_tensor_read(in, b, sizeof b, &err);
        looked = 0;
        until = after;
        y[0] = NULL;
        y[1] = NULL;
        const fac_status status = fac_program_run(p, &in, y, &err);
        until = 0;
        fac_tensor_free(y[0]);
        fac_tensor_free(y[1]);
        for (int k = 0; k < 2; k++) {
            fac_tensor_read(w[k], now, sizeof now, &err);
            for (int i = 0; i < 16; i++) {
                next[i] = b[i];
                for (int j = 0; j < 4; j++) next[i] += old[k][i / 4 * 4 + j] * b[j * 4 + i % 4];
            }
            const bool same = !memcmp(now, old[k], sizeof now);
            for (int i = 0; i < 16 && !same; i++)
                assert_true(fabsf(now[i] - next[i]) <= 1e-5f * (1 + fabsf(next[i])));
            if (!status) assert_false(same);
        }
    }
    fac_tensor_free(in);
    fac_program_free(p);
    fac_graph_free(g);
    fac_tensor_free(w[0]);
    fac_tensor_free(w[1]);
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_run_ends),
                                        cmocka_unit_test(parameters_stay_whole) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
