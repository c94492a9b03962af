/* Kernels whose work items take vectors of neighbours: on shapes that are whole vectors and such
 * that are not, with channels last and plain, in f32, bf16 and f16, shaped for a GPU.  Lines are
 * held in registers, read twice, or cut into parts.  Some of the problems are tried, FACULA_ALL=1
 * tries all.  Skipped where no driver is. */
#include "backends/opencl/device/probe.h"
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
enum { TEMPLATES = sizeof templates / sizeof *templates, SOME = 12 };

static const char *const types[] = { "f32", "bf16", "f16" };

/* vectors: all numbers are multiples of eight, else any. */
static void write_problem(const char *from, const char *type, bool vectors, char *to, size_t size) {
    const int64_t by = vectors ? 8 : 1, more = vectors ? 0 : number(0, 3);
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
        if (fabs(y) < 1e-4) add[i] += 0.25, x[i] = (double)mean[c];
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

static void away_from_zeros(const fac_node *n, const fac_host *in) {
    away_from_zero(n, in);
    pair_away_from_zero(n, in);
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
    const double half = !strcmp(type, "f32") ? 0 : !strcmp(type, "bf16") ? 2e-2 : 2e-3;
    write_problem(t->text, type, vectors, text, sizeof text);
    const bool gaps = !channels_last && !number(0, 3);
    print_message("%s%s%s\n", text, channels_last ? ", channels last" : "", gaps ? ", gaps" : "");
    OK(fac_problem_graph(text, false, &g, &err));
    const fac_case c = { text, -1, 2, t->tolerance + half };
    assert_true(solve(solver_named(t->solver), g->last, &c, gaps));
    fac_graph_free(g);
}

/* Batch norms on slices of more channels, each operand of others, as parts of a concat are. */
static void parts(void **state) {
    (void)state;
    if (!device) skip();
    fac_opencl_of(device)->limits.gpu = true;
    channels_last = slices = true;
    for (int k = 0; k < TEMPLATES && !strncmp(templates[k].solver, "batch_norm", 10); k++)
        for (int j = 0; j < 2; j++) try_one(&templates[k], types[number(0, 2)], j);
    channels_last = slices = false;
}

/* Gradients that have no reference but what they expand to: programs on the device and on the cpu.
 */
static const struct template grads[] = {
    { "softmax_grad", "softmax_grad(T[c,m], T[c,m]) axis=-1", 1e-4 },
    { "softmax_grad", "softmax_grad(T[2,l], T[2,l]) axis=-1", 1e-4 },
    { "softmax_grad", "softmax_grad(T[b,c,h,w], T[b,c,h,w]) axis=1", 1e-4 },
    { "log_softmax_grad", "log_softmax_grad(T[c,m], T[c,m]) axis=-1", 1e-4 },
    { "log_softmax_grad", "log_softmax_grad(T[2,l], T[2,l]) axis=-1", 1e-4 },
    { "log_softmax_grad", "log_softmax_grad(T[b,c,h,w], T[b,c,h,w]) axis=1", 1e-4 },
    { "layer_norm_grad", "layer_norm_grad(T[c,m], T[c,m], T[m]) axis=-1 epsilon=1e-5", 2e-4 },
    { "layer_norm_grad", "layer_norm_grad(T[m,h,c], T[m,h,c], -) axis=1 epsilon=1e-3", 2e-4 },
    { "rms_norm_grad", "rms_norm_grad(T[c,m], T[c,m], T[m]) axis=-1 epsilon=1e-5", 2e-4 },
    { "rms_norm_grad", "rms_norm_grad(T[m,h,c], T[m,h,c], -) axis=1 epsilon=1e-3", 2e-4 }
};
enum { GRADS = sizeof grads / sizeof *grads, RESULTS = 3 };

static void run_on(fac_device *d, const fac_graph *g, fac_tensor *const *in, fac_tensor **out) {
    fac_program *p = NULL;
    OK(fac_program_new(g, d, NULL, &p, &err));
    OK(fac_program_run(p, in, out, &err));
    fac_program_free(p);
}

static void compare_tensors(const char *text, const fac_tensor *x, const fac_tensor *y,
                            double tolerance) {
    fac_tensor *a = NULL, *b = NULL;
    const fac_type t = fac_tensor_type(x);
    OK(fac_tensor_convert(x, FAC_F64, &a, &err));
    OK(fac_tensor_convert(y, FAC_F64, &b, &err));
    const double *u = fac_tensor_data(a), *v = fac_tensor_data(b);
    double top = 0;
    for (int64_t i = 0; i < fac_dims_count(&t.dims); i++) top = fmax(top, fabs(v[i]));
    assert_true(isfinite(top));
    for (int64_t i = 0; i < fac_dims_count(&t.dims); i++)
        if (!(fabs(u[i] - v[i]) <= tolerance * (1 + top)))
            fail_msg("%s: element %lld is %.9g, on the cpu %.9g", text, (long long)i, u[i], v[i]);
    fac_tensor_free(a);
    fac_tensor_free(b);
}

static void try_grad(const struct template *t, const char *type, bool whole) {
    char text[400];
    fac_graph *g = NULL;
    fac_device *cpu = NULL;
    fac_tensor *in[4] = { NULL }, *ours[RESULTS] = { NULL }, *theirs[RESULTS] = { NULL };
    write_problem(t->text, type, whole, text, sizeof text);
    print_message("%s\n", text);
    const double lo =
        !strcmp(t->solver, "log_softmax_grad") ? -3 : -1; /* exp(y) times a sum fits into f16 */
    OK(fac_problem_graph(text, false, &g, &err));
    OK(fac_device_open("cpu", NULL, &cpu, &err));
    for (int i = 0; i < fac_graph_inputs(g); i++) {
        void *flat = contents(g->inputs[i]->type, lo, lo + 3);
        OK(fac_tensor_new(NULL, g->inputs[i]->type.dtype, g->inputs[i]->type.dims, &in[i], &err));
        OK(fac_tensor_write(in[i], flat, fac_type_bytes(&g->inputs[i]->type), &err));
        free(flat);
    }
    run_on(device, g, in, ours);
    run_on(cpu, g, in, theirs);
    for (int k = 0; k < fac_graph_outputs(g); k++)
        compare_tensors(text, ours[k], theirs[k],
                        !strcmp(type, "f32")    ? t->tolerance
                        : !strcmp(type, "bf16") ? 4e-2
                                                : 4e-3);
    for (int k = 0; k < RESULTS; k++) fac_tensor_free(ours[k]), fac_tensor_free(theirs[k]);
    for (int i = 0; i < 4; i++) fac_tensor_free(in[i]);
    fac_device_free(cpu);
    fac_graph_free(g);
}

static void gradients(void **state) {
    (void)state;
    if (!device) skip();
    fac_opencl_of(device)->limits.gpu = true;
    for (int k = 0; k < GRADS; k++) try_grad(&grads[k], types[number(0, 2)], number(0, 3));
}

static void vectors(void **state) {
    (void)state;
    if (!device) skip();
    const bool all = getenv("FACULA_ALL") != NULL;
    const int first = (int)number(0, TEMPLATES - 1);
    fac_opencl_of(device)->limits.gpu = true;
    for (int k = 0; k < (all ? TEMPLATES : SOME); k++) {
        const struct template *t = &templates[(first + k * (all ? 1 : 5)) % TEMPLATES];
        for (int j = 0; j < (all ? 3 : 1); j++) {
            channels_last = number(0, 1);
            try_one(t, types[all ? j : number(0, 2)], number(0, 3));
        }
    }
}

/* More work than a GPU of one compute unit holds: items take several vectors, groups several lines.
 */
static const struct template many[] = {
    { "elementwise", "relu(T[40968])", 1e-6 },
    { "elementwise", "gelu(T[40968])", 1e-6 },
    { "elementwise", "gelu_slope(T[40968])", 1e-6 },
    { "elementwise", "cast(T[40968]) to=f32", 1e-6 },
    { "elementwise", "mul(T[81928], T[])", 1e-6 },
    { "dropout", "dropout(T[81,520], i64[]) ratio=0.3 training", 1e-5 },
    { "dropout", "dropout(T[81,520], i64[]) ratio=0.5 training", 1e-5 },
    { "dropout", "dropout(T[81,520], i64[]) ratio=0 training", 1e-5 },
    { "dropout", "dropout(T[81,520]) ratio=0.3", 1e-5 },
    { "concat", "concat(T[67,1032], T[67,1048]) axis=1", 0 },
    { "copy", "transpose(T[136,200]) perm=1,0", 0 },
    { "copy", "transpose(T[2,48,3,72]) perm=0,3,2,1", 0 },
    { "softmax", "softmax(T[131,512]) axis=-1", 1e-5 },
    { "softmax", "log_softmax(T[131,520]) axis=-1", 1e-5 },
    { "softmax", "softmax(T[601,64]) axis=-1", 1e-5 },
    { "norm", "layer_norm(T[131,512], T[512], T[512]) axis=-1 epsilon=1e-5", 1e-4 },
    { "norm", "rms_norm(T[131,520], T[520]) axis=-1 epsilon=1e-5", 1e-4 },
    { "norm", "group_norm(T[2,24,36,132], f32[24], f32[24]) groups=6 epsilon=1e-5",
      1e-4 }, /* in local memory, if f32 */
    { "norm", "rms_norm(T[9,20000], T[20000]) axis=-1 epsilon=1e-5", 1e-4 }, /* the same */
    { "norm", "layer_norm(T[601,64], T[64], T[64]) axis=-1 epsilon=1e-5", 1e-4 },
    { "reduce", "sum(T[131,2048], i64{1})", 1e-3 },
    { "batch_norm",
      "batch_norm(T[1900,136], f32[136], f32[136], f32[136], f32[136]) epsilon=1e-3 training_mode "
      "{relu}",
      1e-4 },
    { "batch_norm",
      "batch_norm_act_grad(T[1900,136], T[1900,136], f32[136], T[1900,136]) epsilon=1e-3 hi=1",
      1e-3 },
    { "batch_norm_sums", "batch_norm_sums(T[4000,32], T[4000,32], f32[32], f32[32]) epsilon=5",
      1e-3 }
};
enum { MANY = sizeof many / sizeof *many, SOME_OF_MANY = 7, LOCAL = 100 << 10 };

static void one_unit(void **state) {
    (void)state;
    if (!device) skip();
    const bool all = getenv("FACULA_ALL") != NULL;
    const int first = (int)number(0, MANY - 1);
    fac_opencl *o = fac_opencl_of(device);
    const unsigned units = o->limits.units;
    const int room = o->paths[FAC_CL_LOCAL_163], fences = o->paths[FAC_CL_FENCES];
    o->limits.gpu = true, o->limits.units = 1, channels_last = false;
    if (room != FAC_CL_GOOD && o->limits.local >= LOCAL) o->paths[FAC_CL_LOCAL_163] = FAC_CL_GOOD;
    if (number(0, 1)) o->paths[FAC_CL_FENCES] = FAC_CL_GOOD; /* which a CPU has */
    for (int k = 0; k < (all ? MANY : SOME_OF_MANY); k++)
        for (int j = 0; j < (all ? 3 : 1); j++)
            try_one(&many[(first + k * (all ? 1 : 3)) % MANY], types[all ? j : number(0, 2)], true);
    try_grad(
        &(struct template){
            "", "layer_norm_grad(T[67,512], T[67,512], T[512]) axis=-1 epsilon=1e-5", 2e-4 },
        types[number(0, 2)], true);
    try_grad(&(struct template){ "",
                                 "rms_norm_grad(T[67,512], T[67,512], T[512]) axis=-1 epsilon=1e-5",
                                 2e-4 },
             types[number(0, 2)], true);
    o->limits.units = units;
    o->paths[FAC_CL_LOCAL_163] = room;
    o->paths[FAC_CL_FENCES] = fences;
}

/* A window on a tensor of the device begins where no vector may: it is lent as a copy, as an input
 * and as a result. */
static void windows(void **state) {
    (void)state;
    if (!device) skip();
    enum { ALL = 100, SOME_OF_THEM = 64, FIRST = 3 };
    fac_tensor *x[2] = { NULL }, *in = NULL, *out = NULL;
    float from[ALL], to[ALL] = { 0 };
    fac_graph *g = NULL;
    fac_program *p = NULL;
    fac_opencl_of(device)->limits.gpu = true;
    for (int i = 0; i < ALL; i++) from[i] = (float)(i % 7) - 3;
    for (int k = 0; k < 2; k++) OK(fac_tensor_new(device, FAC_F32, fac_shape(ALL), &x[k], &err));
    OK(fac_tensor_write(x[0], from, sizeof from, &err));
    OK(fac_tensor_view(x[0], fac_shape(SOME_OF_THEM), NULL, FIRST, &in, &err));
    OK(fac_tensor_view(x[1], fac_shape(SOME_OF_THEM), NULL, FIRST, &out, &err));
    OK(fac_problem_graph("relu(f32[64])", false, &g, &err));
    OK(fac_program_new(g, device, NULL, &p, &err));
    OK(fac_program_run(p, &in, &out, &err));
    OK(fac_tensor_read(x[1], to, sizeof to, &err));
    for (int i = 0; i < ALL; i++) {
        const bool inside = i >= FIRST && i < FIRST + SOME_OF_THEM;
        assert_true(to[i] == (inside && from[i] > 0 ? from[i] : 0));
    }
    fac_tensor_free(in), fac_tensor_free(out), fac_tensor_free(x[0]), fac_tensor_free(x[1]);
    fac_program_free(p);
    fac_graph_free(g);
}

int main(void) {
    decide = away_from_zeros;
    const struct CMUnitTest tests[] = { cmocka_unit_test(vectors), cmocka_unit_test(parts),
                                        cmocka_unit_test(gradients), cmocka_unit_test(one_unit),
                                        cmocka_unit_test(windows) };
    return cmocka_run_group_tests_name("opencl channels last", tests, open_device, close_device);
}
