/* The attentions of ONNX Runtime's optimizer, as products and attention.
 *
 * Masks add mask_filter_value (-10000) to scores, as there; what follows a query is left out
 * altogether. */
#include "ops/grad.h"
#include "ops/fusions.h"

const fac_onnx_attr fac_names_ms_attention[] = { { "num_heads", NULL },
                                                 { "unidirectional", NULL },
                                                 { "scale", NULL },
                                                 { "mask_filter_value", NULL },
                                                 { "qkv_hidden_sizes", NULL },
                                                 { "do_rotary", NULL },
                                                 { "rotary_embedding_dim", NULL },
                                                 { "past_present_share_buffer", NULL },
                                                 { 0 } };

static fac_value *in_heads(fac_value *x, int64_t heads) {
    return x->type.dims.n == 4 ? x : fac_in_heads(x, heads);
}

/* 0 where a key takes part, else the filter value. */
static fac_value *filtered(const fac_onnx_node *n, fac_graph *g, fac_value *seen, fac_dtype t) {
    const double filter = fac_onnx_real(n, "mask_filter_value", -10000);
    return fac_where(seen, fac_number(g, t, 0), fac_number(g, t, filter));
}

/* Numbers of the keys, 1,1,1,T, of a present of T keys. */
static fac_value *key_numbers(fac_graph *g, fac_value *k, fac_value *past) {
    fac_value *length = fac_slice(fac_shape_of(k), 0, 2, 3, 1);
    if (past) length = fac_add(length, fac_slice(fac_shape_of(past), 0, -2, -1, 1));
    fac_value *zero = fac_number(g, FAC_I64, 0), *one = fac_number(g, FAC_I64, 1);
    return fac_reshape(fac_arange(zero, fac_squeeze(length, fac_shape(0)), one),
                       fac_shape(1, 1, 1, -1));
}

static fac_value *per_row(fac_value *x) {
    return fac_reshape(fac_cast(x, FAC_I64), fac_shape(-1, 1, 1, 1));
}

/* mask: how many keys each row has, B; their ends and then their beginnings, 2B; 0 and 1, B,T or
 * B,S,T.  rows: B, if it is a number. */
static fac_value *mask_of(const fac_onnx_node *n, fac_graph *g, fac_value *mask, fac_value *k,
                          fac_value *past, fac_dtype t) {
    const fac_dims *d = &mask->type.dims;
    const int64_t rows = k->type.dims.d[0];
    if (d->n == 1) {
        fac_value *at = key_numbers(g, k, past), *seen;
        if (d->d[0] == rows || rows < 0)
            seen = fac_less(at, per_row(mask));
        else
            seen =
                fac_and(fac_less(at, per_row(fac_slice(mask, 0, 0, rows, 1))),
                        fac_greater_or_equal(at, per_row(fac_slice(mask, 0, rows, 2 * rows, 1))));
        return filtered(n, g, seen, t);
    }
    if (d->n != 2 && d->n != 3)
        return fac_fail_graph(g, FAC_E_UNSUPPORTED, "%s: a mask with %d dims is not supported",
                              n->type, d->n);
    fac_value *seen = fac_cast(mask, FAC_BOOL);
    return filtered(n, g, fac_unsqueeze(seen, d->n == 2 ? fac_shape(1, 2) : fac_shape(1)), t);
}

static fac_attention_opts options(const fac_onnx_node *n) {
    return (fac_attention_opts){ .scale = fac_onnx_real(n, "scale", 0),
                                 .causal = fac_onnx_int(n, "unidirectional", 0) != 0 };
}

static bool refused(const fac_onnx_node *n, fac_graph *g, fac_value *y[]) {
    static const char *const not [] = { "do_rotary", "past_present_share_buffer", NULL };
    for (int k = 0; not [k]; k++)
        if (fac_onnx_int(n, not [k], 0)) {
            y[0] =
                fac_fail_graph(g, FAC_E_UNSUPPORTED, "%s: %s is not supported", n->type, not [k]);
            return true;
        }
    if (fac_onnx_int(n, "num_heads", 0) > 0) return false;
    y[0] = fac_fail_graph(g, FAC_E_FORMAT, "%s: num_heads is %lld", n->type,
                          (long long)fac_onnx_int(n, "num_heads", 0));
    return true;
}

