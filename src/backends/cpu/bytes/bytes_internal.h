/* What the files of this folder share. */
#ifndef FACULA_CPU_BYTES_INTERNAL_H
#define FACULA_CPU_BYTES_INTERNAL_H
#include "backends/cpu/bytes/bytes.h"
#include "facula/backend.h"

static inline size_t fac_byte_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Output channels with those that fill up vectors: of all groups, or of a depthwise convolution,
 * whose channels lie side by side. */
static inline int64_t fac_byte_outputs(const fac_byte_product *p) {
    const int64_t width = 2 * p->kernels->lanes;
    if (p->depthwise) return (p->groups + width - 1) / width * width;
    return p->groups * p->panels * width;
}

/* Bytes of four rows side by side. */
static inline void fac_byte_interleave(const uint8_t *const row[4], int64_t step, int64_t n,
                                       uint8_t flip, uint8_t *restrict to) {
    const uint8_t *a = row[0], *b = row[1], *c = row[2], *d = row[3];
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = k * step;
        to[4 * k] = a[at] ^ flip;
        to[4 * k + 1] = b[at] ^ flip;
        to[4 * k + 2] = c[at] ^ flip;
        to[4 * k + 3] = d[at] ^ flip;
    }
}

/* Quads of a run of x as they are packed, and where the one numbered `quad` over all runs is. */
static inline int64_t fac_byte_packed_quads(const fac_byte_product *p) {
    const int64_t chunk = p->kernels->chunk;
    return chunk && p->quads > chunk ? (p->quads + chunk - 1) / chunk * chunk : p->quads;
}
static inline int64_t fac_byte_place(const fac_byte_product *p, int64_t quad) {
    const int64_t all = fac_byte_packed_quads(p), in_run = quad % p->quads;
    const bool last = all > p->quads && in_run >= all - p->kernels->chunk;
    return quad / p->quads * all + in_run + (last ? all - p->quads : 0);
}

/* Bytes of an element of y. */
static inline size_t fac_byte_size_of(const fac_byte_product *p) { return p->bytes ? 1 : 4; }

/* The dims fill the memory, in whatever order. */
static inline bool fac_byte_dense(const fac_layout *l, const fac_dims *d) {
    int64_t reach = 1, n = 1;
    if (l->block || l->halo) return false;
    for (int k = 0; k < d->n; k++) {
        if (l->stride[k] < 0) return false;
        reach += (d->d[k] - 1) * l->stride[k];
        n *= d->d[k];
    }
    return n > 0 && reach == n;
}

/* Depthwise weights for rows of x where they lie: bytes of a channel, and where they are. */
static inline int64_t fac_byte_taps(const fac_byte_product *p) {
    return p->S * ((p->R + 3) / 4) * 4;
}
int8_t *fac_byte_interleaved(const fac_byte_product *p, const void *packed);

/* Where the sums of output channels are in packed weights. */
int32_t *fac_byte_sums(const fac_byte_product *p, void *packed);
/* Strides of x as the kernel sees it. */
typedef struct fac_byte_seen {
    int64_t group, image, row, column;
} fac_byte_seen;
static inline fac_byte_seen fac_byte_seen_of(const fac_byte_product *p) {
    if (!p->staged) return (fac_byte_seen){ p->x.group, p->x.image, p->x.row, p->x.column };
    const int64_t pixel = p->groups * p->channels;
    const int64_t column = p->depthwise ? (pixel + 15) / 16 * 16 : pixel;
    return (fac_byte_seen){ p->channels, p->height * p->width * column, p->width * column, column };
}

/* One run. */
typedef struct fac_byte_job {
    const fac_byte_product *p;
    const fac_byte_data *d;
    const uint8_t *x;       /* as the kernel sees it */
    uint8_t *stage, *pixel; /* pixel: of zero points */
    int32_t *bias, *zero, *sums;
    const int32_t *taps; /* of a depthwise convolution: weights */
    float *factor;
    int x_zero; /* of u8 */
    int32_t y_zero;
    bool zeros; /* some w_zero is not 0 */
    float lo, hi;
    fac_byte_sum sum;
} fac_byte_job;

/* ---- bytes_depthwise.c ---- */

/* From a staged x. */
void fac_byte_run_depthwise(fac_byte_job *j);
/* From x where it lies; `pixel` bytes of zero points are made. */
void fac_byte_run_rows(fac_byte_job *j, size_t pixel);
#endif
