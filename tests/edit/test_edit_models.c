/* Several models, what is said of them, and models that are odd: cyclic, open, large. */
#include <unistd.h>
#include "edit_check.h"

static void make_path(char *to, size_t size, const char *name) {
    snprintf(to, size, "/tmp/facula-edit-%d-%s", (int)getpid(), name);
}

static const char *const head =
    "input x f32[N,4]\nparam w f32[4,6]\na = matmul(x, w)\nf = relu(a)\noutput features = f\n"
    "output raw = a\n";
static const char *const tail =
    "input features f32[M,6]\ninput scale f32[6]\nparam w f32[6,3]\ns = mul(features, scale)\n"
    "a = matmul(s, w)\noutput y = a\n";

static void appending(void **state) {
    (void)state;
    fac_graph *a = graph_of(head), *b = graph_of(tail), *out = NULL, *want;
    fill_params(a);
    fill_params(b);
    OK(fac_graph_appended(a, b, 0, NULL, NULL, &out, &err));
    assert_sound(out);
    assert_int_equal(fac_graph_inputs(out), 2);
    assert_int_equal(fac_graph_outputs(out), 2); /* raw and y: features feeds the second */
    assert_string_equal(fac_graph_output_name(out, 1), "y");
    assert_string_equal(fac_value_name(fac_graph_param(out, 1)), "w_2");
    want = graph_of("input x f32[N,4]\ninput scale f32[6]\nparam w f32[4,6]\nparam w_2 f32[6,3]\na "
                    "= matmul(x, w)\nf = relu(a)\n"
                    "s = mul(f, scale)\n"
                    "b = matmul(s, w_2)\noutput raw = a\noutput y = b\n");
    for (int k = 0; k < 2; k++) {
        fac_tensor *t = fac_value_tensor(fac_graph_param(k ? b : a, 0));
        const fac_type type = fac_tensor_type(t);
        OK(fac_tensor_write(fac_value_tensor(fac_graph_param(want, k)), fac_tensor_data(t),
                            fac_type_bytes(&type), &err));
    }
    assert_same(want, out);
    fac_graph_free(want);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_appended(a, b, 1, (const char *[]){ "raw" }, (const char *[]){ "features" }, &out,
                          &err));
    assert_string_equal(fac_graph_output_name(out, 0), "features");
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_appended(b, a, 0, NULL, NULL, &out, &err), FAC_E_SHAPE,
          "\"y\" is f32[M,3], \"x\" needs f32[N,4]");
    FAILS(fac_graph_appended(a, a, 0, NULL, NULL, &out, &err), FAC_E_ARGUMENT,
          "say which belong together");
    FAILS(fac_graph_appended(a, b, 1, (const char *[]){ "q" }, (const char *[]){ "features" }, &out,
                             &err),
          FAC_E_ARGUMENT, "no output \"q\"");
    FAILS(
        fac_graph_appended(a, b, 1, (const char *[]){ "raw" }, (const char *[]){ "q" }, &out, &err),
        FAC_E_ARGUMENT, "no input \"q\"");
    assert_null(out);
    fac_graph_free(a);
    fac_graph_free(b);
}

static void another_part(void **state) {
    (void)state;
    fac_graph *g =
                  graph_of("input x f32[N,4]\na = neg(x)\nb = exp(a)\nc = tanh(b)\noutput y = c\n"),
              *out = NULL,
              *with = graph_of("input v f32[K,4]\nq = mul(v, v)\nr = sigmoid(q)\noutput r = r\n"),
              *wide = graph_of("input v f32[K,5]\nq = mul(v, v)\noutput r = q\n");
    OK(fac_graph_part_replaced(g, 1, (const char *[]){ "a" }, 1, (const char *[]){ "c" }, with,
                               &out, &err));
    assert_sound(out);
    assert_int_equal(count_op(out, "exp") + count_op(out, "tanh"), 0);
    assert_string_equal(fac_graph_output_name(out, 0), "y");
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_part_replaced(g, 1, (const char *[]){ "c" }, 1, (const char *[]){ "a" }, with,
                                  &out, &err),
          FAC_E_ARGUMENT, "made from its end");
    FAILS(fac_graph_part_replaced(g, 1, (const char *[]){ "a" }, 1, (const char *[]){ "c" }, wide,
                                  &out, &err),
          FAC_E_SHAPE, "needs f32[K,5]");
    FAILS(fac_graph_part_replaced(g, 0, NULL, 1, (const char *[]){ "c" }, with, &out, &err),
          FAC_E_ARGUMENT, "1 inputs and 1 outputs");
    assert_null(out);
    fac_graph_free(wide);
    fac_graph_free(with);
    fac_graph_free(g);
}

