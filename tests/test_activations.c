/* Tallies against plain recomputation in long double and against sorted numbers; activations of models against the tensors
 * themselves, against the names of the analysis, and over several inputs. */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "allocations.h"
#include "base/rng.h"
#include "facula/op.h"
#include "opencl_check.h"
#include "flow_check.h"

static fac_tensor *tensor_of(fac_dims d, const float *x) {
    fac_tensor *t = NULL;
    OK(fac_tensor_new(NULL, FAC_F32, d, &t, err));
    OK(fac_tensor_write(t, x, (size_t)fac_dims_count(&d) * sizeof *x, err));
    return t;
}

static float *drawn(size_t n, uint64_t stream, double lo, double hi) {
    float *x = malloc((n + 1) * sizeof *x);
    fac_random_fill(3, stream, lo, hi, n, x);
    return x;
}

static void near(double got, double want, double tolerance) {
    if (!(fabs(got - want) <= tolerance * (1 + fabs(want)))) fail_msg("%.17g, expected %.17g", got, want);
}

/* ---- moments and counts ------------------------------------------------------------------------------------------- */

typedef struct plain {
    long double sum, squares, magnitude;
    double  lo, hi;
    int64_t n, zeros, negative, nan, infinite, denormals;
} plain;

static void recompute(plain *p, const double *x, int64_t n, double normal) {
    for (int64_t i = 0; i < n; i++) {
        p->nan += isnan(x[i]) != 0;
        p->infinite += isinf(x[i]) != 0;
        if (!isfinite(x[i])) continue;
        p->lo = p->n ? fmin(p->lo, x[i]) : x[i];
        p->hi = p->n ? fmax(p->hi, x[i]) : x[i];
        p->sum += x[i];
        p->magnitude += fabs(x[i]);
        p->zeros += x[i] == 0;
        p->negative += x[i] < 0;
        p->denormals += x[i] != 0 && fabs(x[i]) < normal;
        p->n++;
    }
}

static void expect_stats(const fac_tally *t, const plain *p, int64_t count) {
    const fac_stats s = fac_tally_stats(t);
    assert_int_equal(s.count, count);
    assert_int_equal(s.zeros, p->zeros);
    assert_int_equal(s.negative, p->negative);
    assert_int_equal(s.nan, p->nan);
    assert_int_equal(s.infinite, p->infinite);
    assert_int_equal(s.denormals, p->denormals);
    assert_true(s.min == p->lo && s.max == p->hi);
    near(s.mean, p->n ? (double)(p->sum / p->n) : 0, 1e-12);
    near(s.abs_mean, p->n ? (double)(p->magnitude / p->n) : 0, 1e-12);
    near(s.std, p->n ? (double)sqrtl(p->squares / p->n) : 0, 1e-9);
}

/* Two tensors of each type and size into one tally: of odd sizes around the blocks, far from zero, with everything that floats
 * can be. */
static void moments_are_those_of_the_numbers(void **state) {
    static const struct { fac_dtype dtype; double normal; } types[] = {
        { FAC_F32, 0x1p-126 }, { FAC_F64, 0x1p-1022 }, { FAC_F16, 0x1p-14 }, { FAC_BF16, 0x1p-126 }, { FAC_I8, 0 },
        { FAC_I64, 0 }, { FAC_U16, 0 }, { FAC_BOOL, 0 } };
    static const int64_t sizes[] = { 0, 1, 2, 511, 512, 513, 3001 };
    static const double shifts[] = { 0, 1000 };
    (void)state;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
            for (int shift = 0; shift < 2; shift++) {
                fac_tally *t = NULL;
                plain p = { 0 };
                double *all[2];
                const int64_t n = sizes[j];
                OK(fac_tally_new(&t, err));
                for (int turn = 0; turn < 2; turn++) {
                    float *x = drawn((size_t)n, 10 * k + (uint64_t)turn, -3 + shifts[shift], 100 + shifts[shift]);
                    if (n > 500 && types[k].normal > 0 && !shift) {
                        const float odd[] = { NAN, INFINITY, -INFINITY, 0, -0.0f, 0x1p-130f, -0x1p-20f, 5, -5 };
                        memcpy(x + 7 * turn, odd, sizeof odd);
                    }
                    fac_tensor *f = tensor_of(fac_shape(n), x), *as = NULL, *wide = NULL;
                    OK(fac_tensor_convert(f, types[k].dtype, &as, err));
                    OK(fac_tensor_convert(as, FAC_F64, &wide, err));
                    OK(fac_tally_add(t, as, -1, err));
                    all[turn] = malloc((size_t)(n + 1) * sizeof(double));
                    OK(fac_tensor_read(wide, all[turn], (size_t)n * sizeof(double), err));
                    recompute(&p, all[turn], n, types[k].normal);
                    fac_tensor_free(f), fac_tensor_free(as), fac_tensor_free(wide);
                    free(x);
                }
                for (int turn = 0; turn < 2; turn++) {
                    for (int64_t i = 0; i < n; i++)
                        if (isfinite(all[turn][i])) p.squares += (all[turn][i] - p.sum / p.n) * (all[turn][i] - p.sum / p.n);
                    free(all[turn]);
                }
                expect_stats(t, &p, 2 * n);
                fac_tally_free(t);
            }
}

