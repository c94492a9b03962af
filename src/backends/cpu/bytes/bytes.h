/* Products and convolutions of bytes with sums in i32: what simd/bytes/bytes.c computes in
 * registers, and what the solvers of conv_integer, qlinear_conv, matmul_integer and qlinear_matmul
 * share.
 *
 * Pixels have their channels side by side, u8; weights are s8 in the order of the dot products,
 * four channels to a 32-bit lane.  What is stored otherwise is brought there: i8 pixels by 128 up,
 * u8 weights by 128 down, and their zero points with them. */
#ifndef FACULA_CPU_BYTES_H
#define FACULA_CPU_BYTES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a sum of bytes v, which a convolution makes, and z. */
typedef struct fac_byte_sum {
    float rv, rz, off, lo, hi; /* limits of y */
    bool sign, z_first;        /* bytes are i8; z is the first operand */
} fac_byte_sum;

/* One tile: two runs of `n` pixels (or one) times two vectors of output channels,
 *   acc[pixel][k] = bias[k] + sum over r, s, c of x[pixel, r, s][c] w[r][s][c][k] - sum[pixel]
 *       zero[k]
 * as i32, or where factor is there as bytes: sat(rne(f32(acc) factor[k]) + y_zero). */
typedef struct fac_byte_tile {
    const uint8_t *x0, *x1; /* x1 NULL: one run */
    int64_t x_pixel, x_row, x_column;
    int n, R, S, quads;                /* quads: groups of four channels */
    const int8_t *w;                   /* [R][S][quads as packed][2][lanes][4] */
    bool x_signed;                     /* x is i8: of kernels that say `signs` */
    const int32_t *bias;               /* two vectors */
    const int32_t *sum0, *sum1, *zero; /* zero NULL: none */
    const float *factor;               /* two vectors, or NULL */
    float lo, hi;                      /* limits of y - y_zero */
    int32_t y_zero;
    void *y0, *y1;
    int64_t y_pixel; /* bytes */
    int columns;     /* channels to write, at most two vectors */
    /* Bytes that are added to those of the sums: y = sat(rne(fma(v, rv, fma(z, rz, off)))), as
     * qlinear_add has it; z lies as y does. */
    const fac_byte_sum *sum; /* NULL: none */
    const uint8_t *z0, *z1;
    int64_t z_pixel;
} fac_byte_tile;
typedef void fac_byte_tile_kernel(const fac_byte_tile *t);

/* A row of pixels of a depthwise convolution, `channels` of them at a time:
 *   acc[c] = bias[c] + sum over r, s of x[pixel, r, s][c] w[r][s][c] */
typedef struct fac_byte_row {
    const uint8_t *x;
    int64_t x_pixel, x_row, x_column;
    int R, S, channels;
    const int32_t *w; /* [R S][w_tap] */
    int64_t w_tap;
    const int32_t *bias;
    const float *factor; /* NULL: y is i32 */
    float lo, hi;
    int32_t y_zero;
    void *y;
    int64_t y_pixel, pixels; /* bytes; pixels of the row */
} fac_byte_row;
typedef void fac_byte_row_kernel(const fac_byte_row *t);

/* The same where x lies: rows of the window that are NULL and columns that are not there are zero
 * points.  Weights as fac_byte_pack leaves them for it. */
enum { FAC_BYTE_ROWS = 8, FAC_BYTE_CHANNELS = 16 };
typedef struct fac_byte_depthwise {
    const uint8_t *row[FAC_BYTE_ROWS], *zero; /* zero: a pixel */
    int64_t x_pixel, columns;
    int R, S, channels, flip; /* flip: what makes x u8 by xor */
    int64_t stride, dilation, pad, pixels;
    const int8_t *w;     /* of kernels that are not `by_taps` */
    const int32_t *taps; /* [R S][tap] */
    int64_t tap;
    const int32_t *bias;
    const float *factor;
    float lo, hi;
    int32_t y_zero;
    void *y;
    int64_t y_pixel;
} fac_byte_depthwise;
typedef void fac_byte_depthwise_kernel(const fac_byte_depthwise *t);

/* Elements of two operands that lie alike, flat; see qlinear_add and qlinear_mul. */
typedef struct fac_byte_pair {
    float ra, rb, off;            /* add: fma(a, ra, fma(b, rb, off)) */
    float a_zero, b_zero, factor; /* mul: (a - a_zero)(b - b_zero) factor + y_zero */
    float y_zero;
    bool sign, mul; /* bytes are i8 */
    bool single;    /* b is one number */
} fac_byte_pair;
typedef void fac_byte_pair_kernel(const fac_byte_pair *p, size_t n, const void *a, const void *b,
                                  void *y);
/* y[k] = the larger of x[k] and y[k], k < n, of each of `pixels`, that many bytes apart. */
typedef struct fac_byte_most {
    size_t n, pixels;
    int64_t x_pixel, y_pixel;
    bool sign; /* bytes are i8 */
} fac_byte_most;
typedef void fac_byte_most_kernel(const fac_byte_most *m, const void *x, void *y);
/* sum[k] += x[k] */
typedef void fac_byte_sum_kernel(size_t n, const void *x, bool sign, int32_t *sum);

