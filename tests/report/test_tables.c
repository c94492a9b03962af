/* The table of modules of ten networks against what torchinfo printed (tests/golden/tables, by
 * tests/golden/make/golden_table.py), line by line, and the counts of ptflops and fvcore to the
 * unit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "facula/facula.h"
#include "through_onnx.h"

#define OK(x)                                                                                      \
    do {                                                                                           \
        if (x) fail_msg("%s", err.text);                                                           \
    } while (0)
static fac_error err;
static const char *const networks[] = { "alexnet",       "vgg16",        "resnet18",
                                        "resnet34",      "resnet50",     "squeezenet1_0",
                                        "squeezenet1_1", "mobilenet_v2", "googlenet",
                                        "lenet" };

static FILE *golden(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/golden/tables/%s.txt", TEST_DIR, name);
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s cannot be opened", path);
    return f;
}

static bool next(FILE *f, char line[512]) {
    if (!fgets(line, 512, f)) return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

typedef struct check {
    FILE *f;
    const char *name;
    int lines, after;
    char other[4][512];
} check;

/* After torchinfo's last line stand our own: bytes of parameters, and buffers. */
static fac_status compare(void *self, const char *line, fac_error *e) {
    check *c = self;
    char want[512];
    (void)e;
    if (c->after) {
        c->after++;
        return FAC_OK;
    }
    assert_true(next(c->f, want));
    if (!strncmp(want, "ptflops ", 8)) {
        snprintf(c->other[0], 512, "%s", want);
        c->after = 1;
        return FAC_OK;
    }
    if (strcmp(line, want))
        fail_msg("%s, line %d:\n\"%s\", torchinfo has\n\"%s\"", c->name, c->lines + 1, line, want);
    c->lines++;
    return FAC_OK;
}

static fac_analysis *analyze(const char *name) {
    fac_graph *g = NULL;
    fac_analysis *a = NULL;
    OK(fac_zoo_new(name, NULL, 1, &g, &err));
    OK(fac_analyze(g, 1, &a, &err));
    fac_graph_free(g);
    return a;
}

static void rows_of_torchinfo(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof networks / sizeof *networks; k++) {
        fac_analysis *a = analyze(networks[k]);
        check c = { .f = golden(networks[k]), .name = networks[k] };
        OK(fac_analysis_table(a, 4, false, compare, &c, &err));
        assert_int_equal(c.after, 3);
        assert_true(c.lines > 20);
        fclose(c.f);
        fac_analysis_free(a);
    }
}

static void counts_of_others(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof networks / sizeof *networks; k++) {
        fac_analysis *a = analyze(networks[k]);
        FILE *f = golden(networks[k]);
        char line[512], name[32];
        int found = 0;
        double want;
        while (next(f, line)) {
            fac_convention convention;
            if (sscanf(line, "%31s %lf", name, &want) != 2 ||
                !fac_convention_find(name, &convention))
                continue;
            const double got = fac_analysis_count(a, convention);
            if (got != want) fail_msg("%s: %s counts %.0f, we %.0f", networks[k], name, want, got);
            found++;
        }
        assert_int_equal(found, 4);
        fclose(f);
        fac_analysis_free(a);
    }
}

/* ---- other ways to the same table ---- */

typedef struct lines {
    char at[400][128];
    int n;
} lines;

static fac_status keep(void *self, const char *line, fac_error *e) {
    lines *l = self;
    (void)e;
    assert_true(l->n < 400);
    snprintf(l->at[l->n++], 128, "%s", line);
    return FAC_OK;
}

/* From the column of shapes on: a file without metadata has no classes. */
static const char *values(const char *line) {
    const char *s = strstr(line, " [");
    return s && strncmp(line, "=", 1) ? s : "";
}

/* A file has the names of modules: the same rows, shapes and parameters, but no classes and nothing
 * that is off. */
static void rows_of_files(void **state) {
    (void)state;
    fac_graph *g = NULL;
    fac_analysis *a, *b = NULL;
    static lines ours, theirs;
    OK(fac_zoo_new("resnet18", NULL, 1, &g, &err));
    fac_graph *back = through_onnx(g, &err);
    if (!back) fail_msg("%s", err.text);
    OK(fac_analyze(g, 1, &a, &err));
    OK(fac_analyze(back, 1, &b, &err));
    OK(fac_analysis_table(a, 4, false, keep, &ours, &err));
    OK(fac_analysis_table(b, 4, false, keep, &theirs, &err));
    assert_int_equal(ours.n, theirs.n);
    for (int k = 0; k < ours.n; k++) assert_string_equal(values(ours.at[k]), values(theirs.at[k]));
    fac_analysis_free(a);
    fac_analysis_free(b);
    fac_graph_free(g);
    fac_graph_free(back);
}

static fac_status refuse(void *self, const char *line, fac_error *e) {
    (void)line;
    ++*(int *)self;
    e->status = FAC_E_IO;
    return FAC_E_IO;
}

static void names_depth_and_errors(void **state) {
    (void)state;
    fac_analysis *a = analyze("lenet");
    static lines all;
    int calls = 0;
    OK(fac_analysis_table(a, 1, true, keep, &all, &err));
    assert_string_equal(all.at[4],
                        "├─Conv2d (conv1): 1-1                    [1, 6, 28, 28]            156");
    assert_int_equal(fac_analysis_table(a, 0, false, refuse, &calls, &err), FAC_E_IO);
    assert_int_equal(calls, 1);
    fac_analysis_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(rows_of_torchinfo),
                                        cmocka_unit_test(counts_of_others),
                                        cmocka_unit_test(rows_of_files),
                                        cmocka_unit_test(names_depth_and_errors) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
