/* ONNX's MelWeightMatrix: triangles over whole bins of a spectrum. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "ops/host_list.h"
#include "ops/shape.h"

#if FAC_INTERFACE
/* W [length/2 + 1, mels]: what a spectrum [.., length/2 + 1] is multiplied with to become mels. The
 * scale is HTK's, 2595 log10(1 + f / 700), without a norm; triangles stand on whole bins,
 * floor((length + 1) f / rate), as ONNX has it (PyTorch and librosa do not: see
 * fac_nn_mel_weights).  mels, length, rate: i64 numbers; low, high: floats, in Hz. A triangle
 * beyond the spectrum is an error of the run. */
fac_value *fac_mel_weights(fac_value *mels, fac_value *length, fac_value *rate, fac_value *low,
                           fac_value *high, fac_dtype dtype);
#endif

typedef struct attrs {
    fac_dtype dtype;
} attrs;
static const fac_attr table[] = { { "dtype", FAC_A_DTYPE, offsetof(attrs, dtype), 0, 0, 0, 0, NULL,
                                    "of the matrix; default f32" },
                                  { 0 } };
static const fac_port in[] = { { "mels", FAC_INTS, FAC_HOST }, { "length", FAC_INTS, FAC_HOST },
                               { "rate", FAC_INTS, 0 },        { "low", FAC_FLOATS, 0 },
                               { "high", FAC_FLOATS, 0 },      { 0 } };
static const fac_port made[] = { { "w", FAC_NUMBERS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const fac_dtype dtype = ((const attrs *)n->attrs)->dtype;
    fac_contents mels, length;
    for (int k = 0; k < 5; k++)
        if (!fac_may_be_one(n->in[k]))
            return fac_fail(n, FAC_E_SHAPE, "%s must be one number", in[k].name);
    int64_t rows = fac_symbol(n->graph, NULL), columns = fac_symbol(n->graph, NULL);
    if (fac_host_numbers(n, 0, &mels)) columns = mels.v[0];
    if (fac_host_numbers(n, 1, &length)) rows = length.v[0] / 2 + 1;
    if ((fac_known_numbers(n->in[0], &mels) && mels.v[0] < 0) ||
        (fac_known_numbers(n->in[1], &length) && length.v[0] < 0))
        return fac_fail(n, FAC_E_ARGUMENT, "mels and length must not be negative");
    n->out[0]->type = (fac_type){ dtype == FAC_NONE ? FAC_F32 : dtype, fac_shape(rows, columns) };
    return true;
}

static double mel(double hz) { return 2595 * log10(1 + hz / 700); }
static double hertz(double m) { return 700 * (pow(10, m / 2595) - 1); }

/* The five numbers. */
typedef struct scale {
    int64_t mels, length, rate;
    double low, high;
} scale;

/* Where triangle ends lie: corner k of mels + 2. */
static int64_t corner(const scale *s, int64_t k) {
    const double low = mel(s->low), high = mel(s->high);
    const double at = hertz(low + (double)k * (high - low) / (double)(s->mels + 2));
    const double bin = floor((double)(s->length + 1) * at / (double)s->rate);
    return bin >= 0 && bin < 0x1p62 ? (int64_t)bin : -1;
}

/* Zeros become w [length/2 + 1, mels]. */
static fac_status triangles(const scale *s, double *w, fac_error *err) {
    const int64_t rows = s->length / 2 + 1;
    for (int64_t m = 0; m < s->mels; m++) {
        const int64_t a = corner(s, m), b = corner(s, m + 1), c = corner(s, m + 2);
        if (a < 0 || b < a || c < b || b >= rows || c > rows)
            return fac_raise(err, FAC_E_ARGUMENT,
                             "mel %lld lies over bins %lld to %lld of a spectrum of %lld",
                             (long long)m, (long long)a, (long long)c, (long long)rows);
        if (a == b) w[b * s->mels + m] = 1;
        for (int64_t k = a; k <= b && a < b; k++)
            w[k * s->mels + m] = (double)(k - a) / (double)(b - a);
        for (int64_t k = b; k < c; k++) w[k * s->mels + m] = (double)(c - k) / (double)(c - b);
    }
    return FAC_OK;
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    const scale s = { r->in[0].i[0], r->in[1].i[0], r->in[2].i[0], r->in[3].f[0], r->in[4].f[0] };
    const int64_t count = fac_dims_count(&r->out[0].type.dims);
    double *w = fac_alloc((size_t)count + 1, sizeof *w);
    if (!w) return fac_raise_memory(err, "%lld weights", (long long)count);
    const fac_status status = triangles(&s, w, err);
    for (int64_t k = 0; k < count; k++) {
        if (r->out[0].f)
            r->out[0].f[k] = w[k];
        else
            r->out[0].i[k] = (int64_t)w[k];
    }
    fac_release(w);
    return status;
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    y[0] = fac_mel_weights(x[0], x[1], x[2], x[3], x[4],
                           fac_onnx_dtype(n, "output_datatype", FAC_F32));
}
static const fac_onnx_attr names[] = { { "output_datatype", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "MelWeightMatrix", 17, 0, names, load, 0 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const char *ins[5];
    if (w->opset < 17) return false;
    for (int k = 0; k < 5; k++) ins[k] = fac_onnx_ranked(w, n->in[k], 0);
    fac_onnx_put(w, "MelWeightMatrix", 5, ins, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_dtype(w, "output_datatype", n->out[0]->type.dtype);
    return true;
}

static const fac_case cases[] = {
    { "mel_weights(i64{8}, i64{16}, i64{8192}, f32(0), f32(4096))", 0, 0, 1e-6 },
    { "mel_weights(i64{4}, i64{32}, i64{8000}, f32(100), f32(3000)) dtype=f64", 0, 0, 1e-9 },
    { "mel_weights(i64{0}, i64{32}, i64{8000}, f32(100), f32(3000))", 0, 0, 0 },
    { 0 }
};

const fac_op fac_op_mel_weights = {
    .name = "mel_weights",
    .doc = "triangles of the mel scale over bins of a spectrum",
    .in = in,
    .out = made,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_mel_weights(fac_value *mels, fac_value *length, fac_value *rate, fac_value *low,
                           fac_value *high, fac_dtype dtype) {
    return fac_emit(&fac_op_mel_weights, &(attrs){ dtype }, 5,
                    (fac_value *[]){ mels, length, rate, low, high });
}
