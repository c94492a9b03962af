/* Moves between layouts in host memory, one run of the last dim at a time.  The planner's own
 * means; fast reorders are solvers of `identity`. */
#include "backends/layout_copy.h"
#include <string.h>

static int64_t place(const fac_layout *l, int rank, const int64_t *index) {
    int64_t at = l->offset;
    for (int k = 0; k < rank; k++)
        at += l->block && k == l->axis ? index[k] / l->block * l->stride[k] + index[k] % l->block
                                       : index[k] * l->stride[k];
    return at;
}

void fac_copy_layout(const fac_type *type, const void *from, const fac_layout *a, void *to,
                     const fac_layout *b) {
    size_t size = (size_t)fac_dtype_get(type->dtype)->block_bytes;
    const fac_dims *d = &type->dims;
    int64_t index[FAC_DIMS] = { 0 };
    int rank = d->n;
    if (fac_dims_count(d) == 0) return;
    if (!a->block && !b->block && fac_layout_is_plain(a, d) && fac_layout_is_plain(b, d)) {
        memcpy((char *)to + (size_t)b->offset * size, (const char *)from + (size_t)a->offset * size,
               (size_t)fac_dims_count(d) * size);
        return;
    }
    /* the last dim as a run unless it is the blocked axis */
    int last = rank - 1;
    bool run = rank > 0 && !(a->block && a->axis == last) && !(b->block && b->axis == last);
    int64_t n = 1, sa = 0, sb = 0;
    if (run) {
        n = d->d[last];
        sa = a->stride[last];
        sb = b->stride[last];
    }
    for (;;) {
        const char *x = (const char *)from + (size_t)place(a, rank, index) * size;
        char *y = (char *)to + (size_t)place(b, rank, index) * size;
        if (sa == 1 && sb == 1)
            memcpy(y, x, (size_t)n * size);
        else if (size == 4)
            for (int64_t k = 0; k < n; k++) memcpy(y + k * sb * 4, x + k * sa * 4, 4);
        else
            for (int64_t k = 0; k < n; k++)
                memcpy(y + (size_t)(k * sb) * size, x + (size_t)(k * sa) * size, size);
        int k = run ? last - 1 : last;
        for (; k >= 0; k--) {
            if (++index[k] < d->d[k]) break;
            index[k] = 0;
        }
        if (k < 0) return;
    }
}

/* What still is zero stays unwritten: other cores have read these lines, and may have no cache in
 * common with this one, where to write one takes 27 ns.  Values of one size mostly follow each
 * other in the same place. */
static void zero(char *at, size_t bytes) {
    if (*at || memcmp(at, at + 1, bytes - 1)) memset(at, 0, bytes);
}

/* Planes are the last two dims; around each lie `halo` rows above and below and `halo` pixels left
 * and right. */
void fac_zero_halo(const fac_type *type, void *memory, const fac_layout *l) {
    size_t size = (size_t)fac_dtype_get(type->dtype)->block_bytes,
           lane = size * (size_t)(l->block ? l->block : 1);
    const fac_dims *d = &type->dims;
    if (l->halo <= 0 || d->n < 3 || fac_dims_count(d) == 0) return;
    int64_t height = d->d[d->n - 2], width = d->d[d->n - 1], row = l->stride[d->n - 2], planes = 1;
    int64_t index[FAC_DIMS] = { 0 }, count[FAC_DIMS];
    int64_t whole = width + 2 * l->halo;
    for (int k = 0; k < d->n - 2; k++) {
        count[k] = l->block && k == l->axis ? (d->d[k] + l->block - 1) / l->block : d->d[k];
        planes *= count[k];
    }
    for (int64_t p = 0; p < planes; p++) {
        int64_t at = l->offset;
        for (int k = 0; k < d->n - 2; k++) at += index[k] * l->stride[k];
        char *origin = (char *)memory + (size_t)at * size;
        int64_t left = l->halo * (int64_t)lane;
        for (int h = 1; h <= l->halo; h++) {
            zero(origin - h * row * (int64_t)size - left, (size_t)whole * lane);
            zero(origin + (height - 1 + h) * row * (int64_t)size - left, (size_t)whole * lane);
        }
        for (int64_t y = 0; y < height; y++) {
            zero(origin + y * row * (int64_t)size - left, (size_t)left);
            zero(origin + y * row * (int64_t)size + width * (int64_t)lane, (size_t)left);
        }
        for (int k = d->n - 3; k >= 0; k--) {
            if (++index[k] < count[k]) break;
            index[k] = 0;
        }
    }
}
