/* ONNX export: the files.  Names and facts inside, large tensors beside, and what is left behind
 * when a file cannot be written: nothing. */
#include "onnx_save_check.h"

static bool file_has(const char *file, const char *text) {
    FILE *f = fopen(file, "rb");
    assert_non_null(f);
    char *all = calloc(1, 1 << 20);
    size_t n = fread(all, 1, (1 << 20) - 1, f);
    fclose(f);
    bool has = memmem(all, n, text, strlen(text)) != NULL;
    free(all);
    return has;
}

static void names_and_metadata(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_value *x = fac_input(g, "image", FAC_F32, fac_shape(fac_symbol(g, "batch"), 4));
    fac_tensor *t = ramp(fac_shape(3, 4));
    fac_graph_push(g, "encoder");
    fac_graph_push(g, "0");
    fac_value *w = fac_param(g, "encoder.0.weight", t);
    fac_value *y = fac_relu(fac_linear(x, w, NULL));
    fac_graph_pop(g);
    y = fac_relu(fac_add(y, y));
    fac_graph_pop(g);
    fac_output(g, "logits", fac_neg(y));
    const char *keys[] = { "classes", "note" }, *values[] = { "3", "two lines\nof it" };
    fac_onnx_saved saved = { 0 };
    OK(fac_onnx_save(g, path,
                     &(fac_onnx_save_opts){ .name = "little",
                                            .doc = "what it is",
                                            .n = 2,
                                            .keys = keys,
                                            .values = values,
                                            .saved = &saved },
                     &err));
    static const char *const texts[] = {
        "little",         "what it is",   "facula",     "classes",          "two lines\nof it",
        "batch",          "image",        "logits",     "encoder.0.weight", "encoder.0.linear",
        "encoder.0.relu", "encoder.relu", "encoder.add"
    };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (!file_has(path, texts[k])) fail_msg("%s is not in the file", texts[k]);
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_size, saved.bytes);
    assert_int_equal(saved.nodes, 5);
    assert_int_equal(saved.tensors, 1);
    assert_int_equal(saved.data, 0);
    OK(fac_onnx_save(g, path, &(fac_onnx_save_opts){ .producer = "someone else" }, &err));
    assert_true(file_has(path, "someone else"));
    unlink(path);
    fac_tensor_free(t);
    fac_graph_free(g);
}

static void count_data(void *self, const char *location) {
    int *n = self;
    *n += !strcmp(location, strrchr(path, '/') + 1) ? 1000 : strstr(location, ".data") != NULL;
}

/* Large tensors beside the model: at boundaries of pages, and gone with it when it fails. */
static void external_data(void **state) {
    (void)state;
    fac_graph *g = two_layers();
    char data[128];
    snprintf(data, sizeof data, "%s.data", path);
    fac_onnx_saved saved = { 0 };
    fac_onnx_save_opts opts = { .inside = 1, .saved = &saved };
    OK(fac_onnx_save(g, path, &opts, &err));
    struct stat s;
    assert_int_equal(stat(data, &s), 0);
    assert_int_equal(s.st_size, saved.data);
    assert_int_equal(saved.data, 32 * 16 * 4); /* the bias is small and stays */
    int beside = 0;
    OK(fac_onnx_beside(path, count_data, &beside, &err));
    assert_int_equal(beside, 1);
    fac_graph *h = loaded();
    fac_tensor *x = random_tensor((fac_type){ FAC_F32, fac_shape(3, 16) }, -1, 1), *a = NULL,
               *b = NULL;
    run(g, &x, &a, "external");
    run(h, &x, &b, "external");
    assert_true(difference(b, a) == 0);
    fac_graph_free(h);
    unlink(path);
    assert_int_equal(fac_onnx_beside(path, count_data, &beside, &err), FAC_E_IO);
    unlink(data);
    assert_int_equal(mkdir(data, 0700), 0); /* where the data would go */
    assert_int_not_equal(fac_onnx_save(g, path, &opts, &err), FAC_OK);
    assert_int_equal(files_in_folder(), 1);
    rmdir(data);
    assert_int_equal(mkdir(path, 0700), 0); /* where the model would go */
    assert_int_not_equal(fac_onnx_save(g, path, &opts, &err), FAC_OK);
    assert_int_equal(files_in_folder(), 1);
    rmdir(path);
    fac_tensor_free(x);
    fac_tensor_free(a);
    fac_tensor_free(b);
    fac_graph_free(g);
}

