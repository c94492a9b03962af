/* Diffs: one edit after the other on a network is told as just that edit; renamed and reordered
 * models are the same; contents of parameters; large models. */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "allocations.h"
#include "base/rng.h"
#include "facula/facula.h"
#include "facula/op.h"
#include "graph/graph_internal.h"
#include "report/diff/match.h"
#include "flow_check.h"

static fac_differences *diff(const fac_graph *a, const fac_graph *b, fac_diff_opts o) {
    fac_differences *d = NULL;
    OK(fac_diff(a, b, &o, &d, err));
    return d;
}

/* What the edits of network() are. */
typedef enum edit {
    NONE,
    STRIDE,
    INSERT,
    REMOVE,
    REPLACE,
    REWIRE,
    INPUT_TYPE,
    OUTPUT_ADDED,
    CONST,
    SWAPPED
} edit;

/* A residual block between two convolutions; nodes are named by their scopes. */
static fac_graph *network(edit e) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 3);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(e == INPUT_TYPE ? 2 : 1, 3, 16, 16));
    fac_value *a = fac_nn_conv2d(x, "c1", 8, 3,
                                 &(fac_nn_conv2d_opts){ .pad = 1, .stride = e == STRIDE ? 2 : 1 });
    fac_graph_push(g, "block");
    fac_value *r = e == REPLACE ? fac_sigmoid(a) : fac_relu(a);
    if (e == INSERT) r = fac_tanh(r);
    fac_value *b = fac_nn_conv2d(r, "c2", 8, 3, &(fac_nn_conv2d_opts){ .pad = 1 });
    fac_value *p = NULL, *q = NULL;
    if (e == SWAPPED) q = fac_abs(b);
    p = fac_neg(b);
    if (e != SWAPPED) q = fac_abs(b);
    fac_value *sum = fac_add(p, q);
    fac_value *c = sum;
    if (e != REMOVE) c = fac_mul(sum, fac_number(g, FAC_F32, e == CONST ? 0.25 : 0.5));
    fac_value *s = fac_add(e == REWIRE ? a : r, c);
    fac_graph_pop(g);
    fac_output(g, "y", fac_nn_linear(fac_mean(s, fac_shape(2, 3), false), "fc", 5));
    if (e == OUTPUT_ADDED) fac_output(g, "features", s);
    OK(fac_graph_check(g, err));
    return g;
}

typedef struct expected {
    fac_change_of of;
    fac_change_kind kind;
    const char *name, *text;
} expected;

static void expect_changes(edit e, fac_diff_opts o, int n, const expected *want) {
    fac_graph *a = network(NONE), *b = network(e);
    for (int back = 0; back < 2; back++) { /* either way round it is as many */
        fac_differences *d = back ? diff(b, a, o) : diff(a, b, o);
        int i = 0;
        for (const fac_change *c; (c = fac_differences_get(d, i)); i++) {
            if (back) continue;
            const char *name = c->b ? c->b : c->a;
            if (i >= n) fail_msg("edit %d: more: %s %s", e, name, c->text);
            if (c->of != want[i].of || c->kind != want[i].kind || !strstr(name, want[i].name) ||
                !strstr(c->text, want[i].text))
                fail_msg("edit %d: of %d kind %d %s: %s; expected %d %d %s: %s", e, c->of, c->kind,
                         name, c->text, want[i].of, want[i].kind, want[i].name, want[i].text);
        }
        if (i != n) fail_msg("edit %d, back %d: %d changes, not %d", e, back, i, n);
        assert_true(fac_differences_totals(d).same == !n);
        fac_differences_free(d);
    }
    fac_graph_free(a);
    fac_graph_free(b);
}

static void each_edit_is_told_alone(void **state) {
    (void)state;
    const fac_diff_opts o = { 0 };
    expect_changes(NONE, o, 0, NULL);
    expect_changes(STRIDE, o, 1, (expected[]){ { FAC_OF_NODE, FAC_CHANGED, "c1", "stride=2,2" } });
    expect_changes(INSERT, o, 1,
                   (expected[]){ { FAC_OF_NODE, FAC_ADDED, "tanh", "tanh(block.relu" } });
    expect_changes(REMOVE, o, 1,
                   (expected[]){ { FAC_OF_NODE, FAC_REMOVED, "mul", "mul(block.add" } });
    expect_changes(REPLACE, o, 2,
                   (expected[]){ { FAC_OF_NODE, FAC_REMOVED, "relu", "relu(c1" },
                                 { FAC_OF_NODE, FAC_ADDED, "sigmoid", "sigmoid(c1" } });
    expect_changes(REWIRE, o, 1,
                   (expected[]){ { FAC_OF_NODE, FAC_REWIRED, "add", "input 0 from block.relu" } });
    expect_changes(
        INPUT_TYPE, o, 1,
        (expected[]){ { FAC_OF_INPUT, FAC_CHANGED, "x", "f32[1,3,16,16] -> f32[2,3,16,16]" } });
    expect_changes(OUTPUT_ADDED, o, 1,
                   (expected[]){ { FAC_OF_OUTPUT, FAC_ADDED, "features", "f32[1,8,16,16]" } });
    expect_changes(CONST, o, 1, (expected[]){ { FAC_OF_NODE, FAC_CHANGED, "mul", "0.5 -> 0.25" } });
}