/* What bytes stand for: x = (y - zero) scale, y = sat(rne(x / scale) + zero). */
typedef struct fac_byte_scale {
    float scale;
    int zero;
    bool sign; /* bytes are i8 */
} fac_byte_scale;
typedef void fac_byte_quantize_kernel(const fac_byte_scale *s, size_t n, const float *x, void *y);
typedef void fac_byte_dequantize_kernel(const fac_byte_scale *s, size_t n, const void *x, float *y);
/* y[k] = table[x[k]], of 256. */
typedef void fac_byte_table_kernel(const uint8_t *table, size_t n, const uint8_t *x, uint8_t *y);

/* Between both, a thread calls `tile` for runs of `pixels` and so many quads. */
typedef void fac_byte_begin_kernel(int pixels, int quads);
typedef void fac_byte_end_kernel(void);

typedef struct fac_byte_kernels {
    const char *name; /* "vnni", "avx512", "avx2", ... */
    int lanes, run;   /* of a vector of i32; the most pixels of a run */
    double share;     /* of the float peak, in operations of this kind */
    fac_byte_tile_kernel *tile;
    /* Of kernels that read many quads at once, else 0.  More than that many are packed as whole
     * chunks, of which the last one repeats places of the one before it, with weights of 0. */
    int chunk;
    bool signs;                   /* x may be i8 */
    fac_byte_begin_kernel *begin; /* NULL: nothing is to be done */
    fac_byte_end_kernel *end;
    /* Takes products of less than `least` pixels times quads of a run, and depthwise ones; NULL:
     * there are none. */
    const struct fac_byte_kernels *few;
    int least;
    fac_byte_row_kernel *row;             /* depthwise */
    fac_byte_depthwise_kernel *depthwise; /* NULL: there is none */
    /* depthwise reads `taps`, of FAC_BYTE_CHANNELS or more, and FAC_BYTE_ROWS columns or fewer */
    bool by_taps;
    fac_byte_pair_kernel *pair;
    fac_byte_most_kernel *most;
    fac_byte_sum_kernel *sum;
    fac_byte_quantize_kernel *quantize;
    fac_byte_dequantize_kernel *dequantize;
    fac_byte_table_kernel *table;
} fac_byte_kernels;

/* ---- bytes.c: a whole product or convolution ---- */

struct fac_cpu;

/* y[group, image, p, q, k] over x[group, image, p stride + r dilation - pad, ..., c] and w[group,
 * k, r, s, c].  All strides are in elements. */
typedef struct fac_byte_product {
    int64_t groups, images, C, K; /* channels of a group */
    int64_t H, W, P, Q, R, S;
    int64_t stride[2], dilation[2], pad[2];
    bool x_signed, w_signed, bytes; /* x is i8, w is i8, y is bytes */
    bool y_signed, depthwise;
    bool sums_up, z_first; /* z is added, as the first operand */
    struct {
        int64_t group, image, channel, row, column;
    } x, y, z;
    struct {
        int64_t group, k, c, r, s;
    } w;

    /* Set by fac_byte_settle. */
    const struct fac_cpu *cpu;
    const fac_byte_kernels *kernels;
    bool staged;           /* x is copied: padded, whole groups of four channels, u8 */
    bool raised;           /* i8 of x is made u8 */
    bool by_rows;          /* depthwise, from where x lies, if weights have no zero point */
    int64_t channels;      /* of a group as the kernel reads them */
    int64_t height, width; /* of a staged image */
    int64_t panels, panel; /* of two vectors of output channels; bytes of one */
    int kernel_R, kernel_S, quads;
    int64_t run, strips;         /* pixels of a run, runs of an image */
    int64_t rows, columns;       /* of y as the strips see it */
    bool by_panel;               /* threads share out panels, not pixels */
    size_t stage, sums, numbers; /* bytes of scratch */
} fac_byte_product;

typedef struct fac_byte_data {
    const void *x, *w, *x_zero, *w_zero, *y_zero, *packed;
    const int32_t *bias;
    const float *x_scale, *w_scale, *y_scale;
    int64_t biases, w_zeros, w_scales; /* how many: each serves output n modulo that */
    const void *z, *z_zero, *sum_zero; /* where sums_up; sum_*: of y, whose other numbers are v's */
    const float *z_scale, *sum_scale;
    void *y, *work;
} fac_byte_data;

/* false: sizes that do not fit. */
bool fac_byte_settle(const struct fac_cpu *c, fac_byte_product *p);
double fac_byte_seconds(const fac_byte_product *p);
size_t fac_byte_packed(const fac_byte_product *p);
size_t fac_byte_work(const fac_byte_product *p);
/* Weights as the tiles read them, and after them the sum of each output channel's. */
void fac_byte_pack(const fac_byte_product *p, const void *w, void *to);
void fac_byte_run(const fac_byte_product *p, const fac_byte_data *d);
#endif
