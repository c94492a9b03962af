/* See training.h. */
#include "ops/training/training.h"

void fac_training_load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[],
                       fac_value *out[], int moments, fac_step_rule *rule) {
    const int each = 2 + moments, count = (n->nin - 2) / each;
    const double decay = fac_onnx_real(n, "norm_coefficient", 0);
    if (count < 1 || (n->nin - 2) % each || n->nout > count * (1 + moments)) {
        fac_fail_graph(g, FAC_E_FORMAT, "%s has %d inputs; it needs R, T and %d for each parameter",
                       n->type, n->nin, each);
        return;
    }
    for (int i = 0; i < n->nin; i++)
        if (!in[i]) {
            fac_fail_graph(g, FAC_E_FORMAT, "%s lacks its input %d", n->type, i);
            return;
        }
    for (int k = 0; k < count; k++) {
        const fac_dtype dtype = in[2 + k]->type.dtype;
        fac_step_of s = {
            fac_cast(in[0], dtype), fac_cast(in[1], dtype), in[2 + k], in[2 + count + k], { NULL }
        };
        fac_value *to[3] = { NULL };
        for (int m = 0; m < moments; m++) s.m[m] = in[2 + (2 + m) * count + k];
        s.g = fac_add(s.g, fac_mul(s.x, fac_step_number(&s, decay)));
        rule(n, &s, to);
        for (int m = 0; m <= moments; m++)
            if (m * count + k < n->nout) out[m * count + k] = to[m];
    }
}
