/* Copies between strided places, see copy.h. */
#include "backends/opencl/move/copy.h"
#include "base/error.h"
#include "cl_copy.h"

enum {
    TILE = 32,
    ROWS = 8,
    SMALL_TILE = 16,
    NEAR_TILE = 64,
    LONG_RUN = 4096,
    GROUP = 256,
    FEW = 16,
    ACCESS = 16,
    PAIRS_TILE = 128,
    PAIRS_LOCAL = 4 * 128 * 65, /* of elements of 16 bits: rows of 256 bytes; local memory */
    AHEAD = 4,
    HOLDS = 2048
}; /* units of an item at most; items of a compute unit */

const char *fac_cl_bits(size_t bytes) {
    return bytes == 1    ? "uchar"
           : bytes == 2  ? "ushort"
           : bytes == 4  ? "uint"
           : bytes == 8  ? "ulong"
           : bytes == 16 ? "uint4"
                         : "";
}

static void swap(int64_t *x, int a, int b) {
    const int64_t t = x[a];
    x[a] = x[b];
    x[b] = t;
}

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

void fac_cl_moved_settle(fac_cl_moved *m) {
    int n = 0;
    for (int k = 0; k < m->dims; k++) {
        if (m->size[k] == 1) continue;
        m->size[n] = m->size[k];
        m->from[n] = m->from[k];
        m->to[n] = m->to[k];
        n++;
    }
    for (int k = 1; k < n; k++) /* the largest step in the target first */
        for (int j = k; j > 0 && magnitude(m->to[j]) > magnitude(m->to[j - 1]); j--)
            swap(m->size, j, j - 1), swap(m->from, j, j - 1), swap(m->to, j, j - 1);
    m->dims = 0;
    for (int k = 0; k < n; k++) {
        const int last = m->dims - 1;
        const int64_t d = m->size[k], from = m->from[k], to = m->to[k];
        if (last >= 0 && m->from[last] == from * d && m->to[last] == to * d) {
            m->size[last] *= d;
            m->from[last] = from;
            m->to[last] = to;
        } else
            fac_cl_moved_dim(m, d, from, to);
    }
    if (!m->dims) fac_cl_moved_dim(m, 1, 1, 1);
}

/* Which dim has neighbours in x, when that is not the last; -1. */
static int crossing(const fac_cl_moved *m) {
    const int last = m->dims - 1;
    if (m->to[last] != 1 || m->from[last] == 1 || m->from[last] == 0 || m->size[last] < FEW)
        return -1;
    for (int k = 0; k < last; k++)
        if (m->from[k] == 1 && m->size[k] >= FEW) return k;
    return -1;
}

static void push(fac_cl_call *c, const fac_cl_moved *m) {
    for (int k = 0; k < m->dims; k++) fac_cl_call_number(c, m->size[k]);
    for (int k = 0; k < m->dims; k++) fac_cl_call_number(c, m->from[k]);
    for (int k = 0; k < m->dims; k++) fac_cl_call_number(c, m->to[k]);
}

/* On a GPU neighbours are copied as one larger element, up to 16 bytes of them, where all rows
 * begin at multiples of that. */
static size_t widen(fac_cl_moved *m, size_t bytes) {
    const int last = m->dims - 1;
    if (m->from[last] != 1 || m->to[last] != 1) return bytes;
    for (; bytes < ACCESS; bytes *= 2) {
        bool even = m->size[last] % 2 == 0 && m->from_offset % 2 == 0 && m->to_offset % 2 == 0;
        for (int k = 0; k < last; k++) even &= m->from[k] % 2 == 0 && m->to[k] % 2 == 0;
        if (!even) break;
        m->size[last] /= 2;
        m->from_offset /= 2;
        m->to_offset /= 2;
        for (int k = 0; k < last; k++) {
            m->from[k] /= 2;
            m->to[k] /= 2;
        }
    }
    return bytes;
}

/* Whether so many elements of squares that change sides come and go in one access of a GPU:
 * neighbours in x along dim last - 1, neighbours in y along the last. */
static bool comes_near(const fac_opencl *o, const fac_cl_moved *m, int64_t near, int64_t tile) {
    const int last = m->dims - 1;
    bool fits = o->limits.gpu && o->limits.group >= GROUP && m->size[last] >= tile / 2 &&
                m->size[last - 1] >= tile / 2;
    fits &= m->size[last] % near == 0 && m->size[last - 1] % near == 0 &&
            m->from_offset % near == 0 && m->to_offset % near == 0;
    for (int k = 0; k < m->dims; k++)
        fits &= (k == last - 1 || m->from[k] % near == 0) && (k == last || m->to[k] % near == 0);
    return fits;
}

