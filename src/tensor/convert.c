/* From one element type to another.
 *
 * Each type has loops from and to f32, f64 and i64; between two others the values pass through f64
 * if one of them is a float, else through i64 (u64 as its bit pattern), a buffer at a time. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "base/error.h"
#include "tensor/blocks.h"
#include "tensor/convert_text.h"
#include "tensor/half.h"
#include "tensor/small.h"
#include "tensor/tensor_internal.h"

/* Towards zero, modulo 2^64; NaN and infinity give 0. */
static int64_t wrap(double x) {
    if (x > -0x1p63 && x < 0x1p63) return (int64_t)x;
    if (!isfinite(x)) return 0;
    double rest = fmod(x, 0x1p64); /* exact */
    return (int64_t)(rest < 0 ? -(uint64_t)-rest : (uint64_t)rest);
}

#define CAST_FLOAT(x) ((float)(x))
#define CAST_DOUBLE(x) ((double)(x))
#define CAST_INT(x) ((int64_t)(x))
#define CAST_T(x) ((T)(x))
#define WRAP_T(x) ((T)wrap(x))
#define NOT_ZERO(x) ((x) != 0)
#define HALF_INT(x) wrap((double)AS_FLOAT(x))

#define NAME f32
#define T float
#define AS_FLOAT(x) (x)
#define AS_DOUBLE CAST_DOUBLE
#define AS_INT wrap
#define OF_FLOAT(x) (x)
#define OF_DOUBLE CAST_T
#define OF_INT CAST_T
#include "tensor/convert_loops.h"

#define NAME f64
#define T double
#define AS_FLOAT CAST_FLOAT
#define AS_DOUBLE(x) (x)
#define AS_INT wrap
#define OF_FLOAT CAST_T
#define OF_DOUBLE(x) (x)
#define OF_INT CAST_T
#include "tensor/convert_loops.h"

#define NAME f16
#define T uint16_t
#define AS_FLOAT fac_f16_to_f32
#define AS_DOUBLE(x) ((double)AS_FLOAT(x))
#define AS_INT HALF_INT
#define OF_FLOAT fac_f32_to_f16
#define OF_DOUBLE fac_f64_to_f16
#define OF_INT(x) fac_f64_to_f16((double)(x))
#include "tensor/convert_loops.h"

#define NAME bf16
#define T uint16_t
#define AS_FLOAT fac_bf16_to_f32
#define AS_DOUBLE(x) ((double)AS_FLOAT(x))
#define AS_INT HALF_INT
#define OF_FLOAT fac_f32_to_bf16
#define OF_DOUBLE fac_f64_to_bf16
#define OF_INT(x) fac_f64_to_bf16((double)(x))
#include "tensor/convert_loops.h"

#define NAME flag
#define T uint8_t
#define AS_FLOAT(x) ((float)NOT_ZERO(x))
#define AS_DOUBLE NOT_ZERO
#define AS_INT NOT_ZERO
#define OF_FLOAT NOT_ZERO
#define OF_DOUBLE NOT_ZERO
#define OF_INT NOT_ZERO
#include "tensor/convert_loops.h"

#define NAME i8
#define T int8_t
#include "tensor/convert_integer.h"
#define NAME i16
#define T int16_t
#include "tensor/convert_integer.h"
#define NAME i32
#define T int32_t
#include "tensor/convert_integer.h"
#define NAME i64
#define T int64_t
#include "tensor/convert_integer.h"
#define NAME u8
#define T uint8_t
#include "tensor/convert_integer.h"
#define NAME u16
#define T uint16_t
#include "tensor/convert_integer.h"
#define NAME u32
#define T uint32_t
#include "tensor/convert_integer.h"
#define NAME u64
#define T uint64_t
#include "tensor/convert_integer.h"

#define SMALL_INT(x) wrap((double)AS_FLOAT(x))
#define NAME f8e4m3
#define FORMAT FAC_SMALL_E4M3
#include "tensor/convert_small.h"
#define NAME f8e4m3uz
#define FORMAT FAC_SMALL_E4M3UZ
#include "tensor/convert_small.h"
#define NAME f8e5m2
#define FORMAT FAC_SMALL_E5M2
#include "tensor/convert_small.h"
#define NAME f8e5m2uz
#define FORMAT FAC_SMALL_E5M2UZ
#include "tensor/convert_small.h"
#define NAME f8e8m0
#define FORMAT FAC_SMALL_E8M0
#include "tensor/convert_small.h"
#define NAME f4e2m1
#define FORMAT FAC_SMALL_E2M1
#include "tensor/convert_small.h"

