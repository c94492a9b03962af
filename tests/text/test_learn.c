/* Tokenizers learned from a text: pairs against counting by hand, characters, what cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/memory.h"
#include "base/rng.h"
#include "fresh_seed.h"
#include "text/tokenizer.h"

static fac_error err;
static uint64_t seed, drawn;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s: %s", #call, err.text);                                             \
    } while (0)
static uint64_t draw(uint64_t below) { return fac_random_bits(seed, 0, drawn++) % below; }

/* ---- pairs against counting everything anew in each step ---- */

enum { WORDS = 40, LONGEST = 12, LETTERS = 3, TOKENS = 60 };

static int32_t spell(void *self, int32_t left, int32_t right) {
    (void)left, (void)right;
    return (*(int32_t *)self)++;
}

typedef struct counted {
    int32_t left, right;
    int64_t n;
} counted;

/* The most frequent pair, of equals the one of lower ids; n 0: none is there. */
static counted most_frequent(const int32_t *x, size_t n, const int64_t *counts) {
    static int64_t all[TOKENS][TOKENS];
    size_t word = 0;
    counted best = { 0 };
    memset(all, 0, sizeof all);
    for (size_t k = 0; k + 1 < n; k++) {
        if (x[k] < 0)
            word++;
        else if (x[k + 1] >= 0)
            all[x[k]][x[k + 1]] += counts[word];
    }
    for (int32_t a = 0; a < TOKENS; a++)
        for (int32_t b = 0; b < TOKENS; b++)
            if (all[a][b] > best.n) best = (counted){ a, b, all[a][b] };
    return best;
}

static size_t joined(int32_t *x, size_t n, const counted *pair, int32_t to) {
    size_t at = 0;
    for (size_t k = 0; k < n; k++) {
        const bool here = k + 1 < n && x[k] == pair->left && x[k + 1] == pair->right;
        x[at++] = here ? to : x[k];
        k += here;
    }
    return at;
}

static void pairs_are_the_most_frequent_ones(void **state) {
    (void)state;
    for (int round = 0; round < 30; round++) {
        int32_t x[WORDS * (LONGEST + 1)], y[WORDS * (LONGEST + 1)], next = LETTERS, ours = LETTERS;
        int64_t counts[WORDS];
        size_t n = 0;
        for (int w = 0; w < WORDS; w++) {
            const size_t letters = 1 + draw(LONGEST);
            counts[w] = 1 + (int64_t)draw(4);
            for (size_t k = 0; k < letters; k++) x[n++] = (int32_t)draw(LETTERS);
            x[n++] = -1;
        }
        memcpy(y, x, sizeof x);
        fac_learning l = { .tokens = LETTERS };
        OK(fac_learn_pairs(x, n, counts, WORDS, TOKENS, spell, &next, &l, &err));
        size_t left = n;
        for (size_t k = 0; k < l.n; k++) {
            const counted want = most_frequent(y, left, counts);
            assert_int_equal(l.at[k].left, want.left);
            assert_int_equal(l.at[k].right, want.right);
            left = joined(y, left, &want, ours++);
        }
        if (l.tokens < TOKENS) assert_true(most_frequent(y, left, counts).n < 2);
        fac_release(l.at);
    }
}

/* ---- texts ---- */

static void back_and_forth(const fac_tokenizer *t, const char *text) {
    int32_t ids[200];
    char back[400];
    const int64_t n = fac_tokenizer_encode(t, text, strlen(text), 0, ids, 200);
    assert_in_range(n, 0, 200);
    const size_t bytes = fac_tokenizer_decode(t, ids, n, 0, back, sizeof back);
    assert_int_equal(bytes, strlen(text));
    assert_memory_equal(back, text, bytes);
}

static const char text[] =
    "the cat and the hat: a caf\xc3\xa9, \xe4\xba\xac, \xf0\x9f\x99\x82, the end";

static void a_learned_bpe_takes_any_text(void **state) {
    (void)state;
    fac_tokenizer *t;
    OK(fac_tokenizer_learn(text, strlen(text), 400, &t, &err));
    assert_string_equal(fac_tokenizer_token(t, 0), "<|endoftext|>");
    assert_true(fac_tokenizer_ends(t, 0));
    assert_in_range(fac_tokenizer_count(t), 259, 270);
    assert_true(fac_tokenizer_find(t, "\xc4\xa0the") > 256);
    back_and_forth(t, text);
    back_and_forth(t, "unseen \xc3\xbc \xe6\x9d\xb1 <|endoftext|>");
    fac_tokenizer_free(t);
}

static void characters_in_the_order_of_their_codes(void **state) {
    (void)state;
    fac_tokenizer *t;
    int32_t ids[4];
    OK(fac_tokenizer_learn("hello", 5, 0, &t, &err));
    assert_int_equal(fac_tokenizer_count(t), 4);
    assert_int_equal(fac_tokenizer_encode(t, "hole", 4, 0, ids, 4), 4);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 3);
    assert_int_equal(ids[2], 2);
    assert_int_equal(ids[3], 0);
    fac_tokenizer_free(t);
    OK(fac_tokenizer_learn(text, strlen(text), 0, &t, &err));
    back_and_forth(t, text);
    assert_int_equal(fac_tokenizer_encode(t, "\xc3\xa9\xf0\x9f\x99\x82", 6, 0, ids, 4), 2);
    fac_tokenizer_free(t);
}

static void it_is_written_and_read_again(void **state) {
    (void)state;
    char path[] = "/tmp/facula_learnXXXXXX.json";
    const int fd = mkstemps(path, 5);
    fac_tokenizer *t, *again;
    int32_t a[200], b[200];
    assert_true(fd >= 0);
    close(fd);
    OK(fac_tokenizer_learn(text, strlen(text), 300, &t, &err));
    OK(fac_tokenizer_save(t, path, &err));
    OK(fac_tokenizer_load(path, &again, &err));
    const int64_t n = fac_tokenizer_encode(t, text, strlen(text), 0, a, 200);
    assert_int_equal(fac_tokenizer_encode(again, text, strlen(text), 0, b, 200), n);
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
    assert_int_equal(fac_tokenizer_save(again, path, &err), FAC_E_UNSUPPORTED);
    fac_tokenizer_free(t);
    fac_tokenizer_free(again);
    unlink(path);
}

static void what_cannot_be_learned(void **state) {
    (void)state;
    fac_tokenizer *t;
    assert_int_equal(fac_tokenizer_learn("", 0, 0, &t, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tokenizer_learn("\xff", 1, 0, &t, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tokenizer_learn("a", 1, 256, &t, &err), FAC_E_ARGUMENT);
    assert_int_equal(fac_tokenizer_learn("a", 1, -1, &t, &err), FAC_E_ARGUMENT);
    OK(fac_tokenizer_learn("a", 1, 257, &t, &err));
    fac_tokenizer_free(t);
}

int main(void) {
    seed = fresh_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_the_most_frequent_ones),
        cmocka_unit_test(a_learned_bpe_takes_any_text),
        cmocka_unit_test(characters_in_the_order_of_their_codes),
        cmocka_unit_test(it_is_written_and_read_again),
        cmocka_unit_test(what_cannot_be_learned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