static void names_alone_are_no_difference(void **state) {
    (void)state;
    fac_graph *a = network(NONE), *b = NULL, *c = NULL;
    OK(fac_graph_rename(a, "x", "image", &b, err));
    OK(fac_graph_rename(b, "block.c2.weight", "w", &c, err));
    fac_differences *d = diff(a, c, (fac_diff_opts){ 0 });
    fac_diff_totals t = fac_differences_totals(d);
    assert_true(t.same && t.leaves[FAC_RENAMED] == 2 &&
                t.nodes[FAC_CHANGED] + t.nodes[FAC_REWIRED] + t.nodes[FAC_ADDED] == 0);
    fac_differences_free(d);
    d = diff(a, c, (fac_diff_opts){ .names = true });
    assert_false(fac_differences_totals(d).same);
    assert_string_equal(fac_differences_get(d, 0)->b, "image");
    fac_differences_free(d);
    fac_graph_free(a);
    fac_graph_free(b);
    fac_graph_free(c);
}

static void order_alone_is_no_difference(void **state) {
    (void)state;
    fac_graph *a = network(NONE), *b = network(SWAPPED);
    fac_differences *d = diff(a, b, (fac_diff_opts){ 0 });
    fac_diff_totals t = fac_differences_totals(d);
    assert_true(t.same && t.nodes[FAC_MOVED] == 1);
    fac_differences_free(d);
    d = diff(a, b, (fac_diff_opts){ .order = true });
    assert_false(fac_differences_totals(d).same);
    fac_differences_free(d);
    fac_graph_free(a);
    fac_graph_free(b);
}

/* ---- contents ---- */

static fac_tensor *filled(fac_dtype d, fac_dims dims, const void *data, size_t bytes) {
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, d, dims, &t, err));
    OK(fac_tensor_write(t, data, bytes, err));
    return t;
}

/* Doubles hold no 64 bits; blocks of numbers are found by their own size. */
static void numbers_of_every_type_are_measured(void **state) {
    (void)state;
    static const int64_t p[] = { 1LL << 53, INT64_MAX, -5, INT64_MIN },
                         q[] = { (1LL << 53) + 1, INT64_MAX - 3, -5, INT64_MIN };
    static const fac_dtype wide[] = { FAC_I64, FAC_U64 };
    enum { N = 2048 };
    double largest, share;
    for (int k = 0; k < 2; k++) {
        fac_tensor *a = filled(wide[k], fac_shape(4), p, sizeof p),
                   *b = filled(wide[k], fac_shape(4), q, sizeof q);
        OK(fac_contents_compare(a, b, &largest, &share, err));
        assert_true(largest == 3 && share == 0.5);
        fac_tensor_free(a);
        fac_tensor_free(b);
    }
    static float x[N];
    for (int k = 0; k < N; k++) x[k] = (float)(k % 9 - 4);
    fac_tensor *f = filled(FAC_F32, fac_shape(N), x, sizeof x), *a = NULL, *b = NULL;
    x[N - 5] += 1;
    fac_tensor *g = filled(FAC_F32, fac_shape(N), x, sizeof x);
    OK(fac_tensor_convert(f, FAC_Q8_0, &a, err));
    OK(fac_tensor_convert(g, FAC_Q8_0, &b, err));
    OK(fac_contents_compare(a, b, &largest, &share, err));
    assert_true(largest > 0.9 && largest < 1.1 && share > 0 && share <= 32.0 / N);
    fac_tensor_free(a);
    fac_tensor_free(b);
    fac_tensor_free(f);
    fac_tensor_free(g);
}

