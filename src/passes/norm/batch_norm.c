/* Batch norm, and factors of channels, at prepare time.
 *   y = (x - mean) / sqrt(var + eps) * scale + bias = x s + t,   s = scale / sqrt(var + eps),  t =
 *       bias - mean s
 * After a convolution that only it reads: w' = w s (per output channel), b' = b s + t.  Elsewhere:
 * one multiply and one add, which the chains pass fuses with their neighbours.  A product with one
 * factor a channel after a convolution, as Caffe writes batch norms, goes the same way; what is
 * added becomes a bias in the pass of the epilogues.  s, t, w', b' are ordinary values made of
 * parameters alone, so the plan computes them in its prepare part and again when a parameter was
 * written. */
#include "facula/ops.h"
#include "graph/attr.h"
#include "op_list.h"
#include "passes/common/each.h"
#include "passes/passes.h"
#include "passes/common/single.h"

static fac_value *per_channel(fac_value *v, int rank) { /* [C] -> [C,1,1..], `rank` dims in all */
    fac_dims d = { .n = rank };
    for (int k = 0; k < rank; k++) d.d[k] = 1;
    d.d[0] = v->type.dims.d[0];
    return fac_reshape_sizes(v, d);
}

static bool early(const fac_value *v) { return !v || v->time != FAC_RUN; }

/* The convolution that makes in[i], which n alone reads, when its weights are there before the run.
 */
static fac_node *conv_before(const fac_node *n, fac_value *const in[], int i) {
    fac_node *m = in[i] ? in[i]->node : NULL;
    if (!(FAC_IS(m, conv2d) || FAC_IS(m, conv3d)) || m->body[0] || !fac_used_once(n->in[i]))
        return NULL;
    return early(m->in[1]) && (m->nin < 3 || early(m->in[2])) ? m : NULL;
}

/* v in the type of the factors: weights that were rounded to a narrower type (autocast.c) as they
 * were before. */
static fac_value *as_wide(fac_value *v, fac_dtype wide) {
    if (FAC_IS(v->node, cast) && v->node->in[0]->type.dtype == wide) return v->node->in[0];
    return v->type.dtype == wide ? v : fac_cast(v, wide);
}

static fac_value *as(fac_value *v, fac_dtype dtype) {
    return !v || v->type.dtype == dtype ? v : fac_cast(v, dtype);
}

/* conv s + t, by channels; t NULL: nothing is added. */
static fac_value *scaled(const fac_node *conv, fac_value *s, fac_value *t) {
    const fac_dtype dtype = conv->in[1]->type.dtype, wide = s->type.dtype;
    fac_value *w = fac_mul(as_wide(conv->in[1], wide), per_channel(s, conv->in[1]->type.dims.n));
    fac_value *b = conv->nin > 2 && conv->in[2] ? fac_mul(as_wide(conv->in[2], wide), s) : NULL;
    fac_value *args[3] = { conv->in[0], as(w, dtype),
                           as(b && t ? fac_add(b, t)
                              : b    ? b
                                     : t,
                              dtype) };
    fac_value *y = fac_emit(conv->op, conv->attrs, args[2] ? 3 : 2, args);
    if (y->node) fac_node_named_as(y->node, conv);
    return y;
}

/* conv times one number a channel, known before the run. */
static fac_value *factor(const fac_node *n, fac_value *const in[]) {
    for (int i = 0; i < 2; i++) {
        const fac_node *conv = conv_before(n, in, i);
        fac_value *s = in[1 - i];
        if (!conv || !s || !early(s) || s->type.dtype != in[i]->type.dtype) continue;
        const fac_dims *d = &s->type.dims, *y = &in[i]->type.dims;
        const int axis = d->n - (y->n - 1); /* of the channels in s */
        if (axis < 0 || d->n > y->n || d->d[axis] != y->d[1] || fac_dims_count(d) != y->d[1])
            continue;
        return scaled(conv, fac_reshape_sizes(s, fac_shape(y->d[1])), NULL);
    }
    return NULL;
}

/* x s + t as this pass writes it, where n alone reads it. */
static bool is_affine(const fac_node *n, fac_value *const in[], int i, fac_value **x, fac_value **s,
                      fac_value **t) {
    const fac_node *add = in[i] ? in[i]->node : NULL,
                   *mul = FAC_IS(add, add) ? add->in[0]->node : NULL;
    if (!FAC_IS(mul, mul) || !fac_used_once(n->in[i]) || !early(add->in[1]) || !early(mul->in[1]))
        return false;
    *x = mul->in[0];
    *s = mul->in[1];
    *t = add->in[1];
    return (*x)->time == FAC_RUN && fac_dims_equal(&(*s)->type.dims, &(*t)->type.dims) &&
           fac_dims_equal(&(*x)->type.dims, &in[i]->type.dims);
}

/* (x s + t) f = x (s f) + t f,  (x s + t) + f = x s + (t + f)  with f one number a channel like s
 * and t. */
static fac_value *composed(const fac_node *n, fac_value *const in[]) {
    for (int i = 0; i < 2; i++) {
        fac_value *x, *s, *t, *f = in[1 - i];
        if (!f || !early(f) || !is_affine(n, in, i, &x, &s, &t) ||
            !fac_dims_equal(&f->type.dims, &s->type.dims))
            continue;
        if (FAC_IS(n, mul)) return fac_add(fac_mul(x, fac_mul(s, f)), fac_mul(t, f));
        return fac_add(fac_mul(x, s), fac_add(t, f));
    }
    return NULL;
}

static bool visit(void *self, fac_graph *to, const fac_node *n, fac_value *const in[],
                  fac_value *out[]) {
    (void)self;
    if ((FAC_IS(n, mul) || FAC_IS(n, add)) && n->out[0]->time == FAC_RUN && n->nin == 2) {
        fac_value *y = FAC_IS(n, mul) ? factor(n, in) : NULL;
        if (!y) y = composed(n, in);
        if (y) out[0] = y;
        return y != NULL;
    }
    if (!FAC_IS(n, batch_norm) || fac_attr_flag(n, "training_mode")) return false;
    const fac_dtype dtype = in[1]->type.dtype, narrow = in[0]->type.dtype;
    for (int i = 1; i < 5; i++)
        if (!early(in[i]) || in[i]->type.dtype != dtype) return false;
    if (narrow != dtype && (dtype != FAC_F32 || (narrow != FAC_BF16 && narrow != FAC_F16)))
        return false;
    int rank = in[0]->type.dims.n;
    fac_value *s = fac_div(
        in[1], fac_sqrt(fac_add(in[4], fac_number(to, dtype, fac_attr_real(n, "epsilon", 1e-5)))));
    fac_value *t = fac_sub(in[2], fac_mul(in[3], s));
    const fac_node *conv = conv_before(n, in, 0);
    if (conv) {
        out[0] = scaled(conv, s, t);
    } else {
        out[0] = as(
            fac_add(fac_mul(as(in[0], dtype), per_channel(s, rank - 1)), per_channel(t, rank - 1)),
            narrow);
        if (out[0]->node) {
            out[0]->node->name =
                fac_arena_text(&out[0]->graph->arena, n->name); /* n goes away with its graph */
            out[0]->node->scope = fac_arena_text(&out[0]->graph->arena, n->scope);
        }
    }
    for (int k = 1; k < n->nout; k++)
        out[k] = in[2 + k]; /* inference leaves the running statistics as they are */
    return true;
}

fac_graph *fac_pass_batch_norm(const fac_graph *g) {
    return fac_graph_rebuild(g, &(fac_rebuild){ .visit = visit }, NULL);
}
