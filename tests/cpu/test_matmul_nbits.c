/* matmul_nbits/blocks on every instruction set, against sums in f64 of what the codes stand for:
 * 2, 4 and 8 bits, blocks of 16 to 256, every kind of zero points, few rows and many, sums that end
 * inside a block. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/rng.h"
#include "facula/device.h"
#include "facula/ops.h"
#include "facula/program.h"
#include "fresh_seed.h"

static fac_error err;
static uint64_t seed, drawn;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)
static int64_t draw(int64_t below) {
    return (int64_t)(fac_random_bits(seed, 0, drawn++) % (uint64_t)below);
}

typedef enum zeros { NO_ZEROS, PACKED, NUMBERS, ZERO_KINDS } zeros;
typedef struct problem {
    fac_nbits_opts o;
    int64_t M, blocks;
    zeros kind;
    fac_tensor *x, *q, *scale, *zero, *bias;
} problem;

static fac_tensor *floats(fac_dims d, float lo, float hi) {
    fac_tensor *t;
    const size_t n = (size_t)fac_dims_count(&d);
    float *x = malloc((n + 1) * sizeof *x);
    fac_random_fill(seed, drawn++, lo, hi, n, x);
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, &err));
    OK(fac_tensor_write(t, x, n * sizeof *x, &err));
    free(x);
    return t;
}

static fac_tensor *bytes(fac_dims d) {
    fac_tensor *t;
    const size_t n = (size_t)fac_dims_count(&d);
    unsigned char *x = malloc(n + 1);
    for (size_t k = 0; k < n; k++) x[k] = (unsigned char)draw(256);
    OK(fac_tensor_new(NULL, FAC_U8, d, &t, &err));
    OK(fac_tensor_write(t, x, n, &err));
    free(x);
    return t;
}

static problem drawn_problem(int bits, int64_t M, zeros kind, int64_t accuracy) {
    const int64_t block = (int64_t)16 << draw(5), K = 1 + draw(3 * block + 300);
    problem p = { .o = { K, 1 + draw(90), bits, block, accuracy }, .M = M, .kind = kind };
    p.blocks = (K + block - 1) / block;
    const fac_dims of_blocks = fac_shape(p.o.n, p.blocks);
    p.x = floats(fac_shape(M, K), -1, 1);
    p.q = bytes(fac_shape(p.o.n, p.blocks, block * bits / 8));
    p.scale = floats(of_blocks, 0.1f, 1);
    if (kind == PACKED) p.zero = bytes(fac_shape(p.o.n, (p.blocks * bits + 7) / 8));
    if (kind == NUMBERS) p.zero = floats(of_blocks, 0, (float)(1 << bits));
    p.bias = draw(2) ? floats(fac_shape(p.o.n), -1, 1) : NULL;
    return p;
}

static void release(problem *p) {
    fac_tensor *const all[] = { p->x, p->q, p->scale, p->zero, p->bias };
    for (int k = 0; k < 5; k++) fac_tensor_free(all[k]);
}

static fac_tensor *run(fac_device *d, problem *p) {
    fac_graph *g = fac_graph_new();
    fac_program *program;
    fac_tensor *y = NULL;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(p->M, p->o.k));
    fac_value *zero = p->zero ? fac_const(g, p->zero) : NULL;
    fac_value *bias = p->bias ? fac_const(g, p->bias) : NULL;
    fac_value *q = fac_const(g, p->q), *scale = fac_const(g, p->scale);
    fac_output(g, "y", fac_matmul_nbits(x, q, scale, zero, bias, &p->o));
    const fac_program_opts o = { .solver = "matmul_nbits/blocks" };
    OK(fac_program_new(g, d, &o, &program, &err));
    OK(fac_program_run(program, &p->x, &y, &err));
    fac_program_free(program);
    fac_graph_free(g);
    return y;
}

static int code(const unsigned char *p, int64_t k, int64_t bits) {
    return p[k * bits / 8] >> (k * bits % 8) & ((1 << bits) - 1);
}

static double weight(const problem *p, int64_t n, int64_t k) {
    const int64_t b = k / p->o.block, row = p->blocks * p->o.block * p->o.bits / 8;
    const int64_t zero_row = (p->blocks * p->o.bits + 7) / 8;
    const unsigned char *q = fac_tensor_data(p->q);
    double zero = (double)(1 << (p->o.bits - 1));
    if (p->kind == NUMBERS)
        zero = (double)((const float *)fac_tensor_data(p->zero))[n * p->blocks + b];
    if (p->kind == PACKED)
        zero = code((const unsigned char *)fac_tensor_data(p->zero) + n * zero_row, b, p->o.bits);
    const float scale = ((const float *)fac_tensor_data(p->scale))[n * p->blocks + b];
    return (code(q + n * row, k, p->o.bits) - zero) * (double)scale;
}

/* x as kernels may see it: of a node that allows it rounded to 8 bits, in blocks. */
static void seen(const problem *p, bool rounds, float *x) {
    memcpy(x, fac_tensor_data(p->x), (size_t)(p->M * p->o.k) * sizeof *x);
    for (int64_t m = 0; rounds && m < p->M; m++)
        for (int64_t from = 0; from < p->o.k; from += p->o.block) {
            const int64_t left = p->o.k - from, n = left < p->o.block ? left : p->o.block;
            float most = 0, *row = x + m * p->o.k + from;
            for (int64_t k = 0; k < n; k++) most = fmaxf(most, fabsf(row[k]));
            const float by = 127 / most, d = most / 127;
            for (int64_t k = 0; k < n; k++) row[k] = nearbyintf(row[k] * by) * d;
        }
}

