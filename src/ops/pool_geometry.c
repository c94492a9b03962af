/* What the pool ops share: attributes, resolved geometry, infer, cost and the ONNX spelling. */
#include <limits.h>
#include <string.h>
#include "ops/cost.h"
#include "ops/pool.h"
#include "op_list.h"

#define AT(field) offsetof(fac_pool1d_attrs, field)
const fac_attr fac_pool1d_table[] = {
    { "kernel", FAC_A_INT, AT(kernel), 0, 1, 1, INT_MAX, NULL, "width" },
    { "stride", FAC_A_INT, AT(o.stride), 0, 0, 0, INT_MAX, NULL, "0 = kernel" },
    { "pad", FAC_A_INT, AT(o.pad), 2, 0, 0, INT_MAX, NULL, "left, right" },
    { "dilation", FAC_A_INT, AT(o.dilation), 0, 1, 1, INT_MAX, NULL,
      "distance of window elements" },
    { "auto_pad", FAC_A_ENUM, AT(o.auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { "ceil_mode", FAC_A_FLAG, AT(o.ceil_mode), 0, 0, 0, 0, NULL,
      "a last window may reach over the end" },
    { "count_include_pad", FAC_A_FLAG, AT(o.count_include_pad), 0, 0, 0, 0, NULL,
      "average: padding counts" },
    { "column_major", FAC_A_FLAG, AT(column_major), 0, 0, 0, 0, NULL, "max: order of the indices" },
    { 0 }
};
#undef AT
#define AT(field) offsetof(fac_pool2d_attrs, field)
const fac_attr fac_pool2d_table[] = {
    { "kernel", FAC_A_INT, AT(kernel), 2, 1, 1, INT_MAX, NULL, "height, width" },
    { "stride", FAC_A_INT, AT(o.stride), 2, 0, 0, INT_MAX, NULL, "height, width; 0 = kernel" },
    { "pad", FAC_A_INT, AT(o.pad), 4, 0, 0, INT_MAX, NULL, "top, left, bottom, right" },
    { "dilation", FAC_A_INT, AT(o.dilation), 2, 1, 1, INT_MAX, NULL,
      "distance of window elements" },
    { "auto_pad", FAC_A_ENUM, AT(o.auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { "ceil_mode", FAC_A_FLAG, AT(o.ceil_mode), 0, 0, 0, 0, NULL,
      "a last window may reach over the end" },
    { "count_include_pad", FAC_A_FLAG, AT(o.count_include_pad), 0, 0, 0, 0, NULL,
      "average: padding counts" },
    { "column_major", FAC_A_FLAG, AT(column_major), 0, 0, 0, 0, NULL, "max: order of the indices" },
    { 0 }
};
#undef AT
#define AT(field) offsetof(fac_pool3d_attrs, field)
const fac_attr fac_pool3d_table[] = {
    { "kernel", FAC_A_INT, AT(kernel), 3, 1, 1, INT_MAX, NULL, "depth, height, width" },
    { "stride", FAC_A_INT, AT(o.stride), 3, 0, 0, INT_MAX, NULL,
      "depth, height, width; 0 = kernel" },
    { "pad", FAC_A_INT, AT(o.pad), 6, 0, 0, INT_MAX, NULL,
      "front, top, left, back, bottom, right" },
    { "dilation", FAC_A_INT, AT(o.dilation), 3, 1, 1, INT_MAX, NULL,
      "distance of window elements" },
    { "auto_pad", FAC_A_ENUM, AT(o.auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the padding" },
    { "ceil_mode", FAC_A_FLAG, AT(o.ceil_mode), 0, 0, 0, 0, NULL,
      "a last window may reach over the end" },
    { "count_include_pad", FAC_A_FLAG, AT(o.count_include_pad), 0, 0, 0, 0, NULL,
      "average: padding counts" },
    { "column_major", FAC_A_FLAG, AT(column_major), 0, 0, 0, 0, NULL, "max: order of the indices" },
    { 0 }
};
#undef AT

/* The attributes of the six ops under one form. */
typedef struct attrs {
    int rank;
    const int64_t *kernel, *stride, *pad, *dilation;
    fac_auto_pad auto_pad;
    bool ceil_mode, count_include_pad, column_major;
} attrs;

static attrs attrs_of(int rank, const void *a) {
    const fac_pool1d_attrs *a1 = a;
    const fac_pool2d_attrs *a2 = a;
    const fac_pool3d_attrs *a3 = a;
    if (rank == 1)
        return (attrs){ 1,
                        &a1->kernel,
                        &a1->o.stride,
                        a1->o.pad,
                        &a1->o.dilation,
                        (fac_auto_pad)a1->o.auto_pad,
                        a1->o.ceil_mode,
                        a1->o.count_include_pad,
                        a1->column_major };
    if (rank == 2)
        return (attrs){ 2,
                        a2->kernel,
                        a2->o.stride,
                        a2->o.pad,
                        a2->o.dilation,
                        (fac_auto_pad)a2->o.auto_pad,
                        a2->o.ceil_mode,
                        a2->o.count_include_pad,
                        a2->column_major };
    return (attrs){ 3,
                    a3->kernel,
                    a3->o.stride,
                    a3->o.pad,
                    a3->o.dilation,
                    (fac_auto_pad)a3->o.auto_pad,
                    a3->o.ceil_mode,
                    a3->o.count_include_pad,
                    a3->column_major };
}

static int rank_of(const fac_node *n) {
    if (n->op == &fac_op_max_pool1d || n->op == &fac_op_avg_pool1d) return 1;
    if (n->op == &fac_op_max_pool2d || n->op == &fac_op_avg_pool2d) return 2;
    return n->op == &fac_op_max_pool3d || n->op == &fac_op_avg_pool3d ? 3 : 0;
}

static fac_window window_of(const attrs *a, const fac_dims *x, int k) {
    int64_t stride = a->stride[k] ? a->stride[k] : a->kernel[k];
    return (fac_window){ x->d[2 + k], a->kernel[k],        stride, a->dilation[k],
                         a->pad[k],   a->pad[a->rank + k], 0 };
}

static bool geometry(const attrs *a, const fac_dims *x, fac_pool_geom *out) {
    fac_pool_geom g = {
        a->rank, x->d[0], x->d[1], { { 0 } }, a->count_include_pad, a->column_major
    };
    for (int k = 0; k < x->n; k++)
        if (x->d[k] < 0) return false;
    for (int k = 0; k < 3; k++) {
        int at = k - (3 - a->rank);
        g.window[k] = (fac_window){ 1, 1, 1, 1, 0, 0, 1 };
        if (at < 0) continue;
        g.window[k] = window_of(a, x, at);
        if (fac_window_settle(&g.window[k], a->auto_pad, a->ceil_mode)) return false;
    }
    *out = g;
    return true;
}

bool fac_pool_geometry(const fac_node *n, fac_pool_geom *g) {
    int rank = rank_of(n);
    if (!rank) return false;
    attrs a = attrs_of(rank, n->attrs);
    return geometry(&a, &n->in[0]->type.dims, g);
}

bool fac_pool_geometry_of(int rank, const void *attributes, const fac_dims *x, fac_pool_geom *g) {
    attrs a = attrs_of(rank, attributes);
    return geometry(&a, x, g);
}

bool fac_pool_of_ref(const fac_ref *r, int rank, fac_pool_geom *g) {
    attrs a = attrs_of(rank, r->attrs);
    return geometry(&a, &r->in[0].type.dims, g);
}

bool fac_pool_infer(fac_node *n) {
    static const char *const names[] = { "depth", "height", "width" };
    attrs a = attrs_of(rank_of(n), n->attrs);
    fac_type y = n->in[0]->type;
    if (y.dims.n != 2 + a.rank) return fac_fail(n, FAC_E_SHAPE, "x must have %d dims", 2 + a.rank);
    for (int k = 0; k < a.rank; k++) {
        fac_window v = window_of(&a, &n->in[0]->type.dims, k);
        if (!fac_window_infer(n, names[3 - a.rank + k], &v, a.auto_pad, a.ceil_mode)) return false;
        y.dims.d[2 + k] = v.out;
    }
    n->out[0]->type = y;
    if (n->nout > 1) n->out[1]->type = (fac_type){ FAC_I64, y.dims };
    return true;
}

/* One comparison or addition for each tap. */
void fac_pool_cost(const fac_node *n, fac_cost *cost) {
    attrs a = attrs_of(rank_of(n), n->attrs);
    double taps = 1;
    for (int k = 0; k < a.rank; k++) taps *= (double)a.kernel[k];
    fac_cost_bytes(n, cost);
    cost->macs = 0;
    cost->other = fac_cost_count(n->out[0]) * taps;
}

const fac_onnx_attr fac_pool_spellings[] = { { "kernel_shape", "kernel" },
                                             { "strides", "stride" },
                                             { "pads", "pad" },
                                             { "dilations", "dilation" },
                                             { "storage_order", "column_major" },
                                             { 0 } };

/* Strides default to 1 in ONNX. */
void fac_pool_load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    bool max = !strcmp(n->type, "MaxPool");
    int rank = fac_value_type(in[0]).dims.n - 2;
    if (rank < 1 || rank > 3) {
        out[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "%s of %d dims, expected 3, 4 or 5", n->type,
                                rank + 2);
        return;
    }
    fac_window_onnx v;
    if ((out[0] = fac_window_load(n, g, rank, &v))) return;
    if (!v.kernel[0]) {
        out[0] = fac_fail_graph(g, FAC_E_FORMAT, "%s without kernel_shape", n->type);
        return;
    }
    bool ceil = fac_onnx_int(n, "ceil_mode", 0),
         include = !max && fac_onnx_int(n, "count_include_pad", 0);
    bool column_major = max && fac_onnx_int(n, "storage_order", 0);
    const int64_t *w = v.kernel, *s = v.stride, *p = v.pad, *d = v.dilation;
    fac_pool1d_attrs a1 = { w[0],
                            { s[0], { p[0], p[1] }, d[0], v.auto_pad, ceil, include },
                            column_major };
    fac_pool2d_attrs a2 = {
        { w[0], w[1] },
        { { s[0], s[1] }, { p[0], p[1], p[2], p[3] }, { d[0], d[1] }, v.auto_pad, ceil, include },
        column_major
    };
    fac_pool3d_attrs a3 = { { w[0], w[1], w[2] },
                            { { s[0], s[1], s[2] },
                              { p[0], p[1], p[2], p[3], p[4], p[5] },
                              { d[0], d[1], d[2] },
                              v.auto_pad,
                              ceil,
                              include },
                            column_major };
    if (rank == 1)
        out[0] = fac_emit(max ? &fac_op_max_pool1d : &fac_op_avg_pool1d, &a1, 1, in);
    else if (rank == 2)
        out[0] = fac_emit(max ? &fac_op_max_pool2d : &fac_op_avg_pool2d, &a2, 1, in);
    else
        out[0] = fac_emit(max ? &fac_op_max_pool3d : &fac_op_avg_pool3d, &a3, 1, in);
    if (n->nout > 1) out[1] = fac_value_other(out[0], 1);
}

/* Rounding up, a last window that sees padding only counts: it does not for us, nor for ONNX since
 * opset 22. */
static bool has_window_too_few(const attrs *a, const fac_node *n, int k) {
    const fac_window v = window_of(a, &n->in[0]->type.dims, k);
    const int64_t out = n->out[0]->type.dims.d[2 + k], span = (v.kernel - 1) * v.dilation + 1;
    if (!a->ceil_mode || a->auto_pad != FAC_AUTO_NONE || v.in < 0 || out < 0) return false;
    return (v.in + v.pad + v.pad_end - span + v.stride - 1) / v.stride + 1 != out;
}

/* Average pooling has dilations since opset 19. */
bool fac_pool_save(const fac_onnx_writer *w, const fac_node *n) {
    const attrs a = attrs_of(rank_of(n), n->attrs);
    const bool max = n->nout > 1;
    for (int k = 0; k < a.rank; k++) {
        if (!max && a.dilation[k] != 1 && w->opset < 19) return false;
        if (w->opset < 22 && has_window_too_few(&a, n, k)) return false;
    }
    const char *y = fac_onnx_name(w, n->out[0]),
               *indices = max ? fac_onnx_name(w, n->out[1]) : NULL;
    fac_onnx_put(w, max ? "MaxPool" : "AveragePool", 1,
                 (const char *[]){ fac_onnx_name(w, n->in[0]) }, y ? y : "");
    if (indices) fac_onnx_put_out(w, indices);
    fac_window_save(w, n);
    if (a.ceil_mode) fac_onnx_put_int(w, "ceil_mode", 1);
    if (a.count_include_pad && !max) fac_onnx_put_int(w, "count_include_pad", 1);
    if (a.column_major) fac_onnx_put_int(w, "storage_order", 1);
    return true;
}
