/* Problems of kernels whose work items take vectors of neighbours. */
#ifndef FACULA_OPENCL_NEIGHBOURS_H
#define FACULA_OPENCL_NEIGHBOURS_H
#include "backends/opencl/device/probe.h"
#include "base/optional.h"
#include "op_list.h"
#include "opencl_solver_check.h"
#include "graph/attr.h"

static int64_t number(int64_t least, int64_t most) {
    return least + (int64_t)(fac_random_bits(seed, ++stream, 0) % (uint64_t)(most - least + 1));
}

/* T stands for a type of elements; between brackets b, c, h, w, m, l stand for numbers. */
static const struct template {
    const char *solver, *text;
    double tolerance;
}
templates[] = {
    { "batch_norm",
      "batch_norm(T[b,c,h,w], f32[c], f32[c], f32[c], f32[c]) epsilon=1e-3 momentum=0.9 "
      "training_mode",
      1e-4 },
    { "batch_norm",
      "batch_norm(T[b,c,h,w], f32[c], f32[c], f32[c], f32[c], T[b,c,h,w]) epsilon=1e-3 "
      "training_mode "
      "{add(_, x1) relu}",
      1e-4 },
    { "batch_norm", "batch_norm(T[b,c,h,w], f32[c], f32[c], f32[c], f32[c]) epsilon=1e-3 {relu}",
      1e-4 },
    { "batch_norm", "batch_norm_grad(T[b,c,h,w], T[b,c,h,w], f32[c]) epsilon=1e-3", 1e-3 },
    { "batch_norm",
      "batch_norm_act_grad(T[b,c,h,w], T[b,c,h,w], f32[c], T[b,c,h,w]) epsilon=1e-3 hi=1", 1e-3 },
    { "batch_norm",
      "batch_norm_given(T[b,c,h,w], f32[c], f32[c], f32[c], f32[c], f32[c], f32[c]) epsilon=5 "
      "momentum=0.9",
      1e-4 },
    { "batch_norm",
      "batch_norm_given(T[b,c,h,w], f32[c], f32[c], f32[c], f32[c], f32[c], f32[c], T[b,c,h,w]) "
      "epsilon=5 "
      "momentum=0.9 {add(_, x1) relu}",
      1e-4 },
    { "batch_norm",
      "batch_norm_given_relu(T[b,24,h,w], f32[24], f32[24], f32[24], f32[24], f32[24], f32[24], "
      "T[b,24,h,w]) "
      "epsilon=5 momentum=0.9",
      1e-4 },
    { "batch_norm",
      "batch_norm_given_relu(T[b,40,h,w], f32[40], f32[40], f32[40], f32[40], f32[40], f32[40]) "
      "epsilon=5 "
      "momentum=0.9",
      1e-4 },
    { "batch_norm",
      "batch_norm_grad_given(T[b,c,h,w], T[b,c,h,w], f32[c], f32[c], f32[c], f32[c], f32[c]) "
      "epsilon=5",
      1e-4 },
    { "batch_norm_pair",
      "batch_norm_pair(T[b,c,h,w], f32[c], f32[c], f32[c], f32[c], f32[c], f32[c], T[b,c,h,w], "
      "f32[c], f32[c], f32[c], "
      "f32[c], f32[c], f32[c]) epsilon=5 momentum=0.9 other_epsilon=4 other_momentum=0.5 {relu}",
      1e-4 },
    { "batch_norm_pair",
      "batch_norm_pair_relu(T[b,24,h,w], f32[24], f32[24], f32[24], f32[24], f32[24], f32[24], "
      "T[b,24,h,w], f32[24], f32[24], "
      "f32[24], f32[24], f32[24], f32[24]) epsilon=5 momentum=0.9 other_epsilon=4 "
      "other_momentum=0.5",
      1e-4 },
    { "batch_norm_pair",
      "batch_norm_grad_pair(T[b,c,h,w], T[b,c,h,w], f32[c], f32[c], f32[c], f32[c], f32[c], "
      "T[b,c,h,w], f32[c], "
      "f32[c], f32[c], f32[c], f32[c]) epsilon=5 other_epsilon=4",
      1e-4 },
    { "batch_norm_sums", "batch_norm_sums(T[b,c,h,w], T[b,c,h,w], f32[c], f32[c]) epsilon=5",
      1e-3 },
    { "elementwise", "add(T[b,c,h,w], T[b,c,h,w])", 1e-6 },
    { "elementwise", "add(T[b,c,h,w], T[c,1,1])", 1e-6 },
    { "elementwise", "mul(T[m,c], T[m,1])", 1e-6 },
    { "elementwise", "cast(T[m,c]) to=f32", 1e-6 },
    { "elementwise", "cast(f32[m,c]) to=T", 1e-6 },
    { "elementwise", "relu(T[l])", 1e-6 },
    { "elementwise",
      "fused(f32[m,c], T[c], f32[]) "
      "{t0 = cast(x1) to=f32; t1 = mul(x0, t0); t2 = tanh(t1); t3 = add(t2, x2); t2, t3}",
      1e-5 },
    { "reduce", "sum(T[b,c,h,w], i64{0,2,3})", 1e-4 },
    { "reduce", "mean(T[b,c,h,w], i64{2,3})", 2e-5 },
    { "reduce", "sum(T[l], -)", 1e-3 },
    { "reduce", "sum(T[m,c], i64{0})", 1e-3 },
    { "reduce", "reduce_max(T[c,m], i64{1})", 0 },
    { "reduce", "sum(T[m,16], i64{1})", 1e-5 },
    { "softmax", "softmax(T[c,m]) axis=-1", 1e-5 },
    { "softmax", "softmax(T[3,l]) axis=-1", 1e-5 },
    { "softmax", "log_softmax(T[c,m]) axis=1", 1e-5 },
    { "softmax", "log_softmax(T[3,l]) axis=1", 1e-5 },
    { "softmax", "softmax(T[b,c,h,w]) axis=1", 1e-5 },
    { "norm", "layer_norm(T[c,m], T[m], T[m]) axis=-1 epsilon=1e-5", 1e-4 },
    { "norm", "layer_norm(T[b,l], f32[l], f32[l]) axis=-1 epsilon=1e-5", 1e-4 },
    { "norm", "rms_norm(T[c,m], T[m]) axis=-1 epsilon=1e-5", 1e-4 },
    { "norm", "group_norm(T[b,24,h,w], f32[24], f32[24]) groups=3 epsilon=1e-5", 1e-4 },
    { "copy", "transpose(T[b,h,w,c]) perm=0,3,1,2", 0 },
    { "copy", "transpose(T[m,c]) perm=1,0", 0 },
    { "copy", "transpose(T[b,h,c,w]) perm=0,2,1,3", 0 },
    { "copy", "transpose(T[64,m]) perm=1,0", 0 },
    { "gather", "gather(T[m,c], i64[w])", 0 },
    { "dropout", "dropout(T[m,c], i64[]) ratio=0.5 training", 1e-5 },
    { "norm", "group_norm(T[b,24,l,8], f32[24], f32[24]) groups=3 epsilon=1e-5", 1e-4 },
    { "scan", "cum_sum(T[c,m], i64(1))", 1e-4 },
    { "scan", "cum_sum(T[c,m], i64(1)) exclusive reverse", 1e-4 },
    { "concat", "concat(T[b,c,h,w], T[b,8,h,w]) axis=1", 0 },
    { "sum_square_all", "sum_square_all(T[l], T[c,m])", 1e-3 }
};

