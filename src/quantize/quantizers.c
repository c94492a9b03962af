/* How often the numbers that a quantizer is given lie where, beside its levels: see
 * facula/quantize.h.  What is no leaf of the graph becomes an output of a copy, which is run. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/program.h"
#include "facula/quantize.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "passes/common/select.h"
#include "quantize/leveled.h"

/* Cells reach so many times as far as the largest level. */
static const double reach = 1.5;

typedef struct row {
    fac_quantizer_counts is;
    const fac_node *node;
    fac_leveled of;
    bool counted; /* of weights: in one run, they are the same in all */
} row;

struct fac_quantizers {
    fac_graph *graph; /* for inference; its outputs are the numbers and the basis of the quantizers
                         that read what is computed */
    fac_device *device;
    fac_program *program;
    row *rows;
    int n, computed; /* rows; of them those with outputs */
    fac_arena memory;
};

/* ---- which there are ---- */

static bool is_stored(const fac_value *v) { return !v || v->tensor; }

static bool is_computed(const row *r) { return !is_stored(r->of.x) || !is_stored(r->of.by); }

/* The layer after it, on the way through what only moves numbers. */
static const fac_node *reader_of(const fac_node *n) {
    while (n->out[0]->uses) {
        const fac_node *next = n->out[0]->uses->node;
        if (!next->op->move) return next;
        n = next;
    }
    return n;
}

static fac_status name_of(fac_quantizers *q, row *r, fac_error *err) {
    char label[256];
    const fac_node *reader = reader_of(r->node);
    const char *module = fac_module_path(&q->memory, reader);
    if (!module) return fac_raise_memory(err, "counts of levels");
    if (!*module) module = fac_arena_text(&q->memory, fac_node_label(reader, label, sizeof label));
    r->is.layer = module;
    return module ? FAC_OK : fac_raise_memory(err, "counts of levels");
}

static fac_status add_row(fac_quantizers *q, const fac_node *n, const fac_leveled *of,
                          fac_error *err) {
    row *r = &q->rows[q->n++];
    *r = (row){ .node = n, .of = *of };
    r->is.bits = of->bits;
    r->is.levels = 1 << of->bits;
    r->is.filters = of->filters;
    r->is.weights = of->x->time != FAC_RUN;
    q->computed += is_computed(r);
    return name_of(q, r, err);
}

static fac_status gather(fac_quantizers *q, fac_error *err) {
    fac_leveled of;
    fac_status status = FAC_OK;
    q->rows = fac_alloc((size_t)q->graph->nodes + 1, sizeof *q->rows);
    bool *live = fac_leveled_live(q->graph);
    if (!q->rows || !live) status = fac_raise_memory(err, "counts of levels");
    for (const fac_node *n = q->graph->first; n && !status; n = n->next)
        if (live[n->out[0]->id] && fac_leveled_of(n, &of)) status = add_row(q, n, &of, err);
    fac_release(live);
    if (status || q->n) return status;
    return fac_raise(err, FAC_E_ARGUMENT,
                     "nothing in it has levels of 1 to %d bits: expected a model with quantizers, "
                     "such as those of scheme lq:wWaA, or a packed file",
                     FAC_BASIS_BITS);
}

/* ---- counting ---- */

static double largest(const fac_basis *b) {
    return fmax(fabs(b->level[0]), fabs(b->level[b->levels - 1]));
}

/* One of `filters` bases; 1: the only one. */
static void take_levels(row *r, const fac_basis *b, double unit, int64_t filters) {
    const double part = 1 / (unit * (double)filters);
    for (int k = 0; k < b->levels; k++) r->is.level[k] += b->level[k] * part;
    for (int k = 0; k + 1 < b->levels; k++) r->is.threshold[k] += b->threshold[k] * part;
    if (r->of.kind == FAC_LEVELED_SIGNS) r->is.threshold[0] = 0;
}

static void begin(row *r) {
    memset(r->is.level, 0, sizeof r->is.level);
    memset(r->is.threshold, 0, sizeof r->is.threshold);
}

static void set_range(row *r, double most) {
    r->is.hi = reach * (most > 0 ? most : 1);
    r->is.lo = r->of.positive ? 0 : -r->is.hi;
}

