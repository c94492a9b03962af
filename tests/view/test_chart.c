/* src/view: axes with sensible ticks, charts as SVG and PNG, curves in letters and in braille. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "allocations.h"
#include "facula/facula.h"
#include "view/axis.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        fac_error ok_err = { 0 };                                                                  \
        if (call) fail_msg("%s: %s", #call, ok_err.text);                                          \
    } while (0)
#define err (&ok_err)

static char folder[] = "/tmp/facula-chart-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}
static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
} /* fails if a test left something */

static const char *in_folder(const char *name) {
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ---- axes ---- */

static void ticks_are_sensible(void **state) {
    (void)state;
    static const struct {
        double lo, hi;
        fac_scale scale;
        int want;
        bool grow;
        const char *labels;
    } cases[] = {
        { 0, 10, FAC_SCALE_LINEAR, 5, false, "0 2 4 6 8 10" },
        { 1, 10, FAC_SCALE_LINEAR, 5, false, "2 4 6 8 10" },
        { 0.03, 2.31, FAC_SCALE_LINEAR, 5, true, "0 0.5 1.0 1.5 2.0 2.5" },
        { 0, 0.003, FAC_SCALE_LINEAR, 3, true, "0 0.001 0.002 0.003" },
        { 0, 3e-5, FAC_SCALE_LINEAR, 3, true, "0 1e-5 2e-5 3e-5" },
        { -0.4, 0.4, FAC_SCALE_LINEAR, 4, true, "-0.4 -0.2 0 0.2 0.4" },
        { 9400, 10200, FAC_SCALE_LINEAR, 4, true, "9.4k 9.6k 9.8k 10.0k 10.2k" },
        { 0, 60000, FAC_SCALE_LINEAR, 3, true, "0 20k 40k 60k" },
        { 0.853, 0.991, FAC_SCALE_PERCENT, 3, true, "85 90 95 100" },
        { 0.9911, 0.9942, FAC_SCALE_PERCENT, 4, true, "99.1 99.2 99.3 99.4 99.5" },
        { 0.001, 1, FAC_SCALE_LOG, 4, true, "0.001 0.01 0.1 1" },
        { 0.02, 0.9, FAC_SCALE_LOG, 6, true, "0.02 0.05 0.1 0.2 0.5 1" },
        { 5, 5, FAC_SCALE_LINEAR, 4, true, "2 4 6 8" },
        { 0, 0, FAC_SCALE_LINEAR, 2, true, "-0.5 0 0.5" },
        { NAN, INFINITY, FAC_SCALE_LINEAR, 2, true, "0 0.5 1.0" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fac_chart_axis a =
            fac_axis_fit(cases[i].lo, cases[i].hi, cases[i].scale, cases[i].want, cases[i].grow);
        char all[512] = "", one[FAC_NUMBER_TEXT];
        for (int k = 0; k < a.n; k++) {
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", k ? " " : "",
                     fac_axis_label(&a, a.tick[k], one));
            double at = fac_axis_place(&a, a.tick[k]);
            assert_true(at >= 0 && at <= 1 && (!k || at > fac_axis_place(&a, a.tick[k - 1])));
        }
        if (strcmp(all, cases[i].labels))
            fail_msg("%g..%g: \"%s\" instead of \"%s\"", cases[i].lo, cases[i].hi, all,
                     cases[i].labels);
    }
    fac_chart_axis a = fac_axis_fit(1, 3, FAC_SCALE_LINEAR, 2, false);
    assert_true(fac_axis_place(&a, 0) == 0 && fac_axis_place(&a, 9) == 1 &&
                fac_axis_place(&a, 2) == 0.5);
    a = fac_axis_fit(0.01, 1, FAC_SCALE_LOG, 2, true);
    assert_true(fabs(fac_axis_place(&a, 0.1) - 0.5) < 1e-12 && fac_axis_place(&a, -1) == 0);
}

static void numbers_have_their_digits(void **state) {
    (void)state;
    char to[FAC_NUMBER_TEXT];
    assert_string_equal(fac_fixed(3.14159, 2, to), "3.14");
    assert_string_equal(fac_fixed(-0.004, 2, to), "0.00");
    assert_string_equal(fac_fixed(-0.05, 1, to), "-0.1");
    assert_string_equal(fac_fixed(7, 0, to), "7");
    assert_string_equal(fac_fixed(12.0625, 3, to), "12.063");
}

/* ---- pictures ---- */

static const double epoch[6] = { 0, 1, 2, 3, 4, 5 },
                    train_loss[6] = { 2.3, 1.1, 0.7, 0.5, 0.4, 0.3 },
                    test_loss[6] = { 2.2, 1.2, NAN, 0.7, 0.68, 0.66 };
static const fac_series lines[2] = {
    { "train <&\"a\">", 6, epoch, train_loss, 0, FAC_STROKE_SOLID },
    { "test \xff\x01 \xc3\xa9", 6, epoch, test_loss, 1, FAC_STROKE_DASHED }
};
static const int64_t counts[9] = { 50, 3, 0, 4, 44, 9, 0, 0, 0 };
static const char *const classes[3] = { "cat", "a dog with a long name", "\xe9\xbe\x8d" };
static const fac_confusion confusion = { 3, classes, counts };
static const fac_panel panels[3] = { { "loss", "epoch", FAC_SCALE_LINEAR, 2, lines, NULL },
                                     { "empty", NULL, FAC_SCALE_LOG, 0, NULL, NULL },
                                     { .title = "confusion", .confusion = &confusion } };
static const fac_chart chart = { .title = "a < b",
                                 .subtitle = "what it is",
                                 .width = 640,
                                 .height = 480,
                                 .n = 3,
                                 .panels = panels };

/* Well-formed as far as a chart can be: every tag is closed, and nothing is in it that XML forbids.
 */
static void check_xml(const char *s) {
    int open = 0;
    for (const char *p = s; *p; p++) {
        assert_true((unsigned char)*p >= ' ' || *p == '\n');
        bool known = !strncmp(p, "&lt;", 4) || !strncmp(p, "&gt;", 4) || !strncmp(p, "&amp;", 5) ||
                     !strncmp(p, "&quot;", 6);
        if (*p == '&') assert_true(known);
        if (*p != '<' || p[1] == '?') continue;
        const char *end = strchr(p, '>');
        assert_non_null(end);
        if (p[1] == '/')
            open--;
        else if (end[-1] != '/')
            open++;
        assert_true(open >= 0);
    }
    assert_int_equal(open, 0);
}

static void charts_are_written_as_svg(void **state) {
    (void)state;
    OK(fac_chart_save(&chart, in_folder("a.svg"), err));
    FILE *f = fopen(in_folder("a.svg"), "r");
    char *text = calloc(1, 1 << 20);
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 1000);
    fclose(f);
    check_xml(text);
    assert_non_null(strstr(text, "width=\"640\" height=\"480\""));
    assert_non_null(strstr(text, ">a &lt; b<"));
    assert_non_null(strstr(text, ">train &lt;&amp;&quot;a&quot;&gt;<"));
    assert_non_null(strstr(
        text, ">test \xef\xbf\xbd \xc3\xa9<")); /* a byte that is no UTF-8, a control character */
    assert_non_null(strstr(text, ">no data<"));
    assert_non_null(strstr(text, ">a dog with a\xe2\x80\xa6<"));
    assert_non_null(strstr(text, ">44<"));
    assert_null(strstr(text, "nan"));
    free(text);
    unlink(in_folder("a.svg"));
}

