/* qlinear_add/bytes, qlinear_mul/bytes, max_pool2d/bytes, qlinear_global_avg_pool/bytes: what lies
 * between convolutions of bytes, with channels last. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "backends/draft.h"
#include "backends/cpu/bytes/bytes_internal.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/cpu.h"
#include "cpu_solvers.h"
#include "op_list.h"
#include "ops/pool.h"
#include "ops/quant_pair.h"
#include "ops/quant.h"

/* ---- qlinear_add, qlinear_mul ---- */

enum { ITEM = 16 << 10, LEAST_ROW = 16 };

/* A row of b serves `share` rows of a, then the next one does; the first one after the last. */
typedef struct pair_rows {
    int64_t length, share, rows; /* rows: of b */
} pair_rows;
typedef struct pair_plan {
    const fac_cpu *cpu;
    int64_t n, at[3]; /* elements; offsets of a, b, y */
    pair_rows rows;
    int64_t together; /* rows of an item */
    bool sign, mul, single;
} pair_plan;
typedef struct pair_job {
    const pair_plan *p;
    const fac_byte_pair *numbers;
    const char *a, *b;
    char *y;
} pair_job;

/* b is the last dims of y, as a bias of columns is. */
static bool is_last_dims(const fac_dims *b, const fac_dims *y, pair_rows *to) {
    int first = 0;
    while (first < b->n && b->d[first] == 1) first++;
    const int n = b->n - first;
    if (!n || n > y->n) return false;
    for (int k = 0; k < n; k++)
        if (b->d[first + k] != y->d[y->n - n + k]) return false;
    *to = (pair_rows){ fac_dims_count(b), 1, 1 };
    return true;
}

/* b has a number for each channel of images, or of each image. */
static bool is_channels(const fac_dims *b, const fac_dims *y, pair_rows *to) {
    if (y->n != 4 || b->n != 4 || b->d[1] != y->d[1] || b->d[2] != 1 || b->d[3] != 1) return false;
    *to = (pair_rows){ b->d[1], y->d[2] * y->d[3], b->d[0] };
    return b->d[0] == 1 || b->d[0] == y->d[0];
}

/* How b goes with y, and how a must lie for that. */
typedef enum order { NONE, ANY, PLAIN, CHANNELS_LAST } order;
static order pair_order(const fac_problem *p, pair_rows *to) {
    const fac_dims *b = &p->in[FAC_PAIR_B].type.dims, *y = &p->out[0].type.dims;
    *to = (pair_rows){ fac_dims_count(y), 1, 1 };
    if (fac_dims_equal(b, y) || fac_dims_count(b) == 1) return ANY;
    order o = is_last_dims(b, y, to) ? PLAIN : NONE;
    if (!o && is_channels(b, y, to)) o = CHANNELS_LAST;
    return to->length >= LEAST_ROW ? o : NONE;
}

static bool pair_offer(fac_device *d, fac_problem *p, fac_offer *o) {
    fac_operand *a = &p->in[FAC_PAIR_A], *b = &p->in[FAC_PAIR_B], *y = &p->out[0];
    pair_rows rows;
    if (p->node->body[0] || !fac_is_byte(a->type.dtype) ||
        !fac_dims_equal(&a->type.dims, &y->type.dims))
        return false;
    const order lies = pair_order(p, &rows);
    if (fac_dims_count(&y->type.dims) <= 0 || lies == NONE) return false;
    if (lies == PLAIN || (lies == ANY && !fac_byte_dense(&a->layout, &a->type.dims)))
        a->layout = fac_layout_plain(&a->type.dims);
    if (lies == CHANNELS_LAST) a->layout = fac_layout_channels_last(&a->type.dims);
    a->layout.offset = 0;
    if (fac_dims_equal(&b->type.dims, &y->type.dims))
        b->layout = a->layout;
    else
        b->layout = fac_layout_plain(&b->type.dims);
    y->layout = a->layout;
    o->seconds = fac_cpu_seconds(fac_cpu_of(d), 0, 1, 3 * (double)fac_dims_count(&y->type.dims));
    return true;
}

