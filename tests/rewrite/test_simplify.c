/* Simplifying models: each rewrite happens where it may, and not where it may not; the function
 * stays. */
#include "edit_check.h"

typedef struct sample {
    const char *what;
    int nodes;                /* that are left; -1: those that there were */
    const char *there, *gone; /* ops, or NULL */
    const char *text; /* a graph; its parameters are filled with numbers where "f" comes first, else
                         zeros */
} sample;

static void check(const sample *s) {
    fac_graph *g = graph_of(s->text + (*s->text == 'f')), *out = NULL;
    if (*s->text == 'f') fill_params(g);
    OK(fac_graph_simplified(g, &out, &err));
    const int want = s->nodes < 0 ? g->nodes : s->nodes;
    char *text = text_of(out);
    if (out->nodes != want)
        fail_msg("%s: %d nodes instead of %d:\n%s", s->what, out->nodes, want, text);
    if (s->there && !count_op(out, s->there)) fail_msg("%s: no %s:\n%s", s->what, s->there, text);
    if (s->gone && count_op(out, s->gone))
        fail_msg("%s: %s is still there:\n%s", s->what, s->gone, text);
    free(text);
    assert_same(g, out);
    fac_graph_free(out);
    fac_graph_free(g);
}

#define CHECK(cases)                                                                               \
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) check(&cases[k])

#define NORM "param s f32[4]\nparam t f32[4]\nparam m f32[4]\nparam r f32[4]\n"

static void absorbed(void **state) {
    (void)state;
    static const sample cases[] = {
        { "a norm after a convolution", 1, "conv2d", "batch_norm",
          "finput x f32[N,3,9,9]\nparam w f32[4,3,3,3]\n" NORM
          "c = conv2d(x, w)\ny = batch_norm(c, s, t, m, r)\noutput y = y\n" },
        { "and one with a bias, in groups", 1, "conv1d", "batch_norm",
          "finput x f32[N,2,9]\nparam w f32[4,1,3]\n"
          "param b f32[4]\n" NORM
          "c = conv1d(x, w, b) groups=2 stride=2\ny = batch_norm(c, s, t, m, r)\noutput y = y\n" },
        { "after a transposed one", 1, "conv_transpose2d", "batch_norm",
          "finput x f32[1,3,5,5]\nparam w f32[3,4,2,2]\n" NORM
          "c = conv_transpose2d(x, w) stride=2,2\ny = batch_norm(c, s, t, m, r)\noutput y = y\n" },
        { "a transposed one in groups keeps it", -1, "batch_norm", NULL,
          "finput x f32[1,2,5,5]\nparam w f32[2,2,2,2]\n" NORM
          "c = conv_transpose2d(x, w) groups=2\ny = batch_norm(c, s, t, m, r)\noutput y = y\n" },
        { "after a Gemm", 1, "gemm", "batch_norm",
          "finput x f32[N,3]\nparam w f32[4,3]\nparam b f32[4]\n" NORM
          "c = gemm(x, w, b) trans_b\ny = batch_norm(c, s, t, m, r)\noutput y = y\n" },
        { "a result that others read", -1, "batch_norm", NULL,
          "finput x f32[1,3,9,9]\nparam w f32[4,3,3,3]\n" NORM
          "c = conv2d(x, w)\ny = batch_norm(c, s, t, m, r)\noutput y = y\noutput z = c\n" },
        { "weights that come from outside", -1, "batch_norm", NULL,
          "finput x f32[1,3,9,9]\ninput w f32[4,3,3,3]\n" NORM
          "c = conv2d(x, w)\ny = batch_norm(c, s, t, m, r)\noutput y = y\n" },
        { "a norm without a convolution", -1, "batch_norm", NULL,
          "finput x f32[1,4,9,9]\n" NORM "y = batch_norm(x, s, t, m, r)\noutput y = y\n" },
        { "a factor and a summand by channel", 1, "conv2d", NULL,
          "finput x f32[1,3,9,9]\nparam w f32[4,3,3,3]\n"
          "param a f32[4,1,1]\nparam b f32[1,4,1,1]\nc = conv2d(x, w)\nd = mul(a, c)\ny = add(d, "
          "b)\noutput y = y\n" },
        { "one number for all, taken away and divided by", 1, "conv2d", NULL,
          "finput x f32[1,3,9,9]\nparam w f32[4,3,3,3]\n"
          "c = conv2d(x, w)\nd = div(c, 0.5)\ny = sub(d, 3)\noutput y = y\n" },
        { "a number less a convolution", -1, "sub", NULL,
          "finput x f32[1,3,9,9]\nparam w f32[4,3,3,3]\nparam b f32[4]\n"
          "c = conv2d(x, w, b)\ny = sub(f32(3), c)\noutput y = y\n" },
        { "a factor by row of the image", -1, "mul", NULL,
          "finput x f32[1,3,6,6]\nparam w f32[4,3,3,3]\nparam a f32[4,1]\n"
          "c = conv2d(x, w)\ny = mul(c, a)\noutput y = y\n" },
        { "a factor after a product", 1, "matmul", "mul",
          "finput x f32[2,5,3]\nparam w f32[3,4]\nparam a f32[4]\n"
          "c = matmul(x, w)\ny = mul(c, a)\noutput y = y\n" },
        { "zeros around the image", 1, "conv2d", "pad",
          "finput x f32[1,3,6,6]\nparam w f32[4,3,3,3]\n"
          "p = pad(x, i64{0,0,1,0,0,0,1,2})\ny = conv2d(p, w) pad=0,1,0,0\noutput y = y\n" },
        { "another number around it", -1, "pad", NULL,
          "finput x f32[1,3,6,6]\nparam w f32[4,3,3,3]\n"
          "p = pad(x, i64{0,0,1,0,0,0,1,2}, 1)\ny = conv2d(p, w)\noutput y = y\n" },
        { "more channels of zeros", -1, "pad", NULL,
          "finput x f32[1,2,6,6]\nparam w f32[4,3,3,3]\n"
          "p = pad(x, i64{0,1,0,0,0,0,0,0})\ny = conv2d(p, w)\noutput y = y\n" },
        { "mirrored edges", -1, "pad", NULL,
          "finput x f32[1,3,6,6]\nparam w f32[4,3,3,3]\n"
          "p = pad(x, i64{0,0,1,1,0,0,1,1}) mode=reflect\ny = conv2d(p, w)\noutput y = y\n" }
    };
    CHECK(cases);
}

