/* Elementwise ops of whole numbers and bools, casts, running sums: solvers "fused" and "running",
 * forced, against the reference; every type and instruction set, odd sizes, broadcasting, numbers
 * that wrap, floats that no integer holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/rng.h"
#include "facula/backend.h"
#include "facula/ops.h"
#include "facula/program.h"
#include "fresh_seed.h"

static uint64_t seed, drawn;
static bool tame; /* no infinities and NaN, of which any will do where floats are made */
static uint64_t bits(void) { return fac_random_bits(seed, 0, drawn++); }
static int draw(int below) { return (int)(bits() % (uint64_t)below); }
static fac_error err;

static const char *const types[] = { "i8",  "u8",  "i16",  "u16", "i32", "u32",
                                     "i64", "u64", "bool", "f32", "f64", "f16" };
enum { BOOL = 8, TYPES = 12, F16 = 11 };

typedef struct machine {
    const char *isa;
    fac_device *of[4]; /* by threads; results lie there until they are freed */
} machine;
static machine machines[] = { { "portable", { 0 } }, { "avx2", { 0 } }, { "avx512", { 0 } } };
enum { MACHINES = sizeof machines / sizeof *machines };

/* NULL: this one has no such instructions. */
static fac_device *device_of(machine *m, int threads) {
    const fac_device_opts how = { .threads = threads, .isa = m->isa };
    fac_error none = { 0 };
    if (!m->of[threads]) (void)fac_device_open("cpu", &how, &m->of[threads], &none);
    return m->of[threads];
}

/* Any bits, or few different numbers; floats also such that no integer holds. */
static fac_tensor *random_tensor(fac_type type) {
    fac_tensor *t = NULL;
    const size_t bytes = fac_type_bytes(&type), n = (size_t)fac_dims_count(&type.dims);
    const bool few = draw(2);
    uint8_t *all = malloc(bytes + 8);
    assert_non_null(all);
    for (size_t k = 0; k < bytes; k++)
        all[k] = type.dtype == FAC_BOOL ? (uint8_t)(bits() & 1)
                 : few                  ? (uint8_t)(bits() % 3 - 1)
                                        : (uint8_t)bits();
    for (size_t k = 0; k < n; k++) {
        const double mild = (double)(int64_t)bits() * 0x1p-50;
        const bool wild = !few && !tame && bits() % 97 == 0; /* the bits as they are */
        if (type.dtype == FAC_F32 && !wild) ((float *)(void *)all)[k] = (float)mild;
        if (type.dtype == FAC_F16) all[2 * k + 1] &= 0xFB;
        if (type.dtype == FAC_F64 && !wild) ((double *)(void *)all)[k] = mild;
    }
    assert_int_equal(fac_tensor_new(NULL, type.dtype, type.dims, &t, &err), FAC_OK);
    if (bytes) assert_int_equal(fac_tensor_write(t, all, bytes, &err), FAC_OK);
    free(all);
    return t;
}

static fac_tensor *made_by(const fac_graph *g, fac_tensor *const *in, const char *solver,
                           fac_device *d, const char *text) {
    fac_program *p = NULL;
    fac_tensor *y = NULL;
    fac_status status = fac_program_new(g, d, &(fac_program_opts){ .solver = solver }, &p, &err);
    if (!status) status = fac_program_run(p, in, &y, &err);
    if (status) fail_msg("%s: %s", text, err.text);
    fac_program_free(p);
    return y;
}

/* The same bits from the solver (NULL: from whatever plans choose) as from the reference. */
static void must_agree(const fac_graph *g, const char *solver, const char *text) {
    fac_tensor *in[3] = { NULL };
    const int inputs = (int)fac_graph_inputs(g);
    for (int i = 0; i < inputs; i++) in[i] = random_tensor(fac_value_type(fac_graph_input(g, i)));
    fac_tensor *want = made_by(g, in, "ref", device_of(&machines[0], 1), text);
    const fac_type type = fac_tensor_type(want);
    for (int k = 0; k < MACHINES; k++) {
        fac_device *d = device_of(&machines[k], 1 + draw(3));
        if (!d) continue;
        fac_tensor *got = made_by(g, in, solver, d, text);
        if (memcmp(fac_tensor_data(got), fac_tensor_data(want), fac_type_bytes(&type)))
            fail_msg("%s differs by %s", text, machines[k].isa);
        fac_tensor_free(got);
    }
    fac_tensor_free(want);
    for (int i = 0; i < inputs; i++) fac_tensor_free(in[i]);
}

static void problem_agrees(const char *text, const char *solver) {
    fac_graph *g = NULL;
    if (fac_problem_graph(text, false, &g, &err)) fail_msg("%s: %s", text, err.text);
    must_agree(g, solver, text);
    fac_graph_free(g);
}

/* Sizes of an operand that broadcasts with the others: of `of`, or 1. */
static void dims_text(int rank, const int *of, bool whole, char *to, size_t size) {
    const int from = whole ? 0 : draw(rank + 1);
    *to = 0;
    for (int k = from; k < rank; k++)
        snprintf(to + strlen(to), size - strlen(to), "%s%d", k > from ? "," : "",
                 whole || draw(3) ? of[k] : 1);
}

static void random_dims(int rank, int *d) {
    static const int sizes[] = { 1, 2, 3, 7, 16, 33, 70, 129, 1500 };
    int64_t all = 1;
    for (int k = 0; k < rank; k++) {
        d[k] = sizes[draw(9)];
        if (all * d[k] > 60000) d[k] = 2;
        all *= d[k];
    }
}

