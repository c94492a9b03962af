/* Triangles of the mel scale over the frequencies of a spectrum, as torchaudio and librosa make
 * them, and the cosines of cepstra. */
#include <math.h>
#include "base/error.h"
#include "base/memory.h"
#include "nn/sound.h"

/* ---- scales: HTK's, 2595 log10(1 + f / 700), and Slaney's, linear below 1000 Hz ---- */

static const double slaney_edge = 1000, slaney_step = 200.0 / 3;

static double mel_of(double hz, bool slaney) {
    if (!slaney) return 2595 * log10(1 + hz / 700);
    return hz < slaney_edge ? hz / slaney_step
                            : slaney_edge / slaney_step + 27 * log(hz / slaney_edge) / log(6.4);
}

static double hertz_of(double mel, bool slaney) {
    const double edge = slaney_edge / slaney_step;
    if (!slaney) return 700 * (pow(10, mel / 2595) - 1);
    return mel < edge ? mel * slaney_step : slaney_edge * exp(log(6.4) / 27 * (mel - edge));
}

static double larger(double a, double b) { return a > b ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }

/* Row of one mel between three corners in Hz; how many frequencies it weighs. */
static int64_t triangle(const fac_nn_spectrogram_opts *o, const double *corner, int64_t bins,
                        double *row) {
    const double area = o->slaney_norm ? 2 / (corner[2] - corner[0]) : 1;
    int64_t weighed = 0;
    for (int64_t k = 0; k < bins; k++) {
        const double f = (double)k * o->rate / o->length;
        const double up = (f - corner[0]) / (corner[1] - corner[0]),
                     down = (corner[2] - f) / (corner[2] - corner[1]);
        row[k] = area * larger(0, smaller(up, down));
        weighed += row[k] > 0;
    }
    return weighed;
}

fac_status fac_nn_mel_weights(const fac_nn_spectrogram_opts *o, fac_tensor **out, fac_error *err) {
    const int64_t bins = o->length / 2 + 1;
    const double high = o->high > 0 ? o->high : o->rate / 2.0;
    fac_tensor *t = NULL;
    if (o->rate < 1 || o->length < 2 || o->mels < 1 || o->mels > 1 << 16 ||
        !(o->low >= 0 && o->low < high && high <= o->rate / 2.0))
        return fac_raise(err, FAC_E_ARGUMENT,
                         "%d mels from %g to %g Hz, of frames of %d samples at %d Hz", o->mels,
                         o->low, high, o->length, o->rate);
    double *w = fac_alloc((size_t)o->mels * (size_t)bins, sizeof *w);
    fac_status status = w ? FAC_OK : fac_raise_memory(err, "%d mels", o->mels);
    const double from = mel_of(o->low, o->slaney_scale), to = mel_of(high, o->slaney_scale);
    for (int m = 0; m < o->mels && !status; m++) {
        double corner[3];
        for (int k = 0; k < 3; k++)
            corner[k] = hertz_of(from + (to - from) * (m + k) / (o->mels + 1), o->slaney_scale);
        if (!triangle(o, corner, bins, w + (int64_t)m * bins))
            status = fac_raise(
                err, FAC_E_ARGUMENT,
                "%d mels are too many for frames of %d samples at %d Hz: mel %d, around %.0f Hz, "
                "lies between two frequencies",
                o->mels, o->length, o->rate, m, corner[1]);
    }
    if (!status) status = fac_tensor_new(NULL, FAC_F64, fac_shape(o->mels, bins), &t, err);
    if (!status) status = fac_tensor_write(t, w, (size_t)o->mels * (size_t)bins * sizeof *w, err);
    fac_release(w);
    if (status)
        fac_tensor_free(t);
    else
        *out = t;
    return status;
}

/* Orthonormal DCT-II, [count, mels]. */
fac_status fac_nn_cosines(int count, int mels, fac_tensor **out, fac_error *err) {
    fac_tensor *t = NULL;
    double *c = fac_alloc((size_t)count * (size_t)mels + 1, sizeof *c);
    fac_status status = c ? FAC_OK : fac_raise_memory(err, "%d coefficients", count);
    for (int k = 0; k < count && c; k++)
        for (int n = 0; n < mels; n++)
            c[k * mels + n] =
                sqrt((k ? 2.0 : 1.0) / mels) * cos(3.14159265358979323846 * k * (n + 0.5) / mels);
    if (!status) status = fac_tensor_new(NULL, FAC_F64, fac_shape(count, mels), &t, err);
    if (!status) status = fac_tensor_write(t, c, (size_t)count * (size_t)mels * sizeof *c, err);
    fac_release(c);
    if (status)
        fac_tensor_free(t);
    else
        *out = t;
    return status;
}
