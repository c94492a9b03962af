/* Runs two models on the same inputs and judges their outputs: see facula/verify.h.
 *
 * Where they differ, the first value that differs is looked for among those that both name: as many at once as fit into WINDOW
 * bytes become outputs of both, in the order of the second model, until a window has a difference. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "facula/program.h"
#include "passes/passes.h"
#include "report/verify.h"

enum { PORTS = 64, INTEGERS = 7 };
static const double WINDOW = 256e6, EXACT = 0x1p22;

typedef struct side { fac_graph *graph, *run; fac_tensor *out[2 * PORTS]; } side;
typedef struct trial {
    side a, b;
    fac_device *device;
    const fac_verify_opts *o;
    fac_tensor *in[PORTS];
    fac_verdict *v;
    fac_error  *err;
    bool        proof;              /* EXACT: unequal bits prove a difference */
} trial;

static void say(fac_verdict *v, fac_sameness same, const char *format, ...) FAC_PRINTF(3, 4);
static void say(fac_verdict *v, fac_sameness same, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(v->why, sizeof v->why, format, args);
    va_end(args);
    v->same = same;
}

/* ---- do they fit together? ---- */

static bool same_type(const fac_type *x, const fac_type *y) { return x->dtype == y->dtype && fac_dims_equal(&x->dims, &y->dims); }

static bool same_ports(const trial *t) {
    const fac_graph *a = t->a.graph, *b = t->b.graph;
    if (a->ninputs != b->ninputs || a->noutputs != b->noutputs)
        return say(t->v, FAC_DIFFERENT, "%zu inputs and %zu outputs against %zu and %zu", a->ninputs, a->noutputs, b->ninputs,
                   b->noutputs), false;
    for (size_t i = 0; i < a->ninputs; i++)
        if (!same_type(&a->inputs[i]->type, &b->inputs[i]->type))
            return say(t->v, FAC_DIFFERENT, "input %zu, %s against %s: another type or size", i, a->inputs[i]->name,
                       b->inputs[i]->name), false;
    for (size_t i = 0; i < a->noutputs; i++)
        if (!same_type(&a->outputs[i].value->type, &b->outputs[i].value->type))
            return say(t->v, FAC_DIFFERENT, "output %zu, %s against %s: another type or size", i, a->outputs[i].name,
                       b->outputs[i].name), false;
    return true;
}

/* ---- running ---- */

static fac_status random_input(const trial *t, int round, size_t i, const fac_type *type, fac_tensor **out) {
    const int64_t n = fac_dims_count(&type->dims);
    const uint64_t stream = (uint64_t)round * PORTS + i;
    fac_tensor *wide = NULL;
    FAC_TRY(fac_tensor_new(NULL, FAC_F64, type->dims, &wide, t->err));
    double *x = (double *)(uintptr_t)fac_tensor_data(wide);
    const bool is_float = fac_dtype_get(type->dtype)->kind == 'f', real = is_float && t->o->mode != FAC_VERIFY_EXACT;
    for (int64_t k = 0; k < n; k++)
        x[k] = real ? 2 * fac_random_uniform(t->o->seed, stream, (uint64_t)k) - 1
                    : (double)(int64_t)(fac_random_bits(t->o->seed, stream, (uint64_t)k) % INTEGERS) - (is_float ? INTEGERS / 2 : 0);
    fac_status status = fac_tensor_convert(wide, type->dtype, out, t->err);
    fac_tensor_free(wide);
    return status;
}

static fac_status take_inputs(trial *t, int round) {
    for (size_t i = 0; i < t->a.graph->ninputs; i++) {
        fac_tensor_free(t->in[i]);
        t->in[i] = NULL;
        if (t->o->n) t->in[i] = fac_tensor_retain(t->o->inputs[i]);
        else FAC_TRY(random_input(t, round, i, &t->a.graph->inputs[i]->type, &t->in[i]));
    }
    return FAC_OK;
}

static void drop_outputs(side *s) {
    for (int k = 0; k < 2 * PORTS; k++) {
        fac_tensor_free(s->out[k]);
        s->out[k] = NULL;
    }
}

