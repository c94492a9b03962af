/* The search of fac_reduce: all kinds of steps, each from halves down to single ones, until a whole
 * round changes nothing. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/reduce/reduce.h"

static const char *const names[] = { "outputs",         "nodes",      "bypasses", "sizes",
                                     "optional inputs", "attributes", "zeros",    "ones",
                                     "random weights" };

typedef struct search {
    const fac_reduce_opts *o;
    fac_graph *best;
    fac_reduce_stat stat;
    fac_error *err;
    bool over; /* no more runs, or cancelled */
} search;

/* Takes the candidate; it becomes the best one if the check holds. */
static fac_status try_graph(search *s, fac_graph *g, bool *better) {
    fac_reduce_answer answer = FAC_REDUCE_NO;
    *better = false;
    if (!g || g->error.status || s->over) return fac_graph_free(g), FAC_OK;
    if (s->o->max_runs && s->stat.runs >= s->o->max_runs)
        return s->over = true, fac_graph_free(g), FAC_OK;
    s->stat.runs++;
    fac_status status = s->o->check(s->o->self, g, &s->stat, &answer, s->err);
    s->over |= answer == FAC_REDUCE_STOP;
    if (!status && answer == FAC_REDUCE_YES) {
        fac_graph_free(s->best);
        s->best = g;
        s->stat.kept++;
        s->stat.nodes = g->nodes;
        *better = true;
    } else {
        fac_graph_free(g);
    }
    return status;
}

static fac_status try_atoms(search *s, fac_step_kind kind, const fac_atom *atoms, size_t n,
                            bool *better) {
    FAC_TRY(try_graph(s, fac_reduce_apply(s->best, kind, atoms, n, false, s->o->seed), better));
    if (*better || kind != FAC_LESS_NODES) return FAC_OK;
    return try_graph(s, fac_reduce_apply(s->best, kind, atoms, n, true, s->o->seed), better);
}

/* All chunks of one size.  What a success took away is no atom any more, so the next chunk stands
 * where it stood. */
static fac_status sweep(search *s, fac_step_kind kind, size_t chunk, fac_atom **atoms, size_t *n,
                        bool *any) {
    for (size_t at = 0; at < *n && !s->over;) {
        bool better = false;
        const size_t count = *n - at < chunk ? *n - at : chunk;
        s->stat.done = (int)(at / chunk);
        s->stat.total = (int)((*n + chunk - 1) / chunk);
        FAC_TRY(try_atoms(s, kind, *atoms + at, count, &better));
        if (!better) {
            at += count;
            continue;
        }
        *any = true;
        const size_t had = *n;
        fac_release(*atoms);
        *atoms = NULL;
        FAC_TRY(fac_reduce_atoms(s->best, kind, atoms, n, s->err));
        if (*n >= had) at += count; /* as many as before: go on after it, or this would not end */
    }
    return FAC_OK;
}

static fac_status all_of(search *s, fac_step_kind kind, bool *any) {
    fac_atom *atoms = NULL;
    size_t n = 0;
    s->stat.step = names[kind];
    fac_status status = fac_reduce_atoms(s->best, kind, &atoms, &n, s->err);
    const bool single = kind == FAC_LESS_SIZES; /* sizes depend on each other */
    for (size_t chunk = single ? 1 : n; chunk && !status && !s->over; chunk /= 2) {
        if (chunk > n && n) chunk = n;
        status = sweep(s, kind, chunk, &atoms, &n, any);
    }
    fac_release(atoms);
    return status;
}

static fac_status rounds(search *s) {
    for (bool any = true; any && !s->over;) {
        any = false;
        for (int kind = 0; kind < FAC_LESS_KINDS && !s->over; kind++)
            FAC_TRY(all_of(s, (fac_step_kind)kind, &any));
    }
    s->stat.minimal = !s->over;
    return FAC_OK;
}

fac_status fac_reduce(const fac_graph *g, const fac_reduce_opts *opts, fac_graph **out,
                      fac_reduce_stat *stat, fac_error *err) {
    search s = { .o = opts, .err = err };
    bool interesting = false;
    FAC_TRY(fac_graph_usable(g, "fac_reduce", err));
    fac_graph *first = fac_graph_inference(g);
    fac_status status = first ? fac_graph_check(first, err) : fac_raise_memory(err, "a model");
    if (status) return fac_graph_free(first), status;
    s.stat.nodes = s.stat.at_first = first->nodes;
    s.stat.step = "the model";
    status = try_graph(&s, first, &interesting);
    if (!status && !interesting)
        status = fac_raise(err, FAC_E_ARGUMENT,
                           s.over ? "stopped before the first check was over"
                                  : "the check does not hold for the model as it is");
    if (!status) status = rounds(&s);
    if (status)
        fac_graph_free(s.best);
    else
        *out = s.best;
    if (stat) *stat = s.stat;
    return status;
}
