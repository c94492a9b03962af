/* Layers whose results are codes: random graphs of whole numbers, and what a device makes of them.
 */
#ifndef FACULA_TESTS_CODES_CHECK_H
#define FACULA_TESTS_CODES_CHECK_H
#include "bits_check.h"
#include "graph_of.h"

/* Codes have nothing after their last channel. */
static inline void fill_codes(fac_tensor *t, uint64_t *s, int channels) {
    const fac_dims d = fac_tensor_type(t).dims;
    const size_t n = (size_t)fac_dims_count(&d), words = (size_t)d.d[4];
    uint32_t *x = malloc((n + 1) * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        const int left = channels - 32 * (int)(i % words);
        x[i] = (uint32_t)below(s, 65536) << 16 | (uint32_t)below(s, 65536);
        if (left < 32) x[i] &= (1u << left) - 1;
    }
    assert_int_equal(fac_tensor_write(t, x, n * sizeof *x, NULL), FAC_OK);
    free(x);
}

enum { MOST_OUT = 4 };
typedef struct results_of {
    int n;
    size_t bytes[MOST_OUT];
    unsigned char *of[MOST_OUT];
} results_of;

static inline void run_text(const char *text, const char *device, const char *isa,
                            const char *solver, int channels, results_of *to) {
    fac_graph *g = graph_of(text);
    fac_device *d;
    fac_program *p;
    fac_error err = { 0 };
    fac_tensor *in[2] = { NULL }, *out[MOST_OUT] = { NULL };
    uint64_t s = seed;
    const fac_device_opts how = { .isa = isa, .threads = isa ? 2 : 0 };
    if (fac_device_open(device, &how, &d, &err)) fail_msg("%s", err.text);
    const int inputs = fac_graph_inputs(g);
    for (int k = 0; k < inputs; k++) {
        const fac_type t = fac_value_type(fac_graph_input(g, k));
        assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &in[k], NULL), FAC_OK);
        if (t.dtype == FAC_U32)
            fill_codes(in[k], &s, channels);
        else
            fill(in[k], &s, -3, 9);
    }
    for (int k = 0; k < fac_graph_params(g); k++)
        fill(fac_value_tensor(fac_graph_param(g, k)), &s, -5, 5);
    const fac_program_opts o = { .no_fuse = solver && !strcmp(solver, "ref"), .solver = solver };
    if (fac_program_new(g, d, &o, &p, &err) || fac_program_run(p, in, out, &err))
        fail_msg("%s\n%s", err.text, text);
    to->n = fac_graph_outputs(g);
    for (int k = 0; k < to->n; k++) {
        const fac_type t = fac_tensor_type(out[k]);
        to->bytes[k] = (size_t)fac_dims_count(&t.dims) * 4;
        to->of[k] = malloc(to->bytes[k] + 1);
        assert_int_equal(fac_tensor_read(out[k], to->of[k], to->bytes[k], NULL), FAC_OK);
        fac_tensor_free(out[k]);
    }
    for (int k = 0; k < inputs; k++) fac_tensor_free(in[k]);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(d);
}

