/* Moves of rows become one gather, what treats rows alone works in any order, and results stay: of
 * the ways in which windows of images are written, and of the gradients of a network of windows. */
#include "pass_forms.h"

/* Takes whatever a pass offers. */
static bool take(void *self, const fac_node *n) {
    (void)self, (void)n;
    return true;
}

static fac_graph *rows(const fac_graph *g) { return fac_pass_row_order(g); }
static fac_graph *norms(const fac_graph *g) { return fac_pass_norm_casts(g, take, NULL); }

#define X "input z f32[2,4,4,3]\nparam zm f32[3,3]\nx = matmul(z, zm)\n"
#define ROLL(to, from)                                                                             \
    to "a = slice(" from ", i64{1}, i64{9}, i64{1})\n" to "b = slice(" from                        \
       ", i64{0}, i64{1}, i64{1})\n" to "c = concat(" to "a, " to "b) axis=1\n" to "d = slice(" to \
       "c, i64{-3}, i64{9}, i64{2})\n" to "e = slice(" to "c, i64{0}, i64{-3}, i64{2})\n" to       \
       "r = concat(" to "d, " to "e) axis=2\n"
#define WINDOWS(to, from)                                                                          \
    to "p = reshape(" from ", i64{2,2,2,2,2,3})\n" to "q = transpose(" to                          \
       "p) perm=0,1,3,2,4,5\n" to "w = reshape(" to "q, i64{8,4,3})\n"
#define IMAGE(to, from)                                                                            \
    to "s = reshape(" from ", i64{2,2,2,2,2,3})\n" to "t = transpose(" to                          \
       "s) perm=0,1,3,2,4,5\n" to "i = reshape(" to "t, i64{2,4,4,3})\n"
/* Roll it back. */
#define UNROLL(to, from)                                                                           \
    to "f = slice(" from ", i64{3}, i64{9}, i64{1})\n" to "g = slice(" from                        \
       ", i64{0}, i64{3}, i64{1})\n" to "h = concat(" to "f, " to "g) axis=1\n" to "j = slice(" to \
       "h, i64{3}, i64{9}, i64{2})\n" to "k = slice(" to "h, i64{0}, i64{3}, i64{2})\n" to         \
       "u = concat(" to "j, " to "k) axis=2\n"
#define PARAMS                                                                                     \
    "param s f32[3]\nparam c f32[3]\nparam m f32[3,3]\nparam v f32[3,3]\nparam o f32[3]\n"
/* norm, windows, something of each window, a linear layer: from `from`, in windows. */
#define LAYER(to, from)                                                                            \
    to "l = matmul(" from ", m)\n" to "n = softmax(" to "l) axis=1\n" to "o = matmul(" to          \
       "n, v)\n" to "y = add(" to "o, o)\n"

/* A layer whose batch stands second, as that of torch.nn.MultiheadAttention, of a stream whose
 * batch stands first: tokens 5, batch 3, heads 2 of size 2. */
#define HEADS_OF(to, from)                                                                         \
    to "l = matmul(" from ", m)\n" to "c = slice(" to "l, i64{4}, i64{8}, i64{2})\n" to            \
       "r = reshape(" to "c, i64{5,6,2})\n" to "h = transpose(" to "r) perm=1,0,2\n" to            \
       "g = reshape(" to "h, i64{3,2,5,2})\n"
#define BATCH_SECOND(to, from)                                                                     \
    to "t = transpose(" from ") perm=1,0,2\n" HEADS_OF(to, to "t") to                              \
        "s = softmax(" to "g) axis=2\n" to "o = transpose(" to "s) perm=2,0,1,3\n" to              \
        "f = reshape(" to "o, i64{15,4})\n" to "w = gemm(" to "f, v)\n" to "u = reshape(" to       \
        "w, i64{5,3,4})\n" to "i = transpose(" to "u) perm=1,0,2\n" to "y = add(" from ", " to     \
        "i)\n"

