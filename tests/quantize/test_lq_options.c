/* lq:wWaA without training, as its options say: even levels, the first and the last layer as bytes.
 */
#include "lq_net.h"

/* Of rest_int8 the first and the last layer have bytes, but for those that are kept. */
static void ends_may_be_bytes(void **state) {
    (void)state;
    static const char *const keep = "last";
    for (int kept = 0; kept < 2; kept++) {
        const fac_integers how = {
            .scheme = "lq:w1a2", .rest_int8 = true, .nkeep = kept, .keep = &keep
        };
        fac_graph *g = network(2, true), *q;
        fac_calibrator *c;
        fac_tensor *x = sample();
        int dequantized = 0;
        OK(fac_calibrator_new(g, dev, &how, &c, &err));
        OK(fac_calibrator_add(c, &x, &err));
        OK(fac_calibrator_finish(c, &q, &err));
        for (int k = 0; k < 4; k++) {
            const fac_integer_layer *l = fac_calibrator_layer(c, k);
            assert_int_equal(l->kept, k == 3 && kept);
            assert_int_equal(l->rest, k == 0 || (k == 3 && !kept));
            if (k && k < 3) continue;
            assert_true(l->bytes == l->bytes_before / (l->kept ? 1 : 4));
            assert_true(l->kept || (l->weight_sqnr > 35 && l->weight_sqnr < 60));
        }
        for (const fac_node *n = q->first; n; n = n->next)
            dequantized += FAC_IS(n, dequantize_linear) && n->in[0]->type.dtype == FAC_I8;
        assert_int_equal(dequantized, 2 - kept);
        assert_int_equal(quantizers(q, false), 2);
        fac_tensor_free(x);
        fac_graph_free(q);
        fac_calibrator_free(c);
        fac_graph_free(g);
    }
}

/* Even levels are powers of two times one number, exactly, and lose a little more than free ones;
 * weights have the same levels either way. */
static void levels_of_inputs_may_be_even(void **state) {
    (void)state;
    double weight[2] = { 0 }, output[2] = { 0 };
    for (int bits = 2; bits <= 4; bits++)
        for (int even = 0; even < 2; even++) {
            char scheme[16];
            snprintf(scheme, sizeof scheme, "lq:w1a%d", bits);
            const fac_integers how = { .scheme = scheme, .even_levels = even };
            const uint64_t from = at;
            fac_graph *g = network(2, true), *q;
            fac_calibrator *c;
            fac_tensor *x = sample();
            int read = 0;
            OK(fac_calibrator_new(g, dev, &how, &c, &err));
            OK(fac_calibrator_add(c, &x, &err));
            OK(fac_calibrator_finish(c, &q, &err));
            for (const fac_node *n = q->first; n; n = n->next) {
                if (!FAC_IS(n, quantize_basis) || !((const fac_basis_opts *)n->attrs)->positive)
                    continue;
                const float *u = fac_tensor_data(n->in[1]->tensor);
                assert_true(u[0] > 0);
                for (int j = 1; j < bits && even; j++) assert_true(u[j] == 2 * u[j - 1]);
                read++;
            }
            assert_int_equal(read, 2);
            weight[even] = fac_calibrator_layer(c, 1)->weight_sqnr;
            output[even] = fac_calibrator_layer(c, 1)->output_sqnr;
            fac_tensor_free(x);
            fac_graph_free(q);
            fac_calibrator_free(c);
            fac_graph_free(g);
            if (!even) at = from; /* the same numbers */
            if (!even) continue;
            assert_true(weight[0] == weight[1]);
            if (fabs(output[1] - output[0]) > 3)
                fail_msg("%d bits: %g dB, even %g", bits, output[0], output[1]);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(ends_may_be_bytes),
                                        cmocka_unit_test(levels_of_inputs_may_be_even) };
    return cmocka_run_group_tests_name("lq_options", tests, open_device, close_device);
}
