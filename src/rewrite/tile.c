/* Every product of a graph in tiles.  Nodes that are products inside (attention, recurrent cells,
 * functions) are opened up first; then each product is laid out as matrices (here those of two
 * operands, in tile_conv.c convolutions) and cut (tile_product.c). */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/select.h"
#include "rewrite/tile.h"

/* ---- products of two operands ---- */

static fac_value *flat(fac_value *v, int64_t rows, int64_t cols) {
    const fac_dims *d = &v->type.dims;
    return d->n == 2 && d->d[0] == rows && d->d[1] == cols
               ? v
               : fac_reshape_sizes(v, fac_shape(rows, cols));
}

static fac_value *cut_linear(fac_tiler *t, const fac_node *n, fac_value *const in[],
                             const int64_t d[3]) {
    fac_tile_matrix a = fac_tile_operand(flat(in[0], d[0], d[2]), false),
                    b = fac_tile_operand(in[1], true);
    return fac_reshape_sizes(fac_tile_cut(t, &(fac_tile_product){ &a, &b, 1, in[2], 1, 1 }),
                             n->out[0]->type.dims);
}

static fac_value *cut_gemm(fac_tiler *t, const fac_node *n, fac_value *const in[]) {
    fac_tile_matrix a = fac_tile_operand(in[0], fac_attr_flag(n, "trans_a"));
    fac_tile_matrix b = fac_tile_operand(in[1], fac_attr_flag(n, "trans_b"));
    return fac_tile_cut(t, &(fac_tile_product){ &a, &b, 1, in[2], fac_attr_real(n, "alpha", 1),
                                                fac_attr_real(n, "beta", 1) });
}

/* The leading dims of one and of y, as they stand for a batch; a row and a column have none. */
static fac_dims batch_of(const fac_dims *d, int matrix) {
    fac_dims b = *d;
    b.n = d->n > matrix ? d->n - matrix : 0;
    return b;
}

