/* The body after a convolution or matrix product, as the tile kernel takes it. */
#ifndef FACULA_CPU_EPILOGUE_H
#define FACULA_CPU_EPILOGUE_H
#include "backends/cpu/device/cpu.h"

/* y = loop[..](clip(y + residual, lo, hi)), or where(mask <= mask_lo, 0, y + residual), as the
 * gradient of a ReLU is */
enum { FAC_EPILOGUE_LOOPS = 4, FAC_EPILOGUE_NUMBERS = 4 };
typedef struct fac_epilogue {
    int residual; /* the problem's input that is added, of the output's type; -1: none */
    int bias;     /* the one that is added to each channel, C,1,1 or 1,C,1,1, or to each column,
                     N or 1,N; -1: none */
    float lo, hi; /* -INFINITY, INFINITY: no activation of this kind                   */
    int mask;     /* the problem's input that masks, of the output's type; -1: none    */
    float mask_lo;
    int loops; /* other elementwise ops of one operand, in order                    */
    struct {
        fac_loop *f;
        double p[FAC_EPILOGUE_NUMBERS];
    } loop[FAC_EPILOGUE_LOOPS];
} fac_epilogue;

/* false: the problem's body is something else.  No body: nothing to do, which is fine. */
bool fac_cpu_epilogue_masked(const fac_problem *p, const fac_simd *simd, fac_epilogue *e);
/* The same for those that know biases, but no masks: an add of one number for each channel may come
 * first. */
bool fac_cpu_epilogue_biased(const fac_problem *p, const fac_simd *simd, fac_epilogue *e);
/* Those of products that know a number for each column, and no masks. */
bool fac_cpu_epilogue_columns(const fac_problem *p, const fac_simd *simd, fac_epilogue *e);
/* The same for those that know no masks. */
bool fac_cpu_epilogue(const fac_problem *p, const fac_simd *simd, fac_epilogue *e);

/* relu(x), clip(x, lo, hi), max(x, lo), min(x, hi) with constant limits. */
bool fac_cpu_is_clip(const fac_node *n, float *lo, float *hi);

/* What an op of two inputs, one of which is `now`, reads besides; NULL: none of them is. */
static inline const fac_value *fac_other_input(const fac_node *n, const fac_value *now) {
    if (n->in[0] == now) return n->in[1];
    return n->in[1] == now ? n->in[0] : NULL;
}

/* The loops, on n neighbouring floats that the tile has just written. */
static inline void fac_epilogue_run(const fac_epilogue *e, float *y, size_t n) {
    for (int i = 0; i < e->loops; i++) e->loop[i].f(n, (const void *const[]){ y }, e->loop[i].p, y);
}
#endif
