/* Convolutions of bits by tables: what simd/bits/bits_tables.c computes in registers.
 *
 * Of some channels of a pixel, 4 or 6, a table has the sum of each subset, in bytes; the bits of
 * a weight of these channels say which entry it needs.  So one look-up takes the place of as many
 * products, for 64 output channels at a time, and planes of pixels whose levels are whole multiples
 * of one number share a table: their sums are those of its entries.
 *
 * Sums of one plane of 4 channels, 0 to 4, take half of a byte.  So a table can be of two pixels of
 * a row, a lower and an upper half, and one look-up takes the place of eight products. */
#ifndef FACULA_CPU_BITS_TABLES_H
#define FACULA_CPU_BITS_TABLES_H
#include "backends/cpu/bits/bits.h"

enum { FAC_TABLE_OUTPUTS = 64, FAC_TABLE_PLANES = 4 };

/* Of a pixel, in 16 bits: 64 sums, in a form that put and compare know. */
typedef uint16_t fac_bit_table_sums[FAC_BIT_RUN][FAC_TABLE_OUTPUTS];

/* sums[y][pixel][output] = the sum over r, group, s of
 *     x[y y_row + r x_row][from + pixel, s][group][w[r][group][s][output]],
 * of one or two times 64 outputs.  halves: pixels 0 .. n - 1 have the lower halves of bytes, pixels
 * n .. 2 n - 1 the upper ones; of 64 outputs. */
typedef struct fac_bit_lookup {
    const uint8_t *const *x; /* rows of tables */
    int64_t from, x_pixel, x_column;
    int y_row, x_row;
    int n, rows, R, S, groups;
    bool halves;
    int flush;              /* so many entries add up to less than 256; of halves three each */
    const uint8_t *w0, *w1; /* w1 NULL: 64 outputs */
    fac_bit_table_sums *sums0, *sums1;
} fac_bit_lookup;
typedef void fac_bit_lookup_kernel(const fac_bit_lookup *t);

/* acc[pixel][output] = the sums of n pixels. */
typedef void fac_bit_put_kernel(const uint16_t *sums, int n, int32_t *acc);

/* Codes of rows of n pixels of up to 64 outputs, by whole numbers: where (d ^ limits[0]) >=
 * limits[1 + k] threshold k is exceeded, d = 2 sums - windows.  Without limits by numbers, y = b +
 * sum over planes m of weights of f[m] u d[m], + z, and of relu what is above 0; q_relu: of what
 * becomes codes.  Numbers are in blocks of a vector of channels. */
typedef struct fac_bit_compare {
    const uint16_t *sums; /* planes are `plane` apart, rows of f f_row */
    int of_weights;
    int64_t sums_row, plane, f_row;
    const float *f, *b;
    float u;
    bool relu, q_relu;
    const float *z; /* NULL: none */
    int64_t z_row, z_pixel, z_block;
    float *y; /* NULL: only codes */
    int64_t y_row, y_pixel, y_block;
    int rows, n, words; /* of 32 outputs */
    const int32_t *windows;
    int64_t windows_row;
    const int16_t *limits;
    int64_t limits_row;
    const fac_bit_levels *codes; /* NULL: only y */
    uint32_t *q, valid[2];
    int64_t q_row, q_pixel, q_plane;
} fac_bit_compare;
typedef void fac_bit_compare_kernel(const fac_bit_compare *t);

/* The tables of a row of pixels, of all of their groups: sums of what the planes have. */
typedef struct fac_bit_build {
    const uint32_t *bits[FAC_TABLE_PLANES]; /* followed by 8 bytes that may be read */
    const uint8_t *parts[FAC_TABLE_PLANES]; /* by the bits of a plane: its part of a table */
    const uint32_t *second; /* NULL: bytes are of one pixel; else of one plane, the upper halves */
    int times[FAC_TABLE_PLANES]; /* what a bit of a plane counts */
    int planes, groups;
    int64_t pixels, bits_pixel; /* words from a pixel to the next */
    uint8_t *to, *room;
    int64_t to_pixel; /* bytes */
} fac_bit_build;
typedef void fac_bit_build_kernel(const fac_bit_build *t);

typedef struct fac_bit_table_kernels {
    int group, table;            /* channels of a table, its bytes                              */
    int even;                    /* a pixel has a multiple of so many tables                     */
    int codes, part;             /* `parts` has so many rows, each of so many bytes              */
    int block;                   /* `room` has a byte for each channel, in blocks; 0: none       */
    int row;                     /* of 64 indices: byte 2k of a part of `row` bytes is output k  */
    int rows;                    /* of results at once, at most FAC_BIT_BESIDE */
    int run, run_halves;         /* pixels at once; of each half, 0: no halves */
    bool pairs;                  /* 2 times 64 outputs at once */
    double share, share_halves;  /* of the float peak, as fac_bit_kernels has it, but for flushes */
    double cycles, plane_cycles; /* to build a table; for each plane */
    fac_bit_lookup_kernel *lookup;
    fac_bit_put_kernel *put;
    fac_bit_compare_kernel *compare;
    fac_bit_build_kernel *build;
} fac_bit_table_kernels;
#endif
