/* Copies between any two layouts, planned once and run many times: the core of reorder, concat,
 * slice, pad and expand. */
#ifndef FACULA_CPU_COPY_H
#define FACULA_CPU_COPY_H
#include "backends/cpu/device/cpu.h"

/* A loop nest over byte strides.  The last two dims, p and q, are walked by one of three kernels,
 * tile by tile. */
enum { FAC_COPY_DIMS = FAC_DIMS + 4, FAC_COPY_PIECES = 9 };
typedef struct fac_copy_piece {
    enum { FAC_COPY_RUN, FAC_COPY_TRANSPOSE, FAC_COPY_STEP } kind;
    int n; /* dims, at least 2 */
    int64_t d[FAC_COPY_DIMS], from[FAC_COPY_DIMS], to[FAC_COPY_DIMS];
    int64_t from_at, to_at;        /* bytes            */
    int64_t tile_p, tile_q, units; /* units = (outer dims) x (tiles) */
} fac_copy_piece;
typedef struct fac_copy {
    size_t size; /* of an element: 1, 2, 4 or 8 bytes */
    int pieces;
    fac_copy_piece piece[FAC_COPY_PIECES];
} fac_copy;

/* Every element of a tensor of these dims from one layout to another.  A source stride of 0
 * repeats. */
void fac_copy_plan(fac_copy *c, const fac_dims *dims, const fac_layout *from, const fac_layout *to,
                   size_t size);
/* from and to: where the storages begin; they do not overlap. */
void fac_copy_run(const fac_copy *c, const fac_cpu *cpu, const void *from, void *to);

/* Whether it can: block sizes along one axis must divide each other. */
bool fac_copy_fits(const fac_layout *from, const fac_layout *to);

/* The layout of a part of a tensor that begins at `start`; false when start is inside a block of a
 * blocked axis. */
bool fac_copy_part(const fac_layout *whole, const fac_dims *dims, const int64_t *start,
                   fac_layout *part);

/* The zeros around every plane of the last two dims. */
void fac_halo_zero(const fac_layout *l, const fac_dims *dims, size_t size, const fac_pool *pool,
                   void *memory);

/* Where the storage of an operand begins. */
static inline char *fac_span_bytes(fac_span s) { return (char *)s.memory + s.at; }

/* Bytes of one element when it is a plain number of one byte or more; 0 for bits, text and nothing.
 */
size_t fac_copy_size(fac_dtype dtype);

/* N,C,H,W in channel blocks of one vector, pixels side by side. */
static inline bool fac_lies_blocked(const fac_operand *o, int lanes) {
    return o->layout.block == lanes && o->layout.axis == 1 && o->type.dims.n == 4 &&
           o->layout.stride[3] == lanes;
}
#endif
