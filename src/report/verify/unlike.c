/* What remainders do not show: ops that run on them as they are.
 *
 * A sum, a move, a choice and a table of a function (abstract.c) stand for all numbers.  What whole
 * numbers of a graph make (x / 2 of an i32, x > 100, the wrap of a cast to i8) and ops such as
 * argmax or non_max_suppression run on the few small numbers of a round, where an attribute or an
 * operand may do nothing.  These nodes must therefore be the same ones in both models, apart from
 * how often each is there, or equal remainders prove nothing. */
#include <stdio.h>
#include <stdlib.h>
#include "base/memory.h"
#include "facula/ops.h"
#include "op_list.h"
#include "passes/common/casts.h"
#include "passes/common/frozen.h"
#include "report/verify/verify.h"
#include "tensor/tensor_internal.h"

typedef struct entry {
    fac_hash key;
    const fac_node *node;
} entry;

typedef struct list {
    entry *of;
    size_t n;
} list;

static bool touches(const fac_node *n, char kind) {
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && fac_dtype_get(n->in[i]->type.dtype)->kind == kind) return true;
    for (int k = 0; k < n->nout; k++)
        if (fac_dtype_get(n->out[k]->type.dtype)->kind == kind) return true;
    return false;
}

static bool only_flags(const fac_node *n) {
    return touches(n, 'b') && !touches(n, 'f') && !touches(n, 'i') && !touches(n, 'u');
}

/* Whether a round shows the function of this node, whatever its operands are. */
static bool is_shown(const fac_node *n) {
    const fac_op *op = n->op;
    const bool floats = touches(n, 'f');
    if (!n->nout || n->out[0]->time != FAC_RUN || only_flags(n)) return true;
    if (FAC_IS(n, bit_cast)) return false;
    if (FAC_IS(n, cast)) return floats || fac_cast_keeps(n);
    if (op->move || op->view || op->is & FAC_OP_RING || FAC_IS(n, where)) return true;
    if (!floats) return false;
    return op->map || op->is & (FAC_OP_INVERSE | FAC_OP_PICKS);
}

/* The numbers of a constant are a part of what the node is: one of many may change one of the
 * result alone, or move a choice a little. */
static fac_hash operand(fac_hash h, const fac_value *v) {
    enum { PIECE = 64 };
    double x[PIECE];
    h = fac_hash_int(h, v ? (uint64_t)v->type.dtype + 1 : 0);
    const int64_t n = fac_frozen(v) ? fac_dims_count(&v->type.dims) : -1;
    if (n < 0 || v->type.dtype == FAC_TEXT) return h;
    if (v->type.dtype == FAC_I64 || v->type.dtype == FAC_U64) /* doubles do not hold all of them */
        return fac_hash_bytes(h, fac_tensor_data(v->tensor), (size_t)n * sizeof(int64_t));
    for (int64_t from = 0; from < n; from += PIECE) {
        const int64_t count = n - from < PIECE ? n - from : PIECE;
        fac_tensor_doubles(v->tensor, from, count, x);
        h = fac_hash_bytes(h, x, (size_t)count * sizeof *x);
    }
    return h;
}

static fac_hash key_of(const fac_node *n) {
    fac_hash h = fac_node_hash(fac_hash_start(0), n);
    for (int i = 0; i < n->nin; i++) h = operand(h, n->in[i]);
    for (int k = 0; k < n->nout; k++) h = fac_hash_int(h, n->out[k]->type.dtype);
    return h;
}

static int by_key(const void *x, const void *y) {
    const entry *a = x, *b = y;
    if (a->key.a != b->key.a) return a->key.a < b->key.a ? -1 : 1;
    return (a->key.b > b->key.b) - (a->key.b < b->key.b);
}

static bool collect(const fac_graph *g, list *to) {
    size_t room = 0;
    for (const fac_node *n = g->first; n; n = n->next) {
        if (is_shown(n)) continue;
        if (!fac_reserve(&to->of, &room, to->n + 1, sizeof *to->of)) return false;
        to->of[to->n++] = (entry){ key_of(n), n };
    }
    if (to->n) qsort(to->of, to->n, sizeof *to->of, by_key);
    return true;
}

/* A node of one list that the other has no like of. */
static const fac_node *missing(const list *a, const list *b) {
    for (size_t i = 0; i < a->n; i++)
        if (!b->n || !bsearch(&a->of[i], b->of, b->n, sizeof *b->of, by_key)) return a->of[i].node;
    return NULL;
}

bool fac_verify_unlike(const fac_graph *a, const fac_graph *b, const fac_node **node) {
    list x = { 0 }, y = { 0 };
    const bool good = collect(a, &x) && collect(b, &y);
    *node = good ? missing(&x, &y) : NULL;
    if (good && !*node) *node = missing(&y, &x);
    fac_release(x.of);
    fac_release(y.of);
    return good;
}

/* ---- types ---- */

/* What floats of a type reach: codes of 8 bits and fewer, f16, all of 8 exponent bits, f64. */
static int reach(fac_dtype type) {
    if (fac_dtype_get(type)->bits < 16) return 1;
    if (type == FAC_F16) return 2;
    return type == FAC_F64 ? 4 : 3;
}

static void take_float(fac_dtype *least, const fac_value *v) {
    const fac_dtype type = v->type.dtype;
    if (v->time != FAC_RUN || fac_dtype_get(type)->kind != 'f') return;
    if (*least == FAC_NONE || reach(type) < reach(*least)) *least = type;
}

/* Of the floats that a run computes and something reads, a type that reaches least; of the inputs,
 * where it computes none; or FAC_NONE. */
static fac_dtype least_float(const fac_graph *g) {
    fac_dtype least = FAC_NONE;
    for (const fac_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->nout; k++)
            if ((FAC_IS(n, cast) || (!n->op->move && !n->op->view)) &&
                (n->out[k]->uses || n->out[k]->roots))
                take_float(&least, n->out[k]);
    for (size_t i = 0; i < g->ninputs && least == FAC_NONE; i++) take_float(&least, g->inputs[i]);
    return least;
}

/* Canonical forms have one type, but exp(20) of an f32 is infinite in f16. */
const char *fac_verify_other_floats(const fac_graph *a, const fac_graph *b) {
    const fac_dtype x = least_float(a), y = least_float(b);
    if (x == FAC_NONE || y == FAC_NONE || reach(x) == reach(y)) return NULL;
    return fac_dtype_get(reach(x) < reach(y) ? x : y)->name;
}
