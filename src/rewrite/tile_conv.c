/* Convolutions as products: weights rows x (channels taps) times what the taps see, (channels taps)
 * x positions, image by image, group by group.
 *
 * What a tap sees is a slice of x (padded before) with the stride as its step.  Patches: the taps
 * lie beside each other after the channels, in the order of the weights, and there is one product
 * of depth channels x taps.  Taps: each tap is a product of depth channels, and they add up (as K
 * does), so nothing is copied. */
#include "base/memory.h"
#include "ops/conv.h"
#include "rewrite/tile.h"
#include "tensor/tensor_internal.h"

fac_value *fac_tile_padded(fac_value *x, int rank, const int64_t *before, const int64_t *after) {
    fac_dims pads = { .n = 2 * rank }, axes = { .n = rank };
    bool any = false;
    for (int k = 0; k < rank; k++) {
        pads.d[k] = before[k];
        pads.d[rank + k] = after[k];
        axes.d[k] = 2 + k;
        any |= before[k] || after[k];
    }
    if (!any) return x;
    if (rank > 2)
        return fac_pad(x, fac_ints(x->graph, pads), NULL, fac_ints(x->graph, axes),
                       FAC_PAD_CONSTANT);
    fac_dims all = { .n = 2 * (rank + 2) }; /* without axes, which older opsets do not have */
    for (int k = 0; k < rank; k++) {
        all.d[2 + k] = pads.d[k];
        all.d[rank + 4 + k] = pads.d[rank + k];
    }
    return fac_pad(x, fac_ints(x->graph, all), NULL, NULL, FAC_PAD_CONSTANT);
}

/* ---- what taps see ---- */

static int64_t taps_of(const fac_tile_sweep *c) {
    int64_t taps = 1;
    for (int k = 0; k < c->rank; k++) taps *= c->taps[k].seen.taps;
    return taps;
}

static int64_t positions_of(const fac_tile_sweep *c) {
    int64_t positions = 1;
    for (int k = 0; k < c->rank; k++) positions *= c->taps[k].seen.out;
    return positions;
}

static fac_value *seen_by(fac_value *x, const fac_tile_window *w, int axis, int64_t tap) {
    const int64_t from = w->first + tap * w->step, to = from + (w->out - 1) * w->stride + 1;
    if (!from && to == x->type.dims.d[axis] && w->stride == 1) return x;
    return fac_slice(x, axis, from, to, w->stride);
}

/* For each tap, in the order of the weights, its plane; returns how many.  Lines that several taps
 * share are cut once. */
static int64_t look(const fac_tile_sweep *c, fac_value *x, int dim, fac_value **to) {
    int64_t n = 0;
    if (dim == c->rank) {
        to[0] = x;
        return 1;
    }
    for (int64_t tap = 0; tap < c->taps[dim].seen.taps; tap++)
        n += look(c, seen_by(x, &c->taps[dim].seen, 2 + dim, tap), dim + 1, to + n);
    return n;
}

/* N, channels x taps, positions: one of them all, or one for each tap. */
static void see(fac_tiler *t, const fac_tile_sweep *c, fac_value **to) {
    const int64_t taps = taps_of(c), positions = positions_of(c), channels = c->x->type.dims.d[1];
    const bool each = t->opts->conv == FAC_TILE_TAPS;
    look(c, c->x, 0, to);
    for (int64_t k = 0; k < taps; k++)
        to[k] = each ? fac_reshape_sizes(to[k], fac_shape(c->images, channels, positions))
                     : fac_reshape_sizes(to[k], fac_shape(c->images, channels, 1, positions));
    if (each) return;
    fac_value *all = taps == 1 ? to[0] : fac_concat(to, (int)taps, 2);
    to[0] = fac_reshape_sizes(all, fac_shape(c->images, channels * taps, positions));
}

/* ---- weights ---- */

/* Those of a group that belong to tap `one` (below 0: to all), as a view of w. */
typedef struct view {
    fac_dims dims;
    int64_t strides[FAC_DIMS], offset;
} view;