static fac_status run_graph(const trial *t, const fac_graph *g, fac_tensor *out[]) {
    fac_program *p = NULL;
    const fac_program_opts opts = { .exact = t->o->mode != FAC_VERIFY_DATA };
    FAC_TRY(fac_program_new(g, t->device, &opts, &p, t->err));
    fac_status status = fac_program_run(p, t->in, out, t->err);
    fac_program_free(p);
    return status;
}

/* ---- comparing ---- */

typedef struct difference { int64_t at, count; double a, b, worst, ratio, elements; } difference;

static fac_status as_doubles(const fac_tensor *t, double **out, fac_error *err) {
    const fac_type type = fac_tensor_type(t);
    fac_tensor *wide = NULL;
    const size_t n = (size_t)fac_dims_count(&type.dims);
    double *x = fac_alloc(n + 1, sizeof *x);
    if (!x) return fac_raise(err, FAC_E_NOMEM, "no memory for %zu numbers", n);
    fac_status status = fac_tensor_convert(t, FAC_F64, &wide, err);
    if (!status) status = fac_tensor_read(wide, x, n * sizeof *x, err);
    fac_tensor_free(wide);
    if (status) fac_release(x);
    else *out = x;
    return status;
}

/* What may lie between two numbers: nothing, the two bounds, or a tolerance. */
static double allowed(const trial *t, double b, double ea, double eb) {
    if (t->o->mode == FAC_VERIFY_EXACT) return 0;
    if (t->o->mode == FAC_VERIFY_BOUND) return ea + eb;
    const bool usual = t->o->rtol <= 0 && t->o->atol <= 0;
    return (usual ? 1e-5 : t->o->atol) + (usual ? 1e-4 : t->o->rtol) * fabs(b);
}

static void compare(const trial *t, int64_t n, const double *a, const double *b, const double *ea, const double *eb,
                    difference *d) {
    for (int64_t i = 0; i < n; i++) {
        d->elements++;
        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))) continue;
        const double off = fabs(a[i] - b[i]), room = allowed(t, b[i], ea ? ea[i] : 0, eb ? eb[i] : 0);
        const double ratio = room > 0 ? off / room : INFINITY;
        if (off > d->worst || isnan(off)) d->worst = isnan(off) ? INFINITY : off;
        if (ratio > d->ratio || isnan(ratio)) d->ratio = isnan(ratio) ? INFINITY : ratio;
        if (ratio <= 1) continue;
        if (!d->count++) d->at = i, d->a = a[i], d->b = b[i];
    }
}

/* Output k of both, with its bounds behind all outputs when there are some. */
static fac_status compare_output(const trial *t, size_t k, size_t outputs, bool bounds, difference *d) {
    double *x[4] = { NULL };
    const fac_type type = fac_tensor_type(t->a.out[k]);
    if (type.dtype == FAC_TEXT) return fac_raise(t->err, FAC_E_UNSUPPORTED, "texts are not compared");
    fac_status status = as_doubles(t->a.out[k], &x[0], t->err);
    if (!status) status = as_doubles(t->b.out[k], &x[1], t->err);
    if (!status && bounds) status = as_doubles(t->a.out[outputs + k], &x[2], t->err);
    if (!status && bounds) status = as_doubles(t->b.out[outputs + k], &x[3], t->err);
    if (!status) compare(t, fac_dims_count(&type.dims), x[0], x[1], x[2], x[3], d);
    for (int i = 0; i < 4; i++) fac_release(x[i]);
    return status;
}

/* ---- where it begins ---- */

/* Values of b that a names too, of one type: pairs in the order of b. */
typedef struct pair { fac_value *a, *b; } pair;

static size_t find_pairs(const trial *t, pair *to) {
    size_t n = 0;
    for (const fac_node *m = t->b.graph->first; m; m = m->next) {
        fac_value *b = m->out[0], *a = b->name && b->time == FAC_RUN ? fac_table_get(&t->a.graph->names, b->name) : NULL;
        if (a && a->node && a->time == FAC_RUN && same_type(&a->type, &b->type) && a->type.dtype == FAC_F32)
            to[n++] = (pair){ a, b };
    }
    return n;
}

