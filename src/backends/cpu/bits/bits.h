/* Convolutions of few bits: what simd/bits/bits.c computes in registers, and what the solvers of
 * conv2d_basis and conv2d_codes give it.
 *
 * Numbers are planes of bits, pixel after pixel, 32 channels to a word, with zeros around the
 * image. A lane is an output channel.  A plane of weights w of +-1 is kept as bits (w + 1) / 2, one
 * of pixels c is 0 or 1, and their product is 2 popcount(w & c) - popcount(c); padding is c = 0.
 * Pixels of +-1, p, are bits c = (p + 1) / 2 with the product 2 (2 popcount(w & c) - popcount(c)) -
 * the sum of the weights that lie inside of the image. */
#ifndef FACULA_CPU_BITS_H
#define FACULA_CPU_BITS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAC_BIT_PLANES = 4, FAC_BIT_THRESHOLDS = 15, FAC_BIT_RUN = 7 };

/* acc[pixel][vector][lane] = popcount over r, s, words of x[pixel, r,
                                                             s] & w[r][s][word][vector][lane],
 * of two runs of n pixels, or one. */
typedef struct fac_bit_tile {
    const uint32_t *x0, *x1; /* x1 NULL: one run */
    int64_t x_pixel, x_row, x_column;
    int n, R, S, words;
    const uint32_t *w;
    int32_t *acc0, *acc1;
} fac_bit_tile;
typedef void fac_bit_tile_kernel(const fac_bit_tile *t);

/* How numbers become codes: bit j is set as bit j of `start` is, inverted once for each
 * threshold k below x that flips[j] has.  relu: of x.  sign: one bit, set unless x < 0, no
 * thresholds. */
typedef struct fac_bit_levels {
    bool relu, sign;
    int planes, thresholds;
    float threshold[FAC_BIT_THRESHOLDS];
    unsigned start, flips[FAC_BIT_PLANES];
} fac_bit_levels;

/* A vector of output channels of n pixels:
 *   y = b + sum over m of f[m] sum over j of u[j] d,   d = 2 acc[m][j] - sums[j]
 * or with inside[pixel], for pixels of +-1, d = 2 (2 acc - sums) - inside[pixel][m]; then + z,
 * relu. codes: q gets a bit for each lane in every plane.  limits, of one base, without z and y:
 * threshold k is exceeded, or the sign is +, where (d ^ limits[0]) >= limits[1 + k]. */
typedef struct fac_bit_finish {
    int n, planes, of_weights;
    const int32_t *acc[FAC_BIT_PLANES]; /* by m; pixels are `pixel` apart, planes of x `plane` */
    int64_t pixel, plane;
    const float *f[FAC_BIT_PLANES], *b;
    float u[FAC_BIT_PLANES];
    const int32_t *sums;                        /* [plane of x][FAC_BIT_RUN] */
    float halves[FAC_BIT_PLANES * FAC_BIT_RUN]; /* of sums */
    const int32_t *inside[FAC_BIT_RUN];         /* NULL: pixels of 0 and 1 */
    int64_t inside_plane;
    const float *z; /* NULL: none */
    int64_t z_pixel;
    bool relu;
    float *y; /* NULL: only codes */
    int64_t y_pixel;
    const fac_bit_levels *codes; /* NULL: only y */
    const int32_t *limits;       /* NULL: by numbers; rows are limits_row apart */
    int times[FAC_BIT_PLANES];   /* with limits d is the sum over j of times[j] d of plane j */
    int64_t limits_row;
    uint8_t *q;
    int64_t q_pixel, q_plane; /* bytes */
    int q_shift, channels;    /* its first bit of that byte; lanes that are there */
} fac_bit_finish;
typedef void fac_bit_finish_kernel(const fac_bit_finish *t);

/* Codes of 32 output channels of n pixels of 0 and 1, of one base of weights, by limits: as above,
 * with d the sum over j of times[j] (2 acc[j] - sums[j]).  acc: pixels are `pixel` apart, planes of
 * x `plane`. */
typedef struct fac_bit_word {
    int n, planes;
    const int32_t *acc;
    int64_t pixel, plane;
    const int *times;
    const int32_t *sums, *limits;
    int64_t limits_row;
    const fac_bit_levels *codes;
    uint32_t *q, valid;
    int64_t q_pixel, q_plane; /* words */
} fac_bit_word;
typedef void fac_bit_word_kernel(const fac_bit_word *t);

