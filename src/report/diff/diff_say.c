/* What two models' values have in common, and how that is said: see diff.h. */
#include <string.h>
#include "base/error.h"
#include "report/diff/diff.h"

void fac_say(fac_text *to, const char *what) {
    if (to->n) fac_text_add(to, "; ");
    fac_text_add(to, what);
}

/* ---- types ---- */

/* Symbols are the same when their names are; nameless ones always. */
static bool same_size(const fac_graph *a, int64_t x, const fac_graph *b, int64_t y) {
    const char *p = fac_symbol_name(a, x), *q = fac_symbol_name(b, y);
    if (!p || !q) return x == y;
    return (*p == '?' && *q == '?') || !strcmp(p, q);
}

bool fac_same_type(const fac_value *x, const fac_value *y) {
    if (x->type.dtype != y->type.dtype || x->type.dims.n != y->type.dims.n) return false;
    for (int k = 0; k < x->type.dims.n; k++)
        if (!same_size(x->graph, x->type.dims.d[k], y->graph, y->type.dims.d[k])) return false;
    return true;
}

void fac_say_types(fac_text *to, const fac_value *x, const fac_value *y) {
    fac_say(to, "");
    fac_type_print(x->graph, &x->type, to);
    fac_text_add(to, " -> ");
    fac_type_print(y->graph, &y->type, to);
}

/* ---- where a value comes from, added and removed nodes left out ---- */

static const fac_value *first_data(const fac_node *n) {
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && (n->in[i]->node || n->in[i]->leaf == FAC_INPUT)) return n->in[i];
    return NULL;
}

/* In the order of the nodes, so that what the first input really is has been found before. */
void fac_find_real(const fac_diff_side *s, const fac_value **real) {
    for (int p = 0; p < s->n; p++) {
        const fac_value *from = s->mate[p] < 0 ? first_data(s->nodes[p]) : NULL;
        for (int k = 0; from && k < s->nodes[p]->nout; k++)
            real[s->nodes[p]->out[k]->id] = real[from->id] ? real[from->id] : from;
    }
}

static const fac_value *really(const fac_teller *t, int side, const fac_value *v) {
    return v && t->real[side][v->id] ? t->real[side][v->id] : v;
}

void fac_say_value(const fac_value *v, fac_text *to) {
    char label[200];
    if (!v)
        fac_text_add(to, "nothing");
    else if (!v->node && v->leaf == FAC_CONST)
        fac_text_add(to, "a constant");
    else if (!v->node)
        fac_text_add(to, v->name);
    else
        fac_text_add(to, fac_node_label(v->node, label, sizeof label));
    if (v && v->node && v->index) fac_text_print(to, ".%d", v->index);
}

bool fac_same_source(const fac_teller *t, const fac_value *x, const fac_value *y) {
    if (fac_match_same(&t->m, x, y)) return true;
    if (!x || !y || (!x->node && x->leaf == FAC_CONST) || (!y->node && y->leaf == FAC_CONST))
        return false;
    const fac_value *p = really(t, 0, x), *q = really(t, 1, y);
    return (p != x || q != y) && fac_match_same(&t->m, p, q);
}

void fac_say_source(fac_text *to, const fac_value *x, const fac_value *y) {
    fac_text_add(to, "from ");
    fac_say_value(x, to);
    fac_text_add(to, " -> ");
    fac_say_value(y, to);
}

/* ---- contents ---- */

static void say_contents(fac_text *to, double largest, double share) {
    fac_say(to, "");
    fac_text_print(to, "%.3g %% of its numbers differ, by at most %.3g", 100 * share, largest);
}

fac_status fac_tell_contents(const fac_teller *t, const fac_value *x, const fac_value *y,
                             fac_text *to, fac_change *c) {
    if (t->o.structure || !x->tensor || !y->tensor || !fac_dims_equal(&x->type.dims, &y->type.dims))
        return FAC_OK;
    FAC_TRY(fac_contents_compare(x->tensor, y->tensor, &c->largest, &c->share, t->err));
    if (c->share > 0) say_contents(to, c->largest, c->share);
    return FAC_OK;
}