static const char *const types[] = { "f32", "bf16", "f16" };

/* vectors: all numbers are multiples of eight, else any. */
static void write_problem(const char *from, const char *type, bool vectors, char *to, size_t size) {
    const int64_t by = vectors ? 8 : 1;
    const int64_t more = vectors ? 0 : number(0, 3);
    const int64_t numbers[] = { number(1, 3),
                                by * number(1, 6) + more,
                                by * number(1, 2) + more,
                                8 * number(1, 2) + more,
                                64 * number(2, 60) + more,
                                8 * number(2500, 4000) + more };
    size_t n = 0;
    bool inside = false;
    for (; *from && n + 24 < size; from++) {
        inside = *from == '[' || (inside && *from != ']');
        const char *at =
            inside && (from[-1] == '[' || from[-1] == ',') ? strchr("bchwml", *from) : NULL;
        if (at && *from)
            n += (size_t)snprintf(to + n, size - n, "%lld", (long long)numbers[at - "bchwml"]);
        else if (*from == 'T')
            n += (size_t)snprintf(to + n, size - n, "%s", type);
        else
            to[n++] = *from;
    }
    to[n] = 0;
}

/* Which side of 0 a result of batch_norm_given_relu falls on must not hang on rounding. */
static void away_from_zero(const fac_node *n, const fac_host *in) {
    enum { X, SCALE, BIAS, MEAN = 5, VAR, ADD };
    double epsilon = 0;
    if (!FAC_IS(n, batch_norm_given_relu)) return;
    fac_attr_get_real(n, "epsilon", &epsilon);
    const fac_dims *d = &in[X].type.dims;
    const size_t count = (size_t)fac_dims_count(d);
    const float *scale = in[SCALE].data, *bias = in[BIAS].data, *mean = in[MEAN].data,
                *var = in[VAR].data;
    double *x = calloc(count, sizeof *x), *add = calloc(count, sizeof *add);
    fac_convert(FAC_F64, x, in[X].type.dtype, in[X].data, count);
    if (n->nin > ADD && in[ADD].data)
        fac_convert(FAC_F64, add, in[ADD].type.dtype, in[ADD].data, count);
    for (size_t i = 0; i < count; i++) {
        const int64_t c = (int64_t)i / (d->d[2] * d->d[3]) % d->d[1];
        const double f = (double)scale[c] / sqrt((double)var[c] + epsilon);
        const double y = (x[i] - (double)mean[c]) * f + (double)bias[c] + add[i];
        if (fabs(y) < 1e-4) {
            add[i] += 0.25;
            x[i] = (double)mean[c];
        }
    }
    fac_convert(in[X].type.dtype, in[X].data, FAC_F64, x, count);
    if (n->nin > ADD && in[ADD].data)
        fac_convert(in[ADD].type.dtype, in[ADD].data, FAC_F64, add, count);
    free(x), free(add);
}

