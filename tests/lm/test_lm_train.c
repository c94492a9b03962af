/* Language models that are trained: fresh ones, the step, and what is saved. */
#include "lm_train_check.h"

/* A text in which each token tells the next one. */
static void data(fac_dataset *d, int64_t count) {
    int32_t ids[200];
    for (int k = 0; k < 200; k++) ids[k] = k * 5 % VOCABULARY;
    OK(fac_dataset_stream(ids, 200, CONTEXT, count, VOCABULARY, d, &err));
}

static fac_train_result trained(fac_lm *m, int64_t steps) {
    fac_graph *g;
    fac_trainer *t;
    fac_dataset d, test;
    fac_train_result r;
    OK(fac_lm_graph(m, 0, &g, &err));
    const fac_trainer_opts o = { .optimizer = "adamw", .sequences = true };
    OK(fac_trainer_new(g, cpu, &o, &t, &err));
    data(&d, 20 * BATCH);
    data(&test, 8 * BATCH);
    const fac_train_opts how = { .epochs = (steps + 19) / 20,
                                 .steps = steps,
                                 .ahead = -1,
                                 .batches = { .size = BATCH, .shuffle = true, .seed = seed },
                                 .schedule = { FAC_SCHEDULE_COSINE, .lr = 1e-2 } };
    OK(fac_train(t, &d, &test, &how, &r, &err));
    assert_int_equal(fac_trainer_steps(t), steps);
    fac_trainer_free(t);
    fac_graph_free(g);
    fac_dataset_free(&d);
    fac_dataset_free(&test);
    return r;
}

static void a_fresh_model_knows_nothing_and_learns(void **state) {
    (void)state;
    static const char *const shapes[] = { "gpt:2x2x16", "llama:2x2x16" };
    for (int k = 0; k < 2; k++) {
        fac_lm *m = fresh(shapes[k]);
        fac_tensor *y = logits(m);
        const float *x = fac_tensor_data(y);
        double sum = 0;
        for (int c = 0; c < VOCABULARY; c++) sum += exp((double)x[c] - (double)x[0]);
        assert_true(fabs(log(sum) - log(VOCABULARY)) < 0.4);
        fac_tensor_free(y);
        const fac_train_result r = trained(m, 70);
        assert_int_equal(r.steps, 70);
        assert_int_equal(r.epochs, 4);
        assert_int_equal(r.test.samples, 8 * BATCH * CONTEXT);
        if (r.test.loss > 0.5) fail_msg("%s: loss %g", shapes[k], r.test.loss);
        assert_true(r.test.error >= 0 && r.test.error < 0.2);
        fac_lm_free(m);
    }
}

/* The folder reads as the same model, also when it was trained again from there. */
static void what_is_saved_is_what_was_trained(void **state) {
    (void)state;
    static const char *const shapes[] = { "gpt:2x2x16", "llama:2x2x16" };
    for (int k = 0; k < 2; k++) {
        char dir[] = "/tmp/facula_lmXXXXXX", path[64];
        assert_non_null(mkdtemp(dir));
        fac_lm *m = fresh(shapes[k]), *again;
        trained(m, 5);
        OK(fac_lm_save(m, dir, &err));
        OK(fac_lm_load(dir, cpu, NULL, &again, &err));
        OK(fac_lm_make_trainable(again, &err));
        fac_tensor *a = logits(m), *b = logits(again);
        assert_true(distance(a, b) == 0);
        assert_int_equal(fac_lm_make_trainable(again, &err), FAC_E_ARGUMENT);
        trained(again, 3);
        OK(fac_lm_save(again, dir, &err));
        fac_lm_free(m);
        OK(fac_lm_load(dir, cpu, NULL, &m, &err));
        fac_tensor *c = logits(m), *d = logits(again);
        assert_true(distance(c, d) == 0);
        assert_true(distance(b, c) > 0);
        fac_tensor *all[] = { a, b, c, d };
        for (int i = 0; i < 4; i++) fac_tensor_free(all[i]);
        fac_lm_free(m);
        fac_lm_free(again);
        snprintf(path, sizeof path, "%s/config.json", dir);
        unlink(path);
        snprintf(path, sizeof path, "%s/model.safetensors", dir);
        unlink(path);
        rmdir(dir);
    }
}

/* ---- adapters ---- */

static void folder_of(char dir[32]) {
    strcpy(dir, "/tmp/facula_lmXXXXXX");
    assert_non_null(mkdtemp(dir));
}

static void remove_folder(const char *dir) {
    static const char *const names[] = { "config.json", "model.safetensors", "adapter_config.json",
                                         "adapter_model.safetensors" };
    char path[64];
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[k]);
        unlink(path);
    }
    rmdir(dir);
}

static fac_lm *loaded(const char *dir, bool trainable) {
    fac_lm *m;
    OK(fac_lm_load(dir, cpu, NULL, &m, &err));
    if (trainable) OK(fac_lm_make_trainable(m, &err));
    return m;
}

static void same(const fac_tensor *a, const fac_tensor *b, double most) {
    const double d = distance(a, b);
    if (!(d <= most)) fail_msg("logits differ by %g", d);
}

/* They begin as nothing; trained they are all that changed; saved, loaded and merged they do the
 * same. */
