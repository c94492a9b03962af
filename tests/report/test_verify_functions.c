/* verify: functions that are told apart, and what proves nothing. */
#include "verify_check.h"

/* ---- functions ---- */

/* One line of an input x, as a model. */
static fac_graph *line_model(const char *line) {
    char text[400];
    snprintf(text, sizeof text, "input x f32[2,6,4]\n%s\noutput z = y\n", line);
    return graph_of(text);
}

/* nonzero counts: the second operand is how many there are. */
static fac_graph *counted_model(const char *lines) {
    char text[400];
    const char *of = strstr(lines, "nonzero(") + 8;
    snprintf(text, sizeof text,
             "input x f32[2,6,4]\n%.*sc = cast(%.1s) to=bool\nn = cast(c) to=i64\nk = sum(n, -)\n"
             "y = nonzero(%.1s, k)\noutput z = y\n",
             (int)(strstr(lines, "y = nonzero") - lines), lines, of, of);
    return graph_of(text);
}

typedef struct two {
    const char *a, *b;
    fac_sameness same;
} two;

static void functions_are_told_apart(void **state) {
    (void)state;
    static const two pairs[] = {
        { "y = softmax(x) axis=1", "y = softmax(x) axis=2", FAC_DIFFERENT },
        { "y = sigmoid(x)", "y = hard_sigmoid(x) slope=0.2 offset=0.5", FAC_DIFFERENT },
        { "y = erf(x)", "y = tanh(x)", FAC_DIFFERENT },
        { "y = relu(x)", "y = clip(x, 0, 6)", FAC_DIFFERENT },
        { "y = relu(x)", "y = clip(x, 0, 800)", FAC_DIFFERENT },
        { "y = leaky_relu(x) slope=0.01", "y = leaky_relu(x) slope=0.2", FAC_DIFFERENT },
        { "y = round(x)", "y = floor(x)", FAC_DIFFERENT },
        { "y = abs(x)", "y = neg(x)", FAC_DIFFERENT },
        { "y = lrn(x) size=3 alpha=1e-4 beta=0.75 bias=1",
          "y = lrn(x) size=5 alpha=1e-4 beta=0.75 bias=1", FAC_DIFFERENT },
        { "y = layer_norm(x, -, -) axis=-1 epsilon=1e-5",
          "y = layer_norm(x, -, -) axis=1 epsilon=1e-5", FAC_DIFFERENT },
        { "y = layer_norm(x, -, -) axis=-1 epsilon=1e-5",
          "y = layer_norm(x, -, -) axis=-1 epsilon=1e-4", FAC_DIFFERENT },
        { "m = less(x, 2)\nn = neg(x)\ny = where(m, x, n)",
          "m = less_or_equal(x, 2)\nn = neg(x)\ny = where(m, x, n)", FAC_DIFFERENT },
        { "y = relu(x)", "y = max(x, 0)", FAC_SAME },
        { "y = div(x, 4)", "y = mul(x, 0.25)", FAC_SAME },
        { "y = softmax(x) axis=2",
          "m = reduce_max(x, i64{2}) keep\nd = sub(x, m)\ne = exp(d)\ns = sum(e, i64{2}) keep\ny = "
          "div(e, s)",
          FAC_SAME },
        { "y = silu(x)", "s = sigmoid(x)\ny = mul(s, x)", FAC_SAME },
        { "a = mul(x, 3)\nb = mul(x, 5)\ny = add(a, b)", "y = mul(x, 8)", FAC_SAME },
        { "y = tanh(x)", "a = mul(x, 2)\ns = sigmoid(a)\nb = mul(s, 2)\ny = sub(b, 1)",
          FAC_NO_DIFFERENCE },
        { "y = softplus(x)", "e = exp(x)\na = add(e, 1)\ny = log(a)", FAC_SAME },
        { "e = exp(x)\na = add(e, 1)\ny = log(a)", "y = softplus(x)", FAC_SAME },
        { "y = reciprocal(x)", "y = clip(x, -3, 3)", FAC_DIFFERENT },
        { "e = exp(x)\ny = mul(e, 2)", "y = exp(x)", FAC_DIFFERENT },
        { "y = elu(x) alpha=0.1", "y = elu(x) alpha=0.10000000149011612", FAC_SAME },
        { "y = mul(x, 0)", "y = sub(x, x)", FAC_CANNOT_TELL }
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        fac_graph *a = line_model(pairs[k].a), *b = line_model(pairs[k].b);
        fac_verdict v;
        OK(fac_verify(a, b, device, &(fac_verify_opts){ .seed = seed }, &v, &err));
        if (v.same != pairs[k].same)
            fail_msg("%s | %s: %s: %s", pairs[k].a, pairs[k].b, fac_sameness_word(v.same), v.why);
        fac_graph_free(a), fac_graph_free(b);
    }
}

