/* Inputs of a comparison.  Remainders are drawn evenly.  Real numbers are of several kinds, since
 * functions differ where they saturate, near 0, at corners and at jumps:
 *   0 in [-1, 1)                       4 multiples of 1/2 up to 8, and the corners themselves: ties
 *                                        (up to 1 each second time: the largest is there twice)
 *   1 of any size from 1e-3 to 1e3, some of them near the corners of the functions in both models
 *   2 in [-1000, 1000)                 5 in [-8, 8)
 *   3 in [-0.001, 0.001)               6 in [-0.03, 0.03)       7 in [-60, 60) */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "passes/common/frozen.h"
#include "report/verify/verify.h"
#include "tensor/tensor_internal.h"

enum { STREAMS = 1 << 16, SMALL = 7, WIDE = 100, TIES = 8, EVERY = 4 };
enum { MIXED = 1, TIED = 4 };
static const double sizes[FAC_INPUT_KINDS] = { 1, 0, 1000, 1e-3, 0, 8, 0.03, 60 };

const char *fac_inputs_word(const fac_trial *t, int round) {
    static const char *const words[FAC_INPUT_KINDS] = { "inputs in [-1, 1)",
                                                        "inputs of sizes from 1e-3 to 1e3",
                                                        "inputs in [-1000, 1000)",
                                                        "inputs in [-0.001, 0.001)",
                                                        "inputs that are multiples of 1/2",
                                                        "inputs in [-8, 8)",
                                                        "inputs in [-0.03, 0.03)",
                                                        "inputs in [-60, 60)" };
    return words[t->tame ? 0 : round % FAC_INPUT_KINDS];
}

/* ---- one number ---- */

/* beside: the numbers that these are compared with, or NULL; ties: up to which kind 4 draws. */
typedef struct draw {
    const fac_trial *t;
    int kind, ties;
    uint64_t stream;
    const double *beside;
} draw;

static double uniform(const draw *d, uint64_t k, int turn) {
    return fac_random_uniform(d->t->o->seed + (uint64_t)turn, d->stream, k);
}

/* One of the corners, or a little beside it. */
static double near_corner(const draw *d, uint64_t k, bool exact) {
    const double x = d->t->at[(size_t)(uniform(d, k, 3) * (double)d->t->nat)],
                 by = uniform(d, k, 4) - 0.5;
    return exact || !isfinite(x) ? x : x + by * (0.2 * fabs(x) + 0.2);
}

static double real(const draw *d, uint64_t k) {
    const double x = 2 * uniform(d, k, 0) - 1;
    const bool corner = d->t->nat && k % EVERY == (uint64_t)(d->t->nat > 1);
    if (d->kind == MIXED) {
        if (corner && uniform(d, k, 2) < 0.5) return near_corner(d, k, false);
        return copysign(pow(10, 6 * fabs(x) - 3), uniform(d, k, 1) - 0.5);
    }
    if (d->kind != TIED) return x * sizes[d->kind];
    if (d->beside && uniform(d, k, 2) < 0.75) return d->beside[k];
    return corner ? near_corner(d, k, true) : rint(x * 2 * d->ties) / 2;
}

/* Integers of any size, too: by powers of 2. */
static double whole(const draw *d, uint64_t k, char kind) {
    const uint64_t bits = fac_random_bits(d->t->o->seed, d->stream, k);
    const int small = d->t->narrow ? d->t->narrow : SMALL;
    if (d->t->narrow || d->t->prime || d->kind == 0) return (double)(bits % (uint64_t)small);
    if (d->kind == TIED && d->beside && bits >> 62) return d->beside[k];
    if (d->kind != MIXED) return (double)(int64_t)(bits % (2 * WIDE)) - (kind == 'i' ? WIDE : 0);
    const double size = (double)(bits >> (32 + bits % 31));
    return kind == 'i' && bits >> 31 & 1 ? -size : size;
}

static double drawn(const draw *d, uint64_t k, char kind) {
    if (kind == 'b') return (double)(fac_random_bits(d->t->o->seed, d->stream, k) & 1);
    if (kind != 'f') return whole(d, k, kind);
    if (!d->t->prime) return real(d, k);
    return (double)(fac_random_bits(d->t->o->seed, d->stream, k) % (uint64_t)d->t->prime) -
           d->t->prime / 2;
}

/* ---- tensors ---- */

/* Bounds say most of numbers of moderate size: those first. */
static int kind_of(const fac_trial *t, int round) {
    static const int moderate[FAC_INPUT_KINDS] = { 0, 6, 5, 7, 3, 1, 2, 4 };
    const int kind = round % FAC_INPUT_KINDS;
    if (t->tame) return 0;
    return t->o->mode == FAC_VERIFY_BOUND ? moderate[kind] : kind;
}

