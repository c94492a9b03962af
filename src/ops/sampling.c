/* See sampling.h. */
#include "ops/sampling.h"
#include <math.h>
#include "ops/constant.h"
#include "ops/map_grad.h"

static fac_value *whole(const fac_value *like, int64_t x) {
    return fac_number(like->graph, FAC_I64, (double)x);
}

static fac_value *last(fac_value *v) { return fac_unsqueeze(v, fac_shape(-1)); }

static fac_value *beside(fac_value *a, fac_value *b) {
    return fac_concat((fac_value *[]){ last(a), last(b) }, 2, a->type.dims.n);
}

fac_taps fac_taps_linear(fac_value *c, int64_t size) {
    /* What is far outside has no weight, and must not overflow as an integer. */
    fac_value *near =
        fac_min(fac_max(c, fac_grad_number(c, -2)), fac_grad_number(c, (double)size + 1));
    fac_value *below = fac_floor(fac_stop(near)), *up = fac_sub(near, below);
    fac_value *place = beside(below, fac_grad_shifted(below, 1));
    fac_value *weight = beside(fac_grad_rest(up), up);
    fac_value *top = fac_grad_number(place, (double)size - 1), *bottom = fac_grad_number(place, 0);
    fac_value *inside = fac_and(fac_greater_or_equal(place, bottom), fac_less_or_equal(place, top));
    fac_value *at = fac_cast(fac_max(fac_min(place, top), bottom), FAC_I64);
    return (fac_taps){ at, fac_grad_where(inside, weight) };
}

/* The last two dims as one. */
static fac_value *merged(fac_value *v) {
    fac_dims d = v->type.dims;
    d.d[d.n - 2] *= d.d[d.n - 1];
    d.n--;
    return fac_shaped(v, d);
}

fac_taps fac_taps_join(fac_taps a, fac_taps b, int64_t size) {
    fac_value *row = fac_mul(a.at, whole(a.at, size));
    fac_value *at = fac_add(last(row), fac_unsqueeze(b.at, fac_shape(-2)));
    fac_value *weight = fac_mul(last(a.weight), fac_unsqueeze(b.weight, fac_shape(-2)));
    return (fac_taps){ merged(at), merged(weight) };
}

fac_value *fac_taps_read(fac_value *x, fac_value *image, fac_taps taps) {
    const fac_dims *d = &x->type.dims, *t = &taps.at->type.dims;
    const int64_t C = d->d[1], pixels = fac_dims_part(d, 2, d->n), k = t->d[t->n - 1];
    const int64_t places = fac_dims_part(t, 1, t->n - 1), m = t->d[0];
    fac_value *rows =
        fac_transpose(fac_shaped(x, fac_shape(d->d[0], C, pixels)), fac_shape(0, 2, 1));
    fac_value *index = fac_shaped(taps.at, fac_shape(m, places * k, 1)), *read;
    if (image) {
        fac_value *which = fac_unsqueeze(fac_cast(image, FAC_I64), fac_shape(1, 2));
        which = fac_expand_to(which, fac_shape_of(index));
        read = fac_gather_nd(rows, fac_concat((fac_value *[]){ which, index }, 2, 2), 0);
    } else
        read = fac_gather_nd(rows, index, 1);
    fac_value *weight = fac_shaped(taps.weight, fac_shape(m, places, k, 1));
    return fac_mul(fac_shaped(read, fac_shape(m, places, k, C)), weight);
}

fac_tap_list fac_tap_list_linear(double c, int64_t size) {
    fac_tap_list l = { .count = 2 };
    const double near = fmin(fmax(c, -2), (double)size + 1), below = floor(near);
    for (int k = 0; k < 2; k++) {
        const int64_t at = (int64_t)below + k;
        const bool inside = at >= 0 && at < size;
        l.at[k] = inside ? at : 0;
        l.weight[k] = k ? near - below : 1 - (near - below);
        if (!inside) l.weight[k] = 0;
    }
    return l;
}
