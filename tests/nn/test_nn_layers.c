/* Every layer against PyTorch: what comes out, and the gradients of inputs and parameters, in f64
 * and f32.  The numbers are of tests/golden/make/golden_nn_layers.py. */
#include "nn_check.h"

/* A layer in a graph: its outputs, at most three. */
typedef struct layer {
    fac_value *y[3];
    int n;
} layer;
typedef struct test {
    const char *name;
    layer (*build)(fac_graph *g, fac_dtype dtype);
} test;

static fac_value *in(fac_graph *g, fac_dtype dtype, const char *name, fac_dims dims) {
    return fac_input(g, name, dtype, dims);
}
static layer one(fac_value *y) { return (layer){ { y }, 1 }; }
static layer of(fac_nn_recurrent r) { return (layer){ { r.y, r.h, r.c }, r.c ? 3 : 2 }; }

static fac_value *numbers(fac_graph *g, fac_dtype dtype, int n, const int64_t *x) {
    fac_tensor *t = NULL, *as = NULL;
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(n), &t, &err));
    OK(fac_tensor_write(t, x, (size_t)n * sizeof *x, &err));
    OK(fac_tensor_convert(t, dtype, &as, &err));
    fac_value *v = fac_const(g, as);
    fac_tensor_free(t);
    fac_tensor_free(as);
    return v;
}
#define NUMBERS(g, dtype, ...)                                                                     \
    numbers(g, dtype, (int)(sizeof(int64_t[]){ __VA_ARGS__ } / sizeof(int64_t)),                   \
            (const int64_t[]){ __VA_ARGS__ })

static layer conv1d(fac_graph *g, fac_dtype t) {
    return one(fac_nn_conv1d(in(g, t, "x", fac_shape(2, 4, 9)), "m", 6, 3,
                             &(fac_nn_conv_opts){ .stride = 2, .pad = 1, .groups = 2 }));
}
static layer conv2d(fac_graph *g, fac_dtype t) {
    return one(fac_nn_conv2d(in(g, t, "x", fac_shape(2, 3, 6, 7)), "m", 4, 3,
                             &(fac_nn_conv_opts){ .pad = 2, .dilation = 2, .no_bias = true }));
}
static layer conv3d(fac_graph *g, fac_dtype t) {
    return one(fac_nn_conv3d(in(g, t, "x", fac_shape(1, 2, 4, 5, 4)), "m", 3, 2,
                             &(fac_nn_conv_opts){ .stride = 2, .pad = 1 }));
}
static layer conv_transpose1d(fac_graph *g, fac_dtype t) {
    return one(fac_nn_conv_transpose1d(
        in(g, t, "x", fac_shape(2, 4, 5)), "m", 2, 3,
        &(fac_nn_conv_transpose_opts){ .stride = 2, .pad = 1, .output_pad = 1, .groups = 2 }));
}
static layer conv_transpose2d(fac_graph *g, fac_dtype t) {
    return one(fac_nn_conv_transpose2d(in(g, t, "x", fac_shape(2, 3, 4, 3)), "m", 4, 4,
                                       &(fac_nn_conv_transpose_opts){ .stride = 2, .pad = 1 }));
}
static layer conv_transpose3d(fac_graph *g, fac_dtype t) {
    return one(
        fac_nn_conv_transpose3d(in(g, t, "x", fac_shape(1, 2, 2, 3, 2)), "m", 2, 2,
                                &(fac_nn_conv_transpose_opts){ .stride = 2, .no_bias = true }));
}
static layer linear(fac_graph *g, fac_dtype t) {
    return one(fac_nn_linear(in(g, t, "x", fac_shape(2, 3, 5)), "m", 4));
}
static layer linear_no_bias(fac_graph *g, fac_dtype t) {
    return one(fac_nn_linear_with(in(g, t, "x", fac_shape(3, 5)), "m", 4,
                                  &(fac_nn_linear_opts){ .no_bias = true }));
}
static layer batch_norm(fac_graph *g, fac_dtype t) {
    return one(fac_nn_batch_norm(in(g, t, "x", fac_shape(2, 3, 4)), "m", 1e-3));
}
static layer layer_norm(fac_graph *g, fac_dtype t) {
    return one(fac_nn_layer_norm(in(g, t, "x", fac_shape(2, 3, 4, 5)), "m",
                                 &(fac_nn_norm_opts){ .dims = 2 }));
}
static layer layer_norm_no_bias(fac_graph *g, fac_dtype t) {
    return one(fac_nn_layer_norm(in(g, t, "x", fac_shape(3, 6)), "m",
                                 &(fac_nn_norm_opts){ .no_bias = true, .eps = 0.1 }));
}
static layer rms_norm(fac_graph *g, fac_dtype t) {
    return one(
        fac_nn_rms_norm(in(g, t, "x", fac_shape(3, 6)), "m", &(fac_nn_norm_opts){ .eps = 1e-5 }));
}
static layer group_norm(fac_graph *g, fac_dtype t) {
    return one(fac_nn_group_norm(in(g, t, "x", fac_shape(2, 6, 3, 2)), "m", 3, NULL));
}
static layer instance_norm(fac_graph *g, fac_dtype t) {
    return one(fac_nn_instance_norm(in(g, t, "x", fac_shape(2, 3, 4, 3)), "m", NULL));
}
static layer instance_norm_affine(fac_graph *g, fac_dtype t) {
    return one(fac_nn_instance_norm(in(g, t, "x", fac_shape(2, 3, 5)), "m",
                                    &(fac_nn_norm_opts){ .affine = true }));
}
static layer prelu(fac_graph *g, fac_dtype t) {
    return one(fac_nn_prelu(in(g, t, "x", fac_shape(2, 3, 4)), "m", 3));
}
static layer prelu_one(fac_graph *g, fac_dtype t) {
    return one(fac_nn_prelu(in(g, t, "x", fac_shape(2, 3)), "m", 1));
}

