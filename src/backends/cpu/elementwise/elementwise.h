/* The plan of the elementwise solver: made by elementwise_plan.c, run by elementwise.c.
 *
 * All operands are walked in the order of the output's elements.  The innermost dims whose product
 * is worth it are the span, cut into blocks of some thousand elements that stay in L1; an operand
 * that is contiguous along the span is used where it lies, any other is gathered block by block.
 * What repeats along the outer dims, a scalar or a row, is gathered once for as long as it is the
 * same. */
#ifndef FACULA_CPU_ELEMENTWISE_H
#define FACULA_CPU_ELEMENTWISE_H
#include "backends/cpu/elementwise/chain.h"
#include "backends/cpu/move/copy.h"
#include "backends/cpu/device/streams.h"

enum { FAC_WALK_DIMS = FAC_DIMS + 1 };

/* How the elements of one source or output are reached from the common dims. */
typedef struct fac_walk {
    int64_t stride[FAC_WALK_DIMS], offset; /* elements */
    int64_t run, step; /* elements of the innermost dims of the span that are one row, and how far
                          they are apart */
    int dims;          /* those before the row */
    size_t size;       /* bytes of an element */
    bool direct;       /* contiguous along the span, and of the type that is wanted */
    bool contiguous;
    bool past; /* of an output: a block goes past the caches, unless it lies where an input does */
    bool held; /* repeats along the span: gathered again only when its place changes */
    size_t work; /* from here in the scratch lies a blocked copy instead of the operand */
    int copy;    /* which of the plan's copies makes it; -1: none */
} fac_walk;

typedef struct fac_elementwise {
    fac_chain chain;
    int n, outer; /* dims; those before the span */
    int64_t d[FAC_WALK_DIMS], span, block, units;
    bool adam; /* the chain's own kernel takes its operands where they lie */
    fac_walk source[FAC_CHAIN_SOURCES], out[FAC_CHAIN_OUTS];
    int copies;
    struct {
        int input;
        size_t at;
        fac_copy copy;
    } * copy;
    size_t copied, share; /* bytes of scratch: of the copies, of one thread */
    const fac_streams *streams;
} fac_elementwise;

/* Chooses how all operands shall lie and writes it into the problem: the axis of the output that is
 * blocked, and by how much (0: plain).  false when that cannot be.  lanes: of a block that is
 * chosen where operands have their channels last, as a walk by blocks reads whole vectors of them;
 * 0: none is. */
typedef struct fac_frame {
    int axis, block;
} fac_frame;
bool fac_elementwise_settle(fac_problem *p, int lanes, fac_frame *f);

/* The plan of a settled problem, but for what fac_elementwise_copies adds.  false when it is no
 * chain. */
bool fac_elementwise_build(const fac_problem *p, fac_frame f, const fac_simd *simd,
                           fac_elementwise *e);
/* Plans the copies of a built plan into e->copy, which has room for them. */
void fac_elementwise_copies(const fac_problem *p, fac_frame f, fac_elementwise *e);

/* Units [first, last) of the plan, which has its streams.  copied: where copies lie; scratch:
 * e->share bytes of a thread. */
void fac_elementwise_run(const fac_elementwise *e, const fac_span *in, const fac_span *out,
                         char *copied, char *scratch, int64_t first, int64_t last);

/* Bytes of one slot of a chain. */
static inline size_t fac_elementwise_slot(const fac_elementwise *e) {
    return ((size_t)e->block * e->chain.width + 63) / 64 * 64;
}
/* Bytes of a buffer for a block of any type. */
static inline size_t fac_elementwise_raw(const fac_elementwise *e) {
    return ((size_t)e->block * 8 + 63) / 64 * 64;
}
#endif
