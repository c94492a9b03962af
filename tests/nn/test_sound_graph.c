/* Spectrograms, cepstra, rates and pre-emphasis as graphs, against golden values of torchaudio,
 * librosa and SciPy on one signal, on the cpu and, where there is one, on an OpenCL device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "facula/nn.h"
#include "facula/program.h"
#include "opencl_check.h"
#include "sound_check.h"

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

/* The golden signal, so loud, through one function of it; the result is a new tensor of f32. */
static float loud = 1;
static fac_tensor *through(fac_value *(*f)(fac_value *), const char *where) {
    fac_device *device = NULL;
    fac_program *p = NULL;
    fac_tensor *x = NULL, *y = NULL;
    float wave[GOLDEN_SAMPLES];
    fac_graph *g = fac_graph_new();
    golden_signal(wave);
    for (int i = 0; i < GOLDEN_SAMPLES; i++) wave[i] *= loud;
    if (!opencl_survives(where) || fac_device_open(where, NULL, &device, &err)) {
        fac_graph_free(g);
        return NULL;
    }
    fac_output(g, "y",
               f(fac_input(g, "wave", FAC_F32, fac_shape(fac_symbol(g, "N"), GOLDEN_SAMPLES))));
    OK(fac_graph_check(g, &err));
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(1, GOLDEN_SAMPLES), &x, &err));
    OK(fac_tensor_write(x, wave, sizeof wave, &err));
    OK(fac_program_new(g, device, &(fac_program_opts){ .precision = FAC_PRECISION_HIGHEST }, &p,
                       &err));
    OK(fac_program_run(p, &x, &y, &err));
    OK(fac_device_sync(device, &err));
    fac_tensor *kept = NULL;
    OK(fac_tensor_new(NULL, FAC_F32, fac_tensor_type(y).dims, &kept, &err));
    fac_type type = fac_tensor_type(y);
    float *copy = malloc(fac_type_bytes(&type));
    OK(fac_tensor_read(y, copy, fac_type_bytes(&type), &err));
    OK(fac_tensor_write(kept, copy, fac_type_bytes(&type), &err));
    free(copy);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(device);
    return kept;
}

static const fac_nn_spectrogram_opts frames = {
    .rate = GOLDEN_RATE, .length = 400, .hop = 160, .loudness = FAC_LOUDNESS_POWER
};
static fac_value *powers(fac_value *x) { return fac_nn_spectrogram(x, &frames); }
static fac_value *decibels(fac_value *x) {
    fac_nn_spectrogram_opts o = frames;
    o.mels = 80;
    o.loudness = FAC_LOUDNESS_DB;
    return fac_nn_spectrogram(x, &o);
}
static fac_value *cepstra(fac_value *x) {
    fac_nn_spectrogram_opts o = frames;
    o.mels = 80;
    return fac_nn_mfcc(x, 13, &o);
}
static int measure; /* fac_nn_loudness */
static bool counted, per_band;
static fac_value *normalized(fac_value *x) {
    fac_nn_spectrogram_opts o = frames;
    o.mels = 80;
    o.loudness = measure;
    o.normalize = !counted;
    o.per_band = per_band;
    return fac_nn_spectrogram(x, &o);
}
static fac_value *faster(fac_value *x) { return fac_nn_resample(x, GOLDEN_RATE, 22050, true); }
static fac_value *best(fac_value *x) { return fac_nn_resample(x, GOLDEN_RATE, 22050, false); }
static fac_value *slower(fac_value *x) { return fac_nn_resample(x, GOLDEN_RATE, 8000, true); }
static fac_value *emphasized(fac_value *x) { return fac_nn_preemphasis(x, 0); }

static void near(const char *what, double have, double want, double by) {
    if (!(fabs(have - want) <= by)) fail_msg("%s is %.9g, expected %.9g", what, have, want);
}

static double sum(const float *x, int64_t n) {
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i];
    return s;
}

static double rms(const float *x, int64_t n) {
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += (double)x[i] * x[i];
    return sqrt(s / (double)n);
}

