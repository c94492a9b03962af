/* Packed files: what is read is the network that was written,
    whose weights take as many bits as they have;
 * networks that other files spell out are recognized; files that are no such files are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "facula/facula.h"

static fac_device *dev;
static char path[64];

static int begin(void **state) {
    (void)state;
    strcpy(path, "/tmp/facula_packed_XXXXXX");
    const int f = mkstemp(path);
    if (f < 0) return 1;
    close(f);
    return fac_device_open("cpu", NULL, &dev, NULL);
}
static int end(void **state) {
    (void)state;
    fac_device_free(dev);
    return unlink(path);
}

static fac_graph *network(const char *scheme) {
    fac_error err = { 0 };
    fac_graph *g = fac_graph_new(), *q;
    fac_nn_seed(g, 7);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(fac_symbol(g, "N"), 1, 9, 8));
    for (int k = 0; k < 3; k++) {
        char name[16], bn[16];
        const fac_nn_conv2d_opts o = { .pad = 1 };
        snprintf(name, sizeof name, "conv%d", k + 1);
        snprintf(bn, sizeof bn, "bn%d", k + 1);
        x = fac_relu(fac_nn_batch_norm(fac_nn_conv2d(x, name, 40, 3, &o), bn, 0));
    }
    fac_output(g, "logits", fac_nn_linear(fac_flatten(x, 1), "fc", 3));
    fac_graph_set_note(g, "facula.test", "a note \"of two\nlines\"");
    if (fac_graph_quantize(g, &(fac_quantizing){ .n = 1, .schemes = &scheme }, &q, NULL, &err))
        fail_msg("%s: %s", scheme, err.text);
    fac_graph_free(g);
    return q;
}

/* As a training leaves bases: random ones of the usual size. */
static void step(fac_graph *g) {
    fac_trainer *t;
    fac_tensor *x, *labels;
    fac_error err = { 0 };
    float pixels[4 * 72];
    const int64_t classes[] = { 0, 1, 2, 1 };
    for (int i = 0; i < 288; i++) pixels[i] = sinf((float)(i * 7 % 50));
    if (fac_trainer_new(g, dev, NULL, &t, &err)) fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(4, 1, 9, 8), &x, NULL), FAC_OK);
    assert_int_equal(fac_tensor_write(x, pixels, sizeof pixels, NULL), FAC_OK);
    assert_int_equal(fac_tensor_new(NULL, FAC_I64, fac_shape(4), &labels, NULL), FAC_OK);
    assert_int_equal(fac_tensor_write(labels, classes, sizeof classes, NULL), FAC_OK);
    for (int i = 0; i < 3; i++)
        if (fac_trainer_step(t, x, labels, 1e-3, NULL, &err)) fail_msg("%s", err.text);
    fac_tensor_free(x);
    fac_tensor_free(labels);
    fac_trainer_free(t);
}

static void run(const fac_graph *g, float *to) {
    fac_program *p;
    fac_error err = { 0 };
    fac_tensor *x, *y = NULL;
    float pixels[2 * 72];
    for (int i = 0; i < 144; i++) pixels[i] = cosf((float)(i * 3 % 41));
    if (fac_program_new(g, dev, NULL, &p, &err)) fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(2, 1, 9, 8), &x, NULL), FAC_OK);
    assert_int_equal(fac_tensor_write(x, pixels, sizeof pixels, NULL), FAC_OK);
    if (fac_program_run(p, &x, &y, &err)) fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_read(y, to, 6 * sizeof *to, NULL), FAC_OK);
    fac_tensor_free(x);
    fac_tensor_free(y);
    fac_program_free(p);
}

static void same_results(const char *scheme, const fac_graph *a, const fac_graph *b) {
    float x[6], y[6];
    run(a, x);
    run(b, y);
    for (int i = 0; i < 6; i++)
        if (fabsf(x[i] - y[i]) > 1e-4f * (1 + fabsf(x[i])))
            fail_msg("%s: %g and %g", scheme, (double)x[i], (double)y[i]);
}

static const fac_tensor *param_of(const fac_graph *g, const char *name) {
    for (int k = 0; k < fac_graph_params(g); k++)
        if (!strcmp(fac_value_name(fac_graph_param(g, k)), name))
            return fac_value_tensor(fac_graph_param(g, k));
    fail_msg("there is no %s", name);
    return NULL;
}

