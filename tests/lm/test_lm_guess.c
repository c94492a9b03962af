/* Speculative decoding: the same text as without, whoever guesses; what was read stays in order. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fresh_seed.h"
#include "facula/train.h"
#include "lm/lm.h"

static fac_error err;
static fac_device *cpu;
static uint64_t seed;
static fac_tokenizer *tokens;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

enum { CONTEXT = 64, ANSWER = 40, BATCH = 4 };
static const char text[] =
    "the cat sat on the mat, the dog lay on the log, the cat lay on the dog, ";

/* A model that knows the text more or less. */
static fac_lm *model(const char *shape, int64_t steps) {
    int32_t ids[4 * sizeof text];
    fac_lm_shape s = { .context = CONTEXT, .seed = seed };
    s.vocabulary = fac_tokenizer_count(tokens);
    fac_lm *m;
    fac_graph *g;
    fac_trainer *t;
    fac_dataset d;
    fac_train_result r;
    const int64_t n = (int64_t)strlen(text);
    for (int k = 0; k < 4; k++) fac_tokenizer_encode(tokens, text, (size_t)n, 0, ids + k * n, n);
    OK(fac_lm_shape_parse(shape, &s, &err));
    OK(fac_lm_new(&s, cpu, &m, &err));
    OK(fac_lm_graph(m, 0, &g, &err));
    OK(fac_trainer_new(g, cpu, &(fac_trainer_opts){ .sequences = true }, &t, &err));
    OK(fac_dataset_stream(ids, 4 * n, CONTEXT / 2, steps * BATCH, (int)s.vocabulary, &d, &err));
    const fac_train_opts how = { .epochs = 1,
                                 .ahead = -1,
                                 .batches = { .size = BATCH, .shuffle = true, .seed = seed },
                                 .schedule = { .lr = 5e-3 } };
    OK(fac_train(t, &d, NULL, &how, &r, &err));
    fac_trainer_free(t);
    fac_graph_free(g);
    fac_dataset_free(&d);
    return m;
}

typedef struct said {
    char text[400];
    size_t n;
    int64_t length;
    fac_generate_stat stat;
} said;

static bool hear(void *self, int32_t id, const char *s, size_t n) {
    said *a = self;
    (void)id;
    memcpy(a->text + a->n, s, n);
    a->n += n;
    a->text[a->n] = 0;
    return true;
}

/* Twice in a row: the second answer goes on with the first one. */
static said answer(fac_lm *m, const fac_generate_opts *o) {
    int32_t ids[20];
    said a = { .n = 0 };
    fac_session *s;
    OK(fac_session_new(m, &s, &err));
    const int64_t n = fac_tokenizer_encode(tokens, "the cat", 7, 0, ids, 20);
    OK(fac_generate(s, tokens, ids, n, o, hear, &a, &a.stat, &err));
    const fac_generate_stat first = a.stat;
    a.length = fac_session_length(s, 0);
    if (a.length + 10 < CONTEXT) OK(fac_generate(s, tokens, ids, 2, o, hear, &a, &a.stat, &err));
    a.stat.guessed += first.guessed;
    a.stat.accepted += first.accepted;
    fac_session_free(s);
    return a;
}

static void the_text_is_the_same(void **state) {
    (void)state;
    fac_lm *large = model("gpt:2x2x32", 60), *small = model("llama:1x2x16", 30);
    fac_session *draft, *twin;
    OK(fac_session_new(small, &draft, &err));
    OK(fac_session_new(large, &twin, &err));
    const char *const stop[] = { "dog" };
    for (int how = 0; how < 8; how++) {
        fac_generate_opts o = { .tokens = how & 1 ? ANSWER : 18,
                                .ignore_end = true,
                                .stop = stop,
                                .nstop = how & 2 ? 1 : 0 };
        o.sampler = (fac_sampler){ .temperature = how & 4 ? 0.7 : 0, .top_k = 5, .seed = seed };
        const said plain = answer(large, &o);
        o.lookup = 4;
        const said looked = answer(large, &o);
        o.draft = draft;
        const said both = answer(large, &o);
        o.lookup = 0;
        const said drafted = answer(large, &o);
        o.draft = twin;
        o.guesses = 7;
        const said doubled = answer(large, &o);
        const said *all[] = { &looked, &both, &drafted, &doubled };
        for (int k = 0; k < 4; k++) {
            assert_string_equal(all[k]->text, plain.text);
            assert_int_equal(all[k]->length, plain.length);
            assert_int_equal(all[k]->stat.finish, plain.stat.finish);
            assert_true(all[k]->stat.accepted <= all[k]->stat.guessed);
        }
        assert_int_equal(plain.stat.guessed, 0);
        assert_true(drafted.stat.guessed > 0);
        if (how & 1 && !(how & 6)) assert_true(looked.stat.accepted > 0);
        if (!(how & 6)) assert_int_equal(doubled.stat.accepted, doubled.stat.guessed);
    }
    fac_session_free(draft);
    fac_session_free(twin);
    fac_lm_free(large);
    fac_lm_free(small);
}

