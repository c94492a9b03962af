/* Attention spelled out as exporters do becomes one node, and gives the same. */
#include "problem_check.h"

enum { ROWS = 9, KEYS = 21, SIZE = 8 };
typedef enum mask { NONE, ADDED, SHOWN, HIDDEN } mask;

typedef struct form {
    int rank;
    mask mask;
    int factor;
    bool fuses;
    int other;
} form;
/* factor: 0 none, 1 scores times, 2 scores divided, 3 q and k times.   other: 1 the weights are an
 * output, 2 softmax of another axis */

static fac_value *build(fac_graph *g, const form *f) {
    const bool four = f->rank == 4;
    fac_value *q =
        fac_input(g, "q", FAC_F32, four ? fac_shape(2, 3, ROWS, SIZE) : fac_shape(6, ROWS, SIZE));
    fac_value *k =
        fac_input(g, "k", FAC_F32, four ? fac_shape(2, KEYS, 3, SIZE) : fac_shape(6, KEYS, SIZE));
    fac_value *v =
        fac_input(g, "v", FAC_F32, four ? fac_shape(2, 3, KEYS, 5) : fac_shape(6, KEYS, 5));
    fac_value *transposed =
        four ? fac_transpose(k, fac_shape(0, 2, 3, 1)) : fac_transpose(k, fac_shape(0, 2, 1));
    if (f->factor == 3) {
        q = fac_mul(q, fac_number(g, FAC_F32, 0.6));
        transposed = fac_mul(fac_number(g, FAC_F32, 0.6), transposed);
    }
    fac_value *s = fac_matmul(q, transposed);
    if (f->factor == 1) s = fac_mul(s, fac_number(g, FAC_F32, 0.3));
    if (f->factor == 2) s = fac_div(s, fac_number(g, FAC_F32, 2.5));
    fac_value *none = fac_number(g, FAC_F32, -INFINITY);
    if (f->mask == ADDED) s = fac_add(fac_input(g, "m", FAC_F32, fac_shape(ROWS, KEYS)), s);
    if (f->mask == SHOWN)
        s = fac_where(fac_input(g, "m", FAC_BOOL, fac_shape(1, ROWS, KEYS)), s, none);
    if (f->mask == HIDDEN)
        s = fac_where(fac_input(g, "m", FAC_BOOL, fac_shape(ROWS, KEYS)), none, s);
    fac_value *p = fac_softmax(s, f->other == 2 ? -2 : -1);
    if (f->other == 1) fac_output(g, "p", p);
    fac_value *y = fac_matmul(p, v);
    fac_output(g, "y", y);
    return y;
}

static void forms(void **state) {
    (void)state;
    static const form all[] = { { 4, NONE, 0, true, 0 },   { 4, NONE, 1, true, 0 },
                                { 4, ADDED, 2, true, 0 },  { 4, SHOWN, 3, true, 0 },
                                { 4, HIDDEN, 2, true, 0 }, { 3, NONE, 3, true, 0 },
                                { 3, ADDED, 1, true, 0 },  { 3, SHOWN, 0, true, 0 },
                                { 4, NONE, 1, false, 1 },  { 4, NONE, 1, false, 2 } };
    fac_error err = { 0 };
    fac_device *d;
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fac_graph *g = fac_graph_new();
        build(g, &all[i]);
        fac_tensor *in[4] = { NULL }, *out[2][2] = { { NULL } };
        const problem_check c = { .seed = i, .lo = -1, .hi = 1, .tolerance = 1e-5 };
        for (int k = 0; k < fac_graph_inputs(g); k++) {
            const fac_type t = fac_value_type(fac_graph_input(g, k));
            assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &in[k], &err), FAC_OK);
            problem_fill(&c, k, in[k]);
        }
        for (int plain = 0; plain < 2; plain++) {
            fac_program *p;
            fac_program_opts o = { .solver = plain ? "ref" : NULL, .no_fuse = plain };
            if (fac_program_new(g, d, &o, &p, &err) || fac_program_run(p, in, out[plain], &err))
                fail_msg("%zu: %s", i, err.text);
            fac_step_stat s[64];
            const size_t n = fac_program_steps(p, s, 64);
            bool fused = false;
            for (size_t k = 0; k < n && k < 64; k++)
                fused = fused || !strcmp(s[k].solver, "attention");
            if (fused != (all[i].fuses && !plain))
                fail_msg("form %zu, plain %d: attention %d", i, plain, fused);
            fac_program_free(p);
        }
        for (int k = 0; k < fac_graph_outputs(g); k++) {
            fac_tensor *x[2];
            for (int plain = 0; plain < 2; plain++)
                assert_int_equal(fac_tensor_convert(out[plain][k], FAC_F64, &x[plain], &err),
                                 FAC_OK);
            char what[40];
            snprintf(what, sizeof what, "form %zu, output %d", i, k);
            problem_compare(&c, x[0], x[1], what);
            for (int plain = 0; plain < 2; plain++)
                fac_tensor_free(x[plain]), fac_tensor_free(out[plain][k]);
        }
        for (int k = 0; k < 4; k++) fac_tensor_free(in[k]);
        fac_graph_free(g);
    }
    fac_device_free(d);
}

