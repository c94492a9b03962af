/* First values and state dicts: moments and bounds of every distribution, which of them a layer
 * takes, orthogonality, patterns; loading by name, strictly and not; the counter of dropout,
 * training and inference. */
#include "nn_init_check.h"

typedef struct moments {
    double mean, std, low, high, kurtosis;
} moments;

static moments measure(fac_graph *g, const char *name) {
    int64_t n;
    const float *p = values(g, name, &n);
    moments m = { 0, 0, INFINITY, -INFINITY, 0 };
    double fourth = 0;
    for (int64_t i = 0; i < n; i++) m.mean += (double)p[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)p[i] - m.mean;
        m.std += d * d / (double)n;
        fourth += d * d * d * d / (double)n;
        m.low = fmin(m.low, (double)p[i]);
        m.high = fmax(m.high, (double)p[i]);
    }
    m.kurtosis = fourth / (m.std * m.std);
    m.std = sqrt(m.std);
    return m;
}

/* n numbers: mean within 5 standard errors, standard deviation within 3 %; uniform: kurtosis 9/5
 * and all within its bounds, normal: kurtosis 3 and some beyond 3 standard deviations. */
static void expect(fac_graph *g, const char *name, double mean, double std, bool uniform) {
    const moments m = measure(g, name);
    int64_t n;
    values(g, name, &n);
    if (fabs(m.mean - mean) > 5 * std / sqrt((double)n) || fabs(m.std - std) > 0.03 * std)
        fail_msg("%s: mean %g and standard deviation %g, expected %g and %g", name, m.mean, m.std,
                 mean, std);
    const double kurtosis = uniform ? 1.8 : 3;
    if (fabs(m.kurtosis - kurtosis) > (uniform ? 0.05 : 0.2))
        fail_msg("%s: kurtosis %g", name, m.kurtosis);
    const double bound = sqrt(3.0) * std * (1 + 1e-6);
    if (uniform && (m.low < mean - bound || m.high > mean + bound))
        fail_msg("%s: from %g to %g", name, m.low, m.high);
    if (!uniform && (m.high < mean + 3 * std || m.low > mean - 3 * std))
        fail_msg("%s: no tails", name);
}

/* A weight [200, 25, 2, 2]: fan_in 100, fan_out 800. */
static void distributions_have_their_moments(void **state) {
    (void)state;
    static const struct {
        fac_init init;
        double mean, std;
        bool uniform;
    } cases[] = {
        { { FAC_INIT_UNIFORM, .low = -1, .high = 3 }, 1, 1.1547005384, true },
        { { FAC_INIT_NORMAL, .mean = -1, .std = 0.5 }, -1, 0.5, false },
        { { FAC_INIT_NORMAL, .mean = 0 }, 0, 1, false },
        { { FAC_INIT_XAVIER_UNIFORM, .low = 0 }, 0, 0.0471404521, true }, /* sqrt(2 / 900) */
        { { FAC_INIT_XAVIER_NORMAL, .gain = 3 }, 0, 0.1414213562, false },
        { { FAC_INIT_KAIMING_UNIFORM, .low = 0 }, 0, 0.1414213562, true }, /* sqrt(2 / 100) */
        { { FAC_INIT_KAIMING_UNIFORM, .gain = 0.5, .fan_out = true }, 0, 0.0176776695, true },
        { { FAC_INIT_KAIMING_NORMAL, .gain = 1 }, 0, 0.1, false },
        { { FAC_INIT_KAIMING_NORMAL, .fan_out = true }, 0, 0.05, false },
        { { FAC_INIT_TRUNCATED_NORMAL, .low = -9, .high = 9 }, 0, 1, false },
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fac_graph *g = seeded(k);
        fac_nn_conv2d(x_of(g, fac_shape(1, 25, 8, 8)), "c", 200, 2,
                      &(fac_nn_conv_opts){ .weight = cases[k].init });
        check(g);
        expect(g, "c.weight", cases[k].mean, cases[k].std, cases[k].uniform);
        fac_graph_free(g);
    }
}

