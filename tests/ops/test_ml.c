/* ai.onnx.ml: trees of every comparison against a walk of their own, labels, and what is refused.
 * Random models are compared with ONNX Runtime by scripts/peers/check_ml.py. */
#include <math.h>
#include "base/rng.h"
#include "fresh_seed.h"
#include "graph/graph_internal.h"
#include "onnx_check.h"
#include "facula/backend.h"
#include "facula/ops.h"
#include "op_list.h"
#include "ops/ml/tree.h"

static uint64_t seed, drawn;
static int draw(int below) { return (int)(fac_random_bits(seed, 0, drawn++) % (uint64_t)below); }

enum { FEATURES = 5, NODES = 30000, TREES = 700 };
static fac_tree_node nodes[NODES + 64]; /* what is left when growing ends: leaves */
static fac_tree_weight votes[2 * NODES + 128];
static int64_t roots[TREES];
static fac_trees forest;

static double half(int from, int to) { return (from + draw(to - from + 1)) / 2.0; }

/* A random tree; the number of its root. */
static int64_t grow(int depth, bool ordered) {
    const int64_t at = forest.n++;
    nodes[at] = (fac_tree_node){ .mode = FAC_TREE_LEAF, .first = forest.nweights };
    if (!depth || !draw(8) || forest.n + 2 > NODES - 2) {
        nodes[at].count = draw(3);
        for (int64_t k = 0; k < nodes[at].count; k++)
            votes[forest.nweights++] = (fac_tree_weight){ draw((int)forest.targets), half(-8, 8) };
        return at;
    }
    const int64_t yes = grow(depth - 1, ordered), no = grow(depth - 1, ordered);
    nodes[yes].parents = nodes[no].parents = 1;
    nodes[at] = (fac_tree_node){ .mode = ordered ? FAC_TREE_LEQ : draw(FAC_TREE_MEMBER),
                                 .feature = draw(FEATURES),
                                 .yes = yes,
                                 .no = no,
                                 .split = half(-4, 4),
                                 .missing = !ordered && draw(2) };
    return at;
}

static void plant(int trees, int depth, int targets, bool ordered) {
    forest = (fac_trees){ nodes, votes, roots, 0, 0, trees, targets, (fac_tree_aggregate)draw(4) };
    for (int k = 0; k < trees; k++) roots[k] = grow(depth, ordered);
}

/* What the files say, word by word. */
static bool answers(const fac_tree_node *n, double x) {
    if (isnan(x) && n->missing) return true;
    switch (n->mode) {
    case FAC_TREE_LEQ:
        return x <= n->split;
    case FAC_TREE_LT:
        return x < n->split;
    case FAC_TREE_GTE:
        return x >= n->split;
    case FAC_TREE_GT:
        return x > n->split;
    case FAC_TREE_EQ:
        return x == n->split;
    default:
        return x != n->split;
    }
}

static void by_hand(const double *x, double *y, bool *have) {
    for (int64_t k = 0; k < forest.targets; k++) {
        y[k] = 0;
        have[k] = false;
    }
    for (int64_t t = 0; t < forest.nroots; t++) {
        const fac_tree_node *n = &nodes[roots[t]];
        while (n->mode != FAC_TREE_LEAF) n = &nodes[answers(n, x[n->feature]) ? n->yes : n->no];
        for (int64_t k = n->first; k < n->first + n->count; k++) {
            double *to = &y[votes[k].target];
            const double w = votes[k].weight;
            const bool first = !have[votes[k].target];
            have[votes[k].target] = true;
            if (first)
                *to = w;
            else if (forest.aggregate == FAC_TREE_MIN)
                *to = fmin(*to, w);
            else if (forest.aggregate == FAC_TREE_MAX)
                *to = fmax(*to, w);
            else
                *to += w;
        }
    }
    for (int64_t k = 0; k < forest.targets && forest.aggregate == FAC_TREE_AVERAGE; k++)
        y[k] /= (double)forest.nroots;
}