/* A window with strides counts what it shows. */
static void windows_are_looked_through(void **state) {
    (void)state;
    const float x[] = { 1, 100, 2, 100, 3, 100 };
    fac_tensor *t = tensor_of(fac_shape(6), x), *view = NULL;
    fac_tally *s = NULL;
    OK(fac_tensor_view(t, fac_shape(3), (int64_t[]){ 2 }, 0, &view, err));
    OK(fac_tally_new(&s, err));
    OK(fac_tally_add(s, view, -1, err));
    assert_true(fac_tally_stats(s).max == 3 && fac_tally_stats(s).count == 3);
    near(fac_tally_stats(s).mean, 2, 0);
    fac_tally_free(s);
    fac_tensor_free(view);
    fac_tensor_free(t);
}

/* ---- how they are spread ------------------------------------------------------------------------------------------ */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void quantiles_are_near(void **state) {
    enum { N = 4001 };
    static const double at[] = { 0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.99, 0.999, 1 };
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        float *x = drawn(N, (uint64_t)kind + 40, -1, 1);
        double *sorted = malloc(N * sizeof *sorted), *sizes = malloc(N * sizeof *sizes);
        for (int i = 0; i < N; i++) {
            if (kind == 1) x[i] = (float)(x[i] * pow(10, 60 * fabs((double)x[i]) - 30));  /* 60 orders of magnitude */
            if (kind == 2) x[i] = fmaxf(x[i], 0);                               /* as behind a ReLU */
            if (kind == 3) x[i] = -fabsf(x[i]) - 1;
            sorted[i] = x[i];
            sizes[i] = fabs((double)x[i]);
        }
        qsort(sorted, N, sizeof *sorted, ascending);
        qsort(sizes, N, sizeof *sizes, ascending);
        fac_tensor *t = tensor_of(fac_shape(N), x);
        fac_tally *s = NULL;
        OK(fac_tally_new(&s, err));
        OK(fac_tally_add(s, t, -1, err));
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            const int rank = (int)lround(at[k] * (N - 1));
            const double q = fac_tally_quantile(s, at[k]), m = fac_tally_magnitude(s, at[k]);
            const int low = rank ? rank - 1 : 0, high = rank < N - 1 ? rank + 1 : N - 1;    /* ranks are rounded */
            assert_true(q >= sorted[low] - fabs(sorted[low]) / 64 && q <= sorted[high] + fabs(sorted[high]) / 64);
            assert_true(m >= sizes[low] * (1 - 1.0 / 64) && m <= sizes[high] * (1 + 1.0 / 64));
        }
        assert_true(fac_tally_quantile(s, 0) == sorted[0] && fac_tally_quantile(s, 1) == sorted[N - 1]);
        assert_true(fac_tally_magnitude(s, 1) == sizes[N - 1]);
        double counts[10], all = 0, exact[10] = { 0 };
        const double lo = sorted[0], hi = sorted[N - 1];
        fac_tally_histogram(s, lo, hi, 10, counts);
        for (int i = 0; i < N; i++) exact[(int)fmin(9, (sorted[i] - lo) / (hi - lo) * 10)]++;
        for (int k = 0; k < 10; k++) {
            all += counts[k];
            assert_true(fabs(counts[k] - exact[k]) <= 0.03 * N);
        }
        near(all, N, 1e-9);
        fac_tally_free(s);
        fac_tensor_free(t);
        free(x), free(sorted), free(sizes);
    }
}

