/* Forms that operators have had or may have: broadcasting of opsets 1 to 6, windows of attention on
 * every side, and random operators, whose numbers must lie as they should. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "onnx_check.h"
#include "facula/facula.h"

static fac_device *dev;

/* Runs a graph of one input, and frees it. */
static void gives(fac_graph *g, fac_dims dims, const float *x, const float *want, int n) {
    fac_program *p;
    fac_tensor *t, *y = NULL;
    fac_error err = { 0 };
    if (fac_tensor_borrow(FAC_F32, dims, NULL, x, NULL, NULL, &t, &err)) fail_msg("%s", err.text);
    if (fac_program_new(g, dev, NULL, &p, &err) || fac_program_run(p, &t, &y, &err))
        fail_msg("%s", err.text);
    const float *got = fac_tensor_data(y);
    for (int k = 0; k < n; k++)
        if (fabsf(got[k] - want[k]) > 1e-5f)
            fail_msg("y[%d] is %g, not %g", k, (double)got[k], (double)want[k]);
    fac_tensor_free(y);
    fac_tensor_free(t);
    fac_program_free(p);
    fac_graph_free(g);
}

static fac_graph *old(bytes graph) { return load_with(w_model(graph, 3, 6), NULL); }

/* ---- opsets 1 to 6 ---- */

static void placed(const char *type, const char *dims, size_t n, int axis, const float *want) {
    const float x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    bytes g = { 0 }, op = node(type, "x,w", "y");
    in(&g, "x", "2,3,2");
    weights(&g, "w", dims, n);
    w_attr_int(&op, "broadcast", 1);
    if (axis >= 0) w_attr_int(&op, "axis", axis);
    add(&g, op);
    out(&g, "y");
    gives(old(g), fac_shape(2, 3, 2), x, want, 12);
}

static void old_broadcasting(void **state) {
    (void)state;
    placed("Add", "3", 3, 1, (float[]){ 2, 3, 5, 6, 8, 9, 8, 9, 11, 12, 14, 15 });
    placed("Add", "2", 2, -1, (float[]){ 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14 });
    placed("Mul", "2", 2, 0, (float[]){ 1, 2, 3, 4, 5, 6, 14, 16, 18, 20, 22, 24 });
    placed("Sub", "2,3", 6, 0, (float[]){ 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6 });
    placed("Div", "1", 1, 0, (float[]){ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 });
    bytes g = { 0 }, op = node("Add", "x,w", "y");
    in(&g, "x", "2,3,2");
    weights(&g, "w", "3,2", 6);
    w_attr_int(&op, "broadcast", 1);
    w_attr_int(&op, "axis", 2);
    add(&g, op);
    out(&g, "y");
    refuses_with(w_model(g, 3, 6), NULL, FAC_E_FORMAT, "do not fit from axis 2");
}

static void old_slopes(void **state) {
    (void)state;
    bytes g = { 0 };
    in(&g, "x", "1,2,3");
    weights(&g, "w", "2", 2);
    add(&g, node("PRelu", "x,w", "y"));
    out(&g, "y");
    const float x[] = { -1, 2, -3, -4, 5, -6 }, want[] = { -1, 2, -3, -8, 5, -12 };
    gives(old(g), fac_shape(1, 2, 3), x, want, 6);
}

/* ---- windows ---- */

enum { QUERIES = 5, KEYS = 7, SIZE = 3 };

/* y[i] = sum over j within the window of softmax(q k) v, in f64. */
static void reference(const float *x, int left, int right, int causal, double *y) {
    for (int i = 0; i < QUERIES; i++) {
        double sum = 0, rows[SIZE] = { 0 };
        for (int j = 0; j < KEYS; j++) {
            double score = 0;
            if ((left >= 0 && j < i - left) || (right >= 0 && j > i + right) || (causal && j > i))
                continue;
            for (int k = 0; k < SIZE; k++) score += x[i * SIZE + k] * x[j * SIZE + k] / sqrt(SIZE);
            sum += exp(score);
            for (int k = 0; k < SIZE; k++) rows[k] += exp(score) * x[j * SIZE + k];
        }
        for (int k = 0; k < SIZE; k++) y[i * SIZE + k] = rows[k] / sum;
    }
}

