/* Modules in which no layer stands, such as a dropout that is off.  PyTorch calls them all the
 * same, so tables have a row for each: before the layers of what was said after it. */
#include <string.h>
#include "base/error.h"
#include "report/cost/report.h"

typedef struct search {
    fac_analysis *a;
    fac_table     used;             /* path -> anything: a layer stands in it */
    int           said;             /* modules of the graph up to `said` are judged */
} search;

static bool mark_used(search *s, const char *module) {
    fac_arena *memory = &s->a->memory;
    for (const char *end = module; *end; end += *end != 0) {
        end += strcspn(end, ".");
        const char *path = fac_arena_print(memory, "%.*s", (int)(end - module), module);
        if (!path || !fac_table_put(&s->used, path, s)) return false;
    }
    return true;
}

/* Those that were said before the module of layer `before`; NULL: all that are left. */
static void take(search *s, const char *module, int before) {
    fac_analysis *a = s->a;
    int until = s->said;
    const int n = fac_graph_modules(a->graph);
    while (until < n && (!module || strcmp(fac_graph_module(a->graph, until), module))) until++;
    if (module && until == n) return;
    for (; s->said < until; s->said++) {
        const char *path = fac_graph_module(a->graph, s->said);
        if (!*path || fac_table_get(&s->used, path)) continue;
        fac_idle *idle = &a->idle[a->nidle++];
        *idle = (fac_idle){ .module = path, .before = before };
        idle->kind = fac_graph_class(a->graph, path);
        if (before) idle->out = a->layers[before - 1].out;
    }
}

fac_status fac_find_idle(fac_analysis *a, fac_error *err) {
    search s = { .a = a };
    const int layers = a->totals.layers;
    a->idle = fac_arena_alloc(&a->memory, (size_t)fac_graph_modules(a->graph) + 1, sizeof *a->idle);
    bool good = a->idle != NULL;
    for (int i = 0; good && i < layers; i++) good = mark_used(&s, a->layers[i].module);
    for (int i = 0; good && i < layers; i++) take(&s, a->layers[i].module, i);
    if (good) take(&s, NULL, layers);
    fac_table_free(&s.used);
    return good ? FAC_OK : fac_raise(err, FAC_E_NOMEM, "no memory for modules");
}

const fac_idle *fac_analysis_idle(const fac_analysis *a, int i) {
    return i >= 0 && i < a->nidle ? &a->idle[i] : NULL;
}