/* A limit that no input comes to is named. */
static void what_was_not_reached_is_said(void **state) {
    (void)state;
    fac_graph *a = line_model("s = sigmoid(x)\ny = relu(s)"),
              *b = line_model("s = sigmoid(x)\ny = leaky_relu(s) slope=0.5");
    fac_verdict v = { 0 };
    OK(fac_verify(a, b, device, &(fac_verify_opts){ .seed = seed }, &v, &err));
    assert_int_equal(v.same, FAC_NO_DIFFERENCE);
    assert_non_null(strstr(v.note, "never got a number below 0"));
    fac_graph_free(a), fac_graph_free(b);
}

/* How many indices there are is data: results of other sizes differ, those of the same agree. */
static void sizes_that_data_decides(void **state) {
    (void)state;
    static const char POSITIVE[] = "p = relu(x)\ny = nonzero(p)",
                      MIRRORED[] = "m = neg(x)\nq = neg(m)\np = relu(q)\ny = nonzero(p)",
                      NEGATIVE[] = "m = neg(x)\np = relu(m)\ny = nonzero(p)",
                      ALL[] = "y = nonzero(x)";
    const struct {
        const char *a, *b;
        bool differ;
    } pairs[] = { { POSITIVE, MIRRORED, false },
                  { POSITIVE, NEGATIVE, true },
                  { ALL, POSITIVE, true } };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        fac_graph *a = counted_model(pairs[k].a), *b = counted_model(pairs[k].b);
        fac_verdict v = { 0 };
        OK(fac_verify(a, b, device, &(fac_verify_opts){ .seed = seed }, &v, &err));
        assert_int_equal(v.same == FAC_DIFFERENT, pairs[k].differ);
        if (k == 2) assert_non_null(strstr(v.why, "other sizes"));
        fac_graph_free(a), fac_graph_free(b);
    }
}

/* Inputs that overflow are named, and are none that tell models apart. */
static void what_overflows_says_nothing(void **state) {
    (void)state;
    fac_graph *a = line_model("e = exp(x)\na = add(e, 1)\ny = log(a)"),
              *b = line_model("y = softplus(x)");
    fac_verdict v = { 0 };
    const fac_verify_opts opts = { .mode = FAC_VERIFY_DATA, .seed = seed };
    OK(fac_verify(a, b, device, &opts, &v, &err));
    assert_int_equal(v.same, FAC_NO_DIFFERENCE);
    assert_non_null(strstr(v.outgrown, " of A outgrows its type on inputs "));
    assert_true(isfinite(v.worst));
    fac_graph_free(a), fac_graph_free(b);
}

