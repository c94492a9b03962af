/* Convolutions of bits by tables: what simd/bits_tables.c computes in registers.
 *
 * Of some channels of a pixel, 4 or 6, a table has the sum of each subset, in bytes; the bits of
 * a weight of these channels say which entry it needs.  So one look-up takes the place of as many
 * products, for 64 output channels at a time, and planes of pixels whose levels are whole multiples
 * of one number share a table: their sums are those of its entries. */
#ifndef FACULA_CPU_BITS_TABLES_H
#define FACULA_CPU_BITS_TABLES_H
#include <stdbool.h>
#include <stdint.h>

enum { FAC_TABLE_OUTPUTS = 64, FAC_TABLE_PLANES = 4 };

/* acc[pixel][output] = the sum over r, group, s of x[pixel, r, s][group][w[r][group][s][output]],
 * of one or two times 64 outputs. */
typedef struct fac_bit_lookup {
    const uint8_t *x;
    int64_t x_pixel, x_row, x_column; /* bytes */
    int n, R, S, groups;
    int flush;              /* so many entries add up to less than 256 */
    const uint8_t *w0, *w1; /* w1 NULL: 64 outputs */
    int32_t *acc0, *acc1;
} fac_bit_lookup;
typedef void fac_bit_lookup_kernel(const fac_bit_lookup *t);

/* The tables of a row of pixels, of all of their groups: sums of what the planes have. */
typedef struct fac_bit_build {
    const uint32_t *bits[FAC_TABLE_PLANES]; /* followed by 8 bytes that may be read */
    const uint8_t *parts[FAC_TABLE_PLANES]; /* by the bits of a plane: its part of a table */
    int planes, groups;
    int64_t pixels, bits_pixel; /* words from a pixel to the next */
    uint8_t *to;
    int64_t to_pixel; /* bytes */
} fac_bit_build;
typedef void fac_bit_build_kernel(const fac_bit_build *t);

typedef struct fac_bit_table_kernels {
    int group, table; /* channels of a table, its bytes                              */
    int even;         /* a pixel has a multiple of so many tables                     */
    int codes, part;  /* `parts` has so many rows, each of so many bytes              */
    int row;          /* of 64 indices: byte 2k of a part of `row` bytes is output k  */
    int run;
    bool pairs;   /* 2 times 64 outputs at once */
    double share; /* of the float peak, as fac_bit_kernels has it */
    fac_bit_lookup_kernel *lookup;
    fac_bit_build_kernel *build;
} fac_bit_table_kernels;
#endif