static const form forms[] = {
    { "heads are split once",
      { rows },
      1e-5,
      "input z f32[5,3,4]\nparam m f32[4,12]\n" HEADS_OF("a",
                                                         "z") "y = softmax(ag) axis=2\noutput y "
                                                              "= y\n",
      { { "reshape", 1 }, { "transpose", 1 } } },
    { "no other way: heads are merged",
      { rows },
      1e-5,
      "input z f32[5,3,4]\nparam m f32[4,12]\n" HEADS_OF(
          "a", "z") "s = softmax(ag) axis=2\n"
                    "o = transpose(s) perm=2,0,1,3\nf = reshape(o, i64{15,4})\ny = neg(f)\noutput "
                    "y = y\n",
      { { "reshape", 2 }, { "transpose", 2 } } },
    { "a batch that stands second for two layers",
      { rows },
      1e-5,
      "input z f32[3,5,4]\nparam m f32[4,12]\nparam v f32[4,4]\nx = tanh(z)\n" BATCH_SECOND(
          "a", "x") BATCH_SECOND("b", "ay") "y = reduce_max(by, i64{1})\noutput y = y\n",
      { { "transpose", 8 }, { "gather", 0 } } },
    { "a shift on two axes",
      { rows },
      1e-5,
      X ROLL("a", "x") "y = neg(ar)\noutput y = y\n",
      { { "gather", 1 }, { "concat", 0 }, { "slice", 0 } } },
    { "a shift and windows",
      { rows },
      1e-5,
      X ROLL("a", "x") WINDOWS("a", "ar") "y = neg(aw)\noutput y = y\n",
      { { "gather", 1 }, { "concat", 0 }, { "transpose", 0 } } },
    { "no pads, all slices",
      { rows },
      1e-5,
      X "p = pad(x, i64{0,0,0,0,0,0,0,0})\nq = slice(p, i64{0,0}, i64{9,9}, i64{1,2})\ny = "
        "neg(q)\noutput y = y\n",
      { { "pad", 0 }, { "slice", 0 }, { "gather", 0 } } },
    { "there and back",
      { rows },
      1e-5,
      X ROLL("a", "x") WINDOWS("a", "ar") IMAGE("b", "aw")
          UNROLL("b", "bi") "y = neg(bu)\noutput y = y\n",
      { { "gather", 0 }, { "concat", 0 } } },
    { "patches that are merged",
      { rows },
      1e-5,
      X "a = slice(x, i64{0,0}, i64{9,9}, i64{1,2}, i64{2,2})\n"
        "b = slice(x, i64{1,0}, i64{9,9}, i64{1,2}, i64{2,2})\n"
        "c = slice(x, i64{0,1}, i64{9,9}, i64{1,2}, i64{2,2})\n"
        "d = slice(x, i64{1,1}, i64{9,9}, i64{1,2}, i64{2,2})\n"
        "e = concat(a, b, c, d) axis=-1\ny = neg(e)\noutput y = y\n",
      { { "gather", 1 }, { "concat", 0 } } },
    { "the gradient of a shift",
      { rows },
      1e-5,
      X
      "a = slice(x, i64{0}, i64{3}, i64{1})\nb = slice(x, i64{3}, i64{4}, i64{1})\n"
      "c = slice_grad(x, i64{1}, i64{9}, i64{1}, -, a)\n"
      "d = slice_grad(x, i64{0}, i64{1}, i64{1}, -, b)\ne = add(c, d)\ny = neg(e)\noutput y = y\n",
      { { "gather", 1 }, { "slice_grad", 0 }, { "add", 0 } } },
    { "a shift of images of a batch",
      { rows },
      1e-5,
      X "a = slice(x, i64{1}, i64{2}, i64{0})\nb = slice(x, i64{0}, i64{1}, i64{0})\n"
        "c = concat(a, b) axis=0\ny = neg(c)\noutput y = y\n",
      { { "gather", 1 }, { "concat", 0 } } },
    { "no gather: zeros",
      { rows },
      1e-5,
      X "p = pad(x, i64{0,1,0,0,0,0,0,0})\nq = slice(p, i64{0}, i64{4}, i64{1})\ny = "
        "neg(q)\noutput y = y\n",
      { { "gather", 0 }, { "pad", 1 } } },
    { "no gather: overlapping parts are added",
      { rows },
      1e-5,
      X
      "a = slice(x, i64{0}, i64{3}, i64{1})\nb = slice(x, i64{2}, i64{4}, i64{1})\n"
      "c = slice_grad(x, i64{1}, i64{9}, i64{1}, -, a)\n"
      "d = slice_grad(x, i64{0}, i64{2}, i64{1}, -, b)\ne = add(c, d)\ny = neg(e)\noutput y = y\n",
      { { "gather", 0 }, { "slice_grad", 2 } } },
    { "no gather: rows are cut",
      { rows },
      1e-5,
      X "a = slice(x, i64{0}, i64{1}, i64{3})\nb = slice(x, i64{1}, i64{3}, i64{3})\n"
        "c = concat(b, a) axis=3\ny = neg(c)\noutput y = y\n",
      { { "gather", 0 }, { "concat", 1 } } },
    { "no gather: channels of images are shuffled",
      { rows },
      0,
      "input z f32[2,6,4,4]\nx = neg(z)\na = reshape(x, i64{2,2,3,4,4})\nb = transpose(a) "
      "perm=0,2,1,3,4\nc = reshape(b, i64{2,6,4,4})\ny = neg(c)\noutput y = y\n",
      { { "gather", 0 }, { "transpose", 1 } } },
    { "no gather: two values",
      { rows },
      1e-5,
      X "u = abs(z)\na = slice(x, i64{0}, i64{2}, i64{1})\nb = slice(u, i64{1}, i64{3}, i64{1})\n"
        "c = concat(b, a) axis=1\ny = neg(c)\noutput y = y\n",
      { { "gather", 0 }, { "concat", 1 } } },
    { "no gather: heads, which what makes them may turn",
      { rows },
      1e-5,
      "input z f32[2,3,4,5]\nparam zm f32[5,5]\nx = matmul(z, zm)\nt = transpose(x) "
      "perm=0,2,1,3\nr = reshape(t, "
      "i64{2,4,15})\ny = neg(r)\noutput y = y\n",
      { { "gather", 0 }, { "transpose", 1 } } },
    { "one gather from windows to shifted ones, and back",
      { rows },
      1e-5,
      X PARAMS WINDOWS("a", "x") LAYER("a", "aw")
          IMAGE("a", "ay") "r = add(x, ai)\n"
                           "n = layer_norm(r, s, c) axis=3\n" ROLL("b", "n") WINDOWS("b", "br")
                               LAYER("b", "bw") IMAGE("b", "by")
                                   UNROLL("b", "bi") "g = add(bu, r)\n"
                                                     "h = layer_norm(g, s, c) axis=-1\ny = "
                                                     "reduce_max(h, i64{1})\noutput y = y\n",
      { { "gather", 3 }, { "concat", 0 }, { "transpose", 0 } } },
    { "a narrow stream",
      { rows },
      3e-2,
      X PARAMS WINDOWS(
          "a", "x") "al = cast(aw) to=bf16\nk = cast(m) to=bf16\nao = matmul(al, "
                    "k)\nay = cast(ao) to=f32\n" IMAGE(
                        "a",
                        "ay") "r = add(x, ai)\n"
                              "n = layer_norm(r, s, c) axis=3\n" WINDOWS("b", "n") LAYER("b", "bw")
                                  IMAGE("b", "by") "g = add(bi, r)\ny = tanh(g)\noutput y = y\n",
      { { "gather", 2 }, { "transpose", 0 } } },
    { "a cast after a norm joins it before the move",
      { rows, norms },
      3e-2,
      X PARAMS "n = layer_norm(x, s, c) axis=-1\nf = cast(n) to=bf16\n" ROLL("b", "f")
          WINDOWS("b", "br") "k = cast(m) to=bf16\nl = matmul(bw, k)\ny = cast(l) to=f32\n"
                             "output y = y\n",
      { { "gather", 1 }, { "cast", 2 }, { "concat", 0 } } },
    { "what was widened is moved while it is narrow",
      { rows, norms },
      3e-2,
      X PARAMS "xn = cast(x) to=bf16\nk = cast(m) to=bf16\nq = matmul(xn, k)\nqw = cast(q) to=f32\n"
               "n = layer_norm(qw, s, c) axis=-1\nf = cast(n) to=bf16\n" ROLL("b", "f")
                   WINDOWS("b", "br") "l = matmul(bw, k)\n" IMAGE("b", "l")
                       UNROLL("b", "bi") "d = add(bu, q)\ne = tanh(d)\ny = cast(e) to=f32\n"
                                         "output y = y\n",
      { { "gather", 2 }, { "cast", 3 }, { "concat", 0 } } },
    { "an order that others read stays",
      { rows },
      1e-5,
      X PARAMS ROLL("a", "x") "n = layer_norm(ar, s, c) axis=3\ny = softmax(n) axis=1\n"
                              "output y = y\noutput n = n\n",
      { { "gather", 1 }, { "layer_norm", 1 } } },
};

