/* Activations of models against the tensors themselves, against the names of the analysis, and over
 * several inputs. */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "allocations.h"
#include "facula/op.h"
#include "opencl_check.h"
#include "flow_check.h"
#include "tally_check.h"

static fac_graph *network(void) {
    fac_graph *g = fac_graph_new();
    fac_nn_seed(g, 3);
    fac_value *x = fac_input(g, "image", FAC_F32, fac_shape(fac_symbol(g, "N"), 3, 8, 8));
    fac_value *a = fac_relu(fac_nn_batch_norm(
        fac_nn_conv2d(x, "c1", 16, 3, &(fac_nn_conv2d_opts){ .pad = 1 }), "bn", 0));
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

typedef struct watch {
    int n;
    double most;
    fac_tensor *last;
} watch;

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
    OK(fac_activations_new(g, device, &(fac_activations_opts){ .see = see, .see_self = &w }, &a,
                           err));
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
        near(((const float *)fac_tensor_data(y))[i], ((const float *)fac_tensor_data(w.last))[i],
             1e-5);
    near(fac_tally_stats(fac_activations_get(a, rows - 1)->tally).mean, 0.2,
         1e-6); /* a softmax of five classes */
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
    fac_tensor *first = tensor_of(fac_shape(2, 3, 8, 8), x),
               *second = tensor_of(fac_shape(3, 3, 8, 8), x + 2 * 3 * 64);
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
    assert_int_equal(rows_at(g, in, "block.c2", &e), 1); /* a module: its one node */
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
    fac_graph *g = read_text(
        "input x f32[3]\ninput n i64[]\n"
        "%0, %1 = loop(n, -, x) carried=1 {(i64[], bool[], f32[3]) t0 = mul(x2, 0.5); x1, t0, t0}\n"
        "%2 = sum(%1, i64{0})\noutput s = %2\n");
    fac_activations *a = NULL;
    fac_tensor *in[] = { input_of(g, 0, &(numbers){ 3, 5, true }),
                         input_of(g, 1, &(numbers){ 3, 5, true }) };
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
    fac_graph *g = read_text(
        "input x f32[3]\ninput n i64[]\n"
        "%0 = loop(n, -, x) carried=1 {(i64[], bool[], f32[3]) t0 = mul(x2, 0.5); x1, t0} !again\n"
        "output s = %0\n");
    static const struct {
        const char *at;
        int rows;
        int64_t count;
    } asked[] = { { "again.mul_*", 1, 5 * 3 },
                  { "again.2.*", 1, 3 },
                  { "again.[1-3].mul_*", 3, 3 },
                  { "again.7.*", -1, 0 } };
    fac_tensor *in[] = { input_of(g, 0, &(numbers){ 3, 5, true }),
                         input_of(g, 1, &(numbers){ 3, 5, true }) };
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
        fac_activations *a = NULL;
        fac_error e = { 0 };
        OK(fac_activations_new(g, device, &(fac_activations_opts){ .n = 1, .at = &asked[k].at }, &a,
                               err));
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

/* Photos as N,H,W,C, a convolution between two transposes, tokens of a linear layer; what the
 * caller says comes first. */
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
    static const struct {
        const char *name;
        int axis, channels;
    } want[] = {
        { "x", 3, 3 },         { "mul", 3, 3 },  { "transpose", 1, 3 }, { "conv2d", 1, 8 },
        { "transpose", 3, 8 }, { "relu", 3, 8 }, { "reshape", 2, 8 },   { "linear", 2, 6 }
    };
    for (int how = 0; how < 3; how++) {
        fac_activations *a = NULL;
        fac_tensor *in = input_of(g, 0, &(numbers){ 3, 5, true });
        OK(fac_activations_new(g, device, &(fac_activations_opts){ .channels = (fac_channels)how },
                               &a, err));
        OK(fac_activations_add(a, &in, err));
        for (int i = 0; i < 8; i++) {
            const fac_activation *r = fac_activations_get(a, i);
            assert_non_null(r);
            const int axis = how == FAC_CHANNELS_FOUND   ? want[i].axis
                             : how == FAC_CHANNELS_FIRST ? 1
                                                         : r->type.dims.n - 1;
            if (strncmp(r->name, want[i].name, strlen(want[i].name)) || r->channels != axis)
                fail_msg("%s has its channels at axis %d, expected %s at %d", r->name, r->channels,
                         want[i].name, axis);
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
        near(fac_tally_stats(r->tally).std,
             fac_tally_stats(fac_activations_get(a[0], i)->tally).std, 1e-5);
    }
    for (int k = 0; k < 2; k++) fac_activations_free(a[k]);
    fac_tensor_free(in);
    fac_graph_free(g);
    fac_device_free(opencl);
    free(x);
}

/* Of the many allocations of a run some are made to fail. */
static void memory_runs_out(void **state) {
    (void)state;
    fac_graph *g = network();
    float *x = drawn(3 * 64, 9, -1, 1);
    fac_tensor *in = tensor_of(fac_shape(1, 3, 8, 8), x);
    fac_status status = FAC_E_NOMEM;
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
        cmocka_unit_test(rows_are_the_layers), cmocka_unit_test(several_inputs_are_one),
        cmocka_unit_test(globs_choose),        cmocka_unit_test(devices_agree),
        cmocka_unit_test(loops_are_one_row),   cmocka_unit_test(iterations_are_asked_for),
        cmocka_unit_test(channels_are_found),  cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests_name("activations", tests, open_device, close_device);
}
