/* Waveforms: which part of a recording is heard, and changes at random that leave what is heard. */
#include <math.h>
#include "base/error.h"
#include "base/rng.h"
#include "data/image/augment.h"
#include "data/sets/dataset_internal.h"
#include "data/sound/sound_bank.h"

/* -1 .. 1 */
static double either_way(const fac_drawn *s, fac_draw what) {
    return 2 * fac_sample_draw(s, what) - 1;
}

static double loudness(const float *x, int64_t n) {
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += (double)x[i] * x[i];
    return n ? sqrt(squares / (double)n) : 0;
}

/* White noise, uniform: its own loudness is 1 / sqrt 3 of its largest sample. */
static void add_noise(const fac_augment *a, const fac_drawn *s, int64_t n, float *x) {
    enum { PART = 1024 };
    const double most = a->noise * fac_sample_draw(s, FAC_DRAW_NOISE) * loudness(x, n) * sqrt(3);
    float part[PART];
    for (int64_t i = 0; i < n; i += PART) {
        const int64_t size = n - i < PART ? n - i : PART;
        const uint64_t key =
            s->seed + (uint64_t)s->sample * 0x9E3779B97F4A7C15u + (uint64_t)(i / PART);
        fac_random_fill(key, fac_noise_stream(s->epoch), -1, 1, (size_t)size, part);
        for (int64_t k = 0; k < size; k++) x[i + k] += (float)most * part[k];
    }
}

static fac_sound_bank *bank_of(const fac_dataset *d) {
    return d->cuts && d->memory ? d->memory->bank : NULL;
}

fac_status fac_wave_begin(const fac_dataset *d, const fac_drawn *s, int64_t n, fac_wave *out,
                          fac_error *err) {
    if (!d->cuts) {
        *out = (fac_wave){ d->values + s->sample * n, n, 0, false };
        return FAC_OK;
    }
    const fac_cut *c = &d->cuts[s->sample];
    const float *x = NULL;
    if (bank_of(d))
        FAC_TRY(fac_sound_bank_begin(bank_of(d), c->source, &x, err));
    else
        x = d->values + c->begin;
    *out = (fac_wave){ x, c->size, c->from, d->zeros };
    const int64_t places = c->size - n + 1;
    if (d->anew && places > 1)
        out->from = (int64_t)((double)places * fac_sample_draw(s, FAC_DRAW_CUT));
    return FAC_OK;
}

void fac_wave_end(const fac_dataset *d, const fac_drawn *s) {
    if (bank_of(d)) fac_sound_bank_end(bank_of(d), d->cuts[s->sample].source);
}

void fac_augment_sound(const fac_augment *a, const fac_drawn *s, int64_t n, const fac_wave *from,
                       float *to) {
    const double decibels = a->gain > 0 ? a->gain * either_way(s, FAC_DRAW_GAIN) : 0;
    const float factor = (float)pow(10, decibels / 20);
    int64_t by = a->shift > 0 ? (int64_t)(a->shift * (double)n * either_way(s, FAC_DRAW_SHIFT)) : 0;
    if (by < 0) by += n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = i + by;
        to[i] = factor * fac_wave_at(from, at < n ? at : at - n);
    }
    if (a->noise > 0) add_noise(a, s, n, to);
}
