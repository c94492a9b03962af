/* Between the files of quantizers: see facula/quantize.h. */
#ifndef FACULA_NN_LOW_BITS_H
#define FACULA_NN_LOW_BITS_H
#include "facula/quantize.h"
#include "nn/nn_internal.h"

typedef enum fac_quantizer {
    FAC_Q_NONE,
    FAC_Q_LQ,
    FAC_Q_DOREFA,
    FAC_Q_LSQ,
    FAC_Q_ABC,
    FAC_Q_SIGN,
    FAC_Q_SCALED
} fac_quantizer;

/* What a scheme makes of the weights and of what a layer reads. */
typedef struct fac_scheme {
    fac_quantizer weights, inputs;
    int weight_bits, input_bits;
    fac_sign_path path; /* of signs */
    bool signs;         /* inputs are signs: a relu before them would leave only ones */
    bool shifted;       /* ReActNet: thresholds and activations are learned           */
} fac_scheme;

/* NULL, or what is wrong. */
const char *fac_scheme_parse(const char *text, fac_scheme *to);

/* x and w of a layer as the scheme has them; the parameters and states that they need are called
 * "<layer>.input.basis" and so on, and belong to x's graph. */
fac_value *fac_scheme_weight(const fac_scheme *s, const char *layer, fac_value *w,
                             const fac_tensor *now);
fac_value *fac_scheme_input(const fac_scheme *s, const char *layer, fac_value *x);
/* What takes the place of a relu in front of the layer. */
fac_value *fac_scheme_relu(const fac_scheme *s, const char *layer, fac_value *x);

static inline fac_value *fac_q_number(const fac_value *like, double x) {
    return fac_number(like->graph, like->type.dtype, x);
}
#endif
