/* facula/lm.h: sampling, streams, sessions; golden values of real models where FACULA_DATA says
 * where they are.  A small model is made here, as llama2.c's file. */
#include "lm_check.h"
#include "fresh_seed.h"

static uint64_t seed;

/* ---- sampling ---- */

static void the_best_token(void **state) {
    (void)state;
    static const float logits[] = { 1, 3, 2, 3 };
    double logprob;
    assert_int_equal(fac_sample(&(fac_sampler){ 0 }, logits, 4, NULL, 0, &logprob),
                     1); /* the lower of equals */
    assert_true(fabs(logprob + log(2 + exp(-1.0) + exp(-2.0))) < 1e-6);
    const fac_sampler punished = { .repeat = 2 }, absent = { .presence = 1.5 },
                      often = { .frequency = 0.6 };
    assert_int_equal(fac_sample(&punished, logits, 4, (int32_t[]){ 1 }, 1, NULL), 3);
    assert_int_equal(fac_sample(&absent, logits, 4, (int32_t[]){ 1, 3 }, 2, NULL), 2);
    assert_int_equal(fac_sample(&often, logits, 4, (int32_t[]){ 1, 1, 3, 3 }, 4, NULL), 2);
    const fac_sampler forgets = { .presence = 1.5, .last = 1 };
    assert_int_equal(fac_sample(&forgets, logits, 4, (int32_t[]){ 1, 2 }, 2, NULL), 1);
}

/* Of any number of logits, with equals. */
static void the_first_of_the_largest(void **state) {
    (void)state;
    enum { MOST = 200 };
    float logits[MOST];
    for (int round = 0; round < 300; round++) {
        const int n = 1 + (int)(fac_random_bits(seed, 7, (uint64_t)round) % MOST);
        int first = 0;
        for (int k = 0; k < n; k++) {
            const uint64_t bits = fac_random_bits(seed, 8, (uint64_t)(round * MOST + k));
            logits[k] = (float)(bits % 50) - 60;
            if (logits[k] > logits[first]) first = k;
        }
        assert_int_equal(fac_sample(&(fac_sampler){ 0 }, logits, n, NULL, 0, NULL), first);
    }
}

/* How often each of four tokens is drawn. */
static void draws(const fac_sampler *s, const float *logits, int of[4]) {
    enum { MANY = 4000 };
    static int32_t past[MANY];
    memset(of, 0, 4 * sizeof *of);
    for (int n = 0; n < MANY; n++) of[fac_sample(s, logits, 4, past, n, NULL)]++;
}

static void tokens_are_drawn_by_their_probabilities(void **state) {
    (void)state;
    const float logits[] = { logf(0.5f), logf(0.25f), logf(0.15f), logf(0.1f) };
    int of[4];
    draws(&(fac_sampler){ .temperature = 1, .seed = seed }, logits, of);
    for (int k = 0; k < 4; k++) {
        const double p = exp((double)logits[k]), spread = sqrt(4000 * p * (1 - p));
        if (fabs(of[k] - 4000 * p) > 6 * spread)
            fail_msg("token %d was drawn %d times of 4000", k, of[k]);
    }
    draws(&(fac_sampler){ .temperature = 1, .top_k = 2, .seed = seed }, logits, of);
    assert_true(of[0] && of[1] && !of[2] && !of[3]);
    draws(&(fac_sampler){ .temperature = 1, .top_p = 0.8, .seed = seed }, logits, of);
    assert_true(of[1] && of[2] && !of[3]);
    draws(&(fac_sampler){ .temperature = 1, .top_p = 0.01, .seed = seed }, logits, of);
    assert_int_equal(of[0], 4000);
    draws(&(fac_sampler){ .temperature = 1, .min_p = 0.4, .seed = seed }, logits, of);
    assert_true(of[1] && !of[2] && !of[3]);
}

/* ---- streams ---- */

