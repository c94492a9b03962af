/* Which class each module of a model is, for people: "layer1.0" is a "BasicBlock".  A module is
 * known by its path, as scopes say it; the order is that of the first calls. */
#include "base/memory.h"
#include "graph/build.h"
#include "graph/graph_internal.h"

static const fac_note *find(const fac_graph *g, const char *path) {
    const void *place = fac_table_get(&g->module_places, path);
    return place ? &g->modules[(uintptr_t)place - 1] : NULL;
}

const char *fac_graph_class(const fac_graph *g, const char *path) {
    const fac_note *m = find(g, path);
    return m ? m->text : NULL;
}

int fac_graph_modules(const fac_graph *g) { return (int)g->nmodules; }
const char *fac_graph_module(const fac_graph *g, int i) {
    return i >= 0 && (size_t)i < g->nmodules ? g->modules[i].key : NULL;
}

void fac_graph_set_class(fac_graph *g, const char *path, const char *name) {
    if (g->error.status || find(g, path)) return;
    const char *key = fac_arena_text(&g->arena, path), *text = fac_arena_text(&g->arena, name);
    const bool room =
        fac_reserve(&g->modules, &g->room_modules, g->nmodules + 1, sizeof *g->modules);
    if (!key || !text || !room ||
        !fac_table_put(&g->module_places, key, (void *)(uintptr_t)(g->nmodules + 1))) {
        fac_graph_raise(g, FAC_E_NOMEM, "no memory for the module '%s'", path);
        return;
    }
    g->modules[g->nmodules++] = (fac_note){ key, text };
}

void fac_graph_push_module(fac_graph *g, const char *scope, const char *name) {
    fac_graph_push(g, scope);
    fac_graph_set_class(g, g->scope ? g->scope : "", name);
}

void fac_modules_copy(fac_graph *to, const fac_graph *from) {
    for (size_t k = 0; k < from->nmodules; k++)
        fac_graph_set_class(to, from->modules[k].key, from->modules[k].text);
}
