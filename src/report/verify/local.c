/* Bounds from value to value.
 *
 * Where values of both models are known to be the same (pairs.c), both networks are cut
 * (local_cut.c): what reads such a value reads an input instead, and gets the first model's
 * numbers.  Each segment then starts from exact numbers in both models, so that only the rounding
 * of its own few layers counts, and bounds stay a small multiple of what really happens.  If every
 * segment of b makes of a's numbers what a makes of them, b is a but for rounding.  Numbers that
 * are nearly equal may make a pair of what is none, which shows as a difference: so a difference
 * here is no proof of one.
 *
 * Segments go through in groups of limited size: programs and weights of one group are in memory at
 * a time.  The first model's own numbers are those of one run for each round, and stay. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "report/verify/local.h"

typedef fac_local_end end;
typedef fac_local local;

static const double
    GROUP = 512e6,
    KEPT = 2e9; /* bytes of a group's results and weights; of the first model's numbers */
static const double NEAR = 1e-3,
                    COARSE = 2e-2; /* what rounding may do to values that are the same */

/* One group in one model. */
typedef struct part {
    fac_graph *graph;
    fac_program *program;
    fac_tensor **out;
    int *error_at;
} part;

/* ---- one group ---- */

static fac_status open_part(local *l, size_t first, size_t last, bool second, part *to) {
    fac_trial *t = l->t;
    const char *unknown = NULL;
    fac_graph *cut = fac_local_part(l, first, last, second);
    fac_status status = cut ? fac_graph_check(cut, t->err) : fac_raise_memory(t->err, "a segment");
    to->error_at = fac_alloc(last - first + 1, sizeof *to->error_at);
    if (!status && to->error_at)
        to->graph =
            fac_error_bounds(cut, second ? t->b.coarse : t->a.coarse, to->error_at, &unknown);
    fac_graph_free(cut);
    FAC_TRY(status);
    if (!to->graph) return fac_raise_memory(t->err, "a segment");
    FAC_TRY(fac_graph_check(to->graph, t->err));
    if (unknown) return l->unknown = unknown, FAC_OK;
    fac_drop_unread_inputs(to->graph);
    to->out = fac_alloc(to->graph->noutputs + 1, sizeof *to->out);
    if (!to->out) return fac_raise_memory(t->err, "a segment");
    return fac_trial_program(t, to->graph, &to->program);
}

static void close_part(part *p) {
    fac_program_free(p->program);
    if (p->out) fac_drop_tensors(p->out, p->graph->noutputs);
    fac_release(p->out);
    fac_release(p->error_at);
    fac_graph_free(p->graph);
}

/* What feeds an input of a part: the first model's number of a cut, or what the models were given.
 */
static fac_tensor *source_of(const local *l, const char *name, int round, bool second) {
    const fac_graph *g = second ? l->t->b.graph : l->t->a.graph;
    if (!strncmp(name, FAC_LOCAL_CUT, sizeof FAC_LOCAL_CUT - 1))
        return l->value[(size_t)round * l->n + strtoul(name + sizeof FAC_LOCAL_CUT - 1, NULL, 10)];
    for (size_t i = 0; i < g->ninputs; i++)
        if (!strcmp(g->inputs[i]->name, name)) return l->given[(size_t)round * g->ninputs + i];
    return NULL;
}

static fac_status run_part(const local *l, part *p, int round, bool second) {
    const size_t n = p->graph->ninputs;
    fac_error *err = l->t->err;
    fac_tensor **in = fac_alloc(n + 1, sizeof *in);
    fac_status status = in ? FAC_OK : fac_raise_memory(err, "%zu inputs", n);
    for (size_t i = 0; i < n && !status; i++) {
        fac_tensor *from = source_of(l, p->graph->inputs[i]->name, round, second);
        const fac_dtype want = p->graph->inputs[i]->type.dtype;
        if (!from)
            status = fac_raise(err, FAC_E_INTERNAL, "input %s of a segment has no source",
                               p->graph->inputs[i]->name);
        else if (fac_tensor_type(from).dtype == want)
            in[i] = fac_tensor_retain(from);
        else
            status = fac_tensor_convert(from, want, &in[i], err);
    }
    if (!status) status = fac_program_run(p->program, in, p->out, err);
    if (in) fac_drop_tensors(in, n);
    fac_release(in);
    return status;
}

static const fac_tensor *bound(const part *p, size_t k) {
    return p->error_at[k] >= 0 ? p->out[p->error_at[k]] : NULL;
}

static const char *name_of(const fac_value *v, char *to, size_t size) {
    if (v->name)
        snprintf(to, size, "%s", v->name);
    else if (v->node)
        fac_node_label(v->node, to, size);
    else
        snprintf(to, size, "a value");
    return to;
}

