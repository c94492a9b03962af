/* Short-time Fourier transforms, as ONNX's STFT means them: no padding, no centring, no norm. */
#include <string.h>
#include "base/memory.h"
#include "ops/constant.h"
#include "ops/cost.h"
#include "ops/grad.h"
#include "ops/host_list.h"
#include "ops/shape.h"
#include "ops/spectrum.h"

#if FAC_INTERFACE
/* y[b, 0 | 1, k, t] = real | imaginary part of  sum over i < length of window[i] x[b, t step + i]
 * e^(-2 pi i k sqrt(-1) / length)
 *   x B,L real or B,2,L complex   y B,2,K,T   floats
 * T = (L - length) / step + 1, what is left over is dropped.  K = length/2 + 1 with onesided (of
 * real signals), else length.
 *   window         floats [length], or fewer, which then lie in the middle; NULL: ones
 *   step, length   i64 numbers; length NULL: the window's
 * FAC_E_SHAPE when x is shorter than a frame. */
fac_value *fac_stft(fac_value *x, fac_value *window, fac_value *step, fac_value *length,
                    bool onesided);
#endif

typedef struct attrs {
    bool onesided;
} attrs;
static const fac_attr table[] = { { "onesided", FAC_A_FLAG, offsetof(attrs, onesided), 0, 0, 0, 0,
                                    NULL, "half of the spectrum, of real signals" },
                                  { 0 } };
static const fac_port in[] = { { "x", FAC_FLOATS, 0 },
                               { "window", FAC_FLOATS, FAC_OPTIONAL },
                               { "step", FAC_INTS, FAC_HOST },
                               { "length", FAC_INTS, FAC_HOST | FAC_OPTIONAL },
                               { 0 } };
enum { WINDOW = 1, STEP, LENGTH };

/* A steering number; -1: not known. */
static int64_t number_of(const fac_node *n, int port) {
    fac_contents c;
    return fac_host_numbers(n, port, &c) && c.n == 1 ? c.v[0] : -1;
}

static int64_t length_of(const fac_node *n) {
    if (n->in[LENGTH]) return number_of(n, LENGTH);
    return n->in[WINDOW] ? n->in[WINDOW]->type.dims.d[0] : -1;
}

static bool infer(fac_node *n) {
    const fac_dims *x = &n->in[0]->type.dims;
    fac_graph *g = n->graph;
    const bool onesided = ((const attrs *)n->attrs)->onesided, complex = x->n == 3;
    if (x->n != 2 && !(complex && x->d[1] == 2))
        return fac_fail(n, FAC_E_SHAPE, "x must be B,L or B,2,L");
    if (complex && onesided)
        return fac_fail(n, FAC_E_ARGUMENT, "complex signals have no one-sided spectrum");
    if (!n->in[WINDOW] && !n->in[LENGTH])
        return fac_fail(n, FAC_E_ARGUMENT, "it needs a window or a length");
    if (n->in[WINDOW] && n->in[WINDOW]->type.dims.n != 1)
        return fac_fail(n, FAC_E_SHAPE, "window must have one dim");
    for (int k = STEP; k <= LENGTH; k++)
        if (n->in[k] && !fac_list_may_have(n->in[k], 1))
            return fac_fail(n, FAC_E_SHAPE, "%s must be one number", in[k].name);
    const int64_t length = length_of(n), step = number_of(n, STEP), size = x->d[x->n - 1];
    fac_contents c;
    if ((fac_known_numbers(n->in[STEP], &c) && c.v[0] < 1) ||
        (fac_known_numbers(n->in[LENGTH], &c) && c.v[0] < 1))
        return fac_fail(n, FAC_E_ARGUMENT, "step and length must be 1 or more");
    if (length == 0) return fac_fail(n, FAC_E_SHAPE, "a window without elements");
    if (length > 0 && n->in[WINDOW] && n->in[WINDOW]->type.dims.d[0] > length)
        return fac_fail(n, FAC_E_SHAPE, "a window of %lld, frames of %lld",
                        (long long)n->in[WINDOW]->type.dims.d[0], (long long)length);
    int64_t bins = fac_symbol(g, NULL), frames = fac_symbol(g, NULL);
    if (length > 0) bins = onesided ? length / 2 + 1 : length;
    if (length > 0 && step > 0) {
        if (size >= 0 && size < length)
            return fac_fail(n, FAC_E_SHAPE, "%lld samples are less than a frame of %lld",
                            (long long)size, (long long)length);
        frames =
            fac_size_sum(g, fac_size_quotient(g, fac_size_difference(g, size, length), step), 1);
    }
    n->out[0]->type = (fac_type){ n->in[0]->type.dtype, fac_shape(x->d[0], 2, bins, frames) };
    return true;
}

