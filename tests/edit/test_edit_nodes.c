/* Single nodes changed, ports, tensors: what comes out is a sound graph that computes what it
 * should, and what cannot be is said. */
#include <math.h>
#include "edit_check.h"
#include "graph/attr.h"
#include "op_list.h"

static const char *const text = "input x f32[N,3,8,8]\n"
                                "param w f32[4,3,3,3]\n"
                                "param b f32[4]\n"
                                "conv = conv2d(x, w, b) pad=1,1,1,1 @body\n"
                                "act = relu(conv) @body.act\n"
                                "half = identity(act)\n"
                                "pool = max_pool2d(half) kernel=2,2 stride=2,2\n"
                                "%1 = tanh(pool)\n"
                                "output y = %1\n"
                                "output z = half\n";

static fac_graph *network(void) {
    fac_graph *g = graph_of(text);
    fill_params(g);
    return g;
}

static void removing(void **state) {
    (void)state;
    fac_graph *g = network(), *out = NULL;
    int n = 0;
    OK(fac_graph_removed(g, "half", &n, &out, &err));
    assert_int_equal(n, 1);
    assert_int_equal(count_op(out, "identity"), 0);
    assert_same(g, out);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_removed(g, "op:t*", &n, &out, &err));
    assert_int_equal(count_op(out, "tanh"), 0);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_removed(g, "body.act", NULL, &out, &err)); /* the scope that it alone stands in */
    assert_int_equal(count_op(out, "relu"), 0);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_removed(g, "%1", NULL, &out, &err));
    assert_int_equal(count_op(out, "tanh"), 0);
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_removed(g, "pool", &n, &out, &err), FAC_E_SHAPE,
          "its input is f32[N,4,8,8] and its output f32[N,4,4,4]");
    FAILS(fac_graph_removed(g, "nobody", &n, &out, &err), FAC_E_ARGUMENT,
          "there is no node \"nobody\"");
    FAILS(fac_graph_removed(g, "w", &n, &out, &err), FAC_E_ARGUMENT, "is no node");
    assert_null(out);
    fac_graph_free(g);
}

static void several_in_a_scope(void **state) {
    (void)state;
    fac_graph *g = graph_of("input x f32[2]\na = relu(x) @s\nb = tanh(a) @s\noutput y = b\n"),
              *out = NULL;
    int n;
    FAILS(fac_graph_removed(g, "s", &n, &out, &err), FAC_E_ARGUMENT, "2 nodes stand in \"s\"");
    OK(fac_graph_removed(g, "s*", &n, &out, &err));
    assert_int_equal(n, 2);
    fac_graph_free(out);
    fac_graph_free(g);
}

static void inserting(void **state) {
    (void)state;
    fac_graph *g = network(), *out = NULL, *want;
    int n;
    OK(fac_graph_inserted(g, "act", "clip(_, 0, 6)", &n, &out, &err));
    assert_int_equal(n, 1);
    assert_int_equal(count_op(out, "clip"), 1);
    assert_sound(out);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_inserted(g, "half", "t = exp(_); mul(t, 0.5) neg", &n, &out, &err));
    assert_int_equal(n, 2); /* a pool, and an output of the graph */
    want = graph_of("input x f32[N,3,8,8]\nparam w f32[4,3,3,3]\nparam b f32[4]\nconv = conv2d(x, "
                    "w, b) pad=1,1,1,1\n"
                    "act = relu(conv)\n"
                    "e = exp(act)\nm = mul(e, 0.5)\nn = neg(m)\np = max_pool2d(n) kernel=2,2 "
                    "stride=2,2\n%1 = tanh(p)\n"
                    "output y = %1\noutput z = n\n");
    fill_params(want);
    assert_same(want, out);
    fac_graph_free(want);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_inserted(g, "half->pool", "neg", &n, &out, &err));
    assert_int_equal(n, 1);
    assert_string_equal(fac_value_name(fac_graph_output(out, 1)), "half");
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_inserted(g, "half->z", "neg", &n, &out, &err));
    assert_ptr_equal(fac_graph_output(out, 1)->node->op, &fac_op_neg);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_inserted(g, "x", "mul(_, 2)", &n, &out, &err));
    assert_int_equal(fac_graph_inputs(out), 1);
    assert_sound(out);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_inserted(g, "x", "max_pool2d kernel=2,2 stride=2,2", &n, &out,
                          &err)); /* what follows is smaller */
    assert_int_equal(fac_value_type(fac_graph_find(out, "act")).dims.d[2], 4);
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_inserted(g, "half->conv", "neg", &n, &out, &err), FAC_E_ARGUMENT,
          "no such reader");
    FAILS(fac_graph_inserted(g, "half", "nope(_)", &n, &out, &err), FAC_E_FORMAT,
          "1:1: there is no op 'nope'");
    FAILS(fac_graph_inserted(g, "half", "clip(_, 0", &n, &out, &err), FAC_E_FORMAT,
          "',' is missing");
    FAILS(fac_graph_inserted(g, "half", "clip(_, 0, 6) wide=3", &n, &out, &err), FAC_E_FORMAT,
          "no attribute 'wide'");
    FAILS(fac_graph_inserted(g, "half", "add(_, w)", &n, &out, &err), FAC_E_SHAPE, "add");
    FAILS(fac_graph_inserted(g, "half", "add(_, nobody)", &n, &out, &err), FAC_E_FORMAT,
          "there is no value 'nobody'");
    assert_null(out);
    fac_graph_free(g);
}

