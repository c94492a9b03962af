/* The page of sounds without a server: a microphone that is faster than what hears it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "facula/nn.h"
#include "facula/onnx.h"
#include "facula/data/sound.h"
#include "studio/hearing/hearing.h"

enum { RATE = 8000, WINDOW = 800, BLOCK = 2 * RATE, BLOCKS = 40 };

static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

static void save_model(const char *path) {
    fac_graph *g = fac_graph_new();
    assert_non_null(g);
    fac_output(g, "logits",
               fac_nn_linear(fac_input(g, "wave", FAC_F32, fac_shape(1, WINDOW)), "fc", 2));
    fac_graph_set_note(g, FAC_NOTE_RATE, "8000");
    OK(fac_graph_check(g, &err));
    OK(fac_onnx_save(g, path, NULL, &err));
    fac_graph_free(g);
}

static void command(void *self, const char *text) {
    fac_text answer = { 0 };
    cJSON *what = cJSON_Parse(text);
    assert_non_null(what);
    OK(fac_page_sound.command(self, what, &answer, &err));
    cJSON_Delete(what);
    fac_text_free(&answer);
}

static float block[BLOCK];

/* A page with a model, its microphone on. */
static hearing *open_page(void) {
    char path[] = "/tmp/facula-hearing-XXXXXX";
    void *self = NULL;
    const int f = mkstemp(path);
    assert_true(f >= 0);
    close(f);
    save_model(path);
    const studio_means with = { .opts.model = path };
    cJSON *how = cJSON_CreateObject();
    OK(fac_page_sound.open(&with, how, &self, &err));
    cJSON_Delete(how);
    unlink(path);
    hearing *p = self;
    if (!p->model.program) fail_msg("%s", p->deaf.text);
    command(self, "{\"do\":\"microphone\",\"rate\":8000}");
    for (int i = 0; i < BLOCK; i++) block[i] = (float)(i % 40 - 20) / 20;
    return p;
}

/* 80 seconds come before any is heard: what is forgotten is not looked for. */
static void what_waits_too_long_is_skipped(void **state) {
    hearing *self = open_page();
    const hearing *p = self;
    (void)state;
    for (int k = 0; k < BLOCKS; k++) {
        OK(fac_page_sound.put(self, "block", block, sizeof block, &err));
        assert_in_range(p->at, p->first, p->first + p->n);
    }
    while (p->at < (int64_t)BLOCKS * BLOCK) fac_page_sound.work(self);
    assert_int_equal(p->unseen.status, FAC_OK);
    assert_int_equal(p->unheard.status, FAC_OK);
    assert_int_equal(p->nbest, 2);
    assert_true(p->columns > 0);
    fac_page_sound.close(self);
}

static void hear(hearing *p, int64_t samples) {
    const int64_t until = p->at + samples;
    OK(fac_page_sound.put(p, "block", block, (size_t)samples * sizeof *block, &err));
    while (p->at < until) fac_page_sound.work(p);
    for (int k = 0; k < 100; k++) fac_page_sound.work(p); /* columns that are left */
}

static int64_t columns_due(const hearing *p) {
    const int64_t samples = p->setup.length + (HEARING_AT_ONCE - 1) * p->hop;
    return (1 + (p->at - p->origin - samples) / (HEARING_AT_ONCE * p->hop)) * HEARING_AT_ONCE;
}

/* The model is asked again a quarter of a second after a run that failed. */
static void a_window_that_failed_is_not_the_last(void **state) {
    hearing *p = open_page();
    (void)state;
    hear(p, RATE);
    assert_int_equal(p->nbest, 2);
    p->model.window += 1; /* more than the model takes */
    p->model.dims.d[1] += 1;
    hear(p, RATE);
    assert_int_not_equal(p->unheard.status, FAC_OK);
    assert_int_equal(p->nbest, 0);
    p->model.window -= 1;
    p->model.dims.d[1] -= 1;
    hear(p, RATE);
    assert_int_equal(p->unheard.status, FAC_OK);
    assert_int_equal(p->deaf.status, FAC_OK);
    assert_int_equal(p->nbest, 2);
    assert_int_equal(p->columns, columns_due(p));
    fac_page_sound.close(p);
}

/* Columns that could not be made are made later, all of them, each in its place. */
static void a_column_that_failed_is_made_later(void **state) {
    hearing *p = open_page();
    fac_tensor *right = p->block;
    (void)state;
    hear(p, RATE);
    const int64_t before = p->columns;
    assert_int_equal(before, columns_due(p));
    OK(fac_tensor_new(NULL, FAC_F32, fac_shape(1, 7), &p->block, &err));
    hear(p, RATE);
    assert_int_not_equal(p->unseen.status, FAC_OK);
    assert_int_equal(p->columns, before);
    assert_true(p->playing);
    fac_tensor_free(p->block);
    p->block = right;
    hear(p, RATE);
    assert_int_equal(p->unseen.status, FAC_OK);
    assert_int_equal(p->columns, columns_due(p));
    fac_page_sound.close(p);
}

/* A second of a file with 8,000 samples, as fast as it goes. */
static void open_file(hearing *p) {
    fac_sound s = { RATE, 1, RATE, block };
    char path[] = "/tmp/facula-hearing-XXXXXX";
    static char bytes[4 * RATE];
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    OK(fac_wav_save(&s, path, FAC_WAV_16, &err));
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    unlink(path);
    OK(fac_page_sound.put(p, "wav", bytes, n, &err));
    command(p, "{\"do\":\"setup\",\"speed\":0}");
    command(p, "{\"do\":\"play\"}");
}

/* No window comes after the last one of a file, so it is asked about again by itself. */
static void the_last_window_of_a_file_is_tried_again(void **state) {
    hearing *p = open_page();
    int64_t wait = 0;
    (void)state;
    open_file(p);
    p->model.window += 1;
    p->model.dims.d[1] += 1;
    for (int k = 0; k < 1000 && p->asked < RATE; k++) wait = fac_page_sound.work(p);
    assert_int_equal(p->asked, RATE);
    assert_int_not_equal(p->unheard.status, FAC_OK);
    p->model.window -= 1;
    p->model.dims.d[1] -= 1;
    for (int k = 0; k < 1000 && p->unheard.status; k++) {
        assert_true(wait >= 0); /* it does not sleep until a command comes */
        usleep((useconds_t)(wait / 1000) + 1);
        wait = fac_page_sound.work(p);
    }
    assert_int_equal(p->unheard.status, FAC_OK);
    assert_int_equal(p->nbest, 2);
    for (int k = 0; k < 1000 && wait >= 0; k++) wait = fac_page_sound.work(p);
    assert_true(wait < 0); /* now it does */
    fac_page_sound.close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_waits_too_long_is_skipped),
                                        cmocka_unit_test(a_window_that_failed_is_not_the_last),
                                        cmocka_unit_test(a_column_that_failed_is_made_later),
                                        cmocka_unit_test(
                                            the_last_window_of_a_file_is_tried_again) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