static fac_status pair_make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    pair_plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    *q = (pair_plan){ .cpu = fac_cpu_of(d),
                      .n = fac_dims_count(&p->out[0].type.dims),
                      .at = { p->in[FAC_PAIR_A].layout.offset, p->in[FAC_PAIR_B].layout.offset,
                              p->out[0].layout.offset },
                      .sign = p->in[FAC_PAIR_A].type.dtype == FAC_I8,
                      .mul = FAC_IS(p->node, qlinear_mul),
                      .single = fac_dims_count(&p->in[FAC_PAIR_B].type.dims) == 1 };
    pair_order(p, &q->rows);
    q->together = q->rows.length < ITEM ? ITEM / q->rows.length : 1;
    *out = q;
    return FAC_OK;
}
/* Of operands that lie alike. */
static void pair_item(void *arg, int i, int thread) {
    const pair_job *j = arg;
    const int64_t first = (int64_t)i * ITEM, left = j->p->n - first;
    const size_t n = (size_t)(left < ITEM ? left : ITEM);
    (void)thread;
    j->p->cpu->bytes->pair(j->numbers, n, j->a + first, j->b + (j->p->single ? 0 : first),
                           j->y + first);
}

static void pair_row_item(void *arg, int i, int thread) {
    const pair_job *j = arg;
    const pair_rows *r = &j->p->rows;
    const int64_t all = j->p->n / r->length, first = i * j->p->together,
                  last = first + j->p->together;
    (void)thread;
    for (int64_t k = first; k < last && k < all; k++)
        j->p->cpu->bytes->pair(j->numbers, (size_t)r->length, j->a + k * r->length,
                               j->b + k / r->share % r->rows * r->length, j->y + k * r->length);
}

static void pair_all(const pair_job *j) {
    const pair_plan *p = j->p;
    const fac_pool *pool = &p->cpu->pool;
    const int64_t rows = p->n / p->rows.length;
    if (rows == 1)
        fac_parallel(pool, (int)((p->n + ITEM - 1) / ITEM), pair_item, (void *)(uintptr_t)j);
    else
        fac_parallel(pool, (int)((rows + p->together - 1) / p->together), pair_row_item,
                     (void *)(uintptr_t)j);
}

static float f32_at(fac_span s) {
    float x;
    memcpy(&x, fac_span_bytes(s), sizeof x);
    return x;
}
static float zero_at(fac_span s, bool sign) {
    const char *p = fac_span_bytes(s);
    return sign ? (float)*(const int8_t *)p : (float)*(const uint8_t *)p;
}

static fac_status pair_run(const void *plan, fac_device *d, const fac_span *in, const fac_span *out,
                           fac_span work, fac_error *err) {
    const pair_plan *p = plan;
    const float sa = f32_at(in[FAC_PAIR_A_SCALE]), sb = f32_at(in[FAC_PAIR_B_SCALE]);
    const float sy = f32_at(in[FAC_PAIR_Y_SCALE]);
    fac_byte_pair k = { .ra = sa / sy,
                        .rb = sb / sy,
                        .factor = sa * sb / sy,
                        .a_zero = zero_at(in[FAC_PAIR_A_ZERO], p->sign),
                        .b_zero = zero_at(in[FAC_PAIR_B_ZERO], p->sign),
                        .y_zero = zero_at(in[FAC_PAIR_Y_ZERO], p->sign),
                        .sign = p->sign,
                        .mul = p->mul,
                        .single = p->single };
    k.off = k.y_zero - fmaf(k.ra, k.a_zero, k.rb * k.b_zero);
    pair_job j = { p, &k, fac_span_bytes(in[FAC_PAIR_A]) + p->at[0],
                   fac_span_bytes(in[FAC_PAIR_B]) + p->at[1], fac_span_bytes(out[0]) + p->at[2] };
    (void)d, (void)work, (void)err;
    pair_all(&j);
    return FAC_OK;
}

const fac_solver fac_cpu_qlinear_add = { .name = "qlinear_add/bytes",
                                         .op = &fac_op_qlinear_add,
                                         .rank = 1030,
                                         .offer = pair_offer,
                                         .make = pair_make,
                                         .done = fac_solver_done,
                                         .run = pair_run };