/* B,S,(D + D + E) in three. */
static bool in_three(const fac_onnx_node *n, fac_graph *g, fac_value *y, fac_value *qkv[3]) {
    fac_dims sizes = fac_onnx_ints(n, "qkv_hidden_sizes");
    const int64_t all = y->type.dims.n == 3 ? y->type.dims.d[2] : -1;
    if (sizes.n == 0 && all > 0 && all % 3 == 0) sizes = fac_shape(all / 3, all / 3, all / 3);
    if (sizes.n != 3 || sizes.d[0] + sizes.d[1] + sizes.d[2] != all) {
        fac_fail_graph(g, FAC_E_FORMAT, "Attention: weights with %lld columns are not three parts",
                       (long long)all);
        return false;
    }
    for (int64_t k = 0, at = 0; k < 3; at += sizes.d[k++])
        qkv[k] = fac_slice(y, 2, at, at + sizes.d[k], 1);
    return true;
}

void fac_attend(const fac_onnx_node *n, fac_graph *g, fac_value *all, fac_value *mask,
                fac_value *past, fac_value *bias, fac_value *y[]) {
    fac_value *qkv[3];
    const int64_t heads = fac_onnx_int(n, "num_heads", 0);
    const fac_dtype t = all->type.dtype;
    const fac_dims first = fac_shape(0);
    const fac_attention_opts o = options(n);
    if (refused(n, g, y)) return;
    if (!in_three(n, g, all, qkv)) {
        y[0] = fac_fail_graph(g, FAC_E_FORMAT, "Attention");
        return;
    }
    for (int k = 0; k < 3; k++) qkv[k] = in_heads(qkv[k], heads);
    if (mask) mask = mask_of(n, g, mask, qkv[1], past, t);
    fac_value *past_key = past ? fac_squeeze(fac_slice(past, 0, 0, 1, 1), first) : NULL;
    fac_value *past_value = past ? fac_squeeze(fac_slice(past, 0, 1, 2, 1), first) : NULL;
    fac_value *z = fac_attention(qkv[0], qkv[1], qkv[2], fac_grad_plus(mask, bias), past_key,
                                 past_value, NULL, &o);
    y[0] = fac_out_of_heads(z);
    if (n->nout < 2) return;
    fac_value *key = past ? fac_value_other(z, 1) : qkv[1],
              *value = past ? fac_value_other(z, 2) : qkv[2];
    y[1] =
        fac_concat((fac_value *[]){ fac_unsqueeze(key, first), fac_unsqueeze(value, first) }, 2, 0);
}

/* Inputs x B,S,N, weights N,(D + D + E), bias, mask, past 2,B,H,P,D, a bias of scores; outputs y
 * and present, both 2,B,H,P + S,D. */
void fac_load_ms_attention(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                           fac_value *y[]) {
    fac_value *all = fac_grad_plus(fac_matmul(x[0], x[1]), fac_onnx_in(n, x, 2));
    fac_attend(n, g, all, fac_onnx_in(n, x, 3), fac_onnx_in(n, x, 4), fac_onnx_in(n, x, 5), y);
}

/* Inputs q, k, v, bias of all three, key_padding_mask, a bias of scores, past_key, past_value;
 * outputs y, present_key, present_value. */
void fac_load_multi_head_attention(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                                   fac_value *y[]) {
    fac_value *qkv[3] = { x[0], fac_onnx_in(n, x, 1), fac_onnx_in(n, x, 2) },
              *bias = fac_onnx_in(n, x, 3);
    fac_value *mask = fac_onnx_in(n, x, 4), *past_key = fac_onnx_in(n, x, 6),
              *past_value = fac_onnx_in(n, x, 7);
    const int64_t heads = fac_onnx_int(n, "num_heads", 0);
    const fac_attention_opts o = options(n);
    if (refused(n, g, y)) return;
    if (!qkv[1] || !qkv[2] || x[0]->type.dims.n != 3) {
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED,
                              "MultiHeadAttention: packed operands are not supported");
        return;
    }
    int64_t at = 0;
    for (int k = 0; k < 3; k++) {
        const fac_dims *d = &qkv[k]->type.dims;
        const int64_t width = d->n == 3 ? d->d[2] : d->d[1] * d->d[3];
        if (bias && d->n == 3) qkv[k] = fac_add(qkv[k], fac_slice(bias, 0, at, at + width, 1));
        at += width;
        qkv[k] = in_heads(qkv[k], heads);
    }
    if (mask) mask = mask_of(n, g, mask, qkv[1], past_key, x[0]->type.dtype);
    fac_value *z = fac_attention(qkv[0], qkv[1], qkv[2], fac_grad_plus(mask, fac_onnx_in(n, x, 5)),
                                 past_key, past_value, NULL, &o);
    y[0] = fac_out_of_heads(z);
    if (n->nout > 1) y[1] = past_key ? fac_value_other(z, 1) : qkv[1];
    if (n->nout > 2) y[2] = past_key ? fac_value_other(z, 2) : qkv[2];
}