/* So are sums of whole numbers, which no float bounds. */
static void what_whole_numbers_make_may_overflow(void **state) {
    (void)state;
#define LARGE "n = cast(x) to=i64\ni = add(n, i64{3000000000000000000})\nf = cast(i) to=f32\n"
    fac_graph *a = line_model(LARGE "a = mul(f, f)\nb = mul(a, a)\nc = mul(b, b)\nd = mul(c, c)\n"
                                    "e = mul(d, d)\ny = log(e)"),
              *b = line_model(LARGE "l = log(f)\ny = mul(l, 32)");
#undef LARGE
    fac_verdict v = { 0 };
    const fac_verify_opts opts = { .mode = FAC_VERIFY_DATA, .seed = seed };
    OK(fac_verify(a, b, device, &opts, &v, &err));
    assert_int_not_equal(v.same, FAC_DIFFERENT);
    assert_non_null(strstr(v.outgrown, " of A outgrows its type on inputs "));
    fac_graph_free(a), fac_graph_free(b);
}

/* Weights of zeros prove nothing: a bias more or less is the same then. */
static void zeros_prove_nothing(void **state) {
    (void)state;
    static const char *const texts[] = {
        "input x f32[2,4]\nparam w f32[3,4]\nparam b f32[3]\ny = linear(x, w, b)\noutput z = y\n",
        "input x f32[2,4]\nparam w f32[3,4]\ny = linear(x, w, -)\noutput z = y\n"
    };
    fac_graph *a = graph_of(texts[0]), *b = graph_of(texts[1]);
    for (int mode = 0; mode < MODES; mode++) {
        if (mode == FAC_VERIFY_BOUND) continue;
        const fac_verdict v = judge(a, b, (fac_verify_mode)mode);
        assert_int_equal(v.same, FAC_CANNOT_TELL);
        assert_non_null(strstr(v.why, "nothing was shown"));
    }
    fac_graph_free(a), fac_graph_free(b);
}

/* One graph is one function, also where no run shows anything; other numbers or attributes make
 * another graph. */
static void one_graph_needs_no_run(void **state) {
    (void)state;
    static const char *const texts[] = {
        "input x f32[2,4]\ny = shape(x)\noutput z = y\n",
        "input x f32[2,4]\nparam w f32[3,4]\ny = linear(x, w, -)\noutput z = y\n",
        "input x f32[2,4]\nparam w f32[3,4]\nl = linear(x, w, -)\ny = silu(l)\noutput z = y\n",
        "input x f32[3,3]\ny = eye_like(x) k=1\noutput z = y\n",
        "input x f32[3,3]\ny = eye_like(x) k=2\noutput z = y\n",
        "input x f32[3,3]\nparam w f32[3,3]\ny = mul(x, w)\noutput z = y\n",
        "input x bf16[3,3]\ny = elu(x) alpha=1.5\noutput z = y\n",
        "input x bf16[3,3]\ny = elu(x) alpha=1.501\noutput z = y\n",
        "input x f32[3,3]\nparam w f32[3,3]\ny = mul(w, w)\noutput z = y\n",
    };
    enum { N = sizeof texts / sizeof *texts };
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            fac_graph *a = graph_of(texts[i]), *b = graph_of(texts[k]);
            const fac_type *p = &a->outputs[0].value->type, *q = &b->outputs[0].value->type;
            if (p->dtype == q->dtype && a->inputs[0]->type.dtype == b->inputs[0]->type.dtype &&
                fac_dims_equal(&p->dims, &q->dims) &&
                fac_dims_equal(&a->inputs[0]->type.dims, &b->inputs[0]->type.dims)) {
                for (int exact = 0; exact < 2; exact++) {
                    const fac_verdict v = judge(a, b, exact ? FAC_VERIFY_EXACT : FAC_VERIFY_FULL);
                    if ((v.same == FAC_SAME) != (i == k)) fail_msg("%d, %d: %s", i, k, v.why);
                }
            }
            fac_graph_free(a), fac_graph_free(b);
        }
}

