/* What a text means in a graph: a value, or a set of nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "edit/edit.h"
#include "passes/common/select.h"

fac_status fac_edit_give(fac_graph *made, fac_graph **out, fac_error *err) {
    if (!made) return fac_raise_memory(err, "a graph");
    fac_status status = fac_graph_check(made, err);
    if (status)
        fac_graph_free(made);
    else
        *out = made;
    return status;
}

fac_value *fac_edit_value(const fac_graph *g, const char *name) {
    if (*name != '%') return fac_graph_find((fac_graph *)(uintptr_t)g, name);
    char *end;
    const unsigned long number = strtoul(name + 1, &end, 10);
    return *end || end == name + 1 || number > UINT32_MAX ? NULL
                                                          : fac_graph_numbered(g, (uint32_t)number);
}

/* ---- nodes ---- */

static void mark(unsigned char *marks, const fac_node *n, int how) {
    if (n && marks[n->id] < how) marks[n->id] = (unsigned char)how;
}

/* Outputs of the graph have names of their own. */
static void mark_outputs(const fac_graph *g, const char *pattern, unsigned char *marks) {
    for (size_t k = 0; k < g->noutputs; k++)
        if (fac_select_name(g->outputs[k].name, pattern))
            mark(marks, g->outputs[k].value->node, FAC_BY_NAME);
}

static fac_status several(const fac_graph *g, const char *pattern, const unsigned char *marks,
                          fac_error *err) {
    fac_text list = { 0 };
    char label[512];
    int n = 0;
    for (const fac_node *m = g->first; m; m = m->next)
        if (marks[m->id] && ++n <= 6)
            fac_text_print(&list, "%s%s", n > 1 ? ", " : "",
                           fac_node_label(m, label, sizeof label));
    fac_status status =
        list.failed ? fac_raise_memory(err, "a message")
                    : fac_raise(err, FAC_E_ARGUMENT,
                                "%d nodes stand in \"%s\": %s%s; say which one, or \"%s*\" for all",
                                n, pattern, list.s, n > 6 ? ", ..." : "", pattern);
    fac_text_free(&list);
    return status;
}

fac_status fac_edit_nodes(const fac_graph *g, const char *pattern, unsigned char **marked, int *n,
                          fac_error *err) {
    unsigned char *marks = fac_alloc((size_t)g->ids + 1, 1);
    const fac_value *numbered = *pattern == '%' ? fac_edit_value(g, pattern) : NULL;
    int best = FAC_NOT_SELECTED, count = 0;
    if (!marks) return fac_raise(err, FAC_E_NOMEM, "no memory to look for nodes");
    for (const fac_node *m = g->first; m; m = m->next) mark(marks, m, (int)fac_select(m, pattern));
    mark_outputs(g, pattern, marks);
    if (numbered) mark(marks, numbered->node, FAC_BY_NAME);
    for (const fac_node *m = g->first; m; m = m->next)
        if (marks[m->id] > best) best = marks[m->id];
    for (const fac_node *m = g->first; m; m = m->next)
        count += marks[m->id] = best && marks[m->id] == best;
    fac_status status = FAC_OK;
    if (!count) {
        const fac_value *v = fac_edit_value(g, pattern);
        status = fac_raise(err, FAC_E_ARGUMENT,
                           v ? "\"%s\" is no node: an input, parameter or constant"
                             : "there is no node \"%s\"",
                           pattern);
    } else if (best == FAC_BY_MODULE && count > 1 && !strpbrk(pattern, "*,"))
        status = several(g, pattern, marks, err);
    if (status) {
        fac_release(marks);
        return status;
    }
    *marked = marks;
    *n = count;
    return FAC_OK;
}

/* ---- types ---- */

static bool nameless(const fac_graph *g, int64_t d) {
    return fac_is_symbol(g, d) && *g->symbols[fac_symbol_index(d)] == '?';
}

bool fac_edit_same(const fac_graph *g, const fac_type *a, const fac_type *b) {
    bool same = a->dtype == b->dtype && a->dims.n == b->dims.n;
    for (int k = 0; same && k < a->dims.n; k++)
        same =
            a->dims.d[k] == b->dims.d[k] || nameless(g, a->dims.d[k]) || nameless(g, b->dims.d[k]);
    return same;
}

const char *fac_edit_type(const fac_graph *g, const fac_type *type, char *to, size_t size) {
    fac_text t = { 0 };
    fac_type_print(g, type, &t);
    snprintf(to, size, "%s", t.failed || !t.s ? "?" : t.s);
    fac_text_free(&t);
    return to;
}

int fac_edit_numbers(const fac_value *v, double *to) {
    fac_contents c;
    fac_tensor *wide = NULL;
    if (v && fac_known_numbers(v, &c) && c.n <= FAC_EDIT_NUMBERS) {
        for (int k = 0; k < c.n; k++) to[k] = (double)c.v[k];
        return c.n;
    }
    if (!v || !v->leaf || !v->tensor || v->next || v->type.dtype == FAC_TEXT ||
        v->type.dtype == FAC_BIT)
        return -1;
    const int64_t n = fac_dims_count(&v->type.dims);
    if (n < 0 || n > FAC_EDIT_NUMBERS || fac_tensor_convert(v->tensor, FAC_F64, &wide, NULL))
        return -1;
    const bool ok = !fac_tensor_read(wide, to, (size_t)n * sizeof *to, NULL);
    fac_tensor_free(wide);
    return ok ? (int)n : -1;
}
