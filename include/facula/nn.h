/* facula/nn.h: layers.  Functions that create parameters and call ops; nothing here is known to the
 * core.
 *
 * Parameters have PyTorch's names, "<scope>.<name>.weight" and so on: fac_graph_push and
 * fac_graph_pop are the module tree, and the names make the state dict.  First values are drawn
 * from PyTorch's distributions.  Options: zero is the default, PyTorch's unless it says otherwise,
 * and `opts` may be NULL.
 *
 * One graph serves for training and for inference.  fac_nn_dropout drops and fac_nn_batch_norm is
 * in its inference form while the graph is built; fac_graph_training(g) (train.h) gives a copy
 * whose batch norms take the statistics of the batch and update their running ones,
 * fac_graph_inference(g) (graph.h) a copy that drops nothing, uses running statistics and updates
 * nothing: torch's train() and eval(). */
#ifndef FACULA_NN_H
#define FACULA_NN_H

#include "facula/io.h"
#include "facula/ops.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- first values ---- */

/* Where new parameters come from (fac_source of graph.h: FAC_E_ARGUMENT when there is no such
 * name).  Set before building. */
void fac_nn_source(fac_graph *g, fac_source *source, void *self);

/* Without a source: drawn from this seed and the parameter's name, so order does not matter. */
void fac_nn_seed(fac_graph *g, uint64_t seed);

/* The distributions of torch.nn.init.  fan: inputs (fan_out: outputs) of one unit, of a weight
 * [out, in, ...]. */
typedef enum fac_init_kind {
    FAC_INIT_DEFAULT,          /* what the layer does */
    FAC_INIT_CONSTANT,         /* mean: 0 for zeros, 1 for ones */
    FAC_INIT_UNIFORM,          /* low..high */
    FAC_INIT_NORMAL,           /* mean, std */
    FAC_INIT_TRUNCATED_NORMAL, /* the same, within low..high (both 0: -2..2) */
    FAC_INIT_XAVIER_UNIFORM, /* within gain sqrt(6 / (fan_in + fan_out))       (Glorot, Bengio 2010)
                              */
    FAC_INIT_XAVIER_NORMAL,  /* std = gain sqrt(2 / (fan_in + fan_out)) */
    FAC_INIT_KAIMING_UNIFORM, /* within gain sqrt(3 / fan)                      (He et al. 2015) */
    FAC_INIT_KAIMING_NORMAL,  /* std = gain / sqrt(fan) */
    FAC_INIT_ORTHOGONAL /* rows (or columns) are orthogonal, of length gain  (Saxe et al. 2014) */
} fac_init_kind;
typedef struct fac_init {
    fac_init_kind kind;
    double low, high, mean;
    double std;  /* 0 = 1 */
    double gain; /* 0 = 1, kaiming: sqrt(2), that of relu */
    bool fan_out;
} fac_init;

/* What keeps the variance through an activation: "linear", "sigmoid" 1, "tanh" 5/3, "relu" sqrt(2),
 * "leaky_relu" sqrt(2 / (1 + slope^2)), "selu" 3/4.  0 for another name. */
double fac_init_gain(const char *activation, double slope);

/* Draws anew all parameters whose names fit the pattern ("encoder.*.weight", * and ? are wild).
 * FAC_E_ARGUMENT when none does, and when a distribution needs two dims and one has fewer. */
fac_status fac_nn_init(fac_graph *g, const char *pattern, const fac_init *init, fac_error *err);

/* ---- a state dict ---- */

typedef struct fac_load_opts {
    bool loose; /* names that only one side has are passed over, as torch's strict=False does */
    const char *unused; /* names of w that begin so are passed over in any case */
} fac_load_opts;
typedef struct fac_load_result {
    int loaded, missing, different, unknown;
} fac_load_result;

/* Parameters and states from weights with the same names and shapes; other float types are
 * converted.  What is wrong is told all at once, as FAC_E_ARGUMENT: names that w lacks, other
 * shapes (always an error), names of w that g has not (but for PyTorch's "num_batches_tracked");
 * the graph is then as it was.  opts and result may be NULL; result is also set by an error.
 * fac_graph_save_weights (train.h) is the way out. */
fac_status fac_graph_load_weights(fac_graph *g, const fac_weights *w, const fac_load_opts *opts,
                                  fac_load_result *result, fac_error *err);

/* ---- convolutions and products ---- */

