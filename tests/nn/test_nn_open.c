/* Layers over sequences and batches of sizes that are symbols give what they give at fixed sizes.
 */
#include "nn_check.h"

/* ---- sizes that are symbols ---- */

static fac_value *open_blocks(fac_value *x, fac_value *lengths) {
    const fac_nn_transformer_opts o = {
        .feedforward = 5, .batch_first = true, .causal = true, .lengths = lengths
    };
    x = fac_nn_transformer_encoder_layer(x, "encoder", 2, &o);
    return fac_nn_transformer_decoder_layer(
        x, x, "decoder", 2,
        &(fac_nn_transformer_opts){
            .feedforward = 5, .batch_first = true, .norm_first = true, .memory_lengths = lengths });
}
static fac_value *open_batch(fac_value *x, fac_value *lengths) {
    const fac_nn_recurrent_opts o = { .batch_first = true,
                                      .bidirectional = true,
                                      .lengths = lengths };
    return fac_nn_lstm(x, "lstm", 3, &o).y;
}

/* Digests of y and of the gradient of x, which has 3 sequences of 4 steps with 6 features. */
static void digests(fac_value *(*build)(fac_value *, fac_value *), bool open_n, bool open_t,
                    digest to[2]) {
    fac_graph *g = fac_graph_new();
    fac_device *device = NULL;
    fac_program *p = NULL;
    const int64_t n = open_n ? fac_symbol(g, "N") : 3;
    const int64_t t = open_t ? fac_symbol(g, "T") : 4;
    const int64_t lengths[] = { 4, 2, 3 };
    fac_nn_source(g, formula, NULL);
    fac_value *x = fac_input(g, "x", FAC_F64, fac_shape(n, t, 6)), *d;
    fac_value *y = build(x, fac_input(g, "lengths", FAC_I64, fac_shape(n)));
    fac_grad(fac_sum(fac_mul(y, fac_sin(y)), (fac_dims){ 0 }, false), 1, &x, &d);
    fac_output(g, "y", y);
    fac_output(g, "d", d);
    OK(fac_graph_check(g, &err));
    fac_tensor *in_[2] = { tensor_of((fac_type){ FAC_F64, fac_shape(3, 4, 6) }, "x", plain), NULL },
               *out[2] = { NULL };
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(3), &in_[1], &err));
    OK(fac_tensor_write(in_[1], lengths, sizeof lengths, &err));
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &device, &err));
    OK(fac_program_new(g, device, NULL, &p, &err));
    OK(fac_program_run(p, in_, out, &err));
    for (int k = 0; k < 2; k++) {
        to[k] = digest_of(out[k]);
        fac_tensor_free(out[k]);
        fac_tensor_free(in_[k]);
    }
    fac_program_free(p);
    fac_device_free(device);
    fac_graph_free(g);
}

static void open_sizes_give_the_same(void **state) {
    (void)state;
    digest with[2], without[2];
    for (int k = 0; k < 2; k++) {
        fac_value *(*build)(fac_value *, fac_value *) = k ? open_batch : open_blocks;
        digests(build, false, false, without);
        digests(build, true, !k, with);
        same_digest(k ? "lstm" : "blocks", "y", with[0], without[0], 1e-12);
        same_digest(k ? "lstm" : "blocks", "dx", with[1], without[1], 1e-12);
        assert_true(with[0].size > 1 && with[1].size > 1);
    }
}

int main(void) {
    const struct CMUnitTest all[] = {
        cmocka_unit_test(open_sizes_give_the_same),
    };
    return cmocka_run_group_tests_name("nn_open", all, NULL, NULL);
}
