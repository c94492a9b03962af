/* Is a faster solver right?  Its problem is posed alone, on random contents, to it and to another:
 * for the cpu's solvers to the reference kernels, for those of other devices to the cpu, whose best
 * precision takes a hundredth of the reference's time. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "ref/ref.h"
#include "tune/tune.h"

enum { TURNS = 500000, PIECE = 4096 };

/* Of the largest value of an output.  Winograd's F(4,3) stays below 4e-6; TF32 keeps 11 bits of the
 * operands, half types 8 to 11. */
static double tolerance(fac_dtype t, fac_precision p) {
    switch (t) {
    case FAC_F64:
        return 1e-9;
    case FAC_F32:
        if (p == FAC_PRECISION_MEDIUM) return 2e-2;
        return p == FAC_PRECISION_HIGH ? 2e-3 : 1e-4;
    case FAC_F16:
    case FAC_BF16:
        return 2e-2;
    default:
        return 0;
    }
}

/* Uniform in [-1, 1) for floats, but in [0.5, 1.5) for variances; 0 and 1 for the others, which may
 * be indices; large tensors repeat, with a prime period that no tile or row has. */
static fac_status random_fill(fac_tensor *t, uint64_t stream, bool variance, fac_error *err) {
    enum { PERIOD = 1048573 };
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims), own = n < PERIOD ? n : PERIOD;
    const bool real = fac_dtype_get(type.dtype)->kind == 'f';
    const size_t size = (size_t)fac_dtype_get(type.dtype)->block_bytes;
    void *data;
    if (type.dtype == FAC_TEXT) return fac_raise(err, FAC_E_UNSUPPORTED, "texts are not tuned");
    FAC_TRY(fac_tensor_begin_write(t, &data, err));
    if (!data) return fac_raise(err, FAC_E_INTERNAL, "contents that the host cannot reach");
    for (int64_t i = 0; i < own; i++) {
        double x = 2 * fac_random_uniform(1, stream, (uint64_t)i) - 1;
        if (variance) x = 1 + x / 2;
        if (!real) x = x > 0;
        fac_convert(type.dtype, (char *)data + (size_t)i * size, FAC_F64, &x, 1);
    }
    for (int64_t i = own; i < n; i += own)
        memcpy((char *)data + (size_t)i * size, data, (size_t)(n - i < own ? n - i : own) * size);
    return FAC_OK;
}

typedef struct trial {
    fac_graph *g;
    fac_wisdom *wisdom;
    fac_tensor **in, **got, **want;
    size_t nin, nout;
} trial;

/* Does the node of the problem read it as the variance of a norm?  Any other contents would make
 * all of its results NaN. */
static bool is_variance(const trial *t, const fac_value *v) {
    const fac_node *n = t->g->outputs[0].value->node;
    for (int i = 0; n && i < n->nports; i++) {
        const char *port = fac_port_name(n, i);
        if (n->in[i] == v && port && strstr(port, "var")) return true;
    }
    return false;
}

static fac_status pose(trial *t, const char *key, fac_error *err) {
    char *text = fac_copy_text(key);
    if (!text) return fac_raise(err, FAC_E_NOMEM, "no memory to check %s", key);
    char *marks = strstr(text, " !");
    const bool params = !strstr(key, " !run=");
    if (marks) *marks = 0;
    fac_status status = fac_problem_graph(text, params, &t->g, err);
    fac_release(text);
    FAC_TRY(status);
    t->nin = t->g->ninputs;
    t->nout = t->g->noutputs;
    t->in = fac_alloc(t->nin + 2 * t->nout + 1, sizeof *t->in);
    if (!t->in) return fac_raise(err, FAC_E_NOMEM, "no memory to check %s", key);
    t->got = t->in + t->nin;
    t->want = t->got + t->nout;
    for (size_t i = 0; i < t->nin; i++) {
        FAC_TRY(fac_tensor_new_on(NULL, NULL, t->g->inputs[i]->type, true, &t->in[i], err));
        FAC_TRY(random_fill(t->in[i], i, is_variance(t, t->g->inputs[i]), err));
    }
    for (size_t i = 0; i < t->g->nparams; i++)
        FAC_TRY(
            random_fill(t->g->params[i]->tensor, 1000 + i, is_variance(t, t->g->params[i]), err));
    return FAC_OK;
}

/* The contents in the host's memory; *own: to release. */
static fac_status contents(const fac_tensor *t, void **own, const char **data, fac_error *err) {
    const fac_type type = fac_tensor_type(t);
    const size_t bytes = fac_type_bytes(&type);
    *own = NULL;
    if (fac_tensor_contiguous(t) && (*data = fac_tensor_data(t))) return FAC_OK;
    if (!(*own = fac_alloc(bytes + 1, 1)))
        return fac_raise(err, FAC_E_NOMEM, "no memory to check %zu bytes", bytes);
    *data = *own;
    return fac_tensor_read(t, *own, bytes, err);
}

/* Differences against the tolerance for the largest value; NaN is equal to NaN only, and most must
 * be numbers.  One of half a million may lie where a comparison turns at the last bit (masks of
 * relu in gradients). */
