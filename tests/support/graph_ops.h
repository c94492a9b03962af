/* A few ops for the tests of the graph, which thereby do not depend on src/ops. */
#ifndef GRAPH_OPS_H
#define GRAPH_OPS_H
#include <string.h>
#include "facula/op.h"

/* tneg(x): same type, any numbers */
static const fac_op tneg = {
    .name = "tneg", .in = fac_ports_num_x, .out = fac_ports_y, .infer = fac_infer_same
};
/* tadd(x, y): broadcasting */
static const fac_op tadd = {
    .name = "tadd", .in = fac_ports_num_xy, .out = fac_ports_y, .infer = fac_infer_broadcast
};
static const fac_op tless = {
    .name = "tless", .in = fac_ports_num_xy, .out = fac_ports_y, .infer = fac_infer_compare
};

/* tbias(x, [b]): the second input is optional */
static const fac_port tbias_in[] = { { "x", FAC_FLOATS, 0 },
                                     { "b", FAC_FLOATS, FAC_OPTIONAL },
                                     { 0 } };
static const fac_op tbias = {
    .name = "tbias", .in = tbias_in, .out = fac_ports_y, .infer = fac_infer_same
};

/* tcat(x...): along dim 0 */
static const fac_port tcat_in[] = { { "x", FAC_ANY, FAC_VARIADIC }, { 0 } };
static inline bool tcat_infer(fac_node *n) {
    fac_type t = n->in[0]->type;
    for (int i = 1; i < n->nin; i++) {
        if (n->in[i]->type.dims.n != t.dims.n)
            return fac_fail(n, FAC_E_SHAPE, "input %d has another rank", i);
        t.dims.d[0] += n->in[i]->type.dims.d[0];
    }
    n->out[0]->type = t;
    return true;
}
static const fac_op tcat = {
    .name = "tcat", .in = tcat_in, .out = fac_ports_y, .infer = tcat_infer
};

/* tsplit(x) parts=n: n outputs */
typedef struct tsplit_attrs {
    int64_t parts;
} tsplit_attrs;
static const fac_attr tsplit_table[] = {
    { "parts", FAC_A_INT, offsetof(tsplit_attrs, parts), 0, 2, 1, 100, NULL, "" }, { 0 }
};
static const fac_port tsplit_out[] = { { "y", FAC_ANY, FAC_VARIADIC }, { 0 } };
static inline bool tsplit_infer(fac_node *n) {
    const tsplit_attrs *a = n->attrs;
    if (!fac_node_outputs(n, (int)a->parts)) return false;
    for (int k = 0; k < n->nout; k++) {
        n->out[k]->type = n->in[0]->type;
        n->out[k]->type.dims.d[0] /= a->parts;
    }
    return true;
}
static const fac_op tsplit = { .name = "tsplit",
                               .in = fac_ports_any_x,
                               .out = tsplit_out,
                               .attrs = tsplit_table,
                               .attrs_size = sizeof(tsplit_attrs),
                               .infer = tsplit_infer };

/* tshape(x): i64[rank], whose contents are known */
static const fac_port tshape_in[] = { { "x", FAC_ANY, FAC_SHAPE_ONLY }, { 0 } };
static inline bool tshape_infer(fac_node *n) {
    const fac_dims *d = &n->in[0]->type.dims;
    fac_contents c = { .n = d->n };
    for (int k = 0; k < d->n; k++) {
        c.v[k] = d->d[k];
        if (d->d[k] < 0) c.symbolic |= 1u << k;
    }
    n->out[0]->type = (fac_type){ FAC_I64, fac_shape(d->n) };
    fac_knows(n->out[0], &c);
    return true;
}
static const fac_op tshape = {
    .name = "tshape", .in = tshape_in, .out = fac_ports_y, .infer = tshape_infer, .is = FAC_OP_KNOWS
};

