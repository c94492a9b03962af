/* A network with the numbers that its quantizers give, or with the bits of its weights: see
 * facula/quantize.h. */
#include <stdio.h>
#include "base/error.h"
#include "base/memory.h"
#include "facula/quantize.h"
#include "graph/graph_internal.h"
#include "op_list.h"
#include "ops/basis.h"
#include "ref/ref.h"
#include "train/train_internal.h"

enum { FEW = 8 };

/* weighs: by id of a value, it becomes a weight.  packs: into bits, and activations keep their
 * quantizers. */
typedef struct work {
    bool *weighs, packs;
    int packed;
    fac_error *err;
    fac_status status;
} work;

static bool is_layer(const fac_node *n) {
    return FAC_IS(n, conv2d) || FAC_IS(n, linear) || FAC_IS(n, gemm) || FAC_IS(n, matmul);
}

/* Weights, and bases of what layers read. */
static bool is_weight(const fac_node *n, int i) {
    return i == 1 && (is_layer(n) || FAC_IS(n, quantize_basis));
}

/* Backwards from weights that are computed before a run. */
static void mark(const fac_graph *g, bool *weighs) {
    for (const fac_node *n = g->last; n; n = n->prev) {
        bool any = false;
        for (int k = 0; k < n->nout; k++) any |= weighs[n->out[k]->id];
        for (int i = 0; i < n->nin; i++) {
            const fac_value *v = n->in[i];
            if (i && FAC_IS(n, surrogate)) continue; /* gradients alone go there */
            if (v && v->node && v->time != FAC_RUN && (any || is_weight(n, i)))
                weighs[v->id] = true;
        }
    }
}

static bool evaluate(work *k, fac_graph *to, const fac_node *n, fac_value *const in[],
                     fac_value *out[]) {
    fac_tensor *args[FEW], *results[FEW] = { NULL };
    if (n->nin > FEW || n->nout > FEW) return false;
    for (int i = 0; i < n->nin; i++) {
        args[i] = in[i] ? in[i]->tensor : NULL;
        if (in[i] && !args[i]) return false;
    }
    fac_value *copy[FEW] = { NULL };
    fac_node_copy(to, n, in, copy);
    if (to->error.status) return true;
    const fac_status status = fac_ref_evaluate(copy[0]->node, args, results, k->err);
    if (status == FAC_E_UNSUPPORTED) return false;
    if (status) k->status = status;
    for (int i = 0; i < n->nout; i++) {
        out[i] = results[i] ? fac_const(to, results[i]) : copy[i];
        fac_tensor_free(results[i]);
    }
    return true;
}

/* A quantizer of one known basis as comparisons with its thresholds. */
static bool spelled(const fac_node *n, fac_value *const in[], fac_value *out[]) {
    const fac_basis_opts *o = n->attrs;
    float v[FAC_BASIS_BITS];
    double wide[FAC_BASIS_BITS];
    fac_basis b;
    fac_value *x = in[0], *basis = in[1];
    if (!basis->tensor || basis->type.dims.n != 1 || basis->type.dtype != FAC_F32) return false;
    const int bits = (int)basis->type.dims.d[0];
    if (fac_tensor_read(basis->tensor, v, (size_t)bits * sizeof *v, NULL)) return false;
    for (int j = 0; j < bits; j++) wide[j] = v[j];
    fac_basis_of(wide, 1, bits, o->positive, true, &b);
    fac_value *y = fac_number(x->graph, FAC_F32, b.level[0]);
    for (int k = 1; k < b.levels; k++) {
        fac_value *above = fac_greater(x, fac_number(x->graph, FAC_F32, b.threshold[k - 1]));
        y = fac_where(above, fac_number(x->graph, FAC_F32, b.level[k]), y);
    }
    out[0] = y;
    return true;
}

/* ---- planes of bits ---- */

/* What one op gives of tensors. */
static fac_value *computed(work *k, fac_value *v) {
    fac_value *made = NULL;
    if (v->tensor || v->graph->error.status) return v;
    evaluate(k, v->graph, v->node, v->node->in, &made);
    return made ? made : v;
}

/* A name of its own, after that of the weight. */
static fac_value *kept(fac_value *v, const fac_value *w, const char *ending) {
    fac_graph *g = v->graph;
    char name[200];
    snprintf(name, sizeof name, "%.150s.%s", w->name ? w->name : "weight", ending);
    const char *fresh = v->tensor ? fac_graph_fresh(g, name) : NULL;
    return fresh ? fac_state(g, fresh, v->tensor) : v;
}

