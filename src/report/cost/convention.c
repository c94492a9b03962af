/* The numbers of other tools, from the same layers.  Each rule says what that tool counts for a
 * layer of a class; facts from running the tools (versions in facula/report/analyze.h).  x:
 * elements of the input, y: of the output, N: batch.
 *
 *   torchinfo     every weight and bias times the positions it is used at; other parameters once an
 *                 image; calls are free
 *   ptflops       modules by hooks; functions that it patches (relu, max_pool, adaptive pooling)
 *                 count again inside a module
 *   fvcore, thop  no bias; norms weighted */
#include <string.h>
#include "graph/attr.h"
#include "op_list.h"
#include "report/cost/report.h"

typedef struct facts {
    const fac_node *n;
    const fac_layer *l;
    fac_layer_class is;
    double x, y, bias,
        affine; /* bias: elements of y when a bias is added, else 0; affine: a norm has a scale */
    double batch, params, window; /* window: elements of a pool's kernel */
} facts;

static double elements(const fac_value *v) {
    const int64_t n = v ? fac_dims_count(&v->type.dims) : 0;
    return n > 0 ? (double)n : 0;
}

static double window_of(const fac_node *n) {
    const fac_attr *a = fac_attr_find(n->op, "kernel");
    const int64_t *kernel = fac_attr_ints(n, "kernel");
    double w = 1;
    for (int k = 0; kernel && k < (a->count ? a->count : 1); k++) w *= (double)kernel[k];
    return w;
}

static bool adds_bias(const facts *f) {
    const fac_node *n = f->n;
    const bool product =
        f->is == FAC_CLASS_CONV || f->is == FAC_CLASS_CONV_TRANSPOSE || f->is == FAC_CLASS_LINEAR;
    return product && n->nports > 2 && n->nin > 2 && n->in[2] && !fac_is_fill(n->in[2]);
}

static facts facts_of(const fac_analysis *a, int i) {
    const fac_node *n = a->nodes[i];
    facts f = { .n = n,
                .l = &a->layers[i],
                .is = a->classes[i],
                .y = elements(n->out[0]),
                .window = window_of(n) };
    f.x = n->nin && n->in[0] ? elements(n->in[0]) : 0;
    f.bias = adds_bias(&f) ? f.y : 0;
    f.affine = n->nin > 1 && n->in[1];
    const fac_dims *d = &n->out[0]->type.dims;
    f.batch = d->n && d->d[0] > 0 ? (double)d->d[0] : 1;
    for (int k = 1; k < n->nin && k < 3; k++)
        f.params += elements(n->in[k]); /* weight and bias; not running statistics */
    return f;
}

/* Of one image: the plane's. */
static double positions(const fac_value *v) {
    double n = 1;
    for (int k = 2; k < v->type.dims.n; k++) n *= (double)v->type.dims.d[k];
    return n;
}

static double torchinfo(const facts *f) {
    const fac_layer *l = f->l;
    switch (f->is) {
    case FAC_CLASS_CONV:
    case FAC_CLASS_LINEAR:
        return l->macs + f->bias;
    /* by the output's positions: stride^2 times what is done */
    case FAC_CLASS_CONV_TRANSPOSE:
        return f->x > 0 ? l->macs / positions(f->n->in[0]) * positions(f->n->out[0]) + f->bias : 0;
    case FAC_CLASS_BATCH_NORM:
    case FAC_CLASS_INSTANCE_NORM:
    case FAC_CLASS_LAYER_NORM:
    case FAC_CLASS_GROUP_NORM:
    case FAC_CLASS_PRELU:
        return f->params * f->batch;
    case FAC_CLASS_EMBEDDING:
        return elements(f->n->in[0]) * f->batch;
    default:
        return 0;
    }
}

/* By torch's own kernels of products. */
static double ptflops_aten(const facts *f) {
    switch (f->is) {
    case FAC_CLASS_CONV:
    case FAC_CLASS_CONV_TRANSPOSE:
    case FAC_CLASS_LINEAR:
        return f->l->macs + f->bias;
    case FAC_CLASS_MATMUL:
        return f->l->macs;
    default:
        return 0;
    }
}

