/* fac_quantizers: what is counted is what is there, of weights, of what layers read, of files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "facula/facula.h"
#include "base/rng.h"
#include "fresh_seed.h"

enum { ROWS = 7, TERMS = 45, BATCH = 5 };

static fac_device *dev;
static fac_error err;
static uint64_t seed, at;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s", err.text);                                                        \
    } while (0)

static int open_device(void **state) {
    (void)state;
    seed = fresh_seed();
    return fac_device_open("cpu", NULL, &dev, NULL);
}
static int close_device(void **state) {
    (void)state;
    fac_device_free(dev);
    return 0;
}

static fac_tensor *numbers(fac_dims d, double lo, double hi) {
    fac_tensor *t;
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, &err));
    float *to = (float *)(uintptr_t)fac_tensor_data(t);
    for (int64_t k = 0; k < fac_dims_count(&d); k++)
        to[k] = (float)(lo + (hi - lo) * fac_random_uniform(seed, 0, at++));
    return t;
}

/* y = Q(relu(x)) Q(w)', two bits each, w with a basis for each row. */
typedef struct net {
    fac_graph *g;
    fac_tensor *w, *v, *u;
} net;

static net make(void) {
    net n = { fac_graph_new(), numbers(fac_shape(ROWS, TERMS), -1, 1),
              numbers(fac_shape(2, ROWS), 0.1, 0.6), numbers(fac_shape(2), 0.2, 0.7) };
    fac_value *x = fac_input(n.g, "x", FAC_F32, fac_shape(fac_symbol(n.g, "N"), TERMS));
    fac_graph_push(n.g, "fc");
    fac_value *w = fac_quantize_basis(fac_param(n.g, "fc.weight", n.w),
                                      fac_param(n.g, "fc.weight.basis", n.v), NULL);
    fac_value *read = fac_quantize_basis(fac_relu(x), fac_param(n.g, "fc.input.basis", n.u),
                                         &(fac_basis_opts){ .positive = true });
    fac_output(n.g, "y", fac_linear(read, w, NULL));
    fac_graph_pop(n.g);
    OK(fac_graph_check(n.g, &err));
    return n;
}

static void drop(net *n) {
    fac_graph_free(n->g);
    fac_tensor_free(n->w);
    fac_tensor_free(n->v);
    fac_tensor_free(n->u);
}

/* ---- the same, counted in another way ---- */

/* Four levels of two numbers, rising. */
static void levels_of(float a, float b, bool positive, double level[4]) {
    const float low = positive ? 0 : -1;
    const float digit[2] = { low, 1 };
    for (int k = 0; k < 4; k++) level[k] = (double)(digit[k & 1] * a + digit[k >> 1] * b);
    for (int i = 0; i < 4; i++)
        for (int k = i + 1; k < 4; k++)
            if (level[k] < level[i]) {
                const double t = level[i];
                level[i] = level[k];
                level[k] = t;
            }
}

static int nearest(const double level[4], double x) {
    int best = 0;
    for (int k = 1; k < 4; k++)
        if (fabs(x - level[k]) < fabs(x - level[best])) best = k;
    return best;
}

/* Numbers in cell k, one after the other, instead of a cell for each number. */
static int64_t in_cell(const fac_quantizer_counts *q, int k, const double *x, int64_t n) {
    const double width = (q->hi - q->lo) / FAC_QUANTIZER_CELLS;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += x[i] != 0 && floor((x[i] - q->lo) / width + 1e-12) == k;
    return count;
}

static void check_cells(const fac_quantizer_counts *q, const double *x, int64_t n) {
    int64_t all = q->zeros + q->below + q->above + q->nan;
    for (int k = 0; k < FAC_QUANTIZER_CELLS; k++) {
        const int64_t want = in_cell(q, k, x, n);
        if (llabs(q->in[k] - want) > 1) /* a number on the edge of a cell */
            fail_msg("cell %d has %lld, not %lld", k, (long long)q->in[k], (long long)want);
        all += q->in[k];
    }
    assert_int_equal(all, n);
}

static const fac_quantizer_counts *find(const fac_quantizers *q, bool weights) {
    const fac_quantizer_counts *r;
    for (int i = 0; (r = fac_quantizers_get(q, i)); i++)
        if (r->weights == weights) return r;
    fail_msg("there is no quantizer of %s", weights ? "weights" : "inputs");
    return NULL;
}

