/* Weights of the zoo's networks from files that fit and that do not, and from a seed; the real
 * EfficientNet-Lite0 on real photos. */
#include "zoo_check.h"

/* ---- files of weights ---- */

enum { MOST = 300 };
typedef struct weights_file {
    int n;
    const char *names[MOST];
    fac_tensor *t[MOST];
} weights_file;

static weights_file file_of(const char *network) {
    weights_file f = { 0 };
    fac_graph *g = NULL;
    assert_int_equal(fac_zoo_new(network, NULL, 3, &g, NULL), FAC_OK);
    assert_true(fac_graph_params(g) < MOST);
    for (f.n = 0; f.n < fac_graph_params(g); f.n++) {
        f.names[f.n] = strdup(fac_graph_param(g, f.n)->name);
        f.t[f.n] = fac_tensor_retain(fac_value_tensor(fac_graph_param(g, f.n)));
    }
    fac_graph_free(g);
    return f;
}

static void file_free(weights_file *f) {
    for (int i = 0; i < f->n; i++) {
        free((char *)f->names[i]);
        fac_tensor_free(f->t[i]);
    }
}

/* Written, read back, built: the network, or NULL and the error. */
static fac_graph *through_file(const char *network, const weights_file *f, fac_error *err) {
    static const char path[] = "test_zoo_out.safetensors";
    fac_weights *w = NULL;
    fac_graph *g = NULL;
    if (fac_safetensors_save(path, f->n, f->names, f->t, err) || fac_weights_load(path, &w, err))
        fail_msg("%s", err->text);
    fac_status status = fac_zoo_new(network, w, 99, &g, err);
    fac_weights_free(w); /* the graph goes on without it */
    unlink(path);
    assert_int_equal(status == FAC_OK, g != NULL);
    return g;
}

