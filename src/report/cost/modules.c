/* The rows of a table of modules: calls of modules in the order of execution, as torchinfo's hooks
 * see them.
 *
 * Layers come in their order.  A layer opens the modules on its path that are not open, each a row;
 * what is called in a module directly (a function) is no row, but its result is that of the modules
 * around it.  Modules that no layer stands in (a dropout that is off) have rows, too. */
#include "report/cost/modules.h"
#include <string.h>
#include "base/error.h"
#include "base/memory.h"

typedef struct walk {
    const fac_analysis *a;
    fac_module_rows *to;
    fac_table seen;             /* path -> anything: it has a row */
    int open[FAC_MODULE_DEPTH]; /* rows, by depth */
    int nopen, idle;            /* idle modules up to `idle` have their rows */
    int counts[FAC_MODULE_DEPTH + 1];
    fac_error *err;
} walk;

/* ---- paths ---- */

static int depth_of(const char *path) {
    int n = *path != 0;
    for (; *path; path++) n += *path == '.';
    return n;
}

/* The first `depth` components. */
static char *ancestor(walk *w, const char *path, int depth) {
    const char *s = path;
    for (int k = 0; k < depth; k++) {
        s += strcspn(s, ".");
        s += *s == '.' && k + 1 < depth;
    }
    return fac_arena_print(&w->to->memory, "%.*s", (int)(s - path), path);
}

/* ---- rows ---- */

static const char *own_name(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static double weights_of(const fac_layer *l) {
    double n = 0;
    for (int k = 0; k < l->nin; k++)
        if (l->inputs[k].role == FAC_ROLE_WEIGHT || l->inputs[k].role == FAC_ROLE_BIAS)
            n += (double)fac_dims_count(&l->inputs[k].type.dims);
    return n;
}

static fac_status row_new(walk *w, const char *path, const fac_layer *leaf) {
    fac_module_rows *to = w->to;
    const int depth = depth_of(path);
    const char *class = fac_graph_class(w->a->graph, path);
    if (!fac_reserve(&to->at, &to->room, to->n + 1, sizeof *to->at))
        return fac_raise_memory(w->err, "a table of modules");
    fac_module_row *r = &to->at[to->n];
    *r = (fac_module_row){
        .path = path, .name = own_name(path), .class = class, .depth = depth, .leaf = leaf != NULL
    };
    r->index = ++w->counts[depth];
    r->again = fac_table_get(&w->seen, path) != NULL;
    if (!class && leaf) r->class = leaf->kind;
    if (!fac_table_put(&w->seen, path, w)) return fac_raise_memory(w->err, "a table of modules");
    w->open[depth - 1] = (int)to->n++;
    w->nopen = depth;
    return FAC_OK;
}

/* How many of the open modules lie on the path. */
static int common(const walk *w, const char *path) {
    int k = 0;
    while (k < w->nopen) {
        const char *open = w->to->at[w->open[k]].path;
        const size_t n = strlen(open);
        if (strncmp(open, path, n) || (path[n] && path[n] != '.')) break;
        k++;
    }
    return k;
}

/* Opens what is missing of a path; leaf: the layer that the last of it is, or NULL. */
static fac_status open_path(walk *w, const char *path, const fac_layer *leaf) {
    const int depth = depth_of(path), there = common(w, path);
    if (depth > FAC_MODULE_DEPTH)
        return fac_raise(w->err, FAC_E_UNSUPPORTED, "modules are nested more than %d deep",
                         FAC_MODULE_DEPTH);
    w->nopen = there;
    for (int k = there + 1; k <= depth; k++) {
        const char *up = ancestor(w, path, k);
        if (!up) return fac_raise_memory(w->err, "a table of modules");
        FAC_TRY(row_new(w, up, k == depth ? leaf : NULL));
    }
    return FAC_OK;
}

/* What the table says a layer gives: AdaptiveAvgPool keeps its planes, where a mean drops them. */
static fac_type result_of(const fac_layer *l) {
    fac_type t = l->out;
    if (strncmp(l->kind, "AdaptiveAvgPool", 15)) return t;
    while (t.dims.n < l->in.dims.n) t.dims.d[t.dims.n++] = 1;
    return t;
}

static void take_result(walk *w, int rows, const fac_layer *l) {
    for (int k = 0; k < rows; k++) {
        fac_module_row *r = &w->to->at[w->open[k]];
        r->out = result_of(l);
    }
}

/* Idle modules that stand before layer i. */
static fac_status say_idle(walk *w, int i) {
    const fac_idle *idle;
    for (; (idle = fac_analysis_idle(w->a, w->idle)) && idle->before <= i; w->idle++) {
        if (fac_table_get(&w->seen, idle->module)) continue;
        FAC_TRY(open_path(w, idle->module, NULL));
        fac_module_row *r = &w->to->at[w->to->n - 1];
        r->leaf = true;
        r->out = idle->out;
    }
    return FAC_OK;
}

static fac_status take_layer(walk *w, int i) {
    const fac_layer *l = fac_analysis_layer(w->a, i);
    const int depth = depth_of(l->module);
    FAC_TRY(say_idle(w, i));
    if (l->is_module)
        FAC_TRY(open_path(w, l->module, l));
    else if (common(w, l->module) < depth)
        FAC_TRY(open_path(w, l->module, NULL));
    take_result(w, depth, l);
    if (!l->is_module) return FAC_OK;
    const double n = weights_of(l);
    const bool again = w->to->at[w->open[depth - 1]].again;
    for (int k = 0; k < depth; k++)
        w->to->at[w->open[k]].params += k == depth - 1 || !again ? n : 0;
    return FAC_OK;
}

/* What stands in a module directly, as a function with a weight of the module's own, is left over.
 */
static void take_leftover(walk *w, const fac_layer *l) {
    const double n = l->params;
    if (l->is_module || n <= 0) return;
    for (int k = 0; k < depth_of(l->module); k++) {
        fac_module_row *r = &w->to->at[w->open[k]];
        r->params += n;
        if (k + 1 == depth_of(l->module)) r->left += n;
    }
    w->to->left += n;
}

static fac_status walk_all(walk *w) {
    const fac_layer *l;
    int i = 0;
    for (; (l = fac_analysis_layer(w->a, i)); i++) {
        FAC_TRY(take_layer(w, i));
        take_leftover(w, l);
    }
    return say_idle(w, i);
}

fac_status fac_module_rows_find(const fac_analysis *a, fac_module_rows *to, fac_error *err) {
    walk w = { .a = a, .to = to, .err = err };
    *to = (fac_module_rows){ 0 };
    const fac_status status = walk_all(&w);
    fac_table_free(&w.seen);
    if (status) fac_module_rows_free(to);
    return status;
}

void fac_module_rows_free(fac_module_rows *r) {
    fac_release(r->at);
    fac_arena_free(&r->memory);
    *r = (fac_module_rows){ 0 };
}