/* ---- 16 bits ---- */

enum { OPS = 1, SPELLED = 2 };

static fac_graph *attends(fac_dtype t, int how) {
    fac_graph *g = fac_graph_new();
    fac_value *q = fac_input(g, "q", t, fac_shape(2, 3, ROWS, SIZE));
    fac_value *k = fac_input(g, "k", t, fac_shape(2, 3, KEYS, SIZE));
    fac_value *v = fac_input(g, "v", t, fac_shape(2, 3, KEYS, 5));
    fac_value *m = fac_input(g, "m", t, fac_shape(ROWS, KEYS)), *y;
    if (how == OPS) {
        const fac_attention_opts o = { .causal = true };
        y = fac_attention(q, k, v, m, NULL, NULL, NULL, &o);
    } else {
        /* as ONNX writes the body of Attention: casts to the same type, rows that see no key */
        static const bool none[ROWS] = { false };
        fac_tensor *flags;
        assert_int_equal(fac_tensor_new(NULL, FAC_BOOL, fac_shape(ROWS, 1), &flags, NULL), FAC_OK);
        assert_int_equal(fac_tensor_write(flags, none, sizeof none, NULL), FAC_OK);
        fac_value *s = fac_matmul(q, fac_transpose(k, fac_shape(0, 1, 3, 2)));
        s = fac_softmax(fac_cast(fac_add(fac_cast(s, t), m), t), -1);
        s = fac_where(fac_const(g, flags), fac_number(g, t, 0), s);
        y = fac_matmul(s, v);
        fac_tensor_free(flags);
    }
    fac_output(g, "y", y);
    return g;
}

static fac_tensor *result(fac_device *d, fac_graph *g, const char *solver, fac_tensor *const in[],
                          bool *fused) {
    fac_error err = { 0 };
    fac_program *p;
    fac_tensor *y = NULL, *wide;
    const fac_program_opts o = { .solver = solver, .no_fuse = solver != NULL };
    if (fac_program_new(g, d, &o, &p, &err) || fac_program_run(p, in, &y, &err))
        fail_msg("%s", err.text);
    fac_step_stat s[64];
    const size_t n = fac_program_steps(p, s, 64);
    *fused = false;
    for (size_t k = 0; k < n && k < 64; k++) *fused = *fused || !strcmp(s[k].solver, "attention");
    assert_int_equal(fac_tensor_convert(y, FAC_F64, &wide, &err), FAC_OK);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_graph_free(g);
    return wide;
}

/* One kernel of f32 between casts: what comes out is rounded once, at the end. */
static void sixteen_bits_are_rounded_once(void **state) {
    (void)state;
    static const struct {
        fac_dtype t;
        double half; /* of the distance of numbers, relative */
    } types[] = { { FAC_F16, 0x1p-11 }, { FAC_BF16, 0x1p-8 } };
    fac_error err = { 0 };
    fac_device *d;
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    for (int i = 0; i < 4; i++) {
        const int how = i % 2 ? SPELLED : OPS;
        fac_graph *g = attends(types[i / 2].t, how);
        fac_tensor *in[4], *wide[4];
        bool fused, none;
        const problem_check c = { .seed = (uint64_t)i, .lo = -1, .hi = 1 };
        for (int k = 0; k < 4; k++) {
            const fac_type t = fac_value_type(fac_graph_input(g, k));
            assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &in[k], &err), FAC_OK);
            problem_fill(&c, k, in[k]);
            assert_int_equal(fac_tensor_convert(in[k], FAC_F32, &wide[k], &err), FAC_OK);
        }
        fac_tensor *got = result(d, g, NULL, in, &fused);
        fac_tensor *exact = result(d, attends(FAC_F32, how), "ref", wide, &none);
        const double *x = fac_tensor_data(got), *y = fac_tensor_data(exact);
        for (int64_t k = 0; k < 2 * 3 * ROWS * 5; k++)
            if (!(fabs(x[k] - y[k]) <= types[i / 2].half * fabs(y[k]) * 1.01 + 1e-7))
                fail_msg("%d: %.9g is not %.9g, rounded once", i, x[k], y[k]);
        if (!fused) fail_msg("%d: is not one kernel", i);
        fac_tensor_free(got);
        fac_tensor_free(exact);
        for (int k = 0; k < 4; k++) fac_tensor_free(in[k]), fac_tensor_free(wide[k]);
    }
    fac_device_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(forms),
                                        cmocka_unit_test(sixteen_bits_are_rounded_once) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
