/* Graph passes.  Each reads a graph and returns a new one (the old one stays the caller's); errors
 * are the new graph's, NULL only when memory is gone.  Unless a pass says otherwise it preserves
 * every bit of every output. */
#ifndef FACULA_PASSES_H
#define FACULA_PASSES_H
#include "facula/backend.h"
#include "graph/graph_internal.h"

/* How a pass computes constants: the reference driver, which passes may not include. */
typedef fac_status fac_evaluate(const fac_node *n, fac_tensor *const in[], fac_tensor *out[],
                                fac_error *err);

/* The symbol that the first input leads with becomes `batch` (0: 1), every other one 1. */
fac_graph *fac_pass_sizes(const fac_graph *g, int64_t batch);

/* Attention, recurrent cells and functions (loops whose trip count is known too) written out in
 * simpler ops, also inside of each other.  Keeps bits only where these ops have no kernel of their
 * own. */
fac_graph *fac_pass_open(const fac_graph *g, bool loops);

/* Nodes whose inputs are all constants, and values whose contents are known, become constants: but
 * not results over 64 KiB that are larger than what they are made of (ConstantOfShape weights), and
 * nothing after a FAC_OP_BARRIER. */
fac_graph *fac_pass_fold(const fac_graph *g, fac_evaluate *evaluate);

/* Floats between dequantize_linear and quantize_linear become ops on bytes.  May change results by
 * a unit. */
fac_graph *fac_pass_quantized(const fac_graph *g);

/* Equal nodes with equal inputs become one. */
fac_graph *fac_pass_cse(const fac_graph *g);

/* Whether a kernel takes a node. */
typedef bool fac_accept(void *self, const fac_node *n);

/* Ops are replaced by their expansions, until none is left that has one but those that accept(self,
 * node) wants to keep.  accept NULL keeps those that have a formula too, and bodies of ops. */
fac_graph *fac_pass_expand(const fac_graph *g, fac_accept *accept, void *self);

/* What means the same in fewer steps: identity and inference dropout vanish, x * sigmoid(x) is
 * silu, max(min(x, b), a) is clip, matmul + bias is linear... */
fac_graph *fac_pass_simplify(const fac_graph *g);

/* ---- what makes a model smaller for good: used on files, not on plans ---- */

/* What changes nothing because of the numbers in its operands, parameters included: + 0, * 1,
 * slices of everything... */
fac_graph *fac_pass_neutral(const fac_graph *g);

/* Chains of reshape, squeeze, flatten become one reshape whose shape needs no computation where
 * ONNX can say it. */
fac_graph *fac_pass_shapes(const fac_graph *g);

/* Transposes after transposes, slices after slices, concats in concats and casts after casts become
 * one each. */
fac_graph *fac_pass_movers(const fac_graph *g);

/* Batch norms, factors and summands by channel go into the weights before them, zeros around images
 * into convolutions.  Changes rounding. */
fac_graph *fac_pass_absorb(const fac_graph *g);

/* Products of one value with several constant matrices become one, x w + b becomes Gemm.  May
 * change rounding. */
fac_graph *fac_pass_products(const fac_graph *g);

/* ---- */

/* wide_attention.c: attention of 16 bits as one of f32 between casts, where accept(self, node) says
 * that a kernel takes it; in are those of n in the new graph.  false: nothing was done. */
bool fac_attention_widened(fac_accept *accept, void *self, const fac_node *n, fac_value *const in[],
                           fac_value *out[]);
/* softmax(scale q k^T + mask) v becomes an attention node, where accept(self, node) says that a
 * kernel takes it.  Changes rounding; a query that a mask of -inf hides all keys from gives zeros
 * instead of NaN. */
fac_graph *fac_pass_attention(const fac_graph *g, fac_accept *accept, void *self);

/* Keys and values that go into caches and attention of one query become one attention_step, where
 * accept(self, node) says that a kernel takes it. */
fac_graph *fac_pass_decoding(const fac_graph *g, fac_accept *accept, void *self);

/* x (1 + erf(x / sqrt 2)) / 2 becomes one gelu.  Changes rounding. */
fac_graph *fac_pass_gelu(const fac_graph *g);

/* Gelu, attention and slices as ops of their own, as gradients want them: before a step of training
 * is made of a model.  Changes rounding, and results for queries without a key as above. */
fac_graph *fac_pass_known_forms(const fac_graph *g, fac_evaluate *evaluate);

/* Gathers of one place along an axis become slices. */
fac_graph *fac_pass_gather_slices(const fac_graph *g);

/* Slices go before reshapes and transposes. */
fac_graph *fac_pass_early_slices(const fac_graph *g);

/* What slices, concats, pads, reshapes and transposes do to rows one after the other becomes one
 * gather, chains of reshapes and transposes one of each where that copies less, and ops that treat
 * each row alone work in the order that is there. */
fac_graph *fac_pass_row_order(const fac_graph *g);

/* y = batch_norm(conv2d(x, w, b)) becomes a convolution with weights scaled by ordinary ops on
 * parameters, which the planner hoists into the prepare part.  Changes rounding. */
fac_graph *fac_pass_batch_norm(const fac_graph *g);

/* Views between a product and elementwise ops go after these. */
fac_graph *fac_pass_sink_views(const fac_graph *g);