static void neutral(void **state) {
    (void)state;
    /* wide enough that a relu does not give zeros alone */
    static const sample cases[] = {
        { "zeros are added", 1, "relu", "add",
          "input x f32[N,64]\nparam b f32[64]\na = add(x, b)\ns = sub(a, b)\ny = relu(s)\n"
          "output y = y\n" },
        { "other numbers are added", -1, "add", NULL,
          "finput x f32[N,4]\nparam b f32[4]\ny = add(x, b)\noutput y = y\n" },
        { "zeros that make the result larger", -1, "add", NULL,
          "input x f32[4]\nparam b f32[3,4]\ny = add(x, b)\n"
          "output y = y\n" },
        { "zeros from which something is taken", -1, "sub", NULL,
          "input x f32[4]\nparam b f32[4]\ny = sub(b, x)\n"
          "output y = y\n" },
        { "factors, divisors and exponents of one", 1, "relu", "mul",
          "input x f32[N,64]\na = mul(x, 1)\nb = div(a, 1)\n"
          "c = pow(b, 1)\ny = relu(c)\noutput y = y\n" },
        { "one by x", -1, "div", NULL,
          "input x f32[N,4]\na = exp(x)\ny = div(f32(1), a)\noutput y = y\n" },
        { "a slice of everything, a pad of nothing", 1, "relu", NULL,
          "input x f32[3,40]\n"
          "a = slice(x, i64{0}, i64{99}, i64{1})\nb = pad(a, i64{0,0,0,0})\n"
          "y = relu(b)\noutput y = y\n" },
        { "a slice backwards", -1, "slice", NULL,
          "input x f32[3,40]\n"
          "a = slice(x, i64{-1}, i64{-9}, i64{1}, i64{-1})\ny = relu(a)\noutput y = y\n" },
        { "a pad that takes away as much as it adds", -1, "pad", NULL,
          "input x f32[3,40]\nb = pad(x, i64{0,1,0,-1})\n"
          "y = relu(b)\n"
          "output y = y\n" },
        { "minus minus, relu of what is not negative", 1, "relu", "neg",
          "input x f32[64]\na = neg(x)\nb = neg(a)\nc = relu(b)\n"
          "y = relu(c)\noutput y = y\n" },
        { "an expand before a sum", 1, "add", "expand",
          "input x f32[4]\ninput z f32[3,4]\na = expand(x, i64{3,4})\n"
          "y = add(a, z)\n"
          "output y = y\n" },
        { "an expand that the sum needs", -1, "expand", NULL,
          "input x f32[4]\ninput z f32[4]\na = expand(x, i64{3,4})\n"
          "y = add(a, z)\noutput y = y\n" },
        { "one piece, and a piece of nothing", 1, "relu", "concat",
          "input x f32[3,40]\nparam e f32[0,40]\n"
          "a = concat(x, e) axis=0\n"
          "b = concat(a) axis=1\ny = relu(b)\noutput y = y\n" }
    };
    CHECK(cases);
}

