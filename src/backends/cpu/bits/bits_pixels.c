/* Pixels of convolutions of bits: numbers become planes of bits, codes are copied, both with zeros
 * around the image, and the bits of each pixel are counted (bits.h). */
#include <string.h>
#include "backends/cpu/bits/bits_internal.h"
#include "ops/basis.h"

void fac_bit_levels_of(const float *basis, int planes, bool relu, fac_bit_levels *to) {
    double v[FAC_BASIS_BITS] = { 0 };
    fac_basis b;
    *to = (fac_bit_levels){ .relu = relu, .sign = !basis, .planes = basis ? planes : 1 };
    if (!basis) return;
    for (int k = 0; k < planes; k++) v[k] = basis[k];
    fac_basis_of(v, 1, planes, true, true, &b);
    to->thresholds = b.levels - 1;
    to->start = b.code[0];
    for (int k = 0; k + 1 < b.levels; k++) {
        to->threshold[k] = (float)b.threshold[k];
        for (int i = 0; i < planes; i++)
            to->flips[i] |= ((b.code[k] ^ b.code[k + 1]) >> i & 1) << k;
    }
}

/* A row of numbers to the words of all planes, from the first pixel inside on. */
static void pack_numbers(const fac_bit_job *j, int64_t image, int64_t from, uint32_t *to) {
    const fac_bit_conv *p = j->p;
    const int64_t lanes = p->kernels->lanes;
    fac_bit_pack t = { .x_pixel = p->x.column,
                       .x_block = p->x.block,
                       .levels = &j->x,
                       .pixels = fac_bit_least(p->W, p->width - p->pad[1]),
                       .to_pixel = fac_bit_pixel(p),
                       .to_plane = p->bits_plane };
    for (int64_t g = 0; g < p->groups; g++)
        for (int64_t k = 0; k < p->words; k++) {
            const int64_t c = g * p->C + k * FAC_BIT_WORD;
            t.x = j->d->x + image * p->x.image + from * p->x.row + c / lanes * p->x.block;
            t.channels = (int)fac_bit_least(p->C - k * FAC_BIT_WORD, FAC_BIT_WORD);
            t.to = to + g * p->words + k;
            p->kernels->pack(&t);
        }
}

/* Whoever made the codes: nothing is counted after the last channel. */
static void clear_tail(const fac_bit_conv *p, uint32_t *to, int64_t pixels) {
    const int left = (int)(p->C % FAC_BIT_WORD);
    if (!left) return;
    for (int64_t i = 0; i < pixels; i++) to[i * p->words + p->words - 1] &= (1u << left) - 1;
}

static void copy_codes(const fac_bit_job *j, int64_t image, int64_t from, uint32_t *to) {
    const fac_bit_conv *p = j->p;
    const int64_t pixel = fac_bit_pixel(p), plane = p->images * p->H * p->W * pixel;
    const int64_t pixels = fac_bit_least(p->W, p->width - p->pad[1]);
    const uint32_t *row = j->d->x_codes + (image * p->H + from) * p->W * pixel;
    for (int k = 0; k < p->planes; k++) {
        memcpy(to + k * p->bits_plane, row + k * plane, (size_t)(pixels * pixel) * sizeof *to);
        clear_tail(p, to + k * p->bits_plane, pixels);
    }
}

static void put_row(const fac_bit_job *j, int64_t image, int64_t row) {
    const fac_bit_conv *p = j->p;
    const int64_t pixel = fac_bit_pixel(p), from = row - p->pad[0];
    uint32_t *to = j->own + image * p->bits_image + row * p->width * pixel;
    for (int k = 0; k < p->planes; k++)
        memset(to + k * p->bits_plane, 0, (size_t)(p->width * pixel) * sizeof *to);
    if (from < 0 || from >= p->H) return;
    to += p->pad[1] * pixel;
    if (p->coded)
        copy_codes(j, image, from, to);
    else
        pack_numbers(j, image, from, to);
}

static void count_row(const fac_bit_job *j, int64_t image, int64_t row) {
    const fac_bit_conv *p = j->p;
    const int64_t pixel = fac_bit_pixel(p);
    const uint32_t *from = j->bits + image * p->bits_image + row * p->width * pixel;
    for (int k = 0; k < p->planes; k++)
        for (int64_t g = 0; g < p->groups; g++) {
            const int64_t at = ((image * p->planes + k) * p->groups + g) * p->height + row;
            p->kernels->count(from + k * p->bits_plane + g * p->words, pixel, (int)p->words,
                              p->width, j->counts + at * p->width);
        }
}

static void row_of(void *arg, int i, int thread) {
    const fac_bit_job *j = arg;
    const int64_t image = i / j->p->height, row = i % j->p->height;
    (void)thread;
    if (!j->p->direct) put_row(j, image, row);
    count_row(j, image, row);
}

void fac_bit_pixels(fac_bit_job *j) {
    const fac_bit_conv *p = j->p;
    j->bits = p->direct ? j->d->x_codes : j->own;
    fac_parallel(&p->cpu->pool, (int)(p->images * p->height), row_of, j);
}