/* Upright lines at their x, over the whole height, whatever the y of others: each as often as it is
 * there. */
static int rules_of(fac_stroke stroke, const char *what) {
    static const double at[4] = { -0.5, NAN, 0.25, 0.75 }, mid[2] = { -0.5, 0.5 },
                        heights[2] = { 3, 8 };
    const fac_series s[2] = { { NULL, 2, mid, heights, 0, FAC_STROKE_BARS },
                              { NULL, 4, at, NULL, 3, stroke } };
    const fac_panel panel = { .title = "levels", .n = 2, .series = s };
    const fac_chart one = { .title = "t", .columns = 1, .n = 1, .panels = &panel };
    char *text = calloc(1, 1 << 20);
    int n = 0;
    OK(fac_chart_save(&one, in_folder("r.svg"), err));
    FILE *f = fopen(in_folder("r.svg"), "r");
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 500);
    fclose(f);
    check_xml(text);
    assert_null(strstr(text, "nan"));
    for (const char *p = text; (p = strstr(p, what)); p++) n++;
    free(text);
    unlink(in_folder("r.svg"));
    return n;
}

static void rules_are_drawn_at_their_places(void **state) {
    (void)state;
    assert_int_equal(rules_of(FAC_STROKE_RULES, "#B5509B") + rules_of(FAC_STROKE_RULES, "#b5509b"),
                     3);
    assert_int_equal(rules_of(FAC_STROKE_RULES, "dasharray"), 0);
    assert_int_equal(rules_of(FAC_STROKE_DASHED_RULES, "dasharray"), 3);
}

static void charts_are_written_as_png(void **state) {
    (void)state;
    fac_error e = { 0 };
    if (!fac_chart_draws_png()) {
        assert_int_equal(fac_chart_save(&chart, in_folder("a.png"), &e), FAC_E_UNSUPPORTED);
        assert_non_null(strstr(e.text, "libcairo2-dev"));
        return;
    }
    fac_image image = { 0 };
    OK(fac_chart_save(&chart, in_folder("a.png"), err));
    OK(fac_image_load(in_folder("a.png"), &image, err));
    assert_true(image.width == 640 && image.height == 480);
    long blue = 0, orange = 0, white = 0; /* the two lines, and the paper */
    for (int i = 0; i < 640 * 480; i++) {
        const uint8_t *p = image.rgb + 3 * i;
        blue += p[0] == 0x0B && p[1] == 0x65 && p[2] == 0xB0;
        orange += p[0] == 0xD9 && p[1] == 0x5F && p[2] == 0x02;
        white += p[0] == 255 && p[1] == 255 && p[2] == 255;
    }
    assert_true(blue > 200 && orange > 100 && white > 640 * 480 / 2 && white < 640 * 480);
    fac_image_free(&image);
    unlink(in_folder("a.png"));
}

