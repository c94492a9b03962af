/* One product as many: the loop over tiles of the result, and what adds up along K. */
#include "base/memory.h"
#include "passes/tile.h"

/* One dim of the product: `size` in `count` tiles of `step`; the last is smaller, or padded. */
typedef struct cut { int64_t size, step, count; bool pad; } cut;

static cut cut_of(int64_t size, int64_t limit, bool pad) {
    const int64_t step = limit > 0 && limit < size ? limit : size, count = step ? (size + step - 1) / step : 0;
    return (cut){ size, step, count, pad && count > 1 };
}

static int64_t length(const cut *c, int64_t i) {
    const int64_t rest = c->size - i * c->step;
    return c->pad || rest > c->step ? c->step : rest;
}

bool fac_tile_fits(const fac_tile_opts *o, int64_t m, int64_t n, int64_t k) {
    return (!o->m || m <= o->m) && (!o->n || n <= o->n) && (!o->k || k <= o->k);
}

int64_t fac_tile_count(const fac_tile_opts *o, int64_t m, int64_t n, int64_t k, double *utilisation) {
    const cut cm = cut_of(m, o->m, false), cn = cut_of(n, o->n, false), ck = cut_of(k, o->k, false);
    const int64_t tiles = cm.count * cn.count * ck.count;
    const double full = (double)tiles * (double)(o->m ? o->m : m) * (double)(o->n ? o->n : n) * (double)(o->k ? o->k : k);
    *utilisation = full > 0 ? (double)m * (double)n * (double)k / full : 0;
    return tiles;
}

/* The part of c that belongs to a tile; dims of one stand for all. */
static fac_value *part_of_c(fac_value *c, const cut *m, const cut *n, int64_t i, int64_t j) {
    const fac_dims *d = &c->type.dims;
    if (d->n > 0 && d->d[d->n - 1] > 1 && n->count > 1)
        c = fac_slice(c, d->n - 1, j * n->step, j * n->step + n->step < n->size ? j * n->step + n->step : n->size, 1);
    if (d->n > 1 && d->d[d->n - 2] > 1 && m->count > 1)
        c = fac_slice(c, d->n - 2, i * m->step, i * m->step + m->step < m->size ? i * m->step + m->step : m->size, 1);
    return c;
}

/* parts[0..n) in pairs until one is left, or from the left. */
static fac_value *add_up(fac_value **parts, int64_t n, bool tree) {
    if (!tree) {
        for (int64_t k = 1; k < n; k++) parts[0] = fac_add(parts[0], parts[k]);
        return parts[0];
    }
    for (; n > 1; n = (n + 1) / 2) {
        for (int64_t k = 0; k < n / 2; k++) parts[k] = fac_add(parts[2 * k], parts[2 * k + 1]);
        if (n % 2) parts[n / 2] = parts[n - 1];
    }
    return parts[0];
}

bool fac_tile_keep(fac_tiler *t, fac_tile_matrix *x, int64_t row_limit, int64_t col_limit) {
    const cut r = cut_of(x->rows, row_limit, false), c = cut_of(x->cols, col_limit, false);
    x->tiles = fac_arena_alloc(&t->to->arena, (size_t)(r.count * c.count) + 1, sizeof *x->tiles);
    return x->tiles != NULL;
}

typedef struct job { fac_tiler *t; fac_tile_product *p; cut m, n, k; fac_value **parts; } job;

/* With the first partial product goes c, unless c has to wait for the sum. */
static fac_value *one_tile(const job *j, int64_t i, int64_t l) {
    fac_tile_product *p = j->p;
    const bool chain = j->t->opts->sum == FAC_TILE_CHAIN || j->k.count == 1;
    const bool padded = (j->m.pad && i + 1 == j->m.count) || (j->n.pad && l + 1 == j->n.count);
    fac_value *c = p->c ? part_of_c(p->c, &j->m, &j->n, i, l) : NULL, *y = NULL;
    const bool apart = !chain || (padded && c);         /* c has no zeros behind: it is added to what is left of the tile */
    for (int64_t s = 0; s < j->k.count; s++) {
        fac_value *a = fac_tile_part(j->t, &p->a, i * j->m.step, length(&j->m, i), s * j->k.step, length(&j->k, s),
                                     (size_t)(i * j->k.count + s));
        fac_value *b = fac_tile_part(j->t, &p->b, s * j->k.step, length(&j->k, s), l * j->n.step, length(&j->n, l),
                                     (size_t)(s * j->n.count + l));
        fac_gemm_opts o = { .alpha = p->alpha, .trans_a = p->a.turned, .trans_b = p->b.turned };
        fac_value *to = chain && s ? y : !s && !apart ? c : NULL;
        if (!s && to == c && c) o.beta = p->beta;
        y = j->parts[s] = fac_gemm(a, b, to, &o);
    }
    if (!chain) y = add_up(j->parts, j->k.count, j->t->opts->sum == FAC_TILE_TREE);
    if (padded) {
        if (j->m.pad && i + 1 == j->m.count) y = fac_slice(y, 0, 0, j->m.size - i * j->m.step, 1);
        if (j->n.pad && l + 1 == j->n.count) y = fac_slice(y, 1, 0, j->n.size - l * j->n.step, 1);
    }
    if (apart && c) {
        if (p->beta != 1) c = fac_mul(c, fac_number(j->t->to, c->type.dtype, p->beta));
        y = fac_add(y, c);
    }
    return y;
}

/* Tiles beside each other along `axis`; ONNX and kernels take any number, so one concat does. */
static fac_value *join(fac_value **parts, int64_t n, int axis) { return n == 1 ? parts[0] : fac_concat(parts, (int)n, axis); }

static fac_value *all_tiles(const job *j, fac_value **row, fac_value **column) {
    for (int64_t i = 0; i < j->m.count; i++) {
        for (int64_t l = 0; l < j->n.count; l++) row[l] = one_tile(j, i, l);
        column[i] = join(row, j->n.count, 1);
    }
    return join(column, j->m.count, 0);
}

fac_value *fac_tile_cut(fac_tiler *t, fac_tile_product *product) {
    const fac_tile_opts *o = t->opts;
    fac_tile_product own = *product, *p = &own;
    job j = { t, p, cut_of(p->a.rows, o->m, o->pad), cut_of(p->b.cols, o->n, o->pad), cut_of(p->a.cols, o->k, o->pad), NULL };
    fac_arena scratch = { 0 };
    fac_value **row = fac_arena_alloc(&scratch, (size_t)j.n.count + 1, sizeof *row);
    fac_value **column = fac_arena_alloc(&scratch, (size_t)j.m.count + 1, sizeof *column);
    j.parts = fac_arena_alloc(&scratch, (size_t)j.k.count + 1, sizeof *j.parts);
    if (!p->a.tiles) p->a.tiles = fac_arena_alloc(&scratch, (size_t)(j.m.count * j.k.count) + 1, sizeof *p->a.tiles);
    if (!p->b.tiles) p->b.tiles = fac_arena_alloc(&scratch, (size_t)(j.k.count * j.n.count) + 1, sizeof *p->b.tiles);
    const bool good = row && column && j.parts && p->a.tiles && p->b.tiles;
    fac_value *y = good ? all_tiles(&j, row, column) : fac_graph_raise(t->to, FAC_E_NOMEM, "no memory for a product in tiles");
    fac_arena_free(&scratch);
    return y;
}
