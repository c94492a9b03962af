/* Windows of an image, shifts of it and patches that are merged move rows of channels.  What
 * slices, concats, pads, reshapes and transposes do to them one after the other becomes one gather,
 * or nothing where every row stays.
 *
 * Ops that treat each row alone, norms, linear layers and elementwise ones, do not care for the
 * order of rows.  So a value whose rows were only put into another order is computed in the old
 * order by them, and residual streams stay in the order of one window layer until the next wants
 * another:  order(a) + r  becomes  order(a + back(r)),  and what follows is one gather from the
 * order of one layer to that of the next.  So do streams whose batch some layers have first and
 * others second, as torch.nn.MultiheadAttention does, which are transposes. */
#include <string.h>
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/casts.h"
#include "passes/passes.h"
#include "passes/views/row_moves.h"
#include "passes/common/single.h"

enum { OPERANDS = 8, DEPTH = 6 };

/* A value of the new graph whose rows are those of `plain`, which has its dims, in another order.
 */
typedef struct ordered {
    const fac_value *value;
    fac_value *plain;
    fac_rows rows;
    struct ordered *next;
} ordered;

/* Rows that were moved. */
typedef struct made {
    fac_rows rows;
    fac_value *value;
    struct made *next;
} made;

typedef struct state {
    ordered *ordered;
    made *made;
} state;

/* ---- what there is ---- */

static const ordered *ordered_of(const state *s, const fac_value *v) {
    for (const ordered *o = s->ordered; o; o = o->next)
        if (o->value == v) return o;
    return NULL;
}

static bool same_rows(const fac_rows *a, const fac_rows *b) {
    return a->images == b->images && a->have == b->have && a->want == b->want &&
           !memcmp(a->at, b->at, (size_t)a->want * sizeof *a->at);
}

static const made *made_before(const state *s, const fac_rows *r) {
    for (const made *m = s->made; m; m = m->next)
        if (m->rows.from == r->from && m->rows.size == r->size && same_rows(&m->rows, r)) return m;
    return NULL;
}

/* r after the value that it reads: it goes on to what that one is made of. */
static fac_rows shortest(fac_graph *to, const fac_rows *r) {
    fac_rows whole;
    fac_value *v = fac_rows_take(to, r, fac_shape(r->images, r->want, r->size));
    if (!fac_rows_traced(to, v, &whole) || whole.size != r->size) return *r;
    return whole;
}

/* Rows of what was widened are those of what was narrow before it; the cast, or NULL. */
static const fac_node *narrow_rows(fac_graph *to, fac_rows *r) {
    const fac_node *n = r->from->node;
    if (!n || !fac_is_float_cast(n) ||
        fac_dtype_get(n->in[0]->type.dtype)->bits >= fac_dtype_get(n->out[0]->type.dtype)->bits)
        return NULL;
    r->from = n->in[0];
    *r = shortest(to, r);
    return n;
}

/* The gather of these rows, made once. */
static fac_value *take(state *s, fac_graph *to, const fac_rows *r, fac_dims dims) {
    if (fac_rows_in_order(r)) return fac_rows_take(to, r, dims);
    fac_rows rows = *r;
    const fac_node *cast = narrow_rows(to, &rows);
    if (cast) return fac_cast(take(s, to, &rows, dims), cast->out[0]->type.dtype);
    const made *there = made_before(s, r);
    if (there) return fac_reshape_sizes(there->value, dims);
    fac_value *y = fac_rows_take(to, r, fac_shape(r->images, r->want, r->size));
    made *m = fac_arena_alloc(&to->arena, 1, sizeof *m);
    if (m) *m = (made){ *r, y, s->made }, s->made = m;
    return fac_reshape_sizes(y, dims);
}

static bool is_there(const state *s, fac_graph *to, const fac_rows *r) {
    fac_rows rows = *r;
    narrow_rows(to, &rows);
    return fac_rows_in_order(&rows) || made_before(s, &rows);
}

/* The rows r of `plain` are v. */
static void remember(state *s, fac_graph *to, const fac_value *v, fac_value *plain,
                     const fac_rows *r) {
    ordered *o = fac_arena_alloc(&to->arena, 1, sizeof *o);
    if (o) *o = (ordered){ v, plain, *r, s->ordered }, s->ordered = o;
}