/* Notes are kept by edits and by files; what the caller of the exporter says stands before them. */
static void notes(void **state) {
    (void)state;
    char path[200];
    fac_graph *g = graph_of(head), *back = NULL, *other = NULL;
    make_path(path, sizeof path, "notes.onnx");
    fac_graph_set_note(g, FAC_NOTE_PRODUCER, "a tool");
    fac_graph_set_note(g, FAC_NOTE_PRODUCER_VERSION, "7");
    fac_graph_set_note(g, FAC_NOTE_DOC, "two\nlines");
    fac_graph_set_note(g, FAC_NOTE_VERSION, "12");
    fac_graph_set_note(g, FAC_NOTE_DOMAIN, "org.example");
    fac_graph_set_note(g, FAC_NOTE_NAME, "head");
    fac_graph_set_note(g, "author", "x");
    fac_graph_set_note(g, "author", "me");
    fac_graph_set_note(g, "empty", "");
    fac_graph_set_note(g, "gone", "1");
    fac_graph_set_note(g, "gone", NULL);
    fac_graph_set_note(g, "never", NULL);
    assert_int_equal(fac_graph_notes(g), 8);
    OK(fac_graph_removed(g, "f", NULL, &other, &err));
    OK(fac_onnx_save(other, path,
                     &(fac_onnx_save_opts){ .n = 1,
                                            .keys = (const char *[]){ "by" },
                                            .values = (const char *[]){ "the caller" } },
                     &err));
    OK(fac_onnx_load(path, NULL, &back, &err));
    assert_int_equal(fac_graph_notes(back), 9);
    for (int k = 0; k < fac_graph_notes(g); k++)
        assert_string_equal(fac_graph_note(back, fac_graph_note_key(g, k)),
                            fac_graph_note(g, fac_graph_note_key(g, k)));
    assert_string_equal(fac_graph_note(back, "by"), "the caller");
    assert_null(fac_graph_note(back, "gone"));
    fac_graph_free(back);
    back = NULL;
    OK(fac_onnx_save(g, path,
                     &(fac_onnx_save_opts){ .producer = "b",
                                            .n = 1,
                                            .keys = (const char *[]){ "author" },
                                            .values = (const char *[]){ "you" } },
                     &err));
    OK(fac_onnx_load(path, NULL, &back, &err));
    assert_string_equal(fac_graph_note(back, FAC_NOTE_PRODUCER), "b");
    assert_null(fac_graph_note(back, FAC_NOTE_PRODUCER_VERSION)); /* that of another producer */
    assert_string_equal(fac_graph_note(back, "author"), "you");
    unlink(path);
    fac_graph_set_note(back, "", "nothing");
    assert_int_equal(fac_graph_check(back, &err), FAC_E_ARGUMENT);
    fac_graph_free(back);
    fac_graph_free(other);
    fac_graph_free(g);
}

/* Without its weights a model is a small file that is still a model; with them it is what it was.
 */
static void stripped(void **state) {
    (void)state;
    char path[200];
    fac_graph *g = NULL, *bare = NULL, *back = NULL, *whole = NULL;
    fac_onnx_saved saved = { 0 };
    int n, m;
    make_path(path, sizeof path, "bare.onnx");
    OK(fac_zoo_new("lenet", NULL, 3, &g, &err));
    OK(fac_graph_stripped(g, 64, &n, &bare, &err));
    OK(fac_onnx_save(bare, path, &(fac_onnx_save_opts){ .saved = &saved }, &err));
    assert_true(saved.bytes < 6000);
    OK(fac_onnx_load(path, NULL, &back, &err));
    const int params = fac_graph_params(g);
    const char *names[16];
    fac_tensor *tensors[16];
    for (int k = 0; k < params; k++) {
        names[k] = fac_value_name(fac_graph_param(g, k));
        tensors[k] = fac_value_tensor(fac_graph_param(g, k));
        const fac_value *v = fac_graph_find(back, names[k]);
        assert_non_null(v); /* name, type and shape are still there */
        const fac_type type = fac_tensor_type(tensors[k]), has = fac_value_type(v);
        assert_int_equal(has.dtype, type.dtype);
        assert_true(fac_dims_equal(&has.dims, &type.dims));
    }
    OK(fac_graph_restored(back, params, names, tensors, &m, &whole, &err));
    assert_int_equal(m, params);
    assert_true(n > 0 && n < params);
    assert_same(g, whole);
    unlink(path);
    fac_graph_free(whole);
    fac_graph_free(back);
    fac_graph_free(bare);
    fac_graph_free(g);
}