fac_status fac_cl_copy_add(fac_opencl *o, fac_cl_plan *plan, const fac_problem *p, int i, int k,
                           const fac_cl_moved *given, size_t bytes, fac_error *err) {
    fac_cl_moved m = *given;
    fac_text options = { 0 };
    fac_cl_call *c = NULL;
    const int across = crossing(&m), last = m.dims - 1;
    for (int j = 0; j < m.dims; j++)
        if (!m.size[j]) return FAC_OK;
    for (int j = across; across >= 0 && j + 1 < last; j++)
        swap(m.size, j, j + 1), swap(m.from, j, j + 1), swap(m.to, j, j + 1);
    if (o->limits.gpu && across < 0) bytes = widen(&m, bytes);
    fac_text_print(&options, "-DV=1 -DT=float -DM=%s -DR=%d", fac_cl_bits(bytes), m.dims);
    const bool pairs = across >= 0 && bytes == 2 && o->limits.local >= PAIRS_LOCAL &&
                       comes_near(o, &m, 8, PAIRS_TILE);
    const int access = bytes > 4 ? ACCESS / (int)bytes : 4;
    const int near = across >= 0 && comes_near(o, &m, access, NEAR_TILE) ? access : 1;
    int tile = o->limits.gpu ? TILE : SMALL_TILE;
    if (near > 1) tile = NEAR_TILE;
    if (pairs) tile = PAIRS_TILE;
    const int rows = o->limits.gpu && near == 1 ? ROWS : 1;
    if (pairs)
        fac_text_print(&options, " -DTILE=%d -DPAIRS -DITEMS=%d", tile, GROUP);
    else if (near > 1)
        fac_text_print(&options, " -DTILE=%d -DNEAR=%d -DITEMS=%d", tile, near, GROUP);
    else if (across >= 0)
        fac_text_print(&options, " -DTILE=%d -DROWS=%d", tile, rows);
    size_t count = 1;
    for (int j = 0; j < m.dims; j++) count *= (size_t)m.size[j];
    int ahead = 1;
    while (ahead < AHEAD && count / (size_t)(2 * ahead) >= (size_t)o->limits.units * HOLDS)
        ahead *= 2;
    if (o->limits.gpu && across < 0) fac_text_print(&options, " -DAHEAD=%d", ahead);
    fac_cl_option_wide(p, &options);
    fac_status status = fac_cl_call_new(o, plan, fac_kernel_copy, &options,
                                        across >= 0 ? "transpose" : "copy", &c, err);
    fac_text_free(&options);
    FAC_TRY(status);
    fac_cl_call_in(c, p, i);
    fac_cl_call_out(c, p, k);
    c->buffer[0].offset = m.from_offset;
    c->buffer[0].size = bytes;
    c->buffer[1].offset = m.to_offset;
    c->buffer[1].size = bytes;
    if (across >= 0) {
        const size_t t = (size_t)tile, np = (size_t)m.size[last - 1], nq = (size_t)m.size[last],
                     high = (np + t - 1) / t, wide = (nq + t - 1) / t;
        fac_cl_call_number(c, (int64_t)high);
        fac_cl_call_number(c, (int64_t)wide);
        fac_cl_call_number(c, 0);
        push(c, &m);
        const size_t squares = high * wide * (count / np / nq);
        if (near > 1)
            fac_cl_call_items(c, squares * GROUP, GROUP);
        else
            c->range = (fac_cl_range){ 2, { t * squares, (size_t)rows }, { t, (size_t)rows } };
        return FAC_OK;
    }
    const int64_t run = o->limits.gpu             ? 1
                        : m.size[last] < LONG_RUN ? m.size[last]
                                                  : LONG_RUN,
                  runs = (m.size[last] + run - 1) / run;
    const size_t units = count / (size_t)m.size[last] * (size_t)runs;
    fac_cl_call_number(c, (int64_t)units);
    fac_cl_call_number(c, runs);
    fac_cl_call_number(c, run);
    push(c, &m);
    const size_t each = (size_t)GROUP * (size_t)ahead;
    if (o->limits.gpu)
        fac_cl_call_items(c, (units + each - 1) / each * GROUP, GROUP);
    else
        fac_cl_call_items(c, units, run * FEW > LONG_RUN ? 1 : FEW);
    return FAC_OK;
}
