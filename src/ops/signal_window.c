/* Windows of spectra: ONNX's HannWindow, HammingWindow and BlackmanWindow. */
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "ops/constant.h"
#include "ops/host_list.h"
#include "ops/shape.h"
#include "ops/spectrum.h"

#if FAC_INTERFACE
typedef enum fac_signal_window_kind {
    FAC_WINDOW_HANN,
    FAC_WINDOW_HAMMING,
    FAC_WINDOW_BLACKMAN
} fac_signal_window_kind;
/* y[n] = a0 - a1 cos(2 pi n / M) + a2 cos(4 pi n / M), n = 0 .. size - 1; M is size, which spectra
 * want, or size - 1 with symmetric.  Hann .5 .5 0; Hamming 25/46 21/46 0, as ONNX has it (PyTorch
 * .54 .46); Blackman .42 .5 .08. size: an i64.  Any number type; a symmetric window of one element
 * is 1. */
fac_value *fac_signal_window(fac_value *size, fac_signal_window_kind kind, bool symmetric,
                             fac_dtype dtype);
#endif

typedef struct attrs {
    int kind;
    bool symmetric;
    fac_dtype dtype;
} attrs;
static const char *const kinds[] = { "hann", "hamming", "blackman", NULL };
static const fac_attr table[] = { { "kind", FAC_A_ENUM, offsetof(attrs, kind), 0, 0, 0, 0, kinds,
                                    "whose coefficients" },
                                  { "symmetric", FAC_A_FLAG, offsetof(attrs, symmetric), 0, 0, 0, 0,
                                    NULL, "ends are alike; else it is periodic" },
                                  { "dtype", FAC_A_DTYPE, offsetof(attrs, dtype), 0, 0, 0, 0, NULL,
                                    "of the window; default f32" },
                                  { 0 } };
static const fac_port in[] = { { "size", FAC_INTS, FAC_HOST }, { 0 } };
static const fac_port made[] = { { "y", FAC_NUMBERS, 0 }, { 0 } };

static bool infer(fac_node *n) {
    const fac_dtype dtype = ((const attrs *)n->attrs)->dtype;
    fac_contents size;
    if (!fac_list_may_have(n->in[0], 1)) return fac_fail(n, FAC_E_SHAPE, "size must be one number");
    const bool known = fac_known(n->in[0], &size);
    if (known && !size.symbolic && size.v[0] < 0)
        return fac_fail(n, FAC_E_ARGUMENT, "a size of %lld", (long long)size.v[0]);
    const int64_t count = known ? size.v[0] : fac_symbol(n->graph, NULL);
    n->out[0]->type = (fac_type){ dtype == FAC_NONE ? FAC_F32 : dtype, fac_shape(count) };
    return true;
}

static double window_at(const attrs *a, int64_t k, int64_t size) {
    static const double of[][3] = { { 0.5, 0.5, 0 },
                                    { 25.0 / 46, 21.0 / 46, 0 },
                                    { 0.42, 0.5, 0.08 } };
    const double *c = of[a->kind];
    const int64_t M = a->symmetric ? size - 1 : size;
    if (M < 1) return 1;
    return c[0] - c[1] * fac_turn_cos(k % M, M) + c[2] * fac_turn_cos(2 * k % M, M);
}

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const int64_t size = r->out[0].type.dims.d[0];
    for (int64_t k = 0; k < size; k++) {
        const double w = window_at(r->attrs, k, size);
        if (r->out[0].f)
            r->out[0].f[k] = w;
        else
            r->out[0].i[k] = (int64_t)w;
    }
    return FAC_OK;
}

static int64_t expands(const fac_node *n) { return n->out[0]->type.dims.d[0] >= 0; }

/* A constant, where its size is known. */
static void expand(const fac_node *n, fac_value *out[]) {
    const int64_t size = n->out[0]->type.dims.d[0];
    double *w = fac_alloc((size_t)size + 1, sizeof *w);
    if (!w) {
        out[0] = fac_fail_graph(n->graph, FAC_E_NOMEM, "no memory for a window of %lld",
                                (long long)size);
        return;
    }
    for (int64_t k = 0; k < size; k++) w[k] = window_at(n->attrs, k, size);
    out[0] = fac_constant(n->graph, n->out[0]->type.dtype, fac_shape(size), w);
    fac_release(w);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    (void)g;
    const int kind = !strcmp(n->type, "HannWindow")      ? FAC_WINDOW_HANN
                     : !strcmp(n->type, "HammingWindow") ? FAC_WINDOW_HAMMING
                                                         : FAC_WINDOW_BLACKMAN;
    y[0] =
        fac_signal_window(x[0], (fac_signal_window_kind)kind, fac_onnx_int(n, "periodic", 1) == 0,
                          fac_onnx_dtype(n, "output_datatype", FAC_F32));
}
static const fac_onnx_attr names[] = { { "periodic", NULL }, { "output_datatype", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "HannWindow", 17, 0, names, load, 0 },
                                 { "", "HammingWindow", 17, 0, names, load, 0 },
                                 { "", "BlackmanWindow", 17, 0, names, load, 0 },
                                 { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    static const char *const types[] = { "HannWindow", "HammingWindow", "BlackmanWindow" };
    const attrs *a = n->attrs;
    if (w->opset < 17) return false;
    const char *size = fac_onnx_ranked(w, n->in[0], 0);
    fac_onnx_put(w, types[a->kind], 1, &size, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_int(w, "periodic", !a->symmetric);
    fac_onnx_put_dtype(w, "output_datatype", n->out[0]->type.dtype);
    return true;
}

static const fac_case cases[] = { { "signal_window(i64{8})", 0, 0, 1e-6 },
                                  { "signal_window(i64{9}) kind=hamming symmetric", 0, 0, 1e-6 },
                                  { "signal_window(i32{7}) kind=blackman dtype=f64", 0, 0, 1e-12 },
                                  { "signal_window(i64{1}) symmetric dtype=f16", 0, 0, 1e-3 },
                                  { "signal_window(i64{0})", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_signal_window = {
    .name = "signal_window",
    .doc = "Hann, Hamming and Blackman windows",
    .in = in,
    .out = made,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .is = FAC_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .expands = expands,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_signal_window(fac_value *size, fac_signal_window_kind kind, bool symmetric,
                             fac_dtype dtype) {
    return fac_emit(&fac_op_signal_window, &(attrs){ kind, symmetric, dtype }, 1, &size);
}