static void weights_are_counted(const fac_quantizer_counts *q, const net *n) {
    const float *w = fac_tensor_data(n->w), *v = fac_tensor_data(n->v);
    double parts[ROWS * TERMS], mean[4] = { 0 };
    int64_t taken[4] = { 0 };
    for (int r = 0; r < ROWS; r++) {
        double level[4];
        levels_of(v[r], v[ROWS + r], false, level);
        for (int k = 0; k < 4; k++) mean[k] += level[k] / level[3] / ROWS;
        for (int k = 0; k < TERMS; k++) {
            parts[r * TERMS + k] = (double)w[r * TERMS + k] / level[3];
            taken[nearest(level, (double)w[r * TERMS + k])]++;
        }
    }
    assert_string_equal(q->layer, "fc");
    assert_int_equal(q->bits, 2);
    assert_int_equal(q->filters, ROWS);
    for (int k = 0; k < 4; k++) {
        assert_true(fabs(q->level[k] - mean[k]) < 1e-6);
        assert_true(llabs(q->taken[k] - taken[k]) <= 1); /* halfway between two */
    }
    for (int k = 0; k < 3; k++) assert_true(q->threshold[k] > q->level[k]);
    for (int k = 0; k < 3; k++) assert_true(q->threshold[k] < q->level[k + 1]);
    check_cells(q, parts, ROWS * TERMS);
}

static void inputs_are_counted(const fac_quantizer_counts *q, const net *n,
                               fac_tensor *const x[2]) {
    enum { EACH = BATCH * TERMS };
    const float *u = fac_tensor_data(n->u);
    double all[2 * EACH], level[4];
    int64_t taken[4] = { 0 }, zeros = 0;
    levels_of(u[0], u[1], true, level);
    for (int i = 0; i < 2 * EACH; i++) {
        const float *from = fac_tensor_data(x[i / EACH]);
        all[i] = fmax(0, (double)from[i % EACH]);
        zeros += all[i] == 0;
        taken[nearest(level, all[i])]++;
    }
    assert_string_equal(q->layer, "fc");
    assert_int_equal(q->filters, 0);
    assert_int_equal(q->zeros, zeros);
    assert_true(q->lo == 0);
    for (int k = 0; k < 4; k++) {
        assert_true(fabs(q->level[k] - level[k]) < 1e-6);
        assert_true(llabs(q->taken[k] - taken[k]) <= 1);
    }
    check_cells(q, all, 2 * EACH);
}

static void what_is_counted_is_there(void **state) {
    (void)state;
    net n = make();
    fac_quantizers *q;
    fac_tensor *x[2];
    OK(fac_quantizers_new(n.g, dev, &q, &err));
    weights_are_counted(find(q, true), &n);
    for (int k = 0; k < 2; k++) {
        x[k] = numbers(fac_shape(BATCH, TERMS), -1, 2.5);
        OK(fac_quantizers_add(q, &x[k], &err));
    }
    weights_are_counted(find(q, true), &n); /* once, however many runs */
    inputs_are_counted(find(q, false), &n, x);
    assert_null(fac_quantizers_get(q, 2));
    assert_null(fac_quantizers_get(q, -1));
    for (int k = 0; k < 2; k++) fac_tensor_free(x[k]);
    fac_quantizers_free(q);
    drop(&n);
}

/* A file has the codes of the weights: as many of each level. */
/* Before there is a sample: a report draws them. */
static void levels_are_there_at_once(void **state) {
    (void)state;
    net n = make();
    fac_quantizers *q;
    const float *u = fac_tensor_data(n.u);
    double level[4];
    levels_of(u[0], u[1], true, level);
    OK(fac_quantizers_new(n.g, NULL, &q, &err));
    const fac_quantizer_counts *r = find(q, false);
    for (int k = 0; k < 4; k++) {
        assert_true(fabs(r->level[k] - level[k]) < 1e-6);
        assert_int_equal(r->taken[k], 0);
    }
    for (int k = 0; k < 3; k++)
        assert_true(fabs(r->threshold[k] - (level[k] + level[k + 1]) / 2) < 1e-6);
    assert_true(r->lo == 0 && r->hi > level[3]);
    fac_quantizers_free(q);
    drop(&n);
}