/* x N,C,... -> N,channels,...  weight [channels, C/groups, kernel, ...], bias [channels] unless
 * no_bias. */
typedef struct fac_nn_conv_opts {
    int stride, pad, dilation, groups; /* 0 = 1 (pad 0); the same along each dim */
    bool no_bias;
    int auto_pad; /* fac_auto_pad; pad is ignored unless it is FAC_AUTO_NONE */
    fac_init weight, bias;
} fac_nn_conv_opts;
typedef fac_nn_conv_opts fac_nn_conv2d_opts;
fac_value *fac_nn_conv1d(fac_value *x, const char *name, int channels, int kernel,
                         const fac_nn_conv_opts *opts);
/* Two dims: x N,C,H,W. */
fac_value *fac_nn_conv2d(fac_value *x, const char *name, int channels, int kernel,
                         const fac_nn_conv_opts *opts);
/* Three dims: x N,C,D,H,W. */
fac_value *fac_nn_conv3d(fac_value *x, const char *name, int channels, int kernel,
                         const fac_nn_conv_opts *opts);

/* x N,C,... -> N,channels,...  weight [C, channels/groups, kernel, ...], bias [channels] unless
 * no_bias. */
typedef struct fac_nn_conv_transpose_opts {
    int stride, pad, output_pad, dilation, groups;
    bool no_bias;
    fac_init weight, bias;
} fac_nn_conv_transpose_opts;
fac_value *fac_nn_conv_transpose1d(fac_value *x, const char *name, int channels, int kernel,
                                   const fac_nn_conv_transpose_opts *opts);
/* Two dims: x N,C,H,W. */
fac_value *fac_nn_conv_transpose2d(fac_value *x, const char *name, int channels, int kernel,
                                   const fac_nn_conv_transpose_opts *opts);
/* Three dims: x N,C,D,H,W. */
fac_value *fac_nn_conv_transpose3d(fac_value *x, const char *name, int channels, int kernel,
                                   const fac_nn_conv_transpose_opts *opts);

/* x ...,in -> ...,features.  weight [features, in], bias [features]. */
fac_value *fac_nn_linear(fac_value *x, const char *name, int features);
typedef struct fac_nn_linear_opts {
    bool no_bias;
    fac_init weight, bias;
} fac_nn_linear_opts;
/* The same with options, which may be NULL. */
fac_value *fac_nn_linear_with(fac_value *x, const char *name, int features,
                              const fac_nn_linear_opts *opts);

/* ids ... (integers) -> ...,features.  weight [count, features], normal. */
typedef struct fac_nn_embedding_opts {
    bool padding;        /* padding_idx counts: its row starts as zeros and has no gradient */
    int64_t padding_idx; /* a negative one counts from the end */
    fac_dtype dtype;     /* of the table; FAC_NONE: f32 */
    fac_init weight;
} fac_nn_embedding_opts;
fac_value *fac_nn_embedding(fac_value *ids, const char *name, int64_t count, int features,
                            const fac_nn_embedding_opts *opts);

/* ---- sounds: waveforms B,samples of f32 ---- */

typedef enum fac_nn_loudness {
    FAC_LOUDNESS_LOG, /* ln(power + 1e-6) */
    FAC_LOUDNESS_DB,  /* 10 log10(max(power, 1e-10)), not below the largest of the clip minus top_db
                       */
    FAC_LOUDNESS_POWER,
    FAC_LOUDNESS_MAGNITUDE /* the root of it */
} fac_nn_loudness;
typedef struct fac_nn_spectrogram_opts {
    int rate;          /* samples a second; for mels */
    int length, hop;   /* of a frame, and between frames, in samples; hop 0 = length / 4 */
    int window;        /* samples of the window, which lies in the middle of a frame; 0 = length */
    int mels;          /* 0: all length/2 + 1 frequencies */
    double low, high;  /* of the mels, in Hz; high 0 = rate / 2 */
    bool slaney_scale; /* librosa's scale of mels, else HTK's */
    bool slaney_norm;  /* triangles of equal area, else of equal height */
    int loudness;      /* fac_nn_loudness */
    double top_db;     /* 0 = 80 */
    bool no_center; /* frames begin at sample 0; else their middles do, and the ends are mirrored */
    bool zeros;     /* instead of mirrored: as librosa */
    bool normalize; /* each clip has mean 0 and deviation 1 */
    bool per_band;  /* ... and each of its bands mean 0: what sounds all the time is taken off */
} fac_nn_spectrogram_opts;
/* Power of short-time spectra with a periodic Hann window: B,1,mels,frames.  The basis and the mels
 * are constants, so a saved model takes waveforms.  FAC_E_ARGUMENT when a mel lies between two
 * frequencies and would always be 0. */