/* tresize(x, dims): x with the shape that dims says; without known dims every size is fresh */
static const fac_port tresize_in[] = { { "x", FAC_ANY, 0 }, { "dims", FAC_INTS, FAC_HOST }, { 0 } };
static inline bool tresize_infer(fac_node *n) {
    fac_contents c;
    if (!fac_known(n->in[1], &c)) {
        c = (fac_contents){ .n = (int)n->in[1]->type.dims.d[0] };
        for (int k = 0; k < c.n; k++) c.v[k] = fac_symbol(n->graph, NULL);
    }
    n->out[0]->type.dtype = n->in[0]->type.dtype;
    n->out[0]->type.dims.n = c.n;
    for (int k = 0; k < c.n; k++) n->out[0]->type.dims.d[k] = c.v[k];
    return true;
}
static const fac_op tresize = {
    .name = "tresize", .in = tresize_in, .out = fac_ports_y, .infer = tresize_infer
};

/* tall: every kind of attribute */
typedef struct tall_attrs {
    int64_t stride[2], axis;
    double alpha, box[3];
    bool ceil_mode, training;
    int mode;
    fac_dtype to;
    fac_dims axes;
    const char *text;
} tall_attrs;
static const char *const tall_modes[] = { "nearest", "linear", "cubic", NULL };
static const fac_attr tall_table[] = {
    { "stride", FAC_A_INT, offsetof(tall_attrs, stride), 2, 1, 1, 64, NULL, "" },
    { "axis", FAC_A_INT, offsetof(tall_attrs, axis), 0, 0, 0, 0, NULL, "" },
    { "alpha", FAC_A_REAL, offsetof(tall_attrs, alpha), 0, 0.01, 0, 10, NULL, "" },
    { "box", FAC_A_REAL, offsetof(tall_attrs, box), 3, 0, 0, 0, NULL, "" },
    { "ceil_mode", FAC_A_FLAG, offsetof(tall_attrs, ceil_mode), 0, 0, 0, 0, NULL, "" },
    { "training", FAC_A_FLAG, offsetof(tall_attrs, training), 0, 0, 0, 0, NULL, "" },
    { "mode", FAC_A_ENUM, offsetof(tall_attrs, mode), 0, 0, 0, 0, tall_modes, "" },
    { "to", FAC_A_DTYPE, offsetof(tall_attrs, to), 0, 0, 0, 0, NULL, "" },
    { "axes", FAC_A_DIMS, offsetof(tall_attrs, axes), 0, 0, 0, 0, NULL, "" },
    { "text", FAC_A_TEXT, offsetof(tall_attrs, text), 0, 0, 0, 0, NULL, "" },
    { 0 }
};
static const fac_op tall = { .name = "tall",
                             .in = fac_ports_any_x,
                             .out = fac_ports_y,
                             .attrs = tall_table,
                             .attrs_size = sizeof(tall_attrs),
                             .infer = fac_infer_same };

static inline fac_value *neg(fac_value *x) { return fac_emit(&tneg, NULL, 1, &x); }
static inline fac_value *add(fac_value *x, fac_value *y) {
    return fac_emit(&tadd, NULL, 2, (fac_value *[]){ x, y });
}
static inline fac_value *resize(fac_value *x, fac_value *d) {
    return fac_emit(&tresize, NULL, 2, (fac_value *[]){ x, d });
}
static inline fac_value *shape(fac_value *x) { return fac_emit(&tshape, NULL, 1, &x); }

static inline fac_tensor *zeros(fac_dtype dtype, fac_dims dims) {
    fac_tensor *t = NULL;
    return fac_tensor_new(NULL, dtype, dims, &t, NULL) ? NULL : t;
}
static inline fac_value *param(fac_graph *g, const char *name, fac_dims dims) {
    fac_tensor *t = zeros(FAC_F32, dims);
    fac_value *v = fac_param(g, name, t);
    fac_tensor_free(t);
    return v;
}
#endif
