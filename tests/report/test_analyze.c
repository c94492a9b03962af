/* What models cost: the numbers of eight counters on eight networks, to the unit; memory over time;
 * orders against all orders. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fresh_seed.h"
#include "base/rng.h"
#include "facula/report/analyze.h"
#include "facula/facula.h"

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

/* Counted by the tools themselves (torchinfo 1.8, ptflops 0.7.5, fvcore 0.1.5, thop 0.1.1) on
 * torchvision's networks, one image of 224 x 224. */
static const struct {
    const char *name;
    double params, count[7];
} golden[] = {
    { "alexnet",
      61100840,
      { 714188480, 714682664, 716441128, 715561896, 714682664, 714197696, 714206912 } },
    { "vgg16",
      138357544,
      { 15470264320, 15483821032, 15523225576, 15503523304, 15483821032, 15470289408,
        15470314496 } },
    { "resnet18",
      11689512,
      { 1814073344, 1814083944, 1825313768, 1822177768, 1814074344, 1819065856, 1824033792 } },
    { "resnet50",
      25557032,
      { 4089184256, 4089238376, 4132436968, 4121925096, 4089185256, 4111512576, 4133742592 } },
    { "squeezenet1_0",
      1248424,
      { 818924576, 823270824, 836821960, 830046392, 823270824, 819093576, 819094576 } },
    { "squeezenet1_1",
      1235496,
      { 349151936, 351741288, 359982728, 355862008, 351741288, 349320936, 349321936 } },
    { "mobilenet_v2",
      3504872,
      { 300774272, 300809384, 320300008, 320237288, 300775272, 314193216, 327486720 } },
    { "googlenet",
      6624904,
      { 1498376192, 1498391752, 1513907448, 1507755400, 1498377192, 1504878688, 1511332032 } },
};

static void zoo_in_every_convention(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof golden / sizeof *golden; k++) {
        fac_graph *g = NULL;
        fac_analysis *a = NULL;
        OK(fac_zoo_new(golden[k].name, NULL, 1, &g, &err));
        OK(fac_analyze(g, 1, &a, &err));
        assert_null(fac_analysis_open(a));
        assert_int_equal(fac_analysis_totals(a).params, golden[k].params);
        for (int c = 0; c < 7; c++) {
            const double n = fac_analysis_count(a, (fac_convention)c);
            if (n != golden[k].count[c])
                fail_msg("%s, %s: %.0f, not %.0f", golden[k].name,
                         fac_convention_name((fac_convention)c), n, golden[k].count[c]);
        }
        fac_analysis_free(a);
        fac_graph_free(g);
    }
}

/* onnx-tool 1.0.1; peak and sum of results by an ideal allocator in the order of the file (kB,
 * rounded as published). */
static const struct {
    const char *file;
    double macs, tool, results, peak;
} light[] = {
    { "bvlc_alexnet", 654560384, 675839112, 7.20, 2.24 },
    { "densenet121", 2834161664, 3369419240, 320.48, 8.43 },
    { "inception_v1", 1431556352, 1481545240, 36.64, 6.42 },
    { "inception_v2", 2018851840, 2157663112, 84.54, 6.42 },
    { "resnet50", 4089184256, 4450789512, 150.25, 9.63 },
    { "shufflenet", 124664528, 234546984, 57.07, 3.11 },
    { "squeezenet", 349151936, 357511224, 28.20, 6.31 },
    { "vgg19", 19632062464, 19667941512, 125.14, 25.69 },
    { "zfnet512", 1481727008, 1542366888, 18.84, 9.12 },
};

static void onnx_files(void **state) {
    (void)state;
    const char *data = getenv("FACULA_DATA");
    if (!data) {
        print_message("skipped: no FACULA_DATA\n");
        skip();
    }
    for (size_t k = 0; k < sizeof light / sizeof *light; k++) {
        char path[512];
        fac_graph *g = NULL;
        fac_analysis *a = NULL;
        snprintf(path, sizeof path, "%s/models/light/light_%s.onnx", data, light[k].file);
        OK(fac_onnx_load(path, NULL, &g, &err));
        OK(fac_analyze(g, 1, &a, &err));
        const fac_totals t = fac_analysis_totals(a);
        assert_int_equal(t.macs, light[k].macs);
        assert_int_equal(fac_analysis_count(a, FAC_COUNT_ONNX_TOOL), light[k].tool);
        assert_true(fabs(t.activations / 1e6 - light[k].results) < 0.0051);
        assert_true(fabs(t.peak / 1e6 - light[k].peak) < 0.0051);
        fac_analysis_free(a);
        fac_graph_free(g);
    }
}

/* ---- batch, sharing, unknown sizes ---- */

