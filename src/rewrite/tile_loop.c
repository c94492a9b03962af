/* Loop mode: tiles of one size are a loop over rows of tiles, in it one over columns, in it one
 * along K that adds up; what is left at the end of a dim is a row, a column or a product of its
 * own.  A file then holds a few nodes for a product of any size.
 *
 * A loop picks its tile by the number of the iteration, so operands are stacks of tiles: A [rows,
 * along K, m, k], B [columns, along K, k, n] (with the last two as they lie in memory).  Those of
 * weights are made now. */
#include "rewrite/tile.h"
#include "tensor/tensor_internal.h"

/* ---- runs of equal tiles along a dim ---- */

enum { RUNS = 2 };
typedef struct run {
    int64_t start, length, count;
} run;

static int runs_of(const fac_tile_line *c, run to[RUNS]) {
    const int64_t last = fac_tile_length(c, c->count - 1),
                  even = last == c->step ? c->count : c->count - 1;
    int n = 0;
    if (even) to[n++] = (run){ 0, c->step, even };
    if (even < c->count) to[n++] = (run){ even * c->step, last, 1 };
    return n;
}

/* ---- stacks ---- */

/* A window on v, as a parameter of its own. */
static fac_value *stack_weights(fac_tiler *t, const fac_tile_matrix *x, fac_value *v,
                                const fac_dims *dims, const int64_t *strides, size_t slot) {
    fac_tensor *window = NULL, *own = NULL;
    t->status = fac_tensor_view(v->tensor, *dims, strides, 0, &window, t->err);
    if (!t->status) t->status = fac_tensor_copy_contiguous(window, &own, t->err);
    fac_tensor_free(window);
    if (t->status)
        return fac_graph_raise(t->to, t->status, "no memory for the tiles of %s",
                               x->name ? x->name : "a constant");
    const char *name = fac_arena_print(&t->to->arena, "%s.%s.tiles_%zu", t->prefix,
                                       x->name ? x->name : "const", slot);
    fac_value *y = v->leaf == FAC_CONST ? fac_const(t->to, own) : fac_param(t->to, name, own);
    fac_tensor_free(own);
    return y;
}

/* The tiles of runs r (rows) and c (columns) of a matrix; the first dim counts those across K, the
 * second those along it. */
static fac_value *stack_of(fac_tiler *t, const fac_tile_matrix *x, const run *r, const run *c,
                           bool along_rows, size_t slot) {
    if (x->tiles[slot]) return x->tiles[slot];
    fac_value *v =
        fac_tile_part(t, x, r->start, r->length * r->count, c->start, c->length * c->count, slot);
    const run *high = x->transposed ? c : r;
    const run *wide = x->transposed ? r : c;
    const int64_t width = v->type.dims.d[1];
    const fac_dims apart = fac_shape(high->count, high->length, wide->count, wide->length);
    const int64_t strides[4] = { high->length * width, width, wide->length, 1 };
    const bool wide_first = along_rows == !x->transposed; /* K runs down the matrix as it lies */
    static const int orders[2][4] = { { 0, 2, 1, 3 }, { 2, 0, 1, 3 } };
    const int *order = orders[wide_first];
    fac_dims dims = { .n = 4 };
    int64_t steps[4];
    for (int k = 0; k < 4; k++) {
        dims.d[k] = apart.d[order[k]];
        steps[k] = strides[order[k]];
    }
    if (x->weight && fac_tile_is_weight(v))
        return x->tiles[slot] = stack_weights(t, x, v, &dims, steps, slot);
    return x->tiles[slot] = fac_transpose(fac_reshape_sizes(v, apart),
                                          fac_shape(order[0], order[1], order[2], order[3]));
}

