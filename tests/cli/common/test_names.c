/* cli/common/names.c: names of tensors as names of files, also random ones of letters that are
 * taken for each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "base/rng.h"
#include "fresh_seed.h"
#undef fail /* the command has a function of this name */
#include "../../../cli/common/names.c"
#undef printf

static void ordinary_names_stay(void **state) {
    (void)state;
    static const char *const names[] = { "logits", "conv1.weight", "Relu_3", "layer1.0-out",
                                         "a~b",    "x+y=z",        "[0]",    "con1" };
    file_names s = { 0 };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        assert_true(file_name_ordinary(names[k]));
        assert_string_equal(file_name(&s, names[k], NAMES_FLAT), names[k]);
        assert_string_equal(file_name(&s, names[k], NAMES_FLAT), names[k]); /* once more */
    }
    file_names_free(&s);
}

static void other_names_are_readable(void **state) {
    (void)state;
    static const char *const pairs[][2] = { { "a/b", "a_b" },
                                            { "/conv1/Relu_output_0", "conv1_Relu_output_0" },
                                            { "0//x", "0_x" },
                                            { "", "_" },
                                            { ".", "_" },
                                            { "..", "_." },
                                            { "../../up", "_._.._up" },
                                            { "nul", "_nul" },
                                            { "Com1.x", "_Com1.x" },
                                            { "Identity:0", "Identity_0" },
                                            { "a\nb\033c", "a_b_c" },
                                            { "two words", "two_words" } };
    file_names s = { 0 };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        assert_false(file_name_ordinary(pairs[k][0]));
        const char *file = file_name(&s, pairs[k][0], NAMES_FLAT);
        assert_int_equal(strncmp(file, pairs[k][1], strlen(pairs[k][1])), 0);
    }
    file_names_free(&s);
    assert_string_equal(file_name(&s, "/a/../b", NAMES_FOLDERS), "a/_./b");
    assert_string_equal(file_name(&s, "a//b/", NAMES_FOLDERS), "a/b/_");
    assert_string_equal(file_name(&s, "aux/x", NAMES_FOLDERS), "_aux/x");
    file_names_free(&s);
}

static char small(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }
static bool alike(const char *a, const char *b) {
    for (; *a && small(*a) == small(*b); a++) b++;
    return small(*a) == small(*b);
}

static void two_names_are_two_files(void **state) {
    (void)state;
    enum { N = 3000, LETTERS = 14 };
    static const char *const letters[LETTERS] = { "a", "A", "_",        "/",        ".",
                                                  ":", "~", "\xc3\xa9", "\xc3\x89", "\xff",
                                                  " ", "0", "\033",     "nul" };
    static char names[N][1024];
    const uint64_t seed = fresh_seed();
    for (int how = NAMES_FLAT; how <= NAMES_FOLDERS; how++) {
        file_names s = { 0 };
        uint64_t at = 0;
        for (int i = 0; i < N; i++) {
            const int n = 1 + (int)(fac_random_uniform(seed, 1, at++) * (i % 10 ? 5 : 200));
            char *to = names[i];
            for (int k = 0; k < n; k++) {
                const double x = fac_random_uniform(seed, 1, at++);
                to = stpcpy(to, letters[(int)(x * LETTERS)]);
            }
            const char *file = file_name(&s, names[i], how);
            assert_non_null(file);
            assert_true(strlen(file) < 200 && *file && *file != '.' && *file != '/');
            for (const char *c = file; *c; c++)
                assert_true((unsigned char)*c > ' ' && !strchr("\\:*?\"<>|", *c));
            assert_true(how == NAMES_FOLDERS || !strchr(file, '/'));
            assert_null(strstr(file, "/."));
        }
        for (int i = 0; i < s.n; i++)
            for (int k = 0; k < i; k++) assert_false(alike(s.files[i], s.files[k]));
        file_names_free(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(ordinary_names_stay),
                                        cmocka_unit_test(other_names_are_readable),
                                        cmocka_unit_test(two_names_are_two_files) };
    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