static void structure(void **state) {
    (void)state;
    check_structure(forms, sizeof forms / sizeof *forms);
}

static void results(void **state) {
    (void)state;
    check_results(forms, sizeof forms / sizeof *forms);
}

/* ---- gradients ---- */

static fac_value *roll(fac_value *x, int axis, int64_t by) {
    const int64_t n = fac_value_type(x).dims.d[axis];
    fac_value *parts[] = { fac_slice(x, axis, by, n, 1), fac_slice(x, axis, 0, by, 1) };
    return fac_concat(parts, 2, axis);
}

/* A layer of windows of 2 x 2 in images of 4 x 4 with twelve channels, shifted by one or not. */
static fac_value *layer(fac_value *x, fac_value *scale, fac_value *w, bool shifted) {
    fac_value *v = fac_layer_norm(x, scale, NULL, -1, 1e-5);
    if (shifted) v = roll(roll(v, 1, 1), 2, 1);
    v = fac_transpose(fac_reshape(v, fac_shape(2, 2, 2, 2, 2, 12)), fac_shape(0, 1, 3, 2, 4, 5));
    v = fac_reshape(v, fac_shape(8, 4, 12));
    fac_value *y =
        fac_matmul(fac_softmax(fac_matmul(v, fac_transpose(v, fac_shape(0, 2, 1))), -1), v);
    y = fac_reshape(fac_matmul(y, w), fac_shape(2, 2, 2, 2, 2, 12));
    y = fac_reshape(fac_transpose(y, fac_shape(0, 1, 3, 2, 4, 5)), fac_shape(2, 4, 4, 12));
    return fac_add(x, shifted ? roll(roll(y, 1, 3), 2, 3) : y);
}

