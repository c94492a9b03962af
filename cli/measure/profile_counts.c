/* What the model says it takes beside what the steps account for: every multiply-add of one must be
 * in the other. */
#include <stdlib.h>
#include <string.h>
#include "facula/op.h"
#include "profile.h"

static profile_count *row_of(profile_count *rows, int *n, const char *op) {
    int k = 0;
    while (k < *n && strcmp(rows[k].op, op)) k++;
    if (k == *n) rows[(*n)++].op = op;
    return &rows[k];
}

profile_count *profile_counts(const profile *p, int *n) {
    size_t most = p->analysis ? (size_t)fac_analysis_totals(p->analysis).layers : 0;
    for (size_t i = 0; i < p->t.n; i++) most += (size_t)p->t.steps[i].s.ndoes;
    profile_count *rows = calloc(most + 1, sizeof *rows);
    *n = 0;
    for (int i = 0; rows && p->analysis && fac_analysis_layer(p->analysis, i); i++) {
        const fac_layer *l = fac_analysis_layer(p->analysis, i);
        profile_count *r = row_of(rows, n, l->op);
        const int64_t elements = fac_dims_count(&l->out.dims);
        r->layers++;
        r->macs += l->macs;
        r->elements += elements > 0 ? (double)elements : 0;
    }
    for (size_t i = 0; rows && i < p->t.n; i++)
        for (int k = 0; k < p->t.steps[i].s.ndoes; k++) {
            const fac_step_op *d = &p->t.steps[i].s.does[k];
            profile_count *r = row_of(rows, n, d->op);
            r->done++;
            r->macs_done += d->macs;
            r->elements_done += d->elements;
        }
    return rows;
}

const char *profile_why(const profile_count *c) {
    static const char *const known[][2] = {
        { "batch_norm", "folded into the weights before the run" },
        { "dropout", "does nothing in a run" },
        { "identity", "does nothing in a run" },
        { "concat", "its inputs are written to their places" }
    };
    const fac_op *op = fac_op_find(c->op);
    if (c->layers == c->done && c->macs == c->macs_done && c->elements == c->elements_done)
        return "";
    if (!c->layers) return "made from other ops";
    for (size_t k = 0; k < sizeof known / sizeof *known && c->done < c->layers; k++)
        if (!strcmp(known[k][0], c->op)) return known[k][1];
    if (c->done < c->layers && op && op->view) return "a view: no data moves";
    if (c->macs == c->macs_done && c->elements == c->elements_done)
        return c->done < c->layers ? "merged: one does what several did" : "done in parts";
    if (!c->done) return "nothing to do, or other ops do it";
    if (c->macs_done < c->macs) return "equal ones are computed once";
    return c->done < c->layers ? "some were merged or rewritten"
                               : "more: other ops became this one";
}
