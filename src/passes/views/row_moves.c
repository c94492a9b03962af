/* Each op that only moves data says by its index function where an element comes from.  Here it is
 * asked about rows: the last dim counts rows of `size` elements, the first one is that of one image
 * of the batch. */
#include <stdint.h>
#include "facula/ops.h"
#include "facula/backend.h"
#include "graph/attr.h"
#include "ops/reshapes.h"
#include "op_list.h"
#include "passes/views/row_moves.h"
#include "passes/common/single.h"

/* MOST_MOVES: of rows by all ops of a chain; each costs planning some ns. */
enum { CHAIN = 32, OPERANDS = 8, MOST_MOVES = 1 << 20 };

typedef struct chain {
    fac_arena own;               /* of `at`, and of numbers that ops read */
    fac_value *root, *of[CHAIN]; /* the last one first; each is made from later ones and the root */
    int32_t *at[CHAIN];
    int n;
    int64_t images, size;
} chain;

/* ---- which ops ---- */

static bool keeps_elements(const fac_node *n) {
    return fac_node_reshapes(n) || FAC_IS(n, identity);
}

static bool is_zero(const fac_value *v) {
    double x = 1;
    return !v || (fac_const_number(v, &x) && x == 0);
}

static bool has_numbers(const fac_value *v) {
    fac_contents c;
    return !v || fac_known_numbers(v, &c);
}

static bool is_part(const fac_value *v) {
    const fac_node *n = v->node;
    return n && (FAC_IS(n, pad) || FAC_IS(n, slice_grad));
}

/* A sum of parts between zeros: what the gradient of a concat of slices is. */
static bool is_sum_of_parts(const fac_node *n) {
    if (!FAC_IS(n, add) || !fac_dims_equal(&n->in[0]->type.dims, &n->in[1]->type.dims))
        return false;
    for (int i = 0; i < 2; i++)
        if (!is_part(n->in[i]) && !(n->in[i]->node && is_sum_of_parts(n->in[i]->node)))
            return false;
    return true;
}

static bool moves(const fac_node *n) {
    if (n->body[0] || n->nout != 1 || n->nin > OPERANDS) return false;
    if (keeps_elements(n) || FAC_IS(n, transpose) || FAC_IS(n, concat)) return true;
    if (FAC_IS(n, slice) || FAC_IS(n, slice_grad)) {
        for (int i = 1; i < 5; i++)
            if (!has_numbers(n->in[i])) return false;
        return true;
    }
    if (FAC_IS(n, pad))
        return !n->in[3] && has_numbers(n->in[1]) && is_zero(n->in[2]) &&
               *(const int *)fac_attr_at(n, "mode", FAC_A_ENUM) == FAC_PAD_CONSTANT;
    if (FAC_IS(n, gather)) return n->in[1]->leaf == FAC_CONST && n->in[1]->tensor;
    return is_sum_of_parts(n);
}

bool fac_is_moved(const fac_value *v) {
    return v->node && v->time == FAC_RUN && fac_node_guess(v->node) == FAC_CERTAIN &&
           moves(v->node);
}

static bool is_data(const fac_node *n, int i) {
    if (!n->in[i]) return false;
    if (FAC_IS(n, concat) || FAC_IS(n, add)) return true;
    return i == (FAC_IS(n, slice_grad) ? 5 : 0);
}

/* ---- the way back ---- */

typedef struct way {
    fac_value *open[CHAIN], *chain[CHAIN], *root[CHAIN];
    int nopen, nchain, nroots, length[CHAIN]; /* of the chain that ends in that root */
} way;

static bool reach(way *w, fac_value *v) {
    for (int i = 0; i < w->nopen; i++)
        if (w->open[i] == v) return true;
    if (w->nopen == CHAIN) return false;
    w->open[w->nopen++] = v;
    return true;
}