static void integers_are_told_as_they_are(void **state) {
    (void)state;
    static const int64_t most[2] = { INT64_MAX, INT64_MAX - 1 };
    fac_graph *g[2];
    for (int k = 0; k < 2; k++) {
        g[k] = fac_graph_new();
        fac_value *x = fac_input(g[k], "x", FAC_I64, fac_shape(4));
        fac_tensor *t = filled(FAC_I64, fac_shape(1), &most[k], sizeof *most);
        fac_output(g[k], "y", fac_neg(fac_add(fac_abs(x), fac_const(g[k], t))));
        fac_tensor_free(t);
    }
    fac_differences *d = diff(g[0], g[1], (fac_diff_opts){ 0 });
    const fac_change *c = fac_differences_get(d, 0);
    assert_non_null(c);
    if (!strstr(c->text, "9223372036854775807 -> 9223372036854775806")) fail_msg("%s", c->text);
    fac_differences_free(d);
    fac_graph_free(g[0]);
    fac_graph_free(g[1]);
}

static void contents_are_measured(void **state) {
    (void)state;
    fac_graph *a = network(NONE), *b = network(NONE);
    fac_tensor *t = fac_value_tensor(fac_graph_find(b, "fc.weight"));
    const fac_type type = fac_tensor_type(t);
    const size_t bytes = fac_type_bytes(&type);
    float *x = malloc(bytes);
    OK(fac_tensor_read(t, x, bytes, err));
    x[3] += 0.5f;
    x[17] -= 0.125f;
    const double most = fabs((double)x[3] - (double)((const float *)fac_tensor_data(t))[3]);
    OK(fac_tensor_write(t, x, bytes, err));
    fac_differences *d = diff(a, b, (fac_diff_opts){ 0 });
    const fac_change *c = fac_differences_get(d, 0);
    assert_non_null(c);
    assert_null(fac_differences_get(d, 1));
    assert_true(c->of == FAC_OF_PARAMETER && c->kind == FAC_CHANGED && !strcmp(c->a, "fc.weight"));
    assert_true(c->largest == most && fabs(c->share - 2.0 / 40) < 1e-12);
    fac_differences_free(d);
    x[5] = NAN;
    OK(fac_tensor_write(t, x, bytes, err));
    d = diff(a, b, (fac_diff_opts){ 0 });
    assert_true(isinf(fac_differences_get(d, 0)->largest));
    fac_differences_free(d);
    d = diff(a, b, (fac_diff_opts){ .structure = true });
    assert_true(fac_differences_totals(d).same);
    fac_differences_free(d);
    fac_graph_free(a);
    fac_graph_free(b);
    free(x);
}

/* ---- many equal nodes, numbered names ---- */

static void equal_branches_pair_up(void **state) {
    (void)state;
    fac_graph *g[2];
    for (int k = 0; k < 2; k++) {
        g[k] = fac_graph_new();
        fac_value *x = fac_input(g[k], "x", FAC_F32, fac_shape(4)), *sum = x;
        for (int i = 0; i < 40; i++) sum = fac_add(sum, fac_relu(x));
        fac_output(g[k], "y", k ? fac_neg(sum) : sum);
    }
    fac_differences *d = diff(g[0], g[1], (fac_diff_opts){ 0 });
    assert_int_equal(fac_differences_totals(d).nodes[FAC_ADDED], 1);
    assert_null(fac_differences_get(d, 1));
    fac_differences_free(d);
    for (int k = 0; k < 2; k++) fac_graph_free(g[k]);
}

/* A long chain whose parts all look alike, one node taken out of the middle, and numbered names
 * that shift with it. */
static void long_models_are_compared(void **state) {
    enum { N = 20000, OUT = 9000 };
    (void)state;
    fac_graph *g[2];
    for (int k = 0; k < 2; k++) {
        g[k] = fac_graph_new();
        fac_value *v = fac_input(g[k], "x", FAC_F32, fac_shape(4));
        for (int i = 0, number = 0; i < N; i++) {
            if (k && i == OUT) continue;
            fac_value *(*const ops[])(fac_value *) = { fac_exp, fac_neg, fac_tanh };
            v = ops[i % 3](v);
            char name[32];
            snprintf(name, sizeof name, "Node_%d", number++);
            v->node->name = fac_arena_text(&g[k]->arena, name);
        }
        fac_output(g[k], "y", v);
        OK(fac_graph_check(g[k], err));
    }
    fac_differences *d = diff(g[0], g[1], (fac_diff_opts){ 0 });
    const fac_diff_totals t = fac_differences_totals(d);
    assert_int_equal(t.nodes[FAC_REMOVED], 1);
    assert_int_equal(
        t.nodes[FAC_ADDED] + t.nodes[FAC_CHANGED] + t.nodes[FAC_REWIRED] + t.nodes[FAC_MOVED], 0);
    assert_int_equal(t.nodes[FAC_RENAMED], N - 1 - OUT);
    fac_differences_free(d);
    for (int k = 0; k < 2; k++) fac_graph_free(g[k]);
}

/* Random small edits of random graphs: never more changes than a complete rewrite, always some, and
 * none against itself. */