/* Of a standard normal cut off at -2 and 2: variance 1 - 4 phi(2) / (2 Phi(2) - 1). */
static void truncated_normals_end(void **state) {
    (void)state;
    fac_graph *g = seeded(1);
    const fac_init usual = { .kind = FAC_INIT_TRUNCATED_NORMAL },
                   tail = { FAC_INIT_TRUNCATED_NORMAL, .low = 3, .high = 9 };
    fac_nn_linear_with(x_of(g, fac_shape(1, 200)), "a", 100,
                       &(fac_nn_linear_opts){ .weight = usual });
    fac_nn_linear_with(fac_graph_input(g, 0), "b", 100, &(fac_nn_linear_opts){ .weight = tail });
    check(g);
    moments m = measure(g, "a.weight");
    assert_float_equal(m.mean, 0, 0.03);
    assert_float_equal(m.std, 0.8796257, 0.02);
    assert_true(m.low >= -2 && m.low < -1.98 && m.high <= 2 && m.high > 1.98);
    m = measure(g, "b.weight");
    assert_float_equal(m.mean, 3.2830986, 0.02); /* phi(3) / (1 - Phi(3)) */
    assert_true(m.low >= 3 && m.high > 4 && m.high <= 9);
    fac_graph_free(g);
}

/* q q^T = gain^2, or q^T q of a tall one. */
static void orthogonal_weights_are(void **state) {
    (void)state;
    static const struct {
        int rows, columns;
    } shapes[] = { { 12, 12 }, { 5, 30 }, { 40, 7 }, { 1, 9 }, { 9, 1 } };
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        const int rows = shapes[k].rows, columns = shapes[k].columns;
        fac_graph *g = seeded(k);
        fac_nn_linear(x_of(g, fac_shape(1, columns)), "a", rows);
        OK(fac_nn_init(g, "a.weight", &(fac_init){ FAC_INIT_ORTHOGONAL, .gain = 2 }, &err));
        int64_t n;
        const float *q = values(g, "a.weight", &n);
        const bool tall = rows > columns;
        for (int i = 0; i < (tall ? columns : rows); i++)
            for (int j = 0; j < (tall ? columns : rows); j++) {
                double dot = 0;
                for (int e = 0; e < (tall ? rows : columns); e++)
                    dot += tall ? (double)q[e * columns + i] * (double)q[e * columns + j]
                                : (double)q[i * columns + e] * (double)q[j * columns + e];
                assert_float_equal(dot, i == j ? 4 : 0, 1e-5);
            }
        fac_graph_free(g);
    }
}

/* What torch's layers start with. */
static void layers_have_torchs_distributions(void **state) {
    (void)state;
    fac_graph *g = seeded(3);
    fac_value *x = x_of(g, fac_shape(4, 3, 60)), *ids = fac_input(g, "ids", FAC_I64, fac_shape(4));
    fac_nn_embedding(ids, "embedding", 100, 60,
                     &(fac_nn_embedding_opts){ .padding = true, .padding_idx = -1 });
    fac_nn_lstm(x, "lstm", 25, NULL);
    fac_nn_multihead_attention(x, x, x, "mha", 4, NULL);
    fac_nn_conv_transpose1d(fac_transpose(x, fac_shape(0, 2, 1)), "up", 40, 3, NULL);
    fac_nn_layer_norm(x, "norm", NULL);
    fac_nn_prelu(x, "slope", 3);
    check(g);
    int64_t n;
    const float *e = values(g, "embedding.weight", &n);
    for (int k = 0; k < 60; k++) assert_true(e[99 * 60 + k] == 0); /* the padding */
    const moments m = measure(g, "embedding.weight");
    assert_true(fabs(m.std - sqrt(0.99)) < 0.03 && m.high > 3);
    expect(g, "lstm.weight_ih_l0", 0, 0.2 / sqrt(3.0), true); /* within 1 / sqrt(25) */
    expect(g, "lstm.weight_hh_l0", 0, 0.2 / sqrt(3.0), true);
    expect(g, "mha.in_proj_weight", 0, sqrt(2.0 / 240), true); /* Xavier: 60 in, 180 out */
    expect(g, "mha.out_proj.weight", 0, 1 / sqrt(3.0 * 60), true);
    expect(g, "up.weight", 0, 1 / sqrt(3.0 * 120), true); /* torch: fan of the second dim, 40 x 3 */
    static const struct {
        const char *name;
        float value;
    } fixed[] = { { "mha.in_proj_bias", 0 },
                  { "mha.out_proj.bias", 0 },
                  { "norm.weight", 1 },
                  { "norm.bias", 0 },
                  { "slope.weight", 0.25f } };
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++) {
        const float *p = values(g, fixed[k].name, &n);
        for (int64_t i = 0; i < n; i++) assert_true(p[i] == fixed[k].value);
    }
    fac_graph_free(g);
}

