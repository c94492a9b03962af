/* The zoo: names and shapes of all parameters and the logits of whole networks against torchvision
 * (golden/zoo.h, made by scripts/golden_zoo.py), files of weights that fit and that do not, the
 * real EfficientNet-Lite0 on real photos. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "allocations.h"
#include "facula/facula.h"
#include "golden/zoo.h"
#include "graph/graph_internal.h"

enum { GOLDEN = sizeof golden_zoo / sizeof *golden_zoo };

/* ---- weights by formula: as scripts/golden_zoo.py makes them ---- */

static uint32_t name_hash(const char *name) {
    uint32_t h = 0x811c9dc5;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 0x01000193;
    return h;
}

static double uniform(uint32_t hash, uint32_t i) {
    uint32_t x = i * 2654435761u + hash;
    x ^= x >> 16;
    x *= 0x85ebca6b;
    x ^= x >> 13;
    x *= 0xc2b2ae35;
    x ^= x >> 16;
    return x / 4294967296.0;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

static fac_tensor *formula(void *self, const char *name, fac_type type, fac_error *err) {
    (void)self;
    fac_tensor *t = NULL;
    int64_t n = fac_dims_count(&type.dims);
    float *w = malloc((size_t)n * sizeof *w);
    assert_non_null(w);
    uint32_t hash = name_hash(name);
    double fan_in = type.dims.n > 1 ? (double)n / (double)type.dims.d[0] : 0,
           bound = sqrt(6 / fan_in);
    bool around_one = ends_with(name, "running_var") || ends_with(name, "weight");
    for (int64_t i = 0; i < n; i++) {
        double u = uniform(hash, (uint32_t)i);
        w[i] = (float)(fan_in > 0   ? (2 * u - 1) * bound
                       : around_one ? 0.75 + u / 2
                                    : (2 * u - 1) / 8);
    }
    if (!fac_tensor_new(NULL, FAC_F32, type.dims, &t, err))
        assert_int_equal(fac_tensor_write(t, w, (size_t)n * sizeof *w, err), FAC_OK);
    free(w);
    return t;
}

/* The same shapes without any memory. */
static fac_tensor *nothing(void *self, const char *name, fac_type type, fac_error *err) {
    (void)self;
    (void)name;
    static const float zero = 0;
    static const int64_t strides[FAC_DIMS] = { 0 };
    fac_tensor *t = NULL;
    return fac_tensor_borrow(type.dtype, type.dims, strides, &zero, NULL, NULL, &t, err) ? NULL : t;
}

static fac_graph *network(const fac_zoo *z, fac_source *source) {
    fac_graph *g = fac_graph_new();
    assert_non_null(g);
    fac_nn_source(g, source, NULL);
    const fac_dims dims = fac_shape(fac_symbol(g, "N"), z->channels, z->height, z->width);
    fac_output(g, "logits", z->build(fac_input(g, "x", FAC_F32, dims)));
    fac_error err = { 0 };
    if (fac_graph_check(g, &err)) fail_msg("%s: %s", z->name, err.text);
    return g;
}

/* ---- the table ---- */

static void every_network_is_complete(void **state) {
    (void)state;
    int n = 0;
    for (const fac_zoo *z = fac_zoo_models; z->name; z++) {
        n += !strchr(z->name, '?'); /* an option makes no other network */
        assert_ptr_equal(fac_zoo_find(z->name), z);
        assert_non_null(z->help);
        bool known = false;
        for (const fac_preset *p = fac_presets; p->name; p++)
            known |= strcmp(p->name, z->preset) == 0 && p->how.height == z->height &&
                     p->how.width == z->width && (p->how.grey ? 1 : 3) == z->channels;
        if (!known) fail_msg("%s: preset %s does not fit", z->name, z->preset);
    }
    assert_int_equal(n, GOLDEN);
    assert_null(fac_zoo_find("resnet19"));
    assert_null(fac_zoo_find(NULL));
}

static uint64_t line_hash(const fac_value *v) {
    char line[256];
    int n = snprintf(line, sizeof line, "%s ", v->name);
    for (int k = 0; k < v->type.dims.n; k++)
        n += snprintf(line + n, sizeof line - (size_t)n, "%s%lld", k ? "," : "",
                      (long long)v->type.dims.d[k]);
    uint64_t h = 0xcbf29ce484222325;
    for (int i = 0; i < n; i++) h = (h ^ (uint8_t)line[i]) * 0x100000001b3;
    return h;
}

static void names_and_shapes_are_torchvisions(void **state) {
    (void)state;
    for (int k = 0; k < GOLDEN; k++) {
        const struct golden_zoo *expected = &golden_zoo[k];
        const fac_zoo *z = fac_zoo_find(expected->name);
        assert_non_null(z);
        fac_graph *g = network(z, nothing);
        uint64_t names = 0;
        int64_t parameters = 0;
        for (int i = 0; i < fac_graph_params(g); i++) {
            const fac_value *v = fac_graph_param(g, i);
            names += line_hash(v);
            if (v->leaf == FAC_PARAM) parameters += fac_dims_count(&v->type.dims);
        }
        assert_int_equal(fac_graph_params(g), expected->tensors);
        assert_int_equal(parameters, expected->parameters);
        if (names != expected->names) fail_msg("%s: a name or shape differs", z->name);
        fac_type y = fac_value_type(fac_graph_output(g, 0));
        assert_int_equal(y.dims.n, 2);
        assert_int_equal(y.dims.d[0], fac_symbol(g, "N"));
        assert_int_equal(y.dims.d[1], z->classes);
        fac_graph_free(g);
    }
}

/* ---- whole networks ---- */

static void run(fac_graph *g, fac_tensor *x, float *to, size_t n) {
    fac_error err = { 0 };
    fac_device *device = NULL;
    fac_program *p = NULL;
    fac_tensor *y = NULL;
    if (fac_device_open("cpu", NULL, &device, &err) || fac_program_new(g, device, NULL, &p, &err) ||
        fac_program_run(p, &x, &y, &err) || fac_tensor_read(y, to, n * sizeof *to, &err))
        fail_msg("%s", err.text);
    fac_tensor_free(y);
    fac_program_free(p);
    fac_device_free(device);
}

static void logits_are_torchvisions(void **state) {
    (void)state;
    enum { CLASSES = 1000 };
    for (int k = 0; k < GOLDEN; k++) {
        const struct golden_zoo *expected = &golden_zoo[k];
        if (expected->largest == 0) continue;
        const fac_zoo *z = fac_zoo_find(expected->name);
        fac_graph *g = network(z, formula);
        const fac_dims dims = fac_shape(2, z->channels, z->height, z->width);
        const size_t n = (size_t)fac_dims_count(&dims);
        float *pixels = malloc(n * sizeof *pixels), y[2 * CLASSES];
        assert_non_null(pixels);
        for (size_t i = 0; i < n; i++)
            pixels[i] = (float)(2 * uniform(name_hash("x"), (uint32_t)i) - 1);
        fac_tensor *x = NULL;
        assert_int_equal(fac_tensor_borrow(FAC_F32, dims, NULL, pixels, NULL, NULL, &x, NULL),
                         FAC_OK);
        run(g, x, y, 2 * (size_t)z->classes);
        double worst = 0, largest = 0;
        for (int i = 0; i < GOLDEN_LOGITS; i++)
            worst = fmax(worst, fabs(y[z->classes + i] - expected->logits[i]));
        for (int i = 0; i < 2 * z->classes; i++) largest = fmax(largest, fabs((double)y[i]));
        worst /= expected->largest;
        if (!(worst < 1e-4) || !(fabs(largest / expected->largest - 1) < 1e-4))
            fail_msg("%s: differs by %g of the largest logit, %g, which should be %g", z->name,
                     worst, largest, expected->largest);
        print_message("           %-18s %.1e\n", z->name, worst);
        fac_tensor_free(x);
        free(pixels);
        fac_graph_free(g);
    }
}

/* With transform_input the network takes what the preset "imagenet" makes, and does with it what
 * the plain one does with 2 p - 1: here p is the same picture, and so are the logits. */
static void googlenet_undoes_its_preset(void **state) {
    (void)state;
    static const double mean[3] = { 0.485, 0.456, 0.406 }, std[3] = { 0.229, 0.224, 0.225 };
    enum { PLANE = 224 * 224, CLASSES = 1000 };
    static float pixels[2][3 * PLANE], y[2][CLASSES];
    static const char *const names[] = { "googlenet", "googlenet?transform_input" };
    for (int i = 0; i < 3 * PLANE; i++) {
        const double p = uniform(name_hash("p"), (uint32_t)i);
        pixels[0][i] = (float)(2 * p - 1);
        pixels[1][i] = (float)((p - mean[i / PLANE]) / std[i / PLANE]);
    }
    for (int k = 0; k < 2; k++) {
        const fac_zoo *z = fac_zoo_find(names[k]);
        assert_non_null(z);
        assert_string_equal(z->preset, k ? "imagenet" : "tf");
        fac_graph *g = network(z, formula);
        fac_tensor *x = NULL;
        const fac_dims dims = fac_shape(1, 3, 224, 224);
        assert_int_equal(fac_tensor_borrow(FAC_F32, dims, NULL, pixels[k], NULL, NULL, &x, NULL),
                         FAC_OK);
        run(g, x, y[k], CLASSES);
        fac_tensor_free(x);
        fac_graph_free(g);
    }
    double largest = 0, worst = 0;
    for (int i = 0; i < CLASSES; i++) {
        largest = fmax(largest, fabs((double)y[0][i]));
        worst = fmax(worst, fabs((double)y[0][i] - (double)y[1][i]));
    }
    assert_true(largest > 0);
    assert_true(worst < 1e-4 * largest);
}

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
    f.t[0] = half, f.t[1] = wide;
    assert_int_equal(fac_tensor_new(NULL, FAC_I64, (fac_dims){ 0 }, &count, NULL), FAC_OK);
    f.names[f.n] = strdup("bn1.num_batches_tracked"), f.t[f.n++] = count;

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
    other.names[f.n] = "aux1.fc1.weight", other.t[f.n] = f.t[0], other.n++;
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

/* ---- class names ---- */

static void class_names_are_short_and_distinct(void **state) {
    (void)state;
    static const struct {
        int index;
        const char *name;
    } known[] = {
        { 0, "tench" },           { 207, "golden retriever" }, { 281, "tabby" },
        { 282, "tiger cat" },     { 285, "Egyptian cat" },     { 388, "giant panda" },
        { 657, "missile" },       { 812, "space shuttle" },    { 967, "espresso" },
        { 999, "toilet tissue" },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_string_equal(fac_imagenet_name(known[i].index), known[i].name);
    assert_null(fac_imagenet_name(-1));
    assert_null(fac_imagenet_name(1000));
    for (int i = 0; i < 1000; i++) {
        const char *name = fac_imagenet_name(i);
        assert_true(strlen(name) > 1 && strlen(name) < 40 && !strchr(name, ','));
        for (int k = 0; k < i; k++)
            if (strcmp(name, fac_imagenet_name(k)) == 0)
                fail_msg("%d and %d are both %s", k, i, name);
    }
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
        cmocka_unit_test(every_network_is_complete),
        cmocka_unit_test(names_and_shapes_are_torchvisions),
        cmocka_unit_test(logits_are_torchvisions),
        cmocka_unit_test(googlenet_undoes_its_preset),
        cmocka_unit_test(a_file_gives_its_weights),
        cmocka_unit_test(a_file_that_does_not_fit_says_why),
        cmocka_unit_test(weights_of_training_only_are_left_out),
        cmocka_unit_test(random_weights_come_from_the_seed),
        cmocka_unit_test(memory_may_end_anywhere),
        cmocka_unit_test(class_names_are_short_and_distinct),
        cmocka_unit_test(efficientnet_knows_coffee_and_cats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
