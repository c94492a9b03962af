/* facula/quantize.h: networks of few bits: 1 to 4 of them, learned in training, or whole models in
 * integers of 8 and 4 bits, made after it.
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

/* ---- quantizers ---- */

/* LQ-Nets (Zhang et al. 2018): fac_quantize_basis.  The gradient passes as it is, or with
 * positive digits where x does not exceed the largest level. */
fac_value *fac_quantize_lq(fac_value *x, fac_value *basis, const fac_basis_opts *opts);

/* Which path a gradient takes through a sign. */
typedef enum fac_sign_path {
    /* 1 where |x| <= 1, else 0 (Hubara et al. 2016)                       */
    FAC_SIGN_CLIP,
    FAC_SIGN_APPROX,  /* 2 - 2|x| where |x| <= 1, else 0 (Bi-Real Net, Liu et al. 2018)     */
    FAC_SIGN_IDENTITY /* 1                                                                  */
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
/* Activations. */
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

/* ---- whole networks ---- */

typedef struct fac_quantizing {
    int n;
    const char *const *schemes; /* "lq:w1a2",
    or "conv2*=lq:w2a2": for layers of matching names; the
                                   last one that matches counts */
    bool all;                   /* the first and the last layer, too */
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

/* A copy in the operators of QONNX, which fac_onnx_save writes: weights of few bits are sums of
 * BipolarQuant of planes of +-1, each with a scale for each filter; levels of activations
 * MultiThreshold, one where they lie evenly, else one for each; signs BipolarQuant, steps of LSQ
 * Quant.  FAC_E_ARGUMENT: nothing in it is quantized to few bits. */
fac_status fac_graph_qonnx(const fac_graph *model, fac_graph **out, fac_error *err);

/* A copy for inference in which convolutions, linear layers and products that have weights of
 * floats have weights of 8 bits: symmetric, one scale for each output channel, dequantized before
 * they are used.  What fac_packed_save makes bits of stays.  Where a weight is shared, all that
 * read it read the bytes, whose scales are those of the first layer.  changed may be NULL: how many
 * layers.  FAC_E_ARGUMENT: a weight has a number that is not finite, which the error names. */
fac_status fac_graph_byte_weights(const fac_graph *model, int *changed, fac_graph **out,
                                  fac_error *err);

/* ---- trained models in integers
 * ----------------------------------------------------------------------------------
 * A calibrator takes a float model and a scheme, is shown samples, and gives a model that
 * computes in integers, in standard ONNX operators (int4: MatMulNBits of com.microsoft), as the
 * tools of ONNX Runtime do it.  Schemes:
 *   int8:static    weights and activations are bytes; ranges of activations come from samples
 *   int8:dynamic   weights are bytes; each run finds the ranges of what products read
 *   int4:block32   weights of products have 4 bits, each 32 of them a scale and a zero point
 *   lq:wWaA        weights of W bits and what layers read of A bits, 1 to 4 (A 32: floats)
 * The last one fits levels of LQ-Nets to weights and samples, without training; of the first and
 * the last layer, and of inputs below 0, it leaves floats.  Its result has fac_quantize_basis:
 * fac_packed_save or fac_graph_dequantize make files of it.
 * The other schemes leave layers of few bits as they are, so that the first and the last layer of
 * such a network can become integers of 8 bits.
 * Batch norms go into the weights before them, and constants are computed first. */

/* Name and one line about scheme i; NULL after the last. */
const char *fac_integers_scheme(int i);
/* One line about scheme i for people; NULL after the last. */
const char *fac_integers_about(int i);
/* Whether a scheme of this name is there, and whether it needs samples. */
bool fac_integers_known(const char *scheme, bool *calibrates);

/* How the range of an activation follows from what it was for all samples. */
typedef enum fac_calibration {
    FAC_CALIBRATE_MINMAX,     /* all of it                                                  */
    FAC_CALIBRATE_PERCENTILE, /* without its tails                                          */
    FAC_CALIBRATE_ENTROPY     /* whose 8 bits diverge least from the floats (Migacz 2017)   */
} fac_calibration;

typedef struct fac_integers {
    const char *scheme;
    int nkeep; /* layers that stay floats, as for fac_analysis_selects       */
    const char *const *keep;
    fac_calibration calibration;
    double percentile; /* within (50, 100]; 0: 99.999                                */
    bool is_signed;    /* activations are i8; else u8                                */
    bool per_tensor;   /* weights have one scale; else one for each output channel   */
    bool rest_int8;    /* of lq:wWaA: the first and the last layer have weights of 8 bits,
                          see fac_graph_byte_weights; else they stay floats      */
    bool even_levels;  /* of lq:wWaA: levels of activations are whole multiples of one
                          number, which some kernels take less time for          */
    bool reduce_range; /* weights of 7 bits, within +-64: for runtimes that add
                          u8 s8 products in 16 bits, which saturate, where there is
                          no VNNI; facula's kernels need it nowhere              */
} fac_integers;

typedef struct fac_calibrator fac_calibrator;

/* The graph is copied; in what is made of it floats of 16 bits are f32, but at inputs and outputs.
 * device must outlive the calibrator.  FAC_E_ARGUMENT: a scheme that is
 * none, a pattern of `keep` that means no layer, or a model without layers that the scheme
 * quantizes. */
fac_status fac_calibrator_new(const fac_graph *model, fac_device *device, const fac_integers *how,
                              fac_calibrator **out, fac_error *err);
void fac_calibrator_free(fac_calibrator *c); /* NULL is fine */

/* Runs the model once on in[], as fac_program_run takes them; any number of times.  Of the first 8
 * the tensors are kept until the end, so that errors can be measured. */
fac_status fac_calibrator_add(fac_calibrator *c, fac_tensor *const in[], fac_error *err);

/* The model in integers, the caller's to free; once.  FAC_E_ARGUMENT: the scheme needs samples, and
 * there was none. */
fac_status fac_calibrator_finish(fac_calibrator *c, fac_graph **out, fac_error *err);

/* A layer with weights. */
typedef struct fac_integer_layer {
    const char *name, *op;
    bool kept;                  /* stays floats: by `keep`, or the scheme has no form of it  */
    bool rest;                  /* of lq:wWaA: has weights of 8 bits instead, by rest_int8   */
    bool float_input;           /* ... reads floats: samples went below 0, or were all 0      */
    bool few_bits;              /* kept, since its weight and what it reads have few levels   */
    double bytes, bytes_before; /* of its weights */
    double weight_sqnr;         /* signal to error of its weights, dB; INFINITY: no error    */
    double output_sqnr;         /* of what later layers read, over the kept samples, with the
                                   errors of all layers before; NAN: there were no samples   */
} fac_integer_layer;
/* In the order of execution, after fac_calibrator_finish; NULL after the last. */
const fac_integer_layer *fac_calibrator_layer(const fac_calibrator *c, int i);

/* ---- numbers beside their levels ---- */

/* A quantizer of a learned basis (fac_quantize_basis; of packed files fac_unpack_basis), and how
 * often the numbers that it was given lie where: cells of equal width from lo to hi.  Weights with
 * levels for each filter are counted as parts of the largest level of their filter, and level and
 * threshold are means over the filters.  Of a packed file only the levels are left. */
enum { FAC_QUANTIZER_LEVELS = 16, FAC_QUANTIZER_CELLS = 60 };
typedef struct fac_quantizer_counts {
    const char *layer; /* that reads its result */
    bool weights;      /* else what the layer reads */
    int bits, levels;  /* 2^bits */
    int64_t filters;   /* with levels of their own; 0: all have the same */
    double level[FAC_QUANTIZER_LEVELS], threshold[FAC_QUANTIZER_LEVELS - 1]; /* rising */
    int64_t taken[FAC_QUANTIZER_LEVELS]; /* how many numbers become level k */
    double lo, hi;
    int64_t in[FAC_QUANTIZER_CELLS]; /* [lo + k w, lo + (k + 1) w), without zeros */
    int64_t zeros, below, above, nan;
} fac_quantizer_counts;
typedef struct fac_quantizers fac_quantizers;

/* Those of a model, whose weights are counted at once; what layers read has its levels and cells,
 * too, unless the basis is computed: then these are 0 until samples are added.  The graph is
 * copied; device must outlive the result, and may be NULL where nothing is added.  To be freed by
 * fac_quantizers_free; one thread at a time.  FAC_E_ARGUMENT: it has none. */
fac_status fac_quantizers_new(const fac_graph *model, fac_device *device, fac_quantizers **out,
                              fac_error *err);
/* Runs the model on in[], as fac_program_run takes them, and counts what its layers read; any
 * number of times. */
fac_status fac_quantizers_add(fac_quantizers *q, fac_tensor *const in[], fac_error *err);
/* In the order of execution; NULL after the last.  Lives as long as q. */
const fac_quantizer_counts *fac_quantizers_get(const fac_quantizers *q, int i);
void fac_quantizers_free(fac_quantizers *q); /* NULL is fine */

/* ---- packed files ---- */

typedef struct fac_packing {
    int layers;                 /* whose weights are bits */
    int byte_layers;            /* ... have 8 bits, with scales */
    int float_layers;           /* ... are floats */
    double bytes, bytes_before; /* of all parameters, in the file and as f32 without levels and
                                   scales */
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
