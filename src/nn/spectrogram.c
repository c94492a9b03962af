/* Sounds become pictures: what stands before a network that listens. */
#include <math.h>
#include "base/error.h"
#include "graph/graph_internal.h"
#include "facula/data/sound.h"
#include "nn/sound.h"
#include "ops/shape.h"

/* A tensor of f64, whose reference this takes, as a constant of x's type; or the error that was
 * met. */
static fac_value *constant(const fac_value *x, fac_tensor *wide, fac_status status,
                           fac_error *err) {
    fac_tensor *t = NULL;
    if (!status) status = fac_tensor_convert(wide, x->type.dtype, &t, err);
    fac_tensor_free(wide);
    fac_value *v =
        status ? fac_fail_graph(x->graph, status, "%s", err->text) : fac_const(x->graph, t);
    fac_tensor_free(t);
    return v;
}

static fac_value *wrong(fac_value *x, const char *what) {
    return fac_fail_graph(x->graph, FAC_E_ARGUMENT, "%s", what);
}

/* ---- spectrograms ---- */

/* B,K,T: power of the frames. */
static fac_value *power(fac_value *x, const fac_nn_spectrogram_opts *o) {
    fac_graph *g = x->graph;
    const int64_t half = o->length / 2, hop = o->hop ? o->hop : o->length / 4;
    if (!o->no_center)
        x = fac_pad(x, fac_ints(g, fac_shape(half, half)), NULL, fac_ints(g, fac_shape(1)),
                    o->zeros ? FAC_PAD_CONSTANT : FAC_PAD_REFLECT);
    fac_value *size = fac_number(g, FAC_I64, o->window ? o->window : o->length);
    fac_value *window = fac_signal_window(size, FAC_WINDOW_HANN, false, x->type.dtype);
    fac_value *step = fac_number(g, FAC_I64, (double)hop),
              *length = fac_number(g, FAC_I64, o->length);
    return fac_reduce_sum_square(fac_stft(x, window, step, length, true), fac_shape(1), false);
}

/* log max(p, least), or, counted from the value of silence, which is 0 then whatever the rounding.
 */
static fac_value *log_from(fac_value *p, double least, bool from_silence) {
    if (!from_silence) return fac_log(fac_max(p, fac_number_as(p, least)));
    return fac_log(fac_max(fac_mul(p, fac_number_as(p, 1 / least)), fac_number_as(p, 1)));
}

/* Decibels, not below the clip's largest by more than top. */
static fac_value *decibels(fac_value *p, double top, bool from_silence) {
    const fac_dims clip = fac_shape(1, 2);
    fac_value *db = fac_mul(log_from(p, 1e-10, from_silence), fac_number_as(p, 10 / log(10)));
    return fac_max(db, fac_sub(fac_reduce_max(db, clip, true), fac_number_as(p, top)));
}

/* Normalization takes any constant off, so silence may be 0 there: mean and deviation of many equal
 * numbers other than 0 are rounding, of which a division by nearly nothing makes a picture. */
static fac_value *loudness(fac_value *p, const fac_nn_spectrogram_opts *o) {
    switch (o->loudness) {
    case FAC_LOUDNESS_LOG:
        if (o->normalize)
            return fac_log(fac_add(fac_mul(p, fac_number_as(p, 1e6)), fac_number_as(p, 1)));
        return fac_log(fac_add(p, fac_number_as(p, 1e-6)));
    case FAC_LOUDNESS_DB:
        return decibels(p, o->top_db > 0 ? o->top_db : 80, o->normalize);
    case FAC_LOUDNESS_MAGNITUDE:
        return fac_sqrt(p);
    default:
        return p;
    }
}

/* Silence has no deviation. */
static fac_value *normalized(fac_value *v, bool per_band) {
    const fac_dims clip = fac_shape(1, 2);
    fac_value *centred = fac_sub(v, fac_mean(v, per_band ? fac_shape(2) : clip, true));
    fac_value *deviation = fac_sqrt(fac_mean(fac_mul(centred, centred), clip, true));
    return fac_div(centred, fac_add(deviation, fac_number_as(v, 1e-5)));
}