/* Against numbers that are quantized one by one. */
static void quantization_is_predicted(void **state) {
    enum { N = 20000 };
    (void)state;
    for (int positive = 0; positive < 2; positive++) {
        float *x = drawn(N, 60, -1, 1);
        for (int i = 0; i < N; i++) x[i] = positive ? x[i] * x[i] * x[i] * x[i] : x[i] * x[i] * x[i];
        fac_tensor *t = tensor_of(fac_shape(N), x);
        fac_tally *s = NULL;
        OK(fac_tally_new(&s, err));
        OK(fac_tally_add(s, t, -1, err));
        for (int bits = 2; bits <= 8; bits += 2) {
            const fac_quantization best = fac_tally_quantize(s, bits, 0), whole = fac_tally_quantize(s, bits, 1);
            const double levels = positive ? (1 << bits) - 1 : (1 << (bits - 1)) - 1;
            assert_true(best.is_signed == !positive && best.sqnr >= whole.sqnr - 0.05 && best.clip <= 1);
            near(best.scale * levels, best.clip, 1e-12);
            double signal = 0, error = 0;
            for (int i = 0; i < N; i++) {
                const double q = fmin(levels, fmax(positive ? 0 : -levels, nearbyint(x[i] / best.scale))) * best.scale;
                signal += (double)x[i] * x[i];
                error += (x[i] - q) * (x[i] - q);
            }
            assert_true(fabs(10 * log10(signal / error) - best.sqnr) < 0.3);
        }
        assert_true(fac_tally_quantize(s, 2, 0).clip < 0.9);           /* few levels are better spent on the many small numbers */
        fac_tally_free(s);
        fac_tensor_free(t);
        free(x);
    }
}

/* ---- channels ----------------------------------------------------------------------------------------------------- */

static void dead_channels_are_counted(void **state) {
    (void)state;
    float x[2][3][4] = { { { 0 }, { 1, 0, 0, -7 }, { 0 } }, { { 0 }, { 0 }, { 0, 0, 5, 0 } } };
    fac_tensor *t = tensor_of(fac_shape(2, 3, 4), &x[0][0][0]);
    fac_tally *s = NULL;
    fac_channel c;
    OK(fac_tally_new(&s, err));
    OK(fac_tally_add(s, t, 1, err));
    assert_true(fac_tally_stats(s).channels == 3 && fac_tally_stats(s).dead == 1);
    assert_true(fac_tally_channel(s, 1, &c) && c.min == -7 && c.max == 1 && c.zeros == 6);
    near(c.mean, -0.75, 0);
    assert_false(fac_tally_channel(s, 3, &c));
    x[1][0][2] = NAN;                       /* alive, if not well */
    OK(fac_tensor_write(t, x, sizeof x, err));
    OK(fac_tally_add(s, t, 1, err));
    assert_int_equal(fac_tally_stats(s).dead, 0);
    OK(fac_tally_add(s, t, 2, err));        /* four of them now: no longer told apart */
    assert_true(fac_tally_stats(s).channels == 0 && !fac_tally_channel(s, 0, &c));
    fac_tally_free(s);
    OK(fac_tally_new(&s, err));
    OK(fac_tally_add(s, t, 2, err));        /* the last axis */
    assert_true(fac_tally_stats(s).channels == 4 && fac_tally_stats(s).dead == 1);
    fac_tally_free(s);
    fac_tensor_free(t);
}

/* ---- models ------------------------------------------------------------------------------------------------------- */

static fac_graph *network(void) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 3);
    fac_value *x = fac_input(g, "image", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, 8, 8));
    fac_value *a = fac_relu(fac_nn_batch_norm(fac_nn_conv2d(x, "c1", 16, 3, &(fac_nn_conv2d_opts){ .pad = 1 }), "bn", 0));
    fac_value *b = fac_nn_conv2d(a, "block.c2", 16, 3, &(fac_nn_conv2d_opts){ .pad = 1 });
    fac_value *c = fac_add(a, b);
    fac_output(g, "y", fac_softmax(fac_nn_linear(fac_mean(c, fac_shape(2, 3), false), "fc", 5), 1));
    OK(fac_graph_check(g, err));
    return g;
}

static const fac_activation *find(const fac_activations *a, const char *name) {
    const fac_activation *r;
    for (int i = 0; (r = fac_activations_get(a, i)); i++)
        if (!strcmp(r->name, name)) return r;
    return NULL;
}

typedef struct watch { int n; double most; fac_tensor *last; } watch;

