/* The fused attention of the cpu against its expansion in f64: heads, masks, a past, lengths, sizes
 * about every edge. */
#include "problem_check.h"

static uint64_t seed;

static void shapes(void **state) {
    (void)state;
    static const char *const problems[] = {
        "attention(f32[1,2,37,64], f32[1,2,53,64], f32[1,2,53,64])",
        "attention(f32[2,3,1,8], f32[2,3,300,8], f32[2,3,300,5])",
        "attention(f32[1,1,33,3], f32[1,1,1,3], f32[1,1,1,1])",
        "attention(f32[1,1,130,32], f32[1,1,129,32], f32[1,1,129,70]) causal",
        "attention(f32[1,2,64,16], f32[1,2,256,16], f32[1,2,256,16]) causal",
        "attention(f32[2,6,19,16], f32[2,2,40,16], f32[2,2,40,16]) causal scale=0.3",
        "attention(f32[1,8,1,20], f32[1,2,77,20], f32[1,2,77,20])",
        "attention(f32[2,21,24], f32[2,18,12], f32[2,18,9]) q_heads=6 kv_heads=3",
        "attention(f32[2,5,24], f32[2,140,24], f32[2,140,24]) q_heads=4 kv_heads=4 causal",
        "attention(f32[1,2,40,16], f32[1,2,150,16], f32[1,2,150,16]) scale=-0.7",
        "attention(f32[1,2,40,16], f32[1,2,150,16], f32[1,2,150,16]) softcap=1.5 causal",
        "attention(f32[1,2,0,4], f32[1,2,3,4], f32[1,2,3,4])"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++) {
        problem_check c = { .seed = seed + k, .lo = -2, .hi = 2, .tolerance = 1e-5 };
        problem_everywhere(c, k + 1 < sizeof problems / sizeof *problems ? "attention" : NULL,
                           problems[k]);
    }
}

