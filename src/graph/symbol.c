/* Sizes that are known only at run time: names for negative dims, and the text of a type. */
#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "graph/build.h"

/* The first fresh name is "?0"; a file may have used it already. */
static const char *fresh_name(fac_graph *g) {
    char name[32];
    size_t k = g->nsymbols;
    do snprintf(name, sizeof name, "?%zu", k++);
    while (fac_table_get(&g->symbol_names, name));
    return fac_arena_text(&g->arena, name);
}

int64_t fac_symbol(fac_graph *g, const char *name) {
    if (name) {
        uintptr_t place = (uintptr_t)fac_table_get(&g->symbol_names, name);
        if (place) return fac_symbol_at(place - 1);
    }
    const char *copy = name ? fac_arena_text(&g->arena, name) : fresh_name(g);
    if (!copy || !fac_reserve(&g->symbols, &g->room_symbols, g->nsymbols + 1, sizeof *g->symbols) ||
        !fac_table_put(&g->symbol_names, copy, (void *)(uintptr_t)(g->nsymbols + 1))) {
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for the symbol '%s'", name ? name : "?");
        return fac_symbol_at(0);
    }
    g->symbols[g->nsymbols] = copy;
    return fac_symbol_at(g->nsymbols++);
}

const char *fac_symbol_name(const fac_graph *g, int64_t symbol) {
    return fac_is_symbol(g, symbol) ? g->symbols[fac_symbol_index(symbol)] : NULL;
}

bool fac_symbols_copy(fac_graph *to, const fac_graph *from) {
    for (size_t k = 0; k < from->nsymbols && !to->error.status; k++)
        fac_symbol(to, from->symbols[k]);
    return !to->error.status;
}

bool fac_dims_valid(const fac_graph *g, const fac_dims *dims) {
    if (dims->n < 0 || dims->n > FAC_DIMS) return false;
    bool symbolic = false;
    for (int k = 0; k < dims->n; k++)
        if (dims->d[k] < 0) {
            if (!fac_is_symbol(g, dims->d[k])) return false;
            symbolic = true;
        }
    return symbolic || fac_dims_count(dims) >= 0;
}

bool fac_type_fits(const fac_type *a, const fac_type *b) {
    if (a->dtype != b->dtype || a->dims.n != b->dims.n) return false;
    for (int k = 0; k < a->dims.n; k++)
        if (a->dims.d[k] != b->dims.d[k] && a->dims.d[k] >= 0 && b->dims.d[k] >= 0) return false;
    return true;
}

void fac_type_print(const fac_graph *g, const fac_type *type, fac_text *to) {
    fac_text_add(to, fac_dtype_get(type->dtype)->name);
    fac_text_add(to, "[");
    for (int k = 0; k < type->dims.n; k++) {
        const char *name = g ? fac_symbol_name(g, type->dims.d[k]) : NULL;
        if (k) fac_text_add(to, ",");
        if (name)
            fac_text_add(to, name);
        else
            fac_text_print(to, "%lld", (long long)type->dims.d[k]);
    }
    fac_text_add(to, "]");
}