/* Power within 2.4e-7 of the largest, as torch's transform. */
static void golden(const char *where) {
    const double by = 2.4e-7 * 2500;
    fac_tensor *t = through(powers, where);
    if (!t) skip();
    fac_type type = fac_tensor_type(t);
    const float *y = fac_tensor_data(t);
    assert_int_equal(type.dims.n, 4);
    assert_int_equal(type.dims.d[2], 201);
    assert_int_equal(type.dims.d[3], 51);
    near("power [11,25]", y[11 * 51 + 25], 2499.98858, by);
    near("power [75,25]", y[75 * 51 + 25], 625.000034, by);
    near("power [11,0]", y[11 * 51], 2.9829404, by);
    near("the sum of power", sum(y, 201 * 51), 248706.254, 0.5);
    fac_tensor_free(t);

    t = through(decibels, where);
    y = fac_tensor_data(t);
    double high = -1e9, low = 1e9;
    for (int i = 0; i < 80 * 51; i++) {
        high = fmax(high, y[i]);
        low = fmin(low, y[i]);
    }
    near("the loudest mel", high, 33.9521790, 1e-4);
    near("the softest mel", low, -46.0478210, 1e-4);
    near("the mean of mels", sum(y, 80 * 51) / (80 * 51), -33.4516592, 1e-3);
    fac_tensor_free(t);

    t = through(cepstra, where);
    y = fac_tensor_data(t);
    const double coefficients[] = { -320.254197, 55.119654, -27.849353, -43.067884 };
    /* sums of 80 decibels up to 46, over sqrt 80, in f32: 80 * 46 * 2^-24 / 9 is 2.4e-5, and each
     * of these comes from power that is wrong by some 2^-22 of its mel, 1e-6 dB to 1e-4 at the
     * floor */
    for (int k = 0; k < 4; k++) near("a coefficient", y[k * 51 + 25], coefficients[k], 3e-4);
    fac_tensor_free(t);

    t = through(faster, where);
    y = fac_tensor_data(t);
    assert_int_equal(fac_tensor_type(t).dims.d[1], 11025);
    near("22050 Hz [100]", y[100], -.162380509, 1e-6);
    near("22050 Hz [5000]", y[5000], -.275307106, 1e-6);
    near("22050 Hz, its loudness", rms(y, 11025), .402699583, 2e-7);
    fac_tensor_free(t);
    t = through(best, where);
    y = fac_tensor_data(t);
    near("22050 Hz, best [5000]", y[5000], -.27519443, 1e-6);
    fac_tensor_free(t);
    t = through(slower, where);
    y = fac_tensor_data(t);
    assert_int_equal(fac_tensor_type(t).dims.d[1], 4000);
    near("8000 Hz [100]", y[100], -.196880702, 1e-6);
    near("8000 Hz, its loudness", rms(y, 4000), .401318511, 2e-7);
    fac_tensor_free(t);

    t = through(emphasized, where);
    y = fac_tensor_data(t);
    near("pre-emphasis [0]", y[0], .261054426, 1e-7);
    near("pre-emphasis [1]", y[1], .171030134, 1e-7);
    near("pre-emphasis [4000]", y[4000], .366393864, 2e-7);
    fac_tensor_free(t);
}

/* Mean 0 and deviation 1 of what the loudness is without it; silence is 0 everywhere, whatever sums
 * round to. */
static void normalization(const char *where) {
    enum { N = 80 * 51 };
    for (measure = FAC_LOUDNESS_LOG; measure <= FAC_LOUDNESS_MAGNITUDE; measure++) {
        counted = true;
        fac_tensor *plain = through(normalized, where);
        if (!plain) skip();
        counted = false;
        fac_tensor *t = through(normalized, where);
        const float *x = fac_tensor_data(plain), *y = fac_tensor_data(t);
        const double mean = sum(x, N) / N, deviation = sqrt(rms(x, N) * rms(x, N) - mean * mean);
        for (int i = 0; i < N; i++) near("a mel", y[i], (x[i] - mean) / (deviation + 1e-5), 1e-4);
        fac_tensor_free(plain);
        fac_tensor_free(t);
        loud = 0;
        t = through(normalized, where);
        y = fac_tensor_data(t);
        for (int i = 0; i < N; i++) near("silence", y[i], 0, 0);
        fac_tensor_free(t);
        loud = 1;
    }
}