static void masks(void **state) {
    (void)state;
    static const char *const problems[] = {
        "attention(f32[2,2,35,8], f32[2,2,150,8], f32[2,2,150,8], bool[35,150])",
        "attention(f32[2,2,35,8], f32[2,2,150,8], f32[2,2,150,8], f32[2,1,35,150])",
        "attention(f32[2,2,35,8], f32[2,2,150,8], f32[2,2,150,8], f32[1,2,35,150]) causal "
        "softcap=2",
        "attention(f32[2,4,35,8], f32[2,2,150,8], f32[2,2,150,8], bool[2,1,1,150])",
        "attention(f32[2,4,35,8], f32[2,2,150,8], f32[2,2,150,8], f32[4,1,150])",
        "attention(f32[2,4,9,8], f32[2,2,150,8], f32[2,2,150,8], bool[2,4,9,31]) causal",
        "attention(f32[2,4,9,8], f32[2,2,150,8], f32[2,2,150,8], f32[1])",
        "attention(f32[12,3,49,32], f32[12,3,49,32], f32[12,3,49,32], f32[1,4,3,49,49])",
        "attention(f32[12,4,9,8], f32[12,2,37,8], f32[12,2,37,8], f32[3,4,1,9,37])",
        "attention(f32[6,2,9,8], f32[6,2,37,8], f32[6,2,37,8], bool[1,2,2,1,30])",
        "attention(f32[6,2,9,8], f32[6,2,37,8], f32[6,2,37,8], bool[6,1,1,9,37])"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        problem_everywhere(
            (problem_check){ .seed = seed + k, .lo = -2, .hi = 2, .tolerance = 1e-5 }, "attention",
            problems[k]);
}

/* present_key and present_value are outputs or not; `scores` is not this solver's. */
static void pasts(void **state) {
    (void)state;
    static const char *const problems[] = {
        "attention(f32[1,2,2,8], f32[1,2,2,8], f32[1,2,2,8], -, f32[1,2,130,8], f32[1,2,130,8]) "
        "causal",
        "attention(f32[2,4,3,8], f32[2,2,3,8], f32[2,2,3,5], bool[3,10], f32[2,2,7,8], "
        "f32[2,2,7,5])",
        "attention(f32[2,1,8], f32[2,1,4], f32[2,1,6], -, f32[2,2,9,2], f32[2,2,9,3]) q_heads=4 "
        "kv_heads=2 causal"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        problem_everywhere(
            (problem_check){ .seed = seed + k, .lo = -2, .hi = 2, .tolerance = 1e-5 }, "attention",
            problems[k]);
}

static void lengths(void **state) {
    (void)state;
    static const char *const problems[] = {
        "attention(f32[6,2,4,8], f32[6,2,9,8], f32[6,2,9,8], -, -, -, i64[6])",
        "attention(f32[6,2,4,8], f32[6,2,9,8], f32[6,2,9,8], -, -, -, i32[6]) causal",
        "attention(f32[6,2,4,8], f32[6,2,9,8], f32[6,2,9,8], bool[9], -, -, i64[6]) causal"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        problem_everywhere(
            (problem_check){ .seed = seed + k, .lo = -1, .hi = 9, .tolerance = 1e-4 }, "attention",
            problems[k]);
}

/* Scores of later keys far above those of the first, for which weights are made again. */
static void steep(void **state) {
    (void)state;
    static const char *const problems[] = {
        "attention(f32[1,2,40,16], f32[1,2,700,16], f32[1,2,700,16]) scale=1",
        "attention(f32[1,2,300,8], f32[1,2,600,8], f32[1,2,600,8]) scale=-3 causal"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        problem_everywhere(
            (problem_check){ .seed = seed + k, .lo = -4, .hi = 4, .tolerance = 1e-3 }, "attention",
            problems[k]);
}

/* Equal numbers are rounded the same way over and over.  y is 0.3 whatever the number of keys: of
 * the weights and of the values f32 adds up a block of 256 keys at most (u 257 / 2), and then the
 * blocks, of which there are 391 (u 392 / 2). */
static void many_keys(void **state) {
    (void)state;
    static const char *const problems[] = {
        "attention(f32[1,1,2,1], f32[1,1,100000,1], f32[1,1,100000,1])",
        "attention(f32[1,1,2,1], f32[1,1,100000,1], f32[1,1,100000,1], f32[100000])"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        problem_everywhere(
            (problem_check){ .lo = 0.3, .hi = 0.3, .tolerance = (257 + 392) * 0x1p-24 },
            "attention", problems[k]);
}

/* One query of each head, as steps of decoding have it: heads of q that share one of k, few keys
 * and many, windows, lengths of 0 and above what there is. */
static void one_query(void **state) {
    (void)state;
    static const char *const problems[] = {
        "attention(f32[2,3,1,64], f32[2,3,300,64], f32[2,3,300,32])",
        "attention(f32[1,2,1,16], f32[1,2,1,16], f32[1,2,1,16])",
        "attention(f32[2,4,1,32], f32[2,2,3,32], f32[2,2,3,144]) scale=0.3",
        "attention(f32[1,9,1,64], f32[1,3,77,64], f32[1,3,77,64]) softcap=1.5",
        "attention(f32[1,14,1,32], f32[1,2,513,32], f32[1,2,513,48])",
        "attention(f32[3,1,80], f32[3,29,16], f32[3,29,32]) q_heads=5 kv_heads=1",
        "attention(f32[6,4,1,16], f32[6,2,9,16], f32[6,2,9,16], -, -, -, i64[6]) causal",
        "attention(f32[6,6,1,16], f32[6,1,9,16], f32[6,1,9,32], -, -, -, i32[6]) causal window=3",
        "attention(f32[6,3,1,16], f32[6,1,9,16], f32[6,1,9,16], -, -, -, i64[6])"
    };
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++)
        problem_everywhere(
            (problem_check){ .seed = seed + k, .lo = -1, .hi = 9, .tolerance = 1e-4 },
            "attention/row", problems[k]);
    problem_everywhere((problem_check){ .lo = 0.3, .hi = 0.3, .tolerance = (257 + 392) * 0x1p-24 },
                       "attention/row",
                       "attention(f32[1,3,1,16], f32[1,1,100000,16], f32[1,1,100000,16])");
}

static void run_three(fac_device *d, const char *solver, const float *const data[3],
                      fac_tensor **y) {
    fac_error err = { 0 };
    fac_graph *g = NULL;
    fac_program *p;
    fac_tensor *in[3], *out[5] = { NULL };
    if (fac_problem_graph("attention(f32[1,1,3,2], f32[1,1,400,2], f32[1,1,400,2])", false, &g,
                          &err))
        fail_msg("%s", err.text);
    while (g->noutputs > 1) g->outputs[--g->noutputs].value->roots--;
    for (int k = 0; k < 3; k++) {
        const fac_type t = fac_value_type(fac_graph_input(g, k));
        assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &in[k], &err), FAC_OK);
        assert_int_equal(
            fac_tensor_write(in[k], data[k], (size_t)fac_dims_count(&t.dims) * sizeof(float), &err),
            FAC_OK);
    }
    if (fac_program_new(g, d, &(fac_program_opts){ .solver = solver }, &p, &err) ||
        fac_program_run(p, in, out, &err))
        fail_msg("%s", err.text);
    *y = out[0];
    for (int k = 0; k < 3; k++) fac_tensor_free(in[k]);
    fac_program_free(p);
    fac_graph_free(g);
}

/* A late score that is -inf in f32 has no weight, one that passes all others has all of it, and NaN
 * is not lost. */
static void extremes(void **state) {
    (void)state;
    enum { KEYS = 400, LATE = 390 };
    fac_error err = { 0 };
    const float q[6] = { 1, 0, 1e20f, 0, -3, 1 };
    float k[2 * KEYS], v[2 * KEYS];
    fac_device *d;
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    for (int i = 0; i < KEYS; i++) {
        k[2 * i] = sinf((float)i);
        k[2 * i + 1] = cosf((float)i);
        v[2 * i] = (float)i;
        v[2 * i + 1] = 1;
    }
    k[2 * LATE] = -1e30f;
    k[2 * LATE + 1] = 0;
    fac_tensor *got, *want;
    run_three(d, NULL, (const float *const[]){ q, k, v }, &got);
    run_three(d, "ref", (const float *const[]){ q, k, v }, &want);
    const float *y = fac_tensor_data(got), *r = fac_tensor_data(want);
    for (int i = 0; i < 6; i++)
        assert_true(isfinite(y[i]) && fabsf(y[i] - r[i]) <= 1e-3f * fmaxf(1, fabsf(r[i])));
    assert_true(y[4] == LATE && y[3] == 1);
    fac_tensor_free(got), fac_tensor_free(want);
    k[2 * LATE] = NAN;
    run_three(d, NULL, (const float *const[]){ q, k, v }, &got);
    for (int i = 0; i < 6; i++) assert_true(isnan(((const float *)fac_tensor_data(got))[i]));
    fac_tensor_free(got);
    fac_device_free(d);
}

/* A program that wants the scores is expanded, and one that wants the joined keys is not. */
static void outputs(void **state) {
    (void)state;
    fac_error err = { 0 };
    fac_graph *g = fac_graph_new();
    fac_value *q = fac_input(g, "q", FAC_F32, fac_shape(1, 2, 3, 4)),
              *past = fac_input(g, "past", FAC_F32, fac_shape(1, 2, 5, 4));
    fac_value *y = fac_attention(q, q, q, NULL, past, past, NULL, NULL);
    fac_output(g, "y", y);
    fac_output(g, "keys", fac_value_other(y, 1));
    for (int scores = 0; scores < 2; scores++) {
        if (scores) fac_output(g, "scores", fac_value_other(y, 3));
        fac_device *d;
        fac_program *p;
        fac_tensor *in[2], *out[3] = { NULL };
        assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
        for (int k = 0; k < 2; k++) {
            const fac_type t = fac_value_type(fac_graph_input(g, k));
            assert_int_equal(fac_tensor_new(NULL, t.dtype, t.dims, &in[k], &err), FAC_OK);
            problem_fill(&(problem_check){ .seed = seed, .lo = -1, .hi = 1 }, k, in[k]);
        }
        if (fac_program_new(g, d, NULL, &p, &err) || fac_program_run(p, in, out, &err))
            fail_msg("%s", err.text);
        fac_step_stat s[64];
        size_t n = fac_program_steps(p, s, 64);
        bool fused = false;
        for (size_t k = 0; k < n && k < 64; k++) fused = fused || !strcmp(s[k].solver, "attention");
        assert_int_equal(fused, !scores);
        const float *keys = fac_tensor_data(out[1]), *before = fac_tensor_data(in[1]),
                    *now = fac_tensor_data(in[0]);
        for (int head = 0; head < 2; head++) {
            assert_memory_equal(keys + head * 32, before + head * 20, 20 * sizeof(float));
            assert_memory_equal(keys + head * 32 + 20, now + head * 12, 12 * sizeof(float));
        }
        for (int k = 0; k < 3; k++) fac_tensor_free(out[k]);
        for (int k = 0; k < 2; k++) fac_tensor_free(in[k]);
        fac_program_free(p);
        fac_device_free(d);
    }
    fac_graph_free(g);
}

/* e^-95 is denormal, and products with such weights take a hundred times as long: it is zero. */
static void far_scores(void **state) {
    (void)state;
    enum { N = 67 };
    static const char *const isas[] = { "portable", "avx2", "avx512" };
    for (size_t k = 0; k < sizeof isas / sizeof *isas; k++) {
        fac_error e;
        fac_device *d = NULL;
        fac_tensor *in = NULL, *out = NULL;
        fac_program *p = NULL;
        float x[N] = { 0 }, y[N];
        for (int i = 1; i < N; i++) x[i] = -95;
        if (fac_device_open("cpu", &(fac_device_opts){ .isa = isas[k] }, &d, &e)) continue;
        fac_graph *g = fac_graph_new();
        fac_output(g, "y", fac_softmax(fac_input(g, "x", FAC_F32, fac_shape(1, N)), -1));
        assert_int_equal(fac_program_new(g, d, NULL, &p, &e), FAC_OK);
        assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(1, N), &in, &e), FAC_OK);
        assert_int_equal(fac_tensor_write(in, x, sizeof x, &e), FAC_OK);
        assert_int_equal(fac_program_run(p, &in, &out, &e), FAC_OK);
        assert_int_equal(fac_tensor_read(out, y, sizeof y, &e), FAC_OK);
        assert_true(y[0] == 1);
        for (int i = 1; i < N; i++) assert_true(y[i] == 0);
        fac_tensor_free(in);
        fac_tensor_free(out);
        fac_program_free(p);
        fac_graph_free(g);
        fac_device_free(d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(shapes),     cmocka_unit_test(masks),
                                        cmocka_unit_test(far_scores), cmocka_unit_test(pasts),
                                        cmocka_unit_test(lengths),    cmocka_unit_test(steep),
                                        cmocka_unit_test(many_keys),  cmocka_unit_test(extremes),
                                        cmocka_unit_test(outputs),    cmocka_unit_test(one_query) };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
