/* What passes make of the ways in which exporters write transformers: which ops are left, and that
 * results stay. */
#include "pass_forms.h"

/* Takes whatever a pass offers. */
static bool take(void *self, const fac_node *n) {
    (void)self, (void)n;
    return true;
}

static fac_graph *gelu(const fac_graph *g) { return fac_pass_gelu(g); }
static fac_graph *attention(const fac_graph *g) { return fac_pass_attention(g, take, NULL); }
static fac_graph *slices(const fac_graph *g) { return fac_pass_gather_slices(g); }
static fac_graph *sink(const fac_graph *g) { return fac_pass_sink_views(g); }
static fac_graph *transposes(const fac_graph *g) { return fac_pass_sink_transposes(g); }
static fac_graph *epilogue(const fac_graph *g) { return fac_pass_epilogue(g, take, NULL); }
static fac_graph *products(const fac_graph *g) { return fac_pass_sibling_products(g, take, NULL); }
static fac_graph *norms(const fac_graph *g) { return fac_pass_norm_casts(g, take, NULL); }
static fac_graph *decoding(const fac_graph *g) { return fac_pass_decoding(g, take, NULL); }
static fac_graph *chains(const fac_graph *g) { return fac_pass_chains(g); }

#define ATTENTION(scores, weights)                                                                 \
    "input q f32[2,3,9,8]\ninput k f32[2,3,8,21]\ninput v f32[2,3,21,5]\n"                         \
    "s0 = matmul(q, k)\n" scores "w0 = softmax(s) axis=-1\n" weights                               \
    "y = matmul(w, v)\noutput y = y\n"
#define NARROW_ATTENTION(scores)                                                                   \
    "input q f32[2,3,9,8]\ninput k f32[2,3,8,21]\ninput v f32[2,3,21,5]\n"                         \
    "a = cast(q) to=bf16\nb = cast(k) to=bf16\nc = cast(v) to=bf16\ns0 = matmul(a, b)\n" scores    \
    "w0 = softmax(s) axis=-1\nw = cast(w0) to=bf16\nz = matmul(w, c)\ny = cast(z) to=f32\noutput " \
    "y = y\n"
/* Scores of six windows of two images in bf16 or f32, with a table of each head and a mask of each
 * window. */
#define WINDOWS(mask, sum)                                                                         \
    "input q f32[6,2,4,3]\ninput k f32[6,2,3,5]\ninput v f32[6,2,5,2]\nparam t f32[1,2,4,5]\n"     \
    "input m f32" mask "\ns0 = matmul(q, k)\na = add(s0, t)\n" sum                                 \
    "w = softmax(s) axis=-1\ny = matmul(w, v)\noutput y = y\n"
#define HEADS(name, from)                                                                          \
    "r" name " = reshape(" from ", i64{2,7,3,4})\nt" name " = transpose(r" name ") perm=0,2,1,3\n"
#define PROJECTIONS(one, other, third)                                                             \
    "input x f32[2,7,12]\nparam u f32[12,12]\nparam v f32[12,12]\nparam w f32[12,12]\nparam e "    \
    "f32[12]\nparam f f32[12]\n"                                                                   \
    "a = matmul(x, u)\nb = matmul(x, v)\nc = matmul(x, w)\n" one other third HEADS("q", "q")       \
        HEADS("k", "k") HEADS("v", "c2") "y = attention(tq, tk, tv)\noutput y = y\n"

#define TRANSPOSED                                                                                 \
    "input x f32[2,3,4,5]\nparam w f32[5,6]\np = matmul(x, w)\nt = transpose(p) perm=0,3,1,2\n"