static fac_tensor *random_rows(fac_dtype dtype, int64_t n) {
    fac_tensor *wide = NULL, *t = NULL;
    double *x = fac_alloc((size_t)(n * FEATURES) + 1, sizeof *x);
    assert_non_null(x);
    for (int64_t k = 0; k < n * FEATURES; k++) x[k] = draw(12) ? half(-6, 6) : NAN;
    fac_error err = { 0 };
    assert_int_equal(fac_tensor_new(NULL, FAC_F64, fac_shape(n, FEATURES), &wide, &err), FAC_OK);
    if (n)
        assert_int_equal(fac_tensor_write(wide, x, (size_t)(n * FEATURES) * sizeof *x, &err),
                         FAC_OK);
    assert_int_equal(fac_tensor_convert(wide, dtype, &t, &err), FAC_OK);
    fac_tensor_free(wide);
    fac_release(x);
    return t;
}

static void compare(const fac_tensor *x, const fac_tensor *y, int64_t n, const char *solver) {
    fac_tensor *wide_x = NULL, *wide_y = NULL;
    assert_int_equal(fac_tensor_convert(x, FAC_F64, &wide_x, NULL), FAC_OK);
    assert_int_equal(fac_tensor_convert(y, FAC_F64, &wide_y, NULL), FAC_OK);
    const double *from = fac_tensor_data(wide_x), *got = fac_tensor_data(wide_y);
    for (int64_t k = 0; k < n; k++) {
        double want[8];
        bool have[8];
        by_hand(from + k * FEATURES, want, have);
        for (int64_t t = 0; t < forest.targets; t++)
            if (fabs(got[k * forest.targets + t] - want[t]) > 1e-5)
                fail_msg("%s: row %d of %d, target %d of %d is %g, not %g", solver, (int)k, (int)n,
                         (int)t, (int)forest.targets, got[k * forest.targets + t], want[t]);
    }
    fac_tensor_free(wide_x);
    fac_tensor_free(wide_y);
}

static void run_forest(fac_dtype dtype, int64_t n, const char *solver) {
    fac_graph *g = fac_graph_new();
    fac_error err = { 0 };
    fac_program *p = NULL;
    fac_device *d = NULL;
    fac_output(g, "y", fac_trees_apply(fac_input(g, "x", dtype, fac_shape(n, FEATURES)), &forest));
    assert_int_equal(fac_graph_check(g, &err), FAC_OK);
    assert_int_equal(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 + draw(3) }, &d, &err),
                     FAC_OK);
    if (fac_program_new(g, d, &(fac_program_opts){ .solver = solver }, &p, &err))
        fail_msg("%s", err.text);
    fac_tensor *x = random_rows(dtype, n), *y = NULL;
    if (fac_program_run(p, &x, &y, &err)) fail_msg("%s", err.text);
    compare(x, y, n, solver);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_device_free(d);
    fac_graph_free(g);
}

static void trees_say_what_a_walk_says(void **state) {
    enum { ROUNDS = 40 };
    static const int64_t rows[] = { 0, 1, 2, 7, 16, 33, 257 };
    (void)state;
    for (int k = 0; k < ROUNDS; k++) {
        plant(1 + draw(40), draw(7), 1 + draw(8), draw(2));
        run_forest(draw(2) ? FAC_F32 : FAC_F64, rows[draw(7)], "ref");
        run_forest(FAC_F32, rows[draw(7)], "tree_ensemble");
    }
}

/* Rows that are fewer than threads: these share the trees. */
static void many_trees_of_few_rows(void **state) {
    (void)state;
    for (int k = 0; k < 6; k++) {
        plant(TREES - draw(40), 4, 1 + draw(8), k % 2);
        run_forest(FAC_F32, 1 + k % 3, "tree_ensemble");
    }
}

/* ---- what is refused ---- */

static bytes list_attr(const char *name, const int64_t *numbers, int n) {
    bytes a = w_attr(name, 7);
    for (int k = 0; k < n; k++) w_int(&a, 8, numbers[k]);
    return a;
}

static bytes modes_attr(int n, const char *const *modes) {
    bytes a = w_attr("nodes_modes", 8);
    for (int k = 0; k < n; k++) w_text(&a, 9, modes[k]);
    return a;
}

static bytes reals_attr(const char *name, int n) {
    bytes a = w_attr(name, 6);
    for (int k = 0; k < n; k++) w_f32(&a, 7, (float)k);
    return a;
}

