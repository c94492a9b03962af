/* Convolutions of the cpu on random shapes: any solver on one of them. */
#ifndef FACULA_TESTS_CPU_CONV_CHECK_H
#define FACULA_TESTS_CPU_CONV_CHECK_H
#include "backends/cpu/device/cpu.h"
#include "cpu_check.h"
#include "op_list.h"

static inline fac_value *input(fac_graph *g, int i, fac_dims d) {
    char name[8];
    snprintf(name, sizeof name, "x%d", i);
    return fac_input(g, name, FAC_F32, d);
}

/* ---- convolution ---- */

typedef struct shape {
    int64_t N, C, H, W, K, R, S, groups;
    fac_conv2d_opts o;
    bool bias;
    int body; /* 0 none, 1 relu, 2 clip, 3 add + relu, 4 silu, 5 add */
} shape;

static inline fac_graph *body_of(int kind, fac_type y) {
    if (!kind) return NULL;
    fac_graph *b = fac_graph_new();
    fac_value *v = fac_input(b, "y", y.dtype, y.dims);
    if (kind == 3 || kind == 5) v = fac_add(v, fac_input(b, "r", y.dtype, y.dims));
    if (kind == 1 || kind == 3) v = fac_relu(v);
    if (kind == 2) v = fac_clip(v, fac_number(b, FAC_F32, -0.5), fac_number(b, FAC_F32, 0.75));
    if (kind == 4) v = fac_silu(v);
    fac_output(b, "y", v);
    return b;
}

/* Whether the solver took it. */
static inline bool conv(fac_device *d, const char *solver, const shape *s, uint64_t seed) {
    fac_error err = { 0 };
    fac_graph *g = fac_graph_new();
    fac_conv2d_opts o = s->o;
    o.groups = s->groups;
    fac_value *in[4] = { input(g, 0, fac_shape(s->N, s->C, s->H, s->W)),
                         input(g, 1, fac_shape(s->K, s->C / s->groups, s->R, s->S)),
                         s->bias ? input(g, 2, fac_shape(s->K)) : NULL };
    fac_value *bare = fac_conv2d(in[0], in[1], in[2], &o);
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    in[3] = input(g, 3, bare->type.dims);
    fac_graph *body = body_of(s->body, bare->type);
    int extra = s->body == 3 || s->body == 5;
    fac_value *y =
        body ? fac_emit_body(g, bare->node->op, bare->node->attrs, 3 + extra, 3, in, body, NULL)
             : bare;
    if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
    bool took = check_solver(d, solver, y->node, bare->node, seed);
    fac_graph_free(g);
    return took;
}

static inline shape random_shape(uint64_t seed, int64_t channels) {
    shape s = { .N = check_pick(seed, 0, 1, 3),
                .C = channels,
                .K = check_pick(seed, 1, 1, 70),
                .R = check_pick(seed, 2, 1, 5),
                .S = check_pick(seed, 3, 1, 5),
                .groups = 1,
                .bias = check_pick(seed, 4, 0, 1),
                .body = (int)check_pick(seed, 5, 0, 5) };
    for (uint64_t k = 0; k < 2; k++) {
        s.o.stride[k] = check_pick(seed, 6 + k, 1, 3);
        s.o.dilation[k] = check_pick(seed, 8 + k, 1, 2);
    }
    for (int k = 0; k < 4; k++) s.o.pad[k] = check_pick(seed, 10 + (uint64_t)k, 0, 3);
    s.H = check_pick(seed, 14, 1, 20) + (s.R - 1) * s.o.dilation[0];
    s.W = check_pick(seed, 15, 1, 40) + (s.S - 1) * s.o.dilation[1];
    if (check_pick(seed, 16, 0, 3) == 0) { /* the one that may be flat */
        s.R = s.S = 1;
        s.o = (fac_conv2d_opts){ { 1, 1 }, { 0 }, { 1, 1 }, 0, 0 };
    }
    return s;
}
#endif
