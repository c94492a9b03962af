/* Tensors of a graph in another type: all floats, those but some, those within a range. */
#include "edit_nodes_check.h"

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
        cmocka_unit_test(floats_but),
        cmocka_unit_test(floats_in_range),
        cmocka_unit_test(floats_everywhere),
    };
    return cmocka_run_group_tests_name("edit_floats", tests, open_device, close_device);
}