fac_value *fac_nn_spectrogram(fac_value *x, const fac_nn_spectrogram_opts *opts);
/* The first `count` cepstral coefficients of a mel spectrogram in dB (loudness is that):
 * B,count,frames. */
fac_value *fac_nn_mfcc(fac_value *x, int count, const fac_nn_spectrogram_opts *opts);
/* Weights of the mels for a spectrum of length/2 + 1 frequencies, f64 [mels, length/2 + 1], a new
 * tensor. */
fac_status fac_nn_mel_weights(const fac_nn_spectrogram_opts *opts, fac_tensor **out,
                              fac_error *err);
/* B,samples at another rate, as fac_resample (sound.h) with its better quality; fast: the other
 * one.  Samples are known. */
fac_value *fac_nn_resample(fac_value *x, int from, int to, bool fast);
/* x[n] - coefficient x[n-1], x[0] as it is.  0 = 0.97. */
fac_value *fac_nn_preemphasis(fac_value *x, double coefficient);

/* SpecAugment: in training a stretch of up to `time` of the columns and of up to `bands` of the
 * rows of x B,...,M,T becomes the mean of the sample; drawn by the counter that dropouts of the
 * graph share. */
fac_value *fac_nn_mask_spectrum(fac_value *x, double time, double bands);

/* ---- normalization, dropout, activations with parameters ---- */

/* Inference form: y = (x - running_mean) / sqrt(running_var + eps) * weight + bias, per channel.
 * eps 0 = 1e-5. */
fac_value *fac_nn_batch_norm(fac_value *x, const char *name, double eps);

/* Over the last dims of each sample; rms_norm: without mean and bias.  weight, bias: the sizes of
 * those dims. */
typedef struct fac_nn_norm_opts {
    double eps;              /* 0 = 1e-5; rms_norm: that of the dtype */
    int dims;                /* layer and rms norm: how many; 0 = 1 */
    bool no_affine, no_bias; /* neither weight nor bias; no bias */
    bool affine;             /* instance norm: weight and bias [C] */
} fac_nn_norm_opts;
fac_value *fac_nn_layer_norm(fac_value *x, const char *name, const fac_nn_norm_opts *opts);
/* x / sqrt(mean x^2 + eps) times weight, over the last dims. */
fac_value *fac_nn_rms_norm(fac_value *x, const char *name, const fac_nn_norm_opts *opts);
/* x N,C,...: over each group of channels, over each channel. */
fac_value *fac_nn_group_norm(fac_value *x, const char *name, int groups,
                             const fac_nn_norm_opts *opts);
/* Over each channel of each sample. */
fac_value *fac_nn_instance_norm(fac_value *x, const char *name, const fac_nn_norm_opts *opts);

/* In training each element is 0 with probability `ratio`, else x / (1 - ratio).  All dropouts of a
 * graph share the state "dropout.counter", which starts from the seed and counts steps. */
fac_value *fac_nn_dropout(fac_value *x, double ratio);

/* x where x > 0, else weight x.  weight [count], 0.25; count: 1, or the channels of x. */
fac_value *fac_nn_prelu(fac_value *x, const char *name, int count);

/* ---- recurrent layers ---- */

/* x T,N,I -> y T,N,D hidden: T steps, N sequences, D directions.  T must be a number when the graph
 * is run or differentiated. weight_ih_l0 [G hidden, I], weight_hh_l0 [G hidden, hidden],
 * bias_ih_l0, bias_hh_l0 [G hidden], then _l0_reverse, _l1 ...; lstm: G = 4, i f g o;  gru: G = 3,
 * r z n. */
typedef struct fac_nn_recurrent_opts {
    int layers; /* 0 = 1 */
    bool bidirectional, no_bias;
    bool batch_first;   /* x N,T,I   y N,T,D hidden */
    bool relu;          /* rnn: instead of tanh */
    double dropout;     /* after every layer but the last */
    fac_value *h0, *c0; /* layers D,N,hidden: l0, l0_reverse, l1 ...; NULL: zeros */
    fac_value *lengths; /* N integers: steps of each sequence, as of a packed one; NULL: all T */
} fac_nn_recurrent_opts;
typedef struct fac_nn_recurrent {
    fac_value *y, *h, *c;
} fac_nn_recurrent; /* h, c: layers D,N,hidden; c: lstm */
fac_nn_recurrent fac_nn_rnn(fac_value *x, const char *name, int hidden,
                            const fac_nn_recurrent_opts *opts);
