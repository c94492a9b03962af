/* Operators of one's own: a formula with its own gradient, and a straight-through estimator.
 *
 *   softcap   y = c tanh(x / c)      dy/dx = 1 - (y / c)^2      an op like those inside facula: a
 *             descriptor, no registration
 *   binary    y = sign(x) or 1       dy/dx = 1 for |x| <= 1     no new op: fac_surrogate says where
 *             the gradient goes (Bengio et al. 2013, https://arxiv.org/abs/1308.3432; Hubara et al.
 *             2016)
 *
 * A network with binary weights learns whether a point lies left or right of a line. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include "facula/facula.h"
#include "facula/op.h"

/* ---- softcap: what the engine has to know of it ---- */

typedef struct softcap_attrs {
    double cap;
} softcap_attrs;

static const fac_attr softcap_table[] = { { "cap", FAC_A_REAL, offsetof(softcap_attrs, cap), 0, 1,
                                            1e-6, 1e6, NULL,
                                            "largest |y|; 1 when it is not given" },
                                          { 0 } };

/* One loop for every dtype and stride: the engine converts and packs. */
static fac_status softcap_ref(const fac_ref *r, fac_error *err) {
    (void)err;
    double cap = ((const softcap_attrs *)r->attrs)->cap;
    for (int64_t i = 0; i < fac_dims_count(&r->out[0].type.dims); i++)
        r->out[0].f[i] = cap * tanh(r->in[0].f[i] / cap);
    return FAC_OK;
}

/* The gradient is made of ops, so it is fused, planned and differentiated again like everything
 * else. */
static void softcap_grad(const fac_node *n, fac_value *const dy[], fac_value *dx[]) {
    fac_graph *g = fac_value_graph(dy[0]);
    fac_dtype dtype = fac_value_type(dy[0]).dtype;
    double cap = ((const softcap_attrs *)n->attrs)->cap;
    fac_value *part = fac_mul(n->out[0], fac_number(g, dtype, 1 / cap));
    dx[0] = fac_mul(dy[0], fac_sub(fac_number(g, dtype, 1), fac_mul(part, part)));
}

static const fac_op softcap_op = { .name = "softcap",
                                   .doc = "c tanh(x / c)",
                                   .in = fac_ports_x,
                                   .out = fac_ports_y,
                                   .attrs = softcap_table,
                                   .attrs_size = sizeof(softcap_attrs),
                                   .infer = fac_infer_same,
                                   .ref = softcap_ref,
                                   .grad = softcap_grad };

static fac_value *softcap(fac_value *x, double cap) {
    return fac_emit(&softcap_op, &(softcap_attrs){ cap }, 1, &x);
}

/* ---- binary: forward sign, backward as if it were clip(x, -1, 1) ---- */

static fac_value *binary(fac_value *x) {
    fac_graph *g = fac_value_graph(x);
    fac_value *minus = fac_number(g, FAC_F32, -1), *zero = fac_number(g, FAC_F32, 0),
              *one = fac_number(g, FAC_F32, 1);
    fac_value *sign = fac_where(fac_greater_or_equal(x, zero), one, minus);
    return fac_surrogate(sign, fac_clip(x, minus, one));
}

/* ---- a network of both ---- */

enum { HIDDEN = 32 };

static fac_graph *network(void) {
    fac_graph *g = fac_graph_new();
    if (!g) return NULL;
    fac_nn_seed(g, 1);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 2));
    fac_value *h = softcap(fac_nn_linear(x, "hidden", HIDDEN), 3);
    fac_tensor *start = NULL;
    float w[2 * HIDDEN];
    for (int i = 0; i < 2 * HIDDEN; i++)
        w[i] = (float)(i * 7 % 13) / 6.5f - 1; /* numbers in -1..1, of both signs */
    if (fac_tensor_new(NULL, FAC_F32, fac_shape(2, HIDDEN), &start, NULL) ||
        fac_tensor_write(start, w, sizeof w, NULL)) {
        fac_tensor_free(start);
        fac_fail_graph(g, FAC_E_NOMEM, "weight: no memory");
        return g;
    }
    fac_value *weight = fac_param(g, "weight", start);
    fac_tensor_free(start);
    fac_output(g, "logits", fac_linear(h, binary(weight), NULL));
    return g;
}

int main(void) {
    fac_error err = { 0 };
    fac_device *device = NULL;
    fac_trainer *t = NULL;
    fac_dataset points = { 0 };
    fac_train_result r = { 0 };
    const fac_train_opts how = { .epochs = 200,
                                 .batches = { .size = 10, .shuffle = true },
                                 .schedule = { .lr = 0.01 } };
    fac_graph *g = network();
    fac_status status = g ? fac_device_open("cpu", NULL, &device, &err) : FAC_E_NOMEM;
    if (!status) status = fac_dataset_toy("diag", 50, 1, &points, &err);
    if (!status) status = fac_trainer_new(g, device, NULL, &t, &err);
    if (!status) status = fac_train(t, &points, &points, &how, &r, &err);
    if (status)
        fprintf(stderr, "custom_op: %s\n", err.text[0] ? err.text : fac_status_name(status));
    else
        printf("binary weights, capped activations: %.0f of 50 points right\n",
               50 * r.test.accuracy);
    fac_trainer_free(t);
    fac_dataset_free(&points);
    fac_graph_free(g);
    fac_device_free(device);
    return status || r.test.accuracy < 0.9;
}