/* The low bits, as a two's complement number or not. */
#define LOW(x, bits) ((uint64_t)(x) & ((1u << (bits)) - 1))
#define SIGNED(x, bits) ((int8_t)((int)(LOW(x, bits) ^ (1u << ((bits)-1))) - (1 << ((bits)-1))))
#define NAME i4
#define T int8_t
#define FEW(x) SIGNED(x, 4)
#include "tensor/convert_few.h"
#define NAME u4
#define T uint8_t
#define FEW(x) ((uint8_t)LOW(x, 4))
#include "tensor/convert_few.h"
#define NAME i2
#define T int8_t
#define FEW(x) SIGNED(x, 2)
#include "tensor/convert_few.h"
#define NAME u2
#define T uint8_t
#define FEW(x) ((uint8_t)LOW(x, 2))
#include "tensor/convert_few.h"

typedef void loop(void *to, const void *from, size_t n);
typedef struct loops {
    loop *to_f32, *to_f64, *to_i64, *from_f32, *from_f64, *from_i64;
} loops;
#define LOOPS(name)                                                                                \
    {                                                                                              \
        name##_to_f32, name##_to_f64, name##_to_i64, name##_from_f32, name##_from_f64,             \
            name##_from_i64                                                                        \
    }
static const loops table[FAC_DTYPES] = {
    [FAC_F32] = LOOPS(f32),
    [FAC_F64] = LOOPS(f64),
    [FAC_F16] = LOOPS(f16),
    [FAC_BF16] = LOOPS(bf16),
    [FAC_I8] = LOOPS(i8),
    [FAC_I16] = LOOPS(i16),
    [FAC_I32] = LOOPS(i32),
    [FAC_I64] = LOOPS(i64),
    [FAC_U8] = LOOPS(u8),
    [FAC_U16] = LOOPS(u16),
    [FAC_U32] = LOOPS(u32),
    [FAC_U64] = LOOPS(u64),
    [FAC_BOOL] = LOOPS(flag),
    [FAC_F8E4M3] = LOOPS(f8e4m3),
    [FAC_F8E4M3UZ] = LOOPS(f8e4m3uz),
    [FAC_F8E5M2] = LOOPS(f8e5m2),
    [FAC_F8E5M2UZ] = LOOPS(f8e5m2uz),
    [FAC_F8E8M0] = LOOPS(f8e8m0),
    [FAC_F4E2M1] = LOOPS(f4e2m1),
    [FAC_I4] = LOOPS(i4),
    [FAC_U4] = LOOPS(u4),
    [FAC_I2] = LOOPS(i2),
    [FAC_U2] = LOOPS(u2),
};

static loop *direct(fac_dtype to, fac_dtype from) {
    switch (to) {
    case FAC_F32:
        return table[from].to_f32;
    case FAC_F64:
        return table[from].to_f64;
    case FAC_I64:
        return table[from].to_i64;
    default:
        break;
    }
    switch (from) {
    case FAC_F32:
        return table[to].from_f32;
    case FAC_F64:
        return table[to].from_f64;
    case FAC_I64:
        return table[to].from_i64;
    default:
        return NULL;
    }
}

/* Element i of a row of bits is bit i % 64 of its word i / 64; what is left of the last word is 0.
 */
static void pack_bits(uint64_t *to, const uint8_t *from, size_t n) {
    for (size_t i = 0; i < n; i += 64, to++) {
        *to = 0;
        for (size_t k = 0; k < 64 && i + k < n; k++) *to |= (uint64_t)(from[i + k] != 0) << k;
    }
}
static void unpack_bits(uint8_t *to, const uint64_t *from, size_t n) {
    for (size_t i = 0; i < n; i++) to[i] = from[i / 64] >> i % 64 & 1;
}

/* By way of floats, a block at a time; n is whole blocks. */
static void convert_blocks(fac_dtype to, void *dst, fac_dtype from, const void *src, size_t n) {
    const fac_dtype_info *in = fac_dtype_get(from), *out = fac_dtype_get(to);
    const char *x = src;
    char *y = dst;
    float block[FAC_BLOCK_MOST];
    for (size_t at = 0; at < n; at += FAC_BLOCK_MOST) {
        const size_t m = n - at < FAC_BLOCK_MOST ? n - at : FAC_BLOCK_MOST;
        if (in->kind == 'q')
            fac_blocks_decode(from, x, block, m);
        else
            fac_convert(FAC_F32, block, from, x, m);
        if (out->kind == 'q')
            fac_blocks_encode(to, block, y, m);
        else
            fac_convert(to, y, FAC_F32, block, m);
        x += m / (size_t)in->block_elements * (size_t)in->block_bytes;
        y += m / (size_t)out->block_elements * (size_t)out->block_bytes;
    }
}