/* Each band has mean 0, all of them together deviation 1; silence is 0. */
static void bands(const char *where) {
    enum { M = 80, T = 51 };
    measure = FAC_LOUDNESS_LOG;
    counted = true;
    fac_tensor *plain = through(normalized, where);
    if (!plain) skip();
    counted = false;
    per_band = true;
    fac_tensor *t = through(normalized, where);
    const float *x = fac_tensor_data(plain), *y = fac_tensor_data(t);
    float centred[M * T];
    for (int m = 0; m < M; m++)
        for (int k = 0; k < T; k++)
            centred[m * T + k] = x[m * T + k] - (float)(sum(x + m * T, T) / T);
    const double deviation = rms(centred, M * T);
    for (int i = 0; i < M * T; i++) near("a mel", y[i], centred[i] / (deviation + 1e-5), 1e-4);
    fac_tensor_free(plain);
    fac_tensor_free(t);
    loud = 0;
    t = through(normalized, where);
    y = fac_tensor_data(t);
    for (int i = 0; i < M * T; i++) near("silence", y[i], 0, 0);
    fac_tensor_free(t);
    loud = 1;
    per_band = false;
}

static void on_the_cpu(void **state) {
    (void)state;
    golden("cpu");
    normalization("cpu");
    bands("cpu");
}
static void on_opencl(void **state) {
    (void)state;
    golden("opencl");
    normalization("opencl");
    bands("opencl");
}

static void mels_are_those_of_others(void **state) {
    (void)state;
    const struct {
        bool slaney, norm;
        double sum;
    } want[] = { { false, false, 196.151977 },
                 { false, true, 1.98989268 },
                 { true, false, 195.715908 },
                 { true, true, 1.9990241 } };
    for (int k = 0; k < 4; k++) {
        fac_nn_spectrogram_opts o = frames;
        fac_tensor *w = NULL;
        double all = 0, most = 0;
        int many = 0;
        o.mels = 80;
        o.slaney_scale = want[k].slaney;
        o.slaney_norm = want[k].norm;
        OK(fac_nn_mel_weights(&o, &w, &err));
        const double *x = fac_tensor_data(w);
        for (int i = 0; i < 80 * 201; i++) {
            all += x[i];
            many += x[i] > 0;
        }
        for (int i = 0; i < 201; i++) most = fmax(most, x[10 * 201 + i]);
        near("the sum of weights", all, want[k].sum, 1e-6);
        if (!k) near("the largest weight of mel 10", most, .81283657, 1e-8);
        if (!k) assert_int_equal(many, 393);
        fac_tensor_free(w);
    }
    fac_nn_spectrogram_opts o = frames;
    fac_tensor *w = NULL;
    o.mels = 128;
    assert_int_equal(fac_nn_mel_weights(&o, &w, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "128 mels"));
    o.mels = 40;
    o.high = GOLDEN_RATE / 2 + 1;
    assert_int_equal(fac_nn_mel_weights(&o, &w, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "40 mels from 0 to 8001 Hz"));
}

/* Of 80 mels, where the first has its middle and where the one of number 40 begins: frequencies are
 * 1 Hz apart here, so that a line through two weights says it. */
static void corners_are_those_of_others(void **state) {
    (void)state;
    enum { BINS = GOLDEN_RATE / 2 + 1 };
    fac_nn_spectrogram_opts o = frames;
    fac_tensor *w = NULL;
    o.length = GOLDEN_RATE;
    o.mels = 80;
    OK(fac_nn_mel_weights(&o, &w, &err));
    const double *x = fac_tensor_data(w), *row = x + 40 * BINS;
    int k = 0;
    while (!(row[k] > 0)) k++;
    near("the middle of mel 0", 1 / x[1], 22.120066, 1e-6);
    near("the beginning of mel 40", k - row[k] / (row[k + 1] - row[k]), 1729.701713, 1e-6);
    fac_tensor_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(mels_are_those_of_others),
                                        cmocka_unit_test(corners_are_those_of_others),
                                        cmocka_unit_test(on_the_cpu), cmocka_unit_test(on_opencl) };
    return cmocka_run_group_tests_name("sound graph", tests, NULL, NULL);
}