/* A stump whose children are as given, and whose leaf 1 votes for a target. */
static bytes stump(int64_t yes, int64_t no, int64_t feature, int64_t target, const char *mode) {
    const int64_t zeros[3] = { 0 }, ids[3] = { 0, 1, 2 }, one = 1;
    bytes n = domain(node("TreeEnsembleRegressor", "x", "y"), "ai.onnx.ml"), g = { 0 };
    w_sub(&n, ATTRIBUTE, list_attr("nodes_treeids", zeros, 3));
    w_sub(&n, ATTRIBUTE, list_attr("nodes_nodeids", ids, 3));
    w_sub(&n, ATTRIBUTE, list_attr("nodes_featureids", (int64_t[]){ feature, 0, 0 }, 3));
    w_sub(&n, ATTRIBUTE, list_attr("nodes_truenodeids", (int64_t[]){ yes, 0, 0 }, 3));
    w_sub(&n, ATTRIBUTE, list_attr("nodes_falsenodeids", (int64_t[]){ no, 0, 0 }, 3));
    w_sub(&n, ATTRIBUTE, modes_attr(3, (const char *const[]){ mode, "LEAF", "LEAF" }));
    w_sub(&n, ATTRIBUTE, reals_attr("nodes_values", 3));
    w_sub(&n, ATTRIBUTE, list_attr("target_treeids", zeros, 1));
    w_sub(&n, ATTRIBUTE, list_attr("target_nodeids", &one, 1));
    w_sub(&n, ATTRIBUTE, list_attr("target_ids", &target, 1));
    w_sub(&n, ATTRIBUTE, reals_attr("target_weights", 1));
    in(&g, "x", "4,2");
    add(&g, n);
    out(&g, "y");
    bytes model = w_model(g, 8, 17);
    w_opset(&model, 8, "ai.onnx.ml", 3);
    return model;
}

static void false_trees_are_refused(void **state) {
    (void)state;
    fac_graph_free(load_with(stump(1, 2, 0, 0, "BRANCH_LEQ"), NULL));
    refuses_with(stump(1, 7, 0, 0, "BRANCH_LEQ"), NULL, FAC_E_FORMAT, "a child that is not there");
    refuses_with(stump(1, 2, 2, 0, "BRANCH_LEQ"), NULL, FAC_E_FORMAT,
                 "a feature that x does not have");
    refuses_with(stump(1, 2, 0, 1, "BRANCH_LEQ"), NULL, FAC_E_FORMAT, "a target that is not there");
    refuses_with(stump(1, 2, 0, 0, "BRANCH_MAYBE"), NULL, FAC_E_FORMAT, "BRANCH_MAYBE");
}

/* Tables that are no trees end in an error, never in a walk without end or out of memory. */
static void false_tables_are_told(void **state) {
    static const char *const tables[] = { "i32{0,-2,-2}, f32{0,0,0}, i32{0,0,0}, i32{0}",
                                          "i32{0,-2,-2}, f32{0,0,0}, i32{7,0,0}, i32{0}",
                                          "i32{0,-2,-2}, f32{0,0,0}, i32{1,0,0}, i32{9}",
                                          "i32{0,-2,-2}, f32{0,0,0}, i32{1,9,9}, i32{0}",
                                          "i32{5,-2,-2}, f32{0,0,0}, i32{1,0,0}, i32{0}",
                                          "i32{0,-9,-9}, f32{0,0,0}, i32{1,0,0}, i32{0}" };
    static const char *const solvers[] = { "ref", "tree_ensemble" };
    (void)state;
    for (size_t k = 0; k < 2 * sizeof tables / sizeof *tables; k++) {
        char text[200];
        fac_graph *g = NULL;
        fac_program *p = NULL;
        fac_device *d = NULL;
        fac_error err = { 0 };
        fac_tensor *y = NULL, *x = NULL;
        snprintf(text, sizeof text, "tree_ensemble(f32[3,2], %s, i32{0}, f32{1}) targets=1",
                 tables[k / 2]);
        if (fac_problem_graph(text, false, &g, &err)) fail_msg("%s", err.text);
        assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
        assert_int_equal(
            fac_program_new(g, d, &(fac_program_opts){ .solver = solvers[k % 2] }, &p, &err),
            FAC_OK);
        assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(3, 2), &x, &err), FAC_OK);
        if (!fac_program_run(p, &x, &y, &err)) fail_msg("%s ran", text);
        if (!strstr(err.text, "no trees")) fail_msg("%s", err.text);
        fac_tensor_free(x);
        fac_program_free(p);
        fac_device_free(d);
        fac_graph_free(g);
    }
}