static void text_comes_in_whole_characters(void **state) {
    (void)state;
    static const char text[] = "a\xc3\xa9\xf0\x9f\x99\x82 b STOP c";
    const char *stop[] = { "STOP", "\xc3\xa9z" };
    fac_stream s = { .stop = stop, .nstop = 2 };
    char told[64] = "";
    bool stopped = false;
    for (size_t k = 0; k < sizeof text - 1 && !stopped; k++) {
        const size_t n = fac_stream_add(&s, text + k, 1, &stopped);
        strncat(told, s.held, n);
        if (!stopped && n)
            assert_true(((unsigned char)s.held[n - 1] & 0x80) == 0 ||
                        (s.held[n - 1] & 0xc0) == 0x80);
        fac_stream_take(&s, n);
    }
    assert_true(stopped);
    assert_string_equal(told, "a\xc3\xa9\xf0\x9f\x99\x82 b ");
    fac_stream_end(&s);
}

/* ---- a small model ---- */

enum { WIDTH = 16, HIDDEN = 24, LAYERS = 2, HEADS = 4, KEYS = 2, VOCABULARY = 300, CONTEXT = 600 };
static char path[] = "/tmp/facula-lm-XXXXXX";

static void write_model(void) {
    const int32_t head[7] = { WIDTH, HIDDEN, LAYERS, HEADS, KEYS, VOCABULARY, CONTEXT };
    const int D = WIDTH / HEADS, keys = KEYS * D;
    const size_t n =
        VOCABULARY * WIDTH +
        LAYERS * (2 * WIDTH + 2 * WIDTH * WIDTH + 2 * keys * WIDTH + 3 * HIDDEN * WIDTH) + WIDTH +
        CONTEXT * (size_t)D;
    float *x = fac_alloc(n, sizeof *x);
    fac_random_fill(seed, 9, -0.6f, 0.6f, n, x);
    const int fd = mkstemp(path);
    FILE *f = fdopen(fd, "wb");
    fwrite(head, sizeof head, 1, f);
    fwrite(x, sizeof *x, n, f);
    fclose(f);
    fac_release(x);
}

static fac_session *session(fac_lm **m, int slots) {
    fac_session *s = NULL;
    OK(fac_lm_load(path, cpu, &(fac_lm_opts){ .slots = slots }, m, &err));
    OK(fac_session_new(*m, &s, &err));
    return s;
}

static void ids_of(int32_t *ids, int n) {
    for (int k = 0; k < n; k++)
        ids[k] = (int32_t)(fac_random_bits(seed, 5, (uint64_t)k) % VOCABULARY);
}

/* All logits of a sequence at once, without caches. */
static void whole(const fac_lm *m, const int32_t *ids, int n, float *to) {
    fac_graph *g;
    fac_program *p;
    fac_tensor *in, *out = NULL;
    int64_t wide[CONTEXT];
    for (int k = 0; k < n; k++) wide[k] = ids[k];
    OK(fac_lm_graph(m, 1, &g, &err));
    OK(fac_program_new(g, cpu, NULL, &p, &err));
    OK(fac_tensor_new(NULL, FAC_I64, fac_shape(1, n), &in, &err));
    OK(fac_tensor_write(in, wide, (size_t)n * 8, &err));
    OK(fac_program_run(p, &in, &out, &err));
    OK(fac_tensor_read(out, to, (size_t)n * VOCABULARY * sizeof *to, &err));
    fac_tensor_free(in);
    fac_tensor_free(out);
    fac_program_free(p);
    fac_graph_free(g);
}

static void same(const float *a, const float *b, const char *what, int at) {
    float most = 0;
    for (int k = 0; k < VOCABULARY; k++) most = fmaxf(most, fabsf(b[k]));
    for (int k = 0; k < VOCABULARY; k++)
        if (!(fabsf(a[k] - b[k]) <= 1e-5f * most))
            fail_msg("%s: logit %d after %d tokens is %g, not %g", what, k, at, (double)a[k],
                     (double)b[k]);
}

/* In chunks of 1, 3, 8, 64 and all: what the graph without caches gives; the caches grow meanwhile.
 */