static void count_one(fac_quantizer_counts *q, double x) {
    const double cell = (x - q->lo) / (q->hi - q->lo) * FAC_QUANTIZER_CELLS;
    if (x == 0)
        q->zeros++;
    else if (cell < 0)
        q->below++;
    else if (cell < FAC_QUANTIZER_CELLS)
        q->in[(int)cell]++;
    else
        q->above++;
}

static void count_line(row *r, const fac_basis *b, double unit, const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i])) {
            r->is.nan++;
            continue;
        }
        r->is.taken[fac_basis_find(b, x[i])]++;
        count_one(&r->is, x[i] / unit);
    }
}

/* One row of numbers where there is one set of levels, in the other kinds than a basis too. */
static fac_basis_grid grid_of(const row *r, const fac_dims *x, const fac_tensor *by) {
    const fac_basis_grid one = { 1, 1, fac_dims_count(x), r->of.bits };
    if (r->of.kind != FAC_LEVELED_BASIS) return one;
    const fac_dims v = fac_tensor_type(by).dims;
    return fac_basis_grid_of(x, &v, r->of.axis);
}

static void count(row *r, const fac_tensor *x, const fac_tensor *by) {
    const fac_dims d = fac_tensor_type(x).dims;
    const fac_basis_grid g = grid_of(r, &d, by);
    const bool single = r->node->out[0]->type.dtype != FAC_F64;
    const double *numbers = fac_tensor_data(x), *at = by ? fac_tensor_data(by) : NULL;
    begin(r);
    for (int64_t c = 0; c < g.channels; c++) {
        fac_basis b;
        fac_leveled_levels(&r->of, at, c, single, &b);
        const double most = largest(&b), unit = r->is.filters && most > 0 ? most : 1;
        take_levels(r, &b, unit, g.channels);
        set_range(r, r->is.filters ? 1 : most);
        for (int64_t k = 0; k < g.outer; k++)
            count_line(r, &b, unit, numbers + (k * g.channels + c) * g.inner, g.inner);
    }
}

/* The code of each element is in its planes of bits: see fac_pack_basis. */
static void count_packed(row *r, const fac_tensor *bits, const fac_tensor *basis) {
    const fac_dims d = fac_tensor_type(bits).dims, y = r->node->out[0]->type.dims;
    const uint8_t *plane = fac_tensor_data(bits);
    const double *at = fac_tensor_data(basis);
    const bool single = r->node->out[0]->type.dtype != FAC_F64;
    const int64_t each = d.d[1] ? fac_dims_count(&y) / d.d[1] : 0;
    begin(r);
    for (int64_t c = 0; c < d.d[1]; c++) {
        fac_basis b;
        fac_basis_of(at + c, d.d[1], (int)d.d[0], false, single, &b);
        const double most = largest(&b), unit = most > 0 ? most : 1;
        take_levels(r, &b, unit, d.d[1]);
        set_range(r, 1);
        for (int64_t k = 0; k < each; k++) {
            double sum = 0;
            for (int j = 0; j < b.bits; j++) {
                const int bit = plane[(j * d.d[1] + c) * d.d[2] + k / 8] >> k % 8 & 1;
                sum += bit ? b.v[j] : -b.v[j];
                if (single) sum = (double)(float)sum;
            }
            count_line(r, &b, unit, &sum, 1);
        }
    }
}

static fac_status count_pair(row *r, const fac_tensor *x, const fac_tensor *by, fac_error *err) {
    const bool packed = r->of.kind == FAC_LEVELED_PLANES;
    fac_tensor *numbers = NULL, *v = NULL;
    if (r->is.weights && r->counted) return FAC_OK;
    fac_status status = fac_tensor_convert(x, packed ? FAC_U8 : FAC_F64, &numbers, err);
    if (!status && by) status = fac_tensor_convert(by, FAC_F64, &v, err);
    if (!status) (packed ? count_packed : count)(r, numbers, v);
    r->counted = !status;
    fac_tensor_free(numbers);
    fac_tensor_free(v);
    return status;
}

