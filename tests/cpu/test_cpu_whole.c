/* Solver "whole": sums, products, extremes and their places of whole numbers, forced, against the
 * reference; all types, axes in the front, in the middle and at the end, odd sizes, ties, numbers
 * that wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/rng.h"
#include "facula/backend.h"
#include "facula/program.h"
#include "fresh_seed.h"

static uint64_t seed, drawn;
static uint64_t bits(void) { return fac_random_bits(seed, 0, drawn++); }
static int draw(int below) { return (int)(bits() % (uint64_t)below); }
static fac_error err;

static const char *const types[] = { "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool" };

/* A problem; false: that one is none. */
static bool problem(char *to, size_t size) {
    static const char *const ops[] = { "sum",        "reduce_prod", "reduce_max",
                                       "reduce_min", "arg_max",     "arg_min" };
    const int sizes[] = { 1, 2, 3, 7, 16, 33, 100, 257, 1500 };
    const char *op = ops[draw(6)], *type = types[draw(9)];
    const int rank = 1 + draw(3), axis = draw(rank);
    int64_t all = 1;
    char dims[64] = "";
    for (int k = 0; k < rank; k++) {
        const int n = sizes[draw(9)];
        all *= n;
        snprintf(dims + strlen(dims), sizeof dims - strlen(dims), "%s%d", k ? "," : "", n);
    }
    if (all > 300000 ||
        (!strcmp(type, "bool") && (op[0] == 's' || op[0] == 'a' || !strcmp(op, "reduce_prod"))))
        return false;
    if (!strncmp(op, "arg_", 4))
        snprintf(to, size, "%s(%s[%s]) axis=%d%s", op, type, dims, axis,
                 draw(2) ? " select_last_index" : "");
    else if (draw(4))
        snprintf(to, size, "%s(%s[%s], i64{%d})%s", op, type, dims, axis, draw(2) ? " keep" : "");
    else
        snprintf(to, size, "%s(%s[%s], -)", op, type, dims);
    return true;
}

/* Any bits, or few different numbers, so that there are ties. */
static fac_tensor *random_whole(fac_type type) {
    fac_tensor *t = NULL;
    const size_t bytes = fac_type_bytes(&type);
    uint8_t *all = malloc(bytes + 8);
    const bool few = draw(2) || type.dtype == FAC_BOOL;
    assert_non_null(all);
    for (size_t k = 0; k < bytes; k++) all[k] = few ? (uint8_t)(bits() & 1) : (uint8_t)bits();
    assert_int_equal(fac_tensor_new(NULL, type.dtype, type.dims, &t, &err), FAC_OK);
    if (bytes) assert_int_equal(fac_tensor_write(t, all, bytes, &err), FAC_OK);
    free(all);
    return t;
}

static fac_device *devices[4]; /* by threads; results lie there until they are freed */

static fac_device *device_of(int threads) {
    const fac_device_opts how = { .threads = threads };
    if (!devices[threads])
        assert_int_equal(fac_device_open("cpu", &how, &devices[threads], &err), FAC_OK);
    return devices[threads];
}

static fac_tensor *made_by(const fac_graph *g, fac_tensor *const *in, const char *solver,
                           int threads) {
    fac_device *d = device_of(threads);
    fac_program *p = NULL;
    fac_tensor *y = NULL;
    fac_status status = fac_program_new(g, d, &(fac_program_opts){ .solver = solver }, &p, &err);
    if (!status) status = fac_program_run(p, in, &y, &err);
    if (status) fail_msg("%s", err.text);
    fac_program_free(p);
    return y;
}

static void whole_numbers_are_exact(void **state) {
    enum { ROUNDS = 300 };
    int tried = 0;
    (void)state;
    for (int k = 0; k < ROUNDS; k++) {
        char text[160];
        fac_graph *g = NULL;
        if (!problem(text, sizeof text)) continue;
        if (fac_problem_graph(text, false, &g, &err)) fail_msg("%s: %s", text, err.text);
        fac_tensor *x = random_whole(fac_value_type(fac_graph_input(g, 0)));
        fac_tensor *want = made_by(g, &x, "ref", 1), *got = made_by(g, &x, "whole", 1 + draw(3));
        const fac_type type = fac_tensor_type(want);
        assert_true(fac_tensor_type(got).dtype == type.dtype);
        if (memcmp(fac_tensor_data(got), fac_tensor_data(want), fac_type_bytes(&type)))
            fail_msg("%s differs", text);
        tried++;
        fac_tensor_free(x);
        fac_tensor_free(want);
        fac_tensor_free(got);
        fac_graph_free(g);
    }
    for (int k = 0; k < 4; k++) fac_device_free(devices[k]);
    assert_true(tried > ROUNDS / 8);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(whole_numbers_are_exact) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