/* Boxes in a row; the first one begins elsewhere. */
static fac_graph *boxes_model(float begins) {
    enum { BOXES = 6 };
    float at[BOXES][4];
    fac_graph *g = fac_graph_new();
    for (int k = 0; k < BOXES; k++) {
        const float corners[4] = { k ? (float)k : begins, 0, (float)k + 1.5F, 1 };
        memcpy(at[k], corners, sizeof corners);
    }
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(1, BOXES, 4), &t, &err));
    OK(fac_tensor_write(t, at, sizeof at, &err));
    fac_value *scores = fac_input(g, "scores", FAC_F32, fac_shape(1, 2, BOXES));
    fac_value *most = fac_number(g, FAC_I64, 4), *iou = fac_number(g, FAC_F32, 0.21);
    fac_output(g, "y", fac_non_max_suppression(fac_const(g, t), scores, most, iou, NULL, false));
    fac_tensor_free(t);
    return g;
}

static void one_number_of_many_is_another_graph(void **state) {
    (void)state;
    fac_graph *a = boxes_model(0), *b = boxes_model(0.25F);
    OK(fac_graph_check(a, &err));
    for (int k = 0; k < 2; k++) {
        const fac_verify_mode mode = k ? FAC_VERIFY_EXACT : FAC_VERIFY_FULL;
        assert_int_equal(judge(a, a, mode).same, FAC_SAME);
        assert_int_not_equal(judge(a, b, mode).same, FAC_SAME);
    }
    fac_graph_free(a), fac_graph_free(b);
}

typedef struct few {
    const char *input, *a, *b;
} few;

static fac_graph *few_model(const few *f, const char *lines) {
    char text[400];
    snprintf(text, sizeof text, "input x %s\n%s\noutput z = y\n", f->input, lines);
    return graph_of(text);
}

/* Remainders are few small numbers: what nothing stands for on them must be alike in both models.
 * Ties, wraps and ends of types that a round may miss are no proof either. */
static void what_small_numbers_hide(void **state) {
    (void)state;
    static const few pairs[] = {
        { "i32[2,5]", "y = mod(x, 3)", "y = fmod(x, 3)" },
        { "i32[2,5]", "y = div(x, 2)", "m = mod(x, 2)\ns = sub(x, m)\ny = div(s, 2)" },
        { "u8[2,5]", "m = mul(x, 2)\ny = div(m, 2)", "y = add(x, 0)" },
        { "i64[2,5]", "y = min(x, 70)", "y = min(x, 80)" },
        { "i32[2,5]", "c = cast(x) to=i8\ny = cast(c) to=i32", "y = add(x, 0)" },
        { "f32[2,5]", "c = cast(x) to=i8\ny = cast(c) to=f32",
          "c = cast(x) to=i32\ny = cast(c) to=f32" },
        { "f32[2,5]", "y = arg_max(x) axis=1", "y = arg_max(x) axis=1 select_last_index" },
        { "f32[2,5]", "y = arg_min(x) axis=1", "y = arg_min(x) axis=1 select_last_index" },
        { "f32[2,5]",
          "const z u8(128)\nq = quantize_linear(x, f32{0.1}, z)\ny = dequantize_linear(q, "
          "f32{0.1}, z)",
          "const z u8(127)\nq = quantize_linear(x, f32{0.1}, z)\ny = dequantize_linear(q, "
          "f32{0.1}, z)" },
        { "f32[2,5]", "y = exp(x)", "h = cast(x) to=f16\ne = exp(h)\ny = cast(e) to=f32" },
        { "f32[2,5]", "y = add(x, 0)", "h = cast(x) to=f16\ny = cast(h) to=f32" },
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        fac_graph *a = few_model(&pairs[k], pairs[k].a), *b = few_model(&pairs[k], pairs[k].b);
        for (int i = 0; i < 8; i++) {
            const fac_verify_mode mode = i & 1 ? FAC_VERIFY_EXACT : FAC_VERIFY_FULL;
            fac_verdict v;
            OK(fac_verify(a, b, device,
                          &(fac_verify_opts){ .mode = mode, .seed = seed + (uint64_t)i }, &v,
                          &err));
            if (v.same == FAC_SAME) fail_msg("%s | %s: %s", pairs[k].a, pairs[k].b, v.why);
            OK(fac_verify(a, a, device, &(fac_verify_opts){ .mode = mode, .seed = seed }, &v,
                          &err));
            if (v.same != FAC_SAME) fail_msg("%s, twice: %s", pairs[k].a, v.why);
        }
        fac_graph_free(a), fac_graph_free(b);
    }
}

