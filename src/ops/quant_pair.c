/* See quant_pair.h. */
#include "ops/quant_pair.h"
#include "ops/fusions.h"

const fac_port fac_quant_pair_in[] = {
    { "a", FAC_INTS, 0 },         { "a_scale", FAC_FLOATS, 0 }, { "a_zero", FAC_INTS, 0 },
    { "b", FAC_INTS, 0 },         { "b_scale", FAC_FLOATS, 0 }, { "b_zero", FAC_INTS, 0 },
    { "y_scale", FAC_FLOATS, 0 }, { "y_zero", FAC_INTS, 0 },    { 0 }
};
const fac_port fac_quant_pair_out[] = { { "y", FAC_INTS, 0 }, { 0 } };

bool fac_quant_pair_infer(fac_node *n) {
    static const int scales[] = { FAC_PAIR_A_SCALE, FAC_PAIR_B_SCALE, FAC_PAIR_Y_SCALE };
    const fac_dtype t = n->in[FAC_PAIR_A]->type.dtype;
    fac_dims y;
    for (int k = 0; k < FAC_PAIR_PORTS; k++) {
        const bool scale = k == scales[0] || k == scales[1] || k == scales[2];
        if (!scale && n->in[k]->type.dtype != t)
            return fac_fail(n, FAC_E_DTYPE, "operands and zero points must have one dtype");
        if (scale && n->in[k]->type.dtype != FAC_F32)
            return fac_fail(n, FAC_E_DTYPE, "scales must be f32");
        if (k != FAC_PAIR_A && k != FAC_PAIR_B &&
            !fac_quant_scalar(n, k, fac_quant_pair_in[k].name))
            return false;
    }
    if (!fac_quant_bytes(n, FAC_PAIR_A, "a")) return false;
    if (!fac_broadcast(n, &n->in[FAC_PAIR_A]->type.dims, &n->in[FAC_PAIR_B]->type.dims, &y))
        return false;
    n->out[0]->type = (fac_type){ t, y };
    return true;
}

/* Element e of y in an operand that broadcasts. */
static int64_t place(const fac_dims *d, const fac_dims *y, int64_t e) {
    int64_t at = 0, step = 1;
    for (int k = d->n - 1, j = y->n - 1; k >= 0; k--, j--) {
        if (d->d[k] != 1) at += e % y->d[j] * step;
        e /= y->d[j];
        step *= d->d[k];
    }
    return at;
}

fac_status fac_quant_pair_ref(const fac_ref *r, fac_pair_rule *rule, int plus) {
    const fac_array *in = r->in;
    fac_array *y = &r->out[0];
    const fac_pair p = { (float)in[1].f[0], (float)in[2].i[0], (float)in[4].f[0],
                         (float)in[5].i[0], (float)in[6].f[0], (float)in[7].i[0] };
    const int64_t n = fac_dims_count(&y->type.dims);
    double least, most;
    fac_quant_range(y->type.dtype, &least, &most);
    for (int64_t e = 0; e < n; e++) {
        const int64_t a = in[0].i[place(&in[0].type.dims, &y->type.dims, e)];
        const int64_t b = in[3].i[place(&in[3].type.dims, &y->type.dims, e)];
        const float q = (float)rule(&p, (double)a, (double)b);
        y->i[e] = (int64_t)fac_quant_put(q, plus ? (double)p.y_zero : 0, least, most);
    }
    return FAC_OK;
}

void fac_quant_pair_scalars(const fac_node *n, fac_value *x[FAC_PAIR_PORTS]) {
    for (int k = 0; k < FAC_PAIR_PORTS; k++) {
        if (k == FAC_PAIR_A || k == FAC_PAIR_B) continue;
        x[k] = fac_cast(n->in[k], FAC_F32);
        if (x[k]->type.dims.n) x[k] = fac_reshape(x[k], (fac_dims){ 0 });
    }
}

fac_value *fac_quant_narrow(fac_value *x, fac_dtype to) {
    double least, most;
    fac_quant_range(to, &least, &most);
    x = fac_clip(x, fac_number(x->graph, FAC_F32, least), fac_number(x->graph, FAC_F32, most));
    return fac_cast(x, to);
}

fac_value *fac_quant_pair_load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                               fac_pair_maker *make) {
    const fac_dtype t = x[0]->type.dtype;
    const fac_qlinear_scales s = { x[1], fac_zero_or(g, x[2], t),
                                   x[4], fac_zero_or(g, x[5], t),
                                   x[6], fac_zero_or(g, fac_onnx_in(n, x, 7), t) };
    return make(x[0], x[3], &s);
}

fac_value *fac_quant_pair_emit(const fac_op *op, fac_value *a, fac_value *b,
                               const fac_qlinear_scales *s) {
    return fac_emit(op, NULL, FAC_PAIR_PORTS,
                    (fac_value *[]){ a, s->x_scale, s->x_zero, b, s->w_scale, s->w_zero, s->y_scale,
                                     s->y_zero });
}