/* Levels and cells before there are numbers, of a basis that is stored. */
static fac_status lay_out(row *r, fac_error *err) {
    fac_tensor *v = NULL;
    if (r->of.by) FAC_TRY(fac_tensor_convert(r->of.by->tensor, FAC_F64, &v, err));
    const bool single = r->node->out[0]->type.dtype != FAC_F64;
    const int64_t bases = r->is.filters ? r->is.filters : 1;
    const double *at = v ? fac_tensor_data(v) : NULL;
    for (int64_t c = 0; c < bases; c++) {
        fac_basis b;
        fac_leveled_levels(&r->of, at, c, single, &b);
        const double most = largest(&b);
        take_levels(r, &b, r->is.filters && most > 0 ? most : 1, bases);
        set_range(r, r->is.filters ? 1 : most);
    }
    fac_tensor_free(v);
    return FAC_OK;
}

/* ---- the calls ---- */

/* A copy whose outputs are what the quantizers read: numbers, and the basis where there is one. */
static fac_status with_outputs(fac_quantizers *q, fac_error *err) {
    fac_graph *g = q->graph;
    g->noutputs = 0;
    for (int i = 0; i < q->n; i++) {
        const row *r = &q->rows[i];
        const fac_value *const of[] = { r->of.x, r->of.by };
        for (int k = 0; k < 2 && is_computed(r) && of[k]; k++) {
            const char *name = fac_arena_print(&q->memory, "quantizer.%d.%d", i, k);
            if (!name) return fac_raise_memory(err, "counts of levels");
            fac_output(g, name, (fac_value *)(uintptr_t)of[k]);
        }
    }
    return fac_graph_check(g, err);
}

static fac_status open(fac_quantizers *q, const fac_graph *model, fac_error *err) {
    q->graph = fac_graph_inference(model);
    if (!q->graph) return fac_raise_memory(err, "counts of levels");
    FAC_TRY(gather(q, err));
    for (int i = 0; i < q->n; i++) {
        row *r = &q->rows[i];
        if (!is_computed(r))
            FAC_TRY(count_pair(r, r->of.x->tensor, r->of.by ? r->of.by->tensor : NULL, err));
        else if (is_stored(r->of.by))
            FAC_TRY(lay_out(r, err));
    }
    return with_outputs(q, err);
}

fac_status fac_quantizers_new(const fac_graph *model, fac_device *device, fac_quantizers **out,
                              fac_error *err) {
    fac_error own = { 0 };
    if (!err) err = &own;
    FAC_TRY(fac_graph_usable(model, "fac_quantizers_new", err));
    fac_quantizers *q = fac_alloc(1, sizeof *q);
    if (!q) return fac_raise_memory(err, "counts of levels");
    q->device = device;
    const fac_status status = open(q, model, err);
    if (status)
        fac_quantizers_free(q);
    else
        *out = q;
    return status;
}

static fac_status run(fac_quantizers *q, fac_tensor *const in[], fac_tensor *out[],
                      fac_error *err) {
    int at = 0;
    if (!q->program) FAC_TRY(fac_program_new(q->graph, q->device, NULL, &q->program, err));
    FAC_TRY(fac_program_run(q->program, in, out, err));
    for (int i = 0; i < q->n; i++) {
        row *r = &q->rows[i];
        if (!is_computed(r)) continue;
        FAC_TRY(count_pair(r, out[at], r->of.by ? out[at + 1] : NULL, err));
        at += r->of.by ? 2 : 1;
    }
    return FAC_OK;
}

fac_status fac_quantizers_add(fac_quantizers *q, fac_tensor *const in[], fac_error *err) {
    fac_error own = { 0 };
    if (!err) err = &own;
    const size_t outputs = 2 * (size_t)q->computed;
    if (!outputs) return FAC_OK;
    fac_tensor **out = fac_alloc(outputs, sizeof *out);
    if (!out) return fac_raise_memory(err, "counts of levels");
    const fac_status status = run(q, in, out, err);
    for (size_t i = 0; i < outputs; i++) fac_tensor_free(out[i]);
    fac_release(out);
    return status;
}

const fac_quantizer_counts *fac_quantizers_get(const fac_quantizers *q, int i) {
    return i >= 0 && i < q->n ? &q->rows[i].is : NULL;
}

void fac_quantizers_free(fac_quantizers *q) {
    if (!q) return;
    fac_program_free(q->program);
    fac_graph_free(q->graph);
    fac_release(q->rows);
    fac_arena_free(&q->memory);
    fac_release(q);
}