/* All values that alone make v, the nearest first: what is youngest is taken apart. */
static void go_back(fac_value *v, way *w) {
    w->nopen = w->nchain = w->nroots = 0;
    reach(w, v);
    for (;;) {
        int last = 0;
        for (int i = 1; i < w->nopen; i++)
            if (w->open[i]->id > w->open[last]->id) last = i;
        fac_value *next = w->open[last];
        if (w->nopen == 1 && next != v) {
            w->root[w->nroots] = next;
            w->length[w->nroots++] = w->nchain;
        }
        if (!fac_is_moved(next) || w->nchain == CHAIN - 1) return;
        w->chain[w->nchain++] = next;
        w->open[last] = w->open[--w->nopen];
        for (int i = 0; i < next->node->nin; i++)
            if (is_data(next->node, i) && !reach(w, next->node->in[i])) return;
    }
}

/* ---- what ops do to the dims that hold rows and images ---- */

/* Does the view n leave that axis as it is? */
static bool leaves(const fac_node *n, int x_axis, int y_axis) {
    fac_layout x = { 0 }, y;
    x.stride[x_axis] = 1;
    if (n->in[0]->type.dims.d[x_axis] != n->out[0]->type.dims.d[y_axis] ||
        !n->op->view(n, &x, &y) || y.offset)
        return false;
    for (int k = 0; k < n->out[0]->type.dims.n; k++)
        if (y.stride[k] != (k == y_axis)) return false;
    return true;
}

static bool no_pads(const fac_node *n, int axis) {
    fac_contents c;
    const int rank = n->out[0]->type.dims.n;
    return fac_known_numbers(n->in[1], &c) && c.n == 2 * rank && !c.v[axis] && !c.v[axis + rank];
}

static bool steps_are_one(const fac_value *v) {
    fac_contents c;
    if (!v) return true;
    if (!fac_known_numbers(v, &c)) return false;
    for (int i = 0; i < c.n; i++)
        if (c.v[i] != 1) return false;
    return true;
}

/* last: the rows stay whole; else images stay apart. */
static bool leaves_dim(const fac_node *n, bool last) {
    if (!n->nin || !n->in[0]) return false;
    const int x = last ? n->in[0]->type.dims.n - 1 : 0;
    const int y = last ? n->out[0]->type.dims.n - 1 : 0;
    if (keeps_elements(n) || FAC_IS(n, add)) return true;
    if (FAC_IS(n, concat)) return last || fac_axis(fac_attr_int(n, "axis", 0), y + 1) != 0;
    if (FAC_IS(n, pad)) return no_pads(n, y);
    if (FAC_IS(n, gather)) return fac_axis(fac_attr_int(n, "axis", 0), x + 1) != x;
    if (FAC_IS(n, slice_grad))
        return steps_are_one(n->in[4]) && n->in[5]->type.dims.d[x] == n->out[0]->type.dims.d[y];
    return leaves(n, x, y);
}

static int64_t common(int64_t a, int64_t b) { return b ? common(b, a % b) : a; }

/* Sizes of rows and of the batch that all ops of the chain leave alone. */
static bool settle(chain *c) {
    const fac_dims *r = &c->root->type.dims;
    bool apart = true;
    if (r->n < 2 || fac_dims_count(r) <= 0) return false;
    c->size = r->d[r->n - 1];
    c->images = r->d[0];
    for (int k = 0; k < c->n; k++) {
        const fac_node *n = c->of[k]->node;
        const fac_dims *d = &c->of[k]->type.dims;
        if (d->n < 2 || fac_dims_count(d) <= 0 || d->d[d->n - 1] % c->size || !leaves_dim(n, true))
            return false;
        apart = apart && leaves_dim(n, false);
        c->images = common(c->images, d->d[0]);
    }
    if (!apart) c->images = 1;
    return true;
}

/* ---- rows ---- */

static fac_dims rows_dims(const chain *c, const fac_value *v) {
    fac_dims d = v->type.dims;
    d.d[0] /= c->images;
    d.d[d.n - 1] /= c->size;
    return d;
}

static int64_t count_rows(const chain *c, const fac_value *v) {
    const fac_dims d = rows_dims(c, v);
    return fac_dims_count(&d);
}

static bool are_few(const chain *c) {
    int64_t moves = 0;
    for (int k = 0; k < c->n && moves <= MOST_MOVES; k++) moves += count_rows(c, c->of[k]);
    return moves <= MOST_MOVES && count_rows(c, c->root) <= INT32_MAX;
}

