/* Texts: regular expressions against a list made by hand; ops that run at
 * a cut; texts that outlive what they were made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "base/unicode/unicode.h"
#include "facula/ops.h"
#include "facula/program.h"
#include "graph/graph_internal.h"
#include "ops/strings/regex.h"

static fac_error err;

static const struct {
    const char *pattern, *text;
    bool want;
} rows[] = { { "", "", true },
             { "", "a", false },
             { "abc", "abc", true },
             { "abc", "abcd", false },
             { "a|bc", "bc", true },
             { "a|bc", "ab", false },
             { "(a|b)*c", "ababc", true },
             { "(a|b)*c", "abab", false },
             { "a{2,3}", "a", false },
             { "a{2,3}", "aaa", true },
             { "a{2,3}", "aaaa", false },
             { "a{2,}", "aaaaa", true },
             { "a{2}", "aa", true },
             { "a{,2}", "a{,2}", true },
             { "a{2", "a{2", true },
             { "a+?b", "aab", true },
             { "a??", "", true },
             { ".", "\n", false },
             { "(?s).", "\n", true },
             { ".", "\xc3\xa4", true },
             { "[^a]", "b", true },
             { "[^a]", "a", false },
             { "[a-c]+", "abcab", true },
             { "[]a]+", "]a", true },
             { "[a\\]]+", "]a", true },
             { "[a-]+", "a-", true },
             { "[[:alpha:]]+\\d", "xY3", true },
             { "[[:^digit:]]", "3", false },
             { "\\d+", "", false },
             { "\\D\\W\\S", "a.b", true },
             { "[\\d.]+", "1.25", true },
             { "[^\\d]", "5", false },
             { "\\w+@\\w+\\.(com|org)", "me@here.org", true },
             { "(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)", "account@gmail.com", true },
             { "(?i)aBc", "AbC", true },
             { "(?i:a)b", "Ab", true },
             { "(?i:a)b", "AB", false },
             { "(?i)\xc3\xa4", "\xc3\x84", true },
             { "^a$", "a", true },
             { "a^b", "ab", false },
             { "a\\b.", "a b", false },
             { "a\\b b", "a b", true },
             { "a\\Bb", "ab", true },
             { "\\Aab\\z", "ab", true },
             { "(?m)a$\\n^b", "a\nb", true },
             { "\\x41\\x{42}\\103", "ABC", true },
             { "\\Qa.b\\E+", "a.bb", true },
             { "\\pL+\\pN", "\xc3\xa4x7", true },
             { "\\PL", "a", false },
             { "\\p{^L}", "7", true },
             { "(?P<name>a)(?<other>b)", "ab", true },
             { "((a*)*)*", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false },
             { "(a?){30}a{30}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true },
             { "\\t\\n\\.", "\t\n.", true },
             { "x*", "xxx", true } };

static bool matches(const char *pattern, const char *text) {
    fac_arena arena = { 0 };
    fac_regex *r;
    if (fac_regex_new(&arena, pattern, &r, &err)) fail_msg("%s: %s", pattern, err.text);
    fac_regex_run *run = fac_regex_begin(&arena, r);
    assert_non_null(run);
    const bool first = fac_regex_full(run, text), again = fac_regex_full(run, text);
    assert_int_equal(first, again);
    fac_arena_free(&arena);
    return first;
}

static void patterns_match_whole_texts(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (matches(rows[k].pattern, rows[k].text) != rows[k].want)
            fail_msg("\"%s\" and \"%s\": %s is expected", rows[k].pattern, rows[k].text,
                     rows[k].want ? "a match" : "none");
}

static void false_patterns_are_refused(void **state) {
    static const struct {
        const char *pattern, *why;
    } bad[] = { { "(", "is missing" },
                { ")", "too many" },
                { "*a", "nothing is there" },
                { "[a", "] is missing" },
                { "[b-a]", "ends before" },
                { "a{3,2}", "repetitions" },
                { "a{1001}", "repetitions" },
                { "\\", "escape" },
                { "\\1", NULL },
                { "(?=a)", "kind that is not known" },
                { "\\p{Greek}", "only L, M and N" },
                { "[[:nothing:]]", "class" },
                { "\\x{110000}", "hexadecimal" },
                { "((((a{1000}){1000}){1000}){1000})", "too long" },
                { "\\y", "escape" } };
    (void)state;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        fac_arena arena = { 0 };
        fac_regex *r;
        const fac_status status = fac_regex_new(&arena, bad[k].pattern, &r, &err);
        fac_arena_free(&arena);
        if (bad[k].why && (!status || !strstr(err.text, bad[k].why)))
            fail_msg("\"%s\": %s", bad[k].pattern, err.text);
    }
}

/* ---- ops ---- */

