/* The language in which layers are chosen: fac_analysis_selects, and that edits, tiles and
 * activations speak it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "facula/facula.h"

#define OK(x)                                                                                      \
    do {                                                                                           \
        if (x) fail_msg("%s", err.text);                                                           \
    } while (0)
static fac_error err;

static fac_graph *read_text(const char *text) {
    fac_graph *g = NULL;
    FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(f);
    OK(fac_graph_read(f, &g, &err));
    fclose(f);
    return g;
}

/* Two modules, one of them with two layers, and a name with signs that are patterns elsewhere. */
static fac_graph *model(void) {
    return read_text(
        "input x f32[1,4]\nparam w f32[4,4]\n"
        "%0 = linear(x, w, -) @body.fc\n%1 = relu(%0) @body.act\n\"odd[0]?\" = relu(%1) @head\n"
        "%2 = linear(\"odd[0]?\", w, -) @head.fc\noutput y = %2\n");
}

static void words_mean_layers(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *layers;
    } cases[] = { { "op:relu", "0110" },
                  { "kind:Linear", "1001" },
                  { "kind:ReLU", "0110" },
                  { "body", "1100" },
                  { "body.fc", "1000" },
                  { "head", "0011" },
                  { "*.fc", "1001" },
                  { "body.*", "1100" },
                  { "odd[0]?", "0010" },
                  { "odd*", "0010" },
                  { "body.act,head.fc", "0101" },
                  { "op:linear,odd[0]?", "1011" },
                  { "bod", "0000" },
                  { "op:", "0000" },
                  { "", "0000" },
                  { "nothing,body.fc", "1000" },
                  { "*", "1111" } };
    fac_graph *g = model();
    fac_analysis *a = NULL;
    OK(fac_analyze(g, 1, &a, &err));
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char got[5] = "";
        for (int i = 0; i < 4; i++)
            got[i] = fac_analysis_selects(a, i, cases[k].pattern) ? '1' : '0';
        if (strcmp(got, cases[k].layers))
            fail_msg("\"%s\" means %s, not %s", cases[k].pattern, got, cases[k].layers);
    }
    assert_false(fac_analysis_selects(a, 4, "*"));
    assert_false(fac_analysis_selects(a, -1, "*"));
    fac_analysis_free(a);
    fac_graph_free(g);
}

static int products(fac_graph *g, const char *only) {
    fac_tiling *t = NULL;
    fac_tile_opts opts = { .m = 2, .n = 2, .k = 2, .count_only = true, .batch = 1, .only = only };
    if (fac_graph_tile(g, &opts, NULL, &t, &err)) return -1;
    const int n = fac_tiling_rows(t);
    fac_tiling_free(t);
    return n;
}

static void others_speak_it(void **state) {
    (void)state;
    fac_graph *g = model(), *out = NULL;
    int n = 0;
    assert_int_equal(products(g, "op:linear"), 2);
    assert_int_equal(products(g, "body"), 1);
    assert_int_equal(products(g, "body.fc,head.fc"), 2);
    assert_int_equal(products(g, "kind:Conv2d"), -1);
    OK(fac_graph_removed(g, "kind:ReLU", &n, &out, &err));
    assert_int_equal(n, 2);
    fac_graph_free(out);
    assert_int_equal(fac_graph_removed(g, "body", &n, &out, &err),
                     FAC_E_ARGUMENT); /* which of the two? */
    assert_non_null(strstr(err.text, "2 nodes stand in \"body\""));
    fac_graph_free(g);
}

/* A pool that makes planes too small for its reader, and a reader that takes them: each alone is
 * wrong. */
static void settings_are_one_change(void **state) {
    (void)state;
    fac_graph *g =
        read_text("input x f32[1,1,8,8]\nparam w f32[1,1,5,5]\nparam v f32[2,16]\n"
                  "a = max_pool2d(x) kernel=1,1 stride=1,1\nb = conv2d(a, w, -) stride=1,1\n"
                  "c = flatten(b) axis=1\nd = linear(c, v, -)\noutput y = d\n");
    fac_graph *out = NULL;
    fac_graph_setting all[] = { { "a", "kernel=2,2 stride=2,2", 0 }, { "b", "pad=2,2,2,2", 0 } };
    assert_int_not_equal(fac_graph_set(g, "a", all[0].attrs, NULL, &out, &err), FAC_OK);
    assert_int_not_equal(fac_graph_set(g, "b", all[1].attrs, NULL, &out, &err), FAC_OK);
    OK(fac_graph_set_all(g, 2, all, &out, &err));
    assert_int_equal(all[0].n, 1);
    assert_int_equal(all[1].n, 1);
    assert_int_equal(fac_value_type(fac_graph_find(out, "b")).dims.d[2], 4);
    fac_graph_free(out);
    all[1].node = "nobody";
    assert_int_equal(fac_graph_set_all(g, 2, all, &out, &err), FAC_E_ARGUMENT);
    fac_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(words_mean_layers),
                                        cmocka_unit_test(others_speak_it),
                                        cmocka_unit_test(settings_are_one_change) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
