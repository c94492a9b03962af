/* Classes of layers, and the names by which PyTorch's users know them. */
#include <string.h>
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/select.h"

bool fac_is_data(const fac_value *v) {
    return v->time == FAC_RUN && v->leaf != FAC_PARAM && v->leaf != FAC_STATE &&
           v->leaf != FAC_CONST;
}

static const fac_dims *dims_of(const fac_value *v) { return &v->type.dims; }

/* A mean over the whole of every plane, or an average over windows of one: AdaptiveAvgPool as
 * exporters and zoos write it. */
static bool is_adaptive(const fac_node *n) {
    const fac_dims *x = dims_of(n->in[0]), *y = dims_of(n->out[0]);
    if (FAC_IS(n, mean)) {
        if (x->n < 3 || (y->n != 2 && y->n != x->n)) return false;
        for (int k = 2; k < y->n; k++)
            if (y->d[k] != 1) return false;
        return y->d[1] == x->d[1];
    }
    if (n->op->layer != FAC_CLASS_AVG_POOL) return false;
    bool same = true, one = true;
    for (int k = 2; k < x->n; k++) {
        same &= x->d[k] == y->d[k];
        one &= y->d[k] == 1;
    }
    if (one) return true;
    const int64_t *kernel = fac_attr_ints(n, "kernel");
    for (int k = 2; kernel && k < x->n; k++) same &= kernel[k - 2] == 1;
    return same;
}

/* Clipping to 0..6, the way that ONNX has no word for. */
static bool is_relu6(const fac_node *n) {
    if (!FAC_IS(n, clip) || n->nin < 3 || !n->in[1] || !n->in[2]) return false;
    const fac_tensor *lo = n->in[1]->tensor, *hi = n->in[2]->tensor;
    const fac_type t = n->in[1]->type;
    if (!lo || !hi || t.dtype != FAC_F32) return false;
    float a = 1, b = 0;
    return !fac_tensor_read(lo, &a, sizeof a, NULL) && !fac_tensor_read(hi, &b, sizeof b, NULL) &&
           a == 0 && b == 6;
}

/* Rows of a parameter taken by index. */
static bool is_embedding(const fac_node *n) {
    return FAC_IS(n, gather) && n->in[0] && !fac_is_data(n->in[0]) && n->in[0]->type.dims.n == 2 &&
           n->in[1] && fac_is_data(n->in[1]);
}

static bool has_weight(const fac_node *n) {
    return n->nin > 1 && n->in[1] && !fac_is_data(n->in[1]) && n->in[1]->type.dims.n == 2;
}

fac_layer_class fac_class_of(const fac_node *n) {
    if (n->nin && n->in[0] && is_adaptive(n)) return FAC_CLASS_ADAPTIVE_POOL;
    if (is_relu6(n)) return FAC_CLASS_RELU6;
    if (is_embedding(n)) return FAC_CLASS_EMBEDDING;
    if (n->op->layer == FAC_CLASS_MATMUL && has_weight(n)) return FAC_CLASS_LINEAR;
    return n->op->layer == FAC_CLASS_LINEAR && !has_weight(n) ? FAC_CLASS_MATMUL : n->op->layer;
}

bool fac_is_opaque(const fac_node *n) { return n->op->is & FAC_OP_OPAQUE; }

bool fac_is_unknown(const fac_value *v) {
    if (!v->node || !fac_is_opaque(v->node)) return false;
    const char *s = fac_attr_text(v->node, "dtypes");
    for (int k = 0; k < v->index; k++) {
        s += strcspn(s, ",");
        s += *s == ',';
    }
    return *s == '-';
}

const char *fac_kind_of(const fac_node *n, fac_layer_class is) {
    const int rank = n->nin && n->in[0] ? n->in[0]->type.dims.n : 0;
    static const char *const batch[] = { "BatchNorm1d", "BatchNorm2d", "BatchNorm3d" };
    static const char *const adaptive[] = { "AdaptiveAvgPool1d", "AdaptiveAvgPool2d",
                                            "AdaptiveAvgPool3d" };
    const int planes = rank >= 3 && rank <= 5 ? rank - 3 : 0;
    if (fac_is_opaque(n)) return fac_attr_text(n, "type");
    if (is == FAC_CLASS_BATCH_NORM) return batch[planes];
    if (is == FAC_CLASS_ADAPTIVE_POOL) return adaptive[planes];
    if (is == FAC_CLASS_RELU6) return "ReLU6";
    if (is == FAC_CLASS_EMBEDDING) return "Embedding";
    if (is == FAC_CLASS_LINEAR) return "Linear";
    if (!n->op->torch) return n->op->name;
    return is == FAC_CLASS_MATMUL ? "MatMul" : n->op->torch;
}