static void shapes(void **state) {
    (void)state;
    static const sample cases[] = {
        { "a chain", 1, "reshape", "unsqueeze",
          "input x f32[2,3,4]\na = reshape(x, i64{6,4})\nb = unsqueeze(a, i64{0})\n"
          "c = flatten(b) axis=2\ny = squeeze(c, i64{})\noutput y = y\n" },
        { "there and back", 1, "relu", "reshape",
          "input x f32[2,3,4]\na = reshape(x, i64{6,4})\nb = reshape(a, i64{2,3,4})\n"
          "y = relu(b)\noutput y = y\n" },
        { "a batch of open size", 1, "reshape", "shape",
          "input x f32[N,3,4]\ns = shape(x)\nn = gather(s, i64{0}) axis=0\n"
          "l = concat(n, i64{12}) axis=0\ny = reshape(x, l)\noutput y = y\n" },
        { "an open size and a factor of it", 3, "reshape", "shape",
          "input x f32[N,4,6]\na = reshape(x, i64{-1,6})\nr = exp(a)\n"
          "s = shape(x)\ny = reshape(r, s)\noutput y = y\noutput z = r\n" },
        { "two open sizes that move", -1, "reshape", NULL,
          "input x f32[N,T,4]\ns = shape(x)\na = gather(s, i64{1,0}) axis=0\n"
          "l = concat(a, i64{4}) axis=0\ny = reshape(x, l)\noutput y = y\n" },
        { "a softmax of flattened dims", 1, "softmax", "flatten",
          "input x f32[2,5,1,1]\na = flatten(x) axis=1\n"
          "s = softmax(a) axis=1\ny = reshape(s, i64{2,5,1,1})\noutput y = y\n" },
        { "a softmax over two dims", -1, "softmax", NULL,
          "input x f32[2,5,3]\na = flatten(x) axis=1\ns = softmax(a) axis=1\n"
          "y = reshape(s, i64{2,5,3})\noutput y = y\n" },
        { "transposing a dim of one", 1, "reshape", "transpose",
          "input x f32[2,1,3,4]\na = transpose(x) perm=0,2,3,1\n"
          "y = reshape(a, i64{6,4})\noutput y = y\n" },
        { "transposing others", -1, "transpose", NULL,
          "input x f32[2,2,3,4]\na = transpose(x) perm=0,2,3,1\n"
          "y = reshape(a, i64{12,4})\noutput y = y\n" }
    };
    CHECK(cases);
}

static void movers(void **state) {
    (void)state;
    static const sample cases[] = {
        { "two transposes", 1, "transpose", NULL,
          "input x f32[2,3,4]\na = transpose(x) perm=1,0,2\ny = transpose(a) perm=2,1,0\n"
          "output y = y\n" },
        { "three that cancel", 1, "relu", "transpose",
          "input x f32[2,3,4]\na = transpose(x)\nb = transpose(a) perm=0,1,2\n"
          "c = transpose(b)\ny = relu(c)\noutput y = y\n" },
        { "a cast that loses nothing", 1, "cast", NULL,
          "input x f32[4]\na = cast(x) to=f64\ny = cast(a) to=f16\n"
          "output y = y\n" },
        { "a cast that rounds", -1, "cast", NULL,
          "input x f32[4]\na = cast(x) to=f16\ny = cast(a) to=f32\noutput y = y\n" },
        { "slices along two axes", 1, "slice", NULL,
          "input x f32[5,6]\na = slice(x, i64{1}, i64{4}, i64{0})\n"
          "y = slice(a, i64{0}, i64{6}, i64{-1}, i64{2})\noutput y = y\n" },
        { "several of one", 2, "slice", NULL,
          "input x f32[5,6]\na = slice(x, i64{1}, i64{4}, i64{0})\n"
          "y = slice(a, i64{0}, i64{6}, i64{1}, i64{2})\nz = slice(a, i64{1}, i64{6}, i64{1}, "
          "i64{2})\n"
          "output y = y\noutput z = z\n" },
        { "one that others read", -1, "slice", NULL,
          "input x f32[5,6]\na = slice(x, i64{1}, i64{4}, i64{0})\n"
          "y = slice(a, i64{0}, i64{6}, i64{1}, i64{2})\nz = relu(a)\noutput y = y\noutput z = "
          "z\n" },
        { "slices along one axis", -1, "slice", NULL,
          "input x f32[5,6]\na = slice(x, i64{1}, i64{4}, i64{0})\n"
          "y = slice(a, i64{1}, i64{2}, i64{0})\noutput y = y\n" },
        { "concats in concats", 1, "concat", NULL,
          "input x f32[2,3]\ninput z f32[2,3]\na = concat(x, z) axis=1\n"
          "y = concat(z, a, x) axis=-1\noutput y = y\n" },
        { "along another axis", -1, "concat", NULL,
          "input x f32[2,3]\ninput z f32[2,3]\na = concat(x, z) axis=0\n"
          "y = concat(a, a) axis=1\noutput y = y\n" }
    };
    CHECK(cases);
}