static void gradients(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F64, fac_shape(2, 4, 4, 12)),
              *s = fac_input(g, "s", FAC_F64, fac_shape(12)),
              *w = fac_input(g, "w", FAC_F64, fac_shape(12, 12)), *d[3];
    fac_value *y = layer(layer(x, s, w, false), s, w, true);
    fac_value *wrt[] = { x, s, w };
    fac_grad(fac_sum(fac_sin(y), (fac_dims){ 0 }, false), 3, wrt, d);
    fac_output(g, "y", y);
    for (int i = 0; i < 3; i++) fac_output(g, (const char *[]){ "dx", "ds", "dw" }[i], d[i]);
    assert_int_equal(fac_graph_check(g, &err), FAC_OK);
    check_graph_on("cpu", g, 1e-10, "gradients of windows");
    check_graph_on("opencl", g, 1e-10, "gradients of windows");
    fac_graph *after = fac_pass_row_order(g);
    assert_int_equal(fac_graph_check(after, &err), FAC_OK);
    assert_int_equal(count(after, "concat"), 0);
    assert_int_equal(count(after, "slice_grad"), 0);
    fac_graph_free(after);
    fac_graph_free(g);
}

/* ---- sizes ---- */

static int gathers_of_rolled(int64_t rows) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(rows, 1, 2));
    fac_output(g, "y", fac_layer_norm(roll(x, 0, 7), NULL, NULL, -1, 1e-5));
    fac_graph *after = fac_pass_row_order(g);
    assert_int_equal(fac_graph_check(after, &err), FAC_OK);
    const int n = count(after, "gather");
    fac_graph_free(after);
    fac_graph_free(g);
    return n;
}

/* Planning goes through all rows of each op: of a million it would take long, and much memory. */
static void many_rows_stay_as_they_are(void **state) {
    (void)state;
    assert_int_equal(gathers_of_rolled(1 << 17), 1);
    assert_int_equal(gathers_of_rolled(1 << 20), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(structure), cmocka_unit_test(results),
                                        cmocka_unit_test(gradients),
                                        cmocka_unit_test(many_rows_stay_as_they_are) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