static void refuses_link(const char *link_root, const char *says) {
    fac_graph *h = NULL;
    assert_int_not_equal(fac_onnx_load(path, &(fac_onnx_opts){ .link_root = link_root }, &h, &err),
                         FAC_OK);
    if (!strstr(err.text, says)) fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

/* Data that are a link out of the folder: only below the folder that the caller names. */
static void link_roots(void **state) {
    (void)state;
    fac_graph *g = two_layers(), *h = NULL;
    char data[128], far[128], there[192], sub[192];
    snprintf(data, sizeof data, "%s.data", path);
    snprintf(far, sizeof far, "%s-far", folder); /* beside the folder, with its name as a prefix */
    snprintf(sub, sizeof sub, "%s/sub", far);
    snprintf(there, sizeof there, "%s/sub/there", far);
    OK(fac_onnx_save(g, path, &(fac_onnx_save_opts){ .inside = 1 }, &err));
    assert_true(!mkdir(far, 0700) && !mkdir(sub, 0700) && !rename(data, there) &&
                !symlink(there, data));
    refuses_link(NULL, "leaves the model's folder");
    refuses_link(there, "is no folder");
    refuses_link("", "is no folder");
    refuses_link(folder, "does not lead below");
    OK(fac_onnx_load(path, &(fac_onnx_opts){ .link_root = far }, &h, &err));
    fac_graph_free(h);
    OK(fac_onnx_load(path, &(fac_onnx_opts){ .link_root = sub }, &h, &err));
    fac_graph_free(h);
    unlink(path);
    unlink(data);
    unlink(there);
    assert_true(!rmdir(sub) && !rmdir(far));
    fac_graph_free(g);
}

/* A full disk, a folder that is not there: an error that says the path, and an old file that is
 * still there. */
static void files_that_fail(void **state) {
    (void)state;
    fac_graph *g = two_layers();
    if (!access("/dev/full", W_OK)) {
        assert_int_equal(fac_onnx_save(g, "/dev/full", NULL, &err), FAC_E_IO);
        assert_non_null(strstr(err.text, "/dev/full"));
    }
    char missing[128];
    snprintf(missing, sizeof missing, "%s/none/m.onnx", folder);
    assert_int_equal(fac_onnx_save(g, missing, NULL, &err), FAC_E_IO);
    assert_non_null(strstr(err.text, missing));
    assert_int_equal(files_in_folder(), 0);
    OK(fac_onnx_save(g, path, NULL, &err));
    struct stat before, after;
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(fac_onnx_save(g, path, &(fac_onnx_save_opts){ .opset = 5 }, &err),
                     FAC_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "opset 5"));
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    unlink(path);
    assert_int_equal(files_in_folder(), 0);
    fac_graph_free(g);
}

/* Every allocation fails once: an error about memory, or a file that is whole; nothing lies around.
 */
static void lost_memory(void **state) {
    (void)state;
    fac_graph *g = fac_graph_new();
    int64_t N = fac_symbol(g, "N");
    fac_value *x = fac_input(g, "x", FAC_F16, fac_shape(N, 6)),
              *y = fac_reshape(fac_gelu(x), fac_shape(N, 2, 3));
    fac_output(g, "y", fac_sum_like(y, fac_input(g, "like", FAC_F32, fac_shape(3))));
    fac_output(g, "z", fac_identity(fac_pow(fac_cast(y, FAC_U8), fac_number(g, FAC_U8, 2))));
    OK(fac_graph_check(g, &err));
    long failed = 0;
    for (long n = 0;; n++) {
        allocations_left = n;
        fac_status status = fac_onnx_save(g, path, &(fac_onnx_save_opts){ .inside = 1 }, &err);
        allocations_left = -1;
        if (!status) break;
        failed++;
        if (status != FAC_E_NOMEM) fail_msg("allocation %ld lost: %s", n, err.text);
        assert_int_equal(files_in_folder(), 0);
    }
    print_message("%ld losses\n", failed);
    assert_true(failed > 50);
    unlink(path);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_metadata), cmocka_unit_test(external_data),
        cmocka_unit_test(link_roots),         cmocka_unit_test(files_that_fail),
        cmocka_unit_test(lost_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