static bool alike(const char *got, const char *want, const fac_type *type, fac_precision p) {
    const size_t size = (size_t)fac_dtype_get(type->dtype)->block_bytes;
    const int64_t n = fac_dims_count(&type->dims);
    double x[PIECE], y[PIECE], top = 0, most = 0;
    int64_t finite = 0, off = 0;
    for (int turn = 0; turn < 2; turn++) {
        for (int64_t at = 0; at < n; at += PIECE) {
            const size_t k = (size_t)(n - at < PIECE ? n - at : PIECE);
            fac_convert(FAC_F64, y, type->dtype, want + (size_t)at * size, k);
            if (turn) fac_convert(FAC_F64, x, type->dtype, got + (size_t)at * size, k);
            for (size_t i = 0; i < k; i++) {
                if (turn)
                    off += !(x[i] == y[i] || (isnan(x[i]) && isnan(y[i])) ||
                             fabs(x[i] - y[i]) <= most);
                else if (isfinite(y[i]))
                    top = fmax(top, fabs(y[i])), finite++;
            }
        }
        most = tolerance(type->dtype, p) * top;
    }
    return off <= n / TURNS && 2 * finite >= n;
}

static fac_status agree(const fac_tensor *got, const fac_tensor *want, fac_precision p, bool *right,
                        fac_error *err) {
    const fac_type type = fac_tensor_type(want);
    const char *a, *b;
    void *own[2] = { NULL };
    fac_status status = contents(got, &own[0], &a, err);
    if (!status) status = contents(want, &own[1], &b, err);
    if (!status) *right = alike(a, b, &type, p);
    fac_release(own[0]);
    fac_release(own[1]);
    return status;
}

static fac_status run_with(const trial *t, fac_device *d, const fac_program_opts *o,
                           fac_tensor **out, const fac_solver **ran, int *variant, fac_error *err) {
    fac_program *p = NULL;
    FAC_TRY(fac_program_new(t->g, d, o, &p, err));
    fac_status status = fac_program_run(p, t->in, out, err);
    for (int i = 0; !status && i < p->last->nsteps; i++) {
        const fac_step *s = &p->last->steps[i];
        if (s->kind != FAC_STEP_RUN || !s->problem->node->graph) continue;
        *ran = s->solver;
        *variant = s->problem->variant;
    }
    fac_program_free(p);
    return status;
}

/* After the problem, where its text can stand no more: see fac_problem_key. */
static fac_precision precision_of(const char *key) {
    char mark[16];
    for (int p = FAC_PRECISION_MEDIUM; p > FAC_PRECISION_DEFAULT; p--) {
        snprintf(mark, sizeof mark, " !%s", fac_precision_name((fac_precision)p));
        const char *at = strstr(key, mark);
        if (at && (at[strlen(mark)] == ' ' || !at[strlen(mark)])) return (fac_precision)p;
    }
    return FAC_PRECISION_DEFAULT;
}

static fac_status compare(trial *t, fac_device *d, fac_device *judge, const fac_wisdom_entry *e,
                          fac_precision precision, bool *right, fac_error *err) {
    const fac_solver *ran = NULL;
    int variant = 0;
    FAC_TRY(fac_wisdom_new(&t->wisdom, err));
    FAC_TRY(fac_wisdom_put(t->wisdom, e, err));
    const fac_program_opts with = { .wisdom = t->wisdom, .precision = precision, .no_fuse = true };
    FAC_TRY(run_with(t, d, &with, t->got, &ran, &variant, err));
    if (!ran || strcmp(ran->name, e->solver) || variant != e->variant) return FAC_OK;
    const fac_program_opts reference = { .solver = judge ? NULL : fac_solver_ref.name,
                                         .precision = FAC_PRECISION_HIGHEST,
                                         .no_fuse = true };
    FAC_TRY(run_with(t, judge ? judge : d, &reference, t->want, &ran, &variant, err));
    bool all = true;
    for (size_t k = 0; k < t->nout && all; k++)
        FAC_TRY(agree(t->got[k], t->want[k], precision, &all, err));
    *right = all;
    return FAC_OK;
}

fac_status fac_tune_check(fac_device *d, fac_device *judge, const char *key, const char *solver,
                          int variant, int version, bool *right, fac_error *err) {
    const fac_wisdom_entry e = { fac_device_key(d), key, solver, variant, version, 0, 0 };
    trial t = { 0 };
    fac_error own = { 0 };
    *right = false;
    fac_status status = pose(&t, key, &own);
    if (!status) status = compare(&t, d, judge, &e, precision_of(key), right, &own);
    for (size_t i = 0; t.in && i < t.nin + 2 * t.nout; i++) fac_tensor_free(t.in[i]);
    fac_release(t.in);
    fac_wisdom_free(t.wisdom);
    fac_graph_free(t.g);
    if (status == FAC_E_NOMEM || status == FAC_E_DEVICE)
        return fac_raise(err, status, "checking %s: %s", key, own.text);
    return FAC_OK;
}