/* Doubles do not hold integers of 64 bits, and a tolerance is for what was rounded. */
static void whole_numbers_are_equal_or_not(void **state) {
    (void)state;
    static const few pairs[] = {
        { "i64[2,5]",
          "a = add(x, x)\nb = add(a, 1)\nc = mul(b, 1152921504606846976)\ny = add(c, 1)",
          "a = add(x, x)\nb = add(a, 1)\nc = mul(b, 1152921504606846976)\ny = add(c, 2)" },
        { "u64[2,5]", "y = bitwise_not(x)", "n = bitwise_not(x)\ny = add(n, 1)" },
        { "i32[2,5]", "y = mul(x, 1000003)", "m = mul(x, 1000003)\ny = add(m, 1)" },
    };
    static const fac_verify_mode modes[] = { FAC_VERIFY_FULL, FAC_VERIFY_EXACT, FAC_VERIFY_DATA };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        fac_graph *a = few_model(&pairs[k], pairs[k].a), *b = few_model(&pairs[k], pairs[k].b);
        for (int i = 0; i < 3; i++) {
            const fac_verdict v = judge(a, b, modes[i]), same = judge(a, a, modes[i]);
            if (v.same != FAC_DIFFERENT) fail_msg("%s | %s: %s", pairs[k].a, pairs[k].b, v.why);
            if (same.same == FAC_DIFFERENT) fail_msg("%s, twice: %s", pairs[k].a, same.why);
        }
        fac_graph_free(a), fac_graph_free(b);
    }
}

/* Of 300 elements one is another divisor; and a factor of scores counts where there are several. */
static void what_few_inputs_show(void **state) {
    (void)state;
    enum { ELEMENTS = 300 };
    static const char step[] =
        "input a f32[2,3,6,8]\ninput b f32[2,3,6,4]\ninput c i64[2]\ninput d f32[2,6,1,8]\n"
        "input e f32[2,3,1,8]\ninput f f32[2,3,1,4]\ninput g i64[2]\n"
        "k, v, y = attention_step(a, b, c, d, e, f, g)%s\noutput k = k\noutput v = v\noutput y = "
        "y\n";
    int8_t by[ELEMENTS];
    fac_graph *of[2][2];
    for (int i = 0; i < 2; i++) {
        char text[600];
        fac_tensor *t = NULL;
        for (int k = 0; k < ELEMENTS; k++) by[k] = (int8_t)(k || !i ? 100 : 99);
        fac_graph *g = fac_graph_new();
        OK(fac_tensor_new(NULL, FAC_I8, fac_shape(ELEMENTS), &t, &err));
        OK(fac_tensor_write(t, by, sizeof by, &err));
        fac_output(g, "y",
                   fac_div(fac_input(g, "x", FAC_I8, fac_shape(ELEMENTS)), fac_param(g, "w", t)));
        fac_tensor_free(t);
        of[0][i] = g;
        snprintf(text, sizeof text, step, i ? " scale=0.001" : "");
        of[1][i] = graph_of(text);
    }
    for (int k = 0; k < 2; k++) {
        for (int s = 0; s < 8; s++) {
            fac_verdict v;
            OK(fac_verify(of[k][0], of[k][1], device,
                          &(fac_verify_opts){ .seed = seed + (uint64_t)s }, &v, &err));
            if (v.same == FAC_SAME) fail_msg("pair %d: %s", k, v.why);
        }
        fac_graph_free(of[k][0]), fac_graph_free(of[k][1]);
    }
}

