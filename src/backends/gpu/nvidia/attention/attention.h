/* Attention and its gradient on wgmma, without a matrix of scores: how problems are read and
 * cut.
 *
 * bf16 and f16 whose rows begin at multiples of 16 bytes are read where they lie, by tensor maps
 * (nvidia/unit/nv_maps.cl).  Other operands are first copied into images
 * (nv_attention_tiles.cl): tiles of rows as wgmma reads them from local memory, converted
 * to what the units multiply, with zeros where sizes do not fill them.  So the kernels take any
 * strides and types, and one item brings their data by copies of whole tiles. Heads are at most 128
 * wide. */
#ifndef FACULA_GPU_NVIDIA_ATTENTION_H
#define FACULA_GPU_NVIDIA_ATTENTION_H
#include "backends/gpu/nvidia/mma.h"

/* Where an operand of heads lies: elements from one sequence, head and row to the next; a row is
 * contiguous. */
typedef struct fac_nv_heads {
    int64_t batch, head, row;
    int64_t heads, rows, size; /* size: of a row */
    bool aligned, chunks,
        pairs; /* rows begin at multiples of 16 bytes; and end there; of two elements */
} fac_nv_heads;

typedef struct fac_nv_mask {
    fac_dtype type;
    int64_t batch, head, row, key;
    int64_t each, group; /* sequences of a group; elements from one group to the next */
} fac_nv_mask;           /* type FAC_NONE: none */

typedef struct fac_nv_attention {
    fac_nv_mode mode;
    fac_dtype dtype;
    int64_t B, H, G, Q, T, D,
        E;    /* sequences, heads of q, of k and v, queries, keys, sizes of a row of k and v */
    int d, e; /* D and E up to multiples of 16 */
    bool causal;
    bool chunks; /* 16 bytes of every result can be stored at once */
    int maps;    /* operands are read where they lie, by maps of nvidia/unit/nv_maps.cl's kind; 0:
                  * images
                  */
    double scale;
    fac_nv_heads q, k, v, y;
    fac_nv_mask mask;
} fac_nv_attention;

/* What the node says, and the layouts, asking for other ones where rows are not contiguous.  q, k,
 * v and mask are inputs 0, 1, 2 and `mask`, y is an output or, for the gradient, input 3.  maps:
 * the kind that the device has.  false: not for these kernels. */
bool fac_nv_attention_read(fac_problem *p, int mask, fac_operand *y, int maps, fac_nv_attention *a);
/* The same for attention itself: what its solvers here do not do is refused. */
bool fac_nv_attention_forward(fac_problem *p, int maps, fac_nv_attention *a);
fac_nv_heads fac_nv_heads_of(const fac_operand *o, int64_t heads);
void fac_nv_heads_want(fac_operand *o);

/* Images of an operand: `tiles` of `tile` rows for each head.  transposed: rows of the image run
 * along the rows of the operand. */
typedef struct fac_nv_images {
    fac_nv_heads from; /* by value: plans are copied */
    int tile, wide;    /* wide: a row of the operand, up to a multiple of 16 */
    int64_t tiles;
    bool transposed;
    size_t at, bytes; /* in the solver's scratch memory, which grows by them */
} fac_nv_images;
fac_nv_images fac_nv_images_of(const fac_nv_attention *a, const fac_nv_heads *from, int tile,
                               int64_t tiles, bool transposed, size_t *work);
/* 16-byte pieces of a tile. */
int64_t fac_nv_images_pieces(const fac_nv_attention *a, const fac_nv_images *m);
/* Whether an operand can have a map. */
bool fac_nv_heads_mapped(const fac_nv_heads *h);

/* Places of a problem of attention. */
enum {
    FAC_NV_Q,
    FAC_NV_K,
    FAC_NV_V,
    FAC_NV_MASK,
    FAC_NV_PAST_KEY,
    FAC_NV_LENGTHS = FAC_NV_PAST_KEY + 2,
    FAC_NV_LSE = 4
};

/* How a kernel is cut: `block` rows of the operand that streams by, groups of 64 rows each, stages
 * of the stream. */
typedef struct fac_nv_attention_cut {
    int block, groups, stages, transposed_stages;
} fac_nv_attention_cut;
typedef enum fac_nv_attention_kernel {
    FAC_NV_FORWARD,
    FAC_NV_DELTA,
    FAC_NV_KEYS,
    FAC_NV_QUERIES
} fac_nv_attention_kernel;

/* Of attention itself; work: bytes of images. */
double fac_nv_attention_seconds(const fac_gpu_limits *l, const fac_nv_attention *a,
                                const fac_nv_attention_cut *cut, size_t work);
fac_nv_attention_cut fac_nv_attention_cut_of(const fac_nv_attention *a,
                                             fac_nv_attention_kernel kernel);

/* ---- warps.c: on mma.sync ---- */

enum { FAC_NV_SLAB = 16, FAC_NV_ATTENTION_WARPS_VARIANTS = 8 }; /* queries of a warp */
/* How nv_attention_warps.cl is cut: `block` keys at a time, of which `ahead` are on their way in
 * `stages` places; `warps` of 16 queries; registers of an item, bytes of local memory. */
typedef struct fac_nv_attention_warps_cut {
    int block, warps, stages, ahead, registers;
    size_t local;
    bool keep_q;
} fac_nv_attention_warps_cut;
/* variant: 1 ..: other numbers of warps.  local: bytes that a group may have.  false: too little
 * memory, or no such variant. */
bool fac_nv_attention_warps_cut_of(const fac_nv_attention *a, int variant, size_t local, int units,
                                   fac_nv_attention_warps_cut *cut);
double fac_nv_attention_warps_seconds(const fac_mma_unit *u, const fac_nv_attention *a,
                                      const fac_nv_attention_warps_cut *cut);
/* Rows of the mask that a warp reads: one where all queries have the same. */
static inline int fac_nv_mask_rows(const fac_nv_attention *a) {
    return a->mask.row ? FAC_NV_SLAB : 1;
}

/* Bytes of a number that the units multiply; rows of a tile of images that gradients read. */
static inline bool fac_nv_tf32(const fac_nv_attention *a) {
    return a->mode == FAC_NV_TF32 || a->mode == FAC_NV_3XTF32;
}
static inline int fac_nv_number(const fac_nv_attention *a) { return fac_nv_tf32(a) ? 4 : 2; }
static inline int fac_nv_grad_tile(const fac_nv_attention *a) {
    return a->mode == FAC_NV_TF32 ? 32 : 64;
}
#endif