static fac_graph *with_outputs(const fac_graph *g, const pair *p, size_t n, bool second) {
    fac_value **map = NULL;
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .keep_dead = true }, &map);
    for (size_t k = 0; to && k < n; k++) {
        char name[32];
        snprintf(name, sizeof name, "window.%zu", k);
        fac_output(to, name, map[(second ? p[k].b : p[k].a)->id]);
    }
    return to;
}

static fac_status search_window(trial *t, const pair *p, size_t n, bool *found) {
    const size_t outputs = t->a.graph->noutputs;
    fac_graph *a = with_outputs(t->a.graph, p, n, false), *b = with_outputs(t->b.graph, p, n, true);
    fac_status status = a && b ? FAC_OK : fac_raise(t->err, FAC_E_NOMEM, "no memory for a search");
    drop_outputs(&t->a);
    drop_outputs(&t->b);
    if (!status) status = run_graph(t, a, t->a.out);
    if (!status) status = run_graph(t, b, t->b.out);
    for (size_t k = 0; k < n && !status && !*found; k++) {
        difference d = { 0 };
        trial plain = *t;
        const fac_verify_opts data = { .mode = t->o->mode == FAC_VERIFY_EXACT ? FAC_VERIFY_EXACT : FAC_VERIFY_DATA,
                                       .rtol = 1e-3, .atol = 1e-3 };
        plain.o = &data;
        status = compare_output(&plain, outputs + k, 0, false, &d);
        if (status || !d.count) continue;
        *found = true;
        snprintf(t->v->first, sizeof t->v->first, "%s", p[k].b->name);
    }
    fac_graph_free(a);
    fac_graph_free(b);
    return status;
}

static fac_status find_first(trial *t) {
    pair *p = fac_alloc((size_t)t->b.graph->nodes + 1, sizeof *p);
    if (!p) return fac_raise(t->err, FAC_E_NOMEM, "no memory for a search");
    const size_t n = find_pairs(t, p);
    bool found = false;
    fac_status status = FAC_OK;
    for (size_t from = 0; from < n && !found && !status;) {
        double bytes = 0;
        size_t count = 0;
        const size_t most = 2 * PORTS - t->a.graph->noutputs;
        while (from + count < n && count < most && (bytes < WINDOW || !count))
            bytes += (double)fac_type_bytes(&p[from + count++].a->type);
        status = search_window(t, p + from, count, &found);
        from += count;
    }
    fac_release(p);
    return status;
}

/* ---- one round ---- */

static fac_status round_of(trial *t, int round, bool *differs) {
    const size_t outputs = t->a.graph->noutputs;
    FAC_TRY(take_inputs(t, round));
    FAC_TRY(run_graph(t, t->a.run, t->a.out));
    FAC_TRY(run_graph(t, t->b.run, t->b.out));
    for (size_t k = 0; k < outputs; k++) {
        difference d = { 0 };
        FAC_TRY(compare_output(t, k, outputs, t->o->mode == FAC_VERIFY_BOUND, &d));
        t->v->elements += d.elements;
        if (d.worst > t->v->worst) t->v->worst = d.worst;
        if (d.ratio > t->v->ratio && t->o->mode != FAC_VERIFY_EXACT) t->v->ratio = d.ratio;
        if (!d.count || *differs) continue;
        *differs = true;
        say(t->v, t->proof ? FAC_DIFFERENT : FAC_CANNOT_TELL,
            "output %s: %lld of %.0f elements differ; the first is element %lld, %.9g against %.9g",
            t->a.graph->outputs[k].name, (long long)d.count, d.elements, (long long)d.at, d.a, d.b);
    }
    drop_outputs(&t->a);
    drop_outputs(&t->b);
    return FAC_OK;
}

