/* Where rounding decides.  A number that is about to be rounded to a code, compared or cut off may
 * lie so near to a tie or a threshold that the last bit of an f32 says which way it goes; what
 * follows from it jumps.  Two ways of writing one function go different ways there.
 *
 * So a model in which something differs runs again, with its codes in simpler ops and random noise,
 * a few times what f32 rounds, on all numbers that rounding made.  How far its results go then is
 * what they are uncertain by.  A number that f32 holds as it is was probably not rounded (sums of
 * small fractions, say) and gets no noise: there a tie is one for both models. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "op_list.h"
#include "passes/passes.h"
#include "report/verify/data.h"
#include "tensor/tensor_internal.h"

typedef fac_data_trial data;

/* Of a number; of the largest of a tensor, for what cancels in a sum. */
static const double NOISE = 0x1p-20, HALF_NOISE = 0x1p-9, BRAIN_NOISE = 0x1p-6, LARGEST = 0.25;

typedef struct noise {
    int64_t stream;
    double size;
    bool always; /* there is no telling what was rounded */
} noise;

/* ---- the model with noise ---- */

static bool jumps(const fac_node *n) {
    bool floats = false, codes = false;
    for (int i = 0; i < n->nin; i++)
        floats |= n->in[i] && fac_is_float(n->in[i]) && fac_reads_data(n, i);
    for (int k = 0; k < n->nout; k++)
        codes |= !fac_is_float(n->out[k]) || fac_dtype_is_stored(n->out[k]->type.dtype);
    return floats && codes;
}

/* Rounding is between the simpler ops of what makes codes. */
static bool stays_whole(void *self, const fac_node *n) {
    (void)self;
    return !jumps(n) && !(n->op->is & FAC_OP_TYPED);
}

static bool rounds(const fac_node *n) {
    const fac_op *op = n->op;
    const int rule = op->rounding.rule;
    if (op->move || op->view || op->is & FAC_OP_PICKS || FAC_IS(n, cast)) return false;
    return rule != FAC_ROUND_KEEPS && rule != FAC_ROUND_MOVES && rule != FAC_ROUND_LARGEST &&
           rule != FAC_ROUND_PICK && rule != FAC_ROUND_WHOLE;
}

static fac_value *number(const fac_value *y, double x) {
    return fac_number(y->graph, y->type.dtype, x);
}

/* What noise is a share of: infinite numbers of the tensor do not count. */
static fac_value *scale_of(fac_value *y, bool each) {
    fac_value *size = fac_abs(y), *zero = number(y, 0);
    if (each || fac_dims_count(&y->type.dims) <= 0) return size;
    fac_value *finite = fac_where(fac_equal(fac_sub(y, y), zero), size, zero);
    fac_value *most = fac_reduce_max(finite, (fac_dims){ 0 }, false);
    return fac_add(size, fac_mul(most, number(y, LARGEST)));
}

static fac_value *noisy(noise *s, fac_value *y, bool each) {
    const fac_dtype t = y->type.dtype;
    fac_value *counter = y->graph->inputs[y->graph->ninputs - 1];
    fac_value *by = fac_uniform(counter, s->stream++, fac_shape_of(y), t);
    by = fac_mul(fac_sub(by, number(y, 0.5)), number(y, 2 * s->size));
    fac_value *moved = fac_add(y, fac_mul(by, scale_of(y, each)));
    if (s->always) return moved;
    return fac_where(fac_equal(fac_cast(fac_cast(y, FAC_F32), t), y), y, moved);
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    noise *s = self;
    if (n->out[0]->time == FAC_COMPILE || !rounds(n)) return false;
    fac_node_copy(to, n, in, out);
    for (int k = 0; k < n->nout; k++) {
        const fac_value *y = out[k];
        const bool real = fac_is_float(y) && !fac_dtype_is_stored(y->type.dtype);
        if (y->leaf != FAC_POISON && real && !y->known)
            out[k] = noisy(s, out[k], n->op->map != NULL);
    }
    return true;
}

/* Its last input says which noise. */
static fac_graph *with_noise(const data *d, const fac_graph *wide) {
    noise s = { .size = NOISE, .always = d->as != FAC_F64 || d->half || d->brain };
    if (d->half) s.size = HALF_NOISE;
    if (d->brain) s.size = BRAIN_NOISE;
    fac_graph *simple = fac_pass_expand(wide, stays_whole, NULL);
    fac_graph *g = simple && d->as == FAC_F64 ? fac_widen(simple, FAC_F64) : simple;
    if (g != simple) fac_graph_free(simple);
    fac_graph *to = g ? fac_graph_rebuild(g, &(fac_rebuild){ .keep_dead = true }, NULL) : NULL;
    fac_graph_free(g);
    if (!to) return NULL;
    fac_input(to, "verify.noise", FAC_I64, (fac_dims){ 0 });
    g = fac_graph_rebuild(to, &(fac_rebuild){ .self = &s, .visit = visit, .blind = true }, NULL);
    fac_graph_free(to);
    return g;
}

