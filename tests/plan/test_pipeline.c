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

/* Sizes that only computed constants tell, twice after each other: pads come from a
 * matrix, as exporters write them. */
static void sizes_settle_one_after_the_other(void **state) {
    static const char *const model =
        "input x f32[1,6]\nconst a i64[2,2]{0,0,0,1}\n"
        "t = transpose(a)\np = reshape(t, i64{-1})\ny = pad(x, p)\n"
        "s = shape(y)\nn = gather(s, i64(1))\nr = range(i64(0), n, i64(1))\n"
        "u = unsqueeze(r, i64{0})\nc = concat(u, u) axis=0\nq = reduce_max(c, i64{1})\n"
        "e = mul(q, i64{0,1})\nf = concat(e, e) axis=0\ng = div(f, i64(6))\nw = pad(y, g)\n"
        "h = shape(w)\no = gather(h, i64(1))\nv = range(i64(0), o, i64(1))\n"
        "k = cast(v) to=f32\nb = add(w, k)\noutput b = b\n";
    (void)state;
    fac_graph *g = NULL;
    FILE *from = fmemopen((void *)model, strlen(model), "r");
    OK(fac_graph_read(from, &g, &err));
    fclose(from);
    char *after = text_after(g, "settle", NULL);
    assert_int_equal(nodes_of("range(", after), 0);
    assert_int_equal(nodes_of("shape(", after), 0);
    assert_int_equal(nodes_of("f32[1,9]", after), 2);
    free(after);
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
        cmocka_unit_test(sizes_settle_one_after_the_other),
        cmocka_unit_test(every_pass_gives_a_graph),
        cmocka_unit_test(unknown_passes_are_refused),
    };
    if (fac_device_open("cpu", NULL, &device, &err)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fac_device_free(device);
    return failed;
}
