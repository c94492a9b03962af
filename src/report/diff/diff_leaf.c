/* How the leaves and the outputs of two models differ: see diff.h. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/diff/diff.h"

/* ---- leaves ---- */

/* A leaf with its mate, or alone on one side. */
static fac_status tell_leaf(fac_teller *t, fac_change_of of, const fac_value *x,
                            const fac_value *y) {
    fac_text text = { 0 };
    fac_change c = { .of = of, .kind = FAC_CHANGED };
    if (x) c.a = x->name;
    if (y) c.b = y->name;
    if (!x || !y) {
        const fac_value *alone = x ? x : y;
        c.kind = x ? FAC_REMOVED : FAC_ADDED;
        fac_type_print(alone->graph, &alone->type, &text);
        return fac_tell(t, c, &text);
    }
    if (!fac_same_type(x, y)) fac_say_types(&text, x, y);
    if (x->leaf != y->leaf)
        fac_say(&text, x->leaf == FAC_PARAM ? "trained -> a state" : "a state -> trained");
    if (!x->next != !y->next)
        fac_say(&text, x->next ? "no longer updated" : "updated now");
    else if (x->next && !fac_same_source(t, x->next, y->next)) {
        fac_say(&text, "updated ");
        fac_say_source(&text, x->next, y->next);
    }
    fac_status status = fac_tell_contents(t, x, y, &text, &c);
    const bool renamed = strcmp(x->name, y->name) != 0;
    if (!text.n && renamed) c.kind = FAC_RENAMED;
    if (!status && (text.n || text.failed || renamed)) return fac_tell(t, c, &text);
    fac_text_free(&text);
    return status;
}

fac_status fac_tell_leaves(fac_teller *t, fac_change_of of, size_t na, fac_value *const *a,
                           size_t nb, fac_value *const *b) {
    for (size_t i = 0; i < na; i++) FAC_TRY(tell_leaf(t, of, a[i], t->m.a.leaf[a[i]->id]));
    for (size_t i = 0; i < nb; i++)
        if (!t->m.b.leaf[b[i]->id]) FAC_TRY(tell_leaf(t, of, NULL, b[i]));
    return FAC_OK;
}

/* ---- outputs ---- */

static bool name_outputs(const fac_graph *g, fac_table *to) {
    for (size_t i = 0; i < g->noutputs; i++)
        if (!fac_table_put(to, g->outputs[i].name, &g->outputs[i])) return false;
    return true;
}

/* Of output i of a: that of the same name, else at the same place when neither name is anywhere in
 * the other model. */
static const fac_graph_out *output_mate(const fac_teller *t, size_t i, const fac_table *of_a,
                                        const fac_table *of_b) {
    const fac_graph *b = t->m.b.g;
    const fac_graph_out *named = fac_table_get(of_b, t->m.a.g->outputs[i].name);
    if (named || i >= b->noutputs || fac_table_get(of_a, b->outputs[i].name)) return named;
    return &b->outputs[i];
}

static fac_status tell_output(fac_teller *t, const fac_graph_out *x, const fac_graph_out *y) {
    fac_text text = { 0 };
    fac_change c = { .of = FAC_OF_OUTPUT,
                     .kind = !x   ? FAC_ADDED
                             : !y ? FAC_REMOVED
                                  : FAC_CHANGED,
                     .a = x ? x->name : NULL,
                     .b = y ? y->name : NULL };
    if (!x || !y) {
        const fac_value *v = (x ? x : y)->value;
        fac_type_print(v->graph, &v->type, &text);
        return fac_tell(t, c, &text);
    }
    if (!fac_same_source(t, x->value,
                         y->value)) { /* else its type is that of its value, which was told */
        c.kind = FAC_REWIRED;
        if (!fac_same_type(x->value, y->value)) fac_say_types(&text, x->value, y->value);
        fac_say(&text, "");
        fac_say_source(&text, x->value, y->value);
    }
    const bool renamed = strcmp(x->name, y->name) != 0;
    if (!text.n && renamed) c.kind = FAC_RENAMED;
    if (text.n || renamed) return fac_tell(t, c, &text);
    return FAC_OK;
}

fac_status fac_tell_outputs(fac_teller *t) {
    const fac_graph *a = t->m.a.g, *b = t->m.b.g;
    fac_table of_a = { 0 }, of_b = { 0 };
    bool *seen = fac_alloc(b->noutputs + 1, sizeof *seen);
    const bool room = seen && name_outputs(a, &of_a) && name_outputs(b, &of_b);
    fac_status status = room ? FAC_OK : fac_raise_memory(t->err, "a comparison of two models");
    for (size_t i = 0; i < a->noutputs && !status; i++) {
        const fac_graph_out *mate = output_mate(t, i, &of_a, &of_b);
        if (mate) seen[mate - b->outputs] = true;
        status = tell_output(t, &a->outputs[i], mate);
    }
    for (size_t i = 0; i < b->noutputs && !status; i++)
        if (!seen[i]) status = tell_output(t, NULL, &b->outputs[i]);
    fac_table_free(&of_a);
    fac_table_free(&of_b);
    fac_release(seen);
    return status;
}