static const int64_t *numbers_of(chain *c, const fac_value *v) {
    const int64_t n = fac_dims_count(&v->type.dims);
    int64_t *numbers = fac_arena_alloc(&c->own, (size_t)n + 1, sizeof *numbers);
    fac_contents known;
    fac_tensor *wide = NULL;
    if (!numbers) return NULL;
    if (fac_known_numbers(v, &known) && known.n == n) {
        for (int k = 0; k < known.n; k++) numbers[k] = known.v[k];
        return numbers;
    }
    if (!v->tensor || fac_tensor_convert(v->tensor, FAC_I64, &wide, NULL)) return NULL;
    const bool good = !fac_tensor_read(wide, numbers, (size_t)n * sizeof *numbers, NULL);
    fac_tensor_free(wide);
    return good ? numbers : NULL;
}

/* Rows of a value of the chain before it; the root's own are in order: NULL. */
static bool rows_in(const chain *c, const fac_value *v, const int32_t **rows) {
    *rows = NULL;
    for (int k = 0; k < c->n; k++)
        if (c->of[k] == v) *rows = c->at[k];
    return *rows || v == c->root;
}

static int64_t flat(const fac_dims *d, const int64_t *at) {
    int64_t n = 0;
    for (int k = 0; k < d->n; k++) n = n * d->d[k] + at[k];
    return n;
}

typedef struct source {
    fac_dims dims;
    const int32_t *rows;
} source;

static int32_t row_of(const source *s, const int64_t *from) {
    const int64_t at = flat(&s->dims, from);
    return s->rows ? s->rows[at] : (int32_t)at;
}

static void count_on(const fac_dims *d, int64_t *at) {
    for (int k = d->n - 1; k >= 0 && ++at[k] == d->d[k]; k--) at[k] = 0;
}

/* -1: zeros.  false: two numbers are added. */
static bool add_rows(const source *s, int64_t many, int32_t *to) {
    for (int64_t i = 0; i < many; i++) {
        const int32_t a = s[0].rows ? s[0].rows[i] : (int32_t)i;
        const int32_t b = s[1].rows ? s[1].rows[i] : (int32_t)i;
        if (a >= 0 && b >= 0) return false;
        to[i] = a >= 0 ? a : b;
    }
    return true;
}

static bool move_rows(chain *c, int which) {
    const fac_node *n = c->of[which]->node;
    fac_array in[OPERANDS] = { 0 };
    source s[OPERANDS] = { 0 };
    fac_move m = { n->attrs, n->nin, 0, in, rows_dims(c, c->of[which]) };
    const int64_t many = fac_dims_count(&m.out);
    int32_t *to = fac_arena_alloc(&c->own, (size_t)many, sizeof *to);
    if (!to) return false;
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i]) continue;
        in[i].type = n->in[i]->type;
        if (is_data(n, i)) {
            if (!rows_in(c, n->in[i], &s[i].rows)) return false;
            in[i].type.dims = s[i].dims = rows_dims(c, n->in[i]);
        } else if (n->in[i]->type.dtype == FAC_I64 || n->in[i]->type.dtype == FAC_I32) {
            if (FAC_IS(n, slice_grad) && !i) continue; /* for its shape alone */
            in[i].i = (int64_t *)(uintptr_t)numbers_of(c, n->in[i]);
            if (!in[i].i) return false;
        }
    }
    c->at[which] = to;
    if (FAC_IS(n, add)) return add_rows(s, many, to);
    int64_t at[FAC_DIMS] = { 0 }, from[FAC_DIMS];
    int input;
    for (int64_t i = 0; i < many; i++, count_on(&m.out, at)) {
        const bool there = n->op->move(&m, at, &input, from) && is_data(n, input);
        to[i] = there ? row_of(&s[input], from) : -1;
    }
    return true;
}

