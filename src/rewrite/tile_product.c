/* One product as many: the loop over tiles of the result, and what adds up along K. */
#include "rewrite/tile.h"

/* From..to along one dim of c that belongs to tile i; a dim of one stands for all.  Whether it
 * depends on i. */
static bool part_of_dim(const fac_dims *d, int at, const fac_tile_line *line, int64_t i,
                        int64_t *from, int64_t *to) {
    const bool cut = at >= 0 && d->d[at] > 1 && line->count > 1;
    const int64_t end = (i + 1) * line->step;
    *from = cut ? i * line->step : 0;
    *to = at >= 0 ? d->d[at] : 1;
    if (cut && end < line->size) *to = end;
    return cut;
}

/* The part of c that belongs to a tile, made once for all tiles that share it. */
fac_value *fac_tile_part_of_c(const fac_tile_job *j, int64_t i, int64_t l) {
    const fac_dims *d = &j->p->c->type.dims;
    int64_t from[2], to[2];
    const bool rows = part_of_dim(d, d->n - 2, &j->m, i, &from[0], &to[0]);
    const bool cols = part_of_dim(d, d->n - 1, &j->n, l, &from[1], &to[1]);
    const int64_t row = rows ? i : 0;
    const int64_t column = cols ? l : 0;
    fac_value **slot = j->c ? &j->c[row * j->n.count + column] : NULL;
    if (slot && *slot) return *slot;
    fac_value *part = rows || cols ? fac_tile_box(j->p->c, from, to) : j->p->c;
    if (slot) *slot = part;
    return part;
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
    const int64_t count = rows * cols, least = 4; /* loops have at most two runs along each dim */
    x->tiles =
        fac_arena_alloc(&t->to->arena, (size_t)(count > least ? count : least), sizeof *x->tiles);
    return x->tiles != NULL;
}

fac_value *fac_tile_of_a(const fac_tile_job *j, int64_t i, int64_t s) {
    const int64_t at = s % j->k.count;
    return fac_tile_part(j->t, &j->p->a[s / j->k.count], i * j->m.step, fac_tile_length(&j->m, i),
                         at * j->k.step, fac_tile_length(&j->k, at), (size_t)(i * j->k.count + at));
}

fac_value *fac_tile_of_b(const fac_tile_job *j, int64_t l, int64_t s) {
    const int64_t at = s % j->k.count;
    return fac_tile_part(j->t, &j->p->b[s / j->k.count], at * j->k.step, fac_tile_length(&j->k, at),
                         l * j->n.step, fac_tile_length(&j->n, l), (size_t)(at * j->n.count + l));
}

/* What is after the end of c's row or column is cut off. */
static fac_value *trimmed(const fac_tile_job *j, fac_value *y, int64_t i, int64_t l) {
    const int64_t rows = j->m.size - i * j->m.step, cols = j->n.size - l * j->n.step;
    return fac_tile_box(y, (const int64_t[]){ 0, 0 }, (const int64_t[]){ rows, cols });
}

/* With the first partial product goes c, unless c has to wait for the sum. */
fac_value *fac_tile_one(const fac_tile_job *j, int64_t i, int64_t l) {
    const fac_tile_product *p = j->p;
    const int64_t steps = p->parts * j->k.count;
    const bool chain = j->t->opts->sum == FAC_TILE_CHAIN || steps == 1;
    const bool padded = fac_tile_length(&j->m, i) > j->m.size - i * j->m.step ||
                        fac_tile_length(&j->n, l) > j->n.size - l * j->n.step;
    fac_value *c = p->c ? fac_tile_part_of_c(j, i, l) : NULL, *y = NULL;
    const bool apart =
        !chain || (padded && c); /* c has no zeros after: it is added to what is left of the tile */
    for (int64_t s = 0; s < steps; s++) {
        fac_gemm_opts o = { .alpha = p->alpha,
                            .trans_a = p->a->transposed,
                            .trans_b = p->b->transposed };
        fac_value *to = !s && !apart ? c : NULL;
        if (chain && s) to = y;
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
static fac_value *join(fac_value **parts, int64_t n, int axis) {
    return n == 1 ? parts[0] : fac_concat(parts, (int)n, axis);
}

static fac_value *all_tiles(const fac_tile_job *j, fac_value **row, fac_value **column) {
    const bool call = j->t->opts->mode == FAC_TILE_FUNCTION;
    for (int64_t i = 0; i < j->m.count; i++) {
        for (int64_t l = 0; l < j->n.count; l++)
            row[l] = call ? fac_tile_called(j, i, l) : fac_tile_one(j, i, l);
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
    if (p->c) j.c = fac_arena_alloc(&scratch, (size_t)(j.m.count * j.n.count), sizeof *j.c);
    bool good = row && column && j.parts && (j.c || !p->c);
    for (int64_t s = 0; good && s < p->parts; s++)
        good = (p->a[s].tiles || fac_tile_remember(t, &p->a[s], j.m.count, j.k.count)) &&
               (p->b[s].tiles || fac_tile_remember(t, &p->b[s], j.k.count, j.n.count));
    fac_value *y = good ? all_tiles(&j, row, column)
                        : fac_graph_raise(t->to, FAC_E_NOMEM, "no memory for a product in tiles");
    fac_arena_free(&scratch);
    return y;
}
