/* What attention and its gradient are spelled out with. */
#ifndef FACULA_OPS_ATTENTION_H
#define FACULA_OPS_ATTENTION_H
#include "facula/op.h"
#include "facula/ops.h"

/* Inputs of attention. */
enum {
    FAC_ATTENTION_Q,
    FAC_ATTENTION_K,
    FAC_ATTENTION_V,
    FAC_ATTENTION_MASK,
    FAC_ATTENTION_PAST_KEY,
    FAC_ATTENTION_PAST_VALUE,
    FAC_ATTENTION_LENGTHS,
    FAC_ATTENTION_INPUTS
};

/* v with three dims as B, heads, rows, size; one with four as it is.  And back to three. */
fac_value *fac_attention_heads(fac_value *v, int64_t heads);
fac_value *fac_attention_flat(fac_value *v);

/* Input i of n as B, heads, rows, size, whatever its rank; do q, k and v fit together; does a mask
 * broadcast to the scores, B, heads, queries, keys?  false after fac_fail. */
bool fac_attention_dims(fac_node *n, int i, int64_t heads, fac_dims *to);
bool fac_attention_fits(fac_node *n, const fac_dims *q, const fac_dims *k, const fac_dims *v);
bool fac_attention_mask_fits(fac_node *n, const fac_value *mask, const fac_dims *scores);

/* Which keys a query sees; all but `causal` may be absent. */
typedef struct fac_attention_masks {
    bool causal;
    fac_value *mask, *past, *lengths;
    int64_t window;
} fac_attention_masks;
/* What is added to the scores of q and keys (B, heads, rows, size), NULL when nothing is; *dead:
 * queries that see no key, NULL when there can be none.  The two are decided by masks alone, so
 * that a score of infinity cannot revive a masked key. */
fac_value *fac_attention_bias(const fac_attention_masks *m, fac_value *q, fac_value *keys,
                              fac_value **dead);

/* The keys j of a query at p with p - left <= j <= p + right, bool, broadcasting to scores.  A
 * negative number sets no limit; of m only past and lengths count. */
fac_value *fac_attention_within(const fac_attention_masks *m, fac_value *q, fac_value *keys,
                                int64_t left, int64_t right);
/* The mask with a last dim as long as that of the scores, NULL for NULL. */
fac_value *fac_attention_filled(fac_value *mask, fac_value *rows, int axis);
/* a and b; either may be NULL. */
fac_value *fac_attention_both(fac_value *a, fac_value *b);

/* Its ONNX forms. */
void fac_load_attention(const fac_onnx_node *n, fac_graph *g, fac_value *const x[], fac_value *y[]);
bool fac_save_attention(const fac_onnx_writer *w, const fac_node *n);

/* [B,H,Q,x] as [B,G,H/G Q,x]: the rows of all heads that share one of k, also where there are no
 * rows or sizes; and back. */
fac_value *fac_attention_grouped(fac_value *v, int64_t groups);
/* a [B,H,Q,x] times b [B,G,x,z]: the rows of all heads that share one of b are one matrix. */
fac_value *fac_attention_product(fac_value *a, fac_value *b);
/* v times the scale, 0: 1 / sqrt(its last dim).  Of q before the product: there are fewer numbers
 * in q than in the scores. */
fac_value *fac_attention_scaled(fac_value *v, double scale);
#endif
