/* Parts of a matrix: slices of data, and parameters cut into parameters. */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "rewrite/tile.h"
#include "tensor/tensor_internal.h"

fac_tile_matrix fac_tile_operand(fac_value *v, bool transposed) {
    fac_tile_matrix x = fac_tile_data(v, transposed);
    if (fac_tile_is_weight(v) && v->type.dims.n == 2) {
        x.weight = v->tensor;
        x.name = v->name;
    }
    return x;
}

/* Row by row from contiguous memory; what lies after the end stays zero. */
static fac_status cut_lines(const fac_tensor *w, int64_t top, int64_t height, int64_t left,
                            int64_t width, fac_tensor **out, fac_error *err) {
    const fac_type type = fac_tensor_type(w);
    const size_t element = (size_t)fac_dtype_get(type.dtype)->block_bytes,
                 line = (size_t)type.dims.d[1] * element;
    fac_tensor *part = NULL;
    FAC_TRY(fac_tensor_new(NULL, type.dtype, fac_shape(height, width), &part, err));
    const int64_t rows = type.dims.d[0] - top < height ? type.dims.d[0] - top : height;
    const int64_t cols = type.dims.d[1] - left < width ? type.dims.d[1] - left : width;
    const char *from = fac_tensor_data(w);
    char *to = fac_tensor_memory(part);
    memset(to, 0, (size_t)(height * width) * element);
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + (size_t)(r * width) * element,
               from + (size_t)(top + r) * line + (size_t)left * element, (size_t)cols * element);
    *out = part;
    return FAC_OK;
}

static fac_status cut(const fac_tensor *w, int64_t top, int64_t height, int64_t left, int64_t width,
                      fac_tensor **out, fac_error *err) {
    fac_tensor *whole = NULL;
    if (fac_tensor_contiguous(w) && fac_tensor_data(w))
        return cut_lines(w, top, height, left, width, out, err);
    FAC_TRY(fac_tensor_copy_contiguous(w, &whole, err));
    fac_status status = cut_lines(whole, top, height, left, width, out, err);
    fac_tensor_free(whole);
    return status;
}

static fac_value *part_of_weight(fac_tiler *t, const fac_tile_matrix *x, int64_t top,
                                 int64_t height, int64_t left, int64_t width) {
    char name[300];
    fac_tensor *part = NULL;
    const fac_dims *d = &x->v->type.dims;
    if (!top && !left && height == d->d[0] && width == d->d[1]) return x->v;
    t->status = cut(x->weight, top, height, left, width, &part, t->err);
    if (t->status)
        return fac_graph_raise(t->to, t->status, "%s",
                               t->err ? t->err->text : "no memory for a tile");
    snprintf(name, sizeof name, "%s.%s.tile_%lld_%lld", t->prefix, x->name ? x->name : "const",
             (long long)top, (long long)left);
    fac_value *v = x->v->leaf == FAC_PARAM ? fac_param(t->to, name, part) : fac_const(t->to, part);
    fac_tensor_free(part);
    return v;
}

/* The last two dims (the last one, of a vector) cut to what is asked for, by one slice at most. */
fac_value *fac_tile_box(fac_value *v, const int64_t from[2], const int64_t to[2]) {
    const fac_dims *d = &v->type.dims;
    int64_t axis[2], start[2], end[2];
    int n = 0;
    for (int k = 0; k < 2; k++) {
        const int at = d->n - 2 + k;
        if (at < 0 || (!from[k] && to[k] >= d->d[at])) continue;
        axis[n] = at;
        start[n] = from[k];
        end[n++] = to[k];
    }
    return n ? fac_slice_axes(v, n, axis, start, end) : v;
}

static fac_value *part_of_data(const fac_tile_matrix *x, int64_t top, int64_t height, int64_t left,
                               int64_t width) {
    const fac_dims *d = &x->v->type.dims;
    const int64_t bottom = top + height < d->d[0] ? top + height : d->d[0],
                  right = left + width < d->d[1] ? left + width : d->d[1];
    fac_value *v =
        fac_tile_box(x->v, (const int64_t[]){ top, left }, (const int64_t[]){ bottom, right });
    if (bottom - top < height || right - left < width)
        v = fac_pad(
            v, fac_ints(v->graph, fac_shape(0, 0, height - (bottom - top), width - (right - left))),
            NULL, NULL, FAC_PAD_CONSTANT);
    return v;
}

fac_value *fac_tile_part(fac_tiler *t, const fac_tile_matrix *x, int64_t r0, int64_t height,
                         int64_t c0, int64_t width, size_t slot) {
    if (x->tiles[slot]) return x->tiles[slot];
    int64_t top = r0, left = c0, h = height, w = width;
    if (x->transposed) {
        top = c0;
        left = r0;
        h = width;
        w = height;
    }
    return x->tiles[slot] =
               x->weight ? part_of_weight(t, x, top, h, left, w) : part_of_data(x, top, h, left, w);
}