void fac_convert(fac_dtype to, void *dst, fac_dtype from, const void *src, size_t n) {
    enum { CHUNK = 512 };
    union {
        double f[CHUNK];
        int64_t i[CHUNK];
        uint8_t b[CHUNK];
    } between;
    if (to == from && to != FAC_BOOL) {
        const fac_dtype_info *info = fac_dtype_get(to);
        size_t block = (size_t)info->block_elements;
        if (n) memcpy(dst, src, (n + block - 1) / block * (size_t)info->block_bytes);
        return;
    }
    if (fac_dtype_get(to)->kind == 'q' || fac_dtype_get(from)->kind == 'q') {
        convert_blocks(to, dst, from, src, n);
        return;
    }
    loop *once = to == FAC_BIT || from == FAC_BIT ? NULL : direct(to, from);
    if (once) {
        once(dst, src, n);
        return;
    }
    const fac_dtype_info *in = fac_dtype_get(from), *out = fac_dtype_get(to);
    fac_dtype through = in->kind == 'f' || out->kind == 'f' ? FAC_F64 : FAC_I64;
    const char *x = src;
    char *y = dst;
    for (size_t at = 0; at < n; at += CHUNK) {
        size_t m = n - at < CHUNK ? n - at : CHUNK;
        if (from == FAC_BIT) {
            unpack_bits(between.b, (const void *)x, m);
            fac_convert(to, y, FAC_BOOL, between.b, m);
        } else if (to == FAC_BIT) {
            fac_convert(FAC_BOOL, between.b, from, x, m);
            pack_bits((void *)y, between.b, m);
        } else {
            direct(through, from)(&between, x, m);
            direct(to, through)(y, &between, m);
        }
        x += m / (size_t)in->block_elements * (size_t)in->block_bytes;
        y += m / (size_t)out->block_elements * (size_t)out->block_bytes;
    }
}

/* Row by row where a row is whole blocks on either side, else all at once. */
static void convert_rows(const fac_type *to, char *dst, const fac_type *from, const char *src) {
    int64_t count = fac_dims_count(&to->dims), length = count;
    if ((to->dtype == FAC_BIT || from->dtype == FAC_BIT) && to->dims.n)
        length = to->dims.d[to->dims.n - 1];
    if (!count) return;
    fac_dims row = { 1, { length } };
    size_t dst_row = fac_type_bytes(&(fac_type){ to->dtype, row }),
           src_row = fac_type_bytes(&(fac_type){ from->dtype, row });
    for (int64_t k = 0; k < count / length; k++, dst += dst_row, src += src_row)
        fac_convert(to->dtype, dst, from->dtype, src, (size_t)length);
}

/* Whole blocks on either side, of types that they can be made of. */
static fac_status check_blocks(const fac_type *from, fac_dtype to, fac_error *err) {
    const fac_dtype_info *in = fac_dtype_get(from->dtype), *out = fac_dtype_get(to);
    const char other = in->kind == 'q' ? out->kind : in->kind;
    const int64_t row = from->dims.n ? from->dims.d[from->dims.n - 1] : 1;
    if (in->kind != 'q' && out->kind != 'q') return FAC_OK;
    if (other == 't' || from->dtype == FAC_BIT || to == FAC_BIT)
        return fac_raise(err, FAC_E_UNSUPPORTED, "%s to %s: convert to f32 first", in->name,
                         out->name);
    if (out->kind == 'q' && !fac_blocks_encodes(to))
        return fac_raise(err, FAC_E_UNSUPPORTED, "nothing is rounded to blocks of %s", out->name);
    if (row % in->block_elements || row % out->block_elements)
        return fac_raise(err, FAC_E_SHAPE, "rows of %lld elements are not whole blocks of %s",
                         (long long)row, out->kind == 'q' ? out->name : in->name);
    return FAC_OK;
}

fac_status fac_tensor_convert(const fac_tensor *t, fac_dtype dtype, fac_tensor **out,
                              fac_error *err) {
    fac_type from = t->type, to = { dtype, from.dims };
    if (!fac_dtype_get(dtype)->block_bytes)
        return fac_raise(err, FAC_E_ARGUMENT, "there is no element type %d", (int)dtype);
    if (dtype == from.dtype) return fac_tensor_copy_contiguous(t, out, err);
    FAC_TRY(check_blocks(&from, dtype, err));
    fac_tensor *plain = NULL, *y = NULL;
    if (!t->contiguous || !fac_tensor_data(t)) {
        FAC_TRY(fac_tensor_copy_contiguous(t, &plain, err));
        t = plain;
    }
    fac_status status = fac_tensor_new_on(NULL, NULL, to, false, &y, err);
    if (!status) {
        size_t n = (size_t)fac_dims_count(&to.dims);
        if (from.dtype == FAC_TEXT)
            status = fac_texts_parse(dtype, y->storage->host, fac_tensor_data(t), n, err);
        else if (dtype == FAC_TEXT)
            status = fac_texts_print(y, from.dtype, fac_tensor_data(t), n, err);
        else
            convert_rows(&to, y->storage->host, &from, fac_tensor_data(t));
    }
    fac_tensor_free(plain);
    if (status)
        fac_tensor_free(y);
    else
        *out = y;
    return status;
}