/* Each weight is at most half a step away, and the largest of a row is 127 steps. */
static void bytes_are_near(const fac_graph *floats, const fac_graph *bytes, const char *name,
                           int rows, int terms) {
    char text[2][32];
    snprintf(text[0], sizeof text[0], "%s.int8", name);
    snprintf(text[1], sizeof text[1], "%s.scale", name);
    const float *w = fac_tensor_data(param_of(floats, name));
    const float *scale = fac_tensor_data(param_of(bytes, text[1]));
    const signed char *q = fac_tensor_data(param_of(bytes, text[0]));
    for (int r = 0; r < rows; r++) {
        int most = 0;
        for (int k = 0; k < terms; k++) {
            const int at = r * terms + k;
            if (fabsf(w[at] - (float)q[at] * scale[r]) > 0.501f * scale[r])
                fail_msg("%s[%d,%d] is %d", name, r, k, q[at]);
            most = abs(q[at]) > most ? abs(q[at]) : most;
        }
        assert_int_equal(most, 127);
    }
}

static const struct {
    const char *scheme;
    int layers, bits;
} nets[] = { { "lq:w1a2", 2, 1 },  { "lq:w2a2", 2, 2 },     { "lq:w3a3", 2, 3 },
             { "lq:w4a1", 2, 4 },  { "xnor", 2, 1 },        { "bnn", 2, 1 },
             { "bwn", 2, 1 },      { "dorefa:w2a2", 2, 2 }, { "dorefa:w1a32", 2, 1 },
             { "reactnet", 2, 1 }, { "lsq:w2a2", 2, 2 } }; /* none is at -2 steps */

/* Of a packed file again: what its weights would take as floats is what it was, but for levels of
 * activations, which are constants of its graph. */
static void saves_as_before(const fac_graph *g, const fac_packing *first) {
    fac_error err = { 0 };
    fac_packing p;
    if (fac_packed_save(g, path, &p, &err)) fail_msg("%s", err.text);
    assert_int_equal(p.layers, first->layers);
    enum { LEVELS = 64 };
    const double bytes = first->bytes - p.bytes, before = first->bytes_before - p.bytes_before;
    if (bytes < 0 || bytes > LEVELS || before < 0 || before > LEVELS)
        fail_msg("%g bytes of %g, before %g of %g", p.bytes, p.bytes_before, first->bytes,
                 first->bytes_before);
}

static void what_is_read_is_what_was_written(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
        fac_error err = { 0 };
        fac_packing p;
        fac_graph *g = network(nets[k].scheme), *quiet, *back;
        step(g);
        quiet = fac_graph_inference(g);
        if (fac_packed_save(g, path, &p, &err)) fail_msg("%s: %s", nets[k].scheme, err.text);
        assert_int_equal(p.layers, nets[k].layers);
        assert_int_equal(p.float_layers, 2);
        assert_int_equal(p.byte_layers, 0);
        const double weights = 2 * 40 * 40 * 9 * 4, levels = 2 * 40 * 4 * nets[k].bits;
        const double least = p.bytes_before - weights * (1 - nets[k].bits / 32.0);
        if (p.bytes < least || p.bytes > least + levels + 200)
            fail_msg("%s: %g bytes of %g", nets[k].scheme, p.bytes, p.bytes_before);
        if (fac_packed_load(path, &back, &err)) fail_msg("%s: %s", nets[k].scheme, err.text);
        same_results(nets[k].scheme, quiet, back);
        saves_as_before(back, &p);
        assert_string_equal(fac_graph_note(back, "facula.test"), "a note \"of two\nlines\"");
        fac_graph_free(back);
        fac_graph_free(quiet);
        fac_graph_free(g);
    }
}

/* What quantizers leave has bytes in the file; the result is that of the copy in floats. */
static void the_rest_may_be_bytes(void **state) {
    (void)state;
    static const char *const schemes[] = { "lq:w1a2", "xnor", "lq:w3a3", "lsq:w2a4" };
    for (int k = 0; k < 8; k++) {
        fac_error err = { 0 };
        fac_packing p;
        fac_graph *g = network(schemes[k / 2]), *plain = NULL, *bytes, *back;
        int changed = 0;
        step(g);
        if (k % 2 && fac_graph_dequantize(g, &plain, &err)) fail_msg("%s", err.text);
        if (fac_graph_byte_weights(plain ? plain : g, &changed, &bytes, &err))
            fail_msg("%s", err.text);
        assert_int_equal(changed, 2);
        if (fac_packed_save(bytes, path, &p, &err)) fail_msg("%s", err.text);
        assert_int_equal(p.layers, 2);
        static const int planes[] = { 1, 1, 3, 2 };
        const double bits = planes[k / 2] * 2 * 40 * 40 * 9, rest = 40 * 9 + 3 * 40 * 72;
        assert_int_equal(p.byte_layers, 2);
        assert_int_equal(p.float_layers, 0);
        const double all = 4 * (2 * 40 * 40 * 9 + rest), norms = 4 * (3 * 4 * 40 + 3);
        if (p.bytes_before < all || p.bytes_before > all + 2 * norms)
            fail_msg("%g bytes before, not %g", p.bytes_before, all);
        assert_true(p.bytes > bits / 8 + rest && p.bytes < bits / 8 + rest + 4000);
        if (fac_packed_load(path, &back, &err)) fail_msg("%s", err.text);
        same_results(schemes[k / 2], bytes, back);
        bytes_are_near(g, back, "conv1.weight", 40, 9);
        bytes_are_near(g, back, "fc.weight", 3, 40 * 72);
        fac_graph_free(back);
        fac_graph_free(bytes);
        fac_graph_free(plain);
        fac_graph_free(g);
    }
}

