/* Tilings of whole networks, right ones and wrong ones (rewrite/tile_mutants.h), in fac_verify's
 * default mode: the right ones are all called the same, of the wrong ones of each network at least
 * 99 in 100 different.  Some mutants are no other function (softmax does not see the bias of keys,
 * a tile may hold nothing but zeros): what f64 takes for the same on four kinds of inputs counts
 * apart.  A sample; FACULA_ALL=1: 200 mutants of each network at full size and eight right tilings,
 * which takes hours.  The arguments name one network and say how many mutants of it. */
#include <math.h>
#include "tile_mutants.h"

enum { MUTANTS = 200, RIGHT = 8 };

typedef struct network {
    const char *name;
    int size, small; /* of the images, or layers: at full size, in the sample */
    int64_t limit;   /* of products: m, n and k */
    int sample;      /* mutants; 0: too large for a sample */
} network;

static const network networks[] = { { "alexnet", 224, 224, 128, 2 },
                                    { "vgg16", 224, 224, 512, 0 },
                                    { "mobilenet_v2", 224, 64, 64, 3 },
                                    { "minilm", 2, 1, 128, 3 } };

static int asked; /* mutants; 0: as many as usual */

static bool all(void) { return getenv("FACULA_ALL") != NULL; }

/* Blocks with MiniLM's sizes. */
static fac_value *minilm(fac_value *x, int layers) {
    const fac_nn_transformer_opts block = { .feedforward = 1536,
                                            .batch_first = true,
                                            .activation = fac_gelu };
    for (int k = 0; k < layers; k++) {
        char name[32];
        snprintf(name, sizeof name, "layer.%d", k);
        x = fac_nn_transformer_encoder_layer(x, name, 12, &block);
    }
    return x;
}

/* Biases, norms and statistics that matter; weights are drawn as for training. */
static void lively_lines(fac_graph *g) {
    for (int i = 0; i < fac_graph_params(g); i++) {
        fac_tensor *t = fac_value_tensor(fac_graph_param(g, i));
        const fac_type type = fac_tensor_type(t);
        const char *name = fac_value_name(fac_graph_param(g, i));
        const int64_t n = fac_dims_count(&type.dims);
        if (type.dims.n != 1 || type.dtype != FAC_F32) continue;
        const bool factor = strstr(name, "var") || strstr(name, "weight");
        float *x = calloc((size_t)n, sizeof *x);
        stream++;
        for (int64_t k = 0; k < n; k++) {
            const float u = (float)fac_random_uniform(seed, stream, (uint64_t)k);
            x[k] = factor ? 0.5f + u : 0.4f * u - 0.2f;
        }
        OK(fac_tensor_write(t, x, (size_t)n * sizeof *x, &err));
        free(x);
    }
}

static fac_graph *build(const network *net) {
    const int size = all() ? net->size : net->small;
    const fac_zoo *zoo = fac_zoo_find(net->name);
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, seed);
    fac_value *x =
        fac_input(g, "x", FAC_F32, zoo ? fac_shape(1, 3, size, size) : fac_shape(1, 128, 384));
    fac_output(g, "y", zoo ? zoo->build(x) : minilm(x, size));
    fac_graph *still = fac_graph_inference(g);
    OK(fac_graph_check(still, &err));
    fac_graph_free(g);
    lively_lines(still);
    return still;
}

/* ---- right ones ---- */

static fac_tile_opts any_tiling(int64_t limit) {
    fac_tile_opts how = { .m = limit / 2 + random_below(limit),
                          .n = limit / 2 + random_below(limit),
                          .k = limit / 2 + random_below(limit) };
    how.mode = (fac_tile_mode)random_below(3);
    how.sum = how.mode == FAC_TILE_LOOP ? FAC_TILE_CHAIN : (fac_tile_sum)random_below(3);
    how.conv = (fac_tile_conv)random_below(2);
    how.pad = random_below(2);
    return how;
}

static void right_ones(const network *net, const fac_graph *g, int count) {
    for (int k = 0; k < count; k++) {
        const fac_tile_opts how = any_tiling(net->limit);
        fac_graph *cut = NULL;
        fac_verdict v;
        OK(fac_graph_tile(g, &how, &cut, NULL, &err));
        OK(fac_verify(g, cut, device, &(fac_verify_opts){ .seed = seed }, &v, &err));
        if (v.same != FAC_SAME)
            fail_msg("%s, m %d, n %d, k %d, sum %d, mode %d, conv %d, pad %d: %s, %s", net->name,
                     (int)how.m, (int)how.n, (int)how.k, how.sum, how.mode, how.conv, how.pad,
                     fac_sameness_word(v.same), v.why);
        fac_graph_free(cut);
    }
}

/* ---- wrong ones ---- */

typedef struct tally {
    int count, different, equal, kinds[MUTANT_KINDS];
} tally;

static fac_graph *in_f64(const fac_graph *g) {
    fac_graph *wide = NULL;
    OK(fac_graph_floats(g, FAC_F64, &wide, &err));
    return wide;
}

static fac_tensor *doubles(fac_type type, double size) {
    fac_tensor *t = NULL;
    const int64_t n = fac_dims_count(&type.dims);
    double *x = calloc((size_t)n, sizeof *x);
    stream++;
    for (int64_t k = 0; k < n; k++)
        x[k] = size * (2 * fac_random_uniform(seed, stream, (uint64_t)k) - 1);
    OK(fac_tensor_new(NULL, FAC_F64, type.dims, &t, &err));
    OK(fac_tensor_write(t, x, (size_t)n * sizeof *x, &err));
    free(x);
    return t;
}