static const form forms[] = {
    { "gelu, half last",
      { gelu },
      1e-6,
      "input x f32[3,37]\nd = div(x, 1.4142135)\ne = erf(d)\na = add(e, 1)\nm = mul(x, a)\ny = "
      "mul(m, 0.5)\noutput y = y\n",
      { { "gelu", 1 }, { "erf", 0 } } },
    { "gelu, half at x",
      { gelu },
      1e-6,
      "input x f32[3,37]\nh = mul(0.5, x)\nd = mul(0.70710677, x)\ne = erf(d)\na = add(1, e)\ny = "
      "mul(a, h)\noutput y = y\n",
      { { "gelu", 1 }, { "erf", 0 } } },
    { "gelu, half at the bell",
      { gelu },
      1e-6,
      "input x f32[3,37]\nd = div(x, 1.4142135)\ne = erf(d)\na = add(e, 1)\nh = mul(a, 0.5)\ny = "
      "mul(x, h)\noutput y = y\n",
      { { "gelu", 1 }, { "erf", 0 } } },
    { "gelu by tanh",
      { gelu },
      1e-6,
      "input x f32[3,37]\nc = pow(x, 3)\nt = mul(0.044715, c)\ni = add(x, t)\ns = mul(0.7978846, "
      "i)\n"
      "h = tanh(s)\na = add(1, h)\nm = mul(0.5, x)\ny = mul(m, a)\noutput y = y\n",
      { { "gelu_tanh", 1 }, { "tanh", 0 } } },
    { "gelu by tanh of x x x",
      { gelu },
      1e-6,
      "input x f32[3,37]\nq = mul(x, x)\nc = mul(q, x)\nt = mul(0.044715, c)\ni = add(x, t)\n"
      "s = mul(0.7978846, i)\nh = tanh(s)\na = add(1, h)\nm = mul(0.5, x)\ny = mul(m, a)\noutput y "
      "= y\n",
      { { "gelu_tanh", 1 }, { "tanh", 0 } } },
    { "no gelu by tanh: a square",
      { gelu },
      1e-6,
      "input x f32[3,37]\nc = pow(x, 2)\nt = mul(0.044715, c)\ni = add(x, t)\ns = mul(0.7978846, "
      "i)\n"
      "h = tanh(s)\na = add(1, h)\nm = mul(0.5, x)\ny = mul(m, a)\noutput y = y\n",
      { { "gelu_tanh", 0 }, { "tanh", 1 } } },
    { "no gelu: another number",
      { gelu },
      1e-6,
      "input x f32[3,37]\nd = div(x, 1.4143)\ne = erf(d)\na = add(e, 1)\nm = mul(x, a)\ny = mul(m, "
      "0.5)\noutput y = y\n",
      { { "gelu", 0 }, { "erf", 1 } } },
    { "no gelu: erf is read elsewhere",
      { gelu },
      1e-6,
      "input x f32[3,37]\nd = div(x, 1.4142135)\ne = erf(d)\na = add(e, 1)\nm = mul(x, a)\ny = "
      "mul(m, 0.5)\noutput y = y\noutput e = e\n",
      { { "gelu", 0 }, { "erf", 1 } } },
    { "no gelu: x of the product is another",
      { gelu },
      1e-6,
      "input x f32[3,37]\ninput z f32[3,37]\nd = div(x, 1.4142135)\ne = erf(d)\na = add(e, 1)\nm = "
      "mul(z, a)\ny = mul(m, 0.5)\noutput y = y\n",
      { { "gelu", 0 }, { "erf", 1 } } },
    { "attention in a guard",
      { attention },
      1e-5,
      ATTENTION("s = mul(s0, 0.3)\n", "n = isnan(w0)\nw = where(n, f32(0), w0)\n"),
      { { "attention", 1 }, { "isnan", 0 } } },
    { "no attention: the guard is of another value",
      { attention },
      1e-5,
      ATTENTION("s = mul(s0, 0.3)\n", "n = isnan(s)\nw = where(n, f32(0), w0)\n"),
      { { "attention", 0 } } },
    { "no attention: the guard gives another number",
      { attention },
      1e-5,
      ATTENTION("s = mul(s0, 0.3)\n", "n = isnan(w0)\nw = where(n, f32(1), w0)\n"),
      { { "attention", 0 } } },
    { "attention with a mask of zeros",
      { attention },
      1e-5,
      "const m f32[1,1,1,3]{0,0,0}\n"
      "input q f32[1,1,9,4]\ninput k f32[1,1,4,3]\ninput v f32[1,1,3,4]\ns0 = matmul(q, k)\ns = "
      "add(s0, m)\n"
      "w = softmax(s) axis=-1\ny = matmul(w, v)\noutput y = y\n",
      { { "attention", 1 }, { "add", 0 } } },
    { "attention through casts",
      { attention },
      3e-2,
      NARROW_ATTENTION("s1 = cast(s0) to=f32\ns = mul(s1, 0.3)\n"),
      { { "attention", 1 }, { "softmax", 0 } } },
    { "attention through casts, factors first",
      { attention },
      3e-2,
      NARROW_ATTENTION("s1 = mul(s0, bf16(0.5))\ns = cast(s1) to=f32\n"),
      { { "attention", 1 }, { "softmax", 0 } } },
    { "attention of windows",
      { attention },
      1e-5,
      WINDOWS("[1,3,1,4,5]",
              "r = reshape(a, i64{2,3,2,4,5})\nb = add(r, m)\ns = reshape(b, i64{6,2,4,5})\n"),
      { { "attention", 1 }, { "softmax", 0 }, { "add", 1 } } },
    { "attention of windows, masks of each image",
      { attention },
      1e-5,
      WINDOWS("[2,3,2,4,5]",
              "r = reshape(a, i64{2,3,2,4,5})\nb = add(m, r)\ns = reshape(b, i64{6,2,4,5})\n"),
      { { "attention", 1 }, { "softmax", 0 }, { "add", 1 } } },
    { "attention of the windows of one image",
      { attention },
      1e-5,
      WINDOWS("[1,6,1,4,5]",
              "r = reshape(a, i64{1,6,2,4,5})\nb = add(r, m)\ns = reshape(b, i64{6,2,4,5})\n"),
      { { "attention", 1 }, { "softmax", 0 }, { "add", 1 } } },
    { "attention with two masks",
      { attention },
      1e-5,
      WINDOWS("[6,1,1,5]", "s = add(a, m)\n"),
      { { "attention", 1 }, { "softmax", 0 }, { "add", 1 } } },
    { "attention with masks of windows and of sequences",
      { attention },
      1e-5,
      WINDOWS(
          "[1,3,1,4,5]",
          "c = reshape(m, i64{3,1,4,5})\ne = concat(c, c) axis=0\nf = add(a, e)\nr = reshape(f, "
          "i64{2,3,2,4,5})\nb = add(r, m)\ns = reshape(b, i64{6,2,4,5})\n"),
      { { "attention", 1 }, { "softmax", 0 }, { "add", 2 } } },
    { "narrow attention of windows",
      { attention },
      3e-2,
      "input q f32[6,2,4,3]\ninput k f32[6,2,3,5]\ninput v f32[6,2,5,2]\nparam t f32[1,2,4,5]\n"
      "input m f32[1,3,1,4,5]\nqn = cast(q) to=bf16\nkn = cast(k) to=bf16\nvn = cast(v) to=bf16\n"
      "tn = cast(t) to=bf16\ns0 = matmul(qn, kn)\na = add(s0, tn)\nr = reshape(a, i64{2,3,2,4,5})\n"
      "c = cast(r) to=f32\nb = add(c, m)\ns = reshape(b, i64{6,2,4,5})\nw = softmax(s) axis=-1\n"
      "wn = cast(w) to=bf16\nz = matmul(wn, vn)\ny = cast(z) to=f32\noutput y = y\n",
      { { "attention", 1 }, { "softmax", 0 } } },
    { "no attention: other dims are regrouped",
      { attention },
      1e-5,
      WINDOWS("[1,1,1,1,5]",
              "r = reshape(a, i64{6,2,2,2,5})\nb = add(r, m)\ns = reshape(b, i64{6,2,4,5})\n"),
      { { "attention", 0 }, { "softmax", 1 } } },
    { "no attention: masked scores are read elsewhere",
      { attention },
      1e-5,
      WINDOWS("[6,1,1,5]", "s = add(a, m)\noutput s = s\n"),
      { { "attention", 0 }, { "softmax", 1 } } },
    { "gathers of one place",
      { slices },
      0,
      "input x f32[3,5,4]\na = neg(x)\nu = gather(a, i64(1))\nw = gather(a, i64{-1}) "
      "axis=1\noutput u = u\noutput w = w\n",
      { { "gather", 0 }, { "slice", 2 } } },
    { "a gather of two places",
      { slices },
      0,
      "input x f32[3,5,4]\na = neg(x)\nu = gather(a, i64{1,2})\noutput u = u\n",
      { { "gather", 1 }, { "slice", 0 } } },
    { "add after views of a product",
      { sink, epilogue },
      1e-5,
      "input x f32[7,5]\nparam w f32[5,6]\ninput r f32[1,7,6]\nz = neg(r)\np = matmul(x, w)\na = "
      "reshape(p, i64{7,1,6})\n"
      "b = transpose(a) perm=1,0,2\ny = add(b, z)\noutput y = y\n",
      { { "add", 0 } } },
    { "bias after views of a product",
      { sink, epilogue },
      1e-5,
      "input x f32[7,5]\nparam w f32[5,6]\nparam c f32[6]\np = matmul(x, w)\na = reshape(p, "
      "i64{1,7,6})\ny = add(a, c)\noutput y = y\n",
      { { "add", 0 } } },
    { "bias, cast and add after views of a narrow product",
      { sink, epilogue },
      3e-2,
      "input x f32[7,5]\nparam w f32[5,6]\nparam c f32[6]\ninput r f32[1,7,6]\nz = neg(r)\n"
      "xn = cast(x) to=bf16\nwn = cast(w) to=bf16\ncn = cast(c) to=bf16\np = matmul(xn, wn)\n"
      "a = reshape(p, i64{1,7,6})\nb = add(a, cn)\nd = cast(b) to=f32\ny = add(z, d)\noutput y = "
      "y\n",
      { { "add", 0 }, { "cast", 3 } } },
    { "add after a true transpose",
      { sink, epilogue },
      1e-5,
      "input x f32[7,5]\nparam w f32[5,6]\ninput r f32[6,7]\np = matmul(x, w)\nb = transpose(p)\ny "
      "= add(b, r)\noutput y = y\n",
      { { "add", 1 } } },
    { "a bias of rows after views",
      { sink, epilogue },
      1e-5,
      "input x f32[7,5]\nparam w f32[5,6]\nparam c f32[7,1]\np = matmul(x, w)\na = reshape(p, "
      "i64{1,7,6})\ny = add(a, c)\noutput y = y\n",
      { { "add", 1 } } },
    { "a factor and a residual after a transposed product",
      { transposes, epilogue },
      1e-5,
      TRANSPOSED "param s f32[6,1,1]\ninput r f32[2,6,3,4]\nz = neg(r)\nm = mul(s, t)\ny = add(m, "
                 "z)\noutput y = y\n",
      { { "mul", 0 }, { "add", 0 }, { "transpose", 2 } } },
    { "a residual that is transposed, too",
      { transposes, epilogue },
      1e-5,
      TRANSPOSED "input r f32[2,3,4,6]\nz = neg(r)\nq = transpose(z) perm=0,3,1,2\nm = tanh(t)\n"
                 "y = add(q, m)\noutput y = y\n",
      { { "tanh", 0 }, { "add", 0 }, { "transpose", 1 } } },
    { "a factor of lines after a transposed product",
      { transposes, epilogue },
      1e-5,
      TRANSPOSED "param s f32[3,1]\ny = mul(s, t)\noutput y = y\n",
      { { "mul", 1 }, { "transpose", 1 } } },
    { "a transposed product that is read elsewhere",
      { transposes, epilogue },
      1e-5,
      TRANSPOSED "param s f32[6,1,1]\ny = mul(s, t)\noutput y = y\noutput t = t\n",
      { { "mul", 1 } } },
    { "queries, keys and values",
      { products },
      1e-5,
      PROJECTIONS("q = neg(a)\n", "k = neg(b)\n", "c2 = neg(c)\n"),
      { { "matmul", 3 }, { "concat", 0 } } },
    { "queries, keys and values, read by attention alone",
      { products },
      1e-5,
      PROJECTIONS("q = reshape(a, i64{2,7,12})\n", "k = reshape(b, i64{2,7,12})\n",
                  "c2 = reshape(c, i64{2,7,12})\n"),
      { { "matmul", 1 }, { "concat", 1 } } },
    { "two with a bias, one without",
      { epilogue, products },
      1e-5,
      PROJECTIONS("q = add(a, e)\n", "k = add(b, f)\n", "c2 = reshape(c, i64{2,7,12})\n"),
      { { "matmul", 2 }, { "concat", 2 } } },
    { "a norm between casts",
      { norms },
      3e-2,
      "input x f32[4,9]\nparam s f32[9]\na = cast(x) to=bf16\nb = cast(a) to=f32\nn = "
      "layer_norm(b, s)\nc = cast(n) to=bf16\n"
      "y = cast(c) to=f32\noutput y = y\n",
      { { "layer_norm", 1 }, { "cast", 2 } } },
    { "a cast after a norm",
      { norms },
      3e-2,
      "input x f32[4,9]\nparam s f32[9]\nn = layer_norm(x, s)\nc = cast(n) to=bf16\ny = cast(c) "
      "to=f32\noutput y = y\n",
      { { "layer_norm", 1 }, { "cast", 1 } } },
    { "a norm that others read too",
      { norms },
      3e-2,
      "input x f32[4,9]\nparam s f32[9]\nn = layer_norm(x, s)\nc = cast(n) to=bf16\ny = cast(c) "
      "to=f32\noutput y = y\noutput n = n\n",
      { { "layer_norm", 1 }, { "cast", 2 } } },
    { "casts in a chain",
      { chains },
      3e-2,
      "input x f32[4,9]\na = cast(x) to=bf16\nb = add(a, bf16(1))\nc = cast(b) to=f32\nd = mul(c, "
      "x)\ny = cast(d) to=f16\n"
      "z = cast(y) to=f32\noutput z = z\n",
      { { "fused", 1 }, { "cast", 0 } } },
};