/* The same of batch_norm_pair_relu. */
static void pair_away_from_zero(const fac_node *n, const fac_host *in) {
    enum { X, SCALE, BIAS, MEAN = 5, VAR, NORM };
    static const char *const names[] = { "epsilon", "other_epsilon" };
    if (!FAC_IS(n, batch_norm_pair_relu)) return;
    const fac_dims *d = &in[X].type.dims;
    const size_t count = (size_t)fac_dims_count(d);
    double *sum = calloc(count, sizeof *sum), *x = calloc(count, sizeof *x);
    for (int which = 1; which >= 0; which--) {
        const fac_host *v = in + which * NORM;
        const float *scale = v[SCALE].data, *bias = v[BIAS].data, *mean = v[MEAN].data,
                    *var = v[VAR].data;
        double epsilon = 0;
        fac_attr_get_real(n, names[which], &epsilon);
        fac_convert(FAC_F64, x, v[X].type.dtype, v[X].data, count);
        for (size_t i = 0; i < count; i++) {
            const int64_t c = (int64_t)i / (d->d[2] * d->d[3]) % d->d[1];
            sum[i] += (x[i] - (double)mean[c]) * (double)scale[c] / sqrt((double)var[c] + epsilon) +
                      (double)bias[c];
        }
    }
    for (size_t i = 0; i < count; i++)
        if (fabs(sum[i]) < 1e-4) x[i] += 1;
    fac_convert(in[X].type.dtype, in[X].data, FAC_F64, x, count);
    free(x), free(sum);
}

/* Gradients pass relu where it made NaN. */
static void some_nan(const fac_node *n, const fac_host *in) {
    enum { X, Y = 3 };
    if (FAC_IS(n, batch_norm_given_relu) || FAC_IS(n, batch_norm_pair_relu))
        spoil(&in[X].type, in[X].data);
    if (FAC_IS(n, batch_norm_act_grad)) spoil(&in[Y].type, in[Y].data);
}

static void away_from_zeros(const fac_node *n, const fac_host *in) {
    away_from_zero(n, in);
    pair_away_from_zero(n, in);
    some_nan(n, in);
}

static const fac_solver *solver_named(const char *name) {
    for (const fac_solver *const *s = device->backend->solvers; *s; s++)
        if (!strcmp((*s)->name, name)) return *s;
    fail_msg("there is no solver %s", name);
    return NULL;
}

static void try_one(const struct template *t, const char *type, bool vectors) {
    char text[400];
    fac_graph *g = NULL;
    double half = 2e-3;
    if (!strcmp(type, "f32")) half = 0;
    if (!strcmp(type, "bf16")) half = 2e-2;
    write_problem(t->text, type, vectors, text, sizeof text);
    const bool gaps = !channels_last && !number(0, 3);
    print_message("%s%s%s\n", text, fac_text_if(channels_last, ", channels last"),
                  fac_text_if(gaps, ", gaps"));
    OK(fac_problem_graph(text, false, &g, &err));
    const fac_case c = { text, -1, 2, t->tolerance + half };
    assert_true(solve(solver_named(t->solver), g->last, &c, gaps));
    fac_graph_free(g);
}
#endif