/* One word of each of some pixels, of every plane: bit c is of channel c. */
typedef struct fac_bit_pack {
    const float *x;
    int64_t x_pixel, x_block, pixels;
    int channels; /* of this word, at most 32 */
    const fac_bit_levels *levels;
    uint32_t *to;
    int64_t to_pixel, to_plane;
} fac_bit_pack;
typedef void fac_bit_pack_kernel(const fac_bit_pack *t);

/* to[pixel] = the bits that are set in `words` words of it. */
typedef void fac_bit_count_kernel(const uint32_t *x, int64_t x_pixel, int words, int64_t pixels,
                                  int32_t *to);

typedef struct fac_bit_kernels {
    const char *name; /* "popcount", "tables", "portable" */
    int lanes, run;   /* of a vector; the most pixels of a run */
    double share;     /* of the float peak, in operations of one bit by one bit */
    double end;       /* cycles that each call of `finish` takes, beside what it moves */
    fac_bit_tile_kernel *tile;
    fac_bit_finish_kernel *finish;
    fac_bit_word_kernel *words; /* NULL: none */
    fac_bit_pack_kernel *pack;
    fac_bit_count_kernel *count;
} fac_bit_kernels;

/* ---- bits.c: a whole convolution ---- */

struct fac_cpu;

/* Strides are in elements; blocks of `lanes` channels. */
typedef struct fac_bit_conv {
    int64_t images, groups, C, K; /* channels of a group */
    int64_t H, W, P, Q, R, S, stride[2], dilation[2], pad[2];
    int planes, of_weights; /* of x, of w */
    bool sign, relu;
    bool coded;                 /* x is codes, plain */
    bool codes, y_relu, q_relu; /* the result is codes; of y; of what becomes codes */
    int y_planes;               /* of the codes, 1 where they are signs */
    /* sets 1: plane j has times[j] times the number of plane `unit`.  By tables (bits_tables.h),
     * not by counts: else each plane has a set of tables, and times are 1. */
    bool tables;
    int sets, unit, times[FAC_BIT_PLANES];
    struct {
        int64_t image, block, row, column;
    } x, y, z;

    /* Set by fac_bit_settle. */
    const struct fac_cpu *cpu;
    const fac_bit_kernels *kernels;
    int64_t words, height, width;   /* of a group; of a padded image */
    int64_t vectors, chunks, parts; /* vectors that a part has, its chunks of channels; parts */
    int64_t run, strips;            /* pixels of a strip; strips of an image */
    bool by_part;                   /* threads share out parts, not pixels */
    int kernel_S, kernel_words;
    bool direct;                    /* codes are read where they lie */
    int64_t bits_image, bits_plane; /* words from an image, from a plane to the next */
    int64_t rows, columns;          /* sizes of `inside`: kinds of rows and columns of y */
    size_t numbers, counts, bits;   /* bytes of scratch */
    const struct fac_bit_table_kernels *table; /* where `tables` */
    int64_t lookups, at_once;                  /* tables of a pixel's group; images with tables */
    int64_t band, beside, ring; /* rows of results of a task, at once; rows of tables */
    int64_t part_step;          /* parts that a thread takes */
    /* Columns of results that look-ups have; halves: results of column k and k + apart are in one
     * byte, else apart is 0.  Columns of tables. */
    int64_t across, apart, table_width;
    int table_flush;                 /* look-ups that fit into a byte, of halves three each */
    bool halves, short_sums;         /* twice a sum fits into 16 bits with a sign */
    size_t limits_bytes, room_bytes; /* scratch, too; of each thread */
    size_t ring_bytes, tables_bytes; /* of each thread; of all that is for tables */
} fac_bit_conv;

typedef struct fac_bit_data {
    const float *x, *x_basis, *w_basis, *b, *scale, *z, *y_basis;
    const uint32_t *x_codes;
    const int32_t *limits; /* or NULL */
    const void *packed;
    float *y; /* NULL: only codes */
    uint32_t *q;
    void *work;
} fac_bit_data;

/* false: sizes that do not fit, or no kernel for tables. */
bool fac_bit_settle(const struct fac_cpu *c, fac_bit_conv *p);
/* With floats as its result, or as one of them, where `floats`. */
double fac_bit_seconds(const fac_bit_conv *p, bool floats);
size_t fac_bit_packed(const fac_bit_conv *p);
size_t fac_bit_work(const fac_bit_conv *p);
/* Of planes as pack_basis makes them, `bytes` for each output channel. */
void fac_bit_pack_weights(const fac_bit_conv *p, const uint8_t *bits, int64_t bytes, void *to);
/* A number that is another one where the packed form would be. */
uint64_t fac_bit_kind(const fac_bit_conv *p);
void fac_bit_run(const fac_bit_conv *p, const fac_bit_data *d);
#endif