/* The first difference is told; all of them count. */
static void judge_end(local *l, size_t k, const fac_difference *d) {
    fac_verdict *v = l->t->v;
    end *e = &l->ends[k];
    fac_verify_segment *s = &e->result;
    if (d->worst > s->worst) s->worst = d->worst;
    if (d->ratio > s->ratio) s->ratio = d->ratio;
    s->elements += d->elements;
    if (d->ratio > v->ratio) v->ratio = d->ratio;
    if (k >= l->npairs && d->worst > v->worst) v->worst = d->worst;
    if (k >= l->npairs) v->elements += d->elements;
    v->differing += (double)d->count;
    if (d->unbounded && !l->wrong && !l->unbounded++) {
        char name[200];
        fac_verdict_unbounded(v, name_of(e->of.b, name, sizeof name), d);
    }
    if (!d->count || l->wrong++) return;
    name_of(e->of.b, v->first, sizeof v->first);
    v->first_differing = (double)d->count;
    v->first_elements = d->elements;
    fac_verdict_say(
        v, FAC_DIFFERENT,
        "%.120s from the numbers before it: %lld of %.0f elements differ; the first is element "
        "%lld, %s",
        v->first, (long long)d->count, d->elements, (long long)d->at, d->pair);
}

static fac_status run_group(local *l, size_t first, size_t last) {
    part p[2] = { { 0 } };
    const size_t n = last - first;
    fac_trial *t = l->t;
    fac_status status = FAC_OK;
    for (int i = 0; i < 2 && !status && !l->unknown; i++)
        status = open_part(l, first, last, i == 1, &p[i]);
    for (int r = 0; r < l->rounds && !status && !l->unknown; r++) {
        for (int i = 0; i < 2 && !status; i++) status = run_part(l, &p[i], r, i == 1);
        for (size_t k = 0; k < n && !status; k++) {
            fac_difference d = { 0 };
            status = fac_compare(p[0].out[k], p[1].out[k], bound(&p[0], k), bound(&p[1], k), 0,
                                 FAC_UNDERFLOW, &d, t->err);
            if (!status) judge_end(l, first + k, &d);
        }
        for (int i = 0; i < 2; i++)
            if (p[i].graph && p[i].out) fac_drop_tensors(p[i].out, p[i].graph->noutputs);
    }
    for (int i = 0; i < 2; i++) close_part(&p[i]);
    return status;
}

/* ---- the first model's numbers ---- */

static fac_status take_numbers(local *l) {
    fac_trial *t = l->t;
    const fac_graph *g = t->a.graph;
    fac_value **map = NULL;
    fac_program *p = NULL;
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .keep_dead = true }, &map);
    if (!to) return fac_raise_memory(t->err, "a model");
    fac_forget_outputs(to);
    for (size_t k = 0; k < l->npairs; k++) {
        char name[32];
        snprintf(name, sizeof name, "end.%zu", k);
        fac_output(to, name, map[l->ends[k].of.a->id]);
    }
    fac_graph_sweep(to);
    fac_status status = fac_graph_check(to, t->err);
    if (!status) status = fac_trial_program(t, to, &p);
    for (int r = 0; r < l->rounds && !status; r++) {
        status = fac_trial_inputs(t, r);
        if (!status) status = fac_program_run(p, t->in, &l->value[(size_t)r * l->n], t->err);
        for (size_t i = 0; i < g->ninputs && !status; i++)
            l->given[(size_t)r * g->ninputs + i] = fac_tensor_retain(t->in[i]);
    }
    fac_program_free(p);
    fac_graph_free(to);
    return status;
}

/* ---- ends ---- */

static double bytes_of(const fac_value *v) {
    const size_t bytes = fac_type_bytes(&v->type);
    return bytes == SIZE_MAX ? 0 : (double)bytes;
}

static int larger_first(const void *x, const void *y) {
    const double a = bytes_of(((const fac_pair *)x)->a), b = bytes_of(((const fac_pair *)y)->a);
    return (a < b) - (a > b);
}

/* Too much to keep: the largest pairs go first, all that are larger than some size and some of that
 * size. */
static fac_status drop_large(fac_pair *p, size_t *n, int rounds, fac_error *err) {
    double all = 0, least = INFINITY;
    size_t kept = 0, same = 0;
    fac_pair *sorted = fac_alloc(*n + 1, sizeof *sorted);
    if (!sorted) return fac_raise_memory(err, "%zu pairs", *n);
    for (size_t k = 0; k < *n; k++) {
        all += rounds * bytes_of(p[k].a);
        sorted[k] = p[k];
    }
    qsort(sorted, *n, sizeof *sorted, larger_first);
    for (size_t k = 0; k < *n && all > KEPT; k++) {
        same = bytes_of(sorted[k].a) < least ? 1 : same + 1;
        least = bytes_of(sorted[k].a);
        all -= rounds * least;
    }
    for (size_t k = 0; k < *n; k++) {
        const double bytes = bytes_of(p[k].a);
        if (bytes > least || (bytes >= least && same && same--)) continue;
        p[kept++] = p[k];
    }
    *n = kept;
    fac_release(sorted);
    return FAC_OK;
}