const fac_solver fac_cpu_qlinear_mul = { .name = "qlinear_mul/bytes",
                                         .op = &fac_op_qlinear_mul,
                                         .rank = 1040,
                                         .offer = pair_offer,
                                         .make = pair_make,
                                         .done = fac_solver_done,
                                         .run = pair_run };

/* ---- pools ---- */

typedef struct pool_plan {
    const fac_cpu *cpu;
    fac_pool_geom g;
    fac_layout x, y;
    bool sign, y_sign;
} pool_plan;
typedef struct pool_job {
    const pool_plan *p;
    const char *x;
    char *y;
    int32_t *sums;
    float factor, x_zero, y_zero;
} pool_job;

static bool last_offer(fac_device *d, fac_problem *p, fac_offer *o) {
    const fac_dims *x = &p->in[0].type.dims;
    if (p->node->body[0] || x->n != 4 || fac_dims_count(x) <= 0 ||
        fac_dims_count(&p->out[0].type.dims) <= 0)
        return false;
    p->in[0].layout = fac_layout_channels_last(x);
    p->out[0].layout = fac_layout_channels_last(&p->out[0].type.dims);
    o->seconds = fac_cpu_seconds(fac_cpu_of(d), 0, 1, 4 * (double)fac_dims_count(x));
    return true;
}

static fac_status pool_make(fac_device *d, const fac_problem *p, void **out, fac_error *err) {
    pool_plan *q = fac_solver_plan(p, sizeof *q, err);
    if (!q) return FAC_E_NOMEM;
    *q = (pool_plan){ .cpu = fac_cpu_of(d),
                      .x = p->in[0].layout,
                      .y = p->out[0].layout,
                      .sign = p->in[0].type.dtype == FAC_I8,
                      .y_sign = p->out[0].type.dtype == FAC_I8 };
    q->g.N = p->in[0].type.dims.d[0];
    q->g.C = p->in[0].type.dims.d[1];
    q->g.window[1].in = p->in[0].type.dims.d[2];
    q->g.window[2].in = p->in[0].type.dims.d[3];
    if (FAC_IS(p->node, max_pool2d))
        fac_pool_geometry_of(2, p->node->attrs, &p->in[0].type.dims, &q->g);
    *out = q;
    return FAC_OK;
}

static bool max_offer(fac_device *d, fac_problem *p, fac_offer *o) {
    fac_pool_geom g;
    if (!fac_is_byte(p->in[0].type.dtype) || p->in[0].type.dims.n != 4) return false;
    if (p->nout > 1 && p->out[1].type.dtype != FAC_NONE) return false;
    if (!fac_pool_geometry_of(2, p->node->attrs, &p->in[0].type.dims, &g) || !last_offer(d, p, o))
        return false;
    o->work = (size_t)fac_cpu_of(d)->pool.threads * fac_byte_lines((size_t)(g.window[2].in * g.C));
    return true;
}

/* Bytes of the largest of each column that one thread works out. */
static size_t column_bytes(const pool_plan *p) {
    return fac_byte_lines((size_t)(p->g.window[2].in * p->g.C));
}

/* One row of outputs: the largest of each column of its window first, then of the columns. */
static void max_row(void *arg, int i, int thread) {
    const pool_job *j = arg;
    const pool_plan *p = j->p;
    const fac_window *h = &p->g.window[1], *w = &p->g.window[2];
    const int64_t image = i / h->out, row = i % h->out, C = p->g.C;
    const int smallest = p->sign ? 0x80 : 0;
    char *column = (char *)j->sums + (size_t)thread * column_bytes(p);
    char *y = j->y + image * p->y.stride[0] + row * p->y.stride[2];
    fac_byte_most m = { (size_t)C, (size_t)w->in, p->x.stride[3], C, p->sign };
    int64_t r0, r1;
    memset(column, smallest, (size_t)(w->in * C));
    if (m.x_pixel == C) { /* pixels follow each other */
        m.n *= m.pixels;
        m.pixels = 1;
    }
    fac_window_taps(h, row, &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        const int64_t a = row * h->stride + r * h->dilation - h->pad;
        p->cpu->bytes->most(&m, j->x + image * p->x.stride[0] + a * p->x.stride[2], column);
    }
    for (int64_t q = 0; q < w->out; q++) memset(y + q * p->y.stride[3], smallest, (size_t)C);
    for (int64_t s = 0; s < w->kernel; s++) {
        int64_t first, last;
        fac_window_inside(w, s, &first, &last);
        if (first == last) continue;
        const int64_t at = first * w->stride + s * w->dilation - w->pad;
        m = (fac_byte_most){ (size_t)C, (size_t)(last - first), w->stride * C, p->y.stride[3],
                             p->sign };
        p->cpu->bytes->most(&m, column + at * C, y + first * m.y_pixel);
    }
}