static void check_window(int left, int right, int causal) {
    float x[KEYS * SIZE], want[QUERIES * SIZE];
    double y[QUERIES * SIZE];
    const int64_t first[] = { 0 }, end[] = { QUERIES }, axis[] = { 2 };
    for (int k = 0; k < KEYS * SIZE; k++) x[k] = (float)sin(1.7 * k);
    bytes g = { 0 }, op = node("Attention", "q,x,x", "y");
    in(&g, "x", "1,1,7,3");
    ints(&g, "first", "1", first, 1);
    ints(&g, "end", "1", end, 1);
    ints(&g, "axis", "1", axis, 1);
    add(&g, node("Slice", "x,first,end,axis", "q"));
    w_attr_int(&op, "left_window_size", left);
    w_attr_int(&op, "right_window_size", right);
    w_attr_int(&op, "is_causal", causal);
    add(&g, op);
    out(&g, "y");
    reference(x, left, right, causal, y);
    for (int k = 0; k < QUERIES * SIZE; k++) want[k] = (float)y[k];
    fac_graph *model = load_with(w_model(g, 12, 25), NULL);
    gives(model, fac_shape(1, 1, KEYS, SIZE), x, want, QUERIES * SIZE);
}

static void windows_on_every_side(void **state) {
    (void)state;
    for (int left = -1; left < 4; left++)
        for (int right = -1; right < 4; right++)
            for (int causal = 0; causal < 2; causal++) check_window(left, right, causal);
}

/* ---- random operators ---- */

enum { MANY = 20000 };

static const float *drawn(bytes op, fac_tensor **to) {
    bytes g = { 0 };
    static float x[MANY];
    for (int k = 0; k < MANY; k++) x[k] = 0.25f;
    in(&g, "x", "4,5000");
    add(&g, op);
    out(&g, "y");
    fac_graph *model = load_with(w_model(g, 10, 22), NULL), *again = NULL;
    fac_program *p;
    fac_tensor *t;
    fac_error err = { 0 };
    char path[] = "/tmp/facula-forms-XXXXXX.onnx";
    const int file = mkstemps(path, 5);
    assert_true(file >= 0);
    close(file);
    if (fac_onnx_save(model, path, NULL, &err) || fac_onnx_load(path, NULL, &again, &err))
        fail_msg("%s", err.text);
    unlink(path);
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(4, 5000), &t, NULL), FAC_OK);
    assert_int_equal(fac_tensor_write(t, x, sizeof x, NULL), FAC_OK);
    *to = NULL;
    if (fac_program_new(again, dev, NULL, &p, &err) || fac_program_run(p, &t, to, &err))
        fail_msg("%s", err.text);
    fac_tensor_free(t);
    fac_program_free(p);
    fac_graph_free(model);
    fac_graph_free(again);
    return fac_tensor_data(*to);
}

static void lies(bytes op, double mean, double deviation, double low, double high) {
    fac_tensor *t;
    const float *y = drawn(op, &t);
    double sum = 0, squares = 0;
    for (int k = 0; k < MANY; k++) {
        sum += y[k];
        squares += (y[k] - mean) * (y[k] - mean);
        if (!(y[k] >= low && y[k] <= high))
            fail_msg("%g is not in [%g, %g]", (double)y[k], low, high);
    }
    const double near = 6 * deviation / sqrt(MANY);
    if (fabs(sum / MANY - mean) > near) fail_msg("mean %g, not %g", sum / MANY, mean);
    squares = sqrt(squares / MANY);
    if (fabs(squares - deviation) > near) fail_msg("deviation %g, not %g", squares, deviation);
    fac_tensor_free(t);
}

static void random_numbers_lie_right(void **state) {
    (void)state;
    bytes uniform = node("RandomUniformLike", "x", "y");
    bytes normal = node("RandomNormalLike", "x", "y");
    w_attr_f32(&uniform, "low", -2);
    w_attr_f32(&uniform, "high", 4);
    w_attr_f32(&uniform, "seed", 7);
    w_attr_f32(&normal, "mean", 3);
    w_attr_f32(&normal, "scale", 2);
    lies(uniform, 1, sqrt(3), -2, 4);
    lies(normal, 3, 2, -13, 19);
    lies(node("Bernoulli", "x", "y"), 0.25, sqrt(0.25 * 0.75), 0, 1);
}

