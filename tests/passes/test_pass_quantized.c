/* Floats between dequantize_linear and quantize_linear become ops on bytes where they can, and give
 * the same as floats that are rounded, give or take one unit. */
#include "problem_check.h"

typedef struct number {
    double scale, zero;
} number;
static const number X = { 0.02, 131 }, Y = { 0.05, 0 }, Z = { 0.031, 7 };

static fac_value *f32(fac_graph *g, double x) { return fac_number(g, FAC_F32, x); }
static fac_value *packed(fac_graph *g, fac_value *x, number n) {
    return fac_quantize_linear(x, f32(g, n.scale), fac_number(g, FAC_U8, n.zero), NULL);
}
static fac_value *opened(fac_graph *g, fac_value *x, number n) {
    return fac_dequantize_linear(x, f32(g, n.scale), fac_number(g, FAC_U8, n.zero), NULL);
}
static fac_value *both(fac_graph *g, fac_value *x, number n) {
    return opened(g, packed(g, x, n), n);
}

/* A constant of bytes as numbers. */
static fac_value *weights(fac_graph *g, fac_dims dims) {
    fac_tensor *t = NULL;
    fac_error err;
    const size_t n = (size_t)fac_dims_count(&dims);
    int8_t *w = malloc(n);
    for (size_t k = 0; k < n; k++) w[k] = (int8_t)(fac_random_bits(9, 1, k) % 255 - 127);
    assert_int_equal(fac_tensor_new(NULL, FAC_I8, dims, &t, &err), FAC_OK);
    assert_int_equal(fac_tensor_write(t, w, n, &err), FAC_OK);
    free(w);
    fac_value *v = fac_const(g, t);
    fac_tensor_free(t);
    return fac_dequantize_linear(v, f32(g, 0.004), fac_number(g, FAC_I8, 0), NULL);
}

enum {
    CONV,
    CONV_RELU,
    CONV_CLIP_INSIDE,
    DEPTHWISE,
    MATMUL,
    ADD,
    CONV_ADD,
    ADD_CONV,
    MUL,
    MEAN,
    MEAN_FLAT,
    POOL,
    CONCAT,
    TABLE,
    TABLES,
    TWICE,
    KINDS
};
static const char *const solvers[KINDS] = { "qlinear_conv/bytes",
                                            "qlinear_conv/bytes",
                                            NULL,
                                            "qlinear_conv/bytes",
                                            "qlinear_matmul/bytes",
                                            "qlinear_add/bytes",
                                            "qlinear_conv_add/bytes",
                                            "qlinear_conv_add/bytes",
                                            "qlinear_mul/bytes",
                                            "qlinear_global_avg_pool/bytes",
                                            "qlinear_global_avg_pool/bytes",
                                            "max_pool2d/bytes",
                                            "",
                                            "byte_table/bytes",
                                            "byte_table/bytes",
                                            NULL };