static fac_status max_run(const void *plan, fac_device *d, const fac_span *in, const fac_span *out,
                          fac_span work, fac_error *err) {
    const pool_plan *p = plan;
    pool_job j = { .p = p,
                   .x = fac_span_bytes(in[0]) + p->x.offset,
                   .y = fac_span_bytes(out[0]) + p->y.offset,
                   .sums = (int32_t *)(void *)fac_span_bytes(work) };
    (void)d, (void)err;
    fac_parallel(&p->cpu->pool, (int)(p->g.N * p->g.window[1].out), max_row, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_max_pool_bytes = { .name = "max_pool2d/bytes",
                                            .op = &fac_op_max_pool2d,
                                            .rank = 1050,
                                            .offer = max_offer,
                                            .make = pool_make,
                                            .done = fac_solver_done,
                                            .run = max_run };

static bool mean_offer(fac_device *d, fac_problem *p, fac_offer *o) {
    if (!last_offer(d, p, o)) return false;
    const fac_dims *x = &p->in[0].type.dims;
    o->work = (size_t)(x->d[0] * x->d[1]) * sizeof(int32_t);
    return x->d[0] <= INT_MAX;
}

static void mean_image(void *arg, int i, int thread) {
    const pool_job *j = arg;
    const pool_plan *p = j->p;
    const int64_t C = p->g.C, H = p->g.window[1].in, W = p->g.window[2].in;
    int32_t *sum = j->sums + i * C;
    char *y = j->y + i * p->y.stride[0];
    const float least = p->y_sign ? -128 : 0, most = least + 255;
    (void)thread;
    memset(sum, 0, (size_t)C * sizeof *sum);
    for (int64_t h = 0; h < H; h++)
        for (int64_t w = 0; w < W; w++)
            p->cpu->bytes->sum((size_t)C,
                               j->x + i * p->x.stride[0] + h * p->x.stride[2] + w * p->x.stride[3],
                               p->sign, sum);
    for (int64_t c = 0; c < C; c++) {
        const int32_t centred = sum[c] - (int32_t)(H * W) * (int32_t)j->x_zero;
        float v = nearbyintf((float)centred * j->factor) + j->y_zero;
        v = v < least ? least : v;
        y[c] = (char)(int)(v > most ? most : v);
    }
}

static fac_status mean_run(const void *plan, fac_device *d, const fac_span *in, const fac_span *out,
                           fac_span work, fac_error *err) {
    const pool_plan *p = plan;
    const float n = (float)(p->g.window[1].in * p->g.window[2].in);
    pool_job j = { .p = p,
                   .x = fac_span_bytes(in[0]) + p->x.offset,
                   .y = fac_span_bytes(out[0]) + p->y.offset,
                   .sums = (int32_t *)(void *)fac_span_bytes(work),
                   .factor = f32_at(in[1]) / (f32_at(in[3]) * n),
                   .x_zero = zero_at(in[2], p->sign),
                   .y_zero = zero_at(in[4], p->y_sign) };
    (void)d, (void)err;
    fac_parallel(&p->cpu->pool, (int)p->g.N, mean_image, &j);
    return FAC_OK;
}

const fac_solver fac_cpu_qlinear_mean = { .name = "qlinear_global_avg_pool/bytes",
                                          .op = &fac_op_qlinear_global_avg_pool,
                                          .rank = 1060,
                                          .offer = mean_offer,
                                          .make = pool_make,
                                          .done = fac_solver_done,
                                          .run = mean_run };
