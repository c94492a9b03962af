/* The passes of the planner: their order is what docs/ARCHITECTURE.md says, and graphs after each
 * of them are what programs go through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "facula/facula.h"

static fac_device *device;
static fac_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call) fail_msg("%s", err.text);                                                        \
    } while (0)

/* Lines "      name   words" between the two marks are the passes, in their order. */
static void the_page_has_the_order(void **state) {
    FILE *f = fopen(TEST_DIR "/../docs/ARCHITECTURE.md", "r");
    char line[400], name[40];
    bool in = false;
    int n = 0;
    (void)state;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        fac_pass_info p;
        if (strstr(line, "<!-- passes -->")) in = !in;
        if (!in || sscanf(line, "      %39[a-z_]", name) != 1) continue;
        if (!fac_pass_info_of(n++, &p))
            fail_msg("docs/ARCHITECTURE.md: there is no pass %d, %s", n, name);
        if (strcmp(name, p.name))
            fail_msg("docs/ARCHITECTURE.md: pass %d is %s, not %s", n, p.name, name);
        if (!strstr(line, p.does)) fail_msg("docs/ARCHITECTURE.md: %s: %s", p.name, p.does);
        if (!strstr(line, p.when)) fail_msg("docs/ARCHITECTURE.md: %s: %s", p.name, p.when);
    }
    fclose(f);
    fac_pass_info p;
    if (fac_pass_info_of(n, &p)) fail_msg("docs/ARCHITECTURE.md lacks the pass %s", p.name);
    assert_false(fac_pass_info_of(-1, &p));
}

static size_t nodes_of(const char *op, const char *text) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, op)) != NULL; at++) n++;
    return n;
}

static char *text_after(const fac_graph *g, const char *pass, const fac_program_opts *o) {
    fac_graph *after = NULL;
    char *text = NULL;
    size_t size = 0;
    OK(fac_graph_after(g, device, o, pass, &after, &err));
    FILE *f = open_memstream(&text, &size);
    OK(fac_graph_write(after, f, &err));
    fclose(f);
    fac_graph_free(after);
    return text;
}

static fac_graph *lenet(void) {
    fac_graph *g = NULL;
    OK(fac_zoo_new("lenet", NULL, 1, &g, &err));
    return g;
}

/* Convolutions take their activations in one pass and not before. */
static void graphs_change_where_the_pass_is(void **state) {
    fac_graph *g = lenet();
    char *before = text_after(g, "updates", NULL), *after = text_after(g, "epilogue", NULL);
    char *whole = text_after(g, "sweep", &(fac_program_opts){ .no_fuse = true });
    (void)state;
    assert_true(nodes_of("relu(", before) > 0);
    assert_true(strcmp(before, after) != 0);
    assert_true(nodes_of("relu(", whole) >= nodes_of("relu(", before));
    free(before);
    free(after);
    free(whole);
    fac_graph_free(g);
}

static void every_pass_gives_a_graph(void **state) {
    fac_graph *g = lenet();
    fac_pass_info p;
    (void)state;
    for (int i = 0; fac_pass_info_of(i, &p); i++) free(text_after(g, p.name, NULL));
    fac_graph_free(g);
}

static void unknown_passes_are_refused(void **state) {
    fac_graph *g = lenet(), *after = NULL;
    (void)state;
    assert_int_equal(fac_graph_after(g, device, NULL, "fusing", &after, &err), FAC_E_ARGUMENT);
    assert_string_equal(err.text, "there is no pass \"fusing\"");
    assert_int_equal(fac_graph_after(g, NULL, NULL, "cse", &after, &err), FAC_E_ARGUMENT);
    assert_null(after);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_has_the_order),
        cmocka_unit_test(graphs_change_where_the_pass_is),
        cmocka_unit_test(every_pass_gives_a_graph),
        cmocka_unit_test(unknown_passes_are_refused),
    };
    if (fac_device_open("cpu", NULL, &device, &err)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fac_device_free(device);
    return failed;
}
