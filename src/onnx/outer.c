/* What the subgraphs of a node read from outside: names that neither they nor the subgraphs around
 * them inside the node define. They count as inputs when nodes are put in order. */
#include "base/error.h"
#include "base/memory.h"
#include "onnx/import.h"

typedef struct names {
    fac_table seen;
    const char **at;
    size_t n, room;
} names;

static fac_status add(names *to, const char *name, fac_error *err) {
    static const char there = 0;
    if (!*name || fac_table_get(&to->seen, name)) return FAC_OK;
    if (!fac_reserve(&to->at, &to->room, to->n + 1, sizeof *to->at) ||
        !fac_table_put(&to->seen, name, (void *)(uintptr_t)&there))
        return fac_raise_memory(err, "the names of a subgraph");
    to->at[to->n++] = name;
    return FAC_OK;
}

static fac_status define(fac_table *own, const char *name, fac_error *err) {
    static const char there = 0;
    return !*name || fac_table_put(own, name, (void *)(uintptr_t)&there)
               ? FAC_OK
               : fac_raise_memory(err, "the names of a subgraph");
}

static fac_status define_all(fac_table *own, const fac_proto_graph *g, fac_error *err) {
    for (size_t k = 0; k < g->in.n; k++) FAC_TRY(define(own, g->in.at[k].name, err));
    for (size_t k = 0; k < g->tensors.n; k++) FAC_TRY(define(own, g->tensors.at[k].name, err));
    for (size_t k = 0; k < g->nodes.n; k++)
        for (size_t i = 0; i < g->nodes.at[k].out.n; i++)
            FAC_TRY(define(own, g->nodes.at[k].out.at[i], err));
    return FAC_OK;
}

static fac_status add_graph(names *to, const fac_proto_graph *g, fac_error *err) {
    fac_table own = { 0 };
    fac_status status = define_all(&own, g, err);
    for (size_t k = 0; k < g->nodes.n && !status; k++)
        for (size_t i = 0; i < g->nodes.at[k].reads.n && !status; i++)
            if (!fac_table_get(&own, g->nodes.at[k].reads.at[i]))
                status = add(to, g->nodes.at[k].reads.at[i], err);
    for (size_t k = 0; k < g->out.n && !status; k++)
        if (!fac_table_get(&own, g->out.at[k].name)) status = add(to, g->out.at[k].name, err);
    fac_table_free(&own);
    return status;
}

static fac_status add_all(names *to, const fac_proto_node *n, fac_error *err) {
    for (size_t k = 0; k < n->in.n; k++) FAC_TRY(add(to, n->in.at[k], err));
    for (size_t k = 0; k < n->attrs.n; k++)
        if (n->attrs.at[k].graph) FAC_TRY(add_graph(to, n->attrs.at[k].graph, err));
    return FAC_OK;
}

fac_status fac_import_reads(fac_import *im, fac_proto_node *n, fac_error *err) {
    n->reads = n->in;
    bool any = false;
    for (size_t k = 0; k < n->attrs.n; k++) any |= n->attrs.at[k].graph != NULL;
    if (!any) return FAC_OK;
    names all = { 0 };
    fac_status status = add_all(&all, n, err);
    const char **copy = status ? NULL : fac_arena_alloc(&im->arena, all.n, sizeof *copy);
    if (!status && !copy) status = fac_raise_memory(err, "the names of a subgraph");
    if (!status) {
        if (all.n) memcpy(copy, all.at, all.n * sizeof *copy);
        n->reads = (fac_proto_names){ copy, all.n };
    }
    fac_release(all.at);
    fac_table_free(&all.seen);
    return status;
}