static void gains(void **state) {
    (void)state;
    assert_float_equal(fac_init_gain("relu", 0), sqrt(2), 1e-15);
    assert_float_equal(fac_init_gain("leaky_relu", sqrt(5)), sqrt(1 / 3.0), 1e-15);
    assert_float_equal(fac_init_gain("tanh", 0), 5 / 3.0, 1e-15);
    assert_true(fac_init_gain("linear", 0) == 1 && fac_init_gain("sigmoid", 0) == 1 &&
                fac_init_gain("selu", 0) == 0.75);
    assert_true(fac_init_gain("sine", 0) == 0);
}

static void patterns_choose_parameters(void **state) {
    (void)state;
    fac_graph *g = seeded(5);
    fac_value *x = x_of(g, fac_shape(1, 8));
    fac_graph_push(g, "encoder");
    x = fac_nn_linear(fac_nn_linear(x, "a", 8), "b", 8);
    fac_graph_pop(g);
    x = fac_nn_batch_norm(fac_nn_linear(x, "head", 8), "bn", 0);
    check(g);
    int64_t n;
    const float before = *values(g, "head.weight", &n);
    OK(fac_nn_init(g, "encoder.*", &(fac_init){ FAC_INIT_CONSTANT, .mean = 2 }, &err));
    assert_true(*values(g, "encoder.a.weight", &n) == 2 && *values(g, "encoder.b.bias", &n) == 2);
    assert_true(*values(g, "head.weight", &n) == before);
    OK(fac_nn_init(g, "*", &(fac_init){ FAC_INIT_CONSTANT, .mean = 3 }, &err));
    assert_true(*values(g, "bn.running_var", &n) == 1); /* a state does not train */
    assert_int_equal(fac_nn_init(g, "decoder.*", &(fac_init){ FAC_INIT_CONSTANT, .mean = 0 }, &err),
                     FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "decoder.*"));
    assert_int_equal(fac_nn_init(g, "*.bias", &(fac_init){ .kind = FAC_INIT_KAIMING_NORMAL }, &err),
                     FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "two"));
    assert_int_equal(fac_nn_init(g, "*", &(fac_init){ .kind = FAC_INIT_DEFAULT }, &err),
                     FAC_E_ARGUMENT);
    /* the same name and seed give the same numbers, whenever they are drawn */
    const fac_init normal = { .kind = FAC_INIT_NORMAL };
    fac_graph *h = seeded(5);
    fac_nn_linear_with(x_of(h, fac_shape(1, 8)), "head", 8,
                       &(fac_nn_linear_opts){ .weight = normal });
    OK(fac_nn_init(g, "head.weight", &normal, &err));
    assert_memory_equal(values(g, "head.weight", &n), values(h, "head.weight", &n),
                        64 * sizeof(float));
    fac_graph_free(h);
    fac_graph_free(g);
}

/* ---- dropout in training and in inference ---- */

static int64_t counter(const fac_graph *g) {
    return *(const int64_t *)fac_tensor_data(
        fac_value_tensor(fac_graph_find((fac_graph *)g, "dropout.counter")));
}

