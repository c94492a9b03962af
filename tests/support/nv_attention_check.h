/* Forms of attention for tests of its solvers on NVIDIA's matrix units: the graph of one, its
 * inputs, how exact results must be. */
#ifndef NV_ATTENTION_CHECK_H
#define NV_ATTENTION_CHECK_H
#include "opencl_solver_check.h"
#include "backends/opencl/nvidia/attention/attention.h"
#include "facula/facula.h"

static fac_device *cpu;

#define DIMS(...)                                                                                  \
    {                                                                                              \
        .n = sizeof(int64_t[]){ __VA_ARGS__ } / sizeof(int64_t), .d = { __VA_ARGS__ }              \
    }

typedef struct form {
    const char *type;
    int B, H, G, Q, T, D, E;
    bool flat, causal;
    double scale;
    const char *mask; /* its type */
    fac_dims mask_dims;
} form;

static inline fac_dtype type_of(const char *name) {
    return !strcmp(name, "bf16")   ? FAC_BF16
           : !strcmp(name, "f16")  ? FAC_F16
           : !strcmp(name, "bool") ? FAC_BOOL
                                   : FAC_F32;
}

/* Outputs: y, its log sum exp; with grads, the gradients by q, k and v of a sum of y's sines. */
static inline fac_graph *build(const form *f, fac_dtype t, bool grads) {
    fac_graph *g = fac_graph_new();
    const fac_dims q =
        f->flat ? fac_shape(f->B, f->Q, f->H * f->D) : fac_shape(f->B, f->H, f->Q, f->D);
    const fac_dims k =
        f->flat ? fac_shape(f->B, f->T, f->G * f->D) : fac_shape(f->B, f->G, f->T, f->D);
    const fac_dims v =
        f->flat ? fac_shape(f->B, f->T, f->G * f->E) : fac_shape(f->B, f->G, f->T, f->E);
    fac_value *wrt[] = { fac_input(g, "q", t, q), fac_input(g, "k", t, k),
                         fac_input(g, "v", t, v) },
              *d[3], *mask = NULL;
    if (f->mask)
        mask = fac_input(g, "mask", type_of(f->mask) == FAC_BOOL ? FAC_BOOL : t, f->mask_dims);
    const fac_attention_opts o = { .q_heads = f->flat ? f->H : 0,
                                   .kv_heads = f->flat ? f->G : 0,
                                   .causal = f->causal,
                                   .scale = f->scale };
    fac_value *y = fac_attention(wrt[0], wrt[1], wrt[2], mask, NULL, NULL, NULL, &o);
    if (grads) fac_grad(fac_sum(fac_sin(y), (fac_dims){ 0 }, false), 3, wrt, d);
    fac_output(g, "y", y);
    fac_output(g, "lse", fac_value_other(y, 4));
    for (int i = 0; i < 3 && grads; i++)
        fac_output(g, (const char *[]){ "dq", "dk", "dv" }[i], d[i]);
    OK(fac_graph_check(g, &err));
    return g;
}
enum { INPUTS = 4, RESULTS = 5 };

/* As a solver sees it; x: as many as the node has operands. */
static inline fac_problem problem_of(const fac_node *n, fac_precision p, fac_operand *x) {
    for (int i = 0; i < n->nin + n->nout; i++) {
        const fac_value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
        if (v) x[i] = (fac_operand){ v->type, fac_layout_plain(&v->type.dims), FAC_RUN, v->known };
    }
    return (fac_problem){
        .node = n, .precision = p, .nin = n->nin, .nout = n->nout, .in = x, .out = x + n->nin
    };
}

static inline void fill(const fac_graph *g, fac_tensor *in[]) {
    for (int i = 0; i < fac_graph_inputs(g); i++) {
        const fac_type t = fac_value_type(fac_graph_input(g, i));
        void *data = contents(t, -1, 1);
        OK(fac_tensor_new(NULL, t.dtype, t.dims, &in[i], &err));
        OK(fac_tensor_write(in[i], data, fac_type_bytes(&t), &err));
        free(data);
    }
}

/* Errors against exact sums, of the largest result. */
static inline double bound(fac_dtype t, fac_precision p, int result) {
    if (t == FAC_F32 && p == FAC_PRECISION_DEFAULT) return result < 2 ? 1e-5 : 5e-5;
    const double one =
        t == FAC_BF16 || (t == FAC_F32 && p == FAC_PRECISION_MEDIUM) ? 1.5e-2 : 2.5e-3;
    return result < 2 ? one : 3 * one;
}

/* n results in rows of so many, against exact ones: how many are wrong, and where most. */
static inline void compare_exact(const form *f, fac_precision p, const char *how, int result,
                                 const double *got, const double *want, int64_t n, int64_t row) {
    /* gradients may be differences of numbers of about one, which a single key makes equal */
    double top = 1e-3, most = 0;
    if (result > 1) top = f->T == 1 ? 1e-1 : 1e-2;
    int64_t place = 0, bad = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, fabs(want[i]));
    for (int64_t i = 0; i < n; i++) {
        const double off = isnan(got[i]) ? INFINITY : fabs(got[i] - want[i]);
        bad += !(off <= bound(type_of(f->type), p, result) * top);
        if (!(off > most)) continue;
        most = off;
        place = i;
    }
    if (getenv("FACULA_VERBOSE"))
        print_message(
            "%s B%d H%d/%d Q%d T%d D%d E%d mask %s causal %d precision %d, %s, result %d: "
            "error %.1e\n",
            f->type, f->B, f->H, f->G, f->Q, f->T, f->D, f->E, f->mask ? f->mask : "none",
            f->causal, p, how, result, most / top);
    if (bad)
        fail_msg("%s B%d H%d/%d Q%d T%d D%d E%d mask %s causal %d precision %d, %s, result %d: %d "
                 "of %d are wrong, most by %.2e at row %d, column %d",
                 f->type, f->B, f->H, f->G, f->Q, f->T, f->D, f->E, f->mask ? f->mask : "none",
                 f->causal, p, how, result, (int)bad, (int)n, most / top, (int)(place / row),
                 (int)(place % row));
}
#endif
