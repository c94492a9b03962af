/* Modules in which no layer stands, such as a dropout that is off.  PyTorch calls them all the
 * same, so tables have a row for each: before the layers of what was said after it.
 *
 * Exporters leave them out, but children of a Sequential are numbered: where a number is missing,
 * there was a module whose class the file does not say. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "report/cost/report.h"

typedef struct search {
    fac_analysis *a;
    fac_table used; /* path -> anything: a layer stands in it, or it is idle */
    fac_table next; /* path -> the number that its next child has            */
    int said;       /* modules of the graph up to `said` are judged          */
    size_t room;
} search;

enum { MOST_MISSING = 16 }; /* more in a row: a name that happens to be a number */

static bool add(search *s, const char *path, int before) {
    fac_analysis *a = s->a;
    if (fac_table_get(&s->used, path)) return true;
    if (!fac_table_put(&s->used, path, s) ||
        !fac_reserve(&a->idle, &s->room, (size_t)a->nidle + 1, sizeof *a->idle))
        return false;
    fac_idle *idle = &a->idle[a->nidle++];
    *idle = (fac_idle){ .module = path, .before = before };
    idle->kind = fac_graph_class(a->graph, path);
    if (before) idle->out = a->layers[before - 1].out;
    return true;
}

/* ---- by what the graph says ---- */

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
static bool take_said(search *s, const char *module, int before) {
    const fac_graph *g = s->a->graph;
    const int n = fac_graph_modules(g);
    int until = s->said;
    while (until < n && (!module || strcmp(fac_graph_module(g, until), module))) until++;
    if (module && until == n) return true;
    for (; s->said < until; s->said++) {
        const char *path = fac_graph_module(g, s->said);
        if (*path && !add(s, path, before)) return false;
    }
    return true;
}

/* ---- by numbers that are missing ---- */

/* The number that [s, end) is; -1: it is none. */
static long number_of(const char *s, const char *end) {
    char *stop = NULL;
    if (s == end || end - s > 6 || *s < '0' || *s > '9') return -1;
    const long n = strtol(s, &stop, 10);
    return stop == end ? n : -1;
}

/* A Sequential; in files that say no classes, anything. */
static bool may_lack(const fac_graph *g, const char *path) {
    const char *class = fac_graph_class(g, path);
    return fac_graph_modules(g) ? class && !strcmp(class, "Sequential") : true;
}

/* Child `at` of a module stands in layer `before`: what has a number below it and was not there. */
static bool take_below(search *s, const char *parent, long at, int before) {
    const long next = (long)(uintptr_t)fac_table_get(&s->next, parent);
    if (at < next) return true;
    for (long k = next; k < at && at - next <= MOST_MISSING; k++) {
        const char *path = fac_arena_print(&s->a->memory, "%s.%ld", parent, k);
        if (!path || !add(s, path, before)) return false;
    }
    return fac_table_put(&s->next, parent, (void *)(uintptr_t)(at + 1));
}

static bool take_missing(search *s, const char *module, int before) {
    const char *dot;
    for (const char *from = module; (dot = strchr(from, '.')); from = dot + 1) {
        const long at = number_of(dot + 1, dot + 1 + strcspn(dot + 1, "."));
        const char *parent =
            at < 0 ? NULL : fac_arena_print(&s->a->memory, "%.*s", (int)(dot - module), module);
        if (at < 0) continue;
        if (!parent) return false;
        if (may_lack(s->a->graph, parent) && !take_below(s, parent, at, before)) return false;
    }
    return true;
}

/* ---- all of them ---- */

static bool take_all(search *s) {
    const fac_analysis *a = s->a;
    const int layers = a->totals.layers;
    bool good = true;
    for (int i = 0; good && i < layers; i++) good = mark_used(s, a->layers[i].module);
    for (int i = 0; good && i < layers; i++)
        good = take_said(s, a->layers[i].module, i) && take_missing(s, a->layers[i].module, i);
    return good && take_said(s, NULL, layers);
}

fac_status fac_find_idle(fac_analysis *a, fac_error *err) {
    search s = { .a = a };
    const bool good = take_all(&s);
    fac_table_free(&s.used);
    fac_table_free(&s.next);
    return good ? FAC_OK : fac_raise_memory(err, "modules");
}

const fac_idle *fac_analysis_idle(const fac_analysis *a, int i) {
    return i >= 0 && i < a->nidle ? &a->idle[i] : NULL;
}