static fac_value *made(fac_graph *g, int kind, fac_value *x) {
    const fac_conv2d_opts pad = { .pad = { 1, 1, 1, 1 } },
                          apart = { .pad = { 1, 1, 1, 1 }, .groups = 8 };
    switch (kind) {
    case CONV:
        return packed(g, fac_conv2d(x, weights(g, fac_shape(6, 8, 3, 3)), NULL, &pad), Z);
    case CONV_RELU:
        return packed(g, fac_relu(fac_conv2d(x, weights(g, fac_shape(6, 8, 3, 3)), NULL, &pad)), Y);
    case CONV_CLIP_INSIDE:
        return packed(g,
                      fac_clip(fac_conv2d(x, weights(g, fac_shape(6, 8, 3, 3)), NULL, &pad),
                               f32(g, 0), f32(g, 1)),
                      Y);
    case DEPTHWISE:
        return packed(g, fac_conv2d(x, weights(g, fac_shape(8, 1, 3, 3)), NULL, &apart), Z);
    case MATMUL:
        return packed(g, fac_matmul(x, weights(g, fac_shape(7, 5))), Z);
    case ADD:
        return packed(
            g, fac_add(x, both(g, fac_input(g, "other", FAC_F32, fac_shape(2, 8, 9, 7)), Z)), Y);
    case CONV_ADD:
    case ADD_CONV: {
        fac_value *c = both(g, fac_conv2d(x, weights(g, fac_shape(8, 8, 3, 3)), NULL, &pad), Z);
        return packed(g, kind == CONV_ADD ? fac_add(c, x) : fac_add(x, c), Y);
    }
    case MUL:
        return packed(
            g, fac_mul(x, both(g, fac_input(g, "other", FAC_F32, fac_shape(2, 8, 9, 7)), Z)), Y);
    case MEAN:
        return packed(g, fac_mean(x, fac_shape(2, 3), true), Z);
    case MEAN_FLAT:
        return packed(g, fac_mean(x, fac_shape(2, 3), false), Z);
    case POOL:
        return packed(g, fac_max_pool2d(x, 2, 2, NULL), X);
    case CONCAT:
        return packed(g, fac_concat((fac_value *[]){ x, x }, 2, 1), X);
    case TABLE:
        return packed(g, fac_sigmoid(x), (number){ 1 / 255.0, 0 });
    case TABLES: { /* of x twice, and of numbers */
        fac_value *y = fac_add(fac_mul(x, f32(g, 0.7)), fac_erf(fac_div(x, f32(g, 1.4))));
        return packed(g, fac_mul(both(g, y, Z), f32(g, 0.5)), Z);
    }
    default: {
        fac_value *c = fac_conv2d(x, weights(g, fac_shape(6, 8, 3, 3)), NULL, &pad);
        fac_output(g, "floats", c); /* something reads the floats */
        return packed(g, c, Z);
    }
    }
}

static const char *run(fac_device *d, int kind, bool plain, fac_tensor *out[2], bool *floats) {
    static char found[64];
    fac_graph *g = fac_graph_new();
    fac_error err = { 0 };
    fac_program *p;
    fac_tensor *in[2] = { NULL };
    fac_value *x = both(g, fac_input(g, "x", FAC_F32, fac_shape(2, 8, 9, 7)), X);
    fac_output(g, "y", made(g, kind, x));
    for (int k = 0; k < fac_graph_inputs(g); k++) {
        const fac_type t = fac_value_type(fac_graph_input(g, k));
        const problem_check c = { .seed = 3, .lo = -2, .hi = 2 };
        assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &in[k], &err), FAC_OK);
        problem_fill(&c, k, in[k]);
    }
    const fac_program_opts o = { .no_fuse = plain };
    if (fac_program_new(g, d, &o, &p, &err) || fac_program_run(p, in, out, &err))
        fail_msg("kind %d: %s", kind, err.text);
    fac_step_stat s[64];
    const size_t n = fac_program_steps(p, s, 64);
    *found = 0;
    *floats = false;
    for (size_t k = 0; k < n && k < 64; k++) {
        const bool casts = strstr(s[k].solver, "quantize_linear") != NULL;
        if (strstr(s[k].solver, "/bytes") && !casts)
            snprintf(found, sizeof found, "%s", s[k].solver);
        *floats |= !strncmp(s[k].solver, "conv2d", 6);
    }
    fac_program_free(p);
    for (int k = 0; k < 2; k++) fac_tensor_free(in[k]);
    fac_graph_free(g);
    return found;
}

static void forms(void **state) {
    (void)state;
    fac_error err = { 0 };
    fac_device *d;
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    for (int kind = 0; kind < KINDS; kind++) {
        fac_tensor *bytes[2] = { NULL }, *rounded[2] = { NULL };
        bool floats;
        run(d, kind, true, rounded, &floats);
        const char *solver = run(d, kind, false, bytes, &floats);
        const int y = kind == TWICE;
        if (solvers[kind] && strcmp(solver, solvers[kind])) fail_msg("kind %d: %s", kind, solver);
        if (!solvers[kind] && (*solver || !floats))
            fail_msg("kind %d: %s, floats %d", kind, solver, floats);
        const uint8_t *a = fac_tensor_data(bytes[y]), *b = fac_tensor_data(rounded[y]);
        const fac_type t = fac_tensor_type(bytes[y]);
        for (int64_t k = 0; k < fac_dims_count(&t.dims); k++)
            if (abs(a[k] - b[k]) > 1)
                fail_msg("kind %d: %d, rounded floats give %d", kind, a[k], b[k]);
        for (int k = 0; k < 2; k++) fac_tensor_free(bytes[k]), fac_tensor_free(rounded[k]);
    }
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(forms) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
