/* int8:static: weights and activations are bytes, their scales constants.
 *
 * The model stays as it is, in floats; what its layers read and give goes through quantize_linear
 * and dequantize_linear, and weights are stored as bytes (ONNX's QDQ form).  What runs such a model
 * makes integer kernels of it: here, src/passes/quantized/quantized.c.  So bytes are put where
 * these find them: around convolutions and products, sums and products of two such values, means
 * over planes, concats and what only moves elements.  A relu or clip after a layer stays between it
 * and its bytes, whose range begins at 0 then, and what moves elements has the scale of what it
 * moves. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "op_list.h"
#include "passes/passes.h"
#include "passes/quantized/quantized.h"
#include "passes/common/single.h"
#include "quantize/quantize.h"

/* ---- which values become bytes ---- */

static bool is_product(const fac_node *n) {
    return FAC_IS(n, matmul) && n->in[0]->type.dtype == FAC_F32 && n->in[0]->type.dims.n >= 2 &&
           n->in[1]->type.dims.n >= 2;
}

static void want(fac_calibrator *c, const fac_value *v, const fac_value *like) {
    fac_slot *s = fac_slot_of(c, v);
    if (s->bytes || v->time != FAC_RUN || v->type.dtype != FAC_F32) return;
    *s = (fac_slot){ .bytes = true, .like = like };
}
static bool wanted(const fac_calibrator *c, const fac_value *v) {
    return v && fac_slot_of(c, v)->bytes;
}

static bool all_wanted(const fac_calibrator *c, const fac_node *n) {
    for (int k = 0; k < n->nin; k++)
        if (!wanted(c, n->in[k])) return false;
    return true;
}

static bool limits(const fac_node *n) {
    if (FAC_IS(n, relu)) return true;
    return FAC_IS(n, clip) && n->nin == 3 && n->in[1] && n->in[2] && fac_is_number(n->in[1]) &&
           fac_is_number(n->in[2]);
}

/* One relu between a layer and its bytes. */
static void want_limited(fac_calibrator *c, const fac_node *n) {
    const fac_value *x = n->in[0];
    if (!wanted(c, x)) return;
    const bool own = x->node && !fac_slot_of(c, x)->like;
    if (own && fac_used_once(x)) *fac_slot_of(c, x) = (fac_slot){ 0 };
    want(c, n->out[0], NULL);
}

static void want_around(fac_calibrator *c, const fac_node *n) {
    const bool layer = fac_is_weighted(n);
    if (layer && !fac_layer_of(n)) return;
    if (layer || is_product(n)) {
        want(c, n->in[0], NULL);
        if (!layer) want(c, n->in[1], NULL);
        want(c, n->out[0], NULL);
    } else if (limits(n)) {
        want_limited(c, n);
    } else if (fac_picks_elements(n) && wanted(c, n->in[0])) {
        want(c, n->out[0], n->in[0]);
    } else if (FAC_IS(n, add) || FAC_IS(n, mul) || FAC_IS(n, concat)) {
        if (all_wanted(c, n)) want(c, n->out[0], NULL);
    } else if (FAC_IS(n, mean) && wanted(c, n->in[0])) {
        want(c, n->out[0], NULL);
    }
}

static void plan(fac_calibrator *c) {
    for (const fac_node *n = c->model->first; n; n = n->next)
        if (!n->body[0] && n->nout && n->nin && n->in[0] && fac_node_guess(n) == FAC_CERTAIN)
            want_around(c, n);
}

/* ---- layers ---- */

/* A bias counts in steps of x's scale times w's, as i32: where it is much larger than a row of
 * weights, these take larger steps, so that it fits. */
static fac_status smallest_scales(const float *bias, int64_t n, double x, double **out,
                                  fac_error *err) {
    *out = fac_alloc((size_t)n + 1, sizeof **out);
    if (!*out) return fac_raise_memory(err, "scales of weights");
    for (int64_t k = 0; k < n; k++) (*out)[k] = fabs((double)bias[k]) / x / 1073741824.0;
    return FAC_OK;
}

static fac_status bias_bytes(const float *bias, int64_t n, double x, const fac_bytes_weight *w,
                             fac_tensor **q, fac_tensor **scale, fac_error *err) {
    const fac_type type = fac_tensor_type(w->scale);
    const float *from = fac_tensor_data(w->scale);
    int32_t *codes = fac_quantize_tensor(FAC_I32, fac_shape(n), q, err);
    float *steps = codes ? fac_quantize_tensor(FAC_F32, type.dims, scale, err) : NULL;
    if (!steps) return err->status;
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = type.dims.n ? k : 0;
        steps[at] = (float)x * from[at];
        codes[k] = (int32_t)fmin(fmax(nearbyint(bias[k] / steps[at]), INT32_MIN), INT32_MAX);
    }
    return FAC_OK;
}

