/* Batch norm at prepare time.
 *   y = (x - mean) / sqrt(var + eps) * scale + bias = x s + t,   s = scale / sqrt(var + eps),  t = bias - mean s
 * Behind a convolution that only it reads: w' = w s (per output channel), b' = b s + t.  Elsewhere: one multiply and one add,
 * which the chains pass fuses with their neighbours.  s, t, w', b' are ordinary values made of parameters alone, so the plan
 * computes them in its prepare part and again when a parameter was written. */
#include "facula/ops.h"
#include "passes/attr.h"
#include "passes/passes.h"
#include "passes/single.h"

static fac_value *per_channel(fac_value *v, int rank) {     /* [C] -> [C,1,1..], `rank` dims in all */
    fac_dims d = { .n = rank };
    for (int k = 0; k < rank; k++) d.d[k] = 1;
    d.d[0] = v->type.dims.d[0];
    return fac_reshape(v, d);
}

static bool early(const fac_value *v) { return !v || v->time != FAC_RUN; }

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[], fac_value *out[]) {
    (void)self;
    if (!fac_node_is(n, "batch_norm") || fac_attr_flag(n, "training_mode")) return false;
    for (int i = 1; i < 5; i++)
        if (!early(in[i]) || in[i]->type.dtype != in[0]->type.dtype) return false;
    fac_dtype dtype = in[0]->type.dtype;
    int rank = in[0]->type.dims.n;
    fac_value *s = fac_div(in[1], fac_sqrt(fac_add(in[4], fac_number(to, dtype, fac_attr_real(n, "epsilon", 1e-5)))));
    fac_value *t = fac_sub(in[2], fac_mul(in[3], s));
    fac_node *conv = in[0]->node;
    bool behind = (fac_node_is(conv, "conv2d") || fac_node_is(conv, "conv3d")) && !conv->body[0] && fac_used_once(n->in[0]) &&
                  early(conv->in[1]) && (conv->nin < 3 || early(conv->in[2]));
    if (behind) {
        fac_value *b = conv->nin > 2 ? conv->in[2] : NULL;
        fac_value *args[3] = { conv->in[0], fac_mul(conv->in[1], per_channel(s, rank)), b ? fac_add(fac_mul(b, s), t) : t };
        out[0] = fac_emit(conv->op, conv->attrs, 3, args);
        if (out[0]->node) {
            out[0]->node->name = conv->name;
            out[0]->node->scope = conv->scope;
        }
    } else {
        out[0] = fac_add(fac_mul(in[0], per_channel(s, rank - 1)), per_channel(t, rank - 1));
        if (out[0]->node) {
            out[0]->node->name = fac_arena_text(&out[0]->graph->arena, n->name);        /* n goes away with its graph */
            out[0]->node->scope = fac_arena_text(&out[0]->graph->arena, n->scope);
        }
    }
    for (int k = 1; k < n->nout; k++) out[k] = in[2 + k];       /* inference leaves the running statistics as they are */
    return true;
}

fac_graph *fac_pass_batch_norm(const fac_graph *g) { return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL); }
