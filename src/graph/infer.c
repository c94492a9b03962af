/* Output types that many ops share: the same type, NumPy broadcasting; and the port tables of
 * elementwise ops. */
#include "graph/graph_internal.h"

const fac_port fac_ports_x[] = { { "x", FAC_FLOATS, 0 }, { 0 } };
const fac_port fac_ports_xy[] = { { "x", FAC_FLOATS, 0 }, { "y", FAC_FLOATS, 0 }, { 0 } };
const fac_port fac_ports_xyz[] = {
    { "x", FAC_FLOATS, 0 }, { "y", FAC_FLOATS, 0 }, { "z", FAC_FLOATS, 0 }, { 0 }
};
const fac_port fac_ports_num_x[] = { { "x", FAC_NUMBERS, 0 }, { 0 } };
const fac_port fac_ports_num_xy[] = { { "x", FAC_NUMBERS, 0 }, { "y", FAC_NUMBERS, 0 }, { 0 } };
const fac_port fac_ports_bool_x[] = { { "x", FAC_BOOLS, 0 }, { 0 } };
const fac_port fac_ports_bool_xy[] = { { "x", FAC_BOOLS, 0 }, { "y", FAC_BOOLS, 0 }, { 0 } };
const fac_port fac_ports_any_x[] = { { "x", FAC_ANY, 0 }, { 0 } };
const fac_port fac_ports_any_xy[] = { { "x", FAC_ANY, 0 }, { "y", FAC_ANY, 0 }, { 0 } };
const fac_port fac_ports_y[] = { { "y", FAC_ANY, 0 }, { 0 } };

bool fac_infer_same(fac_node *n) {
    for (int k = 0; k < n->nout; k++) n->out[k]->type = n->in[0]->type;
    return true;
}

/* One dim of the result.  A symbol is taken to be the size that it must be for the shapes to fit: N
 * against 3 is 3 (N is 1 or 3), N against 1 is N; of two different symbols nothing is known but
 * that either may be 1. */
static bool broadcast_dim(fac_graph *g, int64_t a, int64_t b, int64_t *out) {
    if (a == b || b == 1)
        *out = a;
    else if (a == 1)
        *out = b;
    else if (a >= 0 && b >= 0)
        return false;
    else if (a >= 0)
        *out = a;
    else
        *out = b >= 0 ? b : fac_symbol(g, NULL);
    return true;
}

static void print_dims(const fac_graph *g, const fac_dims *dims, fac_text *t) {
    fac_text_add(t, "[");
    for (int k = 0; k < dims->n; k++) {
        const char *name = fac_symbol_name(g, dims->d[k]);
        fac_text_print(t, "%s", k ? "," : "");
        if (name)
            fac_text_add(t, name);
        else
            fac_text_print(t, "%lld", (long long)dims->d[k]);
    }
    fac_text_add(t, "]");
}

bool fac_broadcast(fac_node *n, const fac_dims *a, const fac_dims *b, fac_dims *out) {
    fac_dims r = { .n = a->n > b->n ? a->n : b->n };
    for (int k = 0; k < r.n; k++) { /* aligned at the last dim */
        const int i = a->n - 1 - k, j = b->n - 1 - k;
        const int64_t of_a = i < 0 ? 1 : a->d[i];
        const int64_t of_b = j < 0 ? 1 : b->d[j];
        if (broadcast_dim(n->graph, of_a, of_b, &r.d[r.n - 1 - k])) continue;
        fac_text t = { 0 };
        print_dims(n->graph, a, &t);
        fac_text_add(&t, " and ");
        print_dims(n->graph, b, &t);
        fac_fail(n, FAC_E_SHAPE, "%s cannot be broadcast: %lld against %lld",
                 t.failed ? "the shapes" : t.s, (long long)a->d[i], (long long)b->d[j]);
        fac_text_free(&t);
        return false;
    }
    *out = r;
    return true;
}

static bool broadcast_all(fac_node *n, fac_type *type) {
    for (int i = 0; i < n->nports; i++) {
        const fac_value *v = n->in[i];
        if (!v) return fac_fail(n, FAC_E_ARGUMENT, "input %d is missing", i);
        if (!i) {
            *type = v->type;
            continue;
        }
        if (v->type.dtype != type->dtype)
            return fac_fail(n, FAC_E_DTYPE,
                            "its inputs are %s and %s, they must have one element type",
                            fac_dtype_get(type->dtype)->name, fac_dtype_get(v->type.dtype)->name);
        if (!fac_broadcast(n, &type->dims, &v->type.dims, &type->dims)) return false;
    }
    return true;
}

bool fac_infer_broadcast(fac_node *n) {
    fac_type type = { 0 };
    if (!broadcast_all(n, &type)) return false;
    for (int k = 0; k < n->nout; k++) n->out[k]->type = type;
    return true;
}

bool fac_infer_compare(fac_node *n) {
    fac_type type = { 0 };
    if (!broadcast_all(n, &type)) return false;
    type.dtype = FAC_BOOL;
    for (int k = 0; k < n->nout; k++) n->out[k]->type = type;
    return true;
}

int fac_axis(int64_t axis, int rank) {
    if (axis < -rank || axis >= rank) return -1;
    return (int)(axis < 0 ? axis + rank : axis);
}