/* How many of y are 0; out[0] is freed. */
static int zeros(fac_program *p, fac_tensor *x) {
    enum { N = 2000 };
    static float y[N];
    fac_tensor *out[1] = { NULL };
    int count = 0;
    OK(fac_program_run(p, &x, out, &err));
    OK(fac_tensor_read(out[0], y, sizeof y, &err));
    for (int k = 0; k < N; k++) {
        assert_true(y[k] == 0 || y[k] == 1 || fabsf(y[k] - 1 / (0.75f * 0.5f)) < 1e-5f);
        count += y[k] == 0;
    }
    fac_tensor_free(out[0]);
    return count;
}

static void dropout_counts_steps_and_inference_drops_nothing(void **state) {
    (void)state;
    fac_graph *g = seeded(9);
    fac_output(g, "y", fac_nn_dropout(fac_nn_dropout(x_of(g, fac_shape(2000)), 0.25), 0.5));
    check(g);
    assert_int_equal(fac_graph_params(g), 1); /* one counter for both */
    fac_graph *train = fac_graph_training(g), *test = fac_graph_inference(g);
    fac_device *device = NULL;
    fac_program *step = NULL, *look = NULL;
    OK(fac_device_open("cpu", NULL, &device, &err));
    OK(fac_program_new(train, device, NULL, &step, &err));
    OK(fac_program_new(test, device, NULL, &look, &err));
    fac_tensor *x = NULL;
    float ones[2000];
    for (int k = 0; k < 2000; k++) ones[k] = 1;
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(2000), &x, &err));
    OK(fac_tensor_write(x, ones, sizeof ones, &err));
    const int64_t start = counter(g);
    for (int k = 1; k <= 3; k++) {
        const int dropped = zeros(step, x);
        assert_true(dropped > 1100 &&
                    dropped <
                        1400); /* 1 - 0.75 x 0.5 of 2000 is 1250, twelve standard deviations */
        assert_int_equal(counter(g), start + k);
        assert_int_equal(zeros(look, x), 0);
        assert_int_equal(counter(g), start + k);
    }
    fac_tensor_free(x);
    fac_program_free(step), fac_program_free(look);
    fac_device_free(device);
    fac_graph_free(train), fac_graph_free(test), fac_graph_free(g);
}

/* ---- misuse ---- */

static void fails(fac_graph *g, fac_status status, const char *says) {
    assert_int_equal(fac_graph_check(g, &err), status);
    if (!strstr(err.text, says)) fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    fac_graph_free(g);
}

static void misuse_is_told(void **state) {
    (void)state;
    fac_graph *g = seeded(0);
    fac_nn_dropout(x_of(g, fac_shape(3)), 1);
    fails(g, FAC_E_ARGUMENT, "dropout of 1");
    g = seeded(0);
    fac_nn_embedding(fac_input(g, "ids", FAC_I64, fac_shape(3)), "e", 4, 2,
                     &(fac_nn_embedding_opts){ .padding = true, .padding_idx = 4 });
    fails(g, FAC_E_ARGUMENT, "e: an embedding of 4 rows");
    g = seeded(0);
    fac_nn_lstm(x_of(g, fac_shape(3, 4)), "rnn", 5, NULL);
    fails(g, FAC_E_SHAPE, "rnn: 1 recurrent layers");
    g = seeded(0);
    fac_nn_layer_norm(x_of(g, fac_shape(3, fac_symbol(g, "N"))), "n", NULL);
    fails(g, FAC_E_SHAPE, "n: a norm over the last 1 dims");
    g = seeded(0);
    fac_value *x = x_of(g, fac_shape(3, 2, 10));
    fac_nn_multihead_attention(x, x, x, "mha", 3, NULL);
    fails(g, FAC_E_SHAPE, "mha: attention of 3 heads");
    g = seeded(0);
    const fac_nn_layer two = { .op = fac_relu, .dropout = 0.5 };
    fac_nn_sequential(x_of(g, fac_shape(3)), "net", 1, &two);
    fails(g, FAC_E_ARGUMENT, "net.0: a layer is one of");
    g = seeded(0);
    x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "T"), 2, 3));
    fac_nn_recurrent r = fac_nn_gru(x, "gru", 2, NULL);
    fac_value *w = fac_graph_find(g, "gru.weight_ih_l0"), *d;
    assert_int_equal(fac_graph_check(g, NULL),
                     FAC_OK); /* an open number of steps is fine until it matters */
    fac_grad(fac_sum(r.y, (fac_dims){ 0 }, false), 1, &w, &d);
    fails(g, FAC_E_UNSUPPORTED, "a known number of steps");
    g = seeded(0);
    fac_value *poison = fac_fail_graph(g, FAC_E_ARGUMENT, "the first error");
    r = fac_nn_lstm(fac_nn_dropout(fac_nn_prelu(poison, "p", 1), 0.5), "l", 2, NULL);
    poison = fac_nn_transformer_encoder_layer(fac_nn_group_norm(r.y, "g", 2, NULL), "t", 2, NULL);
    fac_nn_conv_transpose2d(fac_nn_rms_norm(poison, "n", NULL), "c", 2, 2, NULL);
    assert_int_equal(fac_graph_params(g), 0);
    fails(g, FAC_E_ARGUMENT, "the first error");
}

