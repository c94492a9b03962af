/* facula plot: the spectrogram of a sound. */
#include <stdlib.h>
#include <string.h>
#include "facula/data/sound.h"
#include "facula/view.h"
#include "plot.h"

/* Frames of about 32 ms, not more of them than a picture shows. */
static fac_value *spectrogram(fac_value *wave, int rate, int64_t samples) {
    fac_nn_spectrogram_opts o = { .rate = rate, .length = 64, .loudness = FAC_LOUDNESS_DB };
    while (o.length < rate * 0.032 && o.length / 2 < samples) o.length *= 2;
    const int64_t hop = samples / 1600 > rate / 200 ? samples / 1600 : rate / 200;
    o.hop = (int)(hop > 0 ? hop : 1);
    o.zeros = true;
    return fac_nn_spectrogram(wave, &o);
}

/* The result lies in memory of the device. */
static fac_status compute(fac_device *device, const fac_tensor *wave, int rate, fac_tensor **y,
                          fac_error *err) {
    const int64_t samples = fac_tensor_type(wave).dims.d[0];
    fac_program *p = NULL;
    fac_tensor *x = NULL;
    fac_graph *g = fac_graph_new();
    if (!g) return out_of_memory(err);
    fac_output(g, "db",
               spectrogram(fac_input(g, "wave", FAC_F32, fac_shape(1, samples)), rate, samples));
    fac_status s = fac_graph_check(g, err);
    if (!s) s = fac_program_new(g, device, NULL, &p, err);
    if (!s) s = fac_tensor_new(NULL, FAC_F32, fac_shape(1, samples), &x, err);
    if (!s) s = fac_tensor_write(x, fac_tensor_data(wave), (size_t)samples * sizeof(float), err);
    if (!s) s = fac_program_run(p, &x, y, err);
    fac_tensor_free(x);
    fac_program_free(p);
    fac_graph_free(g);
    return s;
}

int plot_sound(const char *path, const char *to, bool text, const plot_look *look) {
    fac_error err = { 0 };
    fac_sound s = { 0 };
    fac_device *device = NULL;
    fac_tensor *wave = NULL, *y = NULL;
    fac_status status = fac_sound_load(path, &s, &err);
    const int rate = s.rate;
    if (!status && s.frames < 64) {
        const long long frames = s.frames;
        fac_sound_free(&s);
        return fail_text("%s: %lld samples make no picture", path, frames);
    }
    if (!status) status = fac_sound_mono(&s, rate, &wave, &err);
    if (!status) status = fac_device_open("cpu", NULL, &device, &err);
    if (!status) status = compute(device, wave, rate, &y, &err);
    if (!status) {
        const fac_dims d = fac_tensor_type(y).dims;
        const fac_spectrogram picture = {
            fac_tensor_data(y), d.d[2],      d.d[3],      (double)s.frames / rate,
            rate / 2.0,         look->title, look->width, look->height
        };
        const fac_terminal how = { columns(), 0, unicode(), colour() };
        status = text ? fac_spectrogram_write(&picture, &how, stdout, &err)
                      : fac_spectrogram_save(&picture, to, &err);
    }
    fac_tensor_free(y);
    fac_device_free(device);
    fac_tensor_free(wave);
    fac_sound_free(&s);
    if (!status && !text) printf("%s\n", to);
    return status ? fail(&err) : EXIT_OK;
}