/* Bytes of the weights that a reads up to each pair: a node's weights belong to the first pair
 * after it. */
static bool add_weights(local *l) {
    const fac_graph *g = l->t->a.graph;
    uint8_t *seen = fac_alloc((size_t)g->ids + 1, 1);
    size_t at = 0;
    for (const fac_node *n = g->first; n && seen; n = n->next) {
        for (int i = 0; i < n->nin; i++) {
            const fac_value *v = n->in[i];
            if (!v || (v->leaf != FAC_PARAM && v->leaf != FAC_STATE) || seen[v->id]) continue;
            seen[v->id] = 1;
            l->ends[at < l->n ? at : l->n - 1].bytes +=
                8 * bytes_of(v); /* two models; |w| too; packed and not */
        }
        for (int k = 0; k < n->nout; k++) at += at < l->npairs && n->out[k] == l->ends[at].of.a;
    }
    fac_release(seen);
    return seen != NULL;
}

static bool take_ends(local *l, const fac_pair *pairs, size_t n) {
    const fac_graph *a = l->t->a.graph, *b = l->t->b.graph;
    l->ends = fac_alloc(n + a->noutputs + 1, sizeof *l->ends);
    if (!l->ends) return false;
    for (size_t k = 0; k < n; k++) l->ends[l->n++] = (end){ .of = pairs[k], .cut = true };
    l->npairs = l->n;
    for (size_t k = 0; k < a->noutputs; k++)
        l->ends[l->n++] = (end){ .of = { a->outputs[k].value, b->outputs[k].value } };
    for (size_t k = 0; k < l->n; k++) l->ends[k].bytes = 4 * bytes_of(l->ends[k].of.a);
    return true;
}

static void close_local(local *l) {
    if (l->value) fac_drop_tensors(l->value, (size_t)l->rounds * l->n);
    if (l->given) fac_drop_tensors(l->given, (size_t)l->rounds * l->t->a.graph->ninputs);
    for (int i = 0; i < 2; i++) {
        fac_graph_free(l->cut[i]);
        fac_release(l->end_of[i]);
    }
    fac_release(l->value);
    fac_release(l->given);
    fac_release(l->ends);
}

/* ---- all of it ---- */

static fac_status run_groups(local *l) {
    for (size_t first = 0, last; first < l->n && !l->unknown; first = last) {
        double bytes = l->ends[first].bytes;
        for (last = first + 1; last < l->n && bytes + l->ends[last].bytes < GROUP; last++)
            bytes += l->ends[last].bytes;
        FAC_TRY(run_group(l, first, last));
    }
    return FAC_OK;
}

static void tell_segments(const local *l) {
    const fac_verify_opts *o = l->t->o;
    for (size_t k = 0; k < l->n && o->segment; k++) {
        char a[200], b[200];
        fac_verify_segment s = l->ends[k].result;
        s.a = name_of(l->ends[k].of.a, a, sizeof a);
        s.b = name_of(l->ends[k].of.b, b, sizeof b);
        o->segment(o->self, &s);
    }
}

static fac_status from_pair_to_pair(fac_trial *t, const fac_pair *pairs, size_t n, int rounds,
                                    bool *can) {
    local l = { .t = t, .rounds = rounds };
    bool good = take_ends(&l, pairs, n) && add_weights(&l);
    l.given = fac_alloc((size_t)rounds * t->a.graph->ninputs + 1, sizeof *l.given);
    l.value = fac_alloc((size_t)rounds * l.n + 1, sizeof *l.value);
    good = good && l.given && l.value;
    fac_status status = good ? take_numbers(&l) : fac_raise_memory(t->err, "%zu segments", n);
    if (!status) status = fac_local_cut(&l);
    if (!status) status = run_groups(&l);
    *can = !status && !l.unknown;
    if (*can) tell_segments(&l);
    t->v->segments = *can ? (int)n : 0;
    if (*can && !l.wrong && !l.unbounded)
        fac_verdict_say(
            t->v, FAC_NO_DIFFERENCE,
            "%zu segments and %.0f outputs of %d run%s: within the bounds of each segment", n,
            t->v->elements, rounds, rounds > 1 ? "s" : "");
    close_local(&l);
    return status;
}

fac_status fac_verify_local(fac_trial *t, int rounds, bool *can) {
    fac_pair *pairs = NULL;
    size_t n = 0;
    *can = false;
    FAC_TRY(fac_trial_inputs(t, 0));
    FAC_TRY(fac_find_pairs(t, t->a.graph, t->b.graph, t->a.coarse || t->b.coarse ? COARSE : NEAR,
                           &pairs, &n));
    fac_status status = drop_large(pairs, &n, rounds, t->err);
    if (!status && n) status = from_pair_to_pair(t, pairs, n, rounds, can);
    fac_release(pairs);
    return status;
}
