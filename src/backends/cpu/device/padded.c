/* The copy with zeros around: see padded.h. */
#include <limits.h>
#include <string.h>
#include "backends/cpu/device/padded.h"
#include "base/memory.h"

enum { MORE = 16 }; /* floats after a row, so that rows do not fall on the same places of a page */

fac_padded fac_padded_of(const fac_conv_geom *g) {
    int64_t rows =
        (g->P - 1) * g->stride[1] + (g->R - 1) * g->dilation[1] + 1; /* that the outputs look at */
    int64_t row = (g->Q - 1) * g->stride[2] + (g->S - 1) * g->dilation[2] + 1;
    fac_padded p = { .needed = g->pad[1] || g->pad[2] || rows > g->H || row > g->W };
    p.height = p.needed ? rows : g->H;
    p.row = p.needed ? row + MORE : g->W;
    p.plane = p.height * p.row;
    return p;
}

bool fac_padded_bytes(const fac_conv_geom *g, const fac_padded *p, size_t *bytes) {
    if (g->N * g->C > INT_MAX / p->height) return false;
    if (!p->needed) return *bytes = 0, true;
    return fac_size_mul((size_t)(g->N * g->C * p->height), (size_t)p->row * sizeof(float), bytes);
}

void fac_padded_row(const fac_conv_geom *g, const fac_padded *p, const float *from, int64_t plane,
                    int64_t row, float *to) {
    const int64_t y = row - g->pad[1], left = g->pad[2], width = p->row;
    if (y < 0 || y >= g->H || left >= width) {
        memset(to, 0, (size_t)width * sizeof *to);
        return;
    }
    const int64_t n = g->W < width - left ? g->W : width - left;
    memset(to, 0, (size_t)left * sizeof *to);
    memcpy(to + left, from + (plane * g->H + y) * g->W, (size_t)n * sizeof *to);
    memset(to + left + n, 0, (size_t)(width - left - n) * sizeof *to);
}

typedef struct job {
    const fac_conv_geom *g;
    const fac_padded *p;
    const float *from;
    float *to;
} job;

static void copy_row(void *arg, int item, int thread) {
    const job *j = arg;
    const int64_t plane = item / j->p->height, row = item % j->p->height;
    (void)thread;
    fac_padded_row(j->g, j->p, j->from, plane, row, j->to + plane * j->p->plane + row * j->p->row);
}

void fac_padded_copy(const fac_pool *pool, const fac_conv_geom *g, const fac_padded *p,
                     const float *from, float *to) {
    job j = { g, p, from, to };
    fac_parallel(pool, (int)(g->N * g->C * p->height), copy_row, &j);
}
