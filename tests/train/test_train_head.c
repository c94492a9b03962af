/* Heads: the zoo's networks and models like ONNX files' become classifiers of other classes, and
 * train. */
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "facula/facula.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

static fac_graph *read_text(const char *text) {
    FILE *f = fmemopen((char *)(uintptr_t)text, strlen(text), "r");
    fac_graph *g = NULL;
    OK(fac_graph_read(f, &g, err));
    fclose(f);
    return g;
}

static fac_type out_type(const fac_graph *g) { return fac_value_type(fac_graph_output(g, 0)); }

/* Everything but the head is shared; the head is fresh, within 1 / sqrt(fan_in), and the same for
 * the same seed. */
static void the_zoo_changes_its_classes(void **state) {
    (void)state;
    static const struct {
        const char *name, *layer;
        int64_t had, features;
    } nets[] = { { "lenet", "fc3", 10, 84 },
                 { "resnet18", "fc", 1000, 512 },
                 { "squeezenet1_1", "classifier.1", 1000, 512 },
                 { "mobilenet_v2", "classifier.1", 1000, 1280 } };
    for (int k = 0; k < 4; k++) {
        fac_graph *g = NULL, *a = NULL, *b = NULL, *c = NULL;
        fac_head h;
        char name[64];
        OK(fac_zoo_new(nets[k].name, NULL, 1, &g, err));
        OK(fac_graph_replace_head(g, 7, 5, &a, &h, err));
        OK(fac_graph_replace_head(g, 7, 5, &b, NULL, err));
        OK(fac_graph_replace_head(g, 7, 6, &c, NULL, err));
        assert_string_equal(h.layer, nets[k].layer);
        assert_true(h.had == nets[k].had && h.features == nets[k].features && h.classes == 7 &&
                    h.replaced);
        assert_true(out_type(a).dims.n == 2 && out_type(a).dims.d[1] == 7 &&
                    out_type(a).dims.d[0] < 0);
        assert_int_equal(fac_graph_params(a), fac_graph_params(g));
        snprintf(name, sizeof name, "%s.weight", nets[k].layer);
        fac_tensor *w = fac_value_tensor(fac_graph_find(a, name));
        const fac_type type = fac_tensor_type(w);
        const float *x = fac_tensor_data(w), bound = (float)(1 / sqrt((double)h.features));
        assert_true(type.dims.d[0] == 7 && fac_dims_count(&type.dims) == 7 * h.features);
        for (int64_t i = 0; i < 7 * h.features; i++) assert_true(fabsf(x[i]) <= bound);
        assert_memory_equal(x, fac_tensor_data(fac_value_tensor(fac_graph_find(b, name))),
                            fac_type_bytes(&type));
        assert_memory_not_equal(x, fac_tensor_data(fac_value_tensor(fac_graph_find(c, name))),
                                fac_type_bytes(&type));
        int shared = 0;
        for (int i = 0; i < fac_graph_params(g); i++) {
            const fac_value *p = fac_graph_param(g, i);
            shared += fac_value_tensor(p) == fac_value_tensor(fac_graph_find(a, fac_value_name(p)));
        }
        assert_int_equal(shared, fac_graph_params(g) - 2);
        fac_graph_free(g);
        fac_graph_free(a);
        fac_graph_free(b);
        fac_graph_free(c);
    }
}

/* As exporters write them: a batch of one, in reshapes too, softmax at the end, the bias as an op
 * of its own. */
static const char matmul_model[] =
    "input x f32[1,2,4,4]\nparam w f32[3,2,3,3]\nparam scale f32[3]\nparam shift f32[3]\nparam "
    "mean f32[3]\nparam var f32[3]\n"
    "param v f32[3,16,5]\nparam b f32[1,5]\nparam low f32[]\nparam high f32[]\n"
    "%1 = conv2d(x, w) pad=1,1,1,1\n%2 = batch_norm(%1, scale, shift, mean, var)\n%3 = clip(%2, "
    "low, high)\n"
    "%4 = reshape(%3, i64{1,48})\n%5 = reshape(v, i64{48,5})\n%6 = matmul(%4, %5)\n%7 = add(%6, "
    "b)\n"
    "%8 = softmax(%7) axis=1\noutput y = %8\n";
static const char conv_model[] = "input x f32[1,2,4,4]\nparam w f32[5,2,1,1]\nparam b f32[5]\n%1 = "
                                 "conv2d(x, w, b)\n%2 = relu(%1)\n"
                                 "%3 = mean(%2, i64{2,3}) keep\n%4 = flatten(%3) axis=1\n%5 = "
                                 "softmax(%4) axis=1\n%6 = reshape(%5, i64{1,5,1,1})\n"
                                 "output y = %6\n";
static const char gemm_model[] = "input x f32[N,6]\nparam w f32[5,6]\nparam b f32[5]\n%1 = gemm(x, "
                                 "w, b) trans_b beta=2\n%2 = log_softmax(%1) axis=1\n"
                                 "output y = %2\n";