static void replacing(void **state) {
    (void)state;
    fac_graph *g = network(), *out = NULL;
    int n;
    OK(fac_graph_replaced(g, "act", "gelu", &n, &out, &err));
    assert_int_equal(count_op(out, "gelu"), 1);
    assert_string_equal(fac_value_name(fac_graph_find(out, "act")),
                        "act"); /* the name stays at its place */
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_replaced(g, "conv", "conv2d(x0, x1, x2) like node stride=2,2", &n, &out, &err));
    assert_int_equal(fac_value_type(fac_graph_find(out, "conv")).dims.d[2], 4);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_replaced(g, "pool", "avg_pool2d(_) kernel=2,2 stride=2,2", &n, &out, &err));
    assert_int_equal(count_op(out, "max_pool2d"), 0);
    assert_sound(out);
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_replaced(g, "act", "conv2d(x0, x1)", &n, &out, &err), FAC_E_FORMAT,
          "there is no value 'x1'");
    FAILS(fac_graph_replaced(g, "conv", "mul(x0, 3) like node", &n, &out, &err), FAC_E_FORMAT,
          "is no mul");
    FAILS(fac_graph_replaced(g, "act", "", &n, &out, &err), FAC_E_FORMAT, "an op is missing");
    assert_null(out);
    fac_graph_free(g);
}

static void setting(void **state) {
    (void)state;
    fac_graph *g = network(), *out = NULL;
    int n;
    OK(fac_graph_set(g, "conv", "stride=2,2", &n, &out, &err));
    const fac_dims d = fac_value_type(fac_graph_find(out, "conv")).dims;
    assert_int_equal(d.d[2], 4); /* pad=1 stayed */
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_set(g, "conv", "stride=0,x", &n, &out, &err), FAC_E_FORMAT, "stride");
    FAILS(fac_graph_set(g, "conv", "slope=1", &n, &out, &err), FAC_E_FORMAT, "conv2d has stride");
    FAILS(fac_graph_set(g, "conv", "stride=-1,1", &n, &out, &err), FAC_E_ARGUMENT, "must be in");
    assert_null(out);
    fac_graph_free(g);
}