/* The logarithms of weights 1, 2, 5: classes come as often. */
static void multinomial_follows_its_weights(void **state) {
    (void)state;
    const float logits[] = { 0, logf(2), logf(5) };
    bytes g = { 0 }, op = node("Multinomial", "w", "s"), cast = node("Cast", "s", "i");
    in(&g, "x", "1");
    w_sub(&g, INITIALIZER, w_tensor_f32("w", "1,3", logits, 3));
    w_attr_int(&op, "sample_size", MANY);
    w_attr_int(&cast, "to", F32);
    add(&g, op);
    add(&g, cast);
    add(&g, node("Add", "i,x", "y"));
    out(&g, "y");
    fac_graph *model = load(g);
    fac_program *p;
    fac_tensor *t, *y = NULL;
    fac_error err = { 0 };
    int counts[3] = { 0 };
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(1), &t, NULL), FAC_OK);
    if (fac_program_new(model, dev, NULL, &p, &err) || fac_program_run(p, &t, &y, &err))
        fail_msg("%s", err.text);
    const float *x = fac_tensor_data(y);
    for (int k = 0; k < MANY; k++) {
        assert_true(x[k] == 0 || x[k] == 1 || x[k] == 2);
        counts[(int)x[k]]++;
    }
    const double part[] = { 0.125, 0.25, 0.625 };
    for (int k = 0; k < 3; k++)
        if (fabs(counts[k] / (double)MANY - part[k]) > 0.02) fail_msg("class %d: %d", k, counts[k]);
    fac_tensor_free(t);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_graph_free(model);
}

static int open_device(void **state) {
    (void)state;
    return fac_device_open("cpu", NULL, &dev, NULL);
}
static int close_device(void **state) {
    (void)state;
    fac_device_free(dev);
    return 0;
}

/* ---- more parts than a graph knows numbers of a list ---- */

static void many_parts(void **state) {
    (void)state;
    enum { PARTS = 18, ALL = 24 };
    static const int64_t sizes[PARTS] = { 1, 2, 0, 1, 1, 1, 3, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 3 };
    float x[ALL], want[ALL];
    char outs[8 * PARTS] = "", ins[8 * PARTS] = "";
    int at = 0, to = ALL;
    for (int k = 0; k < ALL; k++) x[k] = (float)k;
    for (int k = 0; k < PARTS; k++) { /* the parts in the opposite order */
        snprintf(outs + strlen(outs), sizeof outs - strlen(outs), "%sp%d", k ? "," : "", k);
        snprintf(ins + strlen(ins), sizeof ins - strlen(ins), "%sp%d", k ? "," : "", PARTS - 1 - k);
        to -= (int)sizes[k];
        for (int i = 0; i < (int)sizes[k]; i++) want[to + i] = x[at++];
    }
    for (int named = 0; named < 2; named++) {
        bytes g = { 0 }, back = node("Concat", ins, "y");
        in(&g, "x", named ? "N" : "24");
        ints(&g, "sizes", "18", sizes, PARTS);
        add(&g, node("Split", "x,sizes", outs));
        w_attr_int(&back, "axis", 0);
        add(&g, back);
        out(&g, "y");
        gives(load(g), fac_shape(ALL), x, want, ALL);
    }
    bytes g = { 0 };
    in(&g, "x", "23");
    ints(&g, "sizes", "18", sizes, PARTS);
    add(&g, node("Split", "x,sizes", outs));
    out(&g, "p0");
    refuses(g, FAC_E_SHAPE, "18 sizes, 24 together, do not fit x");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(old_broadcasting),
                                        cmocka_unit_test(many_parts),
                                        cmocka_unit_test(old_slopes),
                                        cmocka_unit_test(windows_on_every_side),
                                        cmocka_unit_test(random_numbers_lie_right),
                                        cmocka_unit_test(multinomial_follows_its_weights) };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
