/* Every product of a graph in tiles: which nodes are products, how each is laid out as matrices, and what is reported of them.
 *
 *   linear    x[..., K] w[N, K]' + b     all leading dims of x are rows
 *   gemm      alpha a b + beta c         as it is
 *   matmul    a[..., M, K] b[..., K, N]  one product for each matrix of a batch; one in all where b has two dims
 *   conv      see tile_conv.c            depthwise ones have no product worth a matrix unit and stay
 *   attention its expansion             */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/conv.h"
#include "passes/attr.h"
#include "passes/tile.h"

/* ---- the report ---- */

static fac_tile_row *add_row(fac_tiler *t, const fac_node *n, int64_t m, int64_t cols, int64_t k, int64_t count) {
    fac_tiling *r = t->report;
    char label[256];
    if (!fac_reserve(&r->rows, &r->room, r->n + 1, sizeof *r->rows)) {
        t->status = fac_raise(t->err, FAC_E_NOMEM, "no memory for %zu products", r->n);
        return NULL;
    }
    fac_tile_row *row = &r->rows[r->n++];
    *row = (fac_tile_row){ .name = fac_arena_text(&r->memory, fac_node_label(n, label, sizeof label)), .op = n->op->name, .m = m, .n = cols,
                           .k = k, .count = count, .macs = (double)m * (double)cols * (double)k * (double)count };
    row->tiles = count * fac_tile_count(t->opts, m, cols, k, &row->utilisation);
    return row;
}

static void keep(fac_tile_row *row, const char *why) {
    row->kept = why;
    row->tiles = row->count;
    row->utilisation = 1;
}

int                 fac_tiling_rows(const fac_tiling *t) { return (int)t->n; }
const fac_tile_row *fac_tiling_row(const fac_tiling *t, int i) { return i >= 0 && (size_t)i < t->n ? &t->rows[i] : NULL; }
void fac_tiling_free(fac_tiling *t) {
    if (!t) return;
    fac_arena_free(&t->memory);
    fac_release(t->rows);
    fac_release(t);
}

/* ---- products of two operands ---- */

static fac_value *flat(fac_value *v, int64_t rows, int64_t cols) {
    return v->type.dims.n == 2 ? v : fac_reshape(v, fac_shape(rows, cols));
}

static fac_value *cut_linear(fac_tiler *t, const fac_node *n, fac_value *const in[], int64_t rows, int64_t depth) {
    fac_tile_product p = { fac_tile_operand(flat(in[0], rows, depth), false), fac_tile_operand(in[1], true), in[2], 1, 1 };
    return fac_reshape(fac_tile_cut(t, &p), n->out[0]->type.dims);
}

static fac_value *cut_gemm(fac_tiler *t, const fac_node *n, fac_value *const in[]) {
    fac_tile_product p = { fac_tile_operand(in[0], fac_attr_flag(n, "trans_a")),
                           fac_tile_operand(in[1], fac_attr_flag(n, "trans_b")), in[2],
                           fac_attr_real(n, "alpha", 1), fac_attr_real(n, "beta", 1) };
    return fac_tile_cut(t, &p);
}

/* Where matrix i of the result's batch lies in an operand: dims of one are the same for all. */
static int64_t matrix_of(const fac_dims *y, const fac_dims *x, int64_t i) {
    int64_t at = 0, step = 1;
    for (int k = y->n - 3; k >= 0; k--) {
        const int own = k - (y->n - x->n);
        const int64_t index = i % y->d[k];
        i /= y->d[k];
        if (own < 0) continue;
        if (x->d[own] > 1) at += index * step;
        step *= x->d[own];
    }
    return at;
}

static fac_value *matrix(fac_value *stack, int64_t i) {
    const fac_dims *d = &stack->type.dims;
    if (d->d[0] > 1) stack = fac_slice(stack, 0, i, i + 1, 1);
    return fac_reshape(stack, fac_shape(d->d[1], d->d[2]));
}

static fac_value *stacked(fac_value *v) {
    const fac_dims *d = &v->type.dims;
    int64_t count = 1;
    for (int k = 0; k < d->n - 2; k++) count *= d->d[k];
    return fac_reshape(v, fac_shape(count, d->d[d->n - 2], d->d[d->n - 1]));
}