/* ---- meaning ---- */

static fac_status ref(const fac_ref *r, fac_error *err) {
    (void)err;
    const fac_dims *x = &r->in[0].type.dims, *y = &r->out[0].type.dims,
                   *w = &r->in[WINDOW].type.dims;
    const double *window = r->in[WINDOW].f;
    const int64_t N = r->in[LENGTH].i ? r->in[LENGTH].i[0] : w->d[0], H = r->in[STEP].i[0],
                  L = x->d[x->n - 1];
    const int64_t wide = window ? w->d[0] : N, from = (N - wide) / 2, K = y->d[2], T = y->d[3],
                  parts = x->n - 1;
    for (int64_t b = 0; b < x->d[0]; b++)
        for (int64_t k = 0; k < K; k++)
            for (int64_t t = 0; t < T; t++) {
                const double *at = r->in[0].f + b * parts * L + t * H + from;
                double re = 0, im = 0;
                for (int64_t i = 0; i < wide; i++) {
                    const int64_t turn = (i + from) * k % N;
                    const double c = fac_turn_cos(turn, N), s = -fac_turn_sin(turn, N),
                                 v = window ? window[i] : 1;
                    re += v * at[i] * c;
                    im += v * at[i] * s;
                    if (parts < 2) continue;
                    re -= v * at[L + i] * s;
                    im += v * at[L + i] * c;
                }
                r->out[0].f[((b * 2 + 0) * K + k) * T + t] = re;
                r->out[0].f[((b * 2 + 1) * K + k) * T + t] = im;
            }
    return FAC_OK;
}

/* ---- as a convolution with the basis ---- */

/* [2 K, parts, N]: real rows, then imaginary ones. */
static fac_value *basis(const fac_node *n, fac_dtype dtype, int64_t N, int64_t K, int64_t parts) {
    double *to = fac_alloc((size_t)(2 * K * parts * N) + 1, sizeof *to);
    if (!to)
        return fac_fail_graph(n->graph, FAC_E_NOMEM,
                              "stft: no memory for a basis of %lld frequencies", (long long)K);
    for (int64_t k = 0; k < K; k++)
        for (int64_t i = 0; i < N; i++) {
            const double c = fac_turn_cos(i * k % N, N), s = -fac_turn_sin(i * k % N, N);
            double *re = to + k * parts * N + i, *im = to + (K + k) * parts * N + i;
            re[0] = c;
            im[0] = s;
            if (parts > 1) {
                re[N] = -s;
                im[N] = c;
            }
        }
    fac_value *v = fac_constant(n->graph, dtype, fac_shape(2 * K, parts, N), to);
    fac_release(to);
    return v;
}

/* The window in the middle of a frame. */
static fac_value *framed(fac_value *window, int64_t N) {
    const int64_t size = window->type.dims.d[0], from = (N - size) / 2;
    if (size == N) return window;
    return fac_pad(window, fac_ints(window->graph, fac_shape(from, N - size - from)), NULL, NULL,
                   FAC_PAD_CONSTANT);
}

static int64_t expands(const fac_node *n) {
    const int64_t window = n->in[WINDOW] ? n->in[WINDOW]->type.dims.d[0] : 0;
    return window >= 0 && length_of(n) > 0 && number_of(n, STEP) > 0 ? 8 : 0;
}

static void expand(const fac_node *n, fac_value *out[]) {
    const fac_dims *x = &n->in[0]->type.dims, *y = &n->out[0]->type.dims;
    const int64_t N = length_of(n), parts = x->n - 1;
    fac_value *wave = parts > 1 ? n->in[0] : fac_unsqueeze(n->in[0], fac_shape(1));
    if (N < 1 || number_of(n, STEP) < 1) {
        out[0] =
            fac_fail_graph(n->graph, FAC_E_UNSUPPORTED, "stft: its step and length are not known");
        return;
    }
    fac_value *w = basis(n, n->in[0]->type.dtype, N, y->d[2], parts);
    if (n->in[WINDOW]) w = fac_mul(w, fac_grad_as(framed(n->in[WINDOW], N), w->type.dtype));
    fac_value *both = fac_conv1d(wave, w, NULL, &(fac_conv1d_opts){ .stride = number_of(n, STEP) });
    fac_value *const halves[] = { fac_unsqueeze(fac_slice(both, 1, 0, y->d[2], 1), fac_shape(1)),
                                  fac_unsqueeze(fac_slice(both, 1, y->d[2], 2 * y->d[2], 1),
                                                fac_shape(1)) };
    if (fac_dims_known(y, 0))
        out[0] = fac_shaped(both, *y);
    else
        out[0] = fac_concat(halves, 2, 1);
}

