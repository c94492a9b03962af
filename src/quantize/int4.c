/* int4:block32: weights of products have 4 bits, each 32 along a sum with a scale and a zero
 * point of their own (matmul_nbits, ONNX Runtime's MatMulNBits).  Convolutions stay floats. */
#include <float.h>
#include <math.h>
#include "base/error.h"
#include "op_list.h"
#include "quantize/quantize.h"

enum { BLOCK = 32, MOST = 15 };

static bool takes(const fac_node *n) { return fac_is_weighted(n) && !FAC_IS(n, conv2d); }

typedef struct packed {
    fac_tensor *q, *scale, *zero;
    double signal, error;
} packed;

/* A row of a weight, and where it is packed to. */
typedef struct line {
    const float *at;
    int64_t terms, step;
    uint8_t *codes, *zeros;
    float *scales;
} line;

static void put_code(uint8_t *to, int64_t k, int code) {
    to[k / 2] = (uint8_t)(to[k / 2] | code << (k % 2 * 4));
}

static void pack_block(const line *l, int64_t block, packed *p) {
    const int64_t from = block * BLOCK, to = from + BLOCK < l->terms ? from + BLOCK : l->terms;
    double lo = 0, hi = 0;
    for (int64_t k = from; k < to; k++) { /* with fmin and fmax gcc 12 for aarch64 gives up */
        const double x = (double)l->at[k * l->step];
        if (x < lo) lo = x;
        if (x > hi) hi = x;
    }
    float scale = (float)((hi - lo) / MOST);
    if (scale < FLT_MIN) scale = 1;
    const int zero = (int)fmin(fmax(nearbyint(-lo / (double)scale), 0), MOST);
    l->scales[block] = scale;
    put_code(l->zeros, block, zero);
    for (int64_t k = from; k < from + BLOCK; k++) {
        const double x = k < to ? (double)l->at[k * l->step] : 0;
        const double code = fmin(fmax(nearbyint(x / (double)scale) + zero, 0), MOST);
        const double off = x - (code - zero) * (double)scale;
        put_code(l->codes, k, (int)code);
        p->signal += x * x;
        p->error += off * off;
    }
}

static fac_status pack(const fac_rows *w, packed *p, fac_error *err) {
    const int64_t blocks = (w->terms + BLOCK - 1) / BLOCK, bytes = BLOCK / 2;
    const int64_t zero_bytes = (blocks + 1) / 2;
    uint8_t *q = fac_quantize_tensor(FAC_U8, fac_shape(w->rows, blocks, bytes), &p->q, err);
    if (!q) return err->status;
    float *scale = fac_quantize_tensor(FAC_F32, fac_shape(w->rows, blocks), &p->scale, err);
    if (!scale) return err->status;
    uint8_t *zero = fac_quantize_tensor(FAC_U8, fac_shape(w->rows, zero_bytes), &p->zero, err);
    if (!zero) return err->status;
    for (int64_t r = 0; r < w->rows; r++) {
        const line l = {
            w->at + r * w->row_step, w->terms,          w->term_step, q + r * blocks * bytes,
            zero + r * zero_bytes,   scale + r * blocks
        };
        for (int64_t b = 0; b < blocks; b++) pack_block(&l, b, p);
    }
    return FAC_OK;
}

static void emit(fac_integer_work *l, const packed *p, const fac_nbits_opts *o, fac_graph *to,
                 fac_value *const in[], fac_value *out[]) {
    const char *name = fac_weight_name(l);
    fac_value *q = fac_quantize_const(to, p->q, name, "quantized");
    fac_value *scale = fac_quantize_const(to, p->scale, name, "scale");
    fac_value *zero = fac_quantize_const(to, p->zero, name, "zero_point");
    fac_value *bias = l->node->nin > 2 ? in[2] : NULL;
    const bool fits = bias && bias->type.dims.n == 1 && bias->type.dims.d[0] == o->n;
    out[0] = fac_matmul_nbits(in[0], q, scale, zero, fits ? bias : NULL, o);
    if (bias && !fits) out[0] = fac_add(out[0], bias);
}

static bool put(fac_calibrator *c, fac_integer_work *l, fac_graph *to, fac_value *const in[],
                fac_value *out[]) {
    fac_rows w;
    packed p = { 0 };
    if (fac_rows_of(l->node, &w, &c->wrong)) return false;
    const fac_nbits_opts o = { .k = w.terms, .n = w.rows, .bits = 4, .block = BLOCK };
    const fac_status status = pack(&w, &p, &c->wrong);
    if (!status) {
        emit(l, &p, &o, to, in, out);
        l->is.weight_sqnr = fac_decibels(p.signal, p.error);
        const fac_type types[] = { fac_tensor_type(p.q), fac_tensor_type(p.scale),
                                   fac_tensor_type(p.zero) };
        l->is.bytes = 0;
        for (int k = 0; k < 3; k++) l->is.bytes += (double)fac_type_bytes(&types[k]);
    }
    fac_tensor_free(p.q);
    fac_tensor_free(p.scale);
    fac_tensor_free(p.zero);
    fac_rows_free(&w);
    return !status;
}

const fac_scheme_row fac_scheme_int4 = {
    .name = "int4:block32",
    .about = "weights of products have 4 bits, 32 of them a scale; convolutions stay floats",
    .takes = takes,
    .put = put,
};
