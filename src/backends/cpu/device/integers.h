/* Kernels of whole numbers in their own type, and from one element type to another, of one
 * instruction set.  Part of fac_streams; compiled from simd/integers/. */
#ifndef FACULA_CPU_INTEGERS_H
#define FACULA_CPU_INTEGERS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "facula/op.h"

/* Results that do not fit wrap.  ABS: of signed types
 * only; DIV, MOD, REM: of less than 64 bits, of u32 neither.  LESS, LESS_EQUAL and EQUAL make
 * bools, the condition of WHERE is one; FLAG_... are of bools, any byte but 0 being true. */
typedef enum fac_integer_op {
    FAC_INTEGER_ADD,
    FAC_INTEGER_SUB,
    FAC_INTEGER_MUL,
    FAC_INTEGER_NEG,
    FAC_INTEGER_ABS,
    FAC_INTEGER_AND,
    FAC_INTEGER_OR,
    FAC_INTEGER_XOR,
    FAC_INTEGER_NOT,
    FAC_INTEGER_MAX,
    FAC_INTEGER_MIN,
    FAC_INTEGER_CLIP,
    FAC_INTEGER_DIV,
    FAC_INTEGER_MOD,
    FAC_INTEGER_REM,
    FAC_INTEGER_EQUAL,
    FAC_INTEGER_LESS,
    FAC_INTEGER_LESS_EQUAL,
    FAC_INTEGER_WHERE,
    FAC_INTEGER_OPS
} fac_integer_op;
enum { FAC_FLAG_AND, FAC_FLAG_OR, FAC_FLAG_XOR, FAC_FLAG_NOT, FAC_FLAG_EQUAL, FAC_FLAG_OPS };

/* I8, I16, I32, I64 and then the unsigned ones, as fac_dtype has them. */
enum { FAC_INTEGER_TYPES = 8 };
static inline bool fac_is_integer(fac_dtype t) { return t >= FAC_I8 && t <= FAC_U64; }

/* n elements, as fac_convert makes them; nothing of x and y may overlap. */
typedef void fac_convert_kernel(void *y, const void *x, int64_t n);
/* The types that have such loops: from F32 to BOOL but halves. */
enum { FAC_CONVERT_TYPES = FAC_BOOL + 1 };
static inline bool fac_has_kernels(fac_dtype t) { return (int)t < FAC_CONVERT_TYPES; }

/* n times the same element of 1, 2, 4 or 8 bytes. */
typedef void fac_fill_kernel(size_t size, void *y, const void *x, int64_t n);

/* Running sums along `size` slices of n elements of one type, `slice` elements apart.  exclusive:
 * without the element itself; reverse: from the last slice on.  Floats are added up in f64. */
typedef struct fac_running {
    const void *x;
    void *y;
    int64_t size, n, slice;
    bool exclusive, reverse;
} fac_running;
typedef void fac_running_kernel(const fac_running *t);

typedef struct fac_integer_kernels {
    fac_loop *loop[FAC_INTEGER_TYPES][FAC_INTEGER_OPS], *flag[FAC_FLAG_OPS];
    fac_loop *f32[FAC_INTEGER_OPS]; /* EQUAL, LESS, LESS_EQUAL of f32, which make bools */
    fac_convert_kernel *const (*convert)[FAC_CONVERT_TYPES]; /* [to][from]; NULL: none */
    fac_fill_kernel *fill;
    fac_running_kernel *const *running; /* [dtype]; NULL: none    */
} fac_integer_kernels;
#endif