static void batch_and_shared_weights(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_analysis *a = NULL;
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(8, 8), &t, &err));
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 8)),
              *w = fac_param(g, "w", t);
    fac_output(g, "y", fac_linear(fac_relu(fac_linear(x, w, NULL)), w, NULL));
    assert_int_equal(fac_analyze(g, -3, &a, &err), FAC_E_ARGUMENT);
    assert_string_equal(err.text, "a batch of -3, expected 0 or more");
    OK(fac_analyze(g, 5, &a, &err));
    assert_int_equal(fac_analysis_totals(a).params, 64); /* once */
    assert_int_equal(fac_analysis_totals(a).weights, 256);
    assert_int_equal(fac_analysis_totals(a).macs, 2 * 5 * 64);
    assert_int_equal(fac_analysis_layer(a, 0)->params, 64);
    assert_int_equal(fac_analysis_layer(a, 0)->shared, 0);
    assert_int_equal(fac_analysis_layer(a, 2)->params, 0);
    assert_int_equal(fac_analysis_layer(a, 2)->shared, 64);
    assert_null(fac_analysis_layer(a, 3));
    assert_null(fac_analysis_layer(a, -1));
    fac_alive alive[1];
    assert_int_equal(fac_analysis_alive(a, 1, alive, 1), 2); /* what relu reads and what it makes */
    assert_int_equal(alive[0].bytes, 160);
    fac_analysis_free(a);
    fac_graph_free(g);
    fac_tensor_free(t);
}

static void sizes_that_cannot_be(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_analysis *a = NULL;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 6));
    fac_output(g, "y", fac_relu(fac_reshape(x, fac_shape(2, 6)))); /* only for N = 2 */
    OK(fac_graph_check(g, &err));
    OK(fac_analyze(g, 3, &a, &err));
    assert_non_null(fac_analysis_open(a));
    assert_int_equal(fac_analysis_totals(a).layers, 2);
    fac_analysis_free(a);
    a = NULL;
    OK(fac_analyze(g, 2, &a, &err));
    assert_null(fac_analysis_open(a));
    fac_analysis_free(a);
    fac_graph_free(g);
}

static void paths_of_exporters(void **state) {
    (void)state;
    static const char *const text = "input x f32[1,4]\n"
                                    "a = relu(x) !features.features.0.features.0.0.Relu\n"
                                    "b = tanh(a) !features.features.0.features.0.1.Tanh_1\n"
                                    "c = relu(b) !conv1.Relu\n"
                                    "d = tanh(c) @conv1.act\n"
                                    "output y = d\n";
    static const struct {
        const char *module;
        bool layer;
    } want[] = { { "features.0.0", true },
                 { "features.0.1", true },
                 { "conv1", false },
                 { "conv1.act", true } };
    FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    fac_graph *g = NULL;
    fac_analysis *a = NULL;
    OK(fac_graph_read(f, &g, &err));
    fclose(f);
    OK(fac_analyze(g, 1, &a, &err));
    for (int i = 0; i < 4; i++) {
        assert_string_equal(fac_analysis_layer(a, i)->module, want[i].module);
        assert_int_equal(fac_analysis_layer(a, i)->is_module, want[i].layer);
    }
    fac_analysis_free(a);
    fac_graph_free(g);
}

/* ---- orders ---- */

enum { MOST = 8 };

/* Layer i reads one or two results of earlier ones (or x); sizes are random.  The reference knows
 * nothing of stretches. */
typedef struct net {
    int n, in[MOST][2];
    double bytes[MOST + 1];
    bool out[MOST];
} net;

static double peak_of(const net *t, const int *order) {
    double live = t->bytes[MOST], peak = 0;
    bool done[MOST] = { false };
    for (int k = 0; k < t->n; k++) {
        live += t->bytes[order[k]];
        if (live > peak) peak = live;
        done[order[k]] = true;
        for (int v = -1; v < t->n;
             v++) { /* what was read for the last time just now, or never will be */
            bool read_here = v == order[k], later = v >= 0 && t->out[v];
            for (int i = 0; i < t->n; i++) {
                const bool reads = t->in[i][0] == v || t->in[i][1] == v;
                read_here |= reads && i == order[k];
                later |= reads && !done[i];
            }
            if (read_here && !later) live -= t->bytes[v < 0 ? MOST : v];
        }
    }
    return peak;
}

static double best_of_all(const net *t, int *order, int k, double best) {
    if (k >= MOST) {
        const double p = peak_of(t, order);
        return p < best ? p : best;
    }
    for (int i = 0; i < t->n; i++) {
        bool ready = true;
        for (int j = 0; j < k; j++) ready &= order[j] != i;
        for (int s = 0; s < 2; s++) {
            bool there = t->in[i][s] < 0;
            for (int j = 0; j < k; j++) there |= order[j] == t->in[i][s];
            ready &= there;
        }
        order[k] = i;
        if (ready) best = best_of_all(t, order, k + 1, best);
    }
    return best;
}