static void ports(void **state) {
    (void)state;
    fac_graph *g = network(), *out = NULL, *less = NULL;
    OK(fac_graph_output_added(g, "conv", NULL, &out, &err));
    assert_int_equal(fac_graph_outputs(out), 3);
    assert_string_equal(fac_graph_output_name(out, 2), "conv");
    OK(fac_graph_output_removed(out, "y", &less, &err));
    assert_int_equal(count_op(less, "tanh"), 0);
    assert_sound(less);
    fac_graph_free(less);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_output_added(g, "%1", "logits", &out, &err));
    assert_ptr_equal(fac_graph_output(out, 2), fac_graph_output(out, 0));
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_output_added(g, "%1", NULL, &out, &err), FAC_E_ARGUMENT, "called");
    FAILS(fac_graph_output_added(g, "%99", "a", &out, &err), FAC_E_ARGUMENT, "no value");
    FAILS(fac_graph_output_added(g, "conv", "y", &out, &err), FAC_E_ARGUMENT, "taken");
    FAILS(fac_graph_output_removed(g, "conv", &out, &err), FAC_E_ARGUMENT, "no output");
    OK(fac_graph_shaped(g, "x", "5,3,S,16", &out, &err));
    const fac_dims d = fac_value_type(fac_graph_find(out, "act")).dims;
    assert_int_equal(d.d[0], 5);
    assert_string_equal(fac_symbol_name(out, d.d[2]), "S");
    assert_int_equal(d.d[3], 16);
    OK(fac_graph_bound(out, "S", 6, &less, &err));
    assert_int_equal(fac_value_type(fac_graph_find(less, "pool")).dims.d[2], 3);
    fac_graph_free(less);
    fac_graph_free(out);
    out = NULL;
    FAILS(fac_graph_shaped(g, "x", "1x4x8x8", &out, &err), FAC_E_SHAPE, "conv2d");
    FAILS(fac_graph_shaped(g, "x", "1x,8", &out, &err), FAC_E_SHAPE, "conv2d");
    FAILS(fac_graph_shaped(g, "x", "1xx8", &out, &err), FAC_E_ARGUMENT, "no shape");
    FAILS(fac_graph_shaped(g, "conv", "1x3x8x8", &out, &err), FAC_E_ARGUMENT, "no input");
    FAILS(fac_graph_bound(g, "M", 3, &out, &err), FAC_E_ARGUMENT, "no open size");
    FAILS(fac_graph_bound(g, "N", -3, &out, &err), FAC_E_ARGUMENT, "not negative");
    assert_null(out);
    fac_graph_free(g);
}

static fac_tensor *full(fac_dtype dtype, fac_dims dims, double x) {
    fac_tensor *wide = NULL, *t = NULL;
    const size_t n = (size_t)fac_dims_count(&dims);
    double *a = calloc(n + 1, sizeof *a);
    for (size_t k = 0; k < n; k++) a[k] = x;
    OK(fac_tensor_new(NULL, FAC_F64, dims, &wide, &err));
    OK(fac_tensor_write(wide, a, n * sizeof *a, &err));
    OK(fac_tensor_convert(wide, dtype, &t, &err));
    fac_tensor_free(wide);
    free(a);
    return t;
}

static void tensors(void **state) {
    (void)state;
    fac_graph *g = network(), *out = NULL, *back = NULL;
    fac_tensor *b = full(FAC_F32, fac_shape(4), 2), *wide = full(FAC_F32, fac_shape(6, 3, 3, 3), 1),
               *f64 = full(FAC_F64, fac_shape(4), 2), *x = full(FAC_F32, fac_shape(2, 3, 8, 8), 1);
    int n;
    OK(fac_graph_tensor_set(g, "b", b, &out, &err));
    assert_ptr_equal(fac_value_tensor(fac_graph_find(out, "b")), b);
    fac_graph_free(out);
    out = NULL;
    OK(fac_graph_tensor_set(g, "x", x, &out,
                            &err)); /* an input becomes a parameter: all can be computed now */
    assert_int_equal(fac_graph_inputs(out), 0);
    OK(fac_graph_baked(out, &n, &back, &err));
    assert_null(back->first);
    fac_graph_free(back);
    fac_graph_free(out);
    out = back = NULL;
    FAILS(fac_graph_tensor_set(g, "w", wide, &out, &err), FAC_E_SHAPE,
          "conv2d"); /* 6 channels, a bias of 4 */
    FAILS(fac_graph_tensor_set(g, "b", f64, &out, &err), FAC_E_SHAPE, "the new one f64[4]");
    FAILS(fac_graph_tensor_set(g, "nobody", b, &out, &err), FAC_E_ARGUMENT, "no value");
    OK(fac_graph_stripped(g, 10, &n, &out, &err));
    assert_int_equal(n, 1);
    assert_int_equal(fac_graph_params(out), 1);
    OK(fac_graph_restored(out, 2, (const char *[]){ "w", "other" },
                          (fac_tensor *[]){ fac_value_tensor(fac_graph_find(g, "w")), b }, &n,
                          &back, &err));
    assert_int_equal(n, 1);
    assert_same(g, back);
    fac_graph_free(back);
    back = NULL;
    FAILS(fac_graph_restored(out, 1, (const char *[]){ "w" }, &wide, &n, &back, &err), FAC_E_SHAPE,
          "\"w\" is f32[4,3,3,3]");
    FAILS(fac_graph_restored(out, 1, (const char *[]){ "x" }, &x, &n, &back, &err), FAC_E_ARGUMENT,
          "none of these");
    assert_null(back);
    fac_graph_free(out);
    fac_tensor_free(b);
    fac_tensor_free(wide);
    fac_tensor_free(f64);
    fac_tensor_free(x);
    fac_graph_free(g);
}