static void keys_that_are_missing_are_told(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_tensor *y = NULL;
    fac_error err = { 0 };
    fac_device *d = NULL;
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    fac_value *x = fac_number(g, FAC_I64, 4),
              *keys = fac_reshape(fac_number(g, FAC_I64, 3), fac_shape(1));
    assert_int_equal(fac_eval(fac_find_keys(x, keys, false), d, &y, &err), FAC_OK);
    assert_int_equal(*(const int64_t *)fac_tensor_data(y), 1);
    fac_tensor_free(y);
    assert_int_not_equal(fac_eval(fac_find_keys(x, keys, true), d, &y, &err), FAC_OK);
    assert_non_null(strstr(err.text, "4 is none of the keys"));
    fac_device_free(d);
    fac_graph_free(g);
}

/* A classifier of two classes by one score, with its transform: the scores of two rows. */
static void scores_of(bool vectors, const char *post, float to[4]) {
    const int64_t ones[2] = { 1, 1 }, labels[2] = { 3, 5 };
    bytes n = domain(node(vectors ? "SVMClassifier" : "LinearClassifier", "x", "l,s"),
                     "ai.onnx.ml"),
          g = { 0 }, a = w_attr("post_transform", 3);
    w_text(&a, 4, post);
    w_sub(&n, ATTRIBUTE, a);
    w_sub(&n, ATTRIBUTE, list_attr("classlabels_ints", labels, 2));
    w_sub(&n, ATTRIBUTE, reals_attr("coefficients", 2));
    if (vectors) {
        w_sub(&n, ATTRIBUTE, list_attr("vectors_per_class", ones, 2));
        w_sub(&n, ATTRIBUTE, reals_attr("support_vectors", 4));
        w_sub(&n, ATTRIBUTE, reals_attr("kernel_params", 3));
        w_sub(&n, ATTRIBUTE, reals_attr("rho", 1));
    } else
        w_sub(&n, ATTRIBUTE, reals_attr("intercepts", 1));
    in(&g, "x", "2,2");
    add(&g, n);
    out(&g, "l"), out(&g, "s");
    bytes model = w_model(g, 8, 17);
    w_opset(&model, 8, "ai.onnx.ml", 3);
    fac_graph *graph = load_with(model, NULL);
    fac_device *d = NULL;
    fac_program *p = NULL;
    fac_tensor *x = NULL, *y[2] = { NULL };
    fac_error err = { 0 };
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    assert_int_equal(fac_program_new(graph, d, NULL, &p, &err), FAC_OK);
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(2, 2), &x, &err), FAC_OK);
    assert_int_equal(
        fac_tensor_write(x, (const float[]){ 0.5f, 0.3f, 4, -2 }, 4 * sizeof(float), &err), FAC_OK);
    if (fac_program_run(p, &x, y, &err)) fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_read(y[1], to, 4 * sizeof *to, &err), FAC_OK);
    for (int k = 0; k < 2; k++) fac_tensor_free(y[k]);
    fac_tensor_free(x);
    fac_program_free(p);
    fac_device_free(d);
    fac_graph_free(graph);
}

static void one_score_of_two_classes(void **state) {
    (void)state;
    for (int vectors = 0; vectors < 2; vectors++) {
        float none[4], logistic[4], soft[4];
        scores_of(vectors, "NONE", none);
        scores_of(vectors, "LOGISTIC", logistic);
        scores_of(vectors, "SOFTMAX", soft);
        for (int row = 0; row < 4; row += 2) {
            const double s = none[row + 1];
            assert_true(fabs(s) > 0.1);
            assert_true(fabs(none[row] - (vectors ? -s : 1 - s)) < 1e-5);
            assert_true(fabs(logistic[row] - 1 / (1 + exp(s))) < 1e-5);
            assert_true(fabs(logistic[row + 1] - 1 / (1 + exp(-s))) < 1e-5);
            assert_true(fabs(soft[row] - (1 - s)) < 1e-5 && fabs(soft[row + 1] - s) < 1e-5);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_score_of_two_classes), cmocka_unit_test(trees_say_what_a_walk_says),
        cmocka_unit_test(many_trees_of_few_rows),   cmocka_unit_test(false_trees_are_refused),
        cmocka_unit_test(false_tables_are_told),    cmocka_unit_test(keys_that_are_missing_are_told)
    };
    seed = fresh_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