/* Numbers that both models can hold: of the narrower type. */
static fac_status random_input(const fac_trial *t, int round, size_t i, fac_tensor **out) {
    const fac_type type = t->a.graph->inputs[i]->type, other = t->b.graph->inputs[i]->type;
    const int64_t n = fac_dims_count(&type.dims);
    const fac_tensor *beside = t->beside && t->beside[i] ? t->beside[i] : NULL;
    const bool again = round / FAC_INPUT_KINDS % 2 != 0;
    draw d = { t, kind_of(t, round), again ? 1 : TIES, (uint64_t)round * STREAMS + i,
               beside ? fac_tensor_data(beside) : NULL };
    const char kind = fac_dtype_get(type.dtype)->kind;
    fac_tensor *wide = NULL, *narrow = NULL;
    if (n < 0)
        return fac_raise(t->err, FAC_E_SHAPE, "the size of input %s is not known",
                         t->a.graph->inputs[i]->name);
    FAC_TRY(fac_tensor_new(NULL, FAC_F64, type.dims, &wide, t->err));
    double *x = fac_tensor_memory(wide);
    for (int64_t k = 0; k < n; k++) {
        const bool tied = d.kind == TIED && !t->prime && k % 2 == 0; /* inputs meet there */
        d.stream = (uint64_t)round * STREAMS + (tied ? 0 : i);
        x[k] = drawn(&d, (uint64_t)k, kind);
    }
    const bool other_is_narrower =
        fac_dtype_get(other.dtype)->block_bytes < fac_dtype_get(type.dtype)->block_bytes;
    fac_status status =
        fac_tensor_convert(wide, other_is_narrower ? other.dtype : type.dtype, &narrow, t->err);
    if (!status) status = fac_tensor_convert(narrow, type.dtype, out, t->err);
    fac_tensor_free(wide);
    fac_tensor_free(narrow);
    return status;
}

fac_status fac_trial_inputs(fac_trial *t, int round) {
    if (t->a.graph->ninputs > STREAMS)
        return fac_raise(t->err, FAC_E_UNSUPPORTED, "more than %d inputs", STREAMS);
    for (size_t i = 0; i < t->a.graph->ninputs; i++) {
        fac_tensor_free(t->in[i]);
        t->in[i] = NULL;
        if (t->o->n && !t->prime)
            t->in[i] = fac_tensor_retain(t->o->inputs[i]);
        else
            FAC_TRY(random_input(t, round, i, &t->in[i]));
    }
    return FAC_OK;
}

/* ---- corners ---- */

enum { MOST = 64, FEW = 16 };

/* What is beyond all numbers that models make (the largest f32, as a mask) is no corner of theirs:
 * inputs of its size would overflow. */
static const double BEYOND = 1e15;

static void add(fac_trial *t, double x) {
    if (fabs(x) > BEYOND && isfinite(x)) return;
    for (size_t k = 0; k < t->nat; k++)
        if (t->at[k] == x || (isnan(x) && isnan(t->at[k]))) return;
    if (t->nat < MOST) t->at[t->nat++] = x;
}

/* What stands beside an input in an op of single numbers: as many numbers, or few, which are
 * corners for all. */
static fac_status operand(fac_trial *t, const fac_graph *g, const fac_node *n, int i) {
    const fac_value *v = n->in[i], *x = n->in[!i];
    const int64_t count = fac_dims_count(&v->type.dims);
    fac_tensor *wide = NULL;
    size_t k = 0;
    while (k < g->ninputs && g->inputs[k] != x) k++;
    const bool direct = k < g->ninputs && fac_dims_count(&x->type.dims) == count;
    if (count > FEW && !direct) return FAC_OK;
    FAC_TRY(fac_tensor_convert(v->tensor, FAC_F64, &wide, t->err));
    const double *numbers = fac_tensor_data(wide);
    for (int64_t j = 0; numbers && j < count && count <= FEW; j++) add(t, numbers[j]);
    if (direct && !t->beside[k]) t->beside[k] = fac_tensor_retain(wide);
    fac_tensor_free(wide);
    return FAC_OK;
}

static fac_status take(fac_trial *t, const fac_graph *g) {
    for (const fac_node *n = g->first; n; n = n->next) {
        double at[FAC_STEPS];
        const int count = n->op->steps && n->in[0] ? n->op->steps(n, at) : 0;
        for (int k = 0; k < count; k++) add(t, at[k]);
        for (int i = 0; i < n->nin && n->op->map && n->nin == 2; i++)
            if (fac_frozen(n->in[i]) && n->in[i]->type.dtype != FAC_TEXT)
                FAC_TRY(operand(t, g, n, i));
    }
    return FAC_OK;
}

fac_status fac_trial_steps(fac_trial *t) {
    t->at = fac_alloc(MOST, sizeof *t->at);
    t->beside = fac_alloc(t->a.graph->ninputs + 1, sizeof(fac_tensor *));
    if (!t->at || !t->beside) return fac_raise_memory(t->err, "corners");
    FAC_TRY(take(t, t->a.graph));
    return take(t, t->b.graph);
}