static void products(void **state) {
    (void)state;
#define QKV "finput x f32[2,5,8]\nparam wq f32[8,6]\nparam wk f32[8,6]\nparam wv f32[8,4]\n"
    static const sample cases[] = {
        { "rows and a bias", 1, "gemm", "matmul",
          "finput x f32[N,8]\nparam w f32[8,6]\nparam b f32[6]\nm = matmul(x, w)\n"
          "y = add(b, m)\noutput y = y\n" },
        { "a bias of two dims", 1, "gemm", "matmul",
          "finput x f32[N,8]\nparam w f32[8,6]\nparam b f32[1,6]\n"
          "m = matmul(x, w)\ny = add(m, b)\noutput y = y\n" },
        { "integers", -1, "matmul", "gemm",
          "input x i32[2,3]\nm = matmul(x, i32{1,2,3})\ny = add(m, 1)\noutput y = y\n" },
        { "a bias by row", -1, "matmul", "gemm",
          "finput x f32[6,8]\nparam w f32[8,6]\nparam b f32[6,1]\nm = matmul(x, w)\n"
          "y = add(b, m)\noutput y = y\n" },
        { "three of one value", 2, "split", "concat",
          QKV "a = matmul(x, wq)\nb = matmul(x, wk)\nc = matmul(x, wv)\n"
              "output a = a\n"
              "output b = b\noutput c = c\n" },
        { "two with biases", 3, "split", "concat",
          QKV "param bq f32[6]\nparam bv f32[4]\na = matmul(x, wq)\nc = matmul(x, wv)\n"
              "d = add(a, bq)\ne = add(bv, c)\noutput d = d\noutput e = e\n" },
        { "two without: as many nodes", -1, "matmul", "split",
          QKV "a = matmul(x, wq)\nb = matmul(x, wk)\noutput a = a\n"
              "output b = b\n" },
        { "weights that serve twice", -1, "matmul", "split",
          QKV "a = matmul(x, wq)\nb = matmul(x, wk)\nz = relu(x)\n"
              "c = matmul(z, wk)\nd = matmul(z, wq)\noutput a = a\noutput b = b\noutput c = "
              "c\noutput d = d\n" },
        { "a linear layer of three dims", 2, "matmul", "linear",
          "finput x f32[2,5,8]\nparam w f32[6,8]\nparam b f32[6]\n"
          "y = linear(x, w, b)\noutput y = y\n" }
    };
    CHECK(cases);
}

/* Everything at once, again: what is simple stays as it is. */
static void once(void **state) {
    (void)state;
    fac_graph *g = graph_of(
        "input x f32[N,3,8,8]\nparam w f32[4,3,3,3]\n" NORM
        "c = conv2d(x, w) pad=1,1,1,1\nb = batch_norm(c, s, t, m, r)\na = relu(b)\ns0 = shape(a)\n"
        "n = gather(s0, i64{0}) axis=0\nl = concat(n, i64{-1}) axis=0\nf = reshape(a, l)\noutput y "
        "= f\n");
    fac_graph *a = NULL, *b = NULL;
    OK(fac_graph_simplified(g, &a, &err));
    OK(fac_graph_simplified(a, &b, &err));
    char *first = text_of(a), *second = text_of(b);
    assert_string_equal(first, second);
    assert_int_equal(a->nodes, 3);
    free(first);
    free(second);
    fac_graph_free(b);
    fac_graph_free(a);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(absorbed), cmocka_unit_test(neutral),
                                        cmocka_unit_test(shapes),   cmocka_unit_test(movers),
                                        cmocka_unit_test(products), cmocka_unit_test(once) };
    return cmocka_run_group_tests_name("simplify", tests, open_device, close_device);
}