static void single_ops(void **state) {
    static const struct {
        const char *op;
        int inputs;
        bool integers, bools, where;
    } ops[] = { { "add", 2, true, false, false },
                { "sub", 2, true, false, false },
                { "mul", 2, true, false, false },
                { "neg", 1, true, false, false },
                { "abs", 1, true, false, false },
                { "bitwise_and", 2, true, false, false },
                { "bitwise_or", 2, true, false, false },
                { "bitwise_xor", 2, true, false, false },
                { "bitwise_not", 1, true, false, false },
                { "max", 2, true, false, false },
                { "min", 2, true, false, false },
                { "div", 2, true, false, false },
                { "mod", 2, true, false, false },
                { "fmod", 2, true, false, false },
                { "equal", 2, true, true, false },
                { "less", 2, true, false, false },
                { "less_or_equal", 2, true, false, false },
                { "greater", 2, true, false, false },
                { "greater_or_equal", 2, true, false, false },
                { "where", 3, true, true, true },
                { "and", 2, false, true, false },
                { "or", 2, false, true, false },
                { "xor", 2, false, true, false },
                { "not", 1, false, true, false } };
    enum { OPS = sizeof ops / sizeof *ops, ROUNDS = 3 };
    (void)state;
    for (int k = 0; k < OPS; k++)
        for (int t = 0; t <= BOOL; t++)
            for (int r = 0; r < ROUNDS && (t < BOOL ? ops[k].integers : ops[k].bools); r++) {
                const int rank = 1 + draw(3), whole = draw(ops[k].inputs);
                int d[3];
                char text[256];
                random_dims(rank, d);
                snprintf(text, sizeof text, "%s(", ops[k].op);
                for (int i = 0; i < ops[k].inputs; i++) {
                    const int type = ops[k].where && i == 0 ? BOOL : t;
                    char dims[64];
                    dims_text(rank, d, i == whole, dims, sizeof dims);
                    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s[%s]",
                             i ? ", " : "", types[type], dims);
                }
                strcat(text, ")");
                problem_agrees(text, "fused");
            }
}

static void comparisons_of_floats(void **state) {
    static const char *const ops[] = { "equal", "less", "less_or_equal", "greater",
                                       "greater_or_equal" };
    (void)state;
    for (int k = 0; k < 5; k++) {
        char text[96];
        snprintf(text, sizeof text, "%s(f32[%d,%d], f32[%d])", ops[k], 1 + draw(9), 777, 777);
        problem_agrees(text, "fused");
    }
}

static void casts(void **state) {
    (void)state;
    for (int from = 0; from < TYPES; from++)
        for (int to = 0; to < TYPES; to++) {
            char text[96];
            if (from == to) continue;
            tame = to > BOOL;
            snprintf(text, sizeof text, "cast(%s[%d]) to=%s", types[from], 1 + draw(3000),
                     types[to]);
            problem_agrees(text, "fused");
        }
}

static void running_sums(void **state) {
    (void)state;
    tame = true;
    for (int t = 0; t < F16; t++)
        for (int r = 0; r < 6 && t != BOOL; r++) {
            const int rank = 1 + draw(3);
            int d[3];
            char text[160], dims[64];
            random_dims(rank, d);
            dims_text(rank, d, true, dims, sizeof dims);
            snprintf(text, sizeof text, "cum_sum(%s[%s], i64{%d})", types[t], dims, draw(rank));
            if (draw(2)) strcat(text, " exclusive");
            if (draw(2)) strcat(text, " reverse");
            problem_agrees(text, "running");
        }
}

/* Chains of several types: comparisons into choices, casts in the middle. */
static void chains(void **state) {
    static const fac_dtype of[] = { FAC_I8, FAC_U8, FAC_I16, FAC_U16, FAC_I32, FAC_I64, FAC_U64 };
    enum { ROUNDS = 60 };
    (void)state;
    for (int r = 0; r < ROUNDS; r++) {
        fac_graph *g = fac_graph_new();
        const fac_dtype t = of[draw(7)], u = of[draw(7)];
        const fac_dims d = fac_shape(1 + draw(40), 1 + draw(300));
        assert_non_null(g);
        fac_value *x = fac_input(g, "x", t, d), *y = fac_input(g, "y", t, d),
                  *b = fac_input(g, "b", FAC_BOOL, d);
        fac_value *less = draw(2) ? fac_less(x, y) : fac_greater(y, x);
        fac_value *both = draw(2) ? fac_and(less, b) : fac_xor(fac_not(less), b);
        fac_value *picked = fac_where(both, fac_add(x, y), fac_max(x, y));
        fac_value *other = fac_cast(picked, u);
        fac_value *result =
            draw(2) ? fac_mul(other, fac_cast(less, u)) : fac_where(less, other, fac_cast(b, u));
        if (draw(3) == 0) result = fac_equal(result, fac_cast(x, u));
        fac_output(g, "z", result);
        if (fac_graph_check(g, &err)) fail_msg("%s", err.text);
        must_agree(g, NULL, "a chain");
        fac_graph_free(g);
    }
}

static int close_all(void **state) {
    (void)state;
    for (int k = 0; k < MACHINES; k++)
        for (int i = 0; i < 4; i++) fac_device_free(machines[k].of[i]);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(single_ops),
                                        cmocka_unit_test(comparisons_of_floats),
                                        cmocka_unit_test(casts), cmocka_unit_test(running_sums),
                                        cmocka_unit_test(chains) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, close_all);
}