static fac_type param(fac_graph *g, const char *name) {
    const fac_value *v = fac_graph_find(g, name);
    if (!v || !fac_value_tensor(v)) fail_msg("there is no parameter %s", name);
    return fac_value_type(v);
}

static void imported_models_change_their_classes(void **state) {
    (void)state;
    fac_head h;
    fac_graph *g = read_text(matmul_model), *a = NULL;
    OK(fac_graph_replace_head(g, 3, 0, &a, &h, err));
    assert_true(h.replaced && h.batch_freed && h.had == 5 && h.features == 48);
    assert_true(out_type(a).dims.n == 2 && out_type(a).dims.d[1] == 3 && out_type(a).dims.d[0] < 0);
    assert_true(param(a, "head.weight").dims.d[1] == 3 && param(a, "b").dims.d[1] == 3);
    assert_null(fac_graph_find(a, "v"));
    for (int i = 0; i < fac_graph_params(a); i++) /* bounds of a clip are no weights */
        assert_true(fac_value_type(fac_graph_param(a, i)).dims.n > 0);
    fac_graph_free(g);
    fac_graph_free(a);

    g = read_text(conv_model);
    OK(fac_graph_replace_head(g, 12, 0, &a, &h, err));
    assert_true(h.replaced && h.batch_freed && h.had == 5 && h.features == 2);
    assert_string_equal(h.layer, "w");
    assert_true(out_type(a).dims.n == 2 && out_type(a).dims.d[1] == 12 &&
                param(a, "w").dims.d[0] == 12);
    fac_graph_free(g);
    fac_graph_free(a);

    g = read_text(gemm_model);
    fac_graph_set_note(g, FAC_NOTE_LABELS, "a\nb\nc\nd\ne\n");
    fac_graph_set_note(g, FAC_NOTE_PRESET, "caffe");
    OK(fac_graph_replace_head(g, 2, 0, &a, &h, err));
    assert_null(fac_graph_note(a, FAC_NOTE_LABELS)); /* the names were those of the old classes */
    assert_string_equal(fac_graph_note(a, FAC_NOTE_PRESET), "caffe");
    assert_true(h.replaced && !h.batch_freed && param(a, "w").dims.d[0] == 2 &&
                param(a, "b").dims.d[0] == 2);
    fac_graph_free(a);
    OK(fac_graph_replace_head(g, 5, 0, &a, &h, err)); /* as many as before: only the softmax goes */
    assert_string_equal(fac_graph_note(a, FAC_NOTE_LABELS), "a\nb\nc\nd\ne\n");
    assert_true(!h.replaced && fac_value_tensor(fac_graph_find(a, "w")) ==
                                   fac_value_tensor(fac_graph_find(g, "w")));
    fac_graph_free(g);
    fac_graph_free(a);
}

/* A batch that a model cannot be freed of stays; all else is done. */
static void a_batch_may_stay(void **state) {
    (void)state;
    fac_head h;
    fac_graph *a = NULL,
              *g = read_text("input x f32[1,6]\nparam w f32[5,6]\n%1 = transpose(x) perm=1,0\n"
                             "%2 = reshape(%1, i64{2,3})\n%3 = reshape(%2, i64{1,6})\n"
                             "%4 = linear(%3, w)\noutput y = %4\n");
    OK(fac_graph_replace_head(g, 2, 0, &a, &h, err));
    assert_true(h.replaced && !h.batch_freed && out_type(a).dims.d[0] == 1 &&
                out_type(a).dims.d[1] == 2);
    fac_graph_free(g);
    fac_graph_free(a);
}

static void other_ends_are_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "input x f32[N,6]\n%1 = relu(x)\noutput y = %1\n",
        "input x f32[N,6]\nparam w f32[5,6]\n%1 = linear(x, w)\n%2 = add(%1, %1)\noutput y = %2\n",
        "input x f32[N,4,3,3]\nparam w f32[4,1,1,1]\n%1 = conv2d(x, w) groups=4\noutput y = %1\n",
        "input x f32[N,4,3,3]\nparam w f32[4,4,1,1]\n%1 = conv2d(x, w)\noutput y = %1\n"
    };
    for (int k = 0; k < 4; k++) {
        fac_graph *g = read_text(texts[k]), *a = NULL;
        fac_error e = { 0 };
        assert_int_equal(fac_graph_replace_head(g, 3, 0, &a, NULL, &e), FAC_E_UNSUPPORTED);
        assert_null(a);
        assert_non_null(strstr(e.text, k < 3 ? "does not end" : "does not give [N,3]"));
        assert_int_equal(fac_graph_replace_head(g, 0, 0, &a, NULL, &e), FAC_E_ARGUMENT);
        fac_graph_free(g);
    }
}

/* A file with a batch of one, as exporters write it: read, given other classes, and stepped with a
 * batch of three. */