/* A weight of two layers, which a gather reads, too: bytes for all three. */
static void shared_weights_become_bytes(void **state) {
    (void)state;
    enum { WIDE = 12 };
    fac_error err = { 0 };
    fac_graph *g = fac_graph_new(), *bytes;
    fac_tensor *t;
    fac_nn_seed(g, 3);
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 1, 9, 8));
    float numbers[WIDE * WIDE];
    for (int k = 0; k < WIDE * WIDE; k++) numbers[k] = sinf((float)(k * 5 % 61));
    assert_int_equal(fac_tensor_new(NULL, FAC_F32, fac_shape(WIDE, WIDE), &t, &err), FAC_OK);
    assert_int_equal(fac_tensor_write(t, numbers, sizeof numbers, &err), FAC_OK);
    fac_value *w = fac_param(g, "shared", t);
    fac_tensor_free(t);
    x = fac_nn_linear(fac_flatten(x, 1), "first", WIDE);
    x = fac_linear(fac_relu(fac_linear(x, w, NULL)), w, NULL);
    x = fac_add(x, fac_gather(w, fac_ints(g, fac_shape(3)), 0));
    fac_output(g, "logits", fac_nn_linear(x, "last", 3));
    int changed = 0;
    if (fac_graph_byte_weights(g, &changed, &bytes, &err)) fail_msg("%s", err.text);
    assert_int_equal(changed, 4);
    bytes_are_near(g, bytes, "shared", WIDE, WIDE);
    for (int k = 0; k < fac_graph_params(bytes); k++)
        if (!strcmp(fac_value_name(fac_graph_param(bytes, k)), "shared"))
            fail_msg("the floats are still there");
    float a[6], b[6];
    run(g, a);
    run(bytes, b);
    for (int i = 0; i < 6; i++)
        if (fabsf(a[i] - b[i]) > 0.1f * (1 + fabsf(a[i])))
            fail_msg("%g, of floats %g", (double)b[i], (double)a[i]);
    fac_graph_free(bytes);
    fac_graph_free(g);
}

static void weights_that_are_not_finite_are_refused(void **state) {
    (void)state;
    fac_error err = { 0 };
    fac_graph *g = network("xnor"), *bytes = NULL;
    fac_tensor *t = (fac_tensor *)param_of(g, "fc.weight");
    enum { COUNT = 3 * 40 * 72 };
    float *w = malloc(COUNT * sizeof *w);
    memcpy(w, fac_tensor_data(t), COUNT * sizeof *w);
    w[40 * 72 + 5] = INFINITY;
    assert_int_equal(fac_tensor_write(t, w, COUNT * sizeof *w, &err), FAC_OK);
    free(w);
    assert_int_equal(fac_graph_byte_weights(g, NULL, &bytes, &err), FAC_E_ARGUMENT);
    if (!strstr(err.text, "fc.weight: row 1")) fail_msg("%s", err.text);
    assert_null(bytes);
    fac_graph_free(g);
}

/* Without its quantizers, as ONNX files have it. */
static void networks_without_quantizers_are_recognized(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
        fac_error err = { 0 };
        fac_packing p;
        fac_graph *g = network(nets[k].scheme), *plain, *back;
        /* three bits are as many as it looks for */
        if (strstr(nets[k].scheme, "w4")) {
            fac_graph_free(g);
            continue;
        }
        step(g);
        if (fac_graph_dequantize(g, &plain, &err)) fail_msg("%s: %s", nets[k].scheme, err.text);
        if (fac_packed_save(plain, path, &p, &err)) fail_msg("%s: %s", nets[k].scheme, err.text);
        assert_int_equal(p.layers, nets[k].layers);
        if (fac_packed_load(path, &back, &err)) fail_msg("%s: %s", nets[k].scheme, err.text);
        fac_graph *quiet = fac_graph_inference(plain);
        same_results(nets[k].scheme, quiet, back);
        fac_graph_free(quiet);
        fac_graph_free(back);
        fac_graph_free(plain);
        fac_graph_free(g);
    }
}

