/* See define.h. */
#include "ops/define.h"

static fac_value *alike(fac_value *v, const fac_value *x) {
    return fac_grad_as(v, fac_value_type(x).dtype);
}

fac_value *fac_define_scaled(fac_value *hat, fac_value *scale, fac_value *bias) {
    if (scale) hat = fac_mul(hat, alike(scale, hat));
    return bias ? fac_add(hat, alike(bias, hat)) : hat;
}

/* A number for each group: for each of its channels. */
static fac_value *each(fac_value *v, const fac_value *x) {
    const int64_t channels = x->type.dims.d[1], have = v ? fac_dims_count(&v->type.dims) : channels;
    if (!v) return NULL;
    if (have != channels && have > 0) {
        v = fac_expand(fac_reshape(v, fac_shape(have, 1)), fac_shape(have, channels / have));
        v = fac_reshape(v, fac_shape(channels));
    }
    return fac_grad_of_channels(v, x);
}

fac_value *fac_define_channels(fac_value *hat, fac_value *scale, fac_value *bias) {
    return fac_define_scaled(hat, each(scale, hat), each(bias, hat));
}

int fac_steps_zero(const fac_node *n, double at[]) {
    (void)n;
    at[0] = 0;
    return 1;
}

int fac_steps_whole(const fac_node *n, double at[]) {
    (void)n;
    at[0] = -0.5;
    at[1] = 0;
    at[2] = 0.5;
    at[3] = 1;
    return 4;
}

int fac_steps_flat(const fac_node *n, double at[]) {
    (void)n;
    at[0] = -20;
    at[1] = 0;
    at[2] = 20;
    return 3;
}

int fac_steps_beside(const fac_node *n, double at[]) { return fac_scalar_known(n->in[1], at); }

int fac_steps_flag(const fac_node *n, double at[]) {
    (void)n;
    at[0] = 0.5;
    return 1;
}