/* Of the largest of a. */
static double apart(const fac_tensor *a, const fac_tensor *b) {
    const fac_type type = fac_tensor_type(a);
    const double *x = fac_tensor_data(a), *y = fac_tensor_data(b);
    double most = 0, off = 0;
    for (int64_t k = 0; k < fac_dims_count(&type.dims); k++) {
        most = fmax(most, fabs(x[k]));
        off = fmax(off, fabs(x[k] - y[k]));
    }
    return off / most;
}

/* Without fac_verify: no output differs by more than f64 rounds. */
static bool is_equal(const fac_graph *g, const fac_graph *bad) {
    static const double sizes[] = { 1, 8, 0.03, 60 };
    fac_graph *a = in_f64(g), *b = in_f64(bad);
    double most = 0;
    for (int k = 0; k < 4; k++) {
        fac_tensor *x = doubles(fac_value_type(fac_graph_input(a, 0)), sizes[k]);
        fac_tensor *y[2] = { NULL };
        run_graph(a, NULL, &x, &y[0]);
        run_graph(b, NULL, &x, &y[1]);
        most = fmax(most, apart(y[0], y[1]));
        fac_tensor_free(x);
        fac_tensor_free(y[0]);
        fac_tensor_free(y[1]);
    }
    fac_graph_free(a);
    fac_graph_free(b);
    return most < 1e-11;
}

/* What the first kind of inputs tells apart is different in all rounds, too. */
static fac_verdict verdict_on(const fac_graph *g, const fac_graph *bad) {
    fac_verify_opts opts = { .seed = seed, .mode = FAC_VERIFY_DATA, .rounds = 1, .brief = true };
    fac_verdict v;
    OK(fac_verify(g, bad, device, &opts, &v, &err));
    if (v.same == FAC_DIFFERENT) return v;
    opts = (fac_verify_opts){ .seed = seed, .brief = true };
    OK(fac_verify(g, bad, device, &opts, &v, &err));
    return v;
}

static void one_mutant(const fac_graph *g, const fac_graph *cut, int kind, tally *to) {
    mutation m = { .kind = kind,
                   .target = (int)random_below(nodes_of(cut)),
                   .draw = fac_random_bits(seed, ++stream, 0) };
    fac_graph *bad = tile_mutant(cut, &m);
    if (!bad) {
        m.target = m.at = 0;
        bad = tile_mutant(cut, &m);
    }
    if (!bad) return;
    const fac_verdict v = verdict_on(g, bad);
    const bool equal = v.same != FAC_DIFFERENT && is_equal(g, bad);
    if (v.same != FAC_DIFFERENT && !equal)
        print_message("%s: %s, %s\n", m.what, fac_sameness_word(v.same), v.why);
    fac_graph_free(bad);
    to->equal += equal;
    if (equal) return;
    to->different += v.same == FAC_DIFFERENT;
    to->kinds[kind]++;
    to->count++;
}

static const fac_tile_mode modes[] = { FAC_TILE_UNROLL, FAC_TILE_FUNCTION, FAC_TILE_LOOP };
static const fac_tile_sum sums[] = { FAC_TILE_CHAIN, FAC_TILE_TREE, FAC_TILE_CHAIN };

/* Kinds in turn, and tiles as nodes, as functions and as loops. */
static tally wrong_ones(const network *net, const fac_graph *g, int wanted) {
    tally t = { 0 };
    int kind = (int)random_below(MUTANT_KINDS);
    for (int mode = 0; mode < 3; mode++) {
        const fac_tile_opts how = { .m = net->limit,
                                    .n = net->limit,
                                    .k = net->limit,
                                    .mode = modes[mode],
                                    .sum = sums[mode] };
        fac_graph *cut = NULL;
        OK(fac_graph_tile(g, &how, &cut, NULL, &err));
        while (t.count < wanted * (mode + 1) / 3) one_mutant(g, cut, kind++ % MUTANT_KINDS, &t);
        fac_graph_free(cut);
    }
    return t;
}

static void of_network(const network *net) {
    const int usual = all() ? MUTANTS : net->sample;
    const int wanted = asked ? asked : usual;
    if (!wanted) return;
    fac_graph *g = build(net);
    right_ones(net, g, all() ? RIGHT : 1);
    const tally t = wrong_ones(net, g, wanted);
    print_message("%s: %d right ones the same, %d of %d wrong ones different, %d more no other "
                  "function\n",
                  net->name, all() ? RIGHT : 1, t.different, t.count, t.equal);
    for (int k = 0; k < MUTANT_KINDS; k++)
        if (t.kinds[k]) print_message("    %4d  %s\n", t.kinds[k], mutant_kinds[k].what);
    assert_true(t.different * 100 >= t.count * 99);
    fac_graph_free(g);
}

static void of_networks(void **state) {
    for (size_t k = 0; k < sizeof networks / sizeof *networks; k++)
        if (!*state || !strcmp(*state, networks[k].name)) of_network(&networks[k]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = { cmocka_unit_test_prestate(of_networks,
                                                                  argc > 1 ? argv[1] : NULL) };
    if (argc > 2) asked = atoi(argv[2]);
    return cmocka_run_group_tests_name("tile_networks", tests, open_device, close_device);
}
