/* Networks of random shapes and weights through programs of the cpu, compared with the reference
 * kernels. */
#ifndef FACULA_NET_CHECK_H
#define FACULA_NET_CHECK_H
#include "cpu_check.h"

static inline fac_tensor *random_tensor(uint64_t seed, uint64_t stream, fac_dims d, float size) {
    fac_tensor *t;
    fac_error err;
    size_t n = (size_t)fac_dims_count(&d);
    float *x = malloc(n * 4);
    fac_random_fill(seed, stream, -size, size, n, x);
    if (fac_tensor_new(NULL, FAC_F32, d, &t, &err) || fac_tensor_write(t, x, n * 4, &err))
        fail_msg("%s", err.text);
    free(x);
    return t;
}

enum { NET_OUTPUTS = 8 };
typedef struct builder {
    fac_graph *g;
    uint64_t seed, picks, params;
} builder;

static inline int64_t pick(builder *b, int64_t lo, int64_t hi) {
    return check_pick(b->seed, b->picks++, lo, hi);
}

static inline fac_value *param(builder *b, fac_dims d, float size) {
    char name[16];
    snprintf(name, sizeof name, "p%d", (int)b->params);
    fac_tensor *t = random_tensor(b->seed, 1000 + b->params++, d, size);
    fac_value *v = fac_param(b->g, name, t);
    fac_tensor_free(t);
    return v;
}

/* K, C / groups, R, R with the weights' size chosen so that y stays about as large as x. */
static inline fac_value *conv(builder *b, fac_value *x, int64_t K, int64_t R, int64_t stride,
                              int64_t groups) {
    int64_t C = fac_value_type(x).dims.d[1] / groups, pad = R / 2;
    fac_value *w = param(b, fac_shape(K, C, R, R), sqrtf(3.0f / (float)(C * R * R)));
    return fac_conv2d(x, w, pick(b, 0, 1) ? param(b, fac_shape(K), 0.1f) : NULL,
                      &(fac_conv2d_opts){ .stride = { stride, stride },
                                          .pad = { pad, pad, pad, pad },
                                          .groups = groups });
}

static inline fac_value *activation(builder *b, fac_value *x) {
    switch (pick(b, 0, 4)) {
    case 0:
        return fac_relu(x);
    case 1:
        return fac_relu6(x);
    case 2:
        return fac_silu(x);
    case 3:
        return fac_hard_swish(x);
    default:
        return x;
    }
}

/* All outputs of one run, as floats: to[k] is the caller's. */
static inline void run(fac_device *d, const fac_graph *g, const fac_program_opts *o, fac_tensor *x,
                       float *to[], size_t n[]) {
    fac_error err = { 0 };
    fac_program *p;
    fac_tensor *y[NET_OUTPUTS] = { NULL };
    if (fac_program_new(g, d, o, &p, &err) || fac_program_run(p, &x, y, &err))
        fail_msg("%s", err.text);
    for (int k = 0; k < fac_graph_outputs(g); k++) {
        fac_type t = fac_tensor_type(y[k]);
        n[k] = (size_t)fac_dims_count(&t.dims);
        to[k] = malloc(n[k] * 4);
        if (fac_tensor_read(y[k], to[k], n[k] * 4, &err)) fail_msg("%s", err.text);
        fac_tensor_free(y[k]);
    }
    fac_program_free(p);
}

/* Every output with fusing and without, against the reference; a tile of F(4, 5) alone errs by 7e-6
 * of the largest.  solver: of all nodes that it takes, or NULL. */
static inline void check_network_by(fac_device *d, const fac_graph *g, fac_tensor *x, uint64_t seed,
                                    const char *solver) {
    fac_error err = { 0 };
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    float *want[NET_OUTPUTS], *got[NET_OUTPUTS];
    size_t n[NET_OUTPUTS], m[NET_OUTPUTS];
    run(d, g, &(fac_program_opts){ .solver = "ref", .no_fuse = true }, x, want, n);
    for (int fused = 0; fused < 2; fused++) {
        run(d, g, &(fac_program_opts){ .no_fuse = !fused, .solver = solver }, x, got, m);
        for (int o = 0; o < fac_graph_outputs(g); o++) {
            assert_int_equal(n[o], m[o]);
            float most = 0;
            for (size_t i = 0; i < n[o]; i++) most = fmaxf(most, fabsf(want[o][i]));
            for (size_t i = 0; i < n[o]; i++)
                if (!(fabsf(got[o][i] - want[o][i]) <= 2e-6f + 8e-6f * most))
                    fail_msg("%s, seed %llu, fused %d, output %d[%zu]: %.9g, expected %.9g",
                             fac_device_about(d), (unsigned long long)seed, fused, o, i,
                             (double)got[o][i], (double)want[o][i]);
            free(got[o]);
        }
    }
    for (int o = 0; o < fac_graph_outputs(g); o++) free(want[o]);
}

static inline void check_network(fac_device *d, const fac_graph *g, fac_tensor *x, uint64_t seed) {
    check_network_by(d, g, x, seed, NULL);
}
#endif