/* Open sizes stay open through every edit; what cannot be known is no obstacle. */
static void open_sizes(void **state) {
    (void)state;
    fac_graph *g = graph_of(
                  "input x f32[N,S,8]\ninput m f32[S,S]\nparam w f32[8,8]\nq = matmul(x, w)\n"
                  "t = transpose(q) perm=0,2,1\np = matmul(x, t)\n"
                  "a = add(p, m)\ns = softmax(a) axis=2\no = matmul(s, q)\noutput y = o\n"),
              *out = NULL, *half = NULL;
    OK(fac_graph_inserted(g, "s", "clip(_, 0, 1)", NULL, &out, &err));
    OK(fac_graph_floats(out, FAC_F16, &half, &err));
    assert_type(fac_graph_output(half, 0), "f16[N,S,8]");
    assert_sound(half);
    fac_graph_free(half);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_removed(g, "q", NULL, &out, &err)); /* N by S by 8 before and after it */
    assert_type(fac_graph_output(out, 0), "f32[N,S,8]");
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_removed(g, "t", NULL, &out, &err), FAC_E_SHAPE, "f32[N,8,S]");
    assert_null(out);
    fac_graph_free(g);
}

/* A deep chain: nothing recurses along it, and names are found by tables. */
static void large(void **state) {
    (void)state;
    enum { N = 60000 };
    fac_graph *g = fac_graph_new(), *a = NULL, *b = NULL, *c = NULL;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2));
    for (int k = 0; k < N; k++) x = k % 2 ? fac_identity(x) : fac_neg(x);
    fac_output(g, "y", x);
    int n;
    OK(fac_graph_removed(g, "op:identity", &n, &a, &err));
    assert_int_equal(n, N / 2);
    OK(fac_graph_replaced(a, "op:neg", "abs", &n, &b, &err));
    assert_int_equal(n, N / 2);
    OK(fac_graph_appended(b, a, 1, (const char *[]){ "y" }, (const char *[]){ "x" }, &c, &err));
    assert_int_equal(c->nodes, N);
    fac_graph_free(c);
    fac_graph_free(b);
    fac_graph_free(a);
    fac_graph_free(g);
}

/* Graphs whose building failed are no graphs. */
static void broken(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new(), *out = NULL;
    fac_rules *r = NULL;
    fac_output(g, "y",
               fac_add(fac_input(g, "x", FAC_F32, fac_shape(2)),
                       fac_input(g, "z", FAC_F32, fac_shape(3))));
    OK(fac_rules_read("rule a\nmatch\n  y = relu(x)\nreplace\n  y = x\nend\n", "r", &r, &err));
    FAILS(fac_graph_rewritten(g, r, 0, NULL, &out, &err), FAC_E_SHAPE, "add");
    FAILS(fac_graph_appended(g, g, 0, NULL, NULL, &out, &err), FAC_E_SHAPE, "add");
    FAILS(fac_graph_stripped(g, 1, NULL, &out, &err), FAC_E_SHAPE, "add");
    FAILS(fac_graph_baked(g, NULL, &out, &err), FAC_E_SHAPE, "add");
    FAILS(fac_graph_floats(g, FAC_F16, &out, &err), FAC_E_SHAPE, "add");
    FAILS(fac_graph_shaped(g, "x", "4", &out, &err), FAC_E_SHAPE, "add");
    assert_null(out);
    fac_rules_free(r);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appending), cmocka_unit_test(another_part), cmocka_unit_test(notes),
        cmocka_unit_test(stripped),  cmocka_unit_test(open_sizes),   cmocka_unit_test(large),
        cmocka_unit_test(broken)
    };
    return cmocka_run_group_tests_name("edit_models", tests, open_device, close_device);
}