/* How many ops of the chain cannot be views, from the root in its own order. */
static int copies_of(const chain *c, bool *transposed) {
    fac_layout at[CHAIN];
    int copies = 0;
    *transposed = false;
    for (int k = c->n - 1; k >= 0; k--) {
        const fac_node *n = c->of[k]->node;
        const fac_value *x = n->in[0];
        fac_layout from = fac_layout_plain(&x->type.dims);
        for (int j = k + 1; j < c->n; j++)
            if (c->of[j] == x) from = at[j];
        if (x == c->root && FAC_IS(n, transpose)) *transposed = true;
        if (n->op->view && n->op->view(n, &from, &at[k])) continue;
        at[k] = fac_layout_plain(&c->of[k]->type.dims);
        copies++;
    }
    return copies;
}

static bool follow(fac_graph *to, chain *c, fac_rows *r) {
    if (!settle(c) || !are_few(c)) return false;
    for (int k = c->n - 1; k >= 0; k--)
        if (!move_rows(c, k)) return false;
    const int64_t want = count_rows(c, c->of[0]);
    int32_t *at = fac_arena_alloc(&to->arena, (size_t)want, sizeof *at);
    if (!at) return false;
    *r = (fac_rows){ .from = c->root,
                     .images = c->images,
                     .have = count_rows(c, c->root),
                     .want = want,
                     .size = c->size,
                     .at = at };
    for (int64_t i = 0; i < want; i++) {
        at[i] = c->at[0][i];
        if (at[i] < 0) return false;
    }
    r->copies = copies_of(c, &r->transposed);
    return true;
}

bool fac_rows_traced(fac_graph *to, fac_value *v, fac_rows *r) {
    way w;
    go_back(v, &w);
    for (int k = w.nroots - 1; k >= 0; k--) {
        chain c = { .root = w.root[k], .n = w.length[k] };
        for (int i = 0; i < c.n; i++) c.of[i] = w.chain[i];
        const bool traced = follow(to, &c, r);
        fac_arena_free(&c.own);
        if (traced) return true;
    }
    return false;
}

bool fac_rows_in_order(const fac_rows *r) {
    for (int64_t i = 0; i < r->want; i++)
        if (r->at[i] != i) return false;
    return r->have == r->want;
}

bool fac_rows_all(fac_graph *to, const fac_rows *r) {
    if (r->have != r->want) return false;
    bool *seen = fac_arena_alloc(&to->arena, (size_t)r->have, sizeof *seen);
    if (!seen) return false;
    for (int64_t i = 0; i < r->want; i++) {
        if (seen[r->at[i]]) return false;
        seen[r->at[i]] = true;
    }
    return true;
}

bool fac_rows_transpose(const fac_rows *r, int64_t *lines) {
    if (r->have != r->want || r->want < 4 || r->at[0]) return false;
    const int64_t wide = r->at[1];
    if (wide < 2 || r->want % wide || wide == r->want) return false;
    *lines = r->want / wide;
    for (int64_t i = 0; i < r->want; i++)
        if (r->at[i] != i % *lines * wide + i / *lines) return false;
    return true;
}

fac_value *fac_rows_take(fac_graph *to, const fac_rows *r, fac_dims dims) {
    int64_t lines;
    if (fac_rows_in_order(r)) return fac_reshape_sizes(r->from, dims);
    if (fac_rows_transpose(r, &lines)) {
        fac_value *matrix =
            fac_reshape_sizes(r->from, fac_shape(r->images, lines, r->want / lines, r->size));
        return fac_reshape_sizes(fac_transpose(matrix, fac_shape(0, 2, 1, 3)), dims);
    }
    fac_tensor *t = NULL;
    int64_t *numbers = fac_arena_alloc(&to->arena, (size_t)r->want, sizeof *numbers);
    for (int64_t i = 0; numbers && i < r->want; i++) numbers[i] = r->at[i];
    if (!numbers || fac_tensor_new(NULL, FAC_I64, fac_shape(r->want), &t, NULL) ||
        fac_tensor_write(t, numbers, (size_t)r->want * sizeof *numbers, NULL)) {
        fac_tensor_free(t);
        return fac_graph_raise(to, FAC_E_NOMEM, "no memory for the order of %lld rows",
                               (long long)r->want);
    }
    fac_value *rows = fac_reshape_sizes(r->from, fac_shape(r->images, r->have, r->size));
    fac_value *y = fac_gather(rows, fac_const(to, t), 1);
    fac_tensor_free(t);
    return fac_reshape_sizes(y, dims);
}