static fac_value *cut_matmul(fac_tiler *t, const fac_node *n, fac_value *const in[], int64_t m, int64_t cols, int64_t k,
                             int64_t count) {
    const fac_dims *y = &n->out[0]->type.dims, *a = &in[0]->type.dims, *b = &in[1]->type.dims;
    if (b->n == 2) {                            /* every row of a meets the same b */
        fac_tile_product p = { fac_tile_operand(flat(in[0], m * count, k), false), fac_tile_operand(in[1], false), NULL, 1, 1 };
        return fac_reshape(fac_tile_cut(t, &p), *y);
    }
    fac_value *as = stacked(in[0]), *bs = stacked(in[1]);
    fac_value **part = fac_arena_alloc(&t->to->arena, (size_t)count + 1, sizeof *part);
    if (!part) return fac_graph_raise(t->to, FAC_E_NOMEM, "no memory for the matrices of a product");
    for (int64_t i = 0; i < count; i++) {
        fac_tile_product p = { fac_tile_data(matrix(as, matrix_of(y, a, i)), false),
                               fac_tile_data(matrix(bs, matrix_of(y, b, i)), false), NULL, 1, 1 };
        part[i] = fac_reshape(fac_tile_cut(t, &p), fac_shape(1, m, cols));
    }
    return fac_reshape(count > 1 ? fac_concat(part, (int)count, 0) : part[0], *y);
}

/* ---- which nodes ---- */

/* The size of the product that a node is; false: it is none. */
static bool size_of(const fac_node *n, int64_t *m, int64_t *cols, int64_t *k, int64_t *count, const char **why) {
    const fac_dims *x = n->nin ? &n->in[0]->type.dims : NULL, *y = &n->out[0]->type.dims;
    *count = 1;
    *why = NULL;
    if (fac_node_is(n, "linear")) {
        *k = x->d[x->n - 1], *cols = n->in[1]->type.dims.d[0];
        *m = *k ? fac_dims_count(x) / *k : 0;
        return true;
    }
    if (fac_node_is(n, "gemm")) {
        *m = y->d[0], *cols = y->d[1], *k = x->d[!fac_attr_flag(n, "trans_a")];
        return true;
    }
    if (fac_node_is(n, "matmul")) {
        const fac_dims *b = &n->in[1]->type.dims;
        *k = x->d[x->n - 1];
        *m = x->n > 1 ? x->d[x->n - 2] : 1;
        *cols = b->n > 1 ? b->d[b->n - 1] : 1;
        for (int i = 0; i < y->n - 2; i++) *count *= y->d[i];
        if (x->n < 2 || b->n < 2) *why = "an operand of one dim";
        if (b->n == 2 && x->n > 2) *m *= *count, *count = 1;
        return true;
    }
    if (!strncmp(n->op->name, "conv_transpose", 14)) {
        const fac_dims *w = &n->in[1]->type.dims;
        *k = x->d[1], *m = *cols = 1;
        for (int i = 1; i < w->n; i++) *m *= w->d[i];
        for (int i = 2; i < x->n; i++) *cols *= x->d[i];
        *count = x->d[0];
        *why = "transposed convolution: its products overlap in the result";
        return true;
    }
    fac_conv_geom g;
    if ((fac_node_is(n, "conv1d") || fac_node_is(n, "conv2d") || fac_node_is(n, "conv3d")) && fac_conv_geometry(n, &g)) {
        *m = g.K / g.groups, *cols = g.O * g.P * g.Q, *k = g.C / g.groups * g.T * g.R * g.S, *count = g.N * g.groups;
        if (g.groups == g.C && g.groups > 1) *why = "depthwise: no product for a matrix unit";
        if (g.rank == 3) *why = "convolution of three dims";
        return true;
    }
    return false;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    fac_tiler *t = self;
    int64_t m, cols, k, count;
    const char *why;
    char label[256];
    t->to = to;
    if (t->status || !size_of(n, &m, &cols, &k, &count, &why) || m < 1 || cols < 1 || k < 1 || n->body[0]) return false;
    fac_node_label(n, label, sizeof label);
    const bool mine = !t->opts->only || !strcmp(t->opts->only, label);
    t->found |= mine;
    if (!mine || n->out[0]->time != FAC_RUN) return false;
    fac_tile_row *row = add_row(t, n, m, cols, k, count);
    if (!row) return false;
    const bool fits = fac_tile_fits(t->opts, m, cols, k);
    if (fits) row->tiles = count;
    else if (why) keep(row, why);
    if (fits || why || t->opts->count_only) return false;
    t->prefix = label;
    fac_graph_push(to, label);
    if (fac_node_is(n, "linear")) out[0] = cut_linear(t, n, in, m, k);
    else if (fac_node_is(n, "gemm")) out[0] = cut_gemm(t, n, in);
    else if (fac_node_is(n, "matmul")) out[0] = cut_matmul(t, n, in, m, cols, k, count);
    else out[0] = fac_tile_conv(t, n, in);
    fac_graph_pop(to);
    return out[0] != NULL;
}