static void packed_files_are_counted(void **state) {
    (void)state;
    net n = make();
    char path[64];
    fac_graph *packed;
    fac_quantizers *a, *b;
    snprintf(path, sizeof path, "quantizers.%ld.fac", (long)getpid());
    OK(fac_packed_save(n.g, path, NULL, &err));
    OK(fac_packed_load(path, &packed, &err));
    OK(fac_quantizers_new(n.g, dev, &a, &err));
    OK(fac_quantizers_new(packed, dev, &b, &err));
    const fac_quantizer_counts *want = find(a, true), *got = find(b, true);
    assert_int_equal(got->bits, 2);
    for (int k = 0; k < 4; k++) {
        assert_int_equal(got->taken[k], want->taken[k]);
        assert_true(fabs(got->level[k] - want->level[k]) < 1e-6);
    }
    assert_int_equal(got->below + got->above + got->nan, 0);
    remove(path);
    fac_quantizers_free(a);
    fac_quantizers_free(b);
    fac_graph_free(packed);
    drop(&n);
}

/* ---- quantizers without a learned basis ---- */

typedef fac_value *quantizer(fac_value *x, fac_value *step);
static fac_value *lsq_of_inputs(fac_value *x, fac_value *step) {
    return fac_quantize_lsq(x, step, 2, true);
}
static fac_value *lsq_of_weights(fac_value *w, fac_value *step) {
    return fac_quantize_lsq(w, step, 3, false);
}
static fac_value *dorefa_of_inputs(fac_value *x, fac_value *step) {
    (void)step;
    return fac_quantize_dorefa(x, 2);
}
static fac_value *signs_of_inputs(fac_value *x, fac_value *step) {
    (void)step;
    return fac_binarize_through(x, FAC_SIGN_CLIP);
}
static fac_value *signs_of_weights(fac_value *w, fac_value *step) {
    (void)step;
    return fac_binarize_scaled(w, FAC_SIGN_CLIP); /* signs are on the way of gradients alone, too */
}

enum { STEP_TIMES_1000 = 230 };

/* A layer with such a quantizer of what it reads or of its weight; its only one. */
static fac_graph *layer_with(quantizer *f, bool weights, fac_tensor *w) {
    fac_graph *g = fac_graph_new();
    fac_tensor *t = numbers(fac_shape(1), STEP_TIMES_1000 / 1e3, STEP_TIMES_1000 / 1e3);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(BATCH, TERMS));
    fac_graph_push(g, "fc");
    fac_value *v = fac_param(g, "fc.weight", w), *step = fac_param(g, "fc.step", t);
    if (weights)
        v = f(v, step);
    else
        x = f(x, step);
    fac_output(g, "y", fac_linear(x, v, NULL));
    fac_graph_pop(g);
    OK(fac_graph_check(g, &err));
    fac_tensor_free(t);
    return g;
}

static void levels_are(const fac_quantizer_counts *q, int levels, double lowest, double step,
                       const float *x, int64_t n) {
    int64_t taken[FAC_QUANTIZER_LEVELS] = { 0 };
    assert_int_equal(q->levels, levels);
    for (int k = 0; k < levels; k++)
        if (fabs(q->level[k] - (lowest + k * step)) > 1e-6)
            fail_msg("level %d is %g, not %g", k, q->level[k], lowest + k * step);
    for (int64_t i = 0; i < n; i++) {
        const double place = round(((double)x[i] - lowest) / step);
        taken[(int)fmin(fmax(place, 0), levels - 1)]++;
    }
    for (int k = 0; k < levels; k++)
        if (llabs(q->taken[k] - taken[k]) > 1) /* halfway between two */
            fail_msg("level %d has %lld, not %lld", k, (long long)q->taken[k], (long long)taken[k]);
}