static void a_lookup_of_one_token_is_refused(void **state) {
    (void)state;
    fac_lm *m = model("gpt:1x2x16", 1);
    fac_session *s;
    const int32_t first = 0;
    OK(fac_session_new(m, &s, &err));
    for (int lookup = -1; lookup < 2; lookup += 2) {
        const fac_generate_opts o = { .tokens = 1, .lookup = lookup };
        assert_int_equal(fac_generate(s, tokens, &first, 1, &o, NULL, NULL, NULL, &err),
                         FAC_E_ARGUMENT);
        assert_non_null(strstr(err.text, "2 at least"));
    }
    fac_session_free(s);
    fac_lm_free(m);
}

static void a_full_context(void **state) {
    (void)state;
    fac_lm *m = model("gpt:1x2x16", 30);
    fac_generate_opts o = { .tokens = 3 * CONTEXT, .ignore_end = true, .shift = true, .keep = 3 };
    const said plain = answer(m, &o);
    o.lookup = 3;
    const said looked = answer(m, &o);
    assert_string_equal(looked.text, plain.text);
    o.shift = false;
    o.lookup = 0;
    const said ended = answer(m, &o);
    o.lookup = 3;
    const said also = answer(m, &o);
    assert_int_equal(ended.stat.finish, FAC_FINISH_CONTEXT);
    assert_string_equal(also.text, ended.text);
    assert_int_equal(also.stat.finish, FAC_FINISH_CONTEXT);
    fac_lm_free(m);
}

/* Logits of all tokens are those of steps token by token. */
static void checked_logits(void **state) {
    (void)state;
    fac_lm_shape shape = { .context = CONTEXT, .vocabulary = 11, .seed = seed };
    static const int32_t ids[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    fac_lm *m;
    fac_session *s;
    const float *all;
    int64_t n;
    OK(fac_lm_shape_parse("llama:2x2x16", &shape, &err));
    OK(fac_lm_new(&shape, cpu, &m, &err));
    OK(fac_session_new_slots(m, 3, &s, &err));
    for (int slot = 0; slot < 3; slot++) {
        OK(fac_session_feed(s, slot, ids, 2, &err));
        OK(fac_session_step(s, &err));
    }
    OK(fac_session_feed(s, 1, ids + 2, 5, &err));
    OK(fac_session_check(s, 1, &all, &n, &err));
    assert_int_equal(n, 5);
    float kept[5][11];
    memcpy(kept, all, sizeof kept); /* until the next step */
    for (int k = 0; k < 5; k++) {
        OK(fac_session_feed(s, 2, ids + 2 + k, 1, &err));
        OK(fac_session_step(s, &err));
        const float *one = fac_session_logits(s, 2);
        for (int c = 0; c < 11; c++) assert_true(fabsf(one[c] - kept[k][c]) < 1e-5f);
    }
    OK(fac_session_cut(s, 2, 3, &err));
    assert_int_equal(fac_session_check(s, 0, &all, &n, &err), FAC_E_ARGUMENT);
    OK(fac_session_feed(s, 0, ids, 9, &err));
    assert_int_equal(fac_session_check(s, 0, &all, &n, &err), FAC_E_ARGUMENT);
    OK(fac_session_feed(s, 1, ids, 1, &err));
    assert_int_equal(fac_session_check(s, 1, &all, &n, &err), FAC_E_ARGUMENT);
    fac_session_free(s);
    fac_lm_free(m);
}

static void a_draft_of_other_tokens(void **state) {
    (void)state;
    fac_lm_shape shape = { .context = CONTEXT, .vocabulary = 5 };
    fac_lm *m = model("gpt:1x1x8", 1), *other;
    fac_session *s, *draft;
    const int32_t id = 1;
    OK(fac_lm_shape_parse("gpt:1x1x8", &shape, &err));
    OK(fac_lm_new(&shape, cpu, &other, &err));
    OK(fac_session_new(m, &s, &err));
    OK(fac_session_new(other, &draft, &err));
    fac_generate_opts o = { .tokens = 2, .draft = draft };
    assert_int_equal(fac_generate(s, tokens, &id, 1, &o, NULL, NULL, NULL, &err), FAC_E_ARGUMENT);
    o.draft = s;
    assert_int_equal(fac_generate(s, tokens, &id, 1, &o, NULL, NULL, NULL, &err), FAC_E_ARGUMENT);
    fac_session_free(s);
    fac_session_free(draft);
    fac_lm_free(m);
    fac_lm_free(other);
}

int main(void) {
    seed = fresh_seed() & 0xFFFFFFFF;
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &cpu, &err));
    OK(fac_tokenizer_learn(text, strlen(text), 0, &tokens, &err));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_the_same),
        cmocka_unit_test(a_lookup_of_one_token_is_refused),
        cmocka_unit_test(a_full_context),
        cmocka_unit_test(checked_logits),
        cmocka_unit_test(a_draft_of_other_tokens),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fac_tokenizer_free(tokens);
    fac_device_free(cpu);
    return failed;
}
