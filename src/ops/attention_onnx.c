/* Attention as ONNX writes it: windows on both sides become masks, and older opsets spell it out.
 */
#include <math.h>
#include "facula/ops.h"
#include "op_list.h"
#include "ops/attention.h"
#include "ops/known.h"
#include "ops/shape.h"

/* A window to the left of causal queries is the op's own; any other goes into the mask. */
static fac_value *windowed(fac_attention_opts *o, fac_value *const x[], int64_t left,
                           int64_t right) {
    fac_value *mask = x[FAC_ATTENTION_MASK];
    if (right == 0) o->causal = true;
    if (o->causal && left >= 0) o->window = left + 1;
    const fac_dims *k = &x[FAC_ATTENTION_K]->type.dims;
    if (o->causal || (left < 0 && right < 0) || k->n < 3) return mask;
    const fac_attention_masks masks = { .past = x[FAC_ATTENTION_PAST_KEY],
                                        .lengths = x[FAC_ATTENTION_LENGTHS] };
    fac_value *q = fac_attention_heads(x[FAC_ATTENTION_Q], o->q_heads);
    fac_value *keys = fac_attention_heads(x[FAC_ATTENTION_K], o->kv_heads);
    fac_value *seen = fac_attention_within(&masks, q, keys, left, right);
    mask = fac_attention_filled(mask, seen, seen->type.dims.n - 1);
    if (!mask || mask->type.dtype == FAC_BOOL) return fac_attention_both(seen, mask);
    return fac_where(seen, mask, fac_number(mask->graph, mask->type.dtype, -INFINITY));
}

static fac_value *as(fac_value *v, fac_dtype dtype) {
    return !v || v->type.dtype == dtype ? v : fac_cast(v, dtype);
}

/* Numbers of any type are added to the scores. */
static fac_value *added(fac_value *mask, const fac_value *q) {
    return mask && mask->type.dtype == FAC_BOOL ? mask : as(mask, q->type.dtype);
}

/* The type that holds numbers of both. */
static fac_dtype wider(fac_dtype a, fac_dtype b) {
    const int bits = fac_dtype_get(a)->bits, other = fac_dtype_get(b)->bits;
    if (a == b) return a;
    if (bits == other) return FAC_F32; /* f16 and bf16 */
    return bits > other ? a : b;
}

/* Values may have another type than queries and keys.  All is then computed in the wider one, and
 * what comes out has ONNX's: present values that of values, the rest that of queries. */
static void of_types(const fac_onnx_node *n, const fac_attention_opts *o, int inputs,
                     fac_value *const in[], fac_value *y[]) {
    const fac_dtype q = in[FAC_ATTENTION_Q]->type.dtype, v = in[FAC_ATTENTION_V]->type.dtype;
    fac_value *with[FAC_ONNX_ROOM] = { NULL };
    for (int k = 0; k < inputs; k++)
        with[k] = k == FAC_ATTENTION_LENGTHS ||
                          (k == FAC_ATTENTION_MASK && in[k] && in[k]->type.dtype == FAC_BOOL)
                      ? in[k]
                      : as(in[k], wider(q, v));
    y[0] = fac_emit(&fac_op_attention, o, inputs, with);
    for (int k = 1; k < n->nout; k++) y[k] = fac_value_other(y[0], k);
    for (int k = 0; k < n->nout; k++) y[k] = as(y[k], k == 2 ? v : q);
}