static fac_status rounds(trial *t) {
    bool differs = false;
    const int n = t->o->n ? 1 : t->o->rounds > 0 ? t->o->rounds : 3;
    for (int r = 0; r < n && !differs; r++) FAC_TRY(round_of(t, r, &differs));
    if (!differs) {
        say(t->v, FAC_SAME, "%.0f numbers of %d run%s: %s", t->v->elements, n, n > 1 ? "s" : "",
            t->o->mode == FAC_VERIFY_EXACT ? "the same bits" : t->o->mode == FAC_VERIFY_BOUND ? "within both bounds" : "within the tolerance");
        return FAC_OK;
    }
    if (t->o->mode == FAC_VERIFY_EXACT) {       /* the search compares the graphs that ran */
        fac_graph *swap = t->a.graph;
        t->a.graph = t->a.run, t->a.run = swap;
        swap = t->b.graph;
        t->b.graph = t->b.run, t->b.run = swap;
    }
    return find_first(t);
}

/* What runs in this mode; false when the mode cannot judge these models. */
static fac_status make_ready(trial *t, side *s, bool *can) {
    const char *real = NULL;
    double largest = 0;
    if (t->o->mode == FAC_VERIFY_DATA) s->run = fac_graph_clone(s->graph);
    else if (t->o->mode == FAC_VERIFY_BOUND) s->run = fac_error_bounds(s->graph, &real);
    else s->run = fac_abstract(s->graph, &largest, &real);
    if (!s->run) return fac_raise(t->err, FAC_E_NOMEM, "no memory for a model");
    FAC_TRY(fac_graph_check(s->run, t->err));
    if (t->o->mode == FAC_VERIFY_BOUND && real)
        *can = false, say(t->v, FAC_CANNOT_TELL, "the rounding error of %s is not known", real);
    if (real || largest > EXACT) t->proof = false;
    return FAC_OK;
}

static fac_status check_inputs(const trial *t) {
    if (t->o->n && (size_t)t->o->n != t->a.graph->ninputs)
        return fac_raise(t->err, FAC_E_ARGUMENT, "%d inputs are given, the models have %zu", t->o->n, t->a.graph->ninputs);
    for (int i = 0; i < t->o->n; i++) {
        const fac_type have = fac_tensor_type(t->o->inputs[i]);
        if (!same_type(&have, &t->a.graph->inputs[i]->type))
            return fac_raise(t->err, FAC_E_SHAPE, "input %d, %s: the tensor has another type or size", i,
                             t->a.graph->inputs[i]->name);
    }
    if (t->a.graph->ninputs > PORTS || t->a.graph->noutputs > PORTS)
        return fac_raise(t->err, FAC_E_UNSUPPORTED, "more than %d inputs or outputs", PORTS);
    return FAC_OK;
}

static fac_status sized(const fac_graph *g, int64_t batch, fac_graph **out, fac_error *err) {
    fac_graph *quiet = fac_graph_inference(g), *to = quiet ? fac_pass_sizes(quiet, batch) : NULL;
    fac_graph_free(quiet);
    if (!to) return fac_raise(err, FAC_E_NOMEM, "no memory for a model");
    fac_status status = fac_graph_check(to, err);
    if (status) fac_graph_free(to);
    else *out = to;
    return status;
}

static fac_status judge(trial *t, const fac_graph *a, const fac_graph *b) {
    bool can = true;
    FAC_TRY(sized(a, t->o->batch, &t->a.graph, t->err));
    FAC_TRY(sized(b, t->o->batch, &t->b.graph, t->err));
    if (!same_ports(t)) return FAC_OK;
    FAC_TRY(check_inputs(t));
    FAC_TRY(make_ready(t, &t->a, &can));
    FAC_TRY(make_ready(t, &t->b, &can));
    return can ? rounds(t) : FAC_OK;
}

fac_status fac_verify(const fac_graph *a, const fac_graph *b, fac_device *device, const fac_verify_opts *opts, fac_verdict *out,
                      fac_error *err) {
    fac_verdict v = { 0 };
    trial t = { .device = device, .o = opts, .v = &v, .err = err, .proof = true };
    fac_status status = judge(&t, a, b);
    for (int i = 0; i < PORTS; i++) fac_tensor_free(t.in[i]);
    drop_outputs(&t.a);
    drop_outputs(&t.b);
    fac_graph_free(t.a.graph), fac_graph_free(t.a.run);
    fac_graph_free(t.b.graph), fac_graph_free(t.b.run);
    if (!status) *out = v;
    return status;
}