static double ptflops_modules(const facts *f) {
    if (f->is == FAC_CLASS_LINEAR || f->is == FAC_CLASS_CONV || f->is == FAC_CLASS_CONV_TRANSPOSE)
        return f->l->macs + f->bias;
    if (!f->l->is_module) return 0;
    switch (f->is) {
    case FAC_CLASS_BATCH_NORM:
    case FAC_CLASS_INSTANCE_NORM:
    case FAC_CLASS_GROUP_NORM:
        return (f->affine ? 2 : 1) * f->x;
    case FAC_CLASS_LAYER_NORM:
        return f->x;
    case FAC_CLASS_RELU:
    case FAC_CLASS_RELU6:
    case FAC_CLASS_PRELU:
    case FAC_CLASS_ACTIVATION:
        return f->y;
    case FAC_CLASS_MAX_POOL:
    case FAC_CLASS_AVG_POOL:
    case FAC_CLASS_ADAPTIVE_POOL:
        return f->x;
    default:
        return 0;
    }
}

/* The patched functions count wherever they are called, also from the module that was counted
 * already. */
static double ptflops(const facts *f) {
    double patched = 0;
    switch (f->is) {
    case FAC_CLASS_RELU:
    case FAC_CLASS_MAX_POOL:
    case FAC_CLASS_ADAPTIVE_POOL:
    case FAC_CLASS_SOFTMAX:
        patched = f->x;
        break;
    case FAC_CLASS_MATMUL:
        patched = f->l->macs;
        break;
    default:
        break;
    }
    return ptflops_modules(f) + patched;
}

static double fvcore(const facts *f) {
    switch (f->is) {
    case FAC_CLASS_CONV:
    case FAC_CLASS_CONV_TRANSPOSE:
    case FAC_CLASS_LINEAR:
    case FAC_CLASS_MATMUL:
        return f->l->macs;
    case FAC_CLASS_BATCH_NORM:
        return (f->affine ? 2 : 1) * f->x;
    case FAC_CLASS_INSTANCE_NORM:
    case FAC_CLASS_LAYER_NORM:
    case FAC_CLASS_GROUP_NORM:
        return (f->affine ? 5 : 4) * f->x;
    case FAC_CLASS_ADAPTIVE_POOL:
        return f->x;
    default:
        return 0;
    }
}

static double thop(const facts *f) {
    if (f->is == FAC_CLASS_CONV || f->is == FAC_CLASS_LINEAR) return f->l->macs;
    if (!f->l->is_module) return 0;
    switch (f->is) {
    case FAC_CLASS_CONV_TRANSPOSE:
        return torchinfo(f) - f->bias;
    case FAC_CLASS_BATCH_NORM:
    case FAC_CLASS_INSTANCE_NORM:
    case FAC_CLASS_LAYER_NORM:
        return (f->affine ? 4 : 2) * f->x;
    case FAC_CLASS_PRELU:
        return f->x;
    case FAC_CLASS_AVG_POOL:
        return f->y;
    case FAC_CLASS_ADAPTIVE_POOL:
        return f->y > 0 ? f->x + f->y : 0; /* (window + 1) for each output */
    case FAC_CLASS_SOFTMAX: {
        const fac_dims *d = &f->n->out[0]->type.dims;
        const double row = d->n && d->d[d->n - 1] > 0 ? (double)d->d[d->n - 1] : 1;
        return f->y / row * (3 * row - 1);
    }
    default:
        return 0;
    }
}

/* What one element costs in onnx-tool: an addition, product or comparison 1, a division 4, a square
 * root 24, an exponential or power 32, a logarithm 43, sine and cosine 39, tanh 38. */