/* Attention is two products and a softmax, written as one node. */
static bool open_up(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    (void)self;
    if (!fac_node_is(n, "attention")) return false;
    fac_node_expand(to, n, in, out);
    return true;
}

/* ---- the pass ---- */

static fac_status check(const fac_tile_opts *o, fac_error *err) {
    if (o->m < 0 || o->n < 0 || o->k < 0)
        return fac_raise(err, FAC_E_ARGUMENT, "tiles of %lld x %lld x %lld: limits are 1 or more, 0 for none", (long long)o->m,
                         (long long)o->n, (long long)o->k);
    if (!o->m && !o->n && !o->k) return fac_raise(err, FAC_E_ARGUMENT, "tiles without any limit: give one of m, n, k");
    return FAC_OK;
}

static fac_status checked(fac_graph *g, fac_error *err) {
    return g ? fac_graph_check(g, err) : fac_raise(err, FAC_E_NOMEM, "no memory for a graph");
}

static bool open_sizes(const fac_graph *g, const fac_value **which) {
    for (const fac_node *n = g->first; n; n = n->next)
        if (fac_dims_count(&n->out[0]->type.dims) < 0) return *which = n->out[0], true;
    return false;
}

static fac_status prepared(const fac_graph *g, const fac_tile_opts *o, fac_graph **out, fac_error *err) {
    fac_graph *sized = fac_pass_sizes(g, o->batch), *open = NULL;
    const fac_value *which = NULL;
    fac_status status = checked(sized, err);
    if (!status) status = checked(open = fac_graph_rebuild(sized, &(fac_rebuild){ .visit = open_up }, NULL), err);
    if (!status && open_sizes(open, &which)) {
        char label[256];
        status = fac_raise(err, FAC_E_SHAPE, "the size of %s depends on contents: give all sizes",
                           fac_node_label(which->node, label, sizeof label));
    }
    fac_graph_free(sized);
    if (status) fac_graph_free(open);
    else *out = open;
    return status;
}

fac_status fac_graph_tile(const fac_graph *g, const fac_tile_opts *opts, fac_graph **out, fac_tiling **report, fac_error *err) {
    fac_graph *ready = NULL, *cut = NULL;
    fac_tiler t = { .opts = opts, .err = err };
    FAC_TRY(check(opts, err));
    FAC_TRY(prepared(g, opts, &ready, err));
    t.report = fac_alloc(1, sizeof *t.report);
    fac_status status = t.report ? FAC_OK : fac_raise(err, FAC_E_NOMEM, "no memory for a report");
    if (!status) cut = fac_graph_rebuild(ready, &(fac_rebuild){ .self = &t, .visit = visit }, NULL);
    if (!status) status = t.status ? t.status : checked(cut, err);
    if (!status && opts->only && !t.found)
        status = fac_raise(err, FAC_E_ARGUMENT, "there is no product called \"%s\"", opts->only);
    if (!status) fac_graph_sweep(cut);
    fac_graph_free(ready);
    if (status || !out) fac_graph_free(cut);
    else *out = cut;
    if (status || !report) fac_tiling_free(t.report);
    else *report = t.report;
    return status;
}
