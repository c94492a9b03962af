/* Classes of layers, and the names by which PyTorch's users know them. */
#include <string.h>
#include "passes/attr.h"
#include "passes/select.h"

static const struct { const char *op; fac_class is; const char *kind; } table[] = {
    { "conv1d", FAC_CLASS_CONV, "Conv1d" }, { "conv2d", FAC_CLASS_CONV, "Conv2d" }, { "conv3d", FAC_CLASS_CONV, "Conv3d" },
    { "conv_transpose1d", FAC_CLASS_CONV_TRANSPOSE, "ConvTranspose1d" },
    { "conv_transpose2d", FAC_CLASS_CONV_TRANSPOSE, "ConvTranspose2d" },
    { "conv_transpose3d", FAC_CLASS_CONV_TRANSPOSE, "ConvTranspose3d" },
    { "linear", FAC_CLASS_LINEAR, "Linear" }, { "gemm", FAC_CLASS_LINEAR, "Linear" }, { "matmul", FAC_CLASS_MATMUL, "MatMul" },
    { "batch_norm", FAC_CLASS_BATCH_NORM, "BatchNorm" }, { "instance_norm", FAC_CLASS_INSTANCE_NORM, "InstanceNorm" },
    { "layer_norm", FAC_CLASS_LAYER_NORM, "LayerNorm" }, { "rms_norm", FAC_CLASS_LAYER_NORM, "RMSNorm" },
    { "group_norm", FAC_CLASS_GROUP_NORM, "GroupNorm" }, { "lrn", FAC_CLASS_OTHER, "LocalResponseNorm" },
    { "relu", FAC_CLASS_RELU, "ReLU" }, { "elu", FAC_CLASS_ACTIVATION, "ELU" },
        { "leaky_relu", FAC_CLASS_ACTIVATION, "LeakyReLU" },
    { "gelu", FAC_CLASS_ACTIVATION, "GELU" }, { "gelu_tanh", FAC_CLASS_ACTIVATION, "GELU" }, { "silu", FAC_CLASS_OTHER, "SiLU" },
    { "sigmoid", FAC_CLASS_OTHER, "Sigmoid" }, { "tanh", FAC_CLASS_OTHER, "Tanh" },
        { "hard_swish", FAC_CLASS_OTHER, "Hardswish" },
    { "hard_sigmoid", FAC_CLASS_OTHER, "Hardsigmoid" }, { "prelu", FAC_CLASS_PRELU, "PReLU" },
    { "max_pool1d", FAC_CLASS_MAX_POOL, "MaxPool1d" }, { "max_pool2d", FAC_CLASS_MAX_POOL, "MaxPool2d" },
    { "max_pool3d", FAC_CLASS_MAX_POOL, "MaxPool3d" }, { "avg_pool1d", FAC_CLASS_AVG_POOL, "AvgPool1d" },
    { "avg_pool2d", FAC_CLASS_AVG_POOL, "AvgPool2d" }, { "avg_pool3d", FAC_CLASS_AVG_POOL, "AvgPool3d" },
    { "softmax", FAC_CLASS_SOFTMAX, "Softmax" }, { "log_softmax", FAC_CLASS_SOFTMAX, "LogSoftmax" },
    { "rnn", FAC_CLASS_RECURRENT, "RNN" }, { "gru", FAC_CLASS_RECURRENT, "GRU" }, { "lstm", FAC_CLASS_RECURRENT, "LSTM" },
    { "dropout", FAC_CLASS_OTHER, "Dropout" }, { "flatten", FAC_CLASS_OTHER, "Flatten" },
        { "identity", FAC_CLASS_OTHER, "Identity" },
    { "attention", FAC_CLASS_OTHER, "Attention" },
};

bool fac_is_data(const fac_value *v) {
    return v->time == FAC_RUN && v->leaf != FAC_PARAM && v->leaf != FAC_STATE
           && v->leaf != FAC_CONST;
}

static const fac_dims *dims_of(const fac_value *v) { return &v->type.dims; }