static void adapters(void **state) {
    (void)state;
    static const char *const shapes[] = { "gpt:2x2x16", "llama:2x2x16" };
    static const char *const how[] = { "r=3,alpha=5,c_attn,mlp.c_proj",
                                       "r=2,q_proj,attn_v,down_proj" };
    for (int k = 0; k < 2; k++) {
        char dir[32];
        folder_of(dir);
        fac_lm *m = fresh(shapes[k]);
        OK(fac_lm_save(m, dir, &err));
        fac_lm_free(m);
        m = loaded(dir, true);
        fac_lora o = { .seed = seed };
        OK(fac_lora_parse(how[k], &o, &err));
        OK(fac_lm_lora_new(m, &o, &err));
        assert_int_equal(fac_lm_lora_new(m, &o, &err), FAC_E_ARGUMENT);
        fac_lm *plain = loaded(dir, false);
        fac_tensor *before = logits(plain), *begun = logits(m);
        same(before, begun, 0);
        trained(m, 30);
        fac_tensor *after = logits(m);
        assert_true(distance(before, after) > 1e-2);
        OK(fac_lm_lora_save(m, dir, "base", &err));
        OK(fac_lm_lora_load(plain, dir, &err));
        fac_tensor *beside = logits(plain);
        same(after, beside, 2e-5);
        OK(fac_lm_lora_merge(plain, &err));
        OK(fac_lm_save(plain, dir, &err));
        fac_lm_free(plain);
        plain = loaded(dir, false);
        fac_tensor *merged = logits(plain);
        same(after, merged, 2e-5);
        fac_tensor *all[] = { before, begun, after, beside, merged };
        for (int i = 0; i < 5; i++) fac_tensor_free(all[i]);
        fac_lm_free(plain);
        fac_lm_free(m);
        remove_folder(dir);
    }
}

static void adapters_that_cannot_be(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "r=0", "r=x", "alpha=-1", "dropout=1", "rank=3", "r=5000"
    };
    fac_lora o = { 0 };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_int_equal(fac_lora_parse(wrong[k], &o, &err), FAC_E_ARGUMENT);
    fac_lm *m = fresh("gpt:1x2x16");
    OK(fac_lora_parse("r=2,q_proj", &o, &err));
    assert_int_equal(fac_lm_lora_new(m, &o, &err), FAC_E_ARGUMENT);
    assert_non_null(strstr(err.text, "q_proj"));
    assert_int_equal(fac_lm_lora_merge(m, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_lm_lora_load(m, "/nowhere", &err), FAC_E_IO);
    fac_lm_free(m);
}

static void shapes_that_cannot_be(void **state) {
    (void)state;
    static const char *const wrong[] = { "gpt",          "gpt:4x4",    "gpt:4x4x128x",
                                         "gpt:4x4x128 ", "bert:1x1x8", "gpt:axbxc" };
    static const char *const impossible[] = { "gpt:0x1x8", "gpt:1x3x8", "llama:1x8x8",
                                              "gpt:-1x1x8" };
    fac_lm_shape s = { .context = CONTEXT, .vocabulary = VOCABULARY };
    fac_lm *m;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_int_equal(fac_lm_shape_parse(wrong[k], &s, &err), FAC_E_ARGUMENT);
    for (size_t k = 0; k < sizeof impossible / sizeof *impossible; k++) {
        OK(fac_lm_shape_parse(impossible[k], &s, &err));
        assert_int_equal(fac_lm_new(&s, cpu, &m, &err), FAC_E_ARGUMENT);
    }
}

/* Labels that do not count change nothing: the loss of a row is that of its counted tokens. */
static void labels_that_do_not_count(void **state) {
    (void)state;
    static const int32_t tokens[2][6] = { { 1, 2, 3, 4, 5, 6 }, { 3, 2, 1, 4, 4, 9 } };
    int64_t labels[2][6] = { { -100, -100, 3, -100, 5, -100 }, { -100, 2, -100, -100, -100, 7 } };
    fac_lm *m = fresh("gpt:1x2x16");
    fac_graph *g;
    fac_trainer *t;
    fac_dataset d;
    fac_score all, first, second;
    OK(fac_lm_graph(m, 0, &g, &err));
    OK(fac_trainer_new(g, cpu, &(fac_trainer_opts){ .sequences = true }, &t, &err));
    OK(fac_dataset_sequences(*tokens, *labels, 2, 6, VOCABULARY, &d, &err));
    OK(fac_trainer_evaluate(t, &d, 2, &all, &err));
    fac_dataset_free(&d);
    OK(fac_dataset_sequences(tokens[0], labels[0], 1, 6, VOCABULARY, &d, &err));
    OK(fac_trainer_evaluate(t, &d, 2, &first, &err));
    fac_dataset_free(&d);
    OK(fac_dataset_sequences(tokens[1], labels[1], 1, 6, VOCABULARY, &d, &err));
    OK(fac_trainer_evaluate(t, &d, 2, &second, &err));
    fac_dataset_free(&d);
    assert_int_equal(all.samples, 4);
    assert_int_equal(first.samples, 2);
    assert_true(fabs(all.loss - (first.loss + second.loss) / 2) < 1e-6);
    fac_trainer_free(t);
    fac_graph_free(g);
    fac_lm_free(m);
}

int main(void) {
    seed = fresh_seed() & 0xFFFFFFFF;
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &cpu, &err));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_model_knows_nothing_and_learns),
        cmocka_unit_test(what_is_saved_is_what_was_trained),
        cmocka_unit_test(shapes_that_cannot_be),
        cmocka_unit_test(adapters),
        cmocka_unit_test(adapters_that_cannot_be),
        cmocka_unit_test(labels_that_do_not_count),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fac_device_free(cpu);
    return failed;
}