static void a_file_is_fitted(void **state) {
    (void)state;
    char path[] = "/tmp/facula-head-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    fac_graph *g = NULL, *file = NULL, *a = NULL;
    fac_head h;
    OK(fac_zoo_new("lenet", NULL, 1, &g, err));
    OK(fac_onnx_save(g, path, &(fac_onnx_save_opts){ .batch = 1 }, err));
    OK(fac_onnx_load(path, NULL, &file, err));
    assert_int_equal(fac_value_type(fac_graph_input(file, 0)).dims.d[0], 1);
    OK(fac_graph_replace_head(file, 4, 0, &a, &h, err));
    assert_true(h.replaced && h.batch_freed && h.had == 10 && h.features == 84);
    fac_device *device = NULL;
    fac_trainer *t = NULL;
    fac_score before, after;
    float x[3 * 784];
    int64_t y[3] = { 3, 0, 1 };
    for (int i = 0; i < 3 * 784; i++) x[i] = (float)(i % 97) / 97;
    fac_tensor *in = NULL, *labels = NULL;
    OK(fac_tensor_borrow(FAC_F32, fac_shape(3, 1, 28, 28), NULL, x, NULL, NULL, &in, err));
    OK(fac_tensor_borrow(FAC_I64, fac_shape(3), NULL, y, NULL, NULL, &labels, err));
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &device, err));
    OK(fac_trainer_new(a, device, NULL, &t, err));
    OK(fac_trainer_step(t, in, labels, 1e-3, &before, err));
    for (int i = 0; i < 5; i++) OK(fac_trainer_step(t, in, labels, 1e-3, &after, err));
    assert_true(after.loss < before.loss);
    fac_tensor_free(in);
    fac_tensor_free(labels);
    fac_trainer_free(t);
    fac_graph_free(a);
    fac_graph_free(file);
    fac_graph_free(g);
    fac_device_free(device);
    unlink(path);
}

/* Which of two halves of the picture is bright: an imported network learns it, batch norm and
 * frozen parameters included. */
static void an_imported_model_trains(void **state) {
    (void)state;
    enum { N = 32 };
    static uint8_t pixels[N * 32];
    static int64_t labels[N];
    for (int i = 0; i < N; i++) {
        labels[i] = i % 2;
        for (int k = 0; k < 32; k++)
            pixels[i * 32 + k] = (uint8_t)((k % 4 < 2) == (i % 2) ? 180 + i : 20 + 2 * i);
    }
    const fac_dataset d = {
        .count = N, .item = fac_shape(2, 4, 4), .classes = 2, .bytes = pixels, .labels = labels
    };
    fac_graph *g = read_text(matmul_model), *a = NULL;
    OK(fac_graph_replace_head(g, 2, 3, &a, NULL, err));
    static const struct {
        const char *name;
        float x;
    } fill[] = { { "scale", 1 }, { "var", 1 } };
    for (int k = 0; k < 2; k++) {
        const float x[3] = { fill[k].x, fill[k].x, fill[k].x };
        OK(fac_tensor_write(fac_value_tensor(fac_graph_find(a, fill[k].name)), x, sizeof x, err));
    }
    float w[54], high = 6;
    for (int i = 0; i < 54; i++) w[i] = (float)((i * 7 % 11) - 5) / 20;
    OK(fac_tensor_write(fac_value_tensor(fac_graph_find(a, "w")), w, sizeof w, err));
    OK(fac_tensor_write(fac_value_tensor(fac_graph_find(g, "high")), &high, sizeof high, err));
    fac_device *device = NULL;
    fac_trainer *t = NULL;
    fac_train_result r;
    const char *const freeze[] = { "w", NULL };
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 1 }, &device, err));
    OK(fac_trainer_new(a, device, &(fac_trainer_opts){ .optim = { .freeze = freeze } }, &t, err));
    const fac_train_opts o = { .epochs = 20,
                               .batches = { .size = 8, .shuffle = true },
                               .schedule = { .lr = 0.02 } };
    OK(fac_train(t, &d, &d, &o, &r, err));
    assert_true(r.test.accuracy == 1 && r.test.loss < 0.3);
    assert_memory_equal(w, fac_tensor_data(fac_value_tensor(fac_graph_find(a, "w"))), sizeof w);
    const float *mean = fac_tensor_data(fac_value_tensor(fac_graph_find(a, "mean")));
    assert_true(mean[0] != 0 || mean[1] != 0);
    fac_trainer_free(t);
    fac_graph_free(a);
    fac_graph_free(g);
    fac_device_free(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_zoo_changes_its_classes),
        cmocka_unit_test(imported_models_change_their_classes),
        cmocka_unit_test(a_batch_may_stay),
        cmocka_unit_test(other_ends_are_refused),
        cmocka_unit_test(a_file_is_fitted),
        cmocka_unit_test(an_imported_model_trains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