static void caches_change_nothing(void **state) {
    (void)state;
    enum { N = 330 };
    static float want[N * VOCABULARY];
    static const int sizes[] = { 1, 3, 8, 64, N };
    int32_t ids[N];
    fac_lm *m;
    ids_of(ids, N);
    for (int c = 0; c < 5; c++) {
        fac_session *s = session(&m, 1);
        if (!c) whole(m, ids, N, want);
        for (int at = 0; at < N;) {
            const int n = N - at < sizes[c] ? N - at : sizes[c];
            OK(fac_session_feed(s, 0, ids + at, n, &err));
            OK(fac_session_step(s, &err));
            at += n;
            same(fac_session_logits(s, 0), want + (at - 1) * VOCABULARY, "chunks", at);
        }
        assert_int_equal(fac_session_about(s).copied, 0);
        fac_session_free(s);
        fac_lm_free(m);
    }
}

static void slots_do_not_see_each_other(void **state) {
    (void)state;
    int32_t ids[40];
    float alone[VOCABULARY];
    fac_lm *m;
    ids_of(ids, 40);
    fac_session *s = session(&m, 3);
    OK(fac_session_feed(s, 1, ids, 20, &err));
    OK(fac_session_step(s, &err));
    memcpy(alone, fac_session_logits(s, 1), sizeof alone);
    assert_null(fac_session_logits(s, 0));
    OK(fac_session_cut(s, 1, 0, &err));
    OK(fac_session_feed(s, 0, ids + 7, 33, &err));
    OK(fac_session_feed(s, 1, ids, 20, &err));
    OK(fac_session_feed(s, 2, ids + 30, 3, &err));
    OK(fac_session_step(s, &err));
    same(fac_session_logits(s, 1), alone, "slots", 20);
    /* a prefix of another slot, and back */
    OK(fac_session_copy(s, 1, 2, 10, &err));
    OK(fac_session_feed(s, 2, ids + 10, 10, &err));
    OK(fac_session_step(s, &err));
    same(fac_session_logits(s, 2), alone, "a copied prefix", 20);
    OK(fac_session_cut(s, 2, 19, &err));
    OK(fac_session_feed(s, 2, ids + 19, 1, &err));
    OK(fac_session_step(s, &err));
    same(fac_session_logits(s, 2), alone, "cut back", 20);
    assert_int_equal(fac_session_length(s, 2), 20);
    fac_session_free(s);
    fac_lm_free(m);
}

static int asked;
bool fac_test_allows(size_t bytes) {
    asked++;
    return bytes < (size_t)1 << 40;
}

/* A token that was chosen is read, the next one is chosen: with plans, caches and buffers that are
 * there. */
static void a_token_allocates_nothing(void **state) {
    (void)state;
    int32_t ids[40], id;
    fac_lm *m;
    fac_tokenizer *t = fac_tokenizer_begin(VOCABULARY);
    fac_session *s = session(&m, 2);
    const fac_generate_opts o = { .sampler = { .temperature = 1, .top_k = 40, .seed = seed },
                                  .ignore_end = true };
    fac_generate_stat stat;
    fac_writer w = { .t = t, .o = &o, .facts = fac_lm_about(m), .stat = &stat };
    for (int32_t k = 0; k < VOCABULARY; k++)
        assert_true(fac_tokenizer_set(t, k, "ab", 2, 0, FAC_TOKEN_NORMAL));
    OK(fac_tokenizer_finish(t, &err));
    ids_of(ids, 40);
    OK(fac_writer_begin(&w, ids, 40, &err));
    OK(fac_session_feed(s, 0, ids, 40, &err));
    for (int k = 0; k < 30; k++) {
        bool go_on = true;
        OK(fac_session_step(s, &err));
        OK(fac_writer_next(&w, fac_session_logits(s, 0), &id, &go_on, &err));
        assert_true(go_on);
        OK(fac_session_feed(s, 0, &id, 1, &err));
        if (k == 1) assert_true(asked > 0);
        if (k == 1) asked = 0; /* the first step with one token has made its plan */
    }
    assert_int_equal(asked, 0);
    fac_writer_end(&w);
    fac_tokenizer_free(t);
    fac_session_free(s);
    fac_lm_free(m);
}

