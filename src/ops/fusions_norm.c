/* Norms with a residual or an embedding before them. */
#include "ops/grad.h"
#include "ops/fusions.h"
#include "ops/shape.h"

const fac_onnx_attr fac_names_norm[] = { { "epsilon", NULL },
                                         { "stash_type", NULL },
                                         { "axis", NULL },
                                         { "mask_index_type", NULL },
                                         { 0 } };

/* The residual stream, then its norm: outputs y, mean, 1 / deviation, and the stream. */
void fac_load_skip_layer_norm(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                              fac_value *y[]) {
    (void)g;
    fac_value *sum = fac_grad_plus(fac_add(x[0], x[1]), fac_onnx_in(n, x, 4));
    y[0] = fac_layer_norm(sum, x[2], fac_onnx_in(n, x, 3), -1, fac_onnx_real(n, "epsilon", 1e-12));
    for (int k = 1; k < n->nout && k < 3; k++) y[k] = fac_value_other(y[0], k);
    if (n->nout > 3) y[3] = sum;
}

/* 1 / root mean square along these axes, f32. */
static fac_value *over_rms(fac_value *x, fac_dims over, double epsilon) {
    fac_value *wide = fac_cast(x, FAC_F32), *mean = fac_mean(fac_mul(wide, wide), over, true);
    return fac_reciprocal(fac_sqrt(fac_add(mean, fac_number_as(mean, epsilon))));
}

/* Its outputs are those of the other norm, of which there is no mean; models of onnxruntime-genai
 * leave out both statistics. */
void fac_load_skip_rms_norm(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                            fac_value *y[]) {
    const double epsilon = fac_onnx_real(n, "epsilon", 1e-12);
    fac_value *sum = fac_grad_plus(fac_add(x[0], x[1]), fac_onnx_in(n, x, 3));
    y[0] = fac_rms_norm(sum, x[2], -1, epsilon);
    if (*fac_onnx_output(n, 1))
        y[1] = fac_fail_graph(g, FAC_E_UNSUPPORTED, "%s: its mean is not supported", n->type);
    if (*fac_onnx_output(n, 2)) y[2] = over_rms(sum, fac_shape(-1), epsilon);
    if (n->nout > 3) y[3] = sum;
}

/* Also gives 1 / root mean square, f32. */
void fac_load_simplified_norm(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                              fac_value *y[]) {
    (void)g;
    const int64_t axis = fac_onnx_int(n, "axis", -1);
    const double epsilon = fac_onnx_real(n, "epsilon", 1e-5);
    y[0] = fac_rms_norm(x[0], x[1], axis, epsilon);
    if (n->nout < 2) return;
    fac_dims over = { 0 };
    const int rank = x[0]->type.dims.n, first = fac_axis(axis, rank);
    for (int k = first; k >= 0 && k < rank; k++) over.d[over.n++] = k;
    y[1] = over_rms(x[0], over, epsilon);
}

/* ids and segments i32[B,S]; tables of words, positions, segments; gamma, beta; mask i32[B,S];
 * positions i32[B,S]. Outputs y[B,S,D], how many tokens of each row the mask leaves, i32[B], and
 * the sum of the embeddings. */
void fac_load_embed_layer_norm(const fac_onnx_node *n, fac_graph *g, fac_value *const x[],
                               fac_value *y[]) {
    fac_value *ids = x[0], *mask = fac_onnx_in(n, x, 7), *positions = fac_onnx_in(n, x, 8);
    fac_value *place = NULL;
    if (positions)
        place = fac_gather(x[3], positions, 0);
    else {
        fac_value *length = fac_gather(fac_shape_of(ids), fac_ints(g, fac_shape(1)), 0),
                  *zero = fac_number(g, FAC_I64, 0);
        length = fac_reshape(length, (fac_dims){ 0 });
        place = fac_gather(x[3], fac_arange(zero, length, fac_number(g, FAC_I64, 1)), 0);
    }
    fac_value *sum = fac_add(fac_gather(x[2], ids, 0), place);
    if (fac_onnx_in(n, x, 1) && fac_onnx_in(n, x, 4)) sum = fac_add(sum, fac_gather(x[4], x[1], 0));
    y[0] = fac_layer_norm(sum, x[5], x[6], -1, fac_onnx_real(n, "epsilon", 1e-12));
    if (n->nout > 1) {
        fac_value *counted = mask ? fac_cast(mask, FAC_I32)
                                  : fac_mul(fac_cast(ids, FAC_I32), fac_number(g, FAC_I32, 0));
        y[1] = fac_sum(counted, fac_shape(1), false);
    }
    if (n->nout > 2) y[2] = sum;
}
