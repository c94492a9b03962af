/* See residue.h. */
#include <math.h>
#include <stdlib.h>
#include "base/error.h"
#include "base/rng.h"
#include "report/verify/residue.h"
#include "tensor/tensor_internal.h"

enum { DIGITS = 53, PIECE = 1024 };

static int centred(int64_t x, int p) {
    int r = (int)(x % p);
    if (r < 0) r += p;
    return r > p / 2 ? r - p : r;
}

/* 2^e modulo p: powers of 2 repeat after p - 1. */
static int64_t power_of_2(int e, int p) {
    int64_t y = 1;
    int left = e % (p - 1);
    if (left < 0) left += p - 1;
    for (; left > 0; left--) y = y * 2 % p;
    return y;
}

/* Any three that differ, and are not 0. */
static int of_no_number(double x, int p) {
    if (isnan(x)) return 1;
    return x > 0 ? p / 3 : -(p / 3);
}

static int residue(double x, int p, const int64_t *powers) {
    int e;
    if (x == 0) return 0;
    if (!isfinite(x)) return of_no_number(x, p);
    const int64_t m = (int64_t)ldexp(frexp(x, &e), DIGITS);
    int at = (e - DIGITS) % (p - 1);
    if (at < 0) at += p - 1;
    return centred(m % p * powers[at], p);
}

static void all_powers(int p, int64_t powers[FAC_PRIME_MOST]) {
    for (int k = 0; k < p - 1; k++) powers[k] = power_of_2(k, p);
}

int fac_residue(double x, int p) {
    int64_t powers[FAC_PRIME_MOST];
    all_powers(p, powers);
    return residue(x, p, powers);
}

fac_status fac_residue_tensor(const fac_tensor *t, int p, fac_tensor **out, double *largest,
                              fac_error *err) {
    const fac_type type = fac_tensor_type(t);
    const int64_t n = fac_dims_count(&type.dims);
    const size_t bytes = fac_dtype_get(type.dtype)->block_bytes;
    const char *data = fac_tensor_data(t);
    int64_t powers[FAC_PRIME_MOST];
    double x[PIECE], most = 0;
    all_powers(p, powers);
    if (!data && n > 0) return fac_raise_memory(err, "weights");
    FAC_TRY(fac_tensor_new(NULL, FAC_F32, type.dims, out, err));
    float *to = fac_tensor_memory(*out);
    for (int64_t from = 0; from < n; from += PIECE) {
        const int64_t count = n - from < PIECE ? n - from : PIECE;
        fac_convert(FAC_F64, x, type.dtype, data + (size_t)from * bytes, (size_t)count);
        for (int64_t k = 0; k < count; k++) {
            const int r = residue(x[k], p, powers);
            to[from + k] = (float)r;
            most = fmax(most, abs(r));
        }
    }
    *largest = most;
    return FAC_OK;
}

void fac_residue_function(fac_hash key, int p, float to[FAC_PRIME_MOST]) {
    for (int x = 0; x < p; x++)
        to[x] = (float)((int)(fac_random_bits(key.a, key.b, (uint64_t)x) % (uint64_t)p) - p / 2);
}

/* x^(p - 2), for x^(p - 1) is 1 (Fermat). */
void fac_residue_inverses(int p, float to[FAC_PRIME_MOST]) {
    to[0] = 0;
    for (int x = 1; x < p; x++) {
        int64_t y = 1;
        for (int k = 0; k < p - 2; k++) y = y * x % p;
        to[x] = (float)centred(y, p);
    }
}
