/* What is said of each product: a row of the report, and advice. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "rewrite/tile.h"

int fac_tiling_rows(const fac_tiling *t) { return (int)t->n; }
const fac_tile_row *fac_tiling_row(const fac_tiling *t, int i) {
    return i >= 0 && (size_t)i < t->n ? &t->rows[i] : NULL;
}
void fac_tiling_free(fac_tiling *t) {
    if (!t) return;
    fac_arena_free(&t->memory);
    fac_release(t->rows);
    fac_release(t);
}

fac_tile_row *fac_tile_report(fac_tiler *t, const fac_node *n, const fac_tile_size *size) {
    fac_tiling *r = t->report;
    char label[256];
    if (!fac_reserve(&r->rows, &r->room, r->n + 1, sizeof *r->rows)) {
        t->status = fac_raise_memory(t->err, "%zu products", r->n);
        return NULL;
    }
    fac_tile_row *row = &r->rows[r->n++];
    *row =
        (fac_tile_row){ .name = fac_arena_text(&r->memory, fac_node_label(n, label, sizeof label)),
                        .op = n->op->name,
                        .dtype = n->out[0]->type.dtype,
                        .count = size->count,
                        .advice = "" };
    if (!row->name) {
        t->status = fac_raise_memory(t->err, "the name of a product");
        row->name = "";
    }
    row->m = size->d[0];
    row->n = size->d[1];
    row->k = size->d[2];
    row->macs = (double)row->m * (double)row->n * (double)row->k * (double)row->count;
    return row;
}

void fac_tile_keep_row(fac_tile_row *row, const char *why) {
    row->kept = why;
    row->tile_m = row->m;
    row->tile_n = row->n;
    row->tile_k = row->k;
    row->tiles = row->count;
    row->work = row->macs;
    row->utilisation = 1;
}

/* ---- advice ---- */

static double used(const fac_tile_unit *u, const fac_tile_shape *s, const fac_tile_row *like,
                   const int64_t d[3]) {
    fac_tile_row row = { .dtype = like->dtype,
                         .m = d[0],
                         .n = d[1],
                         .k = d[2],
                         .count = 1,
                         .macs = (double)d[0] * (double)d[1] * (double)d[2] };
    fac_tile_shape own = *s;
    for (int i = 0; i < 3; i++)
        own.step[i] = u->limit[i] && u->limit[i] < d[i] ? u->limit[i] : d[i];
    fac_tile_cost(u, &own, &row);
    return row.utilisation;
}

static void add(fac_text *to, const char *text) {
    if (to->n) fac_text_add(to, "; ");
    fac_text_add(to, text);
}

/* Rows of a product come from the batch, but for those of a convolution, whose columns do. */
static void about_batch(fac_text *to, const fac_tiler *t, const fac_tile_row *row,
                        const int64_t d[3]) {
    const int64_t limit = t->unit.granule[0];
    if (!strncmp(row->op, "conv", 4) || row->count > 1 || d[0] * 2 > limit) return;
    const int64_t times = limit / d[0];
    const double more = used(&t->unit, &t->shape, row, (int64_t[]){ d[0] * times, d[1], d[2] });
    if (more < 1.1 * row->utilisation) return;
    add(to, "");
    fac_text_print(to, "a batch of %lld fills M: %.0f %%",
                   (long long)(times * (t->opts->batch > 0 ? t->opts->batch : 1)), 100 * more);
}

static void about_swap(fac_text *to, const fac_tiler *t, const fac_tile_row *row,
                       const int64_t d[3]) {
    const double swapped = used(&t->unit, &t->shape, row, (int64_t[]){ d[1], d[0], d[2] });
    if (swapped < 1.1 * row->utilisation) return;
    add(to, "");
    fac_text_print(to, "M and N swapped: %.0f %%", 100 * swapped);
}

/* The other way to take a convolution apart. */
static void about_taps(fac_text *to, const fac_tiler *t, const fac_tile_row *row,
                       const fac_tile_size *size) {
    if (size->taps < 2) return;
    const bool taps = t->opts->conv == FAC_TILE_TAPS;
    const int64_t depth = taps ? size->d[2] * size->taps : size->d[2] / size->taps;
    const double other =
        used(&t->unit, &t->shape, row, (int64_t[]){ size->d[0], size->d[1], depth });
    if (taps && other > 1.1 * row->utilisation) {
        add(to, "");
        fac_text_print(to, "patches instead of taps: %.0f %%", 100 * other);
    } else if (!taps && other > 0.95 * row->utilisation) {
        add(to, "");
        fac_text_print(to, "taps instead of patches: as well used, no patches of %.3g MB",
                       1e-6 * (double)size->d[1] * (double)size->d[2] *
                           fac_dtype_get(row->dtype)->block_bytes);
    }
}

static void about_shape(fac_text *to, const fac_tiler *t, const fac_tile_row *row,
                        const int64_t d[3]) {
    fac_tile_shape best;
    fac_tile_row least = *row;
    if (row->seconds <= 0 || !fac_tile_best(&t->unit, d, row->dtype, &best)) return;
    fac_tile_cost(&t->unit, &best, &least);
    if (least.seconds > 0.95 * row->seconds) return;
    add(to, "");
    fac_text_print(to, "tiles of %lld x %lld x %lld: %.0f %% of the time", (long long)least.tile_m,
                   (long long)least.tile_n, (long long)least.tile_k,
                   100 * least.seconds / row->seconds);
}

static void about_alignment(fac_text *to, const fac_tile_row *row) {
    if (!row->unaligned) return;
    add(to, "");
    fac_text_print(to, "%lld of %lld tiles are not aligned: pad them", (long long)row->unaligned,
                   (long long)row->tiles);
}

const char *fac_tile_advice(fac_tiler *t, const fac_tile_row *row, const fac_tile_size *size) {
    fac_text text = { 0 };
    about_alignment(&text, row);
    about_batch(&text, t, row, size->d);
    about_swap(&text, t, row, size->d);
    about_taps(&text, t, row, size);
    about_shape(&text, t, row, size->d);
    const char *kept = "";
    if (text.failed)
        kept = NULL;
    else if (text.n)
        kept = fac_arena_text(&t->report->memory, text.s);
    fac_text_free(&text);
    if (kept) return kept;
    t->status = fac_raise_memory(t->err, "advice");
    return "";
}
