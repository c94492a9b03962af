/* cli/common/out.c: formats as the C library has them, arguments made plain, streams that are
 * checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#undef fail /* the command has a function of this name */
#include "../../../cli/common/out.c"
#undef printf
#undef fprintf
#undef fputs
#undef puts

/* What out.c asks other files of the command. */
static bool coloured;
bool colour(void) { return coloured; }
int fail_text(const char *format, ...) {
    (void)format;
    return EXIT_FAILED;
}

static char got[8192];

/* Standard output goes to a file between these two. */
static int before;
static void begin(void) {
    FILE *f = tmpfile();
    assert_non_null(f);
    fflush(stdout);
    before = dup(STDOUT_FILENO);
    assert_true(before >= 0 && dup2(fileno(f), STDOUT_FILENO) >= 0);
    fclose(f);
}
static const char *end(void) {
    fflush(stdout);
    const off_t n = lseek(STDOUT_FILENO, 0, SEEK_END);
    assert_true(n >= 0 && n < (off_t)sizeof got);
    assert_int_equal(pread(STDOUT_FILENO, got, (size_t)n, 0), n);
    got[n] = 0;
    dup2(before, STDOUT_FILENO);
    close(before);
    return got;
}

#define SAME(...)                                                                                  \
    do {                                                                                           \
        char want[512];                                                                            \
        snprintf(want, sizeof want, __VA_ARGS__);                                                  \
        begin();                                                                                   \
        const int n = out_print(stdout, __VA_ARGS__);                                              \
        assert_string_equal(end(), want);                                                          \
        assert_int_equal(n, strlen(want));                                                         \
    } while (0)

static void formats_are_those_of_the_library(void **state) {
    (void)state;
    SAME("plain, 100 %%");
    SAME("%d %i %5d|%-5d|%05d|%+d|% d|%.3d", 1, -2, 3, 4, 5, 6, 7, 8);
    SAME("%u %x %X %#x %o", 1u, 255u, 255u, 255u, 8u);
    SAME("%ld %lu %lx %lld %llu", -1L, 2UL, 255UL, INT64_MIN + 0LL, UINT64_MAX + 0ULL);
    SAME("%zu %zd %td", SIZE_MAX, (ssize_t)-1, (ptrdiff_t)-5);
    SAME("%jd %ju", INTMAX_MIN, UINTMAX_MAX);
    SAME("%hhd %hd", (signed char)-3, (short)-300);
    SAME("%f %.2f %8.3f|%-8.1f|%g", 1.5, 2.25, 3.125, 4.0, 1e-9);
    SAME("%.9g %e %.*g", 0.1, 12345.678, 3, 2.0 / 3);
    SAME("%c%c%-3c|", 'a', 'b', 'c');
    SAME("%p", (void *)got);
    SAME("%s|%5s|%-5s|%.2s|%*s|%-*s", "a", "b", "c", "defg", 4, "h", 4, "i");
    SAME("%.*s|%*.*s", 1, "jk", 5, 2, "lmn");
    SAME("%.*s|%.*d|%*d|%*d", -1, "whole", -1, 7, -4, 8, 4, 9);
    SAME("\033[%sm and \n\t stay in formats", "31");
    SAME("gr\xc3\xb6\xc3\x9f"
         "e %s",
         "\xe5\xb1\xa4");
}

static void arguments_are_plain(void **state) {
    (void)state;
    begin();
    out_print(stdout, "<%s>\n<%-6s>\n<%c>", "a\nb\033[31m\xc2\x9b\xff", "\xe2\x80\xae", '\033');
    assert_string_equal(end(), "<a?b?[31m?\?>\n<?     >\n<?>");
    begin();
    /* no half letters */
    out_print(stdout, "<%.4s><%.3s><%.2s>", "abc\xc3\xa4", "\xf0\x9f\x99\x82", "\xc3\xa4");
    assert_string_equal(end(), "<abc><><\xc3\xa4>");
    const char unended[3] = { 'a', 'b', (char)0xe2 };
    begin();
    out_print(stdout, "<%.*s>", 3, unended);
    assert_string_equal(end(), "<ab>");
    char longer[3000];
    memset(longer, '\a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    begin();
    out_print(stdout, "%s", longer);
    assert_int_equal(strlen(end()), sizeof longer - 1);
    assert_int_equal(strspn(got, "?"), sizeof longer - 1);
    begin();
    out_text("two\tlines\nand \033 one\n", stdout);
    out_line("a\nb");
    out_raw("\033raw\n", stdout);
    assert_string_equal(end(), "two\tlines\nand ? one\na?b\n\033raw\n");
}

/* Pages and the like get names as they are: they have rules of their own. */
static void other_streams_are_left_alone(void **state) {
    (void)state;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    out_print(f, "%s", "a\nb\033");
    out_text("\033", f);
    fclose(f);
    assert_string_equal(text, "a\nb\033\033");
    free(text);
}

static void colours_are_where_they_are_wanted(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        coloured = k;
        begin();
        style(stdout, "1;31");
        assert_string_equal(end(), k ? "\033[1;31m" : "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(formats_are_those_of_the_library),
                                        cmocka_unit_test(arguments_are_plain),
                                        cmocka_unit_test(other_streams_are_left_alone),
                                        cmocka_unit_test(colours_are_where_they_are_wanted) };
    return cmocka_run_group_tests_name("out", tests, NULL, NULL);
}