void fac_load_attention(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                        fac_value *y[]) {
    fac_attention_opts o = { .q_heads = fac_onnx_int(n, "q_num_heads", 0),
                             .kv_heads = fac_onnx_int(n, "kv_num_heads", 0),
                             .scale = fac_onnx_real(n, "scale", 0),
                             .softcap = fac_onnx_real(n, "softcap", 0),
                             .causal = fac_onnx_int(n, "is_causal", 0) != 0,
                             .precision = fac_onnx_dtype(n, "softmax_precision", FAC_NONE) };
    const int64_t mode = fac_onnx_int(n, "qk_matmul_output_mode", 0);
    const int64_t left = fac_onnx_int(n, "left_window_size", -1);
    const int64_t right = fac_onnx_int(n, "right_window_size", -1);
    fac_value *with[FAC_ONNX_ROOM] = { NULL };
    for (int k = 0; k < n->nin && k < FAC_ONNX_ROOM; k++) with[k] = x[k];
    if (left < -1 || right < -1)
        y[0] = fac_fail_graph(g, FAC_E_FORMAT,
                              "Attention: a window of %lld and %lld: expected -1 or more",
                              (long long)left, (long long)right);
    else if (mode < 0 || mode > FAC_SCORES_SOFTMAX)
        y[0] = fac_fail_graph(g, FAC_E_FORMAT, "Attention: qk_matmul_output_mode is %lld",
                              (long long)mode);
    else if (fac_onnx_has(n, "scale") && o.scale == 0)
        y[0] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "Attention: a scale of 0");
    else {
        o.scores = (int)mode;
        with[FAC_ATTENTION_MASK] = added(with[FAC_ATTENTION_MASK], x[0]);
        with[FAC_ATTENTION_MASK] = windowed(&o, with, left, right);
        const bool masked = with[FAC_ATTENTION_MASK] && n->nin <= FAC_ATTENTION_MASK;
        of_types(n, &o, masked ? FAC_ATTENTION_MASK + 1 : n->nin, with, y);
        return;
    }
    for (int k = 1; k < n->nout; k++) y[k] = fac_value_other(y[0], k);
}

/* ONNX takes operands of three dims or of four, not some of each. */
static bool same_ranks(const fac_node *n) {
    const int rank = n->in[FAC_ATTENTION_Q]->type.dims.n;
    return n->in[FAC_ATTENTION_K]->type.dims.n == rank &&
           n->in[FAC_ATTENTION_V]->type.dims.n == rank;
}

/* ONNX has it since opset 23, with lengths and short masks since 24; before, it is expanded. */
bool fac_save_attention(const fac_onnx_writer *w, const fac_node *n) {
    const fac_attention_opts *o = n->attrs;
    const fac_dims *mask = n->in[FAC_ATTENTION_MASK] ? &n->in[FAC_ATTENTION_MASK]->type.dims : NULL;
    const bool short_mask = mask && fac_differ(mask->d[mask->n - 1], n->out[3]->type.dims.d[3]);
    const char *ins[FAC_ATTENTION_INPUTS], *outs[4];
    if (fac_onnx_name(w, n->out[4]) || (o->window && w->opset < 25)) return false;
    if (!same_ranks(n)) return false;
    if (mask && mask->n > 4) return false; /* the expansion repeats it */
    if (w->opset < 23 || ((short_mask || n->in[FAC_ATTENTION_LENGTHS]) && w->opset < 24))
        return false;
    for (int k = 0; k < FAC_ATTENTION_INPUTS; k++) ins[k] = fac_onnx_name(w, n->in[k]);
    for (int k = 0; k < 4; k++) outs[k] = fac_onnx_name(w, n->out[k]);
    fac_onnx_put(w, "Attention", FAC_ATTENTION_INPUTS, ins, outs[0] ? outs[0] : "");
    for (int k = 1; k < 4; k++) fac_onnx_put_out(w, outs[k]);
    if (o->window) fac_onnx_put_int(w, "left_window_size", o->window - 1);
    if (o->q_heads) fac_onnx_put_int(w, "q_num_heads", o->q_heads);
    if (o->kv_heads) fac_onnx_put_int(w, "kv_num_heads", o->kv_heads);
    if (o->scale != 0) fac_onnx_put_real(w, "scale", o->scale);
    if (o->softcap > 0) fac_onnx_put_real(w, "softcap", o->softcap);
    if (o->causal) fac_onnx_put_int(w, "is_causal", 1);
    if (o->scores) fac_onnx_put_int(w, "qk_matmul_output_mode", o->scores);
    if (o->precision) fac_onnx_put_dtype(w, "softmax_precision", o->precision);
    return true;
}
