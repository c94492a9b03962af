/* Attention of 16 bits where a kernel takes it in f32 alone: what it reads is widened, and its
 * results are rounded once, at the end.  Its expansion would round after each step. */
#include "facula/ops.h"
#include "passes/common/each.h"
#include "op_list.h"
#include "passes/passes.h"

enum { MOST = 8 };

static fac_value *wide(fac_value *v, fac_dtype narrow) {
    return v && v->type.dtype == narrow ? fac_cast(v, FAC_F32) : v;
}

bool fac_attention_widened(fac_accept *accept, void *self, const fac_node *n, fac_value *const in[],
                           fac_value *out[]) {
    const fac_dtype t = n->out[0]->type.dtype;
    fac_value *with[MOST];
    if (!FAC_IS(n, attention) || (t != FAC_F16 && t != FAC_BF16) || n->body[0] || n->nin > MOST)
        return false;
    for (int i = 0; i < n->nin; i++) with[i] = wide(in[i], t);
    fac_value *y = fac_emit(n->op, n->attrs, n->nin, with);
    if (!y->node) return false;
    for (int k = 0; k < n->nout; k++) {
        const fac_value *was = n->out[k];
        const bool used = !k || was->uses || was->roots;
        out[k] = fac_value_other(y, k);
        if (used && out[k]->type.dtype != was->type.dtype)
            out[k] = fac_cast(out[k], was->type.dtype);
    }
    if (!accept(self, y->node)) return false;
    fac_node_named_as(y->node, n);
    return true;
}
