/* Physical layouts: where the elements of an operand lie. */
#include <limits.h>
#include "base/memory.h"
#include "facula/backend.h"

/* Products and sums that stick at the largest number: a layout that does not fit is found out by
 * fac_layout_bytes. */
static int64_t times(int64_t a, int64_t b) {
    int64_t c;
    return __builtin_mul_overflow(a, b, &c) ? INT64_MAX : c;
}
static int64_t plus(int64_t a, int64_t b) {
    int64_t c;
    return __builtin_add_overflow(a, b, &c) ? INT64_MAX : c;
}

fac_layout fac_layout_plain(const fac_dims *dims) {
    fac_layout l = { 0 };
    int64_t n = 1;
    for (int k = dims->n - 1; k >= 0; k--) {
        l.stride[k] = n;
        n = times(n, dims->d[k]);
    }
    return l;
}

fac_layout fac_layout_channels_last(const fac_dims *dims) {
    fac_layout l = { 0 };
    int64_t n = dims->d[1];
    l.stride[1] = 1;
    for (int k = dims->n - 1; k >= 2; k--) {
        l.stride[k] = n;
        n = times(n, dims->d[k]);
    }
    l.stride[0] = n;
    return l;
}

/* A plane of one channel block, in floats, rounded up to whole cache lines.  Neighbouring blocks
 * should not fall on the same sets of the first cache, whose index repeats every 4096 bytes: 56 x
 * 56 pixels of 16 floats are exactly 49 such pages.  So the stride in lines modulo 64 is kept out
 * of 0 +- 8 and 32 +- 5. */
static int64_t plane_stride(int64_t floats) {
    enum { LINE = 16, SETS = 64, WHOLE = 9, HALF = 6 };
    if (floats > INT64_MAX / 2) return INT64_MAX;
    int64_t lines = (floats + LINE - 1) / LINE, r = lines % SETS;
    if (lines > SETS / 2 - HALF) {
        if (r < WHOLE)
            lines += WHOLE + 4 - r;
        else if (r > SETS - WHOLE)
            lines += SETS + WHOLE + 4 - r;
        else if (r > SETS / 2 - HALF && r < SETS / 2 + HALF)
            lines += SETS / 2 + WHOLE - r;
    }
    return lines * LINE;
}

fac_layout fac_layout_blocked(const fac_dims *dims, int axis, int block, int halo) {
    fac_layout l = { .axis = axis, .block = block, .halo = halo };
    int64_t n = block;
    for (int k = dims->n - 1; k > axis; k--) {
        int around = k >= dims->n - 2 ? halo : 0;
        l.stride[k] = n;
        l.offset = plus(l.offset, times(around, n));
        n = times(n, plus(dims->d[k], 2 * around));
    }
    if (axis < dims->n - 1) n = plane_stride(n);
    l.stride[axis] = n;
    n = times(n, dims->d[axis] / block + (dims->d[axis] % block != 0));
    for (int k = axis - 1; k >= 0; k--) {
        l.stride[k] = n;
        n = times(n, dims->d[k]);
    }
    return l;
}

bool fac_layout_is_plain(const fac_layout *l, const fac_dims *dims) {
    if (l->block) return false;
    int64_t n = 1;
    for (int k = dims->n - 1; k >= 0; k--) {
        if (dims->d[k] != 1 && l->stride[k] != n) return false;
        n = times(n, dims->d[k]);
    }
    return true;
}

bool fac_layout_equal(const fac_layout *a, const fac_layout *b, const fac_dims *dims) {
    if (a->offset != b->offset || a->block != b->block || a->halo != b->halo ||
        (a->block && a->axis != b->axis))
        return false;
    for (int k = 0; k < dims->n; k++) {
        int64_t steps = a->block && k == a->axis ? (dims->d[k] - 1) / a->block : dims->d[k] - 1;
        if (steps > 0 && a->stride[k] != b->stride[k]) return false;
    }
    return true;
}

size_t fac_layout_bytes(const fac_layout *l, const fac_type *type) {
    const fac_dims *d = &type->dims;
    const fac_dtype_info *t = fac_dtype_get(type->dtype);
    int64_t last = plus(l->offset, l->block ? l->block - 1 : 0);
    for (int k = 0; k < d->n; k++) {
        if (d->d[k] == 0) return 0;
        if (d->d[k] < 0) return SIZE_MAX;
        int64_t steps = l->block && k == l->axis ? (d->d[k] - 1) / l->block : d->d[k] - 1;
        if (k >= d->n - 2) steps = plus(steps, l->halo);
        last = plus(last, times(steps, l->stride[k]));
    }
    size_t bytes;
    if (last >= INT64_MAX - t->block_elements) return SIZE_MAX;
    return fac_size_mul((size_t)(last / t->block_elements + 1), (size_t)t->block_bytes, &bytes)
               ? bytes
               : SIZE_MAX;
}