/* Results: cases of attention_step, and texts of language models (tests/lm). */
#define STEP(rows, rotations, keys)                                                                \
    "input q f32[1," rows ",8]\ninput k f32[1," rows ",4]\ninput v f32[1," rows ",4]\n"            \
    "input at i64[1]\ninput n i64[1]\ninput p i64[1," rows                                         \
    "]\nparam c f32[9,2]\nparam s f32[9,2]\n"                                                      \
    "param a f32[1,1,9,4]\nparam b f32[1,1,9,4]\n" rotations "r = reshape(" keys ", i64{1," rows   \
    ",1,4})\nt = transpose(r) perm=0,2,1,3\nw = reshape(v, i64{1," rows                            \
    ",1,4})\nu = transpose(w) perm=0,2,1,3\nx = cache_write(a, t, at)\nz = cache_write(b, u, "     \
    "at)\n"
#define ROTATIONS "e = rotary(q, c, s, p) heads=2\nf = rotary(k, c, s, p) heads=1\n"
#define ATTENDS(q)                                                                                 \
    "y = attention(" q ", x, z, -, -, -, n) causal q_heads=2\noutput y = y\noutput x = x\n"
static const form steps[] = {
    { "a step, rotated",
      { decoding },
      0,
      STEP("1", ROTATIONS, "f") ATTENDS("e"),
      { { "attention_step", 1 }, { "attention", 0 }, { "rotary", 0 }, { "cache_write", 0 } } },
    { "a step without rotation",
      { decoding },
      0,
      STEP("1", "", "k") ATTENDS("q"),
      { { "attention_step", 1 }, { "cache_write", 0 } } },
    { "only the query is rotated",
      { decoding },
      0,
      STEP("1", ROTATIONS, "k") ATTENDS("e"),
      { { "attention_step", 0 }, { "attention", 1 } } },
    { "several rows",
      { decoding },
      0,
      STEP("2", ROTATIONS, "f") ATTENDS("e"),
      { { "attention_step", 0 }, { "rotary", 2 } } },
    { "a cache that another node reads",
      { decoding },
      0,
      STEP("1", ROTATIONS, "f") ATTENDS("e") "o = mul(x, 2)\noutput o = o\n",
      { { "attention_step", 0 }, { "cache_write", 2 } } },
    { "all keys count",
      { decoding },
      0,
      STEP("1", ROTATIONS, "f") "y = attention(e, x, z) causal q_heads=2\noutput y = y\n",
      { { "attention_step", 0 }, { "attention", 1 } } },
};

static void structure(void **state) {
    (void)state;
    check_structure(forms, sizeof forms / sizeof *forms);
    check_structure(steps, sizeof steps / sizeof *steps);
}

static void results(void **state) {
    (void)state;
    check_results(forms, sizeof forms / sizeof *forms);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(structure), cmocka_unit_test(results) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
