/* The zoo: names and shapes of all parameters and the logits of whole networks against torchvision
 * (golden/zoo.h, made by tests/golden/make/golden_zoo.py), names of classes. */
#include "zoo_check.h"

enum { GOLDEN = sizeof golden_zoo / sizeof *golden_zoo };

/* ---- weights by formula: as tests/golden/make/golden_zoo.py makes them ---- */

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_network_is_complete),
        cmocka_unit_test(names_and_shapes_are_torchvisions),
        cmocka_unit_test(logits_are_torchvisions),
        cmocka_unit_test(googlenet_undoes_its_preset),
        cmocka_unit_test(class_names_are_short_and_distinct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