static const struct {
    const fac_op *op;
    double each;
} weights[] = {
    { &fac_op_relu, 1 },     { &fac_op_add, 1 },   { &fac_op_sub, 1 },   { &fac_op_mul, 1 },
    { &fac_op_sum, 1 },      { &fac_op_div, 4 },   { &fac_op_clip, 2 },  { &fac_op_leaky_relu, 2 },
    { &fac_op_sigmoid, 36 }, { &fac_op_tanh, 38 }, { &fac_op_exp, 32 },  { &fac_op_pow, 32 },
    { &fac_op_log, 43 },     { &fac_op_sqrt, 24 }, { &fac_op_sin, 39 },  { &fac_op_cos, 39 },
    { &fac_op_erf, 34 },     { &fac_op_neg, 1 },   { &fac_op_abs, 1 },   { &fac_op_min, 1 },
    { &fac_op_max, 1 },      { &fac_op_where, 1 }, { &fac_op_equal, 1 }, { &fac_op_less, 1 },
    { &fac_op_greater, 1 },  { &fac_op_and, 1 },   { &fac_op_or, 1 },    { &fac_op_not, 1 },
    { &fac_op_floor, 1 },    { &fac_op_ceil, 1 },
};

static double onnx_tool(const facts *f) {
    switch (f->is) {
    case FAC_CLASS_CONV:
    case FAC_CLASS_CONV_TRANSPOSE:
    case FAC_CLASS_LINEAR:
        return f->l->macs + f->bias;
    case FAC_CLASS_MATMUL:
        return f->l->macs;
    case FAC_CLASS_BATCH_NORM:
        return 31 * f->y;
    case FAC_CLASS_SOFTMAX:
        return 36 * f->y;
    case FAC_CLASS_MAX_POOL:
    case FAC_CLASS_AVG_POOL:
        return f->window * f->y;
    case FAC_CLASS_ADAPTIVE_POOL:
        return !FAC_IS(f->n, mean) ? f->window * f->y : f->x + 4 * f->y;
    default:
        break;
    }
    if (FAC_IS(f->n,
               lrn)) { /* a division, a power, an addition, and a product for each neighbour */
        const int64_t *size = fac_attr_ints(f->n, "size");
        return (37 + (size ? (double)*size : 0)) * f->y;
    }
    for (size_t k = 0; k < sizeof weights / sizeof *weights; k++)
        if (weights[k].op == f->n->op) return weights[k].each * f->y;
    return 0;
}

static double core(const facts *f) { return f->l->macs; }

static const struct {
    const char *name, *about;
    double (*count)(const facts *f);
} table[FAC_CONVENTIONS] = {
    [FAC_COUNT_CORE] = { "core", "convolutions, products, recurrent cells, attention; no bias",
                         core },
    [FAC_COUNT_TORCHINFO] = { "torchinfo", "with biases; batch norm 2 C an image; functions free",
                              torchinfo },
    [FAC_COUNT_PTFLOPS] = { "ptflops",
                            "norms 2 each, activations and pools, twice where a module calls a "
                            "patched function",
                            ptflops },
    [FAC_COUNT_PTFLOPS_MODULES] = { "ptflops-modules", "the same without patched functions",
                                    ptflops_modules },
    [FAC_COUNT_PTFLOPS_ATEN] = { "ptflops-aten", "convolutions and products with bias",
                                 ptflops_aten },
    [FAC_COUNT_FVCORE] = { "fvcore", "no bias; batch norm 2, layer norm 5 each; adaptive pooling",
                           fvcore },
    [FAC_COUNT_THOP] = { "thop", "no bias; batch norm 4 each; pooling modules", thop },
    [FAC_COUNT_ONNX_TOOL] = { "onnx-tool",
                              "every op, weighted: batch norm 31, softmax 36, pools by window",
                              onnx_tool },
};

const char *fac_convention_name(fac_convention c) { return table[c].name; }
const char *fac_convention_about(fac_convention c) { return table[c].about; }

bool fac_convention_find(const char *name, fac_convention *out) {
    for (int c = 0; c < FAC_CONVENTIONS; c++)
        if (!strcmp(table[c].name, name)) return *out = (fac_convention)c, true;
    return false;
}

double fac_layer_count(const fac_analysis *a, int i, fac_convention c) {
    const facts f = facts_of(a, i);
    return table[c].count(&f);
}

double fac_analysis_count(const fac_analysis *a, fac_convention c) {
    double sum = 0;
    for (int i = 0; i < a->totals.layers; i++) sum += fac_layer_count(a, i, c);
    return sum;
}
