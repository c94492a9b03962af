#include "backends/spectrum.h"
#include "base/memory.h"
#include "ops/spectrum.h"
#include "tensor/tensor_internal.h"

enum { LONGEST = 1 << 24 };

static int64_t known(const fac_operand *o) {
    return o->known && o->known->n == 1 ? o->known->v[0] : -1;
}

bool fac_stft_sizes_of(const fac_problem *p, fac_stft_sizes *to) {
    const fac_dims *x = &p->in[FAC_STFT_X].type.dims, *y = &p->out[0].type.dims;
    const fac_operand *window = &p->in[FAC_STFT_WINDOW], *length = &p->in[FAC_STFT_LENGTH];
    *to = (fac_stft_sizes){ .complex = x->n == 3,
                            .windowed = window->type.dtype != FAC_NONE,
                            .step = known(&p->in[FAC_STFT_STEP]),
                            .batch = x->d[0],
                            .samples = x->d[x->n - 1],
                            .bins = y->d[2],
                            .frames = y->d[3] };
    to->wide = to->windowed ? window->type.dims.d[0] : -1;
    to->length = length->type.dtype != FAC_NONE ? known(length) : to->wide;
    if (!to->windowed) to->wide = to->length;
    return to->length >= 1 && to->length <= LONGEST && to->step >= 1 && to->wide >= 1;
}

int fac_fft_radices(int64_t n, int largest, int prime, int radix[FAC_FFT_RADICES]) {
    const int eights = largest < 8 ? 4 : 8, tried[] = { 13, 11, 7, 5, 3, eights, 4, 2 };
    const int most[] = { prime, prime, prime, prime, prime, 8, 8, 8 };
    int stages = 0;
    for (int k = 0; k < 8; k++)
        while (tried[k] <= most[k] && n % tried[k] == 0 && stages < FAC_FFT_RADICES) {
            radix[stages++] = tried[k];
            n /= tried[k];
        }
    return n == 1 ? stages : -1;
}

int64_t fac_fft_turns(int64_t n, int stages, const int *radix) {
    int64_t all = 0;
    for (int k = 0; k < stages; k++) {
        n /= radix[k];
        all += 2 * n * (radix[k] - 1);
    }
    return all;
}

static double *turn(double *to, int64_t k, int64_t n) {
    *to++ = fac_turn_cos(k % n, n);
    *to++ = -fac_turn_sin(k % n, n);
    return to;
}

static void fill(int64_t n, int stages, const int *radix, double *to) {
    int64_t size = n;
    for (int k = 0; k < stages; k++) {
        const int64_t m = size / radix[k];
        for (int64_t p = 0; p < m; p++)
            for (int j = 1; j < radix[k]; j++) to = turn(to, p * j, size);
        size = m;
    }
    for (int64_t k = 0; k <= n; k++) to = turn(to, k, 2 * n);
}

void *fac_fft_table(int64_t n, int stages, const int *radix, fac_dtype dtype, size_t *bytes) {
    const size_t count = (size_t)(fac_fft_turns(n, stages, radix) + 2 * n + 2);
    double *exact = fac_alloc(count, sizeof *exact);
    *bytes = count * (size_t)fac_dtype_get(dtype)->block_bytes;
    void *table = exact ? fac_alloc(1, *bytes) : NULL;
    if (table) {
        fill(n, stages, radix, exact);
        fac_convert(dtype, table, FAC_F64, exact, count);
    }
    fac_release(exact);
    return table;
}
