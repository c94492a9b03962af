/* The proof that tiles are right is worth what it catches: mutants of tiled networks, inside of
 * functions and loops too, are called different by fac_verify, each; see rewrite/tile_mutants.h. */
#include "tile_mutants.h"

/* Convolutions, transposed ones with and without groups, and products, with remainders everywhere.
 */
static fac_graph *network(void) {
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1, 3, 6, 6));
    const fac_nn_conv_transpose_opts wide = { .stride = 2, .pad = 1 },
                                     grouped = { .groups = 2, .pad = 1 };
    x = fac_relu(fac_nn_conv2d(x, "conv", 10, 3, &(fac_nn_conv_opts){ .pad = 1 }));
    x = fac_relu(fac_nn_conv_transpose2d(x, "up1", 12, 4, &wide));
    x = fac_relu(fac_nn_conv_transpose2d(x, "up2", 6, 3, &grouped));
    x = fac_flatten(fac_max_pool2d(x, 2, 2, NULL), 1);
    fac_output(g, "y", fac_nn_linear(fac_tanh(fac_nn_linear(x, "fc1", 21)), "fc2", 11));
    OK(fac_graph_check(g, &err));
    lively_params(g);
    return g;
}

static int kinds_seen(const bool seen[MUTANT_KINDS]) {
    int count = 0;
    for (int k = 0; k < MUTANT_KINDS; k++) count += seen[k];
    return count;
}

/* Mutants from all over the graph, kinds in turn.  Each is told apart, nearly all by inputs. */
static int mutants(fac_tile_opts how, int wanted, int least_kinds) {
    fac_graph *g = network(), *cut = NULL;
    bool seen[MUTANT_KINDS] = { false };
    int caught = 0, proved = 0;
    OK(fac_graph_tile(g, &how, &cut, NULL, &err));
    fac_verify_opts opts = { .seed = seed };
    fac_verdict v;
    OK(fac_verify(g, cut, device, &opts, &v, &err));
    if (v.same != FAC_SAME) fail_msg("no mutant: %s", v.why);
    const int nodes = nodes_of(cut);
    for (int k = 0; k < wanted; k++) {
        mutation m = { .kind = k % MUTANT_KINDS,
                       .target = k * nodes / wanted,
                       .draw = fac_random_bits(seed, ++stream, 0) };
        const int kind = m.kind;
        opts.mode = k % 2 ? FAC_VERIFY_FULL : FAC_VERIFY_EXACT;
        fac_graph *bad = tile_mutant(cut, &m);
        if (!bad) continue;
        OK(fac_verify(g, bad, device, &opts, &v, &err));
        if (v.same == FAC_SAME) fail_msg("mutant %d, %s: not caught", k, m.what);
        if (v.same != FAC_DIFFERENT)
            print_message("mutant %d, %s: %s, %s\n", k, m.what, fac_sameness_word(v.same), v.why);
        proved += v.same == FAC_DIFFERENT;
        seen[kind] = true;
        caught++;
        fac_graph_free(bad);
    }
    print_message("%d mutants of %d kinds, %d proved to differ\n", caught, kinds_seen(seen),
                  proved);
    assert_true(proved + 1 >= caught);
    assert_true(kinds_seen(seen) >= least_kinds);
    fac_graph_free(cut);
    fac_graph_free(g);
    return caught;
}

static const fac_tile_opts small = { .m = 8, .n = 40, .k = 24 };

static void of_nodes(void **state) {
    (void)state;
    assert_true(mutants(small, 70, 5) >= 30);
}

static void of_sums(void **state) {
    (void)state;
    fac_tile_opts how = small;
    how.sum = FAC_TILE_TREE;
    assert_true(mutants(how, 40, 5) >= 20);
}

static void of_taps(void **state) {
    (void)state;
    fac_tile_opts how = small;
    how.conv = FAC_TILE_TAPS;
    assert_true(mutants(how, 30, 4) >= 12);
}

static void of_functions(void **state) {
    (void)state;
    fac_tile_opts how = small;
    how.mode = FAC_TILE_FUNCTION;
    assert_true(mutants(how, 60, 4) >= 30);
}

static void of_loops(void **state) {
    (void)state;
    fac_tile_opts how = small;
    how.mode = FAC_TILE_LOOP;
    assert_true(mutants(how, 60, 5) >= 20);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(of_nodes), cmocka_unit_test(of_sums),
                                        cmocka_unit_test(of_taps), cmocka_unit_test(of_functions),
                                        cmocka_unit_test(of_loops) };
    return cmocka_run_group_tests_name("tile_mutants", tests, open_device, close_device);
}
