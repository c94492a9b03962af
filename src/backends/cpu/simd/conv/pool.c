/* Pooling of one row of one channel block: see fac_pool_row in simd_images.h.
 *
 * A window is taken apart: first the rows, once for each column of x, then the columns of that (3 x
 * 3, stride 2: 2 + 1 maxima an output for the rows instead of 6). */
#include <math.h>
#include <stdbool.h>
#include "backends/cpu/simd/vector.h"

enum { PART = 128 }; /* columns of x at a time: 8 KiB of the stack with the widest vectors */

INLINE vec join(const int average, vec a, vec b) { return average ? a + b : larger(a, b); }

/* Outputs q .. last - 1, which see no column outside x0 .. x0 + PART. */
INLINE void part(const int average, const fac_pool_row *t, int64_t q, int64_t last) {
    vec down[PART];
    const int64_t S = t->S, end = (last - 1) * t->stride + (S - 1) * t->dilation - t->pad + 1;
    int64_t x0 = q * t->stride - t->pad, x1 = end < t->in ? end : t->in;
    if (x0 < 0) x0 = 0;
    for (int64_t i = x0; i < x1; i++) {
        const float *x = t->x + i * VL;
        vec v = load(x);
        for (int r = 1; r < t->rows; r++) v = join(average, v, load(x + r * t->x_row));
        down[i - x0] = v;
    }
    for (; q < last; q++) {
        const int64_t at = q * t->stride - t->pad;
        vec v = all(average ? 0 : -INFINITY);
        for (int64_t s = 0; s < S; s++) {
            const int64_t i = at + s * t->dilation;
            if (i >= 0 && i < x1) v = join(average, v, down[i - x0]);
        }
        store(t->y + q * VL, average ? v / all(t->down * t->across[q]) : v);
    }
}

/* The largest of up to three rows of one column; rows that are not there are those that are. */
typedef struct column {
    const float *r0, *r1, *r2;
    int64_t in;
} column;

INLINE vec highest(const column *c, int64_t i) {
    return larger(larger(load(c->r0 + i * VL), load(c->r1 + i * VL)), load(c->r2 + i * VL));
}
INLINE vec highest_inside(const column *c, int64_t i) {
    return i >= 0 && i < c->in ? highest(c, i) : all(-INFINITY);
}

/* The usual pools: maxima of 2 or 3 columns and at most as many rows, of which neighbouring windows
 * share columns. */
INLINE void small(const int S, const int stride, const fac_pool_row *t) {
    const float *x = t->x;
    const column c = { x, t->rows > 1 ? x + t->x_row : x, x + (t->rows - 1) * t->x_row, t->in };
    /* outputs whose windows end inside */
    const int64_t inside = (t->in - S + t->pad) / stride + 1;
    int64_t q = 0, begin = (t->pad + stride - 1) / stride;
    int64_t end = inside < t->width ? inside : t->width;
    if (t->in + t->pad < S) end = 0;
    if (begin > t->width) begin = t->width;
    for (; q < t->width; q++) {
        if (q == begin && begin < end) {
            const int64_t at = q * stride - t->pad;
            vec last = highest(&c, at), middle = S > 2 && stride == 1 ? highest(&c, at + 1) : last;
            for (; q < end; q++) {
                const int64_t i = q * stride - t->pad;
                vec v;
                if (S == 2)
                    v = larger(highest(&c, i), highest(&c, i + 1));
                else if (stride == 1) {
                    const vec next = highest(&c, i + 2);
                    v = larger(larger(last, middle), next);
                    last = middle;
                    middle = next;
                } else {
                    v = larger(last, highest(&c, i + 1));
                    last = highest(&c, i + 2);
                    v = larger(v, last);
                }
                store(t->y + q * VL, v);
            }
            if (q == t->width) break;
        }
        vec v = all(-INFINITY);
        for (int s = 0; s < S; s++) v = larger(v, highest_inside(&c, q * stride - t->pad + s));
        store(t->y + q * VL, v);
    }
}

static void small_2_2(const fac_pool_row *t) { small(2, 2, t); }
static void small_3_1(const fac_pool_row *t) { small(3, 1, t); }
static void small_3_2(const fac_pool_row *t) { small(3, 2, t); }

static bool is_small(const fac_pool_row *t) {
    bool usual = (t->S == 2 && t->stride == 2) || (t->S == 3 && (t->stride == 1 || t->stride == 2));
    return usual && !t->across && t->dilation == 1 && t->rows >= 1 && t->rows <= 3 && t->pad >= 0;
}

extern fac_pool_kernel FAC_SIMD(fac_pool);
void FAC_SIMD(fac_pool)(const fac_pool_row *t) {
    if (is_small(t)) {
        if (t->S == 2)
            small_2_2(t);
        else if (t->stride == 1)
            small_3_1(t);
        else
            small_3_2(t);
        return;
    }
    const int64_t span = (int64_t)(t->S - 1) * t->dilation + 1;
    const int64_t most =
        (PART - span) / t->stride + 1; /* outputs of a part; the solver saw to span <= PART */
    for (int64_t q = 0; q < t->width; q += most) {
        const int64_t last = q + most < t->width ? q + most : t->width;
        if (t->rows == 0)
            for (int64_t i = q; i < last; i++) store(t->y + i * VL, all(t->across ? 0 : -INFINITY));
        else if (t->across)
            part(1, t, q, last);
        else
            part(0, t, q, last);
    }
}