static layer embedding(fac_graph *g, fac_dtype t) {
    fac_value *ids = NUMBERS(g, FAC_I64, 1, 4, 4, 0, 6, 2);
    return one(fac_nn_embedding(
        fac_reshape(ids, fac_shape(2, 3)), "m", 7, 3,
        &(fac_nn_embedding_opts){ .padding = true, .padding_idx = 4, .dtype = t }));
}

static layer rnn(fac_graph *g, fac_dtype t) {
    return of(fac_nn_rnn(in(g, t, "x", fac_shape(4, 2, 3)), "m", 5, NULL));
}
static layer rnn_relu(fac_graph *g, fac_dtype t) {
    return of(fac_nn_rnn(in(g, t, "x", fac_shape(2, 4, 3)), "m", 3,
                         &(fac_nn_recurrent_opts){ .layers = 2,
                                                   .bidirectional = true,
                                                   .batch_first = true,
                                                   .relu = true,
                                                   .h0 = in(g, t, "h0", fac_shape(4, 2, 3)) }));
}
static layer gru(fac_graph *g, fac_dtype t) {
    return of(fac_nn_gru(in(g, t, "x", fac_shape(4, 2, 3)), "m", 5, NULL));
}
static layer gru_deep(fac_graph *g, fac_dtype t) {
    return of(fac_nn_gru(in(g, t, "x", fac_shape(3, 4, 3)), "m", 2,
                         &(fac_nn_recurrent_opts){ .layers = 2,
                                                   .bidirectional = true,
                                                   .batch_first = true,
                                                   .h0 = in(g, t, "h0", fac_shape(4, 3, 2)) }));
}
static layer lstm(fac_graph *g, fac_dtype t) {
    return of(fac_nn_lstm(in(g, t, "x", fac_shape(4, 2, 3)), "m", 5, NULL));
}
static layer lstm_no_bias(fac_graph *g, fac_dtype t) {
    return of(fac_nn_lstm(in(g, t, "x", fac_shape(3, 2, 3)), "m", 2,
                          &(fac_nn_recurrent_opts){ .no_bias = true }));
}
static layer lstm_deep(fac_graph *g, fac_dtype t) {
    return of(fac_nn_lstm(in(g, t, "x", fac_shape(4, 3, 3)), "m", 2,
                          &(fac_nn_recurrent_opts){ .layers = 2,
                                                    .bidirectional = true,
                                                    .h0 = in(g, t, "h0", fac_shape(4, 3, 2)),
                                                    .c0 = in(g, t, "c0", fac_shape(4, 3, 2)) }));
}
static layer lstm_packed(fac_graph *g, fac_dtype t) {
    return of(fac_nn_lstm(in(g, t, "x", fac_shape(3, 5, 3)), "m", 2,
                          &(fac_nn_recurrent_opts){ .layers = 2,
                                                    .bidirectional = true,
                                                    .batch_first = true,
                                                    .lengths = NUMBERS(g, FAC_I64, 5, 3, 1) }));
}