static void floats_but(void **state) {
    (void)state;
    fac_graph *g = graph_of("input x f32[2,8]\nparam w f32[8,8]\nparam v f32[8,8]\na = linear(x, "
                            "w, -)\ns = softmax(a) axis=1\n"
                            "t = mul(s, 2)\n"
                            "b = linear(t, v, -)\noutput y = b\n"),
              *out = NULL;
    fac_float_report r;
    fill_params(g);
    OK(fac_graph_floats_but(g,
                            &(fac_float_opts){ .to = FAC_F16,
                                               .nkeep = 2,
                                               .keep = (const char *[]){ "op:softmax", "t" },
                                               .keep_ports = true },
                            &r, &out, &err));
    assert_sound(out);
    assert_int_equal(r.tensors, 2);
    assert_int_equal(r.kept, 2);
    assert_int_equal(r.casts,
                     4); /* in, before softmax, after t, out: none between the two that are kept */
    assert_int_equal(fac_value_type(fac_graph_find(out, "s")).dtype, FAC_F32);
    assert_int_equal(fac_value_type(fac_graph_find(out, "a")).dtype, FAC_F16);
    assert_int_equal(fac_value_type(fac_graph_output(out, 0)).dtype, FAC_F32);
    assert_int_equal(fac_value_type(fac_graph_input(out, 0)).dtype, FAC_F32);
    fac_verdict verdict;
    OK(fac_verify(
        g, out, device,
        &(fac_verify_opts){ .mode = FAC_VERIFY_DATA, .rounds = 1, .rtol = 0.02, .atol = 0.02 },
        &verdict, &err));
    assert_int_equal(verdict.same, FAC_NO_DIFFERENCE);
    fac_graph_free(out);
    out = NULL;
    fac_tensor *large = full(FAC_F32, fac_shape(8, 8), 1e6),
               *small = full(FAC_F32, fac_shape(8, 8), 1e-9);
    fac_graph *odd = NULL, *odder = NULL;
    OK(fac_graph_tensor_set(g, "w", large, &odd, &err));
    OK(fac_graph_tensor_set(odd, "v", small, &odder, &err));
    OK(fac_graph_floats_but(odder, &(fac_float_opts){ .to = FAC_F16 }, &r, &out, &err));
    assert_int_equal(r.overflowed, 64);
    assert_int_equal(r.vanished, 64);
    fac_tensor_free(large);
    fac_tensor_free(small);
    fac_graph_free(odder);
    fac_graph_free(odd);
    fac_graph_free(out);
    fac_graph_free(g);
}

static void read_all(const fac_tensor *t, double *to, size_t n) {
    fac_tensor *wide = NULL;
    OK(fac_tensor_convert(t, FAC_F64, &wide, &err));
    OK(fac_tensor_read(wide, to, n * sizeof *to, &err));
    fac_tensor_free(wide);
}

/* What the type cannot say becomes its largest or its smallest number, of the same sign;
 * infinities stay. */