static void other_quantizers_are_counted(void **state) {
    (void)state;
    const double step = STEP_TIMES_1000 / 1e3;
    const struct {
        quantizer *f;
        bool weights;
        int levels;
        double lowest, step;
    } all[] = { { lsq_of_inputs, false, 4, 0, step },
                { lsq_of_weights, true, 8, -4 * step, step },
                { dorefa_of_inputs, false, 4, 0, 1.0 / 3 },
                { signs_of_inputs, false, 2, -1, 2 } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fac_quantizers *q;
        fac_tensor *w = numbers(fac_shape(ROWS, TERMS), -1, 1);
        fac_tensor *x = numbers(fac_shape(BATCH, TERMS), -0.4, 1.3);
        memset((void *)(uintptr_t)fac_tensor_data(x), 0, 20 * sizeof(float)); /* whose sign is 1 */
        fac_graph *g = layer_with(all[i].f, all[i].weights, w);
        OK(fac_quantizers_new(g, dev, &q, &err));
        for (int k = 0; k < 2 - !all[i].weights; k++) OK(fac_quantizers_add(q, &x, &err));
        const fac_quantizer_counts *r = find(q, all[i].weights);
        assert_null(fac_quantizers_get(q, 1));
        assert_string_equal(r->layer, "fc");
        assert_int_equal(r->filters, 0);
        const fac_tensor *of = all[i].weights ? w : x;
        levels_are(r, all[i].levels, all[i].lowest, all[i].step, fac_tensor_data(of),
                   all[i].weights ? ROWS * TERMS : BATCH * TERMS);
        fac_quantizers_free(q);
        fac_graph_free(g);
        fac_tensor_free(w);
        fac_tensor_free(x);
    }
}

/* Levels that a run computes from the weights: +- the mean of a filter; weights count once. */
static void computed_levels_of_weights_are_counted(void **state) {
    (void)state;
    fac_quantizers *q;
    fac_tensor *w = numbers(fac_shape(ROWS, TERMS), -1, 1);
    fac_tensor *x = numbers(fac_shape(BATCH, TERMS), -1, 1);
    fac_graph *g = layer_with(signs_of_weights, true, w);
    const float *at_w = fac_tensor_data(w);
    int64_t below = 0;
    for (int k = 0; k < ROWS * TERMS; k++) below += at_w[k] < 0;
    OK(fac_quantizers_new(g, dev, &q, &err));
    for (int k = 0; k < 2; k++) OK(fac_quantizers_add(q, &x, &err));
    const fac_quantizer_counts *r = find(q, true);
    assert_null(fac_quantizers_get(q, 1));
    assert_int_equal(r->filters, ROWS);
    assert_int_equal(r->taken[0], below);
    assert_int_equal(r->taken[1], ROWS * TERMS - below);
    fac_quantizers_free(q);
    fac_graph_free(g);
    fac_tensor_free(w);
    fac_tensor_free(x);
}

/* NaN is no number, infinities lie outside. */
static void strange_numbers_are_counted(void **state) {
    (void)state;
    net n = make();
    fac_quantizers *q;
    fac_tensor *x = numbers(fac_shape(BATCH, TERMS), 0.1, 0.2);
    float *to = (float *)(uintptr_t)fac_tensor_data(x);
    to[0] = NAN;
    to[1] = INFINITY;
    to[2] = 0;
    OK(fac_quantizers_new(n.g, dev, &q, &err));
    OK(fac_quantizers_add(q, &x, &err));
    const fac_quantizer_counts *r = find(q, false);
    assert_int_equal(r->above, 1);
    assert_int_equal(r->nan + r->zeros, 2); /* a relu may make 0 of NaN */
    fac_tensor_free(x);
    fac_quantizers_free(q);
    drop(&n);
}

static void models_without_levels_are_refused(void **state) {
    (void)state;
    fac_quantizers *q;
    fac_graph *g = fac_graph_new();
    fac_output(g, "y", fac_relu(fac_input(g, "x", FAC_F32, fac_shape(3))));
    assert_int_equal(fac_quantizers_new(g, dev, &q, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "expected a model with quantizers"));
    fac_graph_free(g);
    fac_quantizers_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_counted_is_there),
        cmocka_unit_test(levels_are_there_at_once),
        cmocka_unit_test(packed_files_are_counted),
        cmocka_unit_test(other_quantizers_are_counted),
        cmocka_unit_test(computed_levels_of_weights_are_counted),
        cmocka_unit_test(strange_numbers_are_counted),
        cmocka_unit_test(models_without_levels_are_refused),
    };
    return cmocka_run_group_tests_name("quantizers", tests, open_device, close_device);
}