static view pick(const fac_tile_sweep *c, int64_t group, int64_t one) {
    const fac_dims *d = &c->w->type.dims;
    view v = { .dims = *d };
    int64_t step = 1;
    for (int k = d->n - 1; k >= 0; step *= d->d[k--]) v.strides[k] = step;
    v.offset = group * (c->transposed ? c->depth : c->rows) * v.strides[0];
    v.dims.d[0] = c->transposed ? c->depth : c->rows;
    for (int k = c->rank - 1; k >= 0; k--) {
        const fac_tile_taps *t = &c->taps[k];
        const int64_t count = t->seen.taps, at = one < 0 ? 0 : one % count;
        v.offset += (t->weight_first + at * t->weight_step) * v.strides[2 + k];
        v.strides[2 + k] *= t->weight_step;
        v.dims.d[2 + k] = one < 0 ? count : 1;
        one = one < 0 ? one : one / count;
    }
    if (c->transposed) {
        const int64_t rows = v.dims.d[1], stride = v.strides[1];
        v.dims.d[1] = v.dims.d[0];
        v.strides[1] = v.strides[0];
        v.dims.d[0] = rows;
        v.strides[0] = stride;
    }
    return v;
}

static fac_status cut_weights(const fac_value *w, const view *v, int64_t rows, int64_t cols,
                              fac_tensor **out, fac_error *err) {
    fac_tensor *window = NULL, *own = NULL, *whole = NULL, *flat = NULL;
    const int64_t strides[2] = { cols, 1 };
    fac_status s = fac_tensor_contiguous(w->tensor)
                       ? FAC_OK
                       : fac_tensor_copy_contiguous(w->tensor, &whole, err);
    if (!s)
        s = fac_tensor_view(whole ? whole : w->tensor, v->dims, v->strides, v->offset, &window,
                            err);
    if (!s && !fac_tensor_contiguous(window)) s = fac_tensor_copy_contiguous(window, &own, err);
    if (!s) s = fac_tensor_view(own ? own : window, fac_shape(rows, cols), strides, 0, &flat, err);
    fac_tensor_free(window);
    fac_tensor_free(own);
    fac_tensor_free(whole);
    if (!s) *out = flat;
    return s;
}

/* The same in the run. */
static fac_value *slice_weights(const fac_tile_sweep *c, int64_t group, int64_t one) {
    const int64_t lead = c->transposed ? c->depth : c->rows;
    fac_value *w = c->groups > 1 ? fac_slice(c->w, 0, group * lead, (group + 1) * lead, 1) : c->w;
    for (int k = c->rank - 1; k >= 0; k--) {
        const fac_tile_taps *t = &c->taps[k];
        const int64_t count = one < 0 ? t->seen.taps : 1;
        const int64_t at = one < 0 ? 0 : one % t->seen.taps;
        const int64_t from = t->weight_first + at * t->weight_step;
        if (count < w->type.dims.d[2 + k])
            w = fac_slice(w, 2 + k, from, from + (count - 1) * t->weight_step + 1, t->weight_step);
        one = one < 0 ? one : one / t->seen.taps;
    }
    if (!c->transposed) return w;
    fac_dims order = { .n = c->rank + 2, .d = { 1, 0, 2, 3, 4 } };
    return fac_transpose(w, order);
}

static fac_tile_matrix weights(fac_tiler *t, const fac_tile_sweep *c, int64_t group, int64_t one) {
    const int64_t taps = one < 0 ? taps_of(c) : 1, cols = c->depth * taps;
    fac_tile_matrix x = { .rows = c->rows, .cols = cols };
    if (!fac_tile_is_weight(c->w))
        return fac_tile_data(
            fac_reshape_sizes(slice_weights(c, group, one), fac_shape(c->rows, cols)), false);
    fac_tensor *flat = NULL;
    const view v = pick(c, group, one);
    t->status = cut_weights(c->w, &v, c->rows, cols, &flat, t->err);
    if (t->status)
        return fac_tile_data(fac_graph_raise(t->to, t->status, "no weights for a product"), false);
    x.name = fac_arena_print(&t->to->arena, "%s.from_%lld", c->w->name ? c->w->name : "const",
                             (long long)v.offset);
    x.v = c->w->leaf == FAC_CONST
              ? fac_const(t->to, flat)
              : fac_param(t->to, fac_arena_print(&t->to->arena, "%s.%s", t->prefix, x.name), flat);
    x.weight = x.v->tensor;
    fac_tensor_free(flat);
    return x;
}

