/* birds DIR COUNT SEED [RATE SECONDS]: five kinds of synthetic birds, COUNT recordings of each as
 * DIR/KIND/NN.wav.  A kind is a pattern: what its pitch does, how fast it is repeated.  Pitch,
 * speed, when it begins, how loud, and the noise around it are drawn by (seed, kind, recording), so
 * a kind is not told from the others by one frequency. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/rng.h"
#include "facula/data/sound.h"

static const double turn = 6.283185307179586;

/* A song at one time: the frequency over that of its bird, and the amplitude; t from its begin,
 * speed 0.8 to 1.25. */
typedef struct note {
    double pitch, loud;
} note;

/* 1 within a stretch, with edges of a tenth of it. */
static double swell(double part, double length) {
    if (part >= length) return 0;
    const double edge = fmin(part, length - part) / (0.1 * length);
    return edge < 1 ? edge : 1;
}

static note rising(double t, double speed) {
    const double part = fmod(t * speed / 0.25, 1);
    return (note){ 0.7 + 0.8 * part, swell(part, 0.7) };
}

static note falling(double t, double speed) {
    const double part = fmod(t * speed / 0.25, 1);
    return (note){ 1.5 - 0.8 * part, swell(part, 0.7) };
}

static note trill(double t, double speed) {
    return (note){ 1, swell(fmod(t * speed * 24, 1), 0.6) };
}

static note whistle(double t, double speed) {
    const double part = fmod(t * speed / 0.9, 1);
    return (note){ 1 + 0.01 * sin(turn * 5 * t), swell(part, 0.85) };
}

static note warble(double t, double speed) {
    return (note){ 1 + 0.25 * sin(turn * 9 * speed * t), 1 };
}

static const struct {
    const char *name;
    note (*at)(double t, double speed);
} kinds[] = { { "falling", falling },
              { "rising", rising },
              { "trill", trill },
              { "warble", warble },
              { "whistle", whistle } };
enum { KINDS = sizeof kinds / sizeof *kinds };

/* 0 to 1, number k of what is drawn for a recording. */
static double drawn(uint64_t seed, int recording, uint64_t k) {
    return fac_random_uniform(seed, (uint64_t)recording, k);
}

static void sing(int kind, uint64_t seed, int recording, fac_sound *s) {
    const double base = s->rate * (0.13 + 0.09 * drawn(seed, recording, 0));
    const double speed = 0.8 + 0.45 * drawn(seed, recording, 1);
    const double begin = 0.3 * drawn(seed, recording, 2);
    const double loud = 0.15 + 0.25 * drawn(seed, recording, 3);
    const double noise = loud * (0.2 + 0.6 * drawn(seed, recording, 4));
    double phase = 0;
    fac_random_fill(seed + 1, (uint64_t)recording, -1, 1, (size_t)s->frames, s->samples);
    for (int64_t i = 0; i < s->frames; i++) {
        const double t = (double)i / s->rate - begin;
        const note n = t > 0 ? kinds[kind].at(t, speed) : (note){ 1, 0 };
        phase += turn * base * n.pitch / s->rate;
        const double song = sin(phase) + 0.3 * sin(2 * phase);
        s->samples[i] = (float)(noise * (double)s->samples[i] + loud * n.loud * song);
    }
}

int main(int argc, char **argv) {
    fac_error err;
    char path[4096];
    if (argc != 4 && argc != 6) {
        fprintf(stderr, "usage: birds DIR COUNT SEED [RATE SECONDS]\n");
        return 2;
    }
    const int count = atoi(argv[2]), rate = argc > 4 ? atoi(argv[4]) : 16000;
    const double seconds = argc > 5 ? atof(argv[5]) : 2;
    const int64_t frames = (int64_t)(rate * seconds);
    fac_sound s = { frames, 1, rate, calloc((size_t)frames + 1, sizeof(float)) };
    if (!s.samples) return 1;
    mkdir(argv[1], 0777);
    for (int k = 0; k < KINDS * count; k++) {
        const int kind = k / count;
        snprintf(path, sizeof path, "%s/%s", argv[1], kinds[kind].name);
        mkdir(path, 0777);
        sing(kind, strtoull(argv[3], NULL, 10), k, &s);
        snprintf(path, sizeof path, "%s/%s/%02d.wav", argv[1], kinds[kind].name, k % count);
        if (fac_wav_save(&s, path, FAC_WAV_16, &err)) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
    }
    free(s.samples);
    return 0;
}
