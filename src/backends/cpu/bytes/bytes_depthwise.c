/* Depthwise convolutions of bytes: see bytes.h.  Rows are read from a padded copy of x, or, where
 * the instruction set has a kernel for that, from where x lies. */
#include <string.h>
#include "backends/cpu/bytes/bytes_internal.h"
#include "backends/cpu/device/cpu.h"

/* Weights of a depthwise convolution less their zero points, in the scratch that sums would have.
 */
static void less_zeros(fac_byte_job *j) {
    const fac_byte_product *p = j->p;
    const int32_t *from = j->d->packed;
    const int64_t width = fac_byte_outputs(p);
    for (int64_t t = 0; t < p->R * p->S; t++)
        for (int64_t g = 0; g < p->groups; g++)
            j->sums[t * width + g] = from[t * width + g] - j->zero[g];
    j->taps = j->sums;
}

static void depthwise_row(void *arg, int i, int thread) {
    const fac_byte_job *j = arg;
    const fac_byte_product *p = j->p;
    const fac_byte_seen v = fac_byte_seen_of(p);
    const int64_t image = i / p->P, row = i % p->P;
    const fac_byte_row t = { .x = j->x + image * v.image + row * p->stride[0] * v.row,
                             .x_pixel = p->stride[1] * v.column,
                             .x_row = p->dilation[0] * v.row,
                             .x_column = p->dilation[1] * v.column,
                             .R = (int)p->R,
                             .S = (int)p->S,
                             .channels = (int)p->groups,
                             .w = j->taps,
                             .w_tap = fac_byte_outputs(p),
                             .bias = j->bias,
                             .factor = p->bytes ? j->factor : NULL,
                             .lo = j->lo,
                             .hi = j->hi,
                             .y_zero = j->y_zero,
                             .y = (char *)j->d->y + (image * p->y.image + row * p->y.row) *
                                                        (int64_t)fac_byte_size_of(p),
                             .y_pixel = p->y.column * (int64_t)fac_byte_size_of(p),
                             .pixels = p->Q };
    (void)thread;
    p->kernels->row(&t);
}

static void depthwise_in_place(void *arg, int i, int thread) {
    const fac_byte_job *j = arg;
    const fac_byte_product *p = j->p;
    const int64_t image = i / p->P, row = i % p->P;
    const uint8_t *x = (const uint8_t *)j->d->x + image * p->x.image;
    fac_byte_depthwise t = { .zero = j->pixel,
                             .x_pixel = p->x.column,
                             .columns = p->W,
                             .R = (int)p->R,
                             .S = (int)p->S,
                             .channels = (int)p->groups,
                             .flip = p->x_signed ? 128 : 0,
                             .stride = p->stride[1],
                             .dilation = p->dilation[1],
                             .pad = p->pad[1],
                             .pixels = p->Q,
                             .w = fac_byte_interleaved(p, j->d->packed),
                             .taps = j->d->packed,
                             .tap = fac_byte_outputs(p),
                             .bias = j->bias,
                             .factor = j->factor,
                             .lo = j->lo,
                             .hi = j->hi,
                             .y_zero = j->y_zero,
                             .y = (char *)j->d->y + image * p->y.image + row * p->y.row,
                             .y_pixel = p->y.column };
    (void)thread;
    for (int64_t r = 0; r < p->R; r++) {
        const int64_t at = row * p->stride[0] + r * p->dilation[0] - p->pad[0];
        t.row[r] = at >= 0 && at < p->H ? x + at * p->x.row : NULL;
    }
    p->kernels->depthwise(&t);
}

void fac_byte_run_depthwise(fac_byte_job *j) {
    const fac_byte_product *p = j->p;
    j->taps = j->d->packed;
    if (j->zeros) less_zeros(j);
    fac_parallel(&p->cpu->pool, (int)(p->images * p->P), depthwise_row, j);
}

void fac_byte_run_rows(fac_byte_job *j, size_t pixel) {
    const fac_byte_product *p = j->p;
    memset(j->pixel, j->x_zero ^ (p->x_signed ? 128 : 0), pixel);
    fac_parallel(&p->cpu->pool, (int)(p->images * p->P), depthwise_in_place, j);
}