/* A mean over the whole of every plane, or an average over windows of one: AdaptiveAvgPool as exporters and zoos write it. */
static bool is_adaptive(const fac_node *n) {
    const fac_dims *x = dims_of(n->in[0]), *y = dims_of(n->out[0]);
    if (!strcmp(n->op->name, "mean")) {
        if (x->n < 3 || (y->n != 2 && y->n != x->n)) return false;
        for (int k = 2; k < y->n; k++)
            if (y->d[k] != 1) return false;
        return y->d[1] == x->d[1];
    }
    if (strncmp(n->op->name, "avg_pool", 8)) return false;
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
    if (strcmp(n->op->name, "clip") || n->nin < 3 || !n->in[1] || !n->in[2]) return false;
    const fac_tensor *lo = n->in[1]->tensor, *hi = n->in[2]->tensor;
    const fac_type t = n->in[1]->type;
    if (!lo || !hi || t.dtype != FAC_F32) return false;
    float a = 1, b = 0;
    return !fac_tensor_read(lo, &a, sizeof a, NULL) && !fac_tensor_read(hi, &b, sizeof b, NULL) && a == 0 && b == 6;
}

/* Rows of a parameter taken by index. */
static bool is_embedding(const fac_node *n) {
    return !strcmp(n->op->name, "gather") && n->in[0] && !fac_is_data(n->in[0]) && n->in[0]->type.dims.n == 2 && n->in[1] &&
           fac_is_data(n->in[1]);
}

static bool has_weight(const fac_node *n) {
    return n->nin > 1 && n->in[1] && !fac_is_data(n->in[1]) && n->in[1]->type.dims.n == 2;
}

fac_class fac_class_of(const fac_node *n) {
    if (n->nin && n->in[0] && is_adaptive(n)) return FAC_CLASS_ADAPTIVE_POOL;
    if (is_relu6(n)) return FAC_CLASS_RELU6;
    if (is_embedding(n)) return FAC_CLASS_EMBEDDING;
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        if (strcmp(table[k].op, n->op->name)) continue;
        if (table[k].is == FAC_CLASS_MATMUL && has_weight(n)) return FAC_CLASS_LINEAR;
        return table[k].is == FAC_CLASS_LINEAR && !has_weight(n) ? FAC_CLASS_MATMUL : table[k].is;
    }
    return FAC_CLASS_OTHER;
}

/* A text attribute; "" when there is none. */
static const char *text_attr(const fac_node *n, const char *name) {
    const fac_attr *a = fac_attr_find(n->op, name);
    const char *text = a && a->kind == FAC_A_TEXT
                           ? *(const char *const *)(const void *)((const char *)n->attrs + a->at)
                           : NULL;
    return text ? text : "";
}

bool fac_is_opaque(const fac_node *n) { return fac_node_is(n, "opaque"); }

bool fac_is_unknown(const fac_value *v) {
    if (!v->node || !fac_is_opaque(v->node)) return false;
    const char *s = text_attr(v->node, "dtypes");
    for (int k = 0; k < v->index; k++) s += strcspn(s, ","), s += *s == ',';
    return *s == '-';
}

const char *fac_kind_of(const fac_node *n, fac_class is) {
    const int rank = n->nin && n->in[0] ? n->in[0]->type.dims.n : 0;
    static const char *const batch[] = { "BatchNorm1d", "BatchNorm2d", "BatchNorm3d" };
    static const char *const adaptive[] = { "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d" };
    const int planes = rank >= 3 && rank <= 5 ? rank - 3 : 0;
    if (fac_is_opaque(n)) return text_attr(n, "type");
    if (is == FAC_CLASS_BATCH_NORM) return batch[planes];
    if (is == FAC_CLASS_ADAPTIVE_POOL) return adaptive[planes];
    if (is == FAC_CLASS_RELU6) return "ReLU6";
    if (is == FAC_CLASS_EMBEDDING) return "Embedding";
    if (is == FAC_CLASS_LINEAR) return "Linear";
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (!strcmp(table[k].op, n->op->name)) return is == FAC_CLASS_MATMUL ? "MatMul" : table[k].kind;
    return n->op->name;
}
