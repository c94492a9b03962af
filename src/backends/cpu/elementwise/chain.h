/* A chain: one elementwise node, or the body of a `fused` node, as a straight program over short
 * blocks.
 *
 * Slots hold one block of one value.  Slots below `sources` are operands and constants; the others
 * are registers, shared by values that do not live at the same time.  The step's loop decides what
 * its values are computed in:
 *   f32 of f32, f16, bf16    f64 of f64    whole numbers and bools: chain_integers.c, else 64 bits
 * and bool may also lie as 0 and 1 in any of them.  Every result is narrowed to its own element
 * type at once (f16 rounds, integers wrap), so a chain gives the bits that its nodes give one by
 * one. */
#ifndef FACULA_CPU_CHAIN_H
#define FACULA_CPU_CHAIN_H
#include "backends/cpu/device/integers.h"
#include "facula/backend.h"

enum { FAC_CHAIN_STEPS = 96, FAC_CHAIN_SOURCES = 40, FAC_CHAIN_OUTS = 16, FAC_CHAIN_ARGS = 4 };

typedef struct fac_chain_source {
    int input;           /* which input of the node; -1: the constant                           */
    uint64_t constant;   /* its first bytes are the element                                     */
    fac_dtype dtype, as; /* the operand's, and the type that the steps want                     */
    bool copy;           /* is an output as it stands: read it before anything is written       */
} fac_chain_source;

typedef struct fac_chain_step { /* loop NULL: in[0] of type `from` is converted to `via`, then to
                                   `as` */
    fac_loop *loop;
    const double *params;
    fac_dtype from, via, as;
    int nin, in[FAC_CHAIN_ARGS], out;
    bool apart; /* what it reads is not as wide as what it writes, so it must lie elsewhere */
} fac_chain_step;

/* The step of Adam (chain_adam.c): which source each operand is, and which output p, m, v are; go:
 * -1, or a source that says whether the old ones stay. */
typedef struct fac_chain_adam {
    int p, g, m, v, weight, keep, fresh, rate, inverse, epsilon, go, out[3];
} fac_chain_adam;

typedef struct fac_chain {
    int sources, steps, outs, slots;
    size_t width; /* bytes of the widest type of a slot  */
    fac_chain_source source[FAC_CHAIN_SOURCES];
    fac_chain_step step[FAC_CHAIN_STEPS];
    struct {
        int slot;
        fac_dtype as, dtype;
    } out[FAC_CHAIN_OUTS];
    bool is_adam; /* adam says the same in one step */
    fac_chain_adam adam;
} fac_chain;

bool fac_chain_is_adam(const fac_chain *c, int isa,
                       fac_chain_adam *a); /* before registers are given out */

/* A step of whole numbers or bools: the types of its first argument, of the others, of its result;
 * swapped: the loop takes the arguments the other way round. */
typedef struct fac_chain_typed {
    fac_loop *loop;
    fac_dtype first, as, result;
    bool swapped;
} fac_chain_typed;
/* false: there is no such loop. */
bool fac_chain_typed_of(const fac_integer_kernels *k, const fac_op *op, int nin,
                        const fac_dtype *types, fac_chain_typed *to);
/* The same of a comparison of f32: for one that is alone, in a chain others want 0 and 1 as f32. */
bool fac_chain_compares_f32(const fac_integer_kernels *k, const fac_op *op, const fac_dtype *types,
                            fac_chain_typed *to);

/* false when p is not a node of elementwise ops, or a larger one than fits. */
struct fac_simd;
bool fac_chain_build(const fac_problem *p, const struct fac_simd *simd, fac_chain *c);
#endif
