/* Products with constant matrices, in fewer nodes:
 *   x w + b of two dims is one Gemm;
 *   x w1, x w2, x w3 (queries, keys and values of attention) are slices of x [w1 w2 w3], biases
 *       likewise;
 *   a linear layer of more dims is a product with its transposed weights, which baking transposes
 * now: ONNX has no such layer. Sums keep their order of addition where the kernel's order does not
 * depend on the number of columns. */
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/each.h"
#include "passes/common/frozen.h"
#include "passes/passes.h"
#include "passes/common/single.h"

/* x w with a frozen matrix; the add of a frozen row after it, if it alone reads the product. */
typedef struct product {
    fac_node *node;
    fac_value *w, *b, *y;
} product;

static bool frozen_matrix(const fac_value *v) { return fac_frozen(v) && v->type.dims.n == 2; }

static bool product_of(fac_node *n, product *p) {
    if (!FAC_IS(n, matmul) || !frozen_matrix(n->in[1]) || n->in[0]->type.dims.n < 2) return false;
    *p = (product){ n, n->in[1], NULL, n->out[0] };
    const fac_node *add = fac_used_once(p->y) ? p->y->uses->node : NULL;
    if (!FAC_IS(add, add)) return true;
    fac_value *b = add->in[add->in[0] == p->y];
    if (!fac_frozen(b) || b == p->y || b->type.dims.n != 1 ||
        b->type.dims.d[0] != p->w->type.dims.d[1])
        return true;
    p->b = b;
    p->y = add->out[0];
    return true;
}

/* ---- several products of one value ---- */

static void merge(fac_graph *g, product *all, int n) {
    fac_value *w[FAC_DIMS], *b[FAC_DIMS], *parts[FAC_DIMS];
    fac_dims sizes = { .n = n };
    const int rank = all[0].y->type.dims.n;
    for (int k = 0; k < n; k++) {
        w[k] = all[k].w;
        b[k] = all[k].b;
        sizes.d[k] = w[k]->type.dims.d[1];
    }
    fac_value *y = fac_matmul(all[0].node->in[0], fac_concat(w, n, 1));
    fac_named_like(y, all[0].node);
    if (b[0]) y = fac_add(y, fac_concat(b, n, 0));
    fac_split_sizes(y, rank - 1, fac_ints(g, sizes), parts);
    for (int k = 0; k < n && !g->error.status; k++) {
        if (all[k].y->name) fac_value_name_set(parts[k], all[k].y->name);
        fac_replace(all[k].y, parts[k]);
    }
}

/* Those of the value that the first one multiplies, with weights that nothing else reads. */
static int gather(fac_node *first, product *all) {
    product p;
    int n = 0;
    if (!product_of(first, &p) || !fac_used_once(p.w)) return 0;
    const bool bias = p.b != NULL;
    const fac_dtype dtype = p.w->type.dtype;
    for (const fac_use *u = first->in[0]->uses; u && n < FAC_DIMS; u = u->next) {
        if (u->input || u->node->id < first->id || !product_of(u->node, &p)) continue;
        if ((p.b != NULL) != bias || !fac_used_once(p.w) || (p.b && !fac_used_once(p.b)) ||
            p.w->type.dtype != dtype)
            continue;
        all[n++] = p;
    }
    return n * (1 + bias) > 2 + bias ? n
                                     : 0; /* products and adds become one of each, and a split */
}

/* ---- one by one ---- */

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    (void)self;
    (void)to;
    if (FAC_IS(n, linear) && in[0]->type.dims.n > 2 && fac_frozen(in[1])) {
        fac_value *y = fac_matmul(in[0], fac_transpose(in[1], fac_shape(1, 0)));
        fac_named_like(y, n);
        out[0] = in[2] ? fac_add(y, in[2]) : y;
        return true;
    }
    for (int i = 0; i < 2 && FAC_IS(n, add); i++) {
        const fac_node *m = in[i] ? in[i]->node : NULL;
        const fac_value *b = in[1 - i];
        const int last = b ? b->type.dims.n - 1 : -1;
        if (!FAC_IS(m, matmul) || !fac_used_once(n->in[i]) || !fac_frozen(b)) continue;
        if (fac_dtype_get(b->type.dtype)->kind != 'f')
            continue; /* few runtimes have a Gemm of integers */
        if (in[i]->type.dims.n != 2 || m->in[0]->type.dims.n != 2 || m->in[1]->type.dims.n != 2)
            continue;
        if (last < 0 || last > 1 || b->type.dims.d[last] != in[i]->type.dims.d[1] ||
            (last && b->type.dims.d[0] != 1))
            continue;
        out[0] = fac_gemm(m->in[0], m->in[1], in[1 - i], NULL);
        if (out[0]->node) fac_node_named_as(out[0]->node, m);
        return true;
    }
    return false;
}

fac_graph *fac_pass_products(const fac_graph *g) {
    fac_graph *to = fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
    if (!to || to->error.status) return to;
    fac_node *last = to->last;
    for (fac_node *n = to->first, *next; n && !to->error.status; n = n == last ? NULL : next) {
        product all[FAC_DIMS];
        next = n->next;
        const int count = gather(n, all);
        if (count) merge(to, all, count);
    }
    if (!to->error.status) fac_graph_sweep(to);
    return to;
}
