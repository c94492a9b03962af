/* Copies between any two layouts.
 *
 * A blocked axis of C = b m + r elements is two strided axes (m, b) and a rest r, so a copy is a
 * few strided loop nests, the pieces.  A piece is sorted by the strides of the target and merged
 * where both sides allow; what remains inside is one of
 *   RUN         both sides contiguous along q: memcpy
 *   TRANSPOSE   the source contiguous along p, the target along q: a transpose
 *   STEP        anything else, element by element
 * and the work is shared between threads by tiles. */
#include <stdlib.h>
#include <string.h>
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/ranges.h"
#include "backends/cpu/device/streams.h"

enum { TILE_BYTES = 32 << 10, SERIAL_BYTES = 128 << 10, HALO_ROWS = 2000, PUT_BYTES = 256 };
enum {
    TRANSPOSE_LONG = 4096,
    TRANSPOSE_LINES = 16,
    TRANSPOSE_LARGE = 8 << 20,
    SECOND_CACHE = 1 << 20
}; /* elements, lines, bytes, bytes */
enum { SHARES = 64 };

size_t fac_copy_size(fac_dtype dtype) {
    const fac_dtype_info *i = fac_dtype_get(dtype);
    return i->block_elements == 1 && i->kind != 't' && i->kind != 0 ? (size_t)i->block_bytes : 0;
}

