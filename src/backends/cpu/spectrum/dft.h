/* What the files of the solver "dft/fft" share. */
#ifndef FACULA_CPU_DFT_H
#define FACULA_CPU_DFT_H
#include "backends/cpu/device/cpu.h"
#include "ops/dft.h"

/* n complex numbers as a b: b transforms of a, then a of b. */
typedef struct fac_dft_split {
    fac_fft a, b;
    float *twiddles; /* for each vector of columns: e^(-2 pi i j k / n), k < a */
} fac_dft_split;

typedef struct fac_dft_plan {
    const fac_cpu *cpu;
    fac_layout x, y;
    fac_transform t;
    int64_t before, between; /* signals: those that lie side by side are `between` */
    int64_t n;               /* complex numbers of a transform */
    bool half;               /* of a real signal, as half as many complex numbers */
    bool chirps;             /* n is transformed as a convolution of fft.n elements */
    bool split;              /* each signal alone, else a vector of them at once */
    int64_t room;            /* complex elements of a buffer */
    size_t work;             /* bytes of a thread */
    fac_fft fft;
    fac_dft_split parts;
    float *tables[6]; /* what was made */
    const float *turn, *filter, *apart;
} fac_dft_plan;

/* `signals` of them, from number `first` of those side by side, number `before` of such sets; a:
 * the thread's memory. */
void fac_dft_signals(const fac_dft_plan *s, const float *x, float *y, int64_t before, int64_t first,
                     int signals, float *a);

/* ---- of one signal, split ---- */

/* Chooses a and b for n complex numbers; false: there are none.  cost: elements of vectors. */
bool fac_dft_split_of(const fac_cpu *c, int64_t n, fac_dft_split *to, double *cost);
/* Floats of the thread's memory for a split of n. */
int64_t fac_dft_split_room(const fac_cpu *c, const fac_dft_split *p);
/* n pairs, from where they lie to where they go; `to` may be `from`. */
void fac_dft_split_run(const fac_dft_plan *s, bool inverse, const float *from, float *to,
                       float *room);
float *fac_dft_twiddles(const fac_cpu *c, const fac_dft_split *p);
#endif