static void floats_in_range(void **state) {
    (void)state;
    enum { N = 8 };
    static const double x[N] = { -3e38, 1e9, 65504, -INFINITY, 1e-12, -1e-12, 0, 0.5 };
    static const struct {
        fac_dtype to;
        double want[N];
        int over, under;
    } cases[] = { { FAC_F16, { -65504, 65504, 65504, -INFINITY, 0x1p-24, -0x1p-24, 0, 0.5 }, 2, 2 },
                  { FAC_F32,
                    { (float)-3e38, 1e9, 65504, -INFINITY, (float)1e-12, (float)-1e-12, 0, 0.5 },
                    0,
                    0 } };
    fac_graph *g = graph_of("input x f64[8]\nparam w f64[8]\ny = add(x, w)\noutput y = y\n"),
              *odd = NULL, *out = NULL;
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, FAC_F64, fac_shape(N), &t, &err));
    OK(fac_tensor_write(t, x, sizeof x, &err));
    OK(fac_graph_tensor_set(g, "w", t, &odd, &err));
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double got[N];
        fac_float_report r;
        OK(fac_graph_floats_but(odd, &(fac_float_opts){ .to = cases[c].to }, &r, &out, &err));
        assert_int_equal(r.overflowed, cases[c].over);
        assert_int_equal(r.vanished, cases[c].under);
        read_all(fac_value_tensor(fac_graph_find(out, "w")), got, N);
        for (int k = 0; k < N; k++)
            if (got[k] != cases[c].want[k])
                fail_msg("%s: number %d is %g, not %g", fac_dtype_get(cases[c].to)->name, k, got[k],
                         cases[c].want[k]);
        fac_graph_free(out);
        out = NULL;
    }
    /* the largest of f32 is beyond bf16, which rounds it up */
    const double most[N] = { 3.4028234e38, -3.4028234e38 };
    OK(fac_tensor_write(t, most, sizeof most, &err));
    fac_graph_free(odd);
    odd = NULL;
    OK(fac_graph_tensor_set(g, "w", t, &odd, &err));
    fac_float_report r;
    double got[N];
    OK(fac_graph_floats_but(odd, &(fac_float_opts){ .to = FAC_BF16 }, &r, &out, &err));
    read_all(fac_value_tensor(fac_graph_find(out, "w")), got, N);
    assert_true(r.overflowed == 2 && got[0] == 0x1.fep127 && got[1] == -0x1.fep127);
    fac_graph_free(out);
    fac_graph_free(odd);
    fac_graph_free(g);
    fac_tensor_free(t);
}

/* Numbers among attributes and inside of bodies are of the type too; a kept node has those of
 * the file. */
static void floats_everywhere(void **state) {
    (void)state;
    fac_graph *g = graph_of(
                  "input c bool[]\ninput x f32[4]\ninput s f32[4]\n"
                  "n = rms_norm(x, s) axis=-1 epsilon=1e-12\n"
                  "i = if(c, n) {t0 = div(x1, f32(1e-9)); t0} {t0 = max(x1, f32(-1e38)); t0}\n"
                  "m = rms_norm(i, s) axis=-1 epsilon=1e-12\noutput y = m\n"),
              *out = NULL;
    fac_float_report r;
    OK(fac_graph_floats_but(
        g, &(fac_float_opts){ .to = FAC_F16, .nkeep = 1, .keep = (const char *[]){ "m" } }, &r,
        &out, &err));
    assert_sound(out);
    assert_int_equal(r.vanished, 2);
    assert_int_equal(r.overflowed, 1);
    const fac_node *n = fac_graph_find(out, "n")->node, *i = fac_graph_find(out, "i")->node;
    assert_true(fac_attr_real(n, "epsilon", 0) == 0x1p-24);
    for (int k = 0; k < 2; k++) {
        double x = 0;
        assert_int_equal(i->body[k]->nconsts, 1);
        assert_int_equal(i->body[k]->consts[0]->type.dtype, FAC_F16);
        read_all(i->body[k]->consts[0]->tensor, &x, 1);
        assert_true(x == (k ? -65504 : 0x1p-24));
    }
    const fac_node *m = out->last;
    while (m && !FAC_IS(m, rms_norm)) m = m->prev;
    assert_true(m && fac_attr_real(m, "epsilon", 0) == 1e-12);
    fac_graph_free(out);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(removing),        cmocka_unit_test(several_in_a_scope),
        cmocka_unit_test(inserting),       cmocka_unit_test(replacing),
        cmocka_unit_test(setting),         cmocka_unit_test(ports),
        cmocka_unit_test(tensors),         cmocka_unit_test(floats_but),
        cmocka_unit_test(floats_in_range), cmocka_unit_test(floats_everywhere)
    };
    return cmocka_run_group_tests_name("edit_nodes", tests, open_device, close_device);
}