static fac_value *bias_of(const fac_tile_sweep *c, int64_t group) {
    if (!c->b) return NULL;
    fac_value *b =
        c->groups > 1 ? fac_slice(c->b, 0, group * c->rows, (group + 1) * c->rows, 1) : c->b;
    return fac_reshape_sizes(b, fac_shape(c->rows, 1));
}

/* ---- products ---- */

/* What one image and group see, as matrices of `parts` operands. */
static void operands(const fac_tile_sweep *c, fac_value *const *seen, int64_t parts, int64_t image,
                     int64_t group, int64_t depth, fac_tile_matrix *to) {
    for (int64_t k = 0; k < parts; k++) {
        fac_value *own = c->images > 1 ? fac_slice(seen[k], 0, image, image + 1, 1) : seen[k];
        if (c->groups > 1) own = fac_slice(own, 1, group * depth, (group + 1) * depth, 1);
        to[k] = fac_tile_data(fac_reshape_sizes(own, fac_shape(depth, positions_of(c))), false);
    }
}

fac_value *fac_tile_swept(fac_tiler *t, const fac_tile_sweep *c) {
    const int64_t taps = taps_of(c), parts = t->opts->conv == FAC_TILE_TAPS ? taps : 1,
                  depth = c->depth * taps / parts;
    fac_arena *memory = &t->to->arena;
    fac_value **seen = fac_arena_alloc(memory, (size_t)taps, sizeof *seen);
    fac_value **image = fac_arena_alloc(memory, (size_t)c->images, sizeof *image);
    fac_value **part = fac_arena_alloc(memory, (size_t)c->groups, sizeof *part);
    fac_tile_matrix *w = fac_arena_alloc(memory, (size_t)(c->groups * parts), sizeof *w);
    fac_tile_matrix *x = fac_arena_alloc(memory, (size_t)parts, sizeof *x);
    const int64_t row_tiles = fac_tile_line_of(&t->shape, c->rows, FAC_TILE_M).count;
    const int64_t depth_tiles = fac_tile_line_of(&t->shape, depth, FAC_TILE_K).count;
    bool good = seen && image && part && w && x;
    for (int64_t k = 0; good && k < c->groups * parts; k++) {
        w[k] =
            weights(t, c, k / parts, parts > 1 || t->opts->conv == FAC_TILE_TAPS ? k % parts : -1);
        good = !t->status && fac_tile_remember(t, &w[k], row_tiles, depth_tiles);
    }
    if (!good)
        return fac_graph_raise(t->to, FAC_E_NOMEM, "no memory for the groups of a convolution");
    see(t, c, seen);
    for (int64_t i = 0; i < c->images; i++) {
        for (int64_t g = 0; g < c->groups; g++) {
            operands(c, seen, parts, i, g, depth, x);
            part[g] = fac_tile_cut(
                t, &(fac_tile_product){ w + g * parts, x, parts, bias_of(c, g), 1, 1 });
        }
        image[i] = c->groups > 1 ? fac_concat(part, (int)c->groups, 0) : part[0];
        image[i] = fac_reshape_sizes(image[i], fac_shape(1, c->groups * c->rows, positions_of(c)));
    }
    return c->images > 1 ? fac_concat(image, (int)c->images, 0) : image[0];
}

fac_value *fac_tile_conv_node(fac_tiler *t, const fac_node *n, fac_value *const in[]) {
    fac_conv_geom g;
    fac_tile_taps taps[3];
    if (!fac_conv_geometry(n, &g)) return NULL;
    const int at = 3 - g.rank;
    for (int k = 0; k < g.rank; k++)
        taps[k] = (fac_tile_taps){
            { g.kernel[at + k], 0, g.dilation[at + k], g.stride[at + k], g.out[at + k] }, 0, 1
        };
    const fac_tile_sweep c = {
        g.rank,         g.N,   g.groups, g.K / g.groups,
        g.C / g.groups, false, taps,     fac_tile_padded(in[0], g.rank, g.pad + at, g.pad_end + at),
        in[1],          in[2]
    };
    return fac_reshape_sizes(fac_tile_swept(t, &c), n->out[0]->type.dims);
}