static fac_status see(void *self, const fac_activation *a, const fac_tensor *t, fac_error *e) {
    watch *w = self;
    (void)a;
    fac_tensor_free(w->last);
    w->last = NULL;
    w->n++;
    return fac_tensor_convert(t, FAC_F32, &w->last, e);
}

/* Every layer that the analysis lists has its row, in its order; the last row is the output. */
static void rows_are_the_layers(void **state) {
    (void)state;
    fac_graph *g = network();
    fac_activations *a = NULL;
    fac_analysis *layers = NULL;
    fac_program *p = NULL;
    watch w = { 0 };
    float *x = drawn(2 * 3 * 64, 9, -1, 1);
    fac_tensor *in = tensor_of(fac_shape(2, 3, 8, 8), x), *y = NULL;
    OK(fac_analyze(g, 2, &layers, err));
    OK(fac_activations_new(g, device, &(fac_activations_opts){ .see = see, .see_self = &w }, &a, err));
    OK(fac_activations_add(a, &in, err));
    assert_string_equal(fac_activations_get(a, 0)->name, "image");
    assert_string_equal(fac_activations_get(a, 0)->op, "input");
    const fac_layer *l;
    int rows = 0;
    while (fac_activations_get(a, rows)) rows++;
    assert_int_equal(rows, w.n);
    for (int i = 0; (l = fac_analysis_layer(layers, i)); i++) {
        const fac_activation *r = find(a, l->name);
        if (!r) fail_msg("no row %s", l->name);
        assert_true(fac_dims_equal(&r->type.dims, &l->out.dims));
        assert_int_equal(fac_tally_stats(r->tally).count, fac_dims_count(&l->out.dims));
    }
    OK(fac_program_new(g, device, NULL, &p, err));
    OK(fac_program_run(p, &in, &y, err));
    for (int i = 0; i < 10; i++)
        near(((const float *)fac_tensor_data(y))[i], ((const float *)fac_tensor_data(w.last))[i], 1e-5);
    near(fac_tally_stats(fac_activations_get(a, rows - 1)->tally).mean, 0.2, 1e-6);        /* a softmax of five classes */
    fac_tensor_free(in), fac_tensor_free(y), fac_tensor_free(w.last);
    fac_program_free(p);
    fac_activations_free(a);
    fac_analysis_free(layers);
    fac_graph_free(g);
    free(x);
}

/* Two runs are one run of both; sizes may change between runs. */
static void several_inputs_are_one(void **state) {
    (void)state;
    fac_graph *g = network();
    float *x = drawn(5 * 3 * 64, 9, -1, 1);
    fac_tensor *first = tensor_of(fac_shape(2, 3, 8, 8), x), *second = tensor_of(fac_shape(3, 3, 8, 8), x + 2 * 3 * 64);
    fac_tensor *both = tensor_of(fac_shape(5, 3, 8, 8), x);
    fac_activations *a = NULL, *b = NULL;
    OK(fac_activations_new(g, device, NULL, &a, err));
    OK(fac_activations_new(g, device, NULL, &b, err));
    OK(fac_activations_add(a, &first, err));
    OK(fac_activations_add(a, &second, err));
    OK(fac_activations_add(b, &both, err));
    for (int i = 0; fac_activations_get(b, i); i++) {
        const fac_activation *r = fac_activations_get(a, i), *q = fac_activations_get(b, i);
        assert_non_null(r);
        assert_string_equal(r->name, q->name);
        const fac_stats s = fac_tally_stats(r->tally), t = fac_tally_stats(q->tally);
        assert_true(s.count == t.count && s.channels == t.channels);
        near(s.mean, t.mean, 1e-5);
        near(s.std, t.std, 1e-5);
        near(s.max, t.max, 1e-5);
    }
    fac_tensor_free(first), fac_tensor_free(second), fac_tensor_free(both);
    fac_activations_free(a);
    fac_activations_free(b);
    fac_graph_free(g);
    free(x);
}

static int rows_at(const fac_graph *g, fac_tensor *in, const char *glob, fac_error *e) {
    fac_activations *a = NULL;
    int rows = 0;
    OK(fac_activations_new(g, device, &(fac_activations_opts){ .n = 1, .at = &glob }, &a, err));
    if (fac_activations_add(a, &in, e)) rows = -1;
    while (rows >= 0 && fac_activations_get(a, rows)) rows++;
    fac_activations_free(a);
    return rows;
}