static void cost(const fac_node *n, fac_cost *c) {
    const int64_t N = length_of(n);
    fac_cost_bytes(n, c);
    c->macs = fac_cost_count(n->out[0]) * (N > 0 ? (double)N : 0);
    c->other = 0;
}

/* ---- ONNX: signals are B,L,1 or B,L,2, results B,T,K,2 ---- */

/* Of signals that are real or complex, which a run decides, complex ones. */
static fac_value *pairs_of(fac_value *signal) {
    fac_value *none = fac_full(fac_shape_of(signal), signal->type.dtype, 0);
    return fac_slice(fac_concat((fac_value *[]){ signal, none }, 2, 2), 2, 0, 2, 1);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]) {
    fac_value *signal = x[0], *window = n->nin > 2 ? x[2] : NULL,
              *length = n->nin > 3 ? x[3] : NULL;
    const bool onesided = fac_onnx_int(n, "onesided", 1) != 0;
    const fac_dims *d = &signal->type.dims;
    const int64_t parts = d->n == 3 ? d->d[2] : 1;
    const bool real = parts == 1 || (parts < 0 && onesided);
    if (d->n == 3 && parts < 0 && !onesided) signal = pairs_of(signal);
    if (d->n == 3 && real) signal = fac_squeeze(signal, fac_shape(2));
    if (d->n == 3 && !real) signal = fac_transpose(signal, fac_shape(0, 2, 1));
    if (d->n != 2 && !(d->n == 3 && parts <= 2 && parts))
        y[0] = fac_fail_graph(g, FAC_E_SHAPE, "STFT: the signal must be B,L or B,L,1 or B,L,2");
    else
        y[0] = fac_transpose(fac_stft(signal, window, x[1], length, onesided && real),
                             fac_shape(0, 3, 2, 1));
}
static const fac_onnx_attr names[] = { { "onesided", NULL }, { 0 } };
static const fac_onnx onnx[] = { { "", "STFT", 17, 0, names, load, 2 }, { 0 } };
static bool save(const fac_onnx_writer *w, const fac_node *n) {
    const int64_t to_pairs[] = { 0, 2, 1 }, back[] = { 0, 3, 2, 1 };
    const fac_value *window = n->in[WINDOW];
    const bool complex = n->in[0]->type.dims.n == 3;
    if (w->opset < 17 || (window && window->type.dims.d[0] != length_of(n))) return false;
    const char *x = fac_onnx_name(w, n->in[0]);
    if (complex) {
        x = fac_onnx_put(w, "Transpose", 1, &x, NULL);
        fac_onnx_put_ints(w, "perm", 3, to_pairs);
    }
    const char *ins[] = { x, fac_onnx_ranked(w, n->in[STEP], 0), fac_onnx_name(w, window),
                          n->in[LENGTH] ? fac_onnx_ranked(w, n->in[LENGTH], 0) : NULL };
    const char *y = fac_onnx_put(w, "STFT", 4, ins, NULL);
    fac_onnx_put_int(w, "onesided", ((const attrs *)n->attrs)->onesided);
    fac_onnx_put(w, "Transpose", 1, &y, fac_onnx_name(w, n->out[0]));
    fac_onnx_put_ints(w, "perm", 4, back);
    return true;
}

static const fac_case cases[] = { { "stft(f32[2,40], f32[8], i64{3}, -) onesided", -1, 1, 1e-5 },
                                  { "stft(f32[1,30], f32[5], i64{4}, i64{9}) onesided", -1, 1,
                                    1e-5 },
                                  { "stft(f32[2,2,20], f32[6], i64{5}, i64{6})", -1, 1, 1e-5 },
                                  { "stft(f32[1,20], -, i64{2}, i64{7})", -1, 1, 1e-5 },
                                  { "stft(f16[1,20], f16[8], i64{4}, -) onesided", -1, 1, 4e-3 },
                                  { "stft(f32[0,20], f32[8], i64{4}, -) onesided", 0, 0, 0 },
                                  { 0 } };

const fac_op fac_op_stft = {
    .name = "stft",
    .doc = "short-time Fourier transforms",
    .in = in,
    .out = fac_ports_y,
    .attrs = table,
    .attrs_size = sizeof(attrs),
    .infer = infer,
    .ref = ref,
    .expand = expand,
    .expands = expands,
    .cost = cost,
    .onnx = onnx,
    .save = save,
    .cases = cases,
    .rounding = { .rule = FAC_ROUND_NONE },
};
fac_value *fac_stft(fac_value *x, fac_value *window, fac_value *step, fac_value *length,
                    bool onesided) {
    return fac_emit(&fac_op_stft, &(attrs){ onesided }, 4,
                    (fac_value *[]){ x, window, step, length });
}
