/* A part of a model: from values that become inputs to values that become outputs. */
#include "base/error.h"
#include "base/memory.h"
#include "edit/edit.h"

typedef struct part {
    int n;
    const char *const *names;
    const fac_value **at;
    fac_value **made;
} part;

static fac_value *cut_here(const part *p, fac_graph *to, const fac_value *v) {
    for (int k = 0; k < p->n; k++) {
        if (p->at[k] != v) continue;
        if (v->guess == FAC_RANKLESS)
            return fac_graph_raise(to, FAC_E_UNSUPPORTED,
                                   "%s cannot be an input: how many dims it has shows in a run",
                                   p->names[k]);
        return p->made[k] = fac_input(to, p->names[k], v->type.dtype, v->type.dims);
    }
    return NULL;
}

static bool part_node(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                      fac_value *out[]) {
    const part *p = self;
    bool cut = false;
    for (int k = 0; k < n->nout; k++)
        for (int i = 0; i < p->n; i++) cut |= p->at[i] == n->out[k];
    if (!cut) return false;
    if (n->nout > 1) fac_node_copy(to, n, in, out);
    for (int k = 0; k < n->nout; k++) {
        fac_value *v = cut_here(p, to, n->out[k]);
        if (v) out[k] = v;
    }
    return true;
}

static fac_value *part_leaf(void *self, fac_graph *to, const fac_value *v) {
    return v->leaf == FAC_INPUT ? cut_here(self, to, v) : NULL;
}

/* Drops original inputs that became unused; every requested cut input must be used. */
static fac_status keep_inputs(fac_graph *g, const part *p, fac_error *err) {
    for (int k = 0; k < p->n; k++)
        if (!p->made[k])
            return fac_raise(err, FAC_E_ARGUMENT, "there is no value \"%s\" to begin at",
                             p->names[k]);
        else if (!p->made[k]->uses && !p->made[k]->roots)
            return fac_raise(err, FAC_E_ARGUMENT, "no output needs \"%s\": it cannot be an input",
                             p->names[k]);
    fac_drop_unread_inputs(g);
    return FAC_OK;
}

fac_status fac_graph_extract(const fac_graph *g, int ninputs, const char *const inputs[],
                             int noutputs, const char *const outputs[], fac_graph **out,
                             fac_error *err) {
    part p = { ninputs, inputs, fac_alloc((size_t)ninputs + 1, sizeof *p.at),
               fac_alloc((size_t)ninputs + 1, sizeof *p.made) };
    fac_value **map = NULL;
    for (int k = 0; p.at && k < ninputs; k++) p.at[k] = fac_edit_value(g, inputs[k]);
    const fac_rebuild how = {
        .self = &p, .visit = part_node, .leaf = part_leaf, .keep_dead = true, .blind = true
    };
    fac_graph *to = p.made && p.at ? fac_graph_rebuild(g, &how, &map) : NULL;
    fac_status status = to ? fac_graph_check(to, err) : fac_raise_memory(err, "a graph");
    if (!status) fac_forget_outputs(to);
    for (int k = 0; k < noutputs && !status; k++) {
        const fac_value *v = fac_edit_value(g, outputs[k]);
        if (!v || !map[v->id])
            status =
                fac_raise(err, FAC_E_ARGUMENT, "there is no value \"%s\" to end at", outputs[k]);
        else
            fac_output(to, outputs[k], map[v->id]);
    }
    if (!status) fac_graph_sweep(to);
    if (!status) status = keep_inputs(to, &p, err);
    fac_release(p.made);
    fac_release(p.at);
    if (!status) return fac_edit_give(to, out, err);
    fac_graph_free(to);
    return status;
}