/* The bound: so many roundings of the sum of magnitudes, codes and zero points apart. */
static void check(const problem *p, const fac_tensor *y, bool rounds, const char *isa) {
    const float *got = fac_tensor_data(y);
    float *x = malloc((size_t)(p->M * p->o.k) * sizeof *x);
    seen(p, rounds, x);
    for (int64_t m = 0; m < p->M; m++)
        for (int64_t n = 0; n < p->o.n; n++) {
            double sum = p->bias ? (double)((const float *)fac_tensor_data(p->bias))[n] : 0;
            double all = fabs(sum);
            for (int64_t k = 0; k < p->o.k; k++) {
                const double at = (double)x[m * p->o.k + k];
                sum += at * weight(p, n, k);
                all += fabs(at) * (double)(1 << p->o.bits);
            }
            const double off = fabs(sum - (double)got[m * p->o.n + n]);
            if (!(off <= 4e-7 * all))
                fail_msg("%s: %lld bits, block %lld, %lld x %lld x %lld, zeros %d: %g, not %g", isa,
                         (long long)p->o.bits, (long long)p->o.block, (long long)p->M,
                         (long long)p->o.k, (long long)p->o.n, (int)p->kind,
                         (double)got[m * p->o.n + n], sum);
        }
    free(x);
}

static void on(const char *isa) {
    static const int bits[] = { 4, 2, 8 };
    fac_device *d;
    const fac_device_opts o = { .threads = 2, .isa = isa };
    if (fac_device_open("cpu", &o, &d, &err)) return; /* this machine has no such instructions */
    for (int64_t M = 1; M < 12; M++)
        for (int kind = 0; kind < ZERO_KINDS; kind++)
            for (int k = 0; k < 6; k++) {
                const int64_t many = M == 10 ? 20 : 113;
                const int64_t rows = M < 10 ? M : many + draw(40);
                problem p = drawn_problem(bits[k % 3], rows, (zeros)kind, k / 3 * FAC_NBITS_INT8);
                fac_tensor *y = run(d, &p);
                check(&p, y, k == 3 && !strncmp(isa, "avx", 3), isa);
                fac_tensor_free(y);
                release(&p);
            }
    fac_device_free(d);
}

/* Where x is rounded, weights of 0 add nothing, exactly, however large code and zero point are: all
 * but every 16th code is its zero point, and what is left is within a rounding of its own sum. */
static void cancels(const char *isa) {
    enum { CODE = 14, FULL = CODE * 17, ONE_MORE = FULL + 1, EVERY = 8 };
    fac_device *d;
    const fac_device_opts o = { .threads = 2, .isa = isa };
    if (fac_device_open("cpu", &o, &d, &err)) return;
    for (int round = 0; round < 20; round++) {
        problem p = drawn_problem(4, 1 + draw(9), PACKED, FAC_NBITS_INT8);
        unsigned char *q = (unsigned char *)(uintptr_t)fac_tensor_data(p.q);
        unsigned char *zero = (unsigned char *)(uintptr_t)fac_tensor_data(p.zero);
        float *x = (float *)(uintptr_t)fac_tensor_data(p.x);
        for (int64_t k = 0; k < p.o.n * p.blocks * p.o.block / 2; k++)
            q[k] = k % EVERY ? FULL : ONE_MORE;
        memset(zero, FULL, (size_t)(p.o.n * ((p.blocks + 1) / 2)));
        for (int64_t k = 0; k < p.M * p.o.k; k++) x[k] = 1 - x[k] / 2;
        fac_tensor *y = run(d, &p);
        float *seen_x = malloc((size_t)(p.M * p.o.k) * sizeof *seen_x);
        seen(&p, true, seen_x);
        for (int64_t m = 0; m < p.M; m++)
            for (int64_t n = 0; n < p.o.n; n++) {
                const double b = p.bias ? (double)((const float *)fac_tensor_data(p.bias))[n] : 0;
                double sum = 0;
                for (int64_t k = 0; k < p.o.k; k++)
                    sum += (double)seen_x[m * p.o.k + k] * weight(&p, n, k);
                const double got = (double)((const float *)fac_tensor_data(y))[m * p.o.n + n];
                if (!(fabs(sum + b - got) <= 5e-7 * (sum + fabs(b))))
                    fail_msg("%s: %g, not %g", isa, got, sum + b);
            }
        free(seen_x);
        fac_tensor_free(y);
        release(&p);
    }
    fac_device_free(d);
}

static void avx2_cancels(void **state) { (void)state, cancels("avx2"); }
static void avx512_cancels(void **state) { (void)state, cancels("avx512"); }

static void portable(void **state) { (void)state, on("portable"); }
static void neon(void **state) { (void)state, on("neon"); }
static void avx2(void **state) { (void)state, on("avx2"); }
static void avx512(void **state) { (void)state, on("avx512"); }

int main(void) {
    seed = fresh_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable),     cmocka_unit_test(neon),
        cmocka_unit_test(avx2),         cmocka_unit_test(avx512),
        cmocka_unit_test(avx2_cancels), cmocka_unit_test(avx512_cancels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
