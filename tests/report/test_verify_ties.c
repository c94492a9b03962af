/* verify: where rounding decides, nothing is called different, and what differs elsewhere is.  Ops
 * of bits and codes keep their own types. */
#include <unistd.h>
#include "verify_check.h"
#include "facula/onnx.h"
#include "passes/passes.h"

static fac_graph *line_model(const char *lines) {
    char text[600];
    snprintf(text, sizeof text, "input x f32[8]\n%s\noutput z = y\n", lines);
    return graph_of(text);
}

/* x / 0.1, and 10 x with a factor that is one bit off: of 0.25 they make 2.5, which becomes 2, and
 * 2.5000002, which becomes 3. */
#define TENTHS "y = quantize_linear(x, f32{0.1}, u8{3})"
#define TEN_TIMES                                                                                  \
    "a = mul(x, 10.000001)\nb = round(a)\nc = add(b, 3)\nd = clip(c, 0, 255)\ny = cast(d) to=u8"
#define ROUNDED "y = round(x)"
#define CUT_OFF "a = add(x, 0.5)\ny = floor(a)"

static fac_verdict on(const char *a, const char *b, const float x[8]) {
    fac_graph *first = line_model(a), *second = line_model(b);
    fac_tensor *in[1] = { NULL };
    fac_verdict v = { 0 };
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(8), &in[0], &err));
    OK(fac_tensor_write(in[0], x, 8 * sizeof *x, &err));
    const fac_verify_opts opts = { .mode = FAC_VERIFY_DATA, .seed = seed, .n = 1, .inputs = in };
    OK(fac_verify(first, second, device, &opts, &v, &err));
    fac_tensor_free(in[0]);
    fac_graph_free(first), fac_graph_free(second);
    return v;
}

static const float tied[8] = { 0.25f, 0.21f, 0.42f, 0.33f, 1.02f, 1.18f, 0.04f, 2.5f };
static const float halves[8] = { 0.5f, 1.5f, 2.5f, 3.25f, 4.75f, 5, 6, 7 };

static void ties_of_rounded_numbers_say_nothing(void **state) {
    (void)state;
    fac_verdict v = on(TENTHS, TEN_TIMES, tied);
    assert_int_equal(v.same, FAC_NO_DIFFERENCE);
    assert_true(v.tied == 1 && v.differing == 0);
    v = on("y = bit_cast(x) to=i32", "a = mul(x, 0.1)\nb = mul(a, 10)\ny = bit_cast(b) to=i32",
           tied);
    assert_int_not_equal(v.same, FAC_DIFFERENT);
}

/* Another code, and a tie of numbers that nothing rounded. */
static void what_differs_elsewhere_is_told(void **state) {
    (void)state;
    assert_int_equal(on("y = quantize_linear(x, f32{0.1}, u8{4})", TEN_TIMES, tied).same,
                     FAC_DIFFERENT);
    assert_int_equal(on("y = quantize_linear(x, f32{0.101}, u8{3})", TEN_TIMES, tied).same,
                     FAC_DIFFERENT);
    fac_verdict v = on(ROUNDED, CUT_OFF, halves);
    assert_int_equal(v.same, FAC_DIFFERENT);
    assert_true(v.differing == 2 && v.tied == 0);
    v = on("y = bit_cast(x) to=i32", "a = neg(x)\ny = bit_cast(a) to=i32", tied);
    assert_int_equal(v.same, FAC_DIFFERENT);
}