static layer attention_self(fac_graph *g, fac_dtype t) {
    fac_value *x = in(g, t, "x", fac_shape(4, 2, 6));
    return one(fac_nn_multihead_attention(x, x, x, "m", 2, NULL));
}
static layer attention_causal(fac_graph *g, fac_dtype t) {
    fac_value *x = in(g, t, "x", fac_shape(2, 4, 6));
    return one(fac_nn_multihead_attention(
        x, x, x, "m", 3,
        &(fac_nn_attention_opts){
            .batch_first = true, .causal = true, .lengths = NUMBERS(g, FAC_I32, 4, 3) }));
}
static layer attention_cross(fac_graph *g, fac_dtype t) {
    fac_value *q = in(g, t, "x", fac_shape(3, 2, 6)), *k = in(g, t, "k", fac_shape(5, 2, 6));
    const fac_nn_attention_opts o = { .mask = in(g, t, "mask", fac_shape(3, 5)) };
    return one(fac_nn_multihead_attention(q, k, k, "m", 2, &o));
}
static layer attention_sizes(fac_graph *g, fac_dtype t) {
    fac_value *q = in(g, t, "x", fac_shape(3, 2, 6)), *k = in(g, t, "k", fac_shape(5, 2, 4));
    fac_value *v = in(g, t, "v", fac_shape(5, 2, 3));
    fac_value *mask = fac_reshape(NUMBERS(g, FAC_BOOL, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1),
                                  fac_shape(3, 5));
    return one(fac_nn_multihead_attention(
        q, k, v, "m", 2, &(fac_nn_attention_opts){ .mask = mask, .no_bias = true }));
}

static layer encoder(fac_graph *g, fac_dtype t) {
    return one(fac_nn_transformer_encoder_layer(in(g, t, "x", fac_shape(4, 2, 6)), "m", 2,
                                                &(fac_nn_transformer_opts){ .feedforward = 8 }));
}
static layer encoder_gpt(fac_graph *g, fac_dtype t) {
    return one(fac_nn_transformer_encoder_layer(in(g, t, "x", fac_shape(2, 4, 6)), "m", 2,
                                                &(fac_nn_transformer_opts){ .feedforward = 8,
                                                                            .batch_first = true,
                                                                            .norm_first = true,
                                                                            .causal = true,
                                                                            .activation = fac_gelu,
                                                                            .no_bias = true }));
}
static layer decoder(fac_graph *g, fac_dtype t) {
    fac_value *x = in(g, t, "x", fac_shape(4, 2, 6)),
              *memory = in(g, t, "memory", fac_shape(3, 2, 6));
    return one(fac_nn_transformer_decoder_layer(
        x, memory, "m", 2,
        &(fac_nn_transformer_opts){
            .feedforward = 8, .causal = true, .memory_lengths = NUMBERS(g, FAC_I64, 2, 3) }));
}

static fac_value *flat(fac_value *x) { return fac_flatten(x, 1); }
static layer sequential(fac_graph *g, fac_dtype t) {
    static const fac_nn_layer inside[] = {
        { .conv = fac_nn_conv2d, .size = 3, .kernel = 3, .opts = { .pad = 1 } }, { .op = fac_relu }
    };
    fac_value *x = fac_nn_residual(in(g, t, "x", fac_shape(2, 3, 4, 4)), "block", 2, inside);
    const fac_nn_layer head[] = { { .norm = fac_nn_batch_norm },
                                  { .op = flat },
                                  { .name = "fc", .sized = fac_nn_linear, .size = 4 },
                                  { .op = fac_tanh } };
    return one(fac_nn_sequential(x, "m", 4, head));
}

static const test tests[] = { { "conv1d", conv1d },
                              { "conv2d", conv2d },
                              { "conv3d", conv3d },
                              { "conv_transpose1d", conv_transpose1d },
                              { "conv_transpose2d", conv_transpose2d },
                              { "conv_transpose3d", conv_transpose3d },
                              { "linear", linear },
                              { "linear_no_bias", linear_no_bias },
                              { "batch_norm", batch_norm },
                              { "layer_norm", layer_norm },
                              { "layer_norm_no_bias", layer_norm_no_bias },
                              { "rms_norm", rms_norm },
                              { "group_norm", group_norm },
                              { "instance_norm", instance_norm },
                              { "instance_norm_affine", instance_norm_affine },
                              { "prelu", prelu },
                              { "prelu_one", prelu_one },
                              { "embedding", embedding },
                              { "rnn", rnn },
                              { "rnn_relu", rnn_relu },
                              { "gru", gru },
                              { "gru_deep", gru_deep },
                              { "lstm", lstm },
                              { "lstm_no_bias", lstm_no_bias },
                              { "lstm_deep", lstm_deep },
                              { "lstm_packed", lstm_packed },
                              { "attention_self", attention_self },
                              { "attention_causal", attention_causal },
                              { "attention_cross", attention_cross },
                              { "attention_sizes", attention_sizes },
                              { "encoder", encoder },
                              { "encoder_gpt", encoder_gpt },
                              { "decoder", decoder },
                              { "sequential", sequential } };