/* [M] as [M,K]. */
static fac_value *for_all(work *k, fac_value *basis, int64_t channels) {
    if (basis->type.dims.n == 2) return basis;
    const fac_dims column = fac_shape(basis->type.dims.d[0], 1);
    fac_value *tall = computed(k, fac_reshape_sizes(basis, column));
    return computed(k, fac_tile(tall, fac_shape(1, channels)));
}

/* A quantizer of weights that are known. */
static bool packed(work *k, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    fac_value *w = in[0], *basis;
    const fac_basis_opts *o = FAC_IS(n, quantize_basis) ? n->attrs : NULL;
    if (!w->tensor || w->type.dtype != FAC_F32 || w->type.dims.n < 2) return false;
    if (FAC_IS(n, binarize)) {
        if (!evaluate(k, w->graph, n, in, out) || !out[0]->tensor) return false;
        w = out[0];
        basis = computed(k, fac_reshape(fac_number(w->graph, FAC_F32, 1), fac_shape(1)));
    } else {
        if (!o || o->positive || o->axis || !in[1]->tensor) return false;
        basis = in[1];
    }
    basis = for_all(k, basis, w->type.dims.d[0]);
    fac_value *bits = computed(k, fac_pack_basis(w, basis));
    if (!bits->tensor || !basis->tensor) return false;
    basis = kept(basis, n->in[0], "levels");
    out[0] = fac_unpack_basis(kept(bits, n->in[0], "bits"), basis, w->type.dims);
    k->packed++;
    return true;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    work *k = self;
    if (FAC_IS(n, surrogate)) {
        out[0] = in[0];
        return true;
    }
    const bool weighs = k->weighs[n->out[0]->id];
    if (k->packs && weighs && FAC_IS(n, unpack_basis) && in[0]->tensor && in[1]->tensor) {
        k->packed++; /* planes already, as a packed file has them */
        return false;
    }
    if (FAC_IS(n, dequantize_linear) && in[0]->tensor) return false; /* bytes, as ONNX has them */
    if (k->packs && weighs && packed(k, n, in, out)) return true;
    if (weighs && evaluate(k, to, n, in, out)) return true;
    return !k->packs && FAC_IS(n, quantize_basis) && n->out[0]->time == FAC_RUN &&
           spelled(n, in, out);
}

/* Nobody trains a basis again: what quantizers alone read are constants, in packed files those of
 * activations, of which kernels may then know that the levels lie evenly. */
static fac_value *leaf(void *self, fac_graph *to, const fac_value *v) {
    const work *k = self;
    if (v->leaf != FAC_STATE || !v->uses || (k->packs && v->type.dims.n != 1)) return NULL;
    for (const fac_use *u = v->uses; u; u = u->next)
        if (!FAC_IS(u->node, quantize_basis)) return NULL;
    return fac_const(to, v->tensor);
}

static fac_status rebuilt(const fac_graph *model, bool packs, int *packed, fac_graph **out,
                          fac_error *err) {
    work k = { .weighs = fac_alloc(model->ids + 1, sizeof(bool)), .packs = packs, .err = err };
    fac_graph *g = NULL;
    if (k.weighs) {
        mark(model, k.weighs);
        g = fac_graph_rebuild(model, &(fac_rebuild){ .self = &k, .visit = visit, .leaf = leaf },
                              NULL);
    }
    fac_release(k.weighs);
    if (!g) return fac_raise_memory(err, "a copy without quantizers");
    fac_status status = k.status ? k.status : fac_graph_check(g, err);
    if (status) {
        fac_graph_free(g);
        return status;
    }
    fac_graph_sweep(g);
    *packed = k.packed;
    *out = g;
    return FAC_OK;
}

fac_status fac_graph_dequantize(const fac_graph *model, fac_graph **out, fac_error *err) {
    int packed;
    FAC_TRY(fac_graph_usable(model, "fac_graph_dequantize", err));
    return rebuilt(model, false, &packed, out, err);
}

fac_status fac_train_packed(const fac_graph *model, int *packed, fac_graph **out, fac_error *err) {
    return rebuilt(model, true, packed, out, err);
}
