/* A convolution and the max pooling of what it makes, which is written once and never read: kernels
 * that have neighbouring pixels in registers write the largest of them.  Made by
 * src/passes/fusion/conv_pools.c.  Has no prototype.
 *
 *     y = max_pool2d(conv2d(x, w, b)),   NaN wins; a body comes after the pooling */
#include <limits.h>
#include <string.h>
#include "op_list.h"
#include "base/error.h"
#include "base/memory.h"
#include "facula/ops.h"
#include "ops/conv_pool.h"
#include "ops/cost.h"

#define AT(field) offsetof(fac_conv_pool_attrs, field)
static const fac_attr table[] = {
    { "stride", FAC_A_INT, AT(conv.stride), 2, 1, 1, INT_MAX, NULL, "height, width" },
    { "pad", FAC_A_INT, AT(conv.pad), 4, 0, 0, INT_MAX, NULL, "top, left, bottom, right" },
    { "dilation", FAC_A_INT, AT(conv.dilation), 2, 1, 1, INT_MAX, NULL,
      "distance of kernel elements" },
    { "groups", FAC_A_INT, AT(conv.groups), 0, 1, 1, INT_MAX, NULL, "channels convolved apart" },
    { "auto_pad", FAC_A_ENUM, AT(conv.auto_pad), 0, 0, 0, 0, fac_auto_pad_names,
      "who chooses the convolution's padding" },
    { "pool", FAC_A_INT, AT(pool), 2, 2, 1, INT_MAX, NULL, "height, width of the pool's window" },
    { "pool_stride", FAC_A_INT, AT(pool_stride), 2, 0, 0, INT_MAX, NULL,
      "of the pool; 0 = its window" },
    { "pool_pad", FAC_A_INT, AT(pool_pad), 4, 0, 0, INT_MAX, NULL,
      "of the pool: top, left, bottom, right" },
    { 0 }
};
#undef AT

fac_pool2d_attrs fac_conv_pool_of(const fac_conv_pool_attrs *a) {
    fac_pool2d_attrs p = { .kernel = { a->pool[0], a->pool[1] }, .o.dilation = { 1, 1 } };
    for (int k = 0; k < 2; k++) p.o.stride[k] = a->pool_stride[k];
    for (int k = 0; k < 4; k++) p.o.pad[k] = a->pool_pad[k];
    return p;
}

static bool geometry(const fac_conv_pool_attrs *a, const fac_dims *x, const fac_dims *w,
                     fac_conv_geom *conv, fac_pool_geom *pool) {
    const fac_pool2d_attrs p = fac_conv_pool_of(a);
    if (!fac_conv_geometry_of(2, &a->conv, x, w, conv)) return false;
    const fac_dims made = fac_shape(conv->N, conv->K, conv->P, conv->Q);
    return fac_pool_geometry_of(2, &p, &made, pool);
}

extern const fac_op fac_op_conv2d_max_pool;
bool fac_conv_pool_geometry(const fac_node *n, fac_conv_geom *conv, fac_pool_geom *pool) {
    return n->op == &fac_op_conv2d_max_pool &&
           geometry(n->attrs, &n->in[0]->type.dims, &n->in[1]->type.dims, conv, pool);
}

static bool infer(fac_node *n) {
    const fac_pool2d_attrs p = fac_conv_pool_of(n->attrs);
    fac_node conv = *n, pool = *n;
    conv.op = &fac_op_conv2d;
    if (!fac_conv_infer(&conv)) return false;
    fac_value *made[] = { n->out[0] };
    pool.op = &fac_op_max_pool2d;
    pool.attrs = &p;
    pool.in = made;
    pool.nin = 1;
    return fac_pool_infer(&pool);
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const fac_conv_pool_attrs *a = r->attrs;
    const fac_pool2d_attrs p = fac_conv_pool_of(a);
    fac_conv_geom g;
    fac_pool_geom pool;
    if (!geometry(a, &r->in[0].type.dims, &r->in[1].type.dims, &g, &pool)) return FAC_E_INTERNAL;
    fac_array made = { .type = { r->out[0].type.dtype, fac_shape(g.N, g.K, g.P, g.Q) } },
              last[2] = { r->out[0] };
    const int64_t count = fac_dims_count(&made.type.dims);
    made.f = count < 0 ? NULL : fac_alloc((size_t)count + 1, sizeof *made.f);
    if (!made.f)
        return fac_raise(err, FAC_E_NOMEM,
                         "conv2d_max_pool: no memory for what the convolution makes");
    fac_ref first = *r, second = *r;
    first.attrs = &a->conv;
    first.out = &made;
    second.attrs = &p;
    second.in = &made;
    second.out = last;
    second.nin = 1;
    fac_status status = fac_conv2d_ref(&first, err);
    if (!status) status = fac_max_pool2d_ref(&second, err);
    fac_release(made.f);
    return status;
}

static void expand(const fac_node *n, fac_value *y[]) {
    const fac_conv_pool_attrs *a = n->attrs;
    const fac_pool2d_attrs p = fac_conv_pool_of(a);
    y[0] = fac_max_pool2d(fac_conv2d(n->in[0], n->in[1], n->in[2], &a->conv), p.kernel[0],
                          p.kernel[1], &p.o);
}

/* Those of the convolution; a comparison for each tap of the pool. */
static void cost(const fac_node *n, fac_cost *to) {
    fac_conv_geom g;
    fac_pool_geom pool;
    fac_value made = *n->out[0];
    const fac_conv_pool_attrs *a = n->attrs;
    if (fac_conv_pool_geometry(n, &g, &pool)) made.type.dims = fac_shape(g.N, g.K, g.P, g.Q);
    fac_conv_macs(n, &made, to);
    to->other = (n->in[2] ? fac_cost_count(&made) : 0) +
                fac_cost_count(n->out[0]) * (double)(a->pool[0] * a->pool[1]);
}

static const fac_case cases[] = {
    { "conv2d_max_pool(f32[2,3,9,8], f32[5,3,3,2], f32[5]) stride=2,1 pad=1,0,2,1", -1, 1, 1e-5 },
    { "conv2d_max_pool(f32[1,16,14,13], f32[24,16,3,3], f32[24]) pad=1,1,1,1 {relu}", -1, 1, 1e-5 },
    { "conv2d_max_pool(f32[2,8,7,9], f32[4,4,1,1]) groups=2", -1, 1, 1e-5 },
    { "conv2d_max_pool(f32[1,3,23,23], f32[8,3,7,7]) stride=2,2 pad=3,3,3,3 pool=3,3 "
      "pool_stride=2,2 pool_pad=1,1,1,1",
      -1, 1, 2e-5 },
    { "conv2d_max_pool(f32[1,2,8,11], f32[3,2,3,3]) pool=3,2 pool_stride=1,2", -1, 1, 1e-5 },
    { "conv2d_max_pool(f32[0,3,8,8], f32[4,3,3,3])", 0, 0, 0 },
    { "conv2d_max_pool(f16[1,3,6,6], f16[4,3,3,3], f16[4])", -1, 1, 4e-3 },
    { 0 }
};

const fac_op fac_op_conv2d_max_pool = {
    .name = "conv2d_max_pool",
    .doc = "the largest of each window of what a convolution makes",
    .in = fac_conv_in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(fac_conv_pool_attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .cost = cost,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
