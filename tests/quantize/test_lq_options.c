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

static void put_into(const fac_program *p, fac_tensor *x, float *to, int64_t n) {
    fac_tensor *y = NULL;
    OK(fac_program_run((fac_program *)(uintptr_t)p, &x, &y, &err));
    OK(fac_tensor_read(y, to, (size_t)n * sizeof *to, &err));
    fac_tensor_free(y);
}

/* The network of g in floats, its few bits as they are, and as packed: the same numbers but for
 * rounding. */
static void packed_answers_alike(const fac_graph *g) {
    enum { N = IMAGES * CHANNELS * SIDE * SIDE };
    char path[64];
    fac_graph *packed;
    fac_program *plain, *small;
    float a[N], b[N];
    double most = 0, worst = 0;
    fac_tensor *x = sample();
    snprintf(path, sizeof path, "rest.%ld.fac", (long)getpid());
    OK(fac_packed_save(g, path, NULL, &err));
    OK(fac_packed_load(path, &packed, &err));
    remove(path);
    OK(fac_program_new(g, dev, NULL, &plain, &err));
    OK(fac_program_new(packed, dev, NULL, &small, &err));
    put_into(plain, x, a, N);
    put_into(small, x, b, N);
    for (int k = 0; k < N; k++) most = fmax(most, fabs((double)a[k]));
    for (int k = 0; k < N; k++) worst = fmax(worst, fabs((double)a[k] - (double)b[k]));
    if (!(worst <= 0.02 * most)) fail_msg("packed: %g of %g", worst, most);
    fac_tensor_free(x);
    fac_program_free(plain);
    fac_program_free(small);
    fac_graph_free(packed);
}

/* int8:static makes bytes of what few bits left as floats, and leaves these as they are, whether
 * they are levels of a quantizer or numbers that comparisons choose. */
static void few_bits_stay_when_the_rest_becomes_bytes(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++)
        for (int bits = 1; bits <= 3; bits++) {
            char scheme[16];
            snprintf(scheme, sizeof scheme, "lq:w%da2", bits);
            fac_graph *g = network(bits == 1 ? 2 : 0, true), *few, *levels;
            fac_calibrator *c, *by;
            const fac_integer_layer *l;
            int bytes = 0, stayed = 0;
            few = quantized(g, scheme, &by);
            if (plain)
                OK(fac_graph_dequantize(few, &levels, &err));
            else
                levels = fac_graph_clone(few);
            fac_graph *q = quantized(levels, "int8:static", &c);
            for (int k = 0; (l = fac_calibrator_layer(c, k)); k++) {
                assert_int_equal(l->kept, l->few_bits);
                assert_true(l->bytes == l->bytes_before / (l->few_bits ? 1 : 4));
                stayed += l->few_bits;
                bytes += !l->kept;
            }
            assert_int_equal(bytes, 2);
            if (plain) assert_int_equal(stayed, 2);
            packed_answers_alike(q);
            fac_graph_free(q);
            fac_graph_free(levels);
            fac_graph_free(few);
            fac_graph_free(g);
            fac_calibrator_free(by);
            fac_calibrator_free(c);
        }
}

/* Few levels of weights alone, or of what a layer reads, make no layer of few bits. */
static void few_levels_of_one_side_are_bytes_too(void **state) {
    (void)state;
    fac_calibrator *c;
    fac_graph *g = network(2, true), *q = quantized(g, "int8:static", &c);
    for (int k = 0; k < 4; k++) {
        const fac_integer_layer *l = fac_calibrator_layer(c, k);
        assert_false(l->few_bits || l->kept);
    }
    fac_graph_free(q);
    fac_graph_free(g);
    fac_calibrator_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(ends_may_be_bytes),
                                        cmocka_unit_test(levels_of_inputs_may_be_even),
                                        cmocka_unit_test(few_bits_stay_when_the_rest_becomes_bytes),
                                        cmocka_unit_test(few_levels_of_one_side_are_bytes_too) };
    return cmocka_run_group_tests_name("lq_options", tests, open_device, close_device);
}
