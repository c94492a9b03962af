/* What the ops of random numbers share: they are made of random_bits by ordinary ops, so that they
 * are the same on every device. */
#ifndef FACULA_OPS_RANDOM_H
#define FACULA_OPS_RANDOM_H
#include "facula/op.h"
#include "facula/ops.h"

typedef struct fac_random_attrs {
    int64_t stream;
    fac_dtype dtype;
} fac_random_attrs;
extern const fac_port fac_random_ports[]; /* counter, shape */

/* The type of the result: dims of the shape; dtype. */
bool fac_random_infer(fac_node *n, fac_dtype dtype);
/* Of floats: the dtype of the node, f32 when it is not said. */
fac_dtype fac_random_type(const fac_node *n);
bool fac_random_infer_floats(fac_node *n);
/* The noise of a node, u64, of its own stream or the next ones. */
fac_value *fac_random_noise(const fac_node *n, int64_t stream);
/* A second noise beside that of a stream. */
static inline int64_t fac_random_second(int64_t stream) { return stream ^ INT64_MIN; }
/* Numbers in [0, 1) of these bits, exact in `dtype`: 53, 24, 11 or 8 bits. */
fac_value *fac_random_unit(fac_value *bits, fac_dtype dtype);
#endif