/* The same for transposes. */
fac_graph *fac_pass_sink_transposes(const fac_graph *g);

/* Bias, residual add, activation and cast after a convolution or matrix product become its bias
 * port and its body, where accept(self, node) says that a kernel takes it. */
fac_graph *fac_pass_epilogue(const fac_graph *g, fac_accept *accept, void *self);

/* What kernels say that a node takes, in seconds; INFINITY when none takes it. */
typedef double fac_price(void *self, const fac_node *n);

/* Convolutions and linear layers between quantizers of few bits become conv2d_basis, where
 * price(self, node) says that counting bits takes less time.  Changes rounding.  A graph without
 * quantizers comes back itself. */
fac_graph *fac_pass_low_bits(const fac_graph *g, fac_price *price, void *self);

/* Between two conv2d_basis what is added, cut, pooled and quantized goes into the first, whose
 * result stays bits (conv2d_codes), where accept(self, node) says that a kernel takes it.  Changes
 * rounding. */
fac_graph *fac_pass_bits_between(const fac_graph *g, fac_accept *accept, void *self);

/* Convolutions of three dims become such of two, one or a sum, where price(self, node) says that
 * these take less time.  Changes rounding. */
fac_graph *fac_pass_conv_depths(const fac_graph *g, fac_price *price, void *self);

/* 1 x 1, depthwise and again 1 x 1 convolution after each other, with what is between them and a
 * residual add, become one `fused_conv` node, where price(self, node) is less than that of the
 * three. */
fac_graph *fac_pass_conv_chains(const fac_graph *g, fac_price *price, void *self);

/* Convolutions of 1 x 1 of one image, with equal bodies, become one whose slices their readers
 * read, where accept(self, node) says that a kernel takes it. */
fac_graph *fac_pass_siblings(const fac_graph *g, fac_accept *accept, void *self);

/* Products of one x with constant matrices that only attention reads become one, where accept(self,
 * node) says that a kernel takes it. */
fac_graph *fac_pass_sibling_products(const fac_graph *g, fac_accept *accept, void *self);

/* Concats that begin as another one reads its result. */
fac_graph *fac_pass_joins(const fac_graph *g);

/* Gradients by weights of convolutions whose stride is their kernel become products, where
 * price(self, node) says that these take less time.  Changes rounding. */
fac_graph *fac_pass_patch_products(const fac_graph *g, fac_price *price, void *self);

/* Gradients of slices that together are all of a tensor: their sum becomes one concat. */
fac_graph *fac_pass_slice_sums(const fac_graph *g);

/* The casts of parameters that a step of training reads in a narrower type: one `group`, where
 * accept says that a kernel takes it. */
fac_graph *fac_pass_weight_casts(const fac_graph *g, fac_accept *accept, void *self);

/* What parameters become: elementwise nodes that serve nothing but updates become few `fused` nodes
 * with several results, and independent ones of these one `group`, where accept(self, node) says
 * that a kernel takes it. */
fac_graph *fac_pass_updates(const fac_graph *g, fac_accept *accept, void *self);

/* Masks of relu after gradients of max pools become part of these, where accept(self, node) says
 * that a kernel takes it. */
fac_graph *fac_pass_relu_pools(const fac_graph *g, fac_accept *accept, void *self);

/* The same after a batch norm of training: a residual add, relu or clip. */
fac_graph *fac_pass_norm_epilogue(const fac_graph *g, fac_accept *accept, void *self);

/* Casts around norms become part of these, where accept(self, node) says that a kernel takes it. */
fac_graph *fac_pass_norm_casts(const fac_graph *g, fac_accept *accept, void *self);

/* Convolutions in front of batch norms of training give the statistics of what they make, where
 * price(self, node) says that they take about as long, and the norms take these.  Changes rounding.
 */
fac_graph *fac_pass_norm_moments(const fac_graph *g, fac_price *price, void *self);

/* Gradients by x of convolutions whose x a norm of training made give the sums that the norm's
 * gradient begins with; where norm_moments.c gave its statistics and price(self, node) says that
 * they take about as long. */
fac_graph *fac_pass_norm_sums(const fac_graph *g, fac_price *price, void *self);

/* What relu lets pass after a residual add is kept as bits, which such gradients by x read instead
 * of its result; where price(self, node) says that kernels take both. */
fac_graph *fac_pass_norm_masks(const fac_graph *g, fac_price *price, void *self);

/* Two batch norms of training that are added become one node, and so do their gradients; where
 * norm_moments.c gave their statistics and price(self, node) says that it takes less time.  Changes
 * rounding. */
fac_graph *fac_pass_norm_pairs(const fac_graph *g, fac_price *price, void *self);

/* A sum of bytes and the convolution that alone makes one of them for it become one
 * `qlinear_conv_add`, where accept(self, node).  The same bits. */
fac_graph *fac_pass_quantized_sums(const fac_graph *g, fac_accept *accept, void *self);

/* A convolution and the max pool that alone reads it become one `conv2d_max_pool`, where
 * price(self, node) is less than that of both. */
fac_graph *fac_pass_conv_pools(const fac_graph *g, fac_price *price, void *self);

/* Chains of elementwise ops become one `fused` node each. */
fac_graph *fac_pass_chains(const fac_graph *g);
#endif
