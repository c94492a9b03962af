/* facula/nn.h: layers.  Functions that create parameters and call ops; nothing here is known to the core.
 * Parameters are called "<scope>.<name>.weight" and so on, as PyTorch calls them. */
#ifndef FACULA_NN_H
#define FACULA_NN_H

#include "facula/ops.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* Where new parameters come from (fac_source of graph.h: FAC_E_ARGUMENT when there is no such name).  Set before building. */
void fac_nn_source(fac_graph *g, fac_source *source, void *self);

/* Without a source: drawn as torch draws them, from this seed and the parameter's name, so order does not matter. */
void fac_nn_seed(fac_graph *g, uint64_t seed);

/* x N,C,H,W -> N,channels,P,Q.  weight [channels, C/groups, kernel, kernel], bias [channels] unless no_bias. */
typedef struct fac_nn_conv2d_opts {
    int  stride, pad, dilation, groups;     /* 0 = 1 (pad 0) */
    bool no_bias;
    int  auto_pad;                          /* fac_auto_pad; pad is ignored unless it is FAC_AUTO_NONE */
} fac_nn_conv2d_opts;
fac_value *fac_nn_conv2d(fac_value *x, const char *name, int channels, int kernel, const fac_nn_conv2d_opts *opts);

/* x ...,in -> ...,features.  weight [features, in], bias [features]. */
fac_value *fac_nn_linear(fac_value *x, const char *name, int features);

/* Inference form: y = (x - running_mean) / sqrt(running_var + eps) * weight + bias, per channel.  eps 0 = 1e-5. */
fac_value *fac_nn_batch_norm(fac_value *x, const char *name, double eps);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
