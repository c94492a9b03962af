/* Spectrograms of a stream: frames that are computed as windows come out of a ring have the bits of
 * those of the whole sound, for chunks of 1 to 5,000 samples, by the fast transform and by the
 * product. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "facula/nn.h"
#include "facula/program.h"
#include "sound_check.h"

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

/* A graph of spectra of this many samples on a device, ready to run. */
typedef struct machine {
    fac_graph *g;
    fac_program *p;
    fac_tensor *x;
    int64_t samples;
} machine;

static machine machine_of(fac_device *d, int64_t samples, int length, int hop) {
    machine m = { .g = fac_graph_new(), .samples = samples };
    const fac_nn_spectrogram_opts o = { .rate = GOLDEN_RATE,
                                        .length = length,
                                        .hop = hop,
                                        .loudness = FAC_LOUDNESS_POWER,
                                        .no_center = true };
    fac_value *wave = fac_input(m.g, "wave", FAC_F32, fac_shape(1, samples));
    fac_output(m.g, "power", fac_nn_spectrogram(wave, &o));
    OK(fac_graph_check(m.g, &err));
    OK(fac_program_new(m.g, d, NULL, &m.p, &err));
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(1, samples), &m.x, &err));
    return m;
}

static fac_tensor *run(machine *m, const float *x) {
    fac_tensor *y = NULL;
    OK(fac_tensor_write(m->x, x, (size_t)m->samples * sizeof *x, &err));
    OK(fac_program_run(m->p, &m->x, &y, &err));
    return y;
}

static void machine_free(machine *m) {
    fac_tensor_free(m->x);
    fac_program_free(m->p);
    fac_graph_free(m->g);
}

/* Windows of `frames` frames, one every hop of the last. */
static void stream(fac_device *d, const float *x, int length, int hop, int frames, int chunk) {
    const int64_t window = length + (frames - 1) * hop, step = frames * hop;
    const int64_t all = 1 + (GOLDEN_SAMPLES - length) / hop, bins = length / 2 + 1;
    machine whole = machine_of(d, GOLDEN_SAMPLES, length, hop),
            part = machine_of(d, window, length, hop);
    fac_tensor *want = run(&whole, x);
    const float *y = fac_tensor_data(want);
    float *heard = malloc((size_t)window * sizeof *heard);
    fac_ring *r = NULL;
    int64_t first = 0, windows = 0;
    OK(fac_ring_new(window, step, &r, &err));
    for (int at = 0; at < GOLDEN_SAMPLES; at += chunk) {
        fac_ring_put(r, x + at, GOLDEN_SAMPLES - at < chunk ? GOLDEN_SAMPLES - at : chunk);
        while (fac_ring_get(r, heard, &first)) {
            fac_tensor *have = run(&part, heard);
            const float *z = fac_tensor_data(have);
            assert_int_equal(first, windows * step);
            for (int64_t k = 0; k < bins; k++)
                if (memcmp(z + k * frames, y + k * all + windows * frames, (size_t)frames * 4))
                    fail_msg("frames of %d: bin %lld of window %lld has other bits", length,
                             (long long)k, (long long)windows);
            fac_tensor_free(have);
            windows++;
        }
    }
    const int64_t late = fac_ring_dropped(r);
    assert_int_equal(late, 0);
    assert_int_equal(windows, 1 + (GOLDEN_SAMPLES - window) / step);
    free(heard);
    fac_ring_free(r);
    fac_tensor_free(want);
    machine_free(&whole);
    machine_free(&part);
}

static void frames_of_a_stream(void **state) {
    (void)state;
    static const int chunks[] = { 1, 7, 160, 441, 1024, 5000 };
    fac_device *d = NULL;
    float x[GOLDEN_SAMPLES];
    golden_signal(x);
    OK(fac_device_open("cpu", NULL, &d, &err));
    for (size_t k = 0; k < sizeof chunks / sizeof *chunks; k++) {
        stream(d, x, 400, 160, 1, chunks[k]);
        stream(d, x, 512, 128, 5, chunks[k]);
        stream(d, x, 2 * 7 * 11, 80, 16, chunks[k]); /* no fast transform */
    }
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(frames_of_a_stream) };
    return cmocka_run_group_tests_name("sound stream", tests, NULL, NULL);
}