/* ---- ops that treat rows alone ---- */

static int64_t last_of(const fac_value *v) {
    return v->type.dims.n ? v->type.dims.d[v->type.dims.n - 1] : 1;
}

/* All but the last dim are equal: the same rows, of any length. */
static bool rows_alike(const fac_value *a, const fac_value *b) {
    const fac_dims *x = &a->type.dims, *y = &b->type.dims;
    for (int k = 0; k < x->n - 1; k++)
        if (x->n != y->n || x->d[k] != y->d[k]) return false;
    return x->n == y->n && x->n >= 2;
}

static bool is_elementwise(const fac_node *n) {
    return (n->op->map && n->nout == 1 && n->nin <= OPERANDS) || fac_is_float_cast(n);
}

static bool is_norm(const fac_node *n) {
    static const fac_op *const names[] = { &fac_op_layer_norm, &fac_op_rms_norm, NULL };
    if (!fac_op_is_one_of(n->op, names) || n->nin > OPERANDS) return false;
    const int rank = n->in[0]->type.dims.n;
    for (int k = 1; k < n->nout; k++)
        if (n->out[k] && (n->out[k]->uses || n->out[k]->roots)) return false;
    return fac_axis(fac_attr_int(n, "axis", -1), rank) == rank - 1;
}

static bool is_product(const fac_node *n) {
    static const fac_op *const names[] = { &fac_op_matmul, &fac_op_linear, &fac_op_gemm, NULL };
    return fac_op_is_one_of(n->op, names) && n->in[1]->type.dims.n == 2 &&
           n->in[1]->time != FAC_RUN && !fac_attr_flag(n, "trans_a");
}

static bool treats_rows(const fac_node *n) {
    return !n->body[0] && (is_elementwise(n) || is_norm(n) || is_product(n));
}

/* An operand that is the same for each row. */
static bool for_all_rows(const fac_value *v) {
    const int64_t count = fac_dims_count(&v->type.dims);
    return v->time != FAC_RUN && (count == 1 || count == last_of(v));
}

static bool is_operand(const fac_node *n, int i, const fac_value *v) {
    return for_all_rows(v) || (i == 1 && is_product(n));
}

/* Do all who read v either move its rows or treat each alone? */
static bool rows_are_free(const fac_value *v) {
    if (v->roots) return false;
    for (const fac_use *u = v->uses; u; u = u->next)
        if (!treats_rows(u->node) && !fac_is_moved(u->node->out[0])) return false;
    return true;
}

/* Made by such an op, or what elementwise ops make of it: a sum may join a product. */
static bool ends_in(const fac_value *v, bool (*is)(const fac_node *n), int depth) {
    const fac_node *n = v->node;
    if (!n || !depth) return false;
    if (is(n)) return true;
    for (int i = 0; i < n->nin && (is_elementwise(n) || FAC_IS(n, reshape)); i++)
        if (n->in[i] && n->in[i]->time == FAC_RUN && ends_in(n->in[i], is, depth - 1)) return true;
    return false;
}

static bool has_rows(const fac_node *n) {
    static const fac_op *const names[] = { &fac_op_matmul,        &fac_op_linear,
                                           &fac_op_gemm,          &fac_op_layer_norm_grad,
                                           &fac_op_rms_norm_grad, NULL };
    return is_norm(n) || fac_op_is_one_of(n->op, names);
}

/* Are rows what norms and products work on, before or after the move?  Convolutions want layouts of
 * their own, in which shuffled channels are no rows. */
static bool of_rows(const fac_value *from, const fac_value *v) {
    if (ends_in(from, has_rows, DEPTH)) return true;
    for (const fac_use *u = v->uses; u; u = u->next) {
        const fac_node *n = u->node;
        while (fac_is_float_cast(n) && fac_used_once(n->out[0])) n = n->out[0]->uses->node;
        if (has_rows(n)) return true;
    }
    return false;
}

/* ---- moves ---- */