static void random_graphs_are_told_apart(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        fac_graph *g[2];
        const int n = 5 + (int)(fac_random_bits(seed, 0, 0) % 60),
                  at = (int)(fac_random_bits(seed, 0, 1) % (uint64_t)n);
        for (int k = 0; k < 2; k++) {
            g[k] = fac_graph_new();
            fac_value *v[128] = { fac_input(g[k], "x", FAC_F32, fac_shape(4)) };
            for (int i = 0; i < n; i++) {
                const uint64_t bits = fac_random_bits(seed, 1, (uint64_t)i);
                fac_value *p = v[bits / 7 % (uint64_t)(i + 1)], *q = v[i];
                int op = (int)(bits % 3);
                if (k && i == at) op += 3;
                v[i + 1] = op == 0   ? fac_add(q, p)
                           : op == 1 ? fac_relu(q)
                           : op == 2 ? fac_mul(p, q)
                           : op == 3 ? fac_sub(q, p)
                           : op == 4 ? fac_tanh(q)
                                     : fac_div(p, q);
            }
            fac_output(g[k], "y", v[n]);
            OK(fac_graph_check(g[k], err));
        }
        fac_differences *d = diff(g[0], g[1], (fac_diff_opts){ 0 }),
                        *same = diff(g[0], g[0], (fac_diff_opts){ .names = true });
        const fac_diff_totals t = fac_differences_totals(d);
        if (t.nodes[FAC_REMOVED] != t.nodes[FAC_ADDED] || t.nodes[FAC_ADDED] < 1 ||
            t.nodes[FAC_ADDED] > 4)
            fail_msg("seed %d: %d added, %d removed, %d rewired of %d", (int)seed,
                     t.nodes[FAC_ADDED], t.nodes[FAC_REMOVED], t.nodes[FAC_REWIRED], n);
        assert_false(t.same);
        assert_true(fac_differences_totals(same).same && !fac_differences_get(same, 0));
        fac_differences_free(d);
        fac_differences_free(same);
        for (int k = 0; k < 2; k++) fac_graph_free(g[k]);
    }
}

static void bodies_are_compared(void **state) {
    (void)state;
    static const char *const form = "input x f32[3]\ninput n i64[]\n"
                                    "%%0 = loop(n, -, x) carried=1 {(i64[], bool[], f32[3]) t0 = "
                                    "mul(x2, %s); t1 = exp(t0); x1, t1}\noutput s = %%0\n";
    fac_graph *g[2];
    for (int k = 0; k < 2; k++) {
        char text[300];
        snprintf(text, sizeof text, form, k ? "0.25" : "0.5");
        g[k] = read_text(text);
    }
    fac_differences *d = diff(g[0], g[1], (fac_diff_opts){ 0 });
    const fac_change *c = fac_differences_get(d, 0);
    assert_true(c && c->kind == FAC_CHANGED && !fac_differences_get(d, 1));
    assert_non_null(strstr(c->text, "in its body: mul"));
    assert_non_null(strstr(c->text, "0.5 -> 0.25"));
    fac_differences_free(d);
    for (int k = 0; k < 2; k++) fac_graph_free(g[k]);
}

/* Whichever allocation fails: an error that says so, or nothing is missed by it. */
static void memory_runs_out(void **state) {
    (void)state;
    fac_graph *a = network(STRIDE), *b = network(REWIRE);
    fac_status status = FAC_E_NOMEM;
    int failed = 0;
    for (long n = 0; status; n++) {
        fac_differences *d = NULL;
        fac_error e = { 0 };
        allocations_left = n;
        status = fac_diff(a, b, &(fac_diff_opts){ 0 }, &d, &e);
        allocations_left = -1;
        assert_true(!status || (status == FAC_E_NOMEM && *e.text && !d));
        failed += status != FAC_OK;
        const fac_diff_totals t = status ? (fac_diff_totals){ 0 } : fac_differences_totals(d);
        assert_true(status || t.nodes[FAC_CHANGED] + t.nodes[FAC_REWIRED] == 2);
        fac_differences_free(d);
    }
    assert_true(failed > 10);
    fac_graph_free(a);
    fac_graph_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_edit_is_told_alone),
        cmocka_unit_test(names_alone_are_no_difference),
        cmocka_unit_test(order_alone_is_no_difference),
        cmocka_unit_test(contents_are_measured),
        cmocka_unit_test(numbers_of_every_type_are_measured),
        cmocka_unit_test(integers_are_told_as_they_are),
        cmocka_unit_test(equal_branches_pair_up),
        cmocka_unit_test(long_models_are_compared),
        cmocka_unit_test(random_graphs_are_told_apart),
        cmocka_unit_test(bodies_are_compared),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests_name("diff", tests, NULL, NULL);
}