/* The same of all parts, one after the other along K. */
static fac_value *stack_parts(const fac_tile_job *j, bool left, const run *across, const run *along,
                              size_t slot) {
    const int64_t parts = j->p->parts;
    fac_value **part = fac_arena_alloc(&j->t->to->arena, (size_t)parts, sizeof *part);
    if (!part)
        return fac_graph_raise(j->t->to, FAC_E_NOMEM, "no memory for the parts of a product");
    for (int64_t s = 0; s < parts; s++)
        part[s] = left ? stack_of(j->t, &j->p->a[s], across, along, false, slot)
                       : stack_of(j->t, &j->p->b[s], along, across, true, slot);
    return parts > 1 ? fac_concat(part, (int)parts, 1) : part[0];
}

/* ---- loops ---- */

/* What an iteration makes of its number and of the inputs; the first of these is what it hands on,
 * if it does. */
typedef fac_value *iteration(const fac_tile_job *j, fac_graph *g, fac_value *i, int n,
                             fac_value *const in[]);

/* `trips` results stacked, or what the last iteration hands on. */
static fac_value *loop(const fac_tile_job *j, fac_graph *g, int64_t trips, bool hands_on, int n,
                       fac_value *const in[], iteration *make) {
    fac_graph *body = fac_graph_new();
    fac_value *out[1] = { NULL }, **own = fac_arena_alloc(&g->arena, (size_t)n, sizeof *own);
    if (!body || !own) {
        fac_graph_free(body);
        return fac_graph_raise(g, FAC_E_NOMEM, "no memory for a loop");
    }
    fac_value *i = fac_input(body, "i", FAC_I64, (fac_dims){ 0 }),
              *more = fac_input(body, "more", FAC_BOOL, (fac_dims){ 0 });
    for (int k = 0; k < n; k++)
        own[k] = fac_input(body, fac_arena_print(&body->arena, "x%d", k), in[k]->type.dtype,
                           in[k]->type.dims);
    fac_output(body, "again", fac_identity(more));
    fac_output(body, "y", make(j, body, i, n, own));
    if (body->error.status) {
        fac_value *y =
            fac_graph_raise(g, body->error.status, "a product as a loop: %s", body->error.text);
        fac_graph_free(body);
        return y;
    }
    fac_iterate(g, body, fac_number(g, FAC_I64, (double)trips), fac_number(g, FAC_BOOL, 1),
                hands_on, n, in, out);
    return out[0];
}

/* Tile i of a stack, without its first dim. */
static fac_value *tile_at(fac_value *stack, fac_value *i) { return fac_gather(stack, i, 0); }
static fac_value *only_tile(fac_value *stack) {
    fac_dims d = stack->type.dims;
    for (int k = 1; k < d.n; k++) d.d[k - 1] = d.d[k];
    d.n--;
    return fac_reshape_sizes(stack, d);
}

static fac_value *multiply(const fac_tile_job *j, fac_value *a, fac_value *b, fac_value *sum) {
    const fac_tile_product *p = j->p;
    return fac_gemm(a, b, sum,
                    &(fac_gemm_opts){ .alpha = p->alpha,
                                      .trans_a = p->a->transposed,
                                      .trans_b = p->b->transposed });
}

static fac_value *add_product(const fac_tile_job *j, fac_graph *g, fac_value *i, int n,
                              fac_value *const in[]) {
    (void)g;
    (void)n;
    return multiply(j, tile_at(in[1], i), tile_at(in[2], i), in[0]);
}

/* in: a pair of stacks [along K, ...] for each run along K. */
static fac_value *over_depth(const fac_tile_job *j, fac_graph *g, int n, fac_value *const in[]) {
    fac_value *sum = NULL;
    for (int k = 0; k + 1 < n; k += 2) {
        const fac_dims *a = &in[k]->type.dims, *b = &in[k + 1]->type.dims;
        if (a->d[0] == 1) {
            sum = multiply(j, only_tile(in[k]), only_tile(in[k + 1]), sum);
            continue;
        }
        const fac_dims y = fac_shape(a->d[1 + j->p->a->transposed], b->d[2 - j->p->b->transposed]);
        if (!sum) sum = fac_expand(fac_number(g, in[k]->type.dtype, 0), y);
        sum = loop(j, g, a->d[0], true, 3, (fac_value *[]){ sum, in[k], in[k + 1] }, add_product);
    }
    return sum;
}