/* In QONNX's operators, which are read again. */
static void qonnx_files_are_the_same_network(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
        fac_error err = { 0 };
        fac_graph *g = network(nets[k].scheme), *form, *back;
        step(g);
        if (fac_graph_qonnx(g, &form, &err)) fail_msg("%s: %s", nets[k].scheme, err.text);
        if (fac_onnx_save(form, path, NULL, &err) || fac_onnx_load(path, NULL, &back, &err))
            fail_msg("%s: %s", nets[k].scheme, err.text);
        fac_graph *quiet = fac_graph_inference(g);
        same_results(nets[k].scheme, quiet, back);
        fac_graph_free(quiet);
        fac_graph_free(back);
        fac_graph_free(form);
        fac_graph_free(g);
    }
}

static void refuses(fac_status status, const char *says) {
    fac_error err = { 0 };
    fac_graph *g;
    const fac_status got = fac_packed_load(path, &g, &err);
    if (got != status || !strstr(err.text, says))
        fail_msg("%d: %s, expected \"%s\"", (int)got, err.text, says);
}

/* The tensors of a good file but for one, which `with` replaces. */
static void rewrite(const char *good, const char *name, fac_tensor *with) {
    fac_weights *w;
    const char *names[64];
    fac_tensor *t[64];
    int n = 0;
    assert_int_equal(fac_weights_load(good, &w, NULL), FAC_OK);
    for (int i = 0; i < fac_weights_count(w); i++) {
        const bool that = !strcmp(fac_weights_name(w, i), name);
        if (that && !with) continue;
        names[n] = fac_weights_name(w, i);
        t[n++] = that ? with : fac_weights_tensor(w, i);
    }
    assert_int_equal(fac_safetensors_save(path, n, names, t, NULL), FAC_OK);
    fac_weights_free(w);
    fac_tensor_free(with);
}

static fac_tensor *numbers(fac_dtype dtype, fac_dims d, const void *x) {
    fac_tensor *t;
    assert_int_equal(fac_tensor_new(NULL, dtype, d, &t, NULL), FAC_OK);
    const fac_type type = fac_tensor_type(t);
    assert_int_equal(fac_tensor_write(t, x, fac_type_bytes(&type), NULL), FAC_OK);
    return t;
}

static void other_files_are_refused(void **state) {
    (void)state;
    char good[80];
    fac_graph *g = network("lq:w1a2");
    snprintf(good, sizeof good, "%s.good", path);
    assert_int_equal(fac_packed_save(g, good, NULL, NULL), FAC_OK);
    fac_graph_free(g);
    rewrite(good, "facula.packed", NULL);
    refuses(FAC_E_FORMAT, "it is no packed file");
    rewrite(good, "facula.packed", numbers(FAC_I64, fac_shape(3), (const int64_t[]){ 2, 0, 0 }));
    refuses(FAC_E_FORMAT, "of version 2, expected 1");
    rewrite(good, "facula.packed", numbers(FAC_I64, fac_shape(3), (const int64_t[]){ 1, 1, 0 }));
    refuses(FAC_E_FORMAT, "bits of order 1");
    rewrite(good, "facula.graph", NULL);
    refuses(FAC_E_FORMAT, "facula.graph is missing");
    rewrite(good, "facula.graph", numbers(FAC_U8, fac_shape(9), "not a gra"));
    refuses(FAC_E_FORMAT, "");
    rewrite(good, "conv2.weight.bits", NULL);
    refuses(FAC_E_FORMAT, "has no conv2.weight.bits");
    rewrite(good, "conv2.weight.bits", numbers(FAC_U8, fac_shape(1, 40, 2), (const char[80]){ 0 }));
    refuses(FAC_E_FORMAT, "another type or shape");
    rewrite(good, "", NULL);
    assert_int_equal(truncate(path, 4000), 0);
    refuses(FAC_E_FORMAT, "");
    unlink(good);
}

static void floats_have_nothing_to_pack(void **state) {
    (void)state;
    fac_error err = { 0 };
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "x", FAC_F32, fac_shape(2, 9));
    fac_output(g, "y", fac_nn_linear(x, "fc", 3));
    assert_int_equal(fac_packed_save(g, path, NULL, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "nothing to pack"));
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_read_is_what_was_written),
                                        cmocka_unit_test(the_rest_may_be_bytes),
                                        cmocka_unit_test(shared_weights_become_bytes),
                                        cmocka_unit_test(weights_that_are_not_finite_are_refused),
                                        cmocka_unit_test(
                                            networks_without_quantizers_are_recognized),
                                        cmocka_unit_test(qonnx_files_are_the_same_network),
                                        cmocka_unit_test(other_files_are_refused),
                                        cmocka_unit_test(floats_have_nothing_to_pack) };
    return cmocka_run_group_tests_name("packed", tests, begin, end);
}
