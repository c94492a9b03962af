/* The walk of an elementwise kernel: dims that all operands have in common, merged where they can
 * be. */
#include <string.h>
#include "backends/gpu/elementwise/walk.h"

enum { WORDS = 128 }; /* of 8 bytes: what every device takes as arguments */

static void swap_dims(fac_gpu_walk *w, int a, int b) {
    const uint64_t d = w->size[a];
    w->size[a] = w->size[b];
    w->size[b] = d;
    for (int i = 0; i < w->operands; i++) {
        const int64_t step = w->stride[i][a];
        w->stride[i][a] = w->stride[i][b];
        w->stride[i][b] = step;
    }
}

/* The dims in which the first output moves most come first. */
static void order(fac_gpu_walk *w, int output) {
    const int64_t *step = w->stride[output];
    for (int k = 1; k < w->dims; k++)
        for (int j = k; j > 0 && step[j] > step[j - 1]; j--) swap_dims(w, j, j - 1);
}

/* Merges dim k into k + 1 where every operand steps evenly over both. */
static void merge(fac_gpu_walk *w) {
    for (int k = w->dims - 2; k >= 0; k--) {
        bool even = true;
        for (int i = 0; i < w->operands; i++)
            even &= w->stride[i][k] == w->stride[i][k + 1] * (int64_t)w->size[k + 1];
        if (!even) continue;
        w->size[k] *= w->size[k + 1];
        w->dims--;
        for (int i = 0; i < w->operands; i++) w->stride[i][k] = w->stride[i][k + 1];
        for (int j = k + 1; j < w->dims; j++) {
            w->size[j] = w->size[j + 1];
            for (int i = 0; i < w->operands; i++) w->stride[i][j] = w->stride[i][j + 1];
        }
    }
}

bool fac_gpu_walk_of(const fac_problem *p, fac_gpu_walk *w) {
    const fac_dims *d = &p->out[0].type.dims;
    memset(w, 0, sizeof *w);
    w->operands = p->nin + p->nout;
    w->count = 1;
    if (p->nout < 1 || w->operands > FAC_GPU_OPERANDS) return false;
    for (int k = 0; k < d->n; k++) w->count *= (uint64_t)d->d[k];
    for (int k = 0; k < d->n; k++) /* dims of one are no dims */
        if (d->d[k] != 1) w->size[w->dims++] = (uint64_t)d->d[k];
    for (int i = 0; i < w->operands; i++) {
        const fac_operand *o = i < p->nin ? &p->in[i] : &p->out[i - p->nin];
        const int shift = d->n - o->type.dims.n;
        if (o->layout.block || shift < 0) return false;
        if (i >= p->nin && !fac_dims_equal(&o->type.dims, d)) return false;
        w->offset[i] = o->layout.offset;
        for (int k = 0, at = 0; k < d->n; k++) {
            if (d->d[k] == 1) continue;
            bool there = k >= shift && o->type.dims.d[k - shift] != 1;
            w->stride[i][at++] = there ? o->layout.stride[k - shift] : 0;
        }
    }
    if (!w->dims) w->size[w->dims++] = 1;
    order(w, p->nin);
    merge(w);
    return 8 + 2 * w->operands + w->dims * (1 + w->operands) <= WORDS;
}

bool fac_gpu_walk_is_wide(const fac_gpu_walk *w) {
    for (int i = 0; i < w->operands; i++) {
        int64_t last = 0;
        for (int k = 0; k < w->dims; k++)
            last +=
                (w->stride[i][k] < 0 ? -w->stride[i][k] : w->stride[i][k]) * (int64_t)w->size[k];
        if (last >= INT32_MAX / 2) return true;
    }
    return w->count >= INT32_MAX / 2;
}
