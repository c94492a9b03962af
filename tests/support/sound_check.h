/* Sounds that tests make for themselves. */
#ifndef FACULA_TESTS_SOUND_CHECK_H
#define FACULA_TESTS_SOUND_CHECK_H
#include <math.h>
#include <stdlib.h>
#include "facula/data/sound.h"

enum { GOLDEN_RATE = 16000, GOLDEN_SAMPLES = 8000 };

/* Two tones and a chirp. */
static inline void golden_signal(float *x) {
    const double pi = 3.14159265358979323846;
    for (int n = 0; n < GOLDEN_SAMPLES; n++) {
        const double t = (double)n / GOLDEN_RATE, chirp = (double)n * n / GOLDEN_RATE / 8;
        const double tones = 0.5 * sin(2 * pi * 440 * t) + 0.25 * sin(2 * pi * 3000 * t + 0.7);
        x[n] = (float)(tones + 0.1 * cos(2 * pi * chirp));
    }
}
#endif