/* Where matrix i of the result's batch lies in an operand: dims of one are the same for all. */
static int64_t matrix_of(const fac_dims *y, const fac_dims *x, int64_t i) {
    int64_t at = 0, step = 1;
    for (int k = y->n - 1; k >= 0; k--) {
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
    return fac_reshape_sizes(stack, fac_shape(d->d[1], d->d[2]));
}

static fac_value *stacked(fac_value *v, int64_t rows, int64_t cols) {
    return fac_reshape(v, fac_shape(-1, rows, cols));
}

static fac_value *cut_matmul(fac_tiler *t, const fac_node *n, fac_value *const in[],
                             const fac_tile_size *s) {
    const fac_dims *y = &n->out[0]->type.dims, a = batch_of(&in[0]->type.dims, 2),
                   b = batch_of(&in[1]->type.dims, 2);
    const int64_t m = s->d[0], cols = s->d[1], k = s->d[2];
    if (in[1]->type.dims.n <= 2) { /* every row of a meets the same b */
        fac_tile_matrix left = fac_tile_operand(flat(in[0], m, k), false),
                        right = fac_tile_operand(flat(in[1], k, cols), false);
        return fac_reshape_sizes(
            fac_tile_cut(t, &(fac_tile_product){ &left, &right, 1, NULL, 1, 1 }), *y);
    }
    const fac_dims batch = batch_of(y, 1 + (in[0]->type.dims.n > 1));
    fac_value *as = stacked(in[0], m, k), *bs = stacked(in[1], k, cols);
    fac_value **part = fac_arena_alloc(&t->to->arena, (size_t)s->count + 1, sizeof *part);
    if (!part)
        return fac_graph_raise(t->to, FAC_E_NOMEM, "no memory for the matrices of a product");
    for (int64_t i = 0; i < s->count; i++) {
        fac_tile_matrix left = fac_tile_data(matrix(as, matrix_of(&batch, &a, i)), false),
                        right = fac_tile_data(matrix(bs, matrix_of(&batch, &b, i)), false);
        part[i] =
            fac_reshape_sizes(fac_tile_cut(t, &(fac_tile_product){ &left, &right, 1, NULL, 1, 1 }),
                              fac_shape(1, m, cols));
    }
    return fac_reshape_sizes(s->count > 1 ? fac_concat(part, (int)s->count, 0) : part[0], *y);
}

/* ---- the pass ---- */

enum { MOST = 1 << 21 }; /* nodes that a product may become */

static fac_value *cut_node(fac_tiler *t, const fac_node *n, fac_value *const in[],
                           const fac_tile_size *s) {
    if (FAC_IS(n, linear)) return cut_linear(t, n, in, s->d);
    if (FAC_IS(n, gemm)) return cut_gemm(t, n, in);
    if (FAC_IS(n, matmul)) return cut_matmul(t, n, in, s);
    if (n->op->layer == FAC_CLASS_CONV_TRANSPOSE) return fac_tile_conv_transpose_node(t, n, in);
    return fac_tile_conv_node(t, n, in);
}

/* A model of so many nodes serves nobody. */
static const char *too_many(fac_tiler *t, const fac_tile_size *sizes, int count, fac_dtype dtype) {
    const bool loops = t->opts->mode == FAC_TILE_LOOP;
    double nodes = 0;
    for (int k = 0; k < count && !t->opts->count_only; k++) {
        fac_tile_row row = {
            .m = sizes[k].d[0], .n = sizes[k].d[1], .k = sizes[k].d[2], .count = 1, .dtype = dtype
        };
        fac_tile_cost(&t->unit, &t->shape, &row);
        nodes += (double)sizes[k].count * (loops ? 1 : (double)row.tiles) + (double)sizes[k].taps;
    }
    return nodes <= MOST
               ? NULL
               : fac_arena_print(&t->report->memory, "%.0f products: too many for a model%s", nodes,
                                 loops ? "" : "; take larger tiles, or loops");
}

/* The rows of a node; true: it has to be cut.  All its products get the tiles of the largest, which
 * is the first. */
static bool judge(fac_tiler *t, const fac_node *n, const fac_tile_size *sizes, int count,
                  const char *why) {
    bool fits = true;
    int most = 0;
    for (int k = 1; k < count; k++)
        if (sizes[k].d[2] > sizes[most].d[2]) most = k;
    const fac_dtype dtype = n->out[0]->type.dtype;
    const char *choice =
        why ? why : fac_tile_choose(&t->unit, sizes[most].d, dtype, &t->shape, &t->report->memory);
    if (!choice) choice = too_many(t, sizes, count, dtype);
    for (int k = 0; k < count && !why; k++) fits &= fac_tile_fits(&t->unit, &t->shape, sizes[k].d);
    for (int k = 0; k < count; k++) {
        fac_tile_row *row = fac_tile_report(t, n, &sizes[k]);
        if (!row) return false;
        if (choice) {
            fac_tile_keep_row(row, choice);
            continue;
        }
        fac_tile_cost(&t->unit, &t->shape, row);
        row->advice = fac_tile_advice(t, row, &sizes[k]);
    }
    return !choice && !fits;
}

/* Products inside of loops and branches stay as they are: those that fit are legal, as often as
 * they run if that is known. */
static void look_inside(fac_tiler *t, const fac_node *n, int64_t times) {
    fac_tile_size sizes[FAC_TILE_SIZES];
    fac_contents trips;
    const char *why;
    if (FAC_IS(n, loop) && fac_known_numbers(n->in[0], &trips) && trips.n == 1 && trips.v[0] > 0)
        times = fac_tile_times(times, trips.v[0]);
    for (int b = 0; b < 2; b++)
        for (const fac_node *m = n->body[b] ? n->body[b]->first : NULL; m && !t->status;
             m = m->next) {
            const int count = fac_tile_sizes(t->opts, m, sizes, &why);
            for (int k = 0; k < count; k++) {
                sizes[k].count = fac_tile_times(sizes[k].count, times);
                fac_tile_row *row = fac_tile_report(t, m, &sizes[k]);
                const char *choice = !row || why ? why
                                                 : fac_tile_choose(&t->unit, sizes[k].d, row->dtype,
                                                                   &t->shape, &t->report->memory);
                if (!row) return;
                if (choice || !fac_tile_fits(&t->unit, &t->shape, sizes[k].d))
                    fac_tile_keep_row(row, choice ? choice
                                                  : fac_arena_print(&t->report->memory,
                                                                    "inside of a %s", n->op->name));
                else
                    fac_tile_cost(&t->unit, &t->shape, row);
            }
            look_inside(t, m, times);
        }
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    fac_tiler *t = self;
    fac_tile_size sizes[FAC_TILE_SIZES];
    const char *why;
    char label[256];
    t->to = to;
    const int count = t->status ? 0 : fac_tile_sizes(t->opts, n, sizes, &why);
    if (n->body[0] && !t->opts->only) look_inside(t, n, 1);
    if (!count || n->out[0]->time != FAC_RUN) return false;
    fac_node_label(n, label, sizeof label);
    if (t->opts->only && !fac_select(n, t->opts->only)) return false;
    t->found = true;
    if (!judge(t, n, sizes, count, why) || t->opts->count_only) return false;
    t->prefix = label;
    fac_graph_push(to, label);
    out[0] = cut_node(t, n, in, &sizes[0]);
    fac_graph_pop(to);
    return out[0] != NULL;
}

static fac_status checked(fac_graph *g, fac_error *err) {
    return g ? fac_graph_check(g, err) : fac_raise_memory(err, "a graph");
}

static fac_status prepared(const fac_graph *g, const fac_tile_opts *o, fac_graph **out,
                           fac_error *err) {
    fac_graph *sized = fac_pass_sizes(g, o->batch), *open = NULL;
    fac_status status = checked(sized, err);
    if (!status) status = checked(open = fac_pass_open(sized, false), err);
    fac_graph_free(sized);
    if (status)
        fac_graph_free(open);
    else
        *out = open;
    return status;
}

fac_status fac_graph_tile(const fac_graph *g, const fac_tile_opts *opts, fac_graph **out,
                          fac_tiling **report, fac_error *err) {
    fac_graph *ready = NULL, *cut = NULL;
    fac_tiler t = { .opts = opts, .err = err };
    FAC_TRY(fac_tile_unit_of(opts, &t.unit, err));
    FAC_TRY(prepared(g, opts, &ready, err));
    t.report = fac_alloc(1, sizeof *t.report);
    fac_status status = t.report ? FAC_OK : fac_raise_memory(err, "a report");
    if (!status) cut = fac_graph_rebuild(ready, &(fac_rebuild){ .self = &t, .visit = visit }, NULL);
    if (!status) status = t.status ? t.status : checked(cut, err);
    if (!status && opts->only && !t.found)
        status = fac_raise(err, FAC_E_ARGUMENT, "there is no product called \"%s\"", opts->only);
    if (!status) fac_graph_sweep(cut);
    fac_graph_free(ready);
    if (status || !out)
        fac_graph_free(cut);
    else
        *out = cut;
    if (status || !report)
        fac_tiling_free(t.report);
    else
        *report = t.report;
    return status;
}
