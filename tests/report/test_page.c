/* The page about a model, from the library: what it says, what it does without memory, and that an
 * error of the writer goes through. */
#include "allocations.h"
#include "device_check.h"
#include "facula/report/page.h"
#include "facula/nn/zoo.h"

static fac_graph *lenet(fac_analysis **a, fac_memory_facts *memory) {
    fac_graph *g;
    OK(fac_zoo_new("lenet", NULL, 1, &g, &err));
    OK(fac_analyze(g, 0, a, &err));
    OK(fac_memory_facts_of(*a, g, NULL, memory, &err));
    return g;
}

typedef struct got {
    char *text;
    size_t n;
    int calls;
    fac_status answer;
} got;

static fac_status take(void *self, const char *text, size_t n, fac_error *e) {
    got *g = self;
    g->calls++;
    if (g->answer) {
        *e = (fac_error){ g->answer, "the disk is full" };
        return g->answer;
    }
    free(g->text);
    g->text = strndup(text, n);
    g->n = n;
    return FAC_OK;
}

static void says_what_is_known(void **state) {
    (void)state;
    fac_analysis *a;
    fac_memory_facts memory;
    fac_graph *g = lenet(&a, &memory);
    got page = { 0 };
    assert_true(memory.planned && memory.nparts > 0);
    fac_page_opts opts = { .name = "<lenet>", .about = "a & b", .memory = &memory };
    OK(fac_page_write(g, a, &opts, take, &page, &err));
    assert_int_equal(page.calls, 1);
    const char *const parts[] = { "<h1>&lt;lenet&gt;</h1>", "a &amp; b",   "61,706", "416,520",
                                  "id=\"arena\"",           "id=\"plan\"", "</html>" };
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        assert_non_null(strstr(page.text, parts[k]));
    assert_null(strstr(page.text, "id=\"measured\""));
    free(page.text);
    fac_memory_facts_free(&memory);
    fac_analysis_free(a);
    fac_graph_free(g);
}

static void errors_go_through(void **state) {
    (void)state;
    fac_analysis *a;
    fac_memory_facts memory;
    fac_graph *g = lenet(&a, &memory);
    const fac_page_opts opts = { .name = "lenet", .memory = &memory };
    got full = { .answer = FAC_E_IO };
    assert_int_equal(fac_page_write(g, a, &opts, take, &full, &err), FAC_E_IO);
    assert_string_equal(err.text, "the disk is full");
    got page = { 0 };
    assert_int_equal(fac_page_write(g, a, &(fac_page_opts){ 0 }, take, &page, &err),
                     FAC_E_ARGUMENT);
    assert_int_equal(page.calls, 0);
    fac_status status = FAC_E_NOMEM;
    long n = 0;
    for (; status && n < 100000; n++) {
        allocations_left = n;
        status = fac_page_write(g, a, &opts, take, &page, &err);
        allocations_left = -1;
        assert_true(!status || (status == FAC_E_NOMEM && !page.calls));
    }
    assert_true(n > 20 && !status);
    free(page.text);
    fac_memory_facts_free(&memory);
    fac_analysis_free(a);
    fac_graph_free(g);
}

static void machines_are_texts(void **state) {
    (void)state;
    double flops, bytes;
    assert_true(fac_page_machine("350G,20.5G", &flops, &bytes));
    assert_true(flops == 350e9 && bytes == 20.5e9);
    const char *const wrong[] = { "", "fast", "1T", "1T,", "1T,0", "1T,-1", "1T,1G,", "1Q,1G" };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_false(fac_page_machine(wrong[k], &flops, &bytes));
}

static void numbers_are_read(void **state) {
    (void)state;
    char text[32];
    assert_string_equal(fac_bytes_text(12345678, text, sizeof text), "12.3 MB");
    assert_string_equal(fac_bytes_text(999, text, sizeof text), "999 B");
    assert_string_equal(fac_count_text(1.8141e9, text, sizeof text), "1.81 G");
    assert_string_equal(fac_digits_text(1814073344, text, sizeof text), "1,814,073,344");
    assert_string_equal(fac_digits_text(-123456, text, sizeof text), "-123456");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(says_what_is_known),
                                        cmocka_unit_test(errors_go_through),
                                        cmocka_unit_test(machines_are_texts),
                                        cmocka_unit_test(numbers_are_read) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