/* ---- how far results go ---- */

static double apart(double x, double y) {
    if (x == y || (isnan(x) && isnan(y))) return 0;
    return isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
}

/* Widens e by what lies between two results; where these have other sizes, nothing is certain. */
static void widen(fac_tensor *e, const fac_tensor *a, const fac_tensor *b) {
    double *to = fac_tensor_memory(e), x[2][FAC_DATA_PIECE];
    const fac_type type = fac_tensor_type(a), other = fac_tensor_type(b);
    const int64_t n = fac_dims_count(&type.dims);
    const bool alike = fac_dims_equal(&type.dims, &other.dims);
    for (int64_t from = 0; from < n; from += FAC_DATA_PIECE) {
        const int64_t count = n - from < FAC_DATA_PIECE ? n - from : FAC_DATA_PIECE;
        if (alike) fac_tensor_doubles(a, from, count, x[0]);
        if (alike) fac_tensor_doubles(b, from, count, x[1]);
        for (int64_t k = 0; k < count; k++)
            to[from + k] = fmax(to[from + k], alike ? apart(x[0][k], x[1][k]) : INFINITY);
    }
}

static fac_status run_noise(data *d, const fac_graph *g, fac_program *p, int run,
                            fac_tensor *out[]) {
    fac_trial *t = d->t;
    const int64_t counter = run;
    fac_tensor **at = &t->in[t->a.graph->ninputs]; /* the place after the model's own inputs */
    fac_status status = fac_tensor_new(NULL, FAC_I64, (fac_dims){ 0 }, at, t->err);
    if (!status) status = fac_tensor_write(*at, &counter, sizeof counter, t->err);
    if (!status) status = fac_trial_run(t, g, p, out);
    fac_drop_tensors(at, 1);
    return status;
}

static fac_status spread(data *d, const fac_verify_side *s, fac_graph *g, const fac_noise_runs *of,
                         fac_tensor *e[]) {
    const size_t n = g->noutputs;
    fac_program *p = NULL;
    fac_tensor **out = fac_alloc(n + 1, sizeof *out);
    fac_status status = out ? FAC_OK : fac_raise_memory(d->t->err, "results");
    if (!status) status = fac_trial_program(d->t, g, &p);
    for (int run = of->first; run < of->last && !status; run++) {
        status = run_noise(d, g, p, run, out);
        for (size_t k = 0; k < n && !status; k++)
            if (e[k]) widen(e[k], fac_data_result(s, of->result, k), out[k]);
        if (out) fac_drop_tensors(out, n);
    }
    fac_program_free(p);
    fac_release(out);
    return status;
}

/* Of numbers; texts have no spread. */
static fac_status make_spreads(const data *d, const fac_verify_side *s, int result,
                               fac_tensor *e[]) {
    for (size_t k = 0; k < s->graph->noutputs; k++) {
        const fac_type type = fac_tensor_type(fac_data_result(s, result, k));
        if (e[k] || type.dtype == FAC_TEXT) continue;
        FAC_TRY(fac_tensor_new(NULL, FAC_F64, type.dims, &e[k], d->t->err));
        double *x = fac_tensor_memory(e[k]);
        for (int64_t i = 0; i < fac_dims_count(&type.dims); i++) x[i] = 0;
    }
    return FAC_OK;
}

fac_status fac_noise_spread(data *d, int side, const fac_noise_runs *of, fac_tensor *e[]) {
    const fac_verify_side *s = side ? &d->t->b : &d->t->a;
    FAC_TRY(make_spreads(d, s, of->result, e));
    fac_graph *g = with_noise(d, d->wide[side]);
    if (!g) return fac_raise_memory(d->t->err, "a model");
    fac_status status = fac_graph_check(g, d->t->err);
    if (!status) status = fac_trial_inputs(d->t, of->round);
    if (!status) status = spread(d, s, g, of, e);
    fac_graph_free(g);
    return status;
}

bool fac_noise_matters(const fac_graph *g) {
    for (const fac_node *n = g->first; n; n = n->next) {
        const int rule = n->op->rounding.rule;
        const bool unknown = rule == FAC_ROUND_NONE && rounds(n);
        if (rule == FAC_ROUND_WHOLE || unknown || jumps(n)) return true;
        for (int k = 0; k < 2; k++)
            if (n->body[k] && fac_noise_matters(n->body[k])) return true;
    }
    return false;
}