enum { TESTS = sizeof tests / sizeof *tests };

/* ---- running ---- */

/* Outputs y0.., then "d.<name>" of all inputs and parameters, of the sum of all outputs times fixed
 * numbers. */
static void add_gradients(fac_graph *g, const layer *l) {
    fac_value *wrt[64], *d[64], *loss = NULL;
    int n = 0;
    for (int k = 0; k < l->n; k++) {
        char name[8];
        snprintf(name, sizeof name, "y%d", k);
        fac_tensor *t = tensor_of(l->y[k]->type, name, plain);
        fac_value *part = fac_sum(fac_mul(l->y[k], fac_const(g, t)), (fac_dims){ 0 }, false);
        fac_tensor_free(t);
        loss = loss ? fac_add(loss, part) : part;
        fac_output(g, name, l->y[k]);
    }
    for (int i = 0; i < fac_graph_inputs(g); i++) wrt[n++] = fac_graph_input(g, i);
    for (int i = 0; i < fac_graph_params(g); i++)
        if (fac_value_trains(fac_graph_param(g, i))) wrt[n++] = fac_graph_param(g, i);
    assert_true(n <= 64);
    fac_grad(loss, n, wrt, d);
    for (int i = 0; i < n; i++) {
        char name[128];
        snprintf(name, sizeof name, "d.%s", fac_value_name(wrt[i]));
        fac_output(g, name, d[i]);
    }
}

static void check(const test *t, fac_dtype dtype, FILE *golden) {
    enum { MOST = 96 };
    const double tolerance = dtype == FAC_F64 ? 1e-10 : 1e-5;
    fac_graph *g = fac_graph_new();
    fac_device *device = NULL;
    fac_program *p = NULL;
    fac_tensor *x[8] = { NULL }, *out[MOST] = { NULL };
    fac_nn_source(g, formula, NULL);
    layer l = t->build(g, dtype);
    if (fac_graph_check(g, &err)) fail_msg("%s: %s", t->name, err.text);
    add_gradients(g, &l);
    OK(fac_graph_check(g, &err));
    for (int i = 0; i < fac_graph_inputs(g); i++) {
        const fac_value *v = fac_graph_input(g, i);
        x[i] = tensor_of(v->type, v->name, plain);
    }
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &device, &err));
    OK(fac_program_new(g, device, NULL, &p, &err));
    if (fac_program_run(p, x, out, &err)) fail_msg("%s: %s", t->name, err.text);

    char name[128];
    digest want;
    int seen = 0;
    for (; golden_next(golden, name, &want); seen++) {
        int k = 0;
        while (k < fac_graph_outputs(g) && strcmp(fac_graph_output_name(g, k), name)) k++;
        if (k == fac_graph_outputs(g)) fail_msg("%s: there is no %s", t->name, name);
        same_digest(t->name, name, digest_of(out[k]), want, tolerance);
    }
    if (seen != fac_graph_outputs(g))
        fail_msg("%s: %d tensors, PyTorch has %d", t->name, fac_graph_outputs(g), seen);
    for (int k = 0; k < fac_graph_outputs(g); k++) fac_tensor_free(out[k]);
    for (int i = 0; i < fac_graph_inputs(g); i++) fac_tensor_free(x[i]);
    fac_program_free(p);
    fac_device_free(device);
    fac_graph_free(g);
}

static void all_layers(fac_dtype dtype) {
    FILE *golden = golden_open("nn_layers.txt");
    char name[128];
    int done = 0;
    for (; golden_case(golden, name); done++) {
        int k = 0;
        while (k < TESTS && strcmp(tests[k].name, name)) k++;
        if (k == TESTS) fail_msg("no layer for %s", name);
        check(&tests[k], dtype, golden);
    }
    assert_int_equal(done, TESTS);
    fclose(golden);
}

static void layers_are_torchs_in_f64(void **state) {
    (void)state;
    all_layers(FAC_F64);
}
static void layers_are_torchs_in_f32(void **state) {
    (void)state;
    all_layers(FAC_F32);
}

int main(void) {
    const struct CMUnitTest all[] = {
        cmocka_unit_test(layers_are_torchs_in_f64),
        cmocka_unit_test(layers_are_torchs_in_f32),
    };
    return cmocka_run_group_tests_name("nn_layers", all, NULL, NULL);
}