static void globs_choose(void **state) {
    (void)state;
    fac_graph *g = network();
    fac_error e = { 0 };
    float *x = drawn(3 * 64, 9, -1, 1);
    fac_tensor *in = tensor_of(fac_shape(1, 3, 8, 8), x);
    assert_int_equal(rows_at(g, in, "image", &e), 1);
    assert_int_equal(rows_at(g, in, "block.c2", &e), 1);       /* a module: its one node */
    assert_int_equal(rows_at(g, in, "block.*", &e), 1);
    assert_true(rows_at(g, in, "*", &e) > 6);
    assert_int_equal(rows_at(g, in, "nothing.of.this", &e), -1);
    assert_non_null(strstr(e.text, "is called nothing.of.this"));
    fac_tensor_free(in);
    fac_graph_free(g);
    free(x);
}

/* A loop whose trips are data runs its body as often; all of that is one row. */
static void loops_are_one_row(void **state) {
    (void)state;
    fac_graph *g = read_text("input x f32[3]\ninput n i64[]\n"
                             "%0, %1 = loop(n, -, x) carried=1 {(i64[], bool[], f32[3]) t0 = mul(x2, 0.5); x1, t0, t0}\n"
                             "%2 = sum(%1, i64{0})\noutput s = %2\n");
    fac_activations *a = NULL;
    fac_tensor *in[] = { input_of(g, 0, &(numbers){ 3, 5, true }), input_of(g, 1, &(numbers){ 3, 5, true }) };
    OK(fac_activations_new(g, device, NULL, &a, err));
    OK(fac_activations_add(a, in, err));
    int muls = 0;
    const fac_activation *r;
    for (int i = 0; (r = fac_activations_get(a, i)); i++) {
        if (strcmp(r->op, "mul")) continue;
        muls++;
        assert_int_equal(fac_tally_stats(r->tally).count, 5 * 3);
    }
    assert_int_equal(muls, 1);
    for (int i = 0; i < 2; i++) fac_tensor_free(in[i]);
    fac_activations_free(a);
    fac_graph_free(g);
}

/* Which tensors are asked for, by loops: all iterations as one, or some of them apart. */
static void iterations_are_asked_for(void **state) {
    (void)state;
    fac_graph *g = read_text("input x f32[3]\ninput n i64[]\n"
                             "%0 = loop(n, -, x) carried=1 {(i64[], bool[], f32[3]) t0 = mul(x2, 0.5); x1, t0} !again\n"
                             "output s = %0\n");
    static const struct { const char *at; int rows; int64_t count; } asked[] = {
        { "again.mul_*", 1, 5 * 3 }, { "again.2.*", 1, 3 }, { "again.[1-3].mul_*", 3, 3 }, { "again.7.*", -1, 0 } };
    fac_tensor *in[] = { input_of(g, 0, &(numbers){ 3, 5, true }), input_of(g, 1, &(numbers){ 3, 5, true }) };
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
        fac_activations *a = NULL;
        fac_error e = { 0 };
        OK(fac_activations_new(g, device, &(fac_activations_opts){ .n = 1, .at = &asked[k].at }, &a, err));
        const fac_status status = fac_activations_add(a, in, &e);
        int rows = 0;
        for (const fac_activation *r; (r = fac_activations_get(a, rows)); rows++)
            assert_int_equal(fac_tally_stats(r->tally).count, asked[k].count);
        assert_int_equal(status ? -1 : rows, asked[k].rows);
        fac_activations_free(a);
    }
    for (int i = 0; i < 2; i++) fac_tensor_free(in[i]);
    fac_graph_free(g);
}