/* One of nearly everything. */
static void build_much(fac_graph *g) {
    const fac_init orthogonal = { .kind = FAC_INIT_ORTHOGONAL };
    fac_value *ids = fac_input(g, "ids", FAC_I64, fac_shape(2, 3)),
              *lengths = fac_input(g, "lengths", FAC_I64, fac_shape(2));
    fac_value *x =
        fac_nn_embedding(ids, "embedding", 5, 4, &(fac_nn_embedding_opts){ .padding = true });
    x = fac_nn_lstm(x, "lstm", 2,
                    &(fac_nn_recurrent_opts){ .layers = 2,
                                              .bidirectional = true,
                                              .batch_first = true,
                                              .dropout = 0.5,
                                              .lengths = lengths })
            .y;
    x = fac_nn_transformer_encoder_layer(x, "encoder", 2,
                                         &(fac_nn_transformer_opts){ .feedforward = 3,
                                                                     .batch_first = true,
                                                                     .dropout = 0.5,
                                                                     .causal = true,
                                                                     .lengths = lengths });
    x = fac_nn_group_norm(
        fac_nn_conv1d(x, "conv", 4, 3, &(fac_nn_conv_opts){ .pad = 1, .weight = orthogonal }), "gn",
        2, NULL);
    fac_value *loss = fac_mean(fac_nn_prelu(x, "prelu", 1), (fac_dims){ 0 }, false), *wrt[64],
              *d[64];
    int n = 0;
    for (int i = 0; i < fac_graph_params(g) && n < 64; i++)
        if (fac_value_trains(fac_graph_param(g, i))) wrt[n++] = fac_graph_param(g, i);
    fac_grad(loss, n, wrt, d);
    for (int i = 0; i < n; i++) {
        char name[8];
        snprintf(name, sizeof name, "d%d", i);
        fac_output(g, name, d[i]);
    }
}

/* Every so many allocations one fails: an error of the graph each time, and at last all is built.
 */
static void lost_memory_is_an_error(void **state) {
    (void)state;
    bool built = false;
    for (long n = 0; !built; n += n < 200 ? 1 : 37) {
        fac_graph *g = seeded(1);
        allowed = n;
        build_much(g);
        built = allowed >= 0;
        allowed = -1;
        err = (fac_error){ 0 };
        const fac_status status = fac_graph_check(g, &err);
        if (status != (built ? FAC_OK : FAC_E_NOMEM)) fail_msg("%ld: %d %s", n, status, err.text);
        fac_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest all[] = {
        cmocka_unit_test(distributions_have_their_moments),
        cmocka_unit_test(truncated_normals_end),
        cmocka_unit_test(orthogonal_weights_are),
        cmocka_unit_test(layers_have_torchs_distributions),
        cmocka_unit_test(gains),
        cmocka_unit_test(patterns_choose_parameters),
        cmocka_unit_test(dropout_counts_steps_and_inference_drops_nothing),
        cmocka_unit_test(misuse_is_told),
        cmocka_unit_test(lost_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("nn_init", all, NULL, NULL);
}