/* The operands with tile `at` (NULL: the only one) of every second stack from `first` on. */
static fac_value *const *picked(fac_graph *g, int n, fac_value *const in[], int first,
                                fac_value *at) {
    fac_value **own = fac_arena_alloc(&g->arena, (size_t)n, sizeof *own);
    for (int k = 0; own && k < n; k++)
        if (k % 2 != first)
            own[k] = in[k];
        else
            own[k] = at ? tile_at(in[k], at) : only_tile(in[k]);
    return own ? own : in;
}

static fac_value *one_column(const fac_tile_job *j, fac_graph *g, fac_value *l, int n,
                             fac_value *const in[]) {
    return over_depth(j, g, n, picked(g, n, in, 1, l));
}

/* in: a pair of stacks [along K, m, k] and [columns, along K, k, n] for each run along K -> m,
 * columns n */
static fac_value *over_columns(const fac_tile_job *j, fac_graph *g, int n, fac_value *const in[]) {
    const int64_t columns = in[1]->type.dims.d[0];
    if (columns == 1) return one_column(j, g, NULL, n, in);
    fac_value *y = loop(j, g, columns, false, n, in, one_column);
    const fac_dims *d = &y->type.dims;
    return fac_reshape_sizes(fac_transpose(y, fac_shape(1, 0, 2)),
                             fac_shape(d->d[1], columns * d->d[2]));
}

static fac_value *one_row(const fac_tile_job *j, fac_graph *g, fac_value *i, int n,
                          fac_value *const in[]) {
    return over_columns(j, g, n, picked(g, n, in, 0, i));
}

static fac_value *over_rows(const fac_tile_job *j, fac_graph *g, int n, fac_value *const in[]) {
    const int64_t rows = in[0]->type.dims.d[0];
    if (rows == 1) return one_row(j, g, NULL, n, in);
    fac_value *y = loop(j, g, rows, false, n, in, one_row);
    const fac_dims *d = &y->type.dims;
    return fac_reshape_sizes(y, fac_shape(rows * d->d[1], d->d[2]));
}

/* ---- the product ---- */

static fac_value *within(fac_value *y, int axis, int64_t size) {
    return y->type.dims.n == 2 && y->type.dims.d[axis] > size ? fac_slice(y, axis, 0, size, 1) : y;
}

fac_value *fac_tile_looped(const fac_tile_job *j) {
    const fac_tile_product *p = j->p;
    fac_graph *g = j->t->to;
    run m[RUNS], n[RUNS], k[RUNS];
    const int nm = runs_of(&j->m, m), nn = runs_of(&j->n, n), nk = runs_of(&j->k, k);
    fac_value *row[RUNS], *column[RUNS], *in[2 * RUNS];
    for (int64_t s = 0; s < p->parts; s++)
        if ((!p->a[s].tiles && !fac_tile_remember(j->t, &p->a[s], RUNS, RUNS)) ||
            (!p->b[s].tiles && !fac_tile_remember(j->t, &p->b[s], RUNS, RUNS)))
            return fac_graph_raise(g, FAC_E_NOMEM, "no memory for the tiles of a loop");
    for (int i = 0; i < nm; i++) {
        for (int l = 0; l < nn; l++) {
            for (int s = 0; s < nk; s++) {
                in[2 * s] = stack_parts(j, true, &m[i], &k[s], (size_t)(i * RUNS + s));
                in[2 * s + 1] = stack_parts(j, false, &n[l], &k[s], (size_t)(s * RUNS + l));
            }
            if (g->error.status) return g->poison;
            row[l] = within(over_rows(j, g, 2 * nk, in), 1, j->n.size - n[l].start);
        }
        column[i] = within(nn > 1 ? fac_concat(row, nn, 1) : row[0], 0, j->m.size - m[i].start);
    }
    fac_value *y = nm > 1 ? fac_concat(column, nm, 0) : column[0];
    if (!p->c) return y;
    return fac_add(y,
                   p->beta != 1 ? fac_mul(p->c, fac_number(g, p->c->type.dtype, p->beta)) : p->c);
}