/* Photos as N,H,W,C, a convolution between two transposes, tokens of a linear layer; what the caller says comes first. */
static void channels_are_found(void **state) {
    (void)state;
    fac_graph *g = read_text("input x f32[1,4,5,3]\nparam w f32[8,3,1,1]\nparam v f32[6,8]\n"
                             "scaled = mul(x, 0.5)\n"
                             "planes = transpose(scaled) perm=0,3,1,2\n"
                             "conv = conv2d(planes, w)\n"
                             "pixels = transpose(conv) perm=0,2,3,1\n"
                             "act = relu(pixels)\n"
                             "tokens = reshape(act, i64{1,20,8})\n"
                             "out = linear(tokens, v)\n"
                             "output y = out\n");
    static const struct { const char *name; int axis, channels; } want[] = {
        { "x", 3, 3 }, { "mul", 3, 3 }, { "transpose", 1, 3 }, { "conv2d", 1, 8 }, { "transpose", 3, 8 }, { "relu", 3, 8 },
        { "reshape", 2, 8 }, { "linear", 2, 6 } };
    for (int how = 0; how < 3; how++) {
        fac_activations *a = NULL;
        fac_tensor *in = input_of(g, 0, &(numbers){ 3, 5, true });
        OK(fac_activations_new(g, device, &(fac_activations_opts){ .channels = (fac_channels)how }, &a, err));
        OK(fac_activations_add(a, &in, err));
        for (int i = 0; i < 8; i++) {
            const fac_activation *r = fac_activations_get(a, i);
            assert_non_null(r);
            const int axis = how == FAC_CHANNELS_FOUND ? want[i].axis : how == FAC_CHANNELS_FIRST ? 1 : r->type.dims.n - 1;
            if (strncmp(r->name, want[i].name, strlen(want[i].name)) || r->channels != axis)
                fail_msg("%s has its channels at axis %d, expected %s at %d", r->name, r->channels, want[i].name, axis);
            assert_int_equal(fac_tally_stats(r->tally).channels, r->type.dims.d[axis]);
            if (!how) assert_int_equal(fac_tally_stats(r->tally).channels, want[i].channels);
        }
        assert_null(fac_activations_get(a, 8));
        fac_activations_free(a);
        fac_tensor_free(in);
    }
    fac_graph_free(g);
}

/* The same network, the same numbers. */
static void devices_agree(void **state) {
    fac_device *opencl = NULL;
    fac_error e = { 0 };
    (void)state;
    assert_int_equal(opencl_open(&opencl, &e), 0);
    if (!opencl) skip();
    fac_graph *g = network();
    float *x = drawn(2 * 3 * 64, 9, -1, 1);
    fac_tensor *in = tensor_of(fac_shape(2, 3, 8, 8), x);
    fac_activations *a[2];
    for (int k = 0; k < 2; k++) {
        OK(fac_activations_new(g, k ? opencl : device, NULL, &a[k], err));
        OK(fac_activations_add(a[k], &in, err));
    }
    for (int i = 0; fac_activations_get(a[0], i); i++) {
        const fac_activation *r = find(a[1], fac_activations_get(a[0], i)->name);
        assert_non_null(r);
        near(fac_tally_stats(r->tally).std, fac_tally_stats(fac_activations_get(a[0], i)->tally).std, 1e-5);
    }
    for (int k = 0; k < 2; k++) fac_activations_free(a[k]);
    fac_tensor_free(in);
    fac_graph_free(g);
    fac_device_free(opencl);
    free(x);
}

/* Tallies and models; of the many allocations of a run some are made to fail. */
static void memory_runs_out(void **state) {
    (void)state;
    fac_graph *g = network();
    float *x = drawn(3 * 64, 9, -1, 1);
    fac_tensor *in = tensor_of(fac_shape(1, 3, 8, 8), x);
    fac_status status = FAC_E_NOMEM;
    for (long n = 0; status; n++) {
        fac_tally *t = NULL;
        fac_error e = { 0 };
        allocations_left = n;
        status = fac_tally_new(&t, &e);
        if (!status) status = fac_tally_add(t, in, 1, &e);
        allocations_left = -1;
        assert_true(!status || (status == FAC_E_NOMEM && *e.text));
        fac_tally_free(t);
    }
    status = FAC_E_NOMEM;
    for (long n = 0; status; n += 1 + n / 8) {
        fac_activations *a = NULL;
        fac_error e = { 0 };
        allocations_left = n;
        status = fac_activations_new(g, device, NULL, &a, &e);
        if (!status) status = fac_activations_add(a, &in, &e);
        allocations_left = -1;
        assert_true(!status || (status == FAC_E_NOMEM && *e.text));
        fac_activations_free(a);
    }
    fac_tensor_free(in);
    fac_graph_free(g);
    free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_are_those_of_the_numbers), cmocka_unit_test(windows_are_looked_through),
        cmocka_unit_test(quantiles_are_near), cmocka_unit_test(quantization_is_predicted),
        cmocka_unit_test(dead_channels_are_counted), cmocka_unit_test(rows_are_the_layers),
        cmocka_unit_test(several_inputs_are_one), cmocka_unit_test(globs_choose), cmocka_unit_test(devices_agree),
        cmocka_unit_test(loops_are_one_row), cmocka_unit_test(iterations_are_asked_for), cmocka_unit_test(channels_are_found),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests_name("activations", tests, open_device, close_device);
}