/* The gated recurrent unit, gates in torch's order r, z, n; no c. */
fac_nn_recurrent fac_nn_gru(fac_value *x, const char *name, int hidden,
                            const fac_nn_recurrent_opts *opts);
/* Long short-term memory, gates in torch's order i, f, g, o. */
fac_nn_recurrent fac_nn_lstm(fac_value *x, const char *name, int hidden,
                             const fac_nn_recurrent_opts *opts);

/* ---- attention ---- */

/* q Q,N,E  k T,N,K  v T,N,V -> Q,N,E.  in_proj_weight [3 E, E] (or q_, k_ and v_proj_weight when K
 * or V is not E), in_proj_bias [3 E], out_proj.weight [E, E], out_proj.bias [E]. */
typedef struct fac_nn_attention_opts {
    bool batch_first; /* N,Q,E and so on */
    bool no_bias, causal;
    double dropout;  /* of the probabilities */
    fac_value *mask; /* NULL, or broadcasts to N,heads,Q,T: bool, TRUE WHERE A KEY TAKES PART (the
                        opposite of torch's module), or numbers that are added to the scores */
    fac_value *lengths; /* NULL, or N integers: so many keys of each sequence take part */
} fac_nn_attention_opts;
fac_value *fac_nn_multihead_attention(fac_value *q, fac_value *k, fac_value *v, const char *name,
                                      int heads, const fac_nn_attention_opts *opts);

/* Blocks of Vaswani et al. 2017; with norm_first, causal and fac_gelu one of GPT-2.  x T,N,E ->
 * T,N,E. */
typedef struct fac_nn_transformer_opts {
    int feedforward; /* 0 = 2048 */
    double dropout;  /* 0: none (torch: 0.1) */
    double eps;      /* 0 = 1e-5 */
    bool batch_first, norm_first, no_bias, causal;
    fac_value *(*activation)(fac_value *x); /* NULL: fac_relu */
    fac_value *mask, *lengths;              /* of x, as in fac_nn_attention_opts */
    fac_value *memory_mask, *memory_lengths;
} fac_nn_transformer_opts;
/* self_attn, linear1, linear2, norm1, norm2 */
fac_value *fac_nn_transformer_encoder_layer(fac_value *x, const char *name, int heads,
                                            const fac_nn_transformer_opts *opts);
/* self_attn, multihead_attn over memory, linear1, linear2, norm1, norm2, norm3 */
fac_value *fac_nn_transformer_decoder_layer(fac_value *x, fac_value *memory, const char *name,
                                            int heads, const fac_nn_transformer_opts *opts);

/* ---- layers in a row ---- */

/* One of a list: exactly one of op, sized, norm, conv and dropout is given.
 *     static const fac_nn_layer digits[] = {
 *         { .conv = fac_nn_conv2d, .size = 16, .kernel = 3, .opts = { .pad = 1 } },
 *         { .norm = fac_nn_batch_norm },
 *         { .op = fac_relu }, { .op = flat }, { .dropout = 0.5 },
 *         { .name = "head", .sized = fac_nn_linear, .size = 10 },
 *     };
 *     logits = fac_nn_sequential(x, "net", 6, digits);
 * Parameters are net.0.weight, net.0.bias, net.1.weight ... */
typedef struct fac_nn_layer {
    const char *name;               /* NULL: its place, "0", "1", ... */
    fac_value *(*op)(fac_value *x); /* fac_relu, or a function of yours */
    fac_value *(*sized)(fac_value *x, const char *name,
                        int size); /* fac_nn_linear, or a block of yours */
    fac_value *(*norm)(fac_value *x, const char *name, double eps); /* fac_nn_batch_norm */
    fac_value *(*conv)(fac_value *x, const char *name, int channels, int kernel,
                       const fac_nn_conv_opts *opts);
    double dropout;
    int size, kernel;
    double eps;
    fac_nn_conv_opts opts;
} fac_nn_layer;
fac_value *fac_nn_sequential(fac_value *x, const char *name, int n, const fac_nn_layer layers[]);
/* x + what the layers make of it. */
fac_value *fac_nn_residual(fac_value *x, const char *name, int n, const fac_nn_layer layers[]);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
