/* From a segment to its program: leaves become inputs, states and numbers, assignments updates. */
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"
#include "lazy/lazy_internal.h"

fac_leaf_kind fac_leaf_role(const fac_lazy *leaf) {
    switch (leaf->made->kind) {
    case FAC_MADE_INTS:
        return FAC_LEAF_IS_FIXED;
    case FAC_MADE_NUMBER:
        return FAC_LEAF_IS_NUMBER;
    default:
        return leaf->weight ? FAC_LEAF_IS_STATE : FAC_LEAF_IS_INPUT;
    }
}

typedef struct making {
    fac_recorder *r;
    fac_family *f;
    int leaf, number;
} making;

/* Called for the inputs of the graph in their order, which is that of the leaves. */
static fac_value *make_leaf(void *self, fac_graph *to, const fac_value *v) {
    making *m = self;
    char name[32];
    if (v->leaf != FAC_INPUT) return NULL;
    const fac_lazy *x = m->r->by_id[v->id];
    snprintf(name, sizeof name, "x%d", m->leaf++);
    switch (fac_leaf_role(x)) {
    case FAC_LEAF_IS_STATE:
        return fac_state(to, name, x->tensor);
    case FAC_LEAF_IS_NUMBER: {
        const int k = m->number++;
        if (!m->f->lifted[k]) return fac_number(to, v->type.dtype, m->f->number[k]);
        break;
    }
    default:
        break;
    }
    return fac_input(to, name, v->type.dtype, v->type.dims);
}

static void name_results(fac_graph *g, const fac_recorder *r, fac_value **map,
                         const fac_outputs *outs) {
    char name[32];
    for (size_t i = 0; i < outs->n; i++) {
        snprintf(name, sizeof name, "y%zu", i);
        fac_output(g, name, map[outs->cell[i]->value->id]);
    }
    for (size_t i = 0; i < r->nassigned; i++) {
        const fac_lazy *state = r->assigned[i];
        fac_update(map[state->value->id], map[state->made->next->value->id]);
    }
}

static fac_status note_states(fac_family *f, const fac_recorder *r, fac_error *err) {
    fac_release(f->states);
    f->nstates = 0;
    f->states = fac_alloc(r->nleaves + 1, sizeof *f->states);
    if (!f->states) return fac_raise_memory(err, "a program");
    for (size_t i = 0; i < r->nleaves; i++)
        if (fac_leaf_role(r->leaves[i]) == FAC_LEAF_IS_STATE)
            f->states[f->nstates++] = r->leaves[i]->tensor;
    return FAC_OK;
}

fac_status fac_compile(fac_recorder *r, fac_family *f, const fac_outputs *outs, fac_error *err) {
    making m = { r, f, 0, 0 };
    fac_value **map = NULL;
    const fac_program_opts opts = { .precision = r->opts.precision };
    FAC_TRY(note_states(f, r, err));
    fac_graph *g = fac_graph_rebuild(
        r->g, &(fac_rebuild){ .self = &m, .leaf = make_leaf, .keep_dead = true }, &map);
    if (!g) return fac_raise_memory(err, "a graph of %d nodes", r->g->nodes);
    if (!g->error.status) name_results(g, r, map, outs);
    if (!g->error.status) fac_graph_sweep(g);
    const fac_status status = fac_program_new(g, r->device, &opts, &f->program, err);
    fac_graph_free(g);
    return status;
}