static void assert_refused(const weights_file *f, const char *says) {
    fac_error err = { 0 };
    fac_graph *g = through_file("lenet", f, &err);
    assert_null(g);
    if (!strstr(err.text, says) || strncmp(err.text, "lenet: ", 7) != 0)
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

static void a_file_gives_its_weights(void **state) {
    (void)state;
    weights_file f = file_of("lenet");
    /* one of them in half precision, one in double: converted */
    fac_tensor *half = NULL, *wide = NULL, *count = NULL;
    assert_int_equal(fac_tensor_convert(f.t[0], FAC_F16, &half, NULL), FAC_OK);
    assert_int_equal(fac_tensor_convert(f.t[1], FAC_F64, &wide, NULL), FAC_OK);
    fac_tensor *kept[2] = { f.t[0], f.t[1] };
    f.t[0] = half;
    f.t[1] = wide;
    assert_int_equal(fac_tensor_new(NULL, FAC_I64, (fac_dims){ 0 }, &count, NULL), FAC_OK);
    f.names[f.n] = strdup("bn1.num_batches_tracked");
    f.t[f.n++] = count;

    fac_error err = { 0 };
    fac_graph *g = through_file("lenet", &f, &err);
    if (!g) fail_msg("%s", err.text);
    for (int i = 0; i < 10; i++) {
        const fac_value *v = fac_graph_find(g, f.names[i]);
        assert_non_null(v);
        int64_t n = fac_dims_count(&v->type.dims);
        const float *a = fac_tensor_data(v->tensor), *b = fac_tensor_data(i < 2 ? kept[i] : f.t[i]);
        for (int64_t k = 0; k < n; k++) assert_float_equal(a[k], b[k], i == 0 ? 1e-3 : 0);
    }
    fac_graph_free(g);
    fac_tensor_free(kept[0]);
    fac_tensor_free(kept[1]);
    file_free(&f);
}

static void a_file_that_does_not_fit_says_why(void **state) {
    (void)state;
    weights_file f = file_of("lenet"), other = f;
    other.n = 8;
    assert_refused(&other, "2 missing (fc3.weight, fc3.bias)");
    other.n = 2;
    assert_refused(&other, "8 missing (conv2.weight, conv2.bias, fc1.weight, ...)");

    other = f;
    other.names[3] = "conv2.offset";
    assert_refused(&other, "1 missing (conv2.bias); 1 not part of it (conv2.offset)");
    other.names[3] = "logits"; /* a value of the graph, but no parameter */
    assert_refused(&other, "1 not part of it (logits)");

    other = f;
    other.t[3] = f.t[1];
    assert_refused(&other, "1 different (conv2.bias is f32[6], expected f32[16])");
    other = f;
    assert_int_equal(fac_tensor_convert(f.t[1], FAC_I32, &other.t[1], NULL), FAC_OK);
    assert_refused(&other, "1 different (conv1.bias is i32[6], expected f32[6])");
    fac_tensor_free(other.t[1]);
    file_free(&f);

    fac_error err = { 0 };
    fac_graph *g = NULL;
    assert_int_equal(fac_zoo_new("lenet6", NULL, 0, &g, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "lenet6"));
    assert_non_null(strstr(err.text, "efficientnet_lite0"));
    assert_null(g);
}

/* torchvision's GoogLeNet brings the classifiers that help to train it. */
static void weights_of_training_only_are_left_out(void **state) {
    (void)state;
    weights_file f = file_of("googlenet"), other = f;
    other.names[f.n] = "aux1.fc1.weight";
    other.t[f.n] = f.t[0];
    other.n++;
    fac_error err = { 0 };
    fac_graph *g = through_file("googlenet", &other, &err);
    if (!g) fail_msg("%s", err.text);
    assert_null(fac_graph_find(g, "aux1.fc1.weight"));
    fac_graph_free(g);
    other.names[f.n] = "extra.fc1.weight";
    assert_null(through_file("googlenet", &other, &err));
    assert_non_null(strstr(err.text, "1 not part of it (extra.fc1.weight)"));
    file_free(&f);
}

static void random_weights_come_from_the_seed(void **state) {
    (void)state;
    float w[3];
    for (int k = 0; k < 3; k++) {
        fac_graph *g = NULL;
        assert_int_equal(fac_zoo_new("squeezenet1_1", NULL, k < 2 ? 5 : 6, &g, NULL), FAC_OK);
        w[k] = *(const float *)fac_tensor_data(
            fac_value_tensor(fac_graph_find(g, "features.0.weight")));
        fac_graph_free(g);
    }
    assert_true(w[0] == w[1] && w[0] != w[2]);
}

/* The n-th allocation fails, for every n, with and without a file. */
static void memory_may_end_anywhere(void **state) {
    (void)state;
    static const char path[] = "test_zoo_memory.safetensors";
    weights_file f = file_of("lenet");
    assert_int_equal(fac_safetensors_save(path, f.n, f.names, f.t, NULL), FAC_OK);
    for (int with_file = 0; with_file < 2; with_file++) {
        fac_status status = FAC_E_NOMEM;
        for (long n = 0; status; n++) {
            fac_weights *w = NULL;
            fac_graph *g = NULL;
            fac_error err = { 0 };
            allocations_left = n;
            status = with_file ? fac_weights_load(path, &w, &err) : FAC_OK;
            if (!status) status = fac_zoo_new("lenet", w, 1, &g, &err);
            allocations_left = -1;
            if (status && (status != FAC_E_NOMEM || g || err.status != status))
                fail_msg("allocation %ld: %s", n, err.text);
            fac_graph_free(g);
            fac_weights_free(w);
        }
    }
    unlink(path);
    file_free(&f);
}

/* ---- the real thing ----
 * FACULA_WEIGHTS is efficientnet-lite0-57934424.pth, FACULA_PHOTOS the folder of scikit-image's
 * photos. */

static void efficientnet_knows_coffee_and_cats(void **state) {
    (void)state;
    static const struct {
        const char *photo;
        struct {
            int index;
            double p;
        } best[3];
    } photos[] = {
        { "coffee.png", { { 967, .95 } } },
        { "chelsea.png", { { 282, .39 }, { 285, .36 }, { 281, .17 } } },
    };
    const char *file = getenv("FACULA_WEIGHTS"), *folder = getenv("FACULA_PHOTOS");
    if (!file || !folder) {
        print_message("           FACULA_WEIGHTS and FACULA_PHOTOS are not set\n");
        skip();
    }
    fac_error err = { 0 };
    fac_weights *w = NULL;
    fac_graph *g = NULL;
    if (fac_weights_load(file, &w, &err) || fac_zoo_new("efficientnet_lite0", w, 0, &g, &err))
        fail_msg("%s", err.text);
    fac_weights_free(w);
    const fac_preset *preset = fac_presets;
    while (strcmp(preset->name, "efficientnet-lite0") != 0) preset++;
    for (size_t k = 0; k < sizeof photos / sizeof *photos; k++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, photos[k].photo);
        fac_image image = { 0 };
        fac_tensor *x = NULL;
        float y[1000];
        double sum = 0;
        if (fac_image_load(path, &image, &err) || fac_image_tensor(&image, &preset->how, &x, &err))
            fail_msg("%s", err.text);
        run(g, x, y, 1000);
        for (int i = 0; i < 1000; i++) sum += exp((double)y[i]);
        for (int i = 0; i < 3 && photos[k].best[i].p > 0; i++)
            assert_float_equal(exp((double)y[photos[k].best[i].index]) / sum, photos[k].best[i].p,
                               0.01);
        fac_tensor_free(x);
        fac_image_free(&image);
    }
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_gives_its_weights),
        cmocka_unit_test(a_file_that_does_not_fit_says_why),
        cmocka_unit_test(weights_of_training_only_are_left_out),
        cmocka_unit_test(random_weights_come_from_the_seed),
        cmocka_unit_test(memory_may_end_anywhere),
        cmocka_unit_test(efficientnet_knows_coffee_and_cats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