static int64_t lower(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- planning ---- */

typedef struct nest {
    int n;
    int64_t d[FAC_COPY_DIMS], from[FAC_COPY_DIMS], to[FAC_COPY_DIMS], from_at, to_at;
} nest;

/* How many lines of the source are transposed at once: as many as make up for short ones, more
 * where memory and not the caches has them, but no more than can lie in a second cache beside each
 * other: `stride` may put their places into few of its sets. */
static int64_t transposed_lines(int64_t stride, int64_t length, bool large) {
    const int64_t lines = 2 * TRANSPOSE_LONG / length, few = (large ? 4 : 2) * TRANSPOSE_LINES,
                  wanted = lines > few ? lines : few;
    const int64_t beside = stride ? lower(wanted, SECOND_CACHE / (stride & -stride)) : wanted;
    return beside > TRANSPOSE_LINES ? beside / TRANSPOSE_LINES * TRANSPOSE_LINES : TRANSPOSE_LINES;
}

static void put_dim(nest *t, int64_t d, int64_t from, int64_t to) {
    if (d == 1) return;
    t->d[t->n] = d;
    t->from[t->n] = from;
    t->to[t->n] = to;
    t->n++;
}

static void put_piece(fac_copy *c, nest t) {
    int64_t size = (int64_t)c->size;
    for (int k = 0; k < t.n; k++)
        if (t.d[k] == 0) return;
    for (int k = 1; k < t.n; k++) /* outermost: the largest stride of the target */
        for (int j = k; j > 0 && llabs(t.to[j - 1]) < llabs(t.to[j]); j--) {
            int64_t d = t.d[j], f = t.from[j], o = t.to[j];
            t.d[j] = t.d[j - 1];
            t.from[j] = t.from[j - 1];
            t.to[j] = t.to[j - 1];
            t.d[j - 1] = d;
            t.from[j - 1] = f;
            t.to[j - 1] = o;
        }
    int n = 0;
    for (int k = 0; k < t.n; k++) {
        bool joins =
            n > 0 && t.from[n - 1] == t.from[k] * t.d[k] && t.to[n - 1] == t.to[k] * t.d[k];
        int at = joins ? n - 1 : n++;
        t.d[at] = joins ? t.d[at] * t.d[k] : t.d[k];
        t.from[at] = t.from[k];
        t.to[at] = t.to[k];
    }

    fac_copy_piece *p = &c->piece[c->pieces++];
    *p = (fac_copy_piece){ .from_at = t.from_at, .to_at = t.to_at };
    for (; p->n < 2 - n; p->n++) p->d[p->n] = 1;
    for (int k = 0; k < n; k++, p->n++) {
        p->d[p->n] = t.d[k];
        p->from[p->n] = t.from[k];
        p->to[p->n] = t.to[k];
    }
    int q = p->n - 1, contiguous = -1;
    if (n == 0) p->from[q] = p->to[q] = size; /* one element */
    if (p->to[q] == size && p->from[q] != size)
        for (int k = 0; k < q; k++)
            if (p->from[k] == size) contiguous = k;
    if (contiguous >= 0) { /* p is the dim along which the source is contiguous */
        int64_t d = p->d[contiguous], f = p->from[contiguous], o = p->to[contiguous];
        for (int k = contiguous; k < q - 1; k++) {
            p->d[k] = p->d[k + 1];
            p->from[k] = p->from[k + 1];
            p->to[k] = p->to[k + 1];
        }
        p->d[q - 1] = d;
        p->from[q - 1] = f;
        p->to[q - 1] = o;
    }
    p->kind = contiguous >= 0                          ? FAC_COPY_TRANSPOSE
              : p->to[q] == size && p->from[q] == size ? FAC_COPY_RUN
                                                       : FAC_COPY_STEP;
    int64_t area = TILE_BYTES / size;
    if (p->kind ==
        FAC_COPY_TRANSPOSE) { /* long runs of the source, and few lines of the target at a time */
        p->tile_p = lower(p->d[q - 1], TRANSPOSE_LONG);
        int64_t bytes = size;
        for (int k = 0; k <= q; k++) bytes *= p->d[k];
        p->tile_q =
            lower(p->d[q], transposed_lines(p->from[q], p->tile_p, bytes >= TRANSPOSE_LARGE));
    } else {
        p->tile_q = lower(p->d[q], area);
        p->tile_p = lower(p->d[q - 1], area / p->tile_q);
    }
    p->units =
        ((p->d[q] + p->tile_q - 1) / p->tile_q) * ((p->d[q - 1] + p->tile_p - 1) / p->tile_p);
    for (int k = 0; k < q - 1; k++) p->units *= p->d[k];
}

/* Where index i of axis k begins, in bytes.  Also the distance of i, where i is a whole number of
 * blocks or inside one. */
static int64_t place(const fac_layout *l, int k, int64_t i, int64_t size) {
    int64_t block = l->block > 0 && l->axis == k ? l->block : 0;
    return size * (block ? i / block * l->stride[k] + i % block : i * l->stride[k]);
}

/* Adds axis k and those after it; t holds the axes before it. */
static void put_axes(fac_copy *c, const fac_dims *dims, const fac_layout *from,
                     const fac_layout *to, int k, nest t) {
    if (k == dims->n) {
        put_piece(c, t);
        return;
    }
    int64_t size = (int64_t)c->size, n = dims->d[k];
    int64_t a = from->block > 0 && from->axis == k ? from->block : 1,
            b = to->block > 0 && to->axis == k ? to->block : 1;
    /* Three parts: whole large blocks, whole small blocks after them, single elements after
     * those. */
    int64_t large = a > b ? a : b;
    int64_t small = a > 1 && b > 1 ? lower(a, b) : large;
    int64_t cut[4] = { 0, n / large * large, n / small * small, n }, inner[3] = { large, small, 1 };
    for (int part = 0; part < 3; part++) {
        nest s = t;
        int64_t at = cut[part], count = cut[part + 1] - at;
        if (count == 0 && !(n == 0 && part == 2)) continue;
        s.from_at += place(from, k, at, size);
        s.to_at += place(to, k, at, size);
        put_dim(&s, count / inner[part], place(from, k, inner[part], size),
                place(to, k, inner[part], size));
        if (part == 0)
            put_dim(&s, large / small, place(from, k, small, size), place(to, k, small, size));
        if (part <= 1) put_dim(&s, small, place(from, k, 1, size), place(to, k, 1, size));
        put_axes(c, dims, from, to, k + 1, s);
    }
}

void fac_copy_plan(fac_copy *c, const fac_dims *dims, const fac_layout *from, const fac_layout *to,
                   size_t size) {
    int64_t bytes = (int64_t)size;
    c->size = size;
    c->pieces = 0;
    for (int k = 0; k < dims->n; k++)
        if (dims->d[k] == 0) return;
    put_axes(c, dims, from, to, 0,
             (nest){ .from_at = from->offset * bytes, .to_at = to->offset * bytes });
}

bool fac_copy_fits(const fac_layout *from, const fac_layout *to) {
    int a = from->block, b = to->block;
    return a == 0 || b == 0 || from->axis != to->axis || (a > b ? a % b : b % a) == 0;
}

bool fac_copy_part(const fac_layout *whole, const fac_dims *dims, const int64_t *start,
                   fac_layout *part) {
    fac_layout l = *whole;
    for (int k = 0; k < dims->n; k++) {
        if (l.block > 0 && l.axis == k && start[k] % l.block != 0) return false;
        l.offset += place(whole, k, start[k], 1);
    }
    *part = l;
    return true;
}

/* ---- running: the kernels of one tile of np x nq elements ---- */

typedef uint8_t u8 __attribute__((may_alias));
typedef uint16_t u16 __attribute__((may_alias));
typedef uint32_t u32 __attribute__((may_alias));
typedef uint64_t u64 __attribute__((may_alias));

static void run_tile(const fac_streams *past, const char *from, int64_t from_p, char *to,
                     int64_t to_p, int64_t np, size_t bytes) {
    if (past && bytes >= PUT_BYTES) {
        for (int64_t p = 0; p < np; p++) past->put(to + p * to_p, from + p * from_p, bytes);
        return;
    }
    switch (bytes) { /* a vector or two of channels: no call to memcpy */
    case 32:
        for (int64_t p = 0; p < np; p++) memcpy(to + p * to_p, from + p * from_p, 32);
        return;
    case 64:
        for (int64_t p = 0; p < np; p++) memcpy(to + p * to_p, from + p * from_p, 64);
        return;
    default:
        for (int64_t p = 0; p < np; p++) memcpy(to + p * to_p, from + p * from_p, bytes);
    }
}

#define T u8
#define NAME step_1
#include "backends/cpu/move/copy_step.h"
#define T u16
#define NAME step_2
#include "backends/cpu/move/copy_step.h"
#define T u32
#define NAME step_4
#include "backends/cpu/move/copy_step.h"
#define T u64
#define NAME step_8
#include "backends/cpu/move/copy_step.h"

/* ---- running: tiles, shared between threads ---- */

/* past: NULL where the caches are to hold what is written. */
typedef struct job {
    const fac_copy_piece *p;
    const fac_streams *past;
    fac_transpose_kernel *transpose;
    size_t size;
    const char *from;
    char *to;
} job;

static void tile(const job *j, const char *from, char *to, int64_t np, int64_t nq) {
    const fac_copy_piece *c = j->p;
    int q = c->n - 1, p = q - 1;
    if (c->kind == FAC_COPY_RUN)
        run_tile(j->past, from, c->from[p], to, c->to[p], np, (size_t)nq * j->size);
    else if (c->kind == FAC_COPY_TRANSPOSE && j->size == 4)
        j->transpose((const float *)(const void *)from, c->from[q] / 4, (float *)(void *)to,
                     c->to[p] / 4, nq, np);
    else if (j->size == 1)
        step_1(from, c->from[p], c->from[q], to, c->to[p], c->to[q], np, nq);
    else if (j->size == 2)
        step_2(from, c->from[p], c->from[q], to, c->to[p], c->to[q], np, nq);
    else if (j->size == 4)
        step_4(from, c->from[p], c->from[q], to, c->to[p], c->to[q], np, nq);
    else
        step_8(from, c->from[p], c->from[q], to, c->to[p], c->to[q], np, nq);
}

/* Units [first, last): the tiles of q run fastest, then those of p, then the outer dims from
 * the last to the first. */
static void run_units(void *arg, int64_t first, int64_t last, int thread) {
    (void)thread;
    const job *j = arg;
    const fac_copy_piece *c = j->p;
    int q = c->n - 1, p = q - 1;
    int64_t nq = (c->d[q] + c->tile_q - 1) / c->tile_q, np = (c->d[p] + c->tile_p - 1) / c->tile_p;
    int64_t i[FAC_COPY_DIMS], rest = first;
    int64_t tq = rest % nq, tp = rest / nq % np;
    const char *from = j->from + c->from_at;
    char *to = j->to + c->to_at;
    rest /= nq * np;
    for (int k = p - 1; k >= 0; k--) {
        i[k] = rest % c->d[k];
        rest /= c->d[k];
        from += i[k] * c->from[k];
        to += i[k] * c->to[k];
    }
    for (int64_t u = first; u < last; u++) {
        int64_t p0 = tp * c->tile_p, q0 = tq * c->tile_q;
        tile(j, from + p0 * c->from[p] + q0 * c->from[q], to + p0 * c->to[p] + q0 * c->to[q],
             lower(c->tile_p, c->d[p] - p0), lower(c->tile_q, c->d[q] - q0));
        if (++tq < nq) continue;
        tq = 0;
        if (++tp < np) continue;
        tp = 0;
        for (int k = p - 1; k >= 0; k--) {
            from += c->from[k];
            to += c->to[k];
            if (++i[k] < c->d[k]) break;
            from -= i[k] * c->from[k];
            to -= i[k] * c->to[k];
            i[k] = 0;
        }
    }
    if (j->past) fac_streams_end();
}

void fac_copy_run(const fac_copy *c, const fac_cpu *cpu, const void *from, void *to) {
    for (int k = 0; k < c->pieces; k++) {
        const fac_copy_piece *p = &c->piece[k];
        double bytes = (double)c->size;
        for (int i = 0; i < p->n; i++) bytes *= (double)p->d[i];
        const fac_streams *past = fac_streams_past(cpu, (size_t)bytes) ? cpu->simd->streams : NULL;
        job j = { p, past, past ? past->transpose_past : cpu->simd->transpose, c->size, from, to };
        fac_parallel_ranges(&cpu->pool, p->units, bytes < SERIAL_BYTES ? 1 : SHARES, run_units, &j);
    }
}

/* ---- halos ---- */

typedef struct halo {
    const fac_layout *l;
    const fac_dims *dims;
    int64_t size;
    char *memory;
} halo;

static void zero_planes(void *arg, int64_t from, int64_t to, int thread) {
    (void)thread;
    const halo *z = arg;
    const fac_layout *l = z->l;
    int n = z->dims->n;
    int64_t h = z->dims->d[n - 2], w = z->dims->d[n - 1], row = l->stride[n - 2] * z->size,
            step = l->stride[n - 1] * z->size;
    int64_t side = l->halo * step, line = w * step + 2 * side;
    for (int64_t o = from; o < to; o++) {
        char *plane = z->memory + l->offset * z->size;
        int64_t rest = o;
        for (int k = n - 3; k >= 0; k--) {
            int64_t d = l->block > 0 && l->axis == k ? (z->dims->d[k] + l->block - 1) / l->block
                                                     : z->dims->d[k];
            plane += rest % d * l->stride[k] * z->size;
            rest /= d;
        }
        char *first = plane - l->halo * row - side;
        for (int64_t y = -l->halo; y < 0; y++, first += row) memset(first, 0, (size_t)line);
        for (int64_t y = 0; y < h; y++, first += row) {
            memset(first, 0, (size_t)side);
            memset(first + side + w * step, 0, (size_t)side);
        }
        for (int64_t y = 0; y < l->halo; y++, first += row) memset(first, 0, (size_t)line);
    }
}

void fac_halo_zero(const fac_layout *l, const fac_dims *dims, size_t size, const fac_pool *pool,
                   void *memory) {
    if (l->halo == 0 || dims->n < 2) return;
    halo z = { l, dims, (int64_t)size, memory };
    int64_t planes = 1;
    for (int k = 0; k < dims->n - 2; k++)
        planes *=
            l->block > 0 && l->axis == k ? (dims->d[k] + l->block - 1) / l->block : dims->d[k];
    if (planes == 0 || dims->d[dims->n - 2] == 0 || dims->d[dims->n - 1] == 0) return;
    fac_parallel_ranges(pool, planes, planes * dims->d[dims->n - 2] > HALO_ROWS ? SHARES : 1,
                        zero_planes, &z);
}