/* The norm that made v, maybe cast after it; *through: the casts, the last one first. */
static const fac_node *norm_of(const fac_value *v, const fac_node *through[DEPTH], int *n) {
    *n = 0;
    for (const fac_node *m = v->node; m && *n < DEPTH; m = v->node) {
        if (!m->body[0] && is_norm(m)) return m->nout > OPERANDS ? NULL : m;
        if (fac_is_float_cast(m))
            through[(*n)++] = m;
        else if (!FAC_IS(m, reshape) || last_of(m->in[0]) != last_of(v))
            return NULL;
        v = m->in[0];
    }
    return NULL;
}

/* A norm of rows has one operand with rows: the gather goes before it, where a residual stream
 * wants it, too. */
static fac_value *before_norm(state *s, fac_graph *to, const fac_rows *r, fac_dims dims) {
    const fac_node *casts[DEPTH];
    int ncasts;
    const fac_node *n = norm_of(r->from, casts, &ncasts);
    fac_value *args[OPERANDS] = { NULL }, *out[OPERANDS] = { NULL };
    if (!n || r->have != r->want) return NULL;
    for (int i = 1; i < n->nin; i++) {
        if (n->in[i] && !for_all_rows(n->in[i])) return NULL;
        args[i] = n->in[i];
    }
    fac_rows inner = *r;
    inner.from = n->in[0];
    inner = shortest(to, &inner);
    args[0] = take(s, to, &inner, n->in[0]->type.dims);
    fac_node_copy(to, n, args, out);
    while (ncasts) fac_node_copy(to, casts[--ncasts], (fac_value *[]){ out[0] }, out);
    return fac_reshape_sizes(out[0], dims);
}

/* All readers of what v is made from, in the old graph, are moves and casts that lead to it. */
static bool alone(const fac_value *v) {
    for (;; v = v->node->in[FAC_IS(v->node, slice_grad) ? 5 : 0]) {
        const bool moved = fac_is_moved(v);
        for (const fac_use *u = v->uses; u && !moved; u = u->next)
            if (!fac_is_moved(u->node->out[0]) && !fac_is_float_cast(u->node)) return false;
        if (!moved && (v->roots || !v->node || !fac_is_float_cast(v->node))) return !v->roots;
    }
}

/* A slice or concat of what reshapes and transposes made is a view of it, or not. */
static bool is_read_by_moves(const fac_value *v) {
    for (const fac_use *u = v->uses; u; u = u->next)
        if (!fac_is_moved(u->node->out[0]) ||
            (fac_is_reordered(v) && !fac_is_reordered(u->node->out[0])))
            return false;
    return v->uses && !v->roots;
}

/* A product may make longer rows, which would have to be moved then. */
static bool feeds_product(const fac_value *v) {
    for (const fac_use *u = v->uses; u; u = u->next)
        if (is_product(u->node) || (fac_is_float_cast(u->node) && feeds_product(u->node->out[0])))
            return true;
    return false;
}

/* The dims of what was transposed: the first two the other way round, where they are lines and
 * columns.
 */
static fac_dims transposed_back(const fac_dims *d, int64_t lines) {
    fac_dims t = *d;
    if (d->n == 3 && d->d[1] == lines) {
        t.d[0] = d->d[1];
        t.d[1] = d->d[0];
    }
    return t;
}

static bool move(state *s, fac_graph *to, const fac_node *n, fac_value *const in[],
                 fac_value *out[]) {
    fac_rows r;
    if (!fac_is_moved(n->out[0]) || is_read_by_moves(n->out[0])) return false;
    fac_node_copy(to, n, in, out);
    out[0] = fac_reordered_once(out[0]);
    if (!fac_rows_traced(to, out[0], &r)) return true;
    const bool same = fac_rows_in_order(&r), whole = r.size == last_of(out[0]);
    const fac_dims dims = out[0]->type.dims;
    if (!same && !of_rows(r.from, n->out[0])) return true;
    int64_t lines;
    if (!same && whole && !fac_is_moved(r.from) && fac_rows_transpose(&r, &lines)) {
        remember(s, to, out[0], fac_reshape_sizes(r.from, transposed_back(&dims, lines)), &r);
        return true;
    }
    if (r.copies < 1 || (r.copies == 1 && r.transposed && !same)) return true;
    fac_value *v = whole && !same && alone(n->out[0]) ? before_norm(s, to, &r, dims) : NULL;
    out[0] = v ? v : take(s, to, &r, dims);
    if (!v && !same && whole && !feeds_product(n->out[0]) && fac_rows_all(to, &r))
        remember(s, to, out[0], fac_reshape_sizes(r.from, dims), &r);
    return true;
}

