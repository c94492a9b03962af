/* A convolution as products: weights K/g x (C/g taps) times patches (C/g taps) x positions, image by image, group by group.
 *
 * Patches: x with its padding, and for each tap the plane of what that tap sees, a slice with the stride as its step; the taps lie
 * beside each other behind the channels, in the order of the weights.  A 1 x 1 kernel at stride 1 sees x as it is. */
#include "base/memory.h"
#include "ops/conv.h"
#include "passes/tile.h"

/* N,C,H,W with zeros around. */
static fac_value *padded(fac_value *x, const fac_conv_geom *g) {
    const int64_t *p = g->pad + 1, *e = g->pad_end + 1;
    if (!(p[0] | p[1] | e[0] | e[1])) return x;
    return fac_pad(x, fac_ints(x->graph, fac_shape(0, 0, p[0], p[1], 0, 0, e[0], e[1])), NULL, NULL, FAC_PAD_CONSTANT);
}

static fac_value *seen_by(fac_value *x, const fac_conv_geom *g, int axis, int k, int64_t tap) {
    const int64_t from = tap * g->dilation[k], to = from + (g->out[k] - 1) * g->stride[k] + 1;
    if (!from && to == x->type.dims.d[axis] && g->stride[k] == 1) return x;
    return fac_slice(x, axis, from, to, g->stride[k]);
}

/* N,C,H,W -> N, C taps, positions */
static fac_value *patches(fac_tiler *t, fac_value *x, const fac_conv_geom *g) {
    const int64_t taps = g->R * g->S, positions = g->P * g->Q;
    fac_value **part = fac_arena_alloc(&t->to->arena, (size_t)taps, sizeof *part);
    if (!part) return fac_graph_raise(t->to, FAC_E_NOMEM, "no memory for the taps of a convolution");
    x = padded(x, g);
    for (int64_t r = 0; r < g->R; r++) {
        fac_value *lines = seen_by(x, g, 2, 1, r);
        for (int64_t s = 0; s < g->S; s++)
            part[r * g->S + s] = fac_reshape(seen_by(lines, g, 3, 2, s), fac_shape(g->N, g->C, 1, positions));
    }
    fac_value *all = taps == 1 ? part[0] : fac_concat(part, (int)taps, 2);
    return fac_reshape(all, fac_shape(g->N, g->C * taps, positions));
}

/* The rows of one group as a parameter of two dims, so that tiles are cut from it now. */
static fac_tile_matrix weights(fac_tiler *t, fac_value *w, const fac_conv_geom *g, int64_t group) {
    const int64_t rows = g->K / g->groups, cols = g->C / g->groups * g->R * g->S, strides[2] = { cols, 1 };
    fac_tile_matrix x = { .rows = rows, .cols = cols };
    if (w->leaf == FAC_PARAM && w->tensor && fac_tensor_contiguous(w->tensor)) {
        fac_tensor *flat = NULL;
        t->status = fac_tensor_view(w->tensor, fac_shape(rows, cols), strides, group * rows * cols, &flat, t->err);
        if (!t->status) {
            x.name = fac_arena_print(&t->to->arena, "%s.rows_%lld", w->name, (long long)(group * rows));
            x.v = fac_param(t->to, fac_arena_print(&t->to->arena, "%s.%s", t->prefix, x.name), flat);
            x.weight = x.v->tensor;
            fac_tensor_free(flat);
            return x;
        }
    }
    fac_value *own = g->groups > 1 ? fac_slice(w, 0, group * rows, (group + 1) * rows, 1) : w;
    return fac_tile_data(fac_reshape(own, fac_shape(rows, cols)), false);
}

static fac_value *bias_of(fac_value *b, const fac_conv_geom *g, int64_t group) {
    const int64_t rows = g->K / g->groups;
    if (!b) return NULL;
    if (g->groups > 1) b = fac_slice(b, 0, group * rows, (group + 1) * rows, 1);
    return fac_reshape(b, fac_shape(rows, 1));
}

fac_value *fac_tile_conv(fac_tiler *t, const fac_node *n, fac_value *const in[]) {
    fac_conv_geom g;
    if (!fac_conv_geometry(n, &g)) return NULL;
    const bool line = g.rank == 1;          /* N,C,W is N,C,1,W */
    fac_value *x = line ? fac_reshape(in[0], fac_shape(g.N, g.C, 1, g.W)) : in[0];
    fac_value *all = patches(t, x, &g), **image = fac_arena_alloc(&t->to->arena, (size_t)g.N + 1, sizeof *image);
    fac_value **part = fac_arena_alloc(&t->to->arena, (size_t)g.groups, sizeof *part);
    const int64_t depth = g.C / g.groups * g.R * g.S;
    if (!image || !part) return fac_graph_raise(t->to, FAC_E_NOMEM, "no memory for the images of a convolution");
    fac_tile_matrix *w = fac_arena_alloc(&t->to->arena, (size_t)g.groups, sizeof *w);
    bool good = w != NULL;
    for (int64_t k = 0; good && k < g.groups; k++) {
        w[k] = weights(t, in[1], &g, k);
        good = fac_tile_keep(t, &w[k], t->opts->m, t->opts->k);
    }
    for (int64_t i = 0; good && i < g.N; i++) {
        for (int64_t k = 0; k < g.groups; k++) {
            fac_value *own = g.N > 1 ? fac_slice(all, 0, i, i + 1, 1) : all;
            if (g.groups > 1) own = fac_slice(own, 1, k * depth, (k + 1) * depth, 1);
            own = fac_reshape(own, fac_shape(depth, g.P * g.Q));
            fac_tile_product p = { w[k], fac_tile_data(own, false), bias_of(in[2], &g, k), 1, 1 };
            part[k] = fac_tile_cut(t, &p);
        }
        image[i] = g.groups > 1 ? fac_concat(part, (int)g.groups, 0) : part[0];
        image[i] = fac_reshape(image[i], fac_shape(1, g.K, g.P * g.Q));
    }
    if (!good) return fac_graph_raise(t->to, FAC_E_NOMEM, "no memory for the groups of a convolution");
    fac_value *y = g.N > 1 ? fac_concat(image, (int)g.N, 0) : image[0];
    return fac_reshape(y, n->out[0]->type.dims);
}
