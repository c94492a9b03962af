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
#include "facula/sound.h"
#include "studio/hearing.h"

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

/* 80 seconds come before any is heard: what is forgotten is not looked for. */
static void what_waits_too_long_is_skipped(void **state) {
    static float block[BLOCK];
    char path[] = "/tmp/facula-hearing-XXXXXX";
    void *self = NULL;
    const int f = mkstemp(path);
    (void)state;
    assert_true(f >= 0);
    close(f);
    save_model(path);
    const studio_means with = { .opts.model = path };
    cJSON *how = cJSON_CreateObject();
    OK(fac_page_sound.open(&with, how, &self, &err));
    const hearing *p = self;
    if (!p->model.program) fail_msg("%s", p->deaf.text);
    command(self, "{\"do\":\"microphone\",\"rate\":8000}");
    for (int i = 0; i < BLOCK; i++) block[i] = (float)(i % 40 - 20) / 20;
    for (int k = 0; k < BLOCKS; k++) {
        OK(fac_page_sound.put(self, "block", block, sizeof block, &err));
        assert_in_range(p->at, p->first, p->first + p->n);
    }
    while (p->at < (int64_t)BLOCKS * BLOCK) fac_page_sound.work(self);
    assert_int_equal(p->stopped.status, FAC_OK);
    assert_int_equal(p->nbest, 2);
    assert_true(p->columns > 0);
    fac_page_sound.close(self);
    cJSON_Delete(how);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_waits_too_long_is_skipped) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