/* A constant of f32 with as many numbers as the layer has channels. */
static bool is_bias(const fac_value *b, const fac_node *n) {
    if (!b || !b->tensor || b->next) return false;
    if (b->type.dtype != FAC_F32 || b->type.dims.n != 1) return false;
    const fac_value *w = n->in[1];
    const bool last = FAC_IS(n, gemm) && !((const fac_gemm_opts *)n->attrs)->trans_b;
    return b->type.dims.d[0] == w->type.dims.d[last ? 1 : 0];
}

typedef struct parts {
    fac_tensor *bias, *q, *scale; /* f32, i32, f32 */
    double *least;
    fac_bytes_weight w;
} parts;

static void parts_free(parts *p) {
    fac_tensor_free(p->bias);
    fac_tensor_free(p->q);
    fac_tensor_free(p->scale);
    fac_release(p->least);
    fac_bytes_weight_free(&p->w);
}

static fac_status parts_new(fac_calibrator *c, const fac_node *n, parts *p, fac_error *err) {
    const fac_value *b = n->nin > 2 ? n->in[2] : NULL;
    const double x = fac_step_of(c, n->in[0]).scale;
    const int64_t count = is_bias(b, n) ? b->type.dims.d[0] : 0;
    if (count) {
        FAC_TRY(fac_tensor_convert(b->tensor, FAC_F32, &p->bias, err));
        FAC_TRY(smallest_scales(fac_tensor_data(p->bias), count, x, &p->least, err));
    }
    FAC_TRY(fac_bytes_weight_new(&c->how, n, p->least, fac_is_transposed(n), &p->w, err));
    if (!count) return FAC_OK;
    return bias_bytes(fac_tensor_data(p->bias), count, x, &p->w, &p->q, &p->scale, err);
}

/* Where the channels of a weight are counted. */
static int64_t axis_of(const fac_node *n) {
    const bool last = FAC_IS(n, matmul) || fac_is_transposed(n) ||
                      (FAC_IS(n, gemm) && !((const fac_gemm_opts *)n->attrs)->trans_b);
    return last ? 1 : 0;
}

static void emit(fac_integer_work *l, const parts *p, fac_graph *to, fac_value *const in[],
                 fac_value *out[]) {
    enum { INPUTS = 8 };
    const fac_node *n = l->node;
    fac_value *with[INPUTS] = { NULL };
    const fac_dequantize_opts o = { .axis = axis_of(n) };
    const char *name = fac_weight_name(l);
    fac_value *q = fac_quantize_const(to, p->w.q, name, "quantized");
    fac_value *scale = fac_quantize_const(to, p->w.scale, name, "scale");
    fac_value *zero = fac_quantize_const(to, p->w.zero, name, "zero_point");
    memcpy(with, in, (size_t)n->nin * sizeof *with);
    with[1] = fac_dequantize_linear(q, scale, zero, &o);
    if (p->q) {
        const char *bias = n->in[2]->name ? n->in[2]->name : name;
        q = fac_quantize_const(to, p->q, bias, "quantized");
        scale = fac_quantize_const(to, p->scale, bias, "scale");
        with[2] = fac_dequantize_linear(q, scale, NULL, &(fac_dequantize_opts){ 0 });
    }
    if (fac_is_transposed(n)) {
        out[0] = fac_matmul(with[0], with[1]);
        if (with[2]) out[0] = fac_add(out[0], with[2]);
        return;
    }
    fac_node_copy(to, n, with, out);
}

static bool put(fac_calibrator *c, fac_integer_work *l, fac_graph *to, fac_value *const in[],
                fac_value *out[]) {
    parts p = { 0 };
    const bool fits = l->node->nin <= 3 && fac_slot_of(c, l->node->in[0])->bytes;
    if (!fits) return false;
    const fac_status status = parts_new(c, l->node, &p, &c->wrong);
    if (!status) {
        emit(l, &p, to, in, out);
        l->is.weight_sqnr = p.w.sqnr;
        l->is.bytes = (double)fac_type_bytes(&(fac_type){ FAC_I8, l->node->in[1]->type.dims });
    }
    parts_free(&p);
    return !status;
}

const fac_scheme_row fac_scheme_static = {
    .name = "int8:static",
    .about = "weights and activations are bytes; ranges come from --data",
    .calibrates = true,
    .takes = fac_is_weighted,
    .plan = plan,
    .put = put,
};
