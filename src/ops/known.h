/* Shape arithmetic while the graph is built: what integer ops know of their results, and sizes that
 * are still symbols.
 *
 * An item is a number or a symbol.  A symbol is a size, so it is known to be >= 0.  Arithmetic on
 * symbols gives symbols that are named by their formula, "(N*12)": the same formula is the same
 * size, however often a node is inferred. */
#ifndef FACULA_OPS_KNOWN_H
#define FACULA_OPS_KNOWN_H
#include "facula/op.h"

typedef struct fac_item {
    int64_t v;
    bool symbolic;
} fac_item;

/* The result for one element, asked only when one of x[] is a symbol; false: not known. */
typedef bool fac_knows_rule(fac_graph *g, const fac_item *x, fac_item *y);

/* For the end of infer of an elementwise op flagged FAC_OP_KNOWS: runs the op's own integer loop on
 * known contents.  Always true.  rule NULL: nothing is known once a symbol is involved. */
bool fac_knows_map(fac_node *n, fac_knows_rule *rule);

/* Item k of known contents, and back. */
fac_item fac_contents_get(const fac_contents *c, int k);
void fac_contents_put(fac_contents *c, int k, fac_item x);

/* out[output] knows these contents if it is an integer or bool of rank <= 1 with that many
 * elements.  Always true. */
bool fac_knows_items(fac_node *n, const fac_contents *c);

/* Sizes: dims of which some may be symbols.  Numbers saturate instead of overflowing. */
int64_t fac_size_sum(fac_graph *g, int64_t a, int64_t b);
int64_t fac_size_difference(fac_graph *g, int64_t a,
                            int64_t b); /* of sizes that are known to be a >= b */
int64_t fac_size_product(fac_graph *g, int64_t a, int64_t b);
int64_t fac_size_quotient(fac_graph *g, int64_t a, int64_t b); /* rounded down; b > 0 */
/* b > 0 divides a whatever the symbols are. */
bool fac_size_divides(fac_graph *g, int64_t a, int64_t b);

/* Contents of a FAC_HOST input as numbers: false when it is absent or not known, or some item is a
 * symbol. */
bool fac_host_numbers(const fac_node *n, int input, fac_contents *c);
/* How many elements a rank-1 (or 0-d: 1) input has; -1 when that is a symbol or the rank is higher.
 */
int fac_host_length(const fac_value *v);
#endif