static fac_value *picture(fac_value *x, const fac_nn_spectrogram_opts *o) {
    if (x->type.dims.n != 2) return wrong(x, "spectrogram: waveforms are B,samples");
    if (!o || o->length < 2 || o->hop < 0 || o->window < 0 || o->window > o->length)
        return wrong(
            x, "spectrogram: frames need a length of 2 samples or more, and a window that fits");
    fac_value *p = power(x, o);
    if (o->mels) {
        fac_error err = { 0 };
        fac_tensor *w = NULL;
        const fac_status status = fac_nn_mel_weights(o, &w, &err);
        p = fac_matmul(constant(x, w, status, &err), p);
    }
    p = loudness(p, o);
    return o->normalize ? normalized(p, o->per_band) : p;
}

fac_value *fac_nn_spectrogram(fac_value *x, const fac_nn_spectrogram_opts *opts) {
    return fac_unsqueeze(picture(x, opts), fac_shape(1));
}

fac_value *fac_nn_mfcc(fac_value *x, int count, const fac_nn_spectrogram_opts *opts) {
    fac_nn_spectrogram_opts o = opts ? *opts : (fac_nn_spectrogram_opts){ 0 };
    fac_error err = { 0 };
    fac_tensor *c = NULL;
    if (count < 1 || o.mels < count)
        return wrong(x, "mfcc: at least one coefficient, at most as many as mels");
    o.loudness = FAC_LOUDNESS_DB;
    o.normalize = false;
    const fac_status status = fac_nn_cosines(count, o.mels, &c, &err);
    return fac_matmul(constant(x, c, status, &err), picture(x, &o));
}

/* ---- waveforms ---- */

fac_value *fac_nn_resample(fac_value *x, int from, int to, bool fast) {
    fac_graph *g = x->graph;
    fac_error err = { 0 };
    fac_tensor *kernels = NULL;
    int64_t step = 1, before = 0;
    if (x->type.dims.n != 2 || x->type.dims.d[1] < 0)
        return wrong(x, "resample: waveforms are B,samples, and these known");
    if (from == to) return x;
    const fac_status status = fac_resample_kernels(
        from, to, fast ? FAC_RESAMPLE_FAST : FAC_RESAMPLE_BEST, &step, &before, &kernels, &err);
    const int64_t phases = status ? 1 : fac_tensor_type(kernels).dims.d[0];
    const int64_t count = (x->type.dims.d[1] * phases + step - 1) / step;
    fac_value *w = fac_unsqueeze(constant(x, kernels, status, &err), fac_shape(1));
    fac_value *around = fac_ints(g, fac_shape(before, before + step)),
              *time = fac_ints(g, fac_shape(1));
    fac_value *wide = fac_unsqueeze(fac_pad(x, around, NULL, time, FAC_PAD_CONSTANT), fac_shape(1));
    fac_value *y = fac_conv1d(wide, w, NULL, &(fac_conv1d_opts){ .stride = step });
    y = fac_reshape(fac_transpose(y, fac_shape(0, 2, 1)), fac_shape(0, -1));
    return fac_slice(y, 1, 0, count, 1);
}

fac_value *fac_nn_preemphasis(fac_value *x, double coefficient) {
    fac_graph *g = x->graph;
    if (x->type.dims.n != 2) return wrong(x, "preemphasis: waveforms are B,samples");
    fac_value *before = fac_pad(x, fac_ints(g, fac_shape(1, -1)), NULL, fac_ints(g, fac_shape(1)),
                                FAC_PAD_CONSTANT);
    return fac_sub(x, fac_mul(before, fac_number_as(x, coefficient != 0 ? coefficient : 0.97)));
}
