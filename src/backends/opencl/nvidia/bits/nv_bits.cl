/* Convolution of planes of bits as a product: rows of tiles are pixels of y, columns its channels,
 * and the sum runs over all words of all taps, one after the other.  What kernels of it share:
 *
 * Both operands come into local memory by asynchronous copies, AHEAD k-tiles ahead: pixels by G
 * words each, what lies outside as zeros; weights as ready images (nv_bits_pack.cl).  A row of a
 * tile has ROW bytes, and its 16-byte chunk c lies at c ^ TURN(row).  Planes of pixels are blocks
 * of ROWS_M rows side by side, planes of weights blocks of 8 columns, so that a lane has the sums
 * of all planes of what it finishes (nv_bits_end.cl).
 *
 * What the units count are bits that are set in both.  A weight of +-1 is the bit (w + 1) / 2, so
 * results also need how many bits of a row are set: items count them in local memory.
 *
 *   MS, NS, WARPS_M, WARPS_N    blocks of a warp, or of a team; these along rows and columns
 *   STAGES, G                   k-tiles in local memory; words that are copied at once: 1, 2, 4
 *   PLANES, OF_WEIGHTS          of pixels, of weights;  SIGNS: pixels are +-1, of one plane
 *   X_FLOATS                    words are in scratch memory, where `pixels` left them
 *   CODES, Y_PLANES, Y_SIGNS    results are codes;  Y: and numbers;  Z, Y_RELU, Q_RELU
 *   LIMITS                      codes by whole numbers;  TIMES: how often each plane counts then
 *   HAS_B, HAS_SCALE;  PAIRS: groups have even numbers of channels of y
 *   ROWS_M, TEAM                rows of a block; items that share blocks */
#define ROW 64
#define TURN(row) ((row) >> 1 & 3)
#define BM (MS * ROWS_M * WARPS_M)
#define BN (NS * 8 * WARPS_N)
#define ITEMS (TEAM * WARPS_M * WARPS_N)
#define PARTS (ITEMS / BM > 1 ? ITEMS / BM : 1) /* of a row, whose bits are counted apart */
#define PIXELS (BM / PLANES)       /* of a tile */
#define CHANNELS (BN / OF_WEIGHTS) /* of y, of a tile */

typedef struct {
    long x, w, b, x_basis, w_basis, scale;
#ifdef CODES
    long z, y_basis, limits;
#endif
    long x_words;
#ifdef CODES
    long q;
#endif
    long y;
    long pixels, images, K, groups, H, W, P, Q, S, taps, stride_h, stride_w, dilation_h, dilation_w,
        pad_h, pad_w, words, k_tiles, group_tiles, R, inside;
} numbers;
#ifdef CODES
#define ENDS_MORE , global const float *z, global const float *y_basis, global const int *limits
#define GIVEN_MORE , z, y_basis, limits
#define RESULTS global uint *q, global float *y
#define RESULTS_GIVEN q, y
#else
#define ENDS_MORE
#define GIVEN_MORE
#define RESULTS global float *y
#define RESULTS_GIVEN y
#endif
#define ENDS                                                                                       \
    global const float *b, global const float *x_basis, global const float *w_basis,               \
        global const float *scale ENDS_MORE
#define ENDS_GIVEN b, x_basis, w_basis, scale GIVEN_MORE
#define OPERANDS                                                                                   \
    const numbers s, global const uint *x, global const uchar *w, ENDS, global uint *x_words,      \
        RESULTS
#ifdef X_FLOATS
#define X_WORDS (x_words + s.x_words)
#else
#define X_WORDS (x + s.x)
#endif

/* Sums of a lane, of pairs of blocks: columns 2 t and 2 t + 1 of rows g and g + 8; g = lane / 4,
 * t = lane % 4.  A block of 64 rows has 16 for each warp. */
#define SUMS int sum[MS][NS][4]
/* Where its first row and its team's first column lie. */
#define ROW_OF(item)                                                                               \
    ((item) / TEAM % WARPS_M * (MS * ROWS_M) + (item) % TEAM / 32 * 16 + (item) % 32 / 4)
#define COLUMN_OF(item) ((item) / TEAM / WARPS_M * (NS * 8))