static bool count_tokens(void *self, int32_t id, const char *text, size_t bytes) {
    (void)id, (void)text, (void)bytes;
    ++*(int *)self;
    return true;
}

/* Twice as many tokens as the context has; what is read at the end begins with what is kept. */
static void a_full_context_forgets(void **state) {
    (void)state;
    enum { KEEP = 5, MANY = 2 * CONTEXT };
    int32_t ids[20], past[CONTEXT];
    int told = 0;
    fac_lm *m;
    fac_tokenizer *t = fac_tokenizer_begin(VOCABULARY);
    fac_session *s = session(&m, 1);
    fac_generate_opts o = { .tokens = MANY,
                            .ignore_end = true,
                            .keep = KEEP,
                            .sampler = { .temperature = 1, .seed = seed } };
    fac_generate_stat stat;
    for (int32_t k = 0; k < VOCABULARY; k++)
        assert_true(fac_tokenizer_set(t, k, "ab", 2, 0, FAC_TOKEN_NORMAL));
    OK(fac_tokenizer_finish(t, &err));
    ids_of(ids, 20);
    OK(fac_generate(s, t, ids, 20, &o, count_tokens, &told, &stat, &err));
    assert_int_equal(stat.finish, FAC_FINISH_CONTEXT);
    assert_true(stat.generated < CONTEXT && told == stat.generated);
    assert_true(stat.prompt_plan_seconds > 0 && stat.prompt_plan_seconds <= stat.prompt_seconds);
    assert_true(stat.plan_seconds > 0 && stat.plan_seconds <= stat.seconds);
    OK(fac_session_cut(s, 0, 0, &err));
    o.shift = true;
    OK(fac_generate(s, t, ids, 20, &o, count_tokens, &told, &stat, &err));
    assert_int_equal(stat.finish, FAC_FINISH_LENGTH);
    assert_int_equal(stat.generated, MANY);
    assert_true(fac_session_past(s, 0, past) <= CONTEXT);
    assert_memory_equal(past, ids, KEEP * sizeof *ids);
    /* what was planned is not planned again */
    for (int k = 0; k < 2; k++) {
        OK(fac_session_cut(s, 0, 0, &err));
        OK(fac_generate(s, t, ids, 20, &o, count_tokens, &told, &stat, &err));
    }
    assert_true(stat.prompt_plan_seconds == 0 && stat.plan_seconds == 0);
    fac_tokenizer_free(t);
    fac_session_free(s);
    fac_lm_free(m);
}

static void what_cannot_be_is_said(void **state) {
    (void)state;
    fac_lm *m;
    fac_session *s = session(&m, 2);
    static int32_t many[CONTEXT + 1];
    assert_int_equal(fac_session_feed(s, 2, many, 1, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_session_feed(s, 0, (int32_t[]){ VOCABULARY }, 1, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_session_feed(s, 0, many, CONTEXT + 1, &err), FAC_E_ARGUMENT);
    OK(fac_session_feed(s, 0, many, CONTEXT, &err));
    OK(fac_session_step(s, &err));
    assert_int_equal(fac_session_feed(s, 0, many, 1, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_session_cut(s, 0, CONTEXT + 1, &err), FAC_E_ARGUMENT);
    fac_session_free(s);
    fac_lm_free(m);
    assert_int_equal(fac_lm_load("/dev/null", cpu, NULL, &m, &err), FAC_E_IO);
}

static int start(void **state) {
    (void)state;
    seed = fresh_seed();
    write_model();
    return fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &cpu, &err);
}

static int end(void **state) {
    (void)state;
    fac_device_free(cpu);
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_token),
        cmocka_unit_test(the_first_of_the_largest),
        cmocka_unit_test(tokens_are_drawn_by_their_probabilities),
        cmocka_unit_test(text_comes_in_whole_characters),
        cmocka_unit_test(caches_change_nothing),
        cmocka_unit_test(slots_do_not_see_each_other),
        cmocka_unit_test(a_token_allocates_nothing),
        cmocka_unit_test(a_full_context_forgets),
        cmocka_unit_test(what_cannot_be_is_said),
    };
    return cmocka_run_group_tests(tests, start, end);
}