/* Casts that a file needs around an op of a type that it lacks, and ops that it holds written out.
 */
static void what_files_lack_is_the_same(void **state) {
    (void)state;
    static const few pairs[] = {
        { "u8[2,5]", "y = cum_prod(x, i64(1))",
          "c = cast(x) to=i64\nd = cum_prod(c, i64(1))\ny = cast(d) to=u8" },
        { "u8[2,5]", "y = sum(x, i64{1})",
          "c = cast(x) to=i64\nd = sum(c, i64{1})\ny = cast(d) to=u8" },
        { "bool[30,2]", "y = reduce_max(x, i64{1})",
          "c = cast(x) to=u8\nd = reduce_max(c, i64{1})\ny = cast(d) to=bool" },
        { "f32[2,5]", "y = trunc(x)", "s = sign(x)\na = abs(x)\nf = floor(a)\ny = mul(s, f)" },
        { "f32[2,5]", "y = celu(x) alpha=2", "d = mul(x, 0.5)\ne = elu(d) alpha=1\ny = mul(e, 2)" },
        { "f32[2,5]", "y = dequantize_linear(q, f32{0.5}, i8{3})\n",
          "c = cast(q) to=f32\ns = sub(c, 3)\ny = mul(s, 0.5)" },
    };
    static const few others[] = {
        { "u8[2,5]", "y = cum_prod(x, i64(1))",
          "c = cast(x) to=i64\nd = cum_prod(c, i64(1)) reverse\ny = cast(d) to=u8" },
        { "i8[2,5]", "y = add(x, x)",
          "c = cast(x) to=i64\nd = add(c, c)\ne = min(d, 99)\ny = cast(e) to=i8" },
        { "i64[2,5]", "y = add(x, x)", "c = cast(x) to=i8\nd = add(c, c)\ny = cast(d) to=i64" },
        { "f32[2,5]", "y = trunc(x)", "s = sign(x)\na = abs(x)\nf = ceil(a)\ny = mul(s, f)" },
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        char text[2][200];
        const char *quantize = "q = quantize_linear(x, f32{0.25}, i8{-1})\n";
        for (int i = 0; i < 2; i++)
            snprintf(text[i], sizeof text[i], "%s%s", strstr(pairs[k].a, "(q") ? quantize : "",
                     i ? pairs[k].b : pairs[k].a);
        fac_graph *a = few_model(&pairs[k], text[0]), *b = few_model(&pairs[k], text[1]);
        const fac_verdict v = judge(a, b, FAC_VERIFY_FULL);
        if (v.same != FAC_SAME) fail_msg("%s | %s: %s", text[0], text[1], v.why);
        fac_graph_free(a), fac_graph_free(b);
    }
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        fac_graph *a = few_model(&others[k], others[k].a), *b = few_model(&others[k], others[k].b);
        fac_verdict v;
        OK(fac_verify(a, b, device, &(fac_verify_opts){ .seed = seed }, &v, &err));
        if (v.same != FAC_DIFFERENT) fail_msg("%s | %s: %s", others[k].a, others[k].b, v.why);
        fac_graph_free(a), fac_graph_free(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_small_numbers_hide),
        cmocka_unit_test(whole_numbers_are_equal_or_not),
        cmocka_unit_test(what_files_lack_is_the_same),
        cmocka_unit_test(what_few_inputs_show),
        cmocka_unit_test(functions_are_told_apart),
        cmocka_unit_test(what_was_not_reached_is_said),
        cmocka_unit_test(zeros_prove_nothing),
        cmocka_unit_test(one_graph_needs_no_run),
        cmocka_unit_test(one_number_of_many_is_another_graph),
        cmocka_unit_test(sizes_that_data_decides),
        cmocka_unit_test(what_overflows_says_nothing),
        cmocka_unit_test(what_whole_numbers_make_may_overflow),
    };
    return cmocka_run_group_tests_name("verify functions", tests, open_device, close_device);
}