/* ---- rows in another order ---- */

static bool back(fac_graph *to, const fac_rows *r, fac_value *from, fac_rows *b) {
    int32_t *at = fac_arena_alloc(&to->arena, (size_t)r->want, sizeof *at);
    if (!at) return false;
    for (int64_t i = 0; i < r->want; i++) at[r->at[i]] = (int32_t)i;
    *b = *r;
    b->from = from;
    b->at = at;
    return true;
}

/* The dims of o's plain value, with rows as long as those of v. */
static fac_dims plain_dims(const ordered *o, const fac_value *v) {
    fac_dims d = o->plain->type.dims;
    d.d[d.n - 1] = last_of(v);
    return d;
}

/* The operand v in the order of o's plain value; NULL: that would take a gather, and more is false.
 */
static fac_value *in_order_of(state *s, fac_graph *to, const ordered *o, fac_value *v, bool more) {
    const ordered *mine = ordered_of(s, v);
    fac_rows r;
    if (mine && same_rows(&mine->rows, &o->rows))
        return fac_reshape_sizes(mine->plain, plain_dims(o, v));
    if (!back(to, &o->rows, v, &r)) return NULL;
    r.size = last_of(v);
    r = shortest(to, &r);
    return more || is_there(s, to, &r) ? take(s, to, &r, plain_dims(o, v)) : NULL;
}

/* n in the order of the plain value of its operand `at`. */
static bool keep_order_of(state *s, fac_graph *to, const fac_node *n, fac_value *const in[], int at,
                          bool more, fac_value *out[]) {
    const ordered *o = in[at] ? ordered_of(s, in[at]) : NULL;
    fac_value *args[OPERANDS] = { NULL }, *y[OPERANDS] = { NULL };
    if (!o || !rows_alike(in[at], n->out[0]) || (at && !is_elementwise(n))) return false;
    if (more && !(FAC_IS(n, add) && ends_in(o->plain, is_product, DEPTH))) return false;
    for (int i = 0; i < n->nin; i++) {
        if (!in[i] || is_operand(n, i, in[i])) {
            args[i] = in[i];
        } else if (i == at) {
            args[i] = o->plain;
        } else if (!is_elementwise(n) ||
                   !fac_dims_equal(&in[i]->type.dims, &n->out[0]->type.dims) ||
                   !(args[i] = in_order_of(s, to, o, in[i], more))) {
            return false;
        }
    }
    fac_node_copy(to, n, args, y);
    fac_rows r = o->rows;
    r.from = y[0];
    r.size = last_of(y[0]);
    for (int k = 1; k < n->nout; k++) out[k] = y[k];
    out[0] = take(s, to, &r, n->out[0]->type.dims);
    remember(s, to, out[0], y[0], &r);
    return true;
}

/* In an order that all operands have, or for which gathers are there; else in that of what a
 * product made, which a sum joins. */
static bool keep_order(state *s, fac_graph *to, const fac_node *n, fac_value *const in[],
                       fac_value *out[]) {
    if (n->nin > OPERANDS || n->nout > OPERANDS || n->out[0]->time != FAC_RUN || !treats_rows(n) ||
        !rows_are_free(n->out[0]))
        return false;
    for (int more = 0; more < 2; more++)
        for (int i = 0; i < n->nin; i++)
            if (keep_order_of(s, to, n, in, i, more, out)) return true;
    return false;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    state *s = self;
    return move(s, to, n, in, out) || keep_order(s, to, n, in, out);
}

fac_graph *fac_pass_row_order(const fac_graph *g) {
    state s = { NULL, NULL };
    return fac_graph_rebuild(g, &(fac_rebuild){ .self = &s, .visit = visit }, NULL);
}