static void what_cannot_be_drawn_is_refused(void **state) {
    (void)state;
    fac_error e = { 0 };
    fac_chart bad = chart;
    assert_int_equal(fac_chart_save(&chart, in_folder("a.jpg"), &e), FAC_E_ARGUMENT);
    assert_int_equal(fac_chart_save(&chart, "/nowhere/a.svg", &e), FAC_E_IO);
    bad.width = -5;
    assert_int_equal(fac_chart_save(&bad, in_folder("a.svg"), &e), FAC_E_ARGUMENT);
    bad.width = 3; /* no room for any panel: an empty picture, no crash */
    bad.height = 2;
    OK(fac_chart_save(&bad, in_folder("a.svg"), err));
    unlink(in_folder("a.svg"));
    const fac_terminal narrow = { 10, 5, false, false }, fine = { 40, 5, false, false };
    assert_int_equal(fac_panel_write(&panels[0], &narrow, stdout, &e), FAC_E_ARGUMENT);
    assert_int_equal(fac_panel_write(&panels[1], &fine, stdout, &e), FAC_E_ARGUMENT);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    fac_status status = FAC_E_NOMEM;
    for (long k = 0; status; k++) {
        fac_error e = { 0 };
        allocations_left = k;
        status = fac_chart_save(&chart, in_folder("a.svg"), &e);
        allocations_left = -1;
        if (status && status != FAC_E_NOMEM) fail_msg("allocation %ld: %s", k, e.text);
        if (status) assert_int_equal(access(in_folder("a.svg"), F_OK), -1);
        assert_true(k < 1000);
    }
    unlink(in_folder("a.svg"));
}

/* ---- terminals ---- */

static char *drawn(const fac_panel *p, fac_terminal how) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    OK(fac_panel_write(p, &how, f, err));
    fclose(f);
    return text;
}

static void same_text(const char *got, const char *want) {
    if (strcmp(got, want)) fail_msg("\n%s\ninstead of\n%s", got, want);
}

static const char golden_letters[] = "  loss   ** train   oo test\n"
                                     " 3 +\n"
                                     "   |*\n"
                                     " 2 +oooo\n"
                                     "   |    ooooo\n"
                                     " 1 +       *oooooooooooooooo\n"
                                     "   |               ********ooooooooooooooooooo\n"
                                     " 0 +\n"
                                     "   ++---------------+----------------+--------\n"
                                     "    0               2                4   epoch\n";
static const char golden_braille[] = "  loss   ── train   ── test\n"
                                     " 3 ┤\n"
                                     " 2 ┤⠳⢤⣀\n"
                                     "   │  ⠈⠙⠲⢤⣀\n"
                                     " 1 ┤      ⠈⠉⠛⠛⠭⠶⢖⣒⣒⣤⣤⡤⠤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀\n"
                                     " 0 ┤                 ⠈⠉⠉⠉⠉⠉⠉⠉⠑⠒⠒⠒⠒⠒⠒\n"
                                     "   └┬──────────────────────────────┬\n"
                                     "    0                              5   epoch\n";

static void curves_are_drawn_in_letters(void **state) {
    (void)state;
    fac_series two[2] = { lines[0], lines[1] };
    two[0].name = "train";
    two[1].name = "test";
    const fac_panel p = { "loss", "epoch", FAC_SCALE_LINEAR, 2, two, NULL };
    char *text = drawn(&p, (fac_terminal){ 50, 7, false, false });
    same_text(text, golden_letters);
    free(text);
    text = drawn(&p, (fac_terminal){ 40, 5, true, false });
    same_text(text, golden_braille);
    free(text);
    text = drawn(&p, (fac_terminal){ 40, 5, true, true });
    assert_non_null(strstr(text, "\033[38;5;39m"));
    assert_non_null(strstr(text, "\033[0m"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(ticks_are_sensible),
                                        cmocka_unit_test(numbers_have_their_digits),
                                        cmocka_unit_test(charts_are_written_as_svg),
                                        cmocka_unit_test(rules_are_drawn_at_their_places),
                                        cmocka_unit_test(charts_are_written_as_png),
                                        cmocka_unit_test(what_cannot_be_drawn_is_refused),
                                        cmocka_unit_test(every_allocation_may_fail),
                                        cmocka_unit_test(curves_are_drawn_in_letters) };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
