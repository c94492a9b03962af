/* One product as many: the loop over tiles of the result, and what adds up along K. */
#include "passes/tile.h"

/* The part of c that belongs to a tile; dims of one stand for all. */
fac_value *fac_tile_part_of_c(fac_value *c, const fac_tile_line *m, const fac_tile_line *n, int64_t i, int64_t j) {
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

bool fac_tile_remember(fac_tiler *t, fac_tile_matrix *x, int64_t rows, int64_t cols) {
    const int64_t count = rows * cols, least = 4;       /* loops have at most two runs along each dim */
    x->tiles = fac_arena_alloc(&t->to->arena, (size_t)(count > least ? count : least), sizeof *x->tiles);
    return x->tiles != NULL;
}

fac_value *fac_tile_of_a(const fac_tile_job *j, int64_t i, int64_t s) {
    const int64_t at = s % j->k.count;
    return fac_tile_part(j->t, &j->p->a[s / j->k.count], i * j->m.step, fac_tile_length(&j->m, i), at * j->k.step,
                         fac_tile_length(&j->k, at), (size_t)(i * j->k.count + at));
}

fac_value *fac_tile_of_b(const fac_tile_job *j, int64_t l, int64_t s) {
    const int64_t at = s % j->k.count;
    return fac_tile_part(j->t, &j->p->b[s / j->k.count], at * j->k.step, fac_tile_length(&j->k, at), l * j->n.step,
                         fac_tile_length(&j->n, l), (size_t)(at * j->n.count + l));
}

/* What is behind the end of c's row or column is cut off. */
static fac_value *trimmed(const fac_tile_job *j, fac_value *y, int64_t i, int64_t l) {
    const int64_t rows = j->m.size - i * j->m.step, cols = j->n.size - l * j->n.step;
    if (rows < y->type.dims.d[0]) y = fac_slice(y, 0, 0, rows, 1);
    if (cols < y->type.dims.d[1]) y = fac_slice(y, 1, 0, cols, 1);
    return y;
}

/* With the first partial product goes c, unless c has to wait for the sum. */
fac_value *fac_tile_one(const fac_tile_job *j, int64_t i, int64_t l) {
    const fac_tile_product *p = j->p;
    const int64_t steps = p->parts * j->k.count;
    const bool chain = j->t->opts->sum == FAC_TILE_CHAIN || steps == 1;
    const bool padded = fac_tile_length(&j->m, i) > j->m.size - i * j->m.step ||
                        fac_tile_length(&j->n, l) > j->n.size - l * j->n.step;
    fac_value *c = p->c ? fac_tile_part_of_c(p->c, &j->m, &j->n, i, l) : NULL, *y = NULL;
    const bool apart = !chain || (padded && c);         /* c has no zeros behind: it is added to what is left of the tile */
    for (int64_t s = 0; s < steps; s++) {
        fac_gemm_opts o = { .alpha = p->alpha, .trans_a = p->a->turned, .trans_b = p->b->turned };
        fac_value *to = chain && s ? y : !s && !apart ? c : NULL;
        if (!s && to == c && c) o.beta = p->beta;
        y = j->parts[s] = fac_gemm(fac_tile_of_a(j, i, s), fac_tile_of_b(j, l, s), to, &o);
    }
    if (!chain) y = add_up(j->parts, steps, j->t->opts->sum == FAC_TILE_TREE);
    if (padded) y = trimmed(j, y, i, l);
    if (apart && c) {
        if (p->beta != 1) c = fac_mul(c, fac_number(j->t->to, c->type.dtype, p->beta));
        y = fac_add(y, c);
    }
    return y;
}

/* Tiles beside each other along `axis`; ONNX and kernels take any number, so one concat does. */
static fac_value *join(fac_value **parts, int64_t n, int axis) { return n == 1 ? parts[0] : fac_concat(parts, (int)n, axis); }

static fac_value *all_tiles(const fac_tile_job *j, fac_value **row, fac_value **column) {
    const bool call = j->t->opts->mode == FAC_TILE_FUNCTION;
    for (int64_t i = 0; i < j->m.count; i++) {
        for (int64_t l = 0; l < j->n.count; l++) row[l] = call ? fac_tile_called(j, i, l) : fac_tile_one(j, i, l);
        column[i] = join(row, j->n.count, 1);
    }
    return join(column, j->m.count, 0);
}

fac_value *fac_tile_cut(fac_tiler *t, const fac_tile_product *p) {
    fac_tile_job j = { .t = t, .p = p };
    j.m = fac_tile_line_of(&t->shape, p->a->rows, FAC_TILE_M);
    j.n = fac_tile_line_of(&t->shape, p->b->cols, FAC_TILE_N);
    j.k = fac_tile_line_of(&t->shape, p->a->cols, FAC_TILE_K);
    if (t->opts->mode == FAC_TILE_LOOP) return fac_tile_looped(&j);
    fac_arena scratch = { 0 };
    fac_value **row = fac_arena_alloc(&scratch, (size_t)j.n.count + 1, sizeof *row);
    fac_value **column = fac_arena_alloc(&scratch, (size_t)j.m.count + 1, sizeof *column);
    j.parts = fac_arena_alloc(&scratch, (size_t)(p->parts * j.k.count) + 1, sizeof *j.parts);
    bool good = row && column && j.parts;
    for (int64_t s = 0; good && s < p->parts; s++)
        good = (p->a[s].tiles || fac_tile_remember(t, &p->a[s], j.m.count, j.k.count)) &&
               (p->b[s].tiles || fac_tile_remember(t, &p->b[s], j.k.count, j.n.count));
    fac_value *y = good ? all_tiles(&j, row, column) : fac_graph_raise(t->to, FAC_E_NOMEM, "no memory for a product in tiles");
    fac_arena_free(&scratch);
    return y;
}