/* The same as a graph: one input gathers so many elements, two are joined. */
static fac_graph *graph_of(net *t, uint64_t seed, uint64_t trial) {
    fac_graph *g = fac_graph_new();
    fac_value *v[MOST], *x = fac_input(g, "x", FAC_F32, fac_shape(32));
    uint64_t at = 0;
    t->bytes[MOST] = 128;
    for (int i = 0; i < t->n; i++) {
        for (int s = 0; s < 2; s++)
            t->in[i][s] = (int)(fac_random_bits(seed, trial, at++) % (uint64_t)(i + 1)) - 1;
        fac_value *in[2];
        for (int s = 0; s < 2; s++) in[s] = t->in[i][s] < 0 ? x : v[t->in[i][s]];
        if (fac_random_bits(seed, trial, at++) % 2) {
            fac_tensor *index = NULL;
            OK(fac_tensor_new(NULL, FAC_I64,
                              fac_shape(1 + (int64_t)(fac_random_bits(seed, trial, at++) % 64)),
                              &index, &err));
            v[i] = fac_gather(in[0], fac_const(g, index), 0);
            t->in[i][1] = t->in[i][0];
            fac_tensor_free(index);
        } else {
            v[i] = fac_concat(in, 2, 0);
        }
        t->bytes[i] = 4 * (double)fac_value_type(v[i]).dims.d[0];
    }
    for (int i = 0; i < t->n;
         i++) { /* what nothing reads is a result of the graph, or it would be dropped */
        t->out[i] = true;
        for (int j = i + 1; j < t->n; j++) t->out[i] &= t->in[j][0] != i && t->in[j][1] != i;
        char name[8];
        snprintf(name, sizeof name, "y%d", i);
        if (t->out[i]) fac_output(g, name, v[i]);
    }
    return g;
}

static void orders_are_the_best(void **state) {
    (void)state;
    const uint64_t seed = fresh_seed();
    int better = 0, proven = 0;
    for (uint64_t trial = 0; trial < 60; trial++) {
        net t = { .n = MOST };
        fac_graph *g = graph_of(&t, seed, trial);
        fac_analysis *a = NULL;
        int order[MOST], other[MOST], as_built[MOST];
        double peak;
        bool exact;
        OK(fac_analyze(g, 1, &a, &err));
        for (int i = 0; i < MOST; i++) as_built[i] = i;
        assert_int_equal(fac_analysis_totals(a).layers, MOST);
        assert_int_equal(fac_analysis_totals(a).peak, peak_of(&t, as_built));
        OK(fac_analysis_order(a, order, &peak, &exact, &err));
        const double best = exact ? best_of_all(&t, other, 0, 1e9) : peak;
        if (peak != best || peak != peak_of(&t, order) || peak > fac_analysis_totals(a).peak)
            fail_msg("trial %d: %.0f bytes, the order gives %.0f, the best of all %.0f", (int)trial,
                     peak, peak_of(&t, order), best);
        assert_true(peak >= fac_analysis_totals(a).bound);
        proven += exact;
        better += peak < fac_analysis_totals(a).peak;
        fac_analysis_free(a);
        fac_graph_free(g);
    }
    assert_true(better > 0 && proven > 20);
}

/* A wide net of more layers than the exact search has bits: greedy, and never worse. */
static void wide_nets(void **state) {
    (void)state;
    enum { BRANCHES = 100 };
    fac_graph *g = fac_graph_new();
    fac_analysis *a = NULL;
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(1000)), *wide[BRANCHES], *y = NULL;
    for (int i = 0; i < BRANCHES; i++) wide[i] = fac_tanh(x);
    for (int i = 0; i < BRANCHES; i++) {
        fac_value *one = fac_sum(wide[i], fac_shape(0), true);
        y = y ? fac_add(y, one) : one;
    }
    fac_output(g, "y", y);
    OK(fac_analyze(g, 1, &a, &err));
    int order[3 * BRANCHES];
    bool seen[3 * BRANCHES] = { false };
    double peak;
    bool exact;
    OK(fac_analysis_order(a, order, &peak, &exact, &err));
    assert_false(exact);
    assert_int_equal(fac_analysis_totals(a).peak, 4000 * (BRANCHES + 1));
    assert_true(peak < 4000 * 4);
    for (int i = 0; i < fac_analysis_totals(a).layers; i++) {
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
    }
    fac_analysis_free(a);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(zoo_in_every_convention),
                                        cmocka_unit_test(onnx_files),
                                        cmocka_unit_test(batch_and_shared_weights),
                                        cmocka_unit_test(sizes_that_cannot_be),
                                        cmocka_unit_test(paths_of_exporters),
                                        cmocka_unit_test(orders_are_the_best),
                                        cmocka_unit_test(wide_nets) };
    return cmocka_run_group_tests_name("analyze", tests, NULL, NULL);
}
