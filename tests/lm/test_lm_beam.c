/* Beam search against all texts there are. */
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
#include "lm/lm.h"

static fac_error err;
static fac_device *cpu;
static uint64_t seed;
static fac_tokenizer *tokens;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)

enum { LETTERS = 5, LENGTH = 3, ALL = LETTERS * LETTERS * LETTERS };

/* Fresh weights are too much alike: they are spread. */
static fac_lm *model(void) {
    fac_lm_shape shape = { .context = 16, .vocabulary = LETTERS, .seed = seed };
    fac_lm *m;
    OK(fac_lm_shape_parse("llama:1x2x16", &shape, &err));
    OK(fac_lm_new(&shape, cpu, &m, &err));
    for (int i = 0; i < fac_weights_count(m->files[0]); i++) {
        fac_tensor *t = fac_weights_tensor(m->files[0], i);
        const fac_type type = fac_tensor_type(t);
        const int64_t n = fac_dims_count(&type.dims);
        float *x = malloc((size_t)n * sizeof *x);
        OK(fac_tensor_read(t, x, (size_t)n * sizeof *x, &err));
        for (int64_t k = 0; k < n; k++) x[k] *= type.dims.n > 1 ? 15 : 1;
        OK(fac_tensor_write(t, x, (size_t)n * sizeof *x, &err));
        free(x);
    }
    return m;
}

/* The sum of log p of each text of LENGTH tokens after token 0. */
static void sums(fac_lm *m, double to[ALL]) {
    fac_session *s;
    OK(fac_session_new_slots(m, 1, &s, &err));
    for (int k = 0; k < ALL; k++) {
        const int32_t ids[] = { 0, k / 25, k / 5 % 5, k % 5 };
        to[k] = 0;
        OK(fac_session_cut(s, 0, 0, &err));
        for (int i = 0; i < LENGTH; i++) {
            OK(fac_session_feed(s, 0, &ids[i], 1, &err));
            OK(fac_session_step(s, &err));
            const float *logits = fac_session_logits(s, 0);
            to[k] += (double)logits[ids[i + 1]] - fac_log_sum(logits, LETTERS);
        }
    }
    fac_session_free(s);
}

static void enough_beams_find_the_best_of_all(void **state) {
    (void)state;
    double want[ALL];
    fac_lm *m = model();
    fac_session *s;
    fac_beams b;
    const int32_t begin = 0;
    sums(m, want);
    OK(fac_session_new_slots(m, ALL, &s, &err));
    const fac_beam_opts o = { .beams = ALL, .tokens = LENGTH, .length_penalty = 2 };
    OK(fac_generate_beams(s, tokens, &begin, 1, &o, &b, &err));
    assert_int_equal(b.n, ALL);
    for (int k = 0; k < b.n; k++) {
        const int32_t *x = b.at[k].ids;
        assert_int_equal(b.at[k].n, LENGTH);
        const double sum = want[x[0] * 25 + x[1] * 5 + x[2]];
        assert_true(fabs(b.at[k].score * LENGTH * LENGTH - sum) < 1e-4);
        if (k) assert_true(b.at[k].score <= b.at[k - 1].score);
    }
    double best = -INFINITY;
    for (int k = 0; k < ALL; k++) best = fmax(best, want[k]);
    assert_true(fabs(b.at[0].score * LENGTH * LENGTH - best) < 1e-4);
    fac_beams_free(&b);
    fac_session_free(s);
    fac_lm_free(m);
}

/* One beam is greedy; few beams are never better than many, and use their slots again. */
static void few_beams(void **state) {
    (void)state;
    fac_lm *m = model();
    fac_session *s;
    fac_beams b;
    const int32_t begin = 1;
    double before = -INFINITY;
    OK(fac_session_new_slots(m, 6, &s, &err));
    for (int beams = 1; beams <= 6; beams += 5) {
        const fac_beam_opts o = { .beams = beams, .tokens = 10, .length_penalty = NAN };
        for (int again = 0; again < 2; again++) {
            OK(fac_generate_beams(s, tokens, &begin, 1, &o, &b, &err));
            assert_int_equal(b.n, beams);
            assert_true(b.at[0].score > before - 0.5);
            if (again) assert_true(b.at[0].score == before);
            before = b.at[0].score;
            if (beams == 1) {
                int32_t id = 0;
                fac_session *plain;
                OK(fac_session_new_slots(m, 1, &plain, &err));
                OK(fac_session_feed(plain, 0, &begin, 1, &err));
                for (int k = 0; k < 10; k++) {
                    OK(fac_session_step(plain, &err));
                    id = fac_sample(&(fac_sampler){ 0 }, fac_session_logits(plain, 0), LETTERS,
                                    NULL, 0, NULL);
                    assert_int_equal(b.at[0].ids[k], id);
                    OK(fac_session_feed(plain, 0, &id, 1, &err));
                }
                fac_session_free(plain);
            }
            fac_beams_free(&b);
        }
    }
    const fac_beam_opts many = { .beams = 7, .tokens = 3 };
    assert_int_equal(fac_generate_beams(s, tokens, &begin, 1, &many, &b, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_generate_beams(s, tokens, &begin, 0, NULL, &b, &err), FAC_E_ARGUMENT);
    fac_session_free(s);
    fac_lm_free(m);
}

int main(void) {
    seed = fresh_seed() & 0xFFFFFFFF;
    OK(fac_device_open("cpu", &(fac_device_opts){ .threads = 2 }, &cpu, &err));
    OK(fac_tokenizer_learn("abcde", 5, 0, &tokens, &err));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(enough_beams_find_the_best_of_all),
        cmocka_unit_test(few_beams),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fac_tokenizer_free(tokens);
    fac_device_free(cpu);
    return failed;
}
