/* Seconds that KissFFT takes for frames of a windowed real spectrum, the least of some passes:
 *
 *     cc -O3 -march=native bench/programs/kissfft.c -I PREFIX/include/kissfft -lkissfft-float
 *     ./a.out N FRAMES
 *
 * Frames overlap by half, as in bench/stft.py, which compiles and runs this. */
#include <kiss_fftr.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PASSES = 40 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    int n = 0, frames = 0;
    if (argc == 3) {
        n = atoi(argv[1]);
        frames = atoi(argv[2]);
    }
    if (n < 2 || n % 2 || frames < 1) {
        fprintf(stderr, "usage: kissfft N FRAMES\n");
        return 2;
    }
    const size_t samples = (size_t)n + (size_t)(frames - 1) * (size_t)(n / 2);
    float *x = malloc(samples * sizeof *x), *w = malloc((size_t)n * sizeof *w),
          *y = malloc((size_t)n * sizeof *y);
    kiss_fft_cpx *to = malloc((size_t)frames * (size_t)(n / 2 + 1) * sizeof *to);
    kiss_fftr_cfg plan = kiss_fftr_alloc(n, 0, NULL, NULL);
    double best = 1e9;
    if (!x || !w || !y || !to || !plan) return 1;
    for (size_t i = 0; i < samples; i++) x[i] = (float)(i % 997) / 997 - 0.5f;
    for (int i = 0; i < n; i++) w[i] = (float)(i < n / 2 ? i : n - i) / (float)n;
    for (int pass = 0; pass < PASSES; pass++) {
        const double begin = now();
        for (int f = 0; f < frames; f++) {
            const float *at = x + (size_t)f * (size_t)(n / 2);
            for (int i = 0; i < n; i++) y[i] = at[i] * w[i];
            kiss_fftr(plan, y, to + (size_t)f * (size_t)(n / 2 + 1));
        }
        const double took = now() - begin;
        if (took < best) best = took;
    }
    printf("%.9f\n", best);
    free(x);
    free(w);
    free(y);
    free(to);
    free(plan);
    return 0;
}