/* A convolution of floats or codes, with or without z, y, limits, relus. */
static inline int random_text(uint64_t *s, char *to, size_t size) {
    static const char *const bases[] = { "-",         "f32{1}",     "f32{2}",
                                         "f32{1, 2}", "f32{3, -1}", "f32{1, 2, 4}" };
    static const int planes[] = { 1, 1, 1, 2, 2, 3 };
    static const int times[] = { 1, 1, 1, 3, 0, 7 }; /* of the least number; 0: no multiples */
    static const char *const relus[] = { "", " relu" };
    const int groups = below(s, 4) ? 1 : 2, coded = below(s, 2), lanes = 16 + 16 * coded;
    const int C = groups > 1 ? lanes * (1 + below(s, 2)) : 1 + below(s, 80);
    const int words = below(s, 3) ? 0 : 32 * (1 + below(s, 3));
    int K = groups > 1 ? 16 * (1 + below(s, 3)) : 1 + below(s, 70);
    if (words) K = words;
    const int R = 1 + below(s, 3), S = 1 + below(s, 3), M = 1 + below(s, 2), N = 1 + below(s, 3);
    const int H = R + below(s, 12), W = S + below(s, 20), ph = below(s, R), pw = below(s, S);
    const int xb = below(s, 6), yb = below(s, 6), all = groups * K, wide = groups * C;
    const int P = H + 2 * ph - R + 1, Q = W + 2 * pw - S + 1;
    const bool limits = M == 1 && times[xb] && below(s, 3), z = !limits && below(s, 2);
    const bool y = !limits && below(s, 2), y_relu = below(s, 2), q_relu = below(s, 2);
    int at = 0;
#define PUT(...) at += snprintf(to + at, size - (size_t)at, __VA_ARGS__)
    if (coded)
        PUT("input x u32[%d,%d,%d,%d,%d]\n", planes[xb], N, H, W, (wide + 31) / 32);
    else
        PUT("input x f32[%d,%d,%d,%d]\n", N, wide, H, W);
    if (z) PUT("input z f32[%d,%d,%d,%d]\n", N, all, P, Q);
    PUT("param w u8[%d,%d,%d]\nparam b f32[%d]\nparam v f32[%d,%d]\nparam s f32[%d]\n", M, all,
        (C * R * S + 7) / 8, all, M, all, all);
    const char *u = bases[xb], *t = bases[yb];
    if (limits)
        PUT("%%3 = code_limits(v, %s, s, b, %s) reach=%d%s\n", u, t, C * R * S * times[xb],
            relus[y_relu || q_relu]);
    const char *add = "-", *limit = "-";
    if (z) add = "z";
    if (limits) limit = "%3";
    PUT("%%4, %%5 = conv2d_codes(x, w, b, %s, v, s, %s, %s, %s)", u, add, t, limit);
    PUT(" pad=%d,%d,%d,%d groups=%d dims=%d,%d,%d,%d", ph, pw, ph, pw, groups, all, C, R, S);
    if (y_relu) PUT(" y_relu");
    if (q_relu) PUT(" q_relu");
    if (!coded && below(s, 2)) PUT(" relu");
    PUT("\noutput q = %%4\n");
    if (y) PUT("output y = %%5\n");
    PUT("%%6 = max_pool_codes(%%4, %s) kernel=%d,%d", t, 1 + (P > 1), 1 + (Q > 1));
    PUT(" stride=%d,%d pad=%d,%d,0,0\noutput m = %%6\n", 1 + below(s, 2), 1 + below(s, 2),
        P > 2 && below(s, 2), Q > 2 && below(s, 2));
    return wide;
}

/* Two or three layers side by side, with or without relu and pool, whose concat another one reads;
 * channels of all but the last one are whole words, mostly. */
static inline int concat_text(uint64_t *s, char *to, size_t size) {
    static const char *const bases[] = { "-", "f32{1}", "f32{1, 2}", "f32{3, -1}", "f32{1, 2, 4}" };
    const int C = 1 + below(s, 40), H = 3 + below(s, 6), W = 3 + below(s, 9), N = 1 + below(s, 2);
    const int parts = 2 + below(s, 2), u = below(s, 5), t = below(s, 5), after = below(s, 3);
    int at = 0, all = 0;
    PUT("input x f32[%d,%d,%d,%d]\n", N, C, H, W);
    for (int i = 0; i < parts; i++) {
        const int whole = i + 1 < parts && below(s, 8);
        const int K = whole ? 32 * (1 + below(s, 2)) : 1 + below(s, 70), R = 1 + 2 * below(s, 2);
        PUT("param w%d u8[1,%d,%d]\nparam v%d f32[1,%d]\nparam b%d f32[%d]\n", i, K,
            (C * R * R + 7) / 8, i, K, i, K);
        PUT("p%d = conv2d_basis(x, w%d, b%d, %s, v%d) pad=%d,%d,%d,%d dims=%d,%d,%d,%d\n", i, i, i,
            bases[u], i, R / 2, R / 2, R / 2, R / 2, K, C, R, R);
        if (below(s, 2))
            PUT("r%d = relu(p%d)\n", i, i);
        else
            PUT("r%d = max_pool2d(p%d) kernel=3,3 stride=1,1 pad=1,1,1,1\n", i, i);
        all += K;
    }
    PUT("c = concat(r0, r1%s) axis=1\n", parts > 2 ? ", r2" : "");
    if (after == 1) PUT("d = relu(c)\n");
    PUT("param w u8[2,9,%d]\nparam v f32[2,9]\n", (all + 7) / 8);
    PUT("y = conv2d_basis(%s, w, -, %s, v) dims=9,%d,1,1%s\n", after == 1 ? "d" : "c", bases[t],
        all, after == 2 ? " relu" : "");
    PUT("output y = y\n");
    if (!below(s, 4)) PUT("output c = c\n");
    return C;
}

#endif
