/* facula/quantize.h: networks whose weights and activations have 1 to 4 bits, learned in training.
 *
 * A quantizer is a few ops: what is computed goes forward in few levels, and its gradient takes
 * another path (fac_surrogate), since levels have none.  A quantized network is an ordinary
 * graph, so it is trained, saved and run as any other; its bases are states, which the training
 * form of a graph learns as batch norms learn their running statistics.
 *
 * None of these functions is thread safe for one graph; all may be called for graphs of their
 * own. */
#ifndef FACULA_QUANTIZE_H
#define FACULA_QUANTIZE_H

#include "facula/device.h"
#include "facula/ops.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- quantizers
 * ---------------------------------------------------------------------------------------- */

/* LQ-Nets (Zhang et al. 2018): fac_quantize_basis.  The gradient passes as it is, or with
 * positive digits where x does not exceed the largest level. */
fac_value *fac_quantize_lq(fac_value *x, fac_value *basis, const fac_basis_opts *opts);

/* Which path a gradient takes through a sign. */
typedef enum fac_sign_path {
    /* 1 where |x| <= 1, else 0 (Hubara et al. 2016)                       */
    FAC_SIGN_CLIP,
    FAC_SIGN_APPROX,        /* 2 - 2|x| where |x| <= 1, else 0 (Bi-Real Net, Liu et al. 2018)     */
    FAC_SIGN_IDENTITY       /* 1                                                                  */
} fac_sign_path;
/* fac_binarize with such a gradient. */
fac_value *fac_binarize_through(fac_value *x, fac_sign_path path);
/* XNOR-Net's weights (Rastegari et al. 2016): sign(w) times the mean of |w| of each index of dim
 * 0; the mean passes its own gradient, and 0 becomes -1. */
fac_value *fac_binarize_scaled(fac_value *w, fac_sign_path path);

/* DoReFa-Net (Zhou et al. 2016), 1 to 4 bits.  Weights: tanh(w) / max |tanh(w)| to the nearest of
 * 2^bits levels in [-1,1], for one bit sign(w) times the mean of |w|.  Activations: x within
 * [0,1]. */
fac_value *fac_quantize_dorefa_weight(fac_value *w, int bits);
fac_value *fac_quantize_dorefa(fac_value *x, int bits);

/* LSQ (Esser et al. 2020), 1 to 8 bits: y = round(clip(x / step, -Qn, Qp)) step with a step (one
 * number) that is learned; its gradient is scaled by 1 / sqrt(count Qp), count the elements of x,
 * of one image where the first dim is open.  positive: Qn = 0, Qp = 2^bits - 1; else Qn =
 * 2^(bits-1), Qp one less. */
fac_value *fac_quantize_lsq(fac_value *x, fac_value *step, int bits, bool positive);

/* ABC-Net's weights (Lin et al. 2017): the sum over i of alpha_i sign(w - mean + u_i std), u_i
 * evenly within [-1,1], i < bases <= 8, alpha the least squares for w, anew each time; the
 * gradient passes. */
fac_value *fac_quantize_abc_weight(fac_value *w, int bases);
/* ABC-Net's activations: the sum over i of scale_i sign(x + shift_i - 0.5); shift and scale, N
 * numbers each, are learned; gradients of x and shift pass where 0 <= x + shift_i <= 1. */
fac_value *fac_quantize_abc(fac_value *x, fac_value *shift, fac_value *scale);

/* ---- whole networks
 * -------------------------------------------------------------------------------------- */

typedef struct fac_quantizing {
    int n;
    const char *const *schemes;     /* "lq:w1a2",
        or "conv2*=lq:w2a2": for layers of matching names; the
                                       last one that matches counts */
    bool all;                       /* the first and the last layer, too */
} fac_quantizing;

/* A copy of a model whose convolutions and linear layers have quantized weights and activations,
 * but the first and the last one; parameters are shared.  Schemes, with W and A from 1 to 4, or
 * 32 (floats):
 *   lq:wWaA  dorefa:wWaA  lsq:wWaA  abc:wWaA (bases)  bnn  xnor  bwn (floats in)  bireal  reactnet
 * bnn, xnor, bireal and reactnet take signs: a relu whose results only such layers read is left
 * out, of reactnet a shifted prelu takes its place.
 * changed may be NULL: how many layers.  FAC_E_ARGUMENT: a scheme that is none, or that matches
 * no layer. */
fac_status fac_graph_quantize(const fac_graph *model, const fac_quantizing *how, fac_graph **out,
                              int *changed, fac_error *err);
/* NULL: `text` is a scheme; else what is wrong with it. */
const char *fac_quantizing_wrong(const char *text);

/* A copy whose quantized weights are what they are quantized to, as parameters: a network that any
 * runtime runs, and that gives the same bits here.  Activations stay quantized, in simple ops. */
fac_status fac_graph_dequantize(const fac_graph *model, fac_graph **out, fac_error *err);

/* ---- packed files
 * ------------------------------------------------------------------------------------------- */

typedef struct fac_packing {
    int    layers;                  /* whose weights are bits */
    double bytes, bytes_before;     /* of all weights, in the file and as f32 */
} fac_packing;

/* The graph of inference with its weights as one file, safetensors: quantized weights are planes of
 * bits with their bases (fac_pack_basis), "facula.graph" is the text of the graph, "facula.packed"
 * the version of the format, the order of bits (0: the lowest first) and the padding (0: by zeros),
 * "facula.note:KEY" are notes.  packing may be NULL.  FAC_E_ARGUMENT: no weight is quantized. */
fac_status fac_packed_save(const fac_graph *model, const char *path, fac_packing *packing,
                           fac_error *err);
/* FAC_E_FORMAT: not such a file, of another version, or one whose tensors do not fit its graph. */
fac_status fac_packed_load(const char *path, fac_graph **out, fac_error *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
