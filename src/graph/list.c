/* See list.h. */
#include "graph/list.h"
#include <stdio.h>
#include "base/error.h"
#include "graph/graph_internal.h"

typedef struct attrs {
    bool nothing;
} attrs;
static const fac_attr table[] = { { "nothing", FAC_A_FLAG, offsetof(attrs, nothing), 0, 0, 0, 0,
                                    NULL, "an optional that is empty" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_ANY, FAC_OPTIONAL | FAC_VARIADIC }, { 0 } };
static const fac_port out[] = { { "list", FAC_ANY, 0 }, { 0 } };

/* Not a value that anything computes with. */
static bool infer(fac_node *n) {
    n->out[0]->type = (fac_type){ FAC_U8, { 0 } };
    return true;
}

const fac_op fac_list_op = { .name = "list",
                             .doc = "values that belong together while a file is read",
                             .in = in,
                             .out = out,
                             .attrs = table,
                             .attrs_size = sizeof(attrs),
                             .is = FAC_OP_NO_GRAD | FAC_OP_BARRIER,
                             .infer = infer };

bool fac_has_lists(const fac_graph *g) {
    for (const fac_node *n = g->first; n; n = n->next)
        if (n->op == &fac_list_op) return true;
    return false;
}

fac_value *fac_list_new(fac_graph *g, int n, fac_value *const items[]) {
    return fac_emit_body(g, &fac_list_op, NULL, n, n, items, NULL, NULL);
}

fac_value *fac_list_nothing(fac_graph *g) {
    return fac_emit_body(g, &fac_list_op, &(attrs){ true }, 0, 0, NULL, NULL, NULL);
}

bool fac_list_is_nothing(const fac_value *list) {
    return ((const attrs *)list->node->attrs)->nothing;
}

int fac_list_position(const fac_onnx_node *n, const fac_value *list, const fac_value *at,
                      int more) {
    fac_graph *g = fac_value_graph(list);
    const int count = fac_list_count(list) + more;
    fac_contents c;
    if (!fac_known_numbers(at, &c) || c.n != 1) {
        fac_fail_graph(g, FAC_E_UNSUPPORTED, "%s: the position must be known when the file is read",
                       n->type);
        return -1;
    }
    const int64_t k = c.v[0] < 0 ? c.v[0] + fac_list_count(list) : c.v[0];
    if (k >= 0 && k < count) return (int)k;
    fac_fail_graph(g, FAC_E_ARGUMENT, "%s: position %lld of %d elements", n->type,
                   (long long)c.v[0], fac_list_count(list));
    return -1;
}

fac_value *fac_list_in(const fac_onnx_node *n, fac_graph *g, fac_value *const in_[], int k) {
    fac_value *v = k < n->nin ? in_[k] : NULL;
    if (fac_is_list(v) && !fac_list_is_nothing(v)) return v;
    fac_fail_graph(g, FAC_E_FORMAT, "%s: its input %d must be a sequence", n->type, k);
    return NULL;
}

void fac_list_output(fac_graph *g, const char *name, const fac_value *list) {
    const int count = fac_list_is_nothing(list) ? -1 : fac_list_count(list);
    const char *key = fac_arena_print(&g->arena, "list.%s", name);
    char number[16];
    snprintf(number, sizeof number, "%d", count);
    if (key) fac_graph_set_note(g, key, number);
    for (int k = 0; k < count && key; k++) {
        const char *own = fac_arena_print(&g->arena, "%s.%d", name, k);
        if (own)
            fac_output(g, own, fac_list_item(list, k));
        else
            key = NULL;
    }
    if (!key) fac_fail_graph(g, FAC_E_NOMEM, "no memory for the outputs of %s", name);
}