static fac_value *texts(fac_graph *g, int n, const char *const *what) {
    fac_tensor *t = NULL;
    assert_int_equal(fac_tensor_new(NULL, FAC_TEXT, fac_shape(n), &t, &err), FAC_OK);
    if (n) assert_int_equal(fac_tensor_write(t, what, (size_t)n * sizeof *what, &err), FAC_OK);
    fac_value *v = fac_const(g, t);
    fac_tensor_free(t);
    return v;
}

static fac_device *cpu(void) {
    fac_device *d = NULL;
    assert_int_equal(fac_device_open("cpu", NULL, &d, &err), FAC_OK);
    return d;
}

static void parts_are_counted(void **state) {
    static const char *const what[] = { "a,b,,c", "", "x" };
    static const char *const want[] = { "a", "b", "", "c", "", "", "", "", "x", "", "", "" };
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_device *d = cpu();
    fac_program *p = NULL;
    fac_tensor *y[2] = { NULL };
    fac_value *parts = fac_string_split(texts(g, 3, what), ",", -1);
    fac_output(g, "y", parts);
    fac_output(g, "n", fac_value_other(parts, 1));
    assert_int_equal(fac_program_new(g, d, NULL, &p, &err), FAC_OK);
    if (fac_program_run(p, NULL, y, &err)) fail_msg("%s", err.text);
    assert_int_equal(fac_tensor_type(y[0]).dims.d[1], 4);
    for (int k = 0; k < 12; k++)
        assert_string_equal(((char *const *)fac_tensor_data(y[0]))[k], want[k]);
    const int64_t *n = fac_tensor_data(y[1]);
    assert_true(n[0] == 4 && n[1] == 1 && n[2] == 1);
    for (int k = 0; k < 2; k++) fac_tensor_free(y[k]);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(d);
}

/* Results keep their texts when inputs, program and graph are gone. */
static void results_own_their_texts(void **state) {
    static const char *const what[] = { "one", "two", "three" };
    (void)state;
    fac_graph *g = fac_graph_new();
    fac_device *d = cpu();
    fac_program *p = NULL;
    fac_tensor *x = NULL, *y[2] = { NULL };
    fac_value *in = fac_input(g, "x", FAC_TEXT, fac_shape(3));
    fac_output(g, "copy", fac_slice(in, 0, 1, 3, 1));
    fac_output(g, "longer", fac_string_concat(in, texts(g, 1, (const char *const[]){ "!" })));
    assert_int_equal(fac_program_new(g, d, NULL, &p, &err), FAC_OK);
    assert_int_equal(fac_tensor_new(NULL, FAC_TEXT, fac_shape(3), &x, &err), FAC_OK);
    assert_int_equal(fac_tensor_write(x, what, sizeof what, &err), FAC_OK);
    if (fac_program_run(p, &x, y, &err)) fail_msg("%s", err.text);
    fac_tensor_free(x);
    fac_program_free(p);
    fac_graph_free(g);
    fac_device_free(d);
    assert_string_equal(((char *const *)fac_tensor_data(y[0]))[0], "two");
    assert_string_equal(((char *const *)fac_tensor_data(y[1]))[2], "three!");
    for (int k = 0; k < 2; k++) fac_tensor_free(y[k]);
}

static void letters_have_two_cases(void **state) {
    (void)state;
    assert_int_equal(fac_unicode_upper('z'), 'Z');
    assert_int_equal(fac_unicode_upper(0xe4), 0xc4);
    assert_int_equal(fac_unicode_upper(0x3c9), 0x3a9);
    assert_int_equal(fac_unicode_upper(0xdf), 0xdf);
    assert_int_equal(fac_unicode_lower(0x416), 0x436);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(patterns_match_whole_texts),
                                        cmocka_unit_test(false_patterns_are_refused),
                                        cmocka_unit_test(parts_are_counted),
                                        cmocka_unit_test(results_own_their_texts),
                                        cmocka_unit_test(letters_have_two_cases) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