/* 8-bit floats are codes, which a model may not have exchanged for others. */
static void bits_keep_their_types(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        bool differ;
    } pairs[] = {
        { "e = cast(x) to=f8e4m3\ny = cast(e) to=f32", "e = cast(x) to=f8e5m2\ny = cast(e) to=f32",
          true },
        { "e = cast(x) to=f8e4m3\ny = cast(e) to=f32", "e = cast(x) to=f8e4m3\ny = cast(e) to=f32",
          false },
        { "y = nextafter(x, 3)", "y = nextafter(x, 3)", false },
        { "y = dynamic_quantize_linear(x)", "y = dynamic_quantize_linear(x)", false },
        { "y = bit_cast(x) to=i32", "y = bit_cast(x) to=i32", false },
        { "y = bit_cast(x) to=i32", "y = cast(x) to=i32", true },
        { "y = quantize_linear(x, f32{2}) to=f8e4m3", "y = quantize_linear(x, f32{2}) to=f8e4m3",
          false },
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        fac_graph *a = line_model(pairs[k].a), *b = line_model(pairs[k].b);
        fac_verdict v;
        OK(fac_verify(a, b, device, &(fac_verify_opts){ .seed = seed }, &v, &err));
        if ((v.same == FAC_DIFFERENT) != pairs[k].differ)
            fail_msg("%s | %s: %s: %s", pairs[k].a, pairs[k].b, fac_sameness_word(v.same), v.why);
        fac_graph_free(a), fac_graph_free(b);
    }
}

static bool expand_all(void *self, const fac_node *n) {
    (void)self, (void)n;
    return false;
}

/* Every op of its own types alone, against what it means in simpler ops. */
static void ops_of_their_own_types(void **state) {
    (void)state;
    int asked = 0;
    for (const fac_op *const *p = fac_ops; *p; p++)
        for (const fac_case *c = (*p)->cases; (*p)->is & FAC_OP_TYPED && c && c->problem; c++) {
            fac_graph *g = NULL;
            fac_verdict v = { 0 };
            if (c->hi <= c->lo) continue;
            OK(fac_problem_graph(c->problem, false, &g, &err));
            fac_graph *other = fac_pass_expand(g, expand_all, NULL);
            if (fac_verify(g, other, device, &(fac_verify_opts){ .seed = seed }, &v, &err))
                fail_msg("%s: %s", c->problem, err.text);
            if (v.same == FAC_DIFFERENT) fail_msg("%s: %s", c->problem, v.why);
            fac_graph_free(other);
            fac_graph_free(g);
            asked++;
        }
    assert_true(asked >= 20);
}

static fac_graph *exported(const fac_graph *g) {
    char file[] = "/tmp/facula.ties.XXXXXX";
    fac_graph *to = NULL;
    const int fd = mkstemp(file);
    assert_true(fd >= 0);
    close(fd);
    OK(fac_onnx_save(g, file, NULL, &err));
    OK(fac_onnx_load(file, NULL, &to, &err));
    unlink(file);
    return to;
}

/* Lengths of any size in a file that holds them as i32; changes of numbers that underflow. */
static void files_mean_the_same(void **state) {
    (void)state;
    static const struct {
        const char *problem;
        uint64_t seed;
    } known[] = { { "gru(f32[3,4,2], f32[2,6,2], f32[2,6,2], f32[2,12], i64[3], f32[3,2,2]) "
                    "direction=bidirectional batch_first",
                    42 },
                  { "gelu_tanh_slope(f32[])", 60 } };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        fac_graph *g = NULL;
        fac_verdict v = { 0 };
        OK(fac_problem_graph(known[k].problem, false, &g, &err));
        fac_graph *other = exported(g);
        for (int turn = 0; turn < 2; turn++) {
            const uint64_t s = turn ? seed : known[k].seed;
            OK(fac_verify(g, other, device, &(fac_verify_opts){ .seed = s }, &v, &err));
            if (v.same == FAC_DIFFERENT) fail_msg("%s: %s", known[k].problem, v.why);
        }
        fac_graph_free(other);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ties_of_rounded_numbers_say_nothing),
        cmocka_unit_test(what_differs_elsewhere_is_told),
        cmocka_unit_test(bits_keep_their_types),
        cmocka_unit_test(ops_of_their_own_types),
        cmocka_unit_test(files_mean_the_same),
    };
    return cmocka_run_group_tests_name("verify ties", tests, open_device, close_device);
}
